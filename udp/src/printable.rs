//! Untrusted text in lines of a log, a report or a terminal.

/// Formats untrusted text as one line that is safe to print.
///
/// Backslashes, control characters, invisible characters and those that change the direction of the text are escaped.
///
/// ```
/// use rakwire_udp::printable;
///
/// assert_eq!(printable("it's \"ö\""), "it's \"ö\"");
/// assert_eq!(printable("a\u{1b}[2J\nb\u{202e}\\"), "a\\u{1b}[2J\\nb\\u{202e}\\\\");
/// ```
#[must_use]
pub fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '\'' | '"') {
            printable.push(character);
        } else {
            printable.extend(character.escape_debug());
        }
    }
    printable
}
