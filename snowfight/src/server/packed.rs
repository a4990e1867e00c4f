//! A snapshot that is packed once a tick, however many get it.

use heapless::Vec;
use rakwire::codec::rabbit::{List, pack};

use crate::message::{Entity, Event, EventKind, ServerMessage, Snapshot};

/// A buffer of so many bytes holds every message that a server sends.
pub const MAX_MESSAGE: usize = 24_576;

/// The bytes of the last snapshot that somebody wanted.
#[derive(Debug)]
pub(super) struct Packed {
    bytes: Vec<u8, MAX_MESSAGE>,
    /// The tick that they tell.
    time: Option<u32>,
}

impl Packed {
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new(), time: None }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Packs the entities of a tick, if that was not done yet; false if they have no room.
    pub(super) fn pack(&mut self, time: u32, entities: &[Entity]) -> bool {
        if self.time != Some(time) {
            self.time = Some(time);
            let snapshot = Snapshot { entities: List::new(entities) };
            let message = ServerMessage::Event(Event { time, kind: EventKind::Snapshot(snapshot) });
            // It has this capacity.
            let _ = self.bytes.resize(MAX_MESSAGE, 0);
            let length = pack(&message, &mut self.bytes).map_or(0, <[u8]>::len);
            self.bytes.truncate(length);
        }
        !self.bytes.is_empty()
    }

    /// As [`pack`](Self::pack), of entities that are only looked for if it was not done yet.
    pub(super) fn pack_with<E: AsRef<[Entity]>>(&mut self, time: u32, entities: impl FnOnce() -> E) -> bool {
        if self.time == Some(time) { !self.bytes.is_empty() } else { self.pack(time, entities().as_ref()) }
    }
}
