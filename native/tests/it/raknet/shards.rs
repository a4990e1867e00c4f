//! One address, several endpoints.

use rakwire_native::{Connection, Delivery, Endpoint, Options};

const SHARDS: usize = 4;
/// So many that all of them on one of four shards is no chance: 1 in 2^62.
const CLIENTS: u16 = 32;

async fn echo(connection: Connection) {
    while let Some(message) = connection.recv().await {
        if connection.send(&message.bytes, message.delivery).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn clients_spread_over_the_shards_of_a_server_and_stay_where_they_are() {
    let options = Options::server(CLIENTS).expect("random bytes");
    let shards = Endpoint::bind_shards("127.0.0.1:0", &options, SHARDS).await.expect("a free port");
    let address = shards.first().expect("a shard").local_addr();
    assert!(shards.iter().all(|shard| shard.local_addr() == address && shard.guid() == options.config.guid));
    let shards: Vec<_> = shards.into_iter().map(std::sync::Arc::new).collect();
    for shard in &shards {
        let shard = std::sync::Arc::clone(shard);
        tokio::spawn(async move {
            while let Some(connection) = shard.accept().await {
                tokio::spawn(echo(connection));
            }
        });
    }
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let client =
            Endpoint::bind("127.0.0.1:0", Options::client().expect("random bytes")).await.expect("a port");
        let connection = client.connect(address).await.expect("a connection");
        clients.push((client, connection));
    }
    for round in 0..20_u8 {
        for (_, connection) in &clients {
            connection.send(&[0x86, round], Delivery::RELIABLE_ORDERED).await.expect("open");
            assert_eq!(connection.recv().await.expect("an echo").bytes, [0x86, round]);
        }
    }
    let counts: Vec<usize> = shards.iter().map(|shard| shard.stats().connections).collect();
    assert_eq!(counts.iter().sum::<usize>(), usize::from(CLIENTS), "{counts:?}");
    assert!(counts.iter().filter(|count| **count > 0).count() > 1, "{counts:?}");
}
