//! Diagnosis by the program alone: each provoked failure can be identified by output, log and metrics.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rakwire::raknet::Guid;
use rakwire::wire::offline::{ClientSecurity, Offline, PingScope};
use rakwire::wire::{Wire, Writer};
use rakwire_relay::token::SigningKey;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::admission::{key_file, token};
use crate::program::{Program, refused, relay};
use crate::support::{
    Client, Server, closed_port, directory, get, get_with, open_with_origin, reserve_port, within,
};
use crate::webtransport;

/// A relay in its own process that logs to a file.
struct Watched {
    program: Program,
    admin: SocketAddr,
    log: PathBuf,
}

impl Watched {
    fn start(name: &str, target: &str, more: &[&str]) -> Self {
        let log = directory("failures").join(format!("{name}-{}.log", std::process::id()));
        let to = Stdio::from(fs::File::create(&log).unwrap());
        Self::start_with(log, target, more, to)
    }

    /// Starts a relay that logs to `to`.
    fn start_with(log: PathBuf, target: &str, more: &[&str], to: Stdio) -> Self {
        let mut command = relay();
        command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--target", target]);
        command.args(more).stdout(Stdio::piped()).stderr(to);
        let mut child = command.spawn().unwrap();
        // One reader returns both lines, because a reader buffers more than one line.
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut after =
            |begin: &str| lines.find_map(|line| line.strip_prefix(begin)?.split("://").nth(1)?.parse().ok());
        let (address, admin) = (after("listening on ").unwrap(), after("monitoring on ").unwrap());
        Self { program: Program { child, address }, admin, log }
    }

    const fn address(&self) -> SocketAddr {
        self.program.address
    }

    /// Waits for the metric of an event that is not logged. The addresses of such datagrams may be forged.
    async fn counts(&self, series: &str) {
        within(async {
            let is_counted = |line: &str| line.starts_with(series) && !line.ends_with(" 0");
            while !get(self.admin, "/metrics").await.1.lines().any(is_counted) {
                sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
    }

    /// Waits for a log line with this text, and for the metric that counts the event. Returns the line.
    async fn reports(&self, said: &str, series: &str) -> String {
        let found = within(async {
            loop {
                let log = fs::read_to_string(&self.log).unwrap();
                let metrics = get(self.admin, "/metrics").await.1;
                let is_counted = series.is_empty()
                    || metrics.lines().any(|line| line.starts_with(series) && !line.ends_with(" 0"));
                if let Some(line) = log.lines().find(|line| line.contains(said)).filter(|_| is_counted) {
                    return line.to_owned();
                }
                sleep(Duration::from_millis(50)).await;
            }
        });
        let line = found.await;
        for word in ["Some(", "None", "Err(", "Error {", "Os {"] {
            assert!(!line.contains(word), "{line}");
        }
        line
    }
}

/// Returns an ICE connectivity check (RFC 8489) with a password that belongs to no relay.
fn foreign_check() -> Vec<u8> {
    let username = b"rakwire/p4ssw0rdOfThePage/0123:Wx4z";
    let attributes = [
        &[0, 6, 0, 35][..],
        username,
        // The padding, and the header of the integrity.
        &[0, 0, 8, 0, 20],
        &[7; 20],
    ];
    let attributes = attributes.concat();
    let length = u8::try_from(attributes.len() + 8).unwrap();
    let mut check = [&[0, 1, 0, length, 0x21, 0x12, 0xa4, 0x42][..], &[9; 12], &attributes].concat();
    let sum = crc32(&check) ^ 0x5354_554e;
    check.extend([0x80, 0x28, 0, 4]);
    check.extend(sum.to_be_bytes());
    check
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    })
}

fn written<'a>(packet: &impl Wire<'a>) -> Vec<u8> {
    let mut buffer = [0; 2_048];
    let mut writer = Writer::new(&mut buffer);
    packet.write(&mut writer).unwrap();
    writer.finish().to_vec()
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.log);
    }
}

/// A failure at startup prints one line that names the reason and the remedy.
#[test]
fn startup_failures_are_explained() {
    let files = directory("failures");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let missing = files.join("missing.pem");
    let missing = missing.to_str().unwrap();
    let config = files.join("misspelt.toml");
    fs::write(&config, "[targets.game]\naddress = \"127.0.0.1:1\"\n[limits]\nmax_client = 5\n").unwrap();
    let game: &[&str] = &["--listen", "127.0.0.1:0", "--target", "game=127.0.0.1:19132"];
    let unread = |key: &str| format!("{key}: {missing}: cannot be read (No such file or directory");
    let (bans, key, ca) = (
        unread("--bans"),
        unread("--token-key"),
        format!("--discover-ca: cannot read '{missing}' (No such file or directory"),
    );
    let cases: [(&[&str], &[&str], &str); 11] = [
        (&["--listen", &taken, "--target", "game=127.0.0.1:1"], &[], "choose another --listen"),
        (game, &["--admin-listen", &taken], "choose another --admin-listen"),
        (
            &["--listen", "127.0.0.1:0", "--target", "game=169.254.169.254:80"],
            &[],
            "use the address of the game server",
        ),
        (game, &["--tls-certificate", missing, "--tls-key", missing], "check the path and the permissions"),
        (&["--config", config.to_str().unwrap()], &[], "did you mean max_clients?"),
        (game, &["--proxy-protocol"], "trusted-proxy"),
        (game, &["--discover", "rediss://10.0.0.2/", "--discover-ca", missing], &ca),
        (
            game,
            &["--discover", "rediss://10.0.0.2/", "--discover-ca", missing],
            "check the path and the permissions",
        ),
        (game, &["--discover", "http://10.0.0.2/"], "write it as redis://HOST:PORT/, rediss://HOST:PORT/"),
        (game, &["--bans", missing], &bans),
        (game, &["--token-key", missing], &key),
    ];
    for (arguments, more, said) in cases {
        let line = refused(&[arguments, more].concat());
        assert!(line.starts_with("error: ") && line.contains(said), "{said}: {line}");
    }
}

#[tokio::test]
async fn unreachable_game_servers_and_stores_are_logged_and_counted() {
    let (_closed, closed) = closed_port();
    let (_store, store) = reserve_port();
    let more = ["--target", &format!("raw={closed}"), "--discover", &format!("redis://{store}/")];
    let relay = Watched::start("down", &format!("game={closed},kind=raknet"), &more);
    relay
        .reports(
            "the game server does not answer pings",
            "rakwire_relay_server_unreachable_total{target=\"game\",",
        )
        .await;
    relay.reports("the store of servers cannot be reached", "rakwire_relay_store_failures_total").await;
    let mut client = Client::connect(relay.address(), "/ws?target=raw").await;
    // The error about a datagram is reported when a later datagram is sent. Datagrams that are sent in one system call
    // share one error.
    let more = async {
        loop {
            client.send(b"hello").await;
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        _ = relay.reports("the game server is unreachable", "rakwire_relay_server_unreachable_total{target=\"raw\",") => {}
        () = more => unreachable!("the loop has no end"),
    }
}

#[tokio::test]
async fn refused_clients_are_logged_with_the_reason() {
    let server = Server::echo().await;
    let target = format!("game={server}");
    let relay = Watched::start("origins", &target, &["--allow-origin", "https://play.example.org"]);
    assert_eq!(open_with_origin(relay.address(), Some("https://evil.example.org")).await, Err(4403));
    relay
        .reports("does not accept pages of this origin", "rakwire_relay_refusals_total{reason=\"origin\"}")
        .await;
    assert_eq!(open_with_origin(relay.address(), None).await, Err(4403));
    relay
        .reports("the request has no Origin header", "rakwire_relay_refusals_total{reason=\"origin\"}")
        .await;
    let pages = Watched::start("pages", &target, &["--allow-origin", "https://play.example.org"]);
    let other = get_with(pages.address(), "/servers.json", &[("Origin", "https://evil.example.org")]).await;
    assert!(other.0.starts_with("http/1.1 403"), "{}", other.0);
    pages.reports("transport=HTTP", "rakwire_relay_refusals_total{reason=\"origin\"}").await;
    get(relay.address(), "/ws?target=game").await;
    relay
        .reports("must forward Upgrade and Connection", "rakwire_relay_refusals_total{reason=\"handshake\"}")
        .await;
    let forwarded = get_with(
        relay.address(),
        "/ws?target=game",
        &[
            ("X-Forwarded-For", "192.0.2.1"),
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
        ],
    );
    // The reply is a WebSocket, which may stay open.
    tokio::select! {
        _ = forwarded => {}
        _ = relay.reports("add it to admission.trusted_proxies", "") => {}
    }
    let mut nonsense = TcpStream::connect(relay.address()).await.unwrap();
    nonsense.write_all(b"\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a\x21\x11").await.unwrap();
    relay.reports("no HTTP request received", "").await;

    let bans = directory("failures").join("bans");
    fs::write(&bans, "127.0.0.1\n").unwrap();
    let relay = Watched::start("banned", &target, &["--bans", bans.to_str().unwrap()]);
    assert_eq!(open_with_origin(relay.address(), None).await, Err(4403));
    relay.reports("this address is banned", "rakwire_relay_refusals_total{reason=\"banned\"}").await;
}

#[tokio::test]
async fn invalid_tokens_and_targets_are_logged_and_counted() {
    let key = SigningKey::ed25519().unwrap();
    let key_path = key_file("failures", &key);
    let target = format!("game={}", Server::echo().await);
    let relay = Watched::start("tokens", &target, &["--token-key", key_path.to_str().unwrap()]);
    let expired = token(&key, |claims| claims.exp -= 600);
    let foreign = token(&SigningKey::ed25519().unwrap(), |_| {});
    let refused = "rakwire_relay_closes_total{reason=\"token_refused\"}";
    for (query, said) in [
        (String::new(), "a token is needed"),
        (format!("&token={expired}"), "the token has expired"),
        (format!("&token={foreign}"), "the token is not valid"),
    ] {
        let client = Client::connect(relay.address(), &format!("/ws?target=game{query}")).await;
        assert_eq!(client.closed().await.0, 4401);
        relay.reports(said, refused).await;
    }
    let relay = Watched::start("targets", &target, &[]);
    Client::connect(relay.address(), "/ws?target=lobby").await.closed().await;
    relay
        .reports(
            "unknown target 'lobby'; this relay offers: game",
            "rakwire_relay_closes_total{reason=\"unknown_target\"}",
        )
        .await;
    Client::connect(relay.address(), "/ws").await.closed().await;
    relay.reports("no target given", "rakwire_relay_closes_total{reason=\"missing_target\"}").await;
}

#[tokio::test]
async fn reached_limits_are_logged_and_counted() {
    let target = format!("game={}", Server::echo().await);
    let limited = "rakwire_relay_closes_total{reason=\"address_limit\"}";
    for (name, limits, said, series) in [
        ("address", &["--clients-per-address", "1"][..], "too many clients from your address", limited),
        (
            "all",
            &["--max-clients", "1"],
            "this relay has reached its maximum of 1 clients",
            "rakwire_relay_closes_total{reason=\"too_many_clients\"}",
        ),
    ] {
        // Without this option, no limits apply to clients on this machine.
        let exempt = ["--exempt", "192.0.2.1"];
        let relay = Watched::start(name, &target, &[limits, &exempt].concat());
        let mut first = Client::connect(relay.address(), "/ws?target=game").await;
        first.send(b"hello").await;
        assert_eq!(first.receive().await, b"hello");
        Client::connect(relay.address(), "/ws?target=game").await.closed().await;
        relay.reports(said, series).await;
    }
}

#[tokio::test]
async fn certificate_proxy_and_shutdown_problems_are_in_the_log_and_the_metrics() {
    let target = format!("game={}", Server::echo().await);
    let pair = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    let (certificate, key) = (directory("failures").join("old.pem"), directory("failures").join("old.key"));
    fs::write(&certificate, params.self_signed(&pair).unwrap().pem()).unwrap();
    fs::write(&key, pair.serialize_pem()).unwrap();
    let tls = ["--tls-certificate", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let relay = Watched::start("expired", &target, &tls);
    relay.reports("the certificate has expired", "rakwire_relay_certificate_expiry_timestamp_seconds").await;
    let mut plain = TcpStream::connect(relay.address()).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    relay
        .reports("the client does not speak TLS", "rakwire_relay_refusals_total{reason=\"handshake\"}")
        .await;

    let proxy = ["--trusted-proxy", "127.0.0.1", "--proxy-protocol", "--allow-any-origin"];
    let relay = Watched::start("no-header", &target, &proxy);
    let mut plain = TcpStream::connect(relay.address()).await.unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n").await.unwrap();
    relay
        .reports("sent no PROXY protocol header", "rakwire_relay_refusals_total{reason=\"proxy_header\"}")
        .await;

    let relay = Watched::start("drain", &target, &["--drain-timeout", "3600"]);
    let mut client = Client::connect(relay.address(), "/ws?target=game").await;
    client.send(b"hello").await;
    assert_eq!(client.receive().await, b"hello");
    relay.program.signal("-TERM");
    let line = relay.reports("shutting down: new clients are refused", "rakwire_relay_draining 1").await;
    assert!(line.contains("drain_timeout=3600s") && line.contains("clients=1"), "{line}");
}

#[tokio::test]
async fn webtransport_failures_are_logged_and_counted() {
    let target = format!("game={}", Server::echo().await);
    // Another program already uses the UDP port.
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let by_force = [
        "--listen",
        "127.0.0.1:0",
        "--target",
        &target,
        "--webtransport",
        "on",
        "--webtransport-listen",
        &taken,
    ];
    let line = refused(&by_force);
    assert!(line.contains("choose another --webtransport-listen"), "{line}");
    let without = ["--webtransport-listen", &taken, "--log-level", "info"];
    let relay = Watched::start("no-webtransport", &target, &without);
    relay.reports("WebTransport is not offered, because its UDP port cannot be used", "").await;

    let own_port = ["--webtransport", "on", "--webtransport-listen", "127.0.0.1:0", "--header-timeout", "1s"];
    let relay = Watched::start("webtransport", &target, &own_port);
    let announced = webtransport::announced(relay.address()).await.unwrap();
    // A page has the certificate hash of an earlier start of the relay.
    let wrong =
        webtransport::Announced { certificate_hashes: vec![STANDARD.encode([7; 32])], ..announced.clone() };
    assert!(webtransport::dial(&wrong, relay.address()).await.is_err());
    let handshake = "rakwire_relay_refusals_total{reason=\"handshake\"}";
    relay.reports("the client rejected the WebTransport certificate", handshake).await;
    let open = webtransport::dial(&announced, relay.address()).await.unwrap();
    let late = "rakwire_relay_refusals_total{reason=\"handshake_timeout\"}";
    relay.reports("did not complete the WebTransport handshake within limits.header_timeout", late).await;
    drop(open);
    // The first two codes mean that the page was closed, or continues on another transport. Neither is logged.
    for (code, is_announced) in [(0_u32, false), (0x100, false), (0x109, true)] {
        let (endpoint, left) = webtransport::dial(&announced, relay.address()).await.unwrap();
        if is_announced {
            // The relay's settings arrive once the QUIC handshake is complete on both sides.
            within(left.accept_uni()).await.unwrap();
        }
        left.close(code.into(), b"");
        within(endpoint.wait_idle()).await;
        if is_announced {
            relay.reports("the WebTransport handshake ended without a session", handshake).await;
        }
    }
    let ended = fs::read_to_string(&relay.log).unwrap().matches("ended without a session").count();
    assert_eq!(ended, 1);
    let metrics = get(relay.admin, "/metrics").await.1;
    assert!(metrics.contains(&format!("{handshake} 2")), "one rejected certificate and one error: {metrics}");
}

/// These clients send one Initial packet and nothing more, as with forged source addresses.
#[tokio::test]
async fn unvalidated_addresses_are_not_logged() {
    let target = format!("game={}", Server::echo().await);
    let own_port = ["--webtransport", "on", "--webtransport-listen", "127.0.0.1:0", "--header-timeout", "1s"];
    let relay = Watched::start("forged", &target, &own_port);
    let announced = webtransport::announced(relay.address()).await.unwrap();
    let forged = webtransport::Unfinished::start(&announced, relay.address(), 3).await;
    let late = "rakwire_relay_refusals_total{reason=\"handshake_timeout\"} 3";
    relay.reports("did not complete the WebTransport handshake", late).await;
    // This line is written after all others.
    Client::connect(relay.address(), "/ws?target=lobby").await.closed().await;
    relay.reports("unknown target 'lobby'", "").await;
    let log = fs::read_to_string(&relay.log).unwrap();
    let lines: Vec<&str> =
        log.lines().filter(|line| line.contains("the WebTransport handshake within")).collect();
    assert!(matches!(lines[..], [line] if line.contains("client=\"unproven\"")), "{lines:?}");
    assert!(!log.contains(&forged.address().to_string()), "{log}");
}

/// An address has 32 slots for handshakes whose address is validated, and 32 for those that need no validation.
#[tokio::test]
async fn excess_handshakes_of_a_network_are_logged_and_counted() {
    let target = format!("game={}", Server::echo().await);
    let own_port = ["--webtransport", "on", "--webtransport-listen", "127.0.0.1:0", "--header-timeout", "1m"];
    let relay = Watched::start("handshakes", &target, &own_port);
    let announced = webtransport::announced(relay.address()).await.unwrap();
    let _unfinished = webtransport::Unfinished::start(&announced, relay.address(), 65).await;
    let limit = "rakwire_relay_refusals_total{reason=\"handshake_limit\"}";
    let line = relay.reports("too many WebTransport handshakes are in progress", limit).await;
    assert!(line.contains("client=127.0.0.1:") && line.contains("transport=webtransport"), "{line}");
}

/// The log line about a client refused by the limit of its address names the transport.
#[tokio::test]
async fn excess_connections_are_reported_with_the_transport() {
    let target = format!("game={}", Server::echo().await);
    let own_port = [
        "--webtransport",
        "on",
        "--webtransport-listen",
        "127.0.0.1:0",
        "--clients-per-address",
        "1",
        "--exempt",
        "192.0.2.1",
    ];
    let relay = Watched::start("transport", &target, &own_port);
    let announced = webtransport::announced(relay.address()).await.unwrap();
    let mut connections = Vec::new();
    let limit = "rakwire_relay_refusals_total{reason=\"connection_limit\"}";
    let dial = async {
        loop {
            connections.extend(webtransport::dial(&announced, relay.address()).await);
        }
    };
    let line = tokio::select! {
        () = dial => unreachable!("the loop has no end"),
        line = relay.reports("transport=webtransport reason=too many", limit) => line,
    };
    assert!(line.contains("client=127.0.0.1:"), "{line}");
}

#[tokio::test]
async fn data_channel_failures_are_logged_and_counted() {
    let target = format!("game={}", Server::echo().await);
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    // Data channels use the UDP port of WebTransport.
    let on = ["--webrtc-allow-without-origin", "--webtransport-listen"];
    let relay = Watched::start("no-webrtc", &target, &[&on[..], &[&taken]].concat());
    relay.reports("data channels are not offered, because their UDP port cannot be used", "").await;

    let relay = Watched::start("webrtc", &target, &[&on[..], &["127.0.0.1:0"]].concat());
    let port = webtransport::announced(relay.address()).await.unwrap().port;
    let page = UdpSocket::bind("127.0.0.1:0").unwrap();
    page.connect((relay.address().ip(), port)).unwrap();
    let dropped = |reason| format!("rakwire_relay_webrtc_drops_total{{reason=\"{reason}\"}}");
    // A check of a page that knows the fingerprint of another certificate.
    page.send(&foreign_check()).unwrap();
    relay.counts(&dropped("wrong_password")).await;
    // The handshake of a client that does not answer the relay's check, for example because of a restrictive firewall.
    page.send(&[&[22, 0xfe, 0xfd][..], &[0; 8], &[0, 40], &[1], &[0; 39]].concat()).unwrap();
    relay.counts(&dropped("unvalidated_source")).await;
}

#[tokio::test]
async fn front_failures_are_logged_and_counted() {
    let (_closed, closed) = closed_port();
    let target = format!("game={closed},kind=raknet");
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let line = refused(&["--listen", "127.0.0.1:0", "--target", &target, "--udp-listen", &taken]);
    assert!(line.contains("choose another --udp-listen"), "{line}");

    let relay = Watched::start("front", &target, &["--udp-listen", "127.0.0.1:0"]);
    let line = relay.reports("listening for native UDP clients", "").await;
    let front: SocketAddr = line.split("udp=").nth(1).unwrap().trim().parse().unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(front).unwrap();
    // Request 2 of RakNet, with a cookie that this relay has not issued.
    let security = ClientSecurity::Cookie(7);
    let request = Offline::Request2 { security, server: front, mtu: 1_400, guid: Guid(1) };
    client.send(&written(&request)).unwrap();
    relay.counts("rakwire_relay_front_drops_total{reason=\"bad_cookie\"}").await;
    let unreachable = "rakwire_relay_server_unreachable_total{target=\"game\",";
    relay.reports("the game server does not answer pings", unreachable).await;
    let ping = written(&Offline::Ping { scope: PingScope::Any, time: 1, guid: Some(Guid(1)) });
    client.send(&ping).unwrap();
    relay.counts("rakwire_relay_front_drops_total{reason=\"no_pong\"}").await;
}

#[cfg(feature = "acme")]
#[tokio::test]
async fn an_unreachable_acme_authority_is_logged() {
    let (_held, nowhere) = reserve_port();
    let target = format!("game={}", Server::echo().await);
    let directory = format!("https://{nowhere}/directory");
    let relay = Watched::start(
        "acme",
        &target,
        &["--acme-domain", "play.example.org", "--acme-directory", &directory],
    );
    let line = relay
        .reports("no certificate from the ACME authority yet, the relay tries again: the authority cannot be reached: ", "")
        .await;
    assert!(line.to_lowercase().contains("connection refused"), "{line}");
    relay.reports("no tls.acme_cache: every start requests a new certificate", "").await;
}

/// Lines that cannot be written are dropped and counted, without other effects. A later line reports their number.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn flows_continue_while_the_disk_of_the_log_is_full() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let target = format!("game={}", Server::echo().await);
    let mut relay =
        Watched::start_with(directory("failures").join("no-log"), &target, &[], Stdio::from(full));
    for _ in 0..2 {
        let mut client = Client::connect(relay.address(), "/ws?target=game").await;
        client.send(b"hello").await;
        assert_eq!(client.receive().await, b"hello");
    }
    let metrics = get(relay.admin, "/metrics").await.1;
    let lost = metrics.lines().find_map(|line| line.strip_prefix("rakwire_relay_log_lines_lost_total "));
    assert!(lost.is_some_and(|count| count.parse::<u64>().unwrap() > 2), "{metrics}");
    assert!(relay.program.child.try_wait().unwrap().is_none());
}
