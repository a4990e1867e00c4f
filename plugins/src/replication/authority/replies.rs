//! Handles messages from clients to an authority.

use rakwire::endpoint::ConnectionId;
use rakwire::wire::WireError;

use super::memory::Parts;
use super::peer::ClientClasses;
use super::stats::AuthorityStats;
use crate::replication::class::{Class, MAX_FIELDS};
use crate::replication::received::Received;
use crate::replication::rows::row_mut;
use crate::replication::wire::{
    ACKNOWLEDGEMENT, CLASSES, Full, REPLY_ID, Reader, STATE, read_gamma, read_values,
};

/// The state that a reply may change.
pub(super) struct Replies<'a> {
    pub(super) parts: Parts<'a>,
    pub(super) classes: &'static [Class],
    pub(super) fingerprint: u64,
    pub(super) tick: u32,
    pub(super) mismatch: &'a mut Option<ConnectionId>,
    pub(super) stats: &'a mut AuthorityStats,
}

impl Replies<'_> {
    /// Handles the classes of a client. Only the first message counts. A client that sends other classes later is not
    /// counted again, and does not replace another client's mismatch.
    fn on_classes(&mut self, id: ConnectionId, fingerprint: u64) -> Option<()> {
        let peer = self.parts.peer(id)?;
        if peer.classes != ClientClasses::Unknown {
            return Some(());
        }
        let classes =
            if fingerprint == self.fingerprint { ClientClasses::Same } else { ClientClasses::Other };
        if classes == ClientClasses::Other {
            self.stats.mismatched = self.stats.mismatched.saturating_add(1);
            *self.mismatch = Some(id);
        }
        peer.classes = classes;
        Some(())
    }

    /// Handles a message from a client. Returns `None` if it is malformed.
    pub(super) fn on_reply(&mut self, id: ConnectionId, message: &[u8]) -> Option<()> {
        if let Some((&[REPLY_ID, CLASSES], fingerprint)) = message.split_first_chunk() {
            return self.on_classes(id, u64::from_be_bytes(fingerprint.try_into().ok()?));
        }
        let (&[REPLY_ID, kind, a, b, c, d], rest) = message.split_first_chunk()? else { return None };
        let number = u32::from_be_bytes([a, b, c, d]);
        match kind {
            ACKNOWLEDGEMENT => {
                let received = Received::of(number, u32::from_be_bytes(rest.try_into().ok()?));
                self.parts.peer(id)?.on_acknowledgement(received, self.tick).then_some(())
            }
            STATE => {
                // Check the whole message first: an invalid message must not be applied in part.
                self.on_state(id, number, rest, false).ok()?;
                self.on_state(id, number, rest, true).ok()
            }
            _ => None,
        }
    }

    /// Handles the states of entities that a client owns.
    fn on_state(
        &mut self,
        from: ConnectionId,
        number: u32,
        records: &[u8],
        is_applied: bool,
    ) -> Result<(), WireError> {
        let mut reader = Reader::new(records);
        let parts = &mut self.parts;
        let (count, mut next) = (read_gamma(&mut reader)?, 0);
        for _ in 0..count {
            next += read_gamma(&mut reader)?;
            let name = Full::read_name(&mut reader)?;
            let class = self.classes.get(usize::from(name.class)).ok_or(WireError::BadValue)?;
            let mut values = [0; MAX_FIELDS];
            read_values(&mut reader, class, &mut values)?;
            let entity = parts.entities.get_mut(next - 1).ok_or(WireError::BadValue)?.as_mut();
            let entity = entity.filter(|entity| {
                let is_named = (entity.generation, entity.class, entity.term)
                    == (name.generation, name.class, name.term);
                is_named && entity.owner == Some(from)
            });
            match entity {
                _ if !is_applied => {}
                Some(entity) if number > entity.owner_number => {
                    entity.owner_number = number;
                    let places = row_mut(parts.values, next - 1, parts.fields).iter_mut();
                    places.zip(values).for_each(|(place, value)| *place = value);
                }
                Some(_) => {}
                None => self.stats.unauthorised = self.stats.unauthorised.saturating_add(1),
            }
        }
        Ok(())
    }
}
