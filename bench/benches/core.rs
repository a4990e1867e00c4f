//! Measures the core without sockets: `cargo bench -p rakwire-bench`.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rakwire_bench::connected_peers::{ConnectedPeers, Path};

/// The number of messages queued at once by default.
const BATCH: usize = 128;

/// Measures the time per message on one connection, from sending to the acknowledgement.
fn message(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("message");
    for size in [16, 100, 1_000, 10_000] {
        group.throughput(Throughput::Elements(BATCH as u64));
        let mut peers = ConnectedPeers::new(1, 16_384, Path::Clean);
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| peers.exchange(BATCH, size));
        });
    }
    group.throughput(Throughput::Elements(BATCH as u64));
    let mut peers = ConnectedPeers::new(1, 16_384, Path::LosesOneIn(20));
    group.bench_function("100, 5 % loss", |bencher| bencher.iter(|| peers.exchange(BATCH, 100)));
    group.finish();
}

/// Measures the time per message on a server with many connections that each send one message.
fn connections(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("connections");
    for count in [1, 10, 100, 1_000, 10_000] {
        let mut peers = ConnectedPeers::new(count, 64, Path::Clean);
        group.sample_size(10).throughput(Throughput::Elements(count.into()));
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| peers.exchange(1, 100));
        });
    }
    group.finish();
}

/// Measures the time per message with many messages in the send queue.
fn queue(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("queue");
    for depth in [1, 10, 100, 1_000, 10_000] {
        let mut peers = ConnectedPeers::new(1, 65_534, Path::Clean);
        group.sample_size(10).throughput(Throughput::Elements(depth as u64));
        group.bench_function(BenchmarkId::from_parameter(depth), |bencher| {
            bencher.iter(|| peers.exchange(depth, 100));
        });
    }
    group.finish();
}

fn handshake(criterion: &mut Criterion) {
    criterion.bench_function("handshake", |bencher| {
        bencher.iter_batched(|| (), |()| ConnectedPeers::new(1, 64, Path::Clean), BatchSize::SmallInput);
    });
}

criterion_group!(core, message, connections, queue, handshake);
criterion_main!(core);
