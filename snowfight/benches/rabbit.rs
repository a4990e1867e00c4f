//! Packs and unpacks a snapshot of 301 entities: Rabbit compared with bitcode and postcard.
//!
//! `cargo bench -p snowfight --bench rabbit` prints sizes, the minimum time of 5,000 runs and criterion's estimate.
//! Other programs hardly affect the minimum. `docs/rabbit.md` lists the results in a table.

mod plain;

use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use rakwire::Chunks;
use rakwire::codec::rabbit::{List, Reader, Unpack, pack, unpack};
use snowfight::message::{Entity, Event, EventKind, ServerMessage, Snapshot};
use snowfight::server::MAX_MESSAGE;
use snowfight::world::{Entities, World};

/// The number of runs for the minimum time.
const RUNS: usize = 5_000;

/// The number of payload bytes in one datagram of the Game Protocol.
const PIECE: usize = 504;

fn snapshot() -> Entities {
    let mut world = World::new(7);
    world.join().expect("a free slot");
    (0..600).for_each(|_| drop(world.tick()));
    world.entities()
}

fn message(entities: &[Entity]) -> ServerMessage<'_> {
    let kind = EventKind::Snapshot(Snapshot { entities: List::new(entities) });
    ServerMessage::Event(Event { time: 600, kind })
}

/// Unpacks every entity of the snapshot without storing it.
fn read_lazily(bytes: &dyn Chunks) -> usize {
    let message = ServerMessage::unpack(&mut Reader::over(bytes)).expect("a packed message");
    let ServerMessage::Event(Event { kind: EventKind::Snapshot(snapshot), .. }) = message else { return 0 };
    snapshot.entities.iter().map(black_box).count()
}

/// A tuple that packs to the same bits as the message: two variant indices, the time, the entities.
type Owned<L> = (bool, u32, bool, L);

/// Prints the minimum time of [`RUNS`] runs, then runs criterion.
fn measure<T>(criterion: &mut Criterion, name: &str, mut run: impl FnMut() -> T) {
    let time = |run: &mut dyn FnMut() -> T| {
        let start = Instant::now();
        black_box(run());
        start.elapsed()
    };
    let least = (0..RUNS).map(|_| time(&mut run)).min().unwrap_or_default();
    println!("least: {name} {:.1} µs", least.as_secs_f64() * 1e6);
    criterion.bench_function(name, |bencher| bencher.iter(&mut run));
}

fn rabbit(criterion: &mut Criterion, entities: &Entities) {
    let mut buffer = [0; MAX_MESSAGE];
    let bytes = pack(&message(entities), &mut buffer).expect("enough space").to_vec();
    let pieces: Vec<_> = bytes.chunks(PIECE).collect();
    let pieces = pieces.as_slice();
    println!("size: rabbit {} bytes", bytes.len());
    let mut buffer = [0; MAX_MESSAGE];
    measure(criterion, "rabbit/pack", || pack(&message(black_box(entities)), &mut buffer).map(<[u8]>::len));
    measure(criterion, "rabbit/unpack into a heapless vector", || {
        unpack::<Owned<Entities>>(black_box(&bytes))
    });
    measure(criterion, "rabbit/unpack into a vector", || unpack::<Owned<Vec<Entity>>>(black_box(&bytes)));
    measure(criterion, "rabbit/unpack as a list from 13 pieces", || {
        ServerMessage::unpack(&mut Reader::over(black_box(&pieces))).is_ok()
    });
    measure(criterion, "rabbit/the same, and read all of it", || read_lazily(black_box(&pieces)));
}

fn others(criterion: &mut Criterion, entities: &Entities) {
    let plain = plain::Event::new(600, entities);
    println!("size: plain bytes {} bytes", plain.size());
    let bytes = bitcode::encode(&plain);
    println!("size: bitcode {} bytes", bytes.len());
    measure(criterion, "bitcode/pack", || bitcode::encode(black_box(&plain)));
    measure(criterion, "bitcode/unpack", || bitcode::decode::<plain::Event>(black_box(&bytes)));
    let mut buffer = [0; MAX_MESSAGE];
    let bytes = postcard::to_slice(&plain, &mut buffer).expect("enough space").to_vec();
    println!("size: postcard {} bytes", bytes.len());
    measure(criterion, "postcard/pack", || {
        postcard::to_slice(black_box(&plain), &mut buffer).map(|bytes| bytes.len())
    });
    measure(criterion, "postcard/unpack", || postcard::from_bytes::<plain::Event>(black_box(&bytes)));
}

fn all(criterion: &mut Criterion) {
    let entities = snapshot();
    assert_eq!(entities.len(), 301);
    rabbit(criterion, &entities);
    others(criterion, &entities);
}

mod group {
    use super::{all, criterion_group};

    criterion_group!(benches, all);
}

criterion_main!(group::benches);
