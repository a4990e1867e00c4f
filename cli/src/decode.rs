//! `rakwire decode`: the fields of a datagram with their offsets.

mod capture;
mod capture_file;
mod fields;
mod form;
mod json;
mod message;
mod packet;
mod sealed;
mod table;

use std::io::Read;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rakwire::wire::SecuritySizes;

use crate::failure::{Failure, print};
use crate::hex;
use form::Form;
use packet::Packet;

/// The limit for standard input in bytes, far above the hex digits of the longest datagram.
const MAX_INPUT: u64 = 1 << 20;

/// Shows every field of a datagram or an offline message as rakwire's parser reads it. With --as it decodes a part of a
/// datagram; with --pcap it decodes all datagrams of a capture.
///
/// If the input is malformed, the fields before the error are shown and the exit status is 1.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The bytes as hex digits, with spaces, colons, line breaks and 0x anywhere between them; - reads standard input
    #[arg(value_name = "HEX", required_unless_present = "pcap")]
    hex: Vec<String>,
    /// Decode the datagrams of this capture instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["hex", "form"])]
    pcap: Option<PathBuf>,
    /// Open the sealed datagrams of the capture with the keys in this file, as written by echo and send
    #[arg(long, value_name = "FILE")]
    key_log: Option<PathBuf>,
    /// The kind of bytes
    #[arg(long = "as", value_enum, default_value_t = Form::Datagram)]
    form: Form,
    /// The field lengths of RakNet's own secure mode: as C++ RakNet sends them, or as its documentation states them
    #[arg(long, value_enum, default_value_t = Sizes::Original)]
    sizes: Sizes,
    /// Print one JSON object, or one per datagram of a capture
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sizes {
    Original,
    Documents,
}

impl Sizes {
    const fn in_bytes(self) -> SecuritySizes {
        match self {
            Self::Original => SecuritySizes::ORIGINAL,
            Self::Documents => SecuritySizes::DOCUMENTED,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(pcap) = &arguments.pcap {
        return capture::run(pcap, arguments.key_log.as_deref(), &arguments.sizes.in_bytes(), arguments.json);
    }
    if arguments.key_log.is_some() {
        return Err(Failure::usage("--key-log needs a capture; give one with --pcap"));
    }
    let bytes = hex::parse(&input(&arguments.hex)?)
        .map_err(|error| Failure::usage(format!("the input is not hex: {error}")))?;
    let packet = Packet::decode(&bytes, arguments.form, &arguments.sizes.in_bytes());
    print(if arguments.json { json::render(&packet) } else { table::render(&packet) })?;
    match packet.error {
        None => Ok(()),
        Some(error) => Err(Failure::runtime(format!("at offset {}: {}", error.offset, error.message))),
    }
}

fn input(hex: &[String]) -> Result<String, Failure> {
    if hex != ["-"] {
        return Ok(hex.join(" "));
    }
    let mut text = String::new();
    let read = std::io::stdin().lock().take(MAX_INPUT).read_to_string(&mut text);
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::usage(format!("cannot read the input: {error}"))),
    }
}
