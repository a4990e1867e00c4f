//! A small echo server of the Game Protocol, correct or with one deliberate fault.

use super::fault::{Fault, GameFault};
use super::turn::Turn;
use crate::packet::{ACK, CHUNK, END, FIN, Packet, REL, cut};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const RESEND: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_millis(800);
/// The bits that are set in every seasoning of the model, so that a late seasoning looks like an acknowledgement.
const ACK_BITS: u8 = 0x82;

#[derive(Debug)]
struct Unacked {
    packet: Packet,
    at: Instant,
}

#[derive(Debug)]
struct Connection {
    heard: Instant,
    opened: Instant,
    newest: Option<u16>,
    delivered: HashSet<u16>,
    parts: BTreeMap<u16, BTreeMap<u8, Packet>>,
    acked: HashSet<(u8, u16)>,
    next: u16,
    unacked: Vec<Unacked>,
    late: Vec<(Instant, Packet)>,
}

/// The model server.
#[derive(Debug)]
pub(super) struct GameServer {
    socket: UdpSocket,
    fault: GameFault,
    connections: HashMap<SocketAddr, Connection>,
    salted: HashSet<SocketAddr>,
    ended: HashSet<SocketAddr>,
    salts: usize,
    dead: bool,
}

impl GameServer {
    pub(super) fn new(socket: UdpSocket, fault: Fault) -> Self {
        let fault = if let Fault::Game(fault) = fault { fault } else { GameFault::None };
        Self {
            socket,
            fault,
            connections: HashMap::new(),
            salted: HashSet::new(),
            ended: HashSet::new(),
            salts: 0,
            dead: false,
        }
    }

    fn send(&self, to: SocketAddr, bytes: &[u8]) {
        // Ignore errors for a client that has left; its timeout removes it.
        let _ = self.socket.send_to(bytes, to);
    }

    /// Returns the seasoning that a client at this address must send, `K` in docs/game-protocol.md.
    fn key(&self, from: SocketAddr) -> [u8; 4] {
        let port = if self.fault == GameFault::OneKey { 7 } else { u32::from(from.port()) };
        let mut key = (port ^ 0x5eed_5eed).wrapping_mul(0x9e37_79b1).to_be_bytes();
        key[0] = key[0] & 0x75 | ACK_BITS;
        key
    }

    fn take(&mut self, from: SocketAddr, bytes: &[u8]) {
        match self.fault {
            GameFault::DiesOfEmpty if bytes.is_empty() => self.dead = true,
            GameFault::DiesOfLong if bytes.len() > 1600 => self.dead = true,
            GameFault::AnswersShort if bytes.len() < 4 => self.send(from, bytes),
            _ => {}
        }
        if self.dead || bytes.len() < 4 {
            return;
        }
        if self.connections.contains_key(&from) {
            self.connected(from, bytes);
        } else {
            self.stranger(from, bytes);
        }
    }

    fn stranger(&mut self, from: SocketAddr, bytes: &[u8]) {
        let fault = self.fault;
        if bytes.len() > 4 {
            match fault {
                GameFault::AcksStrangers => self.send(from, &[ACK | FIN, bytes[1], bytes[2], bytes[3]]),
                GameFault::EchoesGarbage => self.send(from, &bytes[..4]),
                GameFault::SharesConnections => {
                    if let Some(&first) = self.connections.keys().next() {
                        self.connected(first, bytes);
                        self.send(from, &[ACK | FIN, bytes[1], bytes[2], bytes[3]]);
                    }
                }
                GameFault::LongSalts => self.challenge(from, &bytes[..4]),
                _ => {}
            }
            return;
        }
        let ends = bytes[0] & END != 0 && bytes[0] >> 4 == 0;
        if ends && fault == GameFault::EndFromAnyone {
            self.connections.clear();
            return;
        }
        let right = bytes == self.key(from);
        let opens = match fault {
            GameFault::AnySeasoning => right || self.salted.contains(&from),
            GameFault::NeverOpens => false,
            GameFault::OneClient => right && self.connections.is_empty(),
            GameFault::KeepsEnded => right && !self.ended.contains(&from),
            _ => right,
        };
        if opens {
            self.open(from);
        } else if !right {
            self.challenge(from, bytes);
        }
    }

    fn open(&mut self, from: SocketAddr) {
        let now = Instant::now();
        let next = if self.fault == GameFault::FirstSequence { 1 } else { 0 };
        let connection = Connection {
            heard: now,
            opened: now,
            newest: None,
            delivered: HashSet::new(),
            parts: BTreeMap::new(),
            acked: HashSet::new(),
            next,
            unacked: Vec::new(),
            late: Vec::new(),
        };
        self.connections.insert(from, connection);
    }

    fn challenge(&mut self, from: SocketAddr, salt: &[u8]) {
        let fault = self.fault;
        self.salts += 1;
        if fault == GameFault::DiesOfSalts && self.salts > 200 {
            self.dead = true;
        }
        let again = !self.salted.insert(from);
        if self.dead || fault == GameFault::Mute || fault == GameFault::SaltOnce && again {
            return;
        }
        let key = self.key(from);
        let mut pepper: Vec<u8> = salt.iter().zip(key).map(|(salt, key)| salt ^ key).collect();
        if fault == GameFault::LongPepper {
            pepper.push(0);
        }
        let times = if fault == GameFault::PepperTwice { 2 } else { 1 };
        (0..times).for_each(|_| self.send(from, &pepper));
    }

    fn connected(&mut self, from: SocketAddr, bytes: &[u8]) {
        let fault = self.fault;
        let key = self.key(from);
        let Some(packet) = Packet::read(bytes) else {
            return;
        };
        let Some(connection) = self.connections.get_mut(&from) else {
            return;
        };
        connection.heard = Instant::now();
        if bytes == key {
            if fault == GameFault::SeasoningCloses {
                self.connections.remove(&from);
            }
            return;
        }
        let high = packet.flags >> 4 != 0;
        if high && (bytes.len() == 4 || fault == GameFault::FlagsExact) {
            return;
        }
        if packet.flags & END != 0 {
            let exact = fault == GameFault::EndExact && packet.flags != END | FIN;
            match fault {
                GameFault::IgnoresEnd => {}
                GameFault::AnswersEnd => {
                    self.send(from, &[END | FIN, 0, 0, 0]);
                    self.connections.remove(&from);
                }
                GameFault::EndEndsAll => self.connections.clear(),
                _ if exact => {}
                _ => {
                    self.connections.remove(&from);
                    self.ended.insert(from);
                }
            }
        } else if packet.flags & ACK != 0 {
            self.acknowledged(from, &packet);
        } else {
            self.data(from, packet);
        }
    }

    fn acknowledged(&mut self, from: SocketAddr, packet: &Packet) {
        let fault = self.fault;
        let Some(connection) = self.connections.get_mut(&from) else {
            return;
        };
        let known = |unacked: &Unacked| {
            unacked.packet.chunk == packet.chunk && unacked.packet.sequence == packet.sequence
        };
        let exact = fault == GameFault::AckExact && packet.flags & 0x0f != ACK | FIN;
        match fault {
            GameFault::DiesOfUnknownAck if !connection.unacked.iter().any(known) => self.dead = true,
            GameFault::AcksAcks => self.send(from, &[ACK | FIN, packet.chunk, 0, 0]),
            GameFault::ResendsForever => {}
            _ if exact => {}
            _ => connection.unacked.retain(|unacked| !known(unacked)),
        }
    }

    /// Returns true if a chunk conforms to the protocol.
    fn is_right(&mut self, packet: &Packet) -> bool {
        let last = packet.flags & FIN != 0;
        let (long, short) = (packet.body.len() > CHUNK, packet.body.len() < CHUNK && !last);
        let endless = packet.chunk == u8::MAX && !last;
        self.dead |= match self.fault {
            GameFault::DiesOfLongBody => long,
            GameFault::DiesOfShortChunk => short,
            GameFault::DiesOfEndless => endless,
            _ => false,
        };
        !long && !short && !endless
    }

    fn data(&mut self, from: SocketAddr, packet: Packet) {
        let fault = self.fault;
        let right = self.is_right(&packet);
        let Some(connection) = self.connections.get_mut(&from).filter(|_| !self.dead) else {
            return;
        };
        let (sequence, reliable) = (packet.sequence, packet.flags & REL != 0);
        let ahead = connection.newest.map_or(1, |newest| sequence.wrapping_sub(newest) as i16);
        let refused = match fault {
            GameFault::DropsOld => ahead < -1000,
            GameFault::NoWrap => connection.newest.is_some_and(|newest| sequence < newest),
            GameFault::FromZeroOnly => connection.newest.is_none() && sequence > 1000,
            GameFault::ShortBodies => packet.body.len() > 500,
            GameFault::DiesOfGarbage if packet.flags >> 4 != 0 => {
                self.dead = true;
                true
            }
            _ => false,
        };
        if refused {
            return;
        }
        if ahead > 0 {
            connection.newest = Some(sequence);
        }
        let acks = reliable || fault == GameFault::AcksUnreliable;
        if acks && !connection.withholds(fault, &packet) {
            let ack = acknowledgement(fault, &packet);
            connection.acked.insert((packet.chunk, sequence));
            if fault == GameFault::LateAcks {
                connection.late.push((Instant::now(), ack));
            } else {
                self.send(from, &ack.bytes());
            }
        }
        let Some(connection) = self.connections.get_mut(&from).filter(|_| right && ahead > -1024) else {
            return;
        };
        if let Some(payload) = connection.assemble(fault, packet) {
            self.echo(from, reliable, payload);
        }
        if fault == GameFault::DiesOfUnfinished {
            self.dead = self.connections.values().any(|connection| connection.parts.len() > 40);
        }
    }

    fn echo(&mut self, from: SocketAddr, reliable: bool, mut payload: Vec<u8>) {
        let fault = self.fault;
        match fault {
            GameFault::DropsUnreliable if !reliable => return,
            GameFault::DropsReliable if reliable => return,
            GameFault::DropsOneByte if payload.len() == 1 => return,
            GameFault::Truncates(most) => payload.truncate(most),
            _ => {}
        }
        let Some(connection) = self.connections.get_mut(&from) else {
            return;
        };
        let sequence = connection.next;
        connection.next = sequence.wrapping_add(if fault == GameFault::SkipsSequences { 2 } else { 1 });
        let mut packets = cut(true, sequence, &payload);
        for packet in &mut packets {
            match fault {
                GameFault::HighHalf => packet.flags |= 0x80,
                GameFault::FinOnAll => packet.flags |= FIN,
                _ => {}
            }
        }
        let now = Instant::now();
        connection.unacked.extend(packets.iter().map(|packet| Unacked { packet: packet.clone(), at: now }));
        packets.iter().for_each(|packet| self.send(from, &packet.bytes()));
    }

    fn tick(&mut self) {
        let fault = self.fault;
        let after = if fault == GameFault::ResendsWildly { Duration::ZERO } else { RESEND };
        let mut out = Vec::new();
        for (&address, connection) in &mut self.connections {
            connection.late.retain(|(since, ack)| {
                let due = since.elapsed() >= Duration::from_millis(150);
                if due {
                    out.push((address, ack.clone()));
                }
                !due
            });
            for unacked in &mut connection.unacked {
                if unacked.at.elapsed() < after || fault == GameFault::NeverResends {
                    continue;
                }
                unacked.at = Instant::now();
                if fault == GameFault::ResendsRenumbered {
                    unacked.packet.sequence = unacked.packet.sequence.wrapping_add(100);
                }
                out.push((address, unacked.packet.clone()));
            }
        }
        out.iter().for_each(|(address, packet)| self.send(*address, &packet.bytes()));
        self.connections.retain(|_, connection| {
            let idle = fault == GameFault::DropsIdle && connection.opened.elapsed() > TIMEOUT / 2;
            !idle && (connection.heard.elapsed() < TIMEOUT || fault == GameFault::NeverGivesUp)
        });
    }
}

fn acknowledgement(fault: GameFault, packet: &Packet) -> Packet {
    let flags = if fault == GameFault::AckWithoutFin { ACK } else { ACK | FIN };
    let sequence = match fault {
        GameFault::AckSwapped => packet.sequence.swap_bytes(),
        _ => packet.sequence,
    };
    let body: &[u8] = if fault == GameFault::AckLong { &[0] } else { &[] };
    let chunk = if fault == GameFault::AckChunkZero { 0 } else { packet.chunk };
    Packet::new(flags, chunk, sequence, body)
}

impl Connection {
    fn withholds(&self, fault: GameFault, packet: &Packet) -> bool {
        match fault {
            GameFault::MuteAcks => true,
            GameFault::AckOnce => self.acked.contains(&(packet.chunk, packet.sequence)),
            GameFault::AcksLastOnly => packet.flags & FIN == 0,
            _ => false,
        }
    }

    fn assemble(&mut self, fault: GameFault, packet: Packet) -> Option<Vec<u8>> {
        let sequence = packet.sequence;
        if self.delivered.contains(&sequence) && fault != GameFault::DeliversTwice {
            return None;
        }
        if fault == GameFault::InOrderOnly && sequence > 0 && !self.delivered.contains(&(sequence - 1)) {
            return None;
        }
        if fault == GameFault::OneAtATime {
            self.parts.retain(|&other, _| other == sequence);
        }
        let parts = self.parts.entry(sequence).or_default();
        let out_of_order = usize::from(packet.chunk) != parts.len();
        if fault == GameFault::ChunksInOrder && out_of_order {
            return None;
        }
        parts.insert(packet.chunk, packet);
        let last = parts.values().find(|packet| packet.flags & FIN != 0)?.chunk;
        let empty = parts[&last].body.is_empty();
        if fault == GameFault::NoEmptyChunk && empty {
            return None;
        }
        let whole = parts.len() == usize::from(last) + 1 || fault == GameFault::DeliversIncomplete;
        if !whole {
            return None;
        }
        self.delivered.insert(sequence);
        Some(self.parts.remove(&sequence)?.into_values().flat_map(|packet| packet.body).collect())
    }
}

impl Turn for GameServer {
    fn turn(&mut self) {
        let mut buffer = [0; 65_536];
        for _ in 0..64 {
            match self.socket.recv_from(&mut buffer) {
                Ok((len, from)) => self.take(from, &buffer[..len]),
                Err(_) => break,
            }
        }
        if !self.dead {
            self.tick();
        }
    }
}
