//! The wire format of file transfer (docs/plugins/files.md).

use super::outcome::{Reason, Totals};
use super::path::MAX_PATH;

/// The first byte of every message to a sender.
pub const REQUEST_ID: u8 = 128;
/// The first byte of every message to a receiver.
pub const REPLY_ID: u8 = 129;
/// The length of a digest (SHA-256), in bytes.
pub const DIGEST_LENGTH: usize = 32;
/// The length in bytes of the identifier of an older version: the first bytes of its SHA-256.
pub const BASE_LENGTH: usize = 16;
/// The length of a data message without its file bytes.
pub(super) const DATA_HEADER: usize = 6;
/// The maximum length of an entry, in bytes.
const MAX_ENTRY: usize = 1 + MAX_PATH + 8 + DIGEST_LENGTH;
/// The length of a page before its entries, in bytes.
const PAGE_HEADER: usize = 28;
/// The length of the longest request, in bytes.
pub(super) const MAX_REQUEST: usize = 10 + BASE_LENGTH;
/// The smallest allowed maximum message size, in bytes: a page with the longest entry.
pub const MIN_BYTES: usize = PAGE_HEADER + MAX_ENTRY;

const LIST: u8 = 0;
const READ: u8 = 1;
const DONE: u8 = 2;
const FIND_PATCH: u8 = 4;
const PAGE: u8 = 0;
const DATA: u8 = 1;
const PATCH: u8 = 2;
const FAILED: u8 = 3;

/// A message from a receiver to a sender. Numbers are big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Requests a page of the manifest.
    List {
        /// The request number, which the reply repeats.
        number: u32,
        /// The first file to list.
        first: u32,
        /// The maximum number of files.
        count: u16,
    },
    /// Requests bytes of a file.
    Read {
        /// The request number, which the reply repeats.
        number: u32,
        /// The file.
        file: u32,
        /// The offset of the first byte.
        offset: u64,
        /// The number of bytes.
        length: u32,
    },
    /// Requests a patch that produces a file from an older version.
    FindPatch {
        /// The request number, which the reply repeats.
        number: u32,
        /// The file.
        file: u32,
        /// The identifier of the older version.
        base: [u8; BASE_LENGTH],
    },
    /// The receiver has all files.
    Done,
    /// The receiver has aborted the transfer.
    Failed(Reason),
}

impl Request {
    /// Returns the number of bytes of files in the reply.
    pub(super) fn bytes(&self) -> u64 {
        if let Self::Read { length, .. } = *self { length.into() } else { 0 }
    }

    /// Encodes the message at the start of a buffer. Returns its length, or `None` if it does not fit.
    #[must_use]
    pub fn encode(&self, buffer: &mut [u8]) -> Option<usize> {
        let mut writer = Writer { buffer, at: 0 };
        match *self {
            Self::List { number, first, count } => {
                writer.put(&[REQUEST_ID, LIST])?;
                writer.put(&number.to_be_bytes())?;
                writer.put(&first.to_be_bytes())?;
                writer.put(&count.to_be_bytes())?;
            }
            Self::Read { number, file, offset, length } => {
                writer.put(&[REQUEST_ID, READ])?;
                writer.put(&number.to_be_bytes())?;
                writer.put(&file.to_be_bytes())?;
                writer.put(&offset.to_be_bytes())?;
                writer.put(&length.to_be_bytes())?;
            }
            Self::FindPatch { number, file, base } => {
                writer.put(&[REQUEST_ID, FIND_PATCH])?;
                writer.put(&number.to_be_bytes())?;
                writer.put(&file.to_be_bytes())?;
                writer.put(&base)?;
            }
            Self::Done => writer.put(&[REQUEST_ID, DONE])?,
            Self::Failed(reason) => writer.put(&[REQUEST_ID, FAILED, reason.code()])?,
        }
        Some(writer.at)
    }

    /// Decodes a message. Returns `None` if it is malformed.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[id, kind], rest) = bytes.split_first_chunk()?;
        if id != REQUEST_ID {
            return None;
        }
        let mut reader = Reader(rest);
        let request = match kind {
            LIST => Self::List { number: reader.u32()?, first: reader.u32()?, count: reader.u16()? },
            READ => Self::Read {
                number: reader.u32()?,
                file: reader.u32()?,
                offset: reader.u64()?,
                length: reader.u32()?,
            },
            FIND_PATCH => {
                Self::FindPatch { number: reader.u32()?, file: reader.u32()?, base: reader.array()? }
            }
            DONE => Self::Done,
            FAILED => Self::Failed(Reason::of(reader.u8()?)),
            _ => return None,
        };
        reader.0.is_empty().then_some(request)
    }
}

/// A file in the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'m> {
    /// The path. If it comes from a remote peer, check it with [`check_path`](super::check_path).
    pub path: &'m [u8],
    /// The size in bytes.
    pub size: u64,
    /// The SHA-256 of the bytes.
    pub digest: [u8; DIGEST_LENGTH],
}

impl<'m> Entry<'m> {
    fn split(reader: &mut Reader<'m>) -> Option<Self> {
        let length = usize::from(reader.u8()?);
        let path = reader.take(length)?;
        Some(Self { path, size: reader.u64()?, digest: reader.array()? })
    }
}

/// Consecutive entries of the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entries<'m>(&'m [u8]);

impl Entries<'_> {
    /// The empty list of entries.
    pub const NONE: Self = Self(&[]);
}

impl<'m> Iterator for Entries<'m> {
    type Item = Entry<'m>;

    fn next(&mut self) -> Option<Entry<'m>> {
        let mut reader = Reader(self.0);
        let entry = Entry::split(&mut reader)?;
        self.0 = reader.0;
        Some(entry)
    }
}

/// A page of the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<'m> {
    /// The number of the request.
    pub number: u32,
    /// The totals of the whole manifest, the same on each page.
    pub totals: Totals,
    /// The maximum number of bytes per request.
    pub chunk: u32,
    /// The maximum number of open requests for bytes.
    pub window: u16,
    /// The number of the file in the first entry.
    pub first: u32,
    /// The entries, in the byte order of their paths.
    pub entries: Entries<'m>,
}

/// Encodes a page: the header first, and then entries while they fit.
#[derive(Debug)]
pub struct PageWriter<'b> {
    writer: Writer<'b>,
}

impl<'b> PageWriter<'b> {
    /// Starts a page with the header of `page`. Returns `None` if the buffer is too short.
    #[must_use]
    pub fn new(buffer: &'b mut [u8], page: &Page<'_>) -> Option<Self> {
        let mut writer = Writer { buffer, at: 0 };
        writer.put(&[REPLY_ID, PAGE])?;
        writer.put(&page.number.to_be_bytes())?;
        writer.put(&page.totals.files.to_be_bytes())?;
        writer.put(&page.totals.bytes.to_be_bytes())?;
        writer.put(&page.chunk.to_be_bytes())?;
        writer.put(&page.window.to_be_bytes())?;
        writer.put(&page.first.to_be_bytes())?;
        Some(Self { writer })
    }

    /// Adds an entry. Returns `None` if it does not fit or its path is too long.
    pub fn push(&mut self, entry: &Entry<'_>) -> Option<()> {
        let before = self.writer.at;
        let pushed = self.put(entry);
        if pushed.is_none() {
            self.writer.at = before;
        }
        pushed
    }

    fn put(&mut self, entry: &Entry<'_>) -> Option<()> {
        self.writer.put(&[u8::try_from(entry.path.len()).ok()?])?;
        self.writer.put(entry.path)?;
        self.writer.put(&entry.size.to_be_bytes())?;
        self.writer.put(&entry.digest)
    }

    /// Returns the length of the page in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.writer.at
    }

    /// Returns true if the page has no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.writer.at == PAGE_HEADER
    }
}

/// A message from a sender to a receiver. Numbers are big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'m> {
    /// A part of the manifest.
    Page(Page<'m>),
    /// Bytes of a file.
    Data {
        /// The number of the request.
        number: u32,
        /// The bytes.
        bytes: &'m [u8],
    },
    /// A patch that produces a file from an older version. A patch is read like a file, by a number above the file
    /// numbers of the manifest.
    Patch {
        /// The number of the request.
        number: u32,
        /// The number of the patch.
        patch: u32,
        /// The size in bytes; 0 if there is no patch.
        size: u64,
    },
    /// The sender has aborted the transfer.
    Failed(Reason),
}

impl<'m> Reply<'m> {
    /// Encodes the message at the start of a buffer. Returns its length, or `None` if it does not fit.
    #[must_use]
    pub fn encode(&self, buffer: &mut [u8]) -> Option<usize> {
        match self {
            Self::Page(page) => {
                let mut writer = PageWriter::new(buffer, page)?;
                for entry in page.entries {
                    writer.push(&entry)?;
                }
                Some(writer.len())
            }
            Self::Data { number, bytes } => {
                let mut writer = Writer { buffer, at: 0 };
                writer.put(&data_header(*number))?;
                writer.put(bytes)?;
                Some(writer.at)
            }
            Self::Patch { number, patch, size } => {
                let mut writer = Writer { buffer, at: 0 };
                writer.put(&[REPLY_ID, PATCH])?;
                writer.put(&number.to_be_bytes())?;
                writer.put(&patch.to_be_bytes())?;
                writer.put(&size.to_be_bytes())?;
                Some(writer.at)
            }
            Self::Failed(reason) => {
                let mut writer = Writer { buffer, at: 0 };
                writer.put(&[REPLY_ID, FAILED, reason.code()])?;
                Some(writer.at)
            }
        }
    }

    /// Decodes a message. Returns `None` if it is malformed.
    #[must_use]
    pub fn decode(bytes: &'m [u8]) -> Option<Self> {
        let (&[id, kind], rest) = bytes.split_first_chunk()?;
        if id != REPLY_ID {
            return None;
        }
        let mut reader = Reader(rest);
        match kind {
            PAGE => decode_page(&mut reader).map(Self::Page),
            DATA => Some(Self::Data { number: reader.u32()?, bytes: reader.0 }),
            PATCH => {
                let patch = Self::Patch { number: reader.u32()?, patch: reader.u32()?, size: reader.u64()? };
                reader.0.is_empty().then_some(patch)
            }
            FAILED => {
                let reason = Reason::of(reader.u8()?);
                reader.0.is_empty().then_some(Self::Failed(reason))
            }
            _ => None,
        }
    }
}

fn decode_page<'m>(reader: &mut Reader<'m>) -> Option<Page<'m>> {
    let number = reader.u32()?;
    let totals = Totals { files: reader.u32()?, bytes: reader.u64()? };
    let (chunk, window, first) = (reader.u32()?, reader.u16()?, reader.u32()?);
    let entries = Entries(reader.0);
    while !reader.0.is_empty() {
        Entry::split(reader)?;
    }
    Some(Page { number, totals, chunk, window, first, entries })
}

/// Returns the header of a data message.
pub(super) const fn data_header(number: u32) -> [u8; DATA_HEADER] {
    let [a, b, c, d] = number.to_be_bytes();
    [REPLY_ID, DATA, a, b, c, d]
}

#[derive(Debug)]
struct Writer<'b> {
    buffer: &'b mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.at.checked_add(bytes.len())?;
        self.buffer.get_mut(self.at..end)?.copy_from_slice(bytes);
        self.at = end;
        Some(())
    }
}

#[derive(Clone, Copy, Debug)]
struct Reader<'m>(&'m [u8]);

impl<'m> Reader<'m> {
    fn take(&mut self, length: usize) -> Option<&'m [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }
}
