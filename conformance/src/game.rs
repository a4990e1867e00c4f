//! A client connection of the Game Protocol, written only from docs/game-protocol.md.

use crate::case::Context;
use crate::check::{Check, ensure, fail};
use crate::link::Link;
use crate::packet::{ACK, END, FIN, Packet, REL, cut};
use std::time::{Duration, Instant};

/// A received packet.
#[derive(Clone, Debug)]
pub struct Came {
    /// The time at which the packet was received.
    pub at: Instant,
    /// The bytes of the datagram.
    pub bytes: Vec<u8>,
    /// The decoded packet.
    pub packet: Packet,
}

/// A connection of the suite to a server of the Game Protocol.
#[derive(Debug)]
pub struct GameSession {
    /// The socket of the connection.
    pub link: Link,
    /// The seasoning: the salt XOR the server's pepper, which the client sends to open the connection.
    pub seasoning: [u8; 4],
    /// The sequence number of the next payload.
    pub sequence: u16,
    /// True if reliable payloads of the server are acknowledged.
    pub acknowledges: bool,
    /// The received acknowledgements.
    pub acks: Vec<Came>,
    /// The other received packets.
    pub packets: Vec<Came>,
}

/// The salt that the suite sends. It cannot be mistaken for a packet header.
pub const SALT: [u8; 4] = [0x5a, 0x01, 0x02, 0x03];

/// Sends a salt and returns the server's pepper.
pub fn pepper(link: &mut Link, salt: [u8; 4]) -> Check<Vec<u8>> {
    link.send(&salt)?;
    match link.receive(Instant::now() + link.timing.answer)? {
        Some(bytes) => Ok(bytes),
        None => fail("the server did not answer a salt"),
    }
}

/// Computes the seasoning of a salt and its pepper.
pub fn seasoning(salt: [u8; 4], pepper: &[u8]) -> Check<[u8; 4]> {
    match <[u8; 4]>::try_from(pepper) {
        Ok(pepper) => Ok(std::array::from_fn(|at| salt[at] ^ pepper[at])),
        Err(_) => fail(format!("the pepper has {} bytes", pepper.len())),
    }
}

impl Context {
    /// Opens a connection of the Game Protocol.
    pub fn open_game(&mut self) -> Check<GameSession> {
        let mut link = self.link()?;
        let pepper = pepper(&mut link, SALT)?;
        let seasoning = seasoning(SALT, &pepper)?;
        link.send(&seasoning)?;
        Ok(GameSession {
            link,
            seasoning,
            sequence: 0,
            acknowledges: true,
            acks: Vec::new(),
            packets: Vec::new(),
        })
    }
}

impl GameSession {
    /// Sends a payload and returns its sequence number.
    pub fn send(&mut self, reliable: bool, payload: &[u8]) -> Check<u16> {
        let sequence = self.take_sequence();
        for packet in cut(reliable, sequence, payload) {
            self.link.send(&packet.bytes())?;
        }
        Ok(sequence)
    }

    /// Closes the connection with these flags, and acknowledges nothing from then on.
    ///
    /// A server would interpret the four bytes of an acknowledgement from an address without a connection as a salt.
    pub fn end(&mut self, flags: u8) -> Check {
        self.acknowledges = false;
        self.link.send(&[flags, 0, 0, 0])
    }

    /// Opens another connection from the same port after [`end`](Self::end).
    pub fn reopen(&mut self) -> Check {
        let pepper = pepper(&mut self.link, SALT)?;
        self.seasoning = seasoning(SALT, &pepper)?;
        self.link.send(&self.seasoning)?;
        self.sequence = 0;
        self.acks.clear();
        self.packets.clear();
        self.acknowledges = true;
        Ok(())
    }

    /// Returns the next sequence number and increments it.
    pub fn take_sequence(&mut self) -> u16 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence.wrapping_sub(1)
    }

    /// Handles received datagrams until `done` or until `time` has passed. Returns true if done.
    pub fn wait(&mut self, time: Duration, done: impl Fn(&Self) -> bool) -> Check<bool> {
        let deadline = Instant::now() + time;
        loop {
            if done(self) {
                return Ok(true);
            }
            match self.link.receive(deadline)? {
                Some(bytes) => self.take(bytes)?,
                None => return Ok(false),
            }
        }
    }

    /// Handles received datagrams for `time`.
    pub fn pass(&mut self, time: Duration) -> Check {
        self.wait(time, |_| false).map(|_| ())
    }

    /// Handles received datagrams for `timing.quiet`, after which no answer is expected.
    pub fn quiet(&mut self) -> Check {
        self.pass(self.link.timing.quiet)
    }

    fn take(&mut self, bytes: Vec<u8>) -> Check {
        let Some(packet) = Packet::read(&bytes) else {
            return Ok(());
        };
        if packet.flags & (REL | ACK | END) == REL && self.acknowledges {
            self.link.send(&Packet::new(ACK | FIN, packet.chunk, packet.sequence, &[]).bytes())?;
        }
        let is_ack = packet.flags & (ACK | END) == ACK;
        let came = Came { at: Instant::now(), bytes, packet };
        if is_ack {
            self.acks.push(came);
        } else {
            self.packets.push(came);
        }
        Ok(())
    }

    /// Returns the number of received acknowledgements of a chunk.
    #[must_use]
    pub fn acks_of(&self, chunk: u8, sequence: u16) -> usize {
        let names = |came: &&Came| came.packet.chunk == chunk && came.packet.sequence == sequence;
        self.acks.iter().filter(names).count()
    }

    /// Fails unless the server acknowledges a chunk within the time limit of an answer.
    pub fn expect_ack(&mut self, chunk: u8, sequence: u16, what: &str) -> Check {
        let answer = self.link.timing.answer;
        let came = self.wait(answer, |session| session.acks_of(chunk, sequence) > 0)?;
        ensure(came, || format!("the server did not acknowledge {what}"))
    }

    /// Fails unless the server still acknowledges payloads.
    pub fn still_answers(&mut self, after: &str) -> Check {
        for _ in 0..3 {
            let sequence = self.send(true, b"still there")?;
            let answer = self.link.timing.answer / 2;
            if self.wait(answer, |session| session.acks_of(0, sequence) > 0)? {
                return Ok(());
            }
        }
        fail(format!("the server acknowledged no packet after {after}"))
    }

    /// Returns the completely received payloads, each once, in the order of completion.
    #[must_use]
    pub fn payloads(&self) -> Vec<Vec<u8>> {
        let mut seen: Vec<u16> = Vec::new();
        for came in &self.packets {
            if came.packet.flags & END == 0 && !seen.contains(&came.packet.sequence) {
                seen.push(came.packet.sequence);
            }
        }
        seen.into_iter().filter_map(|sequence| self.payload(sequence)).collect()
    }

    fn payload(&self, sequence: u16) -> Option<Vec<u8>> {
        let of = |chunk: u8| {
            let names = |came: &&Came| came.packet.chunk == chunk && came.packet.sequence == sequence;
            self.packets.iter().find(names).map(|came| &came.packet)
        };
        let mut out = Vec::new();
        for chunk in 0..=u8::MAX {
            let packet = of(chunk)?;
            out.extend(&packet.body);
            if packet.flags & FIN != 0 {
                return Some(out);
            }
        }
        None
    }

    /// Returns the number of received copies of a payload.
    #[must_use]
    pub fn came(&self, payload: &[u8]) -> usize {
        self.payloads().iter().filter(|other| other[..] == *payload).count()
    }

    /// Fails unless a payload is echoed in time.
    pub fn expect(&mut self, payload: &[u8], what: &str) -> Check {
        let time = self.link.timing.answer * 4;
        let back = self.wait(time, |session| session.came(payload) > 0)?;
        ensure(back, || format!("the server did not echo {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Timing;
    use crate::link::Trace;
    use std::net::UdpSocket;

    #[test]
    fn a_closed_session_does_not_acknowledge_a_late_packet() {
        let server = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let timing = Timing::with_answer(Duration::from_millis(400));
        let target = server.local_addr().expect("the address of a socket");
        let link = Link::new(target, timing, Trace::default(), 0).expect("a socket");
        let client = link.local().expect("the address of a socket");
        let mut session = GameSession {
            link,
            seasoning: SALT,
            sequence: 0,
            acknowledges: true,
            acks: Vec::new(),
            packets: Vec::new(),
        };
        session.end(END | FIN).expect("a datagram that is sent");
        server
            .send_to(&Packet::new(REL | FIN, 0, 0, b"late").bytes(), client)
            .expect("a datagram that is sent");
        session.quiet().expect("a socket that works");
        let mut buffer = [0; 64];
        assert_eq!(server.recv(&mut buffer).expect("the disconnect"), 4);
        assert_eq!(buffer[..4], [END | FIN, 0, 0, 0]);
        server.set_nonblocking(true).expect("a socket");
        assert!(server.recv(&mut buffer).is_err());
        assert_eq!(session.packets.len(), 1);
    }
}
