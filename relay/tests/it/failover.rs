//! Game servers with several addresses, and the address that new clients get while one of them is down.

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rakwire_native::endpoint::{Endpoint, Options};
use rakwire_native::raknet::{Delivery, RakNet};
use rakwire_relay::Relay;
use rakwire_relay::protocol::ProtocolKind;
use serde_json::Value;
use tokio::net::UdpSocket;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::front;
use crate::operations::{Operated, eventually_in};
use crate::program::relay;
use crate::support::{Client, closed_port, config, directory, game, within};

const FIRST: &[u8] = b"\xFEfirst";
const SECOND: &[u8] = b"\xFEsecond";

/// Time limit for an answer, after which a client retries.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// A RakNet server that sends its name to each client.
struct GameServer {
    endpoint: Arc<Endpoint<RakNet>>,
    address: SocketAddr,
}

impl GameServer {
    async fn start(address: SocketAddr, name: &'static [u8]) -> Self {
        let endpoint = Endpoint::bind(address, Options::<RakNet>::server(8).unwrap()).await.unwrap();
        let endpoint = Arc::new(endpoint);
        let (accepting, address) = (Arc::clone(&endpoint), endpoint.local_addr());
        tokio::spawn(async move {
            while let Some(connection) = accepting.accept().await {
                tokio::spawn(async move {
                    // Sending fails once the client has left.
                    let _ = connection.send(name, Delivery::RELIABLE_ORDERED).await;
                    connection.closed().await;
                });
            }
        });
        Self { endpoint, address }
    }
}

/// Returns the name of the game server that a new client of the front reaches, or `None` without an answer.
async fn reached(front: SocketAddr) -> Option<Vec<u8>> {
    let endpoint = front::client().await;
    let connection = endpoint.connect(front).await.ok()?;
    let name = connection.recv().await?.bytes.to_vec();
    connection.disconnect().await;
    Some(name)
}

#[tokio::test]
async fn new_raknet_clients_reach_the_server_that_is_up() {
    let any = "127.0.0.1:0".parse().unwrap();
    let (first, second) = (GameServer::start(any, FIRST).await, GameServer::start(any, SECOND).await);
    let mut config = config(first.address);
    game(&mut config).kind = ProtocolKind::RakNet;
    game(&mut config).spare_addresses = vec![second.address.to_string().parse().unwrap()];
    config.udp.listen = Some(any);
    config.admin.listen = Some(any);
    let bound = Relay::bind(config).await.unwrap();
    let (front, admin) = (bound.udp_addr().unwrap(), bound.admin_addr().unwrap());
    let (_stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(bound.run(async { drop(stopped.await) }));
    let until = async |name: &[u8]| {
        let is_reached = async || {
            timeout(ANSWER_TIMEOUT, reached(front)).await.is_ok_and(|found| found.as_deref() == Some(name))
        };
        within(async { while !is_reached().await {} }).await;
    };
    until(FIRST).await;

    first.endpoint.close().await;
    until(SECOND).await;
    for _ in 0..3 {
        assert_eq!(within(reached(front)).await.as_deref(), Some(SECOND), "no client is lost any more");
    }

    let up = |address: SocketAddr, is_up: u8| {
        format!("rakwire_relay_target_address_up{{target=\"game\",address=\"{address}\"}} {is_up}")
    };
    eventually_in(admin, &up(first.address, 0)).await;
    let back = GameServer::start(first.address, FIRST).await;
    eventually_in(admin, &up(back.address, 1)).await;
    second.endpoint.close().await;
    until(FIRST).await;
}

/// Starts a game server that answers each datagram with its name.
async fn answering(name: &'static [u8]) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 2_048];
        loop {
            let (_, from) = socket.recv_from(&mut buffer).await.unwrap();
            socket.send_to(name, from).await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn new_clients_move_from_an_unreachable_address_and_the_move_is_logged_once() {
    let (_closed, one) = closed_port();
    let two = answering(SECOND).await;
    let file = directory("failover").join("relay.toml");
    let target = format!("[targets.game]\naddress = \"{one}\"\nspare_addresses = [\"{two}\"]\n");
    fs::write(&file, target).unwrap();
    let mut command = relay();
    command.args(["--config", file.to_str().unwrap(), "--log-format", "json"]);
    command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]).stderr(Stdio::piped());
    let relay = Operated::run(&mut command);
    let address = relay.program.address;
    let reached = async || {
        let mut client = Client::connect(address, "/ws?target=game").await;
        client.send(b"hello").await;
        // The error about the closed port is reported when a later datagram is sent.
        client.send(b"hello").await;
        client.receive().await
    };
    within(async { while timeout(ANSWER_TIMEOUT, reached()).await.is_err() {} }).await;
    for _ in 0..3 {
        assert_eq!(reached().await, SECOND, "no client is lost any more");
    }
    relay.signal("-TERM");
    let log = relay.ended().await;
    let lines = |message: &str| -> Vec<&Value> {
        log.iter().filter(|line| line["message"] == message && line["level"] == "WARN").collect()
    };
    let moves = lines("new clients of the target use another address");
    assert_eq!(moves.len(), 1, "{log:?}");
    assert_eq!(moves[0]["old"], one.to_string());
    assert_eq!(moves[0]["new"], two.to_string());
    let unreachable = lines("the game server is unreachable; further reports are only counted");
    assert_eq!(unreachable[0]["reason"], "nothing listens on its port", "{log:?}");
}
