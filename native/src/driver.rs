//! The two tasks of an endpoint: one receives, one drives the protocol and sends.

use std::sync::Arc;
use std::time::Duration;

use crate::outgoing::Outgoing;
use crate::shared::{Counters, Shared};
use crate::socket::{Buffers, Socket};
use crate::state::Next;

/// How long a socket that cannot receive is left alone.
const RECEIVE_PAUSE: Duration = Duration::from_millis(10);

/// Drives the endpoint until it has ended.
pub(crate) async fn run(shared: Arc<Shared>, socket: Arc<Socket>) {
    let receiver = tokio::spawn(receive(Arc::clone(&shared), Arc::clone(&socket)));
    let mut outgoing = Outgoing::new();
    loop {
        match shared.turn(&mut outgoing) {
            Next::Again => {
                flush(&shared, &socket, &mut outgoing).await;
                tokio::task::yield_now().await;
            }
            Next::Sleep(until) => sleep(&shared, until).await,
            Next::End => break,
        }
    }
    receiver.abort();
    // It ends with the error that it was aborted.
    let _ = receiver.await;
    // The address is free before anybody is told that it is.
    drop(socket);
    shared.ended.send_replace(true);
}

async fn sleep(shared: &Shared, until: Option<rakwire::Instant>) {
    let until = until.and_then(|until| shared.clock.deadline(until));
    let timer = async {
        match until {
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = shared.arrivals.wait() => {}
        () = shared.wake.notified() => {}
        () = timer => {}
    }
}

async fn flush(shared: &Shared, socket: &Socket, outgoing: &mut Outgoing) {
    while let Some(departure) = outgoing.next(socket.max_segments()) {
        if let Err(error) = socket.send(&departure).await {
            // As good as lost on the way: the protocol sends again what must arrive.
            tracing::debug!(to = %departure.to, %error, "datagrams could not be sent");
            Counters::add(&shared.counters.send_failures, departure.count as u64);
        }
    }
}

/// Receives datagrams and notes when they arrived. It touches nothing that the protocol could hold up.
async fn receive(shared: Arc<Shared>, socket: Arc<Socket>) {
    let mut buffers = Buffers::new();
    loop {
        match socket.receive(&shared.clock, &mut buffers).await {
            Ok(received) => {
                Counters::add(&shared.counters.too_long, received.too_long);
                shared.arrivals.push(received.trains.into_iter());
            }
            Err(error) => {
                tracing::debug!(%error, "datagrams could not be received");
                Counters::add(&shared.counters.receive_failures, 1);
                tokio::time::sleep(RECEIVE_PAUSE).await;
            }
        }
    }
}
