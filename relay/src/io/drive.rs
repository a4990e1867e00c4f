//! Runs a session between its two sockets, in one task.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::pin;
use std::task::Poll;
use std::time::Instant;

use axum::extract::ws::WebSocket;
use tokio::time::sleep_until;
use tokio_util::sync::CancellationToken;

use super::udp::ServerSocket;
use super::websocket;
use crate::close::CloseReason;
use crate::session::{FromClient, FromServer, Sending, Session};

/// How many datagrams are read before the client is served again.
const BATCH_MAX: usize = 64;

/// Runs `session` until it has a reason to close.
pub(crate) async fn run(
    socket: &mut WebSocket,
    server: &mut ServerSocket,
    session: &mut Session,
    stop: &CancellationToken,
) -> CloseReason {
    let mut timer = pin!(sleep_until(session.poll_timeout().into()));
    let mut stopped = pin!(stop.cancelled());
    loop {
        send_queued(server, session);
        // Write to the client before reading more for it, so that only a slow client loses datagrams.
        let written = poll_fn(|context| Poll::Ready(websocket::poll_write(context, socket, session))).await;
        if matches!(written, Poll::Ready(Err(_))) {
            session.handle_client(Instant::now(), FromClient::Vanished);
        }
        if let Some(reason) = session.closing() {
            return reason.clone();
        }
        let blocked = session.next_to_server().is_some();
        tokio::select! {
            input = poll_fn(|context| websocket::poll(context, socket, session)) => {
                session.handle_client(Instant::now(), input);
            }
            ready = server.readable() => match ready {
                Ok(()) => receive(server, session),
                Err(_) => session.handle_server(Instant::now(), FromServer::Failed),
            },
            // The next iteration sends, or gets the same error.
            _ = server.writable(), if blocked => {}
            () = timer.as_mut() => {
                session.handle_timeout(Instant::now());
                // Only `handle_timeout` can move the deadline forward, so it is not read after each datagram.
                timer.as_mut().reset(session.poll_timeout().into());
            }
            () = stopped.as_mut() => session.handle_shutdown(),
        }
    }
}

/// Sends queued datagrams until the socket would block.
fn send_queued(server: &ServerSocket, session: &mut Session) {
    while let Some(datagram) = session.next_to_server() {
        let mut outcome = server.try_send(datagram);
        if outcome == Poll::Ready(Sending::Refused) {
            // Usually this is an ICMP error caused by an earlier datagram. It has been reported now, so retry.
            session.handle_server(Instant::now(), FromServer::Unreachable);
            outcome = session.next_to_server().map_or(outcome, |datagram| server.try_send(datagram));
        }
        let Poll::Ready(sending) = outcome else { return };
        session.handle_sending(sending);
    }
}

/// Receives datagrams, but no more at once than fit into the queue, so that the client can be written to in between.
fn receive(server: &mut ServerSocket, session: &mut Session) {
    let now = Instant::now();
    for _ in 0..session.room_to_client().clamp(1, BATCH_MAX) {
        if server.try_recv(|input| session.handle_server(now, input)) == ControlFlow::Break(()) {
            return;
        }
    }
}
