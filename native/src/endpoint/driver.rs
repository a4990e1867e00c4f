//! The two tasks of an endpoint: one receives, one drives the protocol and sends.

use std::sync::Arc;
use std::time::Duration;

use rakwire::endpoint::Protocol;

use super::io::{Counters, Io};
use super::shared::Shared;
use super::state::Next;
use crate::network_emulator::{Direction, NetworkEmulator};
use crate::outgoing::{Outgoing, Transmit};
use crate::simulation::Simulation;
use crate::socket::{Buffers, Socket};

/// How long a socket that cannot receive is left alone.
const RECEIVE_PAUSE: Duration = Duration::from_millis(10);

/// Drives the endpoint until it has ended, perhaps behind a simulated network.
pub(crate) async fn run<P: Protocol>(
    shared: Arc<Shared<P>>,
    socket: Arc<Socket>,
    simulation: Option<Simulation>,
) {
    let io = &shared.io;
    let receiver = tokio::spawn(receive(Arc::clone(&shared), Arc::clone(&socket)));
    let mut outgoing = Outgoing::new(P::MAX_DATAGRAM);
    let mut network = simulation.map(|simulation| NetworkEmulator::new(simulation, Direction::Out));
    loop {
        match shared.drive(&mut outgoing) {
            Next::Again => {
                match &mut network {
                    None => flush(io, &socket, &mut outgoing).await,
                    Some(network) => {
                        enter_network(io, network, &mut outgoing);
                        deliver(io, &socket, network).await;
                    }
                }
                tokio::task::yield_now().await;
            }
            Next::Sleep(until) => {
                let arrival = network.as_ref().and_then(NetworkEmulator::next);
                sleep(io, [until, arrival, io.arrived.next()].into_iter().flatten().min()).await;
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
    receiver.abort();
    // It ends with the error that it was aborted.
    let _ = receiver.await;
    // The address is free before anybody is told that it is.
    drop(socket);
    io.ended.send_replace(true);
    io.idle.notify_waiters();
}

async fn sleep(io: &Io, until: Option<rakwire::Instant>) {
    let until = until.and_then(|until| io.clock.deadline(until));
    let timer = async {
        match until {
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = io.arrived.wait() => {}
        () = io.wake.notified() => {}
        () = timer => {}
    }
}

async fn flush(io: &Io, socket: &Socket, outgoing: &mut Outgoing) {
    while let Some(transmit) = outgoing.next(socket.max_segments()) {
        send(io, socket, &transmit).await;
    }
}

async fn send(io: &Io, socket: &Socket, transmit: &Transmit<'_>) {
    if let Err(error) = socket.send(transmit).await {
        // As good as lost on the way: the protocol sends again what must arrive.
        tracing::debug!(to = %transmit.to, %error, "datagrams could not be sent");
        Counters::add(&io.counters.send_failures, transmit.count as u64);
    }
}

/// Gives datagrams to a simulated network instead of the socket.
fn enter_network(io: &Io, network: &mut NetworkEmulator, outgoing: &mut Outgoing) {
    let now = io.clock.now();
    while let Some(transmit) = outgoing.next(1) {
        network.send(now, transmit.to, transmit.bytes);
    }
}

/// Sends what has come through a simulated network.
async fn deliver(io: &Io, socket: &Socket, network: &mut NetworkEmulator) {
    for datagram in network.receive(io.clock.now()) {
        let (to, bytes) = (datagram.address, &*datagram.bytes);
        send(io, socket, &Transmit { to, size: bytes.len(), count: 1, bytes }).await;
    }
}

/// Sends what is still on its way through a simulated network, each datagram in its time.
async fn deliver_all(io: &Io, socket: &Socket, network: &mut NetworkEmulator) {
    while let Some(next) = network.next() {
        if let Some(until) = io.clock.deadline(next) {
            tokio::time::sleep_until(until).await;
        }
        deliver(io, socket, network).await;
    }
}

/// Receives datagrams and notes when they arrived. It touches nothing that the protocol could hold up.
async fn receive<P: Protocol>(shared: Arc<Shared<P>>, socket: Arc<Socket>) {
    let io = &shared.io;
    let mut buffers = Buffers::new();
    loop {
        match socket.receive(&io.clock, &mut buffers).await {
            Ok(received) => {
                Counters::add(&io.counters.too_long, received.too_long);
                io.arrived.push(received.batches.into_iter());
            }
            Err(error) => {
                tracing::debug!(%error, "datagrams could not be received");
                Counters::add(&io.counters.receive_failures, 1);
                tokio::time::sleep(RECEIVE_PAUSE).await;
            }
        }
    }
}
