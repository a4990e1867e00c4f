//! One client, from its request to its close.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::ws::WebSocket;
use tokio::sync::OwnedSemaphorePermit;
use tracing::{debug, warn};

use super::app::App;
use super::udp::ServerSocket;
use super::{drive, websocket};
use crate::close::CloseReason;
use crate::session::Session;
use crate::target::TargetName;

/// An admitted client.
struct Admission<'a> {
    name: &'a TargetName,
    address: SocketAddr,
    _slot: OwnedSemaphorePermit,
}

/// Serves a client until its session ends.
pub(crate) async fn serve(app: &App, mut socket: WebSocket, target: Option<String>) {
    // The slot is held until the WebSocket is closed, so that closing clients count too.
    let admission = admit(app, target);
    let reason = match &admission {
        Ok(admission) => relay(app, &mut socket, admission).await,
        Err(reason) => reason.clone(),
    };
    app.counters.closed(reason.kind());
    debug!(reason = reason.text(), "client closed");
    websocket::close(socket, &reason).await;
}

fn admit(app: &App, target: Option<String>) -> Result<Admission<'_>, CloseReason> {
    let requested = target.ok_or(CloseReason::MissingTarget)?;
    let Some((name, address)) = app.targets.find(&requested) else {
        return Err(CloseReason::UnknownTarget {
            requested,
            offered: app.targets.names().cloned().collect(),
        });
    };
    let slot = Arc::clone(&app.slots)
        .try_acquire_owned()
        .map_err(|_| CloseReason::TooManyClients { max: app.limits.max_clients })?;
    Ok(Admission { name, address, _slot: slot })
}

async fn relay(app: &App, socket: &mut WebSocket, admission: &Admission<'_>) -> CloseReason {
    let Admission { name, address, .. } = admission;
    let mut server = match ServerSocket::connect(*address, &app.limits).await {
        Ok(server) => server,
        Err(error) => {
            warn!(target_name = %name, %error, "cannot open a UDP socket");
            return CloseReason::UdpFailed;
        }
    };
    debug!(target_name = %name, "client connected");
    let mut session = Session::new(app.limits, Arc::clone(&app.counters), Instant::now());
    drive::run(socket, &mut server, &mut session, &app.stop).await
}
