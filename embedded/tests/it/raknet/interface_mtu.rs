//! Network interfaces that send less than Ethernet.

use std::net::SocketAddr;

use rakwire::raknet::{Delivery, RakNet};

use crate::support::{Machine, Medium, Net, PORT, Wire, bytes, ipv6, message, run};

/// The MTU of a connection between a client and a server, of which the first or the second has an interface that sends
/// packets of `interface` bytes, after long messages have arrived on both sides.
async fn mtu_of_connection(interface: u16, client_is_narrow: bool, over_ipv6: bool) -> u16 {
    let mut net = Net::with_medium(Wire::losing(0), Medium::Ethernet);
    let client = machine(&mut net, 0, 0, client_is_narrow.then_some(interface));
    let server = machine(&mut net, PORT, 1, (!client_is_narrow).then_some(interface));
    let address = if over_ipv6 { SocketAddr::from((ipv6(2), PORT)) } else { server.address };
    let (here, there) = tokio::join!(client.handle.connect(address), server.handle.accept());
    let here = here.expect("a connection");
    for (from, to) in [(&here, &there), (&there, &here)] {
        from.send(&message(7, 4_000), Delivery::RELIABLE).await.expect("an open end");
        assert_eq!(bytes(&to.recv().await.expect("a message")), message(7, 4_000));
    }
    // Those that were late alone had arrived.
    let lost = [&here, &there].map(|end| {
        let stats = end.stats().expect("an open end");
        stats.datagrams_lost - stats.datagrams_late
    });
    assert_eq!(lost, [0; 2], "nothing is too long for the interface");
    here.stats().expect("an open end").mtu
}

fn machine(net: &mut Net, port: u16, max_incoming: u16, narrow: Option<u16>) -> Machine<RakNet> {
    net.interface_mtu = narrow.unwrap_or(1_500).into();
    net.machine::<RakNet, 1, 96, 128, 8>(port, |config| {
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
