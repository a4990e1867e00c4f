//! A snapshot that is packed once per tick for all clients.

use heapless::Vec;
use rakwire::codec::rabbit::{List, pack};

use crate::message::{Entity, Event, EventKind, ServerMessage, Snapshot};

/// The size of the longest message of a server in bytes.
pub const MAX_MESSAGE: usize = 24_576;

/// The bytes of the last packed snapshot.
#[derive(Debug)]
pub(super) struct PackedSnapshot {
    bytes: Vec<u8, MAX_MESSAGE>,
    /// The tick of the snapshot.
    time: Option<u32>,
}

impl PackedSnapshot {
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new(), time: None }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Packs the entities of a tick unless that has been done; false if they do not fit.
    pub(super) fn pack(&mut self, time: u32, entities: &[Entity]) -> bool {
        if self.time != Some(time) {
            self.time = Some(time);
            let snapshot = Snapshot { entities: List::new(entities) };
            let message = ServerMessage::Event(Event { time, kind: EventKind::Snapshot(snapshot) });
            // This is its capacity.
            let _ = self.bytes.resize(MAX_MESSAGE, 0);
            let length = pack(&message, &mut self.bytes).map_or(0, <[u8]>::len);
            self.bytes.truncate(length);
        }
        !self.bytes.is_empty()
    }

    /// Like [`pack`](Self::pack), with entities that are only computed if needed.
    pub(super) fn pack_with<E: AsRef<[Entity]>>(&mut self, time: u32, entities: impl FnOnce() -> E) -> bool {
        if self.time == Some(time) { !self.bytes.is_empty() } else { self.pack(time, entities().as_ref()) }
    }
}
