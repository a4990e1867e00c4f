//! Wakers: for the driver, for tasks that wait for a notification, for blocked senders (by connection), and for tasks
//! that wait for an inbox to change.

use std::collections::HashMap;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

use rakwire::Instant;
use rakwire::endpoint::ConnectionId;
use tokio::sync::Notify;

use crate::sync::AtomicWaker;
use crate::sync::atomic::{AtomicBool, Ordering};

/// Wakes a single waiting task. Several notifications before the task runs count as one. A notification before the
/// task begins to wait is not lost.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    is_set: AtomicBool,
    waker: AtomicWaker,
}

impl Signal {
    pub(crate) fn notify(&self) {
        // If the flag was already set, the task has been woken or has not checked the flag yet.
        if !self.is_set.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    /// Waits for a notification since the last call.
    pub(crate) async fn notified(&self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        if self.take() {
            return Poll::Ready(());
        }
        self.waker.register(cx.waker());
        // A notification between the first check and the registration has found no waker.
        if self.take() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn take(&self) -> bool {
        self.is_set.swap(false, Ordering::AcqRel)
    }
}

/// A pending wake of the driver. Until the driver runs, senders neither wake it again nor read the clock, except after
/// [`MESSAGES_PER_WAKE`] messages.
#[derive(Debug)]
pub(crate) struct PendingWake {
    at: Instant,
    messages: u16,
}

/// Number of messages that share a wake and a reading of the clock.
const MESSAGES_PER_WAKE: u16 = 64;

impl PendingWake {
    pub(crate) const fn new(at: Instant) -> Self {
        Self { at, messages: MESSAGES_PER_WAKE }
    }

    /// Returns the time of the wake, if another message may share it.
    pub(crate) fn share(&mut self) -> Option<Instant> {
        self.messages = self.messages.checked_sub(1)?;
        Some(self.at)
    }
}

/// Repeats `attempt` at each notification of `changed` until it succeeds.
pub(crate) async fn retry<T>(changed: &Notify, mut attempt: impl FnMut() -> Option<T>) -> T {
    loop {
        let mut change = std::pin::pin!(changed.notified());
        // Notifications after this line are not missed.
        change.as_mut().enable();
        if let Some(result) = attempt() {
            return result;
        }
        change.await;
    }
}

/// Blocked senders, and the tasks to wake next. Uses no memory while no task waits.
#[derive(Debug, Default)]
pub(crate) struct BlockedSenders {
    waiting: HashMap<ConnectionId, Vec<(WaitId, Waker)>>,
    to_wake: Vec<Waker>,
    next: WaitId,
    wakes: u64,
}

/// Identifies a waiting task, uniquely within its endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaitId(u64);

impl BlockedSenders {
    /// Registers a task to be woken once, when the connection has memory again or is closed.
    pub(crate) fn register(&mut self, id: ConnectionId, waker: &Waker) -> WaitId {
        let wait = self.next;
        self.next = WaitId(wait.0 + 1);
        self.waiting.entry(id).or_default().push((wait, waker.clone()));
        wait
    }

    /// Removes a task that no longer waits. Its waker must be dropped where no lock is held.
    pub(crate) fn remove(&mut self, id: ConnectionId, wait: WaitId) -> Option<Waker> {
        let waiting = self.waiting.get_mut(&id)?;
        let place = waiting.iter().position(|(one, _)| *one == wait)?;
        let (_, waker) = waiting.remove(place);
        if waiting.is_empty() {
            self.waiting.remove(&id);
        }
        Some(waker)
    }

    /// Schedules the wake of one task, which then no longer waits.
    pub(crate) fn wake_one(&mut self, id: ConnectionId, wait: WaitId) {
        let waker = self.remove(id, wait);
        self.to_wake.extend(waker);
    }

    /// Schedules the wake of the tasks that wait for this connection.
    pub(crate) fn wake(&mut self, id: ConnectionId) {
        let waiting = self.waiting.remove(&id).unwrap_or_default();
        self.wakes += waiting.len() as u64;
        self.to_wake.extend(waiting.into_iter().map(|(_, waker)| waker));
    }

    /// Takes the tasks to wake. Wake them where no lock is held.
    pub(crate) fn take(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.to_wake)
    }

    /// Returns how often a task was woken.
    pub(crate) const fn wakes(&self) -> u64 {
        self.wakes
    }
}

/// Registered wakers. There is usually one, which needs no allocation.
#[derive(Debug)]
pub(crate) enum Wakers {
    None { next: WakerId },
    One { id: WakerId, waker: Waker },
    Several(Box<Several>),
}

/// The id of a registered waker, unique within its inbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WakerId(u32);

impl WakerId {
    const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

#[derive(Debug)]
pub(crate) struct Several {
    next: WakerId,
    wakers: Vec<(WakerId, Waker)>,
}

impl Default for Wakers {
    fn default() -> Self {
        Self::None { next: WakerId::default() }
    }
}

impl Wakers {
    const fn next(&self) -> WakerId {
        match self {
            Self::None { next } => *next,
            Self::One { id, .. } => id.next(),
            Self::Several(several) => several.next,
        }
    }

    /// Registers the waker of a task.
    pub(crate) fn register(&mut self, waker: &Waker) -> WakerId {
        let (next, waker) = (self.next(), waker.clone());
        *self = match std::mem::take(self) {
            Self::None { .. } => Self::One { id: next, waker },
            Self::One { id, waker: other } => {
                let wakers = vec![(id, other), (next, waker)];
                Self::Several(Box::new(Several { next: next.next(), wakers }))
            }
            Self::Several(mut several) => {
                several.wakers.push((next, waker));
                several.next = next.next();
                Self::Several(several)
            }
        };
        next
    }

    /// Removes a waker. The caller must drop the result after it has released all locks.
    pub(crate) fn remove(&mut self, id: WakerId) -> Self {
        match self {
            Self::One { id: one, .. } if *one == id => self.take(),
            Self::None { .. } | Self::One { .. } => Self::default(),
            Self::Several(several) => match several.wakers.iter().position(|(one, _)| *one == id) {
                Some(_) if several.wakers.len() == 1 => self.take(),
                Some(place) => {
                    let (id, waker) = several.wakers.swap_remove(place);
                    Self::One { id, waker }
                }
                None => Self::default(),
            },
        }
    }

    /// Takes all wakers.
    pub(crate) const fn take(&mut self) -> Self {
        let next = self.next();
        std::mem::replace(self, Self::None { next })
    }

    pub(crate) fn wake(self) {
        match self {
            Self::None { .. } => {}
            Self::One { waker, .. } => waker.wake(),
            Self::Several(several) => several.wakers.into_iter().for_each(|(_, waker)| waker.wake()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, AtomicUsize};
    use std::task::Wake;
    use std::time::Duration;

    use rakwire::endpoint::Capacity;
    use rakwire::raknet::{Config, Peer};

    use super::*;

    async fn is_set(signal: &Signal) -> bool {
        tokio::time::timeout(Duration::ZERO, signal.notified()).await.is_ok()
    }

    #[tokio::test]
    async fn notifications_before_a_task_waits_count_as_one() {
        let signal = Signal::default();
        assert!(!is_set(&signal).await);
        signal.notify();
        signal.notify();
        assert!(is_set(&signal).await);
        assert!(!is_set(&signal).await);
    }

    #[tokio::test]
    async fn a_waiting_task_is_woken_once() {
        let signal = Arc::new(Signal::default());
        let waits = Arc::clone(&signal);
        let task = tokio::spawn(async move {
            waits.notified().await;
            is_set(&waits).await
        });
        tokio::task::yield_now().await;
        assert!(!task.is_finished());
        signal.notify();
        signal.notify();
        let is_set_again = tokio::time::timeout(Duration::from_secs(10), task).await;
        assert!(!is_set_again.expect("the task is woken").expect("the task ends"));
    }

    /// Set when the task is woken.
    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }

    /// Returns true if a condition becomes true soon.
    fn soon(mut is_true: impl FnMut() -> bool) -> bool {
        let began = std::time::Instant::now();
        while !is_true() {
            if began.elapsed() > Duration::from_secs(10) {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// Each notification is sent as soon as the previous one has been observed, which is the moment at which the
    /// waiting side begins to wait again.
    #[test]
    fn no_notification_is_lost_when_a_task_begins_to_wait() {
        const COUNT: usize = 200_000;
        let (signal, seen) = (Signal::default(), AtomicUsize::new(0));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let is_notified = || signal.poll(&Context::from_waker(&waker)).is_ready();
        let wait = || is_notified() || soon(|| woken.0.swap(false, Ordering::AcqRel) && is_notified());
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while seen.load(Ordering::Acquire) < COUNT && wait() {
                    seen.fetch_add(1, Ordering::AcqRel);
                }
            });
            for number in 1..=COUNT {
                signal.notify();
                let is_seen = soon(|| seen.load(Ordering::Acquire) >= number);
                assert!(is_seen, "notification {number} is lost");
            }
        });
    }

    #[tokio::test]
    async fn a_signal_can_later_be_awaited_by_another_task() {
        let signal = Arc::new(Signal::default());
        assert!(!is_set(&signal).await, "the other task received the notification");
        let waits = Arc::clone(&signal);
        let task = tokio::spawn(async move { waits.notified().await });
        tokio::task::yield_now().await;
        signal.notify();
        let woken = tokio::time::timeout(Duration::from_secs(10), task).await;
        assert!(woken.is_ok_and(|ended| ended.is_ok()));
    }

    #[test]
    fn only_tasks_waiting_for_a_connection_are_woken() {
        let mut peer = Peer::with_capacity(Capacity::default(), Config::new([7; 32]));
        let ids: [ConnectionId; 2] = std::array::from_fn(|port| {
            peer.connect(Instant::ZERO, ([127, 0, 0, 1], port as u16 + 1).into()).expect("a free slot")
        });
        let mut senders = BlockedSenders::default();
        let old = senders.register(ids[0], Waker::noop());
        senders.register(ids[0], Waker::noop());
        senders.register(ids[1], Waker::noop());
        senders.wake(ids[0]);
        assert_eq!((senders.take().len(), senders.wakes()), (2, 2));
        senders.register(ids[0], Waker::noop());
        assert!(senders.remove(ids[0], old).is_none(), "a stale id removes no newer registration");
        senders.wake(ids[0]);
        senders.wake(ids[0]);
        assert_eq!((senders.take().len(), senders.wakes(), senders.waiting.len()), (1, 3, 1));
    }

    /// Counts how often a task was woken.
    #[derive(Default)]
    struct Wakes(AtomicU32);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn all_waiting_tasks_are_woken_once() {
        let tasks: [Arc<Wakes>; 3] = std::array::from_fn(|_| Arc::default());
        let woken = || tasks.each_ref().map(|task| task.0.load(Ordering::Relaxed));
        let of_tasks = tasks.each_ref().map(|task| Waker::from(Arc::clone(task)));
        let mut wakers = Wakers::default();
        let ids = of_tasks.each_ref().map(|waker| wakers.register(waker));
        assert!(matches!(wakers.remove(ids[0]), Wakers::One { waker, .. } if waker.will_wake(&of_tasks[0])));
        assert!(matches!(wakers.remove(ids[0]), Wakers::None { .. }));
        wakers.take().wake();
        assert_eq!(woken(), [0, 1, 1]);
        wakers.take().wake();
        assert_eq!(woken(), [0, 1, 1]);
    }

    #[test]
    fn a_stale_id_does_not_remove_another_waker() {
        let tasks: [Arc<Wakes>; 2] = std::array::from_fn(|_| Arc::default());
        let of_tasks = tasks.each_ref().map(|task| Waker::from(Arc::clone(task)));
        let mut wakers = Wakers::default();
        let old = wakers.register(&of_tasks[0]);
        wakers.take().wake();
        let new = wakers.register(&of_tasks[1]);
        assert!(matches!(wakers.remove(old), Wakers::None { .. }));
        assert!(matches!(wakers.remove(new), Wakers::One { .. }));
        assert!(![old, new].contains(&wakers.register(&of_tasks[1])));
    }

    #[test]
    fn removed_wakers_use_no_memory() {
        let waker = Waker::from(Arc::<Wakes>::default());
        let mut wakers = Wakers::default();
        let ids = [wakers.register(&waker), wakers.register(&waker)];
        ids.into_iter().for_each(|id| drop(wakers.remove(id)));
        assert!(matches!(wakers, Wakers::None { next } if !ids.contains(&next)));
    }

    #[test]
    fn wakers_take_three_words() {
        assert_eq!(size_of::<Wakers>(), 3 * size_of::<usize>());
    }
}
