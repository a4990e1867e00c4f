//! The wire format of the transport: packet headers and the four-byte messages of the handshake.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! | 0 0 0 0 E F A R|     chunk     |     sequence, big-endian      |
//! +---------------+---------------+-------------------------------+
//! ```
//! R is bit 0: REL, A is ACK, F is FIN, E is END (docs/game-protocol.md#packets).

use crate::cursor::{Reader, Source, WireError, Writer};

/// The length of a header in bytes.
pub const HEADER: usize = 4;
/// The length of every chunk except the last, in bytes.
pub const CHUNK: usize = 504;
/// The maximum number of chunks of a payload.
pub const MAX_CHUNKS: usize = 256;
/// The maximum length of a payload in bytes.
pub const MAX_PAYLOAD: usize = CHUNK * MAX_CHUNKS;
/// The maximum length of a packet in bytes, without IP and UDP headers.
pub const MAX_PACKET: usize = HEADER + CHUNK;

const RELIABLE: u8 = 0x01;
const ACKNOWLEDGE: u8 = 0x02;
const FINAL: u8 = 0x04;
const END: u8 = 0x08;
const KNOWN: u8 = 0x0F;
/// The mask of the bits that mark an answer as repeatable; [`REPEATABLE`] is their value.
///
/// Bit 7 is clear in every header. An implementation that ignores bit 7 reads the answer as an acknowledgement of a
/// chunk that is not in flight, and ignores it.
const REPEATABLE_MASK: u32 = ((0x80 | END | ACKNOWLEDGE) as u32) << 24;
const REPEATABLE: u32 = ((0x80 | ACKNOWLEDGE) as u32) << 24;

/// The reliability of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Reliability {
    /// Sent once: it may be lost, but is never duplicated.
    Unreliable,
    /// Retransmitted until it is acknowledged: delivered exactly once, in any order.
    #[default]
    Reliable,
}

impl Reliability {
    /// Returns true if a message is retransmitted until it is acknowledged.
    #[must_use]
    pub const fn is_reliable(self) -> bool {
        matches!(self, Self::Reliable)
    }
}

/// The position of a chunk in its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// An inner chunk of full length; more chunks follow.
    Inner,
    /// The last chunk (FIN): its index determines the number of chunks.
    Last,
}

/// A packet header.
///
/// As in the original implementation, a reader ignores the upper four bits of the flags. With END all other flags are
/// ignored, and with ACK all flags except END.
///
/// ```
/// use rakwire::game_protocol::Reliability;
/// use rakwire::game_protocol::wire::{Header, Position};
///
/// let (header, body) = Header::read(&[0x05, 0, 0, 7, b'h', b'i'])?;
/// let chunk = Header::Chunk { reliability: Reliability::Reliable, position: Position::Last, chunk: 0, sequence: 7 };
/// assert_eq!((header, body), (chunk, &b"hi"[..]));
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Header {
    /// A chunk of a payload.
    Chunk {
        /// The reliability (REL); a reliable chunk must be acknowledged.
        reliability: Reliability,
        /// The position in the payload (FIN).
        position: Position,
        /// The index of the chunk in the payload.
        chunk: u8,
        /// The sequence of the payload.
        sequence: u16,
    },
    /// The acknowledgement of a reliable chunk (ACK; also written with FIN, as by the original implementation).
    Acknowledgement {
        /// The index of the chunk.
        chunk: u8,
        /// The sequence of the payload.
        sequence: u16,
    },
    /// The sender closes the connection (END; also written with FIN, as by the original implementation).
    End,
}

impl Header {
    /// Parses a header; returns it with the remaining bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if there are fewer than four bytes.
    pub fn read(packet: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let mut reader = Reader::new(packet);
        let flags = reader.u8("flags")?;
        let chunk = reader.u8("chunk")?;
        let sequence = reader.u16("sequence")?;
        let header = if flags & END != 0 {
            Self::End
        } else if flags & ACKNOWLEDGE != 0 {
            Self::Acknowledgement { chunk, sequence }
        } else {
            let reliability =
                if flags & RELIABLE == 0 { Reliability::Unreliable } else { Reliability::Reliable };
            let position = if flags & FINAL == 0 { Position::Inner } else { Position::Last };
            Self::Chunk { reliability, position, chunk, sequence }
        };
        Ok((header, reader.rest("body")))
    }

    /// Writes the header as the original implementation does.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if fewer than four bytes are left.
    pub fn write(self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        let (flags, chunk, sequence) = match self {
            Self::Chunk { reliability, position, chunk, sequence } => {
                let reliable = if reliability.is_reliable() { RELIABLE } else { 0 };
                let last = if position == Position::Last { FINAL } else { 0 };
                (reliable | last, chunk, sequence)
            }
            Self::Acknowledgement { chunk, sequence } => (ACKNOWLEDGE | FINAL, chunk, sequence),
            Self::End => (END | FINAL, 0, 0),
        };
        writer.u8(flags)?;
        writer.u8(chunk)?;
        writer.u16(sequence)
    }
}

/// A handshake message: a salt, a pepper or a seasoning, four bytes without a header.
///
/// The client sends a salt, and the server challenges the client with a pepper. The client answers with the seasoning,
/// which is the salt XOR the pepper (docs/game-protocol.md#handshake).
///
/// ```
/// use rakwire::game_protocol::wire::HandshakeWord;
///
/// let (salt, pepper) = (HandshakeWord(0x499E_D267), HandshakeWord(0xA1B2_C3D4));
/// assert_eq!(salt.season(pepper), HandshakeWord(0xE82C_11B3));
/// assert_eq!(HandshakeWord::read(&[0x49, 0x9E, 0xD2, 0x67])?, salt);
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HandshakeWord(pub u32);

impl HandshakeWord {
    /// Parses the first four bytes and ignores the rest, as in the original implementation.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if there are fewer than four bytes.
    pub fn read(datagram: &[u8]) -> Result<Self, WireError> {
        Reader::new(datagram).u32("handshake").map(Self)
    }

    /// Writes the four bytes.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if fewer than four bytes are left.
    pub fn write(self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        writer.u32(self.0)
    }

    /// Returns the seasoning: this word XOR `other`.
    #[must_use]
    pub const fn season(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }

    /// Creates a repeatable seasoning with 29 bits of `random`.
    pub(crate) const fn repeatable(random: u32) -> Self {
        Self(random & !REPEATABLE_MASK | REPEATABLE)
    }

    /// Returns true if repeating the seasoning is harmless to every server.
    ///
    /// This includes the original server (docs/game-protocol.md#repeated-seasoning).
    pub(crate) const fn is_repeatable(self) -> bool {
        self.0 & REPEATABLE_MASK == REPEATABLE
    }

    /// Returns true if an existing implementation could write these bytes as a header: the reserved bits are zero.
    pub(crate) const fn looks_like_a_header(self) -> bool {
        self.0 >> 24 & !(KNOWN as u32) == 0
    }
}

/// Returns the number of chunks of a payload of this length; 0 for an empty one.
///
/// ```
/// use rakwire::game_protocol::wire::chunks_of;
///
/// assert_eq!([0, 1, 504, 505, 129_024].map(chunks_of), [0, 1, 1, 2, 256]);
/// ```
#[must_use]
pub const fn chunks_of(payload: usize) -> usize {
    payload.div_ceil(CHUNK)
}
