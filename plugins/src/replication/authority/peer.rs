//! One client at the authority.

use rakwire::endpoint::ConnectionId;
use rakwire::wire::WireError;

use super::known::{Knowledge, Known, Wanted};
use super::scope::{Scope, SentBits};
use super::stats::PeerStats;
use super::table::Table;
use crate::replication::class::{Class, MAX_FIELDS};
use crate::replication::received::Received;
use crate::replication::wire::{Full, HEADER, Record, Writer, gamma_bits, update_header, write_gamma};

/// The priority of a removal. It is high because a removal is short and frees capacity at the client.
const REMOVAL_PRIORITY: u32 = 1 << 24;
/// The number of ticks beyond the usual delay before an acknowledgement counts as missing.
const RESEND_MARGIN: u32 = 2;

/// The known classes of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientClasses {
    /// The client has not sent its classes, and receives no entities yet.
    Unknown,
    Same,
    /// The classes differ, and the client receives no entities.
    Other,
}

/// The state of a client, without its state for each entity.
#[derive(Debug)]
pub(super) struct Peer {
    /// The ticks acknowledged since the last tick.
    received: Received,
    /// The recent delay of acknowledgements, in ticks.
    ack_delay: u32,
    pub(super) classes: ClientClasses,
    /// True if the fingerprint of the authority's classes must still be sent to the client.
    pub(super) classes_due: bool,
    pub(super) is_due: bool,
    pub(super) budget: usize,
    pub(super) stats: PeerStats,
}

/// The data from which the messages of a tick are built.
pub(super) struct Tick<'a, S> {
    pub(super) tick: u32,
    pub(super) classes: &'static [Class],
    pub(super) table: Table<'a>,
    pub(super) scope: &'a mut S,
    /// A buffer for the entities that have something to send, with their priorities.
    pub(super) due: &'a mut [(u32, u16)],
    /// For each entity, true if the message contains it.
    pub(super) is_chosen: &'a mut [bool],
}

/// The number of entities chosen for a message, and their total bits.
pub(super) struct Chosen {
    count: usize,
    bits: usize,
    /// The counters to store once the message is sent.
    stats: PeerStats,
}

impl Peer {
    pub(super) fn new(budget: usize) -> Self {
        Self {
            received: Received::default(),
            ack_delay: 1,
            classes: ClientClasses::Unknown,
            classes_due: true,
            is_due: false,
            budget,
            stats: PeerStats::default(),
        }
    }

    /// Handles acknowledged ticks. Returns false if the acknowledgement covers ticks in the future.
    pub(super) fn on_acknowledgement(&mut self, received: Received, tick: u32) -> bool {
        if received.latest() > tick {
            return false;
        }
        if received.latest() > self.received.latest() {
            let delay = tick - received.latest();
            self.ack_delay = delay.max(self.ack_delay - self.ack_delay.div_ceil(8));
        }
        self.received.merge(received);
        true
    }

    /// Encodes the message of a tick at the start of a buffer. Returns its length, or `None` if there is
    /// nothing to send.
    pub(super) fn write(
        &mut self,
        known: &mut [Known],
        cx: &mut Tick<'_, impl Scope>,
        id: ConnectionId,
        buffer: &mut [u8],
    ) -> Option<(usize, Chosen)> {
        let received = self.received;
        known.iter_mut().for_each(|known| known.on_received(received));
        let due = self.refresh(known, cx, id);
        let mut chosen = self.choose(known, cx, due, buffer.len().min(self.budget));
        self.stats.waiting = u32::try_from(due - chosen.count).unwrap_or(u32::MAX);
        if chosen.count == 0 {
            return None;
        }
        let (header, records) = buffer.split_first_chunk_mut()?;
        *header = update_header(cx.tick);
        let length = write_records(known, cx, &mut chosen, records).ok()?;
        Some((HEADER + length, chosen))
    }

    /// Collects the entities that have something to send. Returns their number.
    fn refresh(&mut self, known: &mut [Known], cx: &mut Tick<'_, impl Scope>, id: ConnectionId) -> usize {
        let resend = self.ack_delay.saturating_add(RESEND_MARGIN);
        let (mut in_scope, mut due, tick) = (0, 0, cx.tick);
        for (index, (known, entity)) in (0..=u16::MAX).zip(known.iter_mut().zip(cx.table.entities)) {
            let entity = entity.as_ref().filter(|entity| entity.created_at > 0);
            let priority = entity.and_then(|entity| {
                let priority = cx.scope.priority(id, &cx.table.info(index, entity));
                // A client must receive the entities that it owns, even out of scope, because the updates mark it as
                // their owner.
                priority
                    .map(|priority| u32::from(priority.get()))
                    .or_else(|| (entity.owner == Some(id)).then_some(1))
            });
            let wanted = entity.filter(|_| priority.is_some()).map(|entity| Wanted {
                generation: entity.generation,
                term: entity.term,
                is_owner: entity.owner == Some(id),
                changed_at: entity.changed_at,
            });
            in_scope += u32::from(wanted.is_some());
            if known.refresh(wanted, tick, resend) {
                known.priority = known.priority.saturating_add(priority.unwrap_or(REMOVAL_PRIORITY));
                if let Some(place) = cx.due.get_mut(due) {
                    *place = (known.priority, index);
                    due += 1;
                }
            }
        }
        self.stats.in_scope = in_scope;
        due
    }

    /// Chooses the entities that fit, highest priority first.
    fn choose(&self, known: &[Known], cx: &mut Tick<'_, impl Scope>, due: usize, bytes: usize) -> Chosen {
        let room = bytes.saturating_sub(HEADER) * 8;
        if let Some(due) = cx.due.get_mut(..due) {
            due.sort_unstable_by(|a, b| b.cmp(a));
        }
        cx.is_chosen.fill(false);
        let mut chosen = Chosen { count: 0, bits: 0, stats: self.stats };
        for at in 0..due {
            let Some(&(_, index)) = cx.due.get(at) else { break };
            let Some((record, class)) = record(known, cx, usize::from(index)) else { continue };
            let (count, bits) = (chosen.count + 1, chosen.bits + record.bits(class));
            if bits + gamma_bits(count) + count * index_bits(cx.table.entities.len(), count) > room {
                continue;
            }
            if let Some(is_chosen) = cx.is_chosen.get_mut(usize::from(index)) {
                *is_chosen = true;
                (chosen.count, chosen.bits) = (count, bits);
            }
        }
        chosen
    }

    /// Records that the message of a tick was sent.
    pub(super) fn on_sent(
        &mut self,
        known: &mut [Known],
        cx: &Tick<'_, impl Scope>,
        chosen: &Chosen,
        length: usize,
    ) {
        let known = known.iter_mut().zip(&*cx.is_chosen);
        known.filter(|(_, is_chosen)| **is_chosen).for_each(|(known, _)| known.on_sent(cx.tick));
        self.stats = PeerStats { waiting: self.stats.waiting, ..chosen.stats };
        self.stats.messages = self.stats.messages.saturating_add(1);
        self.stats.bytes = self.stats.bytes.saturating_add(length as u64);
    }
}

/// Returns the record of an entity for the client, and its class.
fn record(known: &[Known], cx: &Tick<'_, impl Scope>, index: usize) -> Option<(Record, &'static Class)> {
    let known = known.get(index)?;
    let entity = cx.table.get(index);
    if known.knowledge == Knowledge::Removing {
        let is_destroyed = entity.is_none_or(|entity| entity.generation != known.generation);
        return Some((Record::Removed { is_destroyed }, cx.classes.first()?));
    }
    let entity = entity?;
    let class = cx.classes.get(usize::from(entity.class))?;
    let record = if known.knowledge == Knowledge::Present {
        Record::Delta(cx.table.changes(index, class, known.acked, cx.tick))
    } else {
        let Known { generation, term, is_owner, .. } = *known;
        Record::Full(Full { generation, class: entity.class, term, is_owner })
    };
    Some((record, class))
}

/// Encodes the chosen records, in the order of their indices.
fn write_records(
    known: &[Known],
    cx: &Tick<'_, impl Scope>,
    chosen: &mut Chosen,
    buffer: &mut [u8],
) -> Result<usize, WireError> {
    let mut writer = Writer::new(buffer);
    write_gamma(&mut writer, chosen.count)?;
    let mut next = 0;
    for (index, _) in cx.is_chosen.iter().enumerate().filter(|(_, is_chosen)| **is_chosen) {
        let Some((record, class)) = record(known, cx, index) else { return Err(WireError::BadValue) };
        write_gamma(&mut writer, index + 1 - next)?;
        next = index + 1;
        let values = if cx.table.get(index).is_some() { cx.table.values_at(index, cx.tick) } else { &[] };
        record.write(&mut writer, class, values)?;
        chosen.stats.count(&record, record.bits(class));
    }
    Ok(writer.finish().len())
}

/// Reports the size of each entity in a sent message to the scope, if the scope watches bandwidth.
pub(super) fn report(known: &[Known], cx: &mut Tick<'_, impl Scope>, id: ConnectionId) {
    if !cx.scope.watches_bandwidth() {
        return;
    }
    for index in 0..=u16::MAX {
        match cx.is_chosen.get(usize::from(index)) {
            Some(true) => {}
            Some(false) => continue,
            None => return,
        }
        let found = record(known, cx, index.into()).zip(cx.table.get(index.into()));
        let Some(((record, class), entity)) = found else { continue };
        let mut fields = [0; MAX_FIELDS];
        let Some(header) = record.split_bits(class, &mut fields) else { continue };
        let fields = fields.get(..class.fields.len()).unwrap_or_default();
        cx.scope.on_sent(id, &cx.table.info(index, entity), SentBits { fields, header });
    }
}

/// Returns an upper bound for the mean bits per index if `count` of `entities` entities are listed. The bound holds
/// because the logarithm of a mean is at least the mean of the logarithms.
fn index_bits(entities: usize, count: usize) -> usize {
    let mean = entities.div_ceil(count.max(1)).max(1);
    2 * mean.next_power_of_two().ilog2() as usize + 1
}
