//! What a server says that wants keys (docs/raknet.md#key-problems).

use crate::raknet::reason::ConnectFailure;
use crate::raknet::wire::id;

/// What the original leaves of 0A in a connection, where no other message is so short
/// (docs/raknet.md#cut-messages).
const CUT_OFF: &[u8] = &[0];

/// Why a message in a connection that tells of keys ends the attempt of a client; none for any other message.
pub(super) const fn failure_in_connection(message: &[u8]) -> Option<ConnectFailure> {
    match message {
        CUT_OFF => Some(ConnectFailure::SecurityRequired),
        _ => failure_of(message),
    }
}

/// Why a message that tells of keys ends the attempt of a client; none for any other message. The documents disagree on
/// what follows the ids, and the original on how much of it is sent.
pub(super) const fn failure_of(message: &[u8]) -> Option<ConnectFailure> {
    Some(match message {
        [id::REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY, 1, ..] => ConnectFailure::IdentityRequired,
        [id::REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY, 2, ..] => ConnectFailure::InvalidIdentity,
        [id::REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY | id::OUR_SYSTEM_REQUIRES_SECURITY, ..] => {
            ConnectFailure::SecurityRequired
        }
        [id::PUBLIC_KEY_MISMATCH, ..] => ConnectFailure::PublicKeyMismatch,
        _ => return None,
    })
}
