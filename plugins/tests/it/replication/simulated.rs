//! Replication between peers over lossy paths in the simulator.

use core::time::Duration;

use proptest::prelude::*;
use rakwire::endpoint::{Capacity, ConnectionId, Event, Hooked, Peer, PluginHost, PluginKey, Protocol};
use rakwire::game_protocol::{GameProtocol, Reliability};
use rakwire::raknet::{Delivery, RakNet};
use rakwire::sim::{Conditions, Pair};
use rakwire::{Instant, Machine};
use rakwire_plugins::replication::{Class, EverythingInScope, Field, FixedAuthority, FixedReplicas};

type Server<P> = FixedAuthority<P, EverythingInScope, 2, 16, 3, 16, 200>;
type Client<P> = FixedReplicas<P, 16, 3, 200>;
type Peered<P, T> = Hooked<'static, P, PluginHost<T, 1>>;

static CLASSES: [Class; 1] =
    [Class { fields: &[Field::new(16).or_short(6), Field::new(16).or_short(6), Field::new(8)] }];

const TICK: Duration = Duration::from_millis(50);
const CONDITIONS: Conditions = Conditions {
    loss: 0.1,
    duplication: 0.05,
    reordering: 0.1,
    latency: Duration::from_millis(40),
    jitter: Duration::from_millis(15),
    bottleneck: None,
    bursts: None,
};

fn hooked<P: Protocol, T: rakwire::endpoint::Plugin<P>>(
    config: P::Config,
    plugin: T,
) -> (Peered<P, T>, PluginKey) {
    let mut host = PluginHost::new();
    let key = host.attach::<P>(plugin).expect("a free slot");
    let capacity = Capacity { connections: 2, blocks: 1_024, block_size: 256 };
    (Hooked::new(Peer::with_capacity(capacity, config), host), key)
}

struct Game<P: Protocol> {
    pair: Pair<Peered<P, Client<P>>, Peered<P, Server<P>>>,
    client: PluginKey,
    server: PluginKey,
    /// The client's latest connection at the server.
    accepted: Option<ConnectionId>,
    ticks: u32,
}

impl<P: Protocol> Game<P> {
    fn new(unreliable: P::Delivery, seed: u64) -> Self {
        let mut config = P::config([2; 32]);
        *P::max_incoming(&mut config) = 2;
        let server = Server::<P>::new(&CLASSES, EverythingInScope, unreliable).expect("valid classes");
        let client = Client::<P>::new(&CLASSES, unreliable).expect("valid classes");
        let (b, server) = hooked::<P, _>(config, server);
        let (a, client) = hooked::<P, _>(P::config([1; 32]), client);
        Self {
            pair: Pair::new(a, b, Conditions { loss: 0.0, ..CONDITIONS }, seed),
            client,
            server,
            accepted: None,
            ticks: 0,
        }
    }

    fn connect(&mut self) -> ConnectionId {
        self.pair.set_conditions(Conditions { loss: 0.0, ..CONDITIONS });
        let id = self.pair.a.peer.connect(self.pair.now, self.pair.b_address).expect("a free slot");
        while !matches!(self.pair.a.poll_event(), Some(Event::Connected { .. })) {
            assert!(self.pair.step());
        }
        self.pair.set_conditions(CONDITIONS);
        id
    }

    fn server(&mut self) -> &mut Server<P> {
        self.pair.b.hook.get_mut(self.server).expect("the plugin is attached")
    }

    fn client(&mut self) -> &mut Client<P> {
        self.pair.a.hook.get_mut(self.client).expect("the plugin is attached")
    }

    /// Runs a tick of the authority, and the time until the next one.
    fn tick(&mut self) {
        self.server().tick();
        self.ticks += 1;
        assert!(self.ticks < 10_000, "the simulation does not end");
        let end = self.pair.now + TICK;
        while self.next().is_some_and(|next| next <= end) {
            assert!(self.pair.step());
            while let Some(event) = self.pair.a.poll_event() {
                assert!(
                    !matches!(event, Event::Message { .. }),
                    "the application must not receive an update"
                );
            }
            while let Some(event) = self.pair.b.poll_event() {
                assert!(!matches!(event, Event::Message { .. }), "the application must not receive a reply");
                if let Event::Connected { id, .. } = event {
                    self.accepted = Some(id);
                }
            }
        }
        self.pair.now = end;
    }

    /// Returns when the next event is due.
    fn next(&mut self) -> Option<Instant> {
        self.pair.transmit();
        let links = [self.pair.forth().next_arrival(), self.pair.back().next_arrival()];
        let timeouts = [self.pair.a.poll_timeout(), self.pair.b.poll_timeout()];
        links.into_iter().chain(timeouts).flatten().min()
    }

    /// Returns true if both sides have the same entities, regardless of owners.
    fn is_equal(&mut self) -> bool {
        let there: Vec<_> = self.server().iter().map(|entity| (entity.id, entity.values.to_vec())).collect();
        self.client().iter().map(|entity| (entity.id, entity.values.to_vec())).eq(there)
    }
}

/// Checks replication while entities change, the client reconnects late, and the client owns one entity.
fn replicates<P: Protocol>(unreliable: P::Delivery, moves: &[(usize, u32)], seed: u64) {
    let mut game = Game::<P>::new(unreliable, seed);
    let mut ids: Vec<_> = (0..12)
        .map(|number| game.server().spawn(0, number, &[1_000, 2_000, 0]).expect("enough space"))
        .collect();
    let mut connection = game.connect();
    let own = ids.remove(0);
    for (number, (entity, by)) in moves.iter().enumerate() {
        let id = ids[entity % ids.len()];
        let value = game.server().get(id).map_or(0, |entity| entity.values[0]);
        game.server().set(id, 0, value.wrapping_add(*by)).expect("a field");
        // The Game Protocol does not accept a client from the same port twice.
        if number == moves.len() / 2 && !P::FRESH_PORT {
            let (now, gone) = (game.pair.now, ids.remove(entity % ids.len()));
            assert!(game.server().despawn(gone));
            game.pair.a.peer.disconnect(now, connection);
            while game.pair.a.peer.connections().next().is_some() {
                game.tick();
            }
            connection = game.connect();
            assert_eq!(game.client().iter().count(), 0);
        }
        game.tick();
    }
    while game.client().set(own, 2, 77).is_err() {
        // The server may accept the connection later than the client opens it.
        let owner = game.accepted;
        game.server().set_owner(own, owner);
        game.tick();
    }
    while game.server().get(own).map(|entity| entity.values[2]) != Some(77) || !game.is_equal() {
        game.tick();
    }
    assert_eq!(game.client().iter().count(), ids.len() + 1);
}

fn moves() -> impl Strategy<Value = Vec<(usize, u32)>> {
    let by = prop_oneof![3 => 0..30_u32, 1 => any::<u32>()];
    prop::collection::vec((0..12_usize, by), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn entities_converge_over_raknet_on_a_lossy_path(moves in moves(), seed in 1_u64..1_000) {
        replicates::<RakNet>(Delivery::UNRELIABLE, &moves, seed);
    }

    #[test]
    fn entities_converge_over_the_game_protocol_on_a_lossy_path(moves in moves(), seed in 1_u64..1_000) {
        replicates::<GameProtocol>(Reliability::Unreliable, &moves, seed);
    }
}
