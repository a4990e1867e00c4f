//! The task of a peer.

use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use embassy_time::Timer;
use rakwire::endpoint::{Hook, Protocol};

use crate::clock;
use crate::shared::Shared;
use crate::socket::Socket;

/// The maximum number of datagrams that are handled before the task yields.
const BATCH: usize = 8;
/// The interval of timeouts while the send buffer is full.
const RETRY: Duration = Duration::from_millis(10);

/// The task of a peer, with its socket and timer. The [crate] has an example.
#[derive(Debug)]
pub struct Runner<'d, P: Protocol, H: Hook<P> = ()> {
    socket: Socket<'d>,
    shared: &'d Shared<'d, P, H>,
    timer: Timer,
}

impl<'d, P: Protocol, H: Hook<P>> Runner<'d, P, H> {
    pub(crate) fn new(socket: Socket<'d>, shared: &'d Shared<'d, P, H>) -> Self {
        Self { socket, shared, timer: Timer::at(embassy_time::Instant::MAX) }
    }

    /// Receives and sends datagrams, and handles timeouts. The peer does nothing while this future is not polled.
    pub async fn run(&mut self) -> ! {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Receives and sends once. Yields to other tasks even if there is more to do.
    fn poll<T>(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        let shared = self.shared;
        if shared.takes_fresh_port() {
            self.socket.change_port();
        }
        let received = self.receive(cx);
        let now = clock::now();
        shared.handle_timeout(now);
        let sent = self.socket.poll_send(now, cx, |buffer| shared.poll_transmit(now, buffer));
        let next = match shared.poll_timeout(cx) {
            // Nothing can be sent until there is space in the send buffer, which also wakes this task.
            Some(_) if sent.is_pending() => Some(now + RETRY),
            next => next,
        };
        let next = [next, self.socket.deadline()].into_iter().flatten().min();
        self.timer = Timer::at(next.map_or(embassy_time::Instant::MAX, clock::timer));
        if received == BATCH || next.is_some() && Pin::new(&mut self.timer).poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn receive(&mut self, cx: &mut Context<'_>) -> usize {
        let shared = self.shared;
        let mut count = 0;
        while count < BATCH
            && self
                .socket
                .poll_receive(cx, |from, datagram| shared.handle_datagram(clock::now(), from, datagram))
                .is_ready()
        {
            count += 1;
        }
        count
    }
}
