use core::fmt;

/// Why a value could not be packed or unpacked, and where.
///
/// ```
/// use rakwire::codec::rabbit::{ErrorKind, Reader, Unpack};
///
/// // Two bits say that four bytes follow, and they do not.
/// let error = u32::unpack(&mut Reader::new(&[0b11])).unwrap_err();
/// assert_eq!((error.kind, error.bit), (ErrorKind::EndOfInput, 2));
/// assert_eq!(error.to_string(), "bit 2: the input ends");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub kind: ErrorKind,
    /// How many bits lie before the place that it is wrong at.
    pub bit: usize,
}

/// What is wrong with a packed value, or with packing one.
///
/// ```
/// use rakwire::codec::rabbit::{ErrorKind, pack, unpack};
///
/// assert_eq!(unpack::<u8>(&[]).unwrap_err().kind, ErrorKind::EndOfInput);
/// assert_eq!(pack(&7_u8, &mut []).unwrap_err().kind, ErrorKind::NoRoom);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input ends before the value does.
    EndOfInput,
    /// The buffer to pack into is too small.
    NoRoom,
    /// An index that no variant of an enum has.
    UnknownVariant {
        /// The enum.
        of: &'static str,
        /// The index as it was read.
        index: u32,
    },
    /// Text that is not UTF-8.
    BadUtf8,
    /// More elements or bytes than there may be, or than the rest of the input can hold.
    TooMany {
        /// How many there are.
        count: u32,
        /// How many there may be.
        limit: u32,
    },
    /// A number that has more bits than the width of its field.
    TooWide {
        /// The width of the field.
        width: u32,
    },
    /// A number cannot be wider than 64 bits.
    BadWidth,
    /// Sequences within sequences, deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    TooDeep,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndOfInput => f.write_str("the input ends"),
            Self::NoRoom => f.write_str("the buffer is too small"),
            Self::UnknownVariant { of, index } => write!(f, "{of} has no variant {index}"),
            Self::BadUtf8 => f.write_str("text is not UTF-8"),
            Self::TooMany { count, limit } => write!(f, "{count} elements where {limit} may be"),
            Self::TooWide { width } => write!(f, "a number has more than the {width} bits of its field"),
            Self::BadWidth => f.write_str("a number has 64 bits at most"),
            Self::TooDeep => f.write_str("too many sequences within sequences"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bit {}: {}", self.bit, self.kind)
    }
}

impl core::error::Error for Error {}
