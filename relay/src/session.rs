//! The session of one client, without IO: its input is time and events, its output are frames and datagrams.
//!
//! ```text
//!             text, too long, broken, idle, unresponsive, shutdown, closed, lost
//!   Open ────────────────────────────────────────────────────────────────────────▶ Closing(reason)
//! ```
//!
//! After each input the caller sends the queued output, checks [`Session::closing`], and waits until
//! [`Session::poll_timeout`] at the latest.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;

use crate::close::CloseReason;
use crate::config::Limits;
use crate::counters::{Counters, DropReason};
use crate::queue::{DropOldest, Pushed};

/// How many pings may remain unanswered.
const PINGS_UNANSWERED_MAX: u32 = 3;

/// Input from the client.
#[derive(Debug)]
pub(crate) enum FromClient {
    Binary(Bytes),
    Text,
    /// A ping or a pong.
    Control,
    /// A message that was too long to be read completely.
    Oversized {
        len: usize,
    },
    Violation,
    Closed,
    Vanished,
}

/// Input from the game server.
#[derive(Debug)]
pub(crate) enum FromServer<'a> {
    Datagram(&'a [u8]),
    /// A datagram that did not fit into the receive buffer.
    Oversized,
    /// The network reports that the game server is unreachable. It may be restarting.
    Unreachable,
    Failed,
}

/// The result of sending a datagram to the game server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sending {
    Sent,
    /// The system refused this datagram.
    Refused,
    Failed,
}

/// Output to the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ToClient {
    Binary(Bytes),
    Ping,
}

#[derive(Debug)]
enum Ping {
    Waiting,
    Due,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Session {
    limits: Limits,
    counters: Arc<Counters>,
    to_server: DropOldest<Bytes>,
    to_client: DropOldest<Bytes>,
    /// Why the session ends, once it does.
    closing: Option<CloseReason>,
    ping: Ping,
    next_ping: Instant,
    /// The time of the last datagram in either direction.
    last_traffic: Instant,
    /// The time of the last input from the client.
    last_received: Instant,
}

impl Session {
    pub(crate) fn new(limits: Limits, counters: Arc<Counters>, now: Instant) -> Self {
        counters.client_connected();
        Self {
            limits,
            counters,
            to_server: DropOldest::new(limits.queue),
            to_client: DropOldest::new(limits.queue),
            closing: None,
            ping: Ping::Waiting,
            next_ping: now + limits.ping_interval,
            last_traffic: now,
            last_received: now,
        }
    }

    pub(crate) fn handle_client(&mut self, now: Instant, input: FromClient) {
        self.last_received = now;
        match input {
            FromClient::Binary(message) if message.len() > self.limits.max_datagram => {
                self.reject_size(message.len())
            }
            FromClient::Oversized { len } => self.reject_size(len),
            FromClient::Binary(message) if message.is_empty() => {
                self.counters.dropped(DropReason::EmptyMessage)
            }
            FromClient::Binary(message) => {
                self.last_traffic = now;
                // Copied, because the message is a slice that would keep its whole read buffer alive.
                if self.to_server.push(Bytes::copy_from_slice(&message)) == Pushed::DroppedOldest {
                    self.counters.dropped(DropReason::ServerQueueFull);
                }
            }
            FromClient::Control => {}
            FromClient::Text => self.close(CloseReason::TextMessage),
            FromClient::Violation => self.close(CloseReason::ProtocolViolation),
            FromClient::Closed => self.close(CloseReason::ClientClosed),
            FromClient::Vanished => self.close(CloseReason::ClientVanished),
        }
    }

    pub(crate) fn handle_server(&mut self, now: Instant, input: FromServer<'_>) {
        match input {
            FromServer::Datagram(datagram) => {
                self.last_traffic = now;
                if self.to_client.push(Bytes::copy_from_slice(datagram)) == Pushed::DroppedOldest {
                    self.counters.dropped(DropReason::ClientQueueFull);
                }
            }
            FromServer::Oversized => self.counters.dropped(DropReason::DatagramTooBig),
            FromServer::Unreachable => self.counters.unreachable.increment(),
            FromServer::Failed => self.close(CloseReason::UdpFailed),
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if now >= self.idle_at() {
            self.close(CloseReason::Idle(self.limits.idle_timeout));
        } else if now >= self.last_received + self.unresponsive_after() {
            self.close(CloseReason::Unresponsive(self.unresponsive_after()));
        } else if now >= self.next_ping {
            self.ping = Ping::Due;
            self.next_ping = now + self.limits.ping_interval;
        }
    }

    pub(crate) fn handle_shutdown(&mut self) {
        self.close(CloseReason::ShuttingDown);
    }

    /// When [`Session::handle_timeout`] is due. It only ever moves later, except by that call itself.
    pub(crate) fn poll_timeout(&self) -> Instant {
        self.idle_at().min(self.next_ping)
    }

    /// The next datagram to the game server; [`Session::handle_sending`] removes it.
    pub(crate) fn next_to_server(&self) -> Option<&[u8]> {
        self.to_server.front().map(AsRef::as_ref)
    }

    /// Reports the result of sending [`Session::next_to_server`].
    pub(crate) fn handle_sending(&mut self, sending: Sending) {
        let len = self.to_server.pop().map_or(0, |datagram| datagram.len());
        match sending {
            Sending::Sent => self.counters.sent_to_server(len),
            Sending::Refused => self.counters.dropped(DropReason::SendRefused),
            Sending::Failed => self.close(CloseReason::UdpFailed),
        }
    }

    /// The next frame to the client.
    pub(crate) fn next_to_client(&mut self) -> Option<ToClient> {
        if matches!(self.ping, Ping::Due) {
            self.ping = Ping::Waiting;
            return Some(ToClient::Ping);
        }
        let datagram = self.to_client.pop()?;
        self.counters.sent_to_client(datagram.len());
        Some(ToClient::Binary(datagram))
    }

    /// How many datagrams of the game server fit before the oldest is dropped.
    pub(crate) fn room_to_client(&self) -> usize {
        self.to_client.room()
    }

    /// Why the session ends, once it does.
    pub(crate) const fn closing(&self) -> Option<&CloseReason> {
        self.closing.as_ref()
    }

    fn reject_size(&mut self, len: usize) {
        self.close(CloseReason::MessageTooBig { len, max: self.limits.max_datagram });
    }

    /// Closes with the first reason; later ones are its consequences.
    fn close(&mut self, reason: CloseReason) {
        self.closing.get_or_insert(reason);
    }

    fn idle_at(&self) -> Instant {
        self.last_traffic + self.limits.idle_timeout
    }

    fn unresponsive_after(&self) -> Duration {
        self.limits.ping_interval * PINGS_UNANSWERED_MAX
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.counters.client_disconnected();
    }
}

#[cfg(test)]
mod tests;
