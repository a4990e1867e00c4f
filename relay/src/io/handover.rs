//! How the connection of a client that came back reaches the task of its flow.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;

use crate::flow::FlowEnd;

/// What another task wants of a flow.
#[derive(Debug)]
pub(crate) enum Request<C> {
    /// To go on with this connection.
    Attach(C),
    /// To end if it has no connection: another client needs its place.
    Evict,
    /// To end, as the operator wishes.
    End(FlowEnd),
    /// To notify its client that the relay drains.
    Drain,
}

#[derive(Debug)]
enum State<C> {
    Empty,
    Waiting(Request<C>),
    /// The flow has ended.
    Closed,
}

impl<C> State<C> {
    fn into_connection(self) -> Option<C> {
        match self {
            Self::Waiting(Request::Attach(connection)) => Some(connection),
            Self::Waiting(Request::Evict | Request::End(_) | Request::Drain) | Self::Empty | Self::Closed => {
                None
            }
        }
    }
}

/// A place for one [`Request`]; a later one replaces it. That the relay drains has a place of its own.
#[derive(Debug)]
pub(crate) struct Handover<C> {
    state: Mutex<State<C>>,
    is_draining: AtomicBool,
    waker: AtomicWaker,
}

impl<C> Handover<C> {
    pub(crate) const fn new() -> Self {
        Self {
            state: Mutex::new(State::Empty),
            is_draining: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }
    }

    /// Passes a connection on, and returns the one that has waited so far and whose place it takes. A flow that has ended
    /// returns the new one as an error, and so does one that is about to end.
    pub(crate) fn attach(&self, connection: C) -> Result<Option<C>, C> {
        let mut state = self.lock();
        if matches!(*state, State::Closed | State::Waiting(Request::End(_))) {
            return Err(connection);
        }
        let former = mem::replace(&mut *state, State::Waiting(Request::Attach(connection)));
        drop(state);
        self.waker.wake();
        Ok(former.into_connection())
    }

    /// Asks a flow without a connection to end.
    pub(crate) fn evict(&self) {
        let mut state = self.lock();
        if matches!(*state, State::Empty) {
            *state = State::Waiting(Request::Evict);
        }
        drop(state);
        self.waker.wake();
    }

    /// Asks a flow to end, and returns the connection that has waited for it.
    pub(crate) fn end(&self, end: FlowEnd) -> Option<C> {
        let mut state = self.lock();
        if matches!(*state, State::Closed) {
            return None;
        }
        let former = mem::replace(&mut *state, State::Waiting(Request::End(end)));
        drop(state);
        self.waker.wake();
        former.into_connection()
    }

    /// The relay drains.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// The next request.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<Request<C>> {
        self.waker.register(context.waker());
        // Looked at before it is written to, as this runs with each datagram.
        if self.is_draining.load(Ordering::Acquire) {
            self.is_draining.store(false, Ordering::Release);
            return Poll::Ready(Request::Drain);
        }
        let mut state = self.lock();
        match mem::replace(&mut *state, State::Empty) {
            State::Waiting(request) => Poll::Ready(request),
            State::Empty => Poll::Pending,
            State::Closed => {
                *state = State::Closed;
                Poll::Pending
            }
        }
    }

    /// The flow has ended. Returns a connection that has come too late.
    pub(crate) fn close(&self) -> Option<C> {
        mem::replace(&mut *self.lock(), State::Closed).into_connection()
    }

    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn taken(handover: &Handover<u8>) -> Option<u8> {
        match handover.poll(&Context::from_waker(Waker::noop())) {
            Poll::Ready(Request::Attach(number)) => Some(number),
            Poll::Ready(Request::Evict) => Some(0),
            Poll::Ready(Request::End(_)) => Some(u8::MAX),
            Poll::Ready(Request::Drain) => Some(u8::MAX - 1),
            Poll::Pending => None,
        }
    }

    #[test]
    fn the_newest_connection_counts() {
        let handover = Handover::new();
        handover.evict();
        assert_eq!(taken(&handover), Some(0));
        assert_eq!((handover.attach(1), handover.attach(2)), (Ok(None), Ok(Some(1))));
        handover.evict();
        assert_eq!((taken(&handover), taken(&handover)), (Some(2), None));
    }

    #[test]
    fn a_flow_that_is_to_end_takes_no_connection() {
        let handover = Handover::new();
        assert_eq!(handover.attach(1), Ok(None));
        assert_eq!(handover.end(FlowEnd::Kicked), Some(1));
        assert_eq!(handover.attach(2), Err(2));
        handover.evict();
        assert_eq!((taken(&handover), handover.close()), (Some(u8::MAX), None));
        assert_eq!(handover.end(FlowEnd::Kicked), None);
    }

    #[test]
    fn a_drain_is_passed_on_once_and_takes_the_place_of_no_request() {
        let handover = Handover::new();
        assert_eq!(handover.attach(1), Ok(None));
        handover.drain();
        assert_eq!([(); 3].map(|()| taken(&handover)), [Some(u8::MAX - 1), Some(1), None]);
    }

    #[test]
    fn a_flow_that_has_ended_takes_nothing() {
        let handover = Handover::new();
        assert_eq!(handover.attach(1), Ok(None));
        assert_eq!(handover.close(), Some(1));
        assert_eq!(handover.attach(2), Err(2));
        handover.evict();
        assert_eq!((taken(&handover), handover.close()), (None, None));
    }
}
