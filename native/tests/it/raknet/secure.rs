//! Secure connections over loopback.

use rakwire_native::secure::{RustCrypto, ServerIdentity, ServerTrust, StaticKey};
use rakwire_native::{
    ConnectError, ConnectFailure, ConnectOptions, Connection, Delivery, DropReason, Endpoint, KeyLogFile,
    Options, SecurePeer,
};

use crate::endpoint::subject::{self, message, receive, until};

fn server_key() -> StaticKey {
    StaticKey::from_bytes([0x5E; 32])
}

fn client_key() -> StaticKey {
    StaticKey::from_bytes([0xC1; 32])
}

fn requires_security(options: &mut Options) {
    let mut identity = ServerIdentity::new(server_key());
    identity.requires_security = true;
    options.secure().expect("entropy").server = Some(identity);
}

async fn server(change: impl FnOnce(&mut Options)) -> Endpoint {
    subject::server(|options: &mut Options| {
        requires_security(options);
        change(options);
    })
    .await
}

async fn client(identity: Option<StaticKey>) -> Endpoint {
    subject::client(|options: &mut Options| options.secure().expect("entropy").identity = identity).await
}

fn pinned() -> ConnectOptions<'static> {
    let trust = Some(ServerTrust::KeyHash(server_key().public().hash()));
    ConnectOptions { trust, ..ConnectOptions::default() }
}

async fn join(client: &Endpoint, server: &Endpoint) -> (Connection, Connection) {
    let address = server.local_addr();
    let options = pinned();
    let (here, there) = tokio::join!(client.connect_with(address, &options), server.accept());
    (here.expect("an open connection"), there.expect("a client"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secure_peers_exchange_messages_and_identities() {
    let (server, client) = (server(|_| {}).await, client(Some(client_key())).await);
    let (here, there) = join(&client, &server).await;
    let Some(SecurePeer::Server(known)) = here.secure_peer() else { panic!("a plain server") };
    assert_eq!(known.key, server_key().public());
    let Some(SecurePeer::Client(Some(shown))) = there.secure_peer() else { panic!("an unknown client") };
    assert_eq!(shown.key, client_key().public());
    for (from, to) in [(&here, &there), (&there, &here)] {
        let large = message(1_000_000, 3);
        let (sent, received) = tokio::join!(from.send(&large, Delivery::RELIABLE_ORDERED), receive(to));
        sent.expect("an open connection");
        assert_eq!(received.bytes, large);
    }
    assert_eq!(server.stats().peer.dropped(DropReason::Unauthentic), 0);
}

/// On a full disk, keys are missing in the log, but no connection fails.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_log_on_a_full_disk_ends_no_connection() {
    let log = std::sync::Arc::new(KeyLogFile::open("/dev/full").expect("a device"));
    let server = server(|options| options.secure().expect("entropy").key_log = Some(log)).await;
    for number in 0..2_u8 {
        let client = client(None).await;
        let (here, there) = join(&client, &server).await;
        let text = [0x86, number];
        here.send(&text[..], Delivery::RELIABLE_ORDERED).await.expect("an open connection");
        assert_eq!(receive(&there).await.bytes, text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_receives_the_data_of_a_client_identity() {
    let (server, client, key) = (server(|_| {}).await, client(None).await, client_key());
    let without_identity = ConnectOptions { identity_data: b"blue", ..pinned() };
    let refused = client.connect_with(server.local_addr(), &without_identity).await.err();
    assert_eq!(refused, Some(ConnectError::InvalidIdentityData));
    let options = ConnectOptions { identity: Some(&key), identity_data: b"blue", ..pinned() };
    let (here, there) = tokio::join!(client.connect_with(server.local_addr(), &options), server.accept());
    let (_here, there) = (here.expect("an open connection"), there.expect("a client"));
    let Some(SecurePeer::Client(Some(shown))) = there.secure_peer() else { panic!("an unknown client") };
    assert_eq!((shown.key, shown.data()), (key.public(), &b"blue"[..]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_with_different_ciphers_interoperate() {
    let portable = subject::client(|options: &mut Options| {
        options.secure().expect("entropy").cipher = &RustCrypto;
    });
    let (server, client) = (server(|_| {}).await, portable.await);
    let (here, there) = join(&client, &server).await;
    for (from, to) in [(&here, &there), (&there, &here)] {
        let large = message(100_000, 5);
        let (sent, received) = tokio::join!(from.send(&large, Delivery::RELIABLE_ORDERED), receive(to));
        sent.expect("an open connection");
        assert_eq!(received.bytes, large);
    }
    let unauthentic = |endpoint: &Endpoint| endpoint.stats().peer.dropped(DropReason::Unauthentic);
    assert_eq!((unauthentic(&server), unauthentic(&client)), (0, 0));
}

/// The driver cannot read the header of an encrypted datagram. While the receive queue is full, data is still refused
/// and acknowledgements are not. All messages arrive later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_receive_queue_refuses_sealed_data() {
    const MESSAGES: usize = 300;
    let (server, client) = (server(|options| options.receive_queue = 20_000).await, client(None).await);
    let (here, there) = join(&client, &server).await;
    let sender = tokio::spawn(async move {
        for number in 0..MESSAGES {
            here.send(&message(1_000, number), Delivery::RELIABLE_ORDERED).await.expect("an open connection");
        }
        here
    });
    until("the queue is full", || server.stats().receive_queue_full > 0).await;
    there.send(&message(100, 7), Delivery::RELIABLE_ORDERED).await.expect("an open connection");
    for number in 0..MESSAGES {
        assert_eq!(receive(&there).await.bytes, message(1_000, number));
    }
    let here = sender.await.expect("all is sent");
    assert_eq!(receive(&here).await.bytes, message(100, 7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secure_messages_arrive_in_order_over_a_lossy_network() {
    let simulate =
        "loss=5%,latency=5ms,jitter=5ms,duplicate=3%,reorder=3%,seed=7".parse().expect("a network");
    let (server, client) = (server(|options| options.simulate = Some(simulate)).await, client(None).await);
    let (here, there) = join(&client, &server).await;
    for number in 0..100 {
        here.send(&message(1_000, number), Delivery::RELIABLE_ORDERED).await.expect("an open connection");
    }
    for number in 0..100 {
        assert_eq!(receive(&there).await.bytes, message(1_000, number));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn incompatible_peers_are_refused_with_distinct_reasons() {
    let (secure, plain) = (server(|_| {}).await, subject::server(|_: &mut Options| {}).await);
    let client = client(None).await;
    let failure = async |server: &Endpoint, options: ConnectOptions<'static>| match client
        .connect_with(server.local_addr(), &options)
        .await
    {
        Err(ConnectError::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    };
    let other = ServerTrust::Key(client_key().public());
    let other = ConnectOptions { trust: Some(other), ..ConnectOptions::default() };
    assert_eq!(failure(&secure, ConnectOptions::default()).await, ConnectFailure::SecurityRequired);
    assert_eq!(failure(&secure, other).await, ConnectFailure::PublicKeyMismatch);
    assert_eq!(failure(&plain, pinned()).await, ConnectFailure::ServerWithoutSecurity);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_security_options_are_refused() {
    let server = server(|_| {}).await;
    let error = async |client: Endpoint, options: &ConnectOptions<'_>| {
        client.connect_with(server.local_addr(), options).await.err()
    };
    let key = client_key();
    let shown = ConnectOptions { identity: Some(&key), ..ConnectOptions::default() };
    assert_eq!(error(client(None).await, &shown).await, Some(ConnectError::IdentityWithoutTrust));
    let plain = ConnectOptions::default();
    assert_eq!(
        error(client(Some(client_key())).await, &plain).await,
        Some(ConnectError::IdentityWithoutTrust)
    );
    let without = subject::client(|_: &mut Options| {}).await;
    assert_eq!(error(without, &pinned()).await, Some(ConnectError::NoSecurity));
}

#[test]
fn the_ring_feature_selects_the_ring_cipher() {
    let mut options = Options::client().expect("entropy");
    let chosen = format!("{:?}", options.secure().expect("entropy").cipher);
    assert_eq!(chosen, if cfg!(feature = "ring") { "RingCipher" } else { "RustCrypto" });
}
