//! Checks a vector file; docs/raknet.md specifies its format.

use std::net::SocketAddr;

use rakwire::wire::control::Control;
use rakwire::wire::datagram::{CapsuleHeader, MIN_CAPSULE};
use rakwire::wire::datagram::{DatagramHeader, Record};
use rakwire::wire::local::Local;
use rakwire::wire::notice::Notice;
use rakwire::wire::offline::Offline;
use rakwire::wire::{SecuritySizes, Source, Value, Wire, WireError, Writer, address};
use serde_json::{Map, Value as Json};

use super::recorder::{Field, Recorder};

/// The results of a vector file.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    /// A line for each failed vector.
    pub(crate) failures: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
enum Category {
    Offline,
    Control,
    Datagrams,
    Acknowledgements,
    Addresses,
    Notices,
    Local,
}

impl Category {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "offline" => Self::Offline,
            "control" => Self::Control,
            "datagrams" => Self::Datagrams,
            "acknowledgements" => Self::Acknowledgements,
            "addresses" => Self::Addresses,
            "notices" => Self::Notices,
            "local" => Self::Local,
            _ => return None,
        })
    }
}

/// Checks the vectors in `text`.
///
/// # Errors
/// One line with the reason why `text` is not a vector file.
pub(crate) fn check(text: &str) -> Result<Tally, String> {
    let file: Json =
        serde_json::from_str(text).map_err(|error| format!("the file is not valid JSON: {error}"))?;
    let file = file.as_object().ok_or("the file is not a JSON object")?;
    let mut tally = Tally::default();
    for (key, entries) in file.iter().filter(|(key, _)| *key != "about") {
        let category = Category::from_name(key).ok_or_else(|| format!("{key:?} is not a category"))?;
        let entries = entries.as_array().ok_or_else(|| format!("{key:?} is not a list"))?;
        for (index, entry) in entries.iter().enumerate() {
            match check_entry(category, entry) {
                Ok(()) => tally.passed += 1,
                Err(why) => {
                    let name = entry.get("name").and_then(Json::as_str).unwrap_or("without a name");
                    tally.failures.push(format!("{key}[{index}] {name}: {why}"));
                }
            }
        }
    }
    if tally.passed == 0 && tally.failures.is_empty() {
        return Err("the file contains no vectors".into());
    }
    Ok(tally)
}

/// A packet that was parsed, and a function that writes it again.
struct Decoded<'a> {
    fields: Vec<Field<'a>>,
    /// The fields of each capsule or record.
    parts: Vec<Vec<Field<'a>>>,
    /// The error at which parsing of the capsules stopped.
    ended: Option<WireError>,
    written: Vec<u8>,
}

fn check_entry(category: Category, entry: &Json) -> Result<(), String> {
    let entry = entry.as_object().ok_or("the entry is not a JSON object")?;
    let bytes = bytes_of(entry)?;
    let decoded = decode(category, entry, &bytes)?;
    if let Some(expected) = entry.get("error") {
        let expected = expected.as_str().ok_or("\"error\" is not a string")?;
        return match decoded {
            Err(error) if format!("{error:?}") == expected => Ok(()),
            Err(error) => Err(format!("fails with {error:?} instead of {expected}")),
            Ok(_) => Err(format!("is valid, but {expected} was expected")),
        };
    }
    let decoded = decoded.map_err(|error| format!("{error:?}"))?;
    let fields =
        entry.get("fields").and_then(Json::as_object).ok_or("\"fields\" and \"error\" are missing")?;
    check_fields(fields, &decoded.fields)?;
    check_parts(entry, &decoded.parts)?;
    let ended = decoded.ended.map(|error| format!("{error:?}"));
    if entry.get("ended").map(|name| name.as_str().unwrap_or_default()) != ended.as_deref() {
        return Err(format!("reading the capsules stopped with {ended:?}"));
    }
    let reencodes = entry.get("reencodes").and_then(Json::as_bool).ok_or("\"reencodes\" is missing")?;
    match (reencodes, decoded.written == bytes) {
        (true, true) | (false, false) => Ok(()),
        (true, false) => Err(format!("writes {}", hex(&decoded.written))),
        (false, true) => Err("writes the same bytes, but \"reencodes\" is false".into()),
    }
}

fn check_parts(entry: &Map<String, Json>, parts: &[Vec<Field<'_>>]) -> Result<(), String> {
    let Some(expected) = entry.get("capsules").or_else(|| entry.get("records")) else {
        return if parts.is_empty() { Ok(()) } else { Err("\"capsules\" or \"records\" is missing".into()) };
    };
    let expected = expected.as_array().ok_or("\"capsules\" or \"records\" is not a list")?;
    if expected.len() != parts.len() {
        return Err(format!("{} parts instead of {}", parts.len(), expected.len()));
    }
    for (index, (expected, part)) in expected.iter().zip(parts).enumerate() {
        let expected = expected.as_object().ok_or("a part is not a JSON object")?;
        check_fields(expected, part).map_err(|why| format!("part {index}: {why}"))?;
    }
    Ok(())
}

/// Compares the named fields; a name that occurs several times has a list of values.
fn check_fields(expected: &Map<String, Json>, fields: &[Field<'_>]) -> Result<(), String> {
    for (name, expected) in expected {
        let found: Vec<Value<'_>> =
            fields.iter().filter(|field| field.name == name).map(|field| field.value).collect();
        let expected = expected.as_array().map_or_else(|| core::slice::from_ref(expected), Vec::as_slice);
        let same = expected.len() == found.len()
            && expected.iter().zip(&found).all(|(expected, found)| matches(expected, *found));
        if !same {
            return Err(format!("field {name:?} is {found:?}"));
        }
    }
    Ok(())
}

fn matches(expected: &Json, found: Value<'_>) -> bool {
    match found {
        Value::Number(number) => match expected {
            Json::String(text) => {
                text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok())
                    == Some(number)
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
                expected.as_u64() == Some(number)
            }
        },
        Value::Float(number) => expected.as_f64() == Some(number.into()),
        Value::Bytes(bytes) => {
            expected.as_str().and_then(|text| from_hex(text).ok()).as_deref() == Some(bytes)
        }
        Value::Address(address) => {
            expected.as_str().and_then(|text| text.parse::<SocketAddr>().ok()) == Some(address)
        }
        _ => false,
    }
}

type Outcome<'a> = Result<Decoded<'a>, WireError>;

fn decode<'a>(category: Category, entry: &Map<String, Json>, bytes: &'a [u8]) -> Result<Outcome<'a>, String> {
    let sizes = sizes_of(entry)?;
    let bits = entry.get("bits").and_then(Json::as_u64).and_then(|bits| u16::try_from(bits).ok());
    Ok(match (category, bits) {
        (Category::Offline, _) => one(bytes, |source| Offline::read_with(source, &sizes)),
        (Category::Control, None) => one(bytes, |source| Control::read_with(source, &sizes)),
        (Category::Control, Some(bits)) => one(bytes, |source| Control::read_bits(source, bits)),
        (Category::Datagrams, _) => datagram(bytes),
        (Category::Acknowledgements, _) => acknowledgement(bytes),
        (Category::Addresses, _) => one(bytes, Address::read),
        (Category::Notices, _) => one(bytes, Notice::read),
        (Category::Local, _) => one(bytes, Local::read),
    })
}

/// An address, treated as a packet.
struct Address(SocketAddr);

impl<'a> Wire<'a> for Address {
    fn read<S: Source<'a>>(source: &mut S) -> Result<Self, WireError> {
        address::read(source, "address").map(Self)
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        address::write(&self.0, writer)
    }
}

fn one<'a, P: Wire<'a>>(
    bytes: &'a [u8],
    read: impl FnOnce(&mut Recorder<'a>) -> Result<P, WireError>,
) -> Outcome<'a> {
    let mut source = Recorder::new(bytes);
    let packet = read(&mut source)?;
    let mut written = Vec::new();
    append(&mut written, &packet)?;
    Ok(Decoded { fields: source.fields(), parts: Vec::new(), ended: None, written })
}

fn datagram(bytes: &[u8]) -> Outcome<'_> {
    let mut source = Recorder::new(bytes);
    let header = DatagramHeader::read(&mut source)?;
    let mut decoded =
        Decoded { fields: source.fields(), parts: Vec::new(), ended: None, written: Vec::new() };
    append(&mut decoded.written, &header)?;
    while source.remaining() >= MIN_CAPSULE {
        let capsule = CapsuleHeader::read(&mut source)
            .and_then(|capsule| Ok((capsule, source.bytes("payload", capsule.length())?)));
        match capsule {
            Ok((capsule, payload)) => {
                append(&mut decoded.written, &capsule)?;
                decoded.written.extend_from_slice(payload);
                decoded.parts.push(source.fields());
            }
            Err(error) => {
                decoded.ended = Some(error);
                break;
            }
        }
    }
    Ok(decoded)
}

fn acknowledgement(bytes: &[u8]) -> Outcome<'_> {
    let mut source = Recorder::new(bytes);
    let header = DatagramHeader::read(&mut source)?;
    let records = match header {
        DatagramHeader::Ack { records, .. } | DatagramHeader::Nack { records } => records,
        DatagramHeader::Data { .. } => return Err(WireError::UnknownId),
    };
    let mut decoded =
        Decoded { fields: source.fields(), parts: Vec::new(), ended: None, written: Vec::new() };
    append(&mut decoded.written, &header)?;
    for _ in 0..records {
        let record = Record::read(&mut source)?;
        append(&mut decoded.written, &record)?;
        decoded.parts.push(source.fields());
    }
    Ok(decoded)
}

fn append<'a>(bytes: &mut Vec<u8>, packet: &impl Wire<'a>) -> Result<(), WireError> {
    let mut buffer = [0; 65_536];
    let mut writer = Writer::new(&mut buffer);
    packet.write(&mut writer)?;
    bytes.extend_from_slice(writer.finish());
    Ok(())
}

fn sizes_of(entry: &Map<String, Json>) -> Result<SecuritySizes, String> {
    match entry.get("sizes").map(Json::as_str) {
        None | Some(Some("original")) => Ok(SecuritySizes::ORIGINAL),
        Some(Some("documents")) => Ok(SecuritySizes::DOCUMENTED),
        Some(_) => Err("\"sizes\" is neither \"original\" nor \"documents\"".into()),
    }
}

/// Returns the bytes of an entry, padded with zeros to `pad_to`.
fn bytes_of(entry: &Map<String, Json>) -> Result<Vec<u8>, String> {
    let text = entry.get("hex").and_then(Json::as_str).ok_or("\"hex\" is missing")?;
    let mut bytes = from_hex(text)?;
    if let Some(length) = entry.get("pad_to") {
        let length = length.as_u64().and_then(|length| u16::try_from(length).ok());
        let length = usize::from(length.ok_or("\"pad_to\" is not a datagram length")?);
        bytes.resize(length.max(bytes.len()), 0);
    }
    Ok(bytes)
}

fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .map(|letter| letter.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()
        .ok_or("\"hex\" contains a character that is not a hexadecimal digit")?;
    let (pairs, []) = digits.as_chunks::<2>() else {
        return Err("\"hex\" has an odd number of digits".into());
    };
    Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
