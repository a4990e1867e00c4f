//! Aggregates compressed by deflate.

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use super::{Aggregate, Compression, Messages, read_length};
use crate::cursor::{Reader, Source, WireError};

/// The state of a decompressor, about 11 kB. It can be reused for any number of aggregates.
///
/// ```
/// use rakwire::codec::aggregate::{Aggregate, AggregateId, Inflater};
///
/// let id = AggregateId::nth(0).ok_or("no such id")?;
/// // Nine bytes before compression: the message AA, eight times.
/// let bytes = [0x86, 1, 9, 0xE3, 0x58, 0x05, 0x05, 0x00];
/// let mut inflater = Inflater::new();
/// let mut buffer = [0; 64];
/// let messages = inflater.unpack(&Aggregate::read(id, &bytes)?, &mut buffer)?;
/// assert_eq!(messages.collect::<Vec<_>>(), [[0xAA; 8]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Inflater {
    state: DecompressorOxide,
}

impl Inflater {
    /// Creates a decompressor.
    #[must_use]
    pub fn new() -> Self {
        Self { state: DecompressorOxide::new() }
    }

    /// Returns the messages of an aggregate: in place if it is plain, or decompressed into `buffer`.
    ///
    /// The length of `buffer` limits the size of the contents. It also limits the run time, because a compressed stream
    /// longer than its contents is refused.
    ///
    /// # Errors
    /// - The errors of [`Aggregate::messages`].
    /// - [`WireError::BadLength`] if the declared length exceeds `buffer`, or is not above the compressed length.
    /// - [`WireError::BadLength`] if the stream yields another length, or if bytes follow the stream.
    /// - [`WireError::BadValue`] if the contents are not a deflate stream, [`WireError::Truncated`] if the stream ends
    ///   too early.
    pub fn unpack<'m>(
        &mut self,
        aggregate: &Aggregate<'m>,
        buffer: &'m mut [u8],
    ) -> Result<Messages<'m>, WireError> {
        match aggregate.compression {
            Compression::None => aggregate.messages(),
            Compression::Deflate => Messages::check(aggregate.id, self.inflate(aggregate.body, buffer)?),
        }
    }

    fn inflate<'m>(&mut self, body: &[u8], buffer: &'m mut [u8]) -> Result<&'m [u8], WireError> {
        let mut reader = Reader::new(body);
        let length = read_length(&mut reader)?;
        if body.len() >= length {
            return Err(WireError::BadLength);
        }
        let out = buffer.get_mut(..length).ok_or(WireError::BadLength)?;
        let stream = reader.rest("stream");
        self.state.init();
        let (status, read, written) =
            decompress(&mut self.state, stream, out, 0, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF);
        match status {
            TINFLStatus::Done if written == length && read == stream.len() => Ok(out),
            TINFLStatus::Done | TINFLStatus::HasMoreOutput => Err(WireError::BadLength),
            TINFLStatus::FailedCannotMakeProgress | TINFLStatus::NeedsMoreInput => Err(WireError::Truncated),
            TINFLStatus::BadParam | TINFLStatus::Adler32Mismatch | TINFLStatus::Failed | _ => {
                Err(WireError::BadValue)
            }
        }
    }
}

impl Default for Inflater {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Inflater {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Inflater").finish_non_exhaustive()
    }
}

#[cfg(feature = "alloc")]
pub use compress::{CompressError, Deflater};

#[cfg(feature = "alloc")]
mod compress {
    use alloc::boxed::Box;
    use core::fmt;

    use miniz_oxide::deflate::core::{
        CompressorOxide, TDEFLFlush, TDEFLStatus, compress, create_comp_flags_from_zip_params,
    };

    use crate::codec::aggregate::{Aggregate, Compression, LENGTH_END, write_length};
    use crate::cursor::{WireError, Writer};

    error_enum! {
        /// The reason why an aggregate was not compressed.
        ///
        /// ```
        /// use rakwire::codec::aggregate::{Aggregate, AggregateId, CompressError, Deflater};
        ///
        /// let id = AggregateId::nth(0).ok_or("no such id")?;
        /// let plain = Aggregate::read(id, &[0x86, 0, 1, 0xAA])?;
        /// let mut buffer = [0; 64];
        /// let result = Deflater::new().compress(&plain, &mut buffer);
        /// assert_eq!(result, Err(CompressError::NotSmaller));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub enum CompressError {
            /// The result would not be smaller; send the plain aggregate.
            NotSmaller => "the compressed form would not be smaller",
            /// The buffer is too small for the result. In a larger buffer, compression may succeed.
            NoRoom => "the buffer is too small",
            /// The aggregate is already compressed, or has 2^28 bytes or more.
            Unsuitable => "the aggregate is already compressed, or too large",
        }
    }

    /// The state of a compressor, several hundred kB on the heap. It can be reused for any number of aggregates.
    ///
    /// ```
    /// use rakwire::codec::aggregate::{Aggregate, AggregateId, Deflater, Inflater, Packer};
    ///
    /// let id = AggregateId::nth(0).ok_or("no such id")?;
    /// let mut buffer = [0; 512];
    /// let mut packer = Packer::new(id, &mut buffer)?;
    /// for _ in 0..16 {
    ///     packer.push(b"\xAAthe same words every time")?;
    /// }
    /// let plain = Aggregate::read(id, packer.finish())?;
    ///
    /// let (mut deflater, mut small, mut large) = (Deflater::new(), [0; 512], [0; 512]);
    /// let bytes = deflater.compress(&plain, &mut small)?;
    /// assert!(bytes.len() < 60);
    ///
    /// let mut inflater = Inflater::new();
    /// let arrived = Aggregate::read(id, bytes)?;
    /// assert_eq!(inflater.unpack(&arrived, &mut large)?.count(), 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Deflater {
        state: Box<CompressorOxide>,
    }

    /// The compression level: 6 on the scale from 0 to 10, the default of most programs.
    const LEVEL: i32 = 6;
    /// The window bits of a raw deflate stream, without the zlib header and checksum.
    const RAW: i32 = -15;

    impl Deflater {
        /// Creates a compressor.
        #[must_use]
        pub fn new() -> Self {
            let flags = create_comp_flags_from_zip_params(LEVEL, RAW, 0);
            Self { state: Box::new(CompressorOxide::new(flags)) }
        }

        /// Compresses a plain aggregate into `out`.
        ///
        /// # Errors
        /// A [`CompressError`] if compression is not possible or not worthwhile.
        pub fn compress<'o>(
            &mut self,
            plain: &Aggregate<'_>,
            out: &'o mut [u8],
        ) -> Result<&'o [u8], CompressError> {
            if plain.compression != Compression::None || plain.body.len() >= LENGTH_END {
                return Err(CompressError::Unsuitable);
            }
            // The result must be at least one byte shorter than the plain form, which has one byte more than `smaller`.
            let smaller = plain.body.len() + 1;
            let full = if out.len() >= smaller { CompressError::NotSmaller } else { CompressError::NoRoom };
            let room = out.len().min(smaller);
            let out = out.get_mut(..room).unwrap_or_default();
            let head = write_head(plain, out).map_err(|_| full)?;
            self.state.reset();
            let stream = out.get_mut(head..).unwrap_or_default();
            match compress(&mut self.state, plain.body, stream, TDEFLFlush::Finish) {
                (TDEFLStatus::Done, _, length) => out.get(..head + length).ok_or(full),
                (TDEFLStatus::Okay | TDEFLStatus::BadParam | TDEFLStatus::PutBufFailed, ..) => Err(full),
            }
        }
    }

    fn write_head(plain: &Aggregate<'_>, out: &mut [u8]) -> Result<usize, WireError> {
        let mut writer = Writer::new(out);
        writer.bytes(&[plain.id.get(), 1])?;
        write_length(&mut writer, plain.body.len())?;
        Ok(writer.written())
    }

    impl Default for Deflater {
        fn default() -> Self {
            Self::new()
        }
    }

    impl fmt::Debug for Deflater {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Deflater").finish_non_exhaustive()
        }
    }
}
