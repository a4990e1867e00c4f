//! The baseline for the relay: a WebSocket server that echoes every message with its own frame and system call.
//!
//! It uses the same WebSocket crate as the relay.

use std::net::Ipv4Addr;

use anyhow::Result;
use axum::Router;
use axum::extract::WebSocketUpgrade;
use axum::extract::ws::{Message, WebSocket};
use axum::response::Response;
use axum::routing::any;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;

use crate::role;

/// Runs until a line or the end of standard input.
pub(crate) fn run() -> Result<()> {
    // The same number of threads as the relay on the same cores.
    let runtime = tokio::runtime::Runtime::new()?;
    let result = runtime.block_on(serve());
    runtime.shutdown_background();
    result
}

async fn serve() -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    role::print_ready(listener.local_addr()?.port()).map_err(anyhow::Error::msg)?;
    let listener = listener.tap_io(|stream| {
        // A failure only makes the echo slower.
        let _ = stream.set_nodelay(true);
    });
    let app = Router::new().route("/ws", any(upgrade));
    tokio::select! {
        served = async { axum::serve(listener, app).await } => Ok(served?),
        ended = role::wait_for_line() => ended.map_err(anyhow::Error::msg),
    }
}

async fn upgrade(upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(echo)
}

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if matches!(message, Message::Binary(_)) && socket.send(message).await.is_err() {
            return;
        }
    }
}
