//! Texts of bounded length.

/// The beginning of a text, of at most so many bytes.
pub(super) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most).rev().find_map(|end| text.get(..end));
    if text.len() <= most { text } else { end.unwrap_or("") }
}
