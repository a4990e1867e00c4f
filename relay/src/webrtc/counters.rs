//! Counters of the data channel port.

use std::sync::atomic::{AtomicU64, Ordering};

use super::stun::Unanswered;

counted! {
    /// The reason why a datagram for the data channels was dropped.
    pub enum WebRtcDropReason {
        /// The datagram is damaged, or is neither a connectivity check nor a DTLS record.
        Unreadable,
        /// A check was created without the relay's fingerprint.
        WrongPassword,
        /// The reply would be longer than the check, which may have a forged source.
        WouldAmplify,
        /// The limit of challenges per second was reached, for the source's site (an IPv4 /24 or an IPv6 /48) or in
        /// total.
        CheckRation,
        /// The datagram answers a check that was not sent to its source, or was sent too long ago.
        UnknownAnswer,
        /// The source has no session, and the datagram begins none.
        UnknownSource,
        /// The datagram would begin a session, but its source has not answered a check and may be forged.
        UnvalidatedSource,
        /// The limit of new sessions per second or of half-open sessions was reached, for the source's network or in
        /// total.
        SessionRation,
        /// The datagram's session was the oldest half-open one, and was evicted for a new session.
        HalfOpenFull,
        /// The session has not processed earlier datagrams yet.
        SessionBusy,
        /// The client has not requested a flow yet.
        BeforeRequest,
        /// The datagram would begin a session while the relay shuts down.
        ShuttingDown,
        /// The system refused to send the datagram.
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
    /// Returns the current counts. Each count is exact, but they are not read atomically together.
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
    /// Sessions that ended before the client had requested a flow.
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
