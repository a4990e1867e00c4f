//! What the offline part of a handshake says of security, whether or not this end has any (docs/secure.md#the-handshake).

use core::net::SocketAddr;

use crate::raknet::reason::ConnectFailure;
use crate::raknet::wire::Guid;
use crate::raknet::wire::offline::ServerSecurity;

/// What reply 1 said, and what belongs to its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer<'o> {
    pub(super) guid: Guid,
    pub(super) security: ServerSecurity<'o>,
    /// The server's address as request 2 will have it.
    pub(super) server_address: SocketAddr,
    /// The MTU that request 2 will have.
    pub(super) mtu: u16,
    /// The version of the protocol that is announced, and the one that was announced first.
    pub(super) versions: [u8; 2],
}

/// How reply 1 is answered.
#[derive(Clone, Copy, Debug)]
pub(super) enum Acceptance {
    Plain,
    Cookie(u32),
    #[cfg(feature = "secure")]
    Challenge(u32),
}

/// What reply 2 said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply2Fields<'r> {
    pub(super) guid: Guid,
    pub(super) client: SocketAddr,
    pub(super) mtu: u16,
    pub(super) answer: Option<&'r [u8]>,
}

/// How a client without security answers a reply 1: a server may have a key and not require that it is used.
pub(super) fn accept_in_plain(security: ServerSecurity<'_>) -> Result<Acceptance, ConnectFailure> {
    match security {
        ServerSecurity::None => Ok(Acceptance::Plain),
        ServerSecurity::Cookie(cookie) => Ok(Acceptance::Cookie(cookie)),
        ServerSecurity::PublicKey { cookie, key } if is_optional(key) => Ok(Acceptance::Cookie(cookie)),
        ServerSecurity::PublicKey { .. } => Err(ConnectFailure::SecurityRequired),
    }
}

/// Whether the key of a server says that clients may do without (docs/secure.md#reply-1-the-key-64-bytes). One of another
/// suite, as the original's, does not say so.
fn is_optional(key: &[u8]) -> bool {
    const REQUIRED: u8 = 1;
    matches!(key, [_, _, flags, b'r', b'w', b's', b'0', b'1', ..] if flags & REQUIRED == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_key_of_ours_may_be_optional() {
        let mut key = [7; 64];
        key[2..8].copy_from_slice(b"\0rws01");
        assert!(is_optional(&key));
        key[2] = 2;
        assert!(is_optional(&key), "an identity is wanted of who has security");
        key[2] = 3;
        assert!(!is_optional(&key));
        key[2..8].copy_from_slice(b"\0rws02");
        assert!(!is_optional(&key));
        assert!(!is_optional(&[0; 7]));
    }
}
