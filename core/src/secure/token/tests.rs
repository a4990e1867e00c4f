//! Connect tokens: what is accepted, and every way in which one is not.

use std::string::ToString;
use std::vec::Vec;

use super::*;
use crate::secure::keys::{KeyHash, PublicKey};
use crate::secure::text::KeyTextError;

const KEY: TokenKey = TokenKey::from_bytes([7; 32]);
const CLIENT: PublicKey = PublicKey([1; 32]);
const SERVER: KeyHash = KeyHash([2; 24]);
const EXPIRES: u64 = 1_000;
const NOW: u64 = 999;

fn claims<'a>(servers: &'a [KeyHash], user_data: &'a [u8]) -> TokenClaims<'a> {
    TokenClaims { user_id: 42, expires: EXPIRES, client: CLIENT, servers, user_data }
}

fn sealed(salt: u8) -> Vec<u8> {
    claims(&[SERVER], b"data").seal_with_salt(&KEY, &[salt; SALT]).expect("it fits").to_vec()
}

fn accept(token: &[u8]) -> Result<AcceptedToken, TokenError> {
    KEY.open(token, &SERVER, &CLIENT, NOW)
}

#[test]
fn a_token_is_accepted_by_its_servers_for_its_client_in_its_time() {
    let accepted = accept(&sealed(0)).expect("a good token");
    assert_eq!((accepted.user_id, accepted.expires, accepted.user_data()), (42, EXPIRES, &b"data"[..]));
    let token = sealed(0);
    let open = |server, client, now| KEY.open(&token, server, client, now).err();
    assert_eq!(open(&SERVER, &CLIENT, EXPIRES), Some(TokenError::Expired));
    assert_eq!(open(&KeyHash([3; 24]), &CLIENT, NOW), Some(TokenError::OtherServer));
    assert_eq!(open(&SERVER, &PublicKey([9; 32]), NOW), Some(TokenError::OtherClient));
    let other_key = TokenKey::from_bytes([8; 32]).open(&token, &SERVER, &CLIENT, NOW);
    assert_eq!(other_key.err(), Some(TokenError::DoesNotOpen));
}

#[test]
fn every_changed_bit_and_every_length_but_the_right_one_is_noticed() {
    let token = sealed(0);
    for bit in 0..token.len() * 8 {
        let mut changed = token.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(accept(&changed), Err(TokenError::DoesNotOpen), "bit {bit}");
    }
    for length in 0..token.len() {
        assert_eq!(accept(&token[..length]), Err(TokenError::DoesNotOpen), "{length} bytes");
    }
    let long = [&token[..], &[0; 256]].concat();
    assert_eq!(accept(&long), Err(TokenError::DoesNotOpen));
}

#[test]
fn the_room_is_that_of_the_document() {
    for (servers, longest) in [(1, 128), (2, 113), (3, 89), (4, 65)] {
        let names = std::vec![SERVER; servers];
        let data = std::vec![5; longest + 1];
        let seal = |length| claims(&names, &data[..length]).seal_with_salt(&KEY, &[0; SALT]);
        let token = seal(longest).expect("it fits");
        assert_eq!(
            accept(&token).map(|accepted| accepted.user_data().to_vec()),
            Ok(data[..longest].to_vec())
        );
        assert_eq!(seal(longest + 1), Err(TokenError::TooLong), "{servers} servers");
    }
    assert_eq!(claims(&[], b"").seal_with_salt(&KEY, &[0; SALT]), Err(TokenError::TooLong));
    assert_eq!(claims(&[SERVER; 5], b"").seal_with_salt(&KEY, &[0; SALT]), Err(TokenError::TooLong));
}

#[test]
fn a_token_is_used_once() {
    let mut used = UsedTokens::<2>::new();
    let [a, b, c] = [0, 1, 2].map(|salt| accept(&sealed(salt)).expect("a good token"));
    assert_eq!(used.take(&a, NOW), Ok(()));
    assert_eq!(used.take(&a, NOW), Err(TokenError::Used));
    assert_eq!(used.take(&b, NOW), Ok(()));
    assert_eq!(used.take(&c, NOW), Err(TokenError::NoRoom), "what cannot be remembered does not come in");
    assert_eq!(used.take(&b, NOW), Err(TokenError::Used));
    assert_eq!(used.take(&c, EXPIRES), Ok(()), "expired tokens make room");
    assert_eq!(used.len(), 1);
}

/// A clock that was ahead for a while makes no used token valid again, and costs the others nothing.
#[test]
fn a_clock_that_goes_back_makes_no_used_token_valid_again() {
    let until = |expires, salt| {
        let mut token = accept(&sealed(salt)).expect("a good token");
        token.expires = expires;
        token
    };
    let (first, second) = (until(EXPIRES, 0), until(EXPIRES + 5, 1));
    let mut used = UsedTokens::<2>::new();
    assert_eq!((used.take(&first, NOW), used.take(&second, NOW)), (Ok(()), Ok(())));
    // The clock is ahead: the first one is forgotten, then the clock is right again.
    assert_eq!(used.take(&until(EXPIRES + 9, 2), EXPIRES + 3), Ok(()));
    assert_eq!(used.take(&first, NOW), Err(TokenError::Expired));
    assert_eq!(used.take(&second, NOW), Err(TokenError::Used));
    assert_eq!(
        used.take(&until(EXPIRES + 1, 3), EXPIRES + 7),
        Ok(()),
        "it is younger than what was forgotten"
    );
    assert_eq!(used.take(&until(EXPIRES + 5, 4), NOW), Err(TokenError::Expired));
}

#[test]
fn salts_differ() {
    let mut random = crate::secure::SeededRandom::new([1; 32]);
    let tokens = [(); 2].map(|()| claims(&[SERVER], b"").seal(&KEY, &mut random).expect("it fits"));
    assert_ne!(tokens[0][4..28], tokens[1][4..28]);
}

#[test]
fn a_token_key_has_a_file_of_its_own() {
    let file = KEY.private_text().to_string();
    let token = sealed(0);
    let read = TokenKey::from_key_file(&file).expect("a key");
    assert!(read.open(&token, &SERVER, &CLIENT, NOW).is_ok());
    let other = crate::secure::StaticKey::from_bytes([7; 32]).private_text().to_string();
    assert_eq!(TokenKey::from_key_file(&other).err(), Some(KeyTextError::OtherPrefix));
}

#[test]
fn a_connect_token_comes_back_and_nothing_shorter_or_longer_does() {
    let server = |name| TokenServer { key: PublicKey([3; 32]), name };
    let (sealed, long) = (sealed(0), "x".repeat(256));
    let token = ConnectToken {
        expires: EXPIRES,
        servers: [server("a.example:1"), server("")].into_iter().collect(),
        sealed: &sealed,
    };
    let mut buffer = [0; MAX_CONNECT_TOKEN];
    let bytes = token.write(&mut buffer).expect("room").to_vec();
    assert_eq!(ConnectToken::read(&bytes), Ok(token.clone()));
    for length in 0..bytes.len() {
        assert_eq!(ConnectToken::read(&bytes[..length]), Err(ConnectTokenError::Malformed));
        assert_eq!(token.write(&mut std::vec![0; length]), Err(ConnectTokenError::TooLong));
    }
    assert_eq!(ConnectToken::read(&[&bytes[..], &[0]].concat()), Err(ConnectTokenError::Malformed));
    let too_long = ConnectToken { servers: [server(&long)].into_iter().collect(), ..token.clone() };
    assert_eq!(too_long.write(&mut buffer), Err(ConnectTokenError::TooLong));
    let none = ConnectToken { servers: TokenServers::new(), ..token };
    assert_eq!(none.write(&mut buffer), Err(ConnectTokenError::TooLong));
    let mut no_text = bytes;
    no_text[4 + 8 + 1 + 32 + 1] = 0xFF;
    assert_eq!(ConnectToken::read(&no_text), Err(ConnectTokenError::Malformed));
}

#[test]
fn a_connect_token_comes_back_from_its_text_and_from_no_other() {
    let server = TokenServer { key: PublicKey([3; 32]), name: "a.example:1" };
    // The texts of all lengths within a group of three bytes.
    for length in 0..6 {
        let sealed = sealed(0)[..length].to_vec();
        let servers = [server].into_iter().collect();
        let token = ConnectToken { expires: EXPIRES, servers, sealed: &sealed };
        let text = token.to_string();
        let mut buffer = [0; MAX_CONNECT_TOKEN];
        assert_eq!(ConnectToken::from_text(&text, &mut buffer), Ok(token), "{length} bytes");
        for cut in 0..text.len() {
            let read = ConnectToken::from_text(&text[..cut], &mut buffer);
            assert_eq!(read, Err(ConnectTokenError::Malformed), "{cut} characters");
        }
        let other = text.replace("connect-token", "public-key");
        assert_eq!(ConnectToken::from_text(&other, &mut buffer), Err(ConnectTokenError::Malformed));
        assert_eq!(ConnectToken::from_text(&text, &mut [0; 20]), Err(ConnectTokenError::Malformed));
    }
}

#[test]
fn the_longest_connect_token_fits() {
    let name = "x".repeat(255);
    let server = TokenServer { key: PublicKey([3; 32]), name: &name };
    let sealed = [1; MAX_SEALED_TOKEN];
    let token = ConnectToken { expires: 1, servers: [server; 4].into_iter().collect(), sealed: &sealed };
    let mut buffer = [0; MAX_CONNECT_TOKEN];
    assert_eq!(token.write(&mut buffer).map(<[u8]>::len), Ok(MAX_CONNECT_TOKEN));
    assert_eq!(ConnectToken::from_text(&token.to_string(), &mut buffer), Ok(token));
}
