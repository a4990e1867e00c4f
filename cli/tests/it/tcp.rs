//! `rakwire echo --tcp` and `rakwire send --tcp`.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::process::Output;

use crate::support::{DEADLINE, Folder, Server, run, text};

fn rakwire() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_rakwire"))
}

fn start_echo(more: &[&str]) -> Server {
    let arguments = [&["echo", "--tcp", "--listen", "127.0.0.1:0"], more].concat();
    Server::start(rakwire(), &arguments, "listening on ")
}

fn send(target: &str, more: &[&str]) -> Output {
    run(rakwire(), &[&["send", target, "--tcp"], more].concat(), "")
}

/// Checks that a command fails with this status and one line that contains `part`.
fn fails(output: &Output, status: i32, part: &str) {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{error}");
    assert!(error.starts_with("error: ") && error.contains(part) && error.lines().count() == 1, "{error}");
}

fn succeeds(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Writes a certificate for `localhost` and its key to files.
fn certificate(folder: &Folder, name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (folder.file(&format!("{name}.pem")), folder.file(&format!("{name}.key")));
    std::fs::write(&certificate, made.cert.pem()).expect("a file");
    std::fs::write(&key, made.key_pair.serialize_pem()).expect("a file");
    (certificate, key)
}

/// Returns the address of the server with the host name of its certificate.
fn by_name(server: &Server) -> String {
    server.announced.replace("127.0.0.1", "localhost")
}

#[test]
fn messages_are_echoed_over_tcp() {
    let server = start_echo(&[]);
    let said = succeeds(&send(&server.announced, &["hello \u{7}"]));
    assert!(said.starts_with("echo \"hello \\u{7}\" in "), "{said}");
    let said =
        succeeds(&send(&server.announced, &["x", "--count", "3", "--size", "5000000", "--timeout", "60"]));
    assert_eq!(said.matches("echo of 5000000 bytes in ").count(), 3, "{said}");
    // Over TCP no first byte is reserved.
    let said = succeeds(&send(&server.announced, &["--raw", "0x00 01"]));
    assert!(said.starts_with("echo \"\\0\\u{1}\" in "), "{said}");
    // The server does not listen on UDP. A socket of another test may have that port by chance.
    assert!((0..5).any(|_| UdpSocket::bind(&start_echo(&[]).announced).is_ok()));
}

#[test]
fn each_tcp_message_is_prefixed_with_its_length() {
    let server = start_echo(&[]);
    let mut socket = TcpStream::connect(&server.announced).expect("open");
    socket.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    let messages = [0, 0, 0, 2, b'h', b'i', 0, 0, 0, 0, 0, 0, 0, 1, 7];
    socket.write_all(&messages).expect("open");
    let mut echoes = [0; 11];
    socket.read_exact(&mut echoes).expect("echoes");
    assert_eq!(echoes, [0, 0, 0, 2, b'h', b'i', 0, 0, 0, 1, 7], "empty messages are not echoed");
}

#[test]
fn messages_are_echoed_over_tls() {
    let folder = Folder::new("tls");
    let ((certificate, key), (other, _)) = (certificate(&folder, "one"), certificate(&folder, "other"));
    let server = start_echo(&["--tls-cert", &certificate, "--tls-key", &key]);
    let target = by_name(&server);
    let said = succeeds(&send(&target, &["hello", "--size", "300000", "--tls", "--tls-ca", &certificate]));
    assert!(said.starts_with("echo of 300000 bytes in "), "{said}");
    // A different authority, a different name and a connection without TLS are all refused.
    fails(&send(&target, &["x", "--tls", "--tls-ca", &other]), 1, "--tls-ca");
    let by_address = send(&server.announced, &["x", "--tls", "--tls-ca", &certificate]);
    fails(&by_address, 1, "use the name in the server's certificate");
    fails(&send(&target, &["x"]), 1, "the connection was closed before the echo");
    let plain = start_echo(&[]);
    fails(&send(&by_name(&plain), &["x", "--tls", "--tls-ca", &certificate]), 1, "without --tls");
}

/// Many clients may share the address of a proxy.
#[test]
fn local_addresses_are_exempt_from_the_connection_limit() {
    let server = start_echo(&["--max-per-address", "1", "--max-per-network", "1"]);
    let mut first = TcpStream::connect(&server.announced).expect("open");
    first.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    succeeds(&send(&server.announced, &["x"]));
    first.write_all(&[0, 0, 0, 1, 7]).expect("open");
    let mut echo = [0; 5];
    first.read_exact(&mut echo).expect("an echo");
    assert_eq!(echo, [0, 0, 0, 1, 7]);
}

#[test]
fn a_missing_listener_is_reported_with_advice() {
    // The remote port of an open connection is closed for others, and no other program gets it.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let reserved = TcpStream::connect(listener.local_addr().expect("a bound listener")).expect("a listener");
    let address = reserved.local_addr().expect("an open connection").to_string();
    fails(&send(&address, &["x"]), 1, "listens with --tcp");
}

#[test]
fn invalid_arguments_are_reported_in_one_line() {
    let folder = Folder::new("tcp-arguments");
    let ((certificate, key), (_, other)) = (certificate(&folder, "one"), certificate(&folder, "other"));
    let damaged = folder.file("damaged.pem");
    std::fs::write(&damaged, "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n")
        .expect("a file");
    let missing = folder.file("missing.pem");
    for (more, part) in [
        (&["--mtu", "1200"][..], "--mtu"),
        (&["--protocol", "game"], "--protocol"),
        (&["--password", "friends"], "--password"),
        (&["--pcap", &missing], "--pcap"),
        (&["--max-per-address", "0"], "--max-per-address"),
        (&["--max-per-network", "0"], "--max-per-network"),
        (&["--tls-cert", &certificate], "--tls-key"),
        (&["--tls-key", &key], "--tls-cert"),
        (&["--tls-cert", &missing, "--tls-key", &key], "missing.pem"),
        (&["--tls-cert", &damaged, "--tls-key", &key], "damaged.pem"),
        (&["--tls-cert", &key, "--tls-key", &key], "no such PEM section"),
        (&["--tls-cert", &certificate, "--tls-key", &certificate], "no such PEM section"),
        (&["--tls-cert", &certificate, "--tls-key", &other], "the key of the certificate"),
    ] {
        let arguments = [&["echo", "--tcp", "--listen", "127.0.0.1:0"], more].concat();
        fails(&run(rakwire(), &arguments, ""), 2, part);
    }
    for (more, part) in [
        (&["--reliability", "unreliable"][..], "--reliability"),
        (&["--channel", "3"], "--channel"),
        (&["--server-key", "any"], "--server-key"),
        (&["--protocol", "11"], "--protocol"),
        (&["--tls-ca", &certificate], "--tls"),
        (&["--tls", "--tls-ca", &missing], "missing.pem"),
        (&["--tls", "--tls-ca", &key], "no such PEM section"),
    ] {
        fails(&send("127.0.0.1:1", &[&["x"], more].concat()), 2, part);
    }
    let without = |arguments: &[&str]| fails(&run(rakwire(), arguments, ""), 2, "--tcp");
    without(&["send", "127.0.0.1:1", "x", "--tls"]);
    without(&["echo", "--listen", "127.0.0.1:0", "--tls-cert", &certificate, "--tls-key", &key]);
    let taken = start_echo(&[]);
    fails(&run(rakwire(), &["echo", "--tcp", "--listen", &taken.announced], ""), 2, &taken.announced);
}

#[cfg(unix)]
#[test]
fn client_connections_and_disconnections_are_logged() {
    let mut server = start_echo(&[]);
    let log = server.log();
    succeeds(&send(&server.announced, &["x"]));
    let (connected, disconnected) = (log.next(), log.next());
    assert!(connected.contains("connected remote=127.0.0.1:"), "{connected}");
    assert!(disconnected.contains("messages=1 bytes=2 reason=closed by the peer"), "{disconnected}");
    server.interrupt();
    let closing = log.next();
    let counts = "closing refused=0 refused_by_address=0 refused_by_network=0 handshakes_failed=0";
    assert!(closing.contains(counts), "{closing}");
    assert_eq!(server.child.wait().expect("a child").code(), Some(0));
}
