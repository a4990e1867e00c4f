//! Small RakNet libraries of the npm registry and of PyPI, with our defaults. `docs/interop.md` lists their limits.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire_native::{ConnectError, Connection, Delivery, DropReason, Endpoint, EndpointStats, Options};
use serde_json::Value;

use crate::support::{Server, TIME_LIMIT, peer, run, text};

/// The time limit for an echo of a peer that may never answer.
const ECHO_TIME: Duration = Duration::from_secs(5);
/// The time limit for a pong before the next ping.
const PONG_TIME: Duration = Duration::from_millis(500);

/// Starts a server of a library and connects our client to it, both with their default options.
async fn join(program: &str, library: &str) -> (Server, Endpoint, Result<Connection, ConnectError>) {
    let server = Server::start(program, &["--library", library]).expect("a foreign server");
    let mut client = Options::client().expect("entropy");
    // Some servers print `ready` before they listen, so an ICMP error must not fail the attempt.
    client.fail_on_unreachable = false;
    let client = Endpoint::bind("127.0.0.1:0", client).await.expect("a free port");
    // Waits for a pong, which contains the protocol version for the first attempt. Not every server answers pings.
    let pong = async { while client.ping(server.address, PONG_TIME).await.is_err() {} };
    let _ = tokio::time::timeout(ECHO_TIME, pong).await;
    let connection = client.connect(server.address).await;
    (server, client, connection)
}

/// Sends messages of a size, with at most `window` unanswered, and returns the number of echoes that arrived in order.
async fn echoes(connection: &Connection, count: u8, size: usize, window: u8) -> u8 {
    let mut sent = 0;
    for echoed in 0..count {
        while sent < count && sent - echoed < window {
            let mut message = vec![sent; size];
            message[0] = 0xFE;
            connection.send(&message, Delivery::RELIABLE_ORDERED).await.expect("an open connection");
            sent += 1;
        }
        let Ok(Some(echo)) = tokio::time::timeout(ECHO_TIME, connection.recv()).await else { return echoed };
        assert_eq!((echo.bytes.len(), echo.bytes[1]), (size, echoed));
    }
    count
}

/// Every server that can echo echoes small messages, and reports no error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_the_npm_registry_echo() {
    // Prismarine reads the rest of a datagram as a single message, so only one message may be in flight.
    for (library, window) in
        [("@serenityjs/raknet", 50), ("@jsprismarine/raknet", 1), ("jsp-raknet", 50), ("raknet-node", 50)]
    {
        let (server, client, connection) = join("npm", library).await;
        let connection = connection.unwrap_or_else(|error| panic!("{library}: {error}"));
        assert_eq!(echoes(&connection, 50, 100, window).await, 50, "{library}");
        assert_eq!(server.printed_lines().collect::<Vec<_>>(), [""; 0], "{library}");
        client.close().await;
    }
}

/// The messages are split. Up to these sizes, no server limits the number of parts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_the_registries_echo_large_messages() {
    for (program, library, size) in [
        ("npm", "@serenityjs/raknet", 1_000_000),
        ("npm", "@jsprismarine/raknet", 1_000_000),
        ("npm", "jsp-raknet", 1_000_000),
        ("npm", "raknet-node", 1_000_000),
        ("pypi", "rak-net", 100_000),
    ] {
        let (_server, client, connection) = join(program, library).await;
        let connection = connection.unwrap_or_else(|error| panic!("{library}: {error}"));
        let mut message: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        message[0] = 0xFE;
        connection.send(&message, Delivery::RELIABLE_ORDERED).await.expect("an open connection");
        let echo = tokio::time::timeout(TIME_LIMIT, connection.recv()).await;
        let echo =
            echo.unwrap_or_else(|_| panic!("{library} sent no echo in time")).expect("an open connection");
        assert!(echo.bytes == message, "{library}");
        client.close().await;
    }
}

/// Runs a foreign client against a server with default options, and returns its verdict and the server's counters.
async fn serve(library: &'static str, sends: &'static [&'static str]) -> (Value, EndpointStats) {
    let server =
        Endpoint::bind("127.0.0.1:0", Options::server(8).expect("entropy")).await.expect("a free port");
    let address = server.local_addr().to_string();
    let client = tokio::task::spawn_blocking(move || {
        let arguments = ["client", &address, "--library", library, "--timeout", "60"];
        run(&peer("npm"), &[&arguments, sends].concat()).expect("the program starts")
    });
    let echo = async {
        while let Some(connection) = server.accept().await {
            while let Some(message) = connection.recv().await {
                // Fails if the client has already disconnected.
                let _ = connection.send(&message.bytes, message.delivery).await;
            }
        }
    };
    let client = tokio::select! {
        client = client => client.expect("the task does not panic"),
        () = echo => unreachable!("the endpoint is open"),
    };
    let verdict = text(&client.stdout);
    (serde_json::from_str(verdict.lines().next().unwrap_or("null")).expect("JSON"), server.stats())
}

/// Clients without cookie support can connect, because by default a server requires cookies only under load.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_the_npm_registry_connect_with_default_options() {
    for library in ["jsp-raknet", "raknet-node"] {
        let (verdict, stats) = tokio::time::timeout(TIME_LIMIT, serve(library, &[]))
            .await
            .expect("the exchange completes in time");
        assert_eq!(
            (&verdict["connected"], &verdict["echoed"]),
            (&true.into(), &10.into()),
            "{library}: {verdict}"
        );
        assert_eq!(stats.peer.dropped(DropReason::MissingCookie), 0, "{library}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_the_npm_registry_accept_large_messages() {
    for library in ["jsp-raknet", "raknet-node"] {
        let large = &["--size", "1000000", "--count", "1"];
        let (verdict, _) = tokio::time::timeout(TIME_LIMIT, serve(library, large))
            .await
            .expect("the exchange completes in time");
        assert_eq!(verdict["echoed"], 1, "{library}: {verdict}");
    }
}

/// Minecraft clients read the whole pong if the advertisement begins with `MCPE;`, although the server also accepts
/// RakNet's protocol version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn minecraft_clients_read_our_pongs() {
    let server =
        Endpoint::bind("127.0.0.1:0", Options::server(8).expect("entropy")).await.expect("a free port");
    server
        .set_advertisement(b"MCPE;our game;800;1.21.80;0;10;1;sub;Survival;1;")
        .expect("a short advertisement");
    for (program, library) in [("npm", "jsp-raknet"), ("npm", "raknet-node"), ("pypi", "pybedrock-net")] {
        let said = pinged_by(program, library, server.local_addr()).await;
        assert!(said.contains("our game"), "{library}: {said}");
    }
}

async fn pinged_by(program: &'static str, library: &'static str, server: SocketAddr) -> String {
    let output = tokio::task::spawn_blocking(move || {
        run(&peer(program), &["ping", &server.to_string(), "--library", library]).expect("the program starts")
    });
    let output = output.await.expect("the task does not panic");
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// rak-net echoes small messages. PieRakNet sends no messages, but reports each received message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_pypi_accept_messages() {
    let (server, client, connection) = join("pypi", "rak-net").await;
    let connection = connection.expect("a connection");
    assert_eq!(echoes(&connection, 10, 100, 1).await, 10);
    assert_eq!(server.next_line().expect("a line"), "incoming");
    client.close().await;

    let (server, client, connection) = join("pypi", "PieRakNet").await;
    let connection = connection.expect("a connection, even though its ping has the same datagram number");
    connection.send(&[0xFE; 100], Delivery::RELIABLE_ORDERED).await.expect("an open connection");
    let arrived = std::iter::from_fn(|| server.next_line().ok()).find(|line| line == "message fe");
    assert!(arrived.is_some());
    client.close().await;
}
