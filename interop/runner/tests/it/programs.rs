//! Programs as peers: their environment variables and exit status.

use rakwire_interop_runner::cases::{self, Case};
use rakwire_interop_runner::cell::{Outcome, Verdict, run};
use rakwire_interop_runner::finding::By;
use rakwire_interop_runner::judge::Task;
use rakwire_interop_runner::peers::{Peer, Role, Start, Started, serve};
use rakwire_interop_runner::rules;
use std::path::Path;

fn peer(program: &str) -> Peer {
    Peer {
        name: program.to_owned(),
        about: String::new(),
        package: String::new(),
        run: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(program),
        roles: vec![Role::Server, Role::Client],
        protocols: vec![6],
        client_protocols: None,
    }
}

fn cell(server: &str, client: &str) -> Outcome {
    cell_of(cases::ALL[0], server, client)
}

fn cell_of(case: Case, server: &str, client: &str) -> Outcome {
    run(&peer(server), &peer(client), &Task { case, protocol: 6 }, 1, None).expect("the programs start")
}

fn why_not_started(server: &str, client: &str) -> (By, String) {
    let Verdict::Fail(broken) = cell(server, client).verdict else {
        panic!("{server}, {client}: no failure")
    };
    assert_eq!(broken.rule, rules::STARTED, "{broken}");
    (broken.by, broken.why)
}

#[test]
fn status_127_means_that_a_case_is_not_supported() {
    let ping = cases::ALL[1];
    let verdict = cell_of(ping, "unsupported", "failing").verdict;
    assert_eq!(verdict, Verdict::Unsupported("the server unsupported does not support it".to_owned()));
    let verdict = cell_of(ping, "silent", "unsupported").verdict;
    assert_eq!(verdict, Verdict::Unsupported("the client unsupported does not support it".to_owned()));
}

/// Shells exit with status 127 if a program is missing.
#[test]
fn status_127_is_a_failure_in_the_case_that_every_peer_supports() {
    for (server, client, by) in
        [("unsupported", "failing", By::Server), ("silent", "unsupported", By::Client)]
    {
        let (found, why) = why_not_started(server, client);
        assert!(found == by && why.contains("every peer supports"), "{found:?}: {why}");
    }
}

#[test]
fn a_server_that_exits_early_fails() {
    let (by, why) = why_not_started("failing", "failing");
    assert!(by == By::Server && why.contains("status 3 before"), "{why}");
    let (by, why) = why_not_started("leaving", "silent");
    assert!(by == By::Server && why.contains("printed `ready` and ended: exit status: 4"), "{why}");
}

#[test]
fn a_server_must_print_ready() {
    let (by, why) = why_not_started("babbling", "silent");
    assert!(by == By::Server && why.contains("before it printed `ready`"), "{why}");
}

#[test]
fn a_client_that_fails_before_its_first_datagram_has_not_started() {
    let (by, why) = why_not_started("silent", "failing");
    assert_eq!(by, By::Client);
    assert_eq!(why, "the client exited with status 3 before it sent a datagram");
}

/// A client that exits with status 0 has not succeeded if it sent no datagram.
#[test]
fn a_cell_without_datagrams_fails() {
    let outcome = cell("silent", "silent");
    let Verdict::Fail(broken) = outcome.verdict else { panic!("the cell passed") };
    assert_eq!((broken.rule, outcome.client_status), (rules::HANDSHAKE, Some(0)));
}

#[test]
fn the_log_has_the_output_of_both_programs() {
    let log = std::env::temp_dir().join(format!("rakwire-interop-{}.log", std::process::id()));
    let task = Task { case: cases::ALL[0], protocol: 6 };
    run(&peer("silent"), &peer("silent"), &task, 1, Some(&log)).expect("the programs start");
    let text = std::fs::read_to_string(&log).expect("a log");
    std::fs::remove_file(&log).expect("a log");
    assert!(text.contains("ready server handshake") && text.contains("ready client handshake"), "{text}");
}

/// The program is built in another workspace and may be missing.
#[test]
fn the_adapter_of_rakwire_names_a_missing_program() {
    let adapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/rakwire");
    let output = std::process::Command::new(adapter).env("RAKWIRE_PEER", "/missing/peer").output();
    let output = output.expect("the adapter starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("/missing/peer is missing"), "{errors}");
}

#[test]
fn a_server_that_prints_ready_has_started() {
    let case = &cases::ALL[0];
    let started =
        serve(&peer("silent"), &Start { case, protocol: 6, seed: 1, log: None }).expect("the programs start");
    let Started::Ready(server) = started else { panic!("{started:?}") };
    assert!(server.address.ip().is_loopback() && server.address.port() > 0);
}
