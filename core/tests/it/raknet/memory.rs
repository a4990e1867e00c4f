//! What an idle connection takes. A number that has to be raised here is one that every server pays for.

use core::time::Duration;

use rakwire::raknet::Resources;
use rakwire::sim::Conditions;

use crate::support::raknet::{Net, client_config, peer, server_config};

/// Bytes of the tables, with all timers, that each connection uses. Black-hole detection has 40 of them: what it counts, and the MTU
/// of the path beside the one that the peers agreed on; and 17 are for messages that arrived whole before they were cut.
#[cfg(target_pointer_width = "64")]
const PLACE: usize = 1_120;
/// Bytes that it uses in addition once something is lost or overtaken: two bits for each of 1,024 datagrams, and six bytes for each
/// of the 16 that were lost last.
#[cfg(target_pointer_width = "64")]
const LOSS_HISTORY: usize = 1_024 / 4 + 16 * 6;

#[cfg(target_pointer_width = "64")]
#[test]
fn a_place_for_a_connection_is_no_larger_than_it_was() {
    let place = size_of::<Resources<65, 64, 512>>() - size_of::<Resources<64, 64, 512>>();
    assert!(place <= PLACE + LOSS_HISTORY, "{place}");
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
