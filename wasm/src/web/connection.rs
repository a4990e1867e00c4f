//! The connection as an application sees it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rakwire::raknet::{ConnectionStats, Delivery, Event, Outcome, Progress, Receipt, SendError};

use super::browser::with_target;
use super::driver::Driver;
use super::error::{ConnectError, Ending};
use super::mail::Mail;
use crate::client::Client;

/// How to connect.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The protocol version that the server is told: 6 is the original, 11 is Minecraft Bedrock of today.
    pub protocol_version: u8,
    /// After how many parts of a large message [`Connection::recv_progress`] tells how far it has come; 0 is never.
    /// A part has about 1,400 bytes.
    pub progress_interval: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { protocol_version: 6, progress_interval: 0 }
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
    mail: RefCell<Mail>,
    ending: RefCell<Option<Ending>>,
}

/// Opens a connection to the game server that the relay at `url` knows as `target`.
///
/// Dropping the future gives up.
///
/// # Errors
/// A [`ConnectError`] that says in words who refused what.
pub async fn connect(url: &str, target: &str, options: Options) -> Result<Connection, ConnectError> {
    let client = |entropy| Client::new(entropy, options.protocol_version, options.progress_interval);
    let driver = Driver::start(&with_target(url, target), client)?;
    let connection = Connection { driver, mail: RefCell::default(), ending: RefCell::new(None) };
    poll_fn(|cx| connection.poll_open(cx)).await?;
    Ok(connection)
}

impl Connection {
    /// Takes a message for sending. It is copied; messages that are sent in one go share datagrams.
    ///
    /// The first byte is the id of the message: 0x86 and above are free for applications. With a receipt reliability
    /// the name of the receipt comes back; [`recv_receipt`](Self::recv_receipt) tells what became of the message.
    ///
    /// # Errors
    /// A [`SendError`] that says what to do.
    pub fn send(&self, message: &[u8], delivery: Delivery) -> Result<Option<Receipt>, SendError> {
        self.driver.borrow_mut().send(message, delivery)
    }

    /// The next message, or nothing when the connection is over and [`ending`](Self::ending) says why.
    ///
    /// Messages wait in the memory of the connection; when that is full, RakNet slows the server down.
    pub async fn recv(&self) -> Option<Message> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// What became of the next message that was sent with a receipt reliability; nothing once the connection is over:
    /// what was still open then stays unknown.
    ///
    /// Messages that arrive meanwhile are set aside for [`recv`](Self::recv), up to 16 MiB.
    pub async fn recv_receipt(&self) -> Option<(Receipt, Outcome)> {
        poll_fn(|cx| self.poll_mail(cx, Mail::take_receipt)).await
    }

    /// How far a large message has come that this side sends or receives, every
    /// [`progress_interval`](Options::progress_interval) parts; nothing once the connection is over. A reader that is
    /// late gets only the last news of each message.
    ///
    /// Messages that arrive meanwhile are set aside for [`recv`](Self::recv), up to 16 MiB.
    pub async fn recv_progress(&self) -> Option<Progress> {
        poll_fn(|cx| self.poll_mail(cx, Mail::take_progress)).await
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
        let was_full = self.mail.borrow().is_full();
        let polled = self.poll_mail(cx, Mail::take_message);
        if was_full && polled.is_ready() {
            // Those that wait for other news may set messages aside again.
            let wakers = self.driver.borrow_mut().take_wakers();
            wakers.into_iter().for_each(Waker::wake);
        }
        polled
    }

    /// Waits until `take` finds something in the mail, or the connection is over.
    fn poll_mail<T>(&self, cx: &Context<'_>, take: impl Fn(&mut Mail) -> Option<T>) -> Poll<Option<T>> {
        let (mail, driver) = (&mut *self.mail.borrow_mut(), &mut *self.driver.borrow_mut());
        loop {
            if let Some(found) = take(mail) {
                return Poll::Ready(Some(found));
            }
            if self.ending.borrow().is_some() {
                return Poll::Ready(None);
            }
            let event = if mail.is_full() { None } else { driver.client.poll_event() };
            let ending = match (event, &driver.relay_close) {
                (Some(Event::Disconnected { reason, .. }), _) => Ending::Peer(reason),
                (Some(event), _) => {
                    mail.put(&event);
                    continue;
                }
                (None, Some(close)) if !mail.is_full() => Ending::Relay(close.clone()),
                (None, _) => {
                    driver.wake_later(cx);
                    return Poll::Pending;
                }
            };
            *self.ending.borrow_mut() = Some(ending);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.borrow_mut().disconnect();
    }
}
