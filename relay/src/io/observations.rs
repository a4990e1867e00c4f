//! What flows tell of the health of a game server that is not asked itself: whether it answers those that begin, and what the
//! network says of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;

/// How long clients that begin may get no answer from a game server before it counts as down.
const SILENCE: Duration = Duration::from_secs(10);

/// How many networks of clients have to be without an answer for so long. A client that sends nonsense gets none either.
const NETWORKS_MIN: usize = 3;

/// How long a client without an answer counts.
const COUNTED: Duration = Duration::from_secs(60);

/// How many networks are remembered.
const NETWORKS_MAX: usize = 16;

/// How long it counts as down. Then clients show whether it is still.
const DOWN: Duration = Duration::from_secs(30);

/// What flows have seen since the last look.
#[derive(Debug, Default)]
pub(crate) struct Observations {
    begun: Mutex<BTreeSet<IpNet>>,
    answered: AtomicBool,
    refused: AtomicBool,
}

impl Observations {
    /// A flow of a client in this network has sent its first datagram.
    pub(crate) fn begun(&self, network: IpNet) {
        let mut begun = self.lock();
        if begun.len() < NETWORKS_MAX {
            begun.insert(network);
        }
    }

    /// A datagram has come.
    pub(crate) fn answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// The network or this machine has reported that the game server cannot be reached.
    pub(crate) fn refused(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<IpNet>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What follows from the observations.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// The networks of clients without an answer, and since when.
    waiting: BTreeMap<IpNet, Instant>,
    down_until: Option<Instant>,
}

impl Judgement {
    /// Takes what has been seen since the last look, and returns whether the game server counts as up. Any answer counts more than
    /// any silence, and the silence towards one client shows nothing: it may have sent nonsense.
    pub(crate) fn look(&mut self, now: Instant, observations: &Observations) -> bool {
        let begun = std::mem::take(&mut *observations.lock());
        let [answered, refused] =
            [&observations.answered, &observations.refused].map(|seen| seen.swap(false, Ordering::Relaxed));
        if answered {
            *self = Self::default();
            return true;
        }
        let waits = |since: &Instant| now.saturating_duration_since(*since);
        self.waiting.retain(|_, since| waits(since) < COUNTED);
        for network in begun {
            if self.waiting.len() < NETWORKS_MAX {
                self.waiting.entry(network).or_insert(now);
            }
        }
        let silent = self.waiting.values().filter(|since| waits(since) >= SILENCE).count();
        if refused || silent >= NETWORKS_MIN {
            *self = Self { waiting: BTreeMap::new(), down_until: Some(now + DOWN) };
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

    /// The network of a client.
    fn network(number: u8) -> IpNet {
        IpNet::new([192, 0, number, 0].into(), 24).unwrap()
    }

    #[test]
    fn a_server_that_answers_no_network_of_several_is_down() {
        let (start, observations, mut judgement) =
            (Instant::now(), Observations::default(), Judgement::default());
        (0..3).for_each(|number| observations.begun(network(number)));
        assert!((0..10).all(|second| judgement.look(start + second * SECOND, &observations)));
        assert!(!judgement.look(start + 10 * SECOND, &observations));
    }

    #[test]
    fn clients_of_one_network_without_an_answer_do_not_show_that_a_server_is_down() {
        let (start, observations, mut judgement) =
            (Instant::now(), Observations::default(), Judgement::default());
        for second in 0..1_000 {
            observations.begun(network(1));
            assert!(judgement.look(start + second * SECOND, &observations), "{second}");
        }
    }

    #[test]
    fn clients_without_an_answer_are_forgotten_one_by_one() {
        let (start, observations, mut judgement) =
            (Instant::now(), Observations::default(), Judgement::default());
        // Never three of them in a minute.
        for second in 0..1_000 {
            if second % 30 == 0 {
                observations.begun(network((second / 30) as u8));
            }
            assert!(judgement.look(start + second * SECOND, &observations), "{second}");
        }
    }

    #[test]
    fn clients_that_have_just_begun_have_their_time() {
        let (start, observations, mut judgement) =
            (Instant::now(), Observations::default(), Judgement::default());
        observations.begun(network(1));
        judgement.look(start, &observations);
        // The answer to these is on its way.
        (2..20).for_each(|number| observations.begun(network(number)));
        assert!(judgement.look(start + 50 * SECOND, &observations));
        observations.answered();
        assert!(judgement.look(start + 51 * SECOND, &observations));
        assert!(judgement.look(start + 62 * SECOND, &observations));
    }

    #[test]
    fn silence_for_some_clients_is_outweighed_by_an_answer_to_another() {
        let (start, observations, mut judgement) =
            (Instant::now(), Observations::default(), Judgement::default());
        for second in 0..100 {
            observations.begun(network(second as u8));
            if second % 9 == 0 {
                observations.answered();
            }
            assert!(judgement.look(start + second * SECOND, &observations), "{second}");
        }
    }
}
