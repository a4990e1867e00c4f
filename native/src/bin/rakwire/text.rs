//! Bytes from the network as text that can do no harm on a terminal.

use std::fmt::Write;

/// The bytes as text: what is neither printable nor UTF-8 is escaped, and so are quotes and backslashes.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.extend(chunk.valid().chars().flat_map(|character| match character {
            '\'' => character.to_string().chars().collect::<Vec<_>>(),
            _ => character.escape_debug().collect(),
        }));
        for byte in chunk.invalid() {
            // Writing to a string never fails.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn terminals_are_safe() {
        assert_eq!(escape("MCPE;it's;ö;".as_bytes()), "MCPE;it's;ö;");
        assert_eq!(escape(b"\x1b[2J\n\"\\\xff\0"), "\\u{1b}[2J\\n\\\"\\\\\\xff\\0");
        assert_eq!(escape("\u{202e}\u{9b}".as_bytes()), "\\u{202e}\\u{9b}");
    }
}
