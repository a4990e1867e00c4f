//! A hook that writes down every datagram: as a capture file that Wireshark opens, or as lines that people read.

use core::fmt;
use core::marker::PhantomData;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::hook::{Hook, Verdict};
use super::protocol::Protocol;
use super::types::Direction;
use crate::cursor::{WireError, Writer};
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

/// Bytes of IPv6 and UDP headers that a capture puts before each datagram.
const HEADERS: usize = 40 + 8;
/// Raw IP packets, told apart by their version (LINKTYPE_RAW).
const LINK_TYPE: u32 = 101;

/// A sink that writes a capture file (pcap, microseconds). Each datagram stands in an IPv6 packet (an IPv4 address is
/// written as mapped) with a right checksum, so that tools show it as UDP.
#[derive(Debug)]
pub struct PcapWriter<F> {
    local: SocketAddr,
    write: F,
}

impl<F: FnMut(&[u8])> PcapWriter<F> {
    /// Begins a capture at the address `local`: hands the header of the file to `write`, later each record.
    pub fn new(local: SocketAddr, mut write: F) -> Self {
        let mut header = [0; 24];
        let mut writer = Writer::new(&mut header);
        // The buffer is as long as what is written.
        let _ = write_file_header(&mut writer);
        write(&header);
        Self { local, write }
    }
}

fn write_file_header(writer: &mut Writer<'_>) -> Result<(), WireError> {
    writer.u32(0xA1B2_C3D4)?;
    writer.u16(2)?;
    writer.u16(4)?;
    writer.zeros(8)?;
    writer.u32(u32::from(u16::MAX))?;
    writer.u32(LINK_TYPE)
}

impl<F: FnMut(&[u8])> LogSink for PcapWriter<F> {
    fn record(&mut self, at: Instant, way: Direction, other: SocketAddr, datagram: &[u8]) {
        let (from, to) = match way {
            Direction::Receiving => (other, self.local),
            Direction::Sending => (self.local, other),
        };
        let mut headers = [0; 16 + HEADERS];
        let mut writer = Writer::new(&mut headers);
        if write_headers(&mut writer, at, from, to, datagram).is_ok() {
            (self.write)(&headers);
            (self.write)(datagram);
        }
    }
}

fn write_headers(
    writer: &mut Writer<'_>,
    at: Instant,
    from: SocketAddr,
    to: SocketAddr,
    datagram: &[u8],
) -> Result<(), WireError> {
    let udp_length = u16::try_from(datagram.len() + 8).map_err(|_| WireError::BadLength)?;
    let length = u32::from(udp_length) + 40;
    let (seconds, micros) = (at.as_micros() / 1_000_000, at.as_micros() % 1_000_000);
    writer.u32(u32::try_from(seconds).unwrap_or(u32::MAX))?;
    writer.u32(u32::try_from(micros).unwrap_or(0))?;
    writer.u32(length)?;
    writer.u32(length)?;
    writer.u32(6 << 28)?;
    writer.u16(udp_length)?;
    writer.bytes(&[17, 64])?;
    writer.bytes(&octets(from))?;
    writer.bytes(&octets(to))?;
    writer.u16(from.port())?;
    writer.u16(to.port())?;
    writer.u16(udp_length)?;
    writer.u16(checksum(from, to, udp_length, datagram))
}

fn octets(address: SocketAddr) -> [u8; 16] {
    let ip: Ipv6Addr = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    ip.octets()
}

/// The checksum of UDP over IPv6: the ones' complement sum of a pseudo header, the header and the data.
fn checksum(from: SocketAddr, to: SocketAddr, udp_length: u16, datagram: &[u8]) -> u16 {
    let length = u32::from(udp_length);
    let mut sum = 2 * length + 17 + u32::from(from.port()) + u32::from(to.port());
    sum += add(&octets(from)) + add(&octets(to)) + add(datagram);
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    let complement = !u16::try_from(sum).unwrap_or(0);
    if complement == 0 { 0xFFFF } else { complement }
}

/// The sum of 16-bit words; the last byte of an odd length is the high one.
fn add(bytes: &[u8]) -> u32 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let sum: u32 = pairs.iter().map(|pair| u32::from(u16::from_be_bytes(*pair))).sum();
    sum + rest.first().map_or(0, |byte| u32::from(*byte) << 8)
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
