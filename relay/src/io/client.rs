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

/// What a client holds.
struct Admission<'a> {
    name: &'a TargetName,
    address: SocketAddr,
    _place: OwnedSemaphorePermit,
}

/// Serves a client to its end.
pub(crate) async fn serve(app: &App, mut socket: WebSocket, target: Option<String>) {
    // The place is held until the WebSocket is closed, so that closing ones count, too.
    let admission = admit(app, target);
    let reason = match &admission {
        Ok(admission) => relay(app, &mut socket, admission).await,
        Err(refused) => refused.clone(),
    };
    app.counters.closed(reason.kind());
    debug!(reason = reason.words(), "client closed");
    websocket::close(socket, &reason).await;
}

fn admit(app: &App, target: Option<String>) -> Result<Admission<'_>, CloseReason> {
    let asked = target.ok_or(CloseReason::MissingTarget)?;
    let Some((name, address)) = app.targets.find(&asked) else {
        return Err(CloseReason::UnknownTarget { asked, offered: app.targets.names().cloned().collect() });
    };
    let place = Arc::clone(&app.places)
        .try_acquire_owned()
        .map_err(|_| CloseReason::TooManyClients { max: app.limits.max_clients })?;
    Ok(Admission { name, address, _place: place })
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
