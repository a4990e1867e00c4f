//! An endpoint with NAT traversal, and the task that carries out the plugin's requests.

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::time::Duration;

use rakwire::endpoint::PluginHost;
use rakwire_extras::port_mapping::{PortMapping, PortMappingOptions};
use rakwire_native::UnconnectedKind;
use rakwire_native::endpoint::{ConnectError, SharedHook};
use rakwire_native::raknet::{
    ConnectFailure, ConnectOptions, Connection, Endpoint, Guid, Options, OutOfBand, RakNet,
};
use rakwire_native::secure::ServerTrust;
use rakwire_plugins::nat::{Action, Outcome, Traversal};
use tokio::sync::mpsc;

use super::mapped::{Mapped, granted};
use crate::failure::Failure;
use crate::host;

/// The interval at which the plugin's requests are polled, equal to the interval of punches.
const TICK: Duration = Duration::from_millis(25);

type Plugin = SharedHook<Traversal<4>>;

/// The facilitator to join.
pub(super) struct FacilitatorAddress<'a> {
    pub(super) address: SocketAddr,
    pub(super) password: &'a str,
    /// The key to require, or `None` for a connection that is not secure.
    pub(super) trust: Option<ServerTrust>,
}

pub(super) struct Player {
    endpoint: Endpoint,
    traversal: Plugin,
    /// The field keeps the value alive, because dropping it would close the session with the facilitator.
    facilitator: Connection,
    connections: mpsc::UnboundedReceiver<Connection>,
    outcomes: mpsc::UnboundedReceiver<Outcome>,
    /// The field keeps the value alive, because dropping it would close the port on the router.
    mapping: Option<Mapped>,
}

impl Player {
    /// Joins a facilitator. With `mapping`, it first waits for the router's answer to the request for a port.
    ///
    /// With `is_forwarded`, nothing is sent to any address but the facilitator's.
    pub(super) async fn start(
        local: &str,
        facilitator: &FacilitatorAddress<'_>,
        timeout: Duration,
        is_forwarded: bool,
        mapping: Option<PortMappingOptions>,
    ) -> Result<Self, Failure> {
        let FacilitatorAddress { address: facilitator, password, trust } = *facilitator;
        let mut options = Options::server(8).map_err(host::no_entropy)?;
        options.config.out_of_band = OutOfBand::Accept;
        // The peer's router may refuse datagrams that arrive before the peer has sent any.
        options.fail_on_unreachable = false;
        if trust.is_some() {
            options.secure().map_err(host::no_entropy)?;
        }
        let traversal = SharedHook::new(Traversal::new());
        let mut hook = PluginHost::<_, 1>::new();
        hook.attach::<RakNet>(traversal.clone()).map_err(Failure::runtime)?;
        let endpoint = Endpoint::bind_with_hook(local, options, |_| hook).await;
        let endpoint = endpoint.map_err(|error| host::bind_failure(local, &error))?;
        let mut mapping = mapping.map(|options| PortMapping::start(endpoint.local_addr(), options));
        let mapped = match &mut mapping {
            Some(mapping) => granted(mapping).await?,
            None => None,
        };
        let failure = |reason: &dyn std::fmt::Display| {
            Failure::runtime(format!("cannot join the facilitator {facilitator}: {reason}"))
        };
        let credentials =
            ConnectOptions { password: password.as_bytes(), trust, ..ConnectOptions::default() };
        let connection = endpoint.connect_with(facilitator, &credentials).await.map_err(|error| {
            if error == ConnectError::PasswordTooLong {
                return Failure::usage("the text of --password is longer than 255 bytes; shorten it");
            }
            failure(&format!("{error}{}", advice(error)))
        })?;
        traversal.with(|traversal| {
            traversal.set_internal_addresses(&endpoint.interface_addrs());
            traversal.set_mapped_address(mapped);
            traversal.set_facilitator(connection.id(), connection.remote());
        });
        endpoint.wake();
        let mapping = mapping.map(|mapping| Mapped::follow(mapping, announce(&endpoint, &traversal)));
        let registered = async {
            while !traversal.with(|traversal| traversal.is_registered()) {
                tokio::time::sleep(TICK).await;
            }
        };
        let registered = tokio::time::timeout(timeout, registered).await;
        registered.map_err(|_| failure(&"the server accepted the connection, but is not a facilitator"))?;
        let (opened, connections) = mpsc::unbounded_channel();
        let (report, outcomes) = mpsc::unbounded_channel();
        let only = is_forwarded.then_some(facilitator);
        tokio::spawn(work(endpoint.clone(), traversal.clone(), only, opened, report));
        Ok(Self { endpoint, traversal, facilitator: connection, connections, outcomes, mapping })
    }

    pub(super) fn guid(&self) -> Guid {
        self.endpoint.guid()
    }

    pub(super) async fn close(self) {
        self.endpoint.close().await;
        if let Some(mapping) = self.mapping {
            mapping.close().await;
        }
    }

    /// Connects to a machine that is registered at the facilitator, and returns true if its datagrams are
    /// forwarded.
    pub(super) async fn reach(
        &mut self,
        peer: Guid,
        timeout: Duration,
    ) -> Result<(Connection, bool), Failure> {
        let failure = |reason: &dyn std::fmt::Display| {
            Failure::runtime(format!("cannot reach {:016x}: {reason}", peer.0))
        };
        self.traversal.with(|traversal| traversal.open(peer)).map_err(|error| failure(&error))?;
        self.endpoint.wake();
        let attempt = async {
            let is_forwarded = loop {
                match self.outcomes.recv().await {
                    Some(Outcome::Connected { peer: other, is_forwarded }) if other == peer => {
                        break is_forwarded;
                    }
                    Some(Outcome::Failed { peer: other, reason }) if other == peer => {
                        return Err(match reason {
                            Some(reason) => failure(&reason),
                            None => failure(
                                &"the connection to the facilitator was lost, or the facilitator does not answer",
                            ),
                        });
                    }
                    // The outcome concerns another peer, which has connected to this machine.
                    Some(Outcome::Connected { .. } | Outcome::Failed { .. }) => {}
                    None => return Err(closed()),
                }
            };
            loop {
                let connection = self.next().await?;
                if connection.guid() == peer {
                    return Ok((connection, is_forwarded));
                }
            }
        };
        let attempt = tokio::time::timeout(timeout, attempt).await;
        attempt.map_err(|_| failure(&"no connection in time; allow more time with --timeout"))?
    }

    /// Returns the next incoming connection. Fails once the connection to the facilitator is lost.
    pub(super) async fn next_visitor(&mut self) -> Result<Connection, Failure> {
        loop {
            tokio::select! {
                connection = self.connections.recv() => return connection.ok_or_else(closed),
                // Outcomes are ignored, because each incoming connection arrives in `connections`.
                Some(_) = self.outcomes.recv() => {}
                reason = self.facilitator.closed() => {
                    let remote = self.facilitator.remote();
                    return Err(Failure::runtime(format!("lost the connection to the facilitator {remote}: {reason}")));
                }
            }
        }
    }

    /// Returns the next connection.
    async fn next(&mut self) -> Result<Connection, Failure> {
        self.connections.recv().await.ok_or_else(closed)
    }
}

/// Returns the fix for a failure to join the facilitator, to append to the error message.
fn advice(error: ConnectError<ConnectFailure>) -> &'static str {
    if error == ConnectError::Failed(ConnectFailure::InvalidPassword) {
        "; set it with --password"
    } else if error == ConnectError::Failed(ConnectFailure::SecurityRequired) {
        "; give its key with --server-key"
    } else {
        ""
    }
}

/// Returns a function that announces a mapped address to the facilitator.
fn announce(endpoint: &Endpoint, traversal: &Plugin) -> impl Fn(Option<SocketAddr>) + Send + 'static {
    let (endpoint, traversal) = (endpoint.clone(), traversal.clone());
    move |mapped| {
        traversal.with(|traversal| traversal.set_mapped_address(mapped));
        endpoint.wake();
    }
}

fn closed() -> Failure {
    Failure::runtime("the endpoint is closed")
}

/// Sends and connects as the plugin requests, until the endpoint is closed.
///
/// With `only`, nothing is sent to any other facilitator or peer.
async fn work(
    endpoint: Endpoint,
    traversal: Plugin,
    only: Option<SocketAddr>,
    opened: mpsc::UnboundedSender<Connection>,
    report: mpsc::UnboundedSender<Outcome>,
) {
    let mut ticks = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            message = endpoint.recv_unconnected() => {
                let Some(message) = message else { return };
                if message.kind == UnconnectedKind::OutOfBand {
                    let now = endpoint.now();
                    traversal.with(|traversal| traversal.handle_out_of_band(now, message.from, &message.data));
                    endpoint.wake();
                }
            }
            accepted = endpoint.accept() => {
                let Some(connection) = accepted else { return };
                // The receiver no longer exists once the command is over.
                let _ = opened.send(connection);
            }
            _ = ticks.tick() => {}
        }
        while let Some(action) = traversal.with(Traversal::poll_action) {
            act(action, &endpoint, only, &opened).await;
        }
        while let Some(outcome) = traversal.with(Traversal::poll_outcome) {
            // The receiver no longer exists once the command is over.
            let _ = report.send(outcome);
        }
    }
}

async fn act(
    action: Action,
    endpoint: &Endpoint,
    only: Option<SocketAddr>,
    opened: &mpsc::UnboundedSender<Connection>,
) {
    let is_reached = |to: SocketAddr| only.is_none_or(|facilitator| facilitator.ip() == to.ip());
    match action {
        // If the endpoint does not accept the message, the plugin repeats it later.
        Action::Send { to, payload } if is_reached(to) => drop(endpoint.send_out_of_band(to, &payload).await),
        Action::Connect { address, .. } if is_reached(address) => {
            let (endpoint, opened) = (endpoint.clone(), opened.clone());
            tokio::spawn(async move {
                // If the attempt fails, the plugin reports the failure.
                if let Ok(connection) = endpoint.connect(address).await {
                    let _ = opened.send(connection);
                }
            });
        }
        Action::Send { .. } | Action::Connect { .. } => {}
    }
}
