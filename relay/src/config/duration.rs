//! Durations as people write them: `250ms`, `1m 30s`, or a whole number of seconds.

use std::fmt;
use std::time::Duration;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

/// What to write instead of a text that is no duration.
pub(super) const SYNTAX: &str =
    "write a number of seconds, or a text with units as in \"250ms\", \"60s\" or \"1h 30m\"";

/// Reads a duration from text: a whole number of seconds, or numbers with units.
///
/// # Errors
///
/// A sentence that says what to write.
pub fn parse(text: &str) -> Result<Duration, &'static str> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(text).map_err(|_| SYNTAX),
    }
}

/// Writes a duration so that [`parse`] reads it.
pub(super) fn text(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text(*duration))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    deserializer.deserialize_any(DurationVisitor)
}

struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of seconds or a text such as \"250ms\"")
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<Duration, E> {
        Ok(Duration::from_secs(seconds))
    }

    fn visit_i64<E: Error>(self, seconds: i64) -> Result<Duration, E> {
        u64::try_from(seconds).map(Duration::from_secs).map_err(|_| E::custom(SYNTAX))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
        parse(text).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for millis in [0, 1, 250, 1000, 60_000, 90_000, 86_400_000, 86_461_001] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse(&text(duration)), Ok(duration), "{}", text(duration));
        }
        assert_eq!(parse("60"), Ok(Duration::from_secs(60)));
        for wrong in ["", "-1", "1.5", "a", "1 parsec", "99999999999999999999"] {
            assert_eq!(parse(wrong), Err(SYNTAX), "{wrong:?}");
        }
    }
}
