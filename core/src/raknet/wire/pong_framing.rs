//! The length before the data of a pong (docs/raknet.md#advertisements).

use super::offline::MAX_PONG_DATA;
use crate::cursor::{Reader, Source, WireError, Writer};

/// What stands before the data of a pong.
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
    /// Nothing, as in the original.
    #[default]
    Raw,
    /// The length in bytes (`u16`, big endian), as Minecraft Bedrock does.
    Prefixed,
}

/// The newest protocol version of the original, whose pongs carry their data without a length.
const NEWEST_RAW: u8 = 6;

impl PongFraming {
    /// The framing that goes with a protocol version: that of the original up to 6, and that of Minecraft Bedrock above.
    #[must_use]
    pub const fn of_version(version: u8) -> Self {
        if version <= NEWEST_RAW { Self::Raw } else { Self::Prefixed }
    }

    /// The framing that fits `data`: prefixed if it begins with the number of the bytes that follow.
    ///
    /// Text of at most 399 bytes cannot be mistaken for it unless it begins with a control character.
    #[must_use]
    pub fn of(data: &[u8]) -> Self {
        let mut reader = Reader::new(data);
        match reader.u16("length") {
            Ok(length) if usize::from(length) == reader.remaining() => Self::Prefixed,
            Ok(_) | Err(_) => Self::Raw,
        }
    }

    /// The text in the data of a pong. What follows a text with its length is ignored.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when the length is more than what follows, [`WireError::BadLength`] when `data` is
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

    /// Writes the data of a pong that carries `text`, at most 399 bytes with the length.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] when the buffer is too small, [`WireError::BadLength`] when no pong is large enough.
    pub fn frame<'b>(self, text: &[u8], buffer: &'b mut [u8]) -> Result<&'b [u8], WireError> {
        self.compose(buffer, |writer| writer.bytes(text))
    }

    /// Writes what `write` does, with the length before it.
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
