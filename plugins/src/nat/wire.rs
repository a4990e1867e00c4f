//! The messages of NAT traversal (docs/plugins/nat.md).

use core::net::SocketAddr;

use heapless::Vec;
use rakwire::raknet::Guid;
use rakwire::wire::{Reader, Source, WireError, Writer, address};

/// The first byte of all messages, those on connections and those out of band.
pub const NAT_ID: u8 = 133;
/// The most addresses that a client names of its own interfaces.
pub const MAX_INTERNAL: usize = 4;
/// The most addresses at which a peer is looked for.
pub const MAX_CANDIDATES: usize = 16;
/// Bytes of the longest message on a connection: one with candidates that all have IPv6.
pub const MAX_MESSAGE: usize = 2 + 8 + 8 + 1 + 1 + MAX_CANDIDATES * 29;
/// Bytes of a message out of band.
pub const PUNCH_LEN: usize = 10;

/// What a client says to the facilitator, on its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromClient {
    /// 1: the addresses of its interfaces.
    Hello {
        /// With the port of its socket.
        internal: Vec<SocketAddr, MAX_INTERNAL>,
    },
    /// 2: it wants a connection with a peer.
    Open {
        /// The peer.
        target: Guid,
    },
    /// 3: nothing got through, or the connection that was tried did not open.
    Failed {
        /// The session.
        session: u64,
    },
    /// 4: it heard from a port of the facilitator to which it has not sent.
    Heard {
        /// The token of the [`PunchKind::Knock`].
        token: u64,
    },
    /// 5: it is connected with the peer, so that the attempt is over.
    Connected {
        /// The session.
        session: u64,
    },
}

/// What the facilitator says to a client, on its connection.
#[expect(clippy::large_enum_variant, reason = "without an allocator the addresses have no other place")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromFacilitator {
    /// 16: send a [`PunchKind::Probe`] to this port of the facilitator's address.
    Probe {
        /// What the probe carries.
        token: u64,
        /// The port.
        port: u16,
    },
    /// 17: where a probe came from, as the facilitator sees it. The first follows [`FromClient::Hello`], which others can ask for
    /// the client from then on.
    Probed {
        /// That of the probe; 0 stands for the connection itself.
        token: u64,
        /// The address outside.
        mapped: SocketAddr,
    },
    /// 18: look for a peer, by sending punches.
    Begin {
        /// What the punches carry.
        session: u64,
        /// The peer.
        peer: Guid,
        /// Whether this client connects once something gets through; the peer does otherwise.
        connects: bool,
        /// Where the peer may be.
        candidates: Vec<SocketAddr, MAX_CANDIDATES>,
    },
    /// 19: look for the peer at this port of the facilitator's address, which forwards datagrams.
    Forwarded {
        /// What the punches carry.
        session: u64,
        /// The peer.
        peer: Guid,
        /// Whether this client connects.
        connects: bool,
        /// The port.
        port: u16,
    },
    /// 20: there will be no connection.
    Refused {
        /// The peer.
        peer: Guid,
        /// Why.
        reason: Refusal,
    },
}

/// Why a facilitator does not bring two peers together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The other peer is not connected to the facilitator.
    NotConnected,
    /// The facilitator, or one of both peers, has no room for another attempt now.
    Busy,
    /// Nothing gets through between the two, and the facilitator does not forward.
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
            Self::NotConnected => "the other peer is not connected to the facilitator",
            Self::Busy => "there is no room for another attempt now; try again later",
            Self::NoPath => "nothing gets through between the two, and the facilitator does not forward",
        })
    }
}

/// What a message out of band is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PunchKind {
    /// 1: from a client to a port of the facilitator, which so learns of an address outside.
    Probe,
    /// 2: from a port of the facilitator to a client, which has not sent there.
    Knock,
    /// 3: from the peer that will connect.
    ToAccepting,
    /// 4: from the peer that will accept.
    ToConnecting,
    /// 5: the answer to a punch.
    Ack,
}

/// A message out of band: the id, its kind and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Punch {
    /// What it is for.
    pub kind: PunchKind,
    /// The session, or the token of a probe or knock.
    pub number: u64,
}

impl Punch {
    const KINDS: [(u8, PunchKind); 5] = [
        (1, PunchKind::Probe),
        (2, PunchKind::Knock),
        (3, PunchKind::ToAccepting),
        (4, PunchKind::ToConnecting),
        (5, PunchKind::Ack),
    ];

    /// Its bytes.
    #[must_use]
    pub fn encode(self) -> [u8; PUNCH_LEN] {
        let kind = Self::KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or(0, |(byte, _)| *byte);
        let [a, b, c, d, e, f, g, h] = self.number.to_be_bytes();
        [NAT_ID, kind, a, b, c, d, e, f, g, h]
    }

    /// Reads it. What is behind it is ignored.
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

/// The id and the kind of a message.
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
            Self::Heard { token } => {
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

    /// Reads a message. What is behind it is ignored.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let reader = &mut Reader::new(bytes);
        Ok(match kind(reader)? {
            1 => Self::Hello { internal: read_addresses(reader)? },
            2 => Self::Open { target: Guid(reader.u64("target")?) },
            3 => Self::Failed { session: reader.u64("session")? },
            4 => Self::Heard { token: reader.u64("token")? },
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

    /// Reads a message. What is behind it is ignored.
    ///
    /// # Errors
    /// What is wrong with it.
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
