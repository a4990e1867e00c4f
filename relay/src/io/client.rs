//! One client, from its request to its close.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::ws::WebSocket;
use tracing::{debug, warn};

use super::app::App;
use super::udp::ServerSocket;
use super::{drive, websocket};
use crate::admission::{Grant, ResolvedTarget};
use crate::close::CloseReason;
use crate::session::Session;

/// Serves a client until its session ends.
pub(crate) async fn serve(app: &App, mut socket: WebSocket, admitted: Result<Grant, CloseReason>) {
    // The grant is held until the WebSocket is closed, so that closing clients count too.
    let reason = match &admitted {
        Ok(grant) => relay(app, &mut socket, grant).await,
        Err(reason) => reason.clone(),
    };
    app.counters.closed(reason.kind());
    debug!(reason = reason.text(), "client closed");
    websocket::close(socket, &reason).await;
}

async fn relay(app: &App, socket: &mut WebSocket, grant: &Grant) -> CloseReason {
    let ResolvedTarget { name, address, .. } = &*grant.target;
    let mut server = match ServerSocket::connect(*address, &grant.limits).await {
        Ok(server) => server,
        Err(error) => {
            warn!(target_name = %name, %error, "cannot open a UDP socket");
            return CloseReason::UdpFailed;
        }
    };
    debug!(target_name = %name, client = %grant.client, "client connected");
    let mut session = Session::new(grant.limits, Arc::clone(&app.counters), Instant::now());
    drive::run(socket, &mut server, &mut session, &app.stop).await
}
