//! The header of a voice frame (docs/plugins/voice.md).

/// The length of the header in bytes: the id, the flags and the number.
pub const HEADER_LEN: usize = 4;
const FIRST: u8 = 1;
const LAST: u8 = 2;

/// The header of a frame, without the message id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The number of the frame, which wraps around from 65,535 to 0.
    pub number: u16,
    /// True if the frame starts a talk spurt: frames before it are not missing.
    pub is_first: bool,
    /// True if the frame ends a talk spurt: no frame follows it immediately.
    pub is_last: bool,
}

impl Header {
    /// Encodes the header, after an id.
    #[must_use]
    pub const fn encode(self, id: u8) -> [u8; HEADER_LEN] {
        let flags = if self.is_first { FIRST } else { 0 } | if self.is_last { LAST } else { 0 };
        let [high, low] = self.number.to_be_bytes();
        [id, flags, high, low]
    }

    /// Decodes a header, and returns it with the frame after it; `None` if there is no frame or a flag is unknown.
    #[must_use]
    pub fn decode(message: &[u8]) -> Option<(Self, &[u8])> {
        let (&[_, flags, high, low], frame) = message.split_first_chunk()?;
        let header = Self {
            number: u16::from_be_bytes([high, low]),
            is_first: flags & FIRST != 0,
            is_last: flags & LAST != 0,
        };
        (flags & !(FIRST | LAST) == 0 && !frame.is_empty()).then_some((header, frame))
    }
}
