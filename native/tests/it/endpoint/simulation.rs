//! Connections over a lossy network.

use rakwire::game_protocol::GameProtocol;
use rakwire::raknet::RakNet;

use super::subject::{Subject, client, join, numbered, receive_all, server};
use crate::support::DEADLINE;

async fn everything_reliable_arrives_through<P: Subject>(networks: [&str; 2], count: usize) {
    let [of_server, of_client] =
        networks.map(|network| (!network.is_empty()).then(|| network.parse().expect("a simulation")));
    let server = server::<P>(|options| {
        P::resend_handshakes(&mut options.config);
        options.simulate = of_server;
    })
    .await;
    let client = client::<P>(|options| {
        P::resend_handshakes(&mut options.config);
        options.simulate = of_client;
    })
    .await;
    let (here, there) = join(&client, &server).await;
    let send = async {
        for number in 0..count {
            here.send(&numbered(305, number), P::RELIABLE).await.expect("an open connection");
        }
    };
    let exchange = async { tokio::join!(send, receive_all(&there, 305, count)) };
    tokio::time::timeout(DEADLINE, exchange).await.expect("all messages in time");
    assert!(P::has_resent(&here.stats().expect("an open connection")), "nothing was lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reliable_messages_arrive_despite_jitter_loss_and_reordering() {
    let networks = ["loss=5%,latency=4ms,jitter=2ms,duplicate=2%,reorder=2%,seed=3", ""];
    everything_reliable_arrives_through::<RakNet>(networks, 1_000).await;
    everything_reliable_arrives_through::<GameProtocol>(networks, 1_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reliable_messages_arrive_despite_heavy_loss_in_both_directions() {
    let networks = ["loss=20%,latency=2ms,duplicate=10%"; 2];
    everything_reliable_arrives_through::<RakNet>(networks, 300).await;
    everything_reliable_arrives_through::<GameProtocol>(networks, 300).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_endpoint_flushes_its_simulated_network() {
    the_end_arrives::<RakNet>().await;
    the_end_arrives::<GameProtocol>().await;
}

async fn the_end_arrives<P: Subject>() {
    let server = server::<P>(|options| {
        options.simulate = Some("latency=40ms".parse().expect("a simulation"));
    })
    .await;
    let client = client::<P>(|_| {}).await;
    let (here, _there) = join(&client, &server).await;
    server.close().await;
    let end = tokio::time::timeout(DEADLINE, here.recv()).await;
    assert!(end.expect("the end of the stream before the timeout").is_none());
    assert_eq!(here.closed_reason(), Some(P::REMOTE));
}
