//! Messages outside a connection (docs/raknet.md#offline-messages).
//!
//! Each begins with an id below 0x80 and contains the 16 bytes of [`MAGIC`]. The first byte of a connection's datagrams
//! is at least 0x80.

use core::net::SocketAddr;

use super::security::SecuritySizes;
pub use super::security::{ClientSecurity, ServerSecurity};
use super::{Guid, IP_UDP_OVERHEAD, Wire, address, id};
use crate::cursor::{Reader, Source, WireError, Writer};

/// The magic bytes of an offline message.
pub const MAGIC: [u8; 16] =
    [0, 0xFF, 0xFF, 0, 0xFE, 0xFE, 0xFE, 0xFE, 0xFD, 0xFD, 0xFD, 0xFD, 0x12, 0x34, 0x56, 0x78];

/// The maximum length of a pong's data in bytes; receivers ignore a longer pong.
pub const MAX_PONG_DATA: usize = 399;

/// The maximum length of out-of-band data in bytes; the minimum is 1.
pub const MAX_OUT_OF_BAND_DATA: usize = 399;

/// A message outside a connection.
///
/// A reader ignores padding, trailing bytes, and flag bytes other than 0 and 1. A writer normalizes them.
///
/// ```
/// use rakwire::raknet::Guid;
/// use rakwire::wire::offline::{Offline, PingScope};
/// use rakwire::wire::{Wire, Writer};
///
/// let ping = Offline::Ping { scope: PingScope::Any, time: 7, guid: Some(Guid(1)) };
/// let mut buffer = [0; 64];
/// let mut writer = Writer::new(&mut buffer);
/// ping.write(&mut writer)?;
/// assert_eq!(writer.finish().len(), 33);
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Offline<'a> {
    /// Unconnected ping, 0x01 or 0x02: id, time (u64), magic, GUID of the sender (may be missing).
    Ping {
        /// The servers that should answer.
        scope: PingScope,
        /// The sender's clock in milliseconds.
        time: u64,
        /// The GUID of the sender.
        guid: Option<Guid>,
    },
    /// Unconnected pong, 0x1C: id, the time of the ping (u64), GUID, magic, raw data to the end.
    Pong {
        /// The time in the ping, echoed; some servers write their own clock instead.
        time: u64,
        /// The GUID of the server.
        guid: Guid,
        /// The server's advertisement, at most 399 bytes.
        data: &'a [u8],
    },
    /// Open connection request 1, 0x05: id, magic, protocol version (u8), zeros up to the probed size.
    Request1 {
        /// The protocol version of the client.
        protocol: u8,
        /// The MTU to probe: the length of this datagram plus 28.
        mtu: u16,
    },
    /// Open connection reply 1, 0x06: id, magic, GUID, security (u8), [cookie (u32), [public key (64)]], MTU (u16),
    /// zeros (from one implementation).
    Reply1 {
        /// The GUID of the server.
        guid: Guid,
        /// The security fields, which the client must answer in request 2.
        security: ServerSecurity<'a>,
        /// The MTU that the server proposes.
        mtu: u16,
    },
    /// Open connection request 2, 0x07: id, magic, [cookie (u32), challenge flag (u8), [challenge (64)]], address of
    /// the server, MTU (u16), GUID.
    Request2 {
        /// The answer to the security fields of reply 1.
        security: ClientSecurity<'a>,
        /// The server's address as given to `connect` at the client.
        server: SocketAddr,
        /// The MTU that the client chose.
        mtu: u16,
        /// The GUID of the client.
        guid: Guid,
    },
    /// Open connection reply 2, 0x08: id, magic, GUID, address of the client, MTU (u16), encryption (one bit: 0x80),
    /// [answer (128)].
    ///
    /// Some implementations write 0x01 for encryption, and one sets the bit without an answer.
    Reply2 {
        /// The GUID of the server.
        guid: Guid,
        /// The client's address as seen by the server.
        client: SocketAddr,
        /// The MTU of the connection.
        mtu: u16,
        /// The server's answer to the challenge, if the connection is secure.
        answer: Option<&'a [u8]>,
    },
    /// Incompatible protocol version, 0x19: id, the server's protocol version (u8), magic, GUID.
    IncompatibleProtocol {
        /// The server's protocol version; some servers echo the client's instead.
        protocol: u8,
        /// The GUID of the server.
        guid: Guid,
    },
    /// Out of band, 0x0D: id, GUID of the sender, magic, raw data to the end (1 to 399 bytes).
    OutOfBand {
        /// The GUID of the sender.
        guid: Guid,
        /// The payload.
        ///
        /// It is an advertisement ([`Notice::Advertise`](super::notice::Notice::Advertise)) if its first byte is
        /// [`id::ADVERTISE_SYSTEM`].
        data: &'a [u8],
    },
    /// Refusal, 0x11, 0x12, 0x14, 0x17 or 0x1A: id, magic, GUID of the server.
    Refused {
        /// The reason for the refusal.
        refusal: Refusal,
        /// The GUID of the server.
        guid: Guid,
    },
}

/// The servers that should answer a ping.
///
/// ```
/// use rakwire::wire::offline::{Offline, PingScope};
/// use rakwire::wire::{Wire, Writer};
///
/// let search = Offline::Ping { scope: PingScope::OpenConnections, time: 0, guid: None };
/// let mut buffer = [0; 64];
/// let mut writer = Writer::new(&mut buffer);
/// search.write(&mut writer)?;
/// assert_eq!(writer.finish().first(), Some(&0x02));
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PingScope {
    /// Every server (id 0x01).
    Any,
    /// Servers that accept new connections (id 0x02).
    OpenConnections,
}

/// The reason why a server refuses a connection before it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Refusal {
    /// The attempt failed (id 0x11).
    ///
    /// C++ RakNet never sends it, but accepts it from the network.
    AttemptFailed,
    /// The address or the GUID is already connected (id 0x12).
    AlreadyConnected,
    /// The server is full (id 0x14).
    NoFreeIncomingConnections,
    /// The address is banned (id 0x17).
    Banned,
    /// The address connected a moment ago (id 0x1A).
    RecentlyConnected,
}

impl Refusal {
    const fn from_id(byte: u8) -> Option<Self> {
        Some(match byte {
            id::CONNECTION_ATTEMPT_FAILED => Self::AttemptFailed,
            id::ALREADY_CONNECTED => Self::AlreadyConnected,
            id::NO_FREE_INCOMING_CONNECTIONS => Self::NoFreeIncomingConnections,
            id::CONNECTION_BANNED => Self::Banned,
            id::IP_RECENTLY_CONNECTED => Self::RecentlyConnected,
            _ => return None,
        })
    }

    const fn id(self) -> u8 {
        match self {
            Self::AttemptFailed => id::CONNECTION_ATTEMPT_FAILED,
            Self::AlreadyConnected => id::ALREADY_CONNECTED,
            Self::NoFreeIncomingConnections => id::NO_FREE_INCOMING_CONNECTIONS,
            Self::Banned => id::CONNECTION_BANNED,
            Self::RecentlyConnected => id::IP_RECENTLY_CONNECTED,
        }
    }
}

fn read_magic<'a, S: Source<'a>>(source: &mut S) -> Result<(), WireError> {
    if source.bytes("magic", MAGIC.len())? == MAGIC { Ok(()) } else { Err(WireError::BadMagic) }
}

fn read_guid<'a, S: Source<'a>>(source: &mut S) -> Result<Guid, WireError> {
    source.u64("guid").map(Guid)
}

impl<'a> Offline<'a> {
    /// Reads a message with the given sizes of security fields; [`Wire::read`] assumes the sizes of C++ RakNet.
    ///
    /// # Errors
    ///
    /// The errors of [`Wire::read`].
    pub fn read_with<S: Source<'a>>(source: &mut S, sizes: &SecuritySizes) -> Result<Self, WireError> {
        let whole = source.remaining();
        match source.u8("id")? {
            id::UNCONNECTED_PING => read_ping(source, PingScope::Any),
            id::UNCONNECTED_PING_OPEN_CONNECTIONS => read_ping(source, PingScope::OpenConnections),
            id::UNCONNECTED_PONG => read_pong(source),
            id::OPEN_CONNECTION_REQUEST_1 => read_request_1(source, whole),
            id::OPEN_CONNECTION_REPLY_1 => read_reply_1(source, sizes),
            id::OPEN_CONNECTION_REQUEST_2 => read_request_2(source, sizes),
            id::OPEN_CONNECTION_REPLY_2 => read_reply_2(source, sizes),
            id::INCOMPATIBLE_PROTOCOL_VERSION => read_incompatible(source),
            id::OUT_OF_BAND => read_out_of_band(source),
            other => read_refused(source, other),
        }
    }
}

impl<'a> Offline<'a> {
    /// Reads a response to a client; a pure client needs no other messages.
    pub(crate) fn read_answer<S: Source<'a>>(source: &mut S) -> Result<Self, WireError> {
        let sizes = &SecuritySizes::ORIGINAL;
        match source.u8("id")? {
            id::OPEN_CONNECTION_REPLY_1 => read_reply_1(source, sizes),
            id::OPEN_CONNECTION_REPLY_2 => read_reply_2(source, sizes),
            id::INCOMPATIBLE_PROTOCOL_VERSION => read_incompatible(source),
            other => read_refused(source, other),
        }
    }
}

impl<'a> Wire<'a> for Offline<'a> {
    fn read<S: Source<'a>>(source: &mut S) -> Result<Self, WireError> {
        Self::read_with(source, &SecuritySizes::ORIGINAL)
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        match *self {
            Self::Ping { scope, time, guid } => write_ping(writer, scope, time, guid),
            Self::Pong { time, guid, data } => {
                check_length(data, 0, MAX_PONG_DATA)?;
                writer.u8(id::UNCONNECTED_PONG)?;
                writer.u64(time)?;
                writer.u64(guid.0)?;
                writer.bytes(&MAGIC)?;
                writer.bytes(data)
            }
            Self::Request1 { protocol, mtu } => write_request_1(writer, protocol, mtu),
            Self::Reply1 { guid, security, mtu } => {
                write_head(writer, id::OPEN_CONNECTION_REPLY_1)?;
                writer.u64(guid.0)?;
                security.write(writer)?;
                writer.u16(mtu)
            }
            Self::Request2 { security, server, mtu, guid } => {
                write_head(writer, id::OPEN_CONNECTION_REQUEST_2)?;
                security.write(writer)?;
                address::write(&server, writer)?;
                writer.u16(mtu)?;
                writer.u64(guid.0)
            }
            Self::Reply2 { guid, client, mtu, answer } => write_reply_2(writer, guid, client, mtu, answer),
            Self::IncompatibleProtocol { protocol, guid } => {
                writer.u8(id::INCOMPATIBLE_PROTOCOL_VERSION)?;
                writer.u8(protocol)?;
                writer.bytes(&MAGIC)?;
                writer.u64(guid.0)
            }
            Self::OutOfBand { guid, data } => {
                check_length(data, 1, MAX_OUT_OF_BAND_DATA)?;
                writer.u8(id::OUT_OF_BAND)?;
                writer.u64(guid.0)?;
                writer.bytes(&MAGIC)?;
                writer.bytes(data)
            }
            Self::Refused { refusal, guid } => {
                write_head(writer, refusal.id())?;
                writer.u64(guid.0)
            }
        }
    }
}

fn read_refused<'a, S: Source<'a>>(source: &mut S, id: u8) -> Result<Offline<'a>, WireError> {
    let refusal = Refusal::from_id(id).ok_or(WireError::UnknownId)?;
    read_magic(source)?;
    Ok(Offline::Refused { refusal, guid: read_guid(source)? })
}

const fn check_length(data: &[u8], shortest: usize, longest: usize) -> Result<(), WireError> {
    if data.len() < shortest || data.len() > longest { Err(WireError::BadLength) } else { Ok(()) }
}

fn write_head(writer: &mut Writer<'_>, id: u8) -> Result<(), WireError> {
    writer.u8(id)?;
    writer.bytes(&MAGIC)
}

fn read_ping<'a, S: Source<'a>>(source: &mut S, scope: PingScope) -> Result<Offline<'a>, WireError> {
    let time = source.u64("time")?;
    read_magic(source)?;
    let guid = if source.remaining() >= 8 { Some(read_guid(source)?) } else { None };
    Ok(Offline::Ping { scope, time, guid })
}

fn write_ping(
    writer: &mut Writer<'_>,
    scope: PingScope,
    time: u64,
    guid: Option<Guid>,
) -> Result<(), WireError> {
    writer.u8(match scope {
        PingScope::Any => id::UNCONNECTED_PING,
        PingScope::OpenConnections => id::UNCONNECTED_PING_OPEN_CONNECTIONS,
    })?;
    writer.u64(time)?;
    writer.bytes(&MAGIC)?;
    guid.map_or(Ok(()), |guid| writer.u64(guid.0))
}

fn read_pong<'a, S: Source<'a>>(source: &mut S) -> Result<Offline<'a>, WireError> {
    let time = source.u64("time")?;
    let guid = read_guid(source)?;
    read_magic(source)?;
    let data = source.rest("data");
    check_length(data, 0, MAX_PONG_DATA)?;
    Ok(Offline::Pong { time, guid, data })
}

fn read_request_1<'a, S: Source<'a>>(source: &mut S, whole: usize) -> Result<Offline<'a>, WireError> {
    read_magic(source)?;
    let protocol = source.u8("protocol version")?;
    source.rest("padding");
    let mtu = u16::try_from(whole).ok().and_then(|length| length.checked_add(IP_UDP_OVERHEAD));
    Ok(Offline::Request1 { protocol, mtu: mtu.ok_or(WireError::BadLength)? })
}

/// Returns true if the datagram is request 1, which probes the path MTU with its length.
///
/// A driver must send it unfragmented (with the DF bit set).
///
/// ```
/// use rakwire::wire::offline::{Offline, is_mtu_probe};
/// use rakwire::wire::{Wire, Writer};
///
/// let mut buffer = [0; 1464];
/// let mut writer = Writer::new(&mut buffer);
/// Offline::Request1 { protocol: 6, mtu: 1492 }.write(&mut writer)?;
/// assert!(is_mtu_probe(writer.finish()));
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[must_use]
pub fn is_mtu_probe(datagram: &[u8]) -> bool {
    let magic = datagram.strip_prefix(&[id::OPEN_CONNECTION_REQUEST_1]);
    magic.is_some_and(|rest| rest.starts_with(&MAGIC))
}

fn write_request_1(writer: &mut Writer<'_>, protocol: u8, mtu: u16) -> Result<(), WireError> {
    write_head(writer, id::OPEN_CONNECTION_REQUEST_1)?;
    writer.u8(protocol)?;
    let length = usize::from(mtu.saturating_sub(IP_UDP_OVERHEAD));
    writer.zeros(length.saturating_sub(writer.written()))
}

fn read_reply_1<'a, S: Source<'a>>(source: &mut S, sizes: &SecuritySizes) -> Result<Offline<'a>, WireError> {
    read_magic(source)?;
    let guid = read_guid(source)?;
    let security = ServerSecurity::read(source, sizes)?;
    let reply = Offline::Reply1 { guid, security, mtu: source.u16("mtu")? };
    if source.remaining() > 0 {
        source.rest("padding");
    }
    Ok(reply)
}

fn read_request_2<'a, S: Source<'a>>(
    source: &mut S,
    sizes: &SecuritySizes,
) -> Result<Offline<'a>, WireError> {
    read_magic(source)?;
    let security = ClientSecurity::read(source, sizes)?;
    let server = address::read(source, "server address")?;
    let mtu = source.u16("mtu")?;
    Ok(Offline::Request2 { security, server, mtu, guid: read_guid(source)? })
}

fn read_reply_2<'a, S: Source<'a>>(source: &mut S, sizes: &SecuritySizes) -> Result<Offline<'a>, WireError> {
    read_magic(source)?;
    let guid = read_guid(source)?;
    let client = address::read(source, "client address")?;
    let mtu = source.u16("mtu")?;
    // One bit in C++ RakNet (0x80), a whole byte elsewhere; one implementation sets it in plain connections.
    let encrypted = source.u8("encryption")? != 0;
    let answer = if encrypted && source.remaining() > 0 {
        Some(source.bytes("answer", sizes.answer.into())?)
    } else {
        None
    };
    Ok(Offline::Reply2 { guid, client, mtu, answer })
}

fn write_reply_2(
    writer: &mut Writer<'_>,
    guid: Guid,
    client: SocketAddr,
    mtu: u16,
    answer: Option<&[u8]>,
) -> Result<(), WireError> {
    write_head(writer, id::OPEN_CONNECTION_REPLY_2)?;
    writer.u64(guid.0)?;
    address::write(&client, writer)?;
    writer.u16(mtu)?;
    match answer {
        None => writer.u8(0),
        Some(answer) => {
            writer.u8(0x80)?;
            writer.bytes(answer)
        }
    }
}

fn read_incompatible<'a, S: Source<'a>>(source: &mut S) -> Result<Offline<'a>, WireError> {
    let protocol = source.u8("protocol version")?;
    read_magic(source)?;
    Ok(Offline::IncompatibleProtocol { protocol, guid: read_guid(source)? })
}

fn read_out_of_band<'a, S: Source<'a>>(source: &mut S) -> Result<Offline<'a>, WireError> {
    let guid = read_guid(source)?;
    read_magic(source)?;
    let data = source.rest("data");
    check_length(data, 1, MAX_OUT_OF_BAND_DATA)?;
    Ok(Offline::OutOfBand { guid, data })
}

/// The framing of pong data: with or without a preceding length (docs/raknet.md#advertisements).
///
/// ```
/// use rakwire::raknet::PongFraming;
///
/// let mut buffer = [0; 8];
/// assert_eq!(PongFraming::Prefixed.frame(b"hi", &mut buffer)?, [0, 2, b'h', b'i']);
/// assert_eq!(PongFraming::of(&[0, 2, b'h', b'i']), PongFraming::Prefixed);
/// assert_eq!(PongFraming::Prefixed.unframe(&[0, 2, b'h', b'i'])?, b"hi");
/// assert_eq!(PongFraming::Raw.unframe(b"hi")?, b"hi");
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PongFraming {
    /// Without a length, as in C++ RakNet.
    #[default]
    Raw,
    /// With the length in bytes (`u16`, big endian) before the data, as in Minecraft Bedrock.
    Prefixed,
}

/// The newest protocol version without a length in pongs; C++ RakNet uses it.
const NEWEST_RAW: u8 = 6;

impl PongFraming {
    /// Returns the framing for a protocol version.
    ///
    /// It is [`Raw`](Self::Raw) up to version 6 (C++ RakNet), and [`Prefixed`](Self::Prefixed) above (Minecraft
    /// Bedrock).
    #[must_use]
    pub const fn of_version(version: u8) -> Self {
        if version <= NEWEST_RAW { Self::Raw } else { Self::Prefixed }
    }

    /// Returns `Prefixed` if `data` begins with the number of the bytes that follow, and otherwise `Raw`.
    ///
    /// Text of at most 399 bytes is never mistaken for `Prefixed`, unless it begins with a control character (0 or 1).
    #[must_use]
    pub fn of(data: &[u8]) -> Self {
        let mut reader = Reader::new(data);
        match reader.u16("length") {
            Ok(length) if usize::from(length) == reader.remaining() => Self::Prefixed,
            Ok(_) | Err(_) => Self::Raw,
        }
    }

    /// Returns the advertisement in the data of a pong. Bytes after a prefixed advertisement are ignored.
    ///
    /// # Errors
    ///
    /// [`WireError::Truncated`] if the length exceeds the remaining bytes, or [`WireError::BadLength`] if `data` is
    /// longer than 399 bytes.
    pub fn unframe(self, data: &[u8]) -> Result<&[u8], WireError> {
        if data.len() > MAX_PONG_DATA {
            return Err(WireError::BadLength);
        }
        match self {
            Self::Raw => Ok(data),
            Self::Prefixed => {
                let mut reader = Reader::new(data);
                let length = reader.u16("length")?;
                reader.bytes("text", length.into())
            }
        }
    }

    /// Encodes the data of a pong with the advertisement `text`, at most 399 bytes including the length.
    ///
    /// # Errors
    ///
    /// [`WireError::NoRoom`] if the buffer is too small, or [`WireError::BadLength`] if the text does not fit into a
    /// pong.
    pub fn frame<'b>(self, text: &[u8], buffer: &'b mut [u8]) -> Result<&'b [u8], WireError> {
        self.compose(buffer, |writer| writer.bytes(text))
    }

    /// Writes the output of `write`, preceded by its length if the framing requires that.
    pub(crate) fn compose(
        self,
        buffer: &mut [u8],
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), WireError>,
    ) -> Result<&[u8], WireError> {
        let length = buffer.len().min(MAX_PONG_DATA);
        let full = if length == MAX_PONG_DATA { WireError::BadLength } else { WireError::NoRoom };
        let mut writer = Writer::new(buffer.get_mut(..length).unwrap_or_default());
        self.fill(&mut writer, write)
            .map_err(|error| if error == WireError::NoRoom { full } else { error })?;
        Ok(writer.finish())
    }

    fn fill(
        self,
        writer: &mut Writer<'_>,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        match self {
            Self::Raw => write(writer),
            Self::Prefixed => {
                writer.u16(0)?;
                write(writer)?;
                let length = u16::try_from(writer.written() - 2).map_err(|_| WireError::BadLength)?;
                writer.patch_u16(0, length)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::law;
    use super::*;
    use crate::cursor::Reader;

    const GUID: Guid = Guid(0x0102_0304_0506_0708);
    const GUID_BYTES: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
    const ADDRESS: [u8; 7] = [4, 0x80, 0xFF, 0xFF, 0xFE, 0x4A, 0xBC];

    fn address() -> SocketAddr {
        "127.0.0.1:19132".parse().expect("a literal address")
    }

    /// Checks a message against the concatenation of its fields, and that no proper prefix of it parses.
    fn check(message: &Offline<'_>, parts: &[&[u8]]) {
        let bytes = parts.concat();
        law::check(message, &bytes);
    }

    #[test]
    fn pings_and_pongs_round_trip() {
        let time = [0, 0, 0, 0, 0, 0, 1, 2];
        let ping = |scope| Offline::Ping { scope, time: 258, guid: Some(GUID) };
        check(&ping(PingScope::Any), &[&[1], &time, &MAGIC, &GUID_BYTES]);
        check(&ping(PingScope::OpenConnections), &[&[2], &time, &MAGIC, &GUID_BYTES]);
        check(&Offline::Ping { scope: PingScope::Any, time: 258, guid: None }, &[&[1], &time, &MAGIC]);
        check(
            &Offline::Pong { time: 258, guid: GUID, data: b"hello" },
            &[&[0x1C], &time, &GUID_BYTES, &MAGIC, b"hello"],
        );
    }

    #[test]
    fn pong_data_of_400_bytes_is_refused() {
        let data = [b'x'; MAX_PONG_DATA + 1];
        let bytes = [&[0x1C][..], &[0; 8], &GUID_BYTES, &MAGIC, &data].concat();
        assert_eq!(Offline::read(&mut Reader::new(&bytes)), Err(WireError::BadLength));
        assert!(Offline::read(&mut Reader::new(bytes.split_last().expect("not empty").1)).is_ok());
    }

    #[test]
    fn request_1_and_reply_1_round_trip() {
        let padding = [0; 548 - 18];
        check(&Offline::Request1 { protocol: 6, mtu: 576 }, &[&[5], &MAGIC, &[6], &padding]);
        let reply = |security| Offline::Reply1 { guid: GUID, security, mtu: 1492 };
        let head = [&[6][..], &MAGIC, &GUID_BYTES].concat();
        check(&reply(ServerSecurity::None), &[&head, &[0, 5, 0xD4]]);
        check(&reply(ServerSecurity::Cookie(258)), &[&head, &[1, 0, 0, 1, 2, 5, 0xD4]]);
        let key = [7; 64];
        let security = ServerSecurity::PublicKey { cookie: 258, key: &key };
        check(&reply(security), &[&head, &[1, 0, 0, 1, 2], &key, &[5, 0xD4]]);
    }

    #[test]
    fn request_2_and_reply_2_round_trip() {
        let request = |security| Offline::Request2 { security, server: address(), mtu: 1400, guid: GUID };
        let tail = [&ADDRESS[..], &[5, 0x78], &GUID_BYTES].concat();
        check(&request(ClientSecurity::None), &[&[7], &MAGIC, &tail]);
        check(&request(ClientSecurity::Cookie(258)), &[&[7], &MAGIC, &[0, 0, 1, 2, 0], &tail]);
        let challenge = [7; 64];
        let security = ClientSecurity::Challenge { cookie: 258, challenge: &challenge };
        check(&request(security), &[&[7], &MAGIC, &[0, 0, 1, 2, 1], &challenge, &tail]);

        let reply = |answer| Offline::Reply2 { guid: GUID, client: address(), mtu: 1400, answer };
        let head = [&[8][..], &MAGIC, &GUID_BYTES, &ADDRESS, &[5, 0x78]].concat();
        check(&reply(None), &[&head, &[0]]);
        let answer = [9; 128];
        check(&reply(Some(&answer)), &[&head, &[0x80], &answer]);
    }

    /// The sizes over IPv4 in docs/raknet.md#offline-messages.
    #[test]
    fn message_sizes_match_the_documentation() {
        let size = |message: Offline<'_>| {
            let mut buffer = [0; 2048];
            let mut writer = Writer::new(&mut buffer);
            message.write(&mut writer).expect("the buffer is large enough");
            writer.written()
        };
        assert_eq!(size(Offline::Request1 { protocol: 11, mtu: 1492 }), 1464);
        assert_eq!(size(Offline::Reply1 { guid: GUID, security: ServerSecurity::None, mtu: 1492 }), 28);
        assert_eq!(size(Offline::Reply1 { guid: GUID, security: ServerSecurity::Cookie(1), mtu: 1492 }), 32);
        let request_2 = |security| Offline::Request2 { security, server: address(), mtu: 1400, guid: GUID };
        assert_eq!(size(request_2(ClientSecurity::None)), 34);
        assert_eq!(size(request_2(ClientSecurity::Cookie(1))), 39);
        assert_eq!(size(Offline::Reply2 { guid: GUID, client: address(), mtu: 1400, answer: None }), 35);
        assert_eq!(size(Offline::IncompatibleProtocol { protocol: 6, guid: GUID }), 26);
    }

    /// One implementation pads its reply 1 with zeros up to the MTU.
    #[test]
    fn padding_of_reply_1_is_not_read_as_a_key() {
        let mut bytes = [&[6][..], &MAGIC, &GUID_BYTES, &[1, 0, 0, 1, 2, 5, 0xD4]].concat();
        bytes.resize(1464, 0);
        let expected = Offline::Reply1 { guid: GUID, security: ServerSecurity::Cookie(258), mtu: 1492 };
        assert_eq!(Offline::read(&mut Reader::new(&bytes)), Ok(expected));
    }

    /// Implementations encode the encryption bit of reply 2 differently, and one sets it in plain connections.
    #[test]
    fn reply_2_without_an_answer_is_plain() {
        for byte in [1, 0x80] {
            let bytes = [&[8][..], &MAGIC, &GUID_BYTES, &ADDRESS, &[5, 0x78, byte]].concat();
            let expected = Offline::Reply2 { guid: GUID, client: address(), mtu: 1400, answer: None };
            assert_eq!(Offline::read(&mut Reader::new(&bytes)), Ok(expected));
        }
    }

    #[test]
    fn refusals_round_trip() {
        check(&Offline::IncompatibleProtocol { protocol: 6, guid: GUID }, &[&[0x19, 6], &MAGIC, &GUID_BYTES]);
        let refusals = [
            (0x11, Refusal::AttemptFailed),
            (0x12, Refusal::AlreadyConnected),
            (0x14, Refusal::NoFreeIncomingConnections),
            (0x17, Refusal::Banned),
            (0x1A, Refusal::RecentlyConnected),
        ];
        for (id, refusal) in refusals {
            let bytes = [&[id][..], &MAGIC, &GUID_BYTES].concat();
            law::check(&Offline::Refused { refusal, guid: GUID }, &bytes);
            law::check_truncations::<Offline<'_>>(&bytes);
        }
    }

    #[test]
    fn a_wrong_magic_is_refused() {
        let mut bytes = [&[0x12][..], &MAGIC, &GUID_BYTES].concat();
        for index in 1..17 {
            bytes[index] ^= 1;
            assert_eq!(Offline::read(&mut Reader::new(&bytes)), Err(WireError::BadMagic));
            bytes[index] ^= 1;
        }
        bytes[0] = 0x33;
        assert_eq!(Offline::read(&mut Reader::new(&bytes)), Err(WireError::UnknownId));
    }
}
