//! Many small messages in one: the `PacketAggregator` of the RakNet documents.
//!
//! The documents give the first two bytes and leave the rest open; this is what it is here. Nothing in RakNet knows of
//! it, so both sides must.
//!
//! | field | bytes | |
//! |---|---|---|
//! | id | 1 | 86 + n, one that the application has chosen ([`AggregateId`]) |
//! | compression | 1 | 0 none, 1 deflate ([`Compression`]) |
//! | plain: messages | to the end | each its length, then its bytes |
//! | deflate: length | 1 to 4 | of the messages before compression |
//! | deflate: stream | to the end | raw deflate (RFC 1951) of all messages with their lengths |
//!
//! A length is written in groups of seven bits, the low ones first, with bit 7 set in all bytes but the last, and in no
//! more bytes than it needs; it is below 2^28. No message is empty, and none is an aggregate with the same id, so
//! nothing unfolds twice.
//!
//! **Bounds.** Reading a plain aggregate copies nothing. A compressed one names its length before anything is inflated;
//! it is refused if the lent buffer is smaller, if the plain form would not have been longer, and if the stream yields
//! more or less than it said. So a few bytes that would inflate to megabytes cost nothing, and neither do megabytes of
//! stream that hold nothing.
//!
//! Compression needs the feature `deflate`: reading then works without an allocator, writing needs `alloc` too. Do not
//! compress what holds secrets together with what others choose; the length of the result tells of the content.

#[cfg(feature = "deflate")]
mod deflate;

#[cfg(feature = "deflate")]
pub use deflate::Inflater;
#[cfg(all(feature = "deflate", feature = "alloc"))]
pub use deflate::{CompressError, Deflater};

use crate::cursor::{Reader, Source, WireError, Writer};
use crate::raknet::wire::id;

/// The id of an application's aggregates, 86 to FF.
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
    /// 86 + `n`; none when that is more than FF.
    #[must_use]
    pub const fn nth(n: u8) -> Option<Self> {
        match id::USER.checked_add(n) {
            Some(id) => Some(Self(id)),
            None => None,
        }
    }

    /// The byte that messages with this id begin with.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// How the messages of an aggregate are stored.
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
    /// As they are (0).
    None,
    /// As a raw deflate stream (1).
    Deflate,
}

/// The bytes before the messages.
const HEAD: usize = 2;
/// Lengths are below this: four groups of seven bits.
const LENGTH_END: usize = 1 << 28;

/// Collects messages in a lent buffer.
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
    /// An aggregate without messages.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] when the buffer has fewer than two bytes.
    pub fn new(id: AggregateId, buffer: &'b mut [u8]) -> Result<Self, WireError> {
        let mut writer = Writer::new(buffer);
        writer.bytes(&[id.0, 0])?;
        Ok(Self { id, writer })
    }

    /// Adds a message, with 1 to 4 bytes of length.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] when it does not fit; what is there can be sent and this one put into the next.
    /// [`WireError::BadLength`] when it is empty or has 2^28 bytes or more, [`WireError::BadValue`] when it begins with
    /// the id of this aggregate. Nothing is added then.
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

    /// Whether no message was added yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.writer.written() == HEAD
    }

    /// How many bytes the aggregate has so far.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.writer.written()
    }

    /// The aggregate, to be sent as a message.
    #[must_use]
    pub fn finish(self) -> &'b [u8] {
        self.writer.finish()
    }
}

/// An aggregate that arrived, with its messages still in it.
///
/// ```
/// use rakwire::codec::aggregate::{Aggregate, AggregateId};
/// use rakwire::wire::WireError;
///
/// let id = AggregateId::nth(0).ok_or("no such id")?;
/// let aggregate = Aggregate::read(id, &[0x86, 0, 1, 0xAA, 2, 0xBB, 0xCC])?;
/// assert_eq!(aggregate.messages()?.count(), 2);
///
/// // A length that is more than what follows: none of the messages counts.
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
    /// Takes a message apart that begins with `id`.
    ///
    /// # Errors
    /// [`WireError::UnknownId`] when it begins otherwise, [`WireError::BadValue`] when the compression is none that is
    /// known here, [`WireError::Truncated`].
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

    /// How the messages are stored.
    #[must_use]
    pub const fn compression(&self) -> Compression {
        self.compression
    }

    /// The messages of a plain aggregate. All lengths are checked before the first message comes out.
    ///
    /// # Errors
    /// [`WireError::BadValue`] when the aggregate is compressed or a message begins with the id of the aggregate,
    /// [`WireError::BadLength`] when a length is zero or in a longer form than it needs, [`WireError::Truncated`].
    pub fn messages(&self) -> Result<Messages<'a>, WireError> {
        match self.compression {
            Compression::None => Messages::check(self.id, self.body),
            Compression::Deflate => Err(WireError::BadValue),
        }
    }
}

/// The messages of an aggregate, in the order in which they were added; none is empty.
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
mod tests;
