//! What happens at the port for data channels.

use std::sync::atomic::{AtomicU64, Ordering};

use super::stun::Unanswered;

counted! {
    /// Why a datagram for the data channels was dropped.
    pub enum WebRtcDropReason {
        /// It is neither a connectivity check nor a DTLS record, or a damaged one.
        Unreadable,
        /// It is a check by somebody who does not know the fingerprint.
        WrongPassword,
        /// The reply would be longer than the check, whose source may be forged.
        WouldAmplify,
        /// Its site (a /24 of IPv4, a /48 of IPv6), or all together, had all challenges of this second.
        CheckRation,
        /// It answers a check that was not sent to its source, or too long ago.
        UnknownAnswer,
        /// Its source has no session, and it begins none.
        UnknownSource,
        /// It would begin a session, but its source has not answered a check, and may be forged.
        UnvalidatedSource,
        /// Its network, or all together, had all new sessions of this second, or too many that are half open.
        SessionRation,
        /// Its session was half open for longest when another one needed its place.
        HalfOpenFull,
        /// Its session has not taken what arrived before.
        SessionBusy,
        /// Its client has not asked for a flow yet.
        BeforeRequest,
        /// It would begin a session while the relay shuts down.
        ShuttingDown,
        /// The system refused to send it.
        SendRefused,
    }
}

impl From<Unanswered> for WebRtcDropReason {
    fn from(reason: Unanswered) -> Self {
        match reason {
            Unanswered::Unreadable => Self::Unreadable,
            Unanswered::WrongPassword => Self::WrongPassword,
            Unanswered::WouldAmplify => Self::WouldAmplify,
        }
    }
}

/// Counts of the data channels since the start.
#[derive(Debug, Default)]
pub struct WebRtcCounters {
    answers: AtomicU64,
    challenges: AtomicU64,
    begun: AtomicU64,
    secured: AtomicU64,
    connected: AtomicU64,
    failed: AtomicU64,
    drops: [AtomicU64; WebRtcDropReason::ALL.len()],
}

impl WebRtcCounters {
    /// The counts of this moment. Each is exact, but they are not read atomically together.
    #[must_use]
    pub fn snapshot(&self) -> WebRtcSnapshot {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        WebRtcSnapshot {
            answers: read(&self.answers),
            challenges: read(&self.challenges),
            begun: read(&self.begun),
            secured: read(&self.secured),
            connected: read(&self.connected),
            failed: read(&self.failed),
            drops: self.drops.each_ref().map(read),
        }
    }

    pub(crate) fn dropped(&self, reason: WebRtcDropReason) {
        self.drops[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn answered(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn challenged(&self) {
        self.challenges.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn session_begun(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn session_secured(&self) {
        self.secured.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn session_connected(&self) {
        self.connected.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn session_failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }
}

/// The [`WebRtcCounters`] at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebRtcSnapshot {
    /// Connectivity checks that were answered.
    pub answers: u64,
    /// Connectivity checks whose source was sent a check in turn, since it had not shown that it is there.
    pub challenges: u64,
    /// Sessions that began with a client hello.
    pub begun: u64,
    /// Sessions whose handshake of DTLS is over.
    pub secured: u64,
    /// Sessions whose client has asked for a flow.
    pub connected: u64,
    /// Sessions that ended before that.
    pub failed: u64,
    drops: [u64; WebRtcDropReason::ALL.len()],
}

impl WebRtcSnapshot {
    /// Datagrams that were dropped for `reason`.
    #[must_use]
    pub const fn drops(&self, reason: WebRtcDropReason) -> u64 {
        self.drops[reason as usize]
    }
}
