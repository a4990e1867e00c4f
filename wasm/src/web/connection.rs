//! The connection as an application sees it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use rakwire::raknet::{ConnectionStats, Delivery, Event, SendError};

use super::browser::with_target;
use super::driver::Driver;
use super::error::{ConnectError, Ending};
use crate::client::Client;

/// How to connect.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The protocol version that the server is told: 6 is the original, 11 is Minecraft Bedrock of today.
    pub protocol_version: u8,
}

impl Default for Options {
    fn default() -> Self {
        Self { protocol_version: 6 }
    }
}

/// A message that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Its bytes, of which the first is its id.
    pub bytes: Vec<u8>,
    /// How it travelled. The priority is not on the wire and reads as the default.
    pub delivery: Delivery,
}

/// An open connection. Dropping it says goodbye to the server without waiting for anything.
#[derive(Debug)]
pub struct Connection {
    driver: Rc<RefCell<Driver<Client>>>,
    ending: RefCell<Option<Ending>>,
}

/// Opens a connection to the game server that the relay at `url` knows as `target`.
///
/// Dropping the future gives up.
///
/// # Errors
/// A [`ConnectError`] that says in words who refused what.
pub async fn connect(url: &str, target: &str, options: Options) -> Result<Connection, ConnectError> {
    let client = |entropy| Client::new(entropy, options.protocol_version);
    let driver = Driver::start(&with_target(url, target), client)?;
    let connection = Connection { driver, ending: RefCell::new(None) };
    poll_fn(|cx| connection.poll_open(cx)).await?;
    Ok(connection)
}

impl Connection {
    /// Takes a message for sending. It is copied; messages that are sent in one go share datagrams.
    ///
    /// The first byte is the id of the message: 0x86 and above are free for applications.
    ///
    /// # Errors
    /// A [`SendError`] that says what to do.
    pub fn send(&self, message: &[u8], delivery: Delivery) -> Result<(), SendError> {
        self.driver.borrow_mut().send(message, delivery)
    }

    /// The next message, or nothing when the connection is over and [`ending`](Self::ending) says why.
    ///
    /// Messages wait in the memory of the connection; when that is full, RakNet slows the server down.
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

    /// Ends the connection once what was sent before has arrived. Messages that nobody has received yet are lost.
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
            Some(Event::Message { delivery, message, .. }) => {
                return Poll::Ready(Some(Message { bytes: message.to_vec(), delivery }));
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
