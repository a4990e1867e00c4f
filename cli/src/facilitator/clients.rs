//! Admission of clients by the facilitator, limited per host.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rakwire::HostPrefix;
use rakwire_native::raknet::{Connection, Endpoint, Incoming};
use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::host;

/// The time after which an admitted client without a connection is removed. It exceeds the handshake timeout of the
/// endpoint.
const OPENING: Duration = Duration::from_secs(30);

/// Admits clients, up to the limit of each host, until a signal ends the program.
pub(super) async fn serve(endpoint: &Endpoint, max_per_host: usize) -> Result<(), Failure> {
    let mut clients = Clients { max_per_host, ..Clients::default() };
    let run = async {
        loop {
            tokio::select! {
                incoming = endpoint.incoming() => match incoming {
                    Some(incoming) => clients.decide(Instant::now(), incoming),
                    None => break,
                },
                connection = endpoint.accept() => match connection {
                    Some(connection) => clients.serve(connection),
                    None => break,
                },
                Some(ended) = clients.connected.join_next() => clients.leave(ended.ok()),
            }
        }
    };
    host::until_signal(endpoint.local_addr(), run).await
}

/// The connected clients, and those that were admitted and are still connecting.
#[derive(Default)]
struct Clients {
    max_per_host: usize,
    of_host: HashMap<HostPrefix, usize>,
    opening: HashMap<SocketAddr, Instant>,
    /// The tasks of connections. A task returns the client's host prefix when its connection is closed.
    connected: JoinSet<HostPrefix>,
}

impl Clients {
    /// Refuses a client before its connection exists, so that the refusal takes up no slot.
    fn decide(&mut self, now: Instant, incoming: Incoming) {
        self.forget(now);
        let (remote, host) = (incoming.remote(), HostPrefix::of(incoming.remote().ip()));
        let is_new = !self.opening.contains_key(&remote);
        if is_new && self.of_host.get(&host).copied().unwrap_or(0) >= self.max_per_host {
            incoming.refuse();
            return;
        }
        self.opening.insert(remote, now);
        if is_new {
            *self.of_host.entry(host).or_default() += 1;
        }
        incoming.accept();
    }

    fn serve(&mut self, connection: Connection) {
        let remote = connection.remote();
        let host = HostPrefix::of(remote.ip());
        if self.opening.remove(&remote).is_none() {
            *self.of_host.entry(host).or_default() += 1;
        }
        // The plugin handles the messages addressed to it; all others are dropped.
        self.connected.spawn(async move {
            while connection.recv().await.is_some() {}
            host
        });
    }

    /// Removes clients that were admitted but never opened a connection.
    fn forget(&mut self, now: Instant) {
        let late = self.opening.extract_if(|_, since| now.duration_since(*since) > OPENING);
        for (remote, _) in late.collect::<Vec<(SocketAddr, Instant)>>() {
            self.leave(Some(HostPrefix::of(remote.ip())));
        }
    }

    fn leave(&mut self, host: Option<HostPrefix>) {
        let Some(host) = host else { return };
        if let Some(count) = self.of_host.get_mut(&host) {
            *count -= 1;
            if *count == 0 {
                self.of_host.remove(&host);
            }
        }
    }
}
