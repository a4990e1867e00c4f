//! The peer of a secure connection.

use crate::codes::{Outcome, RAKWIRE_OK, guard};
use crate::memory::{Versioned, write_struct};
use crate::registry;
use crate::types::{RakwireConnection, RakwireEndpoint, RakwireResult, RakwireSecurePeer};

/// Stores the authenticated key, identity and connect token of the peer of a connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_secure_peer(
    endpoint: RakwireEndpoint,
    connection: RakwireConnection,
    peer: *mut RakwireSecurePeer,
) -> RakwireResult {
    guard(|| {
        let found = known_peer(endpoint, connection)?;
        // SAFETY: the caller passes a struct with its actual size in `size`.
        unsafe { write_struct(peer, &found) }?;
        Ok(RAKWIRE_OK)
    })
}

#[cfg(feature = "secure")]
fn known_peer(endpoint: u64, connection: u64) -> Outcome<RakwireSecurePeer> {
    use rakwire_native::SecurePeer;
    use rakwire_native::secure::KeyHash;

    let mut found = RakwireSecurePeer::zeroed();
    registry::with(endpoint, |endpoint| {
        let id = endpoint.connection(connection)?;
        let known = endpoint.polled.peer();
        match known.secure_peer(id) {
            Some(SecurePeer::Server(server)) => {
                (found.is_secure, found.has_key, found.key) = (1, 1, server.key.0);
                if let Some(KeyHash(next)) = server.next {
                    (found.has_next_key, found.next_key_hash) = (1, next);
                }
            }
            Some(SecurePeer::Client(Some(client))) => {
                (found.is_secure, found.has_key, found.key) = (1, 1, client.key.0);
                found.identity_data_length = copy(client.data(), &mut found.identity_data) as u8;
            }
            Some(SecurePeer::Client(None)) => found.is_secure = 1,
            None => {}
        }
        if let Some(token) = known.accepted_token(id) {
            found.has_token = 1;
            (found.token_user_id, found.token_expires) = (token.user_id, token.expires);
            found.token_data_length = copy(token.user_data(), &mut found.token_data) as u32;
        }
        Ok(found)
    })
}

/// Copies as many bytes as fit, and returns their number.
#[cfg(feature = "secure")]
fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let length = from.len().min(to.len());
    to[..length].copy_from_slice(&from[..length]);
    length
}

/// Without the feature `secure`, no connection is secure.
#[cfg(not(feature = "secure"))]
fn known_peer(endpoint: u64, connection: u64) -> Outcome<RakwireSecurePeer> {
    registry::with(endpoint, |endpoint| endpoint.connection(connection))?;
    Ok(RakwireSecurePeer::zeroed())
}
