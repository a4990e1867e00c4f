//! The sans-IO core of the relay: the flow of each client, and the table of those that can be resumed.
//!
//! A [`Flow`] is one client's way to one game server. It has no socket and no clock: what arrives is passed to
//! [`Flow::handle_client`], [`Flow::handle_server`] and [`Flow::handle_timeout`], and what has to be sent is taken from
//! [`Flow::poll_to_client`] and [`Flow::poll_to_server`]. Its connection to the client can be lost and replaced; the
//! game server sees the same source address all the time.
//!
//! A [`ResumeTable`] finds the flow of a client that comes back with its [`Secret`].
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
//! flow.handle_taken(7);
//! assert_eq!(counters.snapshot().to_client.bytes, 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[macro_use]
mod counters;
mod control;
mod inspect;
mod machine;
pub(crate) mod proxy_header;
mod queue;
pub(crate) mod rate;

#[cfg(test)]
mod tests;

pub use self::control::{
    CONTROL_PREFIX, FLOW_PROTOCOL, FLOW_REQUEST, ResumeTable, Secret, SecretSyntaxError,
};
pub use self::counters::{
    Counter, Direction, DropReason, FlowEnd, TargetCounters, TargetSnapshot, Traffic, Unreachable,
};
pub use self::inspect::{Carriage, Inspect, Verdict};
pub use self::machine::{Batch, Carried, Flow, FromClient, FromServer, Sending, Setup, ToClient};
pub use self::proxy_header::{ProxyHeader, Source};
pub use self::rate::{FlowLimits, Rate, SharedRate, Shares, TotalRate};
