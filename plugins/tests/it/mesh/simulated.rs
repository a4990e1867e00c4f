//! Meshes of real peers, over lossy paths in the simulator.

use core::time::Duration;
use std::net::SocketAddr;

use rakwire::endpoint::{Capacity, Event, Hooked, Peer, PluginHost, PluginKey};
use rakwire::raknet::{Config, Guid, RakNet};
use rakwire::sim::{Conditions, Link};
use rakwire::{Instant, Machine};
use rakwire_plugins::mesh::{JoinStatus, Mesh};

const COUNT: usize = 4;
const CONDITIONS: Conditions = Conditions {
    loss: 0.1,
    duplication: 0.05,
    reordering: 0.1,
    latency: Duration::from_millis(40),
    jitter: Duration::from_millis(15),
    bottleneck: None,
    bursts: None,
};

struct Member {
    peer: Hooked<'static, RakNet, PluginHost<Mesh<8>, 1>>,
    key: PluginKey,
    guid: Guid,
    is_running: bool,
}

impl Member {
    fn new(seed: u64, number: usize) -> Self {
        let mut bytes = [number as u8 + 1; 32];
        bytes[0] = (seed as u8).wrapping_mul(31).wrapping_mul(number as u8 + 1);
        let mut config = Config::new(bytes);
        config.max_incoming = 8;
        let guid = config.guid;
        let mut mesh = Mesh::new(guid);
        if number == 0 {
            mesh.create();
        }
        let mut host = PluginHost::new();
        let key = host.attach::<RakNet>(mesh).expect("a free slot");
        let capacity = Capacity { connections: 8, blocks: 1_024, block_size: 256 };
        Self { peer: Hooked::new(Peer::with_capacity(capacity, config), host), key, guid, is_running: true }
    }

    fn mesh(&self) -> &Mesh<8> {
        self.peer.hook.get(self.key).expect("the plugin is attached")
    }

    /// Handles the events, and connects to the peers that the mesh returns.
    fn poll(&mut self, now: Instant) {
        while let Some(event) = self.peer.poll_event() {
            assert!(
                !matches!(event, Event::Message { .. }),
                "the application must not receive a message of the mesh"
            );
        }
        while let Some(target) = self.peer.hook.get_mut(self.key).and_then(Mesh::poll_connect) {
            // The attempt may fail, because the target may be connecting to this peer at the same time.
            let _ = self.peer.peer.connect(now, target.address);
        }
    }
}

struct Game {
    now: Instant,
    members: Vec<Member>,
    /// The path from each member to each other member.
    links: Vec<Link>,
}

fn address(member: usize) -> SocketAddr {
    ([192, 0, 2, 1], 1_000 + member as u16).into()
}

impl Game {
    fn new(seed: u64) -> Self {
        let link = |number| Link::new(CONDITIONS, seed * 100 + number as u64);
        Self {
            now: Instant::ZERO,
            members: (0..COUNT).map(|number| Member::new(seed, number)).collect(),
            links: (0..COUNT * COUNT).map(link).collect(),
        }
    }

    fn transmit(&mut self) {
        let mut buffer = [0; 1_500];
        for (from, member) in self.members.iter_mut().enumerate().filter(|(_, member)| member.is_running) {
            member.poll(self.now);
            while let Some(transmit) = member.peer.poll_transmit(self.now, &mut buffer) {
                let to = usize::from(transmit.to.port()) - 1_000;
                self.links[from * COUNT + to].send(self.now, transmit.payload);
            }
        }
    }

    fn step(&mut self) {
        self.transmit();
        let deliveries = self.links.iter().filter_map(Link::next_arrival);
        let running = self.members.iter().filter(|member| member.is_running);
        let next = deliveries.chain(running.filter_map(|member| member.peer.poll_timeout())).min();
        self.now = self.now.max(next.expect("a connected peer has a timeout"));
        for at in 0..COUNT * COUNT {
            while let Some(datagram) = self.links[at].receive(self.now) {
                let member = &mut self.members[at % COUNT];
                if member.is_running {
                    member.peer.handle_datagram(self.now, address(at / COUNT), &datagram);
                }
            }
        }
        for member in self.members.iter_mut().filter(|member| member.is_running) {
            if member.peer.poll_timeout().is_some_and(|due| due <= self.now) {
                member.peer.handle_timeout(self.now);
            }
        }
    }

    /// Advances time until `count` members are all connected and agree on this host.
    fn settle(&mut self, count: usize, host: usize) {
        let host = self.members[host].guid;
        let is_settled = |member: &Member| {
            let mesh = member.mesh();
            mesh.graph().peers().count() == count - 1
                && mesh.join_status() == JoinStatus::Complete
                && mesh.host() == Some(host)
        };
        for _ in 0..200_000 {
            self.step();
            let settled = self.members.iter().filter(|member| member.is_running && is_settled(member));
            if settled.count() == count {
                return;
            }
        }
        panic!("the members do not agree at {:?}", self.now);
    }
}

#[test]
fn members_agree_on_the_host_over_lossy_paths() {
    for seed in 0..100 {
        let mut game = Game::new(seed);
        game.transmit();
        for number in 1..COUNT {
            let now = game.now;
            game.members[number].peer.peer.connect(now, address(number - 1)).expect("a free slot");
            game.settle(number + 1, 0);
            game.now = game.now + Duration::from_secs(1);
        }
        // The host times out in half of the runs, and disconnects in the others.
        if seed % 2 == 0 {
            game.members[0].is_running = false;
        } else {
            let (now, member) = (game.now, &mut game.members[0]);
            let ids: Vec<_> = member.peer.peer.connections().collect();
            ids.into_iter().for_each(|id| member.peer.peer.disconnect(now, id));
            (0..1_000).for_each(|_| game.step());
            game.members[0].is_running = false;
        }
        game.settle(COUNT - 1, 1);
    }
}
