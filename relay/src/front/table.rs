//! The flows of a front, by client and by number.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Instant;

/// The name of a flow. It is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FlowId {
    slot: u32,
    generation: u32,
}

/// A flow, and what the table needs to know of it.
#[derive(Debug)]
struct Entry<F> {
    client: SocketAddr,
    /// When the client was last heard.
    heard: Instant,
    opened: Instant,
    flow: F,
}

#[derive(Debug)]
struct Slot<F> {
    generation: u32,
    entry: Option<Entry<F>>,
}

/// See the module. Admission bounds how many there are.
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

    /// The flow, with the address of its client.
    pub(super) fn get(&mut self, id: FlowId) -> Option<(SocketAddr, &mut F)> {
        let slot = self.slots.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        slot.entry.as_mut().map(|entry| (entry.client, &mut entry.flow))
    }

    /// Notes that the client of a flow was heard.
    pub(super) fn hear(&mut self, id: FlowId, now: Instant) {
        if let Some(entry) = self.slots.get_mut(id.slot as usize).and_then(|slot| slot.entry.as_mut()) {
            entry.heard = now;
        }
    }

    /// Adds the flow of a client that has none. None if all numbers of flows are taken.
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

    /// The flows of which `is_it` is true: it sees when the flow was opened, when its client was last heard, and the flow.
    pub(super) fn select(&self, is_it: impl Fn(Instant, Instant, &F) -> bool) -> Vec<FlowId> {
        let ids = self.slots.iter().zip(0u32..).filter_map(|(place, slot)| {
            let entry = place.entry.as_ref()?;
            let id = FlowId { slot, generation: place.generation };
            is_it(entry.opened, entry.heard, &entry.flow).then_some(id)
        });
        ids.collect()
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
    fn flows_are_found_by_client_and_by_name_until_they_are_removed() {
        let now = Instant::now();
        let mut table = FlowTable::default();
        let first = table.insert(client(1), now, 'a').unwrap();
        let second = table.insert(client(2), now, 'b').unwrap();
        assert_eq!(table.find(client(2)), Some(second));
        assert_eq!(table.get(first), Some((client(1), &mut 'a')));
        table.remove(first);
        assert_eq!(table.find(client(1)), None);
        assert_eq!(table.get(first), None);
        // A name is not used again, although the slot is.
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
        table.hear(first, after(5));
        assert_eq!(table.select(|_, heard, _| heard < after(5)), [second]);
    }
}
