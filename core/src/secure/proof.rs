//! What both sides derive from a finished handshake beside the keys.

use super::fields::PROOF;
use super::noise::SymmetricState;
use super::primitives::hmac;

/// The label of the keys between the second message of XK and its third.
pub(super) const EARLY_LABEL: &[u8] = b"rakwire early 1";

/// The client's proof that it has the keys and has heard what the server said.
pub(super) fn proof(state: &SymmetricState) -> [u8; PROOF] {
    let key = hmac(state.chaining_key().as_bytes(), &[b"rakwire proof 1"]);
    *hmac(key.as_bytes(), &[state.handshake_hash()]).as_bytes()
}
