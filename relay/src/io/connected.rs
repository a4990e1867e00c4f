//! What an open TCP connection is known by, and what it takes from others.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::OwnedSemaphorePermit;

use crate::admission::Share;

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
