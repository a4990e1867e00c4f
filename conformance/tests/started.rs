//! Tests clients that are started elsewhere, and servers that the suite starts.

use rakwire_conformance::case::{Options, Outcome, run};
use rakwire_conformance::cases;
use rakwire_conformance::check::Timing;
use rakwire_conformance::model::{Fault, Model};
use rakwire_conformance::start::{self, Dialler, Listening};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const TIMING: Timing = Timing {
    answer: Duration::from_millis(500),
    quiet: Duration::from_millis(120),
    lifetime: Duration::from_millis(1000),
};

/// Returns a local address with a port that was free a moment ago.
fn free_address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port")
}

#[test]
fn a_client_that_reconnects_is_tested_with_one_case_per_connection() {
    let address = free_address();
    let over = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&over);
    let clients = std::thread::spawn(move || {
        while !done.load(Ordering::Relaxed) {
            let client = Model::dial(address, Fault::None).expect("a socket");
            std::thread::sleep(Duration::from_millis(900));
            drop(client);
        }
    });
    let listening = Listening { address, dialler: Dialler::Other, patience: Duration::from_secs(3) };
    let options = Options { version: 6, listening: Some(listening), ..Options::default() };
    for number in [2201, 2302, 2409, 2501, 2600] {
        let case = cases::all().find(|case| case.number == number).expect("a case");
        // Retry, because a client may be at the end of its attempt when the case begins.
        let passed = (0..3)
            .any(|_| run(case, address, TIMING, &options).expect("a socket").outcome == Outcome::Passed);
        assert!(passed, "{number}");
    }
    // Case 2208 tests when a client gives up. It needs a client that the suite starts.
    let case = cases::all().find(|case| case.number == 2208).expect("a case");
    let outcome = run(case, address, TIMING, &options).expect("a socket").outcome;
    assert!(matches!(outcome, Outcome::Skipped(_)), "{outcome:?}");
    over.store(true, Ordering::Relaxed);
    clients.join().expect("no panic");
}

#[test]
fn a_case_fails_if_no_client_connects_in_time() {
    let address = free_address();
    let listening = Listening { address, dialler: Dialler::Other, patience: Duration::from_millis(50) };
    let options = Options { version: 6, listening: Some(listening), ..Options::default() };
    let case = cases::all().find(|case| case.number == 2201).expect("a case");
    let outcome = run(case, address, TIMING, &options).expect("a socket").outcome;
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
}

#[test]
#[cfg(unix)]
fn a_started_server_gets_its_address_and_port_and_is_stopped_on_drop() {
    let folder = env!("CARGO_TARGET_TMPDIR");
    let file = format!("{folder}/started-by-the-suite");
    let line = format!("sh -c 'echo $$ {{port}} {{}} > {file}; echo ready; exec cat'");
    let (started, address) = start::server(&line, Duration::from_secs(10)).expect("a server");
    let said = std::fs::read_to_string(&file).expect("a line");
    let words: Vec<&str> = said.split_whitespace().collect();
    assert_eq!(words[1..], [address.port().to_string(), address.to_string()]);
    let lives = || std::path::Path::new("/proc").join(words[0]).exists();
    let proc = std::path::Path::new("/proc/self").exists();
    assert!(lives() || !proc);
    drop(started);
    assert!(!lives());
}

#[test]
#[cfg(unix)]
fn starting_a_server_that_prints_nothing_fails() {
    let silent = start::server("sleep 5", Duration::from_millis(50));
    assert!(silent.is_err());
}
