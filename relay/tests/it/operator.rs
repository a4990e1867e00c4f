//! Commands of the operator through the admin socket: lists, kicks and bans, on every transport and route.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use rakwire_relay::protocol::ProtocolKind;
use rakwire_relay::{CloseKind, Config, Relay};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::oneshot;

use crate::front;
use crate::program::relay;
use crate::support::{
    Client, Running, Server, config, directory, eventually, get, get_with, open_with_origin, within,
};
use crate::webtransport::Session;

/// Returns the path of a test's admin socket.
fn socket(name: &str) -> PathBuf {
    // The path of a Unix socket has at most 108 bytes, which the path of a target directory may exceed.
    let directory = std::env::temp_dir().join(format!("rakwire-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    directory.join("admin.sock")
}

async fn operated(name: &str) -> (Config, PathBuf) {
    let mut config = config(Server::echo().await);
    let socket = socket(name);
    config.admin.socket = Some(socket.clone());
    (config, socket)
}

/// Runs a command of the program with the admin socket.
async fn run(socket: &Path, arguments: &[&str]) -> Output {
    let mut command = relay();
    command.args(arguments).arg("--admin-socket").arg(socket);
    within(tokio::task::spawn_blocking(move || command.output().unwrap())).await.unwrap()
}

/// Runs a command and returns its output.
async fn order(socket: &Path, arguments: &[&str]) -> String {
    let output = run(socket, arguments).await;
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the list of clients as JSON.
async fn clients(socket: &Path, more: &[&str]) -> Vec<Value> {
    let text = order(socket, &[&["clients", "--json"], more].concat()).await;
    let list: Value = serde_json::from_str(&text).unwrap();
    list["clients"].as_array().unwrap().clone()
}

#[tokio::test]
async fn clients_are_listed_and_kicked() {
    let (config, socket) = operated("kick").await;
    let relay = Running::start(config).await;
    assert_eq!(std::fs::symlink_metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let (mut one, mut two) = (relay.client().await, relay.client().await);
    for client in [&mut one, &mut two] {
        client.send(b"hello").await;
        client.receive().await;
    }
    let listed = clients(&socket, &[]).await;
    assert_eq!(listed.len(), 2, "{listed:?}");
    let first = &listed[0];
    assert_eq!((&first["target"], &first["transport"]), (&"game".into(), &"websocket".into()));
    assert_eq!((&first["bytes_to_server"], &first["is_away"]), (&5.into(), &false.into()), "{first}");
    assert_eq!(clients(&socket, &["127.0.0.0/8"]).await.len(), 2);
    assert!(clients(&socket, &["192.0.2.0/24"]).await.is_empty());
    let table = order(&socket, &["clients"]).await;
    assert!(table.starts_with("FLOW") && table.contains("websocket"), "{table}");

    let flow = first["flow"].to_string();
    assert_eq!(order(&socket, &["kick", &flow]).await, "ended flows: 1\n");
    let (code, text) = one.closed().await;
    assert_eq!((code, text.as_str()), (4410, "ended by the operator of the relay"));
    assert_eq!(clients(&socket, &[]).await.len(), 1);
    assert_eq!(order(&socket, &["kick", "127.0.0.1", "--json"]).await, "{\"ended\":1}\n");
    assert_eq!(two.closed().await.0, 4410);
    assert_eq!((relay.snapshot().kicked, relay.snapshot().closes(CloseKind::Kicked)), (2, 2));
    relay.client().await;
    relay.stop().await;
    assert!(!socket.exists(), "a stopped relay removes the file of its socket");
}

#[tokio::test]
async fn a_ban_covers_every_route_until_lifted() {
    let (mut config, socket) = operated("ban").await;
    let pages = directory("pages-for-some");
    std::fs::write(pages.join("index.html"), "page").unwrap();
    config.serve = Some(pages);
    config.admission.allow_any_origin = true;
    config.admission.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    let relay = Running::start(config).await;
    let client = relay.client().await;
    let status = async |client: &str, path: &str| {
        let (head, _) = get_with(relay.address, path, &[("x-forwarded-for", client)]).await;
        head[9..12].to_owned()
    };
    assert_eq!(
        order(&socket, &["ban", "203.0.113.0/24", "--for", "1h"]).await,
        "banned 203.0.113.0/24; ended flows: 0\n"
    );
    for path in ["/", "/healthz", "/servers.json", "/transports"] {
        assert_eq!(status("203.0.113.9", path).await, "403", "{path}");
        assert_eq!(status("203.0.114.9", path).await, "200", "{path}");
    }
    let listed = order(&socket, &["bans", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["bans"][0]["network"], "203.0.113.0/24");
    assert!(listed["bans"][0]["seconds_left"].as_u64().is_some_and(|left| left <= 3600), "{listed}");

    assert_eq!(order(&socket, &["ban", "127.0.0.1", "--json"]).await, "{\"ended\":1}\n");
    assert_eq!(client.closed().await, (4403, "this address is banned".to_owned()));
    assert_eq!(open_with_origin(relay.address, None).await, Err(4403));
    assert_eq!(relay.snapshot().ended_by_bans, 1);
    assert_eq!(order(&socket, &["unban", "127.0.0.1"]).await, "lifted the ban of 127.0.0.1/32\n");
    assert_eq!(open_with_origin(relay.address, None).await, Ok(()));
    assert_eq!(status("203.0.113.9", "/").await, "403", "another ban stays in force");
    assert_eq!(order(&socket, &["bans"]).await.lines().count(), 2);
}

#[tokio::test]
async fn a_ban_ends_flows_over_udp_websocket_and_webtransport() {
    let (mut config, socket) = operated("transports").await;
    let target = config.targets.keys().next().unwrap().clone();
    config = config.with_target(format!("raknet={}", front::echo().await).parse().unwrap());
    config.targets.values_mut().last().unwrap().kind = ProtocolKind::RakNet;
    config.udp.listen = Some("127.0.0.1:0".parse().unwrap());
    config.udp.target = Some("raknet".parse().unwrap());
    config.limits.idle_timeout = std::time::Duration::from_secs(3_600);
    let bound = Relay::bind(config).await.unwrap();
    let (address, udp, counters) = (bound.local_addr(), bound.udp_addr().unwrap(), bound.counters());
    let front_counters = bound.front_counters();
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn(bound.run(async { drop(stopped.await) }));
    let by_websocket = Client::connect(address, &format!("/ws?target={target}")).await;
    let by_webtransport = Session::game(address).await;
    by_webtransport.echoes().await;
    let endpoint = front::client().await;
    let by_udp = within(endpoint.connect(udp)).await.unwrap();
    front::echoes(&by_udp).await;
    let mut transports: Vec<String> =
        clients(&socket, &[]).await.iter().map(|it| it["transport"].as_str().unwrap().to_owned()).collect();
    transports.sort_unstable();
    assert_eq!(transports, ["udp", "websocket", "webtransport"]);

    assert_eq!(order(&socket, &["ban", "127.0.0.0/8"]).await, "banned 127.0.0.0/8; ended flows: 3\n");
    assert_eq!(by_websocket.closed().await.0, 4403);
    assert_eq!(by_webtransport.closed().await.0, 4403);
    eventually("the flow of the front has ended", || front_counters.snapshot().flows == 0).await;
    eventually("all flows have ended", || counters.snapshot().clients == 0).await;
    assert!(clients(&socket, &[]).await.is_empty());
    let other = front::client().await;
    assert!(within(other.connect(udp)).await.is_err());
    stop.send(()).unwrap();
    within(running).await.unwrap().unwrap();
}

#[tokio::test]
async fn failed_commands_are_reported_in_one_line() {
    let (first, socket) = operated("refused").await;
    let relay = Running::start(first).await;
    let missing = socket.with_file_name("no-such.sock");
    let cases: [(&Path, &[&str], &str); 6] = [
        (&socket, &["kick", "7"], "error: there is no such flow"),
        (&socket, &["kick", "192.0.2.1"], "error: there is no such flow"),
        (&socket, &["unban", "192.0.2.1"], "error: there is no such ban"),
        (&socket, &["ban", "example.org"], "error: invalid value 'example.org'"),
        (&socket, &["kick", "everyone"], "error: invalid value 'everyone'"),
        (&missing, &["clients"], "error: no answer from the relay at "),
    ];
    for (socket, arguments, expected) in cases {
        let output = run(socket, arguments).await;
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{arguments:?}: {text}");
        assert!(text.starts_with(expected), "{arguments:?}: {text}");
    }
    let mut second = config(relay.address);
    second.admin.socket = Some(socket);
    let error = Relay::bind(second).await.unwrap_err().to_string();
    assert!(error.contains("another program listens on it"), "{error}");
}

#[tokio::test]
async fn commands_are_bounded_and_parsed_strictly() {
    let (config, socket) = operated("bounds").await;
    let _relay = Running::start(config).await;
    let answer = async |path: &str, body: &str| {
        let mut stream = UnixStream::connect(&socket).await.unwrap();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // The relay may have answered before it has received everything.
        let _ = stream.write_all(body.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = within(stream.read_to_end(&mut answer)).await;
        String::from_utf8(answer).unwrap()
    };
    for (path, body, status) in [
        ("/kick", String::new(), "400"),
        ("/kick", "{\"flow\":-1}".to_owned(), "400"),
        ("/kick", "{\"flow\":1,\"more\":1}".to_owned(), "400"),
        ("/ban", "{\"network\":\"everyone\"}".to_owned(), "400"),
        ("/ban", format!("{{\"network\":\"192.0.2.1\",\"x\":\"{}\"}}", "x".repeat(100_000)), "413"),
        ("/metrics", String::new(), "404"),
        ("/ban", "{\"network\":\"192.0.2.1\",\"seconds\":18446744073709551615}".to_owned(), "200"),
    ] {
        let answer = answer(path, &body).await;
        assert_eq!(answer.get(9..12), Some(status), "{path} {body:.40}: {answer}");
    }
}

#[tokio::test]
async fn clients_cannot_reach_operator_routes() {
    let (config, _socket) = operated("apart").await;
    let relay = Running::start(config).await;
    for path in ["/clients", "/bans"] {
        assert!(get(relay.address, path).await.0.starts_with("http/1.1 404"), "{path}");
    }
}
