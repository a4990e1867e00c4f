//! What carries the datagrams of a client to the relay.
//!
//! All transports are the same to a flow: a [`Connection`] is read into
//! [`Flow::handle_client`](crate::flow::Flow::handle_client), and takes what it writes from a [`Flow`]. A connection by TCP is known by
//! something, and takes something from others.

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
use crate::flow::{Carriage, Flow, FromClient};

/// The transport of one client.
#[derive(Debug)]
#[expect(clippy::enum_variant_names, reason = "these are their names")]
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

/// The connection of one client, and what lives as long.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The address of the client, which may not be the other end of the connection.
    client: SocketAddr,
    transport: Transport,
    /// Input that was read before there was a flow.
    first: Option<FromClient>,
    /// What the transport had dropped by then.
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

    /// Waits until the client sends something for its flow, which the next [`Connection::poll_read`] returns; the
    /// error is the input that ends the connection before.
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

    /// The next input of the client.
    pub(crate) fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<FromClient> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(first);
        }
        // Only now has the client a flow that counts it.
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

    /// What it carries now.
    pub(crate) fn carriage(&self) -> Carriage {
        match &self.transport {
            Transport::WebSocket(_) => Carriage::default(),
            Transport::WebRtc(_) => WebRtcTransport::CARRIAGE,
            Transport::WebTransport(transport) => transport.carriage(),
        }
    }

    /// Writes what `flow` has for the client until the transport takes no more.
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

    /// The same, but what is small may stay in the buffer of the transport.
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

    /// Tells the client why its connection ends, if it is still there.
    pub(crate) async fn close(self, reason: &CloseReason) {
        // Boxed, or every session would have room for each transport's closing as long as it lives.
        match self.transport {
            Transport::WebSocket(transport) => Box::pin(transport.close(reason)).await,
            Transport::WebRtc(transport) => Box::pin(transport.close(reason)).await,
            Transport::WebTransport(transport) => Box::pin(transport.close(reason)).await,
        }
    }
}

/// An open connection. A WebSocket that takes it over keeps a clone.
#[derive(Debug, Clone)]
pub(crate) struct Connected {
    peer: SocketAddr,
    has_proxy_header: bool,
    is_banned: bool,
    is_websocket: Arc<AtomicBool>,
    _place: Arc<Place>,
}

/// What an open connection takes from others.
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

    /// The connection of a trusted proxy that has named this client in a PROXY protocol header.
    pub(super) fn with_proxy_header(self) -> Self {
        Self { has_proxy_header: true, ..self }
    }

    /// Whether it began with a PROXY protocol header that names a client.
    pub(super) const fn has_proxy_header(&self) -> bool {
        self.has_proxy_header
    }

    /// The connection of a banned address, which is there to be told so.
    pub(super) fn banned(self) -> Self {
        Self { is_banned: true, ..self }
    }

    /// Whether its address was banned when it was opened.
    pub(super) const fn is_banned(&self) -> bool {
        self.is_banned
    }

    /// The other end of the connection: the client that a trusted proxy names in a PROXY protocol header, or the other end
    /// of the TCP connection.
    pub(crate) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// From now on the connection carries no HTTP.
    pub(crate) fn set_websocket(&self) {
        self.is_websocket.store(true, Ordering::Relaxed);
    }

    /// What [`Connected::set_websocket`] sets.
    pub(super) fn is_websocket(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_websocket)
    }
}
