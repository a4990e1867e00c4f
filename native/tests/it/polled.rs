//! Polled endpoints, over loopback and without a runtime.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use rakwire::endpoint::{ConnectionId, Event, SendError};
use rakwire::game_protocol::GameProtocol;
use rakwire::raknet::RakNet;
use rakwire_native::BindError;
use rakwire_native::endpoint::{ConnectError, Options, PluginHost, SharedHook};
use rakwire_native::polled::{Endpoint, QueueError, Queued, SendQueue};

use crate::endpoint::hooks::Greeter;
use crate::endpoint::subject::{Subject, message, silent_socket};
use crate::support::DEADLINE;
#[cfg(target_os = "linux")]
use crate::support::closed_port;

const LOCAL: &str = "127.0.0.1:0";

/// The events that an endpoint has reported.
#[derive(Debug)]
struct Events<P: Subject> {
    connected: Option<ConnectionId>,
    remote: Option<SocketAddr>,
    failed: Option<P::ConnectFailure>,
    ended: Option<P::DisconnectReason>,
    messages: Vec<Vec<u8>>,
}

impl<P: Subject> Default for Events<P> {
    fn default() -> Self {
        Self { connected: None, remote: None, failed: None, ended: None, messages: Vec::new() }
    }
}

/// Runs one frame of an endpoint.
fn frame<P: Subject>(endpoint: &mut Endpoint<P>, events: &mut Events<P>) {
    endpoint.update();
    while let Some(event) = endpoint.poll_event() {
        match event {
            Event::Connected { id, remote, .. } => {
                (events.connected, events.remote) = (Some(id), Some(remote))
            }
            Event::ConnectFailed { reason, .. } => events.failed = Some(reason),
            Event::Disconnected { reason, .. } => events.ended = Some(reason),
            Event::Message { .. } => events.messages.push(endpoint.take_event_data()),
            Event::Receipt { .. }
            | Event::Progress { .. }
            | Event::MtuChanged { .. }
            | Event::Pong { .. }
            | Event::OutOfBand { .. }
            | Event::Advertisement { .. }
            | _ => {}
        }
    }
    endpoint.flush();
}

/// Two endpoints and their events.
struct Pair<P: Subject> {
    server: Endpoint<P>,
    client: Endpoint<P>,
    there: Events<P>,
    here: Events<P>,
}

impl<P: Subject> Pair<P> {
    fn new() -> Self {
        let server = Endpoint::bind(LOCAL, Options::server(8).expect("entropy")).expect("a free port");
        let client = Endpoint::bind(LOCAL, Options::client().expect("entropy")).expect("a free port");
        Self { server, client, there: Events::default(), here: Events::default() }
    }

    /// Runs frames of both endpoints until `condition` holds.
    fn until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !condition(self) {
            assert!(begin.elapsed() < DEADLINE, "timed out waiting until {what}");
            frame(&mut self.client, &mut self.here);
            frame(&mut self.server, &mut self.there);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn messages_arrive_in_both_directions_and_the_disconnect_is_reported<P: Subject>() {
    let mut pair = Pair::<P>::new();
    let id = pair.client.connect(pair.server.local_addr()).expect("a free slot");
    let again = pair.client.connect(pair.server.local_addr());
    assert_eq!(again, Err(ConnectError::AlreadyConnected));
    pair.until("the connection is open", |pair| pair.here.connected == Some(id));
    pair.client.send(id, &message(P::LARGE, 1), P::RELIABLE).expect("an open connection");
    pair.until("the message arrived", |pair| !pair.there.messages.is_empty());
    assert!(pair.there.messages == [message(P::LARGE, 1)]);
    let back = pair.there.connected.expect("a connection before the message");
    for number in 0..100 {
        pair.server.send(back, &message(100, number), P::RELIABLE).expect("an open connection");
    }
    pair.client.disconnect(id);
    assert_eq!(pair.client.send(id, &message(10, 0), P::RELIABLE), Err(SendError::NotConnected));
    pair.until("both sides have been notified of the disconnect", |pair| {
        pair.here.ended.is_some() && pair.there.ended.is_some()
    });
    assert_eq!((pair.here.ended, pair.there.ended), (Some(P::LOCAL), Some(P::REMOTE)));
    pair.until("both endpoints have no connections", |pair| {
        pair.client.connections() + pair.server.connections() == 0
    });
    let stats = pair.client.stats();
    assert_eq!((stats.send_failures, stats.receive_failures, stats.too_long), (0, 0, 0));
}

/// Datagrams count as activity of their sender even if they are far back in the socket's receive buffer.
fn players_outlast_a_frame_longer_than_the_timeout<P: Subject>() {
    /// More players than the number of datagrams handled in a batch.
    const PLAYERS: usize = 24;
    let mut options = Options::<P>::server(PLAYERS as u16).expect("entropy");
    P::set_timeout(&mut options.config, Duration::from_millis(400));
    let mut server = Endpoint::bind(LOCAL, options).expect("a free port");
    let mut players: Vec<(Endpoint<P>, Events<P>)> = Vec::new();
    for _ in 0..PLAYERS {
        let mut options = Options::client().expect("entropy");
        P::be_patient(&mut options.config);
        let mut player = Endpoint::bind(LOCAL, options).expect("a free port");
        player.connect(server.local_addr()).expect("a free slot");
        players.push((player, Events::default()));
    }
    let mut there = Events::default();
    let mut turn = |server: &mut Endpoint<P>, is_paused: bool| {
        for (player, events) in &mut players {
            frame(player, events);
            if let Some(id) = events.connected {
                // If a message cannot be queued, it is skipped; the player sends many others.
                let _ = player.send(id, &[0x90], P::UNRELIABLE);
                player.flush();
            }
        }
        if !is_paused {
            frame(server, &mut there);
        }
        std::thread::sleep(Duration::from_millis(5));
        (players.iter().all(|(_, events)| events.connected.is_some()), there.ended)
    };
    let begin = Instant::now();
    while !turn(&mut server, false).0 {
        assert!(begin.elapsed() < DEADLINE, "timed out waiting for all clients");
    }
    let pause = Instant::now();
    while pause.elapsed() < Duration::from_millis(1_000) {
        turn(&mut server, true);
    }
    for _ in 0..20 {
        assert_eq!(turn(&mut server, false).1, None);
    }
}

fn an_unresponsive_server_is_reported<P: Subject>() {
    let (_socket, silent) = silent_socket();
    let mut options = Options::<P>::client().expect("entropy");
    P::set_timeout(&mut options.config, Duration::from_millis(300));
    let mut client = Endpoint::bind(LOCAL, options).expect("a free port");
    let v6 = "[::1]:19132".parse().expect("a literal address");
    assert_eq!(client.connect(v6), Err(ConnectError::AddressFamily));
    client.connect(silent).expect("a free slot");
    assert!(client.timeout().is_some_and(|timeout| timeout.is_zero()), "the request is to be sent");
    let (mut events, begin) = (Events::default(), Instant::now());
    while events.failed.is_none() {
        assert!(begin.elapsed() < DEADLINE, "the attempt never failed");
        frame(&mut client, &mut events);
        std::thread::sleep(client.timeout().unwrap_or_default().min(Duration::from_millis(10)));
    }
    assert_eq!(events.failed, Some(P::NO_ANSWER));
}

fn unknown_datagrams_are_counted<P: Subject>() {
    let mut server = Endpoint::<P>::bind(LOCAL, Options::server(8).expect("entropy")).expect("a free port");
    let taken = Endpoint::<P>::bind(server.local_addr(), Options::client().expect("entropy"));
    assert!(matches!(taken, Err(BindError::Socket { .. })));
    let (socket, _) = silent_socket();
    socket.send_to(&[0x84; 2_049], server.local_addr()).expect("enough space");
    let (mut events, begin) = (Events::default(), Instant::now());
    while server.stats().too_long == 0 {
        assert!(begin.elapsed() < DEADLINE, "timed out waiting for the datagram");
        frame(&mut server, &mut events);
    }
    assert_eq!(server.stats().peer.datagrams_received, 0);
}

/// A polled endpoint uses the client addresses that a trusted proxy announces, like an endpoint with tasks.
fn a_trusted_proxy_announces_client_addresses<P: Subject>() {
    const HEADER: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c\xc0\0\x02\x07\x7f\0\0\x01\x12\x34\0\x50";
    let mut pair = Pair::<P>::new();
    let mut options = Options::server(8).expect("entropy");
    options.trusted_proxies = vec!["127.0.0.1/32".parse().expect("a network")];
    pair.server = Endpoint::bind(LOCAL, options).expect("a free port");
    let (server, client) = (pair.server.local_addr(), pair.client.local_addr());
    let [(front, proxy), (back, _)] = [silent_socket(), silent_socket()];
    pair.client.connect(proxy).expect("a free slot");
    let (mut is_answered, begin) = (false, Instant::now());
    while pair.there.remote.is_none() || pair.here.remote.is_none() {
        assert!(begin.elapsed() < DEADLINE, "the connection never opened");
        frame(&mut pair.client, &mut pair.here);
        pass(&front, if is_answered { b"" } else { HEADER }, &back, server);
        frame(&mut pair.server, &mut pair.there);
        is_answered |= pass(&back, b"", &front, client);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(pair.there.remote, "192.0.2.7:4660".parse().ok());
    assert_eq!(pair.server.stats().proxy_headers_refused, 0);
}

/// Forwards the datagrams in a socket's receive buffer, each behind a header. Returns true if there were any.
fn pass(socket: &UdpSocket, header: &[u8], by: &UdpSocket, to: SocketAddr) -> bool {
    socket.set_nonblocking(true).expect("a socket of this system");
    let (mut buffer, mut has_passed) = ([0; 2_048], false);
    while let Ok((length, _)) = socket.recv_from(&mut buffer) {
        by.send_to(&[header, &buffer[..length]].concat(), to).expect("enough space");
        has_passed = true;
    }
    has_passed
}

/// Connects to an address at which no socket listens, and then to the server.
#[cfg(target_os = "linux")]
fn an_attempt_at_a_closed_port_fails_immediately<P: Subject>() {
    let (_reserved, closed) = closed_port();
    let mut pair = Pair::<P>::new();
    // Without the report, the attempt would exceed the time limit of a test.
    let mut options = Options::client().expect("entropy");
    P::be_patient(&mut options.config);
    pair.client = Endpoint::bind(LOCAL, options).expect("a free port");
    pair.client.connect(closed).expect("a free slot");
    pair.until("the attempt ended", |pair| pair.here.failed == Some(P::UNREACHABLE));
    let id = pair.client.connect(pair.server.local_addr()).expect("a free slot");
    pair.until("the connection is open", |pair| pair.here.connected == Some(id));
    let stats = pair.client.stats();
    assert_eq!((stats.send_failures, stats.receive_failures), (0, 0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_raknet_attempt_at_a_closed_port_fails_immediately() {
    an_attempt_at_a_closed_port_fails_immediately::<RakNet>();
}

#[cfg(target_os = "linux")]
#[test]
fn a_game_protocol_attempt_at_a_closed_port_fails_immediately() {
    an_attempt_at_a_closed_port_fails_immediately::<GameProtocol>();
}

/// Connects a client to a server behind a simulated network, and returns both.
fn simulated<P: Subject>(network: &str) -> (Pair<P>, ConnectionId) {
    let mut options = Options::<P>::server(8).expect("entropy");
    options.simulate = Some(network.parse().expect("a network"));
    let server = Endpoint::bind(LOCAL, options).expect("a free port");
    let mut pair = Pair::<P> { server, ..Pair::new() };
    let id = pair.client.connect(pair.server.local_addr()).expect("a free slot");
    pair.until("the connection is open", |pair| pair.here.connected == Some(id));
    pair.until("the server has accepted the connection", |pair| pair.there.connected.is_some());
    (pair, id)
}

fn a_simulated_network_delays_each_direction<P: Subject>() {
    const LATENCY: Duration = Duration::from_millis(60);
    let (mut pair, id) = simulated::<P>("latency=60ms");
    let sent = Instant::now();
    pair.client.send(id, &message(100, 1), P::RELIABLE).expect("an open connection");
    pair.client.flush();
    pair.until("the message arrived", |pair| !pair.there.messages.is_empty());
    assert!(sent.elapsed() >= LATENCY, "incoming datagrams are delayed");
    let back = pair.there.connected.expect("the connection is open");
    let answered = Instant::now();
    pair.server.send(back, &message(100, 2), P::RELIABLE).expect("an open connection");
    pair.server.flush();
    assert!(pair.server.timeout().is_some_and(|timeout| timeout <= LATENCY), "the network is a timer");
    pair.until("the answer arrived", |pair| !pair.here.messages.is_empty());
    assert!(answered.elapsed() >= LATENCY, "outgoing datagrams are delayed");
}

fn a_simulated_network_loses_no_reliable_message<P: Subject>() {
    const COUNT: usize = 40;
    let (mut pair, id) = simulated::<P>("loss=20%,duplicate=5%,reorder=10%,jitter=2ms,seed=7");
    let back = pair.there.connected.expect("the connection is open");
    for number in 0..COUNT {
        pair.client.send(id, &message(900, number), P::RELIABLE).expect("an open connection");
        pair.server.send(back, &message(900, number), P::RELIABLE).expect("an open connection");
    }
    pair.until("all arrived", |pair| {
        [&pair.here, &pair.there].iter().all(|events| events.messages.len() == COUNT)
    });
    let mut sent: Vec<_> = (0..COUNT).map(|number| message(900, number)).collect();
    sent.sort();
    for events in [&mut pair.here, &mut pair.there] {
        // The Game Protocol does not keep messages in order.
        events.messages.sort();
        assert!(events.messages == sent);
    }
}

/// Returns connected endpoints, and a queue with messages that wait because the client's send memory is full. The
/// number counts all messages in the queue and in the connection.
fn with_waiting_messages<P: Subject>() -> (Pair<P>, SendQueue<P>, usize) {
    let mut options = Options::client().expect("entropy");
    P::set_close_timeout(&mut options.config, DEADLINE);
    let client = Endpoint::bind(LOCAL, options).expect("a free port");
    let mut pair = Pair::<P> { client, ..Pair::new() };
    let id = pair.client.connect(pair.server.local_addr()).expect("a free slot");
    pair.until("the connection is open", |pair| pair.here.connected == Some(id));
    let mut queue = SendQueue::new(id, 64 << 20);
    for number in 0.. {
        let sent = queue.send(&mut pair.client, message(P::LARGE, number), P::RELIABLE);
        assert!(matches!(sent, Ok(Queued::Sent(None) | Queued::Waiting)), "message {number}: {sent:?}");
        if queue.len() == 3 {
            return (pair, queue, number + 1);
        }
    }
    unreachable!("there is always space")
}

fn messages_that_wait_arrive_before_the_connection_closes<P: Subject>() {
    let (mut pair, mut queue, count) = with_waiting_messages::<P>();
    assert_eq!(queue.send(&mut pair.client, message(P::LARGE, 0), P::UNRELIABLE), Ok(Queued::Dropped));
    assert_eq!(queue.close(&mut pair.client, DEADLINE), Ok(0));
    let begin = Instant::now();
    while pair.here.ended.is_none() || pair.there.ended.is_none() {
        assert!(begin.elapsed() < DEADLINE, "the connection never closed");
        frame(&mut pair.client, &mut pair.here);
        frame(&mut pair.server, &mut pair.there);
        if !queue.is_empty() {
            queue.retry(&mut pair.client).expect("sent, or no space");
        }
    }
    assert_eq!((queue.len(), queue.bytes()), (0, 0));
    // The Game Protocol does not keep messages in order.
    let mut sent: Vec<_> = (0..count).map(|number| message(P::LARGE, number)).collect();
    if !P::IS_ORDERED {
        sent.sort();
        pair.there.messages.sort();
    }
    assert_eq!(pair.there.messages.len(), sent.len());
    assert!(pair.there.messages == sent);
}

fn messages_that_wait_are_lost_with_their_connection<P: Subject>() {
    let (mut pair, mut queue, _) = with_waiting_messages::<P>();
    let id = queue.id();
    assert_eq!(queue.close(&mut pair.client, Duration::ZERO), Ok(3));
    assert_eq!((queue.len(), queue.bytes()), (0, 0));
    assert_eq!(pair.client.send(id, &message(1, 0), P::RELIABLE), Err(SendError::NotConnected));
    let sent = queue.send(&mut pair.client, message(1, 0), P::RELIABLE);
    assert_eq!(sent, Err(QueueError::Refused(SendError::NotConnected)));
    let (mut pair, mut queue, _) = with_waiting_messages::<P>();
    pair.client.disconnect(queue.id());
    assert_eq!(queue.retry(&mut pair.client), Err(SendError::NotConnected));
    assert_eq!((queue.len(), queue.bytes()), (0, 0));
}

macro_rules! by_both_protocols {
    ($($test:ident),+ $(,)?) => {
        mod raknet {
            $(#[test]
            fn $test() {
                super::$test::<super::RakNet>();
            })+
        }

        mod game_protocol {
            $(#[test]
            fn $test() {
                super::$test::<super::GameProtocol>();
            })+
        }
    };
}

by_both_protocols!(
    messages_arrive_in_both_directions_and_the_disconnect_is_reported,
    players_outlast_a_frame_longer_than_the_timeout,
    an_unresponsive_server_is_reported,
    unknown_datagrams_are_counted,
    a_trusted_proxy_announces_client_addresses,
    a_simulated_network_delays_each_direction,
    a_simulated_network_loses_no_reliable_message,
    messages_that_wait_arrive_before_the_connection_closes,
    messages_that_wait_are_lost_with_their_connection,
);

/// A polled endpoint runs the same plugins as an endpoint with tasks.
fn a_plugin_exchanges_messages_with_the_remote_plugin<P: Subject>() {
    let greeter = SharedHook::new(Greeter::default());
    let hook = greeter.clone();
    let bind = |address| {
        Endpoint::<P>::bind_with_hook(address, Options::server(8).expect("entropy"), |_| {
            let mut host = PluginHost::<_, 1>::new();
            host.attach::<P>(hook).expect("a free slot");
            host
        })
    };
    let mut pair = Pair::<P> { server: bind(LOCAL).expect("a free port"), ..Pair::new() };
    let id = pair.client.connect(pair.server.local_addr()).expect("a free slot");
    pair.until("the plugin has greeted", |pair| pair.here.messages == [b"\x85hello"]);
    pair.client.send(id, b"\x85hello", P::RELIABLE).expect("an open connection");
    pair.until("the plugin reports the answer", |pair| pair.there.messages == [b"\x90it has answered"]);
    let used = std::panic::AssertUnwindSafe(|| {
        greeter.with(|_| pair.server.broadcast(b"\x90all", P::RELIABLE));
    });
    assert!(std::panic::catch_unwind(used).is_err(), "calling the endpoint inside its hook panics");
}

#[test]
fn a_raknet_plugin_exchanges_messages_with_the_remote_plugin() {
    a_plugin_exchanges_messages_with_the_remote_plugin::<RakNet>();
}

#[test]
fn a_game_protocol_plugin_exchanges_messages_with_the_remote_plugin() {
    a_plugin_exchanges_messages_with_the_remote_plugin::<GameProtocol>();
}

fn a_broadcast_and_a_final_message_arrive<P: Subject>() {
    let mut pair = Pair::<P>::new();
    let id = pair.client.connect(pair.server.local_addr()).expect("a free slot");
    assert_eq!(pair.server.broadcast(b"\x90nobody", P::RELIABLE).sent, 0);
    pair.until("the connection is open", |pair| {
        pair.here.connected == Some(id) && pair.there.connected.is_some()
    });
    let there = pair.there.connected.expect("the connection is open");
    assert_eq!(pair.server.broadcast_except(there, b"\x90others", P::RELIABLE).sent, 0);
    let broadcast = pair.server.broadcast(b"\x90all", P::RELIABLE);
    assert_eq!((broadcast.sent, broadcast.refused.len()), (1, 0));
    pair.server.disconnect_with(there, b"\x90kicked", P::RELIABLE).expect("an open connection");
    pair.until("the connection has ended", |pair| pair.here.ended.is_some());
    assert_eq!(pair.here.messages, [&b"\x90all"[..], b"\x90kicked"]);
}

#[test]
fn a_raknet_broadcast_reaches_all_but_one() {
    a_broadcast_and_a_final_message_arrive::<RakNet>();
}

#[test]
fn a_game_protocol_broadcast_reaches_all_but_one() {
    a_broadcast_and_a_final_message_arrive::<GameProtocol>();
}
