//! The client side of the model, until its connection is open.

use super::connection::{Connection, Stage};
use super::dial::Dial;
use super::fault::Fault;
use super::server::{Server, Setup, VERSION};
use crate::wire::{self, Capsule, id};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The lengths of successive requests 1 in bytes, without IP and UDP headers.
const LADDER: [usize; 7] = [1464, 1464, 1172, 1172, 548, 548, 548];
const INTERVAL: Duration = Duration::from_millis(100);
const GUID: u64 = 0x6d6f_6465_6c00_0002;

impl Server {
    /// Creates a client.
    pub(super) fn dialling(socket: UdpSocket, target: SocketAddr, fault: Fault) -> Self {
        let mut model = Self::new(socket, Setup::default(), fault);
        model.guid = if fault == Fault::GuidUnassigned { u64::MAX } else { GUID };
        model.dial = Some(Dial {
            target,
            asked: 0,
            asked_at: None,
            over: false,
            requests_2: 0,
            last_request_2: None,
            opened: false,
        });
        model
    }

    /// Sends an unanswered connection request (09) again.
    pub(super) fn insist(&mut self) {
        let clock = self.clock();
        let Some(dial) = self.dial.as_mut().filter(|dial| !dial.opened) else {
            return;
        };
        let due = dial.asked_at.is_some_and(|at| at.elapsed() >= INTERVAL);
        if let Some(connection) = self.connections.get_mut(&dial.target).filter(|_| due) {
            dial.asked_at = Some(Instant::now());
            connection.send(0, wire::connected_ping(clock));
        }
    }

    /// Sends request 1 if it is due.
    pub(super) fn ask(&mut self) {
        let fault = self.fault;
        let Some(dial) = self.dial.as_mut() else {
            return;
        };
        let endless = matches!(fault, Fault::AsksForever | Fault::AsksWildly);
        let interval = if fault == Fault::AsksWildly { Duration::ZERO } else { INTERVAL };
        let due = dial.asked_at.is_none_or(|at| at.elapsed() >= interval);
        if dial.over && fault != Fault::AsksWhenAnswered || !due || fault == Fault::AsksOnce && dial.asked > 0
        {
            return;
        }
        let at = match fault {
            Fault::LadderRises => LADDER.len() - 1 - dial.asked.min(LADDER.len() - 1),
            Fault::LadderStands => 0,
            Fault::AsksForever | Fault::AsksWildly => dial.asked.min(LADDER.len() - 1),
            _ => dial.asked,
        };
        let least = if fault == Fault::LadderWithoutFloor && at > 3 { Some(&100) } else { LADDER.get(at) };
        let Some(&len) = least.filter(|_| dial.asked < LADDER.len() || endless) else {
            dial.over = true;
            return;
        };
        let len = if fault == Fault::LongRequestOne { 1600 } else { len };
        let version = VERSION + u8::from(fault == Fault::VersionChanges && dial.asked > 0);
        dial.asked += 1;
        dial.asked_at = Some(Instant::now());
        let target = dial.target;
        self.send(target, &wire::request_1(version, len));
        if fault == Fault::RequestTwoUnasked {
            self.send(target, &wire::request_2(None, target, 1492, self.guid));
        }
    }

    /// Handles an offline message for the client.
    pub(super) fn reply(&mut self, from: SocketAddr, bytes: &[u8]) {
        let fault = self.fault;
        let Some(dial) = self.dial.as_ref() else {
            return;
        };
        if from != dial.target && fault != Fault::BelievesStrangers {
            return;
        }
        let (target, opened) = (dial.target, dial.opened);
        let mut bytes = bytes.to_vec();
        match fault {
            Fault::IgnoresMagic if wire::magic_offset(bytes[0]).is_some_and(|at| bytes.len() >= at + 16) => {
                let at = wire::magic_offset(bytes[0]).unwrap_or_default();
                bytes[at..at + 16].copy_from_slice(&wire::MAGIC);
            }
            Fault::PadsShortDatagrams if bytes[0] == id::REPLY_1 => {
                bytes = wire::reply_1(1, None, 1492);
            }
            Fault::PadsShortDatagrams if bytes[0] == id::REPLY_2 => {
                bytes = wire::reply_2(1, target, 1492);
            }
            Fault::DiesOfGarbage if wire::offline_id(&bytes).is_none() => self.dead = true,
            Fault::AnswersUnknownIds if bytes[0] > 0x1c => self.send(target, &bytes),
            _ => {}
        }
        match wire::offline_id(&bytes) {
            Some(id::REPLY_1) if !opened || fault == Fault::AnswersLateReplies => self.reply_1(&bytes),
            Some(id::REPLY_2) if !opened => self.reply_2_came(&bytes),
            Some(kind @ (0x11 | 0x12 | 0x14 | 0x17 | 0x19 | 0x1a)) => self.refused(kind, bytes.len()),
            _ => {}
        }
    }

    fn refused(&mut self, kind: u8, len: usize) {
        let fault = self.fault;
        let whole = len == if kind == id::INCOMPATIBLE { 26 } else { 25 };
        let Some(dial) = self.dial.as_mut() else {
            return;
        };
        if dial.opened {
            if fault == Fault::BelievesRefusals {
                let target = dial.target;
                self.connections.remove(&target);
            }
            return;
        }
        if fault != Fault::IgnoresRefusal(kind) && (whole || fault == Fault::PadsShortDatagrams) {
            dial.over = true;
            dial.opened = true;
        }
    }

    fn reply_1(&mut self, bytes: &[u8]) {
        let fault = self.fault;
        if fault == Fault::ReplyLengthExact && !matches!(bytes.len(), 28 | 32) {
            return;
        }
        let Some(mut reply) = wire::read_reply_1(bytes) else {
            return;
        };
        let Some(dial) = self.dial.as_mut() else {
            return;
        };
        if fault == Fault::SecurityByteExact && reply.security != 1 {
            reply.cookie = None;
        }
        let probed = LADDER[dial.asked.saturating_sub(1).min(LADDER.len() - 1)] + wire::UDP_OVERHEAD;
        let least = if fault == Fault::MtuWithoutFloor { 0 } else { wire::SMALLEST_MTU };
        let mtu = match fault {
            Fault::MtuConstant => 1492,
            Fault::MtuUnlimited => reply.mtu,
            _ => reply.mtu.clamp(least, probed.max(usize::from(least)) as u16),
        };
        let cookie = match fault {
            Fault::CookieOptional => None,
            Fault::CookieForAll => Some(0x1234_5678),
            Fault::CookieOfLastRequest if dial.requests_2 > 0 => {
                dial.last_request_2.as_deref().and_then(wire::read_request_2).and_then(|last| last.cookie)
            }
            Fault::CookieSwapped => reply.cookie.map(u32::swap_bytes),
            Fault::CookieNotZero => reply.cookie.filter(|&cookie| cookie != 0),
            _ => reply.cookie,
        };
        let server = match fault {
            Fault::WrongClientAddress => SocketAddr::new(dial.target.ip(), dial.target.port() ^ 1),
            _ => dial.target,
        };
        let guid = if fault == Fault::GuidChanges { self.guid + dial.requests_2 as u64 } else { self.guid };
        let mut request = wire::request_2(cookie, server, mtu, guid);
        match fault {
            Fault::LongRequestTwo => request.push(0),
            Fault::ChallengeFlag if cookie.is_some() => request[21] = 1,
            _ => {}
        }
        dial.over = true;
        dial.requests_2 += 1;
        dial.last_request_2 = Some(request.clone());
        let times = if fault == Fault::RepeatsRequestTwo { 8 } else { 1 };
        let target = dial.target;
        let silent = fault == Fault::AnswersFirstReplyOnly && dial.requests_2 > 1;
        (0..if silent { 0 } else { times }).for_each(|_| self.send(target, &request));
    }

    fn reply_2_came(&mut self, bytes: &[u8]) {
        let fault = self.fault;
        let Some(reply) = wire::read_reply_2(bytes) else {
            return;
        };
        let Some(dial) = self.dial.as_mut() else {
            return;
        };
        let unasked = dial.requests_2 == 0;
        let encrypted = reply.encryption != 0 && fault == Fault::EncryptionExact;
        let target = dial.target;
        let again = self.connections.contains_key(&target) && fault != Fault::OpensTwice;
        if unasked || encrypted || again {
            return;
        }
        dial.over = true;
        let guid = self.guid;
        let clock = self.clock();
        let connection =
            self.connections.entry(target).or_insert_with(|| Connection::new(guid, reply.mtu, fault, false));
        let named = if fault == Fault::RequestGuidDiffers { guid + 1 } else { guid };
        let mut request = wire::connection_request(named, clock, b"");
        match fault {
            Fault::RequestTruncated => request.truncate(17),
            Fault::RequestWantsSecurity => request[17] = 1,
            _ => {}
        }
        connection.send(if fault == Fault::RequestUnreliable { 0 } else { 2 }, request);
    }

    /// Handles connection request accepted (10).
    pub(super) fn accepted_by_server(&mut self, from: SocketAddr, capsule: &Capsule) {
        let fault = self.fault;
        let payload = &capsule.payload;
        let clock = self.clock();
        let Some(dial) = self.dial.as_mut() else {
            return;
        };
        let read = wire::read_accepted(payload);
        let lax = (fault == Fault::AcceptsShortRequest).then_some((10, 0));
        let Some((addresses, time)) = read.as_ref().map(|ten| (ten.addresses, ten.time)).or(lax) else {
            return;
        };
        let long = read.as_ref().is_some_and(|ten| payload.len() != 26 + 7 * ten.addresses);
        let refused = match fault {
            Fault::NewIncomingCount => addresses != 10,
            Fault::NewIncomingTen => addresses == 10,
            Fault::ChecksNewIncoming => read.map(|ten| ten.client) != self.socket.local_addr().ok(),
            Fault::AcceptedOrderedOnly => capsule.reliability != 3,
            Fault::Ipv4Only => long,
            _ => false,
        };
        let again = dial.opened && fault != Fault::AnswersEveryAccepted;
        if refused || again {
            return;
        }
        dial.opened = true;
        let server = dial.target;
        let count = if let Fault::AddressCount(count) = fault { count } else { 10 };
        let time = if fault == Fault::AcceptedTimeWrong { time + 1 } else { time };
        let mut thirteen = wire::new_incoming(server, count, time, clock);
        if fault == Fault::AcceptedTail {
            thirteen.push(0);
        }
        if let Some(connection) = self.connections.get_mut(&from) {
            connection.stage = Stage::Open;
            connection.opened = Some(Instant::now());
            connection.send(if fault == Fault::AcceptedUnreliable { 0 } else { 3 }, thirteen);
            if fault == Fault::IgnoresMtu {
                connection.send(0, vec![id::USER; 1000]);
            }
        }
    }

    /// Handles invalid password (18).
    pub(super) fn password_refused(&mut self, from: SocketAddr, payload: &[u8]) {
        let exact = self.fault == Fault::PasswordRefusalExact && payload.len() != 9;
        if !exact && self.fault != Fault::IgnoresRefusal(id::INVALID_PASSWORD) {
            self.connections.remove(&from);
        }
    }
}
