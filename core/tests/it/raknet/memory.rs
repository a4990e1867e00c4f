//! What an idle connection takes. A number that has to be raised here is one that every server pays for.

use core::time::Duration;

use rakwire::raknet::Resources;
use rakwire::sim::Conditions;

use crate::support::raknet::{Net, client_config, peer, server_config};

/// Bytes of the table, with all timers, for each connection.
#[cfg(target_pointer_width = "64")]
const SLOT: usize = 1_432;

#[cfg(target_pointer_width = "64")]
#[test]
fn a_place_for_a_connection_is_no_larger_than_it_was() {
    let slot = size_of::<Resources<65, 64, 512>>() - size_of::<Resources<64, 64, 512>>();
    assert!(slot <= SLOT, "{slot}");
}

/// A connection that is only kept alive takes a block for each ping, and gives it back.
#[test]
fn an_idle_connection_holds_blocks_for_pings_alone() {
    let mut net = Net::with(peer(client_config()), peer(server_config()), Conditions::default(), 1);
    net.connect();
    for _ in 0..10 {
        net.run_for(Duration::from_secs(5));
        let all_is_free = |net: &mut Net| net.pair.b.blocks_available() == net.pair.b.blocks();
        assert!(net.run_until(Duration::from_secs(1), all_is_free), "{}", net.pair.b.blocks_available());
    }
}
