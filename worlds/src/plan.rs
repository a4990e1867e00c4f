//! The plan of a world: its clients, its limits and its faults, all drawn from a seed.
//!
//! Each seed enables a random half of the kinds of faults ("swarm testing"), because faults that always occur together
//! can hide each other. To shrink a failure, [`Omitted`] leaves out faults by their numbers, without a change of the
//! others.

use core::time::Duration;
use std::collections::BTreeSet;

use rakwire::sim::{Bottleneck, Conditions, GilbertElliott};

use crate::random::Random;

/// The duration of the first phase of a world, in which faults begin.
pub const ACTIVE: Duration = Duration::from_secs(20);

/// The route of a client to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// UDP to the server.
    Direct,
    /// UDP to the front, which validates the client's address and forwards its datagrams to the server.
    Front,
    /// Unreliable datagrams to the relay, like WebTransport.
    RelayDatagrams,
    /// A reliable stream to the relay, like WebSocket.
    RelayStream,
}

impl Route {
    /// Returns true if the relay has a flow for the client.
    pub(crate) const fn is_relayed(self) -> bool {
        matches!(self, Self::RelayDatagrams | Self::RelayStream)
    }
}

/// A client of the world.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// The route to the server.
    pub route: Route,
    /// The conditions of the access network while no fault affects it.
    pub conditions: Conditions,
    /// The longest UDP payload that the access network carries, in bytes.
    pub path: usize,
    /// The maximum number of messages per tick of 25 ms in each direction.
    pub messages: u64,
    /// The longest message in bytes.
    pub longest: u64,
}

/// A fault, with its start time and the affected client.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The time after the start at which it begins.
    pub at: Duration,
    /// The affected client; ignored by faults of the server, the relay, the front and the network between them.
    pub client: usize,
    /// The kind of the fault.
    pub kind: FaultKind,
}

/// The kinds of faults.
#[derive(Clone, Debug)]
pub enum FaultKind {
    /// The access network of a client delivers nothing. A stream delivers its data afterwards.
    Blackout {
        /// The duration.
        lasts: Duration,
    },
    /// The access network of a client has other conditions, such as a higher loss.
    BadNetwork {
        /// The conditions of both directions.
        conditions: Conditions,
        /// The duration.
        lasts: Duration,
    },
    /// The access network of a client drops datagrams longer than `path`.
    NarrowPath {
        /// The longest UDP payload in bytes.
        path: usize,
        /// True if the client is notified of datagrams that are too long.
        reports_too_long: bool,
        /// The duration.
        lasts: Duration,
    },
    /// The router of the client gets another address and loses its mappings.
    NewAddress,
    /// The client's program restarts without a disconnect.
    ClientRestart,
    /// The client's process is suspended while its clock continues.
    ClientStall {
        /// The duration.
        lasts: Duration,
    },
    /// The player disconnects, and returns later.
    Leave {
        /// The time without a connection.
        lasts: Duration,
    },
    /// The client's clock jumps ahead.
    ClientClock {
        /// The length of the jump.
        by: Duration,
    },
    /// The client loses its connection to the relay and opens another one later.
    CarrierLost {
        /// The time without a connection.
        lasts: Duration,
    },
    /// The server's process is suspended while its clock continues.
    ServerStall {
        /// The duration.
        lasts: Duration,
    },
    /// The server's clock jumps ahead.
    ServerClock {
        /// The length of the jump.
        by: Duration,
    },
    /// The server's program stops without disconnects and starts again later.
    ServerRestart {
        /// The time for which the server is not running.
        lasts: Duration,
    },
    /// The relay's program restarts and loses all flows.
    RelayRestart,
    /// The front's program restarts and loses all flows.
    FrontRestart {
        /// True if the front has another cookie key afterwards.
        has_new_key: bool,
    },
    /// The network between relay, front and server has a narrow bottleneck.
    Congestion {
        /// The rate of the bottleneck.
        bits_per_second: u64,
        /// The duration.
        lasts: Duration,
    },
    /// Random datagrams from unknown sources arrive at the server and at the front.
    Noise {
        /// The number of datagrams.
        datagrams: u64,
    },
}

/// The number of kinds of faults.
pub const KINDS: u64 = 16;

/// The faults and clients that are left out of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Omitted {
    /// The numbers of the omitted faults.
    pub faults: BTreeSet<usize>,
    /// The numbers of the omitted clients.
    pub clients: BTreeSet<usize>,
}

/// A world before it runs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed that determines the whole world.
    pub seed: u64,
    /// The duration of the first phase, in which faults begin.
    pub active: Duration,
    /// The clients by number; those left out are `None`.
    pub clients: Vec<Option<ClientPlan>>,
    /// The faults in the order of their times.
    pub faults: Vec<Fault>,
    /// True if all connections are secure.
    pub is_secure: bool,
    /// The number of slots of the server.
    pub places: u16,
    /// The number of blocks of memory for each slot.
    pub blocks: u32,
    /// The MTU of the server in bytes.
    pub mtu: u16,
}

impl Plan {
    /// Returns the plan of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::without(seed, &Omitted::default())
    }

    /// Returns the plan of a seed without the omitted faults and clients.
    #[must_use]
    pub fn without(seed: u64, omitted: &Omitted) -> Self {
        let mut random = Random::new(seed);
        let count = 1 + random.below(8) as usize;
        // The front handles handshakes itself and supports no secure connections (docs/udp-front.md).
        let is_secure = random.below(4) == 0;
        let clients: Vec<_> = (0..count).map(|_| ClientPlan::draw(&mut random, is_secure)).collect();
        let enabled = random.draw();
        let number = random.below(20);
        let mut faults: Vec<_> = (0..number)
            .filter_map(|_| {
                let (mut own, kind) = (Random::new(random.draw()), random.below(KINDS));
                ((enabled >> kind) & 1 == 1).then(|| Fault::draw(&mut own, kind, count, ACTIVE))
            })
            .collect();
        faults.sort_by_key(|fault| fault.at);
        let spare = random.below(3) as u16;
        let (blocks, mtu) = (64 << random.below(4) as u32, if random.below(3) == 0 { 576 } else { 1_492 });
        let faults = faults.into_iter().enumerate();
        Self {
            seed,
            active: ACTIVE,
            places: clients.len() as u16 + spare,
            clients: clients
                .into_iter()
                .enumerate()
                .map(|(at, client)| (!omitted.clients.contains(&at)).then_some(client))
                .collect(),
            faults: faults.filter(|(at, _)| !omitted.faults.contains(at)).map(|(_, fault)| fault).collect(),
            is_secure,
            blocks,
            mtu,
        }
    }
}

/// The number of clients of a soak.
const SOAK_CLIENTS: usize = 8;
/// The time after which a soak enables other kinds of faults.
const CHAPTER: Duration = Duration::from_secs(600);
/// The mean time between two candidate faults of a soak. Those of a kind that is not enabled are left out.
const FAULT_EVERY: Duration = Duration::from_secs(3);
/// The mean time between two players that leave, in addition to the faults.
const LEAVE_EVERY: Duration = Duration::from_secs(20);
/// The maximum number of messages per tick that a client of a soak sends: for the first two clients and for the others.
const SOAK_MESSAGES: [u64; 2] = [12, 2];

impl Plan {
    /// Returns the plan of a soak without faults, which [`draw_chapters`](Self::draw_chapters) adds.
    #[must_use]
    pub(crate) fn soak(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let clients = (0..SOAK_CLIENTS).map(|number| {
            let plan = ClientPlan::draw(&mut random, false);
            Some(ClientPlan { messages: SOAK_MESSAGES[usize::from(number > 1)], ..plan })
        });
        Self {
            seed,
            active: Duration::ZERO,
            clients: clients.collect(),
            faults: Vec::new(),
            is_secure: false,
            places: SOAK_CLIENTS as u16,
            blocks: 256,
            mtu: 1_492,
        }
    }

    /// Replaces the faults of the plan with random faults for a phase of length `active`.
    ///
    /// Every ten minutes, other kinds of faults are enabled. Players leave during the whole phase.
    pub(crate) fn draw_chapters(&mut self, random: &mut Random, active: Duration) {
        self.active = active;
        self.faults.clear();
        let mut begin = Duration::ZERO;
        while begin < active {
            let lasts = CHAPTER.min(active - begin);
            let enabled = random.draw();
            let count = |every: Duration| lasts.as_secs() / every.as_secs();
            let kinds: Vec<_> = (0..count(FAULT_EVERY)).map(|_| random.below(KINDS)).collect();
            let kinds = kinds.into_iter().filter(|kind| (enabled >> kind) & 1 == 1);
            let leaves = (0..count(LEAVE_EVERY)).map(|_| KINDS - 1);
            for kind in kinds.chain(leaves) {
                let fault = Fault::draw(random, kind, SOAK_CLIENTS, lasts);
                self.faults.push(Fault { at: begin + fault.at, ..fault });
            }
            begin += lasts;
        }
        self.faults.sort_by_key(|fault| fault.at);
    }
}

impl ClientPlan {
    fn draw(random: &mut Random, is_secure: bool) -> Self {
        let route = match random.below(4) {
            0 => Route::Direct,
            1 if !is_secure => Route::Front,
            1 | 2 => Route::RelayDatagrams,
            _ => Route::RelayStream,
        };
        let conditions = draw_conditions(random, 3);
        let path = [576, 1_200, 1_372, 1_464, 1_472][random.below(5) as usize];
        let messages = if random.below(6) == 0 { 40 } else { 3 };
        let longest = if random.below(4) == 0 { 6_000 } else { 300 };
        Self { route, conditions, path, messages, longest }
    }
}

impl Fault {
    fn draw(random: &mut Random, kind: u64, clients: usize, within: Duration) -> Self {
        let at = millis(random, within.as_millis() as u64);
        let client = random.below(clients as u64) as usize;
        let lasts = millis(random, 15_000);
        let kind = match kind {
            0 => FaultKind::Blackout { lasts },
            1 => FaultKind::BadNetwork { conditions: draw_conditions(random, 30), lasts },
            2 => FaultKind::NarrowPath {
                path: 600 + random.below(800) as usize,
                reports_too_long: random.below(2) == 0,
                lasts,
            },
            3 => FaultKind::NewAddress,
            4 => FaultKind::ClientRestart,
            5 => FaultKind::ClientStall { lasts },
            6 => FaultKind::ClientClock { by: lasts },
            7 => FaultKind::CarrierLost { lasts: lasts / 2 },
            8 => FaultKind::ServerStall { lasts: lasts / 2 },
            9 => FaultKind::ServerClock { by: lasts / 2 },
            10 => FaultKind::ServerRestart { lasts: lasts / 2 },
            11 => FaultKind::RelayRestart,
            12 => FaultKind::FrontRestart { has_new_key: random.below(2) == 0 },
            13 => FaultKind::Congestion { bits_per_second: 100_000 + random.below(2_000_000), lasts },
            14 => FaultKind::Noise { datagrams: 1 + random.below(500) },
            _ => FaultKind::Leave { lasts },
        };
        Self { at, client, kind }
    }
}

fn millis(random: &mut Random, most: u64) -> Duration {
    Duration::from_millis(random.below(most))
}

/// Draws conditions with at most `worst` percent of loss, duplication and reordering each.
fn draw_conditions(random: &mut Random, worst: u64) -> Conditions {
    let mut share = |most: u64| random.below(most * 10 + 1) as f64 / 1_000.0;
    let (loss, duplication, reordering) = (share(worst), share(worst), share(worst));
    let (latency, jitter) = (millis(random, 150), millis(random, 30));
    let bursts = (random.below(4) == 0).then_some(GilbertElliott { good_to_bad: 0.005, bad_to_good: 0.3 });
    let bottleneck = (random.below(3) == 0).then(|| {
        Bottleneck::with_queue_of(
            200_000 + random.below(5_000_000),
            Duration::from_millis(50 + random.below(400)),
        )
    });
    Conditions { loss, bursts, duplication, reordering, latency, jitter, bottleneck }
}
