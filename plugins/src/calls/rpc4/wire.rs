//! The wire format of RPC4 (docs/plugins/calls.md#rpc4).

use rakwire::codec::bitstream::{BitStreamReader, BitStreamWriter};
use rakwire::wire::WireError;

use crate::calls::MAX_NAME;

/// The first byte of calls, answers and signals.
pub const MESSAGE_ID: u8 = 74;
/// The first byte of the error for an unknown function.
pub const ERROR_ID: u8 = 73;

const CALL: u8 = 0;
const ANSWER: u8 = 1;
const SIGNAL: u8 = 2;
/// The only error code of RPC4.
const NOT_REGISTERED: u8 = 0;

/// A message. The bit stream after the header starts at a byte boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'m> {
    /// Calls a function.
    Call {
        /// The name of the function, up to [`MAX_NAME`] bytes.
        name: &'m [u8],
        /// True if the caller waits for an answer.
        is_answered: bool,
        /// The arguments.
        arguments: &'m [u8],
    },
    /// Answers the current answered call.
    Answer {
        /// The answer.
        answer: &'m [u8],
    },
    /// Sends a signal, which has no answer.
    Signal {
        /// The name of the signal, up to [`MAX_NAME`] bytes.
        name: &'m [u8],
        /// The arguments.
        arguments: &'m [u8],
    },
    /// Reports that no function of this name is registered.
    Unknown {
        /// The name, up to [`MAX_NAME`] bytes.
        name: &'m [u8],
    },
}

impl<'m> Message<'m> {
    /// Encodes the message at the start of a buffer. Returns its length, or `None` if it does not fit.
    #[must_use]
    pub fn encode(&self, buffer: &mut [u8]) -> Option<usize> {
        let mut writer = BitStreamWriter::new(buffer);
        self.write(&mut writer).ok()?;
        Some(writer.finish().len())
    }

    fn write(&self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
        match *self {
            Self::Call { name, is_answered, arguments } => {
                writer.bits().bytes(&[MESSAGE_ID, CALL])?;
                writer.compressed_string(name)?;
                writer.write(is_answered)?;
                writer.bits().align();
                writer.bits().bytes(arguments)
            }
            Self::Answer { answer } => {
                writer.bits().bytes(&[MESSAGE_ID, ANSWER])?;
                writer.bits().bytes(answer)
            }
            Self::Signal { name, arguments } => {
                writer.bits().bytes(&[MESSAGE_ID, SIGNAL])?;
                writer.compressed_string(name)?;
                writer.bits().align();
                writer.bits().bytes(arguments)
            }
            Self::Unknown { name } => {
                writer.bits().bytes(&[ERROR_ID, NOT_REGISTERED])?;
                writer.bits().bytes(name)?;
                writer.bits().bytes(&[0])
            }
        }
    }

    /// Decodes a message. Returns `None` if it is malformed. A compressed name is expanded into the buffer.
    #[must_use]
    pub fn decode(bytes: &'m [u8], name: &'m mut [u8; MAX_NAME]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk()?;
        let mut reader = BitStreamReader::new(rest);
        match *header {
            [MESSAGE_ID, CALL] => {
                let name = reader.compressed_string(name).ok()?;
                let is_answered = reader.read().ok()?;
                Some(Self::Call { name, is_answered, arguments: aligned(reader, rest) })
            }
            [MESSAGE_ID, ANSWER] => Some(Self::Answer { answer: rest }),
            [MESSAGE_ID, SIGNAL] => {
                let name = reader.compressed_string(name).ok()?;
                Some(Self::Signal { name, arguments: aligned(reader, rest) })
            }
            [ERROR_ID, NOT_REGISTERED] => {
                let name = rest.split(|byte| *byte == 0).next().unwrap_or_default();
                (name.len() < rest.len() && name.len() <= MAX_NAME).then_some(Self::Unknown { name })
            }
            _ => None,
        }
    }
}

/// Returns the bytes from the next byte boundary on.
fn aligned<'m>(mut reader: BitStreamReader<'_>, bytes: &'m [u8]) -> &'m [u8] {
    reader.bits().align();
    let begun = bytes.len().saturating_sub(reader.remaining() / 8);
    bytes.get(begun..).unwrap_or_default()
}
