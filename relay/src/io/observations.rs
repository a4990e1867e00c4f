//! What flows tell of the health of a game server that is not asked itself: whether it answers those that begin, and what the
//! network says of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long clients that begin may get no answer from a game server before it counts as down.
const SILENCE: Duration = Duration::from_secs(10);

/// How long it counts as down. Then clients show whether it is still.
const DOWN: Duration = Duration::from_secs(30);

/// What flows have seen since the last look.
#[derive(Debug, Default)]
pub(crate) struct Observations {
    begun: AtomicBool,
    answered: AtomicBool,
    refused: AtomicBool,
}

impl Observations {
    /// A flow has sent its first datagram.
    pub(crate) fn begun(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    /// A datagram has come.
    pub(crate) fn answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// The network or this machine has reported that the game server cannot be reached.
    pub(crate) fn refused(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }
}

/// What follows from the observations.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    silent_since: Option<Instant>,
    down_until: Option<Instant>,
}

impl Judgement {
    /// Takes what has been seen since the last look, and says whether the game server counts as up. Any answer counts more than
    /// any silence: one client that sends nonsense does not show that a game server is down.
    pub(crate) fn look(&mut self, now: Instant, observations: &Observations) -> bool {
        let [begun, answered, refused] = [&observations.begun, &observations.answered, &observations.refused]
            .map(|seen| seen.swap(false, Ordering::Relaxed));
        if answered {
            *self = Self::default();
            return true;
        }
        if begun {
            self.silent_since = Some(self.silent_since.unwrap_or(now));
        }
        let is_silent =
            self.silent_since.is_some_and(|since| now.saturating_duration_since(since) >= SILENCE);
        if refused || is_silent {
            *self = Self { silent_since: None, down_until: Some(now + DOWN) };
        }
        self.down_until.is_none_or(|until| now >= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_server_that_refuses_is_down_for_a_while() {
        let (start, observations, mut judgement) =
            (Instant::now(), Observations::default(), Judgement::default());
        assert!(judgement.look(start, &observations), "nothing is known");
        observations.refused();
        assert!(!judgement.look(start, &observations));
        assert!(!judgement.look(start + 29 * SECOND, &observations));
        assert!(judgement.look(start + 30 * SECOND, &observations), "it is tried again");
        observations.refused();
        assert!(!judgement.look(start + 31 * SECOND, &observations));
        observations.answered();
        assert!(judgement.look(start + 32 * SECOND, &observations), "it is back");
    }

    #[test]
    fn a_server_that_answers_nobody_new_is_down() {
        let (start, observations, mut judgement) =
            (Instant::now(), Observations::default(), Judgement::default());
        observations.begun();
        assert!((0..10).all(|second| judgement.look(start + second * SECOND, &observations)));
        assert!(!judgement.look(start + 10 * SECOND, &observations));
    }

    #[test]
    fn silence_for_one_client_is_outweighed_by_an_answer_to_another() {
        let (start, observations, mut judgement) =
            (Instant::now(), Observations::default(), Judgement::default());
        for second in 0..100 {
            observations.begun();
            if second % 9 == 0 {
                observations.answered();
            }
            assert!(judgement.look(start + second * SECOND, &observations), "{second}");
        }
    }
}
