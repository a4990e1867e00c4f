//! The results page in Markdown.

use crate::finding::By;
use crate::limits::Limit;
use crate::report::{Cell, Document};
use crate::rules;
use std::fmt::Write as _;

const HEAD: &str = include_str!("../page-head.txt");

/// Returns the page. It depends only on the results, not on times or other details of a run.
#[must_use]
pub fn markdown(document: &Document, limits: &[Limit]) -> String {
    let mut out = HEAD.to_owned();
    peers(&mut out, document);
    matrix(&mut out, document);
    table_of_limits(&mut out, document, limits);
    cases(&mut out, document);
    table_of_rules(&mut out);
    out
}

// Writing to a string never fails.
fn peers(out: &mut String, document: &Document) {
    out.push_str(
        "\n## Peers\n\n| peer | implementation | package | protocol versions |\n|---|---|---|---|\n",
    );
    for peer in &document.peers {
        let versions: Vec<String> = peer.protocols.iter().map(u8::to_string).collect();
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            peer.name,
            peer.about,
            peer.package,
            versions.join(", ")
        );
    }
}

/// Returns the names of the peers of one role, in the order of the peers.
fn names(document: &Document, of: impl Fn(&Cell) -> &String) -> Vec<&str> {
    let plays = |name: &str| document.cells.iter().any(|cell| of(cell) == name);
    document.peers.iter().map(|peer| &peer.name[..]).filter(|name| plays(name)).collect()
}

fn matrix(out: &mut String, document: &Document) {
    let clients = names(document, |cell| &cell.client);
    out.push_str(
        "\n## The matrix\n\nEach cell shows how many of the cases that both peers support pass. If no connection opens or no \
         message is echoed\nin the case `handshake`, the other cases with a connection are skipped.\n\n",
    );
    out.push_str("| server \\ client |");
    clients.iter().for_each(|client| out.push_str(&format!(" `{client}` |")));
    out.push_str("\n|---|");
    clients.iter().for_each(|_| out.push_str("---|"));
    out.push('\n');
    for server in names(document, |cell| &cell.server) {
        let _ = write!(out, "| `{server}` |");
        for client in &clients {
            let _ = write!(out, " {} |", pair(document, server, client));
        }
        out.push('\n');
    }
}

fn pair(document: &Document, server: &str, client: &str) -> String {
    let cells: Vec<&Cell> =
        document.cells.iter().filter(|cell| cell.server == server && cell.client == client).collect();
    let count = |verdict: &str| cells.iter().filter(|cell| cell.verdict == verdict).count();
    let ran = cells.len() - count("unsupported") - count("skipped");
    if count("skipped") > 0 {
        let is_about_opening =
            |cell: &&&Cell| rules::ALL.iter().any(|rule| rule.name == cell.rule && rule.is_about_opening());
        let has_none = cells.iter().filter(is_about_opening).any(|cell| cell.case == "handshake");
        return if has_none { "no connection" } else { "no echo" }.to_owned();
    }
    if ran == 0 {
        return cells.first().map_or_else(|| "not run".to_owned(), |cell| cell.why.clone());
    }
    format!("{} of {ran}", count("pass"))
}

fn table_of_limits(out: &mut String, document: &Document, limits: &[Limit]) {
    out.push_str(
        "\n## Limits\n\nThese failures are expected. Any other failure fails the run.\n\n| server | client | cases | broken rules | reason |\n|---|---|---|---|---|\n",
    );
    let list = |names: &[String]| {
        let quoted =
            names.iter().map(|name| if name == "*" { "any".to_owned() } else { format!("`{name}`") });
        quoted.collect::<Vec<_>>().join(", ")
    };
    for limit in limits {
        if !document.cells.iter().any(|cell| limit.covers(cell)) {
            continue;
        }
        let [servers, clients, cases] =
            [&limit.servers, &limit.clients, &limit.cases].map(|names| list(names));
        let by = match limit.end {
            By::Both => String::new(),
            end => format!(" by the {}", end.name()),
        };
        let sometimes = if limit.sometimes { ", not in every run" } else { "" };
        let _ = writeln!(
            out,
            "| {servers} | {clients} | {cases} | {}{by}{sometimes} | {} |",
            list(&limit.rules),
            limit.why
        );
    }
    let failures: Vec<&Cell> = document.cells.iter().filter(|cell| cell.verdict == "fail").collect();
    for cell in failures {
        let (server, client, case, rule) = (&cell.server, &cell.client, &cell.case, &cell.rule);
        let _ =
            writeln!(out, "| `{server}` | `{client}` | `{case}` | `{rule}` | not explained: {} |", cell.why);
    }
}

/// Lists the cases. Cases that differ only in their reliability share a row.
fn cases(out: &mut String, document: &Document) {
    out.push_str("\n## Cases\n\n| case | passes if |\n|---|---|\n");
    let mut rows: Vec<(&str, &str)> = Vec::new();
    for case in &document.cases {
        let name = if case.name.starts_with("transfer-") { "transfer-RELIABILITY" } else { &case.name };
        if rows.last().is_none_or(|(last, _)| *last != name) {
            rows.push((name, &case.about));
        }
    }
    for (name, about) in rows {
        let _ = writeln!(out, "| `{name}` | {about} |");
    }
}

/// Lists the rules. The name of a rule that docs/raknet.md states is a link.
fn table_of_rules(out: &mut String) {
    out.push_str("\n## Rules\n\n| rule | text |\n|---|---|\n");
    for rule in rules::ALL {
        let name = match rule.section {
            "" => format!("`{}`", rule.name),
            section => format!("[`{}`](raknet.md#{section})", rule.name),
        };
        let _ = writeln!(out, "| {name} | {} |", rule.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases;
    use crate::peers::{Peer, Role};

    fn peer(name: &str) -> Peer {
        Peer {
            name: name.to_owned(),
            about: "a peer".to_owned(),
            package: String::new(),
            run: "none".into(),
            roles: vec![Role::Server, Role::Client],
            protocols: vec![6],
            client_protocols: None,
        }
    }

    fn cell(client: &str, case: &str, verdict: &str) -> Cell {
        let [server, client, case, verdict] = ["a", client, case, verdict].map(str::to_owned);
        Cell { server, client, case, verdict, rule: "order".to_owned(), ..Cell::default() }
    }

    #[test]
    fn the_page_lists_passed_cases_failed_pairs_limits_and_rules() {
        let cells = vec![
            cell("a", "handshake", "pass"),
            cell("a", "loss", "limit"),
            cell("a", "split", "unsupported"),
            cell("b", "handshake", "limit"),
            cell("b", "loss", "skipped"),
            Cell { rule: "handshake".to_owned(), ..cell("c", "handshake", "limit") },
            cell("c", "loss", "skipped"),
        ];
        let list = |name: &str| vec![name.to_owned()];
        let limit = Limit {
            servers: list("a"),
            clients: list("*"),
            cases: list("loss"),
            rules: list("order"),
            end: By::Server,
            why: "it does not sort".to_owned(),
            sometimes: true,
        };
        let document = Document::new(1, &cases::ALL, &[peer("a"), peer("b"), peer("c")], cells);
        let page = markdown(&document, &[limit]);
        assert!(page.contains("| server \\ client | `a` | `b` | `c` |"), "{page}");
        assert!(page.contains("| `a` | 1 of 2 | no echo | no connection |"), "{page}");
        assert!(
            page.contains(
                "| `a` | any | `loss` | `order` by the server, not in every run | it does not sort |"
            ),
            "{page}"
        );
        assert_eq!(page.matches("transfer-RELIABILITY").count(), 1);
        assert!(page.contains("[`order`](raknet.md#ordering)") && page.contains("| `sent` |"), "{page}");
    }
}
