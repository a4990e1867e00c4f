//! The committed vectors: recordings of the messages that the original implementation sends and accepts.

use serde_json::{Value, json};

use crate::support::vectors;

const FILE: &str = include_str!("../vectors/game-protocol.json");
/// The categories for which the tests of the core check that changed vectors fail.
const TRANSPORT: [&str; 4] = ["handshake", "chunking", "packet", "receive"];

fn entries() -> Vec<Value> {
    serde_json::from_str(FILE).expect("it is JSON")
}

fn failures(entries: &Value) -> usize {
    vectors::check(&entries.to_string()).expect("a list of vectors").failures.len()
}

#[test]
fn committed_vectors_of_every_category() {
    let tally = vectors::check(&Value::from(entries()).to_string()).unwrap();
    assert_eq!(tally.failures, [""; 0]);
    assert_eq!(tally.passed, 258);
}

/// The checker works: a change of any recorded fact must make its vector fail.
#[test]
fn changed_vectors_fail() {
    let is_transport = |entry: &Value| TRANSPORT.contains(&entry["category"].as_str().unwrap_or_default());
    for entry in entries().into_iter().filter(|entry| !is_transport(entry)) {
        let mut changed = vec![];
        if let Some(hex) = entry["hex"].as_str().filter(|hex| !hex.is_empty()) {
            let mut wrong = entry.clone();
            wrong["hex"] = flipped(hex).into();
            changed.push(wrong);
        }
        for (name, wrong) in [("bits", json!(3)), ("type", json!("u7")), ("category", json!("rabbits"))] {
            // The transport has a format for each category, not for each type.
            let is_checked =
                name != "type" || !TRANSPORT.contains(&entry["category"].as_str().unwrap_or_default());
            if is_checked && entry.get(name).is_some_and(|right| *right != wrong) {
                let mut other = entry.clone();
                other[name] = wrong;
                changed.push(other);
            }
        }
        if let Some(reliable) = entry["reliable"].as_bool() {
            let mut other = entry.clone();
            other["reliable"] = (!reliable).into();
            changed.push(other);
        }
        // The content of a message of a session is checked too.
        if entry["category"] == "live" {
            let mut other = entry.clone();
            other["payload_hex"] = "1109".into();
            changed.push(other);
        }
        let all = changed.len();
        // Some values can also be decoded from other bits.
        let expected = if entry["category"] == "rabbit_decode" { 2 } else { all };
        assert!(failures(&changed.into()) >= expected, "{}", entry["name"]);
    }
}

/// Returns the hex with its first bit changed.
fn flipped(hex: &str) -> String {
    let first = u8::from_str_radix(&hex[..2], 16).expect("it is hex") ^ 1;
    format!("{first:02x}{}", &hex[2..])
}

#[test]
fn invalid_vector_files_are_reported() {
    for text in ["", "[", "{}", "[]", "3"] {
        assert!(vectors::check(text).is_err(), "{text}");
    }
    assert_eq!(failures(&json!([3, {}, {"category": "rabbit"}, {"category": "unheard of", "name": "x"}])), 4);
}
