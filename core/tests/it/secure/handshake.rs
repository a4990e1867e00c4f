//! Successful handshakes and their results.

use rakwire::secure::{KnownServer, ServerKeyField};

use super::*;

#[test]
fn a_client_without_an_identity_and_a_server_have_the_same_keys() {
    let mut stage = Stage::new(None);
    let (mut established, handshake, mut at_server) = stage.answered();
    assert_eq!(established.server, KnownServer { key: stage.server.public(), next: None });
    assert!(established.identity.is_none());
    assert!(
        passes(&mut established.protection, &mut at_server),
        "the connection request must open at the server"
    );
    assert_eq!(finish(handshake, &mut at_server, &established), Ok(None));
    assert!(passes(&mut at_server, &mut established.protection));
    assert_eq!((at_server.epoch(), established.protection.epoch()), (0, 0));
}

#[test]
fn an_identity_is_authenticated_and_changes_the_keys() {
    let mut stage = Stage::with_identity();
    let key = stage.identity.as_ref().expect("the client has an identity").public();
    let (mut established, handshake, mut at_server) = stage.answered();
    assert!(
        passes(&mut established.protection, &mut at_server),
        "the connection request must open at the server"
    );
    let shown = finish(handshake, &mut at_server, &established)
        .expect("a valid identity")
        .expect("the client presents its identity");
    assert_eq!((shown.key, shown.data()), (key, &b"Ada"[..]));
    assert_eq!((at_server.epoch(), established.protection.epoch()), (1, 0));
    assert!(
        passes(&mut established.protection, &mut at_server),
        "data sent with the old keys must still open"
    );
    assert!(passes(&mut at_server, &mut established.protection));
    assert_eq!(established.protection.epoch(), 1);
    assert!(passes(&mut established.protection, &mut at_server));
}

#[test]
fn identity_data_is_limited_to_95_bytes() {
    let mut stage = Stage::with_identity();
    let challenge = stage.challenge().expect("a trusted key");
    let (handshake, mut at_server) = stage.respond(&challenge).expect("a valid challenge");
    let key = stage.identity.as_ref().expect("the client has an identity");
    let mut accept = |data| {
        let identity = Some(Identity { key, data });
        let server = stage.negotiated.server;
        stage.client.accept(handshake.answer(), server, &stage.reply.client, stage.reply.mtu, identity, START)
    };
    assert_eq!(accept(&[7; 96]).err(), Some(HandshakeError::Malformed));
    let established = accept(&[7; 95]).expect("identity data of the maximum length");
    let shown = finish(handshake, &mut at_server, &established)
        .expect("a valid identity")
        .expect("the client presents its identity");
    assert_eq!(shown.data(), [7; 95]);
}

#[test]
fn repeated_replies_and_requests_get_identical_answers() {
    let mut stage = Stage::new(None);
    let challenge = stage.challenge().expect("a trusted key");
    assert_eq!(stage.challenge(), Ok(challenge));
    let (handshake, _) = stage.respond(&challenge).expect("a valid challenge");
    let repeats = |challenge: &[u8], negotiated: &Negotiated| {
        handshake.is_repeated(&stage.server, SecureRequest { negotiated, challenge })
    };
    assert!(repeats(&challenge, &stage.negotiated));
    let mut other = challenge;
    other[63] ^= 1;
    assert!(!repeats(&other, &stage.negotiated));
    assert!(!repeats(&challenge, &Negotiated { cookie: 1, ..stage.negotiated }));
    assert!(!repeats(&challenge[..63], &stage.negotiated));
}

#[test]
fn an_answer_may_match_the_first_or_the_newest_challenge() {
    let mut stage = Stage::new(None);
    let first_negotiated = stage.negotiated;
    let challenges: Vec<[u8; CHALLENGE]> = (0..3)
        .map(|cookie| {
            stage.negotiated.cookie = cookie;
            stage.challenge().expect("a trusted key")
        })
        .collect();
    assert!(
        challenges
            .iter()
            .all(|one| challenges.iter().filter(|other| one[8..40] == other[8..40]).count() == 1)
    );
    for (cookie, challenge, is_kept) in
        [(0, challenges[0], true), (1, challenges[1], false), (2, challenges[2], true)]
    {
        stage.negotiated = Negotiated { cookie, ..first_negotiated };
        let (handshake, mut at_server) = stage.respond(&challenge).expect("a valid challenge");
        assert_eq!(u32::from(handshake.number()), cookie, "each challenge must have its own number");
        match stage.accept(handshake.answer()) {
            Ok(mut established) => assert!(is_kept && passes(&mut established.protection, &mut at_server)),
            Err(error) => assert!(!is_kept && error == HandshakeError::DecryptionFailed),
        }
    }
}

#[test]
fn the_genuine_answer_is_accepted_after_a_forged_answer() {
    let mut stage = Stage::with_identity();
    let challenge = stage.challenge().expect("a trusted key");
    let (handshake, mut at_server) = stage.respond(&challenge).expect("a valid challenge");
    assert_eq!(stage.accept(&[7; ANSWER]).err(), Some(HandshakeError::DecryptionFailed));
    assert_eq!(stage.accept(&[7; 64]).err(), Some(HandshakeError::Malformed));
    let mut established = stage.accept(handshake.answer()).expect("a valid answer");
    assert!(passes(&mut established.protection, &mut at_server));
}

#[test]
fn a_client_trusts_a_key_a_hash_a_record_or_any_server() {
    let [ours, next, other] = [1, 8, 9].map(|byte| StaticKey::from_bytes([byte; 32]).public());
    let known = |key, next: Option<_>| ServerTrust::Known(KnownServer { key, next });
    for (trust, is_trusted) in [
        (ServerTrust::Any, true),
        (ServerTrust::Key(ours), true),
        (ServerTrust::Key(other), false),
        (ServerTrust::KeyHash(ours.hash()), true),
        (ServerTrust::KeyHash(other.hash()), false),
        (known(ours, None), true),
        (known(other, None), false),
        (known(other, Some(ours.hash())), true),
        (known(other, Some(next.hash())), false),
    ] {
        let mut stage = Stage::new(None);
        stage.server.next = Some(next.hash());
        stage.trust = trust;
        let challenge = stage.challenge();
        assert_eq!(challenge.err(), (!is_trusted).then_some(HandshakeError::KeyMismatch), "{trust:?}");
        if is_trusted {
            let (established, ..) = stage.answered();
            assert_eq!(established.server, KnownServer { key: ours, next: Some(next.hash()) });
        }
    }
}

#[test]
fn a_server_may_require_an_identity() {
    for (identity, expected) in
        [(None, Some(IdentityError::Missing)), (Some(StaticKey::from_bytes([2; 32])), None)]
    {
        let mut stage = Stage::new(identity);
        stage.server.requires_identity = true;
        let field = ServerKeyField::read(&stage.server.field(1492)).expect("a supported suite");
        assert!(field.requires_identity);
        let (established, handshake, mut at_server) = stage.answered();
        assert_eq!(finish(handshake, &mut at_server, &established).err(), expected);
    }
}

#[test]
fn ipv4_ipv6_and_unassigned_addresses_are_negotiated() {
    for (server, client) in
        [("0.0.0.0:0", "192.0.2.2:1"), ("[2001:db8::1]:7", "[2001:db8::2%3]:9"), ("192.0.2.1:1", "[::1]:9")]
    {
        let mut stage = Stage::new(None);
        stage.negotiated.server_address = address(server);
        stage.reply.client = address(client);
        let (mut established, _, mut at_server) = stage.answered();
        assert!(passes(&mut at_server, &mut established.protection));
    }
}
