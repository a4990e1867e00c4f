//! The flows of a front by client and by id, the protocol state of a flow, the classification of datagrams by their
//! first bytes, and the list of outgoing datagrams.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Instant;

use rakwire::game_protocol::wire::{HEADER, HandshakeWord};
use rakwire::raknet::Guid;
use rakwire::wire::offline::Offline;
use rakwire::wire::{Reader, Wire, WireError, Writer};

use crate::flow::ProxyHeader;

/// The id of a flow. Ids are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FlowId {
    slot: u32,
    generation: u32,
}

/// A flow with its table data.
#[derive(Debug)]
struct Entry<F> {
    client: SocketAddr,
    /// The arrival time of the client's last datagram.
    heard: Instant,
    opened: Instant,
    flow: F,
}

#[derive(Debug)]
struct Slot<F> {
    generation: u32,
    entry: Option<Entry<F>>,
}

/// The flows of a front by client and by id. Admission bounds their number.
#[derive(Debug)]
pub(super) struct FlowTable<F> {
    by_client: HashMap<SocketAddr, u32>,
    slots: Vec<Slot<F>>,
    vacant: Vec<u32>,
}

impl<F> Default for FlowTable<F> {
    fn default() -> Self {
        Self { by_client: HashMap::new(), slots: Vec::new(), vacant: Vec::new() }
    }
}

impl<F> FlowTable<F> {
    pub(super) fn find(&self, client: SocketAddr) -> Option<FlowId> {
        let slot = *self.by_client.get(&client)?;
        let generation = self.slots.get(slot as usize)?.generation;
        Some(FlowId { slot, generation })
    }

    /// Returns the flow with the address of its client.
    pub(super) fn get(&mut self, id: FlowId) -> Option<(SocketAddr, &mut F)> {
        let slot = self.slots.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        slot.entry.as_mut().map(|entry| (entry.client, &mut entry.flow))
    }

    /// Records that the client of a flow has sent a datagram.
    pub(super) fn record_input(&mut self, id: FlowId, now: Instant) {
        if let Some(entry) = self.slots.get_mut(id.slot as usize).and_then(|slot| slot.entry.as_mut()) {
            entry.heard = now;
        }
    }

    /// Adds a flow for a client without one. Returns `None` if all ids are in use.
    pub(super) fn insert(&mut self, client: SocketAddr, now: Instant, flow: F) -> Option<FlowId> {
        let slot = match self.vacant.pop() {
            Some(slot) => slot,
            None => {
                let slot = u32::try_from(self.slots.len()).ok()?;
                self.slots.push(Slot { generation: 0, entry: None });
                slot
            }
        };
        let place = self.slots.get_mut(slot as usize)?;
        place.entry = Some(Entry { client, heard: now, opened: now, flow });
        self.by_client.insert(client, slot);
        Some(FlowId { slot, generation: place.generation })
    }

    pub(super) fn remove(&mut self, id: FlowId) {
        let slot = self.slots.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation);
        let Some(slot) = slot else { return };
        if let Some(entry) = slot.entry.take() {
            self.by_client.remove(&entry.client);
            slot.generation = slot.generation.wrapping_add(1);
            self.vacant.push(id.slot);
        }
    }

    /// Returns the flows for which `is_it` returns true. Its arguments are the time at which the flow was opened, the
    /// time of the client's last datagram, and the flow.
    pub(super) fn select(&self, is_it: impl Fn(Instant, Instant, &F) -> bool) -> Vec<FlowId> {
        let ids = self.slots.iter().zip(0u32..).filter_map(|(place, slot)| {
            let entry = place.entry.as_ref()?;
            let id = FlowId { slot, generation: place.generation };
            is_it(entry.opened, entry.heard, &entry.flow).then_some(id)
        });
        ids.collect()
    }
}

/// Set in the first byte of every connection datagram.
const VALID: u8 = 0x80;

#[derive(Debug)]
pub(super) enum FlowProtocol {
    RakNet(RakNetFlow),
    GameProtocol(GameProtocolFlow),
}

/// The connection request of a client, and the progress of its handshake with the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct RakNetFlow {
    pub(super) version: u8,
    pub(super) mtu: u16,
    pub(super) guid: Guid,
    pub(super) stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Request 1 was sent to the server, and reply 1 is outstanding.
    Reply1,
    /// Request 2 was sent to the server, with the server's cookie if it issued one, and reply 2 is outstanding.
    Reply2 {
        cookie: Option<u32>,
        mtu: u16,
        /// True if request 2 was sent twice. The next repetition begins with request 1 again: a server that has
        /// restarted since reply 1 drops its old cookie without an answer.
        is_repeated: bool,
    },
    /// The server answered request 2.
    Done,
}

/// Returns true if a datagram may be the first one of a RakNet client, and is neither STUN, DTLS nor QUIC.
pub(super) fn may_begin_raknet(datagram: &[u8]) -> bool {
    Offline::read(&mut Reader::new(datagram)).is_ok()
}

/// Returns true if a datagram may be the first one of a Game Protocol client: a handshake word. QUIC and related
/// protocols have no datagrams this short.
pub(super) const fn may_begin_game_protocol(datagram: &[u8]) -> bool {
    datagram.len() == size_of::<HandshakeWord>()
}

/// Returns true if a datagram belongs to a connection.
pub(super) fn is_connected(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & VALID != 0)
}

/// The unused bits of a header, which no peer sets.
const RESERVED: u32 = 0xF000_0000;
/// The bytes of END, with and without FIN. A client with a salt of the same bytes gets no answer.
const ENDS: [HandshakeWord; 2] = [HandshakeWord(0x0C00_0000), HandshakeWord(0x0800_0000)];

/// The front's handshake with the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct GameProtocolFlow {
    pub(super) salt: HandshakeWord,
    /// True if either side has ended the connection.
    pub(super) is_over: bool,
}

/// Returns true if a datagram of an open connection is a regular packet: neither END nor part of another handshake.
pub(super) fn is_packet(datagram: &[u8]) -> bool {
    match handshake_word(datagram) {
        Some(word) => word.0 & RESERVED == 0,
        None => !is_end(datagram),
    }
}

/// Returns a datagram of four bytes, which may be part of a handshake. The words of other implementations may look like
/// a packet header.
pub(super) fn handshake_word(datagram: &[u8]) -> Option<HandshakeWord> {
    four_bytes(datagram).filter(|word| !ENDS.contains(word))
}

pub(super) fn is_end(datagram: &[u8]) -> bool {
    four_bytes(datagram).is_some_and(|word| ENDS.contains(&word))
}

fn four_bytes(datagram: &[u8]) -> Option<HandshakeWord> {
    HandshakeWord::read(datagram).ok().filter(|_| datagram.len() == HEADER)
}

/// The maximum length of a datagram that the front composes itself.
const LONGEST: usize = 1_500;

/// The destination of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    Client(SocketAddr),
    /// The game server, from the source address of this flow.
    Server(FlowId),
}

#[derive(Debug)]
enum Bytes<'b> {
    Received(&'b [u8]),
    Written(Range<usize>),
}

#[derive(Debug)]
struct Transmit<'b> {
    to: To,
    bytes: Bytes<'b>,
    stride: usize,
}

/// Outgoing datagrams in order. Forwarded datagrams are slices of the received data; composed datagrams are stored
/// here.
#[derive(Debug, Default)]
pub(crate) struct Transmits<'b> {
    list: Vec<Transmit<'b>>,
    written: Vec<u8>,
}

impl<'b> Transmits<'b> {
    /// Forwards contiguous datagrams, each `stride` bytes long except the last one, which may be shorter.
    pub(super) fn pass(&mut self, to: To, bytes: &'b [u8], stride: usize) {
        self.list.push(Transmit { to, bytes: Bytes::Received(bytes), stride });
    }

    /// Adds a datagram written by `write`.
    pub(super) fn write(&mut self, to: To, write: impl FnOnce(&mut Writer<'_>) -> Result<(), WireError>) {
        self.write_behind(None, to, write);
    }

    /// Adds a datagram that consists of `header`, if there is one, and the output of `write`.
    pub(super) fn write_behind(
        &mut self,
        header: Option<ProxyHeader>,
        to: To,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), WireError>,
    ) {
        let start = self.written.len();
        if let Some(header) = header {
            header.write(&mut self.written);
        }
        let message = self.written.len();
        self.written.resize(message + LONGEST, 0);
        let mut writer = Writer::new(&mut self.written[message..]);
        let result = write(&mut writer);
        let end = message + writer.written();
        self.written.truncate(end);
        if result.is_ok() {
            self.list.push(Transmit { to, bytes: Bytes::Written(start..end), stride: end - start });
        }
    }

    /// Returns all datagrams: the destination, the bytes, and the length of each datagram except the last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (To, &[u8], usize)> {
        self.list.iter().map(|transmit| {
            let bytes = match &transmit.bytes {
                Bytes::Received(bytes) => bytes,
                Bytes::Written(range) => &self.written[range.clone()],
            };
            (transmit.to, bytes, transmit.stride)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn client(port: u16) -> SocketAddr {
        ([192, 0, 2, 1], port).into()
    }

    #[test]
    fn flows_are_found_by_client_and_id_until_removed() {
        let now = Instant::now();
        let mut table = FlowTable::default();
        let first = table.insert(client(1), now, 'a').unwrap();
        let second = table.insert(client(2), now, 'b').unwrap();
        assert_eq!(table.find(client(2)), Some(second));
        assert_eq!(table.get(first), Some((client(1), &mut 'a')));
        table.remove(first);
        assert_eq!(table.find(client(1)), None);
        assert_eq!(table.get(first), None);
        // The slot is reused, but not the id.
        let third = table.insert(client(3), now, 'c').unwrap();
        table.remove(first);
        assert_eq!(table.get(first), None);
        assert_eq!(table.get(third), Some((client(3), &mut 'c')));
    }

    #[test]
    fn flows_are_selected_by_age_and_silence() {
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        let mut table = FlowTable::default();
        let first = table.insert(client(1), after(0), 'a').unwrap();
        let second = table.insert(client(2), after(1), 'b').unwrap();
        table.record_input(first, after(5));
        assert_eq!(table.select(|_, heard, _| heard < after(5)), [second]);
    }
}
