//! Secure connections: the handshake, packet protection, keys and connect tokens (docs/secure.md).
//!
//! The module contains building blocks without a connection: they convert the bytes of fields and datagrams. The
//! caller provides random bytes and the time. No allocator is needed.
//!
//! ```
//! use rakwire::Instant;
//! use rakwire::raknet::Guid;
//! use rakwire::secure::{
//!     ClientHandshake, Identity, Negotiated, ReplyFields, SecureRequest, SeededRandom, ServerHandshake,
//!     ServerIdentity, ServerTrust, StaticKey, Versions,
//! };
//!
//! let mut random = SeededRandom::new([7; 32]); // 32 random bytes in a real program
//! let now = Instant::ZERO;
//! let server = ServerIdentity::new(StaticKey::generate(&mut random));
//! let player = StaticKey::generate(&mut random);
//!
//! // Reply 1 contained the key; request 2 contains the other fields.
//! let negotiated = Negotiated {
//!     server: Guid(1),
//!     client: Guid(2),
//!     cookie: 0x1234_5678,
//!     server_address: "192.0.2.1:19132".parse()?,
//!     mtu: 1492,
//! };
//! let trust = ServerTrust::KeyHash(server.public().hash());
//! let versions = Versions { announced: 6, first: 6 };
//! let mut client = ClientHandshake::new();
//! let challenge = client.challenge(&trust, true, &server.field(1492), &negotiated, versions, &mut random)?;
//!
//! // The server has verified the cookie.
//! let request = SecureRequest { negotiated: &negotiated, challenge: &challenge };
//! let reply = ReplyFields { client: "192.0.2.2:50000".parse()?, mtu: 1492 };
//! let (mut handshake, mut at_server) =
//!     ServerHandshake::respond(&server, request, reply, &[6, 10, 11], now, &mut random)?;
//!
//! // Reply 2 contained the answer.
//! let identity = Identity { key: &player, data: b"Ada" };
//! let established = client.accept(
//!     handshake.answer(),
//!     negotiated.server,
//!     &reply.client,
//!     reply.mtu,
//!     Some(identity),
//!     now,
//! )?;
//! let mut at_client = established.protection;
//!
//! // The connection request contained the proof and the identity.
//! let shown = handshake.finish(
//!     &mut at_server,
//!     &established.proof,
//!     established.identity.as_ref().map(|identity| &identity[..]),
//!     now,
//! )?;
//! assert_eq!(shown.map(|shown| shown.key), Some(player.public()));
//!
//! // All further datagrams are sealed.
//! let mut datagram = [0; 64];
//! datagram[..7].copy_from_slice(b"welcome");
//! let length = at_server.seal(now, &mut datagram, 7).ok_or("no space")?;
//! assert_eq!(at_client.open(now, &mut datagram[..length])?, b"welcome");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod datagrams;
mod fields;
#[cfg(feature = "key-log")]
mod key_log;
mod keys;
mod noise;
mod primitives;
mod server;
mod token;

use core::fmt::{Debug, Display};
use core::mem::needs_drop;

use noise::SymmetricState;
use primitives::{KeyPair, Secret};

pub(crate) use datagrams::HEADER;

pub use client::{ClientHandshake, Established, Identity};
pub use datagrams::{DatagramProtection, OVERHEAD, OpenError, RekeyLimits};
pub use fields::{
    ANSWER, CHALLENGE, HandshakeError, IDENTITY, IdentityError, MAX_IDENTITY_DATA, Negotiated, PROOF,
    PUBLIC_KEY_FIELD, ServerKeyField, Versions,
};
#[cfg(feature = "key-log")]
pub use key_log::{KeyDirection, KeyLog, KeyLogError, LoggedKey};
pub use keys::{KeyHash, KeyTextError, KnownServer, PrivateText, PublicKey, ServerTrust, StaticKey};
pub use primitives::{DatagramCipher, RustCrypto, SecureRandom, SeededRandom};
pub use server::{ClientIdentity, ReplyFields, SecureRequest, ServerHandshake, ServerIdentity};
pub use token::{
    AcceptedToken, ConnectToken, ConnectTokenError, MAX_CONNECT_TOKEN, MAX_SEALED_TOKEN, MAX_TOKEN_KEYS,
    MAX_TOKEN_SERVERS, MAX_USER_DATA, TokenClaims, TokenError, TokenKey, TokenKeys, TokenServer,
    TokenServers, TokenVerifier, UsedTokenStore, UsedTokens,
};

// Compile-time checks of the types that hold secrets.
//
// These types cannot be copied or printed by accident. Each has drop glue, which erases its secrets; the erasure itself
// cannot be checked at compile time.

/// Fails to compile if the type implements any of the traits, because `UNIT` is then ambiguous.
macro_rules! assert_without {
    ($type:ty: $($trait:path),+) => {
        $(const _: () = {
            trait Ambiguous<Marker> {
                const UNIT: () = ();
            }
            enum Implemented {}
            impl<T: ?Sized> Ambiguous<()> for T {}
            impl<T: ?Sized + $trait> Ambiguous<Implemented> for T {}
            <$type as Ambiguous<_>>::UNIT
        };)+
    };
}

assert_without!(Secret: Clone, Copy, Debug, Display);
assert_without!(KeyPair: Clone, Copy, Debug, Display);
assert_without!(SymmetricState: Clone, Copy, Debug, Display);
assert_without!(SeededRandom: Clone, Copy, Debug, Display);
assert_without!(TokenKey: Clone, Copy, Debug, Display);
assert_without!(TokenVerifier: Clone, Copy, Debug, Display);
assert_without!(DatagramProtection: Clone, Copy, Debug, Display);
assert_without!(ClientHandshake: Clone, Copy, Debug, Display);
assert_without!(ServerHandshake: Clone, Copy, Debug, Display);
assert_without!(Established: Clone, Copy, Debug, Display);
// `Debug` is allowed, because it prints only the public key.
assert_without!(StaticKey: Clone, Copy, Display);
// `Display` is allowed: it writes the key as a line of a key log.
#[cfg(feature = "key-log")]
assert_without!(LoggedKey: Clone, Copy, Debug);

const _: () = assert!(needs_drop::<Secret>());
const _: () = assert!(needs_drop::<KeyPair>());
const _: () = assert!(needs_drop::<SymmetricState>());
const _: () = assert!(needs_drop::<SeededRandom>());
const _: () = assert!(needs_drop::<StaticKey>());
const _: () = assert!(needs_drop::<TokenKey>());
const _: () = assert!(needs_drop::<TokenVerifier>());
const _: () = assert!(needs_drop::<DatagramProtection>());
const _: () = assert!(needs_drop::<ClientHandshake>());
const _: () = assert!(needs_drop::<ServerHandshake>());
const _: () = assert!(needs_drop::<Established>());
#[cfg(feature = "key-log")]
const _: () = assert!(needs_drop::<LoggedKey>());
