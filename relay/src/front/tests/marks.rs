//! The table of marks at the front. One of RakNet passes nothing that is no RakNet, so that the front is one of the Game Protocol.

use super::*;

#[path = "../../../tests/marks/mod.rs"]
pub(crate) mod table;

use table::{Fate, marks};

#[test]
fn marks_count_only_from_those_that_may_write_them() {
    for mark in marks() {
        let mut bench = Bench::new(settings(FrontProtocol::GameProtocol));
        bench.front.admission.proxy_protocol = mark.reads_headers;
        let from = client_address(1);
        let id = bench.open_game_protocol(from);
        let passed = |to, fate| if fate == Fate::Passes { vec![(to, mark.datagram.clone())] } else { vec![] };
        let fate = mark.to_server("front");
        assert_eq!(bench.client(from, &mark.datagram), passed(To::Server(id), fate), "{}", mark.name);
        assert_eq!(bench.drops(FrontDropReason::ForgedHeader) > 0, fate == Fate::Forged, "{}", mark.name);
        let fate = mark.to_client("front");
        assert_eq!(bench.server(id, &mark.datagram), passed(To::Client(from), fate), "{}", mark.name);
    }
}
