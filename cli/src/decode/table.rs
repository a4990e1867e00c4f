//! A decoded datagram as a table.

use std::fmt::Write;

use rakwire::wire::{Value, id};

use super::fields::Field;
use super::packet::{Packet, reliability_name};
use crate::{hex, text};

/// The number of bytes shown of a field.
const SHOWN: usize = 8;
/// The number of bytes shown as text.
const SHOWN_TEXT: usize = 32;

/// Renders the table, with a heading for each capsule and record.
pub(crate) fn render(packet: &Packet<'_>) -> String {
    let mut table = format!("{}, {} bytes\n", packet.kind, packet.length);
    if packet.length > 0 {
        line(&mut table, "offset", "length", "bytes", "name", "value");
    }
    rows(&mut table, &packet.fields);
    if let Some(inner) = &packet.inner {
        heading(&mut table, format_args!("data: {}", inner.kind));
        rows(&mut table, &inner.fields);
    }
    for (number, capsule) in (1..).zip(&packet.capsules) {
        let reliability = capsule.reliability.map_or("malformed", reliability_name);
        let message = capsule.message.unwrap_or("part of a message");
        heading(&mut table, format_args!("capsule {number}: {reliability}, {message}"));
        rows(&mut table, &capsule.fields);
        if let Some(control) = &capsule.control {
            heading(&mut table, format_args!("payload of capsule {number}"));
            rows(&mut table, control);
        }
    }
    for (number, record) in (1..).zip(&packet.records) {
        heading(&mut table, format_args!("record {number}"));
        rows(&mut table, &record.fields);
    }
    if !packet.rest.is_empty() {
        heading(&mut table, format_args!("rest"));
        rows(&mut table, &packet.rest);
    }
    table
}

// Writing to a string never fails.

fn heading(table: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = writeln!(table, "-- {text}");
}

fn line(table: &mut String, offset: &str, length: &str, bytes: &str, name: &str, value: &str) {
    let row = format!("{offset:>6}  {length:>6}  {bytes:<18}  {name:<24}  {value}");
    let _ = writeln!(table, "{}", row.trim_end());
}

fn rows(table: &mut String, fields: &[Field<'_>]) {
    for field in fields {
        line(
            table,
            &field.offset.to_string(),
            &field.bytes.len().to_string(),
            &shortened(field.bytes),
            field.name,
            &value(field),
        );
    }
}

fn shortened(bytes: &[u8]) -> String {
    match bytes.get(..SHOWN) {
        Some(front) if bytes.len() > SHOWN => format!("{}…", hex::format(front)),
        _ => hex::format(bytes),
    }
}

fn value(field: &Field<'_>) -> String {
    match field.value {
        Value::Number(number) => match (field.name, field.bytes) {
            ("id", [byte]) => format!("{number:#04x} {}", id::name(*byte)),
            ("flags", _) => format!("{number:#04x}"),
            ("guid", _) => format!("{number:016x}"),
            _ => number.to_string(),
        },
        Value::Float(number) => number.to_string(),
        Value::Address(address) => address.to_string(),
        Value::Bytes(bytes) if !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0) => "zeros".to_owned(),
        Value::Bytes(bytes) => match bytes.get(..SHOWN_TEXT) {
            Some(front) if bytes.len() > SHOWN_TEXT => format!("\"{}\"…", text::escape(front)),
            _ => format!("\"{}\"", text::escape(bytes)),
        },
        _ => String::new(),
    }
}
