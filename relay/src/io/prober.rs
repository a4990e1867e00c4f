//! Asks a RakNet server for its pong, again and again: what it says answers pings of clients and stands in the list of
//! servers.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rakwire::raknet::Guid;
use rakwire::wire::offline::{Offline, PingScope};
use rakwire::wire::{Reader, Wire, Writer};
use tokio::net::UdpSocket;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::target_watch::{Change, TargetWatch};
use super::udp_error::unreachable;
use crate::flow::TargetCounters;
use crate::protocol::{Pong, PongCache};
use crate::target::TargetName;

/// The time between two rounds of pings; a pong answers for three of them.
const INTERVAL: Duration = Duration::from_secs(1);

/// Bytes of a ping, and of the longest datagram that can be a pong.
const PING: usize = 33;
const LONGEST: usize = 1_500;

/// The questions of one round. The time that a ping carries tells which of them a pong answers.
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

    /// What a pong answers. One with the server's own clock answers anything.
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

/// Asks one server.
#[derive(Debug)]
pub(crate) struct Prober {
    name: TargetName,
    server: SocketAddr,
    guid: u64,
    pongs: Arc<PongCache>,
    counters: Arc<TargetCounters>,
    /// Whether new clients of the target go there. What is reported of other addresses is none of the target.
    is_in_use: Arc<AtomicBool>,
    watch: TargetWatch,
}

impl Prober {
    /// A prober that calls itself `guid`.
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

    /// Logs that the server has gone or has returned.
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

    /// Counts an error that the network or this machine has reported about a ping.
    fn note_error(&self, error: &io::Error) {
        if let Some(reason) = unreachable(error).filter(|_| self.is_in_use.load(Ordering::Relaxed)) {
            self.counters.unreachable(reason);
        }
    }

    /// Asks until the future is dropped.
    ///
    /// # Errors
    /// If there is no socket to ask with.
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
                        // A server that is away does not end this.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters;
    use crate::flow::Unreachable;

    fn pong(time: u64) -> Vec<u8> {
        let mut buffer = [0; 100];
        let mut writer = Writer::new(&mut buffer);
        Offline::Pong { time, guid: Guid(4), data: b"x" }.write(&mut writer).unwrap();
        writer.finish().to_vec()
    }

    #[test]
    fn a_pong_is_timed_if_it_answers_this_round() {
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
    async fn reports_that_nothing_listens_are_counted() {
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
    fn reports_of_an_address_that_is_not_in_use_count_for_nothing() {
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
    async fn a_server_is_asked_and_heard() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let pongs = Arc::<PongCache>::default();
        let mut prober = prober_of(server.local_addr().unwrap(), &pongs);
        let probing = prober.ask();
        let answering = async {
            let mut buffer = [0; 100];
            let (length, from) = server.recv_from(&mut buffer).await.unwrap();
            let Ok(Offline::Ping { time, .. }) = Offline::read(&mut Reader::new(&buffer[..length])) else {
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
