//! The sent and delivered messages of one direction, and checks of the guarantees of every reliability.

use rakwire::raknet::{Channel, Delivery, Priority, Reliability};

use super::random::Random;
use super::{Broken, Kept};

/// The first byte of a message of at least three bytes; its number follows. A shorter message has another first byte,
/// which identifies it.
const NUMBERED: u8 = 0x86;
const SHORT_NAMES: usize = (u8::MAX - NUMBERED) as usize;
const NUMBERED_LENGTH: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    UnderWay,
    Arrived,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    delivery: Delivery,
    length: usize,
    /// The position of the message among the ordered and sequenced messages of its channel.
    place: usize,
    fate: Fate,
}

#[derive(Clone, Debug, Default)]
struct Order {
    sent: usize,
    /// The position after the last delivered message. A message at an earlier position must not be delivered later.
    passed: usize,
    /// The positions of ordered messages, oldest first.
    ordered: Vec<usize>,
    /// The number of ordered messages delivered.
    arrived: usize,
}

#[derive(Clone, Debug)]
pub struct Ledger {
    sent: Vec<Sent>,
    /// The numbers of the messages that are too short to contain one.
    short: Vec<usize>,
    channels: Vec<Order>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { sent: Vec::new(), short: Vec::new(), channels: vec![Order::default(); Channel::COUNT] }
    }
}

impl Ledger {
    /// Returns the next message, of about `length` bytes. All messages of a ledger are different.
    pub fn compose(&self, length: usize) -> Vec<u8> {
        let length = if length < NUMBERED_LENGTH && self.short.len() >= SHORT_NAMES {
            NUMBERED_LENGTH
        } else {
            length.max(1)
        };
        content(self.sent.len(), self.short.len(), length)
    }

    /// Records that the message of [`compose`](Self::compose) was accepted for sending.
    pub fn accept(&mut self, delivery: Delivery, message: &[u8]) {
        let number = self.sent.len();
        if message.len() < NUMBERED_LENGTH {
            self.short.push(number);
        }
        let mut place = 0;
        if delivery.reliability.has_channel() {
            let order = &mut self.channels[usize::from(delivery.channel.number())];
            place = order.sent;
            order.sent += 1;
            if delivery.reliability.is_ordered() {
                order.ordered.push(place);
            }
        }
        self.sent.push(Sent { delivery, length: message.len(), place, fate: Fate::UnderWay });
    }

    /// Checks a delivered message.
    pub fn arrive(&mut self, delivery: Delivery, bytes: &[u8]) -> Kept {
        let (number, short) = self.number(bytes).ok_or_else(|| format!("{bytes:02x?} was never sent"))?;
        let sent = self.sent[number];
        if content(number, short, sent.length) != bytes {
            return Err(format!("message {number} was changed in transit"));
        }
        if sent.fate == Fate::Arrived {
            return Err(format!("message {number} arrived twice, {:?}", sent.delivery));
        }
        self.sent[number].fate = Fate::Arrived;
        if !may_travel_as(sent.delivery.reliability, delivery.reliability) {
            return Err(format!("message {number}, {:?}, arrived as {delivery:?}", sent.delivery));
        }
        if !sent.delivery.reliability.has_channel() {
            return Ok(());
        }
        if sent.delivery.channel != delivery.channel {
            return Err(format!("message {number}, {:?}, arrived as {delivery:?}", sent.delivery));
        }
        self.pass(&sent).map_err(|reason| format!("message {number}, {:?}, {reason}", sent.delivery))
    }

    /// Checks that no ordered message is skipped, and that no sequenced message is outdated or precedes an ordered one
    /// that was sent before it.
    fn pass(&mut self, sent: &Sent) -> Kept {
        let order = &mut self.channels[usize::from(sent.delivery.channel.number())];
        if sent.place < order.passed {
            return Err(format!("at position {} arrived after position {}", sent.place, order.passed - 1));
        }
        let missing = order.ordered.get(order.arrived).copied().filter(|missing| *missing < sent.place);
        if let Some(missing) = missing {
            return Err(format!("at position {} arrived before ordered position {missing}", sent.place));
        }
        if sent.delivery.reliability.is_ordered() {
            order.arrived += 1;
        }
        order.passed = sent.place + 1;
        Ok(())
    }

    fn number(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        let [name, rest @ ..] = bytes else { return None };
        if let [high, low, ..] = rest
            && *name == NUMBERED
        {
            let number = usize::from(u16::from_be_bytes([*high, *low]));
            return (number < self.sent.len()).then_some((number, 0));
        }
        let short = usize::from(name.checked_sub(NUMBERED + 1)?);
        Some((*self.short.get(short)?, short))
    }

    /// Returns an error for a message that should have been delivered by now.
    pub fn owed(&self) -> Option<Broken> {
        self.sent.iter().enumerate().find(|(_, sent)| self.is_owed(sent)).map(|(number, sent)| {
            format!("message {number} of {} bytes, {:?}, never arrived", sent.length, sent.delivery)
        })
    }

    fn is_owed(&self, sent: &Sent) -> bool {
        let outdated = || {
            sent.delivery.reliability.is_sequenced()
                && self.channels[usize::from(sent.delivery.channel.number())].passed > sent.place
        };
        sent.fate == Fate::UnderWay && sent.delivery.reliability.is_reliable() && !outdated()
    }

    /// Returns true if another distinguishable message can be composed.
    pub fn has_room(&self) -> bool {
        self.sent.len() < usize::from(u16::MAX)
    }

    pub fn arrived(&self) -> usize {
        self.sent.iter().filter(|sent| sent.fate == Fate::Arrived).count()
    }
}

fn content(number: usize, short: usize, length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length).map(|index| (number * 31 + index * 7) as u8).collect();
    match bytes.as_mut_slice() {
        [name, high, low, ..] => {
            *name = NUMBERED;
            [*high, *low] = (number as u16).to_be_bytes();
        }
        [name, ..] => *name = NUMBERED + 1 + short as u8,
        [] => {}
    }
    bytes
}

/// Returns true if a message that was sent with the reliability `sent` may be delivered with `arrived`.
///
/// Datagrams do not indicate that a receipt was requested, and an unreliable message becomes reliable when it is split.
fn may_travel_as(sent: Reliability, arrived: Reliability) -> bool {
    let forms: &[Reliability] = match sent {
        Reliability::Unreliable | Reliability::UnreliableWithReceipt => {
            &[Reliability::Unreliable, Reliability::Reliable]
        }
        Reliability::UnreliableSequenced => {
            &[Reliability::UnreliableSequenced, Reliability::ReliableSequenced]
        }
        Reliability::Reliable | Reliability::ReliableWithReceipt => &[Reliability::Reliable],
        Reliability::ReliableOrdered | Reliability::ReliableOrderedWithReceipt => {
            &[Reliability::ReliableOrdered]
        }
        Reliability::ReliableSequenced => &[Reliability::ReliableSequenced],
    };
    forms.contains(&arrived)
}

const CHANNELS: [u8; 4] = [0, 1, 7, 31];
/// All priorities, the highest first.
pub const PRIORITIES: [Priority; 4] = [Priority::Immediate, Priority::High, Priority::Medium, Priority::Low];
/// All reliabilities, in the order of their numbers on the wire.
pub const RELIABILITIES: [Reliability; 8] = [
    Reliability::Unreliable,
    Reliability::UnreliableSequenced,
    Reliability::Reliable,
    Reliability::ReliableOrdered,
    Reliability::ReliableSequenced,
    Reliability::UnreliableWithReceipt,
    Reliability::ReliableWithReceipt,
    Reliability::ReliableOrderedWithReceipt,
];

/// Draws the delivery of a message.
pub fn draw_delivery(random: &mut Random) -> Delivery {
    let channel = CHANNELS[random.below(4) as usize];
    Delivery {
        reliability: RELIABILITIES[random.below(8) as usize],
        channel: Channel::new(channel).unwrap_or_default(),
        priority: PRIORITIES[random.below(4) as usize],
    }
}
