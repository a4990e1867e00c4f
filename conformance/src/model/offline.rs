//! The offline messages of the model.

use super::connection::{Connection, Stage};
use super::fault::Fault;
use super::server::{Server, VERSION};
use crate::wire::{self, id};
use std::net::SocketAddr;

const ADVERTISEMENT: &str = "MCPE;a model;11;1.0;0;10;1;second;Survival;1;0;0;";

/// Returns true if a datagram is a ping with the magic at any offset.
fn is_moved(bytes: &[u8]) -> bool {
    bytes[0] == id::PING && bytes.windows(16).any(|window| window == wire::MAGIC)
}

impl Server {
    /// Handles a datagram in which bit 7 of the first byte is clear.
    pub(super) fn offline(&mut self, from: SocketAddr, bytes: &[u8]) {
        let mut bytes = bytes.to_vec();
        let mut known = wire::offline_id(&bytes);
        match self.fault {
            Fault::IgnoresMagic if wire::magic_offset(bytes[0]).is_some() => known = Some(bytes[0]),
            Fault::SearchesMagic if known.is_none() && is_moved(&bytes) => {
                known = Some(id::PING);
                bytes.push(0);
            }
            Fault::PadsShortDatagrams => {
                bytes = self.padded(from, bytes);
                known = wire::offline_id(&bytes);
            }
            Fault::EchoesGarbage if known.is_none() => self.send(from, &bytes[..3]),
            Fault::AnswersUnknownIds if known.is_none() => self.send(from, &wire::pong(0, self.guid, b"")),
            _ => {}
        }
        match known {
            Some(id::PING | id::PING_OPEN) => self.ping(from, &bytes),
            Some(id::REQUEST_1) => self.request_1(from, &bytes),
            Some(id::REQUEST_2) => self.request_2(from, &bytes),
            Some(id::OUT_OF_BAND) => self.dead |= self.fault == Fault::DiesOfOutOfBand,
            Some(id::REPLY_1 | id::REPLY_2 | id::INCOMPATIBLE | id::PONG) => self.reply_of_a_client(from),
            Some(_) => self.refusal_of_a_client(from),
            None => {}
        }
    }

    fn reply_of_a_client(&self, from: SocketAddr) {
        if self.fault == Fault::AnswersReplies {
            self.send(from, &wire::pong(0, self.guid, b""));
        }
    }

    fn refusal_of_a_client(&mut self, from: SocketAddr) {
        match self.fault {
            Fault::AnswersRefusals => self.send(from, &wire::pong(0, self.guid, b"")),
            Fault::BelievesRefusals => {
                self.connections.remove(&from);
            }
            _ => {}
        }
    }

    /// Completes a truncated message, for [`Fault::PadsShortDatagrams`].
    fn padded(&self, from: SocketAddr, bytes: Vec<u8>) -> Vec<u8> {
        match bytes[0] {
            id::PING if bytes.len() < 25 => wire::ping(id::PING, 0, 0),
            id::REQUEST_1 if bytes.len() < 18 => wire::request_1(VERSION, 548),
            id::REQUEST_2 if bytes.len() < 34 => wire::request_2(None, from, 1492, 77),
            _ => bytes,
        }
    }

    fn is_full(&self) -> bool {
        let counts = |connection: &&Connection| {
            !matches!(connection.stage, Stage::Closed(_)) || self.fault == Fault::PlaceNeverFree
        };
        let taken = self.connections.values().filter(counts).count();
        self.setup.capacity.is_some_and(|capacity| taken >= capacity) && self.fault != Fault::NeverFull
    }

    fn ping(&mut self, from: SocketAddr, bytes: &[u8]) {
        let least = if self.fault == Fault::AnswersShortPing { 25 } else { 33 };
        let open = bytes[0] == id::PING_OPEN;
        let silent = match self.fault {
            Fault::IgnoresPingOpen => open,
            Fault::NoPongForConnected => self.connections.contains_key(&from),
            Fault::FullIgnoresPing => self.is_full(),
            Fault::FullAnswersPingOpen => false,
            _ => open && self.is_full(),
        };
        let Some(time) = wire::Reader(&bytes[1..]).u64().filter(|_| bytes.len() >= least && !silent) else {
            return;
        };
        let time = match self.fault {
            Fault::PongTimeSigned => time & (u64::MAX >> 1),
            Fault::PongOwnTimeForZero if time == 0 => self.began.elapsed().as_nanos() as u64,
            Fault::PingOpenTimeLost if open => 0,
            _ => time,
        };
        self.pongs += 1;
        let guid = if self.fault == Fault::GuidChanges { self.guid + self.pongs } else { self.guid };
        let text = match self.fault {
            Fault::AdvertisementShort => "MCPE;a model;11;",
            _ => ADVERTISEMENT,
        };
        let prefix = text.len() as u16 + u16::from(self.fault == Fault::PongPrefixWrong);
        let mut data = [&prefix.to_be_bytes()[..], text.as_bytes()].concat();
        if self.fault == Fault::LongPong {
            data.resize(500, b';');
        }
        self.send(from, &wire::pong(time, guid, &data));
    }

    pub(super) fn cookie(&self, from: SocketAddr) -> u32 {
        match self.fault {
            Fault::CookieForAll => 0x1234_5678,
            Fault::CookieOfLastRequest => self.requests as u32,
            _ => (u32::from(from.port()) ^ 0x5eed_5eed).wrapping_mul(0x9e37_79b1),
        }
    }

    fn offered(&self, mtu: usize) -> u16 {
        match self.fault {
            Fault::MtuUnlimited => mtu.clamp(576, 9000) as u16,
            Fault::MtuWithoutFloor => mtu.min(1492) as u16,
            Fault::MtuCap(most) => mtu.clamp(576, usize::from(most)) as u16,
            Fault::MtuConstant => 1400,
            Fault::MtuRounded => mtu.clamp(576, 1492) as u16 & !3,
            _ => mtu.clamp(576, 1492) as u16,
        }
    }

    fn request_1(&mut self, from: SocketAddr, bytes: &[u8]) {
        let Some(&version) = bytes.get(17) else {
            return;
        };
        self.requests += 1;
        if matches!(self.fault, Fault::DiesOfRequests(most) if self.requests > most) {
            self.dead = true;
            return;
        }
        let accepted = match self.fault {
            Fault::AcceptsAnyVersion => true,
            Fault::AcceptsVersionZero => version == 0 || version == VERSION,
            _ => version == VERSION,
        };
        if !accepted {
            self.refuse_version(from, version);
            if self.fault != Fault::RefusesAndReplies {
                return;
            }
        }
        let mut mtu = self.offered(bytes.len() + wire::UDP_OVERHEAD);
        let before = self.asked.insert(from, mtu);
        match (self.fault, before) {
            (Fault::AnswersRequestOneOnce, Some(_)) => return,
            (Fault::RemembersMtu, Some(before)) => {
                self.asked.insert(from, before);
                mtu = before;
            }
            _ => {}
        }
        if self.secure.is_some() {
            if let Some(reply) = self.secure_reply_1(from, bytes.len(), mtu) {
                self.send(from, &reply);
            }
            return;
        }
        let mut out = wire::refusal(id::REPLY_1, self.guid);
        let odd = self.fault == Fault::SecurityByteOdd;
        out.push(if odd { 2 } else { u8::from(self.setup.cookies) });
        if self.setup.cookies || odd {
            out.extend(self.cookie(from).to_be_bytes());
        }
        out.extend(mtu.to_be_bytes());
        match self.fault {
            Fault::ReplyOneTail => out.push(0xaa),
            Fault::PadsReplyOne => out.resize(1480, 0),
            _ => {}
        }
        self.send(from, &out);
    }

    fn refuse_version(&self, from: SocketAddr, version: u8) {
        let named = match self.fault {
            Fault::NamesRefusedVersion => version,
            Fault::NamesWrongVersion => VERSION + 1,
            _ => VERSION,
        };
        let mut out = [&[id::INCOMPATIBLE, named][..], &wire::MAGIC, &self.guid.to_be_bytes()].concat();
        if self.fault == Fault::LongIncompatible {
            out.resize(100, 0);
        }
        self.send(from, &out);
    }

    fn request_2(&mut self, from: SocketAddr, bytes: &[u8]) {
        if !self.secure_request_2(from, bytes) {
            return;
        }
        let mut reader = wire::Reader(&bytes[17..]);
        // Without a cookie, exactly an address, an MTU and a GUID remain.
        let plain = matches!((reader.0.len(), reader.0.first()), (17, Some(4)) | (39, Some(6)));
        let cookie = if plain { None } else { reader.u32().zip(reader.u8()).map(|(cookie, _)| cookie) };
        let read = (|| Some((reader.address()?, reader.u16()?, reader.u64()?)))();
        let Some((server, mtu, guid)) = read else {
            return;
        };
        if !self.cookie_holds(from, cookie) {
            return;
        }
        let refused = match self.fault {
            Fault::ChecksServerAddress => self.socket.local_addr().ok() != Some(server),
            Fault::NeedsRequestOne => !self.asked.contains_key(&from),
            _ => false,
        };
        if refused {
            return;
        }
        match self.refusal(from, guid) {
            Some(refusal) => self.send(from, &refusal),
            None => self.reply_2(from, mtu, guid),
        }
    }

    fn cookie_holds(&mut self, from: SocketAddr, cookie: Option<u32>) -> bool {
        if !self.setup.cookies {
            return true;
        }
        let due = match self.fault {
            Fault::CookieOfLastRequest => self.requests as u32,
            _ => self.cookie(from),
        };
        let holds = cookie == Some(due);
        if !holds && cookie.is_some() {
            self.spoiled.insert(from);
        }
        match self.fault {
            Fault::CookieOptional => holds || cookie.is_none(),
            Fault::CookieUnchecked => cookie.is_some(),
            Fault::CookieRefused => false,
            Fault::CookieSpoiled => holds && !self.spoiled.contains(&from),
            _ => holds,
        }
    }

    /// Returns the refusal of a request 2; `None` if it is accepted.
    fn refusal(&self, from: SocketAddr, guid: u64) -> Option<Vec<u8>> {
        let alive = |connection: &Connection| {
            let keeps = matches!(self.fault, Fault::KeepsClosed | Fault::PlaceNeverFree);
            connection.stage != Stage::Refused && (keeps || !matches!(connection.stage, Stage::Closed(_)))
        };
        let of_address = self.connections.get(&from).filter(|connection| alive(connection));
        let guid_known =
            self.connections.values().any(|connection| connection.guid == guid && alive(connection));
        let already = match of_address {
            Some(connection) if connection.guid == guid => match connection.stage {
                Stage::Reserved => self.fault == Fault::RefusesSecondRequestTwo,
                _ => self.fault != Fault::ReplyTwoWhenConnected,
            },
            Some(_) => self.fault != Fault::IgnoresKnownAddress,
            None => guid_known && self.fault != Fault::IgnoresKnownGuid,
        };
        let half_open =
            self.connections.values().filter(|connection| connection.stage == Stage::Reserved).count();
        let others = self.connections.keys().any(|address| *address != from);
        let open = self.connections.values().any(|connection| connection.stage == Stage::Open);
        let full = match self.fault {
            Fault::OneClientOnly => others,
            Fault::OneConnectionOnly => open,
            Fault::HalfOpenLimit(most) => half_open >= most,
            _ => self.is_full(),
        };
        let (kind, long) = if already {
            (id::ALREADY_CONNECTED, Fault::LongAlreadyConnected)
        } else if full && of_address.is_none() {
            (id::NO_FREE_CONNECTIONS, Fault::LongNoFree)
        } else {
            return None;
        };
        let named = if self.fault == Fault::RefusalWithClientGuid { guid } else { self.guid };
        let mut out = wire::refusal(kind, named);
        if self.fault == long {
            out.push(0);
        }
        Some(out)
    }

    fn reply_2(&mut self, from: SocketAddr, mtu: u16, guid: u64) {
        let mtu = match self.fault {
            Fault::ReplyTwoMtuConstant => 1400,
            _ => self.offered(usize::from(mtu)),
        };
        let again = self
            .connections
            .get(&from)
            .is_some_and(|connection| connection.guid == guid && connection.stage == Stage::Reserved);
        if !again {
            let used_before = !self.known.insert(from);
            self.connections.insert(from, Connection::new(guid, mtu, self.fault, used_before));
        }
        let mut out = wire::refusal(id::REPLY_2, self.guid);
        wire::put_address(&mut out, self.seen(from));
        out.extend(mtu.to_be_bytes());
        out.push(if self.fault == Fault::EncryptionByte { 0x80 } else { 0 });
        if self.fault == Fault::LongReplyTwo {
            out.push(0);
        }
        let times = if self.fault == Fault::RepeatsReplyTwo { 8 } else { 1 };
        (0..times).for_each(|_| self.send(from, &out));
    }
}
