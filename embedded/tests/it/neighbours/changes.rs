//! Networks that change while there are connections.

use embassy_net::driver::LinkState;
use embassy_net::{ConfigV4, Ipv4Cidr, StaticConfigV4};
use heapless::Vec as FixedVec;
use rakwire::raknet::{Delivery, RakNet};

use super::{MANY, echoing, ethernet};
use crate::support::{Medium, Net, PORT, Wire, connect, join, round_trips, run};

fn address(number: u8, third: u8) -> ConfigV4 {
    let address = Ipv4Cidr::new([10, 0, third, number].into(), 24);
    ConfigV4::Static(StaticConfigV4 { address, gateway: None, dns_servers: FixedVec::new() })
}

#[test]
fn a_connection_goes_on_when_its_link_comes_back() {
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
fn a_connection_goes_on_when_the_hardware_address_of_another_one_is_lost() {
    run(async {
        let mut net = Net::with_medium(Wire::losing(0), Medium::Ethernet);
        let client = net.client::<RakNet, 2, 96, 128, 8>();
        let gone = net.server::<RakNet, 1, 48, 128, 4>();
        let (lost, _its_end) = connect(&client, &gone).await;
        let server = net.server::<RakNet, 1, 48, 128, 4>();
        let connection = echoing(&client, &server).await;
        net.cut(2);
        lost.send(&[0xFE], Delivery::RELIABLE).await.expect("not lost yet");
        // The stack forgets all hardware addresses when it is configured.
        net.stack_of(1).set_config_v4(address(1, 0));
        round_trips(&connection, MANY, 40).await;
        assert_eq!(lost.closed_reason(), None);
    });
}

#[test]
fn a_machine_that_was_absent_is_reached_once_the_network_is_another_one() {
    run(async {
        let mut net = Net::with_medium(Wire::losing(0), Medium::Ethernet);
        // More than the second that a request takes.
        let client = net.machine::<RakNet, 2, 96, 128, 8>(0, |config| config.connect_attempts = 4);
        let server = net.server::<RakNet, 2, 96, 128, 8>();
        net.stack_of(1).set_config_v4(address(1, 7));
        let absent = ([10, 0, 7, 2], PORT).into();
        assert!(client.handle.connect(absent).await.is_err());
        assert!(client.handle.unsent().backed_off > 0);
        let there = client.handle.connect(server.address).await;
        assert!(there.is_err(), "there is no way to it");
        net.stack_of(1).set_config_v4(address(1, 0));
        let (here, _there) = tokio::join!(join(&client, server.address), server.handle.accept());
        assert_eq!(here.remote(), server.address);
    });
}
