//! Native UDP clients of a front, and the relay around it.

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::time::Duration;

use rakwire_native::endpoint::{Connection, Endpoint, Options};
use rakwire_native::raknet::{Delivery, RakNet};
use rakwire_relay::config::TargetSource;
use rakwire_relay::protocol::ProtocolKind;
use rakwire_relay::{Config, Relay};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::program::{Program, relay};
use crate::support::{Client, Server, config, eventually, game, get, within};

/// Starts a game server that echoes every message.
pub(crate) async fn echo() -> SocketAddr {
    let server = Endpoint::bind("127.0.0.1:0", Options::<RakNet>::server(8).unwrap()).await.unwrap();
    let address = server.local_addr();
    tokio::spawn(async move {
        while let Some(connection) = server.accept().await {
            tokio::spawn(async move {
                while let Some(message) = connection.recv().await {
                    // Sending fails once the client has left.
                    let _ = connection.send(&message.bytes, message.delivery).await;
                }
            });
        }
    });
    address
}

/// The first bytes of request 1 and of a PROXY header.
const REQUEST_1: u8 = 5;
const PROXY_HEADER: u8 = b'\r';

async fn with_front() -> Config {
    with_front_before(echo().await)
}

fn with_front_before(server: SocketAddr) -> Config {
    let mut config = config(server);
    game(&mut config).kind = ProtocolKind::RakNet;
    config.udp.listen = Some("127.0.0.1:0".parse().unwrap());
    config.admin.listen = Some("127.0.0.1:0".parse().unwrap());
    // The departure of a client is detected by its silence.
    config.limits.idle_timeout = Duration::from_secs(5);
    config.limits.ping_interval = config.limits.idle_timeout;
    config
}

pub(crate) async fn client() -> Endpoint<RakNet> {
    client_at("127.0.0.1:0").await
}

pub(crate) async fn client_at(local: &str) -> Endpoint<RakNet> {
    Endpoint::bind(local, Options::<RakNet>::client().unwrap()).await.unwrap()
}

pub(crate) async fn echoes(connection: &Connection<RakNet>) {
    connection.send(b"\xFEhello", Delivery::RELIABLE_ORDERED).await.unwrap();
    assert_eq!(within(connection.recv()).await.unwrap().bytes, b"\xFEhello");
}

#[tokio::test]
async fn a_draining_relay_keeps_front_clients_and_accepts_no_others() {
    let mut config = with_front().await;
    config.drain_timeout = Duration::from_secs(3_600);
    let bound = Relay::bind(config).await.unwrap();
    let (front, admin) = (bound.udp_addr().unwrap(), bound.admin_addr().unwrap());
    let counters = bound.front_counters();
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn(bound.run(async { drop(stopped.await) }));
    let endpoint = client().await;
    let connection = within(endpoint.connect(front)).await.unwrap();
    echoes(&connection).await;
    let (_, metrics) = get(admin, "/metrics").await;
    assert!(metrics.lines().any(|line| line == "rakwire_relay_front_clients 1"), "{metrics}");

    stop.send(()).unwrap();
    within(async {
        while !get(admin, "/readyz").await.0.starts_with("http/1.1 503") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let other = client().await;
    let refused = within(other.connect(front)).await;
    assert!(refused.is_err(), "a relay that shuts down refuses new clients");
    echoes(&connection).await;
    assert!(!running.is_finished());
    connection.disconnect().await;
    within(running).await.unwrap().unwrap();
    assert_eq!(counters.snapshot().flows, 0);
}

#[tokio::test]
async fn front_clients_are_disconnected_when_the_drain_time_is_over() {
    let mut config = with_front().await;
    config.drain_timeout = Duration::ZERO;
    let bound = Relay::bind(config).await.unwrap();
    let (front, counters) = (bound.udp_addr().unwrap(), bound.front_counters());
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn(bound.run(async { drop(stopped.await) }));
    let endpoint = client().await;
    let connection = within(endpoint.connect(front)).await.unwrap();
    echoes(&connection).await;
    stop.send(()).unwrap();
    within(running).await.unwrap().unwrap();
    eventually("no flow is counted", || counters.snapshot().flows == 0).await;
}

#[tokio::test]
async fn front_clients_count_as_clients() {
    let mut config = with_front().await;
    config.limits.max_clients = 1;
    let bound = Relay::bind(config).await.unwrap();
    let front = bound.udp_addr().unwrap();
    let (_stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(bound.run(async { drop(stopped.await) }));
    let (one, two) = (client().await, client().await);
    let connection = within(one.connect(front)).await.unwrap();
    assert!(within(two.connect(front)).await.is_err(), "the maximum is one client");
    echoes(&connection).await;
}

#[tokio::test]
async fn a_detached_flow_is_evicted_for_a_front_client() {
    let mut config = with_front().await;
    config.limits.max_clients = 1;
    let bound = Relay::bind(config).await.unwrap();
    let (front, address, counters) = (bound.udp_addr().unwrap(), bound.local_addr(), bound.counters());
    let (_stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(bound.run(async { drop(stopped.await) }));
    let (page, _) = Client::with_control(address, "/ws?target=game").await;
    let endpoint = client().await;
    assert!(within(endpoint.connect(front)).await.is_err(), "the flow of a connected client is not evicted");
    drop(page);
    eventually("the flow is detached", || counters.snapshot().all().detached == 1).await;
    let connection = within(endpoint.connect(front)).await.unwrap();
    echoes(&connection).await;
    assert_eq!(counters.snapshot().all().detached, 0);
}

/// Returns the first datagram that the server receives, and its source.
async fn first_of(config: Config, server: &Server, source: Ipv4Addr) -> (Vec<u8>, SocketAddr) {
    let bound = Relay::bind(config).await.unwrap();
    let front = bound.udp_addr().unwrap();
    let counters = bound.counters();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(bound.run(async { drop(stopped.await) }));
    let endpoint = Endpoint::bind((source, 0), Options::<RakNet>::client().unwrap()).await.unwrap();
    let connecting = tokio::spawn(async move { endpoint.connect(front).await.map(drop) });
    let first = loop {
        let (datagram, from) = server.receive().await;
        // The relay itself also sends pings.
        if matches!(datagram.first(), Some(&(REQUEST_1 | PROXY_HEADER))) {
            break (datagram, from);
        }
    };
    let counted = *counters.snapshot().all();
    assert_eq!(
        (counted.clients, counted.flows),
        (1, 1),
        "clients of the front count as clients of their target"
    );
    connecting.abort();
    stop.send(()).unwrap();
    within(running).await.unwrap().unwrap();
    eventually("no client is counted", || counters.snapshot().all().clients == 0).await;
    first
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn each_front_client_has_a_stable_pool_address() {
    let mut from = Vec::new();
    for source in [Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3), Ipv4Addr::new(127, 0, 0, 2)] {
        let server = Server::bind().await;
        let mut config = with_front_before(server.address());
        game(&mut config).source = TargetSource::LoopbackPool;
        from.push(first_of(config, &server, source).await.1.ip());
    }
    assert!(from[0].is_loopback() && from[0] != IpAddr::from(Ipv4Addr::LOCALHOST), "{from:?}");
    assert!(from[0] == from[2] && from[0] != from[1], "{from:?}");
}

#[tokio::test]
async fn a_server_behind_the_front_can_read_client_addresses() {
    let server = Server::bind().await;
    let mut config = with_front_before(server.address());
    game(&mut config).proxy_protocol = true;
    let source = Ipv4Addr::new(127, 0, 0, 1);
    let (datagram, from) = first_of(config, &server, source).await;
    assert_eq!(datagram[..12], *b"\r\n\r\n\0\r\nQUIT\n");
    assert_eq!(datagram[16..20], source.octets());
    assert_eq!(datagram[28], REQUEST_1, "request 1 is behind the header");
    assert_eq!(from.ip(), IpAddr::from(Ipv4Addr::LOCALHOST));
}

#[tokio::test]
async fn the_log_contains_front_clients() {
    let target = format!("game={},kind=raknet", echo().await);
    let mut command = relay();
    command.args(["--listen", "127.0.0.1:0", "--target", &target, "--udp-listen", "127.0.0.1:0"]);
    command
        .args(["--idle-timeout", "5s", "--ping-interval", "5s", "--log-format", "json"])
        .stderr(Stdio::piped());
    let mut program = Program::run(&mut command);
    let mut lines = BufReader::new(program.child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let udp = lines.find_map(|line| {
        let line: Value = serde_json::from_str(&line).unwrap();
        line["udp"].as_str().map(|address| address.parse::<SocketAddr>().unwrap())
    });
    let endpoint = client().await;
    let connection = within(endpoint.connect(udp.unwrap())).await.unwrap();
    echoes(&connection).await;
    connection.disconnect().await;
    let from = endpoint.local_addr().to_string();
    let of_client = move || -> Vec<String> {
        let text = |line: String| serde_json::from_str::<Value>(&line).unwrap();
        let mine = lines.map(text).filter(|line| line["client"].as_str() == Some(&from));
        mine.take(2).map(|line| line["message"].as_str().unwrap().to_owned()).collect()
    };
    let found = within(tokio::task::spawn_blocking(of_client)).await.unwrap();
    assert_eq!(found, ["client connected", "client closed"]);
}
