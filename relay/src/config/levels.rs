//! The levels of the log, as an operator writes them.

use tracing_subscriber::filter::{LevelFilter, Targets};

/// Reads levels such as `info` or `info,hyper=debug`.
///
/// Stricter than [`Targets`], which takes a word that is no level for the name of a module, and shows all of that module and
/// nothing else.
pub(crate) fn parse_levels(text: &str) -> Option<Targets> {
    let is_level = |word: &str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    let has_level = |part: &str| is_level(part.rsplit_once('=').map_or(part, |(_, level)| level));
    let is_written_so = !text.contains(char::is_whitespace) && text.split(',').all(has_level);
    is_written_so.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_a_level() {
        for text in ["info", "OFF", "info,hyper=debug", "rakwire_relay::io=trace,warn"] {
            assert!(parse_levels(text).is_some(), "{text}");
        }
        for text in ["", "loud", "info,loud", "hyper", "hyper=", "hyper=loud", "info,", "info hyper=debug"] {
            assert!(parse_levels(text).is_none(), "{text}");
        }
    }
}
