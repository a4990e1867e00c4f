//! Accessors for JSON fields that return an error if the field is missing or has the wrong type.

use serde_json::Value;

pub(super) fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    value[name].as_str().ok_or_else(|| format!("no text {name:?}"))
}

pub(super) fn number<T: TryFrom<u64>>(value: &Value) -> Result<T, String> {
    let number = value.as_u64().and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("{value} is no such number"))
}

pub(super) fn list(value: &Value) -> Result<&[Value], String> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| format!("{value} is no list"))
}

/// Returns the only name of an object and its value; for a string, returns the string as the name.
pub(super) fn variant(value: &Value) -> Result<(&str, &Value), String> {
    if let Some(name) = value.as_str() {
        return Ok((name, &Value::Null));
    }
    let mut fields = value.as_object().into_iter().flatten();
    let first = fields.next().map(|(name, value)| (name.as_str(), value));
    first.filter(|_| fields.next().is_none()).ok_or_else(|| format!("{value} is no variant"))
}

pub(super) fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    let digits = |at| hex.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    let bytes = (0..hex.len()).step_by(2).map(digits).collect::<Option<_>>();
    bytes.ok_or_else(|| format!("{hex:?} is no hex"))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
