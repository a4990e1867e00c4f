//! The protocol under test, and its endpoints.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rakwire::endpoint::Protocol;
use rakwire::game_protocol::GameProtocol;
use rakwire::raknet::RakNet;
use rakwire_native::endpoint::{Connection, Endpoint, Message, Options};
use rakwire_native::game_protocol::{self, Redial, Reliability, ResendInterval};
use rakwire_native::raknet::{self, Delivery};

use crate::support::DEADLINE;

const LOCAL: &str = "127.0.0.1:0";
/// The time after which an unreliable message is considered lost.
const REPEAT_AFTER: Duration = Duration::from_secs(1);

/// The properties of a protocol that the tests depend on.
pub(crate) trait Subject: Protocol {
    /// Reliable, and ordered if the protocol supports it.
    const RELIABLE: Self::Delivery;
    const UNRELIABLE: Self::Delivery;
    const IS_ORDERED: bool;
    /// Length of the longest test message in bytes.
    const LARGE: usize;
    /// The disconnect reason if this side closed the connection.
    const LOCAL: Self::DisconnectReason;
    const REMOTE: Self::DisconnectReason;
    const LOST: Self::DisconnectReason;
    const NO_ANSWER: Self::ConnectFailure;
    #[cfg(target_os = "linux")]
    const UNREACHABLE: Self::ConnectFailure;
    /// The failure of a handshake that stalls after the server's first answer.
    const STUCK: Self::ConnectFailure;

    /// Sets long timeouts, so that slow threads do not close connections.
    fn be_patient(config: &mut Self::Config);
    /// Sets the idle timeout of a connection, and the timeout for an unresponsive server.
    fn set_timeout(config: &mut Self::Config, timeout: Duration);
    /// Makes the handshake resend lost datagrams.
    fn resend_handshakes(config: &mut Self::Config);
    /// Sets how long a closing connection waits for acknowledgements.
    fn set_close_timeout(config: &mut Self::Config, timeout: Duration);
    /// Sets how long an unreliable message waits to be sent.
    fn set_unreliable_timeout(config: &mut Self::Config, timeout: Duration);
    /// Returns the numbers of messages sent and received on a connection.
    fn messages(stats: &Self::ConnectionStats) -> (u64, u64);
    fn has_resent(stats: &Self::ConnectionStats) -> bool;
    fn rtt(connection: &Connection<Self>) -> Option<Duration>;
    /// Returns true if sent messages are not acknowledged yet.
    fn is_waiting(stats: &Self::ConnectionStats) -> bool;
}

impl Subject for RakNet {
    const RELIABLE: Delivery = Delivery::RELIABLE_ORDERED;
    const UNRELIABLE: Delivery = Delivery::UNRELIABLE;
    const IS_ORDERED: bool = true;
    const LARGE: usize = 300_000;
    const LOCAL: raknet::DisconnectReason = raknet::DisconnectReason::Local;
    const REMOTE: raknet::DisconnectReason = raknet::DisconnectReason::Remote;
    const LOST: raknet::DisconnectReason = raknet::DisconnectReason::Lost;
    const NO_ANSWER: raknet::ConnectFailure = raknet::ConnectFailure::NoAnswer;
    #[cfg(target_os = "linux")]
    const UNREACHABLE: raknet::ConnectFailure = raknet::ConnectFailure::Unreachable;
    const STUCK: raknet::ConnectFailure = raknet::ConnectFailure::HandshakeTimeout;

    fn be_patient(config: &mut raknet::Config) {
        config.connect_attempts = 240;
        config.handshake_timeout = DEADLINE;
        config.timeout = DEADLINE;
    }

    fn set_timeout(config: &mut raknet::Config, timeout: Duration) {
        config.timeout = timeout;
        config.connect_attempts = 3;
        config.connect_interval = timeout / 10;
    }

    fn resend_handshakes(_config: &mut raknet::Config) {}

    fn set_close_timeout(config: &mut raknet::Config, timeout: Duration) {
        config.close_timeout = timeout;
    }

    fn set_unreliable_timeout(config: &mut raknet::Config, timeout: Duration) {
        config.unreliable_timeout = timeout;
    }

    fn messages(stats: &raknet::ConnectionStats) -> (u64, u64) {
        (stats.messages_sent, stats.messages_received)
    }

    fn has_resent(stats: &raknet::ConnectionStats) -> bool {
        stats.datagrams_lost > 0
    }

    fn rtt(connection: &Connection<Self>) -> Option<Duration> {
        connection.rtt()
    }

    fn is_waiting(stats: &raknet::ConnectionStats) -> bool {
        stats.in_flight > 0 || stats.waiting.iter().any(|waiting| waiting.messages > 0)
    }
}

impl Subject for GameProtocol {
    const RELIABLE: Reliability = Reliability::Reliable;
    const UNRELIABLE: Reliability = Reliability::Unreliable;
    const IS_ORDERED: bool = false;
    const LARGE: usize = 129_024;
    const LOCAL: game_protocol::DisconnectReason = game_protocol::DisconnectReason::Local;
    const REMOTE: game_protocol::DisconnectReason = game_protocol::DisconnectReason::Remote;
    const LOST: game_protocol::DisconnectReason = game_protocol::DisconnectReason::Lost;
    const NO_ANSWER: game_protocol::ConnectFailure = game_protocol::ConnectFailure::NoAnswer;
    #[cfg(target_os = "linux")]
    const UNREACHABLE: game_protocol::ConnectFailure = game_protocol::ConnectFailure::Unreachable;
    const STUCK: game_protocol::ConnectFailure = game_protocol::ConnectFailure::NoAnswer;

    fn be_patient(config: &mut game_protocol::Config) {
        // The kernel drops handshake datagrams while the server's socket is full, so the client must repeat them.
        config.redial = Redial::SamePort(Duration::from_secs(1));
        config.handshake_timeout = DEADLINE;
        config.timeout = DEADLINE;
    }

    fn set_timeout(config: &mut game_protocol::Config, timeout: Duration) {
        config.timeout = timeout;
        config.handshake_timeout = timeout;
    }

    fn resend_handshakes(config: &mut game_protocol::Config) {
        config.redial = Redial::SamePort(Duration::from_millis(50));
        config.handshake_timeout = DEADLINE;
        config.resend_interval = ResendInterval::MEASURED;
    }

    fn set_close_timeout(config: &mut game_protocol::Config, timeout: Duration) {
        config.close_timeout = timeout;
    }

    fn set_unreliable_timeout(config: &mut game_protocol::Config, timeout: Duration) {
        config.unreliable_timeout = timeout;
    }

    fn messages(stats: &game_protocol::ConnectionStats) -> (u64, u64) {
        (stats.messages_sent, stats.messages_received)
    }

    fn has_resent(stats: &game_protocol::ConnectionStats) -> bool {
        stats.chunks_resent > 0
    }

    fn rtt(connection: &Connection<Self>) -> Option<Duration> {
        connection.rtt()
    }

    fn is_waiting(stats: &game_protocol::ConnectionStats) -> bool {
        stats.in_flight > 0 || stats.waiting > 0
    }
}

pub(crate) async fn bind<P: Protocol>(options: Options<P>) -> Endpoint<P> {
    Endpoint::bind(LOCAL, options).await.expect("a free port")
}

pub(crate) async fn server<P: Subject>(change: impl FnOnce(&mut Options<P>)) -> Endpoint<P> {
    let mut options = Options::server(256).expect("entropy");
    P::be_patient(&mut options.config);
    change(&mut options);
    bind(options).await
}

pub(crate) async fn client<P: Subject>(change: impl FnOnce(&mut Options<P>)) -> Endpoint<P> {
    let mut options = Options::client().expect("entropy");
    P::be_patient(&mut options.config);
    change(&mut options);
    bind(options).await
}

/// Opens a connection, and returns its client and server sides.
pub(crate) async fn join<P: Protocol>(
    client: &Endpoint<P>,
    server: &Endpoint<P>,
) -> (Connection<P>, Connection<P>) {
    let both = async { tokio::join!(client.connect(server.local_addr()), server.accept()) };
    let (here, there) = tokio::time::timeout(DEADLINE, both).await.expect("both sides connected in time");
    (here.expect("a connection"), there.expect("the same connection"))
}

/// Returns true if no connection holds a memory block for messages. The addresses that a RakNet endpoint announces
/// take one block.
pub(crate) fn has_no_messages<P: Protocol>(endpoint: &Endpoint<P>) -> bool {
    let stats = endpoint.stats();
    stats.blocks - stats.blocks_available == usize::from(P::NAME == RakNet::NAME)
}

/// Waits until `condition` holds.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(DEADLINE, wait).await.unwrap_or_else(|_| panic!("timed out waiting until {what}"));
}

pub(crate) async fn receive<P: Protocol>(connection: &Connection<P>) -> Message<P::Delivery> {
    let received = tokio::time::timeout(DEADLINE, connection.recv()).await;
    received.expect("a message in time").expect("an open connection")
}

/// Repeats an unreliable message until it arrives, and returns it. Repetitions of earlier messages may arrive before
/// it.
pub(crate) async fn deliver_unreliable<P: Protocol>(
    from: &Connection<P>,
    to: &Connection<P>,
    bytes: &[u8],
    delivery: P::Delivery,
) -> Message<P::Delivery> {
    let repeat = async {
        loop {
            from.send(bytes, delivery).await.expect("an open connection");
            while let Ok(received) = tokio::time::timeout(REPEAT_AFTER, to.recv()).await {
                let received = received.expect("an open connection");
                if received.bytes == bytes {
                    return received;
                }
            }
        }
    };
    tokio::time::timeout(DEADLINE, repeat).await.expect("one of the messages in time")
}

/// Returns bytes that differ between messages.
pub(crate) fn message(length: usize, number: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length).map(|at| (at * 7 + at / 256 * 13 + number * 31) as u8).collect();
    bytes[0] = 0x90;
    bytes
}

/// Returns a message that contains its number.
pub(crate) fn numbered(length: usize, number: usize) -> Vec<u8> {
    let mut bytes = message(length, number);
    bytes[1..5].copy_from_slice(&u32::try_from(number).expect("a small number").to_be_bytes());
    bytes
}

/// Receives the [`numbered`] messages 0 to `count - 1`: each exactly once, and in order if the protocol keeps the
/// order.
pub(crate) async fn receive_all<P: Subject>(connection: &Connection<P>, length: usize, count: usize) {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let bytes = receive(connection).await.bytes;
        let number = u32::from_be_bytes(bytes[1..5].try_into().expect("four bytes"));
        let number = usize::try_from(number).expect("a small number");
        assert_eq!(bytes, numbered(length, number), "message {number}");
        numbers.push(number);
    }
    if !P::IS_ORDERED {
        numbers.sort_unstable();
    }
    assert!(numbers.into_iter().eq(0..count), "messages are missing, duplicated or out of order");
}

pub(crate) async fn echo<P: Protocol>(connection: Connection<P>) {
    while let Some(message) = connection.recv().await {
        if connection.send(&message.bytes, message.delivery).await.is_err() {
            return;
        }
    }
}

/// Echoes every message that an endpoint receives.
pub(crate) fn echo_all<P: Protocol>(server: Endpoint<P>) -> Arc<Endpoint<P>> {
    let server = Arc::new(server);
    let accepting = Arc::clone(&server);
    tokio::spawn(async move {
        while let Some(connection) = accepting.accept().await {
            tokio::spawn(echo(connection));
        }
    });
    server
}

/// Returns a socket that never replies.
pub(crate) fn silent_socket() -> (std::net::UdpSocket, SocketAddr) {
    let socket = std::net::UdpSocket::bind(LOCAL).expect("a free port");
    let address = socket.local_addr().expect("a bound socket");
    (socket, address)
}
