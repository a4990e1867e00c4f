//! A hook that logs every datagram, as text lines or as a capture file for Wireshark and tcpdump.

use core::fmt;
use core::marker::PhantomData;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::hook::{Hook, Verdict};
use super::protocol::Protocol;
use super::types::Direction;
use crate::cursor::{WireError, Writer};
use crate::time::Instant;

/// The destination of a [`PacketLogger`].
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
    /// Records a datagram that was sent to `other` or received from it, depending on `way`.
    fn record(&mut self, at: Instant, way: Direction, other: SocketAddr, datagram: &[u8]);
}

/// A hook that passes every datagram to a [`LogSink`] and drops none.
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

/// A [`LogSink`] that writes one line per datagram: time, direction, address, length and kind.
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
    /// The writer that receives the lines.
    pub target: W,
    protocol: PhantomData<P>,
}

impl<P: Protocol, W: fmt::Write> LineWriter<P, W> {
    /// Creates a sink that writes to `target`; errors of `target` are ignored.
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
        // A log that cannot be written must not disturb the connection.
        let _ = write!(self.target, "{seconds}.{micros:06} {way} {other} {length} bytes, ");
        let _ = writeln!(self.target, "{}", Summary::<P>(datagram, PhantomData));
    }
}

/// Formats a short description of a datagram.
struct Summary<'d, P>(&'d [u8], PhantomData<P>);

impl<P: Protocol> fmt::Display for Summary<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        P::describe(self.0, f)
    }
}

/// The maximum length of the headers before a datagram in a capture: record header, IPv6 header and UDP header.
const MAX_HEADERS: usize = 16 + 40 + UDP_HEADER as usize;
const IPV4_HEADER: u16 = 20;
const UDP_HEADER: u16 = 8;
const UDP: u8 = 17;
const TIME_TO_LIVE: u8 = 64;
/// The link type for raw IPv4 and IPv6 packets (LINKTYPE_RAW).
const LINK_TYPE: u32 = 101;

/// A [`LogSink`] that produces a capture file (pcap with microsecond timestamps).
///
/// Each datagram is wrapped in an IPv4 or IPv6 packet with correct checksums, so that tools show it as UDP.
#[derive(Debug)]
pub struct PcapWriter<F> {
    local: SocketAddr,
    write: F,
}

impl<F: FnMut(&[u8])> PcapWriter<F> {
    /// Starts a capture for the local address `local`.
    ///
    /// `write` receives the bytes of the file: the file header immediately, then one record per datagram.
    pub fn new(local: SocketAddr, mut write: F) -> Self {
        let mut header = [0; 24];
        let mut writer = Writer::new(&mut header);
        // Cannot fail: the buffer has exactly the length of the header.
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
        let mut headers = [0; MAX_HEADERS];
        let mut writer = Writer::new(&mut headers);
        if write_headers(&mut writer, at, from, to, datagram).is_ok() {
            (self.write)(writer.finish());
            (self.write)(datagram);
        }
    }
}

/// The source and destination address of a packet.
enum Ends {
    V4([u8; 4], [u8; 4]),
    V6([u8; 16], [u8; 16]),
}

impl Ends {
    fn of(from: IpAddr, to: IpAddr) -> Self {
        match (ipv4(from), ipv4(to)) {
            (Some(from), Some(to)) => Self::V4(from.octets(), to.octets()),
            _ => Self::V6(ipv6(from).octets(), ipv6(to).octets()),
        }
    }

    /// Returns the sum of the 16-bit words of both addresses, for the checksum.
    fn sum(&self) -> u32 {
        match self {
            Self::V4(from, to) => add(from) + add(to),
            Self::V6(from, to) => add(from) + add(to),
        }
    }
}

/// Returns an address as IPv4, or `None` if it is IPv6.
///
/// IPv4-mapped addresses and the unspecified address of a dual-stack socket count as IPv4.
fn ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(ip) if ip.is_unspecified() => Some(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(ip) => ip.to_ipv4_mapped(),
    }
}

const fn ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv6Addr::UNSPECIFIED,
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

fn write_headers(
    writer: &mut Writer<'_>,
    at: Instant,
    from: SocketAddr,
    to: SocketAddr,
    datagram: &[u8],
) -> Result<(), WireError> {
    let too_long = |_| WireError::BadLength;
    let udp_length = u16::try_from(datagram.len() + usize::from(UDP_HEADER)).map_err(too_long)?;
    let ends = Ends::of(from.ip(), to.ip());
    let length =
        u32::from(udp_length) + if matches!(ends, Ends::V4(..)) { u32::from(IPV4_HEADER) } else { 40 };
    let (seconds, micros) = (at.as_micros() / 1_000_000, at.as_micros() % 1_000_000);
    writer.u32(u32::try_from(seconds).unwrap_or(u32::MAX))?;
    writer.u32(u32::try_from(micros).unwrap_or(0))?;
    writer.u32(length)?;
    writer.u32(length)?;
    match &ends {
        Ends::V4(from, to) => write_ipv4(writer, from, to, u16::try_from(length).map_err(too_long)?)?,
        Ends::V6(from, to) => write_ipv6(writer, from, to, udp_length)?,
    }
    writer.u16(from.port())?;
    writer.u16(to.port())?;
    writer.u16(udp_length)?;
    // The checksum covers pseudo header, header and data (RFC 768, RFC 8200 section 8.1).
    let ports = u32::from(from.port()) + u32::from(to.port());
    let sum = ends.sum() + u32::from(UDP) + 2 * u32::from(udp_length) + ports + add(datagram);
    let checksum = checksum(sum);
    writer.u16(if checksum == 0 { 0xFFFF } else { checksum })
}

/// Writes an IPv4 header without options (RFC 791).
fn write_ipv4(writer: &mut Writer<'_>, from: &[u8; 4], to: &[u8; 4], length: u16) -> Result<(), WireError> {
    const VERSION_AND_LENGTH: u16 = 0x4500;
    let life_and_protocol = u16::from_be_bytes([TIME_TO_LIVE, UDP]);
    let sum = u32::from(VERSION_AND_LENGTH) + u32::from(length) + u32::from(life_and_protocol);
    writer.u16(VERSION_AND_LENGTH)?;
    writer.u16(length)?;
    writer.zeros(4)?;
    writer.u16(life_and_protocol)?;
    writer.u16(checksum(sum + add(from) + add(to)))?;
    writer.bytes(from)?;
    writer.bytes(to)
}

/// Writes an IPv6 header (RFC 8200).
fn write_ipv6(
    writer: &mut Writer<'_>,
    from: &[u8; 16],
    to: &[u8; 16],
    udp_length: u16,
) -> Result<(), WireError> {
    writer.u32(6 << 28)?;
    writer.u16(udp_length)?;
    writer.bytes(&[UDP, TIME_TO_LIVE])?;
    writer.bytes(from)?;
    writer.bytes(to)
}

/// Folds a sum of 16-bit words into an Internet checksum (RFC 1071).
fn checksum(mut sum: u32) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}

/// Returns the sum of the 16-bit words; an odd last byte is padded with zero.
fn add(bytes: &[u8]) -> u32 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let sum: u32 = pairs.iter().map(|pair| u32::from(u16::from_be_bytes(*pair))).sum();
    sum + rest.first().map_or(0, |byte| u32::from(*byte) << 8)
}
