//! Bytes in several pieces, for what reads them without a copy.

/// Where a piece of some [`Chunks`] begins; only those that gave it know what it means.
///
/// ```
/// use rakwire::{Chunks, Piece};
///
/// let message: &[&[u8]] = &[b"ab", b"c"];
/// let (first, second) = message.piece(Piece::FIRST);
/// assert_eq!((first, second.map(|at| message.piece(at).0)), (&b"ab"[..], Some(&b"c"[..])));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece(pub(crate) u32);

impl Piece {
    /// The piece that everything begins with.
    pub const FIRST: Self = Self(0);

    /// A piece by a number of the implementation's own; zero is the first.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number that it was made of.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Bytes that lie in one or more pieces: a message as a peer lends it, or a slice of slices.
///
/// ```
/// use rakwire::{Chunks, Piece};
///
/// fn longest_piece(bytes: &dyn Chunks) -> usize {
///     let (mut longest, mut next) = (0, Some(Piece::FIRST));
///     while let Some(at) = next {
///         let (piece, after) = bytes.piece(at);
///         (longest, next) = (longest.max(piece.len()), after);
///     }
///     longest
/// }
/// let pieces: &[&[u8]] = &[&[1, 2], &[3, 4, 5]];
/// assert_eq!((longest_piece(&pieces), pieces.total()), (3, 5));
/// ```
pub trait Chunks {
    /// The number of bytes in all pieces.
    fn total(&self) -> usize;

    /// The bytes of a piece, and where the next one begins. A piece that does not exist is empty and the last.
    fn piece(&self, at: Piece) -> (&[u8], Option<Piece>);
}

/// All in one piece.
impl Chunks for [u8] {
    fn total(&self) -> usize {
        self.len()
    }

    fn piece(&self, at: Piece) -> (&[u8], Option<Piece>) {
        (if at == Piece::FIRST { self } else { &[] }, None)
    }
}

impl Chunks for [&[u8]] {
    fn total(&self) -> usize {
        self.iter().map(|piece| piece.len()).sum()
    }

    fn piece(&self, at: Piece) -> (&[u8], Option<Piece>) {
        let index = at.0 as usize;
        let next = at.0.checked_add(1).filter(|next| (*next as usize) < self.len());
        (self.get(index).copied().unwrap_or(&[]), next.map(Piece))
    }
}

impl<T: Chunks + ?Sized> Chunks for &T {
    fn total(&self) -> usize {
        (**self).total()
    }

    fn piece(&self, at: Piece) -> (&[u8], Option<Piece>) {
        (**self).piece(at)
    }
}
