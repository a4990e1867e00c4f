//! Attempts to connect, and the messages that each one carries in both directions.
//!
//! A message begins with the number of its attempt, so that a byte of another connection is found.

use core::time::Duration;

use rakwire::raknet::{ConnectionId, Delivery, Peer, SendError};
use rakwire::{Instant, raknet};

use crate::Kept;
use crate::ledger::{Ledger, draw_delivery};
use crate::random::Random;

/// The first byte of each message; those below 0x1B belong to RakNet.
const MARK: u8 = 0x90;
const HEAD: usize = 5;

/// One direction of an attempt.
#[derive(Default)]
pub(crate) struct Direction {
    ledger: Ledger,
    /// The number of messages that were accepted.
    sent: usize,
    /// True once the last message was accepted, which is reliable and ordered.
    pub(crate) has_final: bool,
}

/// One attempt of a client to connect, and the messages of its connection.
pub(crate) struct Attempt {
    number: u32,
    /// To the server.
    pub(crate) up: Direction,
    /// To the client.
    pub(crate) down: Direction,
    /// The server's connection of this attempt, while it is open and a message has arrived.
    pub(crate) server_side: Option<ConnectionId>,
    /// True once it has had a connection at the server, at most one.
    pub(crate) was_reached: bool,
    /// The time at which its end was noted, and the messages that had arrived once it was forgotten.
    ended_at: Option<Instant>,
    arrived: Option<usize>,
}

/// The messages of one direction after which a client begins another connection: a ledger knows 65,535, and some are
/// sent after that.
const MANY: usize = 40_000;
/// The time after the end of a connection at which none of its datagrams is under way.
const FORGET: Duration = Duration::from_secs(60);

/// A message as the application receives it.
#[derive(Clone)]
pub(crate) struct Received {
    pub(crate) delivery: Delivery,
    pub(crate) bytes: Vec<u8>,
}

impl Attempt {
    pub(crate) fn new(number: u32) -> Self {
        Self {
            number,
            up: Direction::default(),
            down: Direction::default(),
            server_side: None,
            was_reached: false,
            ended_at: None,
            arrived: None,
        }
    }

    /// Returns true if few further messages can be distinguished from those that were sent.
    pub(crate) const fn has_little_room(&self) -> bool {
        self.up.sent > MANY || self.down.sent > MANY
    }

    /// Returns the number of messages that arrived.
    pub(crate) fn arrived(&self) -> usize {
        self.arrived.unwrap_or_else(|| self.up.ledger.arrived() + self.down.ledger.arrived())
    }

    /// Notes that neither side has the connection any more, and frees its ledgers after a while.
    pub(crate) fn handle_end(&mut self, now: Instant) {
        let ended = *self.ended_at.get_or_insert(now);
        if self.arrived.is_none() && now >= ended + FORGET {
            self.arrived = Some(self.arrived());
            (self.up, self.down) = (Direction::default(), Direction::default());
        }
    }
}

impl Direction {
    /// Sends up to `count` messages, as far as there is room.
    pub(crate) fn send(
        &mut self,
        peer: &mut Peer<'static>,
        now: Instant,
        to: (ConnectionId, u32),
        random: &mut Random,
        (count, longest): (u64, u64),
    ) -> Kept {
        for _ in 0..random.below(count + 1) {
            let length = 1 + random.below(longest) as usize;
            if !self.send_one(peer, now, to, draw_delivery(random), length)? {
                break;
            }
        }
        Ok(())
    }

    /// Sends the last message, once it is accepted.
    pub(crate) fn send_final(
        &mut self,
        peer: &mut Peer<'static>,
        now: Instant,
        to: (ConnectionId, u32),
    ) -> Kept {
        if !self.has_final {
            self.has_final = self.send_one(peer, now, to, Delivery::RELIABLE_ORDERED, 8)?;
        }
        Ok(())
    }

    fn send_one(
        &mut self,
        peer: &mut Peer<'static>,
        now: Instant,
        (id, attempt): (ConnectionId, u32),
        delivery: Delivery,
        length: usize,
    ) -> Result<bool, String> {
        if !self.ledger.has_room() {
            return Ok(false);
        }
        let longest = peer.max_message_len(id).unwrap_or_default();
        let content = self.ledger.compose(length.min(longest.saturating_sub(HEAD)));
        let mut message = vec![MARK];
        message.extend_from_slice(&attempt.to_be_bytes());
        message.extend_from_slice(&content);
        match peer.send(now, id, &message, delivery) {
            Ok(_) => {
                self.ledger.accept(delivery, &content);
                self.sent += 1;
                Ok(true)
            }
            // The memory that a channel takes when it is first used counts too.
            Err(
                SendError::QuotaExceeded
                | SendError::PoolExhausted
                | SendError::NotConnected
                | SendError::NeverFits,
            ) => Ok(false),
            Err(error) => Err(format!("a message was refused: {error}")),
        }
    }

    /// Checks a message that arrived.
    pub(crate) fn arrive(&mut self, attempt: u32, message: &Received) -> Kept {
        let (of, content) = split(&message.bytes).ok_or("a message arrived that was never sent")?;
        if of != attempt {
            return Err(format!("a message of attempt {of} arrived at attempt {attempt}"));
        }
        self.ledger.arrive(message.delivery, content).map_err(|broken| format!("attempt {attempt}: {broken}"))
    }

    /// Returns true if everything that was accepted has arrived, the last message included.
    pub(crate) fn is_settled(&self) -> bool {
        self.has_final && self.ledger.owed().is_none()
    }

    /// Describes the state of a direction that is not settled.
    pub(crate) fn describe(&self) -> String {
        match self.ledger.owed() {
            Some(owed) => owed,
            None if self.has_final => "settled".to_owned(),
            None => "its last message was not accepted".to_owned(),
        }
    }
}

impl Attempt {
    pub(crate) const fn number(&self) -> u32 {
        self.number
    }
}

/// Returns the attempt of a message, and the rest of it.
pub(crate) fn split(message: &[u8]) -> Option<(u32, &[u8])> {
    let (head, content) = message.split_at_checked(HEAD)?;
    let (mark, number) = head.split_first()?;
    (*mark == MARK).then_some((u32::from_be_bytes(number.try_into().ok()?), content))
}

/// Takes all events of a peer, with copies of the messages.
pub(crate) fn take_events(peer: &mut Peer<'static>) -> Vec<Happening> {
    let mut events = Vec::new();
    while let Some(event) = peer.poll_event() {
        events.extend(match event {
            raknet::Event::Connected { id, .. } => Some(Happening::Connected(id)),
            raknet::Event::ConnectFailed { reason, .. } => Some(Happening::Failed(reason.to_string())),
            raknet::Event::Disconnected { id, reason, .. } => Some(Happening::Ended(id, reason.to_string())),
            raknet::Event::Message { id, delivery, message } => {
                Some(Happening::Message(id, Received { delivery, bytes: message.to_vec() }))
            }
            raknet::Event::Refused { .. }
            | raknet::Event::Receipt { .. }
            | raknet::Event::Progress { .. }
            | raknet::Event::MtuChanged { .. }
            | raknet::Event::Pong { .. }
            | raknet::Event::OutOfBand { .. }
            | raknet::Event::Advertisement { .. }
            | _ => None,
        });
    }
    events
}

/// An event that the worlds handle.
pub(crate) enum Happening {
    Connected(ConnectionId),
    /// With the reason.
    Failed(String),
    /// With the reason.
    Ended(ConnectionId, String),
    Message(ConnectionId, Received),
}
