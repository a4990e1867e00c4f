//! The protocol's name among types.

/// The Game Protocol, as a [`Protocol`](crate::endpoint::Protocol).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GameProtocol;
