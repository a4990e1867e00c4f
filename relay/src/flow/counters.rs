//! Counters of the flows to one target, and the reasons that are counted: of dropped datagrams, of unreachable game
//! servers, and of ended flows.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::protocol::ProtocolKind;

/// Defines an enum, and a list of its values in the order in which they are counted.
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
    /// The reason why a datagram was dropped.
    pub enum DropReason {
        /// The queue to the game server was full, and this was its oldest datagram.
        ServerQueueFull,
        /// The datagram exceeded the maximum age in the queue to the game server.
        ServerTooOld,
        /// The queue to the client was full, and this was its oldest datagram.
        ClientQueueFull,
        /// The datagram exceeded the maximum age in the queue to the client.
        ClientTooOld,
        /// A message from the client was empty; neither protocol has empty datagrams.
        EmptyMessage,
        /// A datagram from the game server was too long for the relay or the client's transport.
        DatagramTooBig,
        /// A datagram from the client was too long for the space after the PROXY header.
        TooBigBehindHeader,
        /// A datagram from the client began like a PROXY header, which the game server would have believed.
        ForgedHeader,
        /// A datagram had a source other than the game server. It arrived before the socket was connected.
        ForeignSource,
        /// A datagram from the client belonged to another session.
        ForeignSession,
        /// A datagram from the game server began like a control message, from which the client could not have
        /// distinguished it.
        Reserved,
        /// The system temporarily refused to send the datagram.
        SendRefused,
        /// The client exceeded [`FlowLimits::rate`](super::FlowLimits::rate).
        RateLimited,
        /// All clients together exceeded [`TotalRate`](super::TotalRate) to the server, and this client exceeded its
        /// share.
        TotalToServer,
        /// All clients together exceeded [`TotalRate`](super::TotalRate) to clients, and this client exceeded its
        /// share.
        TotalToClient,
        /// The client sent a datagram other than a handshake before the game server had answered.
        NotHandshake,
        /// The client exceeded the budget of [`Handshake`](crate::protocol::Handshake).
        HandshakeBudget,
        /// The datagram was still queued for the game server when the flow ended.
        ServerFlowEnded,
        /// The datagram was still queued for the client when the flow ended.
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

    /// Returns the reason's name in control messages and metrics, which is unique per direction.
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

/// A count that increases and decreases.
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
    /// Returns the current counts. Each count is exact, but they are not read atomically together.
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

    /// Returns true if the target was ever reported unreachable for `reason`.
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
    /// Number of datagrams.
    pub datagrams: u64,
    /// Bytes of payload.
    pub bytes: u64,
}

impl Traffic {
    /// Returns the sum of two amounts of traffic.
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
    /// Number of times that a client resumed its flow.
    pub resumed: u64,
    /// Traffic to the game server.
    pub to_server: Traffic,
    /// Traffic from the game server to clients.
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

    /// Returns the number of reports by the network or this machine that the game server is unreachable for `reason`.
    #[must_use]
    pub const fn unreachable(&self, reason: Unreachable) -> u64 {
        self.unreachable[reason as usize]
    }

    /// Returns the sum of two snapshots.
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
    /// The reason why a game server is unreachable.
    pub enum Unreachable {
        /// Nothing listens on its port.
        ClosedPort,
        /// A host or firewall on the path rejects datagrams. Linux does not report a router's missing route to a
        /// connected socket.
        Host,
        /// This machine currently has no route to the server's network.
        Network,
        /// A rule of this machine, or of an IPv6 router, currently forbids sending.
        Forbidden,
        /// Any other network error.
        Other,
    }
}

impl Unreachable {
    /// Returns the reason as logged.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::ClosedPort => "nothing listens on its port",
            Self::Host => "a host or firewall on the path rejects datagrams",
            Self::Network => "there is no route to its network",
            Self::Forbidden => "a firewall rule of this machine or of a router forbids sending",
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

/// The reason why a flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowEnd {
    /// The client sent text.
    TextMessage,
    /// The client sent a message longer than [`FlowLimits::max_datagram`](super::FlowLimits::max_datagram).
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
    /// The client answered no pings, or acknowledged no data, for this time, and did not return afterwards.
    Unresponsive(Duration),
    /// The relay was stopped.
    ShuttingDown,
    /// The operator ended the flow.
    Kicked,
    /// The operator banned the address of the client.
    Banned,
    /// The UDP socket failed permanently.
    UdpFailed,
    /// The network reported that nothing listens on the game server's port before the server had sent anything, and
    /// [`Setup::closes_on_unreachable`] was set.
    ///
    /// [`Setup::closes_on_unreachable`]: super::Setup::closes_on_unreachable
    ServerUnreachable,
    /// The client began the handshake of a protocol other than that of its target; the field is the target's protocol.
    WrongProtocol(ProtocolKind),
    /// The client closed its connection.
    ClientClosed,
    /// The client's connection was lost without a close, and the client did not return.
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
        fn the_sum_of_target_snapshots_adds_every_count() {
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
