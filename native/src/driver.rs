//! The two tasks of an endpoint: one receives, one drives the protocol and sends.

use std::sync::Arc;
use std::time::Duration;

use crate::outgoing::{Departure, Outgoing};
use crate::paths::{Direction, Paths};
use crate::shared::{Counters, Driven};
use crate::simulation::Simulation;
use crate::socket::{Buffers, Socket};
use crate::state::Next;

/// How long a socket that cannot receive is left alone.
const RECEIVE_PAUSE: Duration = Duration::from_millis(10);

/// Drives the endpoint until it has ended, perhaps behind a simulated network.
pub(crate) async fn run<D: Driven>(shared: Arc<D>, socket: Arc<Socket>, simulation: Option<Simulation>) {
    let receiver = tokio::spawn(receive(Arc::clone(&shared), Arc::clone(&socket)));
    let mut outgoing = Outgoing::new();
    let mut network = simulation.map(|simulation| Paths::new(simulation, Direction::Out));
    loop {
        match shared.turn(&mut outgoing) {
            Next::Again => {
                match &mut network {
                    None => flush(&*shared, &socket, &mut outgoing).await,
                    Some(network) => {
                        put_on_the_way(&*shared, network, &mut outgoing);
                        deliver(&*shared, &socket, network).await;
                    }
                }
                tokio::task::yield_now().await;
            }
            Next::Sleep(until) => {
                let arrival = network.as_ref().and_then(Paths::next);
                sleep(&*shared, [until, arrival, shared.io().arrivals.next()].into_iter().flatten().min())
                    .await;
                if let Some(network) = &mut network {
                    deliver(&*shared, &socket, network).await;
                }
            }
            Next::End => break,
        }
    }
    if let Some(network) = &mut network {
        deliver_all(&*shared, &socket, network).await;
    }
    receiver.abort();
    // It ends with the error that it was aborted.
    let _ = receiver.await;
    // The address is free before anybody is told that it is.
    drop(socket);
    shared.io().ended.send_replace(true);
    shared.io().idle.notify_waiters();
}

async fn sleep(shared: &impl Driven, until: Option<rakwire::Instant>) {
    let until = until.and_then(|until| shared.io().clock.deadline(until));
    let timer = async {
        match until {
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = shared.io().arrivals.wait() => {}
        () = shared.io().wake.notified() => {}
        () = timer => {}
    }
}

async fn flush(shared: &impl Driven, socket: &Socket, outgoing: &mut Outgoing) {
    while let Some(departure) = outgoing.next(socket.max_segments()) {
        send(shared, socket, &departure).await;
    }
}

async fn send(shared: &impl Driven, socket: &Socket, departure: &Departure<'_>) {
    if let Err(error) = socket.send(departure).await {
        // As good as lost on the way: the protocol sends again what must arrive.
        tracing::debug!(to = %departure.to, %error, "datagrams could not be sent");
        Counters::add(&shared.io().counters.send_failures, departure.count as u64);
    }
}

/// Gives datagrams to a simulated network instead of the socket.
fn put_on_the_way(shared: &impl Driven, network: &mut Paths, outgoing: &mut Outgoing) {
    let now = shared.io().clock.now();
    while let Some(departure) = outgoing.next(1) {
        network.send(now, departure.to, departure.bytes);
    }
}

/// Sends what has come through a simulated network.
async fn deliver(shared: &impl Driven, socket: &Socket, network: &mut Paths) {
    for parcel in network.receive(shared.io().clock.now()) {
        let (to, bytes) = (parcel.address, &*parcel.bytes);
        send(shared, socket, &Departure { to, size: bytes.len(), count: 1, bytes }).await;
    }
}

/// Sends what is still on its way through a simulated network, each datagram in its time.
async fn deliver_all(shared: &impl Driven, socket: &Socket, network: &mut Paths) {
    while let Some(next) = network.next() {
        if let Some(until) = shared.io().clock.deadline(next) {
            tokio::time::sleep_until(until).await;
        }
        deliver(shared, socket, network).await;
    }
}

/// Receives datagrams and notes when they arrived. It touches nothing that the protocol could hold up.
async fn receive(shared: Arc<impl Driven>, socket: Arc<Socket>) {
    let mut buffers = Buffers::new();
    loop {
        match socket.receive(&shared.io().clock, &mut buffers).await {
            Ok(received) => {
                Counters::add(&shared.io().counters.too_long, received.too_long);
                shared.io().arrivals.push(received.trains.into_iter());
            }
            Err(error) => {
                tracing::debug!(%error, "datagrams could not be received");
                Counters::add(&shared.io().counters.receive_failures, 1);
                tokio::time::sleep(RECEIVE_PAUSE).await;
            }
        }
    }
}
