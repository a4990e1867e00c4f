//! Several endpoints (shards) at one address.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rakwire::endpoint::{Hook, PluginHost};
use rakwire::raknet::{ConnectFailure, ConnectOptions, Guid, RakNet, Refusal};
use rakwire_native::endpoint::{ConnectError, Connection, Endpoint, Options, SharedHook};

use super::by_both_protocols;
use super::hooks::{Greeter, Muted};
use super::subject::{Subject, client, echo_all, message, receive, until};
use crate::support::DEADLINE;

by_both_protocols!(
    clients_spread_over_the_shards_and_stay_there,
    the_shards_together_admit_at_most_max_incoming,
    the_application_decides_about_clients_of_each_shard,
    a_hook_of_all_shards_distinguishes_their_connections,
    each_shard_has_its_own_plugin,
);

const SHARDS: usize = 4;
/// The probability that all of these clients reach the same one of four shards by chance is 1 in 2^62.
const CLIENTS: u16 = 32;

async fn clients_spread_over_the_shards_and_stay_there<P: Subject>() {
    let options = Options::<P>::server(CLIENTS).expect("random bytes");
    let shards = Endpoint::bind_shards("127.0.0.1:0", &options, SHARDS).await.expect("a free port");
    let address = shards.first().expect("a shard").local_addr();
    assert!(shards.iter().all(|shard| shard.local_addr() == address));
    let shards: Vec<_> = shards.into_iter().map(echo_all).collect();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let client = client::<P>(|_| {}).await;
        let connection = client.connect(address).await.expect("a connection");
        clients.push((client, connection));
    }
    for round in 0..20 {
        for (_, connection) in &clients {
            connection.send(&message(10, round), P::RELIABLE).await.expect("open");
            assert_eq!(receive(connection).await.bytes, message(10, round));
        }
    }
    let counts: Vec<usize> = shards.iter().map(|shard| shard.stats().connections).collect();
    assert_eq!(counts.iter().sum::<usize>(), usize::from(CLIENTS), "{counts:?}");
    assert!(counts.iter().filter(|count| **count > 0).count() > 1, "{counts:?}");
}

async fn the_shards_together_admit_at_most_max_incoming<P: Subject>() {
    let options = Options::<P>::server(8).expect("random bytes");
    let shards = Endpoint::bind_shards("127.0.0.1:0", &options, SHARDS).await.expect("a free port");
    let address = shards.first().expect("a shard").local_addr();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let client = client::<P>(|_| {}).await;
        let connection = client.connect(address).await;
        clients.push((client, connection));
    }
    let count = || shards.iter().map(|shard| shard.stats().connections).sum::<usize>();
    until("eight clients are connected", || count() == 8).await;
    // A Game Protocol client considers its connection open before the server refuses it for lack of a slot. Before
    // the refusal it repeats the message that requests admission.
    let open = || {
        let connections = clients.iter().filter_map(|(_, connection)| connection.as_ref().ok());
        connections.filter(|connection| connection.closed_reason().is_none())
    };
    until("all other clients are refused", || open().count() == 8).await;
    // A client that disconnects frees its slot.
    open().next().expect("eight of them").disconnect().await;
    until("one client has disconnected", || count() < 8).await;
    let late = client::<P>(|_| {}).await;
    // A repeated request in flight may still take the slot, but only until the server detects that its client has
    // gone.
    let find_place = async {
        loop {
            if let Ok(connection) = late.connect(address).await
                && is_admitted(&connection).await
            {
                return connection;
            }
        }
    };
    let place = tokio::time::timeout(DEADLINE, find_place).await;
    let _late = place.expect("there is a place");
    until("eight clients are connected again", || count() == 8).await;
}

/// Returns true if the server acknowledges the client's messages. A client's connection may open before the server
/// refuses it for lack of a slot.
async fn is_admitted<P: Subject>(connection: &Connection<P>) -> bool {
    if connection.send(&message(10, 0), P::RELIABLE).await.is_err() {
        return false;
    }
    let is_waiting = || connection.stats().is_some_and(|stats| P::is_waiting(&stats));
    until("the client is admitted or refused", || !is_waiting() || connection.closed_reason().is_some())
        .await;
    connection.closed_reason().is_none()
}

/// Each shard requests decisions about the clients that reach it. Admitted clients count for all shards, so the
/// limit holds even if the application admits more.
async fn the_application_decides_about_clients_of_each_shard<P: Subject>() {
    let mut options = Options::<P>::server(CLIENTS / 2).expect("random bytes");
    options.defer_incoming = true;
    let shards = Endpoint::bind_shards("127.0.0.1:0", &options, SHARDS).await.expect("a free port");
    let address = shards.first().expect("a shard").local_addr();
    let welcome = Arc::<Mutex<HashSet<SocketAddr>>>::default();
    let asked = Arc::<Mutex<HashSet<usize>>>::default();
    for (number, shard) in shards.iter().cloned().enumerate() {
        let (welcome, asked) = (Arc::clone(&welcome), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Some(incoming) = shard.incoming().await {
                asked.lock().expect("no panic").insert(number);
                let is_welcome = welcome.lock().expect("no panic").contains(&incoming.remote());
                if is_welcome { incoming.accept() } else { incoming.refuse() }
            }
        });
    }
    let mut clients = Vec::new();
    let count = || shards.iter().map(|shard| shard.stats().connections).sum::<usize>();
    for number in 0..=CLIENTS {
        let client = client::<P>(|_| {}).await;
        // Every second client is admitted, one more than there are slots.
        if number % 2 == 0 {
            welcome.lock().expect("no panic").insert(client.local_addr());
        }
        let is_admitted = number % 2 == 0 && number < CLIENTS;
        match client.connect(address).await {
            Ok(connection) if is_admitted => {
                clients.push((client, connection));
                until("the client is admitted", || count() == clients.len()).await;
            }
            // A Game Protocol client connects before it is refused.
            Ok(connection) => assert_eq!(connection.closed().await, P::REMOTE),
            Err(error) => assert!(!is_admitted, "client {number}: {error}"),
        }
    }
    assert_eq!(clients.len(), usize::from(CLIENTS / 2));
    assert!(clients.iter().all(|(_, connection)| connection.closed_reason().is_none()));
    assert!(asked.lock().expect("no panic").len() > 1, "only one shard requested decisions");
}

/// A client endpoint, its connection, and the server's side of the connection.
type Joined<P> = (Endpoint<P>, Connection<P>, Connection<P>);

/// Binds a server with a hook per shard, and connects as many clients as there are slots. Each client is returned
/// with the number of its shard.
async fn joined_shards<P: Subject, H: Hook<P> + Send + 'static>(
    hook: impl FnMut(usize) -> H,
) -> (Vec<Endpoint<P>>, Vec<(usize, Joined<P>)>) {
    let options = Options::<P>::server(CLIENTS).expect("random bytes");
    let shards = Endpoint::bind_shards_with_hook("127.0.0.1:0", &options, SHARDS, hook);
    let shards = shards.await.expect("a free port");
    let (accepted, mut ends) = tokio::sync::mpsc::unbounded_channel();
    for (number, shard) in shards.iter().cloned().enumerate() {
        let accepted = accepted.clone();
        tokio::spawn(async move {
            while let Some(connection) = shard.accept().await {
                accepted.send((number, connection)).expect("a test that is still running");
            }
        });
    }
    let mut joined = Vec::new();
    for _ in 0..CLIENTS {
        let client = client::<P>(|_| {}).await;
        let here = client.connect(shards[0].local_addr()).await.expect("a connection");
        let (number, there) = ends.recv().await.expect("the same connection");
        joined.push((number, (client, here, there)));
    }
    assert!(joined.iter().any(|(number, _)| *number != joined[0].0), "all clients came to one shard");
    (shards, joined)
}

/// A hook shared by all shards identifies connections by their ids, which are unique among the shards.
async fn a_hook_of_all_shards_distinguishes_their_connections<P: Subject>() {
    let muted = SharedHook::new(Muted::default());
    let (_shards, joined) = joined_shards::<P, _>(|_| muted.clone()).await;
    let ids: HashSet<_> = joined.iter().map(|(_, (_, _, there))| there.id()).collect();
    assert_eq!(ids.len(), usize::from(CLIENTS), "{ids:?}");
    let (_, (_, mute, there)) = &joined[0];
    muted.with(|muted| muted.id = Some(there.id()));
    mute.send(&message(10, 0), P::RELIABLE).await.expect("an open connection");
    for (_, (_, here, there)) in &joined[1..] {
        here.send(&message(10, 0), P::RELIABLE).await.expect("an open connection");
        assert_eq!(receive(there).await.bytes, message(10, 0));
    }
    until("a message is dropped", || muted.with(|muted| muted.dropped == 1)).await;
}

async fn each_shard_has_its_own_plugin<P: Subject>() {
    let hosts = [(); SHARDS].map(|()| SharedHook::new(PluginHost::<Greeter, 1>::new()));
    for host in &hosts {
        host.with(|host| host.attach::<P>(Greeter::default())).expect("a free slot");
    }
    let (_shards, joined) = joined_shards::<P, _>(|number| hosts[number].clone()).await;
    for (_, (_, here, there)) in &joined {
        assert_eq!(receive(here).await.bytes, b"\x85hello");
        here.send(b"\x85hello", P::RELIABLE).await.expect("an open connection");
        assert_eq!(receive(there).await.bytes, b"\x90it has answered");
    }
}

/// Binds a RakNet server of several shards.
async fn raknet_shards(change: impl FnOnce(&mut Options<RakNet>)) -> Vec<Endpoint<RakNet>> {
    let mut options = Options::<RakNet>::server(64).expect("random bytes");
    change(&mut options);
    Endpoint::bind_shards("127.0.0.1:0", &options, SHARDS).await.expect("a free port")
}

async fn refused(
    client: &Endpoint<RakNet>,
    shards: &[Endpoint<RakNet>],
) -> Option<ConnectError<ConnectFailure>> {
    client.connect(shards[0].local_addr()).await.err()
}

const fn refusal(why: Refusal) -> Option<ConnectError<ConnectFailure>> {
    Some(ConnectError::Failed(ConnectFailure::Refused(why)))
}

/// One GUID connects from 32 ports, which are distributed over all shards. One connection is admitted.
#[tokio::test]
async fn the_shards_admit_a_guid_once() {
    let shards = raknet_shards(|_| {}).await;
    let first = client::<RakNet>(|options| options.config.guid = Guid(7)).await;
    let _connection = first.connect(shards[0].local_addr()).await.expect("a connection");
    for _ in 0..CLIENTS {
        let second = client::<RakNet>(|options| options.config.guid = Guid(7)).await;
        assert_eq!(refused(&second, &shards).await, refusal(Refusal::AlreadyConnected));
    }
}

#[tokio::test]
async fn a_ban_or_password_at_one_shard_applies_to_all() {
    let shards = raknet_shards(|options| options.config.pongs_per_network = 1_000).await;
    shards[1].ban("127.0.0.1".parse().expect("a pattern"), None).expect("enough space");
    for _ in 0..CLIENTS {
        let banned = client::<RakNet>(|_| {}).await;
        assert_eq!(refused(&banned, &shards).await, refusal(Refusal::Banned));
    }
    assert_eq!(shards[3].bans().len(), 1);
    assert!(shards[2].unban("127.0.0.1".parse().expect("a pattern")));
    shards[3].set_password(b"friends").expect("short");
    shards[0].set_advertisement(b"one server").expect("short");
    for _ in 0..CLIENTS {
        let client = client::<RakNet>(|_| {}).await;
        let address = shards[0].local_addr();
        assert!(client.connect(address).await.is_err(), "the client sent no password");
        let options = ConnectOptions { password: b"friends", ..ConnectOptions::default() };
        client.connect_with(address, &options).await.expect("a connection").disconnect().await;
        let pong = client.ping(address, DEADLINE).await;
        assert_eq!(pong.expect("a pong").data, b"one server");
    }
}

#[tokio::test]
async fn the_shards_of_a_raknet_server_share_one_guid() {
    let options = Options::<RakNet>::server(8).expect("random bytes");
    let shards = Endpoint::bind_shards("127.0.0.1:0", &options, SHARDS).await.expect("a free port");
    assert_eq!(shards.len(), SHARDS);
    assert!(shards.iter().all(|shard| shard.guid() == options.config.guid));
}
