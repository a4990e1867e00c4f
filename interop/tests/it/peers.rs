//! Independent peers: C++ RakNet and rust-raknet, each as server and as client.
//!
//! `README.md` of this folder describes their command line and quirks.

use std::net::SocketAddr;

use rakwire::wire::MIN_MTU;
use rakwire_native::{
    Connection, CookiePolicy, Delivery, DisconnectReason, Endpoint, Options, Pong, Reliability,
};
use serde_json::Value;

use crate::support::{Server, TIME_LIMIT, peer, rakwire, run, text};

/// Starts a foreign server.
fn start(name: &str, protocol: u8) -> (Server, SocketAddr) {
    let server = Server::start(name, &["--protocol", &protocol.to_string()]).expect("a foreign server");
    let address = server.address;
    (server, address)
}

/// Builds message `number` like the foreign clients.
fn message(number: u32, size: usize) -> Vec<u8> {
    let mut message = vec![0xFE];
    message.extend(number.to_be_bytes());
    message.extend((5..size).map(|at| (31 * number as usize + 7 * at + 13 * (at / 256)) as u8));
    message
}

async fn exchange(connection: &Connection, messages: std::ops::Range<u32>, size: usize) {
    for number in messages.clone() {
        connection
            .send(&message(number, size), Delivery::RELIABLE_ORDERED)
            .await
            .expect("an open connection");
    }
    for number in messages {
        let echo = tokio::time::timeout(TIME_LIMIT, connection.recv()).await.expect("an echo in time");
        let echo = echo.unwrap_or_else(|| panic!("the connection closed: {:?}", connection.closed_reason()));
        assert!(echo.bytes == message(number, size), "the echo of message {number} ({size} bytes) differs");
        assert_eq!(echo.delivery.reliability, Reliability::ReliableOrdered);
    }
}

/// Connects our endpoint to a foreign server.
async fn be_client_of(name: &str, protocol: u8) {
    let (_server, address) = start(name, protocol);
    let mut options = Options::client().expect("entropy");
    options.config.protocol_version = protocol;
    let client = Endpoint::bind("127.0.0.1:0", options).await.expect("a free port");
    let connection = client.connect(address).await.expect("a connection");
    exchange(&connection, 0..10, 100).await;
    exchange(&connection, 10..11, 150_000).await;
    client.close().await;
    assert_eq!(connection.closed_reason(), Some(DisconnectReason::Local));

    // A second connection from the same address opens only if the server has handled the disconnection notification.
    let mut options = Options::client().expect("entropy");
    options.config.protocol_version = protocol;
    let client = Endpoint::bind("127.0.0.1:0", options).await.expect("a free port");
    let connection = client.connect(address).await.expect("a second connection");
    exchange(&connection, 0..1, 100).await;
    connection.disconnect().await;
}

/// Sends the longest message that our defaults allow, split into the most parts: with the smallest MTU.
async fn send_the_longest_message_to(name: &str, protocol: u8) {
    let (_server, address) = start(name, protocol);
    let mut options = Options::client().expect("entropy");
    options.config.protocol_version = protocol;
    options.config.mtu = MIN_MTU;
    let client = Endpoint::bind("127.0.0.1:0", options).await.expect("a free port");
    let connection = client.connect(address).await.expect("a connection");
    let longest = connection.max_message_len().expect("an open connection");
    assert_eq!(longest.div_ceil(516), 7_752, "docs/interop.md states another number of parts");
    exchange(&connection, 0..1, longest).await;
    client.close().await;
}

/// Connects a foreign client to our endpoint.
async fn be_server_of(name: &str, protocol: u8, cookies: CookiePolicy) {
    let program = peer(name);
    let mut options = Options::server(8).expect("entropy");
    options.config.cookies = cookies;
    let server = Endpoint::bind("127.0.0.1:0", options).await.expect("a free port");
    let address = server.local_addr().to_string();
    for (count, size, window) in [("100", "100", "16"), ("1", "150000", "1")] {
        let (program, address) = (program.clone(), address.clone());
        let client = tokio::task::spawn_blocking(move || {
            let protocol = protocol.to_string();
            let arguments = [
                "client",
                &address,
                "--protocol",
                &protocol,
                "--count",
                count,
                "--size",
                size,
                "--window",
                window,
            ];
            run(&program, &arguments).expect("the program starts")
        });
        let accepted = tokio::time::timeout(TIME_LIMIT, server.accept()).await.expect("a client in time");
        let connection = accepted.expect("an open endpoint");
        while let Some(message) = connection.recv().await {
            // Fails if the client has already disconnected; only the client's verdict counts.
            let _ = connection.send(&message.bytes, message.delivery).await;
        }
        let client = client.await.expect("the task does not panic");
        let verdict: Value = serde_json::from_slice(&client.stdout).expect("one line of JSON");
        assert!(client.status.success(), "{verdict} {}", text(&client.stderr));
        assert_eq!(verdict["connected"], true);
        assert_eq!(verdict["echoed"].to_string(), count);
        assert_eq!(connection.closed_reason(), Some(DisconnectReason::Remote), "the client must disconnect");
    }
}

async fn ping(name: &str) -> Pong {
    let (_server, address) = start(name, 10);
    let client =
        Endpoint::bind("127.0.0.1:0", Options::client().expect("entropy")).await.expect("a free port");
    let pong = client.ping(address, TIME_LIMIT).await.expect("a pong");
    assert_eq!(pong.from, address);
    pong
}

/// Returns the pong of our server as a foreign client reports it.
async fn be_pinged_by(name: &str, data: &'static [u8]) -> String {
    let server =
        Endpoint::bind("127.0.0.1:0", Options::server(8).expect("entropy")).await.expect("a free port");
    assert_eq!(server.set_advertisement(data), Ok(()));
    let (program, address) = (peer(name), server.local_addr().to_string());
    let output = tokio::task::spawn_blocking(move || run(&program, &["ping", &address]));
    let output = output.await.expect("the task does not panic").expect("the program starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

macro_rules! cases {
    ($($name:ident: $action:expr;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $action.await;
            }
        )*
    };
}

cases! {
    the_longest_message_of_our_defaults_reaches_cpp: send_the_longest_message_to("cpp", 10);
    the_longest_message_of_our_defaults_reaches_rust_raknet: send_the_longest_message_to("rust-raknet", 10);
    client_of_cpp_protocol_6: be_client_of("cpp", 6);
    client_of_cpp_protocol_10: be_client_of("cpp", 10);
    client_of_cpp_protocol_11: be_client_of("cpp", 11);
    client_of_python_protocol_6: be_client_of("python", 6);
    client_of_python_protocol_10: be_client_of("python", 10);
    client_of_python_protocol_11: be_client_of("python", 11);
    client_of_rust_raknet_protocol_10: be_client_of("rust-raknet", 10);
    client_of_rust_raknet_protocol_11: be_client_of("rust-raknet", 11);
    server_of_cpp_protocol_6: be_server_of("cpp", 6, CookiePolicy::Required);
    server_of_cpp_protocol_10: be_server_of("cpp", 10, CookiePolicy::Required);
    server_of_cpp_protocol_11: be_server_of("cpp", 11, CookiePolicy::Required);
    server_of_python_protocol_6: be_server_of("python", 6, CookiePolicy::Required);
    server_of_python_protocol_10: be_server_of("python", 10, CookiePolicy::Required);
    server_of_python_protocol_11: be_server_of("python", 11, CookiePolicy::Required);
    server_of_rust_raknet_protocol_10: be_server_of("rust-raknet", 10, CookiePolicy::Off);
    server_of_rust_raknet_protocol_11: be_server_of("rust-raknet", 11, CookiePolicy::Off);
    ping_of_cpp: ping("cpp");
    ping_of_python: ping("python");
    ping_of_rust_raknet: ping("rust-raknet");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cpp_and_python_clients_read_our_pongs() {
    for name in ["cpp", "python"] {
        assert!(be_pinged_by(name, b"a game").await.contains("a game"), "{name}");
    }
}

/// The rust-raknet client expects a length before the data, as its own server sends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rust_raknet_reads_length_prefixed_pongs() {
    assert!(be_pinged_by("rust-raknet", b"\0\x06a game").await.contains("a game"));
}

/// `rakwire send` detects the protocol version of a server by a ping.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn send_detects_the_version_of_foreign_servers() {
    for name in ["cpp", "python", "rust-raknet"] {
        let (_server, address) = start(name, 10);
        let address = address.to_string();
        let arguments = ["send", &address, "hello", "--size", "2000", "--count", "3"];
        let output = run(&rakwire(), &arguments).expect("the program starts");
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout).lines().count(), 3, "{name}");
    }
}
