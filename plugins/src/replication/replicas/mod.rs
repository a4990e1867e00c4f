//! The side that has the entities of an authority.

mod event;
mod replica;

use core::net::SocketAddr;

use rakwire::endpoint::{ConnectionId, MessageIds, MessageSender, Plugin, Protocol, Side, Verdict};
use rakwire::wire::WireError;
use rakwire::{Chunks, Instant};

pub use self::event::{RemoveReason, ReplicaEvent};
use self::replica::{Place, Replica};
use super::class::{self, Class, ClassError};
use super::error::SetError;
use super::id::NetworkId;
use super::received::Received;
use super::wire::{
    ACKNOWLEDGEMENT_LENGTH, Full, NAME_BITS, OVERHEAD_BITS, Reader, STATE_HEADER, UPDATE_ID, Writer,
    acknowledgement, gamma_bits, read_changes, read_gamma, read_values, state_header, write_gamma,
    write_values,
};
use crate::bytes;

/// An entity, as a client has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaInfo<'r> {
    /// Its name.
    pub id: NetworkId,
    /// Its class, by its place among the classes.
    pub class: u8,
    /// The application's number for it, once it has one.
    pub handle: Option<u32>,
    /// This peer says how it is.
    pub is_owner: bool,
    /// Its fields; those behind the fields of its class mean nothing.
    pub values: &'r [u32],
}

impl<'r> ReplicaInfo<'r> {
    const fn of<const FIELDS: usize>(index: u16, replica: &'r Replica<FIELDS>) -> Self {
        let Full { generation, class, is_owner, .. } = replica.name;
        let id = NetworkId { index, generation };
        Self { id, class, handle: replica.handle, is_owner, values: &replica.values }
    }
}

/// Counters of replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicasStats {
    /// Updates that were heeded.
    pub updates: u64,
    /// Updates that came so late that they say nothing.
    pub late: u64,
    /// Messages that say nothing, or of more entities than there is room for.
    pub malformed: u64,
    /// Messages of others than the authority.
    pub refused: u64,
}

/// The plugin of a client: up to `ENTITIES` entities of up to `FIELDS` fields, as many as the authority has, and messages of up
/// to `BYTES` bytes. Its authority is the peer that this one has connected to first, until that connection ends.
#[derive(Debug)]
pub struct Replicas<P: Protocol, const ENTITIES: usize, const FIELDS: usize, const BYTES: usize> {
    classes: &'static [Class],
    places: [Place<FIELDS>; ENTITIES],
    authority: Option<ConnectionId>,
    received: Received,
    is_unacknowledged: bool,
    /// An entity may have a state that was not sent.
    has_unsent: bool,
    /// The number of the last message with states.
    number: u32,
    /// The place at which events are looked for next, so that many of them do not take a search through all places each.
    next_event: usize,
    delivery: P::Delivery,
    stats: ReplicasStats,
}

/// Why an update is not heeded.
enum UpdateError {
    /// It is older than what is known.
    Late,
    /// It says nothing.
    Malformed,
}

impl From<WireError> for UpdateError {
    fn from(_: WireError) -> Self {
        Self::Malformed
    }
}

impl<P: Protocol, const ENTITIES: usize, const FIELDS: usize, const BYTES: usize>
    Replicas<P, ENTITIES, FIELDS, BYTES>
{
    /// Without entities. Acknowledgements should travel unreliably; what owners say travels by the default delivery, which is
    /// reliable.
    ///
    /// # Errors
    /// [`ClassError`].
    pub fn new(classes: &'static [Class], delivery: P::Delivery) -> Result<Self, ClassError> {
        const { assert!(ENTITIES > 0 && ENTITIES <= 1 << 16) };
        class::check(classes, FIELDS, (BYTES * 8).saturating_sub(OVERHEAD_BITS))?;
        Ok(Self {
            classes,
            places: [Place::EMPTY; ENTITIES],
            authority: None,
            received: Received::default(),
            is_unacknowledged: false,
            has_unsent: false,
            number: 0,
            next_event: 0,
            delivery,
            stats: ReplicasStats::default(),
        })
    }

    /// What has become of the entities since it was asked for last.
    pub fn poll_event(&mut self) -> Option<(NetworkId, ReplicaEvent)> {
        let (before, from) = self.places.split_at_mut_checked(self.next_event)?;
        let first = u16::try_from(self.next_event).ok()?;
        let mut places = (first..=u16::MAX).zip(from).chain((0..first).zip(before));
        let found = places.find_map(|(index, place)| {
            place.poll_event().map(|(generation, event)| (NetworkId { index, generation }, event))
        });
        self.next_event = found.map_or(0, |(id, _)| usize::from(id.index));
        found
    }

    /// An entity.
    #[must_use]
    pub fn get(&self, id: NetworkId) -> Option<ReplicaInfo<'_>> {
        let replica = self.places.get(usize::from(id.index))?.replica.as_ref();
        replica
            .filter(|replica| replica.name.generation == id.generation)
            .map(|replica| ReplicaInfo::of(id.index, replica))
    }

    /// The entities, in the order of their indices.
    pub fn iter(&self) -> impl Iterator<Item = ReplicaInfo<'_>> {
        let places = (0..=u16::MAX).zip(&self.places);
        places.filter_map(|(index, place)| Some(ReplicaInfo::of(index, place.replica.as_ref()?)))
    }

    /// The first entity that has this number of the application's.
    #[must_use]
    pub fn find(&self, handle: u32) -> Option<ReplicaInfo<'_>> {
        self.iter().find(|replica| replica.handle == Some(handle))
    }

    /// Gives an entity a number of the application's; false if there is no such entity.
    pub fn set_handle(&mut self, id: NetworkId, handle: u32) -> bool {
        self.find_mut(id).map(|replica| replica.handle = Some(handle)).is_some()
    }

    /// Changes a field of an entity that this peer owns. Bits beyond its width are cut off. Have the driver run afterwards.
    ///
    /// # Errors
    /// [`SetError`].
    pub fn set(&mut self, id: NetworkId, field: usize, value: u32) -> Result<(), SetError> {
        let classes = self.classes;
        let replica = self.find_mut(id).ok_or(SetError::Unknown)?;
        if !replica.name.is_owner {
            return Err(SetError::NotOwner);
        }
        let class = classes.get(usize::from(replica.name.class)).ok_or(SetError::Unknown)?;
        let width = class.fields.get(field).ok_or(SetError::NoField)?;
        *replica.values.get_mut(field).ok_or(SetError::NoField)? = width.truncate(value);
        replica.is_unsent = true;
        self.has_unsent = true;
        Ok(())
    }

    /// The latest tick of the authority that has arrived; 0 is none.
    #[must_use]
    pub const fn tick(&self) -> u32 {
        self.received.latest()
    }

    /// The counters.
    #[must_use]
    pub const fn stats(&self) -> ReplicasStats {
        self.stats
    }

    /// An update of the authority, of a program whose connection is in a driver without plugins: the page around a program of
    /// WebAssembly, say. Messages are told by their first byte, [`UPDATE_ID`].
    pub fn handle_update(&mut self, message: &[u8]) {
        let count = match self.on_update(message) {
            Ok(()) => &mut self.stats.updates,
            Err(UpdateError::Late) => &mut self.stats.late,
            Err(UpdateError::Malformed) => &mut self.stats.malformed,
        };
        *count = count.saturating_add(1);
    }

    /// The message that answers the updates since the last one, for such a program to send to the authority.
    pub fn poll_acknowledgement(&mut self) -> Option<[u8; ACKNOWLEDGEMENT_LENGTH]> {
        core::mem::take(&mut self.is_unacknowledged).then(|| acknowledgement(self.received))
    }

    fn find_mut(&mut self, id: NetworkId) -> Option<&mut Replica<FIELDS>> {
        let replica = self.places.get_mut(usize::from(id.index))?.replica.as_mut();
        replica.filter(|replica| replica.name.generation == id.generation)
    }

    fn on_update(&mut self, message: &[u8]) -> Result<(), UpdateError> {
        let Some((&[UPDATE_ID, a, b, c, d], records)) = message.split_first_chunk() else {
            return Err(UpdateError::Malformed);
        };
        let tick = u32::from_be_bytes([a, b, c, d]);
        if tick == 0 {
            return Err(UpdateError::Malformed);
        }
        if self.received.is_too_old(tick) {
            return Err(UpdateError::Late);
        }
        // Nothing of a message counts unless all of it says something.
        self.read(tick, records, false)?;
        self.read(tick, records, true)?;
        self.received.merge(Received::of(tick, 0));
        self.is_unacknowledged = true;
        Ok(())
    }

    fn read(&mut self, tick: u32, records: &[u8], is_applied: bool) -> Result<(), UpdateError> {
        let mut reader = Reader::new(records);
        let (count, mut next) = (read_gamma(&mut reader)?, 0);
        for _ in 0..count {
            next += read_gamma(&mut reader)?;
            let place = self.places.get_mut(next - 1).ok_or(UpdateError::Malformed)?;
            read_record(&mut reader, self.classes, place, tick, is_applied)?;
        }
        if reader.remaining() < 8 { Ok(()) } else { Err(UpdateError::Malformed) }
    }

    /// Writes a message with states of entities that this peer owns to the front of a buffer, as many as fit, and returns the
    /// length and the place behind the last one; nothing if there is none from a place on.
    fn write_states(&self, number: u32, from: usize, buffer: &mut [u8]) -> Option<(usize, usize)> {
        let room = buffer.len().saturating_sub(STATE_HEADER) * 8;
        let (mut bits, mut count, mut end, mut next) = (0, 0, from, 0);
        for (index, _, class) in self.unsent(from) {
            let all = bits + gamma_bits(index + 1 - next) + NAME_BITS + class.bits();
            if all + gamma_bits(count + 1) > room {
                break;
            }
            (bits, count, end, next) = (all, count + 1, index + 1, index + 1);
        }
        let (header, records) = buffer.split_first_chunk_mut()?;
        *header = state_header(number);
        let mut writer = Writer::new(records);
        write_gamma(&mut writer, count).ok()?;
        let mut next = 0;
        for (index, replica, class) in self.unsent(from).take(count) {
            write_gamma(&mut writer, index + 1 - next).ok()?;
            next = index + 1;
            replica.name.write_name(&mut writer).ok()?;
            write_values(&mut writer, class, &replica.values).ok()?;
        }
        (count > 0).then(|| (STATE_HEADER + writer.finish().len(), end))
    }

    fn unsent(&self, from: usize) -> impl Iterator<Item = (usize, &Replica<FIELDS>, &'static Class)> {
        self.places.iter().enumerate().skip(from).filter_map(|(index, place)| {
            let replica = place.replica.as_ref().filter(|replica| replica.is_unsent)?;
            Some((index, replica, self.classes.get(usize::from(replica.name.class))?))
        })
    }

    /// Sends what was not sent of the entities that this peer owns; false if there was no room for all of it.
    fn send_states(&mut self, authority: ConnectionId, sender: &mut dyn MessageSender<P>) -> bool {
        let (mut buffer, mut from) = ([0; BYTES], 0);
        while from < ENTITIES {
            let Some(number) = self.number.checked_add(1) else { return true };
            let Some((length, end)) = self.write_states(number, from, &mut buffer) else { return true };
            self.number = number;
            let message = buffer.get(..length).unwrap_or_default();
            if sender.send(authority, message, P::Delivery::default()).is_err() {
                return false;
            }
            let sent = self.places.iter_mut().take(end).skip(from);
            sent.filter_map(|place| place.replica.as_mut()).for_each(|replica| replica.is_unsent = false);
            from = end;
        }
        true
    }
}

/// Reads what is said of a place.
fn read_record<const FIELDS: usize>(
    reader: &mut Reader<'_>,
    classes: &'static [Class],
    place: &mut Place<FIELDS>,
    tick: u32,
    is_applied: bool,
) -> Result<(), UpdateError> {
    let class_of = |class: u8| classes.get(usize::from(class)).ok_or(UpdateError::Malformed);
    if !reader.bit()? {
        // Without the entity it cannot be known how long the record is.
        let replica = place.at(tick).ok_or(UpdateError::Late)?;
        let (class, mut values) = (class_of(replica.name.class)?, replica.values);
        read_changes(reader, class, &mut values)?;
        if is_applied {
            place.on_delta(tick, values);
        }
    } else if reader.bit()? {
        let is_destroyed = reader.bit()?;
        let reason = if is_destroyed { RemoveReason::Destroyed } else { RemoveReason::OutOfScope };
        if is_applied {
            place.on_remove(tick, reason);
        }
    } else {
        let mut name = Full::read_name(reader)?;
        name.is_owner = reader.bit()?;
        let mut values = [0; FIELDS];
        read_values(reader, class_of(name.class)?, &mut values)?;
        if is_applied {
            place.on_full(tick, name, values);
        }
    }
    Ok(())
}

impl<P: Protocol, const ENTITIES: usize, const FIELDS: usize, const BYTES: usize> Plugin<P>
    for Replicas<P, ENTITIES, FIELDS, BYTES>
{
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&[UPDATE_ID])
    }

    fn on_connected(&mut self, _: Instant, id: ConnectionId, _: SocketAddr, _: P::Identity, side: Side) {
        if self.authority.is_none() && side == Side::Client {
            self.authority = Some(id);
        }
    }

    fn on_disconnected(&mut self, _now: Instant, id: ConnectionId, _reason: P::DisconnectReason) {
        if self.authority == Some(id) {
            self.places.iter_mut().for_each(Place::on_disconnected);
            (self.authority, self.received) = (None, Received::default());
            (self.is_unacknowledged, self.has_unsent) = (false, false);
        }
    }

    fn on_message(&mut self, _: Instant, id: ConnectionId, _: P::Delivery, message: &dyn Chunks) -> Verdict {
        if self.authority != Some(id) {
            self.stats.refused = self.stats.refused.saturating_add(1);
            return Verdict::Drop;
        }
        let mut buffer = [0; BYTES];
        // One that is too long says nothing, like an empty one.
        self.handle_update(bytes::copy(message, &mut buffer).unwrap_or_default());
        Verdict::Drop
    }

    fn update(&mut self, _now: Instant, sender: &mut dyn MessageSender<P>) {
        let Some(authority) = self.authority else { return };
        if let Some(acknowledgement) = self.poll_acknowledgement() {
            // A lost one matters little: the next one says the same and more.
            let _ = sender.send(authority, &acknowledgement, self.delivery);
        }
        self.has_unsent = self.has_unsent && !self.send_states(authority, sender);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (self.is_unacknowledged || self.has_unsent).then_some(Instant::ZERO)
    }
}
