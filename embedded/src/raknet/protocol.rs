//! RakNet, as the driver asks it.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::{
    ConnectFailure, ConnectionId, Delivery, DisconnectReason, Event, Guid, Outcome, Peer, Progress, Receipt,
    Side,
};

use crate::protocol::{Lending, Ports, Protocol, Told};

/// RakNet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RakNet {}

/// What the core told and lends, for whoever it is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    Message(Delivery),
    Receipt(Receipt, Outcome),
    Progress(Progress),
}

/// What a server says of itself; its words are lent by the core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PongNews {
    pub(crate) from: SocketAddr,
    pub(crate) guid: Guid,
    pub(crate) latency: Duration,
}

impl Protocol for RakNet {
    type Peer<'d> = Peer<'d>;
    type Id = ConnectionId;
    type Identity = Guid;
    type News = News;
    type Stranger = PongNews;
    type Failure = ConnectFailure;
    type Reason = DisconnectReason;

    const GONE: ConnectFailure = ConnectFailure::Closed;
    const NEVER_OPEN: DisconnectReason = DisconnectReason::Local;
    const PORTS: Ports = Ports::One;

    fn poll_news(peer: &mut Peer<'_>) -> Option<ConnectionId> {
        peer.poll_news()
    }

    fn poll_event_of(peer: &mut Peer<'_>, id: ConnectionId) -> Option<Told<Self>> {
        Some(match peer.poll_event_of(id)? {
            Event::Connected { remote, guid, side, .. } => match side {
                Side::Client => Told::Opened(guid),
                Side::Server => Told::Offered(remote, guid),
            },
            Event::ConnectFailed { reason, .. } => Told::Failed(reason),
            Event::Disconnected { reason, .. } => Told::Closed(reason),
            Event::Message { delivery, .. } => Told::News(News::Message(delivery), Lending::Bytes),
            Event::Receipt { receipt, outcome, .. } => {
                Told::News(News::Receipt(receipt, outcome), Lending::Nothing)
            }
            Event::Progress { progress, .. } => Told::News(News::Progress(progress), Lending::Nothing),
            // Strangers are heard elsewhere, and what a newer core tells has no name here.
            Event::Pong { .. } | Event::OutOfBand { .. } | Event::Advertisement { .. } | _ => Told::Nothing,
        })
    }

    fn poll_stranger(peer: &mut Peer<'_>) -> Option<PongNews> {
        while let Some(event) = peer.poll_stranger() {
            if let Event::Pong { from, guid, latency, .. } = event {
                return Some(PongNews { from, guid, latency });
            }
        }
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
