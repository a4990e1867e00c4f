//! A model of two peers of the Game Protocol under arbitrary operations.
//!
//! A reliable message is delivered once and intact, or the connection is closed. An unreliable one is delivered at
//! most once and intact.

use core::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use rakwire::game_protocol::{
    Capacity, Config, ConnectionId, Event, Peer, Redial, Reliability, ResendInterval, SendError,
};
use rakwire::sim::{Conditions, Pair};

use super::Broken;

/// The sequences at which a peer may start. Sequences wrap around during most runs.
const STARTS: [u16; 6] = [0, 1, 0x7FFF, 0xFC00, 0xFFF0, 0xFFFF];
const BLOCK_SIZES: [usize; 3] = [64, 512, 1_024];
const MAX_OPERATIONS: usize = 80;
/// The length of the last message, which takes two chunks.
const LAST_WORDS: usize = 600;
/// The maximum number of simulation steps of a run, which only an endless loop reaches.
const STEPS: usize = 400_000;
/// The length of the number at the beginning of each message.
const NUMBER: usize = 4;
const FORGERY: [u8; 4] = [203, 0, 113, 9];

/// An operation. A side is the index of a peer, 0 or 1.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Operation {
    Send {
        side: bool,
        length: u16,
        scale: u8,
        reliable: bool,
    },
    Burst {
        side: bool,
        count: u8,
        reliable: bool,
    },
    Wait {
        millis: u16,
    },
    Conditions {
        loss: u8,
        duplication: u8,
        reordering: u8,
    },
    Pause {
        side: bool,
    },
    Resume {
        side: bool,
    },
    /// A peer receives a datagram from an unknown address.
    Forge {
        side: bool,
        bytes: [u8; 6],
        length: u8,
    },
    /// Closes the connection if `die` is a multiple of six.
    Close {
        side: bool,
        die: u8,
    },
}

/// The result of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    pub delivered: usize,
    /// True if the connection closed although neither application closed it.
    pub closed: bool,
}

/// The messages of one direction.
#[derive(Debug, Default)]
struct Ledger {
    sent: Vec<(Vec<u8>, Reliability)>,
    arrived: Vec<u32>,
}

impl Ledger {
    fn next(&self, length: usize) -> Vec<u8> {
        let number = u32::try_from(self.sent.len()).unwrap_or(u32::MAX);
        let fill = (NUMBER..length).map(|index| (index as u32).wrapping_mul(number | 1) as u8);
        number.to_be_bytes().into_iter().chain(fill).collect()
    }

    fn arrive(&mut self, bytes: &[u8], reliability: Reliability) -> Result<(), Broken> {
        let number = bytes.first_chunk().map(|number| u32::from_be_bytes(*number));
        let number = number.ok_or_else(|| format!("{} bytes arrived that were not sent", bytes.len()))?;
        let Some((sent, promise)) = self.sent.get(number as usize) else {
            return Err(format!("message {number} arrived, which was not sent"));
        };
        if sent != bytes || *promise != reliability {
            return Err(format!("message {number} arrived with other bytes or another reliability"));
        }
        let count = self.arrived.get_mut(number as usize).ok_or("no counter for this message")?;
        *count += 1;
        if *count == 1 { Ok(()) } else { Err(format!("message {number} arrived {count} times")) }
    }

    /// Returns the number of reliable messages that were not delivered.
    fn missing(&self) -> usize {
        let missing = self.sent.iter().zip(&self.arrived);
        missing.filter(|((_, reliability), count)| reliability.is_reliable() && **count == 0).count()
    }
}

struct World {
    pair: Pair<Peer<'static>, Peer<'static>>,
    ids: [Option<ConnectionId>; 2],
    ledgers: [Ledger; 2],
    ended: bool,
    /// True once an operation has closed the connection.
    wanted: bool,
    outcome: Outcome,
}

/// Runs the operations encoded in `bytes`.
///
/// # Errors
/// The violated guarantee.
pub fn run(bytes: &[u8]) -> Result<Outcome, Broken> {
    let mut bytes = Unstructured::new(bytes);
    let Ok(mut world) = World::new(&mut bytes) else { return Ok(Outcome::default()) };
    world.connect()?;
    for _ in 0..MAX_OPERATIONS {
        let Ok(operation) = Operation::arbitrary(&mut bytes) else { break };
        if bytes.is_empty() || world.ended {
            break;
        }
        world.perform(operation)?;
    }
    world.finish()
}

impl World {
    fn new(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let resend =
            if bool::arbitrary(bytes)? { ResendInterval::MEASURED } else { ResendInterval::default() };
        let mut client = Config::new([1; 32]);
        client.redial = Redial::SamePort(Duration::from_millis(300));
        client.resend_interval = resend;
        let mut server = Config::new([2; 32]);
        server.max_incoming = 1;
        server.resend_interval = resend;
        let capacity = Capacity {
            connections: 1,
            blocks: 64 << (u8::arbitrary(bytes)? % 6),
            block_size: *bytes.choose(&BLOCK_SIZES)?,
        };
        let conditions = conditions(u8::arbitrary(bytes)?, u8::arbitrary(bytes)?, u8::arbitrary(bytes)?);
        let (mut a, mut b) = (Peer::with_capacity(capacity, client), Peer::with_capacity(capacity, server));
        a.start_sequences_at(*bytes.choose(&STARTS)?);
        b.start_sequences_at(*bytes.choose(&STARTS)?);
        Ok(Self {
            pair: Pair::new(a, b, conditions, u64::arbitrary(bytes)?),
            ids: [None; 2],
            ledgers: Default::default(),
            ended: false,
            wanted: false,
            outcome: Outcome::default(),
        })
    }

    fn connect(&mut self) -> Result<(), Broken> {
        let to = self.pair.b_address;
        self.pair.a.connect(self.pair.now, to).map_err(|error| error.to_string())?;
        self.wait(Duration::from_secs(14), |world| world.ended || world.ids.iter().all(Option::is_some))?;
        // Under the worst conditions the handshake may fail.
        self.ended |= self.ids.iter().any(Option::is_none);
        Ok(())
    }

    fn peer(&mut self, side: usize) -> &mut Peer<'static> {
        if side == 0 { &mut self.pair.a } else { &mut self.pair.b }
    }

    fn perform(&mut self, operation: Operation) -> Result<(), Broken> {
        let now = self.pair.now;
        match operation {
            Operation::Send { side, length, scale, reliable } => {
                let length = usize::from(length) * usize::from(scale % 4) / 2;
                self.send(side.into(), length, reliable)?;
            }
            Operation::Burst { side, count, reliable } => {
                for length in 0..usize::from(count) {
                    self.send(side.into(), NUMBER + length, reliable)?;
                }
            }
            Operation::Wait { millis } => {
                self.wait(Duration::from_millis(u64::from(millis) % 3_000), |world| world.ended)?;
            }
            Operation::Conditions { loss, duplication, reordering } => {
                self.pair.set_conditions(conditions(loss, duplication, reordering));
            }
            Operation::Pause { side } => self.each(side, |peer, id| peer.pause(id)),
            Operation::Resume { side } => self.each(side, |peer, id| peer.resume(id)),
            Operation::Forge { side, bytes, length } => {
                let bytes = &bytes[..usize::from(length % 7)];
                self.peer(side.into()).handle_datagram(now, (FORGERY, 9).into(), bytes);
            }
            Operation::Close { die, .. } if die % 6 > 0 => {}
            Operation::Close { side, .. } => {
                self.wanted = true;
                self.each(side, |peer, id| {
                    peer.disconnect(now, id);
                    true
                });
            }
        }
        self.poll()
    }

    fn each(&mut self, side: bool, act: impl Fn(&mut Peer<'static>, ConnectionId) -> bool) {
        if let Some(id) = self.ids[usize::from(side)] {
            act(self.peer(side.into()), id);
        }
    }

    fn send(&mut self, side: usize, length: usize, reliable: bool) -> Result<(), Broken> {
        let Some(id) = self.ids[side] else { return Ok(()) };
        let reliability = if reliable { Reliability::Reliable } else { Reliability::Unreliable };
        let message = self.ledgers[side].next(length.max(NUMBER));
        let now = self.pair.now;
        match self.peer(side).send(now, id, &message, reliability) {
            Ok(_) => {
                self.ledgers[side].sent.push((message, reliability));
                self.ledgers[side].arrived.push(0);
                Ok(())
            }
            Err(SendError::Empty | SendError::TooLong) => {
                Err(format!("a valid message of {length} bytes was refused"))
            }
            Err(_) => Ok(()),
        }
    }

    /// Polls the events of both peers.
    fn poll(&mut self) -> Result<(), Broken> {
        for side in [0, 1] {
            let peer = if side == 0 { &mut self.pair.a } else { &mut self.pair.b };
            while let Some(event) = peer.poll_event() {
                match event {
                    Event::Connected { id, .. } => {
                        // A client reports `Connected` when it receives the challenge, so it does so before the server.
                        if side == 1 && self.ids[0].is_none() {
                            return Err("a client was admitted without a challenge".into());
                        }
                        self.ids[side].get_or_insert(id);
                    }
                    // A duplicated handshake may open another connection after the first has closed.
                    Event::Message { id, .. } if Some(id) != self.ids[side] => {}
                    Event::Message { delivery, message, .. } => {
                        self.ledgers[1 - side].arrive(&message.to_vec(), delivery)?;
                        self.outcome.delivered += 1;
                    }
                    Event::ConnectFailed { .. } | Event::Disconnected { .. } | _ => self.ended = true,
                }
            }
        }
        Ok(())
    }

    fn wait(&mut self, time: Duration, done: impl Fn(&Self) -> bool) -> Result<(), Broken> {
        let end = self.pair.now + time;
        for _ in 0..STEPS {
            self.poll()?;
            if done(self) {
                return Ok(());
            }
            self.pair.transmit();
            let deliveries = [self.pair.forth().next_arrival(), self.pair.back().next_arrival()];
            let timeouts = [self.pair.a.poll_timeout(), self.pair.b.poll_timeout()];
            if deliveries.into_iter().chain(timeouts).flatten().min().is_none_or(|next| next > end) {
                self.pair.now = end;
                return Ok(());
            }
            self.pair.step();
        }
        Err("a peer's deadline stays in the past".into())
    }

    /// Delivers all messages on a perfect path, closes the connection and checks that all memory is freed.
    fn finish(mut self) -> Result<Outcome, Broken> {
        self.pair.set_conditions(conditions(0, 0, 0));
        for side in [false, true] {
            self.each(side, |peer, id| peer.resume(id));
        }
        let all_there = |world: &Self| world.ledgers.iter().all(|ledger| ledger.missing() == 0);
        self.wait(Duration::from_secs(13), |world| world.ended || all_there(world))?;
        self.outcome.closed = self.ended && !self.wanted;
        let missing = self.ledgers.each_ref().map(Ledger::missing);
        if missing != [0, 0] && !self.ended && !self.wanted {
            return Err(format!("{missing:?} reliable messages did not arrive"));
        }
        self.last_words()?;
        let now = self.pair.now;
        for side in [false, true] {
            self.each(side, |peer, id| {
                peer.disconnect(now, id);
                true
            });
        }
        self.wait(Duration::from_secs(40), |_| false)?;
        for side in [0, 1] {
            let peer = self.peer(side);
            if peer.blocks_available() != peer.blocks() || peer.poll_timeout().is_some() {
                return Err(format!(
                    "peer {side} still holds {} blocks",
                    peer.blocks() - peer.blocks_available()
                ));
            }
        }
        Ok(self.outcome)
    }
}

impl World {
    /// Checks that a message sent directly before `disconnect` is delivered, such as the result of the game.
    fn last_words(&mut self) -> Result<(), Broken> {
        if self.ended || self.wanted {
            return Ok(());
        }
        self.send(0, LAST_WORDS, true)?;
        let now = self.pair.now;
        self.each(false, |peer, id| {
            peer.disconnect(now, id);
            true
        });
        self.wait(Duration::from_secs(2), |world| world.ended && world.ledgers[0].missing() == 0)?;
        if self.ledgers[0].missing() == 0 {
            Ok(())
        } else {
            Err("the message before `disconnect` was lost".into())
        }
    }
}

/// Returns conditions with loss, duplication and reordering of up to half of all datagrams each.
fn conditions(loss: u8, duplication: u8, reordering: u8) -> Conditions {
    let share = |byte: u8| f64::from(byte % 129) / 256.0;
    Conditions {
        loss: share(loss),
        duplication: share(duplication),
        reordering: share(reordering),
        latency: Duration::from_millis(25),
        jitter: Duration::from_millis(5),
        ..Conditions::default()
    }
}
