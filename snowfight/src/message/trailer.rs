//! Bytes appended to a message. Decoders that do not support these bytes treat them as padding
//! (docs/rabbit.md#padding).

use rakwire::codec::rabbit::Reader;

/// Appends bytes to a message of `length` bytes if they fit; returns the total length.
pub(super) fn write(buffer: &mut [u8], length: usize, trailer: &[u8]) -> usize {
    let end = length + trailer.len();
    match buffer.get_mut(length..end) {
        Some(room) => {
            room.copy_from_slice(trailer);
            end
        }
        None => length,
    }
}

/// Reads the first `N` bytes after a message; returns `None` if there are fewer.
pub(super) fn read<const N: usize>(reader: &mut Reader<'_>) -> Option<[u8; N]> {
    let padding = (8 - reader.position() % 8) % 8;
    let mut trailer = [0; N];
    reader.bits(padding as u32).and_then(|_| reader.bytes(&mut trailer)).ok()?;
    Some(trailer)
}
