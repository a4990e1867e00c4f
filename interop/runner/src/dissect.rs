//! Decodes the datagrams and messages of a capture.

use crate::capture::{Capture, End};
use crate::finding::{Broken, By};
use crate::rules::{self, Rule};
use rakwire_conformance::wire::{self, Capsule, Datagram, id};
use std::collections::BTreeMap;
use std::time::Duration;

/// The length of a datagram before its capsules: the flags and the datagram number.
pub const DATAGRAM_HEADER: usize = 4;
/// The offset of the datagram number.
pub const NUMBER: usize = 1;
/// The offset of the ranges in an acknowledgement.
pub const RANGES: usize = 3;
/// The minimum length of a capsule: one byte of flags, two bytes of length, and one byte of the message.
const SHORTEST_CAPSULE: usize = 4;

/// A capsule and its offset in the datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The offset of its first byte.
    pub offset: usize,
    /// The capsule.
    pub capsule: Capsule,
}

impl Placed {
    /// Returns true if the capsule contains an application message or a part of it.
    #[must_use]
    pub fn is_of_an_application(&self) -> bool {
        self.capsule.split.is_some() || self.capsule.payload.first().is_some_and(|&id| id >= id::USER)
    }
}

/// The content of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A datagram of at most two bytes, which every peer ignores.
    Ignored,
    /// An offline message, with its id.
    Offline(u8),
    /// Capsules.
    Data {
        /// The datagram number.
        number: u32,
        /// The valid capsules.
        capsules: Vec<Placed>,
        /// The offset of the first invalid byte.
        broken: Option<usize>,
    },
    /// An acknowledgement, with its ranges of datagram numbers.
    Ack(Vec<(u32, u32)>),
    /// A negative acknowledgement, with its ranges of datagram numbers.
    Nak(Vec<(u32, u32)>),
    /// Anything else.
    Unreadable,
}

/// Decodes a datagram.
#[must_use]
pub fn dissect(bytes: &[u8]) -> Packet {
    if bytes.len() <= 2 {
        return Packet::Ignored;
    }
    if let Some(id) = wire::offline_id(bytes) {
        return Packet::Offline(id);
    }
    match Datagram::read(bytes) {
        None => Packet::Unreadable,
        Some(Datagram::Ack(records)) => Packet::Ack(records),
        Some(Datagram::Nak(records)) => Packet::Nak(records),
        Some(Datagram::Data { number, capsules, .. }) => {
            let mut offset = DATAGRAM_HEADER;
            let capsules = capsules.into_iter().map(|capsule| {
                let placed = Placed { offset, capsule };
                let mut written = Vec::new();
                placed.capsule.write(&mut written);
                offset += written.len();
                placed
            });
            let capsules: Vec<_> = capsules.collect();
            // The remaining bytes may be too few for a capsule, or zeros. Neither breaks a rule.
            let rest = bytes.get(offset..).unwrap_or_default();
            let is_harmless = rest.len() < SHORTEST_CAPSULE || rest.iter().all(|&byte| byte == 0);
            Packet::Data { number, capsules, broken: (!is_harmless).then_some(offset) }
        }
    }
}

/// A message of a connection, reassembled if it was split.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its sender.
    pub from: End,
    /// The index of its first datagram in the capture.
    pub record: usize,
    /// The offset of its capsule in that datagram.
    pub offset: usize,
    /// The time at which it was first sent.
    pub at: Duration,
    /// Its header, with the payload of the whole message.
    pub capsule: Capsule,
    /// The number of parts, 1 for a message that is not split.
    pub parts: u32,
    /// True if all parts were sent.
    pub is_complete: bool,
    /// The time at which its last part had arrived; `None` if a part never arrived.
    pub arrived: Option<Duration>,
    /// The indices of all datagrams that carried it or a part of it.
    pub carriers: Vec<usize>,
}

impl Message {
    /// Returns the payload of the whole message.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.capsule.payload
    }

    /// Returns the message id, which is its first byte.
    #[must_use]
    pub fn id(&self) -> Option<u8> {
        self.bytes().first().copied()
    }

    /// Returns the number of an application message, as the client numbered it.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        Some(u32::from_be_bytes(self.bytes().get(1..5)?.try_into().ok()?))
    }

    /// Returns the finding that the sender of this message breaks a rule with it.
    #[must_use]
    pub fn breaks(&self, rule: Rule, why: impl Into<String>) -> Broken {
        self.shows(rule, self.from, why)
    }

    /// Returns the finding that a side breaks a rule about this message.
    #[must_use]
    pub fn shows(&self, rule: Rule, by: impl Into<By>, why: impl Into<String>) -> Broken {
        Broken::at(rule, by, self.record, self.offset, why)
    }

    /// Returns true if it is an application message.
    #[must_use]
    pub fn is_of_an_application(&self) -> bool {
        self.id().is_some_and(|id| id >= id::USER)
    }
}

/// A capsule, with all its transmissions.
#[derive(Debug)]
struct Piece {
    record: usize,
    placed: Placed,
    arrived: Option<Duration>,
    carriers: Vec<usize>,
}

/// Reassembles the messages of one side, in the order in which they were first sent.
///
/// # Errors
///
/// Returns a finding if a reliable message number is reused for other content, or the parts of a message
/// contradict each other.
pub fn messages(capture: &Capture, from: End) -> Result<Vec<Message>, Broken> {
    let mut groups: Vec<Vec<Piece>> = Vec::new();
    let mut open: BTreeMap<(u8, u16, u32), usize> = BTreeMap::new();
    for piece in pieces(capture, from)? {
        let Some(split) = piece.placed.capsule.split else {
            groups.push(vec![piece]);
            continue;
        };
        // A split id is reused once its message is complete.
        let key = (piece.placed.capsule.channel, split.id, piece.placed.capsule.order);
        let index = *open.entry(key).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        let Some(group) = groups.get_mut(index) else { continue };
        let conflict = group.iter().find_map(|other| {
            let before = other.placed.capsule.split?;
            (before.count != split.count)
                .then(|| {
                    format!("parts of one message with the part counts {} and {}", before.count, split.count)
                })
                .or_else(|| {
                    (before.index == split.index)
                        .then(|| format!("part {} has two message numbers", split.index))
                })
        });
        if let Some(why) = conflict {
            return Err(Broken::at(rules::PARTS, from, piece.record, piece.placed.offset, why));
        }
        group.push(piece);
        if group.len() as u64 == u64::from(split.count) {
            open.remove(&key);
        }
    }
    Ok(groups.into_iter().filter_map(|pieces| joined(capture, from, pieces)).collect())
}

/// Returns each capsule that one side sent, grouped with its retransmissions.
fn pieces(capture: &Capture, from: End) -> Result<Vec<Piece>, Broken> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut by_number: BTreeMap<u32, usize> = BTreeMap::new();
    for (record, sent) in capture.of(from) {
        let Packet::Data { capsules, .. } = dissect(&sent.bytes) else { continue };
        for placed in capsules {
            let is_reliable = placed.capsule.is_reliable();
            let known = by_number.get(&placed.capsule.number).filter(|_| is_reliable);
            if let Some(first) = known.and_then(|&index| pieces.get_mut(index)) {
                if first.placed.capsule != placed.capsule {
                    let why =
                        format!("message number {} was used for different content", placed.capsule.number);
                    return Err(Broken::at(rules::SAME_RESEND, from, record, placed.offset, why));
                }
                first.arrived = first.arrived.into_iter().chain(sent.arrived()).min();
                first.carriers.push(record);
                continue;
            }
            if is_reliable {
                by_number.insert(placed.capsule.number, pieces.len());
            }
            pieces.push(Piece { record, placed, arrived: sent.arrived(), carriers: vec![record] });
        }
    }
    Ok(pieces)
}

/// Joins the parts of a message.
fn joined(capture: &Capture, from: End, mut pieces: Vec<Piece>) -> Option<Message> {
    let index = |piece: &Piece| piece.placed.capsule.split.map_or(0, |split| split.index);
    let (record, offset) = pieces.first().map(|piece| (piece.record, piece.placed.offset))?;
    pieces.sort_by_key(index);
    let mut capsule = pieces.first()?.placed.capsule.clone();
    let parts = capsule.split.map_or(1, |split| split.count);
    capsule.payload = pieces.iter().flat_map(|piece| piece.placed.capsule.payload.iter().copied()).collect();
    let is_complete = pieces.len() as u64 == u64::from(parts);
    let arrived: Option<Vec<Duration>> = pieces.iter().map(|piece| piece.arrived).collect();
    let mut carriers: Vec<usize> = pieces.iter().flat_map(|piece| piece.carriers.iter().copied()).collect();
    carriers.sort_unstable();
    Some(Message {
        from,
        record,
        offset,
        at: capture.records.get(record)?.at,
        capsule,
        parts,
        is_complete,
        arrived: arrived.filter(|_| is_complete).and_then(|times| times.into_iter().max()),
        carriers,
    })
}
