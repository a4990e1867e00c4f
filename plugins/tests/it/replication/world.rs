//! An authority and clients without real peers. Tests lose, delay and duplicate the messages between them.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;

use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Plugin, Side};
use rakwire::raknet::{Delivery, DisconnectReason, Guid, RakNet};
use rakwire_plugins::replication::{
    Class, EntityInfo, Field, FixedAuthority, FixedReplicas, NetworkId, Scope,
};

use crate::support::{Collector, connections};

pub(super) const ENTITIES: usize = 8;
pub(super) const CLIENTS: usize = 3;

/// A class with all kinds of fields, and a shorter class.
pub(super) static CLASSES: [Class; 2] = [
    Class {
        fields: &[
            Field::new(16).or_short(5),
            Field::new(32).or_short(1),
            Field::new(1),
            Field::new(10).or_short(9),
        ],
    },
    Class { fields: &[Field::new(7).or_short(3)] },
];

/// The entities that are hidden from each client: pairs of the client's slot and the entity's handle.
#[derive(Clone, Debug, Default)]
pub(super) struct Hidden(pub(super) BTreeSet<(u16, u32)>);

impl Scope for Hidden {
    fn priority(&mut self, to: ConnectionId, entity: &EntityInfo<'_>) -> Option<NonZeroU16> {
        if self.0.contains(&(to.slot(), entity.handle)) {
            None
        } else {
            NonZeroU16::new(1 + entity.id.index())
        }
    }
}

pub(super) type TestAuthority = FixedAuthority<RakNet, Hidden, CLIENTS, ENTITIES, 4, 8, 48>;
pub(super) type Client = FixedReplicas<RakNet, ENTITIES, 4, 48>;
/// The state of an entity as both sides compare it: class, ownership and values.
pub(super) type State = (u8, bool, Vec<u32>);

pub(super) fn authority() -> TestAuthority {
    TestAuthority::new(&CLASSES, Hidden::default(), Delivery::UNRELIABLE).expect("valid classes")
}

pub(super) fn client() -> Client {
    Client::new(&CLASSES, Delivery::UNRELIABLE).expect("valid classes")
}

pub(super) fn connect(plugin: &mut dyn Plugin<RakNet>, id: ConnectionId, side: Side) {
    plugin.on_connected(Instant::ZERO, id, ([10, 0, 0, 1], 1).into(), Guid(1), side);
}

/// Exchanges the classes of both sides, which are sent reliably.
pub(super) fn greet(authority: &mut TestAuthority, client: &mut Client, id: ConnectionId) {
    for (_, message) in sent(client) {
        receive(authority, id, &message);
    }
    for (to, message) in sent(authority) {
        if to == id {
            receive(client, id, &message);
        }
    }
    for (_, message) in sent(client) {
        receive(authority, id, &message);
    }
}

/// Returns the messages that a plugin sends now.
pub(super) fn sent(plugin: &mut dyn Plugin<RakNet>) -> Vec<(ConnectionId, Vec<u8>)> {
    let mut collector = Collector::<RakNet>::new();
    if plugin.poll_timeout().is_some() {
        plugin.update(Instant::ZERO, &mut collector);
    }
    collector.messages.into_iter().map(|(id, bytes, _)| (id, bytes)).collect()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn receive(plugin: &mut dyn Plugin<RakNet>, from: ConnectionId, message: &[u8]) {
    plugin.on_message(Instant::ZERO, from, Delivery::UNRELIABLE, &message);
}

/// The delivery of a message in flight.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Arrives,
    Lost,
    /// The message arrives before the next one, and a second time after it.
    Doubled,
    /// The message arrives after this many other messages.
    Late(u8),
}

/// A message in flight: to the authority, or to a client.
type UnderWay = (u8, bool, usize, Vec<u8>);

pub(super) struct World {
    pub(super) authority: TestAuthority,
    pub(super) clients: Vec<Option<Client>>,
    pub(super) ids: Vec<ConnectionId>,
    under_way: Vec<UnderWay>,
}

impl World {
    pub(super) fn new() -> Self {
        let clients = (0..CLIENTS).map(|_| None).collect();
        Self { authority: authority(), clients, ids: connections::<RakNet>(CLIENTS), under_way: Vec::new() }
    }

    pub(super) fn join(&mut self, number: usize) {
        if self.clients[number].is_none() {
            let mut joined = client();
            connect(&mut self.authority, self.ids[number], Side::Server);
            connect(&mut joined, self.ids[number], Side::Client);
            greet(&mut self.authority, &mut joined, self.ids[number]);
            self.clients[number] = Some(joined);
        }
    }

    pub(super) fn leave(&mut self, number: usize) {
        if self.clients[number].take().is_some() {
            Plugin::<RakNet>::on_disconnected(
                &mut self.authority,
                Instant::ZERO,
                self.ids[number],
                DisconnectReason::Lost,
            );
            self.under_way.retain(|(_, _, other, _)| *other != number);
        }
    }

    fn deliver(&mut self, to_authority: bool, number: usize, message: &[u8]) {
        let id = self.ids[number];
        if to_authority {
            receive(&mut self.authority, id, message);
        } else if let Some(client) = &mut self.clients[number] {
            receive(client, id, message);
        }
    }

    fn carry(&mut self, fate: Fate, to_authority: bool, number: usize, message: Vec<u8>) {
        let due: Vec<UnderWay> = self.under_way.extract_if(.., |(wait, ..)| *wait == 0).collect();
        self.under_way.iter_mut().for_each(|(wait, ..)| *wait -= 1);
        match fate {
            Fate::Arrives => self.deliver(to_authority, number, &message),
            Fate::Lost => {}
            Fate::Doubled => {
                self.deliver(to_authority, number, &message);
                self.under_way.push((1, to_authority, number, message));
            }
            Fate::Late(wait) => self.under_way.push((wait, to_authority, number, message)),
        }
        for (_, to_authority, number, message) in due {
            self.deliver(to_authority, number, &message);
        }
    }

    /// Runs a tick of the authority and delivers the resulting messages.
    pub(super) fn tick(&mut self, mut fate: impl FnMut() -> Fate) {
        self.authority.tick();
        for (id, message) in sent(&mut self.authority) {
            self.carry(fate(), false, usize::from(id.slot()), message);
        }
        for number in 0..CLIENTS {
            let replies = self.clients[number].as_mut().map(|client| sent(client)).unwrap_or_default();
            for (_, message) in replies {
                // States are sent reliably, but may still arrive late.
                let fate = fate();
                let is_state = message[1] != 0;
                let fate = if is_state && matches!(fate, Fate::Lost) { Fate::Arrives } else { fate };
                self.carry(fate, true, number, message);
            }
        }
    }

    /// Delivers the messages in flight, and then all others without losses.
    pub(super) fn settle(&mut self) {
        for (_, to_authority, number, message) in std::mem::take(&mut self.under_way) {
            self.deliver(to_authority, number, &message);
        }
        (0..80).for_each(|_| self.tick(|| Fate::Arrives));
    }

    /// Returns the state that a client should have.
    pub(super) fn expected(&self, number: usize) -> BTreeMap<NetworkId, State> {
        let (id, mut scope) = (self.ids[number], self.authority.scope.clone());
        let entities = self
            .authority
            .iter()
            .filter(|entity| scope.priority(id, entity).is_some() || entity.owner == Some(id));
        entities
            .map(|entity| (entity.id, (entity.class, entity.owner == Some(id), entity.values.to_vec())))
            .collect()
    }

    /// Returns the state that a client has.
    pub(super) fn actual(&self, number: usize) -> BTreeMap<NetworkId, State> {
        let client = self.clients[number].as_ref().expect("a connected client");
        client
            .iter()
            .map(|entity| (entity.id, (entity.class, entity.is_owner, entity.values.to_vec())))
            .collect()
    }

    pub(super) fn id(&self, index: u16) -> Option<NetworkId> {
        self.authority.iter().map(|entity| entity.id).find(|id| id.index() == index)
    }
}
