//! Simulates the connections between meshes without real peers. Connections open and close and lose no messages;
//! paths appear and vanish.

use core::time::Duration;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Plugin, Side};
use rakwire::raknet::{Delivery, DisconnectReason, Guid, RakNet};
use rakwire_plugins::mesh::{MEMBER_ID, Mesh};

use crate::support::{Collector, connections};

/// The maximum number of machines. Each has one connection fewer.
pub(crate) const MAX: usize = 8;

pub(crate) type Member = Mesh<7>;

/// A random number generator (xorshift64*) for reproducible tests.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) const fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % end
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NetworkEvent {
    Message { link: u64, from: usize, to: usize, bytes: Vec<u8> },
    Opened { link: u64, at: usize, other: usize, is_server: bool, other_opens_at: u64 },
    Ended { link: u64, at: usize, other: usize, is_notified: bool },
    Updated { at: usize },
}

/// The side of a connection at one machine.
#[derive(Clone, Copy, Debug)]
struct End {
    link: u64,
    id: ConnectionId,
    /// The earliest time at which the next message may arrive.
    arrives_after: u64,
    /// True if this side has received the age of the other side.
    has_received: bool,
}

#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) mesh: Member,
    pub(crate) guid: Guid,
    ends: [Option<End>; MAX],
    /// The network time at which the machine became a member.
    pub(crate) joined_at: Option<u64>,
    updates_at: Option<u64>,
}

/// A change of a machine's host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) at: usize,
    /// The previous host, if it is the machine itself, or is still connected and has announced its age.
    pub(crate) before: Option<usize>,
    /// The new host, if that machine is running.
    pub(crate) after: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) now: u64,
    pub(crate) machines: [Option<Machine>; MAX],
    pub(crate) random: Random,
    /// The group of each machine. Machines of the same group can reach each other.
    pub(crate) groups: [u64; MAX],
    /// Pairs that can never reach each other.
    pub(crate) broken: Vec<(usize, usize)>,
    /// The number of messages per thousand that are lost, and therefore arrive late.
    pub(crate) loss: u64,
    queue: BinaryHeap<Reverse<(u64, u64, NetworkEvent)>>,
    sequence: u64,
    links: u64,
    ids: Vec<ConnectionId>,
    pub(crate) changes: Vec<Change>,
    hosts: [Option<Guid>; MAX],
}

fn address(machine: usize) -> SocketAddr {
    ([10, 0, 0, 1], 1_000 + machine as u16).into()
}

fn instant(now: u64) -> Instant {
    Instant::from_micros(now * 1_000)
}

fn plugin(mesh: &mut Member) -> &mut dyn Plugin<RakNet> {
    mesh
}

impl Network {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            now: 1_000,
            machines: [const { None }; MAX],
            random: Random::new(seed),
            groups: [0; MAX],
            broken: Vec::new(),
            loss: 50,
            queue: BinaryHeap::new(),
            sequence: 0,
            links: 0,
            ids: connections::<RakNet>(MAX - 1),
            changes: Vec::new(),
            hosts: [None; MAX],
        }
    }

    /// Starts a machine with a new GUID in a free slot.
    pub(crate) fn start(&mut self, at: usize, is_founder: bool) {
        let guid = Guid(self.random.below(1 << 30) << 3 | at as u64);
        let mut mesh = Member::new(guid);
        if is_founder {
            mesh.create();
        }
        let joined_at = is_founder.then_some(self.now);
        self.hosts[at] = None;
        self.machines[at] = Some(Machine { mesh, guid, ends: [None; MAX], joined_at, updates_at: None });
        self.schedule_update(at);
    }

    pub(crate) fn running(&self) -> Vec<usize> {
        (0..MAX).filter(|at| self.machines[*at].is_some()).collect()
    }

    pub(crate) fn machine(&self, at: usize) -> &Machine {
        self.machines[at].as_ref().expect("the simulation succeeds")
    }

    pub(crate) fn machine_mut(&mut self, at: usize) -> &mut Machine {
        self.machines[at].as_mut().expect("the simulation succeeds")
    }

    pub(crate) fn find(&self, guid: Guid) -> Option<usize> {
        self.running().into_iter().find(|at| self.machine(*at).guid == guid)
    }

    pub(crate) fn is_connected(&self, a: usize, b: usize) -> bool {
        self.machines[a].as_ref().is_some_and(|machine| machine.ends[b].is_some())
    }

    fn has_received(&self, at: usize, other: usize) -> bool {
        let end = self.machines[at].as_ref().and_then(|machine| machine.ends[other]);
        end.is_some_and(|end| end.has_received)
    }

    fn reaches(&self, a: usize, b: usize) -> bool {
        let is_broken = self.broken.contains(&(a, b)) || self.broken.contains(&(b, a));
        self.groups[a] == self.groups[b] && !is_broken && self.machines[b].is_some()
    }

    fn push(&mut self, at: u64, event: NetworkEvent) {
        self.sequence += 1;
        self.queue.push(Reverse((at, self.sequence, event)));
    }

    fn latency(&mut self) -> u64 {
        let mut latency = 5 + self.random.below(40);
        while self.random.below(1_000) < self.loss {
            latency += 150;
        }
        latency
    }

    /// Makes one machine dial another.
    pub(crate) fn connect(&mut self, from: usize, to: usize) {
        if from == to || !self.reaches(from, to) || self.is_connected(from, to) || self.is_connected(to, from)
        {
            return;
        }
        self.links += 1;
        let link = self.links;
        let there = self.now + self.latency();
        let back = there + self.latency();
        self.push(
            there,
            NetworkEvent::Opened { link, at: to, other: from, is_server: true, other_opens_at: back },
        );
        self.push(
            back,
            NetworkEvent::Opened { link, at: from, other: to, is_server: false, other_opens_at: there },
        );
    }

    /// Cuts the path between two machines. Each of them detects it after a while.
    pub(crate) fn cut(&mut self, a: usize, b: usize, slowest: u64) {
        self.end(a, b, slowest, false);
    }

    /// Closes the connection between two machines. `is_notified` is true if one of them disconnects regularly.
    fn end(&mut self, a: usize, b: usize, slowest: u64, is_notified: bool) {
        for (at, other) in [(a, b), (b, a)] {
            let Some(end) = self.machines[at].as_ref().and_then(|machine| machine.ends[other]) else {
                continue;
            };
            let when = self.now + 1 + self.random.below(slowest);
            self.push(when, NetworkEvent::Ended { link: end.link, at, other, is_notified });
        }
    }

    /// Stops a machine, which disconnects or times out. The others detect it immediately or after a while.
    pub(crate) fn stop(&mut self, at: usize, slowest: u64) {
        let is_notified = self.random.below(2) == 0;
        (0..MAX).for_each(|other| self.end(at, other, slowest, is_notified));
        self.machines[at] = None;
    }

    /// Splits the machines into groups, or joins them again.
    pub(crate) fn split(&mut self, groups: [u64; MAX]) {
        self.groups = groups;
        for a in 0..MAX {
            for b in (0..a).filter(|b| groups[*b] != groups[a]) {
                self.cut(a, b, 10_000);
            }
        }
    }

    pub(crate) fn run(&mut self, millis: u64) {
        let end = self.now + millis;
        while let Some(Reverse((at, ..))) = self.queue.peek()
            && *at <= end
        {
            let Some(Reverse((at, _, event))) = self.queue.pop() else { break };
            self.now = self.now.max(at);
            self.handle(event);
        }
        self.now = end;
    }

    fn handle(&mut self, event: NetworkEvent) {
        let now = instant(self.now);
        let at = match event {
            NetworkEvent::Message { link, from, to, bytes } => {
                let Some(machine) = &mut self.machines[to] else { return };
                let Some(end) = machine.ends[from].as_mut().filter(|end| end.link == link) else { return };
                if self.groups[from] == self.groups[to] {
                    end.has_received |= bytes[0] == MEMBER_ID;
                    let end = *end;
                    plugin(&mut machine.mesh).on_message(
                        now,
                        end.id,
                        Delivery::RELIABLE_ORDERED,
                        &&bytes[..],
                    );
                }
                to
            }
            NetworkEvent::Opened { link, at, other, is_server, other_opens_at } => {
                if !self.open(link, at, other, is_server, other_opens_at) {
                    // The connection times out at the other machine.
                    let when = self.now + 1_000;
                    return self
                        .push(when, NetworkEvent::Ended { link, at: other, other: at, is_notified: false });
                }
                at
            }
            NetworkEvent::Ended { link, at, other, is_notified } => {
                let Some(machine) = &mut self.machines[at] else { return };
                let Some(end) = machine.ends[other].take_if(|end| end.link == link) else { return };
                let reason = if is_notified { DisconnectReason::Remote } else { DisconnectReason::Lost };
                plugin(&mut machine.mesh).on_disconnected(now, end.id, reason);
                // The connection times out at the other machine, unless it is closed earlier.
                let when = self.now + 10_000;
                self.push(when, NetworkEvent::Ended { link, at: other, other: at, is_notified: false });
                at
            }
            NetworkEvent::Updated { at } => {
                let Some(machine) = &mut self.machines[at] else { return };
                if machine.updates_at.take_if(|updates_at| *updates_at <= self.now).is_none() {
                    return;
                }
                self.update(at);
                at
            }
        };
        self.look(at);
        self.schedule_update(at);
    }

    fn open(&mut self, link: u64, at: usize, other: usize, is_server: bool, arrives_after: u64) -> bool {
        let now = self.now;
        // A machine has one slot for each other machine.
        let id = self.ids[if other > at { other - 1 } else { other }];
        let is_answered = is_server || self.link(other, at) == Some(link);
        if !self.reaches(at, other) || !is_answered || self.link(at, other).is_some() {
            return false;
        }
        let guid = self.machine(other).guid;
        let Some(machine) = &mut self.machines[at] else { return false };
        machine.ends[other] = Some(End { link, id, arrives_after, has_received: false });
        let side = if is_server { Side::Server } else { Side::Client };
        plugin(&mut machine.mesh).on_connected(instant(now), id, address(other), guid, side);
        true
    }

    fn link(&self, at: usize, other: usize) -> Option<u64> {
        self.machines[at].as_ref()?.ends[other].map(|end| end.link)
    }

    fn update(&mut self, at: usize) {
        let mut sender = Collector::<RakNet>::new();
        let now = self.now;
        plugin(&mut self.machine_mut(at).mesh).update(instant(now), &mut sender);
        for (id, bytes, _) in sender.messages {
            let to = (0..MAX).find(|to| self.machine(at).ends[*to].is_some_and(|end| end.id == id));
            let Some(to) = to else { continue };
            let latency = self.latency();
            let Some(end) = &mut self.machine_mut(at).ends[to] else { continue };
            end.arrives_after = end.arrives_after.max(now + latency);
            let (when, link) = (end.arrives_after, end.link);
            self.push(when, NetworkEvent::Message { link, from: at, to, bytes });
        }
        while let Some(target) = self.machine_mut(at).mesh.poll_connect() {
            self.connect(at, usize::from(target.address.port()) - 1_000);
        }
    }

    /// Records a change of a machine's host.
    fn look(&mut self, at: usize) {
        if let Some(host) = self.machine_mut(at).mesh.poll_host() {
            let before = self.hosts[at].replace(host).and_then(|guid| self.find(guid));
            let before = before.filter(|before| *before == at || self.has_received(at, *before));
            let (after, now) = (self.find(host), self.now);
            self.machine_mut(at).joined_at.get_or_insert(now);
            self.changes.push(Change { at, before, after });
        }
    }

    fn schedule_update(&mut self, at: usize) {
        let now = self.now;
        let Some(machine) = &mut self.machines[at] else { return };
        let Some(due) = plugin(&mut machine.mesh).poll_timeout() else { return };
        let due = (due.as_micros().div_ceil(1_000)).max(now + 1);
        if machine.updates_at.is_none_or(|updates_at| updates_at > due) {
            machine.updates_at = Some(due);
            self.push(due, NetworkEvent::Updated { at });
        }
    }

    /// Returns how long a machine has been a member, in network time.
    pub(crate) fn age(&self, at: usize) -> Duration {
        Duration::from_millis(self.now - self.machine(at).joined_at.unwrap_or(self.now))
    }
}
