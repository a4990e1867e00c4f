//! Frames from streams that are cut anywhere.

use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

/// The room of the reader.
const ROOM: usize = 64;

/// Feeds a stream in pieces of the given lengths, then byte by byte.
fn read(mut stream: &[u8], pieces: &[usize]) -> Result<(Vec<Vec<u8>>, bool), FrameError> {
    let mut memory = [0; ROOM];
    let mut reader = FrameReader::new(&mut memory);
    let mut messages = Vec::new();
    let mut pieces = pieces.iter().copied();
    while !stream.is_empty() {
        let vacant = reader.vacant();
        let n = pieces.next().unwrap_or(1).clamp(1, vacant.len().min(stream.len()));
        vacant[..n].copy_from_slice(&stream[..n]);
        stream = &stream[n..];
        reader.advance(n)?;
        if let Some(message) = reader.message() {
            messages.push(message.to_vec());
            assert!(reader.vacant().is_empty());
            reader.next();
        }
    }
    Ok((messages, reader.is_within_frame()))
}

proptest! {
    #[test]
    fn frames_are_read_wherever_the_stream_is_cut(
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
    fn a_frame_beyond_the_room_ends_the_stream(len in ROOM as u32 + 1.., behind in prop::collection::vec(any::<u8>(), 0..9)) {
        let stream = [&header(len)[..], &behind].concat();
        prop_assert_eq!(read(&stream, &[]), Err(FrameError::TooLong));
    }
}
