//! PROXY protocol headers on accepted connections.

use std::fs;
use std::net::Ipv4Addr;
use std::pin::pin;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use rakwire_relay::Config;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

use crate::support::{Running, Server, config, connect_from, directory, eventually, game, within};

const CLIENT: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);

/// Returns the PROXY header of a TCP connection of [`CLIENT`] over IPv4.
pub(crate) fn header() -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    header.extend(CLIENT.octets());
    header.extend([192, 0, 2, 1, 0x12, 0x34, 0, 80]);
    header
}

/// Returns the configuration of a relay with trusted proxies at 127.0.0.1, and with a game server that echoes the
/// client's address.
async fn behind_proxy() -> Config {
    let mut config = config(Server::echo().await);
    config.admission.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    config.admission.allow_any_origin = true;
    config.admission.proxy_protocol = true;
    game(&mut config).proxy_protocol = true;
    config
}

async fn ends(mut stream: TcpStream) {
    let mut answer = Vec::new();
    // The relay closes the connection by FIN or RST.
    let _ = within(stream.read_to_end(&mut answer)).await;
    assert!(!answer.starts_with(b"HTTP/1.1 1") && !answer.starts_with(b"HTTP/1.1 2"), "{answer:?}");
}

#[tokio::test]
async fn a_trusted_proxy_names_the_client() {
    let relay = Running::start(behind_proxy().await).await;
    let mut stream = TcpStream::connect(relay.address).await.unwrap();
    // The header arrives in two parts, as on a network.
    let header = header();
    let (first, rest) = header.split_at(20);
    stream.write_all(first).await.unwrap();
    sleep(Duration::from_millis(20)).await;
    stream.write_all(rest).await.unwrap();
    let url = format!("ws://{}/ws?target=game", relay.address);
    let (mut client, _) = within(client_async(url, stream)).await.unwrap();
    within(client.send(Message::binary(&b"hello"[..]))).await.unwrap();
    let echo = within(client.next()).await.unwrap().unwrap().into_data();
    assert_eq!(echo[16..20], CLIENT.octets());
}

#[tokio::test]
async fn a_trusted_proxy_must_send_a_header_in_time() {
    let mut config = behind_proxy().await;
    config.limits.header_timeout = Duration::from_secs(10);
    let relay = Running::start(config).await;
    let mut plain = TcpStream::connect(relay.address).await.unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n").await.unwrap();
    ends(plain).await;
    eventually("the missing header is counted", || relay.snapshot().proxy_headers_refused == 1).await;
    let mut streams = Vec::new();
    for part in [0, 10, 20] {
        let mut partial = TcpStream::connect(relay.address).await.unwrap();
        partial.write_all(&header()[..part]).await.unwrap();
        streams.push(partial);
    }
    for partial in streams {
        ends(partial).await;
    }
    eventually("the three timeouts are counted", || relay.snapshot().handshakes_timed_out == 3).await;
}

#[tokio::test]
async fn proxy_headers_of_untrusted_peers_are_rejected() {
    let relay = Running::start(behind_proxy().await).await;
    let elsewhere = Ipv4Addr::new(127, 0, 0, 2).into();
    let mut lying = connect_from(elsewhere, relay.address).await;
    lying.write_all(&header()).await.unwrap();
    ends(lying).await;
    let honest = connect_from(elsewhere, relay.address).await;
    let url = format!("ws://{}/ws?target=game", relay.address);
    let (mut client, _) = within(client_async(url, honest)).await.unwrap();
    within(client.send(Message::binary(&b"hello"[..]))).await.unwrap();
    let echo = within(client.next()).await.unwrap().unwrap().into_data();
    assert_eq!(echo[16..20], [127, 0, 0, 2]);
}

#[tokio::test]
async fn a_ban_applies_behind_a_proxy() {
    let mut config = behind_proxy().await;
    let bans = directory("proxy-bans").join("bans");
    fs::write(&bans, format!("{CLIENT}\n")).unwrap();
    config.admission.bans = Some(bans);
    let relay = Running::start(config).await;
    let connect = async || {
        let mut stream = TcpStream::connect(relay.address).await.unwrap();
        stream.write_all(&header()).await.unwrap();
        stream
    };
    let url = format!("ws://{}/ws?target=game", relay.address);
    let (client, _) = within(client_async(url, connect().await)).await.unwrap();
    let mut client = pin!(client);
    let Some(Ok(Message::Close(Some(frame)))) = within(client.next()).await else { panic!("no close frame") };
    assert_eq!((u16::from(frame.code), frame.reason.as_str()), (4403, "this address is banned"));
    assert_eq!(relay.snapshot().bans_refused, 1);

    // The relay closes the connection after any other input.
    let mut stream = connect().await;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.ends_with("this address is banned"), "{answer}");

    // During a flood, the relay closes most connections before it reads a request.
    let mut flood = Vec::new();
    while relay.snapshot().bans_refused < 10 {
        flood.push(connect().await);
        sleep(Duration::from_millis(5)).await;
    }
    ends(flood.pop().unwrap()).await;
}
