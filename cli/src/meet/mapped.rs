//! The port that the router opens, and whoever has to know which one it is.

use std::net::SocketAddr;

use rakwire_native::port_mapping::{MappedPort, PortMapping, PortMappingError};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::failure::{Failure, print};

/// A mapping that is renewed until this is closed. Dropping it has the router close its port in the background.
#[derive(Debug)]
pub(super) struct Mapped {
    /// Dropped, it ends the task.
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Mapped {
    /// Says whatever else the router maps from now on, and has `announce` tell it to those who are to send there.
    pub(super) fn follow(
        mapping: PortMapping,
        announce: impl Fn(Option<SocketAddr>) + Send + 'static,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self { stop, task: tokio::spawn(follow(mapping, announce, stopped)) }
    }

    /// Has the router close its port, and waits for that.
    pub(super) async fn close(self) {
        drop(self.stop);
        // A task that ended otherwise has nothing to close.
        let _ = self.task.await;
    }
}

/// Waits for the router, and says what it has done. Without a port of it the machine may be reached all the same.
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
        // Without standard output those who are to send there know it all the same.
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
