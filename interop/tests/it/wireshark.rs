//! Wireshark's RakNet dissector decodes our captures.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rakwire_native::{ConnectOptions, CookiePolicy, Endpoint, Options};

use crate::support::{TIME_LIMIT, rakwire, run, text};

/// Returns Wireshark's protocol and summary of each datagram of a capture.
fn read(capture: &Path, server: SocketAddr) -> Vec<(String, String)> {
    // Wireshark recognises RakNet only at its default port, and the system assigned another one.
    read_with(capture, &["-d", &format!("udp.port=={},raknet", server.port())], "_ws.col.Info")
}

/// Returns the protocol of each datagram, and another field.
fn read_with(capture: &Path, options: &[&str], field: &str) -> Vec<(String, String)> {
    let output = Command::new("tshark")
        .arg("-r")
        .arg(capture)
        .args(options)
        .args(["-T", "fields", "-e", "_ws.col.Protocol", "-e", field])
        .stdin(Stdio::null())
        .output()
        .expect("tshark runs; install the package tshark");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    lines
        .lines()
        .map(|line| line.split_once('\t').unwrap_or((line, "")))
        .map(|(protocol, info)| (protocol.to_owned(), info.to_owned()))
        .collect()
}

/// Sends a long message, receives its echo, and writes a capture. Returns the address of the server.
async fn record(capture: &Path) -> SocketAddr {
    let mut options = Options::server(1).expect("entropy");
    options.config.cookies = CookiePolicy::Off;
    let server = Endpoint::bind("127.0.0.1:0", options).await.expect("a free port");
    server.set_password(b"snow").expect("a short text");
    let address = server.local_addr();
    let to = address.to_string();
    let capture = capture.to_str().expect("a path in UTF-8").to_owned();
    let client = tokio::task::spawn_blocking(move || {
        let arguments = ["send", &to, "--protocol", "11", "--password", "snow", "--size", "20000"];
        run(&rakwire(), &[&arguments[..], &["--pcap", &capture]].concat()).expect("the program runs")
    });
    let connection = server.accept().await.expect("a client");
    while let Some(message) = connection.recv().await {
        connection.send(&message.bytes, message.delivery).await.expect("an open connection");
    }
    let sent = client.await.expect("the task does not panic");
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    address
}

/// The dissector mistakes the cookie flag for RakNet's own encryption, and expects a password in a request. Without
/// cookies and with a password it decodes everything.
#[tokio::test]
async fn wireshark_decodes_our_captures() {
    let capture = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wireshark.pcap");
    let server =
        tokio::time::timeout(TIME_LIMIT, record(&capture)).await.expect("the recording completes in time");
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
    // There may be more parts, because a part is resent if its acknowledgement is late.
    assert!(whole.count() >= 2, "the message or its echo was not reassembled: {datagrams:?}");
}

/// A running `rakwire echo` that captures all its datagrams.
struct Recorder {
    child: Child,
    address: SocketAddr,
    capture: PathBuf,
}

impl Recorder {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let usual = ["--protocol", "11", "--no-cookies", "--password", "snow"];
        Self::start_with(name, &[&usual[..], arguments].concat())
    }

    fn start_with(name: &str, arguments: &[&str]) -> Self {
        let capture = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut child = Command::new(rakwire())
            .args(["echo", "--listen", "127.0.0.1:0", "--pcap"])
            .arg(&capture)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("a piped output");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on ").expect("a line with the address");
        let address = address.parse().expect("an address");
        Self { child, address, capture }
    }

    /// Runs a command of `rakwire` against the server. Its exit status is ignored, because some commands are meant to
    /// be refused.
    fn visit(&self, command: &str, arguments: &[&str]) {
        let address = self.address.to_string();
        run(&rakwire(), &[&[command, &address], arguments].concat()).expect("the program runs");
    }

    /// Sends messages with a password, because the dissector reports a request without a password as malformed.
    fn send(&self, arguments: &[&str]) {
        self.visit("send", &[&["--protocol", "11", "--password", "snow"], arguments].concat());
    }

    /// Stops the program, which completes the capture.
    fn end(&mut self) {
        let killed = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(killed.expect("`kill` starts").success());
        self.child.wait().expect("the program exits");
    }

    fn read(mut self) -> Vec<(String, String)> {
        self.end();
        read(&self.capture, self.address)
    }
}

/// The capture contains pings, refusals, every reliability, split messages, ACKs and NAKs.
#[tokio::test]
async fn wireshark_decodes_every_kind_of_datagram() {
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
    let _open = guest.connect_with(full.address, &options).await.expect("a free slot");
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
        // Wireshark has no names for the ids of an invalid password and of a disconnection within a connection.
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

/// Checks the dissector's names for the four datagrams of a handshake with cookies or with secure connections. Every
/// later datagram must be reported as encrypted.
fn named(recorder: Recorder, reply_1: &str) {
    let datagrams = recorder.read();
    assert!(datagrams.iter().all(|(protocol, _)| protocol == "RakNet"), "{datagrams:#?}");
    let mut infos = datagrams.iter().map(|(_, info)| info.as_str());
    let handshake: Vec<_> = infos.by_ref().take_while(|info| !info.contains("Encrypted")).collect();
    let named =
        ["Open Connection Request 1", reply_1, "Open Connection Request 2", "Open Connection Reply 2"];
    assert_eq!(handshake, named);
    // The datagrams after the first one, which ended the handshake.
    assert!(infos.clone().count() > 4 && infos.all(|info| info == "Encrypted message"), "{datagrams:#?}");
}

/// Reply 1 has one flag for cookies and for RakNet's own encryption. The dissector supports only the encryption: if the
/// flag is set, it expects a public key in reply 1, and treats all later datagrams as encrypted.
#[test]
fn wireshark_reports_a_reply_with_a_cookie_as_malformed() {
    let cookies = ["--protocol", "11", "--password", "snow", "--cookies-under-load", "0"];
    let recorder = Recorder::start_with("wireshark-cookies.pcap", &cookies);
    recorder.send(&["hello"]);
    named(recorder, "Open Connection Reply 1[Malformed Packet]");
}

/// The reply 1 of a secure connection has a key as long as RakNet's own, and every datagram after the handshake is
/// encrypted.
#[test]
fn wireshark_names_the_handshake_of_secure_connections() {
    let key = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wireshark.key");
    // `keygen` does not replace a file left by an earlier run.
    let _ = std::fs::remove_file(&key);
    let key = key.to_str().expect("a path in UTF-8");
    let made = run(&rakwire(), &["keygen", key]).expect("a key");
    let public = text(&made.stdout).lines().next().expect("a public key").to_owned();
    let secure = ["--protocol", "11", "--password", "snow", "--secure", key];
    let recorder = Recorder::start_with("wireshark-secure.pcap", &secure);
    recorder.send(&["--server-key", &public, "hello"]);
    named(recorder, "Open Connection Reply 1");
}

#[tokio::test]
async fn wireshark_decodes_out_of_band_messages() {
    let recorder = Recorder::start("wireshark-out-of-band.pcap", &[]);
    let client =
        Endpoint::bind("127.0.0.1:0", Options::client().expect("entropy")).await.expect("a free port");
    client.send_out_of_band(recorder.address, b"free?").await.expect("a short text");
    // The message has arrived once a later ping is answered.
    client.ping(recorder.address, TIME_LIMIT).await.expect("a pong");
    let datagrams = recorder.read();
    let first = datagrams.first().expect("a datagram");
    assert_eq!(first, &("RakNet".to_owned(), "Out Of Band Internal".to_owned()));
    client.close().await;
}

/// The dissector does not support the Game Protocol, so only UDP lengths and checksums are checked.
#[test]
fn wireshark_finds_valid_udp_headers_in_a_game_protocol_capture() {
    let mut recorder = Recorder::start_with("wireshark-game-protocol.pcap", &["--protocol", "game"]);
    recorder.visit("send", &["--protocol", "game", "--size", "2000"]);
    recorder.end();
    // Salts are random, and Wireshark's heuristics mistake a few of them for RTP or RTCP.
    let without_guesses = format!("udp.port=={},data", recorder.address.port());
    let check = ["-d", &without_guesses, "-o", "udp.check_checksum:TRUE"];
    let checksums = read_with(&recorder.capture, &check, "udp.checksum.status");
    let lengths = read_with(&recorder.capture, &check, "udp.length");
    assert!(checksums.iter().all(|(protocol, status)| protocol == "UDP" && status == "1"), "{checksums:?}");
    // The handshake: salt, pepper and seasoning, each of four bytes after a UDP header of eight.
    assert!(lengths.len() > 8 && lengths.iter().take(3).all(|(_, length)| length == "12"), "{lengths:?}");
}
