//! The plugin of a client, which stores copies of the authority's entities.

mod event;
mod memory;
mod replica;
mod states;
mod updates;

use core::net::SocketAddr;

use rakwire::endpoint::{ConnectionId, MessageIds, MessageSender, Plugin, Protocol, Side, Verdict};
use rakwire::{Chunks, Instant};

pub use self::event::{RemoveReason, ReplicaEvent};
pub use self::memory::{FixedReplicasMemory, ReplicasMemory};
#[cfg(feature = "alloc")]
pub use self::memory::{HeapReplicasMemory, ReplicasConfig};
use self::memory::{Parts, View};
use self::replica::{Place, Replica};
use self::states::send_states;
use self::updates::{AuthorityClasses, Handled, UpdateError, Updates};
#[cfg(feature = "alloc")]
use super::class::MAX_FIELDS;
use super::class::{self, Class, ClassError};
use super::error::SetError;
use super::id::NetworkId;
use super::received::Received;
use super::rows::{row, row_mut};
use super::wire::{
    ACKNOWLEDGEMENT_LENGTH, Full, OVERHEAD_BITS, UPDATE_ID, acknowledgement, classes_of_client,
};
use crate::bytes;

/// An entity at a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaInfo<'r> {
    /// The identifier of the entity.
    pub id: NetworkId,
    /// The index of the entity's class.
    pub class: u8,
    /// The application's number for the entity, if it has set one.
    pub handle: Option<u32>,
    /// True if this peer owns the entity.
    pub is_owner: bool,
    /// The values of the fields; values beyond the fields of the class are meaningless.
    pub values: &'r [u32],
}

impl<'r> ReplicaInfo<'r> {
    fn of(index: u16, replica: &Replica, view: View<'r>) -> Self {
        let Full { generation, class, is_owner, .. } = replica.name;
        let id = NetworkId { index, generation };
        let values = row(view.values, index.into(), view.fields);
        Self { id, class, handle: replica.handle, is_owner, values }
    }
}

/// Counters of replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicasStats {
    /// Updates that were applied.
    pub updates: u64,
    /// Updates that arrived too late to be applied.
    pub late: u64,
    /// Messages that are malformed or contain more entities than the capacity.
    pub malformed: u64,
    /// Messages from peers other than the authority.
    pub refused: u64,
    /// Class lists from authorities that differ, and updates of such authorities, which are dropped.
    pub mismatched: u64,
}

/// The plugin of a client.
///
/// `M` is the memory: [`FixedReplicas`] has the sizes in its type, and [`HeapReplicas`] takes them from a
/// [`ReplicasConfig`]. Both need the sizes of the authority. The authority is the peer at the first connection that
/// this peer opened, until that connection is closed.
#[derive(Debug)]
pub struct Replicas<P: Protocol, M> {
    classes: &'static [Class],
    fingerprint: u64,
    memory: M,
    authority: Option<ConnectionId>,
    authority_classes: AuthorityClasses,
    /// True if the fingerprint of the classes must still be sent to the authority.
    classes_due: bool,
    /// True if the authority has different classes and `poll_mismatch` has not reported that yet.
    has_unreported_mismatch: bool,
    received: Received,
    is_unacknowledged: bool,
    /// True if an owned entity may have an unsent state.
    has_unsent: bool,
    /// The number of the last message with states.
    number: u32,
    /// The slot at which the next search for events starts, so that polling many events does not search all slots for
    /// each.
    next_event: usize,
    delivery: P::Delivery,
    stats: ReplicasStats,
}

/// [`Replicas`] without an allocator.
///
/// They have capacity for `ENTITIES` entities of up to `FIELDS` fields, as at the authority, and for messages of up
/// to `BYTES` bytes. All of that is stored inline.
pub type FixedReplicas<P, const ENTITIES: usize, const FIELDS: usize, const BYTES: usize> =
    Replicas<P, FixedReplicasMemory<ENTITIES, FIELDS, BYTES>>;

/// [`Replicas`] on the heap, with sizes chosen at run time.
#[cfg(feature = "alloc")]
pub type HeapReplicas<P> = Replicas<P, HeapReplicasMemory>;

impl<P: Protocol, const ENTITIES: usize, const FIELDS: usize, const BYTES: usize>
    FixedReplicas<P, ENTITIES, FIELDS, BYTES>
{
    /// Creates replicas without entities. Acknowledgements should be unreliable; states of owned entities use the
    /// default delivery, which is reliable.
    ///
    /// # Errors
    /// Returns a [`ClassError`] if the classes are invalid or exceed the capacity.
    pub fn new(classes: &'static [Class], delivery: P::Delivery) -> Result<Self, ClassError> {
        class::check(classes, FIELDS, (BYTES * 8).saturating_sub(OVERHEAD_BITS))?;
        Ok(Self::over(FixedReplicasMemory::new(), classes, delivery))
    }
}

#[cfg(feature = "alloc")]
impl<P: Protocol> HeapReplicas<P> {
    /// Creates replicas without entities, with the sizes of `config`. Acknowledgements should be unreliable; states of
    /// owned entities use the default delivery, which is reliable.
    ///
    /// # Errors
    /// Returns a [`ClassError`] if the classes are invalid or exceed the sizes of `config`.
    pub fn new(
        classes: &'static [Class],
        delivery: P::Delivery,
        config: &ReplicasConfig,
    ) -> Result<Self, ClassError> {
        let room = config.max_message.saturating_mul(8).saturating_sub(OVERHEAD_BITS);
        class::check(classes, MAX_FIELDS, room)?;
        let memory = HeapReplicasMemory::new(config, class::most_fields(classes));
        Ok(Self::over(memory, classes, delivery))
    }
}

impl<P: Protocol, M: ReplicasMemory> Replicas<P, M> {
    fn over(memory: M, classes: &'static [Class], delivery: P::Delivery) -> Self {
        Self {
            classes,
            fingerprint: class::fingerprint(classes),
            memory,
            authority: None,
            authority_classes: AuthorityClasses::Unknown,
            classes_due: false,
            has_unreported_mismatch: false,
            received: Received::default(),
            is_unacknowledged: false,
            has_unsent: false,
            number: 0,
            next_event: 0,
            delivery,
            stats: ReplicasStats::default(),
        }
    }

    /// Returns a change of an entity since the last call.
    pub fn poll_event(&mut self) -> Option<(NetworkId, ReplicaEvent)> {
        let places = self.memory.parts().places;
        let (before, from) = places.split_at_mut_checked(self.next_event)?;
        let first = u16::try_from(self.next_event).ok()?;
        let mut places = (first..=u16::MAX).zip(from).chain((0..first).zip(before));
        let found = places.find_map(|(index, place)| {
            place.poll_event().map(|(generation, event)| (NetworkId { index, generation }, event))
        });
        self.next_event = found.map_or(0, |(id, _)| usize::from(id.index));
        found
    }

    /// Returns an entity.
    #[must_use]
    pub fn get(&self, id: NetworkId) -> Option<ReplicaInfo<'_>> {
        let view = self.memory.view();
        let replica = view.places.get(usize::from(id.index))?.replica.as_ref();
        let replica = replica.filter(|replica| replica.name.generation == id.generation)?;
        Some(ReplicaInfo::of(id.index, replica, view))
    }

    /// Returns the entities, in the order of their indices.
    pub fn iter(&self) -> impl Iterator<Item = ReplicaInfo<'_>> + use<'_, P, M> {
        let view = self.memory.view();
        let places = (0..=u16::MAX).zip(view.places);
        places.filter_map(move |(index, place)| Some(ReplicaInfo::of(index, place.replica.as_ref()?, view)))
    }

    /// Returns the first entity with this handle.
    #[must_use]
    pub fn find(&self, handle: u32) -> Option<ReplicaInfo<'_>> {
        self.iter().find(|replica| replica.handle == Some(handle))
    }

    /// Sets the application's number for an entity; returns false if there is no such entity.
    pub fn set_handle(&mut self, id: NetworkId, handle: u32) -> bool {
        let mut parts = self.memory.parts();
        find(&mut parts, id).map(|replica| replica.handle = Some(handle)).is_some()
    }

    /// Sets a field of an entity that this peer owns. Bits beyond the width of the field are discarded. Run the
    /// driver afterwards.
    ///
    /// # Errors
    /// Returns a [`SetError`] if the entity or field does not exist, or this peer does not own the entity.
    pub fn set(&mut self, id: NetworkId, field: usize, value: u32) -> Result<(), SetError> {
        let classes = self.classes;
        let mut parts = self.memory.parts();
        let replica = find(&mut parts, id).ok_or(SetError::Unknown)?;
        if !replica.name.is_owner {
            return Err(SetError::NotOwner);
        }
        let class = classes.get(usize::from(replica.name.class)).ok_or(SetError::Unknown)?;
        let width = class.fields.get(field).ok_or(SetError::NoField)?;
        replica.is_unsent = true;
        let values = row_mut(parts.values, id.index.into(), parts.fields);
        *values.get_mut(field).ok_or(SetError::NoField)? = width.truncate(value);
        self.has_unsent = true;
        Ok(())
    }

    /// Returns the latest tick of the authority that has arrived; 0 before the first.
    #[must_use]
    pub const fn tick(&self) -> u32 {
        self.received.latest()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> ReplicasStats {
        self.stats
    }

    /// Returns true once after the authority has sent different classes, which means that the programs have different
    /// versions. Such an authority sends nothing, and its earlier updates are not applied.
    pub fn poll_mismatch(&mut self) -> bool {
        core::mem::take(&mut self.has_unreported_mismatch)
    }

    /// Handles an update from the authority that did not arrive over this peer.
    ///
    /// It is for programs with a connection in a driver without plugins, such as a web page around a WebAssembly
    /// program. Updates begin with the byte [`UPDATE_ID`].
    pub fn handle_update(&mut self, message: &[u8]) {
        let parts = self.memory.parts();
        let handled = Updates {
            parts,
            classes: self.classes,
            fingerprint: self.fingerprint,
            received: &mut self.received,
            authority: &mut self.authority_classes,
        }
        .on_message(message);
        self.count(handled);
    }

    fn count(&mut self, handled: Result<Handled, UpdateError>) {
        let count = match handled {
            Ok(Handled::Update) => {
                self.is_unacknowledged = true;
                &mut self.stats.updates
            }
            Ok(Handled::Classes { is_same }) => {
                // An authority that sends its classes may not have received those of this client.
                self.classes_due = true;
                if is_same {
                    return;
                }
                self.has_unreported_mismatch = true;
                &mut self.stats.mismatched
            }
            Err(UpdateError::Late) => &mut self.stats.late,
            Err(UpdateError::Malformed) => &mut self.stats.malformed,
            Err(UpdateError::OtherClasses) => &mut self.stats.mismatched,
        };
        *count = count.saturating_add(1);
    }

    /// Returns the message that acknowledges the updates since the last call. A program without plugins sends it to
    /// the authority.
    ///
    /// The first such message contains the classes. If it is sent unreliably and lost, it is returned again when the
    /// authority repeats its own classes.
    pub fn poll_acknowledgement(&mut self) -> Option<[u8; ACKNOWLEDGEMENT_LENGTH]> {
        if core::mem::take(&mut self.classes_due) {
            return Some(classes_of_client(self.fingerprint));
        }
        core::mem::take(&mut self.is_unacknowledged).then(|| acknowledgement(self.received))
    }
}

/// Returns an entity, mutable.
fn find<'p>(parts: &'p mut Parts<'_>, id: NetworkId) -> Option<&'p mut Replica> {
    let replica = parts.places.get_mut(usize::from(id.index))?.replica.as_mut();
    replica.filter(|replica| replica.name.generation == id.generation)
}

impl<P: Protocol, M: ReplicasMemory> Plugin<P> for Replicas<P, M> {
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&[UPDATE_ID])
    }

    fn on_connected(&mut self, _: Instant, id: ConnectionId, _: SocketAddr, _: P::Identity, side: Side) {
        if self.authority.is_none() && side == Side::Client {
            self.authority = Some(id);
            self.classes_due = true;
        }
    }

    fn on_disconnected(&mut self, _now: Instant, id: ConnectionId, _reason: P::DisconnectReason) {
        if self.authority == Some(id) {
            self.memory.parts().places.iter_mut().for_each(Place::on_disconnected);
            (self.authority, self.received) = (None, Received::default());
            self.authority_classes = AuthorityClasses::Unknown;
            (self.classes_due, self.is_unacknowledged, self.has_unsent) = (false, false, false);
        }
    }

    fn on_message(&mut self, _: Instant, id: ConnectionId, _: P::Delivery, message: &dyn Chunks) -> Verdict {
        if self.authority != Some(id) {
            self.stats.refused = self.stats.refused.saturating_add(1);
            return Verdict::Drop;
        }
        let mut parts = self.memory.parts();
        // A message that is too long is rejected as malformed, like an empty message.
        let message = bytes::copy(message, core::mem::take(&mut parts.buffer)).unwrap_or_default();
        let handled = Updates {
            parts,
            classes: self.classes,
            fingerprint: self.fingerprint,
            received: &mut self.received,
            authority: &mut self.authority_classes,
        }
        .on_message(message);
        self.count(handled);
        Verdict::Drop
    }

    fn update(&mut self, _now: Instant, sender: &mut dyn MessageSender<P>) {
        let Some(authority) = self.authority else { return };
        if self.classes_due {
            let message = classes_of_client(self.fingerprint);
            self.classes_due = sender.send(authority, &message, P::Delivery::default()).is_err();
        }
        if core::mem::take(&mut self.is_unacknowledged) {
            // A lost acknowledgement is harmless, because the next one covers its ticks.
            let _ = sender.send(authority, &acknowledgement(self.received), self.delivery);
        }
        let classes = self.classes;
        let is_sent = self.has_unsent
            && send_states(self.memory.parts(), classes, &mut self.number, |message| {
                sender.send(authority, message, P::Delivery::default()).is_ok()
            });
        self.has_unsent = self.has_unsent && !is_sent;
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let is_due = self.is_unacknowledged || self.has_unsent || self.classes_due;
        is_due.then_some(Instant::ZERO)
    }
}
