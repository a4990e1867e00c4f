//! Asks a RakNet server for its pong, again and again: what it says answers pings of clients and stands in the list of
//! servers.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rakwire::raknet::Guid;
use rakwire::wire::offline::{Offline, PingScope};
use rakwire::wire::{Reader, Wire, Writer};
use tokio::net::UdpSocket;
use tokio::time::{MissedTickBehavior, interval};

use crate::protocol::{Pong, PongCache};

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

/// Asks `server` until the future is dropped.
///
/// # Errors
/// If there is no socket to ask with.
pub(crate) async fn probe(server: SocketAddr, guid: u64, pongs: &Arc<PongCache>) -> io::Result<()> {
    let any: SocketAddr =
        if server.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(server).await?;
    let mut tick = interval(INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut round = Round { number: 0, at: Instant::now() };
    let mut buffer = [0; LONGEST];
    loop {
        tokio::select! {
            _ = tick.tick() => {
                round = Round { number: round.number + 1, at: Instant::now() };
                for scope in [PingScope::Any, PingScope::OpenConnections] {
                    let mut bytes = [0; PING];
                    // A server that is away does not end this.
                    let _ = socket.send(ping(scope, round.time(scope), guid, &mut bytes)).await;
                }
            }
            received = socket.recv(&mut buffer) => {
                if let Ok(length) = received {
                    round.learn(pongs, Instant::now(), &buffer[..length]);
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

    #[tokio::test]
    async fn a_server_is_asked_and_heard() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let pongs = Arc::<PongCache>::default();
        let probing = probe(server.local_addr().unwrap(), 1, &pongs);
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
