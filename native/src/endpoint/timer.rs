//! The timer of a driver.

use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

/// Wakes a driver at a time, or earlier.
///
/// Most deadlines of a connection move on before they are reached: each acknowledgement is due 10 ms after what it
/// acknowledges, and each resend a timeout after what was sent last. A timer that was set for an earlier time stays set, and
/// wakes the driver once for nothing. Setting it anew for each datagram costs more, and for a time that is earlier than all
/// others tokio makes a system call.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    /// Allocated once. `None` before the first deadline.
    sleep: Option<Pin<Box<Sleep>>>,
    /// When it fires; `None` if it has fired.
    set_for: Option<Instant>,
}

impl Timer {
    /// Waits until a time, or a shorter time; without one forever.
    pub(crate) async fn wait(&mut self, until: Option<Instant>) {
        let Some(until) = until else { return std::future::pending().await };
        let is_early_enough = self.set_for.is_some_and(|set_for| set_for <= until);
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if !is_early_enough {
            sleep.as_mut().reset(until);
            self.set_for = Some(until);
        }
        sleep.await;
        self.set_for = None;
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;
    use std::time::Duration;

    use super::*;

    const SOON: Duration = Duration::from_millis(20);
    /// Longer than any test takes.
    const LATE: Duration = Duration::from_secs(100_000);

    /// Waits for a time that is so far away. True if it has come, false if it is still to come.
    async fn waits(timer: &mut Timer, time: Duration) -> bool {
        let until = Instant::now() + time;
        timer.wait(Some(until)).await;
        Instant::now() >= until
    }

    /// Gives up waiting for a time that is so far away.
    async fn set(timer: &mut Timer, time: Duration) {
        let mut wait = pin!(timer.wait(Some(Instant::now() + time)));
        // Timers of tokio fire where tasks wait, which this one does not.
        let is_pending = poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx).is_pending())).await;
        assert!(is_pending);
    }

    #[tokio::test]
    async fn a_timer_is_early_once_where_it_was_set_for_less() {
        let mut timer = Timer::default();
        assert!(waits(&mut timer, SOON).await);
        set(&mut timer, LATE).await;
        assert!(waits(&mut timer, SOON).await, "an earlier time counts");
        set(&mut timer, SOON).await;
        assert!(!waits(&mut timer, LATE).await, "what was set stays set");
        assert!(waits(&mut timer, SOON).await, "and fires once");
        assert!(waits(&mut timer, Duration::ZERO).await);
    }

    #[tokio::test]
    async fn without_a_time_nobody_is_woken() {
        let mut timer = Timer::default();
        set(&mut timer, SOON).await;
        assert!(tokio::time::timeout(2 * SOON, timer.wait(None)).await.is_err());
    }
}
