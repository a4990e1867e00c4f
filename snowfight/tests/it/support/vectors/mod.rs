//! Checks a file of Game Protocol vectors: a list of entries, each with a category, a name and recorded data.

mod json;
mod message;
mod rabbit;
mod transport;
mod value;

use serde_json::Value;

/// The results for the vectors of a file.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    /// The name of each failed vector, and the reason.
    pub(crate) failures: Vec<String>,
}

/// The result for a vector; the error is the reason why it fails.
type Held = Result<(), String>;

/// Checks every entry of a file.
pub(crate) fn check(text: &str) -> Result<Tally, String> {
    let file: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let entries = file.as_array().filter(|entries| !entries.is_empty()).ok_or("no list of vectors")?;
    let mut tally = Tally { passed: 0, failures: Vec::new() };
    for (index, entry) in entries.iter().enumerate() {
        match check_entry(entries, entry) {
            Ok(()) => tally.passed += 1,
            Err(why) => {
                let name = entry["name"].as_str().map_or_else(|| format!("entry {index}"), str::to_owned);
                tally.failures.push(format!("{name}: {why}"));
            }
        }
    }
    Ok(tally)
}

fn check_entry(entries: &[Value], entry: &Value) -> Held {
    match json::text(entry, "category")? {
        "rabbit" => rabbit::check(entry),
        "rabbit_decode" => rabbit::check_decoding(entry),
        "message" => message::check(entry),
        "live" => {
            transport::check_entry(entries, "live", entry)?;
            message::check_payload(entry)
        }
        category @ ("handshake" | "chunking" | "packet" | "receive") => {
            transport::check_entry(entries, category, entry)
        }
        other => Err(format!("the category {other:?} is not known")),
    }
}

/// Returns an error unless the values are equal.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Held {
    if found == expected { Ok(()) } else { Err(format!("{what} {found:?} instead of {expected:?}")) }
}
