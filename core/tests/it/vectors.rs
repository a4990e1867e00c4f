//! The committed test vectors: captured bytes of other implementations.

use crate::support::{game_vectors, vectors};

const FILE: &str = include_str!("../vectors/raknet.json");
const GAME_TRANSPORT: &str = include_str!("../vectors/game-protocol-transport.json");

#[test]
fn the_implementation_matches_the_committed_vectors() {
    let tally = vectors::check(FILE).expect("a vector file");
    assert_eq!(tally.failures, [""; 0]);
    assert!(tally.passed >= 60, "only {} vectors were checked", tally.passed);
}

/// Violates every kind of expectation once, to show that the checker detects it.
#[test]
fn vectors_with_wrong_expectations_fail() {
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
fn malformed_vector_files_are_rejected() {
    for text in ["", "[", "[]", "{}", r#"{"controls": []}"#, r#"{"control": 3}"#, r#"{"control": []}"#] {
        assert!(vectors::check(text).is_err(), "{text}");
    }
}

#[test]
fn the_game_protocol_matches_its_transport_vectors() {
    let (tally, elsewhere) = game_vectors::check(GAME_TRANSPORT).expect("a vector file");
    assert_eq!(tally.failures, [""; 0]);
    assert_eq!((tally.passed, elsewhere), (43, 0));
}

#[test]
fn game_protocol_vectors_with_wrong_expectations_fail() {
    let changes = [
        (r#""value":3895202227"#, r#""value":3895202226"#),
        (r#""hex":"e82c11b3""#, r#""hex":"e82c11b2""#),
        (r#""hex":["040000030001"]"#, r#""hex":["040000030002"]"#),
        (r#""hex":["040000030001"]"#, r#""hex":["040000030001","040000030001"]"#),
        (r#""05ff0018""#, r#""01ff0018""#),
        (r#""replies":["06000000","06000000"]"#, r#""replies":["06000000"]"#),
        (r#""delivered":["4142"]"#, r#""delivered":["4142","4142"]"#),
        (r#""ACK":1,"FIN":1,"END":0,"chunk":255"#, r#""ACK":1,"FIN":1,"END":0,"chunk":254"#),
        (r#""payload_hex":"1108""#, r#""payload_hex":"1109""#),
    ];
    for (right, wrong) in changes {
        let changed = GAME_TRANSPORT.replace(right, wrong);
        let failures = game_vectors::check(&changed).map(|(tally, _)| tally.failures.len());
        assert_ne!(changed, GAME_TRANSPORT, "{right}");
        assert!(failures.is_ok_and(|count| count > 0), "{wrong}");
    }
    for text in ["", "{}", "[]", r#"[{"category": "rabbit"}]"#] {
        assert!(game_vectors::check(text).is_err(), "{text}");
    }
    assert!(
        game_vectors::check(r#"[{"category": "x"}, 3]"#).is_ok_and(|(tally, _)| tally.failures.len() == 2)
    );
}
