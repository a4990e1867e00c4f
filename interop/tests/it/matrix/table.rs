//! The table of results.

use std::fmt::Write;
use std::path::Path;

use super::cases::{Case, Cell, ROLES, Role};
use super::foreign::PEERS;

type Results = [(Cell, Result<String, String>)];

const ABOUT: &str = "\
# Interop matrix

This page lists the RakNet implementations that rakwire is tested with, and their limits. It is for readers with servers or clients
that are not built on rakwire.

## Programs that use RakNet today

| programs | use RakNet |
|---|---|
| games in C++ on RakNet 4 (*the original* is version 4.081), SLikeNet, MafiaNet | yes |
| everything built on rakwire | yes |
| clients of Minecraft Bedrock from version 1.26.60 on | no: NetherNet, which is built on WebRTC |
| older clients and servers of Minecraft Bedrock, and libraries for them | yes |

RakLib, go-raknet and most packages in the tables below were written for Minecraft Bedrock. They still use RakNet with each other and
with rakwire, but current clients of the game do not use them.

## Test method

The tests run over loopback. `cargo xtask test --only interop` runs every cell of [the matrix](#the-matrix) and fails if the results
differ from it; with `UPDATE_INTEROP=1` it rewrites this page.

A cell passes if

- every echo has the correct content, and no message arrives twice;
- all reliable and reliable-ordered messages arrive, and reliable-ordered ones arrive in order;
- at least a tenth of the messages with another reliability arrives;
- sequenced messages never arrive after newer ones, and the newest reliable-sequenced message arrives;
- messages arrive at rakwire with the reliability that their sender chose.

Both peers send with the same reliability. Receipts are local and do not change the wire format. In rows with \"5 % loss\", a proxy drops
5 % of the datagrams in each direction, selected by a seed. In the columns \"server\" the other implementation is the server and rakwire
is the client; in the columns \"client\" the roles are swapped.

A cell with \"limit\" fails because of the other implementation; [`interop/README.md`](../interop/README.md) describes the cause. The test
checks for this failure. If the API of the other implementation lacks the feature, the cell is not run.

[interop-matrix.md](interop-matrix.md) pairs every server with every client, including foreign implementations with each other. Its
results are based on packet captures.

Only rakwire supports its secure connections. [secure.md](secure.md#compatibility) lists the outcomes with C++ peers, with and without
RakNet's own security, and `interop/tests/it/secure_cpp.rs` tests them. The cryptography library of C++ RakNet is not available from a
package registry. A stand-in with fields of the same sizes replaces it, so the tests cover RakNet's handshake but not its ciphers.

`interop/tests/it/plugins.rs` connects plugins of the original to the corresponding plugins of rakwire: the
[connection graph](plugins/mesh.md#connection-graph), the [ready events](plugins/ready.md) and [RPC4](plugins/calls.md#rpc4), as far as
rakwire supports their wire formats. For the other plugins (file list transfer, fully connected mesh, NAT punch-through, replica
manager, voice), the pages in [plugins/](plugins/README.md) explain why their messages are not supported.

`interop/tests/it/tcp.rs` connects rakwire to the TCP classes of the original, `PacketizedTCP` and `TCPInterface`, in both directions
([tcp.md](tcp.md)). Reliabilities have no meaning over TCP.

## Message size limits

A message of more than 1,432 bytes (at the MTU of 1492; 1,140 at 1200, 516 at 576) is split, and some implementations limit the number of
parts. A receiver drops longer messages silently: the message remains unanswered, or the connection is lost later. `Config::mtu` and the
path determine the MTU, so the safe size is the size for the smallest MTU. `max_message_len()` of a connection returns the length that
the local memory allows, 4,000,000 bytes by default. It does not include the remote's limit: for RakLib and go-raknet, use the lower of
this value and the value in the table.

| peer | maximum number of parts per message | bytes at MTU 1492 | bytes at MTU 576 |
|---|---|---|---|
| RakLib (PocketMine) | 128, and 4 incomplete messages at once | 183,296 | 66,048 |
| go-raknet, servers | 512; older versions 256 | 733,184; 366,592 | 264,192; 132,096 |
| `tokio-raknet` 0.2.0 | 8,192 | 11,730,944 | 4,227,072 |
| `rust-raknet` 1.4.0 | 65,536, and at most 64 MiB including 128 bytes per part | 61,601,776 | 33,816,576 |
| C++ RakNet, SLikeNet, MafiaNet | limited only by memory | | |
| `@serenityjs/raknet` 0.8.21, `@jsprismarine/raknet` 1.4.7, `jsp-raknet` 2.2.0, `raknet-node` 0.5.0 (npm) | no limit found | at least 1,000,000 | not tested |
| `rak-net` 1.9 (PyPI) | no limit found | at least 100,000 | not tested |

These tests exchange long messages:

- `interop/tests/it/peers.rs` sends `max_message_len()` bytes, which are 7,752 parts at the MTU of 576, to `rust-raknet` and C++ RakNet,
  and receives the echo.
- `interop/tests/it/registry.rs` sends a message of 1,000,000 bytes to the servers of the npm packages, and one of 100,000 bytes to
  `rak-net`, and receives the echoes. The negotiated MTU is 1,400 to 1,492. The clients `jsp-raknet` and `raknet-node` do the same with
  rakwire's server.

`PieRakNet` does not echo, and `pybedrock-net` does not complete the handshake. The other limits are from the sources of the
implementations and are not tested. RakLib and go-raknet are in no registry that the tests install from, and `tokio-raknet` is used only
for benchmarks. The limits of `tokio-raknet` and `rust-raknet` are above the length that rakwire sends by default.

## Small libraries in npm and PyPI

`interop/tests/it/registry.rs` tests these libraries with the default options of rakwire, through the programs in `interop/npm` and
`interop/pypi`.

| package | role | protocol | messages that pass | limits |
|---|---|---|---|---|
| `@serenityjs/raknet` 0.8.21 (npm) | server | 11 | 50 x 100 B, 1 x 1 MB | sends datagrams of 1,480 bytes; does not acknowledge a disconnection |
| `@jsprismarine/raknet` 1.4.7 (npm) | server | 10 | 50 x 100 B, one at a time, 1 x 1 MB | reads one message per datagram; requires exactly twenty addresses in message 13 |
| `jsp-raknet` 2.2.0 (npm) | server, client | 10 | 50 x 100 B, 1 x 1 MB; as client 10 x 100 B, 1 x 1 MB | does not support cookies; its server closes when a client disconnects |
| `raknet-node` 0.5.0 (npm) | server, client | 10, 11 | 50 x 100 B, 1 x 1 MB; as client 10 x 100 B, 1 x 1 MB | does not support cookies; contains `rust-raknet` |
| `rak-net` 1.9 (PyPI) | server | 10 | 10 x 100 B, one at a time, 1 x 100 KB | requires exactly twenty addresses in message 13; sends only unreliable messages, because it encodes other reliabilities incorrectly |
| `PieRakNet` 2.3.2.1 (PyPI) | server | 11 | 1 x 100 B, no echo | its connected ping and its connection request accepted have the same datagram number |
| `pybedrock-net` 1.3.4 (PyPI) | client | 11 | pings | misparses the headers of reliable messages |

## Wireshark

`interop/tests/it/wireshark.rs` decodes captures of rakwire's traffic with tshark:

| traffic | result of Wireshark's RakNet dissector |
|---|---|
| pings, handshakes without cookies, refusals, every reliability, split messages, acknowledgements, out-of-band messages | decoded; the message ids 0x15 and 0x18 are shown without names |
| handshakes with cookies | The four offline messages are named. The dissector interprets the cookie flag of reply 1 as RakNet's own encryption. It therefore shows reply 1 as malformed, because the key is missing, and all later datagrams as encrypted. |
| secure connections | The four offline messages are named, and all later datagrams are shown as encrypted, which is correct. `rakwire decode --key-log` decrypts them. |
| [Game Protocol](game-protocol.md) | There is no dissector. The lengths and checksums in the UDP headers are correct, and `rakwire decode` decodes the datagrams. |

## The matrix
";

/// Writes the page. Panics if a cell has failed.
pub(crate) fn write(results: &Results) {
    let failures: Vec<String> = results
        .iter()
        .filter_map(|(cell, result)| Some(format!("{cell}: {}", result.as_ref().err()?)))
        .collect();
    assert!(failures.is_empty(), "{} cells failed:\n{}", failures.len(), failures.join("\n"));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interop.md");
    std::fs::write(&path, render(results)).expect("a folder for tests");
}

// Writing to a string never fails.
fn render(results: &Results) -> String {
    let mut text = ABOUT.to_owned();
    text.push_str("\n| peer | implementation | package | protocol |\n|---|---|---|---|\n");
    for peer in PEERS {
        let _ =
            writeln!(text, "| `{}` | {} | {} | {} |", peer.name, peer.about, peer.package(), peer.protocol);
    }
    text.push_str("\n| messages |");
    let mut line = String::from("\n|---|");
    for peer in PEERS {
        for role in ROLES {
            let role = match role {
                Role::Server => "server",
                Role::Client => "client",
            };
            let _ = write!(text, " `{}` {role} |", peer.name);
            line.push_str("---|");
        }
    }
    text.push_str(&line);
    for case in Case::all() {
        let _ = write!(text, "\n| {case} |");
        for (_, result) in results.iter().filter(|(cell, _)| cell.case == case) {
            let _ = write!(text, " {} |", result.as_deref().unwrap_or(""));
        }
    }
    text.push('\n');
    assert!(!text.contains("|  |"), "a cell of the table has no result");
    text
}
