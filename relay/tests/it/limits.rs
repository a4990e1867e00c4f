//! Clients and servers that send too much, or do not read.

use std::num::NonZeroUsize;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use rakwire_relay::{CloseKind, DropReason};
use tokio::io::AsyncWriteExt;
use tokio::net::UdpSocket;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::Message;

use crate::support::{Client, Running, Server, TIMEOUT, config, eventually, game, within};

#[tokio::test]
async fn a_message_above_the_limit_is_refused() {
    let server = Server::bind().await;
    let mut config = config(server.address());
    config.limits.max_datagram = 100;
    let relay = Running::start(config).await;
    let mut client = relay.client().await;
    client.send(&[1; 100]).await;
    assert_eq!(server.receive().await.0.len(), 100);
    client.send(&[1; 101]).await;
    assert_eq!(
        client.closed().await,
        (1009, "message of 101 bytes; a datagram carries at most 100".to_owned())
    );
}

#[tokio::test]
async fn a_huge_message_is_refused_by_its_frame_header() {
    let relay = Running::start(config(Server::echo().await)).await;
    let mut client = relay.client().await;
    // A binary frame of 1 GiB, of which only the header is sent.
    let mut head = vec![0x82, 0xff];
    head.extend((1u64 << 30).to_be_bytes());
    head.extend([0; 4]);
    client.tcp().write_all(&head).await.unwrap();
    let (code, text) = client.closed().await;
    assert_eq!(code, 1009);
    assert!(text.starts_with("message of 1073741824 bytes"), "{text}");
}

#[tokio::test]
async fn the_sender_of_a_huge_message_receives_the_close_code() {
    let relay = Running::start(config(Server::echo().await)).await;
    let mut client = relay.client().await;
    client.message(Message::binary(vec![0; 512 * 1024])).await;
    assert_eq!(client.closed().await.0, 1009);
    assert_eq!(relay.snapshot().closes(CloseKind::MessageTooBig), 1);
}

#[tokio::test]
async fn an_oversized_datagram_is_dropped_entirely() {
    let server = Server::bind().await;
    let relay = Running::start(config(server.address())).await;
    let mut client = relay.client().await;
    client.send(b"hello").await;
    let (_, from) = server.receive().await;
    for len in [2049, 2050, 60_000, 2048] {
        server.send(&vec![3; len], from).await;
    }
    assert_eq!(client.receive().await.len(), 2048);
    assert_eq!(relay.snapshot().drops(DropReason::DatagramTooBig), 3);
}

#[tokio::test]
async fn a_full_relay_refuses_clients_until_one_vanishes() {
    let server = Server::bind().await;
    let mut config = config(server.address());
    config.limits.max_clients = 1;
    let relay = Running::start(config).await;
    let mut first = relay.client().await;
    first.send(b"hello").await;
    let (_, from) = server.receive().await;
    assert!(UdpSocket::bind(("0.0.0.0", from.port())).await.is_err(), "the session holds its port");
    let (code, text) = relay.client().await.closed().await;
    assert_eq!(
        (code, text.as_str()),
        (1013, "this relay has reached its maximum of 1 clients; try again later")
    );

    // The connection ends without a close frame.
    drop(first);
    eventually("no client is counted", || relay.snapshot().clients == 0).await;
    assert_eq!(relay.snapshot().closes(CloseKind::ClientVanished), 1);
    let is_free = || std::net::UdpSocket::bind(("0.0.0.0", from.port())).is_ok();
    eventually("the port is free again", is_free).await;
    let mut next = within(async {
        loop {
            // The slot is freed shortly after the session ends. Before, the relay closes new connections.
            let mut client = relay.client().await;
            let _ = client.0.send(Message::binary(&b"again"[..])).await;
            tokio::select! {
                _ = server.receive_until(b"again") => break client,
                _ = client.0.next() => {}
            }
        }
    })
    .await;
    next.send(b"still here").await;
    assert_eq!(server.receive().await.0, b"still here");
}

#[tokio::test]
async fn a_client_without_pongs_is_disconnected() {
    let server = Server::bind().await;
    let mut config = config(server.address());
    config.limits.ping_interval = Duration::from_secs(2);
    let relay = Running::start(config).await;
    let mut silent = relay.client().await;
    let mut living = relay.client().await;
    silent.send(b"silent").await;
    let (_, from) = server.receive().await;
    living.send(b"living").await;
    server.receive().await;
    // Reading the connection also answers pings.
    let reader = tokio::spawn(async move { living.receive().await });
    let gone = || relay.snapshot().closes(CloseKind::Unresponsive) == 1;
    within(async {
        while !gone() {
            server.send(b"the server goes on", from).await;
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    eventually("the session of the silent client has ended", || relay.snapshot().clients == 1).await;
    assert!(!reader.is_finished(), "the client that answers pings stays connected");
    reader.abort();
}

/// Sends numbered datagrams until the relay drops some. Returns the number of sent datagrams.
async fn send_until_dropped(relay: &Running, server: &Server, to: std::net::SocketAddr) -> u32 {
    let mut datagram = [0; 1400];
    let mut count = 0u32;
    within(async {
        while relay.snapshot().drops(DropReason::ClientQueueFull) < 1000 {
            for _ in 0..50 {
                count += 1;
                datagram[..4].copy_from_slice(&count.to_be_bytes());
                server.send(&datagram, to).await;
            }
            sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    count
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_the_oldest_datagrams() {
    let server = Server::bind().await;
    let mut config = config(server.address());
    game(&mut config).queue_age = TIMEOUT;
    let relay = Running::start(config).await;
    let mut stalled = relay.client().await;
    let mut other = relay.client().await;
    stalled.send(b"hello").await;
    let (_, to_stalled) = server.receive().await;
    other.send(b"hello").await;
    let (_, to_other) = server.receive().await;

    send_until_dropped(&relay, &server, to_stalled).await;
    server.send(b"you are not affected", to_other).await;
    assert_eq!(other.receive().await, b"you are not affected");
    assert_eq!(relay.snapshot().clients, 2);

    server.send(b"last", to_stalled).await;
    let mut numbers = Vec::new();
    loop {
        let datagram = stalled.receive().await;
        if datagram == b"last" {
            break;
        }
        numbers.push(u32::from_be_bytes(datagram[..4].try_into().unwrap()));
    }
    assert!(numbers.is_sorted(), "datagrams arrive in order");
    let snapshot = relay.snapshot();
    assert_eq!(
        numbers.len() as u64 + 2,
        snapshot.to_client.datagrams,
        "every datagram that was not dropped has arrived"
    );
    let gap = numbers.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(gap >= 1000, "the largest gap is {gap} datagrams");
}

/// The flow of a stalled client waits for its return, without delaying other clients.
#[tokio::test]
async fn a_stalled_client_is_disconnected_during_a_server_flood() {
    let server = Server::bind().await;
    let mut config = config(server.address());
    config.limits.write_stall_timeout = Duration::from_millis(300);
    let relay = Running::start(config).await;
    let (mut stalled, flow) = Client::with_control(relay.address, "/ws?target=game").await;
    let mut other = relay.client().await;
    stalled.send(b"hello").await;
    let (_, to_stalled) = server.receive().await;
    other.send(b"hello").await;
    let (_, to_other) = server.receive().await;

    let is_given_up = || relay.snapshot().closes(CloseKind::ClientVanished) == 1;
    within(async {
        while !is_given_up() {
            for _ in 0..50 {
                server.send(&[5; 1400], to_stalled).await;
            }
            server.send(b"you are not affected", to_other).await;
            assert_eq!(other.receive().await, b"you are not affected");
        }
    })
    .await;
    eventually("the flow of the stalled client is detached", || relay.snapshot().all().detached == 1).await;

    // The remaining data is from the sockets' buffers, and no close frame follows it.
    while let Some(Ok(message)) = within(stalled.0.next()).await {
        assert!(matches!(message, Message::Binary(_) | Message::Text(_) | Message::Ping(_)), "{message:?}");
    }
    let path = format!("/ws?target=game&resume={}", flow.resume);
    let (mut client, flow) = Client::with_control(relay.address, &path).await;
    assert!(flow.resumed);
    client.send(b"reading again").await;
    assert_eq!(server.receive_until(b"reading again").await, to_stalled);
    other.send(b"still here").await;
    assert_eq!(server.receive_until(b"still here").await, to_other);
}

#[tokio::test]
async fn a_burst_passes_the_shortest_queue_if_the_client_keeps_up() {
    let server = Server::bind().await;
    let mut config = config(server.address());
    config.limits.queue = NonZeroUsize::MIN;
    let relay = Running::start(config).await;
    let mut client = relay.client().await;
    for burst in 0..20u8 {
        client.send(b"go").await;
        let (_, from) = server.receive().await;
        for number in 0..50 {
            server.send(&[burst, number], from).await;
        }
        for number in 0..50 {
            assert_eq!(client.receive().await, [burst, number]);
        }
    }
}

#[tokio::test]
async fn a_flooding_client_does_not_delay_others() {
    // This socket is never read, so datagrams beyond its buffer are lost.
    let slow = Server::bind().await;
    let config =
        config(slow.address()).with_target(format!("echo={}", Server::echo().await).parse().unwrap());
    let relay = Running::start(config).await;
    let mut flooding = relay.client().await;
    let mut other = Client::connect(relay.address, "/ws?target=echo").await;
    let flood = tokio::spawn(async move {
        for _ in 0..20_000 {
            flooding.send(&[9; 1400]).await;
        }
        flooding
    });
    for round in 0..100u32 {
        other.send(&round.to_be_bytes()).await;
        assert_eq!(other.receive().await, round.to_be_bytes());
    }
    let mut flooding = within(flood).await.unwrap();
    flooding.message(Message::text("end")).await;
    assert_eq!(flooding.closed().await.0, 1003);
    let snapshot = relay.snapshot();
    let reasons = [DropReason::ServerQueueFull, DropReason::ServerTooOld, DropReason::SendRefused];
    let dropped: u64 = reasons.iter().map(|reason| snapshot.drops(*reason)).sum();
    let handled = snapshot.to_server.datagrams + dropped;
    assert_eq!(handled, 20_100, "{snapshot}");
}

#[tokio::test]
async fn a_client_cannot_make_the_relay_flood_the_server() {
    const SENT: u64 = 500;

    let server = Server::bind().await;
    let mut config = config(server.address());
    (config.limits.datagrams_per_second, config.limits.bytes_per_second) = (1, 0);
    let relay = Running::start(config).await;
    let mut client = relay.client().await;
    for _ in 0..SENT {
        client.send(&[9; 1400]).await;
    }
    // The relay has handled all datagrams from the client when it handles this message.
    client.message(Message::text("end")).await;
    assert_eq!(client.closed().await.0, 1003);
    let snapshot = relay.snapshot();
    let (passed, dropped) = (snapshot.to_server.datagrams, snapshot.drops(DropReason::RateLimited));
    assert_eq!(passed + dropped, SENT, "{snapshot}");
    // One datagram passes per second, however long sending takes.
    assert!(passed < SENT / 2, "{snapshot}");
}

/// Starts a game server that answers each datagram with one of another length.
async fn answering(length: usize) -> std::net::SocketAddr {
    let server = Server::bind().await;
    let address = server.address();
    tokio::spawn(async move {
        loop {
            let (_, from) = server.receive().await;
            server.send(&vec![7; length], from).await;
        }
    });
    address
}

#[tokio::test]
async fn the_total_rate_limits_each_direction() {
    // The bucket holds the rate of one second, and the test ends before much of it is refilled.
    let dropped = async |server, length: usize, reason| {
        let mut config = config(server);
        config.limits.total_bytes_per_second = 10_000;
        let relay = Running::start(config).await;
        let (mut one, mut two) = (relay.client().await, relay.client().await);
        for client in [&mut one, &mut two] {
            for _ in 0..40 {
                client.send(&vec![1; length]).await;
            }
        }
        eventually("datagrams are dropped", || relay.snapshot().drops(reason) > 0).await;
        relay.stop().await;
    };
    dropped(Server::bind().await.address(), 1_000, DropReason::TotalToServer).await;
    dropped(answering(1_000).await, 10, DropReason::TotalToClient).await;
}
