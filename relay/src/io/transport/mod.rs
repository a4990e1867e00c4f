//! The transports between a client and the relay.
//!
//! Flows treat all transports alike. Input read from a [`Connection`] is passed to
//! [`Flow::handle_client`](crate::flow::Flow::handle_client), and the connection writes the output of a [`Flow`].
//! `Connected` describes the client of an open connection, and holds the slot of the connection.

mod webrtc;
mod websocket;
mod webtransport;

use std::future::poll_fn;
use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::task::task_tracker::TaskTrackerToken;

pub(crate) use self::webrtc::{Inbox, Port, WebRtcTransport};
use self::websocket::Broken;
pub(crate) use self::websocket::{WebSocketTransport, configure};
pub(crate) use self::webtransport::{OtherStreams, Streams, WebTransportTransport};
use crate::admission::Share;
use crate::close::CloseReason;
use crate::counters::{Counters, OpenTransport, TransportKind};
use crate::flow::{Flow, FromClient, TransportLimits};

/// The transport of one client.
#[derive(Debug)]
#[expect(clippy::enum_variant_names, reason = "the transports have these names")]
pub(crate) enum Transport {
    WebSocket(Box<WebSocketTransport>),
    WebRtc(Box<WebRtcTransport>),
    WebTransport(WebTransportTransport),
}

impl Transport {
    const fn kind(&self) -> TransportKind {
        match self {
            Self::WebSocket(_) => TransportKind::WebSocket,
            Self::WebRtc(_) => TransportKind::WebRtc,
            Self::WebTransport(_) => TransportKind::WebTransport,
        }
    }
}

/// The connection of one client, and the resources that it holds.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The address of the client, which may differ from the connection's peer address.
    client: SocketAddr,
    transport: Transport,
    /// Input that was read before the flow existed.
    first: Option<FromClient>,
    /// Number of datagrams that the transport had dropped before the flow existed.
    dropped: u64,
    _open: OpenTransport,
    _tracked: TaskTrackerToken,
    _connected: Connected,
}

impl Connection {
    pub(crate) fn new(
        client: SocketAddr,
        transport: Transport,
        counters: &Arc<Counters>,
        tracked: TaskTrackerToken,
        connected: Connected,
    ) -> Self {
        let open = OpenTransport::new(counters, transport.kind());
        Self {
            client,
            transport,
            first: None,
            dropped: 0,
            _open: open,
            _tracked: tracked,
            _connected: connected,
        }
    }

    pub(crate) const fn client(&self) -> SocketAddr {
        self.client
    }

    pub(crate) const fn kind(&self) -> TransportKind {
        self.transport.kind()
    }

    /// Waits until the client sends the first input for its flow, which the next [`Connection::poll_read`] returns. The
    /// error is input that ends the connection before that.
    pub(crate) async fn wait_for_first(&mut self) -> Result<(), FromClient> {
        loop {
            match poll_fn(|context| self.poll_transport(context)).await {
                FromClient::Control => {}
                FromClient::ForeignSession => self.dropped += 1,
                FromClient::Dropped { count } => self.dropped += count,
                first @ (FromClient::Datagram(_) | FromClient::FlowRequest) => {
                    self.first = Some(first);
                    return Ok(());
                }
                end @ (FromClient::Text
                | FromClient::Oversized { .. }
                | FromClient::Unacknowledged { .. }
                | FromClient::Violation
                | FromClient::Closed
                | FromClient::Vanished) => return Err(end),
            }
        }
    }

    /// Returns the next input of the client.
    pub(crate) fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<FromClient> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(first);
        }
        // Earlier drops are reported only now, because the client had no flow that could count them.
        if self.dropped > 0 {
            return Poll::Ready(FromClient::Dropped { count: mem::take(&mut self.dropped) });
        }
        self.poll_transport(context)
    }

    fn poll_transport(&mut self, context: &mut Context<'_>) -> Poll<FromClient> {
        match &mut self.transport {
            Transport::WebSocket(transport) => transport.poll_read(context),
            Transport::WebRtc(transport) => transport.poll_read(context),
            Transport::WebTransport(transport) => transport.poll_read(context),
        }
    }

    /// Returns the current limits of the transport.
    pub(crate) fn transport_limits(&self) -> TransportLimits {
        match &self.transport {
            Transport::WebSocket(_) => TransportLimits::default(),
            Transport::WebRtc(_) => WebRtcTransport::LIMITS,
            Transport::WebTransport(transport) => transport.transport_limits(),
        }
    }

    /// Writes the output of `flow` until the transport accepts no more.
    pub(crate) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        flow: &mut Flow,
        now: Instant,
    ) -> Poll<Result<(), Broken>> {
        match &mut self.transport {
            Transport::WebSocket(transport) => transport.poll_write(context, flow, now),
            Transport::WebRtc(transport) => transport.poll_write(context, flow, now),
            Transport::WebTransport(transport) => transport.poll_write(context, flow, now),
        }
    }

    /// Writes the output of `flow` like `poll_write`, but may leave a small amount in the transport's buffer.
    pub(crate) fn poll_fill(
        &mut self,
        context: &mut Context<'_>,
        flow: &mut Flow,
        now: Instant,
    ) -> Poll<Result<(), Broken>> {
        match &mut self.transport {
            Transport::WebSocket(transport) => transport.poll_fill(context, flow, now),
            Transport::WebRtc(transport) => transport.poll_fill(flow, now),
            Transport::WebTransport(transport) => transport.poll_write(context, flow, now),
        }
    }

    /// Closes the connection with a reason, if the client is still connected.
    pub(crate) async fn close(self, reason: &CloseReason) {
        // The future is boxed, because otherwise every session would reserve space for closing each transport.
        match self.transport {
            Transport::WebSocket(transport) => Box::pin(transport.close(reason)).await,
            Transport::WebRtc(transport) => Box::pin(transport.close(reason)).await,
            Transport::WebTransport(transport) => Box::pin(transport.close(reason)).await,
        }
    }
}

/// An open connection of a client, on any transport. A WebSocket that takes over the connection keeps a clone.
#[derive(Debug, Clone)]
pub(crate) struct Connected {
    peer: SocketAddr,
    has_proxy_header: bool,
    is_banned: bool,
    is_websocket: Arc<AtomicBool>,
    _place: Arc<Place>,
}

/// The limited resources that an open connection holds.
#[derive(Debug)]
struct Place {
    _permit: OwnedSemaphorePermit,
    _share: Option<Share>,
}

impl Connected {
    pub(super) fn new(peer: SocketAddr, permit: OwnedSemaphorePermit, share: Option<Share>) -> Self {
        let place = Arc::new(Place { _permit: permit, _share: share });
        Self { peer, has_proxy_header: false, is_banned: false, is_websocket: Arc::default(), _place: place }
    }

    /// Records that a trusted proxy has named the client in a PROXY protocol header.
    pub(super) fn with_proxy_header(self) -> Self {
        Self { has_proxy_header: true, ..self }
    }

    /// Returns true if the connection began with a PROXY protocol header that names a client.
    pub(super) const fn has_proxy_header(&self) -> bool {
        self.has_proxy_header
    }

    /// Marks the connection of a banned address, which is open only to notify the client.
    pub(super) fn banned(self) -> Self {
        Self { is_banned: true, ..self }
    }

    /// Returns true if the address was banned when the connection was opened.
    pub(super) const fn is_banned(&self) -> bool {
        self.is_banned
    }

    /// Returns the client that a trusted proxy names in a PROXY protocol header, or else the remote address of the TCP
    /// connection.
    pub(crate) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Marks that the connection no longer carries HTTP.
    pub(crate) fn set_websocket(&self) {
        self.is_websocket.store(true, Ordering::Relaxed);
    }

    /// Returns the flag that [`Connected::set_websocket`] sets.
    pub(super) fn is_websocket(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_websocket)
    }
}
