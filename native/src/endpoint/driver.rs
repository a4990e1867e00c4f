//! The two tasks of an endpoint: one receives, one drives the protocol and sends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rakwire::endpoint::Protocol;
use rakwire_udp::is_too_large;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinHandle;

use super::io::{Counters, Io};
use super::shared::Shared;
use super::state::Next;
use super::timer::Timer;
use crate::arrival_queue::RecvBatch;
use crate::network_emulator::{Direction, NetworkEmulator};
use crate::outgoing::{Outgoing, Transmit};
use crate::simulation::Simulation;
use crate::socket::Socket;
use crate::unreachable::has_no_route;

/// How long to wait after a failed receive call.
const RECEIVE_PAUSE: Duration = Duration::from_millis(10);

/// Drives the endpoint until it has ended, over a simulated network if there is one.
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
                // A driver that is always woken immediately must still let other tasks run.
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
    // The socket is closed before `ended` is set, so that the address is free by then.
    drop(socket);
    io.span.closed();
    io.ended.send_replace(true);
    io.idle.notify_waiters();
}

/// Stops a task and waits until it has given its socket back.
async fn stop(task: JoinHandle<()>) {
    task.abort();
    // The result is the error of an aborted task.
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

/// Datagrams that the system did not send.
#[derive(Debug, Default, PartialEq)]
struct RefusedDatagrams {
    /// Where those were to go that are too large for the path, and their lengths.
    too_large: Vec<(SocketAddr, usize)>,
    /// Where those were to go to which no route leads.
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
                // A network that takes no segments shows that by the first ones.
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

/// The protocol treats this as a loss.
fn send_failed(io: &Io, transmit: &Transmit<'_>, error: &std::io::Error) {
    io.span.send_failed(io.clock.now(), transmit.to, error);
    Counters::add(&io.counters.send_failures, transmit.count as u64);
}

/// Sends the composed datagrams into a simulated network.
fn enter_network(io: &Io, network: &mut NetworkEmulator, outgoing: &mut Outgoing) {
    let now = io.clock.now();
    for transmit in outgoing.transmits(1) {
        network.send(now, transmit.to, transmit.bytes);
    }
    outgoing.clear();
}

/// Sends the datagrams that have passed a simulated network.
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
            tokio::time::sleep_until(until).await;
        }
        deliver(io, socket, network).await;
    }
}

/// Receives datagrams with their times of arrival. It never waits for the protocol's lock.
///
/// On a runtime of one thread tasks run in the order in which they are woken. There datagrams are handled here, so that the
/// application runs before the driver, and the first message that it sends leaves at once. They are handled where the system
/// has put them, without a place in the queue.
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
                // Where a call takes one datagram, nothing else lets other tasks run while more arrive.
                tokio::task::coop::consume_budget().await;
                if is_full && is_current_thread {
                    // Acknowledgements leave before more is handled.
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

/// Reads the socket once, and handles or queues what has arrived before anybody else reads it. True if more may have arrived;
/// nothing if nothing has.
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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::super::spans::EndpointSpan;
    use super::*;
    use crate::clock::Clock;

    #[tokio::test]
    async fn what_waits_for_the_system_counts_as_composed() {
        let io = Io::new(0, None, Clock::start(), EndpointSpan::new(""));
        let socket = Socket::open("127.0.0.1:0").await.expect("a free port");
        let mut outgoing = Outgoing::new(8);
        outgoing.push_copy(socket.local_addr(), &[1, 2, 3]);
        let mut flush = pin!(flush(&io, &socket, &mut outgoing));
        // The runtime has yet to learn that the system has room.
        let polled = flush.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!((polled, io.is_sending.load(Ordering::Acquire)), (Poll::Pending, true));
        flush.await;
        assert!(io.is_driver_done());
    }

    async fn one_that_cannot_be_sent_keeps_no_other(local: &str) {
        let io = Io::new(0, None, Clock::start(), EndpointSpan::new(""));
        // A machine may have no IPv6.
        let Ok(socket) = Socket::open(local).await else { return };
        let receivers = [1, 2, 3].map(|number| {
            let receiver = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
            receiver.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
            (number, receiver)
        });
        let mut outgoing = Outgoing::new(8);
        for (number, receiver) in &receivers {
            outgoing.push_copy(receiver.local_addr().expect("it is bound"), &[*number; 3]);
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
    async fn one_datagram_that_cannot_be_sent_keeps_no_other() {
        one_that_cannot_be_sent_keeps_no_other("127.0.0.1:0").await;
    }

    #[tokio::test]
    async fn one_datagram_that_cannot_be_sent_by_ipv6_keeps_no_other() {
        one_that_cannot_be_sent_keeps_no_other("[::]:0").await;
    }
}
