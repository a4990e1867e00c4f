//! A connection of the suite, usually as the client. The handshake runs step by step, and the case controls all
//! sequence numbers.

use crate::case::Context;
use crate::check::{Check, ensure, fail, skip};
use crate::link::Link;
use crate::wire::{self, Capsule, Datagram, Reply1, Reply2, U24, id};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A received capsule.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The number of the datagram that contained the capsule.
    pub datagram: u32,
    /// The time at which the capsule was received.
    pub at: Instant,
    /// The decoded capsule.
    pub capsule: Capsule,
}

/// A RakNet connection of the suite with the tested peer.
#[derive(Debug)]
pub struct Session {
    /// The socket of the connection.
    pub link: Link,
    /// The GUID of this client.
    pub guid: u64,
    /// The reply 1 of the server.
    pub reply_1: Reply1,
    /// The reply 2 of the server.
    pub reply_2: Reply2,
    /// The number of the next datagram.
    pub number: u32,
    /// The number of the next reliable message.
    pub reliable: u32,
    /// The number of addresses that connection request accepted (10) has in this protocol version.
    pub addresses: usize,
    /// True if datagrams from the peer are acknowledged.
    pub acknowledges: bool,
    /// True if pings from the peer are answered.
    pub answers_pings: bool,
    /// The ranges of datagram numbers in all received acknowledgements.
    pub acked: Vec<(u32, u32)>,
    /// The ranges of datagram numbers in all received negative acknowledgements.
    pub missing: Vec<(u32, u32)>,
    /// The received acknowledgements with their times.
    pub receipts: Vec<(Instant, Vec<u8>)>,
    /// The received capsules.
    pub arrivals: Vec<Arrival>,
    /// The numbers, times and lengths of the received datagrams.
    pub datagrams: Vec<(u32, Instant, usize)>,
    /// The number of received datagrams with an invalid capsule, and of malformed acknowledgements.
    pub broken: usize,
}

/// Returns a GUID that no other client has.
#[must_use]
pub fn new_guid() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    (now ^ u64::from(std::process::id()).rotate_left(40) ^ count << 50).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Sends a request 1 of `len` bytes and returns the reply 1.
pub fn reply_1(link: &mut Link, version: u8, len: usize) -> Check<(Vec<u8>, Reply1)> {
    let Some(bytes) = link.ask(&wire::request_1(version, len), &[id::REPLY_1, id::INCOMPATIBLE])? else {
        return fail("the server did not answer request 1 (05)");
    };
    match wire::read_reply_1(&bytes) {
        Some(reply) => Ok((bytes, reply)),
        None if bytes[0] == id::INCOMPATIBLE => {
            let version = bytes.get(1).copied().unwrap_or_default();
            fail(format!("the server requires the protocol version {version}: pass --protocol {version}"))
        }
        None => fail("the suite cannot parse reply 1 (06)"),
    }
}

/// Waits until the server answers request 1 again. RakNet temporarily bans an address if its first message is not a
/// connection request (09).
pub fn recover(context: &mut Context) -> Check {
    let deadline = Instant::now() + context.timing.lifetime;
    let mut link = context.link()?;
    while Instant::now() < deadline && reply_1(&mut link, context.options.version, 1464).is_err() {}
    Ok(())
}

/// Builds a request 2 for a reply 1.
#[must_use]
pub fn request_2(link: &Link, reply: Reply1, mtu: u16, guid: u64) -> Vec<u8> {
    wire::request_2(reply.cookie, link.target, mtu, guid)
}

/// Sends request 2. Returns reply 2, or the message that the server sends instead.
///
/// `reply` is updated, because under load a server may send another reply 1 that requires a cookie.
pub fn answer_to_request_2(link: &mut Link, reply: &mut Reply1, mtu: u16, guid: u64) -> Check<Vec<u8>> {
    let server = link.target;
    answer_to_request_2_for(link, reply, server, mtu, guid)
}

/// Like [`answer_to_request_2`], with another server address in request 2.
pub fn answer_to_request_2_for(
    link: &mut Link,
    reply: &mut Reply1,
    server: SocketAddr,
    mtu: u16,
    guid: u64,
) -> Check<Vec<u8>> {
    if reply.key {
        return skip("the server requires its secure mode");
    }
    let refusals = [id::ALREADY_CONNECTED, id::NO_FREE_CONNECTIONS, id::RECENTLY_CONNECTED, 0x17];
    let answers = [&[id::REPLY_1, id::REPLY_2][..], &refusals].concat();
    for _ in 0..2 {
        match link.ask(&wire::request_2(reply.cookie, server, mtu, guid), &answers)? {
            Some(bytes) if bytes[0] == id::REPLY_1 => *reply = wire::read_reply_1(&bytes).unwrap_or(*reply),
            Some(bytes) => return Ok(bytes),
            None => break,
        }
    }
    fail("the server did not answer request 2 (07)")
}

/// Returns the time of this client's clock in milliseconds, modulo 2³².
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64 & 0xffff_ffff)
}

impl Context {
    /// Runs the handshake up to reply 2.
    pub fn dial(&mut self) -> Check<Session> {
        self.dial_with(wire::LARGEST_MTU, new_guid())
    }

    /// Runs the handshake up to reply 2 with this MTU and GUID.
    pub fn dial_with(&mut self, mtu: u16, guid: u64) -> Check<Session> {
        if self.options.listening.is_some() {
            return self.accept()?.reserve(mtu);
        }
        let mut link = self.link()?;
        let len = usize::from(mtu) - wire::UDP_OVERHEAD;
        let (_, mut first) = reply_1(&mut link, self.options.version, len)?;
        let mtu = first.mtu;
        let answer = answer_to_request_2(&mut link, &mut first, mtu, guid)?;
        let Some(second) = wire::read_reply_2(&answer) else {
            return fail(format!("the server refused request 2 (07) with message id {:02x}", answer[0]));
        };
        Ok(Session::new(link, guid, first, second))
    }

    /// Opens a connection, in either role.
    pub fn open(&mut self) -> Check<Session> {
        let mut session = self.dial()?;
        if self.options.listening.is_some() {
            session.open_as_server()?;
        } else {
            session.open(&self.password())?;
        }
        Ok(session)
    }

    /// Opens a connection, and waits until the messages after its handshake have arrived.
    pub fn open_and_settle(&mut self) -> Check<Session> {
        let mut session = self.open()?;
        session.pass(self.timing.quiet)?;
        Ok(session)
    }
}

impl Session {
    pub(crate) fn new(link: Link, guid: u64, reply_1: Reply1, reply_2: Reply2) -> Self {
        Self {
            link,
            guid,
            reply_1,
            reply_2,
            number: 0,
            reliable: 0,
            addresses: 10,
            acknowledges: true,
            answers_pings: true,
            acked: Vec::new(),
            missing: Vec::new(),
            receipts: Vec::new(),
            arrivals: Vec::new(),
            datagrams: Vec::new(),
            broken: 0,
        }
    }

    /// Sends capsules in the next datagram. Returns its datagram number.
    pub fn send(&mut self, capsules: &[Capsule]) -> Check<u32> {
        let number = self.number;
        self.send_as(number, capsules)?;
        self.number = (number + 1) % U24;
        Ok(number)
    }

    /// Sends capsules in a datagram with this number.
    pub fn send_as(&mut self, number: u32, capsules: &[Capsule]) -> Check {
        self.link.send(&wire::data(0x84, number, capsules))
    }

    /// Returns the next reliable message number and increments it.
    pub fn next_reliable(&mut self) -> u32 {
        self.reliable = (self.reliable + 1) % U24;
        (self.reliable + U24 - 1) % U24
    }

    /// Sends a reliable message.
    pub fn send_reliable(&mut self, payload: Vec<u8>) -> Check<u32> {
        let number = self.next_reliable();
        self.send(&[Capsule::reliable(number, payload)])
    }

    /// Sends a reliable message. Fails unless it is acknowledged within the time limit of an answer.
    pub fn send_surely(&mut self, payload: Vec<u8>) -> Check {
        let number = self.send_reliable(payload)?;
        ensure(self.wait_ack(number)?, || format!("the peer did not acknowledge datagram {number}"))
    }

    /// Sends a connection request (09), waits for connection request accepted (10), and sends new incoming connection
    /// (13).
    pub fn open(&mut self, password: &[u8]) -> Check {
        let accepted = self.request(password)?;
        let server = self.link.target;
        let addresses = accepted.addresses.max(10);
        self.send_13(server, addresses, accepted.time)
    }

    /// Sends new incoming connection (13).
    pub fn send_13(&mut self, server: SocketAddr, addresses: usize, accepted: u64) -> Check {
        let number = self.next_reliable();
        let payload = wire::new_incoming(server, addresses, accepted, now());
        let datagram = self.send(&[Capsule::ordered(number, 0, 0, payload)])?;
        ensure(self.wait_ack(datagram)?, || {
            "the server did not acknowledge new incoming connection (13)".into()
        })
    }

    /// Sends a connection request (09), and waits for connection request accepted (10).
    pub fn request(&mut self, password: &[u8]) -> Check<wire::Accepted> {
        let request = wire::connection_request(self.guid, now(), password);
        self.send_reliable(request)?;
        let answer = self.link.timing.answer;
        let found = self.wait(answer, |session| session.first(id::ACCEPTED).is_some())?;
        let Some(accepted) = self.first(id::ACCEPTED).filter(|_| found) else {
            return fail("the server did not send connection request accepted (10)");
        };
        match wire::read_accepted(&accepted.capsule.payload) {
            Some(accepted) => Ok(accepted),
            None => fail("the suite cannot parse connection request accepted (10)"),
        }
    }

    /// Returns the first received unsplit message with this id.
    #[must_use]
    pub fn first(&self, id: u8) -> Option<&Arrival> {
        self.with_id(id).next()
    }

    /// Returns the received unsplit messages with this id.
    pub fn with_id(&self, id: u8) -> impl Iterator<Item = &Arrival> {
        let whole = |arrival: &&Arrival| arrival.capsule.split.is_none();
        self.arrivals.iter().filter(whole).filter(move |arrival| arrival.capsule.payload.first() == Some(&id))
    }

    /// Returns true if the peer has acknowledged datagram `number`.
    #[must_use]
    pub fn is_acked(&self, number: u32) -> bool {
        self.acked.iter().any(|&(first, last)| (first..=last).contains(&number))
    }

    /// Returns true if the peer has reported datagram `number` as missing.
    #[must_use]
    pub fn is_missing(&self, number: u32) -> bool {
        self.missing.iter().any(|&(first, last)| (first..=last).contains(&number))
    }

    /// Waits for the acknowledgement of datagram `number`. Returns false if none arrives within the time limit of an
    /// answer.
    pub fn wait_ack(&mut self, number: u32) -> Check<bool> {
        let answer = self.link.timing.answer;
        self.wait(answer, |session| session.is_acked(number))
    }

    /// Handles received datagrams until `done` or until `time` has passed. Returns true if done.
    pub fn wait(&mut self, time: Duration, done: impl Fn(&Self) -> bool) -> Check<bool> {
        let deadline = Instant::now() + time;
        loop {
            if done(self) {
                return Ok(true);
            }
            match self.link.receive(deadline)? {
                Some(bytes) => self.take(&bytes)?,
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

    fn take(&mut self, bytes: &[u8]) -> Check {
        let at = Instant::now();
        match Datagram::read(bytes) {
            Some(Datagram::Ack(records)) => {
                self.acked.extend(records);
                self.receipts.push((at, bytes.to_vec()));
            }
            Some(Datagram::Nak(records)) => self.missing.extend(records),
            Some(Datagram::Data { number, capsules, clean }) => {
                self.datagrams.push((number, at, bytes.len()));
                self.broken += usize::from(!clean);
                if self.acknowledges {
                    self.link.send(&wire::records(0xc0, &[(number, number)]))?;
                }
                for capsule in capsules {
                    self.answer_ping(&capsule)?;
                    self.arrivals.push(Arrival { datagram: number, at, capsule });
                }
            }
            None => self.broken += usize::from(bytes.first().is_some_and(|first| first & 0x80 != 0)),
        }
        Ok(())
    }

    fn answer_ping(&mut self, capsule: &Capsule) -> Check {
        let time = capsule.payload.get(1..9).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        let is_ping = capsule.payload.len() == 9 && capsule.payload[0] == id::CONNECTED_PING;
        if let Some(time) = time.filter(|_| is_ping && self.answers_pings) {
            self.send(&[Capsule::unreliable(wire::connected_pong(time, now()))])?;
        }
        Ok(())
    }

    /// Returns the number of received pongs for a ping with this time.
    #[must_use]
    pub fn pongs(&self, time: u64) -> usize {
        let time = time.to_be_bytes();
        self.with_id(id::CONNECTED_PONG)
            .filter(|pong| pong.capsule.payload.get(1..9) == Some(&time[..]))
            .count()
    }

    /// Fails unless a pong for a ping with this time arrives within the time limit of an answer.
    pub fn expect_pong(&mut self, time: u64, what: &str) -> Check {
        let answer = self.link.timing.answer;
        let came = self.wait(answer, |session| session.pongs(time) > 0)?;
        ensure(came, || format!("the peer did not answer the connected ping (00) in {what}"))
    }

    /// Fails if a pong for a ping with this time has arrived, or arrives within the quiet time.
    pub fn expect_no_pong(&mut self, time: u64, what: &str) -> Check {
        self.quiet()?;
        ensure(self.pongs(time) == 0, || format!("the peer answered the connected ping (00) in {what}"))
    }

    /// Fails unless the peer still answers a connected ping.
    pub fn still_answers(&mut self, after: &str) -> Check {
        let time = 0xa11e_0000_0000 | u64::from(self.number);
        for _ in 0..3 {
            self.send(&[Capsule::unreliable(wire::connected_ping(time))])?;
            let answer = self.link.timing.answer / 2;
            if self.wait(answer, |session| session.pongs(time) > 0)? {
                return Ok(());
            }
        }
        fail(format!("the peer did not answer a connected ping (00) after {after}"))
    }
}
