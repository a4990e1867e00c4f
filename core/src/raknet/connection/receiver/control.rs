//! Messages of RakNet itself, which the connection handles.

use crate::storage::Block;

/// The bytes of a message.
#[derive(Clone, Copy)]
pub(in super::super) enum Payload<'d> {
    /// In the datagram that is being handled.
    Borrowed(&'d [u8]),
    /// In the pool.
    Stored(Block),
}

/// A message of RakNet itself.
#[derive(Clone, Copy)]
pub(in super::super) struct ControlMessage<'d> {
    pub(in super::super) payload: Payload<'d>,
    /// The channel on which buffered messages may be deliverable after this one.
    pub(super) channel: Option<u8>,
}
