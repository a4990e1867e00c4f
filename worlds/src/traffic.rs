//! Connection attempts, and the messages of their connections in both directions.
//!
//! A message begins with the number of its attempt, which reveals a message that arrives on another connection.

use core::time::Duration;

use rakwire::raknet::{ConnectionId, Delivery, DisconnectReason, Peer, SendError};
use rakwire::{Instant, raknet};

use crate::Kept;
use crate::ledger::{Ledger, draw_delivery};
use crate::random::Random;

/// The first byte of each message; ids below 0x1B are reserved for RakNet.
const MARK: u8 = 0x90;
const HEAD: usize = 5;

/// One direction of an attempt.
#[derive(Default)]
pub(crate) struct Direction {
    ledger: Ledger,
    /// The number of messages that were accepted.
    sent: usize,
    /// True once the last message was accepted for sending. It is reliable and ordered.
    pub(crate) has_final: bool,
}

/// An attempt of a client to connect, and the messages of its connection.
pub(crate) struct Attempt {
    number: u32,
    /// To the server.
    pub(crate) up: Direction,
    /// To the client.
    pub(crate) down: Direction,
    /// The open connection at the server; known only after its first message.
    pub(crate) server_side: Option<ConnectionId>,
    /// True once a message has arrived at the server.
    pub(crate) was_reached: bool,
    /// The time at which the connection was found closed at both peers.
    ended_at: Option<Instant>,
    /// The number of delivered messages, once the ledgers are freed.
    arrived: Option<usize>,
}

/// The number of messages in one direction after which a client starts another connection. A ledger can distinguish
/// 65,535 messages, and some more are sent before the connection closes.
const MANY: usize = 40_000;
/// The time after the end of a connection at which none of its datagrams is in flight.
const FORGET: Duration = Duration::from_secs(60);

/// A received message.
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

    /// Returns true if one direction has carried so many messages that its ledger soon cannot distinguish further ones.
    pub(crate) const fn has_little_room(&self) -> bool {
        self.up.sent > MANY || self.down.sent > MANY
    }

    /// Returns the number of delivered messages in both directions.
    pub(crate) fn arrived(&self) -> usize {
        self.arrived.unwrap_or_else(|| self.up.ledger.arrived() + self.down.ledger.arrived())
    }

    /// Handles an attempt after its connection is closed at both peers: frees its ledgers after a minute.
    pub(crate) fn handle_end(&mut self, now: Instant) {
        let ended = *self.ended_at.get_or_insert(now);
        if self.arrived.is_none() && now >= ended + FORGET {
            self.arrived = Some(self.arrived());
            (self.up, self.down) = (Direction::default(), Direction::default());
        }
    }
}

impl Direction {
    /// Sends a random number of messages, at most `count`, until one is refused.
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

    /// Sends the last message, unless it was already accepted.
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
            // A high channel takes memory when it is first used, so even a message of valid length may never fit.
            Err(
                SendError::QuotaExceeded
                | SendError::PoolExhausted
                | SendError::NotConnected
                | SendError::NeverFits,
            ) => Ok(false),
            Err(error) => Err(format!("a message was refused: {error}")),
        }
    }

    /// Checks a received message.
    pub(crate) fn arrive(&mut self, attempt: u32, message: &Received) -> Kept {
        let (of, content) = split(&message.bytes).ok_or("a message arrived that was never sent")?;
        if of != attempt {
            return Err(format!("a message of attempt {of} arrived at attempt {attempt}"));
        }
        self.ledger.arrive(message.delivery, content).map_err(|broken| format!("attempt {attempt}: {broken}"))
    }

    /// Returns true if the last message was accepted and all messages with guaranteed delivery have arrived.
    pub(crate) fn is_settled(&self) -> bool {
        self.has_final && self.ledger.owed().is_none()
    }

    /// Checks that all messages of a sender that left in time have arrived, as `Peer::disconnect` guarantees.
    pub(crate) fn check_delivered(&self) -> Kept {
        let lost =
            |owed| format!("a connection was closed by its client before all messages had arrived: {owed}");
        self.ledger.owed().map_or(Ok(()), |owed| Err(lost(owed)))
    }

    /// Describes the state of a direction that is not settled.
    pub(crate) fn describe(&self) -> String {
        match self.ledger.owed() {
            Some(owed) => owed,
            None if self.has_final => "settled".to_owned(),
            None => "the last message was not accepted for sending".to_owned(),
        }
    }
}

impl Attempt {
    pub(crate) const fn number(&self) -> u32 {
        self.number
    }
}

/// Returns the attempt number of a message, and its content.
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
            raknet::Event::Disconnected { id, reason, .. } => Some(Happening::Ended(id, reason)),
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

/// An event of a peer, with its data copied.
pub(crate) enum Happening {
    Connected(ConnectionId),
    /// An attempt failed, with the reason.
    Failed(String),
    /// A connection closed, with the reason.
    Ended(ConnectionId, DisconnectReason),
    Message(ConnectionId, Received),
}
