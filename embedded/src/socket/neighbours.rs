//! The neighbours (next hops on the link): which of them are reachable, and which have not answered.

use core::time::Duration;

use embassy_net::IpAddress;
use rakwire::Instant;

/// The time for which a neighbour's hardware address counts as known after its last packet: the lifetime in smoltcp
/// (`Cache::ENTRY_LIFETIME`), minus a margin.
const LIFETIME: Duration = Duration::from_secs(55);
/// The pause after the first unanswered request. It doubles after each further unanswered request.
const BACK_OFF: Duration = Duration::from_secs(1);
/// The maximum number of doublings of `BACK_OFF`.
const MAX_DOUBLINGS: u8 = 2;
/// The number of stored neighbours in addition to one per connection.
const OTHERS: usize = 4;

/// A next hop on the link, with its reachability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbour {
    address: IpAddress,
    /// The number of consecutive unanswered requests; 0 if the hardware address is known.
    failures: u8,
    /// The last time at which the hardware address was known to be valid. For a neighbour that does not answer, the
    /// time at which the next request may be sent.
    at: Instant,
    /// Set if a datagram for this neighbour may be in the send buffer.
    is_queued: bool,
}

/// The known state of a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// Its hardware address is known.
    Reachable,
    Unknown,
    /// The neighbour has not answered. The next request may be sent at this time.
    Unanswered(Instant),
}

/// All known neighbours. If the table is full, a new neighbour replaces one that has not answered, or else the one
/// whose last packet is oldest.
#[derive(Debug)]
pub(crate) struct Neighbours<'d> {
    /// The neighbours of connections, one for each connection.
    of_connections: &'d mut [Option<Neighbour>],
    others: [Option<Neighbour>; OTHERS],
}

impl<'d> Neighbours<'d> {
    pub(crate) const fn new(of_connections: &'d mut [Option<Neighbour>]) -> Self {
        Self { of_connections, others: [None; OTHERS] }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Option<Neighbour>> {
        self.of_connections.iter_mut().chain(&mut self.others)
    }

    fn get_mut(&mut self, address: IpAddress) -> Option<&mut Neighbour> {
        self.all().flatten().find(|neighbour| neighbour.address == address)
    }

    /// Returns the known state of a next hop. A gateway does not expire, because packets that it forwards do not show
    /// whether smoltcp has renewed its entry.
    pub(super) fn knowledge(&mut self, now: Instant, address: IpAddress, is_gateway: bool) -> Knowledge {
        match self.get_mut(address) {
            Some(known) if known.failures > 0 => Knowledge::Unanswered(known.at),
            Some(known) if is_gateway || now < known.at + LIFETIME => Knowledge::Reachable,
            Some(_) | None => Knowledge::Unknown,
        }
    }

    /// Records that a datagram for this reachable neighbour was written to the send buffer.
    pub(super) fn queued(&mut self, address: IpAddress) {
        if let Some(known) = self.get_mut(address) {
            known.is_queued = true;
        }
    }

    /// Records that the send buffer is empty.
    pub(super) fn flushed(&mut self) {
        self.all().flatten().for_each(|known| known.is_queued = false);
    }

    /// Records that the send buffer is blocked, because one of the neighbours with datagrams in it is gone.
    pub(super) fn blocked(&mut self) {
        self.all().filter(|known| known.is_some_and(|known| known.is_queued)).for_each(|known| *known = None);
    }

    /// Records that a datagram arrived from this address.
    pub(super) fn received_from(&mut self, now: Instant, address: IpAddress) {
        if let Some(known) = self.get_mut(address) {
            known.at = now;
        }
    }

    /// Records that a datagram was sent to this neighbour, so its hardware address is known.
    pub(super) fn reached(&mut self, now: Instant, address: IpAddress) {
        self.put(Neighbour { address, failures: 0, at: now, is_queued: false });
    }

    /// Records that this neighbour has not answered a request.
    pub(super) fn failed(&mut self, now: Instant, address: IpAddress) {
        let before = self.get_mut(address).map_or(0, |known| known.failures);
        let pause = BACK_OFF * (1 << before.min(MAX_DOUBLINGS));
        let failures = before.saturating_add(1);
        self.put(Neighbour { address, failures, at: now + pause, is_queued: false });
    }

    pub(super) fn clear(&mut self) {
        self.all().for_each(|known| *known = None);
    }

    fn put(&mut self, neighbour: Neighbour) {
        let rank = |known: &Option<Neighbour>| match known {
            Some(known) if known.address == neighbour.address => (0, Instant::ZERO),
            None => (1, Instant::ZERO),
            Some(known) if known.failures > 0 => (2, known.at),
            Some(known) => (3, known.at),
        };
        if let Some(place) = self.all().min_by_key(|known| rank(known)) {
            *place = Some(neighbour);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> IpAddress {
        IpAddress::v4(10, 0, 0, number)
    }

    #[test]
    fn the_back_off_doubles_up_to_four_seconds_and_ends_when_a_datagram_arrives() {
        let mut places = [None; 1];
        let mut neighbours = Neighbours::new(&mut places);
        let now = Instant::ZERO + Duration::from_secs(100);
        for seconds in [1, 2, 4, 4] {
            neighbours.failed(now, address(1));
            let due = now + Duration::from_secs(seconds);
            assert_eq!(neighbours.knowledge(now, address(1), false), Knowledge::Unanswered(due));
        }
        neighbours.received_from(now, address(1));
        assert_eq!(neighbours.knowledge(now, address(1), false), Knowledge::Unanswered(now));
        neighbours.reached(now, address(1));
        assert_eq!(neighbours.knowledge(now, address(1), false), Knowledge::Reachable);
    }

    #[test]
    fn unreachable_neighbours_do_not_displace_reachable_neighbours() {
        let mut places = [None; 1];
        let mut neighbours = Neighbours::new(&mut places);
        let now = Instant::ZERO;
        for number in 0..OTHERS as u8 {
            neighbours.reached(now, address(number));
        }
        for number in 100..200 {
            neighbours.failed(now, address(number));
        }
        for number in 0..OTHERS as u8 {
            assert_eq!(neighbours.knowledge(now, address(number), false), Knowledge::Reachable);
        }
    }

    #[test]
    fn neighbours_other_than_gateways_expire_before_their_hardware_addresses() {
        let mut neighbours = Neighbours::new(&mut []);
        let start = Instant::ZERO;
        neighbours.reached(start, address(1));
        neighbours.received_from(start + Duration::from_secs(30), address(1));
        let later = start + Duration::from_secs(60);
        assert_eq!(neighbours.knowledge(later, address(1), false), Knowledge::Reachable);
        let latest = start + Duration::from_secs(90);
        assert_eq!(neighbours.knowledge(latest, address(1), false), Knowledge::Unknown);
        assert_eq!(neighbours.knowledge(latest, address(1), true), Knowledge::Reachable);
    }

    #[test]
    fn a_blocked_buffer_invalidates_only_its_own_neighbours() {
        let mut neighbours = Neighbours::new(&mut []);
        neighbours.reached(Instant::ZERO, address(1));
        neighbours.reached(Instant::ZERO, address(2));
        neighbours.reached(Instant::ZERO, address(3));
        neighbours.queued(address(3));
        neighbours.flushed();
        neighbours.queued(address(1));
        neighbours.blocked();
        assert_eq!(neighbours.knowledge(Instant::ZERO, address(1), false), Knowledge::Unknown);
        assert_eq!(neighbours.knowledge(Instant::ZERO, address(2), false), Knowledge::Reachable);
        assert_eq!(neighbours.knowledge(Instant::ZERO, address(3), false), Knowledge::Reachable);
    }
}
