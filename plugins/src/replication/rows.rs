//! Access to rows of equal length in one slice.

/// Returns the row with this number; empty if there is none.
pub(super) fn row<T>(all: &[T], number: usize, width: usize) -> &[T] {
    bounds(number, width).and_then(|(start, end)| all.get(start..end)).unwrap_or_default()
}

/// Returns the row with this number, mutable; empty if there is none.
pub(super) fn row_mut<T>(all: &mut [T], number: usize, width: usize) -> &mut [T] {
    bounds(number, width).and_then(|(start, end)| all.get_mut(start..end)).unwrap_or_default()
}

fn bounds(number: usize, width: usize) -> Option<(usize, usize)> {
    let start = number.checked_mul(width)?;
    Some((start, start.checked_add(width)?))
}
