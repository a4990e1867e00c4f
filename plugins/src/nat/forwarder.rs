//! Forwards datagrams between two clients that cannot reach each other.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use rakwire::raknet::Guid;
use rakwire::wire::offline::Offline;
use rakwire::wire::{Reader, Wire};
use rakwire::{HostPrefix, Instant};

use super::wire::{Punch, PunchKind};

/// Bytes a second that are forwarded of one pair, in both directions together.
pub const FORWARDING_RATE: u32 = 256 << 10;
/// How long a pair keeps its port when nothing passes.
pub const FORWARDING_TIME: Duration = Duration::from_secs(30);

/// One of both ends.
#[derive(Clone, Copy, Debug)]
struct End {
    /// Where its client is, as its connection to the facilitator has it.
    ip: IpAddr,
    /// Where its datagrams come from, once it has said the number of the session.
    address: Option<SocketAddr>,
}

/// A port of the facilitator that belongs to one pair.
#[derive(Debug)]
pub(super) struct Forwarding {
    session: u64,
    /// Whose datagrams these are.
    clients: [Guid; 2],
    connecting: End,
    accepting: End,
    used_at: Instant,
    /// Bytes that may pass now.
    room: u32,
}

impl Forwarding {
    pub(super) const fn new(
        now: Instant,
        session: u64,
        clients: [Guid; 2],
        [connecting, accepting]: [IpAddr; 2],
    ) -> Self {
        Self {
            session,
            clients,
            connecting: End { ip: connecting, address: None },
            accepting: End { ip: accepting, address: None },
            used_at: now,
            room: FORWARDING_RATE,
        }
    }

    pub(super) const fn session(&self) -> u64 {
        self.session
    }

    pub(super) fn is_of(&self, client: Guid) -> bool {
        self.clients.contains(&client)
    }

    pub(super) fn is_of_host(&self, host: HostPrefix) -> bool {
        [self.connecting, self.accepting].iter().any(|end| HostPrefix::of(end.ip) == host)
    }

    pub(super) fn is_over(&self, now: Instant) -> bool {
        now >= self.used_at + FORWARDING_TIME
    }

    pub(super) fn ends_at(&self) -> Instant {
        self.used_at + FORWARDING_TIME
    }

    /// Where a datagram goes; `None` if it is dropped.
    pub(super) fn forward(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Option<SocketAddr> {
        self.learn(from, datagram);
        let to = if self.connecting.address == Some(from) {
            self.accepting.address
        } else if self.accepting.address == Some(from) {
            self.connecting.address
        } else {
            return None;
        };
        let refilled = now.saturating_since(self.used_at).as_micros().min(1_000_000)
            * u128::from(FORWARDING_RATE)
            / 1_000_000;
        let refilled = u32::try_from(refilled).unwrap_or(FORWARDING_RATE);
        self.room = self.room.saturating_add(refilled).min(FORWARDING_RATE);
        self.used_at = now;
        self.room = self.room.checked_sub(u32::try_from(datagram.len()).ok()?)?;
        to
    }

    /// A punch with the number of the session says which of both ends an address is. Only the first counts, and only from where
    /// the client is.
    fn learn(&mut self, from: SocketAddr, datagram: &[u8]) {
        let Ok(Offline::OutOfBand { data, .. }) = Offline::read(&mut Reader::new(datagram)) else { return };
        let Some(punch) = Punch::decode(data).filter(|punch| punch.number == self.session) else { return };
        let end = match punch.kind {
            PunchKind::ToAccepting => &mut self.connecting,
            PunchKind::ToConnecting => &mut self.accepting,
            PunchKind::Probe | PunchKind::Knock | PunchKind::Ack => return,
        };
        if end.ip == from.ip() {
            end.address.get_or_insert(from);
        }
    }
}
