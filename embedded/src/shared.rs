//! What the handles and the runner share: the protocol, who holds which connection, who waits.

use core::cell::RefCell;
use core::net::SocketAddr;
use core::task::{Context, Poll};

use embassy_sync::waitqueue::{MultiWakerRegistration, WakerRegistration};
use rakwire::{Instant, Machine};

use crate::clock;
use crate::hold::Hold;
use crate::protocol::{Lending, Ports, Protocol, Told};
use crate::runner::Drive;

/// Tasks that can wait for a peer at once without waking each other.
const WAITERS: usize = 8;

/// How far a connection has come, as its holders may know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase<P: Protocol> {
    Opening,
    /// Somebody else opened it, and nobody has accepted it yet.
    Offered,
    Open,
    Failed(P::Failure),
    Closed(P::Reason),
}

/// A place for a connection that somebody holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat<P: Protocol> {
    id: P::Id,
    remote: SocketAddr,
    pub(crate) identity: P::Identity,
    pub(crate) phase: Phase<P>,
    /// How many hold it.
    holders: u8,
}

/// Everything but the socket and the timer.
#[derive(Debug)]
pub(crate) struct Inner<'d, P: Protocol> {
    pub(crate) peer: P::Peer<'d>,
    seats: &'d mut [Option<Seat<P>>],
    lending: Lending,
    /// Whether the socket is to get another port.
    port: PortWish,
    /// How many wait for what strangers say.
    pub(crate) listeners: u8,
    runner: WakerRegistration,
    waiters: MultiWakerRegistration<WAITERS>,
}

/// Which port the next datagram leaves from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PortWish {
    #[default]
    Same,
    Another,
}

/// What the handles and the runner share.
#[derive(Debug)]
pub(crate) struct Shared<'d, P: Protocol> {
    inner: RefCell<Inner<'d, P>>,
}

impl<'d, P: Protocol> Shared<'d, P> {
    pub(crate) const fn new(peer: P::Peer<'d>, seats: &'d mut [Option<Seat<P>>]) -> Self {
        let inner = Inner {
            peer,
            seats,
            lending: Lending::Nothing,
            port: PortWish::Same,
            listeners: 0,
            runner: WakerRegistration::new(),
            waiters: MultiWakerRegistration::new(),
        };
        Self { inner: RefCell::new(inner) }
    }

    /// Looks at the peer.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Inner<'d, P>) -> R) -> R {
        look(&self.inner.borrow())
    }

    /// Changes the peer, so that the runner has something to do.
    pub(crate) fn act<R>(&self, act: impl FnOnce(&mut Inner<'d, P>, Instant) -> R) -> R {
        let mut inner = self.inner.borrow_mut();
        let result = act(&mut inner, clock::now());
        inner.runner.wake();
        result
    }

    /// Waits until `attempt` finds what it wants.
    pub(crate) fn poll<R>(
        &self,
        cx: &Context<'_>,
        attempt: impl FnOnce(&mut Inner<'d, P>, Instant) -> Poll<R>,
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

    /// A seat for the connection that `open` asks the peer for; `full` is the error where there is none.
    pub(crate) fn dial<E>(
        &'d self,
        to: SocketAddr,
        full: E,
        open: impl FnOnce(&mut P::Peer<'d>, Instant) -> Result<P::Id, E>,
    ) -> Result<Hold<'d, P>, E> {
        let seat = self.act(|inner, now| {
            // What is over may make room, once all it had to tell was heard.
            inner.hear(now);
            // What was left may still have to deliver something, through the port that it has.
            let is_alone = P::is_idle(&inner.peer);
            let id = open(&mut inner.peer, now)?;
            if P::PORTS == Ports::Fresh && is_alone {
                inner.port = PortWish::Another;
            }
            inner.seat_opening(id, to).ok_or_else(|| {
                P::disconnect(&mut inner.peer, now, id);
                full
            })
        });
        Ok(Hold::new(self, seat?, to))
    }

    /// The first connection that somebody else opened and nobody has accepted.
    pub(crate) fn poll_accept(&'d self, cx: &Context<'_>) -> Poll<Hold<'d, P>> {
        let seat = self.poll(cx, |inner, _| inner.accept().map_or(Poll::Pending, Poll::Ready));
        seat.map(|(seat, remote)| Hold::new(self, seat, remote))
    }

    /// The same, if there is one now.
    pub(crate) fn try_accept(&'d self) -> Option<Hold<'d, P>> {
        let (seat, remote) = self.act(|inner, _| inner.accept())?;
        Some(Hold::new(self, seat, remote))
    }

    /// What was lent was read.
    pub(crate) fn give_back(&self) {
        self.act(|inner, _| {
            inner.lending = Lending::Nothing;
            P::give_back(&mut inner.peer);
            inner.waiters.wake();
        });
    }
}

impl<P: Protocol> Drive for Shared<'_, P> {
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

    fn takes_another_port(&self) -> bool {
        core::mem::take(&mut self.inner.borrow_mut().port) == PortWish::Another
    }

    fn wait(&self, cx: &Context<'_>) -> Option<Instant> {
        let mut inner = self.inner.borrow_mut();
        inner.runner.register(cx.waker());
        inner.peer.poll_timeout()
    }
}

impl<P: Protocol> Inner<'_, P> {
    /// Takes what no holder of a connection will take.
    fn hear(&mut self, now: Instant) {
        if self.lending == Lending::Bytes {
            return;
        }
        while let Some(id) = P::poll_news(&mut self.peer) {
            if self.seat_of(id).is_none() {
                self.hear_of(now, id);
            }
        }
        if self.listeners == 0 {
            while P::poll_stranger(&mut self.peer).is_some() {}
        }
    }

    /// Takes the news of a connection that nobody holds: a new one gets a seat, the others were left.
    fn hear_of(&mut self, now: Instant, id: P::Id) {
        while let Some(told) = P::poll_event_of(&mut self.peer, id) {
            if let Told::Offered(remote, identity) = told {
                let phase = Phase::Offered;
                if self.take_seat(Seat { id, remote, identity, phase, holders: 0 }).is_none() {
                    P::disconnect(&mut self.peer, now, id);
                }
                // What comes after is for whoever accepts it.
                return;
            }
        }
    }

    fn seat_of(&self, id: P::Id) -> Option<usize> {
        self.seats.iter().position(|seat| seat.is_some_and(|seat| seat.id == id))
    }

    fn take_seat(&mut self, seat: Seat<P>) -> Option<usize> {
        let free = self.seats.iter().position(Option::is_none)?;
        *self.seats.get_mut(free)? = Some(seat);
        Some(free)
    }

    /// A seat for a connection that was asked for here.
    fn seat_opening(&mut self, id: P::Id, remote: SocketAddr) -> Option<usize> {
        let phase = Phase::Opening;
        self.take_seat(Seat { id, remote, identity: P::Identity::default(), phase, holders: 1 })
    }

    /// The first connection that was offered and not accepted.
    fn accept(&mut self) -> Option<(usize, SocketAddr)> {
        let offered = |seat: &Option<Seat<P>>| seat.is_some_and(|seat| seat.phase == Phase::Offered);
        let found = self.seats.iter().position(offered)?;
        let seat = self.seats.get_mut(found)?.as_mut()?;
        seat.phase = Phase::Open;
        seat.holders = 1;
        Some((found, seat.remote))
    }

    pub(crate) fn seat(&self, at: usize) -> Option<&Seat<P>> {
        self.seats.get(at)?.as_ref()
    }

    pub(crate) fn id(&self, at: usize) -> Option<P::Id> {
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
            let Seat { id, phase, .. } = *seat;
            *place = None;
            if !matches!(phase, Phase::Failed(_) | Phase::Closed(_)) {
                P::disconnect(&mut self.peer, now, id);
            }
            self.forget(now, id);
        }
    }

    /// Takes what a connection that was just left has to tell.
    fn forget(&mut self, now: Instant, id: P::Id) {
        if self.lending == Lending::Nothing {
            self.hear_of(now, id);
        }
    }

    /// What happened next on a connection; pending while nothing did, nothing once it is over and all was told.
    pub(crate) fn poll_news(&mut self, at: usize) -> Poll<Option<P::News>> {
        if self.lending == Lending::Bytes {
            return Poll::Pending;
        }
        loop {
            let Some(Some(seat)) = self.seats.get_mut(at) else { return Poll::Ready(None) };
            let Some(told) = P::poll_event_of(&mut self.peer, seat.id) else {
                return match seat.phase {
                    Phase::Opening | Phase::Offered | Phase::Open => Poll::Pending,
                    Phase::Failed(_) | Phase::Closed(_) => Poll::Ready(None),
                };
            };
            match told {
                Told::Opened(identity) | Told::Offered(_, identity) => {
                    seat.identity = identity;
                    seat.phase = Phase::Open;
                    return Poll::Pending;
                }
                Told::Failed(reason) => seat.phase = Phase::Failed(reason),
                Told::Closed(reason) => seat.phase = Phase::Closed(reason),
                Told::News(news, lending) => {
                    self.lending = lending;
                    return Poll::Ready(Some(news));
                }
                Told::Nothing => {}
            }
        }
    }

    /// What a stranger said next, if any did.
    pub(crate) fn poll_stranger(&mut self) -> Poll<P::Stranger> {
        if self.lending == Lending::Bytes {
            return Poll::Pending;
        }
        match P::poll_stranger(&mut self.peer) {
            Some(stranger) => {
                self.lending = Lending::Bytes;
                Poll::Ready(stranger)
            }
            None => Poll::Pending,
        }
    }
}
