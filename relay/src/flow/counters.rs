//! Counters of the flows to one target, and the counted reasons: why a datagram was dropped, why a game server is
//! unreachable according to the network and this machine, and why a flow ended.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::protocol::ProtocolKind;

/// Defines an enum with all its values in the order in which they are counted.
macro_rules! counted {
    ($(#[$doc:meta])+ pub enum $name:ident { $($(#[$value_doc:meta])+ $value:ident,)+ }) => {
        $(#[$doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$value_doc])+ $value,)+
        }

        impl $name {
            /// All values, in the order in which they are counted.
            pub const ALL: [Self; [$(stringify!($value)),+].len()] = [$(Self::$value),+];
        }
    };
}

/// A direction of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client to its game server.
    ToServer,
    /// From the game server to the client.
    ToClient,
}

counted! {
    /// Why a datagram was dropped.
    pub enum DropReason {
        /// The queue towards the game server was full, and this was its oldest datagram.
        ServerQueueFull,
        /// It waited too long in the queue towards the game server.
        ServerTooOld,
        /// The queue towards the client was full, and this was its oldest datagram.
        ClientQueueFull,
        /// It waited too long in the queue towards the client.
        ClientTooOld,
        /// A message of the client was empty; neither protocol has empty datagrams.
        EmptyMessage,
        /// A datagram of the game server was too long for the relay or for the client's transport.
        DatagramTooBig,
        /// A datagram of the client was too long to fit behind the PROXY header.
        TooBigBehindHeader,
        /// A datagram of the client began like a PROXY header, which the game server would have trusted.
        ForgedHeader,
        /// A datagram came from another source than the game server, before the socket was connected.
        ForeignSource,
        /// A datagram of the client belonged to another session.
        ForeignSession,
        /// A datagram of the game server began like a control message, and the client would have mistaken it for one.
        Reserved,
        /// The system refused to send the datagram for a temporary reason.
        SendRefused,
        /// The client sent more than [`FlowLimits::rate`](super::FlowLimits::rate).
        RateLimited,
        /// All clients together sent more than [`TotalRate`](super::TotalRate) allows, and this one more than its
        /// share.
        TotalToServer,
        /// All clients together were sent more than [`TotalRate`](super::TotalRate) allows, and this one more than its
        /// share.
        TotalToClient,
        /// The client sent something other than a handshake before the game server had answered.
        NotHandshake,
        /// The client sent more handshake bytes than [`Handshake`](crate::protocol::Handshake) allows.
        HandshakeBudget,
        /// It was still queued for the game server when the flow ended.
        ServerFlowEnded,
        /// It was still queued for the client when the flow ended.
        ClientFlowEnded,
    }
}

impl DropReason {
    /// Returns the direction of the datagram.
    #[must_use]
    pub const fn direction(self) -> Direction {
        match self {
            Self::ClientQueueFull
            | Self::ClientTooOld
            | Self::DatagramTooBig
            | Self::ForeignSource
            | Self::Reserved
            | Self::TotalToClient
            | Self::ClientFlowEnded => Direction::ToClient,
            Self::ServerQueueFull
            | Self::ServerTooOld
            | Self::EmptyMessage
            | Self::ForeignSession
            | Self::TooBigBehindHeader
            | Self::ForgedHeader
            | Self::SendRefused
            | Self::RateLimited
            | Self::TotalToServer
            | Self::NotHandshake
            | Self::HandshakeBudget
            | Self::ServerFlowEnded => Direction::ToServer,
        }
    }

    /// Returns the name in control messages and metrics, unique in its direction.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ServerQueueFull | Self::ClientQueueFull => "queue_full",
            Self::ServerTooOld | Self::ClientTooOld => "too_old",
            Self::EmptyMessage => "empty_message",
            Self::DatagramTooBig | Self::TooBigBehindHeader => "too_big",
            Self::ForgedHeader => "forged_header",
            Self::ForeignSource => "foreign_source",
            Self::ForeignSession => "foreign_session",
            Self::Reserved => "reserved",
            Self::SendRefused => "send_refused",
            Self::RateLimited => "rate_limited",
            Self::TotalToServer | Self::TotalToClient => "total_rate",
            Self::NotHandshake => "not_handshake",
            Self::HandshakeBudget => "handshake_budget",
            Self::ServerFlowEnded | Self::ClientFlowEnded => "flow_ended",
        }
    }
}

/// A count that only increases.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `number`.
    pub fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    /// Returns the count.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number of things that currently exist.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicU64);

impl Gauge {
    pub(crate) fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn decrement(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
struct TrafficCounter {
    datagrams: Counter,
    bytes: Counter,
}

impl TrafficCounter {
    fn add(&self, datagrams: usize, bytes: usize) {
        self.datagrams.add(datagrams as u64);
        self.bytes.add(bytes as u64);
    }

    fn snapshot(&self) -> Traffic {
        Traffic { datagrams: self.datagrams.get(), bytes: self.bytes.get() }
    }
}

/// Counts over all flows to one target.
#[derive(Debug, Default)]
pub struct TargetCounters {
    pub(crate) clients: Gauge,
    pub(super) detached: Gauge,
    pub(crate) flows: Counter,
    pub(super) resumed: Counter,
    to_server: TrafficCounter,
    to_client: TrafficCounter,
    unreachable: [Counter; Unreachable::ALL.len()],
    drops: [Counter; DropReason::ALL.len()],
}

impl TargetCounters {
    /// Returns the current counts. Each is exact, but they are not read atomically together.
    #[must_use]
    pub fn snapshot(&self) -> TargetSnapshot {
        TargetSnapshot {
            clients: self.clients.get(),
            detached: self.detached.get(),
            flows: self.flows.get(),
            resumed: self.resumed.get(),
            to_server: self.to_server.snapshot(),
            to_client: self.to_client.snapshot(),
            unreachable: self.unreachable.each_ref().map(Counter::get),
            drops: self.drops.each_ref().map(Counter::get),
        }
    }

    pub(super) fn sent_to_server(&self, datagrams: usize, bytes: usize) {
        self.to_server.add(datagrams, bytes);
    }

    pub(super) fn sent_to_client(&self, bytes: usize) {
        self.to_client.add(1, bytes);
    }

    pub(crate) fn unreachable(&self, reason: Unreachable) {
        self.unreachable[reason as usize].increment();
    }

    /// Returns true if the target has been unreachable for `reason`.
    pub(super) fn has_been_unreachable(&self, reason: Unreachable) -> bool {
        self.unreachable[reason as usize].get() > 0
    }

    pub(super) fn dropped(&self, reason: DropReason, count: u64) {
        self.drops[reason as usize].add(count);
    }
}

/// The traffic in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes of payload.
    pub bytes: u64,
}

impl Traffic {
    /// Returns the sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { datagrams: self.datagrams + other.datagrams, bytes: self.bytes + other.bytes }
    }
}

/// The [`TargetCounters`] at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TargetSnapshot {
    /// Flows that have a connected client.
    pub clients: u64,
    /// Flows that wait for their client to return.
    pub detached: u64,
    /// Flows since the start.
    pub flows: u64,
    /// How often a client resumed its flow.
    pub resumed: u64,
    /// Traffic to the game server.
    pub to_server: Traffic,
    /// Traffic to clients.
    pub to_client: Traffic,
    unreachable: [u64; Unreachable::ALL.len()],
    drops: [u64; DropReason::ALL.len()],
}

impl TargetSnapshot {
    /// Returns the datagrams dropped for `reason`.
    #[must_use]
    pub const fn drops(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// Returns how often the network or this machine reported the game server as unreachable for `reason`.
    #[must_use]
    pub const fn unreachable(&self, reason: Unreachable) -> u64 {
        self.unreachable[reason as usize]
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        let Self { mut drops, mut unreachable, .. } = self;
        let sums = drops.iter_mut().chain(&mut unreachable);
        for (sum, more) in sums.zip(other.drops.into_iter().chain(other.unreachable)) {
            *sum += more;
        }
        Self {
            clients: self.clients + other.clients,
            detached: self.detached + other.detached,
            flows: self.flows + other.flows,
            resumed: self.resumed + other.resumed,
            to_server: self.to_server.plus(other.to_server),
            to_client: self.to_client.plus(other.to_client),
            unreachable,
            drops,
        }
    }
}

counted! {
    /// Why a game server is unreachable.
    pub enum Unreachable {
        /// Nothing listens at its port.
        ClosedPort,
        /// A firewall on the path rejects it. Linux does not report a router's missing route to a connected socket.
        Host,
        /// There is currently no route to its network.
        Network,
        /// A rule of this machine, or of an IPv6 router, currently forbids it.
        Forbidden,
        /// Any other network error.
        Other,
    }
}

impl Unreachable {
    /// Returns the meaning in the words of the log.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::ClosedPort => "nothing listens at its port",
            Self::Host => "a firewall on the way does not let datagrams through",
            Self::Network => "there is no route to its network",
            Self::Forbidden => "a rule of this machine or of a router forbids it",
            Self::Other => "the network reports another error",
        }
    }

    /// Returns true if the game server itself is absent. The other reasons concern the path, which may recover.
    #[must_use]
    pub const fn is_server_absent(self) -> bool {
        match self {
            Self::ClosedPort => true,
            Self::Host | Self::Network | Self::Forbidden | Self::Other => false,
        }
    }
}

/// Why a flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowEnd {
    /// The client sent text.
    TextMessage,
    /// The client sent a message above [`FlowLimits::max_datagram`](super::FlowLimits::max_datagram).
    MessageTooBig {
        /// The length of the message in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The client broke the WebSocket protocol.
    ProtocolViolation,
    /// No datagram arrived in either direction for this time.
    Idle(Duration),
    /// The client answered no pings, or acknowledged no data, for this time, and did not return.
    Unresponsive(Duration),
    /// The relay is stopped.
    ShuttingDown,
    /// The operator ended it.
    Kicked,
    /// The operator banned the address of the client.
    Banned,
    /// The UDP socket failed for good.
    UdpFailed,
    /// The network reported that nothing listens on the game server's port before it had sent anything, and
    /// [`Setup::closes_on_unreachable`] is set.
    ///
    /// [`Setup::closes_on_unreachable`]: super::Setup::closes_on_unreachable
    ServerUnreachable,
    /// The client began the handshake of another protocol than that of the target, given here.
    WrongProtocol(ProtocolKind),
    /// The client closed its connection.
    ClientClosed,
    /// The connection of the client ended without a close, and the client did not return.
    ClientVanished,
}

#[cfg(test)]
mod tests {
    mod counters {
        use super::super::*;

        #[test]
        fn reasons_are_listed_in_the_order_of_their_values() {
            for (index, reason) in DropReason::ALL.into_iter().enumerate() {
                assert_eq!(reason as usize, index);
            }
        }

        #[test]
        fn names_are_unique_in_their_direction() {
            for one in DropReason::ALL {
                for other in DropReason::ALL {
                    let same = one.direction() == other.direction() && one.name() == other.name();
                    assert_eq!(same, one == other, "{one:?} and {other:?}");
                }
            }
        }

        #[test]
        fn target_snapshots_add_up() {
            let (one, two) = (TargetCounters::default(), TargetCounters::default());
            one.sent_to_client(7);
            two.sent_to_client(3);
            two.dropped(DropReason::ClientTooOld, 2);
            two.clients.increment();
            let sum = one.snapshot().plus(&two.snapshot());
            assert_eq!(sum.to_client, Traffic { datagrams: 2, bytes: 10 });
            assert_eq!((sum.drops(DropReason::ClientTooOld), sum.clients), (2, 1));
        }
    }

    mod unreachable {
        use super::super::*;

        #[test]
        fn reasons_are_listed_in_the_order_of_their_values() {
            for (index, reason) in Unreachable::ALL.into_iter().enumerate() {
                assert_eq!(reason as usize, index);
            }
        }
    }
}
