//! A connection, as one of its holders has it.

use core::future::poll_fn;
use core::net::SocketAddr;
use core::task::Poll;

use rakwire::Instant;

use crate::protocol::Protocol;
use crate::shared::{Phase, Shared};

/// Holds a connection, which ends with its last holder.
#[derive(Debug)]
pub(crate) struct Hold<'d, P: Protocol> {
    pub(crate) shared: &'d Shared<'d, P>,
    seat: usize,
    remote: SocketAddr,
}

impl<P: Protocol> Clone for Hold<'_, P> {
    fn clone(&self) -> Self {
        self.shared.act(|inner, _| inner.hold(self.seat));
        Self { shared: self.shared, seat: self.seat, remote: self.remote }
    }
}

impl<P: Protocol> Drop for Hold<'_, P> {
    fn drop(&mut self) {
        self.shared.act(|inner, now| inner.leave(now, self.seat));
    }
}

impl<'d, P: Protocol> Hold<'d, P> {
    /// For whom the seat was counted already.
    pub(crate) const fn new(shared: &'d Shared<'d, P>, seat: usize, remote: SocketAddr) -> Self {
        Self { shared, seat, remote }
    }

    pub(crate) const fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Waits until the connection is open.
    pub(crate) async fn opened(&self) -> Result<(), P::Failure> {
        poll_fn(|cx| {
            self.shared.poll(cx, |inner, _| {
                // All that a connection has to tell before it is open is how that went.
                let _ = inner.poll_news(self.seat);
                match inner.seat(self.seat).map(|seat| seat.phase) {
                    Some(Phase::Opening | Phase::Offered) => Poll::Pending,
                    Some(Phase::Open) => Poll::Ready(Ok(())),
                    Some(Phase::Failed(failure)) => Poll::Ready(Err(failure)),
                    Some(Phase::Closed(_)) | None => Poll::Ready(Err(P::GONE)),
                }
            })
        })
        .await
    }

    /// Waits until `attempt`, which gets the connection's name while it has one, finds room for what it wants.
    pub(crate) async fn wait<R>(
        &self,
        mut attempt: impl FnMut(&mut P::Peer<'d>, Instant, Option<P::Id>) -> Poll<R>,
    ) -> R {
        poll_fn(|cx| {
            self.shared.poll(cx, |inner, now| {
                let id = inner.id(self.seat);
                attempt(&mut inner.peer, now, id)
            })
        })
        .await
    }

    /// Changes something of the connection.
    pub(crate) fn act<R>(&self, act: impl FnOnce(&mut P::Peer<'d>, Instant, Option<P::Id>) -> R) -> R {
        self.shared.act(|inner, now| {
            let id = inner.id(self.seat);
            act(&mut inner.peer, now, id)
        })
    }

    /// Looks at the connection.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&P::Peer<'d>, P::Id) -> Option<R>) -> Option<R> {
        self.shared.look(|inner| look(&inner.peer, inner.id(self.seat)?))
    }

    /// What happens next; nothing once the connection has ended and everything was told.
    pub(crate) async fn next(&self) -> Option<P::News> {
        poll_fn(|cx| self.shared.poll(cx, |inner, _| inner.poll_news(self.seat))).await
    }

    /// What happened next, if anything.
    pub(crate) fn try_next(&self) -> Option<P::News> {
        match self.shared.act(|inner, _| inner.poll_news(self.seat)) {
            Poll::Ready(news) => news,
            Poll::Pending => None,
        }
    }

    /// Begins to end the connection.
    pub(crate) fn disconnect(&self) {
        self.act(|peer, now, id| {
            if let Some(id) = id {
                P::disconnect(peer, now, id);
            }
        });
    }

    pub(crate) fn closed_reason(&self) -> Option<P::Reason> {
        self.shared.look(|inner| match inner.seat(self.seat)?.phase {
            Phase::Opening | Phase::Offered | Phase::Open => None,
            Phase::Failed(_) => Some(P::NEVER_OPEN),
            Phase::Closed(reason) => Some(reason),
        })
    }

    pub(crate) fn identity(&self) -> P::Identity {
        self.shared.look(|inner| inner.seat(self.seat).map(|seat| seat.identity)).unwrap_or_default()
    }
}
