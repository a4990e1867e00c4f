//! Two relays behind HAProxy, one of which fails or is taken out of rotation, and the state that they do not share.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use rakwire_relay::flow::FLOW_PROTOCOL;
use rakwire_relay::token::SigningKey;
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::admission::{key_file, token};
use crate::program::Program;
use crate::proxies::{NAME, Proxy, Setup, daemon, display, replaced};
use crate::support::{Client, Flow, Running, Server, config, connect_from, within};
use crate::tls::connect_over;

const HAPROXY: &str = include_str!("../../packaging/proxies/haproxy-relays.cfg");

/// The number of clients, each with its own address.
const CLIENTS: u8 = 6;

/// Returns a command that runs HAProxy with the example configuration and these two relays.
fn haproxy(setup: &Setup, address: SocketAddr, relays: [SocketAddr; 2]) -> Command {
    let text = replaced(
        HAPROXY,
        &[
            ("bind :443 ssl", &format!("bind {address} ssl")),
            ("relay1 10.0.0.11:8080", &format!("relay1 {}", relays[0])),
            ("relay2 10.0.0.12:8080", &format!("relay2 {}", relays[1])),
            ("/etc/ssl/play.example.org/combined.pem", &display(&setup.combined)),
        ],
    );
    let mut command = daemon("haproxy");
    command.args(["-db", "-f"]).arg(setup.write("haproxy.cfg", &text));
    command
}

/// A client that knows its flow.
struct Player {
    address: Ipv4Addr,
    socket: WebSocketStream<TlsStream<TcpStream>>,
    flow: Flow,
}

/// The outcome of a client's request.
enum Answer {
    Flow(Box<Player>),
    Closed(u16),
}

/// Opens a WebSocket with this query. Like a page, it retries while the proxy has no relay available.
async fn open(proxy: &Proxy, address: Ipv4Addr, query: &str) -> Answer {
    let connector = proxy.authority.connector();
    let mut socket = within(async {
        loop {
            let stream = connect_from(address.into(), proxy.address).await;
            let stream = connect_over(&connector, stream, NAME).await;
            let mut request = format!("wss://{NAME}/ws?target=game{query}").into_client_request().unwrap();
            request.headers_mut().insert("sec-websocket-protocol", FLOW_PROTOCOL.parse().unwrap());
            match client_async(request, stream).await {
                Ok((socket, _)) => return socket,
                // No relay was available, or the relay stopped before it answered.
                Err(tungstenite::Error::Http(answer)) => {
                    assert!(matches!(answer.status().as_u16(), 502 | 503))
                }
                Err(error) => panic!("{error}"),
            }
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    match within(socket.next()).await {
        Some(Ok(Message::Text(text))) => {
            let flow = serde_json::from_str(&text).unwrap();
            Answer::Flow(Box::new(Player { address, socket, flow }))
        }
        Some(Ok(Message::Close(Some(frame)))) => Answer::Closed(frame.code.into()),
        other => panic!("{other:?}"),
    }
}

async fn join(proxy: &Proxy, address: Ipv4Addr, query: &str) -> Player {
    match open(proxy, address, query).await {
        Answer::Flow(player) => *player,
        Answer::Closed(code) => panic!("closed with {code}"),
    }
}

impl Player {
    /// Returns true if the game server answers. A client loses its connection if its relay has stopped.
    async fn plays(&mut self) -> bool {
        let number = [self.address.octets()[3]];
        if within(self.socket.send(Message::binary(number.to_vec()))).await.is_err() {
            return false;
        }
        loop {
            match within(self.socket.next()).await {
                Some(Ok(Message::Binary(echo))) => return echo[..] == number,
                Some(Ok(Message::Close(_)) | Err(_)) | None => return false,
                Some(Ok(_)) => {}
            }
        }
    }
}

/// Two relays behind HAProxy, both with clients.
struct Relays {
    first: Program,
    _second: Program,
    proxy: Proxy,
    key: SigningKey,
    players: Vec<Player>,
}

/// Returns a query with a new token, because a token is valid only briefly.
fn with_token(key: &SigningKey) -> String {
    format!("&token={}", token(key, |_| {}))
}

impl Relays {
    async fn start(name: &str) -> Self {
        let server = Server::echo().await;
        let key = SigningKey::ed25519().unwrap();
        let key_path = key_file(name, &key);
        let mut arguments = vec!["--trusted-proxy", "127.0.0.1/32", "--proxy-protocol", "--allow-any-origin"];
        arguments.extend(["--drain-timeout", "3600", "--token-key", key_path.to_str().unwrap()]);
        let first = Program::start_with(server, &arguments, Stdio::null());
        let second = Program::start_with(server, &arguments, Stdio::null());
        let relays = [first.address, second.address];
        let setup = Setup::new(name, first.address);
        let proxy = setup.start(|setup, address| haproxy(setup, address, relays)).await;

        let mut players = Vec::new();
        for number in 2..2 + CLIENTS {
            let mut player = join(&proxy, Ipv4Addr::new(127, 0, 0, number), &with_token(&key)).await;
            assert!(player.plays().await && !player.flow.resumed);
            players.push(player);
        }
        Self { first, _second: second, proxy, key, players }
    }
}

#[tokio::test]
async fn clients_of_a_dead_relay_continue_on_the_other_relay() {
    let Relays { mut first, _second, proxy, key, players } = Relays::start("relay-dies").await;
    first.child.kill().unwrap();
    let (mut stayed, mut lost) = (Vec::new(), Vec::new());
    for mut player in players {
        if player.plays().await { stayed.push(player) } else { lost.push(player) }
    }
    assert!(!stayed.is_empty() && !lost.is_empty(), "each relay has clients: {} stayed", stayed.len());

    for player in &lost {
        let resume = format!("&resume={}", player.flow.resume);
        let closed = open(&proxy, player.address, &resume).await;
        assert!(
            matches!(closed, Answer::Closed(4401)),
            "the other relay does not have the flow, and requires a token"
        );
        let mut again = join(&proxy, player.address, &format!("{resume}{}", with_token(&key))).await;
        assert!(!again.flow.resumed && again.flow.resume != player.flow.resume, "the client has a new flow");
        assert!(again.plays().await);
    }
    for player in stayed {
        let (address, resume) = (player.address, format!("&resume={}", player.flow.resume));
        drop(player);
        let mut again = join(&proxy, address, &resume).await;
        assert!(again.flow.resumed, "the proxy chooses the same relay, which has the flow");
        assert!(again.plays().await);
    }
}

/// A relay is updated: its clients stay until they leave, and new clients get the other relay.
#[tokio::test]
async fn clients_keep_playing_on_a_relay_taken_out_of_rotation() {
    let Relays { mut first, _second, proxy, key, mut players } = Relays::start("relay-out").await;
    first.signal("-TERM");
    within(async {
        while TcpStream::connect(first.address).await.is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;

    for number in 2 + CLIENTS..2 + 2 * CLIENTS {
        let mut player = join(&proxy, Ipv4Addr::new(127, 0, 0, number), &with_token(&key)).await;
        assert!(player.plays().await, "new clients play at the other relay");
    }
    for player in &mut players {
        assert!(player.plays().await, "connected clients keep playing");
    }
    assert_eq!(first.child.try_wait().unwrap(), None, "the relay waits for its clients");
    drop(players);
    let status = within(tokio::task::spawn_blocking(move || first.child.wait().unwrap())).await.unwrap();
    assert!(status.success(), "{status}");
}

/// Relays share no state: each counts the uses of a token separately.
#[tokio::test]
async fn a_single_use_token_admits_one_connection_to_each_relay() {
    let key = SigningKey::ed25519().unwrap();
    let mut config = config(Server::echo().await);
    config.tokens.keys = vec![key_file("each-relay", &key)];
    config.tokens.single_use = true;
    let path = format!("/ws?target=game&token={}", token(&key, |_| {}));
    for relay in [Running::start(config.clone()).await, Running::start(config).await] {
        let mut client = Client::connect(relay.address, &path).await;
        client.send(b"hello").await;
        assert_eq!(client.receive().await, b"hello");
        assert_eq!(Client::connect(relay.address, &path).await.closed().await.0, 4401);
    }
}
