//! Two relays behind HAProxy, of which one dies.

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
use crate::support::{Flow, Server, connect_from, within};
use crate::tls::connect_over;

const HAPROXY: &str = include_str!("../../packaging/proxies/haproxy-relays.cfg");

/// Clients, each with an address of its own.
const CLIENTS: u8 = 6;

/// The example for these two relays.
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

/// One client, which knows its flow.
struct Player {
    address: Ipv4Addr,
    socket: WebSocketStream<TlsStream<TcpStream>>,
    flow: Flow,
}

/// What a client finds.
enum Answer {
    Flow(Box<Player>),
    Closed(u16),
}

/// Opens a WebSocket with this query. As a page does, it tries again while the proxy has no relay for it.
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
                Err(tungstenite::Error::Http(answer)) => assert_eq!(answer.status(), 503),
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
    /// Whether the game server answers. A client whose relay is gone loses its connection.
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

#[tokio::test]
async fn clients_of_a_relay_that_dies_go_on_at_the_other_one() {
    let server = Server::echo().await;
    let key = SigningKey::ed25519().unwrap();
    let key_path = key_file("many-relays", &key);
    let arguments =
        ["--trusted-proxy", "127.0.0.1/32", "--proxy-protocol", "--allow-any-origin", "--token-key"];
    let arguments = [&arguments[..], &[key_path.to_str().unwrap()]].concat();
    let mut first = Program::start_with(server, &arguments, Stdio::null());
    let second = Program::start_with(server, &arguments, Stdio::null());
    let relays = [first.address, second.address];
    let setup = Setup::new("many-relays", first.address);
    let proxy = setup.start(|setup, address| haproxy(setup, address, relays)).await;

    let token = token(&key, |_| {});
    let with_token = format!("&token={token}");
    let mut players = Vec::new();
    for number in 2..2 + CLIENTS {
        let mut player = join(&proxy, Ipv4Addr::new(127, 0, 0, number), &with_token).await;
        assert!(player.plays().await && !player.flow.resumed);
        players.push(player);
    }

    first.child.kill().unwrap();
    let (mut stayed, mut lost) = (Vec::new(), Vec::new());
    for mut player in players {
        if player.plays().await { stayed.push(player) } else { lost.push(player) }
    }
    assert!(!stayed.is_empty() && !lost.is_empty(), "each relay had clients: {} stayed", stayed.len());

    for player in &lost {
        let resume = format!("&resume={}", player.flow.resume);
        let closed = open(&proxy, player.address, &resume).await;
        assert!(matches!(closed, Answer::Closed(4401)), "the other relay knows no flow: it wants a token");
        let mut again = join(&proxy, player.address, &format!("{resume}{with_token}")).await;
        assert!(!again.flow.resumed && again.flow.resume != player.flow.resume, "a new flow");
        assert!(again.plays().await);
    }
    for player in stayed {
        let (address, resume) = (player.address, format!("&resume={}", player.flow.resume));
        drop(player);
        let mut again = join(&proxy, address, &resume).await;
        assert!(again.flow.resumed, "its relay is still there, and the way to it the same");
        assert!(again.plays().await);
    }
}
