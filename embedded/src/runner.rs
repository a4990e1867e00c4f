//! The task that owns the socket and the timer.

use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use embassy_time::Timer;
use rakwire::endpoint::Protocol;

use crate::clock;
use crate::port::Port;
use crate::shared::Shared;

/// Datagrams that are handled before other tasks have their turn.
const TURN: usize = 8;
/// How long a socket without room may keep what else is due waiting.
const RETRY: Duration = Duration::from_millis(10);

/// The task of a peer: it owns the socket and the timer.
///
/// ```
/// use rakwire_embassy::raknet::Runner;
///
/// // `#[embassy_executor::task]` in a real program.
/// async fn network(mut runner: Runner<'static>) -> ! {
///     runner.run().await
/// }
/// ```
#[derive(Debug)]
pub struct Runner<'d, P: Protocol> {
    port: Port<'d>,
    shared: &'d Shared<'d, P>,
    timer: Timer,
}

impl<'d, P: Protocol> Runner<'d, P> {
    pub(crate) fn new(port: Port<'d>, shared: &'d Shared<'d, P>) -> Self {
        Self { port, shared, timer: Timer::at(embassy_time::Instant::MAX) }
    }

    /// Moves datagrams and time. Nothing happens while this future is not polled, and nothing is lost either.
    pub async fn run(&mut self) -> ! {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// One turn. Other tasks have theirs before the next one, even if that is due at once.
    fn poll<T>(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        let shared = self.shared;
        if shared.takes_fresh_port() {
            self.port.change();
        }
        let received = self.receive(cx);
        let now = clock::now();
        shared.handle_timeout(now);
        let sent = self.port.poll_send(now, cx, |buffer| shared.poll_transmit(now, buffer));
        let next = match shared.poll_timeout(cx) {
            // Nothing more can be sent until the socket has room, which wakes this task too.
            Some(_) if sent.is_pending() => Some(now + RETRY),
            next => next,
        };
        let next = [next, self.port.deadline()].into_iter().flatten().min();
        self.timer = Timer::at(next.map_or(embassy_time::Instant::MAX, clock::timer));
        if received == TURN || next.is_some() && Pin::new(&mut self.timer).poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn receive(&mut self, cx: &mut Context<'_>) -> usize {
        let shared = self.shared;
        let mut count = 0;
        while count < TURN
            && self
                .port
                .poll_receive(cx, |from, datagram| shared.handle_datagram(clock::now(), from, datagram))
                .is_ready()
        {
            count += 1;
        }
        count
    }
}
