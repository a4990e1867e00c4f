//! Cases for servers of the Game Protocol.

mod handshake;
mod packets;
mod payloads;
mod row;

use crate::case::Case;

/// The groups, by their numbers.
pub(super) const GROUPS: &[&[Case]] =
    &[handshake::CASES, packets::CASES, payloads::CASES, handshake::ENDS, handshake::HOSTILE];
