//! More datagrams than a machine can read.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use rakwire::raknet::RakNet;

use super::ABSENT;
use crate::raknet::silence::forged_ping;
use crate::support::{Medium, Net, PORT, Wire, run};

/// Has as many pings arrive at machine 2 as it can take, in the name of machine 1 and of machines that are absent.
async fn flood(net: Net) {
    loop {
        for absent in ABSENT..=u8::MAX - 1 {
            (0..31).for_each(|_| net.forge(2, forged_ping(1, 2)));
            net.forge(2, forged_ping(absent, 2));
            tokio::task::yield_now().await;
        }
    }
}

/// Answers that no machine takes block a socket, which then has to be replaced. Between any two turns of the peer more datagrams
/// arrive than it reads in one.
#[test]
fn a_socket_that_is_blocked_is_replaced_during_a_flood() {
    run(async {
        let mut net = Net::with_medium(Wire::losing(0), Medium::Ethernet);
        let _client = net.client::<RakNet, 1, 48, 128, 8>();
        let (server, mut runner) = net.idle_machine::<RakNet, 1, 48, 128, 64>(PORT, |config| {
            (config.max_incoming, config.pongs_per_second, config.pongs_per_network) =
                (1, u16::MAX, u16::MAX);
        });
        let flooding = tokio::task::spawn_local(flood(net));
        let mut peer = pin!(runner.run());
        // Until a socket was blocked several times and others have taken its place.
        let (start, mut sent) = (Instant::now(), None);
        while sent.is_none_or(|sent| server.handle.stats().datagrams_sent <= sent + 100) {
            if sent.is_none() && start.elapsed() > Duration::from_secs(2) {
                sent = Some(server.handle.stats().datagrams_sent);
            }
            for _ in 0..8 {
                tokio::task::yield_now().await;
            }
            assert!(poll_fn(|cx| Poll::Ready(peer.as_mut().poll(cx).is_pending())).await);
        }
        assert!(server.handle.unsent().unanswered > 0 && !flooding.is_finished());
        flooding.abort();
    });
}
