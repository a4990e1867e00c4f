//! A packed snapshot, shared by all clients with the same content.

use heapless::Vec;
use rakwire::codec::rabbit::{List, pack};

use crate::message::{Entity, Event, EventKind, ServerMessage, Snapshot};

/// The maximum length of a message from a server, in bytes.
pub const MAX_MESSAGE: usize = 24_576;

/// The bytes of the last packed snapshot, and its content. `S` identifies the selection of entities.
#[derive(Debug)]
pub(super) struct PackedSnapshot<S> {
    bytes: Vec<u8, MAX_MESSAGE>,
    /// The tick and the selection of the packed snapshot.
    content: Option<(u32, S)>,
}

impl<S: PartialEq> PackedSnapshot<S> {
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new(), content: None }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Packs the selected entities of a tick if they are not packed yet; returns false if they do not fit. `entities`
    /// is called only if needed.
    pub(super) fn pack<E: AsRef<[Entity]>>(
        &mut self,
        time: u32,
        part: S,
        entities: impl FnOnce() -> E,
    ) -> bool {
        let content = Some((time, part));
        if self.content != content {
            self.content = content;
            let entities = entities();
            let snapshot = Snapshot { entities: List::new(entities.as_ref()) };
            let message = ServerMessage::Event(Event { time, kind: EventKind::Snapshot(snapshot) });
            // This cannot fail: the vector has this capacity.
            let _ = self.bytes.resize(MAX_MESSAGE, 0);
            let length = pack(&message, &mut self.bytes).map_or(0, <[u8]>::len);
            self.bytes.truncate(length);
        }
        !self.bytes.is_empty()
    }
}
