//! The driver for browsers: a connection through the relay.
//!
//! The browser runs `rakwire-wasm` when a datagram arrives or a timer expires, even between frames. Each frame polls
//! the events since the last frame, so the futures need no waker.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bevy::platform::time::Instant as Clock;
use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, QueueTarget, SendError};
use rakwire::raknet::{ConnectionStats, Delivery, DisconnectReason, RakNet, Receipt};
#[cfg(feature = "secure")]
use rakwire::secure::ServerTrust;
use rakwire_wasm::web::{self, Memory, Transport};
pub(super) use rakwire_wasm::web::{CloseReason as End, ConnectError as Failure};
use wasm_bindgen_futures::spawn_local;

use super::interface::{Driver, Happened};
use crate::outbox::DEFAULT_BACKLOG;

/// The default protocol version of this crate's servers.
const PROTOCOL_VERSION: u8 = 6;
/// The time for which a closing connection tries to send its queued messages: the core's default `close_timeout`.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The id of the connection. A [`web::Connection`] has only one connection, so its id can be any constant.
const ONLY: ConnectionId = ConnectionId::without_peer(0);

/// The settings of a [`RakwireClient`](crate::RakwireClient) in a browser.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientSettings {
    /// The password for the server, 0 to 255 bytes. Default: empty.
    ///
    /// It is sent unencrypted from the relay to the server, except in a secure connection.
    pub password: Vec<u8>,
    /// The server to trust. The connection is then encrypted end to end, or the attempt fails. Default: none,
    /// an unencrypted connection.
    #[cfg(feature = "secure")]
    pub trust: Option<ServerTrust>,
    /// The transport to the relay. Default: WebTransport, or a WebSocket if that is slow or unavailable.
    pub transport: Transport,
    /// The time without a datagram from the server after which the connection is lost. Default: 10 s.
    pub timeout: Option<Duration>,
    /// The memory of the connection. Default: [`Memory::RAKNET`].
    pub memory: Memory,
    /// True to close the connection when the user leaves the page. Default: true.
    pub ends_with_page: bool,
    /// The protocol version of the server; `None` detects it with a ping. Default: 6, the version of a
    /// `RakwireServer`.
    pub protocol_version: Option<u8>,
    /// The maximum number of queued reliable bytes of the connection. Default: [`DEFAULT_BACKLOG`].
    ///
    /// Each message counts 64 bytes more than its length. The client disconnects if the limit is exceeded.
    pub backlog: usize,
}

impl ClientSettings {
    /// Creates the default settings.
    ///
    /// # Errors
    /// Never fails in a browser. Elsewhere it fails if the operating system provides no random bytes.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            password: Vec::new(),
            #[cfg(feature = "secure")]
            trust: None,
            transport: Transport::Auto,
            timeout: None,
            memory: Memory::RAKNET,
            ends_with_page: true,
            protocol_version: Some(PROTOCOL_VERSION),
            backlog: DEFAULT_BACKLOG,
        })
    }

    fn options(&self) -> web::Options<'_> {
        let mut options = web::Options::default();
        options.password = &self.password;
        #[cfg(feature = "secure")]
        {
            options.trust = self.trust;
        }
        options.transport = self.transport;
        options.timeout = self.timeout;
        options.memory = self.memory;
        options.ends_with_page = self.ends_with_page;
        options.protocol_version = self.protocol_version;
        options
    }
}

type Opening = Pin<Box<dyn Future<Output = Result<web::Connection, Failure>>>>;

/// A connection that is opening or open.
enum State {
    Opening(Opening),
    Open(web::Connection),
}

thread_local! {
    /// The connections that are opening or open. They are bound to this thread, but resources must be `Send`.
    static CONNECTIONS: RefCell<HashMap<u64, State>> = RefCell::default();
}

/// The key of the next connection in [`CONNECTIONS`].
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A handle to a connection in [`CONNECTIONS`].
#[derive(Debug)]
pub(super) struct Connection {
    number: u64,
    start: Clock,
}

impl Connection {
    /// Starts connecting to a server of the relay.
    pub(super) fn connect(url: String, target: String, settings: ClientSettings) -> Self {
        let opening = async move { web::connect(&url, &target, settings.options()).await };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        CONNECTIONS.with_borrow_mut(|all| all.insert(number, State::Opening(Box::pin(opening))));
        Self { number, start: Clock::now() }
    }

    pub(super) fn transport(&self) -> Option<Transport> {
        self.open(web::Connection::transport)
    }

    /// Calls a function with the connection if it is open.
    fn open<T>(&self, work: impl FnOnce(&web::Connection) -> T) -> Option<T> {
        CONNECTIONS.with_borrow(|all| match all.get(&self.number) {
            Some(State::Open(connection)) => Some(work(connection)),
            Some(State::Opening(_)) | None => None,
        })
    }

    fn take(&self) -> Option<State> {
        CONNECTIONS.with_borrow_mut(|all| all.remove(&self.number))
    }

    /// Closes the connection, or cancels the attempt.
    fn close(&self) {
        // Dropping the future of an attempt cancels it.
        if let Some(State::Open(connection)) = self.take() {
            spawn_local(connection.disconnect());
        }
    }

    /// Polls the attempt. Returns `None` if the connection is already open or closed.
    fn poll_open(&self) -> Option<Poll<Result<web::Connection, Failure>>> {
        CONNECTIONS.with_borrow_mut(|all| match all.get_mut(&self.number) {
            Some(State::Opening(opening)) => Some(once(opening.as_mut())),
            Some(State::Open(_)) | None => None,
        })
    }
}

/// Polls a future once.
fn once<T>(future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Removes and returns the next event of an open connection.
fn next(connection: &web::Connection) -> Option<Happened<Failure, End>> {
    // `Ready(None)` means that the connection is closed. Messages received before that must still be read, so continue.
    if let Poll::Ready(Some((receipt, _))) = once(pin!(connection.recv_receipt())) {
        return Some(Happened::Settled(receipt));
    }
    if let Poll::Ready(Some(_)) = once(pin!(connection.mtu_changed())) {
        return Some(Happened::MtuChanged);
    }
    match once(pin!(connection.recv())) {
        Poll::Ready(Some(message)) => Some(Happened::Message(message.bytes)),
        Poll::Ready(None) => connection.closed_reason().map(Happened::Ended),
        Poll::Pending => None,
    }
}

impl QueueTarget<RakNet> for Connection {
    fn send(
        &mut self,
        _: ConnectionId,
        message: &mut Cow<'_, [u8]>,
        delivery: Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        self.open(|connection| connection.send(message, delivery)).unwrap_or(Err(SendError::NotConnected))
    }

    fn disconnect(&mut self, _: ConnectionId) {
        self.close();
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.start.elapsed()
    }
}

impl Driver for Connection {
    type Target = Self;
    type Failure = Failure;
    type End = End;

    const ENDED_HERE: End = End::Peer(DisconnectReason::Local);

    fn id(&self) -> ConnectionId {
        ONLY
    }

    fn target(&mut self) -> &mut Self {
        self
    }

    fn stats(&mut self) -> Option<ConnectionStats> {
        self.open(web::Connection::stats)
    }

    fn close_timeout(&mut self) -> Duration {
        CLOSE_TIMEOUT
    }

    fn update(&mut self) {}

    fn poll(&mut self) -> Option<Happened<Failure, End>> {
        match self.poll_open() {
            Some(Poll::Ready(Ok(connection))) => {
                CONNECTIONS.with_borrow_mut(|all| all.insert(self.number, State::Open(connection)));
                return Some(Happened::Connected);
            }
            Some(Poll::Ready(Err(failure))) => {
                self.take();
                return Some(Happened::Failed(failure));
            }
            Some(Poll::Pending) => return None,
            None => {}
        }
        let happened = self.open(next).flatten();
        if let Some(Happened::Ended(_)) = happened {
            self.take();
        }
        happened
    }

    fn max_message_len(&mut self) -> Option<usize> {
        self.open(web::Connection::max_message_len).flatten()
    }

    /// Does nothing: the browser driver sends the messages of a frame together without a flush.
    fn flush(&mut self) {}
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}
