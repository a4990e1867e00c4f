//! Networks that change while connections are open.

use embassy_net::driver::LinkState;
use embassy_net::{ConfigV4, Ipv4Cidr, StaticConfigV4};
use heapless::Vec as FixedVec;
use rakwire::raknet::{Delivery, RakNet};

use super::{MANY, echoing, ethernet};
use crate::support::{
    LOST, Medium, Net, PORT, Tested, Wire, connect, echo, end, ipv6, join, round_trips, run,
};

fn address(number: u8, third: u8) -> ConfigV4 {
    let address = Ipv4Cidr::new([10, 0, third, number].into(), 24);
    ConfigV4::Static(StaticConfigV4 { address, gateway: None, dns_servers: FixedVec::new() })
}

#[test]
fn a_connection_continues_when_its_link_returns() {
    run(async {
        let (net, client, server) = ethernet::<RakNet>();
        let connection = echoing(&client, &server).await;
        for _ in 0..3 {
            net.set_link(2, LinkState::Down);
            net.set_link(1, LinkState::Down);
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            net.set_link(1, LinkState::Up);
            net.set_link(2, LinkState::Up);
            round_trips(&connection, 10, 40).await;
        }
    });
}

#[test]
fn a_connection_survives_the_loss_of_another_hardware_address() {
    run(async {
        let mut net = Net::with_medium(Wire::losing(0), Medium::Ethernet);
        let client = net.client::<RakNet, 2, 96, 128, 8>();
        let gone = net.server::<RakNet, 1, 48, 128, 4>();
        let (lost, _its_end) = connect(&client, &gone).await;
        let server = net.server::<RakNet, 1, 48, 128, 4>();
        let connection = echoing(&client, &server).await;
        net.cut(2);
        lost.send(&[0xFE], Delivery::RELIABLE).await.expect("an open connection");
        // The stack removes all hardware addresses when it is configured.
        net.stack_of(1).set_config_v4(address(1, 0));
        round_trips(&connection, MANY, 40).await;
        assert_eq!(lost.closed_reason(), None);
    });
}

#[test]
fn a_host_becomes_reachable_after_a_network_change() {
    run(async {
        let mut net = Net::with_medium(Wire::losing(0), Medium::Ethernet);
        // The attempts take longer than the second after a request.
        let client = net.machine::<RakNet, 2, 96, 128, 8>(0, |config| config.connect_attempts = 4);
        let server = net.server::<RakNet, 2, 96, 128, 8>();
        net.stack_of(1).set_config_v4(address(1, 7));
        let absent = ([10, 0, 7, 2], PORT).into();
        assert!(client.handle.connect(absent).await.is_err());
        assert!(client.handle.unsent().backed_off > 0);
        let there = client.handle.connect(server.address).await;
        assert!(there.is_err(), "the host must be unreachable before the network change");
        net.stack_of(1).set_config_v4(address(1, 0));
        let (here, _there) = tokio::join!(join(&client, server.address), server.handle.accept());
        assert_eq!(here.remote(), server.address);
    });
}

/// A DHCP server assigns a new IPv4 address. Connections from the old address are lost; all others continue.
#[test]
fn an_ipv6_connection_survives_a_new_ipv4_address() {
    run(async {
        let mut net = Net::with_medium(Wire::losing(0), Medium::Ethernet);
        // The stack removes all hardware addresses when it is configured, and then sends one request per second.
        let timeout = std::time::Duration::from_secs(3);
        let client = net.machine::<RakNet, 4, 192, 128, 8>(0, |config| RakNet::set_timeout(config, timeout));
        let server = net.machine::<RakNet, 4, 96, 128, 8>(PORT, |config| {
            config.max_incoming = 4;
            RakNet::set_timeout(config, timeout);
        });
        let other = net.server::<RakNet, 1, 48, 128, 8>();
        let over_ipv6 = (ipv6(3), PORT).into();
        let (live, there) = tokio::join!(join(&client, over_ipv6), other.handle.accept());
        tokio::task::spawn_local(echo(there));
        let (old, its_end) = connect(&client, &server).await;
        net.stack_of(1).set_config_v4(address(77, 0));
        for end in [&old, &its_end] {
            end.send(&[0xFE], Delivery::RELIABLE).await.expect("an open connection");
        }
        round_trips(&live, MANY, 40).await;
        let (new, there) = tokio::join!(join(&client, server.address), server.handle.accept());
        tokio::task::spawn_local(echo(there));
        round_trips(&new, MANY, 40).await;
        while old.recv().await.is_some() {}
        assert_eq!(end(&old), LOST);
        round_trips(&live, 10, 40).await;
        assert_eq!((live.closed_reason(), new.closed_reason()), (None, None));
    });
}
