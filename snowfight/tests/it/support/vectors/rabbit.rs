//! Checks single values: packing gives the recorded bits, and unpacking gives the recorded value.

use rakwire::codec::rabbit::{Error, ErrorKind, Reader, Writer, unpack};
use serde_json::Value;
use snowfight::message::{ClientMessage, ServerMessage};

use super::json::{bytes, hex, list, number, text};
use super::value::Type;
use super::{Held, same};

/// The implementation that wrote the vectors packs raw numbers of at most 32 bits, and clamps larger ones.
const RECORDED_WIDTH: u32 = 32;

pub(super) fn check(entry: &Value) -> Held {
    let (name, value) = (text(entry, "type")?, &entry["value"]);
    let packed = bytes(text(entry, "hex")?)?;
    let mut buffer = vec![0; packed.len() + 64];
    let mut writer = Writer::new(&mut buffer);
    let mut reader = Reader::new(&packed);
    let read = if name == "raw_bits" {
        pack_raw(value, &mut writer)?;
        unpack_raw(value, &mut reader)?;
        value.clone()
    } else {
        let ty = Type::parse(name)?;
        ty.pack(value, &mut writer)?;
        ty.unpack(&mut reader).map_err(|error| error.to_string())?
    };
    same("bits", writer.position(), number(&entry["bits"])?)?;
    same("bytes", hex(writer.finish()), hex(&packed))?;
    same("value", &read, value)
}

fn pairs(value: &Value) -> Result<Vec<(u64, u32)>, String> {
    list(value)?
        .iter()
        .map(|pair| Ok((number(&pair[0])?, number::<u32>(&pair[1])?.min(RECORDED_WIDTH))))
        .collect()
}

fn pack_raw(value: &Value, writer: &mut Writer<'_>) -> Held {
    let mut pairs = pairs(value)?.into_iter();
    pairs.try_for_each(|(number, width)| writer.bits(number, width)).map_err(|error| error.to_string())
}

fn unpack_raw(value: &Value, reader: &mut Reader<'_>) -> Held {
    pairs(value)?.into_iter().try_for_each(|(number, width)| {
        let read = reader.bits(width).map_err(|error| error.to_string())?;
        same("a number", read, number & !(u64::MAX << width))
    })
}

/// Checks bytes that must be accepted, or rejected for the recorded reason.
pub(super) fn check_decoding(entry: &Value) -> Held {
    let packed = bytes(text(entry, "hex")?)?;
    let shown = match text(entry, "type")? {
        "ClientMessage" => unpack::<ClientMessage>(&packed).map(|message| vec![format!("{message:?}")]),
        "ServerMessage" => unpack::<ServerMessage<'_>>(&packed).map(|message| vec![format!("{message:?}")]),
        name => {
            let ty = Type::parse(name)?;
            let value = ty.unpack(&mut Reader::new(&packed));
            value.map(|value| vec![ty.show(&value), value.as_str().unwrap_or_default().to_owned()])
        }
    };
    let result = &entry["result"];
    let refused = result["error"].as_str().or_else(|| result["err"].as_str());
    match (result["ok"].as_str(), refused) {
        (Some(expected), None) => {
            let shown = shown.map_err(|error| format!("refused: {error}"))?;
            if shown.iter().any(|shown| shown == expected) { Ok(()) } else { Err(format!("{shown:?}")) }
        }
        (None, Some(expected)) => {
            let error = shown.err().ok_or("the value was accepted")?;
            same("an error", is_meant(error, expected), true)
                .map_err(|_| format!("{error} instead of {expected:?}"))
        }
        _ => Err("no result".into()),
    }
}

/// Returns true if the error corresponds to the recorded error text.
fn is_meant(error: Error, words: &str) -> bool {
    if let ErrorKind::UnknownVariant { index, .. } = error.kind {
        return words == format!("unknown variant index: {index}");
    }
    // The implementation that wrote the vectors reads the existing elements first, and fails at the first missing
    // one.
    let ends = matches!(error.kind, ErrorKind::EndOfInput | ErrorKind::TooMany { .. });
    (ends && words == "unexpected eof")
        || (error.kind == ErrorKind::BadUtf8 && words.to_lowercase().contains("utf"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_parsed_to_their_parts() {
        let nested = Type::parse("(Option<Vec<u8>>, (bool,u16),enum5)").expect("a type");
        let value = json!([["1", "2"], [true, "3"], 4]);
        let mut buffer = [0; 16];
        let mut writer = Writer::new(&mut buffer);
        nested.pack(&value, &mut writer).expect("a value");
        let packed = writer.finish().to_vec();
        assert_eq!(nested.unpack(&mut Reader::new(&packed)), Ok(value.clone()));
        assert_eq!(nested.show(&value), "(Some([1, 2]), (true, 3), 4)");
        for wrong in ["u7", "Vec<", "enum0", "(bool", ""] {
            assert!(Type::parse(wrong).is_err(), "{wrong}");
        }
    }
}
