//! Signed tokens that admit clients.
//!
//! A token is a JSON Web Token (RFC 7519, in the compact form of RFC 7515) signed with Ed25519 (`EdDSA`, RFC 8037) or
//! HMAC-SHA256 (`HS256`), so that any library for them can make one. The relay decides by its keys which algorithm a
//! token must have; what the token itself says of it has to agree.

mod claims;
mod key;

pub use claims::{Claims, ClaimsError};
pub use key::{KeyError, SigningKey, VerifyingKey};
