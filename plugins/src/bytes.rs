//! Copies short messages, which may consist of several pieces, into one buffer.

use rakwire::{Chunks, Piece};

/// Copies a message to the front of a buffer; returns `None` if it does not fit.
pub(crate) fn copy<'b>(message: &dyn Chunks, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let (mut length, mut next) = (0_usize, Some(Piece::FIRST));
    while let Some(at) = next {
        let (piece, after) = message.piece(at);
        let end = length.checked_add(piece.len())?;
        buffer.get_mut(length..end)?.copy_from_slice(piece);
        (length, next) = (end, after);
    }
    buffer.get(..length)
}

/// Returns the first `N` bytes of a message, or `None` if it is shorter.
pub(crate) fn first<const N: usize>(message: &dyn Chunks) -> Option<[u8; N]> {
    let (mut bytes, mut length, mut next) = ([0; N], 0_usize, Some(Piece::FIRST));
    while let Some(at) = next {
        let (piece, after) = message.piece(at);
        let wanted = piece.get(..piece.len().min(N - length))?;
        let end = length.checked_add(wanted.len())?;
        bytes.get_mut(length..end)?.copy_from_slice(wanted);
        length = end;
        next = after.filter(|_| length < N);
    }
    (length == N).then_some(bytes)
}
