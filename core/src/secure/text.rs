//! Keys and tokens as text: a prefix that says what it is, and base64url.

use core::fmt;

use base64ct::{Base64UrlUnpadded, Encoding};
use zeroize::Zeroizing;

error_enum! {
    /// Why a text is no key (docs/secure.md#keys).
    #[non_exhaustive]
    pub enum KeyTextError {
        /// It begins with the prefix of something else or with none.
        OtherPrefix => "this is no key of the kind that is wanted here: it begins with another prefix",
        /// It is too short, too long, or has a character that base64url has not.
        BadCharacters => "the characters behind the prefix are no base64url of the right length; was the key copied as a whole?",
        /// There is no key in the file.
        NoKey => "the key file has no line with a key",
        /// There are several keys in the file.
        SeveralKeys => "the key file has more than one line with a key",
    }
}

/// Bytes that are written at once: a multiple of three, so that the texts of all make the text of the whole.
const CHUNK: usize = 30;

/// Writes the prefix and the bytes.
pub(super) fn write(f: &mut fmt::Formatter<'_>, prefix: &str, bytes: &[u8]) -> fmt::Result {
    let mut buffer = Zeroizing::new([0; CHUNK / 3 * 4]);
    f.write_str(prefix)?;
    bytes.chunks(CHUNK).try_for_each(|chunk| {
        f.write_str(Base64UrlUnpadded::encode(chunk, buffer.as_mut_slice()).map_err(|_| fmt::Error)?)
    })
}

/// The bytes behind the prefix.
pub(super) fn read<const N: usize>(text: &str, prefix: &str) -> Result<Zeroizing<[u8; N]>, KeyTextError> {
    let mut bytes = Zeroizing::new([0; N]);
    if read_into(text, prefix, bytes.as_mut_slice())?.len() == N {
        Ok(bytes)
    } else {
        Err(KeyTextError::BadCharacters)
    }
}

/// The bytes behind the prefix, in a buffer that may be longer.
pub(super) fn read_into<'b>(
    text: &str,
    prefix: &str,
    buffer: &'b mut [u8],
) -> Result<&'b [u8], KeyTextError> {
    let characters = text.strip_prefix(prefix).ok_or(KeyTextError::OtherPrefix)?;
    Base64UrlUnpadded::decode(characters, buffer).map_err(|_| KeyTextError::BadCharacters)
}

/// The one line of a key file that is neither empty nor a comment.
pub(super) fn only_line(file: &str) -> Result<&str, KeyTextError> {
    let mut lines = file.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let line = lines.next().ok_or(KeyTextError::NoKey)?;
    lines.next().map_or(Ok(line), |_| Err(KeyTextError::SeveralKeys))
}
