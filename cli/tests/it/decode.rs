//! `rakwire decode` on every test vector of the core.

use std::process::Command;

use serde_json::Value;

/// The vectors of the core, through a symbolic link.
const VECTORS: &str = include_str!("../vectors/raknet.json");

fn decode(hex: &str, form: &str, sizes: &str) -> (Option<i32>, Value) {
    let arguments = ["decode", "--json", "--as", form, "--sizes", sizes, hex];
    let output = Command::new(env!("CARGO_BIN_EXE_rakwire")).args(arguments).output().expect("the program");
    let json = serde_json::from_slice(&output.stdout).expect("one JSON object");
    (output.status.code(), json)
}

/// Returns the hex digits of a vector, with the zero padding that it requests.
fn digits(entry: &Value) -> String {
    let mut hex: String = entry["hex"].as_str().expect("hex").split_whitespace().collect();
    let length = entry["pad_to"].as_u64().map_or(0, |bytes| 2 * bytes as usize);
    hex.extend(std::iter::repeat_n('0', length.saturating_sub(hex.len())));
    hex
}

/// Compares two values, accepting the notation of the vectors for big numbers and bytes.
fn same(expected: &Value, found: &Value) -> bool {
    let text = |value: &Value| value.as_str().map(|text| text.trim_start_matches("0x").replace(' ', ""));
    match (text(expected), text(found)) {
        (Some(expected), Some(found)) => expected == found,
        // A number is written as text if it does not fit into a JSON number.
        (Some(expected), None) => u64::from_str_radix(&expected, 16).ok() == found.as_u64(),
        (None, Some(found)) => u64::from_str_radix(&found, 16).ok() == expected.as_u64(),
        (None, None) => {
            expected == found || expected.as_f64().is_some_and(|number| found.as_f64() == Some(number))
        }
    }
}

/// Compares the fields that a vector names.
fn check_fields(name: &str, expected: &Value, found: &Value) {
    let found = found.as_array().expect("a list of fields");
    for (field, expected) in expected.as_object().expect("an object of fields") {
        let values: Vec<&Value> =
            found.iter().filter(|one| one["name"] == *field).map(|one| &one["value"]).collect();
        let expected = expected.as_array().map_or_else(|| vec![expected], |list| list.iter().collect());
        let all = expected.len() == values.len() && expected.iter().zip(&values).all(|(a, b)| same(a, b));
        assert!(all, "{name}: {field} is {values:?}, not {expected:?}");
    }
}

fn check(category: &str, entry: &Value) {
    let name = entry["name"].as_str().expect("a name");
    let sizes = entry["sizes"].as_str().unwrap_or("original");
    let hex = digits(entry);
    let form = match category {
        "offline" | "datagrams" | "acknowledgements" => "datagram",
        "control" | "notices" => "message",
        "local" => "event",
        "addresses" => "address",
        other => panic!("no such category: {other}"),
    };
    // A message with a length that is not a whole number of bytes is wrapped in a capsule. The header of the capsule
    // states the length in bits.
    let bits = entry["bits"].as_u64();
    let (status, json) = match bits {
        None => decode(&hex, form, sizes),
        Some(bits) => decode(&format!("84000000400{bits:03x}000000{hex}"), "datagram", sizes),
    };
    let is_refused = json["error"].is_object();
    assert_eq!(status, Some(i32::from(is_refused)), "{name}");
    if entry.get("error").is_some() {
        // `decode` accepts the vectors that only a parser of acknowledgements or of control messages rejects.
        let other_kind = name.contains("a data datagram") || name.contains("message of the application");
        assert!(is_refused || other_kind, "{name}: {json}");
        return;
    }
    if entry.get("ended").is_none() {
        assert!(!is_refused, "{name}: {json}");
    }
    assert!(!json.to_string().contains("without a layout"), "{name}: {json}");
    let fields = bits.map_or(&json["fields"], |_| &json["capsules"][0]["control"]["fields"]);
    check_fields(name, &entry["fields"], fields);
    for parts in ["capsules", "records"] {
        let Some(expected) = entry[parts].as_array() else { continue };
        for (index, expected) in expected.iter().enumerate() {
            check_fields(name, expected, &json[parts][index]["fields"]);
        }
    }
}

#[test]
fn every_vector_is_decoded() {
    let file: Value = serde_json::from_str(VECTORS).expect("JSON");
    let categories = file.as_object().expect("an object").iter().filter(|(name, _)| *name != "about");
    let mut checked = 0;
    for (category, entries) in categories {
        for entry in entries.as_array().expect("a list") {
            check(category, entry);
            checked += 1;
        }
    }
    assert!(checked >= 180, "{checked}");
}

#[test]
fn messages_inside_datagrams_are_decoded() {
    let magic = "00ffff00fefefefefdfdfdfd12345678";
    let (status, json) = decode(&format!("0d1122334455667788{magic}1d6869"), "datagram", "original");
    assert_eq!((status, &json["inner"]["kind"]), (Some(0), &"advertise system".into()));
    assert_eq!(json["inner"]["fields"][1]["offset"], 26);
    let lost = "84000000 40 0080 000000 20 04 80fffffe 4abc 1122334455667788";
    let (status, json) = decode(lost, "datagram", "original");
    assert_eq!(
        (status, &json["capsules"][0]["control"]["kind"]),
        (Some(0), &"remote connection lost".into())
    );
    assert_eq!(json["capsules"][0]["control"]["fields"][1]["value"], "127.0.0.1:19132");
}
