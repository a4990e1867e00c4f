//! Bytes from the network as text that is safe to print on a terminal.

use std::fmt::Write;

use rakwire_udp::printable;

/// Formats bytes as text, escaping control characters, invalid UTF-8, double quotes and backslashes.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(&printable(chunk.valid()).replace('"', "\\\""));
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
    fn control_characters_are_escaped() {
        assert_eq!(escape("MCPE;it's;ö;".as_bytes()), "MCPE;it's;ö;");
        assert_eq!(escape(b"\x1b[2J\n\"\\\xff\0"), "\\u{1b}[2J\\n\\\"\\\\\\xff\\0");
        assert_eq!(escape("\u{202e}\u{9b}".as_bytes()), "\\u{202e}\\u{9b}");
    }
}
