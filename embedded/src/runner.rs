//! The task of a peer.

use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use embassy_time::Timer;
use rakwire::endpoint::{Hook, Protocol};

use crate::backlog::Backlog;
use crate::clock;
use crate::shared::Shared;
use crate::socket::{SendQueue, Sockets, Storage, Successor};

/// The maximum number of datagrams that are handled before the task yields.
const BATCH: usize = 8;
/// The interval at which timeouts are handled while the send buffer is full.
const RETRY: Duration = Duration::from_millis(10);

/// The task of a peer, with its sockets and timer. The [crate] has an example.
#[derive(Debug)]
pub struct Runner<'d, P: Protocol, H: Hook<P> = ()> {
    storage: Storage<'d>,
    exchange: Exchange<'d, P, H>,
}

/// The parts that are kept when the sockets are replaced.
#[derive(Debug)]
struct Exchange<'d, P: Protocol, H: Hook<P>> {
    queue: SendQueue<'d>,
    shared: &'d Shared<'d, P, H>,
    timer: Timer,
    backlog: Backlog,
}

impl<'d, P: Protocol, H: Hook<P>> Runner<'d, P, H> {
    pub(crate) fn new((storage, queue): (Storage<'d>, SendQueue<'d>), shared: &'d Shared<'d, P, H>) -> Self {
        let timer = Timer::at(embassy_time::Instant::MAX);
        Self { storage, exchange: Exchange { queue, shared, timer, backlog: Backlog::default() } }
    }

    /// Receives and sends datagrams, and handles timeouts. The peer does nothing unless this future is polled.
    pub async fn run(&mut self) -> ! {
        loop {
            let Self { storage, exchange } = self;
            let mut sockets = storage.open();
            exchange.queue.discard(clock::now(), exchange.shared);
            let successor = poll_fn(|cx| exchange.poll(&mut sockets, cx)).await;
            drop(sockets);
            storage.follow(successor);
        }
    }
}

impl<P: Protocol, H: Hook<P>> Exchange<'_, P, H> {
    /// Receives and sends once. Yields to other tasks even if there is more to do. Returns `Poll::Ready` when the
    /// sockets must be replaced.
    fn poll(&mut self, sockets: &mut Sockets<'_>, cx: &mut Context<'_>) -> Poll<Successor> {
        let shared = self.shared;
        if shared.takes_fresh_port() {
            sockets.change_port(&mut self.queue);
        }
        let received = self.receive(sockets, cx);
        let now = clock::now();
        let is_empty = received < BATCH;
        let may_advance = self.backlog.may_advance(now, received, is_empty, sockets.receive_capacity());
        if may_advance {
            shared.handle_timeout(now);
        }
        shared.wake(now);
        let sent = sockets.poll_send(now, &mut self.queue, shared, cx);
        // Datagrams in the old sockets are lost with them. Reading them first would never end during a flood.
        if let Some(successor) = sockets.successor()
            && (is_empty || may_advance)
        {
            return Poll::Ready(successor);
        }
        let next = match shared.poll_timeout(cx) {
            // No datagram can be sent until the send buffer has space, which also wakes this task.
            Some(_) if sent.is_pending() => Some(now + RETRY),
            next => next,
        };
        let next = [next, sockets.deadline(now, &self.queue)].into_iter().flatten().min();
        self.backlog.expect(now, next);
        self.timer = Timer::at(next.map_or(embassy_time::Instant::MAX, clock::timer));
        if !is_empty || !may_advance || next.is_some() && Pin::new(&mut self.timer).poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn receive(&mut self, sockets: &mut Sockets<'_>, cx: &mut Context<'_>) -> usize {
        let Self { queue, shared, .. } = self;
        let mut count = 0;
        while count < BATCH
            && sockets
                .poll_receive(clock::now(), queue, cx, |from, datagram| {
                    shared.handle_datagram(clock::now(), from, datagram);
                })
                .is_ready()
        {
            count += 1;
        }
        count
    }
}
