//! Wireshark's own reader of RakNet before our captures.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rakwire_native::{ConnectOptions, CookiePolicy, Endpoint, Options};

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

/// `rakwire echo` with a capture of all its datagrams.
struct Recorder {
    child: Child,
    address: SocketAddr,
    capture: PathBuf,
}

impl Recorder {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let capture = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut child = Command::new(rakwire())
            .args(["echo", "--listen", "127.0.0.1:0", "--protocol", "11", "--no-cookies"])
            .args(["--password", "snow", "--pcap"])
            .arg(&capture)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("an output");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on ").expect("its address");
        let address = address.parse().expect("an address");
        Self { child, address, capture }
    }

    /// Runs a command of `rakwire` against it; those that are refused fail.
    fn visit(&self, command: &str, arguments: &[&str]) {
        let address = self.address.to_string();
        run(&rakwire(), &[&[command, &address], arguments].concat()).expect("the program runs");
    }

    /// Sends messages with the password, without which the reader takes a request for a malformed one.
    fn send(&self, arguments: &[&str]) {
        self.visit("send", &[&["--protocol", "11", "--password", "snow"], arguments].concat());
    }

    /// Ends the program, which completes the capture.
    fn read(mut self) -> Vec<(String, String)> {
        let killed = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(killed.expect("kill of the system").success());
        self.child.wait().expect("the program ends");
        read(&self.capture, self.address)
    }
}

/// Pings, refusals, every reliability, parts, acknowledgements and reports of losses.
#[tokio::test]
async fn wireshark_understands_every_kind_of_datagram() {
    let one = Recorder::start("wireshark-kinds.pcap", &["--advertise", "MCPE;a game;800;1.21.80;0;10;"]);
    one.visit("ping", &[]);
    one.visit("send", &["--protocol", "10", "--password", "snow", "hello"]);
    one.visit("send", &["--protocol", "11", "--password", "rain", "hello"]);
    for reliability in
        ["unreliable", "unreliable-sequenced", "reliable", "reliable-ordered", "reliable-sequenced"]
    {
        one.send(&["--reliability", reliability, "--size", "300"]);
    }
    let lossy = Recorder::start("wireshark-losses.pcap", &["--simulate", "loss=20%,seed=3"]);
    lossy.send(&["--size", "20000", "--count", "5"]);
    let full = Recorder::start("wireshark-full.pcap", &["--max-connections", "1"]);
    let guest =
        Endpoint::bind("127.0.0.1:0", Options::client().expect("entropy")).await.expect("a free port");
    let options =
        ConnectOptions { protocol_version: Some(11), password: b"snow", ..ConnectOptions::default() };
    let _open = guest.connect_with(full.address, &options).await.expect("a place");
    full.send(&["hello"]);
    guest.close().await;
    let banning = Recorder::start("wireshark-banned.pcap", &["--ban", "127.0.0.1"]);
    banning.send(&["hello"]);

    let datagrams: Vec<_> = [one, lossy, full, banning].into_iter().flat_map(Recorder::read).collect();
    for (protocol, info) in &datagrams {
        assert_eq!(protocol, "RakNet", "{info}");
        assert!(!info.contains("Malformed") && !info.contains("Encrypted"), "{info}");
    }
    for expected in [
        "Unconnected Ping",
        "Unconnected Pong",
        "Incompatible Protocol Version",
        "No Free Incoming Connections",
        "Connection Banned",
        // It has no names for an invalid password and a disconnection inside a connection.
        "Unknown message ID: 0x18",
        "Unknown message ID: 0x15",
        "Connected Ping",
        "Connected Pong",
        "ACK",
        "NAK",
        "Message fragment",
    ] {
        assert!(datagrams.iter().any(|(_, info)| info.contains(expected)), "{expected}: {datagrams:#?}");
    }
}
