//! The operator's view: the admin address, metrics, logs, draining, and the service manager.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rakwire_relay::protocol::ProtocolKind;
use rakwire_relay::token::SigningKey;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::Message;

use crate::admission::key_file;
use crate::front;
use crate::program::{Program, relay};
use crate::support::{
    Client, Running, Server, TIMEOUT, config, connect_from, directory, eventually, game, get,
    open_with_origin, reserve_port, within,
};
use crate::webtransport::Session;

const DASHBOARD: &str = include_str!("../../packaging/grafana.json");
const ALERTS: &str = include_str!("../../packaging/alerts.yml");

/// Starts a relay with an admin address, and a client that has sent and received a datagram.
async fn used() -> (Running, SocketAddr, Client) {
    let mut config = config(Server::echo().await);
    config.admin.listen = Some("127.0.0.1:0".parse().unwrap());
    let relay = Running::start(config).await;
    let admin = relay.admin.unwrap();
    let mut client = relay.client().await;
    client.send(b"hello").await;
    client.receive().await;
    (relay, admin, client)
}

/// Returns the value of a metric.
fn value(metrics: &str, series: &str) -> Option<f64> {
    metrics.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}

#[tokio::test]
async fn only_the_admin_address_serves_probes_and_metrics() {
    let (relay, admin, _client) = used().await;
    for (path, expected) in [("/livez", "ok\n"), ("/readyz", "ok\n")] {
        let (head, body) = get(admin, path).await;
        assert!(head.starts_with("http/1.1 200"), "{path}: {head}");
        assert_eq!(body, expected, "{path}");
    }
    let (head, metrics) = get(admin, "/metrics").await;
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert_eq!(value(&metrics, "rakwire_relay_clients{target=\"game\"}"), Some(1.0), "{metrics}");
    let sent = "rakwire_relay_bytes_total{target=\"game\",direction=\"to_server\"}";
    assert_eq!(value(&metrics, sent), Some(5.0), "{metrics}");
    let dropped = "rakwire_relay_drops_total{target=\"game\",direction=\"to_client\",reason=\"queue_full\"}";
    assert_eq!(value(&metrics, dropped), Some(0.0), "{metrics}");

    for path in ["/metrics", "/livez", "/readyz"] {
        let (head, _) = get(relay.address, path).await;
        assert!(head.starts_with("http/1.1 404"), "{path} is not served to clients: {head}");
    }
    let (head, _) = get(admin, "/ws?target=game").await;
    assert!(head.starts_with("http/1.1 404"), "{head}");
}

/// Returns the metrics once they contain this line.
pub(crate) async fn eventually_in(admin: SocketAddr, line: &str) -> String {
    within(async {
        loop {
            let (_, metrics) = get(admin, "/metrics").await;
            if metrics.lines().any(|present| present == line) {
                return metrics;
            }
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

/// The log and the metrics alone show that a game server is absent.
#[tokio::test]
async fn an_absent_game_server_is_visible_in_log_and_metrics() {
    let server = Server::bind().await;
    let closed = server.address();
    drop(server);
    let relay = Operated::start(closed, &["--target", &format!("arena={closed},kind=raknet")]);
    eventually_in(relay.admin, "rakwire_relay_target_up{target=\"arena\"} 0").await;
    within(async {
        let reported = "rakwire_relay_server_unreachable_total{target=\"arena\",reason=\"closed_port\"}";
        while value(&get(relay.admin, "/metrics").await.1, reported).is_none_or(|count| count < 10.0) {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    relay.signal("-TERM");
    let log = relay.ended().await;
    let told: Vec<&Value> =
        log.iter().filter(|line| line["message"] == "the game server does not answer pings").collect();
    assert_eq!(told.len(), 1, "{log:?}");
    assert_eq!((&told[0]["target_name"], &told[0]["level"]), (&"arena".into(), &"WARN".into()));
}

/// Returns the metric names in a text.
fn names(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let mut names: Vec<&str> = words.filter(|word| word.starts_with("rakwire_relay_")).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[tokio::test]
async fn the_dashboard_uses_only_existing_metrics_and_labels() {
    let mut config = config(front::echo().await);
    game(&mut config).kind = ProtocolKind::RakNet;
    game(&mut config).spare_addresses = vec!["127.0.0.1:9".parse().unwrap()];
    config.admin.listen = Some("127.0.0.1:0".parse().unwrap());
    config.tls.self_signed = true;
    let relay = Running::start(config).await;
    let metrics = eventually_in(relay.admin.unwrap(), "rakwire_relay_target_up{target=\"game\"} 1").await;
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let expressions: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    let exported = names(&metrics);
    for expression in &expressions {
        let asked = names(expression);
        assert!(!asked.is_empty(), "{expression}");
        for name in asked {
            assert!(exported.contains(&name), "{name} is not exported:\n{metrics}");
            let labels = expression.split("by (").nth(1).and_then(|rest| rest.split(')').next());
            for label in labels.into_iter().flat_map(|labels| labels.split(", ")) {
                let has = |line: &str| line.starts_with(name) && line.contains(&format!("{label}=\""));
                assert!(metrics.lines().any(has), "{name} has no label {label}:\n{metrics}");
            }
        }
    }
    for name in names(ALERTS) {
        assert!(exported.contains(&name), "an alert asks for {name}, which is not exported:\n{metrics}");
    }
    let all = expressions.join(" ");
    for name in exported {
        assert!(names(&all).contains(&name), "no panel shows {name}");
    }
}

/// A relay in its own process with an admin address and a JSON log.
pub(crate) struct Operated {
    pub(crate) program: Program,
    pub(crate) admin: SocketAddr,
    log: std::thread::JoinHandle<Vec<Value>>,
}

impl Operated {
    fn start(server: SocketAddr, more: &[&str]) -> Self {
        let target = format!("game={server}");
        let arguments = ["--listen", "127.0.0.1:0", "--target", &target, "--admin-listen", "127.0.0.1:0"];
        let mut command = relay();
        Self::run(command.args(arguments).args(["--log-format", "json"]).args(more).stderr(Stdio::piped()))
    }

    /// Starts a program with an admin address and a JSON log, which is written to a pipe.
    pub(crate) fn run(command: &mut Command) -> Self {
        let mut program = Program::run(command);
        let mut lines = BufReader::new(program.child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let mut seen = Vec::new();
        let admin = loop {
            let line = lines.next().expect("the log ended before the admin address");
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
            let admin = line["admin"].as_str().map(|admin| admin.parse().unwrap());
            seen.push(line);
            if let Some(admin) = admin {
                break admin;
            }
        };
        let log = std::thread::spawn(move || {
            seen.extend(lines.map(|line| serde_json::from_str(&line).unwrap()));
            seen
        });
        Self { program, admin, log }
    }

    pub(crate) fn signal(&self, signal: &str) {
        self.program.signal(signal);
    }

    async fn client(&self) -> Client {
        Client::connect(self.program.address, "/ws?target=game").await
    }

    /// Waits for the process to exit, and returns its log.
    pub(crate) async fn ended(mut self) -> Vec<Value> {
        within(tokio::task::spawn_blocking(move || {
            let status = self.program.child.wait().unwrap();
            assert!(status.success(), "{status}");
            self.log.join().unwrap()
        }))
        .await
        .unwrap()
    }
}

async fn echoes(client: &mut Client) {
    client.send(b"hello").await;
    assert_eq!(client.receive().await, b"hello");
}

#[tokio::test]
async fn a_draining_relay_keeps_clients_and_accepts_no_others() {
    let relay = Operated::start(Server::echo().await, &["--drain-timeout", "3600"]);
    let mut client = relay.client().await;
    echoes(&mut client).await;
    relay.signal("-TERM");
    within(async {
        while !get(relay.admin, "/readyz").await.0.starts_with("http/1.1 503") {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert!(get(relay.admin, "/livez").await.0.starts_with("http/1.1 200"));
    assert_eq!(value(&get(relay.admin, "/metrics").await.1, "rakwire_relay_draining"), Some(1.0));
    within(async {
        while TcpStream::connect(relay.program.address).await.is_ok() {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    echoes(&mut client).await;
    drop(client);
    relay.ended().await;
}

#[tokio::test]
async fn a_drain_ends_by_timeout_or_a_second_signal() {
    let relay = Operated::start(Server::echo().await, &["--drain-timeout", "1"]);
    let mut client = relay.client().await;
    echoes(&mut client).await;
    relay.signal("-TERM");
    assert_eq!(client.closed().await.0, 1001);
    relay.ended().await;

    let relay = Operated::start(Server::echo().await, &["--drain-timeout", "3600"]);
    let mut client = relay.client().await;
    relay.signal("-TERM");
    within(async {
        while !get(relay.admin, "/readyz").await.0.starts_with("http/1.1 503") {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    echoes(&mut client).await;
    relay.signal("-TERM");
    assert_eq!(client.closed().await.0, 1001);
    relay.ended().await;
}

/// Runs a relay with a client, shuts it down, and returns its log.
async fn log_of_a_session(more: &[&str]) -> Vec<Value> {
    let relay = Operated::start(Server::echo().await, &[more, &["--drain-timeout", "0"]].concat());
    let mut client = relay.client().await;
    for _ in 0..500 {
        echoes(&mut client).await;
    }
    relay.signal("-TERM");
    client.closed().await;
    relay.ended().await
}

#[tokio::test]
async fn the_log_grows_with_clients_and_not_with_datagrams() {
    let log = log_of_a_session(&[]).await;
    assert!(log.len() < 20, "{log:?}");
    let with_client = |line: &&Value| line["client"].is_string();
    let clients: Vec<&Value> = log.iter().filter(with_client).collect();
    assert!(clients.len() >= 2, "the start and the end of the session: {log:?}");
    for line in clients {
        assert!(line["client"].as_str().unwrap().starts_with("127.0.0.1:"), "{line}");
        assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
    }
}

#[tokio::test]
async fn resumptions_are_logged_with_the_last_address() {
    let relay = Operated::start(Server::echo().await, &["--drain-timeout", "0"]);
    let (first, flow) = Client::with_control(relay.program.address, "/ws?target=game").await;
    let path = format!("/ws?target=game&resume={}", flow.resume);
    let (mut second, flow) = Client::with_control(relay.program.address, &path).await;
    assert!(flow.resumed);
    let client = second.tcp().local_addr().unwrap().to_string();
    drop(first);
    relay.signal("-TERM");
    let log = relay.ended().await;
    let of_client = |message: &str| -> Vec<&str> {
        let lines = log.iter().filter(|line| line["message"] == message);
        lines.map(|line| line["client"].as_str().unwrap()).collect()
    };
    assert_eq!(of_client("client resumed its flow"), [&client], "{log:?}");
    assert_eq!(of_client("client closed"), [&client], "{log:?}");
}

#[tokio::test]
async fn the_close_of_a_client_is_logged_with_its_details() {
    let relay = Operated::start(Server::echo().await, &[]);
    let mut client = Client::connect(relay.program.address, "/ws?target=game").await;
    client.send(b"hello").await;
    client.receive().await;
    client.message(Message::Close(None)).await;
    let (mut other, _) = Client::with_control(relay.program.address, "/ws?target=game").await;
    other.message(Message::Close(None)).await;
    relay.signal("-TERM");
    let log = relay.ended().await;
    let lines =
        |message: &str| -> Vec<&Value> { log.iter().filter(|line| line["message"] == message).collect() };
    let (begun, ended) = (lines("client connected"), lines("client closed"));
    assert_eq!((begun.len(), ended.len()), (2, 2), "{log:?}");
    let first = ended.iter().find(|line| line["flow"] == begun[0]["flow"]).unwrap();
    assert_eq!((&first["target_name"], &first["transport"]), (&"game".into(), &"websocket".into()));
    assert_eq!((&first["bytes_to_server"], &first["bytes_to_client"]), (&5.into(), &5.into()), "{first}");
    assert!(first["seconds"].is_u64() && first["reason"].is_string(), "{first}");
    assert_ne!(begun[0]["flow"], begun[1]["flow"]);
}

/// Opens connections from three networks of this machine: one closes without sending, one stays silent, and one sends
/// malformed data. Returns the logged networks and reasons.
async fn refused_connections(more: &[&str]) -> Vec<(String, String)> {
    let relay = Operated::start(Server::echo().await, &[more, &["--header-timeout", "1"]].concat());
    let from = async |network: u8| connect_from([127, 0, network, 1].into(), relay.program.address).await;
    drop(from(1).await);
    let silent = from(2).await;
    let mut nonsense = from(3).await;
    nonsense.write_all(b"GET / HTTP/1.1\r\nHost: relay\r\n\r\n").await.unwrap();
    eventually_in(relay.admin, "rakwire_relay_refusals_total{reason=\"handshake_timeout\"} 1").await;
    relay.signal("-TERM");
    let log = relay.ended().await;
    drop((silent, nonsense));
    let refused = log.iter().filter(|line| line["message"] == "client refused");
    let text = |line: &Value, field: &str| line[field].as_str().unwrap().to_owned();
    let host = |line: &Value| text(line, "client").split(':').next().unwrap().to_owned();
    let mut refused: Vec<_> = refused.map(|line| (host(line), text(line, "reason"))).collect();
    refused.sort();
    refused
}

#[tokio::test]
async fn empty_health_checks_are_not_logged_but_silence_is() {
    let proxies = ["--trusted-proxy", "127.0.0.0/8", "--proxy-protocol", "--allow-any-origin"];
    for (more, late, wrong) in [
        (&proxies[..], "sent no PROXY protocol header within", "sent no PROXY protocol header (version 2)"),
        (
            &["--tls-self-signed"],
            "did not complete the TLS handshake within",
            "the client does not speak TLS",
        ),
    ] {
        let refused = refused_connections(more).await;
        let clients: Vec<&str> = refused.iter().map(|(client, _)| client.as_str()).collect();
        assert_eq!(clients, ["127.0.2.1", "127.0.3.1"], "{refused:?}");
        assert!(refused[0].1.contains(late) && refused[1].1.contains(wrong), "{refused:?}");
    }
}

#[tokio::test]
async fn world_readable_secrets_are_logged_as_warnings() {
    let (secret, public) = (SigningKey::hmac_sha256().unwrap(), SigningKey::ed25519().unwrap());
    let [secret, public] =
        [("exposed", secret), ("exposed.pub", public)].map(|(name, key)| key_file(name, &key));
    let warned = async |mode: u32| {
        fs::set_permissions(&secret, fs::Permissions::from_mode(mode)).unwrap();
        let keys = ["--token-key", secret.to_str().unwrap(), "--token-key", public.to_str().unwrap()];
        let relay = Operated::start(Server::echo().await, &keys);
        relay.signal("-TERM");
        let warnings = relay.ended().await.into_iter().filter(|line| line["level"] == "WARN");
        // On a busy machine there may also be other warnings.
        warnings.filter_map(|line| Some(line["file"].as_str()?.to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(warned(0o644).await, [secret.to_str().unwrap()]);
    assert_eq!(warned(0o640).await, [""; 0]);
}

#[test]
fn check_warns_about_world_readable_secrets() {
    let secret = key_file("exposed-to-check", &SigningKey::hmac_sha256().unwrap());
    let file = directory("exposed-to-check").join("relay.toml");
    let warned = |mode: u32, store: &str| {
        let target = "[targets.game]\naddress = \"127.0.0.1:1\"\n";
        fs::write(&file, format!("listen = \"127.0.0.1:0\"\n{target}[discovery]\nstore = \"{store}\"\n"))
            .unwrap();
        for path in [&secret, &file] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let checked =
            relay().arg("check").arg("--config").arg(&file).arg("--token-key").arg(&secret).output();
        let text = String::from_utf8(checked.unwrap().stdout).unwrap();
        text.lines().filter_map(|line| Some(line.strip_prefix("warning: ")?.to_owned())).collect::<Vec<_>>()
    };
    let said = |lines: &[String], path: &Path| {
        lines.iter().any(|line| line.starts_with(path.to_str().unwrap()) && line.contains("0600"))
    };
    let (open, closed) = ("redis://10.0.0.2/", "redis://relay:secret@10.0.0.2/");
    let lines = warned(0o644, closed);
    assert!(lines.len() == 2 && said(&lines, &file) && said(&lines, &secret), "{lines:?}");
    assert!(!lines.concat().contains("relay:secret"), "{lines:?}");
    let lines = warned(0o644, open);
    assert!(lines.len() == 1 && said(&lines, &secret), "{lines:?}");
    assert_eq!(warned(0o640, closed), [""; 0]);
}

/// Returns the number of bytes logged for a session and for a refusal, each with the longest client address.
async fn bytes_of_lines(format: &str) -> (u64, u64) {
    const SESSIONS: usize = 50;
    const PROXY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);
    const LONGEST: &str = "[2001:db8:1111:2222:3333:4444:5555:6666]:65535";
    let file = directory("log-of-a-day").join(format);
    let log = Stdio::from(fs::File::create(&file).unwrap());
    let more = ["--trusted-proxy", "127.0.0.9", "--proxy-protocol", "--allow-any-origin"];
    let more = [&["--log-format", format, "--header-timeout", "1"][..], &more].concat();
    let program = Program::start_with(Server::echo().await, &more, log);
    let size = || fs::metadata(&file).unwrap().len();
    let longer = (LONGEST.len() - program.address.to_string().len()) as u64;
    let begin = size();
    for _ in 0..SESSIONS {
        let mut client = Client::connect(program.address, "/ws?target=game").await;
        echoes(&mut client).await;
        client.message(Message::Close(None)).await;
    }
    let lines = |message: &str| fs::read_to_string(&file).unwrap().matches(message).count();
    eventually("all clients have closed", || lines("client closed") == SESSIONS).await;
    let session = (size() - begin) / SESSIONS as u64 + 2 * longer;
    let begin = size();
    // The longest reason, with its remedy, is that of a proxy which sends no PROXY header.
    let _silent = connect_from(PROXY.into(), program.address).await;
    eventually("the refusal is logged", || lines("client refused") == 1).await;
    (session, size() - begin + longer)
}

/// Run with `--nocapture` to print the number of bytes.
#[tokio::test]
async fn the_log_of_a_day_has_at_most_5_mb_even_during_a_flood_of_refusals() {
    // `a_day_of_floods_for_all_reasons_has_at_most_7_000_lines` verifies this number.
    const REFUSALS: u64 = 7_000;
    // One line per minute names five reasons of up to 139 bytes each.
    const SUMMARIES: u64 = 24 * 60 * 900;
    for format in ["text", "json"] {
        let (session, refusal) = bytes_of_lines(format).await;
        let (sessions, refusals) = (2_000 * session, REFUSALS * refusal);
        let day = sessions + refusals + SUMMARIES;
        println!("{format}: {session} bytes a session, {refusal} a refusal, {day} a day with a flood");
        assert!(day <= 5_000_000, "{format}: {session} bytes a session, {refusal} a refusal, {day} a day");
        assert!(4 * sessions <= 5_000_000, "{format}: {session} bytes a session, of which a client has four");
    }
}

/// A banned client sends one request on its own connection, and another one through a proxy.
#[tokio::test]
async fn requests_of_banned_clients_are_logged() {
    let bans = directory("banned-requests").join("bans");
    fs::write(&bans, "127.0.0.1\n203.0.113.9\n").unwrap();
    let relay = Operated::start(
        Server::echo().await,
        &["--bans", bans.to_str().unwrap(), "--trusted-proxy", "127.0.0.2", "--allow-any-origin"],
    );
    assert!(get(relay.program.address, "/healthz").await.0.starts_with("http/1.1 403"));
    let mut proxy = connect_from([127, 0, 0, 2].into(), relay.program.address).await;
    let request =
        "GET /healthz HTTP/1.1\r\nHost: relay\r\nX-Forwarded-For: 203.0.113.9\r\nConnection: close\r\n\r\n";
    proxy.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within(proxy.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    relay.signal("-TERM");
    let log = relay.ended().await;
    let refused: Vec<&Value> = log.iter().filter(|line| line["message"] == "client refused").collect();
    let clients: Vec<&str> = refused.iter().map(|line| line["client"].as_str().unwrap()).collect();
    assert!(clients.len() == 2 && clients[1].starts_with("203.0.113.9"), "{log:?}");
    for line in refused {
        assert_eq!((&line["transport"], &line["reason"]), (&"HTTP".into(), &"this address is banned".into()));
    }
}

/// The second refusal for a reason is not logged. Refusals for other reasons are logged with the remedy.
#[tokio::test]
async fn refusals_are_logged_once_a_minute_per_reason() {
    let relay = Operated::start(Server::echo().await, &["--max-clients", "1"]);
    let at = relay.program.address;
    for _ in 0..2 {
        assert_eq!(open_with_origin(at, Some("https://elsewhere.example")).await, Err(4403));
        assert_eq!(Client::connect(at, "/ws?target=other").await.closed().await.0, 4404);
    }
    let _first = Client::connect(at, "/ws?target=game").await;
    assert_eq!(Client::connect(at, "/ws?target=game").await.closed().await.0, 1013);
    relay.signal("-TERM");
    let log = relay.ended().await;
    let refused: Vec<&Value> = log.iter().filter(|line| line["message"] == "client refused").collect();
    let reasons: Vec<&str> = refused.iter().map(|line| line["reason"].as_str().unwrap()).collect();
    assert_eq!(
        reasons,
        [
            "this relay does not accept pages of this origin",
            "unknown target 'other'; this relay offers: game",
            "this relay has reached its maximum of 1 clients; try again later",
        ]
    );
    for line in refused {
        assert!(line["client"].is_string() && line["level"] == "INFO", "{line}");
        assert_eq!(line["transport"], "websocket");
    }
}

#[tokio::test]
async fn client_addresses_are_hashed_in_the_log_if_configured() {
    let log = log_of_a_session(&["--log-hash-addresses"]).await;
    let clients: Vec<&str> = log.iter().filter_map(|line| line["client"].as_str()).collect();
    assert!(clients.len() >= 2, "{log:?}");
    assert!(clients.iter().all(|client| client.starts_with("hash:") && *client == clients[0]), "{clients:?}");
    for line in &log {
        let text = line.to_string();
        assert!(!text.contains("client\":\"127.0.0.1"), "{text}");
    }
}

/// Returns a socket for notifications to the service manager. The path of a Unix socket must be short.
fn notifications() -> (UnixDatagram, PathBuf) {
    let path = std::env::temp_dir().join(format!("rakwire-relay-{}", std::process::id()));
    // An earlier run may have left the socket behind.
    let _ = fs::remove_file(&path);
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    (socket, path)
}

fn wait_for(socket: &UnixDatagram, state: &str) {
    let mut buffer = [0; 1024];
    loop {
        let length = socket.recv(&mut buffer).unwrap_or_else(|error| panic!("no {state}: {error}"));
        if std::str::from_utf8(&buffer[..length]).unwrap().lines().any(|line| line == state) {
            return;
        }
    }
}

/// Starts a relay as a service manager does, with an inherited socket.
fn start_by_manager(server: SocketAddr, listener: std::net::TcpListener, notify: &Path) -> Child {
    // The socket becomes file descriptor 3 of the process that replaces the shell.
    let script = "exec 3<&0 </dev/null; export LISTEN_FDS=1 LISTEN_PID=$$; exec \"$@\"";
    let program = relay();
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh"])
        .arg(program.get_program())
        .args(["--listen", "127.0.0.1:1", "--target", &format!("game={server}"), "--drain-timeout", "0"])
        .env("NOTIFY_SOCKET", notify)
        .env("WATCHDOG_USEC", "200000")
        .env_remove("WATCHDOG_PID")
        .stdin(OwnedFd::from(listener))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

#[tokio::test]
async fn the_service_manager_passes_the_socket_and_is_notified() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(false).unwrap();
    let address = listener.local_addr().unwrap();
    let (notified, path) = notifications();
    let mut child = start_by_manager(Server::echo().await, listener, &path);
    wait_for(&notified, "READY=1");
    echoes(&mut Client::connect(address, "/ws?target=game").await).await;
    wait_for(&notified, "WATCHDOG=1");
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    wait_for(&notified, "STOPPING=1");
    let status = within(tokio::task::spawn_blocking(move || child.wait().unwrap())).await.unwrap();
    assert!(status.success(), "{status}");
    fs::remove_file(path).unwrap();
}

#[tokio::test]
async fn clients_reconnect_after_a_crash() {
    let server = Server::echo().await;
    // The reservation prevents that another program takes the port between the two runs.
    let (_port, address) = reserve_port();
    let start = || {
        let mut command = relay();
        command.args(["--listen", &address.to_string()]).stderr(Stdio::null());
        Program::run(command.args(["--target", &format!("game={server}")]))
    };
    let mut first = start();
    let (mut client, flow) = Client::with_control(first.address, "/ws?target=game").await;
    echoes(&mut client).await;
    // The method sends SIGKILL.
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let second = start();
    assert_eq!(second.address, first.address);
    // The secret no longer matches a flow, so the client gets a new flow.
    let path = format!("/ws?target=game&resume={}", flow.resume);
    let (mut again, new) = Client::with_control(second.address, &path).await;
    assert!(!new.resumed && new.resume != flow.resume);
    echoes(&mut again).await;
}

/// Returns the resident memory of a process in kilobytes.
fn resident(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn thousands_of_unfinished_connections_lock_out_no_client() {
    const CONNECTIONS: usize = 8_000;
    rlimit::increase_nofile_limit(u64::MAX).unwrap();
    let more = ["--max-clients", "4000", "--header-timeout", "10", "--clients-per-address", "0"];
    let program = Program::start_with(Server::echo().await, &more, Stdio::null());
    let mut early = Client::connect(program.address, "/ws?target=game").await;
    echoes(&mut early).await;
    let before = resident(&program.child);
    let mut open = Vec::new();
    for number in 0..CONNECTIONS {
        let stream = TcpStream::connect(program.address).await.unwrap();
        // Every second connection sends a part of a header.
        if number % 2 == 0 {
            stream.try_write(b"GET /ws?target=game HTTP/1.1\r\nHost: relay\r\n").unwrap();
        }
        open.push(stream);
    }
    echoes(&mut early).await;
    let grown = resident(&program.child).saturating_sub(before);
    assert!(grown < 32 * CONNECTIONS as u64, "{grown} KB for {CONNECTIONS} connections");
    let mut late = within(async {
        loop {
            let url = format!("ws://{}/ws?target=game", program.address);
            if let Ok((client, _)) = tokio_tungstenite::connect_async(url).await {
                break Client(client);
            }
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    echoes(&mut late).await;
    echoes(&mut early).await;
}

#[tokio::test]
async fn an_oversized_request_header_is_refused() {
    let relay = Running::start(config(Server::echo().await)).await;
    let many = "a: b\r\n".repeat(200);
    let long = format!("a: {}\r\n", "b".repeat(100_000));
    for header in [many, long] {
        let mut stream = TcpStream::connect(relay.address).await.unwrap();
        let request = format!("GET /healthz HTTP/1.1\r\nHost: relay\r\n{header}\r\n");
        // The relay may close the connection before it has received everything.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = within(stream.read_to_end(&mut answer)).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(get(relay.address, "/healthz").await.1, "ok");
}

#[tokio::test]
async fn a_stalled_file_download_is_disconnected() {
    let pages = directory("large");
    fs::write(pages.join("index.html"), "page").unwrap();
    fs::write(pages.join("large.bin"), vec![7; 32 * 1024 * 1024]).unwrap();
    let mut config = config(Server::echo().await);
    config.serve = Some(pages);
    config.limits.max_clients = 1;
    config.limits.write_stall_timeout = Duration::from_millis(300);
    let relay = Running::start(config).await;
    let mut stopped = Vec::new();
    // The loop opens as many connections as the relay accepts.
    for _ in 0..2 + 64 {
        let mut stream = TcpStream::connect(relay.address).await.unwrap();
        stream.write_all(b"GET /large.bin HTTP/1.1\r\nHost: relay\r\n\r\n").await.unwrap();
        stopped.push(stream);
    }
    eventually("all downloads are ended", || relay.snapshot().stalled == 2 + 64).await;
    assert_eq!(get(relay.address, "/healthz").await.1, "ok");
    drop(stopped);
}

/// Simulates a full disk.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_unwritable_log_stops_neither_relay_nor_commands() {
    let full = || Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let mut program = Program::start_with(Server::echo().await, &["--log-level", "debug"], full());
    for _ in 0..2 {
        let mut client = Client::connect(program.address, "/ws?target=game").await;
        client.send(b"hello").await;
        assert_eq!(client.receive().await, b"hello");
    }
    assert!(program.child.try_wait().unwrap().is_none());
    // Errors of the command line are written to the same output.
    for wrong in [&["--listen", "nowhere"][..], &["check", "--config", "/nowhere/relay.toml"]] {
        let status = relay().args(wrong).stderr(full()).stdout(Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(2), "{wrong:?}");
    }
}

/// Pages are notified of the shutdown while they can still move to another relay, on each transport with control
/// messages.
#[tokio::test]
async fn a_drain_announces_the_remaining_time() {
    let mut config = config(Server::echo().await);
    config.drain_timeout = Duration::from_secs(3_600);
    let relay = rakwire_relay::Relay::bind(config).await.unwrap();
    let (address, stopper) = (relay.local_addr(), relay.stopper());
    let (drain, drained) = tokio::sync::oneshot::channel();
    let running = tokio::spawn(relay.run(async { drop(drained.await) }));
    let (mut by_websocket, _) = Client::with_control(address, "/ws?target=game").await;
    let by_webtransport = Session::with_control(address, "").await;
    by_webtransport.request_flow().await;
    let mut plain = Client::connect(address, "/ws?target=game").await;
    drain.send(()).unwrap();
    let left = |text: &str| {
        let told: Value = serde_json::from_str(text).unwrap();
        assert_eq!(told["type"], "draining", "{text}");
        told["left_ms"].as_u64().unwrap()
    };
    let by_websocket = left(&by_websocket.text().await);
    let by_webtransport = loop {
        let text = by_webtransport.control().await;
        // Answers to requests for the flow message may still arrive.
        if !text.contains("\"flow\"") {
            break left(&text);
        }
    };
    for left in [by_websocket, by_webtransport] {
        assert!((1..=3_600_000).contains(&left), "{left}");
    }
    // A client without control messages continues to play.
    plain.send(b"hello").await;
    assert_eq!(plain.datagram().await, b"hello");
    stopper.stop();
    within(running).await.unwrap().unwrap();
}
