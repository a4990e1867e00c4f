//! `rakwire decode --pcap`: decodes every datagram of a capture.

use std::path::Path;

use rakwire::wire::SecuritySizes;
use serde_json::json;

use super::capture_file::{CaptureFile, Datagram};
use super::form::Form;
use super::packet::Packet;
use super::sealed::{Connections, Keys, Seen};
use super::{json, table};
use crate::failure::{Failure, print};

/// Prints every datagram of the capture.
pub(super) fn run(
    path: &Path,
    key_log: Option<&Path>,
    sizes: &SecuritySizes,
    is_json: bool,
) -> Result<(), Failure> {
    let keys = key_log.map(Keys::read).transpose()?.unwrap_or_default();
    let mut connections = Connections::new(keys);
    let failure = |why: &dyn std::fmt::Display| Failure::usage(format!("--pcap {}: {why}", path.display()));
    let mut file = CaptureFile::open(path).map_err(|error| failure(&error))?;
    let mut number = 0_u64;
    while let Some(record) = file.next() {
        number += 1;
        let record = record.map_err(|error| failure(&format_args!("record {number}: {error}")))?;
        let Some(datagram) = record else { continue };
        let seen = connections.see(datagram.from, datagram.to, &datagram.bytes);
        let packet = match &seen {
            Seen::Clear => Packet::decode(&datagram.bytes, Form::Datagram, sizes),
            Seen::Opened(plain) => Packet::decode(plain, Form::Datagram, sizes),
            Seen::Sealed => Packet::sealed(&datagram.bytes),
        };
        let is_sealed = !matches!(seen, Seen::Clear);
        print(if is_json {
            as_json(number, &datagram, is_sealed, &packet)
        } else {
            as_table(number, &datagram, is_sealed, &packet)
        })?;
    }
    Ok(())
}

fn as_json(number: u64, datagram: &Datagram, is_sealed: bool, packet: &Packet<'_>) -> String {
    let object = json!({
        "number": number,
        "seconds": datagram.time.as_secs_f64(),
        "from": datagram.from.to_string(),
        "to": datagram.to.to_string(),
        "length": datagram.bytes.len(),
        "sealed": is_sealed,
        "packet": json::object(packet),
    });
    format!("{object}\n")
}

fn as_table(number: u64, datagram: &Datagram, is_sealed: bool, packet: &Packet<'_>) -> String {
    let Datagram { time, from, to, bytes } = datagram;
    let seconds = time.as_secs_f64();
    let sealed = if is_sealed { " sealed" } else { "" };
    let error = packet.error.as_ref();
    let error =
        error.map_or_else(String::new, |error| format!("at offset {}: {}\n", error.offset, error.message));
    let head = format!("datagram {number}, {seconds:.6} s, {from} to {to}, {} bytes{sealed}\n", bytes.len());
    format!("{head}{}{error}\n", table::render(packet))
}
