//! Runs a session between its two sockets, in one task.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::pin;
use std::task::Poll;
use std::time::Instant;

use axum::extract::ws::WebSocket;
use tokio::time::sleep_until;
use tokio_util::sync::CancellationToken;

use super::udp::{SendOutcome, ServerSocket};
use super::websocket;
use crate::close::CloseReason;
use crate::session::{FromClient, FromServer, Sending, Session};

/// How many datagrams are read before the client gets its turn.
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
        // Before more is taken for the client it gets what there is, so that only a slow client loses any.
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
            // The next round sends, or meets the error again.
            _ = server.writable(), if blocked => {}
            () = timer.as_mut() => {
                session.handle_timeout(Instant::now());
                // Nothing else makes the next deadline come earlier, so it needs no look after each datagram.
                timer.as_mut().reset(session.poll_timeout().into());
            }
            () = stopped.as_mut() => session.handle_shutdown(),
        }
    }
}

/// Sends what waits, as far as the socket takes it.
fn send_queued(server: &ServerSocket, session: &mut Session) {
    while let Some(datagram) = session.next_to_server() {
        let mut outcome = server.try_send(datagram);
        if outcome == SendOutcome::Refused {
            // Mostly what the network said about an earlier datagram. Now that it is reported, this one has its chance.
            session.handle_server(Instant::now(), FromServer::Unreachable);
            outcome = session.next_to_server().map_or(outcome, |datagram| server.try_send(datagram));
        }
        session.handle_sending(match outcome {
            SendOutcome::Blocked => return,
            SendOutcome::Sent => Sending::Sent,
            SendOutcome::Refused => Sending::Refused,
            SendOutcome::Failed => Sending::Failed,
        });
    }
}

/// Takes what has arrived, but no more at once than fits the queue: the client gets its chance to make room.
fn receive(server: &mut ServerSocket, session: &mut Session) {
    let now = Instant::now();
    for _ in 0..session.room_to_client().clamp(1, BATCH_MAX) {
        if server.try_recv(|input| session.handle_server(now, input)) == ControlFlow::Break(()) {
            return;
        }
    }
}
