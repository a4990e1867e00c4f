//! Forwards datagrams between two clients that cannot reach each other directly.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use rakwire::raknet::Guid;
use rakwire::wire::offline::Offline;
use rakwire::wire::{Reader, Wire};
use rakwire::{HostPrefix, Instant};

use super::wire::{Punch, PunchKind};

/// The maximum forwarding rate of one pair, in bytes per second for both directions together.
pub const FORWARDING_RATE: u32 = 256 << 10;
/// The time after which an idle pair loses its port.
pub const FORWARDING_TIME: Duration = Duration::from_secs(30);

/// One client of a forwarded pair.
#[derive(Clone, Copy, Debug)]
struct End {
    /// The IP address of the client, as seen on its connection to the facilitator.
    ip: IpAddr,
    /// The source address of the client's datagrams; `None` before a punch with the session number has arrived from
    /// the client.
    address: Option<SocketAddr>,
}

/// A forwarding port that is assigned to one pair.
#[derive(Debug)]
pub(super) struct Forwarding {
    session: u64,
    /// The two clients.
    clients: [Guid; 2],
    connecting: End,
    accepting: End,
    used_at: Instant,
    /// The number of bytes that may be forwarded at the moment.
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

    /// Returns the destination of a datagram; `None` if the datagram must be dropped.
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

    /// Records the address of a client from a punch with the session number. Only the first such punch counts, and
    /// only if it comes from the client's IP address.
    fn learn(&mut self, from: SocketAddr, datagram: &[u8]) {
        let Ok(Offline::OutOfBand { data, .. }) = Offline::read(&mut Reader::new(datagram)) else { return };
        let Some(punch) = Punch::decode(data).filter(|punch| punch.number == self.session) else { return };
        let end = match punch.kind {
            PunchKind::ToAccepting => &mut self.connecting,
            PunchKind::ToConnecting => &mut self.accepting,
            PunchKind::Probe | PunchKind::FilterProbe | PunchKind::Ack => return,
        };
        if end.ip == from.ip() {
            end.address.get_or_insert(from);
        }
    }
}
