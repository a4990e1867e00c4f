//! Validates the paths of files.

/// The maximum length of a path, in bytes.
pub const MAX_PATH: usize = 255;

/// Returns the path if it is allowed, and otherwise `None`.
///
/// An allowed path is relative UTF-8 of 1 to [`MAX_PATH`] bytes. Its components are separated by `/`, and none is
/// empty, `.` or `..`. The path contains no backslashes, colons or control characters, which have a special meaning
/// on some systems.
///
/// ```
/// use rakwire_plugins::files::check_path;
///
/// assert_eq!(check_path("maps/ice.json".as_bytes()), Some("maps/ice.json"));
/// for path in ["", "/etc/passwd", "../secret", "a//b", "C:a", "a\\b"] {
///     assert_eq!(check_path(path.as_bytes()), None);
/// }
/// ```
#[must_use]
pub fn check_path(bytes: &[u8]) -> Option<&str> {
    if bytes.len() > MAX_PATH {
        return None;
    }
    let path = core::str::from_utf8(bytes).ok()?;
    let is_plain = |character: char| !character.is_control() && character != '\\' && character != ':';
    let is_name = |part: &str| !matches!(part, "" | "." | "..");
    (path.chars().all(is_plain) && path.split('/').all(is_name)).then_some(path)
}
