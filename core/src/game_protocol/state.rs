//! What a peer of the Game Protocol keeps beside its connections.

use heapless::Deque;

use super::responder::StatelessResponder;
use super::types::GameProtocol;
use crate::endpoint;
use crate::storage::Ring;

/// An acknowledgement that waits to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acknowledgement {
    pub(crate) slot: u16,
    pub(crate) generation: u32,
    pub(crate) sequence: u16,
    pub(crate) chunk: u8,
}

/// What a peer keeps beside its connections.
#[derive(Debug)]
pub(crate) struct State<'a> {
    pub(super) responder: StatelessResponder,
    pub(super) acknowledgements: Ring<'a, Acknowledgement>,
    /// Where the sequences of new connections start.
    pub(super) first_sequence: u16,
}

impl<'a> State<'a> {
    /// The state of a new peer.
    #[inline(always)] // or it is copied
    pub(super) fn new(acknowledgements: Ring<'a, Acknowledgement>) -> Self {
        Self { responder: StatelessResponder::default(), acknowledgements, first_sequence: 0 }
    }
}

impl endpoint::State<GameProtocol> for State<'_> {
    fn is_idle(&self) -> bool {
        self.acknowledgements.is_empty() && self.responder.is_idle()
    }
}

/// The memory of [`State`].
#[derive(Debug)]
pub(crate) struct Storage<const BLOCKS: usize>(Deque<Acknowledgement, BLOCKS>);

impl<const BLOCKS: usize> endpoint::Storage<GameProtocol> for Storage<BLOCKS> {
    const EMPTY: Self = Self(Deque::new());

    fn lend(&mut self) -> Ring<'_, Acknowledgement> {
        self.0.clear();
        Ring::Lent(&mut self.0)
    }

    #[cfg(feature = "alloc")]
    fn allocate(_connections: usize, blocks: usize) -> Ring<'static, Acknowledgement> {
        Ring::Owned { queue: alloc::collections::VecDeque::with_capacity(blocks), capacity: blocks }
    }
}
