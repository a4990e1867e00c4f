//! Generates captures of correct peers, and of peers with one fault.

use rakwire_conformance::wire::{self, Capsule, Split};
use rakwire_interop_runner::capture::{Capture, End, Fate, Record};
use rakwire_interop_runner::cases::Case;
use rakwire_interop_runner::path::{Kind, NARROW_MTU};
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) const PROTOCOL: u8 = 6;
const STEP: Duration = Duration::from_millis(1);
const COOKIE: u32 = 0x1234_5678;

/// A fault of a peer, which breaks exactly one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    Garbage,
    BytesBehindCapsules,
    OtherVersion,
    NoReply2,
    Refusal,
    NoMessage13,
    OtherCookie,
    Reply1RaisesMtu,
    Reply2RaisesMtu,
    TinyMtu,
    NumberTwice,
    ChangedResend,
    AckOfUnsent,
    PathWithoutFaults,
    WideMtu,
    MessageMissing,
    MessageTooShort,
    OtherKind,
    PartMissing,
    PartsDisagree,
    LongDatagram,
    NoResend,
    Lost,
    EchoMissing,
    EchoChanged,
    EchoTwice,
    EchoOfOtherKind,
    EchoesOutOfOrder,
    SequenceRepeated,
    NoAck,
    NoGoodbye,
    GoodbyeNotAcked,
    MessageAfterGoodbye,
    AckOfLost,
    NoPong,
    PongOfOtherTime,
    NoAdvertisement,
    LongAdvertisement,
    NoPause,
    ClosedInPause,
    SilentInPause,
    PingIgnored,
}

fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 19_132))
}

/// Builds a capture datagram by datagram.
pub(crate) struct Tape {
    case: Case,
    fault: Fault,
    now: Duration,
    capture: Capture,
    /// The next datagram number of each side.
    datagrams: [u32; 2],
    /// The next reliable message number of each side.
    reliable: [u32; 2],
    /// The next ordering or sequencing index of each side.
    indices: [u32; 2],
    splits: u16,
}

/// Returns the capture of a case between peers with a fault.
pub(crate) fn capture(case: Case, fault: Fault) -> Capture {
    let mut tape = Tape {
        case,
        fault,
        now: Duration::ZERO,
        capture: Capture::default(),
        datagrams: [0; 2],
        reliable: [0; 2],
        indices: [0; 2],
        splits: 0,
    };
    if case.is_offline() {
        tape.ping();
    } else {
        tape.handshake();
        if tape.exchange() {
            tape.goodbye();
        }
    }
    tape.capture
}

impl Tape {
    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// Adds a datagram that arrives.
    fn put(&mut self, from: End, bytes: Vec<u8>) -> usize {
        self.put_with(from, bytes, Fate::Passed)
    }

    fn put_with(&mut self, from: End, bytes: Vec<u8>, fate: Fate) -> usize {
        self.now += STEP;
        let soon = self.now + STEP / 2;
        let arrivals = match fate {
            Fate::Passed => vec![soon],
            Fate::Dropped => vec![],
            Fate::Held => vec![soon + 40 * STEP],
            Fate::Doubled => vec![soon, soon],
        };
        self.capture.records.push(Record { at: self.now, from, bytes, fate, arrivals });
        self.capture.records.len() - 1
    }

    /// Adds a datagram with capsules.
    fn data(&mut self, from: End, capsules: &[Capsule], fate: Fate) -> u32 {
        let number = self.datagrams[from as usize];
        let mut bytes = wire::data(0x84, number, capsules);
        if self.has(Fault::BytesBehindCapsules) && from == End::Server {
            bytes.extend([0, 0, 80, 1, 2, 3]);
        }
        // With this fault, the server uses its datagram number 0 twice.
        if !(self.has(Fault::NumberTwice) && number == 0 && from == End::Server) {
            self.datagrams[from as usize] += 1;
        }
        self.put_with(from, bytes, fate);
        number
    }

    fn ack(&mut self, from: End, number: u32) {
        let last = if self.has(Fault::AckOfUnsent) { number + 9 } else { number };
        self.put(from, wire::records(0xc0, &[(number, last)]));
    }

    /// Adds a datagram with capsules that arrives, and its acknowledgement.
    fn acked(&mut self, from: End, capsules: &[Capsule]) {
        let number = self.data(from, capsules, Fate::Passed);
        self.ack(from.other(), number);
    }

    fn number(&mut self, from: End) -> u32 {
        self.reliable[from as usize] += 1;
        self.reliable[from as usize] - 1
    }

    fn control(&mut self, from: End, payload: Vec<u8>) -> Capsule {
        let number = self.number(from);
        Capsule::reliable(number, payload)
    }

    fn mtu(&self) -> u16 {
        let is_narrow = self.case.path == Kind::Narrow && !self.has(Fault::WideMtu);
        if is_narrow { NARROW_MTU as u16 } else { 1_492 }
    }

    fn handshake(&mut self) {
        use End::{Client, Server};
        let mtu = self.mtu();
        let version = if self.has(Fault::OtherVersion) { 9 } else { PROTOCOL };
        if mtu != 1_492 {
            self.put_with(Client, wire::request_1(version, 1_464), Fate::Dropped);
        }
        self.put(Client, wire::request_1(version, usize::from(mtu) - 28));
        let more = |has: bool| if has { 8 } else { 0 };
        let offered = mtu + more(self.has(Fault::Reply1RaisesMtu));
        self.put(Server, wire::reply_1(1, Some(COOKIE), offered));
        let cookie = if self.has(Fault::OtherCookie) { 7 } else { COOKIE };
        self.put(Client, wire::request_2(Some(cookie), address(), mtu, 2));
        if self.has(Fault::Refusal) {
            self.put(Server, wire::refusal(0x14, 1));
        } else if !self.has(Fault::NoReply2) {
            let raised = mtu + more(self.has(Fault::Reply2RaisesMtu));
            // An MTU smaller than the headers of a datagram.
            let agreed = if self.has(Fault::TinyMtu) { 20 } else { raised };
            self.put(Server, wire::reply_2(1, address(), agreed));
        }
        let request = self.control(Client, wire::connection_request(2, 5, b""));
        self.acked(Client, &[request]);
        let accepted = self.control(Server, wire::accepted(address(), 10, 5, 6));
        self.acked(Server, &[accepted]);
        if !self.has(Fault::NoMessage13) {
            let incoming = self.control(Client, wire::new_incoming(address(), 10, 6, 7));
            self.acked(Client, &[incoming]);
        }
        if self.has(Fault::Garbage) {
            self.put(Server, b"hello".to_vec());
        }
    }

    /// Adds the messages of the case. Returns true if the connection is still open afterwards.
    fn exchange(&mut self) -> bool {
        let count = self.case.count - u32::from(self.has(Fault::MessageMissing));
        for number in 0..count {
            if number + 1 == self.case.count && self.case.pause > 0 {
                self.pause();
                if self.has(Fault::ClosedInPause) {
                    return false;
                }
            }
            self.message(End::Client, number);
            let skips = number == 0 && self.has(Fault::EchoMissing);
            if !skips {
                self.message(End::Server, number);
            }
            if number == 0 && self.has(Fault::EchoTwice) {
                self.message(End::Server, number);
            }
        }
        true
    }

    /// Adds a message and its acknowledgement. The path affects the first message of each side.
    fn message(&mut self, from: End, number: u32) {
        let pieces = self.pieces(from, number);
        let is_first = number == 0;
        let fate = match self.case.path {
            _ if !is_first || self.has(Fault::PathWithoutFaults) => Fate::Passed,
            Kind::Loss => Fate::Dropped,
            Kind::Reorder => Fate::Held,
            Kind::Duplicate => Fate::Doubled,
            Kind::Clean | Kind::Narrow => Fate::Passed,
        };
        let is_lost = from == End::Client && number == 0 && self.has(Fault::Lost);
        let fate = if is_lost { Fate::Dropped } else { fate };
        for mut piece in pieces {
            let datagram = self.data(from, std::slice::from_ref(&piece), fate);
            if fate == Fate::Dropped {
                if self.has(Fault::AckOfLost) {
                    self.ack(from.other(), datagram);
                }
                if self.has(Fault::NoResend) || is_lost {
                    continue;
                }
                if self.has(Fault::ChangedResend) {
                    piece.payload[7] ^= 1;
                }
                self.acked(from, &[piece]);
            } else if !(is_first && from == End::Client && self.has(Fault::NoAck)) {
                self.ack(from.other(), datagram);
            }
        }
    }

    /// Builds the capsules of a message.
    fn pieces(&mut self, from: End, number: u32) -> Vec<Capsule> {
        let is_echo = from == End::Server;
        let mut size = self.case.size;
        if !is_echo && number == 0 && self.has(Fault::MessageTooShort) {
            size -= 1;
        }
        let mut bytes = vec![0xfe];
        bytes.extend(number.to_be_bytes());
        bytes.extend((5..size).map(|at| (31 * number as usize + 7 * at + 13 * (at / 256)) as u8));
        if is_echo && self.has(Fault::EchoChanged) {
            bytes[size - 1] ^= 1;
        }
        let other = (self.has(Fault::OtherKind) && !is_echo) || (self.has(Fault::EchoOfOtherKind) && is_echo);
        let reliability = if other { 0 } else { self.case.wire };
        let index = self.index(from);
        let header = Capsule { reliability, ..Capsule::default() };
        let largest = usize::from(self.mtu()) - 28 - 9 - 23;
        let most = if self.has(Fault::LongDatagram) { largest + 40 } else { largest };
        if bytes.len() <= most {
            return vec![self.stamped(from, header, index, bytes)];
        }
        let chunks: Vec<Vec<u8>> = bytes.chunks(most).map(<[u8]>::to_vec).collect();
        self.splits += 1;
        let (id, count) = (self.splits, chunks.len() as u32);
        let mut parts = Vec::new();
        for (at, chunk) in chunks.into_iter().enumerate() {
            let count = if self.has(Fault::PartsDisagree) && at == 1 { count + 1 } else { count };
            let split = Some(Split { count, id, index: at as u32 });
            let part = self.stamped(from, Capsule { split, ..header.clone() }, index, chunk);
            if !(self.has(Fault::PartMissing) && at == 1) {
                parts.push(part);
            }
        }
        parts
    }

    /// Returns the ordering or sequencing index of the next message.
    fn index(&mut self, from: End) -> u32 {
        let place = &mut self.indices[from as usize];
        let index = *place;
        *place += 1;
        match (self.fault, from) {
            (Fault::EchoesOutOfOrder, End::Server) => 1_000 - index,
            (Fault::SequenceRepeated, End::Client) => 0,
            _ => index,
        }
    }

    /// Fills in the numbers that the header of a reliability contains.
    fn stamped(&mut self, from: End, header: Capsule, index: u32, payload: Vec<u8>) -> Capsule {
        let mut capsule = Capsule { payload, ..header };
        if capsule.is_reliable() {
            capsule.number = self.number(from);
        }
        if capsule.is_sequenced() {
            capsule.sequence = index;
        } else if capsule.has_order() {
            capsule.order = index;
        }
        capsule
    }

    /// Adds the pings of an idle connection.
    fn pause(&mut self) {
        let end = self.now + Duration::from_secs(self.case.pause);
        if self.has(Fault::NoPause) {
            return;
        }
        let mut time = 100;
        while self.now + Duration::from_secs(5) < end {
            self.now += Duration::from_secs(5);
            time += 1;
            for from in [End::Client, End::Server] {
                if self.has(Fault::SilentInPause) {
                    continue;
                }
                self.data(from, &[Capsule::unreliable(wire::connected_ping(time))], Fate::Passed);
                let pong = Capsule::unreliable(wire::connected_pong(time, time));
                if !self.has(Fault::PingIgnored) {
                    self.data(from.other(), &[pong], Fate::Passed);
                }
            }
        }
        self.now = end;
        if self.has(Fault::ClosedInPause) {
            let goodbye = self.control(End::Server, vec![0x15]);
            self.acked(End::Server, &[goodbye]);
        }
    }

    fn goodbye(&mut self) {
        if self.has(Fault::NoGoodbye) {
            return;
        }
        let goodbye = self.control(End::Client, vec![0x15]);
        let number = self.data(End::Client, &[goodbye], Fate::Passed);
        if !self.has(Fault::GoodbyeNotAcked) {
            self.ack(End::Server, number);
        }
        if self.has(Fault::MessageAfterGoodbye) {
            self.data(End::Server, &[Capsule::unreliable(wire::connected_ping(9))], Fate::Passed);
        }
    }

    fn ping(&mut self) {
        self.put(End::Client, wire::ping(0x01, 77, 2));
        let time = if self.has(Fault::PongOfOtherTime) { 78 } else { 77 };
        let len = match self.fault {
            Fault::NoAdvertisement => 0,
            Fault::LongAdvertisement => 400,
            _ => 399,
        };
        if !self.has(Fault::NoPong) {
            self.put(End::Server, wire::pong(time, 1, &vec![b'x'; len]));
        }
    }
}
