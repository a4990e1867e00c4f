//! TCP connections with RakNet's `PacketizedTCP` and `TCPInterface`, opened by either side.

use rakwire_extras::tcp::{DisconnectReason, Endpoint, Framing, Options};
use rakwire_native::Delivery;
use serde_json::Value;

use crate::support::{Server, TIME_LIMIT, peer, run, text};

/// The C++ peer that uses RakNet's `PacketizedTCP` or `TCPInterface`.
const PEER: &str = "cpp-tcp";
/// The number and length of messages: short ones, long ones for which RakNet reports progress, and messages as long as
/// RakNet's buffer.
const TRAFFIC: [(usize, usize); 4] = [(200, 1), (200, 300), (60, 8_096), (4, 200_000)];

fn options(framing: Framing, max_incoming: usize) -> Options {
    let mut options = Options::server(max_incoming);
    options.framing = framing;
    options
}

fn arguments(framing: Framing) -> &'static [&'static str] {
    match framing {
        Framing::Packets => &[],
        Framing::Stream => &["--stream"],
    }
}

fn message(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (31 * number + 7 * i + 13 * (i >> 8)) as u8).collect()
}

/// Connects our peer to the C++ peer, which echoes.
async fn we_connect(framing: Framing) {
    let server = Server::start(PEER, arguments(framing)).expect("the server starts");
    let client = Endpoint::bind("127.0.0.1:0", options(framing, 0)).await.expect("a free port");
    for (count, len) in TRAFFIC {
        let connection = client.connect(server.address).await.expect("an open connection");
        let send = async {
            for number in 0..count {
                let sent = connection.send(&message(number, len), Delivery::RELIABLE_ORDERED).await;
                sent.expect("an open connection");
            }
        };
        let receive = async {
            let mut received = Vec::new();
            while received.len() < count * len {
                let echo = connection.recv().await.expect("an open connection").bytes;
                if framing == Framing::Packets {
                    assert_eq!(echo.len(), len);
                }
                received.extend(echo);
            }
            received
        };
        let pass = async { tokio::join!(send, receive).1 };
        let received = tokio::time::timeout(TIME_LIMIT, pass).await.expect("all messages are echoed in time");
        let expected: Vec<u8> = (0..count).flat_map(|number| message(number, len)).collect();
        assert!(received == expected, "the echoes of {count} messages of {len} bytes differ");
        connection.disconnect().await;
        assert_eq!(connection.closed_reason(), Some(DisconnectReason::Local));
    }
}

/// Connects the C++ peer to our peer, and checks its verdict on the echoes.
async fn it_connects(framing: Framing) {
    let server = Endpoint::bind("127.0.0.1:0", options(framing, 4)).await.expect("a free port");
    let address = server.local_addr().to_string();
    for (count, len) in TRAFFIC {
        let (count, len, address) = (count.to_string(), len.to_string(), address.clone());
        let client = tokio::task::spawn_blocking(move || {
            let fixed = ["client", &address, "--count", &count, "--size", &len];
            run(&peer(PEER), &[&fixed, arguments(framing)].concat())
        });
        let echo = async {
            let connection = server.accept().await.expect("an open connection");
            while let Some(message) = connection.recv().await {
                // Fails if the client has already disconnected; only the client's verdict counts.
                let _ = connection.send(&message.bytes, message.delivery).await;
            }
        };
        let both = async { tokio::join!(client, echo).0 };
        let output = tokio::time::timeout(TIME_LIMIT, both).await.expect("the client exits in time");
        let output = output.expect("the task does not panic").expect("the program starts");
        let verdict: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
        assert!(output.status.success(), "{verdict} {}", text(&output.stderr));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rakwire_connects_to_packetized_tcp() {
    we_connect(Framing::Packets).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packetized_tcp_connects_to_rakwire() {
    it_connects(Framing::Packets).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rakwire_connects_to_tcp_interface() {
    we_connect(Framing::Stream).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tcp_interface_connects_to_rakwire() {
    it_connects(Framing::Stream).await;
}
