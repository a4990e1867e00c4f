//! The wire format of RakNet, written only from docs/raknet.md.
//!
//! The suite has its own encoder and decoder, so that it detects faults in rakwire's codec.

mod control;
mod offline;

pub use control::*;
pub use offline::*;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The magic bytes of offline messages.
pub const MAGIC: [u8; 16] =
    [0x00, 0xff, 0xff, 0x00, 0xfe, 0xfe, 0xfe, 0xfe, 0xfd, 0xfd, 0xfd, 0xfd, 0x12, 0x34, 0x56, 0x78];
/// The number of bytes of IP and UDP headers that an MTU includes.
pub const UDP_OVERHEAD: usize = 28;
/// The largest MTU that peers offer over IPv4.
pub const LARGEST_MTU: u16 = 1492;
/// The smallest MTU that peers accept.
pub const SMALLEST_MTU: u16 = 576;
/// The modulus of datagram numbers, message numbers and indices.
pub const U24: u32 = 1 << 24;

/// The message ids that the cases use.
pub mod id {
    /// The ping inside a connection.
    pub const CONNECTED_PING: u8 = 0x00;
    /// A ping without a connection.
    pub const PING: u8 = 0x01;
    /// An unconnected ping that only servers with free slots answer.
    pub const PING_OPEN: u8 = 0x02;
    /// The answer to a connected ping.
    pub const CONNECTED_PONG: u8 = 0x03;
    /// The first request of a handshake, padded to the MTU.
    pub const REQUEST_1: u8 = 0x05;
    /// The answer to the first request.
    pub const REPLY_1: u8 = 0x06;
    /// The second request, with the MTU and the GUID.
    pub const REQUEST_2: u8 = 0x07;
    /// The answer to the second request.
    pub const REPLY_2: u8 = 0x08;
    /// The connection request, which is the client's first message.
    pub const CONNECTION_REQUEST: u8 = 0x09;
    /// An out-of-band message, without a connection.
    pub const OUT_OF_BAND: u8 = 0x0d;
    /// The server's answer to a connection request.
    pub const ACCEPTED: u8 = 0x10;
    /// A refusal: the address or GUID is already connected.
    pub const ALREADY_CONNECTED: u8 = 0x12;
    /// The client's message that completes the handshake.
    pub const NEW_INCOMING: u8 = 0x13;
    /// A refusal: the server has no free slot.
    pub const NO_FREE_CONNECTIONS: u8 = 0x14;
    /// The disconnect notification.
    pub const DISCONNECTION: u8 = 0x15;
    /// A refusal: wrong password.
    pub const INVALID_PASSWORD: u8 = 0x18;
    /// A refusal: incompatible protocol version.
    pub const INCOMPATIBLE: u8 = 0x19;
    /// A refusal: the address connected too recently.
    pub const RECENTLY_CONNECTED: u8 = 0x1a;
    /// The answer to a ping without a connection.
    pub const PONG: u8 = 0x1c;
    /// The first message id of applications.
    pub const USER: u8 = 0x86;
}

/// Decodes values from the start of a byte string.
#[derive(Clone, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// Returns the next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    /// Reads a byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Reads a big-endian u16.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads a little-endian u24.
    pub fn u24(&mut self) -> Option<u32> {
        self.array().map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
    }

    /// Reads a big-endian u32.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads a big-endian u64.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Checks the magic bytes.
    pub fn magic(&mut self) -> Option<()> {
        (self.array::<16>()? == MAGIC).then_some(())
    }

    /// Reads an IPv4 or IPv6 address.
    pub fn address(&mut self) -> Option<SocketAddr> {
        if self.u8()? == 4 {
            let octets = self.array::<4>()?.map(|byte| !byte);
            return Some(SocketAddr::from((Ipv4Addr::from(octets), self.u16()?)));
        }
        self.bytes(2)?;
        let port = self.u16()?;
        self.bytes(4)?;
        let address = Ipv6Addr::from(self.array::<16>()?);
        self.bytes(4)?;
        Some(SocketAddr::from((address, port)))
    }

    /// Returns true if all bytes were read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends a little-endian u24.
pub fn put_u24(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes()[..3]);
}

/// Appends an address.
pub fn put_address(out: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            out.push(4);
            out.extend(ip.octets().map(|byte| !byte));
            out.extend(address.port().to_be_bytes());
        }
        IpAddr::V6(ip) => {
            out.extend([6, 0x17, 0x00]);
            out.extend(address.port().to_be_bytes());
            out.extend([0; 4]);
            out.extend(ip.octets());
            out.extend([0; 4]);
        }
    }
}

/// Returns the encoded length of an address.
#[must_use]
pub fn address_len(address: SocketAddr) -> usize {
    if address.is_ipv4() { 7 } else { 29 }
}

/// Returns true if a 24-bit number is newer than another, with wrap-around.
#[must_use]
pub fn is_newer(a: u32, b: u32) -> bool {
    a != b && (b.wrapping_sub(a) & (U24 - 1)) > 0x7f_ffff
}

/// The position of a part in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// The number of parts.
    pub count: u32,
    /// The id that all parts of a message share.
    pub id: u16,
    /// The index of this part, from 0.
    pub index: u32,
}

/// A capsule: one message or one part of a message, with its header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capsule {
    /// The reliability bits.
    pub reliability: u8,
    /// The reliable message number.
    pub number: u32,
    /// The sequencing index.
    pub sequence: u32,
    /// The ordering index.
    pub order: u32,
    /// The ordering channel.
    pub channel: u8,
    /// The position of a part.
    pub split: Option<Split>,
    /// The message, or a part of it.
    pub payload: Vec<u8>,
}

impl Capsule {
    /// Creates an unreliable message.
    #[must_use]
    pub fn unreliable(payload: Vec<u8>) -> Self {
        Self { payload, ..Self::default() }
    }

    /// Creates a reliable message with this message number.
    #[must_use]
    pub fn reliable(number: u32, payload: Vec<u8>) -> Self {
        Self { reliability: 2, number, payload, ..Self::default() }
    }

    /// Creates a reliable ordered message.
    #[must_use]
    pub fn ordered(number: u32, order: u32, channel: u8, payload: Vec<u8>) -> Self {
        Self { reliability: 3, number, order, channel, payload, ..Self::default() }
    }

    /// Returns true if the header contains a reliable message number.
    #[must_use]
    pub fn is_reliable(&self) -> bool {
        matches!(self.reliability, 2..=4)
    }

    /// Returns true if the header contains a sequencing index.
    #[must_use]
    pub fn is_sequenced(&self) -> bool {
        matches!(self.reliability, 1 | 4)
    }

    /// Returns true if the header contains an ordering index and channel.
    #[must_use]
    pub fn has_order(&self) -> bool {
        matches!(self.reliability, 1 | 3 | 4 | 7)
    }

    /// Encodes the capsule.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_bits(self.payload.len() as u16 * 8, 0, out);
    }

    /// Encodes the capsule with this length in bits, and with these low bits in the flags byte.
    pub fn write_bits(&self, bits: u16, low: u8, out: &mut Vec<u8>) {
        out.push(self.reliability << 5 | u8::from(self.split.is_some()) << 4 | low);
        out.extend(bits.to_be_bytes());
        if self.is_reliable() {
            put_u24(out, self.number);
        }
        if self.is_sequenced() {
            put_u24(out, self.sequence);
        }
        if self.has_order() {
            put_u24(out, self.order);
            out.push(self.channel);
        }
        if let Some(split) = self.split {
            out.extend(split.count.to_be_bytes());
            out.extend(split.id.to_be_bytes());
            out.extend(split.index.to_be_bytes());
        }
        out.extend(&self.payload);
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let flags = from.u8()?;
        let bits = from.u16()?;
        let mut capsule = Self { reliability: flags >> 5, ..Self::default() };
        if capsule.is_reliable() {
            capsule.number = from.u24()?;
        }
        if capsule.is_sequenced() {
            capsule.sequence = from.u24()?;
        }
        if capsule.has_order() {
            capsule.order = from.u24()?;
            capsule.channel = from.u8()?;
        }
        if flags & 0x10 != 0 {
            capsule.split = Some(Split { count: from.u32()?, id: from.u16()?, index: from.u32()? });
        }
        let in_order = capsule.split.is_none_or(|split| split.index < split.count);
        (bits != 0 && capsule.channel < 32 && in_order).then_some(())?;
        capsule.payload = from.bytes(usize::from(bits).div_ceil(8))?.to_vec();
        Some(capsule)
    }
}

/// A datagram of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Datagram {
    /// Capsules.
    Data {
        /// The datagram number.
        number: u32,
        /// The valid capsules at the start of the datagram.
        capsules: Vec<Capsule>,
        /// True if the datagram consists of valid capsules only.
        clean: bool,
    },
    /// An acknowledgement, with its ranges of datagram numbers.
    Ack(Vec<(u32, u32)>),
    /// A negative acknowledgement, with its ranges of datagram numbers.
    Nak(Vec<(u32, u32)>),
}

impl Datagram {
    /// Decodes a datagram of a connection; `None` for offline messages and malformed acknowledgements.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let flags = from.u8()?;
        (flags & 0x80 != 0).then_some(())?;
        if flags & 0x40 != 0 {
            if flags & 0x20 != 0 {
                from.bytes(4)?;
            }
            return Some(Self::Ack(read_records(&mut from)?));
        }
        if flags & 0x20 != 0 {
            return Some(Self::Nak(read_records(&mut from)?));
        }
        let number = from.u24()?;
        let mut capsules = Vec::new();
        let mut clean = true;
        while !from.is_empty() {
            let Some(capsule) = Capsule::read(&mut from) else {
                clean = false;
                break;
            };
            capsules.push(capsule);
        }
        Some(Self::Data { number, capsules, clean })
    }
}

fn read_records(from: &mut Reader<'_>) -> Option<Vec<(u32, u32)>> {
    let count = from.u16()?;
    let mut records = Vec::new();
    for _ in 0..count {
        let single = from.u8()? != 0;
        let first = from.u24()?;
        let last = if single { first } else { from.u24()? };
        (first <= last).then_some(())?;
        records.push((first, last));
    }
    from.is_empty().then_some(records)
}

/// Encodes a datagram with capsules.
#[must_use]
pub fn data(flags: u8, number: u32, capsules: &[Capsule]) -> Vec<u8> {
    let mut out = vec![flags];
    put_u24(&mut out, number % U24);
    for capsule in capsules {
        capsule.write(&mut out);
    }
    out
}

/// Encodes an acknowledgement (`c0`) or negative acknowledgement (`a0`) with these ranges.
#[must_use]
pub fn records(flags: u8, records: &[(u32, u32)]) -> Vec<u8> {
    let mut out = vec![flags];
    out.extend((records.len() as u16).to_be_bytes());
    for &(first, last) in records {
        out.push(u8::from(first == last));
        put_u24(&mut out, first);
        if first != last {
            put_u24(&mut out, last);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_raknet_md_are_encoded_byte_for_byte() {
        let mut address = Vec::new();
        put_address(&mut address, "127.0.0.1:19132".parse().unwrap());
        assert_eq!(address, [0x04, 0x80, 0xff, 0xff, 0xfe, 0x4a, 0xbc]);
        assert_eq!(records(0xc0, &[(0, 0)]), [0xc0, 0, 1, 1, 0, 0, 0]);
        assert_eq!(records(0xc0, &[(1, 2)]), [0xc0, 0, 1, 0, 1, 0, 0, 2, 0, 0]);
        let mut sequenced = Vec::new();
        Capsule {
            reliability: 4,
            number: 4,
            order: 1,
            channel: 3,
            payload: vec![0x86, 4, 2, 3],
            ..Capsule::default()
        }
        .write(&mut sequenced);
        let expected = [0x80, 0, 0x20, 4, 0, 0, 0, 0, 0, 1, 0, 0, 3, 0x86, 4, 2, 3];
        assert_eq!(sequenced, expected);
    }

    #[test]
    fn a_written_capsule_round_trips() {
        for reliability in 0..8 {
            let split = Some(Split { count: 3, id: 7, index: 2 });
            let mut capsule = Capsule { reliability, split, payload: vec![1, 2, 3], ..Capsule::default() };
            if capsule.has_order() {
                (capsule.order, capsule.channel) = (9, 31);
            }
            let bytes = data(0x84, U24 - 1, std::slice::from_ref(&capsule));
            let read = Datagram::read(&bytes);
            assert_eq!(read, Some(Datagram::Data { number: U24 - 1, capsules: vec![capsule], clean: true }));
        }
    }
}
