//! The table of results.

use std::fmt::Write;

use crate::cases::{Case, Cell, ROLES, Role};
use crate::foreign::{PEERS, workspace};

type Results = [(Cell, Result<String, String>)];

const ABOUT: &str = "\
# Interop matrix

Our endpoint with RakNets that nobody here wrote, over loopback. `cargo test -p rakwire-native --test matrix` runs every
cell and fails when this table is not what it finds; `UPDATE_INTEROP=1` writes it anew.

A cell passes when every message that comes back is right, none comes twice, what is reliable comes whole, what is
ordered comes in order, what is sequenced never goes back, the newest reliable sequenced message arrives, and each
message arrives at us with the reliability that its sender chose. Both sides send with the same one; receipts are local
and change nothing on the wire. \"5 % loss\" is a proxy that loses that share of the datagrams in each direction, by a
seed. A server is the foreign one with our client; a client is the foreign one with our server.

A limit is one of the peer, and [`interop/README.md`](../interop/README.md) tells more of it. The test checks that
whatever goes wrong there goes wrong in that way.
";

/// Compares the results with the table in the documentation, or writes it.
pub(crate) fn compare(results: &Results) {
    let failures: Vec<String> = results
        .iter()
        .filter_map(|(cell, result)| Some(format!("{cell}: {}", result.as_ref().err()?)))
        .collect();
    assert!(failures.is_empty(), "{} cells failed:\n{}", failures.len(), failures.join("\n"));
    let fresh = render(results);
    let path = workspace().join("docs/interop.md");
    if std::env::var_os("UPDATE_INTEROP").is_some() {
        std::fs::write(&path, fresh).expect("a folder for documentation");
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = committed.lines().zip(fresh.lines()).find(|(old, new)| old != new);
    assert!(
        committed == fresh,
        "docs/interop.md is not what was found, first here: {differs:?}; UPDATE_INTEROP=1 writes it anew"
    );
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
