//! Properties of Rabbit values that are unpacked from arbitrary bytes.

use core::fmt::Debug;

use rakwire::codec::rabbit::{Error, List, Pack, Reader, Text, Unpack, to_vec, unpack};

use super::Kept;

type Numbers = (u8, u16, u32, u64, u128);
type Signed = (i16, i32, i64, i128);
type Lists = Vec<(Option<u32>, String, Vec<bool>)>;
type Small = (heapless::Vec<Option<u16>, 9>, heapless::String<9>);

/// Checks the bytes as every type.
pub fn values(bytes: &[u8]) -> Kept {
    check::<bool>(bytes)?;
    check::<Numbers>(bytes)?;
    check::<Signed>(bytes)?;
    check::<Option<Numbers>>(bytes)?;
    check::<Lists>(bytes)?;
    check::<Small>(bytes)?;
    check::<(bool, Vec<Signed>, Vec<Vec<u8>>)>(bytes)?;
    floats(bytes)?;
    lent(bytes)
}

/// Checks that an unpacked value stays equal when it is packed and unpacked, and packs to at most as many bytes.
///
/// Unpacking must not depend on how the input is divided into pieces.
pub fn check<T: Pack + for<'a> Unpack<'a> + PartialEq + Debug>(bytes: &[u8]) -> Kept {
    let read = unpack::<T>(bytes);
    let pieces: Vec<_> = bytes.chunks(3).collect();
    let in_pieces = T::unpack(&mut Reader::over(&pieces.as_slice()));
    if read != in_pieces {
        return Err(format!("{read:?} in one piece, {in_pieces:?} in several"));
    }
    match read {
        Err(error) => within(bytes, error),
        Ok(value) => {
            let packed = to_vec(&value).map_err(|error| format!("{value:?} cannot be packed: {error}"))?;
            if packed.len() > bytes.len() {
                return Err(format!("{value:?} is longer when packed again"));
            }
            let again = unpack::<T>(&packed);
            if again.as_ref() == Ok(&value) { Ok(()) } else { Err(format!("{again:?} instead of {value:?}")) }
        }
    }
}

/// Checks that floats keep all their bits, including those of NaN.
fn floats(bytes: &[u8]) -> Kept {
    let Ok((single, double)) = unpack::<(f32, Option<f64>)>(bytes) else { return Ok(()) };
    let packed = to_vec(&(single, double)).map_err(|error| error.to_string())?;
    let again = unpack::<(f32, Option<f64>)>(&packed).map_err(|error| error.to_string())?;
    let bits = |(single, double): (f32, Option<f64>)| (single.to_bits(), double.map(f64::to_bits));
    if bits(again) == bits((single, double)) {
        Ok(())
    } else {
        Err(format!("{again:?} instead of {:?}", (single, double)))
    }
}

fn within(bytes: &[u8], error: Error) -> Kept {
    if error.bit <= bytes.len() * 8 { Ok(()) } else { Err(format!("{error}, which is beyond the input")) }
}

/// Checks that lazy unpacking agrees with eager unpacking.
fn lent(bytes: &[u8]) -> Kept {
    let list = unpack::<List<'_, (u16, bool)>>(bytes).map(|list| list.iter().collect::<Vec<_>>());
    let text = unpack::<Text<'_>>(bytes).map(|text| text.to_string());
    let (all, string) = (unpack::<Vec<(u16, bool)>>(bytes), unpack::<String>(bytes));
    if list != all {
        return Err(format!("{list:?} instead of {all:?}"));
    }
    // The errors differ: only `Text` reports the position of an invalid character.
    if text.clone().ok() == string.clone().ok() {
        Ok(())
    } else {
        Err(format!("{text:?} instead of {string:?}"))
    }
}
