//! Connect tokens over loopback.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rakwire::endpoint::{Event, Hook, Protocol as _, RefuseReason, Verdict};
use rakwire::raknet::RakNet;
use rakwire_native::endpoint::SharedHook;
use rakwire_native::secure::{
    AcceptedToken, ConnectToken, ServerIdentity, StaticKey, TokenClaims, TokenKey, TokenServer, TokenVerifier,
};
use rakwire_native::{
    ConnectError, ConnectFailure, ConnectOptions, Connection, DropReason, Endpoint, Options, UsedTokenTable,
    polled, system_random,
};

use crate::endpoint::spans::Collector;
use crate::endpoint::subject;
use crate::support::DEADLINE;

fn server_key() -> StaticKey {
    StaticKey::from_bytes([0x5E; 32])
}

fn client_key() -> StaticKey {
    StaticKey::from_bytes([0xC1; 32])
}

fn token_key() -> TokenKey {
    TokenKey::from_bytes([0x70; 32])
}

/// Makes a server require tokens, and remember at most `limit` used tokens.
fn require_tokens(options: &mut Options, limit: usize) {
    let mut identity = ServerIdentity::new(server_key());
    let keys = [token_key()].into_iter().collect();
    identity.tokens = Some(TokenVerifier::shared(keys, Arc::new(UsedTokenTable::new(limit))));
    options.secure().expect("entropy").server = Some(identity);
}

async fn server(limit: usize) -> Endpoint {
    subject::server(|options: &mut Options| require_tokens(options, limit)).await
}

async fn client() -> Endpoint {
    subject::client(|options: &mut Options| options.secure().map(drop).expect("entropy")).await
}

/// Records the reasons for which clients were refused.
#[derive(Default)]
struct Refusals(Vec<RefuseReason>);

impl Hook<RakNet> for Refusals {
    fn on_event(&mut self, _now: rakwire::Instant, event: &Event<'_, RakNet>) -> Verdict {
        if let Event::Refused { reason, .. } = event {
            self.0.push(*reason);
        }
        Verdict::Pass
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_application_gets_the_reason_for_a_refused_token() {
    let refusals = SharedHook::new(Refusals::default());
    let (mut options, hook) = (Options::server(8).expect("entropy"), refusals.clone());
    require_tokens(&mut options, 16);
    let server = Endpoint::bind_with_hook("127.0.0.1:0", options, |_| hook).await.expect("a free port");
    let expired = sealed(|claims| claims.expires = 1);
    let failure = show(&server, &expired, &client_key()).await.expect_err("a refusal");
    assert!(failure.to_string().contains("connect token"), "{failure}");
    assert_eq!(refusals.with(|refusals| refusals.0.clone()), [RefuseReason::TokenExpired]);
    assert_eq!(server.stats().peer.dropped(DropReason::RefusedToken), 1);
    let refused = server.refused_client().await.expect("an open server");
    assert_eq!((refused.reason, server.stats().refused_clients), (RefuseReason::TokenExpired, 1));
    server.close().await;
    assert_eq!(server.refused_client().await, None);
}

#[tokio::test]
async fn the_server_logs_why_a_token_was_refused() {
    let (collector, _guard) = Collector::start();
    let server = server(16).await;
    let client = client().await;
    for (refused, reason) in [
        (sealed(|claims| claims.expires = 1), RefuseReason::TokenExpired),
        (sealed(|claims| claims.client = server_key().public()), RefuseReason::TokenOfOtherClient),
    ] {
        let token = token(&refused);
        let key = client_key();
        let options = ConnectOptions::connect_token(&token, &token.servers[0], &key);
        client.connect_with(server.local_addr(), &options).await.expect_err("a refusal");
        let (name, local, remote) = (RakNet::NAME, server.local_addr(), client.local_addr());
        let line = format!(
            "endpoint{{protocol=\"{name}\" local={local}}}: refused a client remote={remote} reason={reason}"
        );
        assert!(collector.lines().contains(&line), "no {line} in {:#?}", collector.lines());
    }
}

/// Returns the Unix time one hour from now.
fn soon() -> u64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock that is set");
    (since_1970 + Duration::from_secs(3_600)).as_secs()
}

/// Returns a token that the backend has issued, after `change` has modified its claims.
fn sealed(change: impl FnOnce(&mut TokenClaims<'_>)) -> Vec<u8> {
    let servers = [server_key().public().hash()];
    let mut claims = TokenClaims {
        user_id: 42,
        expires: soon(),
        client: client_key().public(),
        servers: &servers,
        user_data: b"level 3",
    };
    change(&mut claims);
    claims.seal(&token_key(), &mut system_random().expect("entropy")).expect("enough space").to_vec()
}

fn good() -> Vec<u8> {
    sealed(|_| ())
}

/// Connects with the sealed part of a token.
async fn show(server: &Endpoint, sealed: &[u8], key: &StaticKey) -> Result<Connection, ConnectError> {
    let token = token(sealed);
    let options = ConnectOptions::connect_token(&token, &token.servers[0], key);
    client().await.connect_with(server.local_addr(), &options).await
}

fn token(sealed: &[u8]) -> ConnectToken<'_> {
    let server = TokenServer { key: server_key().public(), name: "game.example.org:19132" };
    ConnectToken { expires: 0, servers: [server].into_iter().collect(), sealed }
}

fn assert_learned(token: Option<&AcceptedToken>) {
    let token = token.expect("a token");
    assert_eq!((token.user_id, token.user_data()), (42, &b"level 3"[..]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_opens_a_connection_once() {
    let server = server(16).await;
    let token = good();
    let here = show(&server, &token, &client_key()).await.expect("an open connection");
    let there = server.accept().await.expect("a client");
    assert_learned(there.accepted_token().as_ref());
    assert_eq!(here.accepted_token(), None);
    let again = show(&server, &token, &client_key()).await.err();
    assert_eq!(again, Some(ConnectError::Failed(ConnectFailure::InvalidPassword)));
    assert!(show(&server, &good(), &client_key()).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_tokens_are_refused() {
    let server = server(1).await;
    let mut damaged = good();
    damaged[40] ^= 1;
    let other = StaticKey::from_bytes([0x7F; 32]);
    let cases = [
        ("expired", sealed(|claims| claims.expires = 1), client_key(), ConnectFailure::InvalidPassword),
        ("damaged", damaged, client_key(), ConnectFailure::InvalidPassword),
        ("stolen", good(), other, ConnectFailure::InvalidIdentity),
    ];
    for (case, token, key, expected) in cases {
        let failed = show(&server, &token, &key).await.err();
        assert_eq!(failed, Some(ConnectError::Failed(expected)), "{case}");
    }
    assert!(show(&server, &good(), &client_key()).await.is_ok());
    let full = show(&server, &good(), &client_key()).await.err();
    assert_eq!(
        full,
        Some(ConnectError::Failed(ConnectFailure::InvalidPassword)),
        "the table of used tokens is full"
    );
}

/// A token that was used at one shard is refused by all other shards.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_used_once_across_all_shards() {
    let mut options = Options::server(64).expect("entropy");
    require_tokens(&mut options, 16);
    let shards = Endpoint::bind_shards("127.0.0.1:0", &options, 4).await.expect("a free port");
    let token = good();
    let mut opened = Vec::new();
    for _ in 0..32 {
        match show(&shards[0], &token, &client_key()).await {
            Ok(connection) => opened.push(connection),
            Err(error) => assert_eq!(error, ConnectError::Failed(ConnectFailure::InvalidPassword)),
        }
    }
    assert_eq!(opened.len(), 1);
}

/// A polled endpoint sets the time of its peer. Without the time, every token would be refused.
#[test]
fn a_polled_server_accepts_a_token() {
    let mut options = Options::server(8).expect("entropy");
    require_tokens(&mut options, 16);
    let mut server = polled::Endpoint::<RakNet>::bind("127.0.0.1:0", options).expect("a free port");
    let mut options = Options::client().expect("entropy");
    options.secure().map(drop).expect("entropy");
    let mut client = polled::Endpoint::<RakNet>::bind("127.0.0.1:0", options).expect("a free port");
    let address = server.local_addr();
    let (sealed, key) = (good(), client_key());
    let token = token(&sealed);
    let options = ConnectOptions::connect_token(&token, &token.servers[0], &key);
    client.connect_with(address, &options).expect("a free slot");
    let begin = Instant::now();
    let connected = loop {
        assert!(begin.elapsed() < DEADLINE, "no connection");
        client.update();
        server.update();
        if let Some(event) = client.poll_event() {
            assert!(matches!(event, Event::Connected { .. }), "{event:?}");
        }
        if let Some(Event::Connected { id, .. }) = server.poll_event() {
            break id;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert_learned(server.peer().accepted_token(connected));
}

#[test]
fn a_key_file_of_the_wrong_kind_is_refused_and_none_is_overwritten() {
    use rakwire_native::{create_key_file, create_token_key_file, read_key_file, read_token_key_file};

    let directory = std::env::temp_dir().join(format!("rakwire-tokens-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let (token, own) = (directory.join("token.key"), directory.join("own.key"));
    let key = create_token_key_file(&token).expect("a new file");
    create_key_file(&own).expect("a new file");
    let read = read_token_key_file(&token).expect("a token key");
    assert_eq!(read.private_text().to_string(), key.private_text().to_string());
    assert!(create_token_key_file(&token).is_err(), "no key is overwritten");
    assert!(read_token_key_file(&own).is_err() && read_key_file(&token).is_err());
    std::fs::remove_dir_all(&directory).expect("the directory");
}
