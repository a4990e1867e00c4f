//! Handles a client from its request to the close of its connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout;
use tracing::{info, warn};

use super::app::{App, Connections};
use super::drive::{Driver, Ended};
use super::open_flows::Ender;
use super::transport::Connection;
use super::udp::ServerSocket;
use crate::admission::{Forbidden, Grant, PageOrigin, Permission, Refusal, Request};
use crate::close::{BANNED, CloseReason};
use crate::flow::{Flow, FlowEnd, FromClient, Inspect, ProxyHeader, Secret, Setup};
use crate::protocol::{FlowInspector, Handshake, ProtocolKind, largest_behind};
use crate::time::Now;

/// The time for which a client waits for the slot of a flow that is being evicted.
pub(super) const EVICTION_TIMEOUT: Duration = Duration::from_secs(1);

/// Texts of close code 4403 other than the one for banned addresses.
pub(super) const FOREIGN_ORIGIN: &str = "this relay does not accept pages of this origin";
const NO_ORIGIN: &str =
    "this relay accepts only pages of listed origins, and the request has no Origin header";
const UNKNOWN_ORIGIN: &str = "this relay requires a token for data channels";

/// A client's request for a flow.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) client: SocketAddr,
    /// The permission of the client, or the reason for refusing it.
    pub(crate) permission: Result<Permission, CloseReason>,
    /// True if the client accepts control messages. Only such a client can resume a flow.
    pub(crate) has_control: bool,
    pub(crate) resume: Resume,
    /// True if the flow is opened or resumed only when the client sends its first datagram.
    pub(crate) is_deferred: bool,
    /// True if the client was already counted as new.
    pub(crate) is_counted: bool,
    /// True if the client is to be closed when its game server is unreachable.
    pub(crate) closes_on_unreachable: bool,
}

/// The client's use of resumption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resume {
    /// The client may resume the new flow later.
    Later,
    /// The client resumes the flow with this secret.
    Flow(Secret),
    /// The client never resumes its flow.
    Never,
}

impl Resume {
    /// Parses the parameter. A malformed secret matches no flow.
    pub(crate) fn read(parameter: Option<&str>) -> Self {
        match parameter {
            Some("never") => Self::Never,
            Some(secret) => secret.parse().map_or(Self::Later, Self::Flow),
            None => Self::Later,
        }
    }

    /// Returns the secret of the flow to resume.
    pub(crate) const fn secret(&self) -> Option<&Secret> {
        match self {
            Self::Flow(secret) => Some(secret),
            Self::Later | Self::Never => None,
        }
    }
}

/// Decides on a request, and counts a request that is refused outright.
pub(super) fn permission(app: &App, request: &Request) -> Result<Permission, CloseReason> {
    app.admission.check(Now::read(), request).map_err(|refusal| match refusal {
        Refusal::Close(reason) => reason,
        Refusal::Forbidden(forbidden) => {
            let (counter, text) = match (forbidden, &request.origin) {
                (Forbidden::Banned, _) => (&app.counters.bans_refused, BANNED),
                (Forbidden::Origin, PageOrigin::None) => (&app.counters.origins_refused, NO_ORIGIN),
                (Forbidden::Origin, PageOrigin::Unknown) => (&app.counters.origins_refused, UNKNOWN_ORIGIN),
                (Forbidden::Origin, PageOrigin::Page(_) | PageOrigin::Invalid) => {
                    (&app.counters.origins_refused, FOREIGN_ORIGIN)
                }
            };
            counter.increment();
            CloseReason::Forbidden(text)
        }
    })
}

/// Serves a client until its flow ends, or hands its connection over to its earlier flow.
pub(crate) async fn serve(app: &App, mut connection: Box<Connection>, opening: &Opening) {
    if opening.is_deferred
        && opening.permission.is_ok()
        && let Err(reason) = wait_for_first(app, &mut connection).await
    {
        return refuse(app, connection, &reason).await;
    }
    // An operator may have banned the address since the request.
    if app.admission.is_banned(Instant::now(), opening.client.ip()) {
        return refuse(app, connection, &CloseReason::Forbidden(BANNED)).await;
    }
    let Err(connection) = resume(app, opening, connection).await else { return };
    let slot = match &opening.permission {
        Ok(permission) => match count(app, opening) {
            Ok(()) => take_slot(app, permission).await,
            Err(excess) => Err(excess),
        },
        Err(reason) => Err(reason.clone()),
    };
    match slot {
        Ok(grant) => relay(app, connection, &grant, opening).await,
        Err(reason) => refuse(app, connection, &reason).await,
    }
}

/// Waits for the first datagram from a client that opens several connections and continues with one of them. The other
/// connections take neither a slot nor a socket.
async fn wait_for_first(app: &App, connection: &mut Connection) -> Result<(), CloseReason> {
    let time_limit = app.limits.header_timeout;
    let end = tokio::select! {
        first = timeout(time_limit, connection.wait_for_first()) => match first {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(FromClient::Text)) => FlowEnd::TextMessage,
            Ok(Err(FromClient::Oversized { len })) => {
                FlowEnd::MessageTooBig { len, max: app.admission.limits().max_datagram }
            }
            Ok(Err(FromClient::Closed)) => FlowEnd::ClientClosed,
            Ok(Err(FromClient::Vanished)) => FlowEnd::ClientVanished,
            Ok(Err(_)) => FlowEnd::ProtocolViolation,
            Err(_) => FlowEnd::Idle(time_limit),
        },
        () = app.drain.cancelled() => FlowEnd::ShuttingDown,
    };
    Err(CloseReason::Flow(end))
}

/// Counts a client that needs a new flow as new, unless its request has already been counted.
fn count(app: &App, opening: &Opening) -> Result<(), CloseReason> {
    if opening.is_counted { Ok(()) } else { app.admission.check_new(Now::read(), opening.client.ip()) }
}

/// Serves an admitted client. The grant is held until the connection is closed, so that clients being closed still
/// count.
async fn relay(app: &App, connection: Box<Connection>, grant: &Grant, opening: &Opening) {
    let target = &*grant.target;
    let source = target.settings.source.into();
    let max_datagram = grant.limits.longest_datagram(target.settings.kind);
    let server = ServerSocket::connect(target.address, grant.client.ip(), source, max_datagram);
    let server = match server.await {
        Ok(server) => server,
        Err(error) => {
            warn!(target_name = %target.name, %error, "cannot open a UDP socket to the game server: the client is refused");
            return refuse(app, connection, &CloseReason::NoSocket).await;
        }
    };
    let (number, begun, transport) = (app.next_flow(), Instant::now(), connection.kind());
    let client = app.addresses.show(grant.client);
    info!(%client, target_name = %target.name, %transport, flow = number, "client connected");
    let Ended { reason, client, transport, forwarded, connection } =
        run(app, opening, grant, number, server, connection).await;
    let reason = CloseReason::Flow(reason);
    info!(
        client = %app.addresses.show(client),
        target_name = %target.name,
        %transport,
        flow = number,
        seconds = begun.elapsed().as_secs(),
        bytes_to_server = forwarded.to_server,
        bytes_to_client = forwarded.to_client,
        reason = reason.text(),
        "client closed"
    );
    if let Some(connection) = connection {
        app.counters.closed(reason.kind());
        connection.close(&reason).await;
    }
}

/// Closes the connection of a refused client.
async fn refuse(app: &App, connection: Box<Connection>, reason: &CloseReason) {
    app.counters.closed(reason.kind());
    app.log_refusal(connection.client(), connection.kind(), reason.class(), reason.text());
    connection.close(reason).await;
}

/// Hands the connection over to the flow that the client resumes, if the flow exists. The secret is evidence of an
/// earlier admission, so no token is needed. Returns the connection if there is no such flow.
async fn resume(app: &App, opening: &Opening, connection: Box<Connection>) -> Result<(), Box<Connection>> {
    let secret = opening.resume.secret().filter(|_| opening.has_control);
    let target = match &opening.permission {
        Ok(permission) => Some(permission.target_name().as_str()),
        // A flow continues even if its target is removed from the configuration.
        Err(CloseReason::UnknownTarget { requested, .. }) => Some(requested.as_str()),
        Err(_) => None,
    };
    let flow = secret.zip(target).and_then(|(secret, target)| app.resumable().find(secret, target).cloned());
    let Some(flow) = flow else { return Err(connection) };
    if let Some(former) = flow.attach(connection)? {
        let reason = CloseReason::Resumed;
        app.counters.closed(reason.kind());
        former.close(&reason).await;
    }
    Ok(())
}

/// Takes a slot for a flow. On a full relay, it takes the slot of the flow that has waited longest for its client.
async fn take_slot(app: &App, permission: &Permission) -> Result<Grant, CloseReason> {
    // The checks come first, so that a client refused for another reason evicts no flow.
    let mut candidate = match app.admission.candidate(Now::read(), permission)?.take_slot() {
        Ok(grant) => return Ok(grant),
        Err(candidate) => candidate,
    };
    let full = candidate.excess();
    let Some(evicted) = app.resumable().evict().cloned() else { return Err(full) };
    candidate.claim_slot();
    evicted.evict();
    let again = async {
        loop {
            app.admission.freed().await;
            match candidate.take_slot() {
                Ok(grant) => return Ok(grant),
                Err(again) => candidate = again,
            }
        }
    };
    timeout(EVICTION_TIMEOUT, again).await.unwrap_or(Err(full))
}

async fn run(
    app: &App,
    opening: &Opening,
    grant: &Grant,
    number: u64,
    server: ServerSocket,
    connection: Box<Connection>,
) -> Ended {
    let target = &*grant.target;
    let secret = if opening.has_control { new_secret() } else { None };
    let proxy_header = ProxyHeader { client: grant.client, server: target.address };
    let now = Instant::now();
    let mut limits = grant.limits.of_flow(&target.settings);
    if opening.resume == Resume::Never {
        limits.resume_within = Duration::ZERO;
    }
    let proxy_header = target.settings.proxy_protocol.then_some(proxy_header);
    let setup = Setup {
        secret,
        proxy_header,
        inspect: awareness(app, grant, proxy_header.as_ref()),
        total: app.admission.total().clone(),
        shares: app.admission.total().shares_of(grant.client.ip()),
        closes_on_unreachable: opening.closes_on_unreachable,
    };
    let mut flow = Flow::new(limits, app.counters.target(&target.name), setup, now);
    if let Some(rate) = app.admission.shared_rate(grant, limits.rate, now) {
        flow.share_rate(rate);
    }
    let returning = Arc::new(Connections::new());
    if let Some(secret) = secret {
        app.resumable().insert(secret, target.name.as_str(), Arc::clone(&returning));
    }
    let (client, transport) = (connection.client(), connection.kind().name());
    let ender = Ender::Session(Arc::clone(&returning));
    let listed = app.open_flows.add(number, target.name.clone(), (client, transport), ender);
    // A ban ends the flows in the list. A flow that is not listed yet finds the ban here.
    if app.admission.is_banned(now, client.ip()) {
        listed.end(FlowEnd::Banned);
    }
    if app.drain.is_cancelled() {
        listed.drain();
    }
    let ended = Box::new(Driver::new(app, flow, server, connection, returning, (number, listed))).run().await;
    if let Some(secret) = secret {
        app.resumable().remove(&secret);
    }
    ended
}

/// Returns the inspector of the target's protocol, if the protocol is configured.
fn awareness(app: &App, grant: &Grant, proxy_header: Option<&ProxyHeader>) -> Option<Box<dyn Inspect>> {
    let kind = grant.target.settings.kind;
    if kind == ProtocolKind::Raw {
        return None;
    }
    let pongs = app.probes.pongs(&grant.target);
    let payload_max =
        grant.limits.payload_max().min(largest_behind(proxy_header.map_or(0, ProxyHeader::length)));
    let handshake = Handshake { payload_max, ..Handshake::default() };
    Some(Box::new(FlowInspector::new(kind, handshake, pongs, Instant::now())))
}

/// Returns a secret for a new flow, or `None` without random bytes: the flow can then not be resumed.
fn new_secret() -> Option<Secret> {
    let mut random = [0; 16];
    match getrandom::fill(&mut random) {
        Ok(()) => Some(Secret::new(random)),
        Err(error) => {
            warn!(%error, "the system provides no random bytes: this flow cannot be resumed");
            None
        }
    }
}
