//! The sans-IO core of the relay: the flow of each client, and the table of flows that can be resumed.
//!
//! A [`Flow`] connects one client to one game server. It has no socket and no clock. Pass input to
//! [`Flow::handle_client`], [`Flow::handle_server`] and [`Flow::handle_timeout`], and take output from
//! [`Flow::poll_to_client`] and [`Flow::poll_to_server`]. If the connection to the client is lost, another one can
//! replace it. The game server always sees the same source address.
//!
//! A [`ResumeTable`] finds the flow of a client that returns with the flow's [`Secret`].
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
    /// A binary message, which is one datagram.
    Datagram(Bytes),
    /// A text message.
    Text,
    /// A ping or a pong.
    Control,
    /// A request for the first control message of the connection, which an unreliable transport may have lost.
    FlowRequest,
    /// A message that exceeds the maximum length of the transport, and was not read completely.
    Oversized {
        /// The length of the message in bytes.
        len: usize,
    },
    /// A datagram for the session of another connection.
    ForeignSession,
    /// The transport dropped its oldest datagrams, because they were not read in time.
    Dropped {
        /// The number of datagrams.
        count: u64,
    },
    /// The client has not acknowledged outstanding data for this time.
    Unacknowledged {
        /// The time for which data has been outstanding.
        time: Duration,
    },
    /// A violation of the transport's protocol.
    Violation,
    /// The client closes its connection.
    Closed,
    /// The client's connection was lost.
    Vanished,
}

/// Input from the game server.
#[derive(Debug, Clone, Copy)]
pub enum FromServer<'a> {
    /// A datagram from the game server.
    Datagram(&'a [u8]),
    /// A datagram that did not fit into the receive buffer.
    Oversized,
    /// A datagram with another source, which arrived before the socket was connected.
    Foreign,
    /// A report by the network or this machine that the game server is unreachable. The server may be restarting.
    Unreachable(Unreachable),
    /// A permanent failure to receive on the socket.
    Failed,
}

/// The result of sending a [`Batch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// The batch was sent.
    Sent,
    /// The system temporarily refused to send the batch.
    Refused,
    /// The socket has failed permanently.
    Failed,
}

/// Output to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToClient {
    /// A binary message, which is one datagram.
    Datagram(Bytes),
    /// A ping, if the transport has pings.
    Ping,
    /// A text message: one JSON object. Only flows with a [`Secret`] have control messages.
    Control(String),
}

/// Datagrams to the game server, all of the same length except the last, which may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch<'a> {
    /// The datagrams, contiguously.
    pub contents: &'a [u8],
    /// The length of each datagram in bytes.
    pub segment: usize,
    /// The number of datagrams.
    pub count: usize,
}

/// The settings of one flow.
#[derive(Debug, Default)]
pub struct Setup {
    /// The secret with which a client that supports [`FLOW_PROTOCOL`] resumes its flow.
    pub secret: Option<Secret>,
    /// The PROXY header, for game servers that read it.
    pub proxy_header: Option<ProxyHeader>,
    /// The inspection of datagrams, if the target's protocol is known.
    pub inspect: Option<Box<dyn Inspect>>,
    /// The rate limit of all clients together.
    pub total: TotalRate,
    /// The client's share of the total rate.
    pub shares: Shares,
    /// True if the flow ends when the network reports the game server as absent, before the server has sent anything.
    pub closes_on_unreachable: bool,
}

/// Bytes of datagrams that were forwarded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// Bytes forwarded to the game server, without PROXY headers.
    pub to_server: u64,
    /// Bytes forwarded to the client.
    pub to_client: u64,
}

/// Decides on each datagram of one flow by the protocol of its target. A flow without inspection forwards everything.
pub trait Inspect: Send + fmt::Debug {
    /// Decides on a datagram from the client.
    fn to_server(&mut self, now: Instant, datagram: &[u8]) -> Verdict;

    /// Decides on a datagram from the game server.
    fn to_client(&mut self, now: Instant, datagram: &[u8]) -> Verdict;

    /// Returns true if a datagram from the client begins a connection.
    fn begins_connection(&self, datagram: &[u8]) -> bool;

    /// Returns the datagram that notifies the game server of the client's departure, if the protocol has one.
    fn disconnect_datagram(&self) -> Option<Bytes>;

    /// Sets the maximum length of a datagram that the client's transport carries unfragmented; `None` is unlimited.
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
    /// The maximum length in bytes of a datagram to the client; `None` is unlimited.
    pub max_datagram: Option<usize>,
    /// The maximum length in bytes of a datagram that is carried unfragmented, in either direction; `None` is
    /// unlimited. The MTU in handshakes is clamped to it.
    pub max_unfragmented: Option<usize>,
    /// True if the transport carries control messages as datagrams, with the prefix [`CONTROL_PREFIX`].
    pub has_control_datagrams: bool,
}

impl TransportLimits {
    /// Returns the reason why a datagram cannot be sent to the client, or `None` if it can.
    fn refuses(&self, datagram: &[u8]) -> Option<DropReason> {
        if self.has_control_datagrams && datagram.starts_with(CONTROL_PREFIX) {
            return Some(DropReason::Reserved);
        }
        let is_too_big = self.max_datagram.is_some_and(|max| datagram.len() > max);
        is_too_big.then_some(DropReason::DatagramTooBig)
    }
}
