//! One client, as the authority knows it.

use heapless::Vec;
use rakwire::endpoint::ConnectionId;
use rakwire::wire::WireError;

use super::entity::Entity;
use super::known::{Knowledge, Known, Wanted};
use super::scope::{EntityInfo, Scope, SentBits};
use super::stats::PeerStats;
use crate::replication::class::Class;
use crate::replication::received::Received;
use crate::replication::wire::{Full, HEADER, Record, Writer, gamma_bits, update_header, write_gamma};

/// What a removal weighs, which is short and makes room at the client.
const REMOVAL_PRIORITY: u32 = 1 << 24;
/// An acknowledgement is waited for so many ticks longer than it has taken before.
const RESEND_MARGIN: u32 = 2;

#[derive(Debug)]
pub(super) struct Peer<const ENTITIES: usize> {
    known: [Known; ENTITIES],
    /// Acknowledged since the last tick.
    received: Received,
    /// So many ticks an acknowledgement takes, or has lately taken.
    ack_delay: u32,
    pub(super) is_due: bool,
    pub(super) budget: usize,
    pub(super) stats: PeerStats,
}

/// What the messages of a tick are made of.
pub(super) struct Tick<'a, S, const ENTITIES: usize, const FIELDS: usize, const HISTORY: usize> {
    pub(super) tick: u32,
    pub(super) classes: &'static [Class],
    pub(super) entities: &'a [Option<Entity<FIELDS, HISTORY>>; ENTITIES],
    pub(super) scope: &'a mut S,
    pub(super) due: &'a mut Vec<(u32, u16), ENTITIES>,
}

/// The entities to be sent in a message, and their bits.
pub(super) struct Chosen<const ENTITIES: usize> {
    is_chosen: [bool; ENTITIES],
    count: usize,
    bits: usize,
    /// The counters as they are once the message was sent.
    stats: PeerStats,
}

impl<const ENTITIES: usize> Peer<ENTITIES> {
    pub(super) fn new(budget: usize) -> Self {
        Self {
            known: [Known::default(); ENTITIES],
            received: Received::default(),
            ack_delay: 1,
            is_due: false,
            budget,
            stats: PeerStats::default(),
        }
    }

    /// Ticks that the client says it has received; false if they are not over yet.
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

    /// Writes the message of a tick to the front of a buffer, and returns its length; nothing if there is nothing to say.
    pub(super) fn write<const FIELDS: usize, const HISTORY: usize>(
        &mut self,
        cx: &mut Tick<'_, impl Scope, ENTITIES, FIELDS, HISTORY>,
        id: ConnectionId,
        buffer: &mut [u8],
    ) -> Option<(usize, Chosen<ENTITIES>)> {
        let received = self.received;
        self.known.iter_mut().for_each(|known| known.on_received(received));
        self.refresh(cx, id);
        let mut chosen = self.choose(cx, buffer.len().min(self.budget));
        self.stats.waiting = u32::try_from(cx.due.len() - chosen.count).unwrap_or(u32::MAX);
        if chosen.count == 0 {
            return None;
        }
        let (header, records) = buffer.split_first_chunk_mut()?;
        *header = update_header(cx.tick);
        let length = self.write_records(cx, &mut chosen, records).ok()?;
        Some((HEADER + length, chosen))
    }

    /// Finds out what is to be sent.
    fn refresh<const FIELDS: usize, const HISTORY: usize>(
        &mut self,
        cx: &mut Tick<'_, impl Scope, ENTITIES, FIELDS, HISTORY>,
        id: ConnectionId,
    ) {
        let resend = self.ack_delay.saturating_add(RESEND_MARGIN);
        let (mut in_scope, tick) = (0, cx.tick);
        cx.due.clear();
        for (index, (known, entity)) in (0..=u16::MAX).zip(self.known.iter_mut().zip(cx.entities)) {
            let entity = entity.as_ref().filter(|entity| entity.created_at > 0);
            let priority = entity.and_then(|entity| {
                let priority = cx.scope.priority(id, &EntityInfo::of(index, entity));
                // Whoever says how an entity is must know that it does.
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
                let _ = cx.due.push((known.priority, index));
            }
        }
        self.stats.in_scope = in_scope;
    }

    /// Chooses what fits, the highest priority first.
    fn choose<const FIELDS: usize, const HISTORY: usize>(
        &self,
        cx: &mut Tick<'_, impl Scope, ENTITIES, FIELDS, HISTORY>,
        bytes: usize,
    ) -> Chosen<ENTITIES> {
        let room = bytes.saturating_sub(HEADER) * 8;
        cx.due.sort_unstable_by(|a, b| b.cmp(a));
        let mut chosen = Chosen { is_chosen: [false; ENTITIES], count: 0, bits: 0, stats: self.stats };
        for (_, index) in cx.due.iter() {
            let Some((record, class)) = self.record(cx, usize::from(*index)) else { continue };
            let (count, bits) = (chosen.count + 1, chosen.bits + record.bits(class));
            if bits + gamma_bits(count) + count * index_bits(ENTITIES, count) > room {
                continue;
            }
            if let Some(is_chosen) = chosen.is_chosen.get_mut(usize::from(*index)) {
                *is_chosen = true;
                (chosen.count, chosen.bits) = (count, bits);
            }
        }
        chosen
    }

    /// What the client is to be told of an entity, and how its fields are sent.
    fn record<'c, const FIELDS: usize, const HISTORY: usize>(
        &self,
        cx: &Tick<'c, impl Scope, ENTITIES, FIELDS, HISTORY>,
        index: usize,
    ) -> Option<(Record<FIELDS>, &'c Class)> {
        let known = self.known.get(index)?;
        let entity = cx.entities.get(index)?.as_ref();
        if known.knowledge == Knowledge::Removing {
            let is_destroyed = entity.is_none_or(|entity| entity.generation != known.generation);
            return Some((Record::Removed { is_destroyed }, cx.classes.first()?));
        }
        let entity = entity?;
        let class = cx.classes.get(usize::from(entity.class))?;
        let record = if known.knowledge == Knowledge::Present {
            Record::Delta(entity.changes(class, known.acked, cx.tick))
        } else {
            let Known { generation, term, is_owner, .. } = *known;
            Record::Full(Full { generation, class: entity.class, term, is_owner })
        };
        Some((record, class))
    }

    /// Writes what was chosen, in the order of the indices.
    fn write_records<const FIELDS: usize, const HISTORY: usize>(
        &self,
        cx: &Tick<'_, impl Scope, ENTITIES, FIELDS, HISTORY>,
        chosen: &mut Chosen<ENTITIES>,
        buffer: &mut [u8],
    ) -> Result<usize, WireError> {
        let mut writer = Writer::new(buffer);
        write_gamma(&mut writer, chosen.count)?;
        let mut next = 0;
        for (index, _) in chosen.is_chosen.iter().enumerate().filter(|(_, is_chosen)| **is_chosen) {
            let Some((record, class)) = self.record(cx, index) else { return Err(WireError::BadValue) };
            write_gamma(&mut writer, index + 1 - next)?;
            next = index + 1;
            let values = cx.entities.get(index).and_then(Option::as_ref);
            let values = values.map_or(&[][..], |entity| entity.values_at(cx.tick));
            record.write(&mut writer, class, values)?;
            chosen.stats.count(&record, record.bits(class));
        }
        Ok(writer.finish().len())
    }

    /// Tells the scope what each entity took in a message that was sent, if it wants to know.
    pub(super) fn report<const FIELDS: usize, const HISTORY: usize>(
        &self,
        cx: &mut Tick<'_, impl Scope, ENTITIES, FIELDS, HISTORY>,
        id: ConnectionId,
        chosen: &Chosen<ENTITIES>,
    ) {
        if !cx.scope.watches_bandwidth() {
            return;
        }
        let entities = (0..=u16::MAX).zip(cx.entities).zip(chosen.is_chosen);
        for ((index, entity), _) in entities.filter(|(_, is_chosen)| *is_chosen) {
            let Some(((record, class), entity)) = self.record(cx, index.into()).zip(entity.as_ref()) else {
                continue;
            };
            let mut fields = [0; FIELDS];
            let Some(header) = record.split_bits(class, &mut fields) else { continue };
            let fields = fields.get(..class.fields.len()).unwrap_or_default();
            cx.scope.on_sent(id, &EntityInfo::of(index, entity), SentBits { fields, header });
        }
    }

    /// The message of a tick was sent.
    pub(super) fn on_sent(&mut self, chosen: &Chosen<ENTITIES>, tick: u32, length: usize) {
        let known = self.known.iter_mut().zip(chosen.is_chosen);
        known.filter(|(_, is_chosen)| *is_chosen).for_each(|(known, _)| known.on_sent(tick));
        self.stats = PeerStats { waiting: self.stats.waiting, ..chosen.stats };
        self.stats.messages = self.stats.messages.saturating_add(1);
        self.stats.bytes = self.stats.bytes.saturating_add(length as u64);
    }
}

/// The most bits of an index, in the mean, where so many of them are named: the logarithm of a mean is not less than the mean
/// of the logarithms.
fn index_bits(entities: usize, count: usize) -> usize {
    let mean = entities.div_ceil(count.max(1)).max(1);
    2 * mean.next_power_of_two().ilog2() as usize + 1
}
