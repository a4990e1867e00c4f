//! Calls to remote functions, from their start until the application takes their results.

use core::task::{Poll, Waker};
use core::time::Duration;

use heapless::{Deque, Vec};
use rakwire::Instant;
use rakwire::endpoint::ConnectionId;

use super::{CallFailure, CallId, Finished};

/// A call that waits for its answer.
#[derive(Debug)]
struct OpenCall {
    id: CallId,
    timeout: Duration,
    /// Set at the first attempt to send the call.
    deadline: Option<Instant>,
    waiter: Waiter,
}

/// The consumer of the result of a call.
#[derive(Debug)]
enum Waiter {
    /// The next caller of [`OpenCalls::poll_finished`].
    Anyone,
    /// Only [`OpenCalls::poll_call`], which is woken through the waker if there is one.
    Claimed(Option<Waker>),
}

/// A finished call, and whether only [`OpenCalls::poll_call`] may take its result.
#[derive(Debug)]
struct Ended<const BYTES: usize> {
    finished: Finished<BYTES>,
    is_claimed: bool,
}

/// Up to `CALLS` calls that are in progress, or are finished and not yet polled.
#[derive(Debug)]
pub(super) struct OpenCalls<const CALLS: usize, const BYTES: usize> {
    open: Vec<OpenCall, CALLS>,
    finished: Deque<Ended<BYTES>, CALLS>,
}

impl<const CALLS: usize, const BYTES: usize> OpenCalls<CALLS, BYTES> {
    pub(super) const fn new() -> Self {
        Self { open: Vec::new(), finished: Deque::new() }
    }

    /// Returns the number of calls in progress.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.open.len() + self.finished.len() >= CALLS
    }

    /// Adds a call. Returns false if the capacity is reached.
    pub(super) fn insert(&mut self, id: CallId, timeout: Duration) -> bool {
        let waiter = Waiter::Anyone;
        self.open.push(OpenCall { id, timeout, deadline: None, waiter }).is_ok()
    }

    pub(super) fn contains(&self, id: CallId) -> bool {
        self.open.iter().any(|open| open.id == id)
    }

    /// Returns the call with a number.
    pub(super) fn numbered(&self, number: u32) -> Option<CallId> {
        self.open.iter().map(|open| open.id).find(|id| id.number == number)
    }

    /// Returns any call to a connection.
    pub(super) fn to(&self, connection: ConnectionId) -> Option<CallId> {
        self.open.iter().map(|open| open.id).find(|id| id.to == connection)
    }

    /// Removes a call without a result. Returns false if it is not in progress.
    pub(super) fn cancel(&mut self, id: CallId) -> bool {
        self.remove(id).is_some()
    }

    fn remove(&mut self, id: CallId) -> Option<OpenCall> {
        let at = self.open.iter().position(|open| open.id == id)?;
        Some(self.open.swap_remove(at))
    }

    /// Ends a call with its result and wakes its consumer. Returns false if the call is not in progress.
    pub(super) fn finish(&mut self, id: CallId, outcome: Result<&[u8], CallFailure>) -> bool {
        let Some(open) = self.remove(id) else { return false };
        let outcome = outcome.and_then(|bytes| Vec::from_slice(bytes).map_err(|_| CallFailure::BadAnswer));
        // This cannot fail: finished and open calls together never exceed the capacity.
        let is_claimed = matches!(open.waiter, Waiter::Claimed(_));
        let _ = self.finished.push_back(Ended { finished: Finished { id, outcome }, is_claimed });
        if let Waiter::Claimed(Some(waker)) = open.waiter {
            waker.wake();
        }
        true
    }

    /// Returns the next call that has ended and was not claimed.
    pub(super) fn poll_finished(&mut self) -> Option<Finished<BYTES>> {
        self.take_finished(|ended| !ended.is_claimed)
    }

    /// Reserves the result of a call for [`poll_call`](Self::poll_call). Returns false if the call is not in
    /// progress.
    pub(super) fn claim(&mut self, id: CallId) -> bool {
        let open = self.open.iter_mut().find(|open| open.id == id);
        open.map(|open| open.waiter = Waiter::Claimed(None)).is_some()
    }

    /// Returns the result of a claimed call, or registers the waker while the call is in progress.
    pub(super) fn poll_call(&mut self, id: CallId, waker: &Waker) -> Poll<Option<Finished<BYTES>>> {
        if let Some(finished) = self.take_finished(|ended| ended.finished.id == id) {
            return Poll::Ready(Some(finished));
        }
        match self.open.iter_mut().find(|open| open.id == id) {
            Some(open) => {
                open.waiter = Waiter::Claimed(Some(waker.clone()));
                Poll::Pending
            }
            None => Poll::Ready(None),
        }
    }

    /// Drops the result of a call that has ended.
    pub(super) fn forget(&mut self, id: CallId) {
        drop(self.take_finished(|ended| ended.finished.id == id));
    }

    fn take_finished(&mut self, is_taken: impl Fn(&Ended<BYTES>) -> bool) -> Option<Finished<BYTES>> {
        let mut taken = None;
        for _ in 0..self.finished.len() {
            let ended = self.finished.pop_front()?;
            if taken.is_none() && is_taken(&ended) {
                taken = Some(ended.finished);
            } else {
                // This cannot fail: the entry was just removed.
                let _ = self.finished.push_back(ended);
            }
        }
        taken
    }

    /// Starts the timeouts of calls that were just sent for the first time.
    pub(super) fn start_timeouts(&mut self, now: Instant) {
        for open in self.open.iter_mut().filter(|open| open.deadline.is_none()) {
            open.deadline = Some(now + open.timeout);
        }
    }

    /// Returns a call that has timed out.
    pub(super) fn expired(&self, now: Instant) -> Option<CallId> {
        let expired = |open: &&OpenCall| open.deadline.is_some_and(|deadline| deadline <= now);
        self.open.iter().find(expired).map(|open| open.id)
    }

    /// Returns the earliest deadline.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.open.iter().filter_map(|open| open.deadline).min()
    }
}
