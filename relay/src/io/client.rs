//! One client, from its request to its close.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tracing::{debug, warn};

use super::app::App;
use super::drive::{Connections, Driver};
use super::udp::ServerSocket;
use super::websocket::Connection;
use crate::close::CloseReason;
use crate::flow::{Flow, FlowEnd, ProxyHeader, Secret, Setup};
use crate::target::{Route, TargetName};

/// How long a client waits for the place of one that is gone.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(1);

/// What a client has asked for.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) client: SocketAddr,
    pub(crate) target: Option<String>,
    /// Whether it takes control messages. Only such a client can resume a flow.
    pub(crate) has_control: bool,
    pub(crate) resume: Option<Secret>,
}

/// Serves a client until its flow ends, or passes it on to its earlier flow.
pub(crate) async fn serve(app: &App, connection: Connection, opening: Opening) {
    let connection = Box::new(connection);
    let (name, route) = match find_target(app, opening.target.as_deref()) {
        Ok(found) => found,
        Err(reason) => return close(app, connection, &reason).await,
    };
    let Err(connection) = resume(app, &opening, name, connection) else { return };
    // The slot is kept until the WebSocket is closed, so that closing clients count too.
    let _slot = match acquire_slot(app).await {
        Ok(slot) => slot,
        Err(reason) => return close(app, connection, &reason).await,
    };
    let server = ServerSocket::connect(
        route.address,
        opening.client.ip(),
        route.source,
        app.limits.max_datagram,
    );
    let server = match server.await {
        Ok(server) => server,
        Err(error) => {
            warn!(target_name = %name, %error, "cannot open a UDP socket");
            return close(app, connection, &CloseReason::NoSocket).await;
        }
    };
    debug!(target_name = %name, "client connected");
    let (end, connection) = run(app, &opening, name, route, server, connection).await;
    match connection {
        Some(connection) => close(app, connection, &CloseReason::Flow(end)).await,
        None => debug!(reason = CloseReason::Flow(end).text(), "flow ended"),
    }
}

async fn close(app: &App, connection: Box<Connection>, reason: &CloseReason) {
    app.counters.closed(reason.kind());
    debug!(reason = reason.text(), "client closed");
    connection.close(reason).await;
}

fn find_target<'a>(app: &'a App, target: Option<&str>) -> Result<(&'a TargetName, &'a Route), CloseReason> {
    let requested = target.ok_or(CloseReason::MissingTarget)?;
    app.targets.find(requested).ok_or_else(|| CloseReason::UnknownTarget {
        requested: requested.to_owned(),
        offered: app.targets.names().cloned().collect(),
    })
}

/// Passes the connection on to the flow that the client comes back to, if there is one.
fn resume(
    app: &App,
    opening: &Opening,
    target: &TargetName,
    connection: Box<Connection>,
) -> Result<(), Box<Connection>> {
    let secret = opening.resume.filter(|_| opening.has_control);
    let flow = secret.and_then(|secret| app.resumable().find(&secret, target.as_str()).cloned());
    match flow {
        Some(flow) => flow.attach(connection),
        None => Err(connection),
    }
}

/// A place for a flow, if need be the one of the flow that has waited for its client for longest.
async fn acquire_slot(app: &App) -> Result<OwnedSemaphorePermit, CloseReason> {
    let full = || CloseReason::TooManyClients { max: app.limits.max_clients };
    let evicted = match Arc::clone(&app.slots).try_acquire_owned() {
        Ok(slot) => return Ok(slot),
        Err(_) => app.resumable().evict().ok_or_else(full)?,
    };
    evicted.evict();
    let slot = timeout(EVICTION_TIMEOUT, Arc::clone(&app.slots).acquire_owned()).await;
    slot.ok().and_then(Result::ok).ok_or_else(full)
}

async fn run(
    app: &App,
    opening: &Opening,
    name: &TargetName,
    route: &Route,
    server: ServerSocket,
    connection: Box<Connection>,
) -> (FlowEnd, Option<Box<Connection>>) {
    let secret = if opening.has_control { new_secret() } else { None };
    let setup = Setup {
        secret,
        proxy_header: route
            .proxy_protocol
            .then_some(ProxyHeader { client: opening.client, server: route.address }),
        inspect: None,
    };
    let flow = Flow::new(app.limits.of_flow(), app.counters.target(name), setup, Instant::now());
    let returning = Arc::new(Connections::new());
    if let Some(secret) = secret {
        app.resumable().insert(secret, name.as_str(), Arc::clone(&returning));
    }
    let (end, connection) = Driver::new(app, flow, server, connection, Arc::clone(&returning)).run().await;
    if let Some(secret) = secret {
        app.resumable().remove(&secret);
    }
    // A client that came back in the last moment is told the same as one that was there.
    (end, returning.close().or(connection))
}

/// A secret for a new flow; none without random bytes, and then nobody can come back to it.
fn new_secret() -> Option<Secret> {
    let mut random = [0; 16];
    match getrandom::fill(&mut random) {
        Ok(()) => Some(Secret::new(random)),
        Err(error) => {
            warn!(%error, "no random bytes; a flow cannot be resumed");
            None
        }
    }
}
