//! Sends the states of entities that a client owns.

use super::memory::{Parts, View};
use super::replica::Replica;
use crate::replication::class::Class;
use crate::replication::rows::row;
use crate::replication::wire::{
    NAME_BITS, STATE_HEADER, Writer, gamma_bits, state_header, write_gamma, write_values,
};

/// Sends the unsent states of owned entities; returns false if the send memory is full.
pub(super) fn send_states(
    parts: Parts<'_>,
    classes: &'static [Class],
    last_number: &mut u32,
    mut send: impl FnMut(&[u8]) -> bool,
) -> bool {
    let Parts { places, values, buffer, fields } = parts;
    let mut from = 0;
    while from < places.len() {
        let Some(number) = last_number.checked_add(1) else { return true };
        let view = View { places, values, fields };
        let Some((length, end)) = write_states(view, classes, number, from, buffer) else { return true };
        *last_number = number;
        if !send(buffer.get(..length).unwrap_or_default()) {
            return false;
        }
        let sent = places.iter_mut().take(end).skip(from);
        sent.filter_map(|place| place.replica.as_mut()).for_each(|replica| replica.is_unsent = false);
        from = end;
    }
    true
}

/// Writes a message with as many unsent states as fit, starting at a position. Returns its length and the next
/// position; `None` if there are none.
fn write_states(
    view: View<'_>,
    classes: &'static [Class],
    number: u32,
    from: usize,
    buffer: &mut [u8],
) -> Option<(usize, usize)> {
    let room = buffer.len().saturating_sub(STATE_HEADER) * 8;
    let (mut bits, mut count, mut end, mut next) = (0, 0, from, 0);
    for (index, _, class) in unsent(view, classes, from) {
        let all = bits + gamma_bits(index + 1 - next) + NAME_BITS + class.bits();
        if all + gamma_bits(count + 1) > room {
            break;
        }
        (bits, count, end, next) = (all, count + 1, index + 1, index + 1);
    }
    let (header, records) = buffer.split_first_chunk_mut()?;
    *header = state_header(number);
    let mut writer = Writer::new(records);
    write_gamma(&mut writer, count).ok()?;
    let mut next = 0;
    for (index, replica, class) in unsent(view, classes, from).take(count) {
        write_gamma(&mut writer, index + 1 - next).ok()?;
        next = index + 1;
        replica.name.write_name(&mut writer).ok()?;
        write_values(&mut writer, class, row(view.values, index, view.fields)).ok()?;
    }
    (count > 0).then(|| (STATE_HEADER + writer.finish().len(), end))
}

fn unsent<'v>(
    view: View<'v>,
    classes: &'static [Class],
    from: usize,
) -> impl Iterator<Item = (usize, &'v Replica, &'static Class)> {
    view.places.iter().enumerate().skip(from).filter_map(move |(index, place)| {
        let replica = place.replica.as_ref().filter(|replica| replica.is_unsent)?;
        Some((index, replica, classes.get(usize::from(replica.name.class))?))
    })
}
