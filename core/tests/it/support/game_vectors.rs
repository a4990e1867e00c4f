//! Checks the vectors of the transport in a vector file of the Game Protocol.

use serde_json::Value as Json;

use super::game_entries;
use super::vectors::Tally;

/// Categories that other tests of the project check.
const ELSEWHERE: [&str; 3] = ["rabbit", "rabbit_decode", "message"];

/// Checks the vectors of the transport in `text`; returns their results, and the number of other vectors.
///
/// # Errors
/// One line with the reason why `text` is not a vector file.
pub(crate) fn check(text: &str) -> Result<(Tally, usize), String> {
    let file: Json =
        serde_json::from_str(text).map_err(|error| format!("the file is not valid JSON: {error}"))?;
    let entries = file.as_array().ok_or("the file is not a JSON list")?;
    let mut tally = Tally::default();
    let mut elsewhere = 0;
    for (index, entry) in entries.iter().enumerate() {
        let text = |key: &str| entry.get(key).and_then(Json::as_str).unwrap_or_default();
        let category = text("category");
        if ELSEWHERE.contains(&category) {
            elsewhere += 1;
            continue;
        }
        match game_entries::check_entry(entries, category, entry) {
            Ok(()) => tally.passed += 1,
            Err(why) => {
                tally.failures.push(format!("{category}[{index}] {}: {why}", text("name")));
            }
        }
    }
    if tally.passed == 0 && tally.failures.is_empty() {
        return Err("the file contains no vectors of the transport".into());
    }
    Ok((tally, elsewhere))
}
