//! What wakes a driver.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use atomic_waker::AtomicWaker;

/// Wakes the one task that waits for it. Several notifications before the task runs count as one, and one that comes before
/// it waits is not lost.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    is_set: AtomicBool,
    waker: AtomicWaker,
}

impl Signal {
    pub(crate) fn notify(&self) {
        // Who set it before has woken the task, or the task has yet to look.
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
        // Who notified in the meantime may have found no waker.
        if self.take() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn take(&self) -> bool {
        self.is_set.swap(false, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Wake, Waker};
    use std::time::{Duration, Instant};

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
    async fn a_task_that_waits_is_woken_once() {
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
        assert!(!is_set_again.expect("the task is woken").expect("it ends"));
    }

    /// Set when the task is woken.
    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }

    /// Whether something becomes true soon.
    fn soon(mut is_true: impl FnMut() -> bool) -> bool {
        let began = Instant::now();
        while !is_true() {
            if began.elapsed() > Duration::from_secs(10) {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// Each notification comes as soon as the one before was seen, which is when the waiting side begins to wait again.
    #[test]
    fn no_notification_is_lost_to_one_who_begins_to_wait() {
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
    async fn another_task_may_wait_later() {
        let signal = Arc::new(Signal::default());
        assert!(!is_set(&signal).await, "this task waited");
        let waits = Arc::clone(&signal);
        let task = tokio::spawn(async move { waits.notified().await });
        tokio::task::yield_now().await;
        signal.notify();
        let woken = tokio::time::timeout(Duration::from_secs(10), task).await;
        assert!(woken.is_ok_and(|ended| ended.is_ok()));
    }
}
