//! Access control, and messages between peers without a connection.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire::raknet::Refusal;
use rakwire_native::{
    ConnectError, ConnectFailure, ConnectOptions, Delivery, Endpoint, Options, OutOfBand, OutOfBandError,
    SetError, Unconnected, UnconnectedKind,
};
#[cfg(target_os = "linux")]
use rakwire_native::{PingError, PingScope};

use crate::endpoint::subject::until;
use crate::support::DEADLINE;

async fn bind(address: &str, max_incoming: u16, change: impl FnOnce(&mut Options)) -> Endpoint {
    let mut options = Options::server(max_incoming).expect("entropy");
    change(&mut options);
    Endpoint::bind(address, options).await.expect("a free port")
}

async fn server(max_incoming: u16) -> Endpoint {
    bind("127.0.0.1:0", max_incoming, |_| {}).await
}

fn failure(result: Result<rakwire_native::Connection, ConnectError>) -> ConnectFailure {
    match result {
        Err(ConnectError::Failed(failure)) => failure,
        other => panic!("not a failed attempt: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_is_required() {
    let (server, client) = (server(8).await, server(0).await);
    assert_eq!(server.set_password(&[0; 256]), Err(SetError::PasswordTooLong));
    assert_eq!(server.set_password(b"friends"), Ok(()));
    let to = server.local_addr();
    assert_eq!(failure(client.connect(to).await), ConnectFailure::InvalidPassword);
    let long = ConnectOptions { password: &[0; 256], ..Default::default() };
    assert_eq!(client.connect_with(to, &long).await.err(), Some(ConnectError::PasswordTooLong));
    let right = ConnectOptions { password: b"friends", ..Default::default() };
    client.connect_with(to, &right).await.expect("the right password");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connect_options_override_the_configuration() {
    let (server, client) = (server(8).await, server(0).await);
    let odd = ConnectOptions { protocol_version: Some(77), ..Default::default() };
    let refused = failure(client.connect_with(server.local_addr(), &odd).await);
    assert_eq!(refused, ConnectFailure::IncompatibleProtocol { server: 11 });
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let quick =
        ConnectOptions { attempts: Some(3), interval: Some(Duration::from_millis(10)), ..Default::default() };
    let address = silent.local_addr().expect("a bound socket");
    assert_eq!(failure(client.connect_with(address, &quick).await), ConnectFailure::NoAnswer);
}

/// The peer vanishes without a disconnect when its runtime stops.
#[test]
fn a_connection_may_have_its_own_timeout() {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
    };
    let (mine, theirs) = (runtime(), runtime());
    let server = theirs.block_on(server(8));
    let client = mine.block_on(bind("127.0.0.1:0", 0, |client| client.config.timeout = 100 * DEADLINE));
    let here = mine.block_on(client.connect(server.local_addr())).expect("a connection");
    theirs.shutdown_background();
    assert_eq!(here.set_timeout(Duration::from_millis(200)), Ok(()));
    mine.block_on(async {
        // The send fails if the connection is already lost.
        let _ = here.send(b"\x90", Delivery::RELIABLE).await;
        let end = tokio::time::timeout(DEADLINE, here.recv()).await;
        assert!(end.expect("not the configuration's timeout").is_none());
    });
    assert_eq!(here.closed_reason(), Some(rakwire_native::DisconnectReason::Lost));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bans_apply_until_they_expire_or_are_removed() {
    let (server, client) = (server(8).await, server(0).await);
    let to = server.local_addr();
    let connection = client.connect(to).await.expect("no address is banned yet");
    server.ban("127.0.0.*".parse().expect("a pattern"), None).expect("space for a ban");
    connection.send(b"\x90", Delivery::RELIABLE).await.expect("existing connections are not affected");
    let other = self::server(0).await;
    let banned = ConnectFailure::Refused(Refusal::Banned);
    assert_eq!(failure(other.connect(to).await), banned);

    let all: Vec<_> = server.bans();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].1, None, "for ever");
    assert!(server.unban(all[0].0) && !server.unban(all[0].0));
    let soon = "127.0.0.1".parse().expect("a pattern");
    server.ban(soon, Some(Duration::from_millis(1))).expect("space for a ban");
    until("the ban has expired", || server.bans().is_empty()).await;
    other.connect(to).await.expect("the ban has expired");
}

async fn hears(options: OutOfBand) -> Endpoint {
    bind("127.0.0.1:0", 8, |server| server.config.out_of_band = options).await
}

/// Returns all messages before the first advertisement, which is repeated until it arrives.
async fn receive_until_advertisement(
    server: &Endpoint,
    advertise: impl AsyncFn() -> Result<(), OutOfBandError>,
) -> Vec<Unconnected> {
    let mut heard = Vec::new();
    loop {
        advertise().await.expect("an open endpoint");
        while let Ok(message) = tokio::time::timeout(Duration::from_secs(1), server.recv_unconnected()).await
        {
            let message = message.expect("an open endpoint");
            let kind = message.kind;
            heard.push(message);
            if kind != UnconnectedKind::OutOfBand {
                return heard;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_exchange_messages_without_a_connection() {
    let (server, client) = (hears(OutOfBand::Accept).await, server(0).await);
    let to = server.local_addr();
    // These are more messages than can be queued at a time.
    for number in 0..50 {
        client.send_out_of_band(to, &[0x86, number]).await.expect("an open endpoint");
    }
    let receive_advertisement =
        receive_until_advertisement(&server, || client.advertise(to, b"come and play"));
    let mut heard = tokio::time::timeout(DEADLINE, receive_advertisement).await.expect("before the timeout");
    assert!(heard.iter().all(|one| (one.from, one.identity) == (client.local_addr(), client.guid())));
    assert_eq!(heard.pop().expect("the advertisement").data, b"come and play");
    assert!(heard.iter().all(|one| one.data.len() == 2) && !heard.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_out_of_band_messages_and_advertisements_are_refused() {
    let (server, client) = (server(0).await, server(0).await);
    let to = server.local_addr();
    assert_eq!(client.send_out_of_band(to, &[]).await, Err(OutOfBandError::BadLength));
    assert_eq!(client.advertise(to, &[0; 399]).await, Err(OutOfBandError::BadLength));
    let v6: SocketAddr = "[::1]:1".parse().expect("a literal address");
    assert_eq!(client.advertise(v6, &[]).await, Err(OutOfBandError::AddressFamily));
    client.close().await;
    assert_eq!(client.advertise(to, &[]).await, Err(OutOfBandError::EndpointClosed));
    assert!(client.recv_unconnected().await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unconnected_messages_are_ignored_by_default() {
    let (server, client) = (hears(OutOfBand::Refuse).await, server(0).await);
    client.send_out_of_band(server.local_addr(), b"\x86hello").await.expect("an open endpoint");
    client.ping(server.local_addr(), DEADLINE).await.expect("a pong, after the message");
    let heard = tokio::time::timeout(Duration::from_millis(1), server.recv_unconnected()).await;
    assert!(heard.is_err());
}

/// On Linux the loopback interface also has a broadcast address.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_are_found_by_broadcast() {
    let (open, client) = (bind("0.0.0.0:0", 8, |_| {}).await, bind("0.0.0.0:0", 0, |_| {}).await);
    assert_eq!(open.set_advertisement(b"a game"), Ok(()));
    let port = open.local_addr().port();
    let broadcast = SocketAddr::from(([127, 255, 255, 255], port));
    let here = SocketAddr::from(([127, 0, 0, 1], port));
    // A pong to a single-server ping must not be missing in the broadcast search.
    let search = async {
        loop {
            let second = Duration::from_millis(1_100);
            let (found, one) =
                tokio::join!(client.discover(broadcast, PingScope::Any, second), client.ping(here, DEADLINE));
            assert!(one.is_ok());
            let found = found.expect("an open endpoint");
            // On a busy machine the pong may arrive after the search.
            if !found.is_empty() {
                return found;
            }
        }
    };
    let found = tokio::time::timeout(DEADLINE, search).await.expect("a server in time");
    assert_eq!(found.iter().map(|pong| pong.from).collect::<Vec<_>>(), [here]);
    assert_eq!((found[0].data.as_slice(), found[0].identity), (&b"a game"[..], open.guid()));
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_for_open_servers_does_not_find_a_full_server() {
    let client = bind("0.0.0.0:0", 0, |_| {}).await;
    let full = bind("0.0.0.0:0", 0, |_| {}).await;
    let broadcast = SocketAddr::from(([127, 255, 255, 255], full.local_addr().port()));
    let found = client.discover(broadcast, PingScope::OpenConnections, Duration::from_millis(300)).await;
    assert_eq!(found, Ok(Vec::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_endpoint_cannot_search_for_servers() {
    let client = bind("0.0.0.0:0", 0, |_| {}).await;
    let broadcast = SocketAddr::from(([127, 255, 255, 255], 19_132));
    client.close().await;
    let closed = client.discover(broadcast, PingScope::Any, DEADLINE).await;
    assert_eq!(closed, Err(PingError::EndpointClosed));
}
