//! A peer that sends acknowledgements periodically, like other implementations.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::raknet::Peer;
use rakwire::wire::datagram::{DatagramHeader, Record};
use rakwire::wire::{MAX_DATAGRAM, Reader, Wire, Writer};
use rakwire::{Instant, Machine, Transmit};

/// The number of records that fit into one datagram.
const ROOM: usize = 200;

pub(crate) struct Ticking {
    pub(crate) peer: Peer<'static>,
    period: Duration,
    next: Option<Instant>,
    records: Vec<Record>,
}

impl Ticking {
    /// Creates a peer that sends acknowledgements every `period`; with zero, when `peer` itself sends them.
    pub(crate) fn new(peer: Peer<'static>, period: Duration) -> Self {
        Self { peer, period, next: None, records: Vec::new() }
    }

    fn hold(&mut self, now: Instant, datagram: &[u8]) -> bool {
        let mut reader = Reader::new(datagram);
        let Ok(DatagramHeader::Ack { records, .. }) = DatagramHeader::read(&mut reader) else {
            return false;
        };
        self.records.extend((0..records).map(|_| Record::read(&mut reader).expect("a valid record")));
        let period = u64::try_from(self.period.as_micros()).expect("a period that fits 64 bits");
        self.next.get_or_insert_with(|| Instant::from_micros((now.as_micros() / period + 1) * period));
        true
    }

    fn release(&mut self, now: Instant, buffer: &mut [u8]) -> Option<usize> {
        if self.next? > now {
            return None;
        }
        let count = self.records.len().min(ROOM);
        let mut writer = Writer::new(buffer);
        let records = u16::try_from(count).expect("at most 65,535 records");
        DatagramHeader::Ack { arrival_speed: None, records }.write(&mut writer).expect("space in the buffer");
        for record in self.records.drain(..count) {
            record.write(&mut writer).expect("space in the buffer");
        }
        if self.records.is_empty() {
            self.next = None;
        }
        Some(writer.written())
    }
}

impl Machine for Ticking {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        self.peer.handle_datagram(now, from, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.peer.handle_timeout(now);
    }

    fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
        let mut own = [0; MAX_DATAGRAM];
        // The peer has only one connection.
        let mut to = SocketAddr::from(([0, 0, 0, 0], 0));
        if let Some(remote) = self.peer.connections().next().and_then(|id| self.peer.connection(id)) {
            to = remote.remote;
        }
        if let Some(length) = self.release(now, buffer) {
            return Some(Transmit { to, payload: &buffer[..length] });
        }
        loop {
            let transmit = self.peer.poll_transmit(now, &mut own)?;
            let (to, length) = (transmit.to, transmit.payload.len());
            if self.period == Duration::ZERO || !self.hold(now, &own[..length]) {
                buffer[..length].copy_from_slice(&own[..length]);
                return Some(Transmit { to, payload: &buffer[..length] });
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.peer.poll_timeout(), self.next].into_iter().flatten().min()
    }
}
