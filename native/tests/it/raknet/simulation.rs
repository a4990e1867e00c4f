//! Endpoints behind a simulated network.

use std::time::Duration;

use rakwire_native::{Connection, Delivery, Endpoint, Options};

async fn bind(max_incoming: u16, simulate: &str) -> Endpoint {
    let mut options = Options::server(max_incoming).expect("entropy");
    options.simulate = (!simulate.is_empty()).then(|| simulate.parse().expect("a simulation"));
    Endpoint::bind("127.0.0.1:0", options).await.expect("a free port")
}

async fn join(simulate: &str) -> (Endpoint, Endpoint, Connection, Connection) {
    let (server, client) = (bind(8, simulate).await, bind(0, "").await);
    let (here, there) = tokio::join!(client.connect(server.local_addr()), server.accept());
    (server, client, here.expect("a connection"), there.expect("the same connection"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_promised_arrives_through_a_bad_network() {
    let network = "loss=5%,latency=4ms,jitter=2ms,duplicate=2%,reorder=2%,seed=3";
    let (_server, _client, here, there) = join(network).await;
    let message = |number: u32| [&[0x90][..], &number.to_be_bytes(), &[7; 300]].concat();
    let send = async {
        for number in 0..1_000 {
            here.send(&message(number), Delivery::RELIABLE_ORDERED).await.expect("an open connection");
        }
    };
    let receive = async {
        for number in 0..1_000 {
            assert_eq!(there.recv().await.expect("a message").bytes, message(number));
        }
    };
    tokio::time::timeout(Duration::from_secs(60), async { tokio::join!(send, receive) })
        .await
        .expect("all messages in time");
    let stats = here.stats().expect("an open connection");
    assert!(stats.datagrams_lost > 0, "nothing was lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_latency_lengthens_both_directions() {
    let (server, client, here, there) = join("latency=40ms").await;
    let pong = client.ping(server.local_addr(), Duration::from_secs(20)).await.expect("a pong");
    assert!(pong.latency >= Duration::from_millis(80), "{:?}", pong.latency);
    // A farewell on its way arrives although the endpoint has ended.
    server.close().await;
    assert!(here.recv().await.is_none());
    drop(there);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_network_carries_nothing() {
    let server = bind(8, "loss=100%").await;
    let client = bind(0, "").await;
    let silence = client.ping(server.local_addr(), Duration::from_millis(200)).await;
    assert_eq!(silence, Err(rakwire_native::PingError::NoAnswer));
    assert_eq!(server.stats().peer.datagrams_received, 0);
}
