//! Counters of a front.

use std::sync::atomic::{AtomicU64, Ordering};

counted! {
    /// The reason why a front dropped a datagram.
    pub enum FrontDropReason {
        /// The datagram belongs to no flow.
        UnknownSource,
        /// The datagram is malformed.
        Unreadable,
        /// The cookie was issued for another client, with another key, or in an earlier epoch.
        BadCookie,
        /// The datagram requests a connection without the issued cookie, as clients without cookie support do.
        MissingCookie,
        /// The reply would be longer than the datagram, which may have a forged source.
        WouldAmplify,
        /// The limit of pongs per second was reached, for the sender's network or in total.
        PongRation,
        /// The limit of challenges per second was reached, for the sender's network or in total.
        ChallengeRation,
        /// No slot is free for another flow, or admission refused the client.
        NotAdmitted,
        /// The client exceeded its rate.
        RateLimited,
        /// All clients together exceeded their rate in this direction, and the client exceeded its share.
        TotalRate,
        /// The client's handshake budget is used up. It limits the datagrams that the front sends to the server on the
        /// client's behalf.
        HandshakeBudget,
        /// The datagram exceeds the maximum length for clients.
        TooBig,
        /// The datagram begins like a PROXY header, which the server would have believed.
        ForgedHeader,
        /// The datagram is empty.
        Empty,
        /// The datagram answers a challenge again, on an established connection.
        Repeated,
        /// The server does not answer pings, or has not answered one yet.
        NoPong,
        /// The system refused to send the datagram.
        SendRefused,
        /// The datagram arrived at a shared port, and the front's queue was full.
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
    /// Returns the current counts. Each count is exact, but they are not read atomically together.
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

    /// Counts a dropped datagram, and returns the previous number of drops for this reason.
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
    /// Open flows.
    pub flows: u64,
    /// Flows since the start.
    pub opened: u64,
    /// Datagrams and bytes forwarded to the server on connections.
    pub to_server: (u64, u64),
    /// Datagrams and bytes forwarded to clients on connections.
    pub to_client: (u64, u64),
    /// Pongs and challenges that the front sent on behalf of the server.
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
