//! The Game Protocol for games that are Rust themselves and run in a browser.
//!
//! ```no_run
//! use rakwire::game_protocol::Reliability;
//! use rakwire_wasm::web::game::connect;
//!
//! # async fn play() -> Result<(), Box<dyn std::error::Error>> {
//! let connection = connect("wss://play.example.org/ws", "snow-fight", 5).await?;
//! connection.send(b"hello", Reliability::Reliable)?;
//! while let Some(message) = connection.recv().await {
//!     // message.bytes, message.reliability
//! }
//! # Ok(())
//! # }
//! ```

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use rakwire::game_protocol::{
    ConnectFailure, ConnectionStats, DisconnectReason, Event, Reliability, SendError,
};

use super::browser::with_target;
use super::driver::Driver;
use super::error;
use crate::game_client::GameClient;

/// Why a connection could not be opened.
pub type ConnectError = error::ConnectError<ConnectFailure>;
/// Why an open connection ended.
pub type Ending = error::Ending<DisconnectReason>;

/// A message that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How it travelled.
    pub reliability: Reliability,
}

/// An open connection. Dropping it says goodbye to the server without waiting for anything.
#[derive(Debug)]
pub struct Connection {
    driver: Rc<RefCell<Driver<GameClient>>>,
    ending: RefCell<Option<Ending>>,
}

/// Opens a connection to the game server that the relay at `url` knows as `target`, in at most `attempts` attempts of
/// two seconds, at least one. Each has a WebSocket of its own, for which the relay calls from another port: an original
/// server does not hear a client twice from the same one.
///
/// Dropping the future gives up.
///
/// # Errors
/// A [`ConnectError`] that says in words who refused what.
pub async fn connect(url: &str, target: &str, attempts: u8) -> Result<Connection, ConnectError> {
    let url = with_target(url, target);
    for _ in 1..attempts {
        match attempt(&url).await {
            Err(ConnectError::Server(ConnectFailure::NoAnswer)) => {}
            result => return result,
        }
    }
    attempt(&url).await
}

async fn attempt(url: &str) -> Result<Connection, ConnectError> {
    let driver = Driver::start(url, GameClient::new)?;
    let connection = Connection { driver, ending: RefCell::new(None) };
    poll_fn(|cx| connection.poll_open(cx)).await?;
    Ok(connection)
}

impl Connection {
    /// Takes a message of 1 to 129,024 bytes for sending. It is copied.
    ///
    /// # Errors
    /// A [`SendError`] that says what to do.
    pub fn send(&self, message: &[u8], reliability: Reliability) -> Result<(), SendError> {
        self.driver.borrow_mut().send(message, reliability)
    }

    /// The next message, or nothing when the connection is over and [`ending`](Self::ending) says why.
    pub async fn recv(&self) -> Option<Message> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Why the connection ended, once [`recv`](Self::recv) has returned nothing.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        self.ending.borrow().clone()
    }

    /// The counters of the connection; all are zero when it is over.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        self.driver.borrow().client.stats().0
    }

    /// Ends the connection once what was sent reliably has arrived. Messages that nobody has received yet are lost.
    pub async fn disconnect(self) {
        self.driver.borrow_mut().disconnect();
        while self.recv().await.is_some() {}
    }

    fn poll_open(&self, cx: &Context<'_>) -> Poll<Result<(), ConnectError>> {
        let driver = &mut *self.driver.borrow_mut();
        match driver.client.poll_event() {
            Some(Event::Connected { .. }) => return Poll::Ready(Ok(())),
            Some(Event::ConnectFailed { reason, .. }) => {
                return Poll::Ready(Err(ConnectError::Server(reason)));
            }
            _ => {}
        }
        if let Some(close) = &driver.relay_close {
            return Poll::Ready(Err(ConnectError::Relay(close.clone())));
        }
        driver.wake_later(cx);
        Poll::Pending
    }

    fn poll_recv(&self, cx: &Context<'_>) -> Poll<Option<Message>> {
        if self.ending.borrow().is_some() {
            return Poll::Ready(None);
        }
        let driver = &mut *self.driver.borrow_mut();
        let ending = match driver.client.poll_event() {
            Some(Event::Message { reliability, message, .. }) => {
                return Poll::Ready(Some(Message { bytes: message.to_vec(), reliability }));
            }
            Some(Event::Disconnected { reason, .. }) => Ending::Peer(reason),
            _ => match &driver.relay_close {
                Some(close) => Ending::Relay(close.clone()),
                None => {
                    driver.wake_later(cx);
                    return Poll::Pending;
                }
            },
        };
        *self.ending.borrow_mut() = Some(ending);
        Poll::Ready(None)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.borrow_mut().disconnect();
    }
}
