//! What flows tell of the health of a game server that is not asked itself: whether it answers those that begin, and what the
//! network says of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;

use crate::flow::Unreachable;

/// How long clients that begin may get no answer from a game server before it counts as down. For as long an answer outweighs what
/// the network reports.
const SILENCE: Duration = Duration::from_secs(10);

/// For how long at least its port has to be reported as closed: one report by itself may be forged, or of a restart.
const REFUSAL: Duration = Duration::from_secs(1);

/// How many networks of clients have to be without an answer for so long. A client that sends nonsense gets none either.
const NETWORKS_MIN: usize = 3;

/// How long a client without an answer counts.
const COUNTED: Duration = Duration::from_secs(60);

/// How many networks are remembered.
const NETWORKS_MAX: usize = 16;

/// The bits of an address that its network has here: one customer of a provider may have a whole /48 of IPv6.
const NETWORK_V4: u8 = 24;
const NETWORK_V6: u8 = 48;

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
    /// A flow of this client has sent its first datagram.
    pub(crate) fn begun(&self, client: IpAddr) {
        let mut begun = self.lock();
        if begun.len() < NETWORKS_MIN {
            begun.insert(network(client));
        }
    }

    /// A datagram has come.
    pub(crate) fn answered(&self) {
        // Flows on several threads share it, and most datagrams change nothing.
        if !self.answered.load(Ordering::Relaxed) {
            self.answered.store(true, Ordering::Relaxed);
        }
    }

    /// The network or this machine has reported to the flow of a client that the game server cannot be reached. What is about the path
    /// may be about this client alone, so that it counts as silence.
    pub(crate) fn unreachable(&self, client: IpAddr, reason: Unreachable) {
        if reason.is_absence() {
            self.refused.store(true, Ordering::Relaxed);
        } else {
            self.begun(client);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<IpNet>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The network of a client.
fn network(client: IpAddr) -> IpNet {
    let client = client.to_canonical();
    let length = if client.is_ipv4() { NETWORK_V4 } else { NETWORK_V6 };
    // The lengths fit the families.
    IpNet::new(client, length).map_or_else(|_| IpNet::from(client), |network| network.trunc())
}

/// What a game server counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It has answered, and nothing has shown since that it is down.
    Answers,
    /// It has not answered since it was down, or at all, and may be tried.
    Unknown,
    Down,
}

/// What follows from the observations.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// The networks of clients without an answer, and since when.
    waiting: BTreeMap<IpNet, Instant>,
    answered: Option<Instant>,
    /// When its port was reported as closed first, since the last answer.
    refused: Option<Instant>,
    /// Whether that has been reported again later.
    is_refused: bool,
    down_until: Option<Instant>,
}

impl Judgement {
    /// Takes what has been seen since the last look, and returns what the game server counts as. Any answer counts more than
    /// any silence, and the silence towards one client shows nothing: it may have sent nonsense. A report that its port is closed may
    /// come from a firewall that refuses one client, or be forged, so that it counts once it is repeated and there are no answers.
    pub(crate) fn look(&mut self, now: Instant, observations: &Observations) -> State {
        let begun = std::mem::take(&mut *observations.lock());
        let [answered, refused] =
            [&observations.answered, &observations.refused].map(|seen| seen.swap(false, Ordering::Relaxed));
        if answered {
            *self = Self { answered: Some(now), ..Self::default() };
            return State::Answers;
        }
        let waits = |since: &Instant| now.saturating_duration_since(*since);
        self.waiting.retain(|_, since| waits(since) < COUNTED);
        for network in begun {
            if self.waiting.len() < NETWORKS_MAX {
                self.waiting.entry(network).or_insert(now);
            }
        }
        if refused {
            let since = self.refused.filter(|since| waits(since) < COUNTED).unwrap_or(now);
            self.refused = Some(since);
            self.is_refused |= waits(&since) >= REFUSAL;
        }
        let has_answered = self.answered.as_ref().is_some_and(|at| waits(at) < SILENCE);
        let silent = self.waiting.values().filter(|since| waits(since) >= SILENCE).count();
        if (self.is_refused && !has_answered) || silent >= NETWORKS_MIN {
            *self = Self { down_until: Some(now + DOWN), ..Self::default() };
        }
        match self.answered {
            _ if self.down_until.is_some_and(|until| now < until) => State::Down,
            Some(_) => State::Answers,
            None => State::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Judgement {
        fn is_up(&mut self, now: Instant, observations: &Observations) -> bool {
            self.look(now, observations) != State::Down
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_server_that_refuses_is_down_for_a_while() {
        let (start, observations, mut judgement) = begin();
        assert!(judgement.is_up(start, &observations), "nothing is known");
        let refuse = |second| {
            observations.unreachable(client(1), Unreachable::ClosedPort);
            start + second * SECOND
        };
        assert!(judgement.is_up(refuse(0), &observations), "one report may be forged");
        assert!(!judgement.is_up(refuse(1), &observations));
        assert!(!judgement.is_up(start + 30 * SECOND, &observations));
        assert_eq!(
            judgement.look(start + 31 * SECOND, &observations),
            State::Unknown,
            "it may be tried again"
        );
        assert!(judgement.is_up(refuse(32), &observations));
        assert!(!judgement.is_up(refuse(33), &observations));
        observations.answered();
        assert_eq!(judgement.look(start + 34 * SECOND, &observations), State::Answers, "it is back");
    }

    #[test]
    fn single_reports_that_a_port_is_closed_do_not_show_that_a_server_is_down() {
        let (start, observations, mut judgement) = begin();
        for minute in 0..100 {
            let at = start + minute * COUNTED;
            // Those of one moment are one.
            (0..9).for_each(|number| observations.unreachable(client(number), Unreachable::ClosedPort));
            assert!((0..60).all(|second| judgement.is_up(at + second * SECOND, &observations)), "{minute}");
        }
    }

    /// A client in a network of its own.
    fn client(number: u8) -> IpAddr {
        [192, 0, number, 1].into()
    }

    /// What is about the path to a server.
    const PATH: [Unreachable; 4] =
        [Unreachable::Host, Unreachable::Network, Unreachable::Forbidden, Unreachable::Other];

    #[test]
    fn reports_about_the_path_of_one_client_do_not_show_that_a_server_is_down() {
        let (start, observations, mut judgement) = begin();
        for (second, reason) in (0..1_000).zip(PATH.into_iter().cycle()) {
            observations.unreachable(client(1), reason);
            assert!(judgement.is_up(start + second * SECOND, &observations), "{second}");
        }
    }

    fn begin() -> (Instant, Observations, Judgement) {
        (Instant::now(), Observations::default(), Judgement::default())
    }

    #[test]
    fn a_server_to_which_several_networks_have_no_path_is_down_after_a_while() {
        let (start, observations, mut judgement) = begin();
        (0..3).zip(PATH).for_each(|(number, reason)| observations.unreachable(client(number), reason));
        assert!((0..10).all(|second| judgement.is_up(start + second * SECOND, &observations)));
        assert!(!judgement.is_up(start + 10 * SECOND, &observations));
    }

    #[test]
    fn a_server_that_answers_others_is_not_down_because_one_client_is_refused() {
        let (start, observations, mut judgement) = begin();
        for second in 0..100 {
            observations.unreachable(client(1), Unreachable::ClosedPort);
            if second % 10 == 0 {
                observations.answered();
            }
            assert!(judgement.is_up(start + second * SECOND, &observations), "{second}");
        }
        assert!(!judgement.is_up(start + 100 * SECOND, &observations), "it has not answered for ten seconds");
    }

    #[test]
    fn one_customer_has_one_network_however_many_addresses_of_ipv6_that_are() {
        let (start, observations, mut judgement) = begin();
        for second in 0..100 {
            observations.begun([0x2001, 0xDB8, 1, second as u16 * 256, 0, 0, 0, 1].into());
            assert!(judgement.is_up(start + second * SECOND, &observations), "{second}");
        }
        (2..4).for_each(|number| observations.begun([0x2001, 0xDB8, number, 0, 0, 0, 0, 1].into()));
        judgement.is_up(start + 100 * SECOND, &observations);
        assert!(!judgement.is_up(start + 110 * SECOND, &observations));
    }

    #[test]
    fn a_server_that_answers_no_network_of_several_is_down() {
        let (start, observations, mut judgement) = begin();
        (0..3).for_each(|number| observations.begun(client(number)));
        assert!((0..10).all(|second| judgement.is_up(start + second * SECOND, &observations)));
        assert!(!judgement.is_up(start + 10 * SECOND, &observations));
    }

    #[test]
    fn clients_of_one_network_without_an_answer_do_not_show_that_a_server_is_down() {
        let (start, observations, mut judgement) = begin();
        for second in 0..1_000 {
            observations.begun(client(1));
            assert!(judgement.is_up(start + second * SECOND, &observations), "{second}");
        }
    }

    #[test]
    fn clients_without_an_answer_are_forgotten_one_by_one() {
        let (start, observations, mut judgement) = begin();
        // Never three of them in a minute.
        for second in 0..1_000 {
            if second % 30 == 0 {
                observations.begun(client((second / 30) as u8));
            }
            assert!(judgement.is_up(start + second * SECOND, &observations), "{second}");
        }
    }

    #[test]
    fn clients_that_have_just_begun_have_their_time() {
        let (start, observations, mut judgement) = begin();
        observations.begun(client(1));
        judgement.is_up(start, &observations);
        // The answer to these is on its way.
        (2..20).for_each(|number| observations.begun(client(number)));
        assert!(judgement.is_up(start + 50 * SECOND, &observations));
        observations.answered();
        assert!(judgement.is_up(start + 51 * SECOND, &observations));
        assert!(judgement.is_up(start + 62 * SECOND, &observations));
    }

    #[test]
    fn silence_for_some_clients_is_outweighed_by_an_answer_to_another() {
        let (start, observations, mut judgement) = begin();
        for second in 0..100 {
            observations.begun(client(second as u8));
            if second % 9 == 0 {
                observations.answered();
            }
            assert!(judgement.is_up(start + second * SECOND, &observations), "{second}");
        }
    }
}
