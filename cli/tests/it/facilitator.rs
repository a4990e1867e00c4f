//! `rakwire facilitator`, and `rakwire meet` through it.

use std::net::UdpSocket;
use std::path::Path;
use std::process::Output;
use std::sync::mpsc;
use std::time::Duration;

use crate::support::{Server, run, text};

fn rakwire() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_rakwire"))
}

/// Starts a facilitator, which announces its address.
fn facilitator(arguments: &[&str]) -> Server {
    let arguments = [&["facilitator", "--listen", "127.0.0.1:0"], arguments].concat();
    Server::start(rakwire(), &arguments, "listening on ")
}

/// Connects one `meet` process to a waiting one. Each has its own loopback address.
fn meet(facilitator: &Server, options: &[&str]) -> Output {
    let waiting = [&["meet", &facilitator.announced, "--listen", "127.0.0.2:0"], options].concat();
    let waiting = Server::start(rakwire(), &waiting, "this machine is");
    let reaching = ["meet", &facilitator.announced, &waiting.announced, "--listen", "127.0.0.3:0"];
    run(rakwire(), &[&reaching, options].concat(), "")
}

/// Repeats the attempt until it has the expected result, because on a busy machine a program may be late. Each attempt
/// has its own facilitator with free forwarding ports.
fn meet_until(start: impl Fn() -> Server, options: &[&str], wanted: &str) -> Output {
    let attempts = std::iter::repeat_with(|| meet(&start(), options)).take(5);
    let mut last = None;
    for output in attempts {
        if output.status.success() && text(&output.stdout).contains(wanted) {
            return output;
        }
        last = Some(output);
    }
    last.expect("five attempts")
}

#[test]
fn two_machines_connect_directly_through_the_facilitator() {
    let output = meet_until(|| facilitator(&[]), &[], " directly in ");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.starts_with("connected with 127.0.0.2:"), "{said}");
    assert!(said.contains(" directly in ") && said.contains("\necho in "), "{said}");
}

/// A facilitator with a password and a key admits clients that have both.
#[test]
fn a_facilitator_requires_its_password_and_proves_its_key() {
    let directory = std::env::temp_dir().join(format!("rakwire-facilitator-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = directory.join("key").display().to_string();
    let made = run(rakwire(), &["keygen", &file], "");
    let said = text(&made.stdout);
    let key = said.lines().next().expect("a public key");
    let start = || facilitator(&["--password", "friends", "--secure", &file]);
    let output = meet_until(start, &["--password", "friends", "--server-key", key], " directly in ");
    let facilitator = start();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    for (options, reason) in [
        (&["--server-key", key][..], "set it with --password"),
        (&["--password", "friends"][..], "give its key with --server-key"),
    ] {
        let refused = run(rakwire(), &[&["meet", &facilitator.announced], options].concat(), "");
        let said = text(&refused.stderr);
        assert!(!refused.status.success() && said.contains(reason), "{said}");
    }
    std::fs::remove_dir_all(&directory).expect("an existing directory");
}

#[test]
fn a_facilitator_limits_clients_per_address() {
    let facilitator = facilitator(&["--max-per-address", "1"]);
    let first = ["meet", &facilitator.announced, "--listen", "127.0.0.2:0"];
    let _first = Server::start(rakwire(), &first, "this machine is");
    let second = run(rakwire(), &[&first[..], &["--timeout", "2"]].concat(), "");
    assert!(!second.status.success(), "{}", text(&second.stdout));
    let other = ["meet", &facilitator.announced, "--listen", "127.0.0.3:0"];
    let _other = Server::start(rakwire(), &other, "this machine is");
}

/// A client that does not receive datagrams sent to its address takes no slot, triggers no punches, and receives no
/// more bytes than it sent.
#[test]
fn a_facilitator_ignores_addresses_that_were_not_validated() {
    let facilitator = facilitator(&[]);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.connect(&facilitator.announced).expect("the address of the facilitator");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a valid timeout");
    let magic = [0, 255, 255, 0, 254, 254, 254, 254, 253, 253, 253, 253, 18, 52, 86, 120];
    let mut request_1 = [&[5][..], &magic, &[11]].concat();
    request_1.resize(548, 0);
    let mut answer = [0; 2_048];
    for _ in 0..20 {
        socket.send(&request_1).expect("enough space");
        let length = socket.recv(&mut answer).expect("an answer");
        assert_eq!((answer[0], length, answer[25]), (6, 32, 1), "a cookie");
        // The next answer is reply 1 to the next request, because this request without a cookie is ignored.
        let to = [4, !127, !0, !0, !1, 0, 0];
        let request_2 = [&[7][..], &magic, &to, &[2, 36], &[0; 8]].concat();
        assert_eq!(request_2.len(), 34);
        socket.send(&request_2).expect("enough space");
    }
}

#[test]
fn the_facilitator_forwards_between_machines_that_cannot_connect() {
    let start = || facilitator(&["--forwarding-ports", "1"]);
    let output = meet_until(start, &["--forwarded"], " through the facilitator in ");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.starts_with("connected with 127.0.0.1:"), "{said}");
    assert!(said.contains(" through the facilitator in ") && said.contains("\necho in "), "{said}");
}

/// Starts a router that supports only NAT-PMP, and reports the lifetime of each request.
fn router(gateway: &str) -> mpsc::Receiver<u32> {
    let socket = UdpSocket::bind((gateway, 5_351)).expect("a port");
    let (requested, lifetimes) = mpsc::channel();
    std::thread::spawn(move || {
        let mut request = [0; 1_100];
        // The thread ends with the test.
        while let Ok((length, from)) = socket.recv_from(&mut request) {
            let answer = match &request[..length] {
                [0, 0] => vec![0, 128, 0, 0, 0, 0, 0, 1, 203, 0, 113, 9],
                [0, 1, 0, 0, port @ ..] if length == 12 => {
                    let lifetime = [port[4], port[5], port[6], port[7]];
                    let number = u32::from_be_bytes(lifetime);
                    let outside = if number == 0 { 0 } else { 4_321_u16 };
                    // The test may have ended.
                    let _ = requested.send(number);
                    let head = [0, 129, 0, 0, 0, 0, 0, 1];
                    [&head[..], &port[..2], &outside.to_be_bytes(), &lifetime].concat()
                }
                _ => vec![0, 129, 0, 1, 0, 0, 0, 1],
            };
            // Sending fails if the client has closed its socket, and then no answer is needed.
            let _ = socket.send_to(&answer, from);
        }
    });
    lifetimes
}

#[test]
fn a_machine_maps_and_unmaps_a_port_of_its_router() {
    let lifetimes = router("127.0.62.1");
    let mapping = ["--map-port", "--gateway", "127.0.62.1"];
    let mut output = None;
    for _ in 0..5 {
        let _ = lifetimes.try_iter().count();
        let facilitator = facilitator(&[]);
        let waiting = ["meet", &facilitator.announced, "--listen", "127.0.0.2:0"];
        let waiting = Server::start(rakwire(), &waiting, "this machine is");
        let reaching = ["meet", &facilitator.announced, &waiting.announced, "--listen", "127.0.0.3:0"];
        let met = output.insert(run(rakwire(), &[&reaching[..], &mapping].concat(), ""));
        if text(&met.stdout).contains(" directly in ") {
            break;
        }
    }
    let output = output.expect("an attempt");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.starts_with("mapped 203.0.113.9:4321 by NAT-PMP\n"), "{said}");
    assert!(said.contains(" directly in "), "{said}");
    let mut requested: Vec<_> = lifetimes.try_iter().collect();
    // A request is repeated if the answer is late.
    requested.dedup();
    assert_eq!(requested, [7_200, 0]);
}

/// A facilitator that listens on IPv6 also serves machines with IPv4, as do its probe ports and forwarding ports.
#[test]
fn a_facilitator_for_both_families_forwards_ipv4() {
    let start = || {
        let listen = ["facilitator", "--listen", "[::]:0", "--forwarding-ports", "1"];
        let mut facilitator = Server::start(rakwire(), &listen, "listening on ");
        let port = facilitator.announced.rsplit(':').next().expect("a port").to_owned();
        facilitator.announced = format!("127.0.0.1:{port}");
        facilitator
    };
    let output = meet_until(start, &["--forwarded"], " through the facilitator in ");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.contains(" through the facilitator in ") && said.contains("\necho in "), "{said}");
    let directly = meet_until(start, &[], " directly in ");
    assert!(text(&directly.stdout).contains(" directly in "), "{}", text(&directly.stderr));
}

/// Without the facilitator no peer can reach the waiting machine.
#[cfg(unix)]
#[test]
fn a_waiting_machine_reports_the_loss_of_the_facilitator() {
    let facilitator = facilitator(&[]);
    let waiting = ["meet", &facilitator.announced];
    let mut waiting = Server::start(rakwire(), &waiting, "this machine is ");
    facilitator.interrupt();
    let status = waiting.child.wait().expect("a child");
    assert_eq!(status.code(), Some(1));
}

#[test]
fn unreachable_peers_are_reported_if_the_facilitator_does_not_forward() {
    let output = meet(&facilitator(&[]), &["--forwarded"]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(
        error.ends_with(": the two peers cannot reach each other, and the facilitator does not forward\n"),
        "{error}"
    );
}

#[test]
fn meet_fails_if_the_other_machine_is_not_registered() {
    let facilitator = facilitator(&[]);
    let output = run(rakwire(), &["meet", &facilitator.announced, "0123456789abcdef"], "");
    assert_eq!(output.status.code(), Some(1));
    let error = "error: cannot reach 0123456789abcdef: the remote peer is not connected to the facilitator\n";
    assert_eq!(text(&output.stderr), error);
}

#[test]
fn invalid_arguments_are_refused() {
    for (arguments, expected) in [
        (
            &["facilitator", "--listen", "127.0.0.1:65530"][..],
            "there are too few ports above the port of --listen",
        ),
        (&["facilitator", "--probe-ports", "2"], "2 is not in the range 3 to 64"),
        (&["meet", "127.0.0.1:61111", "12"], "not the 16 hex digits"),
        (&["meet", "127.0.0.1"], "as an address"),
    ] {
        let output = run(rakwire(), arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = text(&output.stderr);
        assert!(error.contains(expected) && error.lines().count() == 1, "{error}");
    }
}
