use super::{Error, ErrorKind};
use crate::codec::bits::{BitWriter, Lsb};

/// Packs values to the front of a lent buffer.
///
/// A write of one number that fails writes nothing.
///
/// ```
/// use rakwire::codec::rabbit::Writer;
///
/// let mut buffer = [0; 2];
/// let mut writer = Writer::new(&mut buffer);
/// for (number, width) in [(15, 5), (81, 7), (1, 2)] {
///     writer.bits(number, width)?; // the example of docs/rabbit.md
/// }
/// assert_eq!(writer.finish(), [0x2F, 0x1A]);
/// # Ok::<(), rakwire::codec::rabbit::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<'b> {
    bits: BitWriter<'b, Lsb>,
}

impl<'b> Writer<'b> {
    /// A writer at the front of `buffer`. What the buffer holds behind the packed bytes is lost.
    #[must_use]
    pub fn new(buffer: &'b mut [u8]) -> Self {
        Self { bits: BitWriter::new(buffer) }
    }

    /// How many bits were written.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.bits.position()
    }

    /// What was written; the bits that fill up its last byte are zero.
    #[must_use]
    pub fn finish(self) -> &'b [u8] {
        self.bits.finish()
    }

    /// Appends the low `count` bits of `number`, 0 to 64; the others do not matter (docs/rabbit.md#raw-numbers).
    ///
    /// # Errors
    /// [`ErrorKind::BadWidth`] when `count` is more than 64, [`ErrorKind::NoRoom`] when they do not fit.
    #[inline]
    pub fn bits(&mut self, number: u64, count: u32) -> Result<(), Error> {
        match self.bits.bits(number, count) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.failed(count)),
        }
    }

    /// Appends one bit.
    ///
    /// # Errors
    /// [`ErrorKind::NoRoom`].
    #[inline]
    pub fn bit(&mut self, bit: bool) -> Result<(), Error> {
        self.bits(bit.into(), 1)
    }

    /// Appends whole bytes, at whatever bit position.
    ///
    /// # Errors
    /// [`ErrorKind::NoRoom`].
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bits.bytes(bytes).map_err(|_| self.error(ErrorKind::NoRoom))
    }

    /// An error at this place.
    #[must_use]
    pub const fn error(&self, kind: ErrorKind) -> Error {
        Error { kind, bit: self.position() }
    }

    #[cold]
    const fn failed(&self, count: u32) -> Error {
        self.error(if count > 64 { ErrorKind::BadWidth } else { ErrorKind::NoRoom })
    }
}
