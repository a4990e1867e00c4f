//! The memory of an idle connection, which a server needs for each of its slots.

use core::time::Duration;

use rakwire::raknet::Resources;
use rakwire::sim::Conditions;

use crate::support::raknet::{Net, client_config, peer, server_config};

/// The maximum size of one connection in the tables of a peer in bytes, including all timers.
///
/// Black hole detection takes 40 of these bytes, for its counters and for the current path MTU.
/// Another 17 bytes are for messages that were received whole before their sender split them.
#[cfg(target_pointer_width = "64")]
const PLACE: usize = 1_120;
/// The bytes that record losses and reordering: two bits for each of 1,024 datagrams, and six bytes for each of the
/// last 16 losses.
#[cfg(target_pointer_width = "64")]
const LOSS_HISTORY: usize = 1_024 / 4 + 16 * 6;

#[cfg(target_pointer_width = "64")]
#[test]
fn the_memory_per_connection_is_within_its_limit() {
    let place = size_of::<Resources<65, 64, 512>>() - size_of::<Resources<64, 64, 512>>();
    assert!(place <= PLACE + LOSS_HISTORY, "{place}");
}

/// A connection that is only kept alive takes a block for each ping and then frees it.
#[test]
fn an_idle_connection_holds_blocks_only_for_pings() {
    let mut net = Net::with(peer(client_config()), peer(server_config()), Conditions::default(), 1);
    net.connect();
    for _ in 0..10 {
        net.run_for(Duration::from_secs(5));
        let all_is_free = |net: &mut Net| net.pair.b.blocks_available() == net.pair.b.blocks();
        assert!(net.run_until(Duration::from_secs(1), all_is_free), "{}", net.pair.b.blocks_available());
    }
}
