//! A UDP socket that records every sent and received datagram.

use crate::check::{Check, Timing, fail};
use crate::secure::Seal;
use crate::wire::{self, id};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A datagram that was sent or received.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The time since the case began.
    pub at: Duration,
    /// The number of the socket in the case, from 1.
    pub socket: usize,
    /// True if the suite sent the datagram, false if it received it.
    pub sent: bool,
    /// The bytes of the datagram.
    pub bytes: Vec<u8>,
}

/// The recorded datagrams of a case.
#[derive(Clone, Debug)]
pub struct Trace {
    began: Instant,
    entries: Rc<RefCell<Vec<Entry>>>,
}

impl Default for Trace {
    fn default() -> Self {
        Self { began: Instant::now(), entries: Rc::default() }
    }
}

impl Trace {
    /// The number of datagrams that a dump shows from the start of the trace. It shows the same number from the end.
    const SHOWN: usize = 40;

    /// Returns the time since the case began.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the datagrams.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        self.entries.borrow().clone()
    }

    fn push(&self, socket: usize, sent: bool, bytes: &[u8]) {
        let entry = Entry { at: self.elapsed(), socket, sent, bytes: bytes.to_vec() };
        self.entries.borrow_mut().push(entry);
    }

    /// Formats the datagrams with times, directions and offsets.
    #[must_use]
    pub fn dump(&self) -> String {
        let entries = self.entries.borrow();
        let mut out = String::new();
        for (index, entry) in entries.iter().enumerate() {
            if index >= Self::SHOWN && index + Self::SHOWN < entries.len() {
                if index == Self::SHOWN {
                    let left_out = entries.len() - 2 * Self::SHOWN;
                    let _ = writeln!(out, "  ... {left_out} datagrams ...");
                }
                continue;
            }
            let direction = if entry.sent { "suite -> peer" } else { "suite <- peer" };
            let (time, len) = (entry.at.as_secs_f64(), entry.bytes.len());
            let _ = writeln!(out, "  {time:9.4} s  socket {}  {direction}  {len} bytes", entry.socket);
            hex_dump(&entry.bytes, &mut out);
        }
        out
    }
}

/// Appends lines of sixteen bytes with their offsets. Of equal consecutive lines only the first is shown, as in
/// `hexdump`.
fn hex_dump(bytes: &[u8], out: &mut String) {
    let mut before: Option<&[u8]> = None;
    let mut starred = false;
    for (row, line) in bytes.chunks(16).enumerate() {
        if before == Some(line) {
            if !starred {
                out.push_str("      *\n");
            }
            starred = true;
            continue;
        }
        (before, starred) = (Some(line), false);
        let _ = write!(out, "      {:04x} ", row * 16);
        for byte in line {
            let _ = write!(out, " {byte:02x}");
        }
        out.push('\n');
    }
}

/// Opens a socket on a port that this process has not used before. A server may still have a connection with a port
/// that was used.
fn fresh_socket(any: &str) -> io::Result<UdpSocket> {
    static USED: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut refused = Vec::new();
    loop {
        let socket = UdpSocket::bind(any)?;
        let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
        // After 300 attempts, probably all ports were used; accept a used one.
        if used.insert(socket.local_addr()?.port()) || refused.len() > 300 {
            return Ok(socket);
        }
        refused.push(socket);
    }
}

/// A socket that exchanges datagrams with one peer.
#[derive(Debug)]
pub struct Link {
    socket: UdpSocket,
    /// The address of the peer.
    pub target: SocketAddr,
    /// The time limits.
    pub timing: Timing,
    trace: Trace,
    number: usize,
    /// The number of bytes sent.
    pub sent: usize,
    /// The number of bytes received.
    pub received: usize,
    /// The keys of a secure connection. If set, datagrams of the connection are encrypted and decrypted.
    pub seal: Option<Seal>,
    /// The counters (nonces) of the decrypted datagrams.
    pub counters: Vec<u64>,
}

impl Link {
    /// Opens a socket for one peer.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system has no socket or no route.
    pub fn new(target: SocketAddr, timing: Timing, trace: Trace, number: usize) -> io::Result<Self> {
        let any = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = fresh_socket(any)?;
        socket.connect(target)?;
        Ok(Self::of(socket, target, timing, trace, number))
    }

    fn of(socket: UdpSocket, target: SocketAddr, timing: Timing, trace: Trace, number: usize) -> Self {
        let counters = Vec::new();
        Self { socket, target, timing, trace, number, sent: 0, received: 0, seal: None, counters }
    }

    /// Waits on a bound socket for a datagram that `begins` accepts. The link then receives only datagrams from its
    /// sender.
    ///
    /// Returns `None` if none arrives before `deadline`.
    pub fn accept(
        socket: UdpSocket,
        timing: Timing,
        trace: Trace,
        number: usize,
        deadline: Instant,
        begins: impl Fn(&[u8]) -> bool,
    ) -> Check<Option<(Self, Vec<u8>)>> {
        let mut buffer = [0; 65_536];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            socket.set_read_timeout(Some(left))?;
            let Ok((len, target)) = socket.recv_from(&mut buffer) else {
                continue;
            };
            if !begins(&buffer[..len]) {
                continue;
            }
            socket.connect(target)?;
            trace.push(number, false, &buffer[..len]);
            let mut link = Self::of(socket, target, timing, trace, number);
            link.received = len;
            return Ok(Some((link, buffer[..len].to_vec())));
        }
    }

    /// Returns the local address of this socket.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system does not return it.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends a datagram, encrypted if it belongs to a secure connection.
    pub fn send(&mut self, bytes: &[u8]) -> Check {
        match self.seal.as_mut().filter(|_| bytes.first().is_some_and(|first| first & 0x80 != 0)) {
            Some(seal) => {
                let sealed = seal.seal(bytes);
                self.send_as_it_is(&sealed)
            }
            None => self.send_as_it_is(bytes),
        }
    }

    /// Sends bytes unencrypted. A closed port of the peer is not an error.
    pub fn send_as_it_is(&mut self, bytes: &[u8]) -> Check {
        self.trace.push(self.number, true, bytes);
        self.sent += bytes.len();
        match self.socket.send(bytes) {
            Err(error) if error.kind() != ErrorKind::ConnectionRefused => Err(error.into()),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Waits for a datagram until `deadline`. Returns `None` if none arrives.
    pub fn receive(&mut self, deadline: Instant) -> Check<Option<Vec<u8>>> {
        let mut buffer = [0; 65_536];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.socket.set_read_timeout(Some(left))?;
            match self.socket.recv(&mut buffer) {
                Ok(len) => {
                    let bytes = buffer[..len].to_vec();
                    self.trace.push(self.number, false, &bytes);
                    self.received += len;
                    if let Some(bytes) = self.opened(bytes) {
                        return Ok(Some(bytes));
                    }
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    // The peer's port is currently closed. It may open later.
                    ErrorKind::ConnectionRefused => std::thread::sleep(Duration::from_millis(1)),
                    _ => return Err(error.into()),
                },
            }
        }
    }

    /// Returns a datagram, decrypted if the connection is secure. Returns `None` if it cannot be decrypted.
    fn opened(&mut self, bytes: Vec<u8>) -> Option<Vec<u8>> {
        match self.seal.as_mut().filter(|_| bytes.first().is_some_and(|first| first & 0x80 != 0)) {
            Some(seal) => {
                let (counter, plain) = seal.open(&bytes)?;
                self.counters.push(counter);
                Some(plain)
            }
            None => Some(bytes),
        }
    }

    /// Waits for an offline message with one of these ids, within the time limit of an answer.
    pub fn offline(&mut self, ids: &[u8]) -> Check<Option<Vec<u8>>> {
        let deadline = Instant::now() + self.timing.answer;
        while let Some(bytes) = self.receive(deadline)? {
            if bytes.first().is_some_and(|id| ids.contains(id)) {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// Returns the datagrams that arrive within the quiet time, in which none should.
    pub fn during_quiet(&mut self) -> Check<Vec<Vec<u8>>> {
        let deadline = Instant::now() + self.timing.quiet;
        let mut all = Vec::new();
        while let Some(bytes) = self.receive(deadline)? {
            all.push(bytes);
        }
        Ok(all)
    }

    /// Fails if a datagram arrives within the quiet time.
    pub fn silence(&mut self, after: &str) -> Check {
        match self.during_quiet()?.first().map(|bytes| bytes.first()) {
            None => Ok(()),
            Some(None) => fail(format!("the peer answered {after} with an empty datagram")),
            Some(Some(first)) => {
                fail(format!("the peer answered {after} with a datagram that begins with {first:02x}"))
            }
        }
    }

    /// Sends a datagram and waits for an offline message with one of these ids. Sends it once more if none arrives,
    /// because datagrams may be lost.
    pub fn ask(&mut self, bytes: &[u8], ids: &[u8]) -> Check<Option<Vec<u8>>> {
        for _ in 0..2 {
            self.send(bytes)?;
            if let Some(answer) = self.offline(ids)? {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    /// Fails unless the peer still answers an unconnected ping.
    pub fn still_answers(&mut self, after: &str) -> Check {
        let time = 0x7e57_0000_0000 | self.sent as u64;
        let ping = wire::ping(id::PING, time, 0x7e57);
        match self.ask(&ping, &[id::PONG])? {
            Some(_) => Ok(()),
            None => fail(format!("the peer did not answer an unconnected ping (01) after {after}")),
        }
    }
}
