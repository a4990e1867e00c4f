//! The committed vectors: bytes that other implementations were seen to send.

#[path = "support/recorder.rs"]
mod recorder;
#[path = "support/vectors.rs"]
mod vectors;

const FILE: &str = include_str!("vectors/raknet.json");

#[test]
fn committed_vectors() {
    let tally = vectors::check(FILE).expect("a file of vectors");
    assert_eq!(tally.failures, [""; 0]);
    assert!(tally.passed >= 60, "{} vectors", tally.passed);
}

/// A checker that finds nothing is worth nothing: every kind of expectation can fail.
#[test]
fn wrong_expectations_fail() {
    let entry = |rest: &str| format!(r#"{{"control": [{{"name": "x", "hex": "15", {rest}}}]}}"#);
    let failures = |text: &str| vectors::check(text).map(|tally| tally.failures.len());
    assert_eq!(failures(&entry(r#""fields": {"id": 21}, "reencodes": true"#)), Ok(0));
    assert_eq!(failures(&entry(r#""fields": {"id": "0x15"}, "reencodes": true"#)), Ok(0));
    for wrong in [
        r#""fields": {"id": 22}, "reencodes": true"#,
        r#""fields": {"id": [21, 21]}, "reencodes": true"#,
        r#""fields": {"time": 21}, "reencodes": true"#,
        r#""fields": {"id": 21}, "reencodes": false"#,
        r#""fields": {"id": 21}"#,
        r#""error": "Truncated""#,
        r#""fields": {"id": 21}, "reencodes": true, "ended": "BadLength""#,
        r#""fields": {"id": 21}, "reencodes": true, "capsules": [{}]"#,
        r#""reencodes": true"#,
    ] {
        assert_eq!(failures(&entry(wrong)), Ok(1), "{wrong}");
    }
    assert_eq!(failures(r#"{"control": [{"hex": "0", "error": "Truncated"}, 3]}"#), Ok(2));
}

#[test]
fn what_is_no_file_of_vectors_is_said() {
    for text in ["", "[", "[]", "{}", r#"{"controls": []}"#, r#"{"control": 3}"#, r#"{"control": []}"#] {
        assert!(vectors::check(text).is_err(), "{text}");
    }
}
