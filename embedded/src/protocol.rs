//! What the driver needs to know of a protocol. What runs over the socket, who holds a connection and who waits for it is
//! the same for each of them.

use core::fmt::Debug;
use core::net::SocketAddr;

use rakwire::{Instant, Machine};

/// A protocol of the core, and how its peer is asked.
pub(crate) trait Protocol: Copy + Debug + Eq {
    /// The peer itself.
    type Peer<'d>: Machine + Debug;
    /// Names a connection.
    type Id: Copy + Debug + Eq;
    /// Who the other peer says it is.
    type Identity: Copy + Debug + Default + Eq;
    /// What an open connection has to tell.
    type News: Copy + Debug + Eq;
    /// What is heard without a connection; its bytes are lent.
    type Stranger: Copy + Debug;
    /// Why a connection was not opened.
    type Failure: Copy + Debug + Eq;
    /// Why a connection ended.
    type Reason: Copy + Debug + Eq;

    /// Why a connection was not opened that ended before anybody saw it open.
    const GONE: Self::Failure;
    /// Why a connection ended that was never open.
    const NEVER_OPEN: Self::Reason;
    /// Which port a client has.
    const PORTS: Ports;

    /// The next connection that may have something to tell.
    fn poll_news(peer: &mut Self::Peer<'_>) -> Option<Self::Id>;

    /// What happened next on a connection.
    fn poll_event_of(peer: &mut Self::Peer<'_>, id: Self::Id) -> Option<Told<Self>>;

    /// What was said next without a connection.
    fn poll_stranger(peer: &mut Self::Peer<'_>) -> Option<Self::Stranger>;

    /// What was lent was read.
    fn give_back(peer: &mut Self::Peer<'_>);

    /// Whether there is no connection, not even one that is ending.
    fn is_idle(peer: &Self::Peer<'_>) -> bool;

    /// Ends a connection.
    fn disconnect(peer: &mut Self::Peer<'_>, now: Instant, id: Self::Id);
}

/// What a peer told of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told<P: Protocol> {
    /// It is open; this side asked for it.
    Opened(P::Identity),
    /// It is open; the other peer asked for it.
    Offered(SocketAddr, P::Identity),
    /// It could not be opened.
    Failed(P::Failure),
    /// It is over.
    Closed(P::Reason),
    /// Something that the holders want to know.
    News(P::News, Lending),
    /// Something that has no name here.
    Nothing,
}

/// Whether the core lends bytes that somebody reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lending {
    Nothing,
    Bytes,
}

/// Which port a client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    /// One for all its connections.
    One,
    /// A new one for each connection, as long as it has no other.
    Fresh,
}
