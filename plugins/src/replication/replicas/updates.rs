//! Handles messages from the authority.

use rakwire::wire::WireError;

use super::event::RemoveReason;
use super::memory::Parts;
use crate::replication::class::{Class, MAX_FIELDS};
use crate::replication::received::Received;
use crate::replication::rows::{row, row_mut};
use crate::replication::wire::{
    Full, Reader, UPDATE_ID, read_changes, read_classes_of_authority, read_gamma, read_values,
};

/// The known classes of the authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuthorityClasses {
    /// The authority has not sent its classes. It sends updates only to clients with the same classes.
    Unknown,
    Same,
    Other,
}

/// The content of an applied message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handled {
    Update,
    Classes { is_same: bool },
}

/// The reason why a message is not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpdateError {
    /// The update is older than the known state.
    Late,
    /// The message is malformed.
    Malformed,
    /// The authority has different classes.
    OtherClasses,
}

impl From<WireError> for UpdateError {
    fn from(_: WireError) -> Self {
        Self::Malformed
    }
}

/// The state that a message may change.
pub(super) struct Updates<'a> {
    pub(super) parts: Parts<'a>,
    pub(super) classes: &'static [Class],
    pub(super) fingerprint: u64,
    pub(super) received: &'a mut Received,
    pub(super) authority: &'a mut AuthorityClasses,
}

impl Updates<'_> {
    pub(super) fn on_message(&mut self, message: &[u8]) -> Result<Handled, UpdateError> {
        if let Some(fingerprint) = read_classes_of_authority(message) {
            let is_same = fingerprint == self.fingerprint;
            *self.authority = if is_same { AuthorityClasses::Same } else { AuthorityClasses::Other };
            return Ok(Handled::Classes { is_same });
        }
        self.on_update(message).map(|()| Handled::Update)
    }

    fn on_update(&mut self, message: &[u8]) -> Result<(), UpdateError> {
        let Some((&[UPDATE_ID, a, b, c, d], records)) = message.split_first_chunk() else {
            return Err(UpdateError::Malformed);
        };
        if *self.authority == AuthorityClasses::Other {
            return Err(UpdateError::OtherClasses);
        }
        let tick = u32::from_be_bytes([a, b, c, d]);
        if tick == 0 {
            return Err(UpdateError::Malformed);
        }
        if self.received.is_too_old(tick) {
            return Err(UpdateError::Late);
        }
        // Check the whole message first: an invalid message must not be applied in part.
        self.read(tick, records, false)?;
        self.read(tick, records, true)?;
        self.received.merge(Received::of(tick, 0));
        Ok(())
    }

    fn read(&mut self, tick: u32, records: &[u8], is_applied: bool) -> Result<(), UpdateError> {
        let mut reader = Reader::new(records);
        let (count, mut next) = (read_gamma(&mut reader)?, 0);
        for _ in 0..count {
            next += read_gamma(&mut reader)?;
            read_record(&mut reader, self.classes, &mut self.parts, next - 1, tick, is_applied)?;
        }
        if reader.remaining() < 8 { Ok(()) } else { Err(UpdateError::Malformed) }
    }
}

/// Reads the record of a slot.
fn read_record(
    reader: &mut Reader<'_>,
    classes: &'static [Class],
    parts: &mut Parts<'_>,
    index: usize,
    tick: u32,
    is_applied: bool,
) -> Result<(), UpdateError> {
    let class_of = |class: u8| classes.get(usize::from(class)).ok_or(UpdateError::Malformed);
    let place = parts.places.get_mut(index).ok_or(UpdateError::Malformed)?;
    let mut values = [0; MAX_FIELDS];
    let is_new = if !reader.bit()? {
        // The length of a delta depends on the class of the entity.
        let replica = place.at(tick).ok_or(UpdateError::Late)?;
        let class = class_of(replica.name.class)?;
        let before = row(parts.values, index, parts.fields);
        values.iter_mut().zip(before).for_each(|(value, before)| *value = *before);
        read_changes(reader, class, &mut values)?;
        is_applied && place.on_delta(tick)
    } else if reader.bit()? {
        let is_destroyed = reader.bit()?;
        let reason = if is_destroyed { RemoveReason::Destroyed } else { RemoveReason::OutOfScope };
        if is_applied {
            place.on_remove(tick, reason);
        }
        false
    } else {
        let mut name = Full::read_name(reader)?;
        name.is_owner = reader.bit()?;
        read_values(reader, class_of(name.class)?, &mut values)?;
        is_applied && place.on_full(tick, name)
    };
    if is_new {
        let places = row_mut(parts.values, index, parts.fields);
        places.iter_mut().zip(values).for_each(|(place, value)| *place = value);
    }
    Ok(())
}
