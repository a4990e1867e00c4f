//! Counters of a front.

use std::sync::atomic::{AtomicU64, Ordering};

counted! {
    /// Why a front dropped a datagram.
    pub enum FrontDropReason {
        /// It belongs to no flow.
        UnknownSource,
        /// It is malformed in its protocol.
        Unreadable,
        /// Its cookie belongs to another client, key or epoch.
        BadCookie,
        /// It requests a connection without the issued cookie, as clients without cookie support do.
        MissingCookie,
        /// The answer would be longer than the datagram, and the source may be forged.
        WouldAmplify,
        /// The limit of pongs per second was reached, for its network or in total.
        PongRation,
        /// The limit of challenges per second was reached, for its network or in total.
        ChallengeRation,
        /// There is no slot for another flow, or admission refused one.
        NotAdmitted,
        /// Its client exceeded its rate.
        RateLimited,
        /// All clients together exceeded their rate in its direction, and its client exceeded its share.
        TotalRate,
        /// It would make the front send more to the server than the client's handshake budget.
        HandshakeBudget,
        /// It is longer than clients may send.
        TooBig,
        /// It begins like a PROXY header, which the server would have trusted.
        ForgedHeader,
        /// It is empty.
        Empty,
        /// It answers a challenge on an established connection.
        Repeated,
        /// The server does not answer pings, or has not yet.
        NoPong,
        /// The system refused to send it.
        SendRefused,
        /// It arrived at a shared port, and the queue of the front was full.
        QueueFull,
    }
}

/// Counters of a front since its start.
#[derive(Debug, Default)]
pub struct FrontCounters {
    flows: AtomicU64,
    opened: AtomicU64,
    to_server: [AtomicU64; 2],
    to_client: [AtomicU64; 2],
    answers: AtomicU64,
    drops: [AtomicU64; FrontDropReason::ALL.len()],
}

/// The direction of datagrams.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Direction {
    ToServer,
    ToClient,
}

impl FrontCounters {
    /// Returns the current counts. Each is exact, but they are not read atomically together.
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

    /// Counts a dropped datagram, and returns how many were dropped for this reason before.
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

    /// Counts contiguous datagrams, each `stride` bytes long except the last one.
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
    /// Datagrams and bytes forwarded to the server on connections.
    pub to_server: (u64, u64),
    /// Datagrams and bytes forwarded to clients on connections.
    pub to_client: (u64, u64),
    /// Pongs and challenges that the front answered on behalf of the server.
    pub answers: u64,
    drops: [u64; FrontDropReason::ALL.len()],
}

impl FrontSnapshot {
    /// Returns the datagrams dropped for `reason`.
    #[must_use]
    pub const fn drops(&self, reason: FrontDropReason) -> u64 {
        self.drops[reason as usize]
    }
}
