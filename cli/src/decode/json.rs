//! A decoded datagram as one JSON object.

use rakwire::wire::Value;
use serde_json::{Value as Json, json};

use super::fields::Field;
use super::packet::{Capsule, Packet, RecordFields, reliability_name};
use crate::hex;

/// Renders the object on one line.
pub(crate) fn render(packet: &Packet<'_>) -> String {
    format!("{}\n", object(packet))
}

/// Builds the object.
pub(crate) fn object(packet: &Packet<'_>) -> Json {
    let capsules: Vec<Json> = packet.capsules.iter().map(capsule).collect();
    let records: Vec<Json> = packet.records.iter().map(record).collect();
    let error = packet.error.as_ref();
    json!({
        "kind": packet.kind,
        "length": packet.length,
        "fields": fields(&packet.fields),
        "capsules": capsules,
        "records": records,
        "inner": packet.inner.as_ref().map(|inner| json!({ "kind": inner.kind, "fields": fields(&inner.fields) })),
        "rest": fields(&packet.rest),
        "error": error.map(|error| json!({ "offset": error.offset, "message": error.message })),
    })
}

fn capsule(capsule: &Capsule<'_>) -> Json {
    let control = capsule.control.as_ref();
    json!({
        "offset": capsule.offset,
        "reliability": capsule.reliability.map(reliability_name),
        "fields": fields(&capsule.fields),
        "payload_hex": hex::format(capsule.payload),
        "message": capsule.message,
        "control": control.map(|found| json!({ "kind": capsule.message, "fields": fields(found) })),
    })
}

fn record(record: &RecordFields<'_>) -> Json {
    json!({
        "first": record.record.map(|record| record.first.get()),
        "last": record.record.map(|record| record.last.get()),
        "fields": fields(&record.fields),
    })
}

fn fields(fields: &[Field<'_>]) -> Json {
    fields.iter().map(field).collect()
}

fn field(field: &Field<'_>) -> Json {
    json!({
        "offset": field.offset,
        "length": field.bytes.len(),
        "name": field.name,
        "value": value(field),
    })
}

/// Numbers are JSON numbers, except for GUIDs: many JSON readers cannot represent 64 bits.
fn value(field: &Field<'_>) -> Json {
    match field.value {
        Value::Number(_) if field.name == "guid" => hex::format(field.bytes).into(),
        Value::Number(number) => number.into(),
        Value::Float(number) => number.into(),
        Value::Bytes(bytes) => hex::format(bytes).into(),
        Value::Address(address) => address.to_string().into(),
        _ => Json::Null,
    }
}
