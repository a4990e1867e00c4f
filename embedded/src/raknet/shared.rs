//! What the handles and the runner share: the protocol, who holds which connection, who waits.

use core::cell::RefCell;
use core::net::SocketAddr;
use core::task::{Context, Poll};
use core::time::Duration;

use embassy_sync::waitqueue::{MultiWakerRegistration, WakerRegistration};
use rakwire::Instant;
use rakwire::raknet::{
    ConnectFailure, ConnectionId, Delivery, DisconnectReason, Event, Guid, Outcome, Peer, Progress, Receipt,
    Side,
};

use crate::clock;
use crate::runner::Drive;

/// Tasks that can wait for a peer at once without waking each other.
const WAITERS: usize = 8;

/// How far a connection has come, as its holders may know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Opening,
    /// Somebody else opened it, and nobody has accepted it yet.
    Offered,
    Open,
    Failed(ConnectFailure),
    Closed(DisconnectReason),
}

/// A place for a connection that somebody holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    id: ConnectionId,
    remote: SocketAddr,
    pub(crate) guid: Guid,
    pub(crate) phase: Phase,
    /// How many hold it.
    holders: u8,
}

/// What the core told and lends, for whoever it is meant for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum News {
    Message(Delivery),
    Receipt(Receipt, Outcome),
    Progress(Progress),
}

/// What a server says of itself; its words are lent by the core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PongNews {
    pub(crate) from: SocketAddr,
    pub(crate) guid: Guid,
    pub(crate) latency: Duration,
}

/// Whether the core lends bytes that somebody reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lending {
    Nothing,
    Bytes,
}

/// Everything but the socket and the timer.
#[derive(Debug)]
pub(crate) struct Inner<'d> {
    pub(crate) peer: Peer<'d>,
    seats: &'d mut [Option<Seat>],
    lending: Lending,
    /// How many wait for pongs.
    pub(crate) pingers: u8,
    runner: WakerRegistration,
    waiters: MultiWakerRegistration<WAITERS>,
}

/// What the handles and the runner share.
#[derive(Debug)]
pub(crate) struct Shared<'d> {
    inner: RefCell<Inner<'d>>,
}

impl<'d> Shared<'d> {
    pub(crate) const fn new(peer: Peer<'d>, seats: &'d mut [Option<Seat>]) -> Self {
        let inner = Inner {
            peer,
            seats,
            lending: Lending::Nothing,
            pingers: 0,
            runner: WakerRegistration::new(),
            waiters: MultiWakerRegistration::new(),
        };
        Self { inner: RefCell::new(inner) }
    }

    /// Looks at the peer.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Inner<'d>) -> R) -> R {
        look(&self.inner.borrow())
    }

    /// Changes the peer, so that the runner has something to do.
    pub(crate) fn act<R>(&self, act: impl FnOnce(&mut Inner<'d>, Instant) -> R) -> R {
        let mut inner = self.inner.borrow_mut();
        let result = act(&mut inner, clock::now());
        inner.runner.wake();
        result
    }

    /// Waits until `attempt` finds what it wants.
    pub(crate) fn poll<R>(
        &self,
        cx: &Context<'_>,
        attempt: impl FnOnce(&mut Inner<'d>, Instant) -> Poll<R>,
    ) -> Poll<R> {
        let mut inner = self.inner.borrow_mut();
        let result = attempt(&mut inner, clock::now());
        match result {
            Poll::Pending => inner.waiters.register(cx.waker()),
            // What was taken or sent gives the runner something to do.
            Poll::Ready(_) => inner.runner.wake(),
        }
        result
    }

    /// What was lent was read.
    pub(crate) fn give_back(&self) {
        self.act(|inner, _| {
            inner.lending = Lending::Nothing;
            inner.waiters.wake();
        });
    }
}

impl Drive for Shared<'_> {
    fn receive(&self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        self.inner.borrow_mut().peer.handle_datagram(now, from, datagram);
    }

    fn settle(&self, now: Instant) {
        let mut inner = self.inner.borrow_mut();
        inner.peer.handle_timeout(now);
        inner.hear(now);
        inner.waiters.wake();
    }

    fn compose(&self, now: Instant, buffer: &mut [u8]) -> Option<(SocketAddr, usize)> {
        let mut inner = self.inner.borrow_mut();
        let transmit = inner.peer.poll_transmit(now, buffer)?;
        Some((transmit.to, transmit.payload.len()))
    }

    fn wait(&self, cx: &Context<'_>) -> Option<Instant> {
        let mut inner = self.inner.borrow_mut();
        inner.runner.register(cx.waker());
        inner.peer.poll_timeout()
    }
}

impl Inner<'_> {
    /// Takes what no holder of a connection will take.
    fn hear(&mut self, now: Instant) {
        if self.lending == Lending::Bytes {
            return;
        }
        while let Some(id) = self.peer.poll_news() {
            if self.seat_of(id).is_none() {
                self.hear_of(now, id);
            }
        }
        if self.pingers == 0 {
            while self.peer.poll_stranger().is_some() {}
        }
    }

    /// Takes the news of a connection that nobody holds: a new one gets a seat, the others were left.
    fn hear_of(&mut self, now: Instant, id: ConnectionId) {
        while let Some(event) = self.peer.poll_event_of(id) {
            if let Event::Connected { id, remote, guid, side: Side::Server } = event {
                let phase = Phase::Offered;
                if self.take_seat(Seat { id, remote, guid, phase, holders: 0 }).is_none() {
                    self.peer.disconnect(now, id);
                }
                // What comes after is for whoever accepts it.
                return;
            }
        }
    }

    fn seat_of(&self, id: ConnectionId) -> Option<usize> {
        self.seats.iter().position(|seat| seat.is_some_and(|seat| seat.id == id))
    }

    fn take_seat(&mut self, seat: Seat) -> Option<usize> {
        let free = self.seats.iter().position(Option::is_none)?;
        *self.seats.get_mut(free)? = Some(seat);
        Some(free)
    }

    /// A seat for a connection that was asked for here.
    pub(crate) fn seat_opening(&mut self, id: ConnectionId, remote: SocketAddr) -> Option<usize> {
        let phase = Phase::Opening;
        self.take_seat(Seat { id, remote, guid: Guid::default(), phase, holders: 1 })
    }

    /// The first connection that was offered and not accepted.
    pub(crate) fn accept(&mut self) -> Option<(usize, SocketAddr)> {
        let offered = |seat: &Option<Seat>| seat.is_some_and(|seat| seat.phase == Phase::Offered);
        let found = self.seats.iter().position(offered)?;
        let seat = self.seats.get_mut(found)?.as_mut()?;
        seat.phase = Phase::Open;
        seat.holders = 1;
        Some((found, seat.remote))
    }

    pub(crate) fn seat(&self, at: usize) -> Option<&Seat> {
        self.seats.get(at)?.as_ref()
    }

    pub(crate) fn id(&self, at: usize) -> Option<ConnectionId> {
        self.seat(at).map(|seat| seat.id)
    }

    /// One more holds the connection.
    pub(crate) fn hold(&mut self, at: usize) {
        if let Some(Some(seat)) = self.seats.get_mut(at) {
            seat.holders = seat.holders.saturating_add(1);
        }
    }

    /// One less holds the connection; with the last one it ends.
    pub(crate) fn leave(&mut self, now: Instant, at: usize) {
        let Some(place) = self.seats.get_mut(at) else { return };
        let Some(seat) = place else { return };
        seat.holders = seat.holders.saturating_sub(1);
        if seat.holders == 0 {
            let id = seat.id;
            *place = None;
            self.peer.disconnect(now, id);
            self.forget(now, id);
        }
    }

    /// Takes what a connection that was just left has to tell.
    fn forget(&mut self, now: Instant, id: ConnectionId) {
        if self.lending == Lending::Nothing {
            self.hear_of(now, id);
        }
    }

    /// What happened next on a connection; pending while nothing did, nothing once it is over and all was told.
    pub(crate) fn poll_news(&mut self, at: usize) -> Poll<Option<News>> {
        if self.lending == Lending::Bytes {
            return Poll::Pending;
        }
        loop {
            let Some(Some(seat)) = self.seats.get_mut(at) else { return Poll::Ready(None) };
            let Some(event) = self.peer.poll_event_of(seat.id) else {
                return match seat.phase {
                    Phase::Opening | Phase::Offered | Phase::Open => Poll::Pending,
                    Phase::Failed(_) | Phase::Closed(_) => Poll::Ready(None),
                };
            };
            match event {
                Event::Connected { guid, .. } => {
                    seat.guid = guid;
                    seat.phase = Phase::Open;
                    return Poll::Pending;
                }
                Event::ConnectFailed { reason, .. } => seat.phase = Phase::Failed(reason),
                Event::Disconnected { reason, .. } => seat.phase = Phase::Closed(reason),
                Event::Message { delivery, .. } => {
                    self.lending = Lending::Bytes;
                    return Poll::Ready(Some(News::Message(delivery)));
                }
                Event::Receipt { receipt, outcome, .. } => {
                    return Poll::Ready(Some(News::Receipt(receipt, outcome)));
                }
                Event::Progress { progress, .. } => return Poll::Ready(Some(News::Progress(progress))),
                // Strangers are heard elsewhere, and what a newer core tells has no name here.
                Event::Pong { .. } | Event::OutOfBand { .. } | Event::Advertisement { .. } | _ => {}
            }
        }
    }

    /// The next pong, if one came.
    pub(crate) fn poll_pong(&mut self) -> Poll<PongNews> {
        if self.lending == Lending::Bytes {
            return Poll::Pending;
        }
        while let Some(event) = self.peer.poll_stranger() {
            if let Event::Pong { from, guid, latency, .. } = event {
                self.lending = Lending::Bytes;
                return Poll::Ready(PongNews { from, guid, latency });
            }
        }
        Poll::Pending
    }
}
