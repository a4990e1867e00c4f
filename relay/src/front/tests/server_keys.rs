//! Keys of servers as the library writes them: what the front knows of their bytes is what the library does.

use rakwire::secure::{KnownServer, PublicKey, ServerIdentity, ServerKeyField, StaticKey};

use super::raknet_handshake::answer_to;
use super::*;

#[test]
fn keys_that_the_library_wrote_are_understood() {
    let guid = raknet::Guid(0xF);
    let refused = bytes(&Offline::Refused { refusal: Refusal::AttemptFailed, guid });
    for requires_security in [false, true] {
        for requires_identity in [false, true] {
            let server = KnownServer { key: PublicKey([7; 32]), next: None };
            let field = ServerKeyField { mtu: 1_400, requires_security, requires_identity, server };
            let answer = answer_to(&field.write());
            assert_eq!(answer == refused, requires_security, "{field:?}: {answer:?}");
            assert!(requires_security || matches!(read(&answer), Offline::Request2 { .. }), "{answer:?}");
        }
    }
}

/// A server with a key of its own, as a program makes it.
#[test]
fn a_server_that_offers_security_by_default_lets_plain_clients_in() {
    let mut identity = ServerIdentity::new(StaticKey::from_bytes([1; 32]));
    for is_required in [false, true] {
        identity.requires_security = is_required;
        let answer = answer_to(&identity.field(1_400));
        assert_eq!(matches!(read(&answer), Offline::Request2 { .. }), !is_required, "{answer:?}");
    }
}
