//! Attacks on a handshake (docs/secure.md#protection-and-limits).

use rakwire::raknet::Guid;
use rakwire::secure::{ConnectToken, IDENTITY, OpenError, PublicKey, ServerKeyField, TokenClaims, TokenKey};

use super::*;

#[test]
fn changed_negotiated_values_are_detected() {
    for identity in [false, true] {
        let stage = || if identity { Stage::with_identity() } else { Stage::new(None) };
        let said = stage().negotiated;
        let changes = [
            Negotiated { server: Guid(1), ..said },
            Negotiated { client: Guid(1), ..said },
            Negotiated { cookie: 1, ..said },
            Negotiated { mtu: 576, ..said },
            Negotiated { server_address: address("192.0.2.9:1"), ..said },
        ];
        for changed in changes {
            let mut stage = stage();
            let challenge = stage.challenge().expect("a trusted key");
            stage.negotiated = changed;
            assert_eq!(
                stage.respond(&challenge).err(),
                Some(HandshakeError::DecryptionFailed),
                "{changed:?}"
            );
        }
    }
}

#[test]
fn changed_flags_and_announced_keys_are_detected() {
    let announced = StaticKey::from_bytes([9; 32]).public().hash();
    let bits = [2, 40, 63].into_iter().flat_map(|at| (0..8).map(move |bit| (at, 1 << bit)));
    for (at, bit) in bits {
        let mut stage = Stage::new(None);
        stage.server.next = Some(announced);
        stage.server.requires_identity = true;
        let mut field = stage.server.field(1492);
        field[at] ^= bit;
        let challenge = stage
            .client
            .challenge(&stage.trust, false, &field, &stage.negotiated, SIX, &mut stage.random)
            .expect("a trusted key");
        assert_eq!(
            stage.respond(&challenge).err(),
            Some(HandshakeError::DecryptionFailed),
            "byte {at}, bit {bit:#x}"
        );
    }
    // The MTU of reply 1 is not authenticated, because relays lower it.
    let mut stage = Stage::new(None);
    let field = stage.server.field(576);
    let challenge =
        stage.client.challenge(&stage.trust, false, &field, &stage.negotiated, SIX, &mut stage.random);
    assert!(stage.respond(&challenge.expect("a trusted key")).is_ok());
}

#[test]
fn a_challenge_with_a_changed_bit_is_not_answered() {
    for mut stage in [Stage::new(None), Stage::with_identity()] {
        let challenge = stage.challenge().expect("a trusted key");
        for bit in 0..CHALLENGE * 8 {
            let mut changed = challenge;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(stage.respond(&changed).is_err(), "bit {bit}");
        }
        for length in [0, 1, 63] {
            assert_eq!(stage.respond(&challenge[..length]).err(), Some(HandshakeError::Malformed));
        }
        assert!(stage.respond(&challenge).is_ok());
    }
}

#[test]
fn an_answer_with_a_changed_bit_is_refused() {
    for make in [|| Stage::new(None), Stage::with_identity] {
        let mut stage = make();
        let challenge = stage.challenge().expect("a trusted key");
        let (handshake, _) = stage.respond(&challenge).expect("a valid challenge");
        for bit in 0..ANSWER * 8 {
            let mut changed = *handshake.answer();
            changed[bit / 8] ^= 1 << (bit % 8);
            // Each try needs a new handshake with the same values, because a handshake limits the number of answers.
            let mut stage = make();
            assert_eq!(stage.challenge(), Ok(challenge));
            assert_eq!(stage.accept(&changed).err(), Some(HandshakeError::DecryptionFailed), "bit {bit}");
        }
        stage.reply.mtu = 576;
        assert_eq!(stage.accept(handshake.answer()).err(), Some(HandshakeError::Contradiction));
        stage.reply = ReplyFields { client: address("192.0.2.3:50000"), mtu: 1492 };
        assert_eq!(stage.accept(handshake.answer()).err(), Some(HandshakeError::Contradiction));
    }
}

#[test]
fn an_answer_is_bound_to_the_guid_of_its_reply() {
    let mut stage = Stage::new(None);
    let challenge = stage.challenge().expect("a trusted key");
    let (handshake, _) = stage.respond(&challenge).expect("a valid challenge");
    let genuine = stage.negotiated.server;
    // An attacker replays reply 1 with another GUID, and changes the GUID in reply 2 to match.
    stage.negotiated.server = Guid(genuine.0 ^ 1);
    stage.challenge().expect("a challenge with a key");
    assert_eq!(stage.accept(handshake.answer()).err(), Some(HandshakeError::DecryptionFailed));
    stage.negotiated.server = genuine;
    assert!(stage.accept(handshake.answer()).is_ok());
}

#[test]
fn forged_replies_cause_only_bounded_computation() {
    let mut stage = Stage::new(None);
    let challenge = stage.challenge().expect("a trusted key");
    let (handshake, _) = stage.respond(&challenge).expect("a valid challenge");
    for cookie in 1..16 {
        stage.negotiated.cookie = 1_000 + cookie;
        stage.challenge().expect("a trusted key");
    }
    stage.negotiated.cookie = 9_999;
    assert_eq!(stage.challenge(), Err(HandshakeError::TooMany));
    // The client checks an answer against its first and its newest challenge.
    for _ in 0..100 {
        assert_eq!(stage.accept(&[7; ANSWER]).err(), Some(HandshakeError::DecryptionFailed));
    }
    assert!(stage.accept(handshake.answer()).is_ok());
    while stage.accept(&[7; ANSWER]).err() == Some(HandshakeError::DecryptionFailed) {}
    assert_eq!(stage.accept(handshake.answer()).err(), Some(HandshakeError::TooMany));
}

#[test]
fn a_proof_or_identity_with_a_changed_bit_is_refused() {
    for bit in 0..(32 + IDENTITY) * 8 {
        let mut stage = Stage::with_identity();
        let (mut established, handshake, mut at_server) = stage.answered();
        let mut fields =
            [&established.proof[..], &established.identity.expect("the client has an identity")].concat();
        fields[bit / 8] ^= 1 << (bit % 8);
        established.proof.copy_from_slice(&fields[..32]);
        established.identity = fields[32..].try_into().ok();
        assert_eq!(
            finish(handshake, &mut at_server, &established).err(),
            Some(IdentityError::Invalid),
            "bit {bit}"
        );
        assert_eq!(at_server.epoch(), 0);
    }
}

#[test]
fn a_handshake_pattern_and_an_identity_must_agree() {
    let mut stage = Stage::new(None);
    let (mut established, handshake, mut at_server) = stage.answered();
    established.identity = Some([0; IDENTITY]);
    assert_eq!(finish(handshake, &mut at_server, &established), Err(IdentityError::Invalid));
    let mut stage = Stage::with_identity();
    let (mut established, handshake, mut at_server) = stage.answered();
    established.identity = None;
    assert_eq!(finish(handshake, &mut at_server, &established), Err(IdentityError::Invalid));
    for length in [0, 31, 33] {
        let mut stage = Stage::new(None);
        let (_, mut handshake, mut at_server) = stage.answered();
        assert_eq!(
            handshake.finish(&mut at_server, &vec![0; length], None, START),
            Err(IdentityError::Invalid)
        );
    }
}

#[test]
fn a_version_downgrade_is_refused_if_the_server_supports_the_first_version() {
    let mut stage = Stage::new(None);
    stage.versions = Versions { announced: 6, first: 11 };
    let challenge = stage.challenge().expect("a trusted key");
    assert_eq!(stage.respond(&challenge).err(), Some(HandshakeError::Downgrade));
    stage.versions = Versions { announced: 6, first: 9 };
    let challenge = stage.challenge().expect("a trusted key");
    assert!(stage.respond(&challenge).is_ok(), "not a downgrade without support for version 9");
}

#[test]
fn a_substituted_key_opens_no_connection() {
    let attacker = ServerIdentity::new(StaticKey::from_bytes([66; 32]));
    let mut stage = Stage::new(None);
    let challenge = stage.client.challenge(
        &stage.trust,
        false,
        &attacker.field(1492),
        &stage.negotiated,
        SIX,
        &mut stage.random,
    );
    assert_eq!(challenge, Err(HandshakeError::KeyMismatch));
    // An attacker that knows only the server's public key cannot answer.
    let challenge = stage.challenge().expect("a trusted key");
    stage.server = attacker;
    assert_eq!(stage.respond(&challenge).err(), Some(HandshakeError::DecryptionFailed));
}

#[test]
fn points_of_low_order_are_refused() {
    let mut one = [0; 32];
    one[0] = 1;
    for point in [[0; 32], one] {
        let mut stage = Stage::new(None);
        stage.trust = ServerTrust::Any;
        let mut field = ServerKeyField::read(&stage.server.field(1492)).expect("a supported suite");
        field.server.key = PublicKey(point);
        let challenge = stage.client.challenge(
            &stage.trust,
            false,
            &field.write(),
            &stage.negotiated,
            SIX,
            &mut stage.random,
        );
        assert_eq!(challenge, Err(HandshakeError::Malformed));
        let mut challenge = stage.challenge().expect("a trusted key");
        challenge[8..40].copy_from_slice(&point);
        assert_eq!(stage.respond(&challenge).err(), Some(HandshakeError::DecryptionFailed));
    }
}

#[test]
fn keys_and_challenges_of_cpp_raknet_are_recognised() {
    let mut stage = Stage::new(None);
    stage.trust = ServerTrust::Any;
    let theirs = core::array::from_fn::<u8, 64, _>(|index| index as u8 ^ 0x5A);
    let challenge =
        stage.client.challenge(&stage.trust, false, &theirs, &stage.negotiated, SIX, &mut stage.random);
    assert_eq!(challenge, Err(HandshakeError::OtherSuite));
    assert_eq!(stage.respond(&theirs).err(), Some(HandshakeError::OtherSuite));
}

#[test]
fn a_replayed_handshake_gets_different_keys() {
    let mut stage = Stage::new(None);
    let challenge = stage.challenge().expect("a trusted key");
    let (first, mut first_keys) = stage.respond(&challenge).expect("a valid challenge");
    let mut established = stage.accept(first.answer()).expect("a valid answer");
    let mut recorded = [0x84; 64];
    let length = established.protection.seal(START, &mut recorded, 40).expect("space for the tag");
    // The server answers a replayed request 2 with another ephemeral key, so recorded datagrams do not open.
    let (mut second, mut second_keys) = stage.respond(&challenge).expect("a valid challenge");
    assert_ne!(first.answer(), second.answer());
    let mut replayed = recorded;
    assert_eq!(second_keys.open(START, &mut replayed[..length]), Err(OpenError::Forged));
    assert_eq!(
        second.finish(&mut second_keys, &established.proof, None, START),
        Err(IdentityError::Invalid),
        "the proof of the first handshake must be invalid"
    );
    assert!(first_keys.open(START, &mut recorded[..length]).is_ok());
}

/// Returns a handshake with a second server: another key and other negotiated values, and a client that trusts any
/// server.
fn at_another_server(client: Option<StaticKey>) -> Stage {
    let mut other = Stage::new(client);
    other.server = ServerIdentity::new(StaticKey::from_bytes([3; 32]));
    other.trust = ServerTrust::Any;
    other.random = SeededRandom::new([6; 32]);
    other.negotiated = Negotiated {
        server: Guid(0xB1),
        client: Guid(0xC2),
        cookie: 0xBEEF,
        server_address: address("198.51.100.1:19132"),
        mtu: 1400,
    };
    other
}

/// A malicious server relays a client's challenge to another server, and rewrites any subset of the cleartext fields.
#[test]
fn a_challenge_for_one_server_is_not_answered_by_another() {
    for client in [None, Some(StaticKey::from_bytes([2; 32]))] {
        let identity = client.as_ref().map(StaticKey::duplicate);
        let (mut stage, mut other) = (Stage::new(identity), at_another_server(client));
        let (challenge, ours) = (stage.challenge().expect("a trusted key"), other.negotiated);
        for rewritten in 0_u8..1 << 5 {
            let (said, is) = (stage.negotiated, |field: u8| rewritten >> field & 1 == 1);
            other.negotiated = Negotiated {
                server: if is(0) { ours.server } else { said.server },
                client: if is(1) { ours.client } else { said.client },
                cookie: if is(2) { ours.cookie } else { said.cookie },
                server_address: if is(3) { ours.server_address } else { said.server_address },
                mtu: if is(4) { ours.mtu } else { said.mtu },
            };
            for pattern in [1, 2] {
                let mut relayed = challenge;
                relayed[0] = pattern;
                let answered = other.respond(&relayed).err();
                assert_eq!(
                    answered,
                    Some(HandshakeError::DecryptionFailed),
                    "rewritten fields {rewritten:#b}, pattern {pattern}"
                );
            }
        }
        assert!(stage.respond(&challenge).is_ok(), "the challenge must be valid at its own server");
    }
}

/// A malicious server starts its own handshake with a second server. It can neither present the client's identity
/// there, nor pass the second server's answer to the client.
#[test]
fn handshake_proofs_cannot_be_relayed_to_another_server() {
    let mut stage = Stage::with_identity();
    let (for_attacker, ..) = stage.answered();
    let (identity, proof) = (for_attacker.identity, for_attacker.proof);
    for takes_proof in [false, true] {
        let mut other = at_another_server(Some(StaticKey::from_bytes([66; 32])));
        let (mut at_other, handshake, mut other_keys) = other.answered();
        at_other.identity = identity;
        if takes_proof {
            at_other.proof = proof;
        }
        assert_eq!(finish(handshake, &mut other_keys, &at_other), Err(IdentityError::Invalid));
        assert_eq!(other_keys.epoch(), 0);
    }
    let mut victim = Stage::with_identity();
    victim.challenge().expect("a trusted key");
    let mut other = at_another_server(Some(StaticKey::from_bytes([66; 32])));
    let (_, handshake, _) = other.answered();
    assert_eq!(victim.accept(handshake.answer()).err(), Some(HandshakeError::DecryptionFailed));
}

#[test]
fn a_stolen_token_is_refused_without_its_owners_key() {
    let mut random = SeededRandom::new([8; 32]);
    let backend = TokenKey::generate(&mut random);
    let mut stage = Stage::with_identity();
    let owner = stage.identity.as_ref().expect("the client has an identity").public();
    let server = stage.server.public().hash();
    let claims = TokenClaims { user_id: 1, expires: 100, client: owner, servers: &[server], user_data: b"" };
    let sealed = claims.seal(&backend, &mut random).expect("claims that fit a token");
    let connect = ConnectToken { expires: 100, servers: core::iter::empty().collect(), sealed: &sealed };
    for (thief, expected) in [(false, None), (true, Some(rakwire::secure::TokenError::OtherClient))] {
        if thief {
            stage = Stage::new(Some(StaticKey::from_bytes([99; 32])));
        }
        let (established, handshake, mut at_server) = stage.answered();
        let shown = finish(handshake, &mut at_server, &established)
            .expect("the identity is valid")
            .expect("the client presents its identity");
        assert_eq!(backend.open(connect.sealed, &server, &shown.key, 50).err(), expected);
    }
}
