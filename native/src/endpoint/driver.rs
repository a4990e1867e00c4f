//! The two tasks of an endpoint: one receives, the other drives the protocol and sends.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rakwire::endpoint::Protocol;
use rakwire_udp::is_too_large;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinHandle;
use tokio::time::{Sleep, sleep_until};

use super::shared::{Counters, Io, Shared};
use super::state::Next;
use crate::outgoing::{Outgoing, Transmit};
use crate::simulation::{Direction, NetworkEmulator, Simulation};
use crate::socket::{RecvBatch, Socket};
use crate::unreachable::has_no_route;

/// Pause after a failed receive call.
const RECEIVE_PAUSE: Duration = Duration::from_millis(10);

/// Drives the endpoint until it has shut down, over a simulated network if one is configured.
pub(crate) async fn run<P: Protocol>(
    shared: Arc<Shared<P>>,
    mut socket: Arc<Socket>,
    simulation: Option<Simulation>,
) {
    let io = &shared.io;
    let mut receiver = tokio::spawn(receive(Arc::clone(&shared), Arc::clone(&socket)));
    let mut outgoing = Outgoing::new(P::MAX_DATAGRAM);
    let mut timer = Timer::default();
    let mut network = simulation.map(|simulation| NetworkEmulator::new(simulation, Direction::Out));
    loop {
        if let Some(next) = io.take_socket() {
            stop(receiver).await;
            socket = Arc::new(next);
            io.reader().use_socket(Some(Arc::clone(&socket)));
            receiver = tokio::spawn(receive(Arc::clone(&shared), Arc::clone(&socket)));
        }
        let next = shared.drive(&mut outgoing);
        if !outgoing.is_empty() {
            match &mut network {
                None => {
                    let refused = flush(io, &socket, &mut outgoing).await;
                    shared.on_too_large(&refused.too_large);
                    shared.on_unreachable(&refused.unreachable);
                }
                Some(network) => {
                    enter_network(io, network, &mut outgoing);
                    deliver(io, &socket, network).await;
                }
            }
        }
        match next {
            Next::Again => tokio::task::yield_now().await,
            Next::Sleep(until) => {
                // A driver that is always woken immediately must still yield to other tasks.
                tokio::task::coop::consume_budget().await;
                let arrival = network.as_ref().and_then(NetworkEmulator::next);
                let until = [until, arrival, io.arrival_queue.next()].into_iter().flatten().min();
                sleep(io, &mut timer, until).await;
                if let Some(network) = &mut network {
                    deliver(io, &socket, network).await;
                }
            }
            Next::End => break,
        }
    }
    if let Some(network) = &mut network {
        deliver_all(io, &socket, network).await;
    }
    stop(receiver).await;
    io.reader().use_socket(None);
    // Closing the socket before `ended` is set ensures that the address is free by then.
    drop(socket);
    io.span.closed();
    io.ended.send_replace(true);
    io.idle.notify_waiters();
}

/// Stops a task and waits until it has released its socket.
async fn stop(task: JoinHandle<()>) {
    task.abort();
    // The result is the cancellation error of an aborted task.
    let _ = task.await;
}

async fn sleep(io: &Io, timer: &mut Timer, until: Option<rakwire::Instant>) {
    let until = until.and_then(|until| io.clock.deadline(until));
    tokio::select! {
        biased;
        () = io.wake.notified() => {}
        () = timer.wait(until) => {}
    }
}

/// Datagrams that the system refused to send.
#[derive(Debug, Default, PartialEq)]
struct RefusedDatagrams {
    /// Destinations and lengths of datagrams that exceed the path MTU.
    too_large: Vec<(SocketAddr, usize)>,
    /// Destinations without a route.
    unreachable: Vec<SocketAddr>,
}

/// Sends the composed datagrams.
async fn flush(io: &Io, socket: &Socket, outgoing: &mut Outgoing) -> RefusedDatagrams {
    io.is_sending.store(true, Ordering::Release);
    let mut refused = RefusedDatagrams::default();
    let mut unsent = outgoing.transmits(socket.max_segments());
    while let Some(first) = unsent.next() {
        match socket.send_with(&first, &unsent).await {
            Ok(sent) => unsent.skip_first(sent),
            Err(_) if first.count > 1 => {
                // Once a network has rejected segmentation, the socket sends single datagrams.
                unsent.set_segments(socket.max_segments());
                for bytes in first.bytes.chunks(first.size) {
                    let (to, size) = (first.to, bytes.len());
                    send(io, socket, &Transmit { to, size, count: 1, bytes }).await;
                }
            }
            Err(error) => {
                send_failed(io, &first, &error);
                if is_too_large(&error) {
                    refused.too_large.push((first.to, first.size));
                } else if has_no_route(&error) {
                    refused.unreachable.push(first.to);
                }
            }
        }
    }
    outgoing.clear();
    io.is_sending.store(false, Ordering::Release);
    refused
}

async fn send(io: &Io, socket: &Socket, transmit: &Transmit<'_>) {
    if let Err(error) = socket.send(transmit).await {
        send_failed(io, transmit, &error);
    }
}

/// Counts and logs a failed send, which the protocol treats as a loss.
fn send_failed(io: &Io, transmit: &Transmit<'_>, error: &std::io::Error) {
    io.span.send_failed(io.clock.now(), transmit.to, error);
    Counters::add(&io.counters.send_failures, transmit.count as u64);
}

/// Passes the composed datagrams to a simulated network.
fn enter_network(io: &Io, network: &mut NetworkEmulator, outgoing: &mut Outgoing) {
    let now = io.clock.now();
    for transmit in outgoing.transmits(1) {
        network.send(now, transmit.to, transmit.bytes);
    }
    outgoing.clear();
}

/// Sends the datagrams that have left a simulated network.
async fn deliver(io: &Io, socket: &Socket, network: &mut NetworkEmulator) {
    for datagram in network.receive(io.clock.now()) {
        let (to, bytes) = (datagram.address, &*datagram.bytes);
        send(io, socket, &Transmit { to, size: bytes.len(), count: 1, bytes }).await;
    }
}

/// Sends the datagrams that are still in a simulated network, each at its time.
async fn deliver_all(io: &Io, socket: &Socket, network: &mut NetworkEmulator) {
    while let Some(next) = network.next() {
        if let Some(until) = io.clock.deadline(next) {
            sleep_until(until).await;
        }
        deliver(io, socket, network).await;
    }
}

/// Receives datagrams with their arrival times. It never waits for the protocol's lock.
///
/// On a single-threaded runtime, tasks run in the order in which they are woken. There this task handles datagrams
/// itself, in the receive buffer and without queueing them. The application then runs before the driver, and its first
/// message is sent inline.
async fn receive<P: Protocol>(shared: Arc<Shared<P>>, socket: Arc<Socket>) {
    let io = &shared.io;
    let is_current_thread = Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
    loop {
        let read = match socket.readable().await {
            Ok(()) => read(&shared, is_current_thread),
            Err(error) => Err(error),
        };
        match read {
            Ok(None) => {}
            Ok(Some(is_full)) => {
                io.wake.notify();
                // If each call receives one datagram, nothing else yields to other tasks while more arrive.
                tokio::task::coop::consume_budget().await;
                if is_full && is_current_thread {
                    // Acknowledgements must be sent before more datagrams are handled.
                    tokio::task::yield_now().await;
                }
            }
            Err(error) => {
                io.receive_failed(&error);
                tokio::time::sleep(RECEIVE_PAUSE).await;
            }
        }
    }
}

/// Reads the socket once, and handles or queues the datagrams before the socket can be read again. Returns true if more
/// may have arrived, and `None` if the socket was empty.
fn read<P: Protocol>(shared: &Shared<P>, is_current_thread: bool) -> std::io::Result<Option<bool>> {
    let io = &shared.io;
    let mut reader = io.reader();
    let Some((received, socket)) = reader.read(&io.clock)? else { return Ok(None) };
    Counters::add(&io.counters.too_long, received.too_long());
    if !is_current_thread || !shared.try_handle(received.batches(), &socket) {
        let batches: Vec<RecvBatch> = received.batches().map(RecvBatch::into_owned).collect();
        io.arrival_queue.push(batches.into_iter());
    }
    Ok(Some(received.is_full()))
}

/// Wakes the driver at a given time, or earlier.
///
/// Most deadlines of a connection move before they are reached. An acknowledgement is due 10 ms after the datagram that
/// it acknowledges, and a resend one retransmission timeout after the last transmission. A timer set for an earlier
/// time is kept, at the cost of one spurious wake. Resetting it for each datagram would be more expensive, and tokio
/// makes a system call for a deadline that precedes all others.
#[derive(Debug, Default)]
struct Timer {
    /// Allocated once. `None` before the first deadline.
    sleep: Option<Pin<Box<Sleep>>>,
    /// The time for which the timer is set; `None` after it has fired.
    set_for: Option<tokio::time::Instant>,
}

impl Timer {
    /// Waits until `until`, or returns earlier; `None` waits forever.
    async fn wait(&mut self, until: Option<tokio::time::Instant>) {
        let Some(until) = until else { return std::future::pending().await };
        let is_early_enough = self.set_for.is_some_and(|set_for| set_for <= until);
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if !is_early_enough {
            sleep.as_mut().reset(until);
            self.set_for = Some(until);
        }
        sleep.await;
        self.set_for = None;
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use tokio::time::Instant;

    use super::super::telemetry::EndpointSpan;
    use super::*;
    use crate::host::Clock;

    #[tokio::test]
    async fn is_sending_stays_true_while_the_socket_blocks_a_flush() {
        let io = Io::new(0, None, Clock::start(), EndpointSpan::new(""));
        let socket = Socket::open("127.0.0.1:0").await.expect("a free port");
        let mut outgoing = Outgoing::new(8);
        outgoing.push_copy(socket.local_addr(), &[1, 2, 3]);
        let mut flush = pin!(flush(&io, &socket, &mut outgoing));
        // The runtime does not know yet that the socket is writable.
        let polled = flush.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!((polled, io.is_sending.load(Ordering::Acquire)), (Poll::Pending, true));
        flush.await;
        assert!(io.is_driver_done());
    }

    async fn an_unsendable_datagram_delays_no_other(local: &str) {
        let io = Io::new(0, None, Clock::start(), EndpointSpan::new(""));
        // IPv6 may be unavailable.
        let Ok(socket) = Socket::open(local).await else { return };
        let receivers = [1, 2, 3].map(|number| {
            let receiver = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
            receiver.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
            (number, receiver)
        });
        let mut outgoing = Outgoing::new(8);
        for (number, receiver) in &receivers {
            outgoing.push_copy(receiver.local_addr().expect("the socket is bound"), &[*number; 3]);
            outgoing.push_copy(([127, 0, 0, 1], 0).into(), &[9]);
        }
        flush(&io, &socket, &mut outgoing).await;
        for (number, receiver) in &receivers {
            let mut buffer = [0; 8];
            assert_eq!(receiver.recv(&mut buffer).expect("a datagram"), 3);
            assert_eq!(buffer[..3], [*number; 3]);
        }
        assert_eq!(io.counters.send_failures.load(Ordering::Relaxed), 3);
        assert!(outgoing.is_empty());
    }

    #[tokio::test]
    async fn an_unsendable_datagram_does_not_block_others() {
        an_unsendable_datagram_delays_no_other("127.0.0.1:0").await;
    }

    #[tokio::test]
    async fn an_unsendable_ipv6_datagram_does_not_block_others() {
        an_unsendable_datagram_delays_no_other("[::]:0").await;
    }

    const SOON: Duration = Duration::from_millis(20);
    /// A time that no test reaches.
    const LATE: Duration = Duration::from_secs(100_000);

    /// Waits for a deadline `time` ahead. Returns false if the timer fires early.
    async fn waits(timer: &mut Timer, time: Duration) -> bool {
        let until = Instant::now() + time;
        timer.wait(Some(until)).await;
        Instant::now() >= until
    }

    /// Sets the timer for a deadline `time` ahead, without waiting for it.
    async fn set(timer: &mut Timer, time: Duration) {
        let mut wait = pin!(timer.wait(Some(Instant::now() + time)));
        // Tokio's timers fire when tasks wait, which this one does not.
        let is_pending = poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx).is_pending())).await;
        assert!(is_pending);
    }

    #[tokio::test]
    async fn a_timer_set_to_an_earlier_time_fires_then_and_only_once() {
        let mut timer = Timer::default();
        assert!(waits(&mut timer, SOON).await);
        set(&mut timer, LATE).await;
        assert!(waits(&mut timer, SOON).await, "an earlier deadline replaces the later one");
        set(&mut timer, SOON).await;
        assert!(!waits(&mut timer, LATE).await, "the timer keeps its earlier time");
        assert!(waits(&mut timer, SOON).await, "the timer fires only once");
        assert!(waits(&mut timer, Duration::ZERO).await);
    }

    #[tokio::test]
    async fn a_timer_without_a_deadline_never_fires() {
        let mut timer = Timer::default();
        set(&mut timer, SOON).await;
        assert!(tokio::time::timeout(2 * SOON, timer.wait(None)).await.is_err());
    }
}

/// Arrival times while the protocol is stalled. Holding the lock of the endpoint is the only way to stall it.
#[cfg(test)]
mod stall_tests {
    use std::net::{SocketAddr, UdpSocket};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use rakwire::raknet::Guid;
    use rakwire::wire::datagram::{CapsuleHeader, DatagramHeader};
    use rakwire::wire::offline::Offline;
    use rakwire::wire::{Reader, Source, Wire, Writer, id};

    use crate::raknet::{Connection, Endpoint, Options};

    /// The duration of a stall. A measurement that includes it is always at least this long.
    const STALL: Duration = Duration::from_millis(600);
    /// A time limit that exceeds any step of these tests on a slow machine.
    const LIMIT: Duration = Duration::from_secs(60);
    /// Number of tries: on a busy machine a single measurement may take that long even without the stall, but not all
    /// of them.
    const TRIES: usize = 30;

    async fn client(ping_interval: Option<Duration>) -> Endpoint {
        let mut options = Options::client().expect("entropy");
        options.config.ping_interval = ping_interval;
        Endpoint::bind("127.0.0.1:0", options).await.expect("a free port")
    }

    /// Stalls the protocol of `endpoint`, and runs `meanwhile` during the stall.
    fn stall(endpoint: &Endpoint, meanwhile: impl FnOnce()) {
        let start = Instant::now();
        let state = endpoint.shared.lock();
        meanwhile();
        std::thread::sleep(STALL);
        drop(state);
        assert!(start.elapsed() >= STALL);
    }

    /// Receives a ping, and returns a function that sends the pong.
    fn answer(server: &UdpSocket) -> impl FnOnce() {
        let mut buffer = [0; 2_048];
        let (length, from) = server.recv_from(&mut buffer).expect("a ping");
        let ping = Offline::read(&mut Reader::new(&buffer[..length]));
        let Ok(Offline::Ping { time, .. }) = ping else {
            panic!("not a ping: {ping:?}");
        };
        move || {
            let pong = Offline::Pong { time, guid: Guid(1), data: b"late" };
            let mut buffer = [0; 64];
            let mut writer = Writer::new(&mut buffer);
            pong.write(&mut writer).expect("space for a pong");
            server.send_to(writer.finish(), from).expect("loopback accepts the datagram");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_stalled_protocol_does_not_increase_the_latency_of_a_ping() {
        let mut measured = Vec::new();
        while measured.len() < TRIES {
            measured.push(latency_with_a_stall().await);
            if measured.last().is_some_and(|latency| *latency < STALL) {
                return;
            }
        }
        panic!("each latency has the stall in it: {measured:?}");
    }

    async fn latency_with_a_stall() -> Duration {
        let server = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let address = server.local_addr().expect("a bound socket");
        let client = Arc::new(client(None).await);
        let pinging = Arc::clone(&client);
        let ping = tokio::spawn(async move { pinging.ping(address, LIMIT).await });

        let answer = answer(&server);
        stall(&client, answer);

        let pong = ping.await.expect("no panic").expect("a pong");
        assert_eq!(pong.data, b"late");
        pong.latency
    }

    /// Returns true if a datagram carries a connected ping.
    fn has_ping(datagram: &[u8]) -> bool {
        let mut reader = Reader::new(datagram);
        if !matches!(DatagramHeader::read(&mut reader), Ok(DatagramHeader::Data { .. })) {
            return false;
        }
        while let Ok(capsule) = CapsuleHeader::read(&mut reader) {
            match reader.bytes("payload", capsule.length()) {
                Ok([id::CONNECTED_PING, ..]) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
        false
    }

    /// Starts a proxy between one client and `server`. While `is_armed`, it delays the next ping from the client: it
    /// reports the ping to `delayed` and waits for `resume`.
    fn proxy(
        server: SocketAddr,
        is_armed: Arc<AtomicBool>,
        delayed: mpsc::Sender<()>,
        resume: mpsc::Receiver<()>,
    ) -> SocketAddr {
        let front = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let back = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        back.connect(server).expect("a loopback address");
        let address = front.local_addr().expect("a bound socket");
        std::thread::spawn(move || {
            let mut buffer = [0; 2_048];
            let (length, client) = front.recv_from(&mut buffer).expect("a request");
            back.send(&buffer[..length]).expect("loopback accepts the datagram");
            let answers = (front.try_clone().expect("a socket"), back.try_clone().expect("a socket"));
            std::thread::spawn(move || {
                let mut buffer = [0; 2_048];
                while let Ok(length) = answers.1.recv(&mut buffer) {
                    answers.0.send_to(&buffer[..length], client).expect("loopback accepts the datagram");
                }
            });
            while let Ok(length) = front.recv(&mut buffer) {
                if has_ping(&buffer[..length]) && is_armed.swap(false, Ordering::SeqCst) {
                    delayed.send(()).expect("the test waits");
                    resume.recv().expect("the test resumes");
                }
                back.send(&buffer[..length]).expect("loopback accepts the datagram");
            }
        });
        address
    }

    /// Waits until the last ping of a connection differs from `before`.
    async fn next_ping(connection: &Connection, before: Duration) -> Duration {
        loop {
            let stats = connection.stats().expect("an open connection");
            if stats.last_ping != before {
                return stats.last_ping;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_stalled_protocol_does_not_increase_the_rtt_of_a_connection() {
        let mut measured = Vec::new();
        while measured.len() < TRIES {
            let (ping, round_trip) = round_trip_with_a_stall().await;
            measured.push((ping, round_trip));
            if ping < STALL && round_trip < STALL / 2 {
                return;
            }
        }
        panic!("each of the times has the stall in it: {measured:?}");
    }

    /// Returns the ping that was answered during a stall, and the round-trip time measured with it.
    async fn round_trip_with_a_stall() -> (Duration, Duration) {
        let server =
            Endpoint::bind("127.0.0.1:0", Options::server(1).expect("entropy")).await.expect("a free port");
        let is_armed = Arc::new(AtomicBool::new(false));
        let (delayed, is_delayed) = mpsc::channel();
        let (resume, resumed) = mpsc::channel();
        let proxy = proxy(server.local_addr(), Arc::clone(&is_armed), delayed, resumed);
        let client = client(Some(Duration::from_secs(1))).await;
        let connection = client.connect(proxy).await.expect("a connection");
        let _other = server.accept().await.expect("the same connection");
        let before = next_ping(&connection, Duration::ZERO).await;

        is_armed.store(true, Ordering::SeqCst);
        is_delayed.recv().expect("a ping within a second");
        stall(&client, || resume.send(()).expect("the proxy waits"));

        let ping = next_ping(&connection, before).await;
        let round_trip = connection.stats().expect("an open connection").round_trip;
        (ping, round_trip)
    }
}
