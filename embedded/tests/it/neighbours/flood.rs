//! More datagrams arrive than a machine can read.

use std::collections::HashSet;
use std::future::poll_fn;
use std::iter;
use std::pin::pin;
use std::task::Poll;

use rakwire::raknet::RakNet;

use super::ABSENT;
use crate::raknet::silence::forged_ping;
use crate::support::{Medium, Net, PORT, Wire, run};

/// The number of pings that arrive between two polls of the other machines.
const BURST: usize = 32;
/// One in this many pings has the address of an unreachable host. Its position changes with each burst, so that a
/// socket that accepts only the first pings of a burst also receives it.
const ONE_OF: usize = BURST - 1;

/// Floods machine 2 with pings, faster than it can read them. Their forged source addresses are those of machine 1 and of
/// unreachable hosts.
async fn flood(net: Net) {
    let absent = (ABSENT..=u8::MAX - 1).flat_map(|absent| iter::repeat_n(1, ONE_OF - 1).chain([absent]));
    for (number, from) in (1_usize..).zip(absent.cycle()) {
        net.forge(2, forged_ping(from, 2));
        if number % BURST == 0 {
            tokio::task::yield_now().await;
        }
    }
}

/// Returns the unreachable host that is the target of a request for a hardware address (RFC 826).
fn requested_absent_host(frame: &[u8]) -> Option<u8> {
    let is_arp = frame.get(12..14) == Some(&[8, 6]);
    frame.get(41).copied().filter(|number| is_arp && *number >= ABSENT)
}

/// Answers to unreachable hosts block a socket, which requests the hardware address of the first receiver until it is
/// replaced. Between two polls, more datagrams arrive than the peer reads in one poll.
#[test]
fn a_blocked_socket_is_replaced_during_a_flood() {
    run(async {
        let mut net = Net::with_medium(Wire::losing(0), Medium::Ethernet);
        let _client = net.client::<RakNet, 1, 48, 128, 8>();
        let (server, mut runner) = net.idle_machine::<RakNet, 1, 48, 128, 64>(PORT, |config| {
            (config.max_incoming, config.pongs_per_second, config.pongs_per_network) =
                (1, u16::MAX, u16::MAX);
        });
        let mut listener = net.listener();
        let flooding = tokio::task::spawn_local(flood(net));
        let mut peer = pin!(runner.run());
        let mut requested = HashSet::new();
        while requested.len() < 2 {
            while let Ok(frame) = listener.try_recv() {
                requested.extend(requested_absent_host(&frame));
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
