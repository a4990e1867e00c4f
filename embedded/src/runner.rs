//! The task that owns the socket and the timer, whatever protocol runs over them.

use core::future::poll_fn;
use core::net::SocketAddr;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use embassy_time::Timer;
use rakwire::Instant;

use crate::clock;
use crate::port::Port;

/// Datagrams that are handled before other tasks have their turn.
const TURN: usize = 8;
/// How long a socket without room may keep what else is due waiting.
const RETRY: Duration = Duration::from_millis(10);

/// What the run loop drives: a protocol with its waiting tasks, shared with the handles.
pub(crate) trait Drive {
    /// Takes a datagram.
    fn receive(&self, now: Instant, from: SocketAddr, datagram: &[u8]);

    /// Does what is due, and wakes those whose wishes may have come true.
    fn settle(&self, now: Instant);

    /// Composes the next datagram.
    fn compose(&self, now: Instant, buffer: &mut [u8]) -> Option<(SocketAddr, usize)>;

    /// Whether the socket is to get another port; says so once.
    fn takes_another_port(&self) -> bool;

    /// Has `cx` woken when a handle changes anything, and says when there is something to do without that.
    fn wait(&self, cx: &Context<'_>) -> Option<Instant>;
}

/// Runs one peer over one socket, for ever.
#[derive(Debug)]
pub(crate) struct Loop<'d, D> {
    port: Port<'d>,
    driven: &'d D,
    timer: Timer,
}

impl<'d, D: Drive> Loop<'d, D> {
    pub(crate) fn new(port: Port<'d>, driven: &'d D) -> Self {
        Self { port, driven, timer: Timer::at(embassy_time::Instant::MAX) }
    }

    pub(crate) async fn run(&mut self) -> ! {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// One turn. Other tasks have theirs before the next one, even if that is due at once.
    fn poll<T>(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        if self.driven.takes_another_port() {
            self.port.change();
        }
        let received = self.receive(cx);
        let now = clock::now();
        self.driven.settle(now);
        let driven = self.driven;
        let sent = self.port.poll_send(now, cx, |buffer| driven.compose(now, buffer));
        let next = match self.driven.wait(cx) {
            // Nothing more can be sent until the socket has room, which wakes this task too.
            Some(_) if sent.is_pending() => Some(now + RETRY),
            next => next,
        };
        let next = earlier(next, self.port.deadline());
        self.timer = Timer::at(next.map_or(embassy_time::Instant::MAX, clock::timer));
        if received == TURN || next.is_some() && Pin::new(&mut self.timer).poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn receive(&mut self, cx: &mut Context<'_>) -> usize {
        let driven = self.driven;
        let mut count = 0;
        while count < TURN
            && self
                .port
                .poll_receive(cx, |from, datagram| driven.receive(clock::now(), from, datagram))
                .is_ready()
        {
            count += 1;
        }
        count
    }
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
