//! A port mapping on the router, and the announcement of its changes.

use std::net::SocketAddr;

use rakwire_extras::port_mapping::{MappedPort, PortMapping, PortMappingError};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::failure::{Failure, print};

/// A port mapping, renewed until [`close`](Self::close). Dropping the value closes the router's port in the background.
#[derive(Debug)]
pub(super) struct Mapped {
    /// Dropping the sender ends the task.
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Mapped {
    /// Prints each later change of the mapping, and passes the new external address to `announce`.
    pub(super) fn follow(
        mapping: PortMapping,
        announce: impl Fn(Option<SocketAddr>) + Send + 'static,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self { stop, task: tokio::spawn(follow(mapping, announce, stopped)) }
    }

    /// Closes the port on the router, and waits for the router's answer.
    pub(super) async fn close(self) {
        drop(self.stop);
        // A task that stopped for another reason has nothing to close.
        let _ = self.task.await;
    }
}

/// Waits for the router and prints its answer. The machine may be reachable even without a mapped port.
pub(super) async fn granted(mapping: &mut PortMapping) -> Result<Option<SocketAddr>, Failure> {
    let answer = mapping.granted().await;
    say(&answer)?;
    Ok(external(&answer))
}

async fn follow(
    mut mapping: PortMapping,
    announce: impl Fn(Option<SocketAddr>),
    mut stopped: oneshot::Receiver<()>,
) {
    loop {
        let answer = tokio::select! {
            _ = &mut stopped => break,
            answer = mapping.changed() => answer,
        };
        if answer == Err(PortMappingError::Closed) {
            break;
        }
        announce(external(&answer));
        // If standard output is closed, the address is still announced to peers.
        let _ = say(&answer);
    }
    mapping.close().await;
}

fn external(answer: &Result<MappedPort, PortMappingError>) -> Option<SocketAddr> {
    answer.as_ref().ok().map(|port| port.external)
}

fn say(answer: &Result<MappedPort, PortMappingError>) -> Result<(), Failure> {
    match answer {
        Ok(port) => print(format_args!("mapped {} by {}\n", port.external, port.protocol)),
        Err(error) => print(format_args!("no mapped port: {error}\n")),
    }
}
