//! Length-prefixed messages in a byte stream, as in RakNet's `PacketizedTCP`.
//!
//! A frame is a header of [`HEADER_LEN`] bytes and the message. The header is the length of the message as a big-endian
//! `u32`, without the header itself. RakNet has no limit, so a header may declare up to 4 GiB. The reader of this
//! module fails if a header declares more bytes than its memory holds.

/// The length of a frame's header in bytes.
pub const HEADER_LEN: usize = 4;

/// Returns the header of a frame.
///
/// ```
/// use rakwire::codec::frames::{header, message_len};
///
/// assert_eq!(header(0x0102), [0, 0, 1, 2]);
/// assert_eq!(message_len([0, 0, 1, 2]), 0x0102);
/// ```
#[must_use]
pub const fn header(message_len: u32) -> [u8; HEADER_LEN] {
    message_len.to_be_bytes()
}

/// Returns the message length in a header, 0 to 4,294,967,295.
#[must_use]
pub const fn message_len(header: [u8; HEADER_LEN]) -> u32 {
    u32::from_be_bytes(header)
}

error_enum! {
    /// The reason why a stream of frames cannot be read any further.
    #[non_exhaustive]
    pub enum FrameError {
        /// A header declares more bytes than the reader's memory holds, so the next frame cannot be found.
        TooLong => "a message is longer than the reader's memory",
    }
}

/// Reads frames from a stream, one by one, into borrowed memory.
///
/// Read bytes into [`unfilled`](Self::unfilled) and pass their number to [`advance`](Self::advance). An asynchronous
/// read that is cancelled between the two calls loses no bytes.
///
/// ```
/// use rakwire::codec::frames::FrameReader;
///
/// let mut stream: &[u8] = &[0, 0, 0, 2, b'h', b'i', 0, 0, 0, 1, b'!'];
/// let mut memory = [0; 16];
/// let mut reader = FrameReader::new(&mut memory);
/// let mut messages = Vec::new();
/// while !stream.is_empty() {
///     let unfilled = reader.unfilled();
///     let n = unfilled.len().min(stream.len());
///     unfilled[..n].copy_from_slice(&stream[..n]);
///     stream = &stream[n..];
///     reader.advance(n)?;
///     if let Some(message) = reader.message() {
///         messages.push(message.to_vec());
///         reader.next();
///     }
/// }
/// assert_eq!(messages, [&b"hi"[..], b"!"]);
/// # Ok::<(), rakwire::codec::frames::FrameError>(())
/// ```
#[derive(Debug)]
pub struct FrameReader<'a> {
    memory: &'a mut [u8],
    header: [u8; HEADER_LEN],
    /// The number of received bytes of the current header and message.
    received: usize,
}

impl<'a> FrameReader<'a> {
    /// Creates a reader at the start of a stream. `memory` limits the length of a message.
    #[must_use]
    pub const fn new(memory: &'a mut [u8]) -> Self {
        Self { memory, header: [0; HEADER_LEN], received: 0 }
    }

    /// Returns the space for the next bytes of the stream. It is empty while a [`message`](Self::message) is
    /// available.
    pub fn unfilled(&mut self) -> &mut [u8] {
        let Some(of_message) = self.received.checked_sub(HEADER_LEN) else {
            return self.header.get_mut(self.received..).unwrap_or_default();
        };
        let len = self.len().unwrap_or_default();
        self.memory.get_mut(of_message..len).unwrap_or_default()
    }

    /// Records that `n` bytes were written to the front of [`unfilled`](Self::unfilled); a larger `n` is clamped to
    /// its length.
    ///
    /// # Errors
    /// [`FrameError::TooLong`] if the header is complete and declares more bytes than the memory holds.
    pub fn advance(&mut self, n: usize) -> Result<(), FrameError> {
        self.received += n.min(self.unfilled().len());
        if self.received == HEADER_LEN && self.len().is_none() {
            return Err(FrameError::TooLong);
        }
        Ok(())
    }

    /// Returns the message, once it is complete.
    #[must_use]
    pub fn message(&self) -> Option<&[u8]> {
        let of_message = self.received.checked_sub(HEADER_LEN)?;
        let len = self.len()?;
        self.memory.get(..len).filter(|_| of_message == len)
    }

    /// Discards the message, to read the next frame.
    pub const fn next(&mut self) {
        self.received = 0;
    }

    /// Returns true if only part of a frame was received. If the stream ends at this point, it is truncated.
    #[must_use]
    pub fn is_within_frame(&self) -> bool {
        self.received > 0 && self.message().is_none()
    }

    /// Returns the length that the header declares, or `None` if it exceeds the memory.
    fn len(&self) -> Option<usize> {
        usize::try_from(message_len(self.header)).ok().filter(|len| *len <= self.memory.len())
    }
}

#[cfg(test)]
mod tests {
    //! Tests of frames from streams that are split at any position.

    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// The size of the reader's memory in bytes.
    const ROOM: usize = 64;

    /// Feeds a stream in pieces of the given lengths, then byte by byte.
    fn read(mut stream: &[u8], pieces: &[usize]) -> Result<(Vec<Vec<u8>>, bool), FrameError> {
        let mut memory = [0; ROOM];
        let mut reader = FrameReader::new(&mut memory);
        let mut messages = Vec::new();
        let mut pieces = pieces.iter().copied();
        while !stream.is_empty() {
            let unfilled = reader.unfilled();
            let n = pieces.next().unwrap_or(1).clamp(1, unfilled.len().min(stream.len()));
            unfilled[..n].copy_from_slice(&stream[..n]);
            stream = &stream[n..];
            reader.advance(n)?;
            if let Some(message) = reader.message() {
                messages.push(message.to_vec());
                assert!(reader.unfilled().is_empty());
                reader.next();
            }
        }
        Ok((messages, reader.is_within_frame()))
    }

    proptest! {
        #[test]
        fn frames_are_read_from_streams_split_at_any_byte(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..=ROOM), 0..6),
            pieces in prop::collection::vec(1..200usize, 0..40),
            rest in 0..3usize,
        ) {
            let frame = |message: &Vec<u8>| [&header(message.len() as u32)[..], message].concat();
            let mut stream: Vec<u8> = messages.iter().flat_map(frame).collect();
            stream.extend(core::iter::repeat_n(0, rest));
            prop_assert_eq!(read(&stream, &pieces), Ok((messages, rest > 0)));
        }

        #[test]
        fn a_frame_longer_than_the_memory_is_an_error(len in ROOM as u32 + 1.., behind in prop::collection::vec(any::<u8>(), 0..9)) {
            let stream = [&header(len)[..], &behind].concat();
            prop_assert_eq!(read(&stream, &[]), Err(FrameError::TooLong));
        }
    }
}
