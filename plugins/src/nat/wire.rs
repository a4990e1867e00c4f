//! The wire format of NAT traversal (docs/plugins/nat.md).

use core::net::SocketAddr;

use heapless::Vec;
use rakwire::raknet::Guid;
use rakwire::wire::{Reader, Source, WireError, Writer, address};

/// The first byte of all messages, on connections and out of band.
pub const NAT_ID: u8 = 133;
/// The maximum number of interface addresses that a client sends.
pub const MAX_INTERNAL: usize = 4;
/// The maximum number of candidate addresses of a peer.
pub const MAX_CANDIDATES: usize = 16;
/// The maximum length of a message on a connection, in bytes: all candidates with IPv6 addresses.
pub const MAX_MESSAGE: usize = 2 + 8 + 8 + 1 + 1 + MAX_CANDIDATES * 29;
/// The length of an out-of-band message, in bytes.
pub const PUNCH_LEN: usize = 10;

/// A message from a client to the facilitator, on its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromClient {
    /// 1: sends the addresses of the client's interfaces.
    Hello {
        /// The addresses, with the port of the client's socket.
        internal: Vec<SocketAddr, MAX_INTERNAL>,
    },
    /// 2: requests a connection to a peer.
    Open {
        /// The peer.
        target: Guid,
    },
    /// 3: reports that no punch arrived, or that the connection did not open.
    Failed {
        /// The session.
        session: u64,
    },
    /// 4: reports a filter probe from a port of the facilitator to which the client has not sent.
    FilterProbeReceived {
        /// The token of the [`PunchKind::FilterProbe`].
        token: u64,
    },
    /// 5: reports that the peer is connected, which ends the attempt.
    Connected {
        /// The session.
        session: u64,
    },
}

/// A message from the facilitator to a client, on its connection.
#[expect(clippy::large_enum_variant, reason = "the addresses cannot be boxed without an allocator")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromFacilitator {
    /// 16: requests a [`PunchKind::Probe`] to a port at the facilitator's address.
    Probe {
        /// The token to send in the probe.
        token: u64,
        /// The port.
        port: u16,
    },
    /// 17: confirms a probe with its source address. The first confirmation answers [`FromClient::Hello`]; after it,
    /// other peers can request connections to the client.
    Probed {
        /// The token of the probe; 0 means the connection itself.
        token: u64,
        /// The mapped address that the facilitator saw.
        mapped: SocketAddr,
    },
    /// 18: requests punches to a peer.
    Begin {
        /// The session number to send in the punches.
        session: u64,
        /// The peer.
        peer: Guid,
        /// True if this client connects once a punch arrives; if false, the peer connects.
        connects: bool,
        /// The addresses at which the peer may be reached.
        candidates: Vec<SocketAddr, MAX_CANDIDATES>,
    },
    /// 19: requests punches to a port at the facilitator's address, which forwards datagrams to the peer.
    Forwarded {
        /// The session number to send in the punches.
        session: u64,
        /// The peer.
        peer: Guid,
        /// True if this client connects.
        connects: bool,
        /// The port.
        port: u16,
    },
    /// 20: reports that no connection will be opened.
    Refused {
        /// The peer.
        peer: Guid,
        /// The reason.
        reason: Refusal,
    },
}

/// The reason why a facilitator does not connect two peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The other peer is not connected to the facilitator.
    NotConnected,
    /// The facilitator or one of the two peers cannot start another attempt now.
    Busy,
    /// The two peers cannot reach each other, and the facilitator does not forward datagrams.
    NoPath,
}

impl Refusal {
    const fn to_byte(self) -> u8 {
        match self {
            Self::NotConnected => 1,
            Self::Busy => 2,
            Self::NoPath => 3,
        }
    }

    fn of_byte(byte: u8) -> Result<Self, WireError> {
        [Self::NotConnected, Self::Busy, Self::NoPath]
            .into_iter()
            .find(|reason| reason.to_byte() == byte)
            .ok_or(WireError::UnknownId)
    }
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NotConnected => "the remote peer is not connected to the facilitator",
            Self::Busy => "too many attempts are in progress; try again later",
            Self::NoPath => "the two peers cannot reach each other, and the facilitator does not forward",
        })
    }
}

/// The purpose of an out-of-band message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PunchKind {
    /// 1: sent by a client to a port of the facilitator. Its source address is an external address of the client.
    Probe,
    /// 2: sent from a port of the facilitator to a client that has sent nothing to that port.
    FilterProbe,
    /// 3: sent by the peer that will connect, to the accepting peer.
    ToAccepting,
    /// 4: sent by the accepting peer, to the peer that will connect.
    ToConnecting,
    /// 5: acknowledges a punch.
    Ack,
}

/// An out-of-band message: the id, a kind and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Punch {
    /// The purpose of the message.
    pub kind: PunchKind,
    /// The session, or the token of a probe or filter probe.
    pub number: u64,
}

impl Punch {
    const KINDS: [(u8, PunchKind); 5] = [
        (1, PunchKind::Probe),
        (2, PunchKind::FilterProbe),
        (3, PunchKind::ToAccepting),
        (4, PunchKind::ToConnecting),
        (5, PunchKind::Ack),
    ];

    /// Encodes the message.
    #[must_use]
    pub fn encode(self) -> [u8; PUNCH_LEN] {
        let kind = Self::KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or(0, |(byte, _)| *byte);
        let [a, b, c, d, e, f, g, h] = self.number.to_be_bytes();
        [NAT_ID, kind, a, b, c, d, e, f, g, h]
    }

    /// Decodes a message and ignores trailing bytes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let &[id, kind, a, b, c, d, e, f, g, h] = bytes.first_chunk::<PUNCH_LEN>()?;
        let (_, kind) = *Self::KINDS.iter().find(|(byte, _)| *byte == kind)?;
        (id == NAT_ID).then(|| Self { kind, number: u64::from_be_bytes([a, b, c, d, e, f, g, h]) })
    }
}

fn write_addresses(addresses: &[SocketAddr], writer: &mut Writer<'_>) -> Result<(), WireError> {
    writer.u8(u8::try_from(addresses.len()).map_err(|_| WireError::BadLength)?)?;
    addresses.iter().try_for_each(|address| address::write(address, writer))
}

fn read_addresses<const N: usize>(reader: &mut Reader<'_>) -> Result<Vec<SocketAddr, N>, WireError> {
    let mut addresses = Vec::new();
    for _ in 0..reader.u8("count")? {
        let address = address::read(reader, "address")?;
        addresses.push(address).map_err(|_| WireError::NoRoom)?;
    }
    Ok(addresses)
}

/// Reads the id and returns the kind of a message.
fn kind(reader: &mut Reader<'_>) -> Result<u8, WireError> {
    if reader.u8("id")? != NAT_ID {
        return Err(WireError::UnknownId);
    }
    reader.u8("kind")
}

impl FromClient {
    /// Writes the message.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if the buffer is shorter than the message; [`MAX_MESSAGE`] bytes are enough.
    pub fn encode<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b [u8], WireError> {
        let mut writer = Writer::new(buffer);
        writer.u8(NAT_ID)?;
        match self {
            Self::Hello { internal } => {
                writer.u8(1)?;
                write_addresses(internal, &mut writer)?;
            }
            Self::Open { target } => {
                writer.u8(2)?;
                writer.u64(target.0)?;
            }
            Self::Failed { session } => {
                writer.u8(3)?;
                writer.u64(*session)?;
            }
            Self::FilterProbeReceived { token } => {
                writer.u8(4)?;
                writer.u64(*token)?;
            }
            Self::Connected { session } => {
                writer.u8(5)?;
                writer.u64(*session)?;
            }
        }
        Ok(writer.finish())
    }

    /// Reads a message and ignores trailing bytes.
    ///
    /// # Errors
    /// A [`WireError`] if the message is malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let reader = &mut Reader::new(bytes);
        Ok(match kind(reader)? {
            1 => Self::Hello { internal: read_addresses(reader)? },
            2 => Self::Open { target: Guid(reader.u64("target")?) },
            3 => Self::Failed { session: reader.u64("session")? },
            4 => Self::FilterProbeReceived { token: reader.u64("token")? },
            5 => Self::Connected { session: reader.u64("session")? },
            _ => return Err(WireError::UnknownId),
        })
    }
}

impl FromFacilitator {
    /// Writes the message.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if the buffer is shorter than the message; [`MAX_MESSAGE`] bytes are enough.
    pub fn encode<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b [u8], WireError> {
        let mut writer = Writer::new(buffer);
        writer.u8(NAT_ID)?;
        match self {
            Self::Probe { token, port } => {
                writer.u8(16)?;
                writer.u64(*token)?;
                writer.u16(*port)?;
            }
            Self::Probed { token, mapped } => {
                writer.u8(17)?;
                writer.u64(*token)?;
                address::write(mapped, &mut writer)?;
            }
            Self::Begin { session, peer, connects, candidates } => {
                writer.u8(18)?;
                writer.u64(*session)?;
                writer.u64(peer.0)?;
                writer.u8(u8::from(*connects))?;
                write_addresses(candidates, &mut writer)?;
            }
            Self::Forwarded { session, peer, connects, port } => {
                writer.u8(19)?;
                writer.u64(*session)?;
                writer.u64(peer.0)?;
                writer.u8(u8::from(*connects))?;
                writer.u16(*port)?;
            }
            Self::Refused { peer, reason } => {
                writer.u8(20)?;
                writer.u64(peer.0)?;
                writer.u8(reason.to_byte())?;
            }
        }
        Ok(writer.finish())
    }

    /// Reads a message and ignores trailing bytes.
    ///
    /// # Errors
    /// A [`WireError`] if the message is malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let reader = &mut Reader::new(bytes);
        Ok(match kind(reader)? {
            16 => Self::Probe { token: reader.u64("token")?, port: reader.u16("port")? },
            17 => Self::Probed { token: reader.u64("token")?, mapped: address::read(reader, "mapped")? },
            18 => Self::Begin {
                session: reader.u64("session")?,
                peer: Guid(reader.u64("peer")?),
                connects: reader.u8("connects")? != 0,
                candidates: read_addresses(reader)?,
            },
            19 => Self::Forwarded {
                session: reader.u64("session")?,
                peer: Guid(reader.u64("peer")?),
                connects: reader.u8("connects")? != 0,
                port: reader.u16("port")?,
            },
            20 => Self::Refused {
                peer: Guid(reader.u64("peer")?),
                reason: Refusal::of_byte(reader.u8("reason")?)?,
            },
            _ => return Err(WireError::UnknownId),
        })
    }
}
