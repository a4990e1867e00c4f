//! The memory of large messages that are reassembled in vectors.
//!
//! For any length and order of its parts, a message takes no more memory than the blocks charged for it.

#[path = "it/support/allocator.rs"]
mod allocator;
#[path = "it/support/forged.rs"]
#[allow(dead_code, reason = "this test uses a part")]
mod forged;
#[path = "it/support/raknet.rs"]
#[allow(dead_code, reason = "this test uses a part")]
mod raknet;

use std::alloc::System;
use std::time::Duration;

use allocator::ALLOCATOR;
use forged::{capsule, data};
use raknet::{Net, client_config, messages, peer, server_config};
use rakwire::raknet::{ConnectionId, DropReason, Event, Reliability};
use rakwire::sim::Conditions;
use rakwire::wire::datagram::{CapsuleHeader, Split};
use stats_alloc::Region;

const COUNT: u32 = 500;
const BLOCK: usize = 512;
/// A number that is greater than all datagram and message numbers of the client's handshake.
const NEXT: u32 = 20;
/// An allowance for memory besides the message, such as the list of vectors.
const BESIDE: usize = 1 << 10;

/// A message of [`COUNT`] parts, and the order in which they arrive.
struct Case {
    name: &'static str,
    mtu: u16,
    /// The length of the first part, and the length of each other part.
    lengths: [usize; 2],
    /// Returns the index of the part that arrives at a position.
    order: fn(u32) -> u32,
}

const CASES: [Case; 7] = [
    Case { name: "in order", mtu: 1_492, lengths: [1_400, 1_400], order: |at| at },
    Case { name: "backwards", mtu: 1_492, lengths: [1_400, 1_400], order: |at| COUNT - 1 - at },
    Case { name: "pairs swapped", mtu: 1_492, lengths: [1_400, 1_400], order: |at| at ^ 1 },
    Case { name: "a short part first", mtu: 1_492, lengths: [20, 1_400], order: |at| at },
    Case { name: "a short part last", mtu: 1_492, lengths: [20, 1_400], order: |at| (at + 1) % COUNT },
    Case { name: "short parts", mtu: 1_492, lengths: [1_400, 1], order: |at| at },
    Case { name: "parts longer than the MTU", mtu: 576, lengths: [1_400, 1_400], order: |at| at },
];

impl Case {
    fn length(&self, index: u32) -> usize {
        let [first, others] = self.lengths;
        if index == 0 { first } else { others }
    }

    fn part(&self, index: u32) -> Vec<u8> {
        (0..self.length(index)).map(|at| 0x80 | (index as usize + at / 7) as u8).collect()
    }

    fn datagram(&self, number: u32, index: u32) -> Vec<u8> {
        let split = Some(Split { count: COUNT, id: 1, index });
        let header = CapsuleHeader { split, ..capsule(Reliability::Reliable, NEXT + number, 0) };
        data(NEXT + number, header, &self.part(index))
    }

    /// Returns the size of the blocks charged for the message after the first `arrived` parts: the reserved ones, and
    /// the excess of longer parts.
    fn charged(&self, arrived: u32) -> usize {
        let promised = usize::from(self.mtu).div_ceil(BLOCK);
        let blocks = |number| self.length((self.order)(number)).div_ceil(BLOCK);
        let excess: usize = (0..arrived).map(|number| blocks(number).saturating_sub(promised)).sum();
        (COUNT as usize * promised + excess) * BLOCK
    }

    /// Returns the size of the blocks of a complete message.
    fn kept(&self) -> usize {
        (0..COUNT).map(|index| self.length(index).div_ceil(BLOCK) * BLOCK).sum()
    }
}

fn connected(mtu: u16) -> (Net, ConnectionId) {
    let mut config = client_config();
    config.mtu = mtu;
    let mut net = Net::with(peer(config), peer(server_config()), Conditions::default(), 1);
    net.pair.b.set_zero_copy_threshold(2_000);
    let (_, server) = net.connect();
    net.run_for(Duration::from_millis(100));
    // The tables of a peer grow with the blocks in use. A first message makes them reach their full size before the
    // measurement.
    for index in 0..COUNT {
        arrive(&mut net, &CASES[0].datagram(index, COUNT - 1 - index));
    }
    net.run_for(Duration::from_millis(100));
    assert_eq!(messages(&net.server).len(), 1);
    net.server = Vec::new();
    (net, server)
}

/// Returns the number of bytes that were allocated and not freed.
fn held(region: &Region<'_, System>) -> usize {
    let change = region.change();
    change.bytes_allocated.saturating_sub(change.bytes_deallocated)
}

fn arrive(net: &mut Net, datagram: &[u8]) {
    let (now, from) = (net.now(), net.pair.a_address);
    net.pair.b.handle_datagram(now, from, datagram);
}

fn check(case: &Case) {
    let (mut net, server) = connected(case.mtu);
    let name = case.name;
    let datagrams: Vec<_> =
        (0..COUNT).map(|number| case.datagram(COUNT + number, (case.order)(number))).collect();
    let message: Vec<u8> = (0..COUNT).flat_map(|index| case.part(index)).collect();
    let region = Region::new(ALLOCATOR);
    for (arrived, datagram) in (1..).zip(&datagrams) {
        arrive(&mut net, datagram);
        let most = case.charged(arrived) + BESIDE;
        assert!(
            held(&region) <= most,
            "{name}: {} bytes held, at most {most} allowed after {arrived} parts",
            held(&region)
        );
    }
    let is_message = matches!(net.pair.b.poll_event(), Some(Event::Message { .. }));
    assert!(is_message, "{name}");
    let taken = net.pair.b.take_event_data();
    assert!(taken == message, "{name}");
    let most = case.kept().min(message.len() + message.len() / 8);
    assert!(
        taken.capacity() <= most,
        "{name}: a capacity of {} bytes, at most {most} allowed",
        taken.capacity()
    );
    assert_all_is_given_back(&mut net, server, name);
}

/// Checks that closing a connection frees an incomplete message, with parts in the vector and in blocks.
fn check_end(case: &Case) {
    let (mut net, server) = connected(case.mtu);
    let before = net.pair.b.stats().dropped(DropReason::DuplicateMessage);
    let region = Region::new(ALLOCATOR);
    for (number, index) in (0..COUNT / 2).chain(COUNT / 2 + 1..COUNT).enumerate() {
        arrive(&mut net, &case.datagram(COUNT + 2 * number as u32, index));
        // A duplicate part has no effect, wherever the part is stored.
        arrive(&mut net, &case.datagram(COUNT + 2 * number as u32 + 1, index));
    }
    let duplicates = net.pair.b.stats().dropped(DropReason::DuplicateMessage) - before;
    assert_eq!(duplicates, u64::from(COUNT - 1), "{}", case.name);
    assert_all_is_given_back(&mut net, server, case.name);
    assert!(
        held(&region) < BESIDE,
        "{}: {} bytes held after the connection has closed",
        case.name,
        held(&region)
    );
}

fn assert_all_is_given_back(net: &mut Net, server: ConnectionId, name: &str) {
    let now = net.now();
    net.pair.b.disconnect(now, server);
    let is_over = net.run_until(Duration::from_secs(60), |net| net.pair.b.connections().count() == 0);
    assert!(is_over, "{name}");
    assert_eq!(net.pair.b.blocks_available(), net.pair.b.blocks(), "{name}");
    assert!(net.pair.b.is_intact(), "{name}");
}

#[test]
fn a_message_takes_no_more_memory_than_its_blocks() {
    CASES.iter().for_each(check);
    CASES.iter().for_each(check_end);
}
