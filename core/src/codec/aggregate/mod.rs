//! Several small messages packed into one: the `PacketAggregator` of the RakNet documentation.
//!
//! The RakNet documentation specifies only the first two bytes; this module defines the rest. The format is not part of
//! RakNet, so both peers must support it.
//!
//! | field | bytes | |
//! |---|---|---|
//! | id | 1 | 0x86 + n, chosen by the application ([`AggregateId`]) |
//! | compression | 1 | 0 none, 1 deflate ([`Compression`]) |
//! | plain: messages | to the end | the length of each, then its bytes |
//! | deflate: length | 1 to 4 | of the messages before compression |
//! | deflate: stream | to the end | raw deflate (RFC 1951) of all messages with their lengths |
//!
//! A length is below 2^28. It is encoded in groups of seven bits, the lowest first; bit 7 is set in all bytes except
//! the last. The shortest encoding is mandatory. No message is empty, and none begins with the id of its aggregate, so
//! aggregates do not nest.
//!
//! **Bounds.** Reading a plain aggregate copies nothing. A compressed one declares the length of its contents. It is
//! refused if the provided buffer is shorter, if the plain form would not be longer than the compressed form, or if the
//! stream has another length. Decompression bombs, and long streams that decompress to nothing, therefore take little
//! time and memory.
//!
//! Compression needs the feature `deflate`: reading then works without an allocator, and writing also needs `alloc`. Do
//! not compress secrets together with data that an attacker can choose, because the compressed length reveals
//! information about the contents.

#[cfg(feature = "deflate")]
mod deflate;

use crate::cursor::{Reader, Source, WireError, Writer};
use crate::raknet::wire::id;

#[cfg(feature = "deflate")]
pub use deflate::Inflater;
#[cfg(all(feature = "deflate", feature = "alloc"))]
pub use deflate::{CompressError, Deflater};

/// The id of an application's aggregates, 0x86 to 0xFF.
///
/// ```
/// use rakwire::codec::aggregate::AggregateId;
///
/// assert_eq!(AggregateId::nth(22).map(AggregateId::get), Some(0x9C));
/// assert_eq!(AggregateId::nth(200), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AggregateId(u8);

impl AggregateId {
    /// Returns the id 0x86 + `n`, or `None` if it exceeds 0xFF.
    #[must_use]
    pub const fn nth(n: u8) -> Option<Self> {
        match id::USER.checked_add(n) {
            Some(id) => Some(Self(id)),
            None => None,
        }
    }

    /// Returns the first byte of aggregates with this id.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// The compression of an aggregate's messages.
///
/// ```
/// use rakwire::codec::aggregate::{Aggregate, AggregateId, Compression};
///
/// let id = AggregateId::nth(0).ok_or("no such id")?;
/// assert_eq!(Aggregate::read(id, &[0x86, 0, 1, 0xAA])?.compression(), Compression::None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// No compression (0).
    None,
    /// A raw deflate stream (1).
    Deflate,
}

/// The length of the bytes before the messages.
const HEAD: usize = 2;
/// The exclusive limit of lengths, which fit into four groups of seven bits.
const LENGTH_END: usize = 1 << 28;

/// Collects messages in a borrowed buffer.
///
/// ```
/// use rakwire::codec::aggregate::{Aggregate, AggregateId, Packer};
///
/// let id = AggregateId::nth(22).ok_or("no such id")?;
/// let mut buffer = [0; 32];
/// let mut packer = Packer::new(id, &mut buffer)?;
/// packer.push(b"\xA0one")?;
/// packer.push(b"\xA1three")?;
/// let bytes = packer.finish();
/// assert_eq!(bytes, b"\x9C\x00\x04\xA0one\x06\xA1three");
///
/// let messages: Vec<&[u8]> = Aggregate::read(id, bytes)?.messages()?.collect();
/// assert_eq!(messages, [&b"\xA0one"[..], b"\xA1three"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Packer<'b> {
    id: AggregateId,
    writer: Writer<'b>,
}

impl<'b> Packer<'b> {
    /// Starts an empty aggregate.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if the buffer has fewer than two bytes.
    pub fn new(id: AggregateId, buffer: &'b mut [u8]) -> Result<Self, WireError> {
        let mut writer = Writer::new(buffer);
        writer.bytes(&[id.0, 0])?;
        Ok(Self { id, writer })
    }

    /// Adds a message, preceded by 1 to 4 bytes of length.
    ///
    /// # Errors
    /// On an error the aggregate is unchanged.
    ///
    /// - [`WireError::NoRoom`] if it does not fit; send this aggregate and add the message to the next one.
    /// - [`WireError::BadLength`] if it is empty or has 2^28 bytes or more.
    /// - [`WireError::BadValue`] if it begins with the id of this aggregate.
    pub fn push(&mut self, message: &[u8]) -> Result<(), WireError> {
        check(self.id, message)?;
        if message.len() >= LENGTH_END {
            return Err(WireError::BadLength);
        }
        if self.writer.room() < length_of_length(message.len()) + message.len() {
            return Err(WireError::NoRoom);
        }
        write_length(&mut self.writer, message.len())?;
        self.writer.bytes(message)
    }

    /// Returns true if no message was added yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.writer.written() == HEAD
    }

    /// Returns the length of the aggregate so far in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.writer.written()
    }

    /// Returns the aggregate, ready to be sent as a message.
    #[must_use]
    pub fn finish(self) -> &'b [u8] {
        self.writer.finish()
    }
}

/// A received aggregate, before its messages are unpacked.
///
/// ```
/// use rakwire::codec::aggregate::{Aggregate, AggregateId};
/// use rakwire::wire::WireError;
///
/// let id = AggregateId::nth(0).ok_or("no such id")?;
/// let aggregate = Aggregate::read(id, &[0x86, 0, 1, 0xAA, 2, 0xBB, 0xCC])?;
/// assert_eq!(aggregate.messages()?.count(), 2);
///
/// // A length beyond the end: none of the messages is accepted.
/// let cut_off = Aggregate::read(id, &[0x86, 0, 1, 0xAA, 2, 0xBB])?;
/// assert_eq!(cut_off.messages().err(), Some(WireError::Truncated));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregate<'a> {
    id: AggregateId,
    compression: Compression,
    body: &'a [u8],
}

impl<'a> Aggregate<'a> {
    /// Parses the header of an aggregate with this id.
    ///
    /// # Errors
    /// [`WireError::UnknownId`] if `message` begins with another id, [`WireError::BadValue`] if the compression is
    /// unknown, [`WireError::Truncated`] if it has fewer than two bytes.
    pub fn read(id: AggregateId, message: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(message);
        if reader.u8("id")? != id.0 {
            return Err(WireError::UnknownId);
        }
        let compression = match reader.u8("compression")? {
            0 => Compression::None,
            1 => Compression::Deflate,
            _ => return Err(WireError::BadValue),
        };
        Ok(Self { id, compression, body: reader.rest("messages") })
    }

    /// Returns the compression of the messages.
    #[must_use]
    pub const fn compression(&self) -> Compression {
        self.compression
    }

    /// Returns the messages of a plain aggregate. All lengths are validated before the first message is returned.
    ///
    /// # Errors
    /// - [`WireError::BadValue`] if the aggregate is compressed, or a message begins with the aggregate's id.
    /// - [`WireError::BadLength`] if a length is zero or not in its shortest form.
    /// - [`WireError::Truncated`] if a message is incomplete.
    pub fn messages(&self) -> Result<Messages<'a>, WireError> {
        match self.compression {
            Compression::None => Messages::check(self.id, self.body),
            Compression::Deflate => Err(WireError::BadValue),
        }
    }
}

/// The messages of an aggregate, in the order in which they were added. No message is empty.
///
/// ```
/// use rakwire::codec::aggregate::{Aggregate, AggregateId, Messages};
///
/// fn total(messages: Messages<'_>) -> usize {
///     messages.map(<[u8]>::len).sum()
/// }
/// let id = AggregateId::nth(0).ok_or("no such id")?;
/// assert_eq!(total(Aggregate::read(id, &[0x86, 0, 1, 0xAA, 2, 0xBB, 0xCC])?.messages()?), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    rest: Reader<'a>,
}

impl<'a> Messages<'a> {
    fn check(id: AggregateId, body: &'a [u8]) -> Result<Self, WireError> {
        let messages = Self { rest: Reader::new(body) };
        let mut ahead = messages.clone();
        while ahead.rest.remaining() > 0 {
            check(id, ahead.message()?)?;
        }
        Ok(messages)
    }

    fn message(&mut self) -> Result<&'a [u8], WireError> {
        let length = read_length(&mut self.rest)?;
        self.rest.bytes("message", length)
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.message().ok()
    }
}

fn check(id: AggregateId, message: &[u8]) -> Result<(), WireError> {
    match message.first() {
        None => Err(WireError::BadLength),
        Some(first) if *first == id.0 => Err(WireError::BadValue),
        Some(_) => Ok(()),
    }
}

const fn length_of_length(length: usize) -> usize {
    match length {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        _ => 4,
    }
}

fn write_length(writer: &mut Writer<'_>, length: usize) -> Result<(), WireError> {
    let mut rest = length;
    while rest >= 0x80 {
        writer.u8((rest & 0x7F) as u8 | 0x80)?;
        rest >>= 7;
    }
    writer.u8(rest as u8)
}

fn read_length<'a, S: Source<'a>>(source: &mut S) -> Result<usize, WireError> {
    let mut length = 0;
    for place in 0..4 {
        let group = source.u8("length")?;
        length |= usize::from(group & 0x7F) << (7 * place);
        if group < 0x80 {
            return if group == 0 && place > 0 { Err(WireError::BadLength) } else { Ok(length) };
        }
    }
    Err(WireError::BadLength)
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn id() -> AggregateId {
        AggregateId::nth(22).expect("a supported id")
    }

    fn pack(messages: &[Vec<u8>]) -> Vec<u8> {
        let mut buffer = vec![0xEE; 100_000];
        let mut packer = Packer::new(id(), &mut buffer).expect("enough space");
        assert!(packer.is_empty());
        messages.iter().for_each(|message| packer.push(message).expect("enough space"));
        let length = packer.len();
        let bytes = packer.finish();
        assert_eq!(bytes.len(), length);
        bytes.to_vec()
    }

    fn messages() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let message = prop_oneof![
            8 => proptest::collection::vec(any::<u8>(), 1..200),
            1 => (any::<u8>(), 100..20_000_usize).prop_map(|(byte, length)| vec![byte; length]),
        ];
        let allowed = message.prop_filter("aggregates do not nest", |message| message[0] != 0x9C);
        proptest::collection::vec(allowed, 0..4)
    }

    #[test]
    fn an_aggregate_has_the_documented_layout() {
        assert_eq!(pack(&[]), [0x9C, 0]);
        assert_eq!(pack(&[vec![1], vec![2, 3]]), [0x9C, 0, 1, 1, 2, 2, 3]);
        let long = pack(&[vec![7; 300]]);
        assert_eq!((&long[..5], long.len()), (&[0x9C, 0, 0xAC, 2, 7][..], 304));
    }

    #[test]
    fn lengths_round_trip_at_encoding_boundaries_in_their_shortest_form() {
        for (length, bytes) in
            [(0x7F, 1), (0x80, 2), (0x3FFF, 2), (0x4000, 3), (0x1F_FFFF, 3), (0x20_0000, 4)]
        {
            let mut buffer = [0; 4];
            let mut writer = Writer::new(&mut buffer);
            write_length(&mut writer, length).expect("four bytes");
            assert_eq!((writer.written(), length_of_length(length)), (bytes, bytes));
            assert_eq!(read_length(&mut Reader::new(writer.finish())), Ok(length));
        }
        let refused: [&[u8]; 3] = [&[0x81, 0], &[0x80, 0x80, 0], &[0xFF, 0xFF, 0xFF, 0xFF, 0]];
        for bytes in refused {
            assert_eq!(read_length(&mut Reader::new(bytes)), Err(WireError::BadLength));
        }
    }

    #[test]
    fn a_refused_message_leaves_the_aggregate_unchanged() {
        let mut buffer = [0; 6];
        let mut packer = Packer::new(id(), &mut buffer).expect("enough space");
        assert_eq!(packer.push(&[1, 2, 3, 4]), Err(WireError::NoRoom));
        assert_eq!(packer.push(&[]), Err(WireError::BadLength));
        assert_eq!(packer.push(&[0x9C, 0]), Err(WireError::BadValue));
        packer.push(&[1, 2, 3]).expect("just enough");
        assert_eq!(packer.finish(), [0x9C, 0, 3, 1, 2, 3]);
        assert_eq!(Packer::new(id(), &mut [0]).err(), Some(WireError::NoRoom));
    }

    #[test]
    fn malformed_aggregates_are_refused() {
        let read = |bytes| Aggregate::read(id(), bytes);
        assert_eq!(read(&[]), Err(WireError::Truncated));
        assert_eq!(read(&[0x9C]), Err(WireError::Truncated));
        assert_eq!(read(&[0x9D, 0]), Err(WireError::UnknownId));
        assert_eq!(read(&[0x9C, 2]), Err(WireError::BadValue));
        let messages =
            |bytes| Aggregate::read(id(), bytes).and_then(|read| read.messages().map(Iterator::count));
        assert_eq!(messages(&[0x9C, 0]), Ok(0));
        assert_eq!(messages(&[0x9C, 1, 1, 1]), Err(WireError::BadValue));
        assert_eq!(messages(&[0x9C, 0, 0]), Err(WireError::BadLength));
        assert_eq!(messages(&[0x9C, 0, 1, 7, 2, 7]), Err(WireError::Truncated));
        assert_eq!(messages(&[0x9C, 0, 1, 7, 2, 0x9C, 0]), Err(WireError::BadValue));
        assert_eq!(messages(&[0x9C, 0, 0xFF, 0xFF, 0xFF, 0x7F, 1]), Err(WireError::Truncated));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn packed_messages_round_trip(messages in messages()) {
            let bytes = pack(&messages);
            let read: Vec<&[u8]> = Aggregate::read(id(), &bytes)?.messages()?.collect();
            prop_assert_eq!(read, messages);
        }

        #[test]
        fn reading_arbitrary_bytes_never_panics(mut bytes: Vec<u8>, compression in 0..2_u8) {
            bytes.splice(..0, [0x9C, compression]);
            let _ = Aggregate::read(id(), &bytes)?.messages().map(Iterator::count);
        }
    }

    #[cfg(all(feature = "deflate", feature = "alloc"))]
    mod deflated {
        use super::*;

        fn compressed(messages: &[Vec<u8>]) -> Option<Vec<u8>> {
            let plain = pack(messages);
            let mut out = vec![0; plain.len()];
            let aggregate = Aggregate::read(id(), &plain).expect("a packed aggregate");
            match Deflater::new().compress(&aggregate, &mut out) {
                Ok(bytes) => Some(bytes.to_vec()),
                Err(error) => {
                    assert_eq!(error, CompressError::NotSmaller);
                    None
                }
            }
        }

        fn unpack(bytes: &[u8], room: usize) -> Result<Vec<Vec<u8>>, WireError> {
            let mut buffer = vec![0xEE; room];
            let mut inflater = Inflater::new();
            let aggregate = Aggregate::read(id(), bytes)?;
            let messages = inflater.unpack(&aggregate, &mut buffer)?;
            Ok(messages.map(<[u8]>::to_vec).collect())
        }

        fn with_stream(length: usize, body: &[u8]) -> Vec<u8> {
            let mut head = [0; 6];
            let mut writer = Writer::new(&mut head);
            writer.bytes(&[0x9C, 1]).expect("enough space");
            write_length(&mut writer, length).expect("enough space");
            let stream = miniz_oxide::deflate::compress_to_vec(body, 6);
            [writer.finish(), &stream].concat()
        }

        #[test]
        fn compressed_messages_round_trip() {
            let messages = vec![vec![7; 500], vec![8; 20], b"abcabcabcabc".to_vec()];
            let bytes = compressed(&messages).expect("compressible messages");
            assert!(bytes.len() < 60 && bytes[..2] == [0x9C, 1]);
            let length = pack(&messages).len() - 2;
            assert_eq!(unpack(&bytes, length), Ok(messages));
            assert_eq!(unpack(&bytes, length - 1), Err(WireError::BadLength));
            assert_eq!(unpack(&pack(&[vec![1]]), 0), Ok(vec![vec![1]]));
            for end in 0..bytes.len() {
                assert!(unpack(&bytes[..end], length).is_err(), "a prefix of {end} bytes was read");
            }
            assert_eq!(unpack(&[&bytes[..], &[0]].concat(), length), Err(WireError::BadLength));
        }

        #[test]
        fn a_decompression_bomb_is_refused() {
            let megabytes = vec![0; 10_000_000];
            let honest = with_stream(megabytes.len(), &megabytes);
            assert!(honest.len() < 11_000);
            assert_eq!(unpack(&honest, 65_536), Err(WireError::BadLength));
            // An aggregate that declares too small a length is decompressed only up to that length.
            let lying = with_stream(100, &megabytes);
            let mut buffer = vec![0xEE; 65_536];
            let aggregate = Aggregate::read(id(), &lying).expect("an aggregate");
            let result = Inflater::new().unpack(&aggregate, &mut buffer).map(Iterator::count);
            assert_eq!(result, Err(WireError::BadLength));
            assert!(buffer[100..].iter().all(|byte| *byte == 0xEE));
            assert_eq!(unpack(&with_stream(101, &[1; 100]), 200), Err(WireError::BadLength));
        }

        #[test]
        fn decompressed_messages_are_validated() {
            // Forty messages of one byte precede the end, because they compress well.
            let with_end = |end: &[u8]| {
                let body = [&[1; 80], end].concat();
                unpack(&with_stream(body.len(), &body), 100)
            };
            assert_eq!(with_end(&[1, 7]).map(|messages| messages.len()), Ok(41));
            assert_eq!(with_end(&[1, 0x9C]), Err(WireError::BadValue));
            assert_eq!(with_end(&[2, 1]), Err(WireError::Truncated));
            assert_eq!(with_end(&[0]), Err(WireError::BadLength));
            assert_eq!(unpack(&[0x9C, 1, 5, 0xFF, 0xFF], 100), Err(WireError::BadValue));
        }

        #[test]
        fn a_stream_longer_than_its_contents_is_refused() {
            assert_eq!(unpack(&with_stream(2, &[1, 7]), 100), Err(WireError::BadLength));
            // A long series of empty deflate blocks: five bytes each, without output.
            let blocks = [0, 0, 0, 0xFF, 0xFF].repeat(10_000);
            assert_eq!(unpack(&[&[0x9C, 1, 5], &blocks[..]].concat(), 100), Err(WireError::BadLength));
        }

        #[test]
        fn compressor_and_decompressor_can_be_reused() {
            let (mut deflater, mut inflater) = (Deflater::new(), Inflater::new());
            let (mut small, mut large) = ([0; 400], [0; 400]);
            for byte in 0..5 {
                let plain = pack(&[vec![byte; 300]]);
                let aggregate = Aggregate::read(id(), &plain).expect("a packed aggregate");
                let bytes = deflater.compress(&aggregate, &mut small).expect("compressible messages");
                let arrived = Aggregate::read(id(), bytes).expect("a packed aggregate");
                assert_eq!(deflater.compress(&arrived, &mut [0; 400]), Err(CompressError::Unsuitable));
                // A bad stream does not affect the next one.
                assert!(inflater.unpack(&Aggregate { body: &[9, 0xFF], ..arrived }, &mut large).is_err());
                let messages: Vec<&[u8]> = inflater.unpack(&arrived, &mut large).expect("a stream").collect();
                assert_eq!(messages, [[byte; 300]]);
                assert_eq!(deflater.compress(&aggregate, &mut [0; 4]), Err(CompressError::NoRoom));
            }
        }

        proptest! {
            #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

            #[test]
            fn compressed_aggregates_round_trip(messages in messages()) {
                if let Some(bytes) = compressed(&messages) {
                    prop_assert!(bytes.len() < pack(&messages).len());
                    prop_assert_eq!(unpack(&bytes, 100_000)?, messages);
                }
            }

            #[test]
            fn decompressing_arbitrary_streams_never_panics(mut bytes: Vec<u8>, length in 0..300_usize, flip in 0..400_usize) {
                let mut damaged = with_stream(length, &vec![3; length]);
                if let Some(byte) = damaged.get_mut(flip) {
                    *byte ^= 0x11;
                }
                let _ = unpack(&damaged, 1000);
                bytes.splice(..0, [0x9C, 1]);
                let _ = unpack(&bytes, 1000);
            }
        }
    }
}
