//! Packets of the Game Protocol, written only from docs/game-protocol.md.

/// The flag of a reliable packet, which requests an acknowledgement.
pub const REL: u8 = 1;
/// The flag of an acknowledgement.
pub const ACK: u8 = 2;
/// The flag of the last chunk.
pub const FIN: u8 = 4;
/// The flag of a packet that closes the connection.
pub const END: u8 = 8;
/// The maximum number of bytes in a chunk.
pub const CHUNK: usize = 504;

/// A packet of a connection of the Game Protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The flags: a combination of [`REL`], [`ACK`], [`FIN`] and [`END`].
    pub flags: u8,
    /// The index of the chunk.
    pub chunk: u8,
    /// The sequence number of the payload.
    pub sequence: u16,
    /// The bytes of the chunk.
    pub body: Vec<u8>,
}

impl Packet {
    /// Creates a packet.
    #[must_use]
    pub fn new(flags: u8, chunk: u8, sequence: u16, body: &[u8]) -> Self {
        Self { flags, chunk, sequence, body: body.to_vec() }
    }

    /// Decodes a packet; `None` for datagrams that are too short.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (&[flags, chunk, high, low], body) = bytes.split_first_chunk::<4>()?;
        Some(Self { flags, chunk, sequence: u16::from_be_bytes([high, low]), body: body.to_vec() })
    }

    /// Encodes the packet.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let [high, low] = self.sequence.to_be_bytes();
        [&[self.flags, self.chunk, high, low][..], &self.body].concat()
    }
}

/// Splits a payload into packets.
#[must_use]
pub fn cut(reliable: bool, sequence: u16, payload: &[u8]) -> Vec<Packet> {
    let chunks: Vec<&[u8]> = payload.chunks(CHUNK).collect();
    let flags = |index: usize| {
        let last = if index + 1 == chunks.len() { FIN } else { 0 };
        (u8::from(reliable) * REL) | last
    };
    (0..).zip(&chunks).map(|(at, body)| Packet::new(flags(at), at as u8, sequence, body)).collect()
}
