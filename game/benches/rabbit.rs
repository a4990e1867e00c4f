//! A snapshot of 301 entities, packed and unpacked: Rabbit beside bitcode and postcard.
//!
//! `cargo bench -p snowfight --bench rabbit` prints the sizes, then the times; `docs/rabbit.md` has both in a table.
#![allow(missing_docs)]

mod plain;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use rakwire::Chunks;
use rakwire::rabbit::{List, Reader, Unpack, pack, unpack};
use snowfight::message::{Entity, Event, EventKind, ServerMessage, Snapshot};
use snowfight::server::MAX_MESSAGE;
use snowfight::world::{Entities, World};

/// The bytes of a message that one datagram of the Game Protocol carries.
const PIECE: usize = 504;

fn snapshot() -> Entities {
    let mut world = World::new(7);
    world.join().expect("there is room");
    (0..600).for_each(|_| drop(world.tick()));
    world.entities()
}

fn message(entities: &[Entity]) -> ServerMessage<'_> {
    let kind = EventKind::Snapshot(Snapshot { entities: List::new(entities) });
    ServerMessage::Event(Event { time: 600, kind })
}

/// Reads everything, and keeps nothing.
fn read_lazily(bytes: &dyn Chunks) -> usize {
    let message = ServerMessage::unpack(&mut Reader::over(bytes)).expect("it was packed");
    let ServerMessage::Event(Event { kind: EventKind::Snapshot(snapshot), .. }) = message else { return 0 };
    snapshot.entities.iter().map(black_box).count()
}

/// The very same bits as the message: two indices, the time, the entities.
type Owned<L> = (bool, u32, bool, L);

fn rabbit(criterion: &mut Criterion, entities: &Entities) {
    let mut buffer = [0; MAX_MESSAGE];
    let bytes = pack(&message(entities), &mut buffer).expect("it fits").to_vec();
    let pieces: Vec<_> = bytes.chunks(PIECE).collect();
    let pieces = pieces.as_slice();
    println!("size: rabbit {} bytes", bytes.len());
    let mut buffer = [0; MAX_MESSAGE];
    criterion.bench_function("rabbit/pack", |bencher| {
        bencher.iter(|| pack(&message(black_box(entities)), &mut buffer).map(<[u8]>::len));
    });
    criterion.bench_function("rabbit/unpack into a heapless vector", |bencher| {
        bencher.iter(|| unpack::<Owned<Entities>>(black_box(&bytes)));
    });
    criterion.bench_function("rabbit/unpack into a vector", |bencher| {
        bencher.iter(|| unpack::<Owned<Vec<Entity>>>(black_box(&bytes)));
    });
    criterion.bench_function("rabbit/check, then read lazily from 13 pieces", |bencher| {
        bencher.iter(|| assert_eq!(read_lazily(black_box(&pieces)), 301));
    });
}

fn others(criterion: &mut Criterion, entities: &Entities) {
    let plain = plain::Event::new(600, entities);
    println!("size: plain bytes {} bytes", plain.size());
    let bytes = bitcode::encode(&plain);
    println!("size: bitcode {} bytes", bytes.len());
    criterion.bench_function("bitcode/pack", |bencher| bencher.iter(|| bitcode::encode(black_box(&plain))));
    criterion.bench_function("bitcode/unpack", |bencher| {
        bencher.iter(|| bitcode::decode::<plain::Event>(black_box(&bytes)));
    });
    let mut buffer = [0; MAX_MESSAGE];
    let bytes = postcard::to_slice(&plain, &mut buffer).expect("it fits").to_vec();
    println!("size: postcard {} bytes", bytes.len());
    criterion.bench_function("postcard/pack", |bencher| {
        bencher.iter(|| postcard::to_slice(black_box(&plain), &mut buffer).map(|bytes| bytes.len()));
    });
    criterion.bench_function("postcard/unpack", |bencher| {
        bencher.iter(|| postcard::from_bytes::<plain::Event>(black_box(&bytes)));
    });
}

fn all(criterion: &mut Criterion) {
    let entities = snapshot();
    assert_eq!(entities.len(), 301);
    rabbit(criterion, &entities);
    others(criterion, &entities);
}

criterion_group!(benches, all);
criterion_main!(benches);
