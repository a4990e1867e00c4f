//! The properties that must hold in every interleaving.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire::Instant;
use rakwire::raknet::{Capacity, Config, CookiePolicy, Delivery, DisconnectReason, Event, Peer, RakNet};
use shuttle::scheduler::PctScheduler;
use shuttle::sync::{Arc, Mutex};
use shuttle::{future, thread};

use crate::admission::LockedAdmission;
use crate::arrivals::ArrivalQueue;
use crate::inbox::{Inbox, Message, Phase};
use crate::socket::RecvBatch;
use crate::telemetry::ConnectionSpan;
use crate::wakes::Signal;

/// The default number of interleavings per property.
const RUNS: usize = 2_000;

/// The stack size of a thread in bytes. A peer builds datagrams on the stack.
const STACK: usize = 1 << 20;

/// Runs `property` in many interleavings.
fn holds(property: impl Fn() + Send + Sync + 'static) {
    let runs = std::env::var("RAKWIRE_LOCKS_RUNS").map_or(RUNS, |runs| runs.parse().expect("a number"));
    let mut config = shuttle::Config::new();
    config.stack_size = STACK;
    // At most three preemptions at random points, because most races need only one or two.
    shuttle::Runner::new(PctScheduler::new(3, runs), config).run(property);
}

/// A task that waits for a [`Signal`] continues after each notification by another thread.
pub fn a_waiting_task_continues_after_every_notification() {
    holds(|| {
        let signal = Arc::new(Signal::default());
        let count = Arc::new(Mutex::new(0));
        let notifiers = [(); 2].map(|()| {
            let (signal, count) = (Arc::clone(&signal), Arc::clone(&count));
            thread::spawn(move || {
                *count.lock().unwrap() += 1;
                signal.notify();
            })
        });
        // Shuttle reports a task that waits forever.
        future::block_on(async {
            while *count.lock().unwrap() < 2 {
                signal.notified().await;
            }
        });
        notifiers.into_iter().for_each(|notifier| notifier.join().unwrap());
    });
}

fn inbox() -> Arc<Inbox<RakNet>> {
    Arc::new(Inbox::new(([127, 0, 0, 1], 1).into(), Phase::Connected, ConnectionSpan::default()))
}

fn message(number: u8) -> Message<Delivery> {
    Message { bytes: vec![0x86, number], delivery: Delivery::RELIABLE }
}

/// Each message goes to one of the waiting tasks, in order. When the connection closes, all these tasks finish.
pub fn each_message_reaches_one_reader_and_a_close_ends_all_readers() {
    holds(|| {
        let inbox = inbox();
        let readers = [(); 2].map(|()| {
            let inbox = Arc::clone(&inbox);
            future::spawn(async move {
                let mut read = Vec::new();
                while let Some(message) = inbox.recv().await {
                    read.push(message.bytes[1]);
                }
                read
            })
        });
        let writer = thread::spawn({
            let inbox = Arc::clone(&inbox);
            move || {
                (0..3).for_each(|number| {
                    inbox.push(message(number), usize::MAX);
                });
                inbox.set_phase(Phase::Disconnected(DisconnectReason::Remote));
            }
        });
        let read = readers.map(|reader| future::block_on(reader).unwrap());
        writer.join().unwrap();
        assert!(read.iter().all(|numbers| numbers.is_sorted()), "{read:?}");
        let mut all = read.concat();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
    });
}

/// A cancelled reader consumes neither a message that it does not return nor the wake of another reader.
pub fn a_cancelled_reader_takes_no_message_from_others() {
    holds(|| {
        let inbox = inbox();
        let given_up = future::spawn({
            let inbox = Arc::clone(&inbox);
            async move {
                let mut waits = std::pin::pin!(inbox.recv());
                let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(waits.as_mut().poll(cx))).await;
                shuttle::future::yield_now().await;
                match polled {
                    std::task::Poll::Ready(message) => message,
                    std::task::Poll::Pending => None,
                }
            }
        });
        let reader = future::spawn({
            let inbox = Arc::clone(&inbox);
            async move { inbox.recv().await }
        });
        let writer = thread::spawn({
            let inbox = Arc::clone(&inbox);
            move || {
                inbox.push(message(1), usize::MAX);
                inbox.push(message(2), usize::MAX);
            }
        });
        let first = future::block_on(given_up).unwrap();
        let second = future::block_on(reader).unwrap();
        writer.join().unwrap();
        let rest = inbox.try_recv().flatten();
        let numbers = [first, second, rest].into_iter().flatten().map(|message| message.bytes[1]);
        let mut numbers: Vec<u8> = numbers.collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2]);
    });
}

fn batch(number: u8) -> RecvBatch {
    RecvBatch { at: Instant::ZERO, from: ([192, 0, 2, 1], 1).into(), stride: 1, bytes: [number].into() }
}

/// After a push, the next take of any thread returns the datagram, unless another thread took it before.
///
/// The flag by which `take` skips an empty queue must not hide a queued datagram.
pub fn a_pushed_datagram_is_returned_by_the_next_take_of_the_arrival_queue() {
    holds(|| {
        let queue = Arc::new(ArrivalQueue::new(usize::MAX, None));
        let taken = Arc::new(Mutex::new(Vec::new()));
        let take = |queue: &ArrivalQueue, taken: &Mutex<Vec<u8>>| {
            // The driver takes datagrams while it holds the lock of the protocol. This lock represents it.
            let mut taken = taken.lock().unwrap();
            taken.extend(queue.take(Instant::ZERO).iter().map(|batch| batch.bytes[0]));
        };
        let readers = [[0, 1], [2, 3]].map(|numbers| {
            let (queue, taken) = (Arc::clone(&queue), Arc::clone(&taken));
            thread::spawn(move || {
                for number in numbers {
                    queue.push([batch(number)].into_iter());
                    take(&queue, &taken);
                    assert!(taken.lock().unwrap().contains(&number), "datagram {number} is still queued");
                }
            })
        });
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        let taken = taken.lock().unwrap();
        assert_eq!(taken.len(), 4, "{taken:?}");
        for pair in [[0, 1], [2, 3]] {
            let place = |number| taken.iter().position(|taken| *taken == number);
            assert!(place(pair[0]) < place(pair[1]), "the datagrams of a thread were reordered: {taken:?}");
        }
    });
}

/// Creates a shard of a server with `places` slots, or a client if `places` is 0.
fn peer(name: u8, places: u16) -> Peer<'static> {
    let mut config = Config::new([name; 32]);
    config.max_incoming = places;
    config.cookies = CookiePolicy::Off;
    let capacity = Capacity { connections: 4, blocks: 64, block_size: 256 };
    Peer::with_capacity(capacity, config)
}

/// Delivers the pending datagrams of `from` to `to`, with the source address `source`.
fn carry(now: Instant, from: &mut Peer<'static>, source: SocketAddr, to: &mut Peer<'static>) {
    let mut buffer = [0; rakwire::wire::MAX_DATAGRAM];
    while let Some(transmit) = from.poll_transmit(now, &mut buffer) {
        to.handle_datagram(now, source, transmit.payload);
        thread::yield_now();
    }
}

/// Connects a client to a shard; returns true if the shard admits it.
fn connects(shard: &mut Peer<'static>, number: u8) -> bool {
    let (server, source) = (([192, 0, 2, 1], 19_132).into(), ([198, 51, 100, number], 1).into());
    let mut client = peer(number, 0);
    let mut now = Instant::from_micros(1_000_000);
    client.connect(now, server).unwrap();
    for _ in 0..50 {
        carry(now, &mut client, source, shard);
        carry(now, shard, server, &mut client);
        match client.poll_event() {
            Some(Event::Connected { .. }) => return true,
            Some(Event::ConnectFailed { .. }) => return false,
            _ => {}
        }
        now = now + Duration::from_millis(20);
        client.handle_timeout(now);
        shard.handle_timeout(now);
    }
    panic!("the shard neither accepted nor refused client {number}");
}

/// The shards of a server share their admission state, so all of them together admit at most `max_incoming` clients.
pub fn shards_admit_at_most_the_maximum_number_of_clients() {
    holds(|| {
        let admission = LockedAdmission::default();
        let shards = [10, 20].map(|number| {
            let admission = admission.clone();
            thread::spawn(move || {
                let mut shard = peer(1, 2);
                shard.share_admission(Box::new(admission));
                let let_in = (0..2).filter(|client| connects(&mut shard, number + client)).count();
                (shard, let_in)
            })
        });
        let shards = shards.map(|shard| shard.join().unwrap());
        assert_eq!(shards.iter().map(|(_, let_in)| let_in).sum::<usize>(), 2);
        assert_eq!(shards.iter().map(|(shard, _)| shard.connections().count()).sum::<usize>(), 2);
    });
}
