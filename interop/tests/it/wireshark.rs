//! Wireshark's own reader of RakNet before our captures.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use rakwire_native::{CookiePolicy, Endpoint, Options};

use crate::support::{TIME_LIMIT, rakwire, run, text};

/// What Wireshark says of each datagram of a capture: the protocol, and what is in it.
fn read(capture: &Path, server: SocketAddr) -> Vec<(String, String)> {
    // A port of the system is none that Wireshark takes for RakNet by itself.
    let output = Command::new("tshark")
        .arg("-r")
        .arg(capture)
        .args(["-d", &format!("udp.port=={},raknet", server.port())])
        .args(["-T", "fields", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info"])
        .stdin(Stdio::null())
        .output()
        .expect("tshark of the package of that name runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    lines
        .lines()
        .map(|line| line.split_once('\t').unwrap_or((line, "")))
        .map(|(protocol, info)| (protocol.to_owned(), info.to_owned()))
        .collect()
}

/// Sends a long message and gets it back, and leaves a capture.
async fn record(capture: &Path) -> SocketAddr {
    let mut options = Options::server(1).expect("entropy");
    options.config.cookies = CookiePolicy::Off;
    let server = Endpoint::bind("127.0.0.1:0", options).await.expect("a free port");
    server.set_password(b"snow").expect("a short one");
    let address = server.local_addr();
    let to = address.to_string();
    let capture = capture.to_str().expect("a path of text").to_owned();
    let client = tokio::task::spawn_blocking(move || {
        let arguments = ["send", &to, "--protocol", "11", "--password", "snow", "--size", "20000"];
        run(&rakwire(), &[&arguments[..], &["--pcap", &capture]].concat()).expect("the program runs")
    });
    let connection = server.accept().await.expect("a client");
    while let Some(message) = connection.recv().await {
        connection.send(&message.bytes, message.delivery).await.expect("an open connection");
    }
    let sent = client.await.expect("no panic");
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    address
}

/// The reader takes the flag of cookies for that of the original's encryption, and wants a password in a request; without
/// the one and with the other it understands everything.
#[tokio::test]
async fn wireshark_understands_our_captures() {
    let capture = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wireshark.pcap");
    let server = tokio::time::timeout(TIME_LIMIT, record(&capture)).await.expect("an end in time");
    let datagrams = read(&capture, server);
    for (protocol, info) in &datagrams {
        assert_eq!(protocol, "RakNet", "{info}");
        assert!(!info.contains("Malformed") && !info.contains("Encrypted"), "{info}");
    }
    let mut infos = datagrams.iter().map(|(_, info)| info);
    for expected in [
        "Open Connection Request 1",
        "Open Connection Reply 1",
        "Open Connection Request 2",
        "Open Connection Reply 2",
        "Connection Request",
        "Connection Request Accepted",
        "New Incoming Connection",
        "Message fragment 1/14",
    ] {
        assert!(infos.any(|info| info.contains(expected)), "{expected}: {datagrams:?}");
    }
    let whole = datagrams.iter().filter(|(_, info)| info.contains("Message fragment 14/14; Reassembled"));
    // A fragment whose acknowledgement is late comes again.
    assert!(whole.count() >= 2, "the message and its echo: {datagrams:?}");
}
