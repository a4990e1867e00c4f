//! Network interfaces that send less than Ethernet, and paths that become narrower.

use std::net::SocketAddr;

use rakwire::raknet::{Delivery, RakNet};
use rakwire_embassy::Connection;

use crate::support::{Machine, Medium, Net, PORT, Wire, bytes, connect, ipv6, message, run};

/// The MTU of a connection between a client and a server, of which the first or the second has an interface that sends
/// packets of `interface` bytes, after long messages have arrived on both sides.
async fn mtu_of_connection(interface: u16, client_is_narrow: bool, over_ipv6: bool) -> u16 {
    let mut net = Net::with_medium(Wire::losing(0), Medium::Ethernet);
    let client = machine(&mut net, 0, 0, client_is_narrow.then_some(interface));
    let server = machine(&mut net, PORT, 1, (!client_is_narrow).then_some(interface));
    let address = if over_ipv6 { SocketAddr::from((ipv6(2), PORT)) } else { server.address };
    let (here, there) = tokio::join!(client.handle.connect(address), server.handle.accept());
    let here = here.expect("a connection");
    exchange(&here, &there).await;
    // Those that were late alone had arrived.
    let lost = [&here, &there].map(|end| {
        let stats = end.stats().expect("an open end");
        stats.datagrams_lost - stats.datagrams_late
    });
    assert_eq!(lost, [0; 2], "nothing is too long for the interface");
    here.stats().expect("an open end").mtu
}

/// A message whose parts are as long as the MTU arrives at each of two ends.
async fn exchange(here: &Connection<'static, RakNet>, there: &Connection<'static, RakNet>) {
    for (from, to) in [(here, there), (there, here)] {
        from.send(&message(7, 4_200), Delivery::RELIABLE_ORDERED).await.expect("an open end");
        let received = to
            .recv()
            .await
            .unwrap_or_else(|| panic!("the end: {:?}, {:?}", to.closed_reason(), from.closed_reason()));
        assert_eq!(bytes(&received), message(7, 4_200));
    }
}

fn machine(net: &mut Net, port: u16, max_incoming: u16, narrow: Option<u16>) -> Machine<RakNet> {
    net.interface_mtu = narrow.unwrap_or(1_500).into();
    net.machine::<RakNet, 1, 512, 128, 8>(port, |config| {
        config.max_incoming = max_incoming;
        if let Some(mtu) = narrow {
            config.interface_mtu = mtu;
        }
    })
}

#[test]
fn a_connection_has_the_mtu_of_the_interface() {
    run(async {
        for client_is_narrow in [true, false] {
            for (interface, over_ipv4, over_ipv6) in [(1_400, 1_400, 1_380), (1_280, 1_280, 1_260)] {
                assert_eq!(mtu_of_connection(interface, client_is_narrow, false).await, over_ipv4);
                assert_eq!(mtu_of_connection(interface, client_is_narrow, true).await, over_ipv6);
            }
        }
    });
}

/// As when a tunnel comes up behind the next router, and nothing tells the board.
#[test]
fn messages_arrive_over_a_path_that_becomes_narrower() {
    run(async {
        for (longest, medium) in [(1_400, Medium::Ip), (1_280, Medium::Ethernet), (576, Medium::Ip)] {
            let wire = Wire::losing(0);
            let mut net = Net::with_medium(wire.clone(), medium);
            let (client, server) = (machine(&mut net, 0, 0, None), machine(&mut net, PORT, 1, None));
            let (here, there) = connect(&client, &server).await;
            let mtus = || [&here, &there].map(|end| usize::from(end.stats().expect("an open end").mtu));
            exchange(&here, &there).await;
            assert_eq!(mtus(), [1_492; 2]);
            wire.narrow(longest);
            exchange(&here, &there).await;
            assert!(mtus().iter().all(|mtu| *mtu <= longest), "{:?} of {longest}", mtus());
        }
    });
}
