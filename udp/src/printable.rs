//! Text of others in lines of a log, a report or a terminal.

/// Returns a text of others as it is safe to print: one line, in which control characters, characters without a shape and those that
/// change the direction of what follows are escaped, and so are backslashes.
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
