//! Pings through a simulated network.

use std::time::Duration;

use rakwire_native::{Endpoint, Options};

use crate::support::DEADLINE;

async fn bind(max_incoming: u16, simulate: &str) -> Endpoint {
    let mut options = Options::server(max_incoming).expect("entropy");
    options.simulate = (!simulate.is_empty()).then(|| simulate.parse().expect("a simulation"));
    Endpoint::bind("127.0.0.1:0", options).await.expect("a free port")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn latency_applies_in_both_directions() {
    let (server, client) = (bind(8, "latency=40ms").await, bind(0, "").await);
    let pong = client.ping(server.local_addr(), DEADLINE).await.expect("a pong");
    assert!(pong.latency >= Duration::from_millis(80), "{:?}", pong.latency);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_with_full_loss_delivers_no_datagrams() {
    let server = bind(8, "loss=100%").await;
    let client = bind(0, "").await;
    let silence = client.ping(server.local_addr(), Duration::from_millis(200)).await;
    assert_eq!(silence, Err(rakwire_native::PingError::NoAnswer));
    assert_eq!(server.stats().peer.datagrams_received, 0);
}
