//! The Game Protocol, as the driver asks it.

use core::convert::Infallible;

use rakwire::Instant;
use rakwire::game_protocol::{
    ConnectFailure, ConnectionId, DisconnectReason, Event, Peer, Reliability, Side,
};

use crate::protocol::{Lending, Ports, Protocol, Told};

/// The Game Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Game {}

impl Protocol for Game {
    type Peer<'d> = Peer<'d>;
    type Id = ConnectionId;
    /// Nobody says who it is.
    type Identity = ();
    /// A message, which is lent.
    type News = Reliability;
    /// Nothing is said without a connection.
    type Stranger = Infallible;
    type Failure = ConnectFailure;
    type Reason = DisconnectReason;

    const GONE: ConnectFailure = ConnectFailure::Cancelled;
    const NEVER_OPEN: DisconnectReason = DisconnectReason::Local;
    /// The original hears a client that it has once heard from the same port no more (supplement 2, handshake).
    const PORTS: Ports = Ports::Fresh;

    fn poll_news(peer: &mut Peer<'_>) -> Option<ConnectionId> {
        peer.poll_news()
    }

    fn poll_event_of(peer: &mut Peer<'_>, id: ConnectionId) -> Option<Told<Self>> {
        Some(match peer.poll_event_of(id)? {
            Event::Connected { side, remote, .. } => match side {
                Side::Client => Told::Opened(()),
                Side::Server => Told::Offered(remote, ()),
            },
            Event::ConnectFailed { reason, .. } => Told::Failed(reason),
            Event::Disconnected { reason, .. } => Told::Closed(reason),
            Event::Message { reliability, .. } => Told::News(reliability, Lending::Bytes),
            // What a newer core tells has no name here.
            _ => Told::Nothing,
        })
    }

    fn poll_stranger(_peer: &mut Peer<'_>) -> Option<Infallible> {
        None
    }

    fn give_back(peer: &mut Peer<'_>) {
        peer.give_back();
    }

    fn is_idle(peer: &Peer<'_>) -> bool {
        peer.connections().next().is_none()
    }

    fn disconnect(peer: &mut Peer<'_>, now: Instant, id: ConnectionId) {
        peer.disconnect(now, id);
    }
}
