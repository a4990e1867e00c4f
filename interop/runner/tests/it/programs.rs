//! Programs as peers: their environment variables and exit status.

use rakwire_interop_runner::cases;
use rakwire_interop_runner::cell::{Outcome, Verdict, run};
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
    run(&peer(server), &peer(client), &Task { case: cases::ALL[0], protocol: 6 }, 1, None)
        .expect("programs that start")
}

#[test]
fn status_127_means_that_a_case_is_not_supported() {
    let verdict = cell("unsupported", "failing").verdict;
    assert_eq!(verdict, Verdict::Unsupported("the server unsupported does not support it".to_owned()));
    let verdict = cell("silent", "unsupported").verdict;
    assert_eq!(verdict, Verdict::Unsupported("the client unsupported does not support it".to_owned()));
}

#[test]
fn a_server_that_exits_early_fails() {
    let Verdict::Fail(broken) = cell("failing", "failing").verdict else { panic!("it passed") };
    assert_eq!(broken.rule, rules::STARTED);
    assert!(broken.why.contains('3'), "{broken}");
}

/// A pair without datagrams fails, regardless of the exit status of the client.
#[test]
fn a_pair_without_datagrams_fails() {
    for (client, status) in [("failing", 3), ("silent", 0)] {
        let outcome = cell("silent", client);
        let Verdict::Fail(broken) = outcome.verdict else { panic!("{client} passed") };
        assert_eq!((broken.rule, outcome.client_status), (rules::HANDSHAKE, Some(status)));
    }
}

#[test]
fn a_server_is_ready_once_it_prints_a_line_and_ends_with_its_input() {
    let case = &cases::ALL[0];
    let started = serve(&peer("silent"), &Start { case, protocol: 6, seed: 1, log: None })
        .expect("programs that start");
    let Started::Ready(server) = started else { panic!("{started:?}") };
    assert!(server.address.ip().is_loopback() && server.address.port() > 0);
}
