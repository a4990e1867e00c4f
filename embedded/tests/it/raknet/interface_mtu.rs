//! Network interfaces with a smaller MTU than Ethernet, and paths with a decreasing MTU.

use std::net::SocketAddr;

use embassy_net::udp::{PacketMetadata, UdpSocket};
use rakwire::raknet::{Delivery, RakNet};
use rakwire::wire::offline::Offline;
use rakwire::wire::{MAX_MTU, Reader, Wire as _, Writer};
use rakwire_embassy::Connection;

use crate::support::{Machine, Medium, Net, PORT, Wire, bytes, connect, ipv6, message, run};

/// Returns the MTU of a connection after long messages have arrived on both sides. The interface of the client or of
/// the server sends IP packets of at most `interface` bytes.
async fn mtu_of_connection(interface: u16, client_is_narrow: bool, over_ipv6: bool) -> u16 {
    let mut net = Net::with_medium(Wire::losing(0), Medium::Ethernet);
    let client = machine(&mut net, 0, 0, client_is_narrow.then_some(interface));
    let server = machine(&mut net, PORT, 1, (!client_is_narrow).then_some(interface));
    let address = if over_ipv6 { SocketAddr::from((ipv6(2), PORT)) } else { server.address };
    let (here, there) = tokio::join!(client.handle.connect(address), server.handle.accept());
    let here = here.expect("a connection");
    exchange(&here, &there).await;
    // All datagrams have arrived, so the datagrams counted as lost were only late.
    let lost = [&here, &there].map(|end| {
        let stats = end.stats().expect("an open connection");
        stats.datagrams_lost - stats.datagrams_late
    });
    assert_eq!(lost, [0; 2], "no datagram may be too long for the interface");
    here.stats().expect("an open connection").mtu
}

/// Sends a message in each direction, in fragments as long as the MTU permits.
async fn exchange(here: &Connection<'static, RakNet>, there: &Connection<'static, RakNet>) {
    for (from, to) in [(here, there), (there, here)] {
        from.send(&message(7, 4_200), Delivery::RELIABLE_ORDERED).await.expect("an open connection");
        let received = to.recv().await.unwrap_or_else(|| {
            panic!("the connection closed: {:?}, {:?}", to.closed_reason(), from.closed_reason())
        });
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

/// A tunnel comes into use behind the next router, and the board is not notified.
#[test]
fn messages_arrive_when_the_path_mtu_shrinks() {
    run(async {
        for (longest, medium) in [(1_400, Medium::Ip), (1_280, Medium::Ethernet), (576, Medium::Ip)] {
            let wire = Wire::losing(0);
            let mut net = Net::with_medium(wire.clone(), medium);
            let (client, server) = (machine(&mut net, 0, 0, None), machine(&mut net, PORT, 1, None));
            let (here, there) = connect(&client, &server).await;
            let mtus =
                || [&here, &there].map(|end| usize::from(end.stats().expect("an open connection").mtu));
            exchange(&here, &there).await;
            assert_eq!(mtus(), [1_492; 2]);
            wire.narrow(longest);
            exchange(&here, &there).await;
            assert!(mtus().iter().all(|mtu| *mtu <= longest), "{:?} of {longest}", mtus());
        }
    });
}

/// Other implementations send datagrams of up to 1,492 bytes without headers, over interfaces with a larger MTU than
/// Ethernet.
#[test]
fn datagrams_longer_than_the_local_maximum_are_read() {
    run(async {
        let mut net = Net::with_medium(Wire::losing(0), Medium::Ethernet);
        net.interface_mtu = 1_520;
        let server = net.server::<RakNet, 1, 48, 128, 4>();
        let (sender, _) = net.machine_without_peer();
        let (mut receive, mut send) = ([0; 4_096], [0; 4_096]);
        let mut metadata = [[PacketMetadata::EMPTY; 4]; 2];
        let [received, sent] = &mut metadata;
        let mut socket = UdpSocket::new(sender, received, &mut receive, sent, &mut send);
        socket.bind(PORT).expect("a free port");
        for length in 1_473..=1_492_u16 {
            let mut datagram = [0; 1_492];
            let mut writer = Writer::new(&mut datagram);
            Offline::Request1 { protocol: 6, mtu: MAX_MTU }.write(&mut writer).expect("enough space");
            let request = &datagram[..length.into()];
            socket.send_to(request, server.address).await.expect("the request fits the interface");
            let mut answer = [0; 1_492];
            let (answered, _) = socket.recv_from(&mut answer).await.expect("an answer");
            let reply = Offline::read(&mut Reader::new(&answer[..answered]));
            assert!(matches!(reply, Ok(Offline::Reply1 { mtu: MAX_MTU, .. })), "{length}: {reply:?}");
        }
    });
}
