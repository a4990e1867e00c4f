//! The load generator. The clients and the game server share a thread that never sleeps, so that they add no wake-up
//! latency to that of the relay.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::client::Client;
use super::game_server::GameServer;

/// After this time without an echo, all packets that a client has in flight count as lost.
const LOST_AFTER: Duration = Duration::from_millis(50);
/// The size in bytes of the timestamp at the start of each packet.
const STAMP: usize = 8;

/// The rule that determines when packets are sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pace {
    /// Whenever a client has fewer than this many packets in flight.
    Window(u32),
    /// At this rate, the total of all clients, in packets per second.
    Rate(f64),
}

/// The result of a load.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    pub(super) sent: u64,
    pub(super) echoed: u64,
    pub(super) seconds: f64,
    /// The percentiles of the round-trip times in microseconds, measured from the time at which a packet was due.
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
}

pub(super) struct Load {
    clients: Vec<Loaded>,
    server: Option<GameServer>,
    packet: Vec<u8>,
    start: Instant,
    /// The index of the client that sends the next due packet.
    next: usize,
}

struct Loaded {
    client: Box<dyn Client>,
    in_flight: u32,
    last_echo: Instant,
}

impl Load {
    /// Creates a load with packets of `size` bytes, but at least 8.
    ///
    /// `server` is `None` if a separate program echoes the packets.
    pub(super) fn new(clients: Vec<Box<dyn Client>>, server: Option<GameServer>, size: usize) -> Self {
        let start = Instant::now();
        let clients = clients.into_iter().map(|client| Loaded { client, in_flight: 0, last_echo: start });
        Self { clients: clients.collect(), server, packet: vec![0x20; size.max(STAMP)], start, next: 0 }
    }

    /// Sends and receives for `duration`.
    pub(super) fn run(&mut self, pace: Pace, duration: Duration) -> Result<Outcome> {
        let began = Instant::now();
        let mut sent = 0;
        let mut nanos = Vec::new();
        while began.elapsed() < duration {
            let before = (sent, nanos.len());
            sent += match pace {
                Pace::Window(window) => self.fill(window)?,
                Pace::Rate(rate) => self.send_due(began, rate, sent)?,
            };
            if let Some(server) = &mut self.server {
                server.serve()?;
            }
            self.receive(&mut nanos)?;
            if before == (sent, nanos.len()) {
                // On a machine with a single core, the relay needs it too.
                std::thread::yield_now();
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let echoed = nanos.len() as u64;
        nanos.sort_unstable();
        let (p50_us, p99_us) = (percentile_us(&nanos, 0.5), percentile_us(&nanos, 0.99));
        Ok(Outcome { sent, echoed, seconds, p50_us, p99_us })
    }

    fn stamp(&mut self, time: Instant) {
        let nanos = u64::try_from(time.duration_since(self.start).as_nanos()).unwrap_or(u64::MAX);
        self.packet[..STAMP].copy_from_slice(&nanos.to_be_bytes());
    }

    /// Sends packets of every client until it has `window` packets in flight. Returns the number of sent packets.
    fn fill(&mut self, window: u32) -> Result<u64> {
        let now = Instant::now();
        self.stamp(now);
        let mut sent = 0;
        for Loaded { client, in_flight, last_echo } in &mut self.clients {
            if now.duration_since(*last_echo) > LOST_AFTER {
                (*in_flight, *last_echo) = (0, now);
            }
            for _ in *in_flight..window {
                client.send(&self.packet)?;
                sent += 1;
            }
            *in_flight = (*in_flight).max(window);
            client.flush()?;
        }
        Ok(sent)
    }

    /// Sends the packets that are due, from one client after the other. Returns the number of sent packets.
    fn send_due(&mut self, began: Instant, rate: f64, sent: u64) -> Result<u64> {
        let due = (began.elapsed().as_secs_f64() * rate) as u64;
        for number in sent..due {
            self.stamp(began + Duration::from_secs_f64(number as f64 / rate));
            let next = self.next % self.clients.len().max(1);
            self.next = next + 1;
            if let Some(Loaded { client, .. }) = self.clients.get_mut(next) {
                client.send(&self.packet)?;
            }
        }
        if due > sent {
            self.clients.iter_mut().try_for_each(|loaded| loaded.client.flush())?;
        }
        Ok(due.saturating_sub(sent))
    }

    fn receive(&mut self, nanos: &mut Vec<u64>) -> Result<()> {
        let (start, size) = (self.start, self.packet.len());
        for Loaded { client, in_flight, last_echo } in &mut self.clients {
            let mut now = None;
            client.receive(&mut |packet| {
                if packet.len() != size {
                    return;
                }
                let now = *now.get_or_insert_with(Instant::now);
                let sent = packet.first_chunk().map_or(0, |stamp| u64::from_be_bytes(*stamp));
                let arrived = u64::try_from(now.duration_since(start).as_nanos()).unwrap_or(u64::MAX);
                nanos.push(arrived.saturating_sub(sent));
                (*in_flight, *last_echo) = (in_flight.saturating_sub(1), now);
            })?;
        }
        Ok(())
    }
}

/// Returns a percentile (nearest rank) of sorted nanoseconds in microseconds, or 0 if there are no values.
fn percentile_us(nanos: &[u64], share: f64) -> f64 {
    let rank = (nanos.len() as f64 * share).ceil() as usize;
    nanos.get(rank.max(1) - 1).map_or(0.0, |nanos| *nanos as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::super::client::UdpClient;
    use super::super::socket::Calls;
    use super::*;

    fn direct(clients: usize) -> Load {
        let server = GameServer::bind(Calls::Single).unwrap();
        let to = server.local_addr().unwrap();
        let client = |_| Box::new(UdpClient::direct(to, Calls::Single).unwrap()) as Box<dyn Client>;
        Load::new((0..clients).map(client).collect(), Some(server), 100)
    }

    /// Repeats runs until one has an echo, because a busy machine may not echo anything within the first runs.
    fn until_echoed(load: &mut Load, pace: Pace) -> Outcome {
        loop {
            let outcome = load.run(pace, Duration::from_millis(50)).unwrap();
            if outcome.echoed > 0 {
                return outcome;
            }
        }
    }

    #[test]
    fn packets_are_echoed_in_a_window_and_at_a_rate() {
        let mut load = direct(3);
        let window = until_echoed(&mut load, Pace::Window(4));
        assert!(window.echoed <= window.sent + 12, "more packets were echoed than had been sent: {window:?}");
        assert!(window.p50_us > 0.0 && window.p99_us >= window.p50_us, "{window:?}");
        let rate = until_echoed(&mut load, Pace::Rate(1_000.0));
        assert!(rate.sent as f64 <= 1_000.0 * rate.seconds, "{rate:?}");
    }

    #[test]
    fn percentiles_are_observed_values() {
        let nanos: Vec<u64> = (1..=100).map(|value| value * 1_000).collect();
        assert_eq!((percentile_us(&nanos, 0.5), percentile_us(&nanos, 0.99)), (50.0, 99.0));
        assert_eq!(percentile_us(&[], 0.5), 0.0);
    }
}
