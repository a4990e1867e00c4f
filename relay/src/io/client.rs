//! One client, from its request to its close.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout;
use tracing::{debug, warn};

use super::app::App;
use super::drive::{Connections, Driver};
use super::udp::ServerSocket;
use super::websocket::Connection;
use crate::admission::{Grant, ResolvedTarget, Ticket};
use crate::close::CloseReason;
use crate::flow::{Flow, FlowEnd, ProxyHeader, Secret, Setup};
use crate::target::TargetName;

/// How long a client waits for the place of one that is gone.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(1);

/// What a client has asked for.
#[derive(Debug)]
pub(crate) struct Opening {
    /// What it may have.
    pub(crate) ticket: Result<Ticket, CloseReason>,
    /// Whether it takes control messages. Only such a client can resume a flow.
    pub(crate) has_control: bool,
    pub(crate) resume: Option<Secret>,
}

/// Serves a client until its flow ends, or passes it on to its earlier flow.
pub(crate) async fn serve(app: &App, connection: Connection, opening: Opening) {
    let connection = Box::new(connection);
    let Opening { ticket, has_control, resume: secret } = opening;
    let ticket = match ticket {
        Ok(ticket) => ticket,
        Err(reason) => return close(app, connection, &reason).await,
    };
    let secret = secret.filter(|_| has_control);
    let Err(connection) = resume(app, secret, ticket.target_name(), connection) else { return };
    // The grant is kept until the WebSocket is closed, so that closing clients count too.
    let grant = match admit(app, ticket).await {
        Ok(grant) => grant,
        Err(reason) => return close(app, connection, &reason).await,
    };
    let ResolvedTarget { name, settings, address } = &*grant.target;
    let server =
        ServerSocket::connect(*address, grant.client.ip(), settings.source, grant.limits.max_datagram);
    let server = match server.await {
        Ok(server) => server,
        Err(error) => {
            warn!(target_name = %name, %error, "cannot open a UDP socket");
            return close(app, connection, &CloseReason::NoSocket).await;
        }
    };
    debug!(target_name = %name, client = %grant.client, "client connected");
    let (end, connection) = run(app, &grant, has_control, server, connection).await;
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

/// Passes the connection on to the flow that the client comes back to, if there is one. Its secret shows that it has
/// been admitted before, so that it needs no further token.
fn resume(
    app: &App,
    secret: Option<Secret>,
    target: &TargetName,
    connection: Box<Connection>,
) -> Result<(), Box<Connection>> {
    let flow = secret.and_then(|secret| app.resumable().find(&secret, target.as_str()).cloned());
    match flow {
        Some(flow) => flow.attach(connection),
        None => Err(connection),
    }
}

/// A place for a flow, if need be the one of the flow that has waited for its client for longest.
async fn admit(app: &App, ticket: Ticket) -> Result<Grant, CloseReason> {
    let full = match app.admission.take(&ticket) {
        Err(full @ CloseReason::TooManyClients { .. }) => full,
        decided => return decided,
    };
    let Some(evicted) = app.resumable().evict() else { return Err(full) };
    evicted.evict();
    let again = async {
        loop {
            app.admission.freed().await;
            match app.admission.take(&ticket) {
                Err(CloseReason::TooManyClients { .. }) => {}
                decided => return decided,
            }
        }
    };
    timeout(EVICTION_TIMEOUT, again).await.unwrap_or(Err(full))
}

async fn run(
    app: &App,
    grant: &Grant,
    has_control: bool,
    server: ServerSocket,
    connection: Box<Connection>,
) -> (FlowEnd, Option<Box<Connection>>) {
    let ResolvedTarget { name, settings, address } = &*grant.target;
    let secret = if has_control { new_secret() } else { None };
    let header = ProxyHeader { client: grant.client, server: *address };
    let setup = Setup { secret, proxy_header: settings.proxy_protocol.then_some(header), inspect: None };
    let limits = grant.limits.of_flow(settings);
    let flow = Flow::new(limits, app.counters.target(name), setup, Instant::now());
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
