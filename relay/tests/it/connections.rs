//! TCP connections that send no request, or never complete one.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::connect_async;

use crate::support::{Client, Running, Server, TIMEOUT, config, eventually, get, within};

async fn start(max_clients: usize, header_timeout: Duration) -> Running {
    let mut config = config(Server::echo().await);
    config.limits.max_clients = max_clients;
    config.limits.header_timeout = header_timeout;
    Running::start(config).await
}

/// Reads until the relay closes the connection, by FIN or RST.
async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = within(stream.read_to_end(&mut bytes)).await;
    String::from_utf8(bytes).unwrap()
}

async fn echoes(client: &mut Client) {
    client.send(b"hello").await;
    assert_eq!(client.receive().await, b"hello");
}

#[tokio::test]
async fn an_unfinished_request_header_ends_the_connection() {
    let relay = start(10, Duration::from_secs(5)).await;
    let mut client = relay.client().await;
    let health = "GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n";
    let mut streams = Vec::new();
    for part in ["", "GET /heal", &health[..health.len() - 2], health] {
        let mut stream = TcpStream::connect(relay.address).await.unwrap();
        stream.write_all(part.as_bytes()).await.unwrap();
        streams.push((part, stream));
    }
    for (part, stream) in &mut streams {
        let answer = read_to_end(stream).await;
        assert_eq!(answer.starts_with("HTTP/1.1 200"), *part == health, "{part:?}: {answer}");
    }
    eventually("four headers have timed out", || relay.snapshot().headers_timed_out == 4).await;
    echoes(&mut client).await;
    assert_eq!(relay.snapshot().connections_refused, 0);
}

#[tokio::test]
async fn a_slow_request_header_does_not_extend_its_timeout() {
    let relay = start(10, Duration::from_millis(300)).await;
    let mut stream = TcpStream::connect(relay.address).await.unwrap();
    let trickle = async {
        while stream.write_all(b"G").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within(trickle).await;
    eventually("a header has timed out", || relay.snapshot().headers_timed_out == 1).await;
}

#[tokio::test]
async fn a_flood_of_idle_connections_locks_out_clients_only_briefly() {
    let relay = start(2, Duration::from_secs(10)).await;
    let mut early = relay.client().await;
    let mut flood = Vec::new();
    for _ in 0..100 {
        flood.push(TcpStream::connect(relay.address).await.unwrap());
    }
    // The limit is 2 x 2 + 64 connections, including the WebSocket.
    eventually("33 connections are refused", || relay.snapshot().connections_refused == 100 - 67).await;
    assert_eq!(read_to_end(flood.last_mut().unwrap()).await, "");
    assert_eq!(relay.snapshot().headers_timed_out, 0, "the other connections are open");
    assert!(connect_async(format!("ws://{}/ws?target=game", relay.address)).await.is_err());
    echoes(&mut early).await;

    let mut late = within(async {
        loop {
            if let Ok((socket, _)) = connect_async(format!("ws://{}/ws?target=game", relay.address)).await {
                break Client(socket);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    echoes(&mut late).await;
    echoes(&mut early).await;
    eventually("67 headers have timed out", || relay.snapshot().headers_timed_out == 67).await;
}

#[tokio::test]
async fn closed_connections_free_their_slots() {
    let relay = start(1, TIMEOUT).await;
    for _ in 0..100 {
        assert_eq!(get(relay.address, "/healthz").await.1, "ok");
        drop(relay.client().await);
    }
    assert_eq!(relay.snapshot().connections_refused, 0);
}

#[tokio::test]
async fn a_websocket_counts_as_a_connection_until_it_closes() {
    let relay = start(8, TIMEOUT).await;
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(relay.client().await);
    }
    let mut idle = Vec::new();
    for _ in 0..2 * 8 + 64 {
        idle.push(TcpStream::connect(relay.address).await.unwrap());
    }
    eventually("eight connections are refused", || relay.snapshot().connections_refused == 8).await;
    drop(clients);
    eventually("no client is counted", || relay.snapshot().clients == 0).await;
    echoes(&mut relay.client().await).await;
}

#[tokio::test]
async fn a_silent_connection_does_not_delay_a_shutdown() {
    // The header timeout is longer than the test waits for the shutdown.
    let relay = start(1, 10 * TIMEOUT).await;
    let mut silent = TcpStream::connect(relay.address).await.unwrap();
    // Connections are accepted in the order of arrival, so the silent connection is being served by now.
    echoes(&mut relay.client().await).await;
    relay.stop().await;
    assert_eq!(read_to_end(&mut silent).await, "");
}
