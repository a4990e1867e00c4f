//! A hook that writes down every datagram, and lines of it that people read.

use core::fmt;
use core::marker::PhantomData;
use core::net::SocketAddr;

use super::hook::{Hook, Verdict};
use super::protocol::Protocol;
use super::types::Direction;
use crate::time::Instant;

/// Where a [`PacketLogger`] writes to.
///
/// ```
/// use core::net::SocketAddr;
/// use rakwire::Instant;
/// use rakwire::raknet::{Direction, LogSink};
///
/// struct Lines(Vec<String>);
///
/// impl LogSink for Lines {
///     fn record(&mut self, at: Instant, way: Direction, other: SocketAddr, datagram: &[u8]) {
///         self.0.push(format!("{at:?} {way:?} {other} {} bytes", datagram.len()));
///     }
/// }
///
/// let mut lines = Lines(Vec::new());
/// lines.record(Instant::ZERO, Direction::Receiving, "127.0.0.1:9".parse()?, &[0x84, 7, 0, 0]);
/// assert_eq!(lines.0, ["Instant(0) Receiving 127.0.0.1:9 4 bytes"]);
/// # Ok::<(), core::net::AddrParseError>(())
/// ```
pub trait LogSink {
    /// Takes a datagram that went to or came from `other`.
    fn record(&mut self, at: Instant, way: Direction, other: SocketAddr, datagram: &[u8]);
}

/// A hook that shows every datagram to a sink and drops none.
///
/// ```
/// use rakwire::raknet::{Config, Hooked, PacketLogger, Peer, PcapWriter, Resources};
///
/// let mut file = Vec::new();
/// let capture = PcapWriter::new("127.0.0.1:50000".parse()?, |bytes: &[u8]| file.extend_from_slice(bytes));
/// let mut resources = Resources::<1, 32, 128>::new();
/// let peer = Peer::new(&mut resources, Config::new([7; 32]));
/// let hooked = Hooked::new(peer, PacketLogger(capture));
/// drop(hooked);
/// assert_eq!(file.len(), 24, "the header of the capture");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketLogger<S>(pub S);

impl<P: Protocol, S: LogSink> Hook<P> for PacketLogger<S> {
    fn on_received(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Verdict {
        self.0.record(now, Direction::Receiving, from, datagram);
        Verdict::Pass
    }

    fn on_transmit(&mut self, now: Instant, to: SocketAddr, datagram: &[u8]) -> Verdict {
        self.0.record(now, Direction::Sending, to, datagram);
        Verdict::Pass
    }

    fn watches_events(&self) -> bool {
        false
    }
}

/// A sink that writes a line for each datagram to a formatter's target: time, direction, address, length and what it
/// is.
///
/// ```
/// use rakwire::Instant;
/// use rakwire::{game_protocol, raknet};
/// use rakwire::raknet::{Direction, LogSink};
///
/// let (at, remote) = (Instant::from_micros(1_500_000), "127.0.0.1:9".parse()?);
/// let mut log = raknet::LineWriter::new(String::new());
/// log.record(at, Direction::Sending, remote, &[0x84, 7, 0, 0]);
/// assert_eq!(log.target, "1.500000 out 127.0.0.1:9 4 bytes, data 7\n");
///
/// let mut log = game_protocol::LineWriter::new(String::new());
/// log.record(at, Direction::Receiving, remote, &[0x05, 0, 0, 7, 1, 2]);
/// assert_eq!(log.target, "1.500000 in 127.0.0.1:9 6 bytes, reliable chunk 0 of sequence 7, the last\n");
/// # Ok::<(), core::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LineWriter<P, W> {
    /// Where the lines go.
    pub target: W,
    protocol: PhantomData<P>,
}

impl<P: Protocol, W: fmt::Write> LineWriter<P, W> {
    /// Writes lines to `target`.
    #[must_use]
    pub const fn new(target: W) -> Self {
        Self { target, protocol: PhantomData }
    }
}

impl<P: Protocol, W: fmt::Write> LogSink for LineWriter<P, W> {
    fn record(&mut self, at: Instant, way: Direction, other: SocketAddr, datagram: &[u8]) {
        let (seconds, micros) = (at.as_micros() / 1_000_000, at.as_micros() % 1_000_000);
        let way = match way {
            Direction::Receiving => "in",
            Direction::Sending => "out",
        };
        let length = datagram.len();
        // A log that cannot be written to must not stop the game.
        let _ = write!(self.target, "{seconds}.{micros:06} {way} {other} {length} bytes, ");
        let _ = writeln!(self.target, "{}", Summary::<P>(datagram, PhantomData));
    }
}

/// What a datagram is, in a few words.
struct Summary<'d, P>(&'d [u8], PhantomData<P>);

impl<P: Protocol> fmt::Display for Summary<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        P::describe(self.0, f)
    }
}
