//! Measures instructions per protocol operation for `cargo xtask bench mcu`.
//!
//! QEMU counts instructions (`-icount`), and SysTick follows the count. Interrupts are masked, and each operation is
//! measured many times.

#![no_std]
#![no_main]

use core::hint::black_box;
use core::net::SocketAddr;
use core::time::Duration;

use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use defmt_semihosting as _;
use rakwire::Instant;
use rakwire::codec::rabbit::{pack, unpack};
use rakwire::raknet::{Config, ConnectionId, Delivery, Event, Peer, Resources};
use rakwire::wire::MAX_DATAGRAM;
use rakwire_qemu_mps2::exit;
use snowfight::message::{Direction, Entity, EntityId, EntityKind, Player, PlayerId, Point};
use static_cell::ConstStaticCell;

type Memory = Resources<1, 64, 128>;

/// The number of measurements per operation; the result is their median.
const RUNS: usize = 65;
const SIZES: [usize; 3] = [16, 100, 1_000];
const HERE: u8 = 1;
const THERE: u8 = 2;

/// SysTick counts down from this value.
const RELOAD: u32 = 0xff_ffff;

/// Two peers, and a buffer for a datagram.
struct Pair {
    client: Peer<'static>,
    server: Peer<'static>,
    id: ConnectionId,
    now: Instant,
    buffer: [u8; MAX_DATAGRAM],
}

/// The SysTick ticks of each operation.
#[derive(Default)]
struct Ticks {
    send: u32,
    compose: u32,
    receive: u32,
    read: u32,
    acknowledge: u32,
    accept: u32,
}

fn address(number: u8) -> SocketAddr {
    ([10, 0, 0, number], 1).into()
}

fn config(number: u8) -> Config {
    let mut config = Config::new([number; 32]);
    config.max_incoming = 1;
    config.ping_interval = None;
    config
}

/// Returns the ticks that `operation` takes, including the overhead of measuring.
fn ticks<T>(operation: impl FnOnce() -> T) -> u32 {
    let start = SYST::get_current();
    black_box(operation());
    start.wrapping_sub(SYST::get_current()) & RELOAD
}

impl Pair {
    /// Connects two peers.
    fn new() -> Option<Self> {
        static A: ConstStaticCell<Memory> = ConstStaticCell::new(Memory::new());
        static B: ConstStaticCell<Memory> = ConstStaticCell::new(Memory::new());
        let (mut client, server) = (Peer::new(A.take(), config(HERE)), Peer::new(B.take(), config(THERE)));
        let now = Instant::from_micros(1_000_000);
        let id = client.connect(now, address(THERE)).ok()?;
        let mut pair = Self { client, server, id, now, buffer: [0; MAX_DATAGRAM] };
        for _ in 0..100 {
            pair.exchange();
        }
        while pair.client.poll_event().is_some() || pair.server.poll_event().is_some() {}
        Some(pair)
    }

    /// Advances the time, and exchanges all datagrams that are due.
    fn exchange(&mut self) {
        self.now = self.now + Duration::from_millis(5);
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
        loop {
            let Self { client, server, now, buffer, .. } = self;
            let there = client.poll_transmit(*now, buffer).map(|transmit| transmit.payload.len());
            if let Some(length) = there {
                server.handle_datagram(*now, address(HERE), &buffer[..length]);
            }
            let here = server.poll_transmit(*now, buffer).map(|transmit| transmit.payload.len());
            if let Some(length) = here {
                client.handle_datagram(*now, address(THERE), &buffer[..length]);
            }
            if there.is_none() && here.is_none() {
                return;
            }
        }
    }

    /// Measures one message and its acknowledgement step by step.
    fn message(&mut self, message: &[u8]) -> Option<Ticks> {
        self.exchange();
        let mut ticks = Ticks::default();
        let Self { client, server, id, now, buffer } = self;
        let delivery = Delivery::RELIABLE_ORDERED;
        ticks.send = self::ticks(|| client.send(*now, *id, black_box(message), delivery));
        let mut length = None;
        ticks.compose = self::ticks(|| {
            length = client.poll_transmit(*now, buffer).map(|transmit| transmit.payload.len());
        });
        let datagram = &buffer[..length?];
        ticks.receive = self::ticks(|| server.handle_datagram(*now, address(HERE), black_box(datagram)));
        let mut read = 0;
        ticks.read = self::ticks(|| {
            if let Some(Event::Message { message, .. }) = server.poll_event() {
                read = message.len();
            }
        });
        if read != message.len() || server.poll_event().is_some() {
            return None;
        }
        // The acknowledgement is sent after a delay, so advance the time.
        *now = *now + Duration::from_millis(20);
        server.handle_timeout(*now);
        ticks.acknowledge = self::ticks(|| {
            length = server.poll_transmit(*now, buffer).map(|transmit| transmit.payload.len());
        });
        let datagram = &buffer[..length?];
        ticks.accept = self::ticks(|| client.handle_datagram(*now, address(THERE), black_box(datagram)));
        Some(ticks)
    }
}

/// Returns the median ticks of packing and of unpacking an entity of the game.
fn rabbit(idle: u32) -> Option<(u32, u32)> {
    let player = Player {
        position: Point::new(12.5, -7.25, 0.0),
        movement: Direction::NORTH | Direction::EAST,
        holding: Some(EntityId(217)),
        breaking: None,
        owner: PlayerId(3),
        health: 2,
        max_health: 3,
    };
    let entity = Entity { id: EntityId(301), kind: EntityKind::Player(player) };
    let mut buffer = [0; 64];
    let length = pack(&entity, &mut buffer).ok()?.len();
    let packing = median(
        core::array::from_fn(|_| {
            ticks(|| pack(black_box(&entity), black_box(&mut buffer)).map_or(0, <[u8]>::len))
        }),
        idle,
    );
    let packed = buffer.get(..length)?;
    if unpack(packed) != Ok(entity) {
        return None;
    }
    let unpacking =
        median(core::array::from_fn(|_| ticks(|| unpack::<Entity>(black_box(packed)).is_ok())), idle);
    Some((packing, unpacking))
}

fn median(mut ticks: [u32; RUNS], idle: u32) -> u32 {
    ticks.sort_unstable();
    ticks[RUNS / 2].saturating_sub(idle)
}

/// Measures everything, and prints the ticks.
fn measure() -> Option<()> {
    static MESSAGE: ConstStaticCell<[u8; 1_000]> = ConstStaticCell::new([0xFE; 1_000]);
    let message = MESSAGE.take();
    let idle = median(core::array::from_fn(|_| ticks(|| ())), 0);
    let mut pair = Pair::new()?;
    for size in SIZES {
        let mut runs = [const { None }; RUNS];
        for run in &mut runs {
            *run = Some(pair.message(message.get(..size)?)?);
        }
        let of = |which: fn(&Ticks) -> u32| {
            median(core::array::from_fn(|at| runs[at].as_ref().map_or(0, which)), idle)
        };
        defmt::println!(
            "RESULT size={} send={} compose={} receive={} read={} acknowledge={} accept={}",
            size,
            of(|ticks| ticks.send),
            of(|ticks| ticks.compose),
            of(|ticks| ticks.receive),
            of(|ticks| ticks.read),
            of(|ticks| ticks.acknowledge),
            of(|ticks| ticks.accept)
        );
    }
    let (packing, unpacking) = rabbit(idle)?;
    defmt::println!("RESULT rabbit=player pack={} unpack={}", packing, unpacking);
    Some(())
}

#[cortex_m_rt::entry]
fn main() -> ! {
    cortex_m::interrupt::disable();
    if let Some(mut p) = cortex_m::Peripherals::take() {
        p.SYST.set_clock_source(SystClkSource::Core);
        p.SYST.set_reload(RELOAD);
        p.SYST.clear_current();
        p.SYST.enable_counter();
    }
    match measure() {
        Some(()) => exit(0),
        None => {
            defmt::error!(
                "the peers do not exchange messages, or an unpacked entity differs from the packed one"
            );
            exit(1)
        }
    }
}
