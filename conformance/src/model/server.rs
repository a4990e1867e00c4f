//! The server side of the model: the connection table, and control messages.

use super::connection::{Connection, Stage, Wish};
use super::dial::Dial;
use super::fault::Fault;
use super::sealed::Secure;
use super::turn::Turn;
use crate::wire::{self, Capsule, id};
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The protocol version of the model.
pub(super) const VERSION: u8 = 6;
const PING_INTERVAL: Duration = Duration::from_millis(100);
/// The time after which an unresponsive client is removed.
const TIMEOUT: Duration = Duration::from_millis(800);
const CLOSING: Duration = Duration::from_millis(150);

/// The configuration of the model.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// True to require cookies.
    pub cookies: bool,
    /// The password.
    pub password: Vec<u8>,
    /// The number of slots; `None` is unlimited.
    pub capacity: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) socket: UdpSocket,
    pub(super) setup: Setup,
    pub(super) fault: Fault,
    pub(super) guid: u64,
    pub(super) began: Instant,
    pub(super) dead: bool,
    pub(super) connections: HashMap<SocketAddr, Connection>,
    pub(super) known: HashSet<SocketAddr>,
    /// The addresses that have sent a request 1, each with its MTU.
    pub(super) asked: HashMap<SocketAddr, u16>,
    pub(super) spoiled: HashSet<SocketAddr>,
    pub(super) requests: usize,
    pub(super) pongs: u64,
    /// The connection attempt of a client.
    pub(super) dial: Option<Dial>,
    /// The state of secure connections.
    pub(super) secure: Option<Secure>,
    given_up: Vec<(SocketAddr, Connection)>,
    held_echo: Option<Vec<u8>>,
}

impl Server {
    pub(super) fn new(socket: UdpSocket, setup: Setup, fault: Fault) -> Self {
        Self {
            socket,
            setup,
            fault,
            guid: if fault == Fault::GuidUnassigned { u64::MAX } else { 0x6d6f_6465_6c00_0001 },
            began: Instant::now(),
            dead: false,
            connections: HashMap::new(),
            known: HashSet::new(),
            asked: HashMap::new(),
            spoiled: HashSet::new(),
            requests: 0,
            pongs: 0,
            dial: None,
            secure: None,
            given_up: Vec::new(),
            held_echo: None,
        }
    }

    fn take(&mut self, from: SocketAddr, bytes: &[u8]) {
        match self.fault {
            Fault::DiesOfEmptyDatagram if bytes.is_empty() => self.dead = true,
            Fault::DiesOfLongDatagram if bytes.len() > 1600 => self.dead = true,
            _ => {}
        }
        if self.dead {
            return;
        }
        if bytes.len() <= 2 {
            if self.fault == Fault::AnswersTiny {
                self.send(from, &wire::pong(0, self.guid, b""));
            }
            return;
        }
        if bytes[0] & 0x80 == 0 {
            if self.dial.is_some() {
                self.reply(from, bytes);
            } else {
                self.offline(from, bytes);
            }
            return;
        }
        let mut source = from;
        if !self.connections.contains_key(&from) {
            match self.fault {
                Fault::AcksStrangers => self.send(from, &wire::records(0xc0, &[(0, 0)])),
                Fault::SharesConnectionsOfHost => {
                    source = self.connections.keys().next().copied().unwrap_or(from);
                }
                _ => {}
            }
        }
        let Some(bytes) = self.unsealed(source, bytes) else {
            return;
        };
        let Some(connection) = self.connections.get_mut(&source).filter(|_| bytes.len() > 2) else {
            return;
        };
        let wish = connection.take(&bytes);
        self.obey(&wish);
        self.deliver(source);
    }

    fn obey(&mut self, wish: &Wish) {
        match wish {
            Wish::Nothing => {}
            Wish::Die => self.dead = true,
            Wish::DisconnectAll => self.connections.clear(),
        }
    }

    fn deliver(&mut self, from: SocketAddr) {
        let Some(connection) = self.connections.get_mut(&from) else {
            return;
        };
        for capsule in std::mem::take(&mut connection.delivered) {
            let wish = self.message(from, &capsule);
            self.obey(&wish);
        }
    }

    /// Sends an offline message, or a datagram of a connection.
    pub(super) fn send(&self, to: SocketAddr, bytes: &[u8]) {
        let mut bytes = bytes.to_vec();
        let offline = wire::offline_id(&bytes);
        match self.fault {
            Fault::Mute(id) if offline == Some(id) => return,
            Fault::Flip(id, at) if offline == Some(id) && at < bytes.len() => bytes[at] ^= 0x55,
            Fault::Twice(id) if offline == Some(id) => {
                let _ = self.socket.send_to(&bytes, to);
            }
            _ => {}
        }
        // Sending to a client that has left may fail; its timeout removes it.
        let _ = self.socket.send_to(&bytes, to);
    }

    pub(super) fn clock(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    fn message(&mut self, from: SocketAddr, capsule: &Capsule) -> Wish {
        let payload = &capsule.payload;
        let fault = self.fault;
        let Some(connection) = self.connections.get_mut(&from) else {
            return Wish::Nothing;
        };
        let stage = connection.stage;
        let short =
            matches!((payload[0], payload.len()), (0, 2..9) | (3, 2..17) | (9, 2..18) | (0x13, 2..24));
        match fault {
            Fault::DiesOfId(id) if payload[0] == id && stage == Stage::Open => return Wish::Die,
            Fault::DiesOfShortControl if short => return Wish::Die,
            Fault::DiesOfSecondNewIncoming if payload[0] == id::NEW_INCOMING && stage == Stage::Open => {
                return Wish::Die;
            }
            Fault::DropsReliability(kind)
                if kind == capsule.reliability && (payload[0] == 0 || payload[0] >= id::USER) =>
            {
                return Wish::Nothing;
            }
            _ => {}
        }
        match payload[0] {
            id::CONNECTED_PING => self.connected_ping(from, payload),
            id::CONNECTION_REQUEST if stage == Stage::Reserved => self.connection_request(from, payload),
            id::NEW_INCOMING if stage == Stage::Requested => self.new_incoming(from, payload),
            id::ACCEPTED if self.dial.is_some() => self.accepted_by_server(from, capsule),
            id::INVALID_PASSWORD if self.dial.is_some() => self.password_refused(from, payload),
            id::DISCONNECTION => return self.disconnection(from, payload),
            id::USER.. if stage == Stage::Open => self.echo(from, payload.clone()),
            0x0e if fault == Fault::EchoesReserved => self.echo(from, payload.clone()),
            _ => {}
        }
        Wish::Nothing
    }

    fn connected_ping(&mut self, from: SocketAddr, payload: &[u8]) {
        let clock = if self.fault == Fault::PongClockStands { 0 } else { self.clock() };
        let fault = self.fault;
        let Some(connection) = self.connections.get_mut(&from) else {
            return;
        };
        let answers = match connection.stage {
            Stage::Requested | Stage::Open => true,
            Stage::Reserved => fault == Fault::AnswersBeforeRequest,
            Stage::Refused => false,
            Stage::Closed(_) => fault == Fault::GoesOnAfterDisconnection,
        };
        let right = match payload.len() {
            8 => fault == Fault::ShortConnectedPing,
            9 => true,
            10 => fault == Fault::LongConnectedPing,
            _ => false,
        };
        if !answers || !right {
            return;
        }
        let mut time = [0; 8];
        let len = (payload.len() - 1).min(8);
        time[..len].copy_from_slice(&payload[1..=len]);
        let mut pong = wire::connected_pong(u64::from_be_bytes(time), clock);
        if fault == Fault::LongConnectedPong {
            pong.push(0);
        }
        let reliability = if fault == Fault::PongReliable { 2 } else { 0 };
        if fault == Fault::ConnectedPongTwice {
            connection.send(reliability, pong.clone());
        }
        connection.send(reliability, pong);
    }

    fn password_is_right(&self, given: &[u8]) -> bool {
        let due = &self.setup.password[..];
        match self.fault {
            Fault::IgnoresPassword => true,
            Fault::RefusesEveryPassword => false,
            Fault::PasswordPrefix => !given.is_empty() && due.starts_with(given),
            Fault::PasswordLonger => given.starts_with(due),
            Fault::PasswordOptional => given == due || given.is_empty(),
            _ => given == due,
        }
    }

    fn connection_request(&mut self, from: SocketAddr, payload: &[u8]) {
        let Some(payload) = self.proven(from, payload) else {
            return;
        };
        let mut reader = wire::Reader(&payload[1..]);
        let read = (|| {
            let (_, time, _) = (reader.u64()?, reader.u64()?, reader.u8()?);
            Some((time, reader.0))
        })();
        let lax = (self.fault == Fault::AcceptsShortRequest).then_some((0, &self.setup.password[..]));
        let Some((time, password)) = read.or(lax) else {
            return;
        };
        let right = self.password_is_right(password);
        let ten = self.accepted(from, time);
        let fault = self.fault;
        let Some(connection) = self.connections.get_mut(&from) else {
            return;
        };
        if right {
            connection.stage = Stage::Requested;
            connection.send(if fault == Fault::AcceptedUnreliable { 0 } else { 3 }, ten);
            return;
        }
        let refusal = [&[id::INVALID_PASSWORD][..], &self.guid.to_be_bytes()].concat();
        connection.send(if fault == Fault::RefusesUnreliably { 0 } else { 2 }, refusal);
        connection.stage = Stage::Refused;
        match fault {
            Fault::RefusesAndAccepts => connection.send(3, ten),
            Fault::OpensAfterRefusal => connection.stage = Stage::Open,
            _ => {}
        }
    }

    fn accepted(&self, from: SocketAddr, time: u64) -> Vec<u8> {
        let mut out = vec![id::ACCEPTED];
        wire::put_address(&mut out, self.seen(from));
        out.extend([0, 0]);
        let count = if let Fault::AddressCount(count) = self.fault { count } else { 10 };
        (0..count).for_each(|_| wire::put_address(&mut out, wire::unassigned()));
        let time = if self.fault == Fault::AcceptedTimeWrong { time + 1 } else { time };
        out.extend(time.to_be_bytes());
        let clock = match self.fault {
            Fault::ClockBackwards => 1_000_000_000 - self.began.elapsed().as_micros() as u64,
            _ => self.clock(),
        };
        out.extend(clock.to_be_bytes());
        if self.fault == Fault::AcceptedTail {
            out.push(0);
        }
        out
    }

    /// Returns the client address that the model writes into messages to the client.
    pub(super) fn seen(&self, from: SocketAddr) -> SocketAddr {
        match self.fault {
            Fault::WrongClientAddress => SocketAddr::new(from.ip(), from.port() ^ 1),
            _ => from,
        }
    }

    fn new_incoming(&mut self, from: SocketAddr, payload: &[u8]) {
        let mut reader = wire::Reader(&payload[1..]);
        let Some(server) = reader.address().filter(|_| reader.0.len() >= 16) else {
            return;
        };
        let addresses = (reader.0.len() - 16) / 7;
        let fault = self.fault;
        let refused = match fault {
            Fault::NewIncomingCount => addresses != 10,
            Fault::NewIncomingTen => addresses == 10,
            Fault::ChecksNewIncoming => self.socket.local_addr().ok() != Some(server),
            _ => false,
        };
        if refused {
            self.connections.remove(&from);
            return;
        }
        if let Some(connection) = self.connections.get_mut(&from) {
            connection.stage = Stage::Open;
            connection.opened = Some(Instant::now());
            if fault == Fault::IgnoresMtu {
                connection.send(0, vec![id::USER; 1000]);
            }
        }
    }

    fn disconnection(&mut self, from: SocketAddr, payload: &[u8]) -> Wish {
        let ignores = match self.fault {
            Fault::IgnoresDisconnection => true,
            Fault::DisconnectionExact => payload.len() != 1,
            _ => false,
        };
        if ignores {
            return Wish::Nothing;
        }
        if self.fault == Fault::DisconnectsAll {
            return Wish::DisconnectAll;
        }
        let keeps_half_open = self.fault == Fault::KeepsClosedHalfOpen;
        let Some(connection) = self.connections.get_mut(&from) else {
            return Wish::Nothing;
        };
        if keeps_half_open && connection.stage == Stage::Requested {
            return Wish::Nothing;
        }
        connection.stop_sending();
        connection.stage = Stage::Closed(Instant::now());
        Wish::Nothing
    }

    fn echo(&mut self, from: SocketAddr, mut payload: Vec<u8>) {
        match self.fault {
            Fault::DropsOneByte if payload.len() == 1 => return,
            Fault::EchoLimit(most) => payload.truncate(most),
            Fault::EchoFlipsLast => {
                if let Some(last) = payload.last_mut() {
                    *last ^= 1;
                }
            }
            Fault::EchoesPairsSwapped if self.held_echo.is_none() => {
                self.held_echo = Some(payload);
                return;
            }
            _ => {}
        }
        let held = self.held_echo.take();
        if let Some(connection) = self.connections.get_mut(&from) {
            connection.send(3, payload);
            if let Some(held) = held {
                connection.send(3, held);
            }
        }
    }

    fn tick(&mut self) {
        self.ask();
        let fault = self.fault;
        if fault == Fault::NeverGivesUp {
            self.insist();
        }
        let clock = self.clock();
        let mut gone = Vec::new();
        for (&address, connection) in &mut self.connections {
            if connection.is_over(fault) {
                gone.push(address);
            }
            connection.resend_late();
            connection.ping_if_due(fault, clock);
            connection.flush_acks();
        }
        for connection in self.connections.iter_mut().chain(self.given_up.iter_mut().map(|(a, c)| (&*a, c))) {
            connection.1.resend_late();
            for bytes in std::mem::take(&mut connection.1.outgoing) {
                let bytes = match self.secure.as_mut() {
                    Some(secure) => secure.seal(*connection.0, bytes, fault),
                    None => bytes,
                };
                // Sending to a client that has left may fail; its timeout removes it.
                let _ = self.socket.send_to(&bytes, connection.0);
            }
        }
        for address in gone {
            let connection = self.connections.remove(&address);
            if let Some(mut connection) = connection.filter(|_| fault == Fault::SendsForever) {
                connection.send(2, wire::connected_ping(0));
                self.given_up.push((address, connection));
            }
        }
    }
}

impl Turn for Server {
    fn turn(&mut self) {
        let mut buffer = [0; 65_536];
        // Acknowledge the datagrams of a burst together, but at most 64, so that timers still run in between.
        for _ in 0..64 {
            match self.socket.recv_from(&mut buffer) {
                Ok((len, from)) => self.take(from, &buffer[..len]),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(_) => break,
            }
            if self.connections.values().any(|connection| !connection.outgoing.is_empty()) {
                break;
            }
        }
        if !self.dead {
            self.tick();
        }
    }
}

impl Connection {
    fn is_over(&self, fault: Fault) -> bool {
        let silent = self.heard.elapsed() > TIMEOUT && fault != Fault::NeverGivesUp;
        match self.stage {
            Stage::Closed(_) if matches!(fault, Fault::KeepsClosed | Fault::PlaceNeverFree) => false,
            Stage::Closed(since) => fault == Fault::ForgetsClosedAtOnce || since.elapsed() > CLOSING,
            Stage::Reserved if fault == Fault::KeepsHalfOpen => false,
            Stage::Open if fault == Fault::DropsIdle => {
                self.opened.is_some_and(|opened| opened.elapsed() > TIMEOUT / 2)
            }
            _ => silent,
        }
    }

    fn ping_if_due(&mut self, fault: Fault, clock: u64) {
        let due = self.pinged.is_none_or(|pinged| pinged.elapsed() >= PING_INTERVAL);
        let once = fault == Fault::PingsOnce && self.pinged.is_some();
        if self.stage != Stage::Open || !due || once {
            return;
        }
        self.pinged = Some(Instant::now());
        let mut ping = wire::connected_ping(clock);
        if fault == Fault::LongPingOfServer {
            ping.push(0);
        }
        self.send(0, ping);
    }
}
