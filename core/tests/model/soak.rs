//! Long runs over lossy networks, with messages of every reliability and priority on several channels, in both
//! directions.

use core::time::Duration;

use rakwire::raknet::{Capacity, Config, ConnectionId, Event, Peer, SendError};
use rakwire::sim::{Conditions, Pair};
use rakwire::{Instant, U24};

use super::ledger::{Ledger, draw_delivery};
use super::random::Random;
use super::{Broken, Kept};

/// The maximum virtual time of a run, in which half of all datagrams may be lost.
const LIMIT: Duration = Duration::from_secs(600);

/// One direction: the number of messages still to be sent, and the ledger of those sent and delivered.
struct Flow {
    random: Random,
    left: u64,
    ledger: Ledger,
}

impl Flow {
    fn new(seed: u64, messages: u64) -> Self {
        Self { random: Random::new(seed), left: messages, ledger: Ledger::default() }
    }

    /// Sends up to three messages, until one is refused for lack of memory.
    fn send(&mut self, peer: &mut Peer<'_>, now: Instant, id: ConnectionId) -> Kept {
        for _ in 0..self.random.below(4).min(self.left) {
            let (delivery, length) = (draw_delivery(&mut self.random), self.length());
            let message = self.ledger.compose(length);
            match peer.send(now, id, &message, delivery) {
                Ok(_) => self.ledger.accept(delivery, &message),
                Err(SendError::QuotaExceeded | SendError::PoolExhausted) => return Ok(()),
                Err(error) => return Err(format!("a message was refused: {error}")),
            }
            self.left -= 1;
        }
        Ok(())
    }

    fn length(&mut self) -> usize {
        let longest = if self.random.below(10) == 0 { 8_000 } else { 300 };
        1 + self.random.below(longest) as usize
    }

    fn is_done(&self) -> bool {
        self.left == 0 && self.ledger.owed().is_none()
    }

    fn receive(&mut self, peer: &mut Peer<'_>) -> Kept {
        while let Some(event) = peer.poll_event() {
            match event {
                Event::Message { delivery, message, .. } => {
                    self.ledger.arrive(delivery, &message.to_vec())?
                }
                Event::Receipt { .. } => {}
                event @ (Event::Connected { .. }
                | Event::ConnectFailed { .. }
                | Event::Disconnected { .. }
                | Event::Pong { .. }
                | _) => return Err(format!("unexpected event {event:?}")),
            }
        }
        Ok(())
    }
}

type Peers = Pair<Peer<'static>, Peer<'static>>;

/// Executes a run and returns the number of delivered messages.
///
/// The seed determines the path, the first numbers and the messages.
///
/// # Errors
/// The violated guarantee.
pub fn run(seed: u64) -> Result<usize, Broken> {
    let mut random = Random::new(seed);
    let conditions = conditions(&mut random);
    let mut pair = pair(&mut random, seed);
    let (a, b) = connect(&mut pair)?;
    pair.set_conditions(conditions);
    let messages = 20 + random.below(80);
    let (mut up, mut down) = (Flow::new(random.draw(), messages), Flow::new(random.draw(), messages));
    let end = pair.now + LIMIT;
    while !(up.is_done() && down.is_done()) {
        up.send(&mut pair.a, pair.now, a)?;
        down.send(&mut pair.b, pair.now, b)?;
        if !pair.step() || pair.now > end {
            let owed = up.ledger.owed().or_else(|| down.ledger.owed());
            return Err(owed.unwrap_or_else(|| "messages were never accepted for sending".to_owned()));
        }
        up.receive(&mut pair.b)?;
        down.receive(&mut pair.a)?;
    }
    close(&mut pair, a, b)?;
    Ok(up.ledger.arrived() + down.ledger.arrived())
}

fn conditions(random: &mut Random) -> Conditions {
    let mut share = |most: u64| random.below(most * 10 + 1) as f64 / 1_000.0;
    let (loss, duplication, reordering) = (share(50), share(30), share(30));
    let mut millis = |most: u64| Duration::from_millis(random.below(most));
    Conditions {
        loss,
        duplication,
        reordering,
        latency: millis(80),
        jitter: millis(30),
        bottleneck: None,
        bursts: None,
    }
}

fn pair(random: &mut Random, seed: u64) -> Peers {
    let start = match random.below(3) {
        0 => 0,
        1 => 0xFF_FFFF - random.below(200) as u32,
        _ => random.below(0x100_0000) as u32,
    };
    let capacity = Capacity { connections: 1, blocks: 1_024, block_size: 256 };
    let mtu = if random.below(2) == 0 { 576 } else { 1_492 };
    let peer = |name: u8| {
        let mut config = Config::new([name; 32]);
        config.max_incoming = 1;
        config.mtu = mtu;
        // If half of all datagrams are lost, ten seconds without a received datagram are normal.
        config.timeout = Duration::from_secs(120);
        let mut peer = Peer::with_capacity(capacity, config);
        peer.start_numbers_at(U24::new(start));
        peer
    };
    Pair::new(
        peer(1),
        peer(2),
        Conditions { latency: Duration::from_millis(5), ..Conditions::default() },
        seed,
    )
}

fn connect(pair: &mut Peers) -> Result<(ConnectionId, ConnectionId), Broken> {
    let (now, to) = (pair.now, pair.b_address);
    let a = pair.a.connect(now, to).map_err(|error| error.to_string())?;
    let (mut here, mut there) = (None, None);
    loop {
        here = here.or_else(|| connected(&mut pair.a));
        there = there.or_else(|| connected(&mut pair.b));
        if let (Some(_), Some(b)) = (here, there) {
            return Ok((a, b));
        }
        if !pair.step() {
            return Err("no connection over a perfect path".to_owned());
        }
    }
}

fn connected(peer: &mut Peer<'_>) -> Option<ConnectionId> {
    match peer.poll_event() {
        Some(Event::Connected { id, .. }) => Some(id),
        _ => None,
    }
}

/// Closes the connection over a perfect path and checks that all blocks are free.
fn close(pair: &mut Peers, a: ConnectionId, b: ConnectionId) -> Kept {
    pair.set_conditions(Conditions::default());
    pair.a.disconnect(pair.now, a);
    pair.b.disconnect(pair.now, b);
    let end = pair.now + LIMIT;
    while pair.now < end && pair.step() {
        while pair.a.poll_event().is_some() {}
        while pair.b.poll_event().is_some() {}
    }
    for peer in [&pair.a, &pair.b] {
        let (free, all) = (peer.blocks_available(), peer.blocks());
        if peer.connections().next().is_some() || free != all {
            return Err(format!("only {free} of {all} blocks are free after the connection has closed"));
        }
    }
    Ok(())
}
