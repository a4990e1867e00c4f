//! The wire format of the transport: packet headers and the bare numbers of the handshake.
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

/// Length of a header.
pub const HEADER: usize = 4;
/// Length of every chunk except the last one.
pub const CHUNK: usize = 504;
/// The maximum number of chunks of a payload.
pub const MAX_CHUNKS: usize = 256;
/// The maximum length of a payload.
pub const MAX_PAYLOAD: usize = CHUNK * MAX_CHUNKS;
/// The maximum length of a packet, without IP and UDP headers.
pub const MAX_PACKET: usize = HEADER + CHUNK;

const RELIABLE: u8 = 0x01;
const ACKNOWLEDGE: u8 = 0x02;
const FINAL: u8 = 0x04;
const END: u8 = 0x08;
const KNOWN: u8 = 0x0F;
/// The bits of the first byte that mark a repeatable seasoning, and their value below.
///
/// No header has the first of these bits set. An implementation that ignores this bit takes the seasoning for an
/// acknowledgement of nothing.
const REPEATABLE_MASK: u32 = ((0x80 | END | ACKNOWLEDGE) as u32) << 24;
const REPEATABLE: u32 = ((0x80 | ACKNOWLEDGE) as u32) << 24;

/// The delivery guarantee of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Reliability {
    /// Sent once: may be lost, never arrives twice.
    Unreliable,
    /// Resent until it is acknowledged: arrives once, in any order.
    #[default]
    Reliable,
}

impl Reliability {
    /// Returns whether a message is resent until it is acknowledged.
    #[must_use]
    pub const fn is_reliable(self) -> bool {
        matches!(self, Self::Reliable)
    }
}

/// The position of a chunk in its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// An inner chunk: it is full, and more chunks follow.
    Inner,
    /// The last chunk (FIN): its index determines the number of chunks.
    Last,
}

/// The contents of a packet header.
///
/// Like the original, reading ignores the high half of the flags, and flags without a meaning next to stronger
/// ones: END before ACK before the rest.
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
        /// The delivery guarantee; a reliable chunk must be acknowledged (REL).
        reliability: Reliability,
        /// The position in the payload (FIN).
        position: Position,
        /// Its index in the payload.
        chunk: u8,
        /// The sequence of its payload.
        sequence: u16,
    },
    /// The acknowledgement of a reliable chunk (ACK; written with FIN, as by the original).
    Acknowledgement {
        /// The index of the chunk.
        chunk: u8,
        /// The sequence of its payload.
        sequence: u16,
    },
    /// The end of the connection (END; written with FIN, as by the original).
    End,
}

impl Header {
    /// Reads a header and returns it with the bytes after it.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when there are fewer than four bytes.
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

    /// Writes the header as the original does.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] when there is no room for four bytes.
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

/// A datagram of the handshake: a salt, a pepper or a seasoning, four bytes without a header.
///
/// The seasoning is the salt XOR the pepper (docs/game-protocol.md#handshake).
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
    /// Reads the first four bytes and ignores the rest, like the original.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when there are fewer.
    pub fn read(datagram: &[u8]) -> Result<Self, WireError> {
        Reader::new(datagram).u32("handshake").map(Self)
    }

    /// Writes the four bytes.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] when there is no room for them.
    pub fn write(self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        writer.u32(self.0)
    }

    /// Returns the answer to a challenge.
    #[must_use]
    pub const fn season(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }

    /// Returns a repeatable seasoning with 29 bits of `random`.
    pub(crate) const fn repeatable(random: u32) -> Self {
        Self(random & !REPEATABLE_MASK | REPEATABLE)
    }

    /// Returns whether a repetition of the seasoning is harmless to every server.
    ///
    /// This includes the original (docs/game-protocol.md#repeated-seasoning).
    pub(crate) const fn is_repeatable(self) -> bool {
        self.0 & REPEATABLE_MASK == REPEATABLE
    }

    /// Returns whether an existing implementation could write a header with these bytes: the reserved bits are
    /// zero.
    pub(crate) const fn looks_like_a_header(self) -> bool {
        self.0 >> 24 & !(KNOWN as u32) == 0
    }
}

/// Returns the number of chunks of a payload; an empty one has none.
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
