//! The Rabbit types that vectors name, and their values in JSON.
//!
//! Integers are decimal strings, floats are the hexadecimal form of their bits, and everything else is plain JSON.

use rakwire::codec::rabbit::{Error, ErrorKind, Pack, Reader, Unpack, Writer};
use serde_json::{Value, json};

use super::json::list;

/// A type that a vector names.
#[derive(Debug, PartialEq)]
pub(super) enum Type {
    /// A type without type parameters.
    Plain(Plain),
    Option(Box<Self>),
    Vec(Box<Self>),
    Tuple(Vec<Self>),
    /// An enum of this many variants without fields.
    Enum(u32),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Plain {
    Bool,
    U8,
    U16,
    U32,
    U64,
    U128,
    I16,
    I32,
    I64,
    I128,
    F32,
    F64,
    String,
}

impl Type {
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        let name = name.trim();
        let inside = |start: &str, end: &str| name.strip_prefix(start)?.strip_suffix(end);
        if let Some(inner) = inside("Option<", ">") {
            return Ok(Self::Option(Box::new(Self::parse(inner)?)));
        }
        if let Some(inner) = inside("Vec<", ">") {
            return Ok(Self::Vec(Box::new(Self::parse(inner)?)));
        }
        if let Some(inner) = inside("(", ")") {
            return Ok(Self::Tuple(parts(inner).into_iter().map(Self::parse).collect::<Result<_, _>>()?));
        }
        if let Some(count) = name.strip_prefix("enum").and_then(|count| count.parse().ok()) {
            return if count == 0 { Err("an enum without variants".into()) } else { Ok(Self::Enum(count)) };
        }
        Plain::parse(name).map(Self::Plain)
    }

    pub(super) fn pack(&self, value: &Value, writer: &mut Writer<'_>) -> Result<(), String> {
        match self {
            Self::Plain(plain) => plain.pack(value, writer),
            Self::Option(_) if value.is_null() => done(None::<bool>.pack(writer)),
            Self::Option(inner) => {
                done(writer.bit(true))?;
                inner.pack(value, writer)
            }
            Self::Vec(inner) => {
                let values = list(value)?;
                done(writer.count(values.len()))?;
                values.iter().try_for_each(|value| inner.pack(value, writer))
            }
            Self::Tuple(types) => {
                let values = list(value)?;
                if values.len() != types.len() {
                    return Err(format!("{value} has not {} parts", types.len()));
                }
                types.iter().zip(values).try_for_each(|(part, value)| part.pack(value, writer))
            }
            Self::Enum(count) => {
                let index = value.as_u64().ok_or_else(|| format!("{value} is no index"))?;
                done(writer.bits(index, index_bits(*count)))
            }
        }
    }

    pub(super) fn unpack(&self, reader: &mut Reader<'_>) -> Result<Value, Error> {
        Ok(match self {
            Self::Plain(plain) => plain.unpack(reader)?,
            Self::Option(inner) => {
                if reader.bit()? {
                    inner.unpack(reader)?
                } else {
                    Value::Null
                }
            }
            Self::Vec(inner) => {
                let count = u32::unpack(reader)?;
                (0..count).map(|_| inner.unpack(reader)).collect::<Result<Vec<_>, _>>()?.into()
            }
            Self::Tuple(types) => {
                types.iter().map(|part| part.unpack(reader)).collect::<Result<Vec<_>, _>>()?.into()
            }
            Self::Enum(count) => {
                let bit = reader.position();
                let index = u32::try_from(reader.bits(index_bits(*count))?).unwrap_or(u32::MAX);
                if index >= *count {
                    return Err(Error { kind: ErrorKind::UnknownVariant { of: "enum", index }, bit });
                }
                index.into()
            }
        })
    }

    /// Formats a value like Rust's `Debug` output.
    pub(super) fn show(&self, value: &Value) -> String {
        let all = |values: &Value, show: &dyn Fn(usize, &Value) -> String| {
            let values = values.as_array().into_iter().flatten().enumerate();
            values.map(|(index, value)| show(index, value)).collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Plain(Plain::String) => format!("{:?}", value.as_str().unwrap_or_default()),
            Self::Plain(Plain::F32) => format!("{:?}", f32::from_bits(bits(value).unwrap_or_default())),
            Self::Plain(Plain::F64) => format!("{:?}", f64::from_bits(bits(value).unwrap_or_default())),
            Self::Option(_) if value.is_null() => "None".into(),
            Self::Option(inner) => format!("Some({})", inner.show(value)),
            Self::Vec(inner) => format!("[{}]", all(value, &|_, value| inner.show(value))),
            Self::Tuple(types) => format!("({})", all(value, &|index, value| types[index].show(value))),
            Self::Plain(_) | Self::Enum(_) => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
        }
    }
}

/// Splits the elements of a tuple at the commas outside nested types.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, character) in text.char_indices() {
        match character {
            '(' | '<' => depth += 1,
            ')' | '>' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        parts.push(&text[start..]);
    }
    parts
}

/// Returns the number of bits for the largest variant index.
fn index_bits(count: u32) -> u32 {
    u32::BITS - (count - 1).leading_zeros()
}

fn done(result: Result<(), Error>) -> Result<(), String> {
    result.map_err(|error| error.to_string())
}

/// Returns the bits of a float from their hexadecimal form.
pub(super) fn bits<T: TryFrom<u64>>(value: &Value) -> Result<T, String> {
    let bits = value.as_str().and_then(|hex| u64::from_str_radix(hex, 16).ok());
    bits.and_then(|bits| T::try_from(bits).ok()).ok_or_else(|| format!("{value} are not the bits of a float"))
}

fn decimal<T: core::str::FromStr>(value: &Value) -> Result<T, String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.parse().map_err(|_| format!("{value} is no such number"))
}

impl Plain {
    const NAMES: [(&'static str, Self); 13] = [
        ("bool", Self::Bool),
        ("u8", Self::U8),
        ("u16", Self::U16),
        ("u32", Self::U32),
        ("u64", Self::U64),
        ("u128", Self::U128),
        ("i16", Self::I16),
        ("i32", Self::I32),
        ("i64", Self::I64),
        ("i128", Self::I128),
        ("f32", Self::F32),
        ("f64", Self::F64),
        ("String", Self::String),
    ];

    fn parse(name: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, plain)| *plain);
        found.ok_or_else(|| format!("the type {name:?} is not known"))
    }

    fn pack(self, value: &Value, writer: &mut Writer<'_>) -> Result<(), String> {
        let wrong = || format!("{value} is no {self:?}");
        done(match self {
            Self::Bool => value.as_bool().ok_or_else(wrong)?.pack(writer),
            Self::U8 => decimal::<u8>(value)?.pack(writer),
            Self::U16 => decimal::<u16>(value)?.pack(writer),
            Self::U32 => decimal::<u32>(value)?.pack(writer),
            Self::U64 => decimal::<u64>(value)?.pack(writer),
            Self::U128 => decimal::<u128>(value)?.pack(writer),
            Self::I16 => decimal::<i16>(value)?.pack(writer),
            Self::I32 => decimal::<i32>(value)?.pack(writer),
            Self::I64 => decimal::<i64>(value)?.pack(writer),
            Self::I128 => decimal::<i128>(value)?.pack(writer),
            Self::F32 => f32::from_bits(bits(value)?).pack(writer),
            Self::F64 => f64::from_bits(bits(value)?).pack(writer),
            Self::String => value.as_str().ok_or_else(wrong)?.pack(writer),
        })
    }

    fn unpack(self, reader: &mut Reader<'_>) -> Result<Value, Error> {
        Ok(match self {
            Self::Bool => bool::unpack(reader)?.into(),
            Self::U8 => json!(u8::unpack(reader)?.to_string()),
            Self::U16 => json!(u16::unpack(reader)?.to_string()),
            Self::U32 => json!(u32::unpack(reader)?.to_string()),
            Self::U64 => json!(u64::unpack(reader)?.to_string()),
            Self::U128 => json!(u128::unpack(reader)?.to_string()),
            Self::I16 => json!(i16::unpack(reader)?.to_string()),
            Self::I32 => json!(i32::unpack(reader)?.to_string()),
            Self::I64 => json!(i64::unpack(reader)?.to_string()),
            Self::I128 => json!(i128::unpack(reader)?.to_string()),
            Self::F32 => json!(format!("{:08x}", f32::unpack(reader)?.to_bits())),
            Self::F64 => json!(format!("{:016x}", f64::unpack(reader)?.to_bits())),
            Self::String => json!(String::unpack(reader)?),
        })
    }
}
