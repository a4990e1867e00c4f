//! Checks the committed vectors: recordings of the messages that the original implementation sends and accepts.

use serde_json::{Value, json};

use crate::support::vectors;

const FILE: &str = include_str!("../vectors/game-protocol.json");
/// The transport categories. The tests of `rakwire` check that changed vectors in them fail.
const TRANSPORT: [&str; 4] = ["handshake", "chunking", "packet", "receive"];

fn entries() -> Vec<Value> {
    serde_json::from_str(FILE).expect("valid JSON")
}

fn failures(entries: &Value) -> usize {
    vectors::check(&entries.to_string()).expect("a list of vectors").failures.len()
}

#[test]
fn committed_vectors_of_every_category_pass() {
    let tally = vectors::check(&Value::from(entries()).to_string()).unwrap();
    assert_eq!(tally.failures, [""; 0]);
    assert_eq!(tally.passed, 258);
}

/// Every recorded property is checked: a vector fails if one of its properties is changed.
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
            // A transport vector has the fields of its category, not of a type.
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
        // Change the payload of a session's message too.
        if entry["category"] == "live" {
            let mut other = entry.clone();
            other["payload_hex"] = "1109".into();
            changed.push(other);
        }
        let all = changed.len();
        // A decoding vector with flipped bits passes if they decode to the same value.
        let expected = if entry["category"] == "rabbit_decode" { 2 } else { all };
        assert!(failures(&changed.into()) >= expected, "{}", entry["name"]);
    }
}

/// Returns the hexadecimal string with the first bit flipped.
fn flipped(hex: &str) -> String {
    let first = u8::from_str_radix(&hex[..2], 16).expect("hexadecimal digits") ^ 1;
    format!("{first:02x}{}", &hex[2..])
}

#[test]
fn invalid_vector_files_are_rejected() {
    for text in ["", "[", "{}", "[]", "3"] {
        assert!(vectors::check(text).is_err(), "{text}");
    }
    assert_eq!(failures(&json!([3, {}, {"category": "rabbit"}, {"category": "unheard of", "name": "x"}])), 4);
}
