//! Counters of the data channel port.

use std::sync::atomic::{AtomicU64, Ordering};

use super::stun::Unanswered;

counted! {
    /// Why a datagram for the data channels was dropped.
    pub enum WebRtcDropReason {
        /// It is neither a connectivity check nor a DTLS record, or it is damaged.
        Unreadable,
        /// A check without the fingerprint of the relay.
        WrongPassword,
        /// The reply would be longer than the check, and the source may be forged.
        WouldAmplify,
        /// The limit of challenges per second was reached, for its site (a /24 of IPv4, a /48 of IPv6) or in total.
        CheckRation,
        /// It answers a check that was not sent to its source, or too long ago.
        UnknownAnswer,
        /// Its source has no session, and it begins none.
        UnknownSource,
        /// It would begin a session, but its source has not answered a check and may be forged.
        UnvalidatedSource,
        /// The limit of new sessions per second or of half-open ones was reached, for its network or in total.
        SessionRation,
        /// Its session was the oldest half-open one when a new session needed its slot.
        HalfOpenFull,
        /// Its session has not processed earlier datagrams yet.
        SessionBusy,
        /// Its client has not requested a flow yet.
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

/// Counters of the data channels since the start.
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
    /// Returns the current counts. Each is exact, but they are not read atomically together.
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
    /// Connectivity checks that were answered with a challenge, because the source was not validated.
    pub challenges: u64,
    /// Sessions that began with a client hello.
    pub begun: u64,
    /// Sessions that completed the DTLS handshake.
    pub secured: u64,
    /// Sessions in which the client has requested a flow.
    pub connected: u64,
    /// Sessions that ended before that.
    pub failed: u64,
    drops: [u64; WebRtcDropReason::ALL.len()],
}

impl WebRtcSnapshot {
    /// Returns the datagrams dropped for `reason`.
    #[must_use]
    pub const fn drops(&self, reason: WebRtcDropReason) -> u64 {
        self.drops[reason as usize]
    }
}
