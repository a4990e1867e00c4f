//! What stands between a peer and its socket: sees every datagram, and may drop it. A capture is such a hook.

use core::fmt;
use core::net::SocketAddr;

use super::peer::Peer;
use super::wire::{HEADER, Header, Position};
use crate::machine::{Machine, Transmit};
use crate::raknet::{LogDirection, LogSink, PacketLogger, Verdict};
use crate::time::Instant;

/// Something that watches the datagrams of a peer. Every method may be left out.
///
/// ```
/// use core::net::SocketAddr;
/// use rakwire::Instant;
/// use rakwire::game_protocol::{Hook, Verdict};
///
/// /// Lets nobody in from one address.
/// struct Ban(SocketAddr);
///
/// impl Hook for Ban {
///     fn on_received(&mut self, _now: Instant, from: SocketAddr, _datagram: &[u8]) -> Verdict {
///         if from.ip() == self.0.ip() { Verdict::Drop } else { Verdict::Pass }
///     }
/// }
/// ```
pub trait Hook {
    /// A datagram arrived. Dropped, the peer never sees it.
    fn on_received(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Verdict {
        let _ = (now, from, datagram);
        Verdict::Pass
    }

    /// A datagram is about to be sent. Dropped, it counts as lost on the way.
    fn on_transmit(&mut self, now: Instant, to: SocketAddr, datagram: &[u8]) -> Verdict {
        let _ = (now, to, datagram);
        Verdict::Pass
    }
}

/// Writes every datagram down and drops none.
impl<S: LogSink> Hook for PacketLogger<S> {
    fn on_received(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Verdict {
        self.0.record(now, LogDirection::In, from, datagram);
        Verdict::Pass
    }

    fn on_transmit(&mut self, now: Instant, to: SocketAddr, datagram: &[u8]) -> Verdict {
        self.0.record(now, LogDirection::Out, to, datagram);
        Verdict::Pass
    }
}

/// A peer whose datagrams pass a hook.
///
/// ```
/// use rakwire::Instant;
/// use rakwire::game_protocol::{Config, Hooked, PacketLogger, PcapWriter, Peer, Resources};
///
/// let mut file = Vec::new();
/// let capture = PcapWriter::new("127.0.0.1:50000".parse()?, |bytes: &[u8]| file.extend_from_slice(bytes));
/// let mut resources = Resources::<1, 32, 128>::new();
/// let peer = Peer::new(&mut resources, Config::new([7; 32]));
/// let mut hooked = Hooked::new(peer, PacketLogger(capture));
/// hooked.peer.connect(Instant::ZERO, "127.0.0.1:8999".parse()?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Hooked<'a, H> {
    /// The peer. Its datagrams pass the hook if they are taken from and given to the [`Machine`] that this is.
    pub peer: Peer<'a>,
    /// The hook.
    pub hook: H,
}

impl<'a, H: Hook> Hooked<'a, H> {
    /// Lets a hook watch a peer.
    #[must_use]
    pub const fn new(peer: Peer<'a>, hook: H) -> Self {
        Self { peer, hook }
    }
}

impl<H: Hook> Machine for Hooked<'_, H> {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        if self.hook.on_received(now, from, datagram) == Verdict::Pass {
            self.peer.handle_datagram(now, from, datagram);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.peer.handle_timeout(now);
    }

    fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
        let (to, length) = loop {
            let transmit = self.peer.poll_transmit(now, buffer)?;
            if self.hook.on_transmit(now, transmit.to, transmit.payload) == Verdict::Pass {
                break (transmit.to, transmit.payload.len());
            }
        };
        Some(Transmit { to, payload: buffer.get(..length)? })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.peer.poll_timeout()
    }
}

/// A sink that writes a line for each datagram to a formatter's target: time, direction, address, length and what it
/// is.
///
/// ```
/// use rakwire::Instant;
/// use rakwire::game_protocol::{LineWriter, LogDirection, LogSink};
///
/// let mut log = LineWriter(String::new());
/// let at = Instant::from_micros(1_500_000);
/// log.record(at, LogDirection::Out, "127.0.0.1:9".parse()?, &[0x05, 0, 0, 7, 1, 2]);
/// assert_eq!(log.0, "1.500000 out 127.0.0.1:9 6 bytes, reliable chunk 0 of sequence 7, the last\n");
/// # Ok::<(), core::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct LineWriter<W>(pub W);

impl<W: fmt::Write> LogSink for LineWriter<W> {
    fn record(&mut self, at: Instant, way: LogDirection, other: SocketAddr, datagram: &[u8]) {
        let (seconds, micros) = (at.as_micros() / 1_000_000, at.as_micros() % 1_000_000);
        let way = match way {
            LogDirection::In => "in",
            LogDirection::Out => "out",
        };
        let length = datagram.len();
        // A log that cannot be written to must not stop the game.
        let _ = write!(self.0, "{seconds}.{micros:06} {way} {other} {length} bytes, ");
        let _ = writeln!(self.0, "{}", Summary(datagram));
    }
}

/// What a datagram is, in a few words.
struct Summary<'d>(&'d [u8]);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok((header, _)) = Header::read(self.0) else { return f.write_str("too short") };
        let has_reserved_bits = self.0.first().is_some_and(|flags| *flags > 0x0F);
        match header {
            // Of four bytes only those that take part know what they are for sure.
            _ if self.0.len() == HEADER && has_reserved_bits => f.write_str("handshake"),
            Header::End => f.write_str("END"),
            Header::Acknowledgement { chunk, sequence } => {
                write!(f, "acknowledgement of chunk {chunk} of sequence {sequence}")
            }
            Header::Chunk { reliability, position, chunk, sequence } => {
                let promise = if reliability.is_reliable() { "reliable" } else { "unreliable" };
                let last = if position == Position::Last { ", the last" } else { "" };
                write!(f, "{promise} chunk {chunk} of sequence {sequence}{last}")
            }
        }
    }
}
