//! What a front counts.

use std::sync::atomic::{AtomicU64, Ordering};

counted! {
    /// Why a front dropped a datagram.
    pub enum FrontDropReason {
        /// It belongs to no flow.
        UnknownSource,
        /// It can be read as nothing of its protocol.
        Unreadable,
        /// Its cookie is of another client, another key or another time.
        BadCookie,
        /// It asks for a connection without the cookie that its client was given, as clients do that know no cookies.
        MissingCookie,
        /// The answer would be longer than the datagram, whose source may be forged.
        WouldAmplify,
        /// Its network, or all together, had all pongs of this second.
        PongRation,
        /// Its network, or all together, had all challenges of this second.
        ChallengeRation,
        /// There is no place for another flow, or admission refused one.
        NotAdmitted,
        /// Its client has sent what it may send in this time.
        RateLimited,
        /// All clients together had more than they may in its direction, and its client more than its share.
        TotalRate,
        /// What it makes the front send to the server is more than the budget of its client for handshakes.
        HandshakeBudget,
        /// It is longer than clients may send.
        TooBig,
        /// It begins like a PROXY header, which the server would have believed.
        ForgedHeader,
        /// It has no bytes.
        Empty,
        /// It answers a challenge on a connection that goes on.
        Repeated,
        /// The server does not answer pings, or has not yet.
        NoPong,
        /// The system refused to send it.
        SendRefused,
        /// It arrived at a port that the front shares, and too much waited for the front.
        QueueFull,
    }
}

/// Counts of a front since its start.
#[derive(Debug, Default)]
pub struct FrontCounters {
    flows: AtomicU64,
    opened: AtomicU64,
    to_server: [AtomicU64; 2],
    to_client: [AtomicU64; 2],
    answers: AtomicU64,
    drops: [AtomicU64; FrontDropReason::ALL.len()],
}

/// Which way datagrams pass.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Direction {
    ToServer,
    ToClient,
}

impl FrontCounters {
    /// The counts of this moment. Each is exact, but they are not read atomically together.
    #[must_use]
    pub fn snapshot(&self) -> FrontSnapshot {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let traffic = |[datagrams, bytes]: &[AtomicU64; 2]| (read(datagrams), read(bytes));
        FrontSnapshot {
            flows: read(&self.flows),
            opened: read(&self.opened),
            to_server: traffic(&self.to_server),
            to_client: traffic(&self.to_client),
            answers: read(&self.answers),
            drops: self.drops.each_ref().map(read),
        }
    }

    pub(crate) fn dropped(&self, reason: FrontDropReason) {
        self.dropped_before(reason);
    }

    /// Counts a datagram that was dropped, and says how many were before it for this reason.
    pub(super) fn dropped_before(&self, reason: FrontDropReason) -> u64 {
        self.drops[reason as usize].fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn answered(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn flow_opened(&self) {
        self.flows.fetch_add(1, Ordering::Relaxed);
        self.opened.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn flow_closed(&self) {
        self.flows.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts datagrams behind each other, each `stride` bytes long except the last one.
    pub(super) fn passed(&self, direction: Direction, bytes: usize, stride: usize) {
        let [datagrams, all_bytes] = match direction {
            Direction::ToServer => &self.to_server,
            Direction::ToClient => &self.to_client,
        };
        datagrams.fetch_add(bytes.div_ceil(stride.max(1)) as u64, Ordering::Relaxed);
        all_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// The [`FrontCounters`] at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrontSnapshot {
    /// Flows that exist.
    pub flows: u64,
    /// Flows since the start.
    pub opened: u64,
    /// Datagrams and bytes of connections to the server.
    pub to_server: (u64, u64),
    /// Datagrams and bytes of connections to clients.
    pub to_client: (u64, u64),
    /// Pongs and challenges that the front answered in the place of the server.
    pub answers: u64,
    drops: [u64; FrontDropReason::ALL.len()],
}

impl FrontSnapshot {
    /// Datagrams that were dropped for `reason`.
    #[must_use]
    pub const fn drops(&self, reason: FrontDropReason) -> u64 {
        self.drops[reason as usize]
    }
}
