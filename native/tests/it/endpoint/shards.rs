//! One address, several endpoints.

use rakwire::raknet::RakNet;
use rakwire_native::endpoint::{Endpoint, Options};

use super::by_both_protocols;
use super::subject::{Subject, client, echo_all, message, receive};

by_both_protocols!(clients_spread_over_the_shards_of_a_server_and_stay_where_they_are);

const SHARDS: usize = 4;
/// So many that all of them on one of four shards is no chance: 1 in 2^62.
const CLIENTS: u16 = 32;

async fn clients_spread_over_the_shards_of_a_server_and_stay_where_they_are<P: Subject>() {
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

#[tokio::test]
async fn the_shards_of_a_raknet_server_have_one_guid() {
    let options = Options::<RakNet>::server(8).expect("random bytes");
    let shards = Endpoint::bind_shards("127.0.0.1:0", &options, SHARDS).await.expect("a free port");
    assert_eq!(shards.len(), SHARDS);
    assert!(shards.iter().all(|shard| shard.guid() == options.config.guid));
}
