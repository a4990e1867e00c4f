//! More datagrams than a machine can read.

use std::rc::Rc;

use rakwire::raknet::RakNet;

use super::ABSENT;
use crate::raknet::silence::forged_ping;
use crate::support::{Machine, Medium, Net, PORT, Wire, run, until};

/// Has as many pings arrive at machine 2 as it can take, in the name of machine 1.
async fn flood(net: Rc<Net>) {
    loop {
        (0..32).for_each(|_| net.forge(2, forged_ping(1, 2)));
        tokio::task::yield_now().await;
    }
}

/// An answer that no machine takes blocks a socket, which then has to be replaced.
#[test]
fn a_socket_that_is_blocked_is_replaced_during_a_flood() {
    run(async {
        let mut net = Net::with_medium(Wire::losing(0), Medium::Ethernet);
        let _client = net.client::<RakNet, 1, 48, 128, 8>();
        let server: Machine<RakNet> =
            net.machine::<RakNet, 1, 48, 128, 16>(PORT, |config| config.max_incoming = 1);
        let net = Rc::new(net);
        let flooding = tokio::task::spawn_local(flood(Rc::clone(&net)));
        net.forge(2, forged_ping(ABSENT, 2));
        until(|| server.handle.unsent().unanswered > 0).await;
        assert!(!flooding.is_finished());
        flooding.abort();
    });
}
