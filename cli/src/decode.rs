//! `rakwire decode`: the fields of a datagram with their offsets.

mod fields;
mod form;
mod json;
mod message;
mod packet;
mod table;

use std::io::Read;

use clap::{Args, ValueEnum};
use rakwire::wire::SecuritySizes;

use crate::failure::{Failure, print};
use crate::hex;
use form::Form;
use packet::Packet;

/// The limit for standard input in bytes, far above the hex digits of the longest datagram.
const LONGEST_INPUT: u64 = 1 << 20;

/// Shows every field of a datagram or of an offline message as rakwire's parser reads it; with --as also of parts of
/// datagrams.
///
/// If the input is malformed, the fields before the error are shown, and the exit status is 1.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The bytes: hex digits, with spaces, colons, line breaks and 0x anywhere between them; - reads standard input
    #[arg(value_name = "HEX", required = true)]
    hex: Vec<String>,
    /// What the bytes are
    #[arg(long = "as", value_enum, default_value_t = Form::Datagram)]
    form: Form,
    /// The lengths of the fields of the secure mode: those of the original, or those of the documents
    #[arg(long, value_enum, default_value_t = Sizes::Original)]
    sizes: Sizes,
    /// Print one JSON object
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
            Self::Documents => SecuritySizes::DOCUMENTS,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
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
    let read = std::io::stdin().lock().take(LONGEST_INPUT).read_to_string(&mut text);
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::usage(format!("cannot read the input: {error}"))),
    }
}
