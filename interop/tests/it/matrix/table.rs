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

RakLib, go-raknet and most packages of the registries below were written for Minecraft Bedrock. They still use RakNet with each
other and with rakwire, and current clients of the game do not use them.

## Test method

The tests run over loopback. `cargo xtask test --only interop` runs every cell of [the matrix](#the-matrix) and fails if the results
differ from it; with `UPDATE_INTEROP=1` it rewrites this page.

A cell passes if

- every echo has the right content, and none arrives twice;
- all reliable messages arrive, ordered ones in order;
- sequenced messages never arrive after newer ones, and the newest reliable one arrives;
- each message arrives at our end with the reliability that its sender chose.

Both sides use the same reliability; receipts are local and change nothing on the wire. \"5 % loss\" is a proxy that drops that share of the datagrams in each direction, by a
seed. \"server\" is the other implementation with our client, \"client\" the other implementation with our server.

A limit is one of the other implementation, see [`interop/README.md`](../interop/README.md). The test checks that such a
cell fails in the described way.

[interop-matrix.md](interop-matrix.md) has every server with every client, also foreign ones with each other, as judged by their datagrams.

Secure connections are ours alone. What becomes of a C++ peer at one end, with and without its own security, is in
[secure.md](secure.md#compatibility), and run by `interop/tests/it/secure_cpp.rs`. C++ RakNet's own cryptography is in no
package that could be fetched: a stand-in with the same sizes replaces it, around RakNet's own handshake.

Plugins of the original (connection graph, ready events and RPC4, as far as their wire format is supported) run at one end and ours at the other
in `interop/tests/it/plugins.rs` ([mesh.md](plugins/mesh.md#connection-graph), [ready.md](plugins/ready.md),
[calls.md](plugins/calls.md#rpc4)). Of the others (file list transfer, fully connected mesh, NAT punch-through, replica manager, voice) the pages in
[plugins/](plugins/README.md) explain why their messages are not supported.

Over TCP, where reliabilities mean nothing, `interop/tests/it/tcp.rs` runs both forms of the original both ways
([tcp.md](tcp.md)).

## Sizes that peers take

A message that is longer than a part of a datagram (1,432 bytes at the MTU of 1492, 1,140 at 1200, 516 at 576) travels in parts, and
peers bound how many. What is above that is dropped there, and nothing says so: the message stays unanswered, or the connection
ends later. `Config::mtu` and the path decide the MTU, so the safe size is that of the smallest one. `max_message_len()` of a
connection says what our own memory lets it send, 4,000,000 bytes by default, and knows nothing of the other peer's limit: to RakLib
and go-raknet send the lesser of that and the table's bytes.

| peer | parts of one message | bytes at MTU 1492 | bytes at MTU 576 |
|---|---|---|---|
| RakLib (PocketMine) | 128, of four messages at once | 183,296 | 66,048 |
| go-raknet, servers | 512; older ones 256 | 733,184; 366,592 | 264,192; 132,096 |
| `tokio-raknet` 0.2.0 | 8,192 | 11,730,944 | 4,227,072 |
| `rust-raknet` 1.4.0 | 65,536, and 64 MiB with 128 bytes more for each part | 61,601,776 | 33,816,576 |
| C++ RakNet, SLikeNet, MafiaNet | as memory lasts | | |
| `@serenityjs/raknet` 0.8.21, `@jsprismarine/raknet` 1.4.7, `jsp-raknet` 2.2.0, `raknet-node` 0.5.0 (npm) | not bounded | 1,000,000 and more | not tried |
| `rak-net` 1.9 (PyPI) | not bounded | 100,000 and more | not tried |

`interop/tests/it/peers.rs` sends `max_message_len()` bytes at the MTU of 576, which are 7,752 parts, to `rust-raknet` and C++ RakNet,
and gets them back. `interop/tests/it/registry.rs` sends those of the npm registry one message of 1,000,000 bytes, and `rak-net` one of 100,000, at
the MTU that they agree on, 1,400 to 1,492, and gets them back; its clients `jsp-raknet` and `raknet-node` do the same with our server. `PieRakNet` sends
no echo, and `pybedrock-net` opens no connection. The other limits themselves are those of the sources of the peers, without a test: RakLib and go-raknet are in no
registry that the tests install from, `tokio-raknet` serves benchmarks alone, and its limit and that of `rust-raknet` lie above what
our defaults send.

## Small peers of the registries

`interop/tests/it/registry.rs` runs them with our options as they are by default, with programs in `interop/npm` and `interop/pypi`.

| package | role | protocol | what passes | limits |
|---|---|---|---|---|
| `@serenityjs/raknet` 0.8.21 (npm) | server | 11 | 50 x 100 B, 1 x 1 MB | fills datagrams to 1,480 bytes; acknowledges no disconnection |
| `@jsprismarine/raknet` 1.4.7 (npm) | server | 10 | 50 x 100 B, one at a time, 1 x 1 MB | reads one message a datagram, and exactly twenty addresses |
| `jsp-raknet` 2.2.0 (npm) | server, client | 10 | 50 x 100 B, 1 x 1 MB; as client 10 x 100 B, 1 x 1 MB | knows no cookies; its server ends with its first client |
| `raknet-node` 0.5.0 (npm) | server, client | 10, 11 | 50 x 100 B, 1 x 1 MB; as client 10 x 100 B, 1 x 1 MB | knows no cookies; it is `rust-raknet` |
| `rak-net` 1.9 (PyPI) | server | 10 | 10 x 100 B, one at a time, 1 x 100 KB | reads exactly twenty addresses; sends unreliably only, since it writes reliabilities into the wrong bits |
| `PieRakNet` 2.3.2.1 (PyPI) | server | 11 | 1 x 100 B, no echo | its ping and its acceptance have one datagram number |
| `pybedrock-net` 1.3.4 (PyPI) | client | 11 | pings | wrong lengths of headers in a connection |

## Wireshark

`interop/tests/it/wireshark.rs` has tshark read captures of each kind of our traffic:

| traffic | what its reader of RakNet says |
|---|---|
| pings, handshakes without cookies, refusals, every reliability, parts, acknowledgements, out-of-band messages | all of it; ids 15 and 18 have no names there |
| with cookies | names the four datagrams before the connection; takes the flag of reply 1 for that of the original's encryption, so that the reply is \"malformed\" without a key, and all that follows \"encrypted\" |
| secure connections | names the same four, and takes what follows for encrypted, which it is; `rakwire decode --key-log` reads it |
| Game Protocol | nothing: there is no reader for it. UDP around it has right lengths and checksums; `rakwire decode` reads the datagrams |

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
    text.push_str("\n| peer | what | package | protocol |\n|---|---|---|---|\n");
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
    assert!(!text.contains("|  |"), "an empty cell");
    text
}
