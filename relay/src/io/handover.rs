//! How the connection of a client that came back reaches the task of its flow.

use std::mem;
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
            Self::Waiting(Request::Evict | Request::End(_)) | Self::Empty | Self::Closed => None,
        }
    }
}

/// A place for one [`Request`]; a later one replaces it.
#[derive(Debug)]
pub(crate) struct Handover<C> {
    state: Mutex<State<C>>,
    waker: AtomicWaker,
}

impl<C> Handover<C> {
    pub(crate) const fn new() -> Self {
        Self { state: Mutex::new(State::Empty), waker: AtomicWaker::new() }
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

    /// The next request.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<Request<C>> {
        self.waker.register(context.waker());
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
    fn a_flow_that_has_ended_takes_nothing() {
        let handover = Handover::new();
        assert_eq!(handover.attach(1), Ok(None));
        assert_eq!(handover.close(), Some(1));
        assert_eq!(handover.attach(2), Err(2));
        handover.evict();
        assert_eq!((taken(&handover), handover.close()), (None, None));
    }
}
