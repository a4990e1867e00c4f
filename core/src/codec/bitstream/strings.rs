//! Strings, plain and compressed.

use super::{BitStreamReader, BitStreamWriter, huffman};
use crate::codec::bits::{BitReader, Msb};
use crate::cursor::WireError;

impl<'a> BitStreamReader<'a> {
    /// Takes a string of at most 65,535 bytes, without copying it.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn string(&mut self) -> Result<&'a [u8], WireError> {
        let count = self.read::<u16>()?;
        self.aligned_bytes(count.into())
    }

    /// Takes a compressed string into the front of `out` and gives that.
    ///
    /// Bits after the last whole code are padding and ignored.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::BadLength`] when the string is longer than `out` (the original cuts it
    /// off).
    pub fn compressed_string<'o>(&mut self, out: &'o mut [u8]) -> Result<&'o [u8], WireError> {
        let count = usize::try_from(self.read_compressed::<u32>()?).map_err(|_| WireError::Truncated)?;
        if count > self.bits.remaining() {
            return Err(WireError::Truncated);
        }
        let end = self.bits.remaining() - count;
        let mut length = 0;
        while let Some(byte) = next_byte(&mut self.bits, end)? {
            *out.get_mut(length).ok_or(WireError::BadLength)? = byte;
            length += 1;
        }
        Ok(out.get(..length).unwrap_or_default())
    }
}

/// The next byte of a compressed string after which `end` bits remain, or none when only padding was left.
fn next_byte(bits: &mut BitReader<'_, Msb>, end: usize) -> Result<Option<u8>, WireError> {
    let mut walk = huffman::Walk::START;
    while bits.remaining() > end {
        match walk.step(bits.bit()?) {
            huffman::Step::Byte(byte) => return Ok(Some(byte)),
            huffman::Step::Inside(further) => walk = further,
        }
    }
    Ok(None)
}

impl BitStreamWriter<'_> {
    /// Appends a string.
    ///
    /// # Errors
    /// [`WireError::BadLength`] when it has more than 65,535 bytes, [`WireError::NoRoom`].
    pub fn string(&mut self, string: &[u8]) -> Result<(), WireError> {
        let count = u16::try_from(string.len()).map_err(|_| WireError::BadLength)?;
        self.write(count)?;
        self.aligned_bytes(string)
    }

    /// Appends a compressed string: 3 bits for a space to 16 for what English does not use.
    ///
    /// # Errors
    /// [`WireError::BadLength`] when it has 2^28 bytes or more, [`WireError::NoRoom`].
    pub fn compressed_string(&mut self, string: &[u8]) -> Result<(), WireError> {
        if string.len() >= 1 << 28 {
            return Err(WireError::BadLength);
        }
        let plain: u32 = string.iter().map(|byte| u32::from(huffman::code(*byte).length)).sum();
        // The codes are filled up to whole bytes with the beginning of a code that does not end there, so that no
        // reader takes the padding for a byte.
        let padding = plain.next_multiple_of(8) - plain;
        self.write_compressed(plain + padding)?;
        for byte in string {
            let code = huffman::code(*byte);
            self.bits.bits(code.bits.into(), code.length.into())?;
        }
        self.bits.bits(huffman::padding(padding), padding)
    }
}
