//! Distributes the requests for hardware addresses over datagrams. smoltcp sends one request per second for all
//! sockets of an interface.
//!
//! Datagrams for next hops whose hardware address may be unknown wait in a separate socket. That socket contains
//! datagrams for one next hop at a time; only answers to peers without a connection may share it. [`MIN_TURN`] limits
//! how long a datagram for another next hop waits.

use core::time::Duration;

use embassy_net::IpAddress;
use heapless::Vec;
use rakwire::Instant;

use super::buffers::METADATA_PER_DATAGRAM;
use super::neighbours::Knowledge;
use crate::unsent::UnsentReason;

/// The pause of smoltcp after a request, for all sockets of the interface (`Cache::SILENT_TIME`, and
/// `Meta::DISCOVERY_SILENT_TIME` for the socket that caused the request).
const SILENCE: Duration = Duration::from_secs(1);
/// The part of the pause in which a datagram certainly causes no request.
const CERTAIN_SILENCE: Duration = Duration::from_millis(900);
/// Time limit for a datagram from the application. smoltcp sends two requests in this time, or one if another socket
/// used the first.
const WANTED_LIMIT: Duration = Duration::from_millis(1_900);
/// The interval between an unanswered request and the next one. The request in between is left to other sockets, such
/// as those of TCP connections, which repeat their requests after [`SILENCE`].
const NEXT_REQUEST: Duration = Duration::from_millis(2_100);
/// The minimum time for which a datagram keeps the socket. If the hardware address is known, the datagram leaves when
/// the network stack next runs.
const MIN_TURN: Duration = Duration::from_millis(5);
/// Time limit for an answer to a peer without a connection.
const ANSWER_LIMIT: Duration = Duration::from_millis(50);
/// The minimum time for which a datagram from the application keeps the socket before such an answer may displace it.
const MIN_WANTED_TURN: Duration = Duration::from_millis(100);

/// The purpose of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The application requested the datagram, or has a connection with its receiver.
    Wanted,
    /// The datagram answers a peer without a connection, which may have a forged address.
    Answer,
}

/// The decision on a datagram for a next hop that is not known to be reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Write the datagram to the socket.
    Send,
    /// Try again at this time.
    Wait(Instant),
    /// Discard the contents of the socket, and write the datagram to it.
    Displace,
    Drop(UnsentReason),
}

/// The contents of the socket.
#[derive(Debug)]
struct Pending {
    hops: Vec<IpAddress, METADATA_PER_DATAGRAM>,
    datagrams: u32,
    purpose: Purpose,
    /// Set if smoltcp may have sent a request immediately.
    is_requested: bool,
    since: Instant,
}

impl Pending {
    /// Returns the time at which the datagrams are discarded.
    fn limit(&self) -> Instant {
        self.since
            + match self.purpose {
                Purpose::Answer => ANSWER_LIMIT,
                Purpose::Wanted => WANTED_LIMIT,
            }
    }

    /// Returns the time of the last request, if one was sent by `now`.
    fn requested(&self, now: Instant) -> Option<Instant> {
        let second = self.since + SILENCE;
        if now >= second { Some(second) } else { self.is_requested.then_some(self.since) }
    }

    /// Returns whether only datagrams for this next hop are waiting.
    fn is_only(&self, hop: IpAddress) -> bool {
        self.hops.iter().all(|waiting| *waiting == hop)
    }
}

/// The datagrams that were discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Discarded {
    pub(super) datagrams: u32,
    /// The next hop that has not answered a request.
    pub(super) failed: Option<IpAddress>,
}

/// The contents of the socket, and the last unanswered request.
#[derive(Debug, Default)]
pub(super) struct Resolution {
    pending: Option<Pending>,
    last_request: Option<Instant>,
}

impl Resolution {
    /// Decides whether a datagram for the next hop `hop` is written to the socket, waits, displaces the contents of
    /// the socket, or is dropped.
    pub(super) fn decide(
        &self,
        now: Instant,
        hop: IpAddress,
        purpose: Purpose,
        knowledge: Knowledge,
    ) -> Decision {
        let is_first = purpose == Purpose::Wanted && knowledge == Knowledge::Unknown;
        if !is_first && !self.may_try(now, knowledge) {
            return Decision::Drop(match purpose {
                Purpose::Wanted => UnsentReason::BackedOff,
                Purpose::Answer => UnsentReason::Rationed,
            });
        }
        let Some(pending) = &self.pending else { return Decision::Send };
        let age = now.saturating_since(pending.since);
        match (purpose, pending.purpose) {
            _ if pending.is_only(hop) => Decision::Send,
            (Purpose::Answer, Purpose::Answer) if age < MIN_TURN => Decision::Send,
            (Purpose::Answer, Purpose::Wanted) if age < MIN_WANTED_TURN => {
                Decision::Drop(UnsentReason::Rationed)
            }
            (Purpose::Wanted, _) if age < MIN_TURN => Decision::Wait(pending.since + MIN_TURN),
            _ => Decision::Displace,
        }
    }

    /// Returns whether a datagram may be written to the socket. It causes a request, unless smoltcp knows the
    /// hardware address. During the pause after a request smoltcp sends none, so any datagram may be written.
    fn may_try(&self, now: Instant, knowledge: Knowledge) -> bool {
        let pending = self.pending.as_ref().and_then(|pending| pending.requested(now));
        let since = pending.max(self.last_request).map(|last| now.saturating_since(last));
        let is_due = !matches!(knowledge, Knowledge::Unanswered(due) if now < due);
        since.is_none_or(|since| since >= NEXT_REQUEST) && is_due
            || since.is_some_and(|since| since < CERTAIN_SILENCE)
    }

    /// Records that a datagram was written to the socket.
    pub(super) fn sent(&mut self, now: Instant, hop: IpAddress, purpose: Purpose) {
        let is_requested = self.last_request.is_none_or(|last| now >= last + SILENCE);
        let pending = self.pending.get_or_insert_with(|| Pending {
            hops: Vec::new(),
            datagrams: 0,
            purpose,
            is_requested,
            since: now,
        });
        if purpose == Purpose::Wanted {
            pending.purpose = Purpose::Wanted;
        }
        pending.datagrams = pending.datagrams.saturating_add(1);
        if !pending.hops.contains(&hop) {
            // There is space for one entry per datagram that the socket holds.
            let _ = pending.hops.push(hop);
        }
    }

    /// Records that all datagrams have left the socket. Returns their next hops, which now have known hardware
    /// addresses.
    pub(super) fn flushed(&mut self) -> Vec<IpAddress, METADATA_PER_DATAGRAM> {
        self.pending.take().map_or_else(Vec::new, |pending| pending.hops)
    }

    /// Records that the contents of the socket were discarded.
    pub(super) fn discarded(&mut self, now: Instant) -> Discarded {
        let Some(pending) = self.pending.take() else { return Discarded { datagrams: 0, failed: None } };
        let requested = pending.requested(now);
        self.last_request = requested.max(self.last_request);
        let failed = match pending.hops[..] {
            [hop]
                if requested.is_some_and(|at| now >= at + MIN_TURN) && pending.purpose == Purpose::Wanted =>
            {
                Some(hop)
            }
            _ => None,
        };
        Discarded { datagrams: pending.datagrams, failed }
    }

    /// Returns the time at which the contents of the socket must be discarded.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.pending.as_ref().map(Pending::limit)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.pending.is_none()
    }

    /// Resets the state because the network has changed.
    pub(super) fn clear(&mut self) {
        self.last_request = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: Knowledge = Knowledge::Unknown;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(10_000 + millis)
    }

    fn hop(number: u8) -> IpAddress {
        IpAddress::v4(10, 0, 0, number)
    }

    /// Simulates a datagram for a next hop that does not answer.
    fn lose(resolution: &mut Resolution, from: u64, until: u64, purpose: Purpose) {
        resolution.sent(at(from), hop(99), purpose);
        resolution.discarded(at(until));
    }

    #[test]
    fn the_request_after_an_unanswered_request_is_left_to_other_sockets() {
        let mut resolution = Resolution::default();
        lose(&mut resolution, 0, 50, Purpose::Answer);
        let decide = |time| resolution.decide(at(time), hop(1), Purpose::Answer, UNKNOWN);
        assert_eq!(decide(100), Decision::Send, "smoltcp sends no request during its pause");
        for time in [950, 1_000, 1_500, 2_050] {
            assert_eq!(decide(time), Decision::Drop(UnsentReason::Rationed));
        }
        assert_eq!(decide(2_100), Decision::Send);
    }

    #[test]
    fn an_untried_next_hop_is_not_delayed_by_an_unanswered_request() {
        let mut resolution = Resolution::default();
        lose(&mut resolution, 0, 900, Purpose::Wanted);
        assert_eq!(resolution.decide(at(1_500), hop(1), Purpose::Wanted, UNKNOWN), Decision::Send);
    }

    #[test]
    fn an_unanswered_next_hop_is_backed_off() {
        let mut resolution = Resolution::default();
        lose(&mut resolution, 0, 900, Purpose::Wanted);
        let failed = Knowledge::Unanswered(at(1_000));
        assert_eq!(
            resolution.decide(at(1_500), hop(99), Purpose::Wanted, failed),
            Decision::Drop(UnsentReason::BackedOff),
            "smoltcp's next request is left to other sockets"
        );
        let later = Knowledge::Unanswered(at(5_000));
        assert_eq!(
            resolution.decide(at(3_000), hop(99), Purpose::Wanted, later),
            Decision::Drop(UnsentReason::BackedOff)
        );
    }

    #[test]
    fn an_unresponsive_next_hop_blocks_the_socket_only_briefly() {
        let mut resolution = Resolution::default();
        resolution.sent(at(0), hop(1), Purpose::Wanted);
        let decide = |time, purpose| resolution.decide(at(time), hop(2), purpose, UNKNOWN);
        assert_eq!(decide(1, Purpose::Wanted), Decision::Wait(at(5)));
        assert_eq!(decide(5, Purpose::Wanted), Decision::Displace);
        assert_eq!(decide(99, Purpose::Answer), Decision::Drop(UnsentReason::Rationed));
        assert_eq!(decide(100, Purpose::Answer), Decision::Displace);
        assert_eq!(resolution.deadline(), Some(at(1_900)));
        assert_eq!(resolution.discarded(at(5)), Discarded { datagrams: 1, failed: Some(hop(1)) });
    }

    #[test]
    fn a_next_hop_fails_only_after_its_own_request_expired() {
        let mut resolution = Resolution::default();
        lose(&mut resolution, 0, 5, Purpose::Wanted);
        resolution.sent(at(5), hop(1), Purpose::Wanted);
        assert_eq!(resolution.discarded(at(500)).failed, None);
        resolution.sent(at(6_000), hop(1), Purpose::Wanted);
        assert_eq!(resolution.discarded(at(6_001)).failed, None, "the request has not expired");
        resolution.sent(at(7_000), hop(1), Purpose::Wanted);
        assert_eq!(resolution.discarded(at(8_900)).failed, Some(hop(1)));
        resolution.sent(at(19_000), hop(1), Purpose::Answer);
        resolution.sent(at(19_001), hop(2), Purpose::Answer);
        assert_eq!(resolution.discarded(at(19_050)), Discarded { datagrams: 2, failed: None });
    }
}
