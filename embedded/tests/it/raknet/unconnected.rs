//! Messages from and to machines without a connection.

use embassy_time::Duration;
use rakwire::raknet::{Config, OutOfBand, OutOfBandError, PingScope, RakNet};
use rakwire_embassy::raknet::UnconnectedKind;

use crate::support::{Machine, Net, PORT, Wire, give_up, run};

const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Creates two machines that accept messages without a connection.
fn accepting() -> (Net, Machine<RakNet>, Machine<RakNet>) {
    let mut net = Net::new(Wire::losing(0));
    let accept = |config: &mut Config| config.out_of_band = OutOfBand::Accept;
    let here = net.machine::<RakNet, 1, 48, 128, 8>(0, accept);
    let there = net.machine::<RakNet, 1, 48, 128, 8>(PORT, accept);
    (net, here, there)
}

#[test]
fn unconnected_peers_exchange_messages() {
    run(async {
        let (_net, here, there) = accepting();
        assert_eq!(here.handle.send_out_of_band(there.address, &[]).await, Err(OutOfBandError::BadLength));
        assert_eq!(here.handle.advertise(there.address, &[0; 399]).await, Err(OutOfBandError::BadLength));
        // The first call of `recv_unconnected` makes the machine queue messages.
        assert!(give_up(there.handle.recv_unconnected()));
        for number in 0..8 {
            assert!(!give_up(here.handle.send_out_of_band(there.address, &[number; 100])));
        }
        assert!(
            give_up(here.handle.send_out_of_band(there.address, &[8; 100])),
            "eight messages are queued already"
        );
        let mut buffer = [0; 100];
        for number in 0..8 {
            let message = there.handle.recv_unconnected().await;
            assert_eq!((message.kind(), message.guid()), (UnconnectedKind::OutOfBand, here.handle.guid()));
            assert_eq!(message.copy_to(&mut buffer), Some(&[number; 100][..]));
            assert_eq!(message.from().ip(), here.address.ip());
        }
        here.handle.advertise(there.address, b"our game").await.expect("an advertisement");
        let advertisement = there.handle.recv_unconnected().await;
        assert_eq!(advertisement.kind(), UnconnectedKind::Advertisement);
        assert_eq!(advertisement.copy_to(&mut buffer), Some(&b"our game"[..]));
    });
}

#[test]
fn unread_messages_do_not_delay_pongs() {
    run(async {
        let (mut net, here, there) = accepting();
        let server = net.server::<RakNet, 1, 48, 128, 8>();
        assert!(give_up(there.handle.recv_unconnected()));
        for number in 0..3 {
            here.handle.send_out_of_band(there.address, &[number]).await.expect("a message");
        }
        for _ in 0..3 {
            let pong = there.handle.ping(server.address, TIME_LIMIT).await.expect("a pong");
            assert_eq!(pong.from(), server.address);
        }
        for number in 0..3 {
            assert_eq!(there.handle.recv_unconnected().await.copy_to(&mut [0; 9]), Some(&[number][..]));
        }
    });
}

#[test]
fn every_server_that_answers_is_found() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let client = net.client::<RakNet, 1, 48, 128, 8>();
        let servers = [net.server::<RakNet, 1, 48, 128, 8>(), net.server::<RakNet, 1, 48, 128, 8>()];
        let broadcast = (std::net::Ipv4Addr::BROADCAST, PORT).into();
        let mut found = Vec::new();
        // On a busy machine, a pong may arrive after the search.
        while found.len() < servers.len() {
            found.clear();
            let time = Duration::from_millis(500);
            let searched =
                client.handle.discover_all(broadcast, PingScope::Any, time, |pong| found.push(pong.from()));
            assert_eq!(searched.await, Ok(()));
        }
        found.sort_unstable();
        assert_eq!(found, servers.map(|server| server.address));
    });
}
