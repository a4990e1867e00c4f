//! End-to-end tests of the program `rakwire`.

#[cfg(unix)]
use std::io::Read;
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::support::{self, Server, text};

#[cfg(target_os = "linux")]
mod closed_port;

/// A datagram of eight messages, sent with the reliabilities 0 to 7 on channel 3.
const EIGHT_MESSAGES: &str = "84 040000
 00 0020 86000203
 20 0020 000000 000000 03 86010203
 40 0020 020000 86020203
 60 0020 030000 000000 03 86030203
 80 0020 040000 000000 010000 03 86040203
 00 0020 86050203
 40 0020 050000 86060203
 60 0020 060000 010000 03 86070203
";

/// Attempts at an exchange that a busy machine may delay too long.
const TRIES: usize = 5;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_rakwire"))
}

struct Outcome {
    status: Option<i32>,
    out: String,
    err: String,
}

fn rakwire_with(arguments: &[&str], input: &str) -> Outcome {
    let output = support::run(program(), arguments, input);
    Outcome { status: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

fn rakwire(arguments: &[&str]) -> Outcome {
    rakwire_with(arguments, "")
}

/// Checks that a command fails with this status and one line that contains `part`.
fn fails(arguments: &[&str], status: i32, part: &str) {
    let outcome = rakwire(arguments);
    assert_eq!(outcome.status, Some(status), "{arguments:?}: {}", outcome.err);
    assert!(outcome.err.starts_with("error: ") && outcome.err.contains(part), "{}", outcome.err);
    assert_eq!(outcome.err.lines().count(), 1, "{}", outcome.err);
}

fn decode(hex: &str) -> (Option<i32>, Value) {
    let outcome = rakwire(&["decode", "--json", hex]);
    let json = serde_json::from_str(&outcome.out).expect("one JSON object");
    (outcome.status, json)
}

fn start_echo(arguments: &[&str]) -> Server {
    let listen: &[&str] = if arguments.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
    let all = [&["echo"][..], listen, arguments].concat();
    Server::start(program(), &all, "listening on ")
}

/// Interrupts a program like Ctrl-C, and returns its exit status and its standard error.
#[cfg(unix)]
fn interrupt(mut server: Server) -> (Option<i32>, String) {
    let mut stderr = server.child.stderr.take().expect("a piped error output");
    server.interrupt();
    let status = server.child.wait().expect("a child").code();
    let mut text = String::new();
    stderr.read_to_string(&mut text).expect("text");
    (status, text)
}

/// Reserves a port that never answers as long as the socket lives.
fn silence() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("a bound socket").to_string();
    (socket, address)
}

/// The ping begins with the PROXY protocol header that a relay sends before the first datagrams from a client.
#[test]
fn echo_trusts_the_configured_proxies() {
    let mut ping = b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c".to_vec();
    ping.extend([203, 0, 113, 9, 127, 0, 0, 1, 0x12, 0x34, 0x4A, 0xBC]);
    ping.extend([1, 0, 0, 0, 0, 0, 0, 0, 7]);
    ping.extend(*b"\0\xFF\xFF\0\xFE\xFE\xFE\xFE\xFD\xFD\xFD\xFD\x12\x34\x56\x78");
    ping.extend([0; 8]);
    let server = start_echo(&["--trusted-proxy", "127.0.0.0/8"]);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.set_read_timeout(Some(Duration::from_secs(1))).expect("a supported option");
    let mut buffer = [0; 1_500];
    let answer = (0..60).find_map(|_| {
        socket.send_to(&ping, &*server.announced).expect("an open socket");
        socket.recv_from(&mut buffer).ok()
    });
    let (length, _) = answer.expect("a pong");
    assert!(length > 33 && buffer[0] == 0x1C, "{:?}", &buffer[..length]);
    fails(
        &["echo", "--listen", "127.0.0.1:0", "--trusted-proxy", "proxy"],
        2,
        "neither an address, such as 10.0.0.7, nor a network",
    );
    fails(&["echo", "--listen", "127.0.0.1:0", "--tcp", "--trusted-proxy", "10.0.0.7"], 2, "--trusted-proxy");
}

/// The variable and a file keep a password out of the list of processes.
#[test]
fn a_password_is_read_from_a_file_or_a_variable() {
    let file = std::env::temp_dir().join(format!("rakwire-{}-password-of-echo", std::process::id()));
    std::fs::write(&file, "friends\n").expect("a writable folder");
    let path = file.to_str().expect("text");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode));
        mode(0o644).expect("our own file");
        let server = start_echo(&["--password-file", path]);
        let (_, text) = interrupt(server);
        assert!(text.starts_with("warning: --password-file ") && text.contains("0600"), "{text}");
        mode(0o600).expect("our own file");
    }
    let server = start_echo(&["--password-file", path]);
    fails(&["send", &server.announced, "x"], 1, "--password");
    assert_eq!(rakwire(&["send", &server.announced, "x", "--password-file", path]).status, Some(0));
    let by_variable = std::process::Command::new(program())
        .args(["send", &server.announced, "x"])
        .env("RAKWIRE_PASSWORD", "friends")
        .output()
        .expect("the program runs");
    assert!(by_variable.status.success(), "{by_variable:?}");
    fails(
        &["send", &server.announced, "x", "--password", "friends", "--password-file", path],
        2,
        "--password-file",
    );
    std::fs::remove_file(file).expect("our own file");
}

#[test]
fn invalid_arguments_are_reported_in_one_line() {
    fails(&[], 2, "rakwire --help");
    fails(&["fly"], 2, "unrecognized subcommand");
    fails(&["ping"], 2, "HOST:PORT");
    fails(&["ping", "127.0.0.1"], 2, "use HOST:PORT");
    fails(&["ping", "127.0.0.1:0"], 2, "port 0 is not valid");
    fails(&["send", "0.0.0.0:1", "x"], 2, "0.0.0.0 and [::] are not addresses of a host");
    fails(&["ping", "127.0.0.1:1", "--timeout", "never"], 2, "not a number");
    fails(&["ping", "127.0.0.1:1", "--timeout", "NaN"], 2, "not between");
    fails(&["send", "127.0.0.1:1", "x", "--timeout", "soon"], 2, "use seconds");
    fails(&["send", "127.0.0.1:1", "x", "--timeout", "0"], 2, "between 0.001 and 86400");
    fails(&["send", "name.invalid:1", "x"], 2, "name.invalid");
    fails(&["send", "127.0.0.1:1"], 2, "TEXT");
    fails(&["send", "127.0.0.1:1", "x", "--channel", "32"], 2, "32 is not in the range 0 to 31");
    fails(&["echo", "--max-connections", "many"], 2, "it is not a whole number");
    fails(&["echo", "--max-connections", "99999999999999999999"], 2, "the number is too large");
    fails(&["send", "127.0.0.1:1", "x", "--reliability", "perfect"], 2, "perfect");
    fails(&["send", "127.0.0.1:1", "x", "--raw"], 2, "0x86 and above");
    fails(&["send", "127.0.0.1:1", "hello", "--size", "2"], 2, "not smaller");
    fails(&["echo", "--listen", "nonsense"], 2, "nonsense");
    fails(&["echo", "--listen", "127.0.0.1:0", "--mtu", "100"], 2, "100");
    fails(&["echo", "--listen", "127.0.0.1:0", "--advertise", &"x".repeat(400)], 2, "399");
    fails(&["echo", "--listen", "127.0.0.1:0", "--protocol", "1,2,3,4,5,6,7,8,9"], 2, "eight");
    for network in ["loss=101%", "latency=5", "rain=1%", "loss"] {
        fails(&["echo", "--listen", "127.0.0.1:0", "--simulate", network], 2, network);
    }
    fails(&["echo", "--listen", "127.0.0.1:0", "--ban", "192.0.*.1"], 2, "192.0.*.1");
    fails(&["echo", "--listen", "127.0.0.1:0", "--password", &"x".repeat(256)], 2, "255");
    fails(&["echo", "--listen", "127.0.0.1:0", "--pcap", "/nowhere/a.pcap"], 2, "/nowhere/a.pcap");
    fails(&["discover", "--port", "0"], 2, "0");
    fails(&["discover", "--address", "anywhere"], 2, "anywhere");
    fails(&["decode", "00", "--as", "poem"], 2, "poem");
    let (_socket, taken) = silence();
    fails(&["echo", "--listen", &taken], 2, &taken);
    assert_eq!(rakwire(&["--help"]).status, Some(0));
    assert!(rakwire(&["--version"]).out.starts_with("rakwire "));
}

#[test]
fn an_unanswered_command_fails_with_advice() {
    let (_socket, address) = silence();
    fails(&["ping", &address, "--timeout", "0.2"], 1, &address);
    fails(&["send", &address, "x", "--timeout", "0.2"], 1, &address);
    fails(&["send", &address, "x", "--timeout", "0.2"], 1, "more time with --timeout");
    fails(&["send", &address, "x"], 1, "check the address");
}

/// A link-local address requires its interface, by name or number.
#[cfg(target_os = "linux")]
#[test]
fn an_address_may_include_an_interface_name() {
    // The address is valid, but unused.
    fails(&["ping", "[fe80::1%lo]:19132", "--timeout", "0.2"], 1, "[fe80::1%1]:19132");
    fails(&["ping", "[fe80::1%nothing0]:19132"], 2, "cannot use \"[fe80::1%nothing0]:19132\" as an address");
    for command in ["echo", "facilitator"] {
        fails(&[command, "--listen", "[fe80::1%nothing0]:0"], 2, "cannot listen on \"[fe80::1%nothing0]:0\"");
        fails(&[command, "--listen", "[fe80::1%lo]:0"], 2, "[fe80::1%1]:0");
    }
}

#[test]
fn ping_shows_the_pong_as_text_and_as_json() {
    let server = start_echo(&["--advertise", "a \u{1b}[31mgame; it's \"on\""]);
    let outcome = rakwire(&["ping", &server.announced]);
    assert_eq!(outcome.status, Some(0), "{}", outcome.err);
    let begin = format!("pong from {} in ", server.announced);
    assert!(outcome.out.starts_with(&begin), "{}", outcome.out);
    let end = "data: \"a \\u{1b}[31mgame; it's \\\"on\\\"\"\n";
    assert!(outcome.out.contains(" ms, guid ") && outcome.out.ends_with(end), "{}", outcome.out);

    let outcome = rakwire(&["ping", &server.announced, "--json"]);
    let json: Value = serde_json::from_str(&outcome.out).expect("one JSON object");
    assert_eq!(json["from"], server.announced);
    assert_eq!(json["data"], "a \u{1b}[31mgame; it's \"on\"");
    assert!(json["latency_ms"].as_f64().is_some_and(|latency| latency > 0.0));
    assert_eq!(json["guid"].as_str().map(str::len), Some(16));
}

#[test]
fn echo_returns_the_messages_of_send() {
    let server = start_echo(&[]);
    let send = |arguments: &[&str]| rakwire(&[&["send", &server.announced], arguments].concat());
    let outcome = send(&["hello \u{7}"]);
    assert_eq!(outcome.status, Some(0), "{}", outcome.err);
    assert!(outcome.out.starts_with("echo \"hello \\u{7}\" in "), "{}", outcome.out);
    assert!(outcome.out.ends_with(" ms, MTU 1492\n"), "{}", outcome.out);

    let outcome = send(&["--size", "5000000", "--timeout", "60"]);
    assert_eq!(outcome.status, Some(0), "{}", outcome.err);
    assert!(outcome.out.starts_with("echo of 5000000 bytes in "), "{}", outcome.out);

    let thrice = |reliability| send(&["x", "--count", "3", "--channel", "7", "--reliability", reliability]);
    for reliability in ["reliable", "reliable-ordered", "reliable-sequenced"] {
        let outcome = thrice(reliability);
        assert_eq!(outcome.out.lines().count(), 3, "{reliability}: {}", outcome.err);
    }
    for reliability in ["unreliable", "unreliable-sequenced"] {
        // On a busy machine a message may be dropped before it is sent.
        let arrives = |_| thrice(reliability).out.lines().count() == 3;
        assert!((0..TRIES).any(arrives), "{reliability}");
    }
    let outcome = send(&["--raw", "0x86 01 02", "--protocol", "11"]);
    assert!(outcome.out.starts_with("echo \"\\x86\\u{1}\\u{2}\" in "), "{} {}", outcome.out, outcome.err);
    fails(&["send", &server.announced, "x", "--protocol", "9"], 1, "protocol version 11");
}

/// Nothing is listening on the IPv4 address of `localhost`, which is tried first.
#[cfg(target_os = "linux")]
#[test]
fn each_address_of_a_name_is_tried() {
    use std::net::ToSocketAddrs;

    let mut addresses = "localhost:1".to_socket_addrs().expect("a name of every machine");
    if !addresses.any(|address| address.is_ipv6()) {
        return;
    }
    for protocol in ["11", "game"] {
        let server = Server::start(
            program(),
            &["echo", "--listen", "[::1]:0", "--protocol", protocol],
            "listening on ",
        );
        let target = server.announced.replace("[::1]", "localhost");
        for record in [&[][..], &["--log"]] {
            let outcome = rakwire(&[&["send", &target, "x", "--protocol", protocol], record].concat());
            assert_eq!(outcome.status, Some(0), "{}", outcome.err);
        }
        if protocol == "11" {
            let outcome = rakwire(&["ping", &target]);
            assert!(outcome.out.starts_with("pong from [::1]:"), "{} {}", outcome.out, outcome.err);
        }
    }
}

/// The version of the server is not the first version that the client tries.
#[test]
fn echo_and_send_use_the_game_protocol() {
    let server = start_echo(&["--protocol", "game"]);
    let outcome = rakwire(&["send", &server.announced, "hello", "--protocol", "game"]);
    assert_eq!(outcome.status, Some(0), "{}", outcome.err);
    assert!(outcome.out.starts_with("echo \"hello\" in "), "{}", outcome.out);
    let most = ["send", &server.announced, "--protocol", "game", "--size", "129024", "--count", "3"];
    let outcome = rakwire(&[&most[..], &["--reliability", "reliable"]].concat());
    assert_eq!(outcome.status, Some(0), "{}", outcome.err);
    assert_eq!(outcome.out.matches("echo of 129024 bytes in ").count(), 3, "{}", outcome.out);
    let (status, log) = interrupt(server);
    assert_eq!(status, Some(0), "{log}");
    let game = |arguments: &[&str], part: &str| {
        fails(&[&["send", "127.0.0.1:9", "--protocol", "game"][..], arguments].concat(), 2, part);
    };
    game(&["x", "--reliability", "reliable-ordered"], "choose one of them");
    game(&["x", "--size", "129025"], "129024");
    game(&[""], "bytes");
    game(&["x", "--password", "friends"], "--password");
    fails(&["echo", "--listen", "127.0.0.1:0", "--protocol", "game,6"], 2, "--protocol");
    fails(&["echo", "--listen", "127.0.0.1:0", "--protocol", "gam"], 2, "the word game");
}

#[test]
fn send_retries_with_the_version_that_the_server_names() {
    let server = start_echo(&["--protocol", "10", "--no-cookies", "--mtu", "1200", "--max-connections", "1"]);
    let outcome = rakwire(&["send", &server.announced, "x", "--size", "10000"]);
    assert_eq!(outcome.status, Some(0), "{}", outcome.err);
    fails(&["send", &server.announced, "x", "--protocol", "6"], 1, "--protocol");
}

#[test]
fn echo_requires_cookies_under_load() {
    let server = start_echo(&["--cookies-under-load", "1"]);
    // The second connection needs a cookie, and gets it.
    for _ in 0..2 {
        let outcome = rakwire(&["send", &server.announced, "x"]);
        assert_eq!(outcome.status, Some(0), "{}", outcome.err);
    }
    let echo = |arguments: &[&str], part: &str| {
        fails(&[&["echo", "--listen", "127.0.0.1:0"][..], arguments].concat(), 2, part);
    };
    echo(&["--cookies-under-load", "1", "--no-cookies"], "--no-cookies");
    echo(&["--cookies-under-load", "1", "--protocol", "game"], "--cookies-under-load");
    echo(&["--cookies-under-load", "many"], "--cookies-under-load");
}

#[test]
fn echo_enforces_passwords_and_bans() {
    let server = start_echo(&["--password", "friends"]);
    fails(&["send", &server.announced, "x"], 1, "--password");
    fails(&["send", &server.announced, "x", "--password", &"x".repeat(256)], 2, "255");
    let outcome = rakwire(&["send", &server.announced, "x", "--password", "friends"]);
    assert_eq!(outcome.status, Some(0), "{}", outcome.err);
    let server = start_echo(&["--ban", "192.0.2.*", "--ban", "127.0.0.0/8"]);
    fails(&["send", &server.announced, "x"], 1, "banned");
}

#[test]
fn echo_simulates_a_bad_network() {
    let server =
        start_echo(&["--simulate", "loss=10%,latency=20ms,jitter=5ms,duplicate=2%,reorder=2%,seed=5"]);
    let outcome = rakwire(&["send", &server.announced, "x", "--count", "20", "--size", "2000"]);
    assert_eq!(outcome.status, Some(0), "{}", outcome.err);
    let times = outcome.out.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let unit = words.iter().position(|word| *word == "ms,").expect("a unit");
        words[unit - 1].parse::<f64>().expect("milliseconds")
    });
    assert!(times.into_iter().all(|time| time >= 40.0), "{}", outcome.out);
}

#[cfg(target_os = "linux")]
#[test]
fn discover_finds_only_servers_that_broadcasts_reach() {
    let server = start_echo(&["--advertise", "a game"]);
    // This server is bound to one address, which no broadcast reaches.
    let port = server.announced.rsplit(':').next().expect("a port").to_owned();
    let unanswered = ["discover", "--address", "127.255.255.255", "--port", &port, "--timeout", "0.3"];
    fails(&unanswered, 1, "no server answered");

    let server = start_echo(&["--listen", "0.0.0.0:0", "--advertise", "a game"]);
    let port = server.announced.rsplit(':').next().expect("a port").to_owned();
    let discover = ["discover", "--address", "127.255.255.255", "--port", &port, "--timeout", "1.2"];
    let find = |more: &[&str]| {
        let mut searches = (0..TRIES).map(|_| rakwire(&[&discover[..], more].concat()));
        searches.find(|outcome| outcome.status == Some(0)).expect("a server is found")
    };
    let outcome = find(&[]);
    assert!(outcome.out.starts_with(&format!("pong from 127.0.0.1:{port} in ")), "{}", outcome.out);
    let outcome = find(&["--open-only", "--json"]);
    let json: Value = serde_json::from_str(&outcome.out).expect("one JSON array");
    assert_eq!(json.as_array().map(Vec::len), Some(1), "{json}");
    assert_eq!(json[0]["data"], "a game");
}

/// Reads a capture and returns the lengths of the UDP payloads, checking each record against its headers.
#[cfg(unix)]
fn read_pcap(bytes: &[u8]) -> Vec<usize> {
    let u32_at = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    assert_eq!((u32_at(0), u32_at(20)), (0xA1B2_C3D4, 101));
    let (mut at, mut lengths) = (24, Vec::new());
    while at < bytes.len() {
        let length = u32_at(at + 8) as usize;
        let packet = &bytes[at + 16..at + 16 + length];
        // The loopback address is IPv4: 20 bytes of IP header and 8 of UDP.
        assert_eq!((packet[0], packet[9]), (0x45, 17), "UDP in IPv4");
        assert_eq!(
            usize::from(u16::from_be_bytes([packet[2], packet[3]])),
            length,
            "the total length in the IP header"
        );
        assert!(u32_at(at) > 1_700_000_000, "the timestamp is the time of day");
        lengths.push(length - 28);
        at += 16 + length;
    }
    lengths
}

#[cfg(unix)]
#[test]
fn every_datagram_is_captured() {
    let folder = std::env::temp_dir();
    let file = |name: &str| folder.join(format!("rakwire-{}-{name}.pcap", std::process::id()));
    let (here, there) = (file("send"), file("echo"));
    let paths = [&here, &there].map(|path| path.to_str().expect("text").to_owned());
    let server = start_echo(&["--pcap", &paths[1]]);
    let outcome = rakwire(&["send", &server.announced, "x", "--size", "3000", "--pcap", &paths[0], "--log"]);
    assert_eq!(outcome.status, Some(0), "{}", outcome.err);
    assert_eq!(interrupt(server).0, Some(0));
    let [sent, echoed] = [&here, &there].map(|path| read_pcap(&std::fs::read(path).expect("a capture")));
    for captured in [&sent, &echoed] {
        assert_eq!(captured[0], 33, "the capture begins with a ping");
        // The pong of the ping, and request 1, which is padded to the largest MTU.
        assert!(captured.contains(&45) && captured.contains(&1_464), "{captured:?}");
    }
    assert!(sent.len() >= 12 && echoed.len() >= 12, "{} {}", sent.len(), echoed.len());
    assert_eq!(outcome.err.lines().count(), sent.len(), "one log line per datagram");
    assert!(outcome.err.contains(" out 127.0.0.1:") && outcome.err.contains("open connection reply 2"));
    for path in [here, there] {
        std::fs::remove_file(path).expect("a file");
    }
}

#[cfg(unix)]
#[test]
fn every_datagram_of_the_game_protocol_is_captured() {
    let path = std::env::temp_dir().join(format!("rakwire-{}-game.pcap", std::process::id()));
    let name = path.to_str().expect("text");
    let server = start_echo(&["--protocol", "game", "--log"]);
    let send = ["send", &server.announced, "--protocol", "game", "--size", "1000", "--pcap", name, "--log"];
    let outcome = rakwire(&send);
    assert_eq!(outcome.status, Some(0), "{}", outcome.err);
    let (status, log) = interrupt(server);
    assert_eq!(status, Some(0), "{log}");
    let sent = read_pcap(&std::fs::read(&path).expect("a capture"));
    assert_eq!(sent[..3], [4, 4, 4], "salt, pepper, seasoning");
    assert!(sent.contains(&508) && sent.contains(&500), "both chunks: {sent:?}");
    assert_eq!(outcome.err.lines().count(), sent.len(), "one log line per datagram");
    assert!(outcome.err.contains(" in 127.0.0.1:") && outcome.err.contains(" 4 bytes, handshake"));
    for log in [&outcome.err, &log] {
        assert!(log.contains(" 500 bytes, reliable chunk 1 of sequence 0, the last"), "{log}");
        assert!(log.contains("acknowledgement of chunk 0 of sequence 0") && log.contains("END"), "{log}");
    }
    std::fs::remove_file(path).expect("a file");
}

#[cfg(unix)]
#[test]
fn echo_disconnects_clients_before_it_exits() {
    let mut server = start_echo(&[]);
    let log = server.log();
    assert_eq!(rakwire(&["send", &server.announced, "x"]).status, Some(0));
    let connected = log.next();
    assert!(connected.contains("connected remote=127.0.0.1:"), "{connected}");
    let disconnected = log.next();
    assert!(disconnected.contains("messages=1 bytes=2"), "{disconnected}");
    server.interrupt();
    let closing = log.next();
    assert!(closing.contains("closing"), "{closing}");
    assert_eq!(server.child.wait().expect("a child").code(), Some(0));
}

/// The server accepts messages and sends nothing back.
#[tokio::test(flavor = "multi_thread")]
async fn send_reports_a_missing_echo() {
    use rakwire_native::{Endpoint, Options};
    let options = Options::server(1).expect("entropy");
    let server = Endpoint::bind("127.0.0.1:0", options).await.expect("a free port");
    let address = server.local_addr().to_string();
    let accepting = tokio::spawn(async move {
        loop {
            let connection = server.accept().await.expect("an open endpoint");
            let Some(message) = connection.recv().await else { continue };
            assert_eq!(message.bytes, b"\xFEx");
            assert!(connection.recv().await.is_none(), "the client disconnects after the missing echo");
            return;
        }
    });
    // On a busy machine the shorter timeouts may expire before the message is sent.
    let sending = tokio::task::spawn_blocking(move || {
        ["0.5", "5", "60"].into_iter().any(|seconds| {
            let outcome = rakwire(&["send", &address, "x", "--timeout", seconds]);
            assert_eq!((outcome.status, outcome.err.lines().count()), (Some(1), 1), "{}", outcome.err);
            outcome.err.starts_with("error: ") && outcome.err.contains(&format!("no echo within {seconds} s"))
        })
    });
    assert!(sending.await.expect("no panic"), "the error is never reported");
    let ended = tokio::time::timeout(support::DEADLINE, accepting).await;
    ended.expect("the end before the deadline").expect("no panic");
}

#[test]
fn decode_shows_every_reliability() {
    let (status, json) = decode(EIGHT_MESSAGES);
    assert_eq!(status, Some(0));
    assert_eq!((&json["kind"], &json["length"]), (&"data".into(), &97.into()));
    assert_eq!(json["error"], Value::Null);
    assert_eq!(
        json["fields"],
        serde_json::json!([
            { "offset": 0, "length": 1, "name": "flags", "value": 0x84 },
            { "offset": 1, "length": 3, "name": "datagram number", "value": 4 },
        ])
    );
    let expected = [
        (4, "unreliable"),
        (11, "unreliable sequenced"),
        (25, "reliable"),
        (35, "reliable ordered"),
        (49, "reliable sequenced"),
        (66, "unreliable"),
        (73, "reliable"),
        (83, "reliable ordered"),
    ];
    let capsules = json["capsules"].as_array().expect("a list");
    assert_eq!(capsules.len(), expected.len());
    for ((index, capsule), (offset, reliability)) in (0..).zip(capsules).zip(expected) {
        assert_eq!(capsule["reliability"], reliability);
        assert_eq!(capsule["payload_hex"], format!("860{index}0203"));
        assert_eq!(capsule["control"], Value::Null);
        assert_eq!(capsule["offset"], offset);
    }
    assert_eq!(
        capsules[4]["fields"],
        serde_json::json!([
            { "offset": 49, "length": 1, "name": "flags", "value": 0x80 },
            { "offset": 50, "length": 2, "name": "length in bits", "value": 32 },
            { "offset": 52, "length": 3, "name": "reliable message number", "value": 4 },
            { "offset": 55, "length": 3, "name": "sequencing index", "value": 0 },
            { "offset": 58, "length": 3, "name": "ordering index", "value": 1 },
            { "offset": 61, "length": 1, "name": "ordering channel", "value": 3 },
            { "offset": 62, "length": 4, "name": "payload", "value": "86040203" },
        ])
    );
}

#[test]
fn decode_accepts_every_hex_notation() {
    let expected = rakwire(&["decode", "C000 0101 0000 00"]);
    assert_eq!(expected.status, Some(0), "{}", expected.err);
    for hex in ["c0:00:01:01:00:00:00", "0xC0,0x00,0x01,0x01,0x00,0x00,0x00", "c0000101\n000000\n"] {
        assert_eq!(rakwire(&["decode", hex]).out, expected.out, "{hex}");
        assert_eq!(rakwire_with(&["decode", "-"], hex).out, expected.out, "{hex}");
    }
    assert_eq!(rakwire(&["decode", "c0", "0001", "01000000"]).out, expected.out);
    fails(&["decode", "84g"], 2, "'g' (character 3) is not a hex digit");
    fails(&["decode", "840"], 2, "odd");
}

#[test]
fn decode_shows_acknowledgements() {
    let (status, json) = decode("c0 0002 01 000000 00 010000 020000");
    assert_eq!(status, Some(0));
    assert_eq!(json["kind"], "acknowledgement");
    let records = json["records"].as_array().expect("a list");
    assert_eq!((&records[0]["first"], &records[0]["last"]), (&0.into(), &0.into()));
    assert_eq!((&records[1]["first"], &records[1]["last"]), (&1.into(), &2.into()));
    assert_eq!(records[1]["fields"][2]["offset"], 11);
    assert_eq!(decode("a0 0001 01 000000").1["kind"], "negative acknowledgement");
    let (status, json) = decode("c0 0001 00 020000 010000");
    assert_eq!(status, Some(1));
    assert_eq!(json["error"]["message"], "a record ends before it starts");
}

#[test]
fn decode_shows_offline_messages_as_json_and_as_a_table() {
    let magic = "00ffff00fefefefefdfdfdfd12345678";
    let reply = format!("06 {magic} 000660b00effda2e 00 05d4");
    let (status, json) = decode(&reply);
    assert_eq!((status, &json["kind"]), (Some(0), &"open connection reply 1".into()));
    let fields = json["fields"].as_array().expect("a list");
    let named: Vec<(&str, u64)> = fields
        .iter()
        .map(|field| (field["name"].as_str().expect("text"), field["offset"].as_u64().expect("a number")))
        .collect();
    assert_eq!(named, [("id", 0), ("magic", 1), ("guid", 17), ("security", 25), ("mtu", 26)]);
    assert_eq!((&fields[2]["value"], &fields[4]["value"]), (&"000660b00effda2e".into(), &1492.into()));

    let table = rakwire(&["decode", &format!("1c 0000000000000001 0000000000000002 {magic} 41 1b")]).out;
    assert!(table.starts_with("unconnected pong, 35 bytes\n"), "{table}");
    assert!(table.contains("\"A\\u{1b}\""), "{table}");
}

#[test]
fn decode_shows_fields_of_control_messages() {
    let request = "84 000000 40 0090 000000 09 00000000000002a9 00000000000003e8 00";
    let (status, json) = decode(request);
    assert_eq!(status, Some(0));
    let control = &json["capsules"][0]["control"];
    assert_eq!(control["kind"], "connection request");
    assert_eq!(control["fields"][1]["name"], "guid");
    assert_eq!((&control["fields"][1]["offset"], &control["fields"][2]["value"]), (&11.into(), &1000.into()));
    let table = rakwire(&["decode", request]).out;
    assert!(table.contains("-- payload of capsule 1\n") && table.contains("0x09 connection request"));
}

#[test]
fn decode_stops_at_the_first_malformed_field() {
    for (hex, offset, message, capsules) in [
        ("", 0, "the input ends within a field", 0),
        ("84 01", 1, "the input ends within a field", 0),
        ("84 000000 00 0020 86", 7, "the payload ends 3 bytes early", 1),
        ("84 000000 60 0008 000000 000000 20 86", 13, "an ordering channel is 32 or more", 1),
        ("84 000000 00 0008 86 00 0000 86", 9, "a length is zero or too large", 2),
        ("84 000000 00 0008 00", 8, "the input ends within a field", 1),
        ("c0 0002 01 000000", 7, "the input ends within a field", 0),
        ("7f 00 00", 0, "the packet ID is unknown", 0),
        ("01 0000000000000000 ff", 9, "the input ends within a field", 0),
    ] {
        let (status, json) = decode(hex);
        assert_eq!(status, Some(1), "{hex}");
        assert_eq!(json["error"]["offset"], offset, "{hex}: {json}");
        assert_eq!(json["error"]["message"], message, "{hex}");
        assert_eq!(json["capsules"].as_array().map(Vec::len), Some(capsules), "{hex}");
    }
    fails(&["decode", "84 000000 00 0020 86"], 1, "at offset 7: the payload ends 3 bytes early");
    let (status, json) = decode("84 000000 00 0008 86 0000 00000000");
    assert_eq!(status, Some(0), "zeros are padding");
    assert_eq!((&json["rest"][0]["name"], &json["rest"][0]["length"]), (&"padding".into(), &6.into()));
}

#[test]
fn overhead_shows_every_format() {
    let outcome = rakwire(&["overhead", "100", "--count", "5", "--rate", "20"]);
    assert_eq!(outcome.status, Some(0), "{}", outcome.err);
    // 28 bytes of IP and UDP headers, 4 of the datagram, and 5 messages of 10 and 100 bytes.
    let row =
        outcome.out.lines().find(|line| line.starts_with("RakNet") && line.contains("reliable ordered"));
    let fields: Vec<_> = row.expect("a row").split_whitespace().rev().take(4).collect();
    assert_eq!(fields, ["11640", "16.4%", "582", "1"]);
    assert_eq!(outcome.out.lines().count(), 3 + 5 + 5 + 5 + 5 + 1);
    fails(&["overhead", "0"], 2, "0 is not in the range 1 to");
    fails(&["overhead", "9", "--mtu", "100"], 2, "576 to 1492");
}

#[test]
fn send_reaches_a_secure_echo_only_with_the_right_keys() {
    let directory = std::env::temp_dir().join(format!("rakwire-keys-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = |name: &str| directory.join(name).to_str().expect("a path of text").to_owned();
    let (server_key, client_key) = (file("server.key"), file("client.key"));
    let made = rakwire(&["keygen", &server_key]);
    assert_eq!(made.status, Some(0), "{}", made.err);
    let public: Vec<&str> = made.out.lines().collect();
    let [key, hash] = public[..] else { panic!("{}", made.out) };
    assert!(key.starts_with("rakwire-public-key-1:") && hash.starts_with("rakwire-key-hash-1:"));
    assert_eq!(rakwire(&["keygen", &client_key]).status, Some(0));
    fails(&["keygen", &server_key], 2, "does not exist");

    let server = start_echo(&["--secure", &server_key, "--require-identity"]);
    let send = |arguments: &[&str]| rakwire(&[&["send", &server.announced, "x"][..], arguments].concat());
    for key in [key, hash, "any"] {
        let outcome = send(&["--server-key", key, "--identity", &client_key]);
        assert_eq!(outcome.status, Some(0), "{key}: {}", outcome.err);
    }
    let shown = send(&["--server-key", key, "--identity", &client_key, "--identity-data", "hall 3"]);
    assert_eq!(shown.status, Some(0), "{}", shown.err);
    let long = "x".repeat(96);
    fails(
        &[
            "send",
            &server.announced,
            "x",
            "--server-key",
            key,
            "--identity",
            &client_key,
            "--identity-data",
            &long,
        ],
        2,
        "95 bytes",
    );
    fails(&["send", &server.announced, "x", "--server-key", key, "--identity-data", "x"], 2, "--identity");
    let refused = |arguments: &[&str], part: &str| {
        let outcome = send(arguments);
        assert_eq!(outcome.status, Some(1), "{}", outcome.out);
        assert!(outcome.err.contains(part), "{}", outcome.err);
    };
    refused(&[], "--server-key");
    refused(&["--server-key", key], "--identity");
    let other = rakwire(&["keygen", &file("other.key")]).out;
    refused(&["--server-key", other.lines().next().expect("a public key")], "another public key");
    fails(&["send", "127.0.0.1:9", "x", "--server-key", "mine"], 2, "keygen");
    fails(
        &["send", "127.0.0.1:9", "x", "--server-key", key, "--identity", "/nowhere/a.key"],
        2,
        "/nowhere/a.key",
    );
    fails(&["echo", "--listen", "127.0.0.1:0", "--secure", "/nowhere/a.key"], 2, "/nowhere/a.key");
    fails(&["echo", "--listen", "127.0.0.1:0", "--protocol", "game", "--secure", &server_key], 2, "--secure");
    std::fs::remove_dir_all(&directory).expect("the directory");
}

#[test]
fn echo_admits_a_connect_token_of_the_token_command_once() {
    let directory = std::env::temp_dir().join(format!("rakwire-cli-tokens-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = |name: &str| directory.join(name).to_str().expect("a path of text").to_owned();
    let (server_key, client_key, token_key) = (file("server.key"), file("client.key"), file("token.key"));
    let keygen = |file: &str| rakwire(&["keygen", file]).out.lines().next().expect("a key").to_owned();
    let (server_public, client_public) = (keygen(&server_key), keygen(&client_key));
    let made = rakwire(&["keygen", "--token", &token_key]);
    assert_eq!((made.status, &made.out[..]), (Some(0), ""), "{}", made.err);
    fails(&["keygen", "--token", &token_key], 2, "does not exist");

    let server = start_echo(&["--secure", &server_key, "--token-key", &token_key]);
    let target = &server.announced;
    let named = format!("{server_public}@{target}");
    let make = |server: &str, more: &[&str]| {
        let own = ["token", "--token-key", &token_key, "--user", "42", "--client-key", &client_public];
        rakwire(&[&own[..], &["--server", server], more].concat())
    };
    let token = make(&named, &["--data", "level 3", "--expires", "1h"]);
    assert_eq!(token.status, Some(0), "{}", token.err);
    let token = token.out.trim();
    assert!(token.starts_with("rakwire-connect-token-1:"), "{token}");
    let send = |token: &str, key: &str| rakwire(&["send", target, "x", "--token", token, "--identity", key]);
    let sent = send(token, &client_key);
    assert_eq!(sent.status, Some(0), "{}", sent.err);
    let refused = |outcome: Outcome, part: &str| {
        assert_eq!(outcome.status, Some(1), "{}", outcome.out);
        assert!(outcome.err.contains(part), "{}", outcome.err);
    };
    refused(send(token, &client_key), "--token");
    refused(rakwire(&["send", target, "x", "--server-key", &server_public]), "--identity");
    let expired = make(&named, &["--expires", "0s"]);
    refused(send(expired.out.trim(), &client_key), "--token");
    let fresh = make(&named, &[]);
    refused(send(fresh.out.trim(), &server_key), "identity");
    let elsewhere = make(&format!("{server_public}@127.0.0.1:9"), &[]);
    let outcome = send(elsewhere.out.trim(), &client_key);
    assert_eq!(outcome.status, Some(2), "{}", outcome.out);
    assert!(outcome.err.contains("connect to 127.0.0.1:9"), "{}", outcome.err);

    fails(&["send", target, "x", "--token", token], 2, "--identity");
    fails(&["send", target, "x", "--token", "abc", "--identity", &client_key], 2, "not a connect token");
    for (server, part) in [("127.0.0.1:9", "@ is missing"), ("key@127.0.0.1:9", "not a public key")] {
        let outcome = make(server, &[]);
        assert_eq!(outcome.status, Some(2), "{server}");
        assert!(outcome.err.contains(part), "{}", outcome.err);
    }
    assert!(make(&named, &["--expires", "1"]).err.contains("unit"));
    assert!(make(&named, &["--data", &"x".repeat(129)]).err.contains("128 bytes"));
    let echo = ["echo", "--listen", "127.0.0.1:0", "--token-key", &token_key];
    fails(&echo, 2, "--secure");
    fails(&[&echo[..], &["--secure", &server_key, "--allow-plain"]].concat(), 2, "--allow-plain");
    std::fs::remove_dir_all(&directory).expect("the directory");
}
