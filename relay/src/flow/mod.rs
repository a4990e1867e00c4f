//! The sans-IO core of the relay: the flow of each client, and the table of flows that can be resumed.
//!
//! A [`Flow`] connects one client to one game server. It has no socket and no clock: input is passed to
//! [`Flow::handle_client`], [`Flow::handle_server`] and [`Flow::handle_timeout`], and output is taken from
//! [`Flow::poll_to_client`] and [`Flow::poll_to_server`]. The connection to the client can be lost and replaced; the
//! game server always sees the same source address.
//!
//! A [`ResumeTable`] finds the flow of a client that returns with its [`Secret`].
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Instant;
//!
//! use rakwire_relay::flow::{Flow, FlowLimits, FromClient, FromServer, Sending, Setup, TargetCounters, ToClient};
//!
//! let now = Instant::now();
//! let counters = Arc::new(TargetCounters::default());
//! let mut flow = Flow::new(FlowLimits::default(), Arc::clone(&counters), Setup::default(), now);
//!
//! flow.handle_client(now, FromClient::Datagram(b"hello"[..].into()));
//! let mut buffer = Vec::new();
//! let batch = flow.poll_to_server(now, 16, &mut buffer).ok_or("nothing to send")?;
//! assert_eq!((batch.contents, batch.count), (&b"hello"[..], 1));
//! flow.handle_sent(1, Sending::Sent);
//!
//! flow.handle_server(now, FromServer::Datagram(b"welcome"));
//! assert_eq!(flow.poll_to_client(now), Some(ToClient::Datagram(b"welcome"[..].into())));
//! flow.handle_sent_to_client(7);
//! assert_eq!(counters.snapshot().to_client.bytes, 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[macro_use]
mod counters;
mod control;
mod machine;
pub(crate) mod proxy_header;
mod queue;
pub(crate) mod rate;

#[cfg(test)]
mod tests;

use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;

pub use self::control::{
    CONTROL_PREFIX, FLOW_PROTOCOL, FLOW_REQUEST, ResumeTable, Secret, SecretSyntaxError,
};
pub use self::counters::{
    Counter, Direction, DropReason, FlowEnd, TargetCounters, TargetSnapshot, Traffic, Unreachable,
};
pub use self::machine::Flow;
pub use self::proxy_header::{ProxyHeader, Source};
pub use self::rate::{FlowLimits, Rate, SharedRate, Shares, TotalRate};
use crate::protocol::{FlowInspector, Verdict};

/// Input from the client.
#[derive(Debug, Clone)]
pub enum FromClient {
    /// A binary message.
    Datagram(Bytes),
    /// A text message.
    Text,
    /// A ping or a pong.
    Control,
    /// The client requests the first control message of its connection, which an unreliable transport may have lost.
    FlowRequest,
    /// A message that was too long to be read completely.
    Oversized {
        /// Its length in bytes.
        len: usize,
    },
    /// A datagram of another session, which this connection does not have.
    ForeignSession,
    /// The transport dropped its oldest datagrams, because they were not read in time.
    Dropped {
        /// The number of datagrams.
        count: u64,
    },
    /// The client has left outstanding data unacknowledged for this time.
    Unacknowledged {
        /// The duration.
        time: Duration,
    },
    /// A broken frame.
    Violation,
    /// The client closes its connection.
    Closed,
    /// The connection of the client is lost.
    Vanished,
}

/// Input from the game server.
#[derive(Debug, Clone, Copy)]
pub enum FromServer<'a> {
    /// A datagram.
    Datagram(&'a [u8]),
    /// A datagram that did not fit into the receive buffer.
    Oversized,
    /// A datagram of another source, which arrived before the socket was connected.
    Foreign,
    /// The network or this machine reports the game server as unreachable. It may be restarting.
    Unreachable(Unreachable),
    /// The socket can no longer receive.
    Failed,
}

/// The result of sending a [`Batch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// It was sent.
    Sent,
    /// The system refused it for a temporary reason.
    Refused,
    /// The socket can no longer send.
    Failed,
}

/// Output to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToClient {
    /// A binary message.
    Datagram(Bytes),
    /// A ping.
    Ping,
    /// A text message: one JSON object. Only flows with a [`Secret`] send these.
    Control(String),
}

/// Datagrams to the game server, all of the same length except the last, which may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch<'a> {
    /// The datagrams, one after the other.
    pub contents: &'a [u8],
    /// The length of each in bytes.
    pub segment: usize,
    /// The number of datagrams.
    pub count: usize,
}

/// The settings of one flow.
#[derive(Debug, Default)]
pub struct Setup {
    /// The secret by which a client with [`FLOW_PROTOCOL`] resumes its flow.
    pub secret: Option<Secret>,
    /// The header for game servers that read the PROXY protocol.
    pub proxy_header: Option<ProxyHeader>,
    /// The inspection of datagrams, if the protocol of the target is known.
    pub inspect: Option<Box<dyn Inspect>>,
    /// The rate limit of all clients together.
    pub total: TotalRate,
    /// The shares of the client in that rate.
    pub shares: Shares,
    /// True if the flow ends when the network reports the game server as absent before it has sent anything.
    pub closes_on_unreachable: bool,
}

/// Bytes of datagrams that were forwarded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// To the game server, without PROXY headers.
    pub to_server: u64,
    /// To the client.
    pub to_client: u64,
}

/// Decides about each datagram of one flow by the protocol of its target. A flow without it passes everything.
pub trait Inspect: Send + fmt::Debug {
    /// Decides about a datagram of the client.
    fn to_server(&mut self, now: Instant, datagram: &[u8]) -> Verdict;

    /// Decides about a datagram of the game server.
    fn to_client(&mut self, now: Instant, datagram: &[u8]) -> Verdict;

    /// Returns true if a datagram of the client begins a connection.
    fn begins_connection(&self, datagram: &[u8]) -> bool;

    /// Returns the datagram that notifies the game server of the client's departure, if the protocol has one.
    fn disconnect_datagram(&self) -> Option<Bytes>;

    /// Sets the longest datagram that the client's transport carries in one piece from now on; `None` is unlimited.
    fn set_max_datagram(&mut self, longest: Option<usize>);
}

impl Inspect for FlowInspector {
    fn to_server(&mut self, now: Instant, datagram: &[u8]) -> Verdict {
        self.handle_client(now, datagram)
    }

    fn to_client(&mut self, now: Instant, datagram: &[u8]) -> Verdict {
        Verdict::Pass(self.handle_server(now, datagram))
    }

    fn begins_connection(&self, datagram: &[u8]) -> bool {
        Self::begins_connection(self, datagram)
    }

    fn disconnect_datagram(&self) -> Option<Bytes> {
        Self::disconnect_datagram(self).map(Bytes::from)
    }

    fn set_max_datagram(&mut self, longest: Option<usize>) {
        Self::set_max_datagram(self, longest.and_then(|longest| u16::try_from(longest).ok()));
    }
}

/// The limits of a client's transport; unlimited by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransportLimits {
    /// The maximum length of a datagram to the client in bytes; `None` is unlimited.
    pub max_datagram: Option<usize>,
    /// The maximum length of a datagram that is carried in one piece, in either direction; `None` is unlimited. The MTU
    /// named in handshakes is clamped to it.
    pub max_unfragmented: Option<usize>,
    /// True if control messages are datagrams too, marked by [`CONTROL_PREFIX`].
    pub has_control_datagrams: bool,
}

impl TransportLimits {
    /// Returns the reason why a datagram cannot be sent to the client, if there is one.
    fn refuses(&self, datagram: &[u8]) -> Option<DropReason> {
        if self.has_control_datagrams && datagram.starts_with(CONTROL_PREFIX) {
            return Some(DropReason::Reserved);
        }
        let is_too_big = self.max_datagram.is_some_and(|max| datagram.len() > max);
        is_too_big.then_some(DropReason::DatagramTooBig)
    }
}
