//! The health of game servers.
//!
//! A RakNet server is pinged periodically. Its pong is used to answer clients' pings, and appears in the list of
//! servers. The log has a line when the server stops answering, and another when it answers again. Other servers are
//! judged by their flows: whether new flows get an answer, and which errors the network reports.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use rakwire::raknet::Guid;
use rakwire::wire::offline::{Offline, PingScope};
use rakwire::wire::{Reader, Wire, Writer};
use tokio::net::UdpSocket;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::udp::unreachable;
use crate::addresses::TargetName;
use crate::flow::{TargetCounters, Unreachable};
use crate::protocol::{PONG_LIFETIME, Pong, PongCache};

/// The interval between rounds of pings. A pong may answer any of the last three rounds.
const INTERVAL: Duration = Duration::from_secs(1);

/// The length of a ping in bytes.
const PING: usize = 33;
/// The maximum length of a pong in bytes.
const LONGEST: usize = 1_500;

/// The pings of one round. The time that a pong echoes identifies the ping that it answers.
#[derive(Debug, Clone, Copy)]
struct Round {
    number: u64,
    at: Instant,
}

impl Round {
    const fn time(self, scope: PingScope) -> u64 {
        match scope {
            PingScope::Any => 2 * self.number,
            PingScope::OpenConnections => 2 * self.number + 1,
        }
    }

    /// Records a pong. A server that writes its own time into pongs may have answered any ping.
    fn learn(self, pongs: &PongCache, now: Instant, datagram: &[u8]) {
        let Ok(Offline::Pong { time, guid, data }) = Offline::read(&mut Reader::new(datagram)) else {
            return;
        };
        let is_open = time == self.time(PingScope::OpenConnections);
        let scope = if is_open { PingScope::OpenConnections } else { PingScope::Any };
        let is_timed = is_open || time == self.time(PingScope::Any);
        let latency = is_timed.then(|| now.saturating_duration_since(self.at));
        pongs.learn(scope, Pong { guid: guid.0, data: data.to_vec(), at: now, latency });
    }
}

/// Pings one server periodically, and records its pongs.
#[derive(Debug)]
pub(crate) struct Prober {
    name: TargetName,
    server: SocketAddr,
    guid: u64,
    pongs: Arc<PongCache>,
    counters: Arc<TargetCounters>,
    /// True if new clients of the target are sent to this address. Only then do reports about the address count for the
    /// target.
    is_in_use: Arc<AtomicBool>,
    watch: TargetWatch,
}

impl Prober {
    /// Creates a prober with this GUID.
    pub(crate) fn new(
        name: TargetName,
        server: SocketAddr,
        guid: u64,
        pongs: Arc<PongCache>,
        counters: Arc<TargetCounters>,
        is_in_use: Arc<AtomicBool>,
    ) -> Self {
        Self { name, server, guid, pongs, counters, is_in_use, watch: TargetWatch::new(Instant::now()) }
    }

    /// Logs a server that has stopped answering, or answers again.
    fn watch(&mut self, now: Instant) {
        let (target_name, server) = (&self.name, self.server);
        match self.watch.note(now, self.pongs.last(now).is_some()) {
            Some(Change::Down) => warn!(%target_name, %server, "the game server does not answer pings"),
            Some(Change::Up(after)) => {
                let seconds = after.as_secs();
                info!(%target_name, %server, seconds, "the game server answers pings again");
            }
            None => {}
        }
    }

    /// Counts an error about a ping that the network or this machine has reported.
    fn note_error(&self, error: &io::Error) {
        if let Some(reason) = unreachable(error).filter(|_| self.is_in_use.load(Ordering::Relaxed)) {
            self.counters.unreachable(reason);
        }
    }

    /// Sends pings until the future is dropped.
    ///
    /// # Errors
    /// If the socket cannot be created.
    pub(crate) async fn ask(&mut self) -> io::Result<()> {
        let any: SocketAddr = if self.server.is_ipv4() {
            (Ipv4Addr::UNSPECIFIED, 0).into()
        } else {
            (Ipv6Addr::UNSPECIFIED, 0).into()
        };
        let socket = UdpSocket::bind(any).await?;
        socket.connect(self.server).await?;
        let mut tick = interval(INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut round = Round { number: 0, at: Instant::now() };
        let mut buffer = [0; LONGEST];
        loop {
            tokio::select! {
                _ = tick.tick() => {
                    round = Round { number: round.number + 1, at: Instant::now() };
                    self.watch(round.at);
                    for scope in [PingScope::Any, PingScope::OpenConnections] {
                        let mut bytes = [0; PING];
                        // The loop continues if the server is absent.
                        let sent = socket.send(ping(scope, round.time(scope), self.guid, &mut bytes)).await;
                        sent.err().iter().for_each(|error| self.note_error(error));
                    }
                }
                received = socket.recv(&mut buffer) => match received {
                    Ok(length) => round.learn(&self.pongs, Instant::now(), &buffer[..length]),
                    Err(error) => self.note_error(&error),
                }
            }
        }
    }
}

fn ping(scope: PingScope, time: u64, guid: u64, buffer: &mut [u8; PING]) -> &[u8] {
    let mut writer = Writer::new(buffer);
    // A ping is exactly as long as its buffer.
    let _ = Offline::Ping { scope, time, guid: Some(Guid(guid)) }.write(&mut writer);
    writer.finish()
}

/// The minimum interval between two log lines about one game server, which may alternate between up and down.
const LINE_INTERVAL: Duration = Duration::from_secs(60);

/// A change of a game server's state, to be logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The server does not answer.
    Down,
    /// The server answers again, after this time.
    Up(Duration),
}

/// Detects that a game server stops answering pings, or answers again. Each change has one line in the log.
#[derive(Debug)]
pub(crate) struct TargetWatch {
    /// The start of the current silence; `None` while the server answers.
    silent_since: Option<Instant>,
    /// The last logged change, its time, and the start of the silence that it concerned.
    logged: Option<(Change, Instant, Instant)>,
}

impl TargetWatch {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { silent_since: Some(now), logged: None }
    }

    /// Records whether the server has answered recently.
    pub(crate) fn note(&mut self, now: Instant, answers: bool) -> Option<Change> {
        self.silent_since = if answers { None } else { Some(self.silent_since.unwrap_or(now)) };
        let change = match (self.silent_since, self.logged) {
            // After the start of the relay, the server has `PONG_LIFETIME` for its first answer.
            (Some(since), None | Some((Change::Up(_), ..)))
                if now.saturating_duration_since(since) >= PONG_LIFETIME || self.logged.is_some() =>
            {
                (Change::Down, since)
            }
            (None, Some((Change::Down, _, since))) => (Change::Up(now.saturating_duration_since(since)), now),
            _ => return None,
        };
        let is_early =
            |(_, at, _): (Change, Instant, Instant)| now.saturating_duration_since(at) < LINE_INTERVAL;
        if self.logged.is_some_and(is_early) {
            return None;
        }
        self.logged = Some((change.0, now, change.1));
        Some(change.0)
    }
}

/// Limits the log lines about changed addresses, per target.
#[derive(Debug, Default)]
pub(crate) struct MoveLog(BTreeMap<TargetName, Moves>);

/// The time at which a move of a target was last logged, and the number of later moves that were not logged.
#[derive(Debug, Clone, Copy)]
struct Moves {
    logged: Instant,
    left_out: u64,
}

impl MoveLog {
    /// Records that a target has moved to another address. If this move must be logged, returns the number of earlier
    /// moves since the last log line.
    pub(crate) fn note(&mut self, now: Instant, target: &TargetName) -> Option<u64> {
        match self.0.get_mut(target) {
            Some(moves) if now.saturating_duration_since(moves.logged) < LINE_INTERVAL => {
                moves.left_out += 1;
                None
            }
            last => {
                let left_out = last.map_or(0, |moves| moves.left_out);
                self.0.insert(target.clone(), Moves { logged: now, left_out: 0 });
                Some(left_out)
            }
        }
    }
}

/// The time without an answer to new clients after which their game server counts as down. An answer outweighs network
/// reports for the same time.
const SILENCE: Duration = Duration::from_secs(10);

/// The minimum time between the first and the last report of a closed port. A single report may be forged, or caused by
/// a restart.
const REFUSAL: Duration = Duration::from_secs(1);

/// The minimum number of client networks without an answer. A single client may get none because it sends malformed
/// data.
const NETWORKS_MIN: usize = 3;

/// The time for which a client without an answer counts.
const COUNTED: Duration = Duration::from_secs(60);

/// The maximum number of stored networks.
const NETWORKS_MAX: usize = 16;

/// The prefix length of a client network. One customer of a provider may own a whole IPv6 /48.
const NETWORK_V4: u8 = 24;
const NETWORK_V6: u8 = 48;

/// The time for which a server counts as down before new clients try it again.
const DOWN: Duration = Duration::from_secs(30);

/// Observations of a game server by flows, since the last judgement.
#[derive(Debug, Default)]
pub(crate) struct Observations {
    begun: Mutex<BTreeSet<IpNet>>,
    answered: AtomicBool,
    refused: AtomicBool,
}

impl Observations {
    /// Records that a flow of this client has sent its first datagram.
    pub(crate) fn begun(&self, client: IpAddr) {
        let mut begun = self.lock();
        if begun.len() < NETWORKS_MIN {
            begun.insert(network(client));
        }
    }

    /// Records that a datagram from the server has arrived.
    pub(crate) fn answered(&self) {
        // Flows on several threads share this flag, and most datagrams do not change it.
        if !self.answered.load(Ordering::Relaxed) {
            self.answered.store(true, Ordering::Relaxed);
        }
    }

    /// Records a report by the network or this machine that the game server is unreachable. An error about the path may
    /// concern only this client, so it counts as silence.
    pub(crate) fn unreachable(&self, client: IpAddr, reason: Unreachable) {
        if reason.is_server_absent() {
            self.refused.store(true, Ordering::Relaxed);
        } else {
            self.begun(client);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<IpNet>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the network of a client.
fn network(client: IpAddr) -> IpNet {
    let client = client.to_canonical();
    let length = if client.is_ipv4() { NETWORK_V4 } else { NETWORK_V6 };
    // The prefix lengths are valid for both families.
    IpNet::new(client, length).map_or_else(|_| IpNet::from(client), |network| network.trunc())
}

/// The assumed state of a game server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The server has answered, and no later observation shows that it is down.
    Answers,
    /// The server has not answered since it was down, or has never answered. New clients may try it.
    Unknown,
    Down,
}

/// Derives the state of a game server from observations.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// The networks of clients without an answer, each with the time since which it has waited.
    waiting: BTreeMap<IpNet, Instant>,
    answered: Option<Instant>,
    /// The time of the first report of a closed port since the last answer.
    refused: Option<Instant>,
    /// True if the report was repeated at least [`REFUSAL`] later.
    is_refused: bool,
    down_until: Option<Instant>,
}

impl Judgement {
    /// Takes the observations since the last call, and returns the state of the game server.
    ///
    /// An answer outweighs any silence. Silence towards one client is not sufficient, because that client may have sent
    /// malformed data. A report of a closed port may be forged, or come from a firewall that rejects one client. It
    /// counts only if it is repeated and no client gets an answer.
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
    mod prober {
        use super::super::*;
        use crate::counters::Counters;
        use crate::flow::Unreachable;

        fn pong(time: u64) -> Vec<u8> {
            let mut buffer = [0; 100];
            let mut writer = Writer::new(&mut buffer);
            Offline::Pong { time, guid: Guid(4), data: b"x" }.write(&mut writer).unwrap();
            writer.finish().to_vec()
        }

        #[test]
        fn only_pongs_of_the_current_round_are_timed() {
            let at = Instant::now();
            let round = Round { number: 7, at };
            let now = at + Duration::from_millis(3);
            for (time, latency, has_room) in [
                (round.time(PingScope::Any), Some(Duration::from_millis(3)), false),
                (round.time(PingScope::OpenConnections), Some(Duration::from_millis(3)), true),
                (999, None, false),
            ] {
                let pongs = PongCache::default();
                round.learn(&pongs, now, &pong(time));
                assert_eq!(pongs.last(now).unwrap().latency, latency);
                assert_eq!(pongs.answer(now, PingScope::OpenConnections, 0).is_some(), has_room);
            }
            let pongs = PongCache::default();
            round.learn(&pongs, now, &[0x1C, 1, 2]);
            assert_eq!(pongs.last(now), None);
        }

        fn prober_of(server: SocketAddr, pongs: &Arc<PongCache>) -> Prober {
            let name: TargetName = "game".parse().unwrap();
            let counters = Counters::default().target(&name);
            Prober::new(name, server, 1, Arc::clone(pongs), counters, Arc::new(AtomicBool::new(true)))
        }

        #[tokio::test]
        async fn icmp_port_unreachable_is_counted() {
            let closed = UdpSocket::bind("127.0.0.87:0").await.unwrap().local_addr().unwrap();
            let mut prober = prober_of(closed, &Arc::default());
            let counters = Arc::clone(&prober.counters);
            let heard = async {
                while counters.snapshot().unreachable(Unreachable::ClosedPort) == 0 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::select! {
                ended = prober.ask() => panic!("{ended:?}"),
                () = heard => {}
            }
        }

        #[test]
        fn reports_about_unused_addresses_are_ignored() {
            let prober = prober_of("127.0.0.1:9".parse().unwrap(), &Arc::default());
            let refused = io::ErrorKind::ConnectionRefused.into();
            let counted = || prober.counters.snapshot().unreachable(Unreachable::ClosedPort);
            prober.is_in_use.store(false, Ordering::Relaxed);
            prober.note_error(&refused);
            assert_eq!(counted(), 0);
            prober.is_in_use.store(true, Ordering::Relaxed);
            prober.note_error(&refused);
            assert_eq!(counted(), 1);
        }

        #[tokio::test]
        async fn a_server_is_pinged_and_its_pong_recorded() {
            let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let pongs = Arc::<PongCache>::default();
            let mut prober = prober_of(server.local_addr().unwrap(), &pongs);
            let probing = prober.ask();
            let answering = async {
                let mut buffer = [0; 100];
                let (length, from) = server.recv_from(&mut buffer).await.unwrap();
                let Ok(Offline::Ping { time, .. }) = Offline::read(&mut Reader::new(&buffer[..length]))
                else {
                    panic!("no ping")
                };
                server.send_to(&pong(time), from).await.unwrap();
                while pongs.last(Instant::now()).is_none() {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                ended = probing => panic!("{ended:?}"),
                () = answering => {}
            }
            assert_eq!(pongs.guid(), Some(4));
        }
    }

    mod target_watch {
        use super::super::*;

        const SECOND: Duration = Duration::from_secs(1);

        #[test]
        fn departure_and_return_of_a_server_are_logged_once() {
            let start = Instant::now();
            let mut watch = TargetWatch::new(start);
            assert_eq!(watch.note(start, false), None, "the server has had no time to answer");
            assert_eq!(watch.note(start + SECOND, true), None);
            assert_eq!(watch.note(start + 100 * SECOND, false), None);
            assert_eq!(watch.note(start + 103 * SECOND, false), Some(Change::Down));
            assert_eq!(watch.note(start + 104 * SECOND, false), None);
            assert_eq!(watch.note(start + 200 * SECOND, true), Some(Change::Up(100 * SECOND)));
            assert_eq!(watch.note(start + 201 * SECOND, true), None);
        }

        #[test]
        fn a_server_that_never_answered_is_logged() {
            let start = Instant::now();
            let mut watch = TargetWatch::new(start);
            assert_eq!(watch.note(start + 2 * SECOND, false), None);
            assert_eq!(watch.note(start + 3 * SECOND, false), Some(Change::Down));
        }

        #[test]
        fn a_constantly_moving_target_is_logged_once_a_minute() {
            let start = Instant::now();
            let mut log = MoveLog::default();
            let (game, other) = ("game".parse().unwrap(), "other".parse().unwrap());
            let lines: Vec<u64> =
                (0..121).filter_map(|second| log.note(start + second * SECOND, &game)).collect();
            assert_eq!(lines, [0, 59, 59]);
            assert_eq!(log.note(start + 121 * SECOND, &other), Some(0), "each target has its own limit");
        }

        #[test]
        fn a_flapping_server_is_logged_once_a_minute() {
            let start = Instant::now();
            let mut watch = TargetWatch::new(start);
            let lines = (0..600).filter(|second: &u32| {
                watch.note(start + *second * SECOND, (second / 10).is_multiple_of(2)).is_some()
            });
            assert!((5..=10).contains(&lines.count()));
        }
    }

    mod observations {
        use super::super::*;

        impl Judgement {
            fn is_up(&mut self, now: Instant, observations: &Observations) -> bool {
                self.look(now, observations) != State::Down
            }
        }

        const SECOND: Duration = Duration::from_secs(1);

        #[test]
        fn a_server_with_a_closed_port_is_down_for_a_while() {
            let (start, observations, mut judgement) = begin();
            assert!(judgement.is_up(start, &observations), "a server counts as up at first");
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
                "new clients may be sent to the server again"
            );
            assert!(judgement.is_up(refuse(32), &observations));
            assert!(!judgement.is_up(refuse(33), &observations));
            observations.answered();
            assert_eq!(
                judgement.look(start + 34 * SECOND, &observations),
                State::Answers,
                "the server answers again"
            );
        }

        #[test]
        fn a_single_closed_port_report_does_not_mark_a_server_down() {
            let (start, observations, mut judgement) = begin();
            for minute in 0..100 {
                let at = start + minute * COUNTED;
                // Reports at the same instant count as a single one.
                (0..9).for_each(|number| observations.unreachable(client(number), Unreachable::ClosedPort));
                assert!(
                    (0..60).all(|second| judgement.is_up(at + second * SECOND, &observations)),
                    "{minute}"
                );
            }
        }

        /// Returns a client in its own network.
        fn client(number: u8) -> IpAddr {
            [192, 0, number, 1].into()
        }

        /// Errors about the path to a server.
        const PATH: [Unreachable; 4] =
            [Unreachable::Host, Unreachable::Network, Unreachable::Forbidden, Unreachable::Other];

        #[test]
        fn path_errors_of_one_client_do_not_mark_a_server_down() {
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
        fn path_errors_of_several_networks_mark_a_server_down() {
            let (start, observations, mut judgement) = begin();
            (0..3).zip(PATH).for_each(|(number, reason)| observations.unreachable(client(number), reason));
            assert!((0..10).all(|second| judgement.is_up(start + second * SECOND, &observations)));
            assert!(!judgement.is_up(start + 10 * SECOND, &observations));
        }

        #[test]
        fn a_server_that_answers_others_is_not_down() {
            let (start, observations, mut judgement) = begin();
            for second in 0..100 {
                observations.unreachable(client(1), Unreachable::ClosedPort);
                if second % 10 == 0 {
                    observations.answered();
                }
                assert!(judgement.is_up(start + second * SECOND, &observations), "{second}");
            }
            assert!(
                !judgement.is_up(start + 100 * SECOND, &observations),
                "the server has not answered for ten seconds"
            );
        }

        #[test]
        fn an_ipv6_48_counts_as_one_network() {
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
        fn silence_towards_several_networks_marks_a_server_down() {
            let (start, observations, mut judgement) = begin();
            (0..3).for_each(|number| observations.begun(client(number)));
            assert!((0..10).all(|second| judgement.is_up(start + second * SECOND, &observations)));
            assert!(!judgement.is_up(start + 10 * SECOND, &observations));
        }

        #[test]
        fn silence_towards_one_network_does_not_mark_a_server_down() {
            let (start, observations, mut judgement) = begin();
            for second in 0..1_000 {
                observations.begun(client(1));
                assert!(judgement.is_up(start + second * SECOND, &observations), "{second}");
            }
        }

        #[test]
        fn clients_without_an_answer_expire_individually() {
            let (start, observations, mut judgement) = begin();
            // At no time do three clients count, because each counts for one minute.
            for second in 0..1_000 {
                if second % 30 == 0 {
                    observations.begun(client((second / 30) as u8));
                }
                assert!(judgement.is_up(start + second * SECOND, &observations), "{second}");
            }
        }

        #[test]
        fn new_clients_have_time_to_get_an_answer() {
            let (start, observations, mut judgement) = begin();
            observations.begun(client(1));
            judgement.is_up(start, &observations);
            // The answer to these clients is in flight.
            (2..20).for_each(|number| observations.begun(client(number)));
            assert!(judgement.is_up(start + 50 * SECOND, &observations));
            observations.answered();
            assert!(judgement.is_up(start + 51 * SECOND, &observations));
            assert!(judgement.is_up(start + 62 * SECOND, &observations));
        }

        #[test]
        fn an_answer_to_one_client_outweighs_silence_towards_others() {
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
}
