//! Hexadecimal input and output.

use std::fmt::Write;

/// The longest input in bytes, the size of the largest UDP datagram.
const LONGEST: usize = 65_507;

/// Parses hex digits in either case, with spaces, line breaks, colons, commas and `0x` anywhere between bytes.
pub(crate) fn parse(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut high = None;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if character.is_whitespace() || matches!(character, ':' | ',') {
            continue;
        }
        let is_prefix = high.is_none()
            && character == '0'
            && characters.next_if(|(_, next)| matches!(next, 'x' | 'X')).is_some();
        if is_prefix {
            continue;
        }
        let digit = character.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let digit = digit.ok_or_else(|| {
            let shown = character.escape_debug();
            format!("'{shown}' (character {}) is not a hex digit", at + 1)
        })?;
        match high.take() {
            None => high = Some(digit << 4),
            Some(high) => bytes.push(high | digit),
        }
    }
    if high.is_some() {
        return Err("the number of hex digits is odd".to_owned());
    }
    if bytes.len() > LONGEST {
        return Err(format!("{} bytes are more than a UDP datagram can carry", bytes.len()));
    }
    Ok(bytes)
}

/// Formats bytes as lower-case hex digits.
pub(crate) fn format(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::{format, parse};

    #[test]
    fn all_notations_are_parsed() {
        for text in ["84040Aff", "84 04 0a FF", "84:04:0A:ff", "0x84040aff", "0x84, 0x04,\n0x0A 0XFF\n"] {
            assert_eq!(parse(text), Ok(vec![0x84, 4, 10, 255]), "{text}");
        }
        assert_eq!(parse(" \n"), Ok(Vec::new()));
        assert_eq!(format(&[0x84, 10]), "840a");
    }

    #[test]
    fn invalid_input_is_located() {
        assert_eq!(parse("84g"), Err("'g' (character 3) is not a hex digit".to_owned()));
        assert_eq!(parse("840"), Err("the number of hex digits is odd".to_owned()));
        assert_eq!(parse("80x4"), Err("'x' (character 3) is not a hex digit".to_owned()));
        assert!(parse(&"00".repeat(65_508)).is_err());
    }
}
