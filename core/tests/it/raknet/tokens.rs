//! Connect tokens, which a client presents instead of a password (docs/secure.md#connect-tokens).

use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use rakwire::endpoint::RefuseReason;
use rakwire::raknet::{Config, ConnectFailure, ConnectOptions, DropReason, SecurePeer};
use rakwire::secure::{
    AcceptedToken, ConnectToken, KeyHash, SeededRandom, ServerTrust, StaticKey, TokenClaims, TokenError,
    TokenKey, TokenServer, TokenVerifier, UsedTokenStore, UsedTokens,
};
use rakwire::sim::Conditions;

use crate::support::raknet::{Net, OwnedEvent};
use crate::support::secure::{
    client_key, net, pinned, requiring_server, secure_client, secure_server, server_key,
};

/// The Unix time of the server in seconds.
const TODAY: u64 = 1_800_000_000;
const LIFETIME: u64 = 60;

/// A store with a capacity of two tokens.
#[derive(Debug, Default)]
pub(super) struct Store(Mutex<UsedTokens<2>>);

impl Store {
    fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl UsedTokenStore for Store {
    fn mark_used(&self, token: &AcceptedToken, now: u64) -> Result<(), TokenError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).mark_used(token, now)
    }
}

fn token_key(seed: u8) -> TokenKey {
    TokenKey::from_bytes([seed; 32])
}

/// Creates the configuration of a server that accepts only tokens sealed with one of `keys`.
pub(super) fn server_with_tokens(keys: &[u8], store: &Arc<Store>) -> Config {
    let keys = keys.iter().map(|seed| token_key(*seed)).collect();
    secure_server(|identity| identity.tokens = Some(TokenVerifier::shared(keys, store.clone())))
}

/// Returns a token for the client and the server of the tests, sealed with token key 1; `change` modifies its claims.
fn sealed(salt: u8, change: impl FnOnce(&mut TokenClaims<'_>)) -> Vec<u8> {
    let servers = [server_key().public().hash()];
    let mut claims = TokenClaims {
        user_id: 42,
        expires: TODAY + LIFETIME,
        client: client_key().public(),
        servers: &servers,
        user_data: b"level 3",
    };
    change(&mut claims);
    claims.seal(&token_key(1), &mut SeededRandom::new([salt; 32])).expect("claims that fit a token").to_vec()
}

fn good(salt: u8) -> Vec<u8> {
    sealed(salt, |_| ())
}

/// Creates two peers and sets the Unix time of the server.
pub(super) fn peers(client: Config, server: Config) -> Net {
    let mut net = net(client, server, Conditions::default(), 1);
    net.pair.b.set_unix_time(net.pair.now, TODAY);
    net
}

/// Connects with `options`; returns the token that the server accepted.
fn dial(net: &mut Net, options: &ConnectOptions<'_>) -> Result<Option<AcceptedToken>, ConnectFailure> {
    let id = net.dial(options);
    net.run_for(Duration::from_secs(1));
    match (&net.client[..], &net.server[..]) {
        ([OwnedEvent::Connected(_)], [OwnedEvent::Connected(client)]) => {
            Ok(net.pair.b.accepted_token(*client).cloned())
        }
        ([OwnedEvent::Failed(failed, failure)], []) if *failed == id => Err(*failure),
        other => panic!("{other:?}"),
    }
}

/// Connects with a token and the key of its owner.
fn show(net: &mut Net, sealed: &[u8]) -> Result<Option<AcceptedToken>, ConnectFailure> {
    show_as(net, sealed, &client_key())
}

fn show_as(net: &mut Net, sealed: &[u8], key: &StaticKey) -> Result<Option<AcceptedToken>, ConnectFailure> {
    let server = TokenServer { key: server_key().public(), name: "game.example.org:19132" };
    let servers = [server].into_iter().collect();
    let token = ConnectToken { expires: TODAY + LIFETIME, servers, sealed };
    dial(net, &ConnectOptions::connect_token(&token, &token.servers[0], key))
}

#[test]
fn a_token_opens_a_connection_and_identifies_the_player() {
    for configured in [None, Some(StaticKey::from_bytes([0x0C; 32]))] {
        let mut net = peers(secure_client(configured), server_with_tokens(&[1], &Arc::default()));
        let token = show(&mut net, &good(1)).expect("an open connection").expect("a token");
        assert_eq!((token.user_id, token.user_data()), (42, &b"level 3"[..]));
        let [OwnedEvent::Connected(client)] = net.server[..] else { panic!("{:?}", net.server) };
        let Some(SecurePeer::Client(Some(shown))) = net.pair.b.secure_peer(client) else {
            panic!("expected an identified client")
        };
        assert_eq!(shown.key, client_key().public());
    }
}

#[test]
fn refused_tokens_are_not_marked_as_used() {
    const ELSEWHERE: [KeyHash; 1] = [KeyHash([7; 24])];
    let store = Arc::<Store>::default();
    let fresh = || peers(secure_client(None), server_with_tokens(&[1], &store));
    let mut damaged = good(1);
    *damaged.last_mut().expect("a tag") ^= 1;
    let refused = [
        ("expired", sealed(1, |claims| claims.expires = TODAY)),
        ("for another server", sealed(1, |claims| claims.servers = &ELSEWHERE)),
        ("damaged", damaged),
        ("cut off", good(1)[..20].to_vec()),
        ("none", Vec::new()),
    ];
    for (case, token) in &refused {
        assert_eq!(show(&mut fresh(), token), Err(ConnectFailure::InvalidPassword), "{case}");
    }
    let thief = StaticKey::from_bytes([0x7F; 32]);
    assert_eq!(show_as(&mut fresh(), &good(1), &thief), Err(ConnectFailure::InvalidIdentity));
    let mut other = peers(secure_client(None), server_with_tokens(&[2], &store));
    assert_eq!(
        show(&mut other, &good(1)),
        Err(ConnectFailure::InvalidPassword),
        "a token sealed with another key must be refused"
    );
    assert_eq!(store.len(), 0);
    assert!(show(&mut fresh(), &good(1)).is_ok(), "the owner must still be able to use the token");
}

#[test]
fn a_token_is_accepted_once_across_peers_of_a_server() {
    let store = Arc::<Store>::default();
    let config = server_with_tokens(&[1], &store);
    let shard = || peers(secure_client(None), config.clone());
    assert!(show(&mut shard(), &good(1)).is_ok());
    assert_eq!(show(&mut shard(), &good(1)), Err(ConnectFailure::InvalidPassword));
    assert!(show(&mut shard(), &good(2)).is_ok());
}

#[test]
fn a_token_is_refused_while_the_token_store_is_full() {
    let store = Arc::<Store>::default();
    let fresh = || peers(secure_client(None), server_with_tokens(&[1], &store));
    for salt in 1..3 {
        assert!(show(&mut fresh(), &good(salt)).is_ok());
    }
    let later = sealed(3, |claims| claims.expires += LIFETIME);
    assert_eq!(show(&mut fresh(), &later), Err(ConnectFailure::InvalidPassword));
    let mut net = fresh();
    net.pair.b.set_unix_time(net.pair.now, TODAY + LIFETIME);
    assert!(show(&mut net, &later).is_ok());
    assert_eq!(store.len(), 1);
}

#[test]
fn tokens_expire_by_the_servers_unix_time_and_are_refused_without_it() {
    let config = || server_with_tokens(&[1], &Arc::default());
    for (waited, expected) in [(LIFETIME - 10, true), (LIFETIME, false)] {
        let mut net = peers(secure_client(None), config());
        net.pair.now = net.now() + Duration::from_secs(waited);
        assert_eq!(show(&mut net, &good(1)).is_ok(), expected, "a token after {waited} s");
    }
    let mut without_time = net(secure_client(None), config(), Conditions::default(), 1);
    assert_eq!(show(&mut without_time, &good(1)), Err(ConnectFailure::InvalidPassword));
}

#[test]
fn a_server_may_have_several_token_keys() {
    let mut net = peers(secure_client(None), server_with_tokens(&[4, 3, 2, 1], &Arc::default()));
    assert!(show(&mut net, &good(1)).is_ok());
}

/// A server that requires tokens ignores its password.
#[test]
fn clients_without_an_identity_or_a_token_are_refused() {
    let fresh = |identity| {
        let mut net = peers(secure_client(identity), server_with_tokens(&[1], &Arc::default()));
        net.pair.b.set_password(b"friends").expect("a short password");
        net
    };
    let friends = ConnectOptions { password: b"friends", ..ConnectOptions::default() };
    let secure = ConnectOptions { password: b"friends", ..pinned() };
    assert_eq!(dial(&mut fresh(None), &friends), Err(ConnectFailure::SecurityRequired));
    assert_eq!(dial(&mut fresh(None), &secure), Err(ConnectFailure::IdentityRequired));
    assert_eq!(dial(&mut fresh(Some(client_key())), &secure), Err(ConnectFailure::InvalidPassword));
}

/// A server without token keys compares a token with its password.
#[test]
fn a_server_without_token_keys_treats_a_token_as_a_password() {
    let mut net = peers(secure_client(None), requiring_server());
    assert_eq!(show(&mut net, &good(1)), Err(ConnectFailure::InvalidPassword));
    let mut net = peers(secure_client(None), requiring_server());
    net.pair.b.set_password(&good(1)).expect("a short password");
    assert_eq!(show(&mut net, &good(1)), Ok(None));
}

#[test]
fn connect_token_options_trust_only_the_server_of_the_token() {
    let (server, key) = (TokenServer { key: server_key().public(), name: "here" }, client_key());
    let token = ConnectToken { expires: 0, servers: [server].into_iter().collect(), sealed: b"sealed" };
    let options = ConnectOptions::connect_token(&token, &token.servers[0], &key);
    let trust = Some(ServerTrust::Key(server.key));
    let expected =
        ConnectOptions { password: b"sealed", trust, identity: Some(&key), ..ConnectOptions::default() };
    assert_eq!(options, expected);
}

/// The client receives only a general reason; the server's application receives the exact one.
#[test]
fn a_server_is_notified_why_a_token_was_refused() {
    const ELSEWHERE: [KeyHash; 1] = [KeyHash([7; 24])];
    let store = Arc::<Store>::default();
    let fresh = || peers(secure_client(None), server_with_tokens(&[1], &store));
    let mut used = fresh();
    assert!(show(&mut used, &good(1)).is_ok());
    let cases = [
        (sealed(2, |claims| claims.expires = TODAY), client_key(), RefuseReason::TokenExpired),
        (sealed(2, |claims| claims.servers = &ELSEWHERE), client_key(), RefuseReason::TokenForOtherServer),
        (good(2)[..20].to_vec(), client_key(), RefuseReason::NoToken),
        (Vec::new(), client_key(), RefuseReason::NoToken),
        (good(1), client_key(), RefuseReason::TokenUsed),
        (good(2), StaticKey::from_bytes([0x7F; 32]), RefuseReason::TokenOfOtherClient),
    ];
    for (token, key, reason) in cases {
        let mut net = fresh();
        let failure = show_as(&mut net, &token, &key).expect_err("a refusal");
        assert_eq!(net.refused, [reason]);
        assert_eq!(net.pair.b.stats().dropped(DropReason::RefusedToken), 1, "{reason}");
        assert!(failure.to_string().contains("token"), "{failure}");
    }
    assert!(show(&mut fresh(), &good(2)).is_ok());
    let mut full = fresh();
    assert!(show(&mut full, &good(3)).is_err());
    assert_eq!(full.refused, [RefuseReason::TokenStoreFull]);
}

#[test]
fn a_server_is_notified_of_a_wrong_password() {
    let mut net = peers(secure_client(None), requiring_server());
    assert_eq!(show(&mut net, &good(1)), Err(ConnectFailure::InvalidPassword));
    assert_eq!(net.refused, [RefuseReason::WrongPassword]);
    assert_eq!(net.pair.b.stats().dropped(DropReason::WrongPassword), 1);
}
