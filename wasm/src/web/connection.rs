//! The public connection of both protocols.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rakwire::endpoint::{Event, Protocol, Receipt, SendError};

use super::browser::Timer;
use super::carriers::Transport;
use super::driver::{Driver, HookedClient, Start};
pub use super::error::{CloseReason, ConnectError};
use super::local_network::Decision;
pub use super::receive_queue::Message;
use super::receive_queue::ReceiveQueue;
use crate::client::OutOfMemory;

/// The time limit for opening a connection in milliseconds. To apply a shorter limit, drop the future.
const OPEN_MS: f64 = 15_000.0;

/// An open connection. Dropping it notifies the server, and does not wait until queued messages have arrived.
#[derive(Debug)]
pub struct Connection<P: Protocol> {
    pub(super) driver: Rc<RefCell<Driver<P>>>,
    queue: RefCell<ReceiveQueue<P>>,
    closed_reason: RefCell<Option<CloseReason<P>>>,
}

impl<P: Protocol> Connection<P> {
    /// Opens a connection through a relay, within [`OPEN_MS`].
    pub(super) async fn open(
        start: Start<P, impl FnOnce([u8; 32]) -> Result<HookedClient<P>, OutOfMemory>>,
    ) -> Result<Self, ConnectError<P>> {
        let driver = Driver::start(start)?;
        let connection =
            Self { driver, queue: RefCell::new(ReceiveQueue::new()), closed_reason: RefCell::new(None) };
        let on_deadline = Driver::on_deadline(&connection.driver);
        let _deadline = Timer::start(&on_deadline, OPEN_MS);
        poll_fn(|cx| connection.poll_open(cx)).await?;
        Ok(connection)
    }

    /// Queues a message for sending, and copies its bytes. Messages sent in the same task share datagrams.
    ///
    /// RakNet: the first byte is the id of the message; 0x86 and above are free for applications. With a receipt
    /// reliability, this returns the receipt, and `recv_receipt` returns its outcome.
    ///
    /// The Game Protocol: a message has 1 to 129,024 bytes, and there are no receipts.
    ///
    /// # Errors
    /// A [`SendError`]; its text describes the solution.
    pub fn send(&self, message: &[u8], delivery: P::Delivery) -> Result<Option<Receipt>, SendError> {
        self.driver.borrow_mut().send(message, delivery)
    }

    /// Waits until [`send`](Self::send) would accept a message of `length` bytes. Call this after `send` refused a
    /// message because the send memory was full. Another task may use the freed memory first.
    ///
    /// # Errors
    /// A [`SendError`] that waiting cannot resolve, such as a message that is too long or a closed connection.
    ///
    /// ```no_run
    /// use rakwire::raknet::Delivery;
    /// use rakwire_wasm::web::Connection;
    ///
    /// # async fn upload(connection: &Connection, parts: &[&[u8]]) -> Result<(), Box<dyn std::error::Error>> {
    /// for part in parts {
    ///     connection.ready(part.len(), Delivery::RELIABLE).await?;
    ///     connection.send(part, Delivery::RELIABLE)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ready(&self, length: usize, delivery: P::Delivery) -> Result<(), SendError> {
        poll_fn(|cx| self.poll_ready(cx, length, delivery)).await
    }

    /// Receives the next message. Returns `None` when the connection is closed; [`closed_reason`](Self::closed_reason)
    /// then returns the reason.
    ///
    /// Unread messages stay in the memory of the connection. When it is full, RakNet's flow control stops the server.
    /// The Game Protocol drops further chunks, which the server resends.
    pub async fn recv(&self) -> Option<Message<P>> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Returns why the connection was closed, once [`recv`](Self::recv) has returned `None`.
    #[must_use]
    pub fn closed_reason(&self) -> Option<CloseReason<P>> {
        self.closed_reason.borrow().clone()
    }

    /// Returns the transport of the connection: [`Transport::WebTransport`] or [`Transport::WebSocket`]. It never
    /// changes.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.driver.borrow().transport().unwrap_or_default()
    }

    /// Waits until the relay announces its shutdown, and returns the remaining time of the connection; `None` once the
    /// connection is closed. New connections are refused by this relay; a load balancer may pass them to another one.
    /// The relay announces its shutdown up to three times.
    ///
    /// Messages that arrive during the wait are queued for [`recv`](Self::recv), up to 16 MiB.
    pub async fn draining(&self) -> Option<Duration> {
        self.next(ReceiveQueue::take_draining).await
    }

    /// Returns the counters of the connection; all are zero when it is closed.
    #[must_use]
    pub fn stats(&self) -> P::ConnectionStats {
        self.driver.borrow().client.stats().0
    }

    /// Returns the longest message that `send` accepts and that a server with equal memory can receive, in bytes;
    /// `None` while there is no connection.
    #[must_use]
    pub fn max_message_len(&self) -> Option<usize> {
        self.driver.borrow_mut().client.max_message_len()
    }

    /// Schedules a run of the hook. Call this after a change of a plugin that has something to send.
    pub fn wake(&self) {
        self.driver.borrow_mut().pump_soon();
    }

    /// Closes the connection once the reliable messages sent earlier are acknowledged. Unread messages are discarded.
    pub async fn disconnect(self) {
        self.driver.borrow_mut().disconnect();
        while self.recv().await.is_some() {}
    }

    /// Waits until `pop` finds an event in the queue; `None` once the connection is closed.
    pub(super) async fn next<T>(&self, pop: impl Fn(&mut ReceiveQueue<P>) -> Option<T>) -> Option<T> {
        poll_fn(|cx| self.poll_queue(cx, &pop)).await
    }

    fn poll_open(&self, cx: &Context<'_>) -> Poll<Result<(), ConnectError<P>>> {
        let driver = &mut *self.driver.borrow_mut();
        while let Some(event) = driver.client.poll_event() {
            // Other events, such as the pong of another server, do not concern this connection.
            if let Event::Connected { .. } = event {
                return Poll::Ready(Ok(()));
            }
            if let Event::ConnectFailed { reason, .. } = event {
                return Poll::Ready(Err(ConnectError::Server(reason)));
            }
        }
        if let Some(refusal) = driver.refusal {
            return Poll::Ready(Err(ConnectError::Refused(refusal)));
        }
        match driver.decision {
            Some(Decision::Refused) => return Poll::Ready(Err(ConnectError::LocalNetworkRefused)),
            Some(Decision::Undecided) => return Poll::Ready(Err(ConnectError::LocalNetworkUndecided)),
            None => {}
        }
        if let Some(close) = &driver.relay_close {
            return Poll::Ready(Err(ConnectError::Relay(close.clone())));
        }
        if driver.is_overdue {
            return Poll::Ready(Err(ConnectError::Timeout));
        }
        driver.wake_later(cx);
        Poll::Pending
    }

    fn poll_ready(
        &self,
        cx: &Context<'_>,
        length: usize,
        delivery: P::Delivery,
    ) -> Poll<Result<(), SendError>> {
        let driver = &mut *self.driver.borrow_mut();
        match driver.can_send(length, delivery) {
            Err(SendError::QuotaExceeded | SendError::PoolExhausted) => {
                driver.wake_sender_later(cx);
                Poll::Pending
            }
            result => Poll::Ready(result),
        }
    }

    fn poll_recv(&self, cx: &Context<'_>) -> Poll<Option<Message<P>>> {
        let was_full = self.queue.borrow().is_full();
        let polled = self.poll_queue(cx, ReceiveQueue::pop_message);
        let has_waiting_sender = self.driver.borrow().has_waiting_sender();
        if (was_full || has_waiting_sender) && polled.is_ready() {
            // Reading freed space in the queue, and memory. Wakes the tasks that wait for receipts or progress, and
            // the senders that wait for memory.
            let wakers = self.driver.borrow_mut().take_wakers();
            wakers.into_iter().for_each(Waker::wake);
        }
        polled
    }

    fn poll_queue<T>(
        &self,
        cx: &Context<'_>,
        pop: impl Fn(&mut ReceiveQueue<P>) -> Option<T>,
    ) -> Poll<Option<T>> {
        let (queue, driver) = (&mut *self.queue.borrow_mut(), &mut *self.driver.borrow_mut());
        loop {
            driver.draining.take().into_iter().for_each(|left| queue.set_draining(left));
            if let Some(found) = pop(queue) {
                return Poll::Ready(Some(found));
            }
            if self.closed_reason.borrow().is_some() {
                return Poll::Ready(None);
            }
            let event = if queue.is_full() { None } else { driver.client.poll_event() };
            let reason = match (event, &driver.relay_close) {
                (Some(Event::Disconnected { reason, .. }), _) => CloseReason::Peer(reason),
                (Some(event), _) => {
                    queue.push(&event);
                    continue;
                }
                (None, Some(close)) if !queue.is_full() => CloseReason::Relay(close.clone()),
                (None, _) => {
                    driver.wake_later(cx);
                    return Poll::Pending;
                }
            };
            *self.closed_reason.borrow_mut() = Some(reason);
        }
    }
}

impl<P: Protocol> Drop for Connection<P> {
    fn drop(&mut self) {
        self.driver.borrow_mut().disconnect();
    }
}
