//! Reports of unreachable addresses, such as ICMP errors, which may be forged.

use core::net::SocketAddr;

use rakwire::endpoint::{Event, Peer, Protocol};
use rakwire::game_protocol::{self, GameProtocol};
use rakwire::raknet::{self, RakNet};
use rakwire::{Instant, Machine};

const CLIENT: ([u8; 4], u16) = ([192, 0, 2, 1], 50_000);
const SERVER: ([u8; 4], u16) = ([198, 51, 100, 1], 19_132);

fn peer<P: Protocol>(entropy: u8, max_incoming: u16) -> Peer<'static, P> {
    let mut config = P::config([entropy; 32]);
    *P::max_incoming(&mut config) = max_incoming;
    Peer::with_capacity(rakwire::endpoint::Capacity::default(), config)
}

/// Delivers all datagrams that `from` sends at `now` to the peer `to`.
fn pass<P: Protocol>(now: Instant, from: &mut Peer<'_, P>, address: SocketAddr, to: &mut Peer<'_, P>) {
    let mut buffer = [0; 1_500];
    from.handle_timeout(now);
    while let Some(transmit) = Machine::poll_transmit(from, now, &mut buffer) {
        to.handle_datagram(now, address, transmit.payload);
    }
}

fn failure<P: Protocol>(client: &mut Peer<'_, P>) -> Option<P::ConnectFailure> {
    match client.poll_event() {
        Some(Event::ConnectFailed { reason, .. }) => Some(reason),
        _ => None,
    }
}

fn an_attempt_without_an_answer_ends<P: Protocol>(expected: P::ConnectFailure) {
    let mut client = peer::<P>(1, 0);
    client.connect(Instant::ZERO, SERVER.into()).expect("a free slot");
    client.handle_unreachable(Instant::ZERO, CLIENT.into());
    assert_eq!(failure(&mut client), None, "a report about another address must be ignored");
    client.handle_unreachable(Instant::ZERO, SERVER.into());
    assert_eq!(failure(&mut client), Some(expected));
    assert!(P::was_unanswered(&expected));
    client.connect(Instant::ZERO, SERVER.into()).expect("the slot and the address are free");
}

fn an_open_connection_continues<P: Protocol>() {
    let (mut client, mut server) = (peer::<P>(1, 0), peer::<P>(2, 4));
    client.connect(Instant::ZERO, SERVER.into()).expect("a free slot");
    // A RakNet client first sends a ping. Its pong counts as a response, so later reports do not fail the attempt.
    pass(Instant::ZERO, &mut client, CLIENT.into(), &mut server);
    pass(Instant::ZERO, &mut server, SERVER.into(), &mut client);
    for now in (0..50).map(|number| Instant::from_micros(10_000 * number)) {
        client.handle_unreachable(now, SERVER.into());
        server.handle_unreachable(now, CLIENT.into());
        pass(now, &mut client, CLIENT.into(), &mut server);
        pass(now, &mut server, SERVER.into(), &mut client);
    }
    let now = Instant::from_micros(500_000);
    for (peer, other) in [(&mut client, SERVER), (&mut server, CLIENT)] {
        let event = peer.poll_event();
        assert!(matches!(event, Some(Event::Connected { .. })), "{event:?}");
        peer.handle_unreachable(now, other.into());
        assert!(peer.poll_event().is_none(), "the connection must stay open");
        assert_eq!(peer.connections().count(), 1);
    }
}

#[test]
fn an_unreachable_report_fails_an_unanswered_raknet_attempt() {
    an_attempt_without_an_answer_ends::<RakNet>(raknet::ConnectFailure::Unreachable);
}

#[test]
fn an_unreachable_report_fails_an_unanswered_game_protocol_attempt() {
    an_attempt_without_an_answer_ends::<GameProtocol>(game_protocol::ConnectFailure::Unreachable);
}

#[test]
fn an_unreachable_report_does_not_close_a_raknet_connection() {
    an_open_connection_continues::<RakNet>();
}

#[test]
fn an_unreachable_report_does_not_close_a_game_protocol_connection() {
    an_open_connection_continues::<GameProtocol>();
}
