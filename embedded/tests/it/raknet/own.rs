//! Features that only RakNet has: ordered messages, refusals, receipts, pongs.

use rakwire::raknet::{Delivery, Outcome, RakNet, Reliability, SetError};
use rakwire_embassy::raknet::{ConnectError, Event, PingError};

use crate::support::{Net, PORT, Wire, bytes, connected, echo, message, pair, run};

#[test]
fn a_read_message_frees_memory_for_the_answer() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let client = net.client::<RakNet, 1, 48, 64, 4>();
        let server = net.server::<RakNet, 1, 48, 64, 4>();
        tokio::task::spawn_local(async move { echo(server.handle.accept().await).await });
        let connection = client.handle.connect(server.address).await.expect("a connection");
        for number in 0..5 {
            // More than a third of all memory in each direction.
            let sent = message(number, 19 * 64);
            connection.send(&sent, Delivery::RELIABLE).await.expect("an open connection");
            assert_eq!(bytes(&connection.recv().await.expect("an answer")), sent);
        }
    });
}

#[test]
fn a_full_server_refuses_connections() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let (first, host) = (net.client::<RakNet, 1, 24, 128, 4>(), net.server::<RakNet, 1, 24, 128, 4>());
        let _connection = first.handle.connect(host.address).await.expect("a connection");
        let late = net.client::<RakNet, 1, 24, 128, 4>();
        let refused = late.handle.connect(host.address).await.expect_err("a full host");
        assert!(matches!(refused, ConnectError::Failed(_)), "{refused}");
        assert_eq!(refused.to_string(), "the server is full");
    });
}

#[test]
fn the_guid_of_the_remote_peer_is_kept_after_a_disconnect() {
    run(async {
        let (_client, _server, here, there) = connected::<RakNet>(Wire::losing(0)).await;
        assert_ne!(here.identity(), there.identity());
        let (server, client) = (here.identity(), there.identity());
        here.disconnect().await;
        assert_eq!((here.identity(), there.identity()), (server, client));
    });
}

#[test]
fn both_peers_receive_the_internal_addresses_of_the_remote_peer() {
    run(async {
        let (client, server) = pair::<RakNet>(Wire::losing(0));
        let own = [([10, 0, 0, 7], PORT).into()];
        assert_eq!(client.handle.set_internal_addresses(&own), Ok(()));
        let accepting = server.handle.accept();
        let connecting = client.handle.connect(server.address);
        let (there, here) = tokio::join!(accepting, connecting);
        assert_eq!(there.internal_addresses()[..], own);
        assert!(here.expect("a connection").internal_addresses().is_empty());
    });
}

#[test]
fn receipts_report_the_outcome_of_messages() {
    run(async {
        let (client, server) = pair::<RakNet>(Wire::losing(0));
        tokio::task::spawn_local(async move { echo(server.handle.accept().await).await });
        let connection = client.handle.connect(server.address).await.expect("a connection");
        let delivery = Delivery::new(Reliability::ReliableOrderedWithReceipt);
        let sent =
            connection.send(&message(1, 9), delivery).await.expect("an open connection").expect("a receipt");
        let (mut acknowledged, mut answered) = (0, 0);
        while acknowledged + answered < 2 {
            match connection.next().await.expect("an open connection") {
                Event::Receipt { receipt, outcome } => {
                    assert_eq!((receipt, outcome), (sent, Outcome::Acknowledged));
                    acknowledged += 1;
                }
                Event::Message(echo) => {
                    assert_eq!(bytes(&echo), message(1, 9));
                    answered += 1;
                }
                event @ (Event::Progress(_) | _) => panic!("{event:?}"),
            }
        }
        assert_eq!((acknowledged, answered), (1, 1));
    });
}

#[test]
fn servers_are_found_by_their_pongs() {
    run(async {
        let (client, server) = pair::<RakNet>(Wire::losing(0));
        assert_eq!(server.handle.set_advertisement(b"our game"), Ok(()));
        assert_eq!(server.handle.set_advertisement(&[0; 400]), Err(SetError::AdvertisementTooLong));
        let time_limit = embassy_time::Duration::from_secs(60);
        let mut buffer = [0; 64];
        let pong = client.handle.ping(server.address, time_limit).await.expect("a pong");
        assert_eq!((pong.from(), pong.copy_to(&mut buffer)), (server.address, Some(&b"our game"[..])));
        drop(pong);
        let broadcast = (std::net::Ipv4Addr::BROADCAST, PORT).into();
        let pong = client.handle.discover(broadcast, time_limit).await.expect("a pong");
        assert_eq!(pong.from(), server.address);
        drop(pong);
        let absent = ([10, 0, 0, 9], PORT).into();
        let error = client.handle.ping(absent, embassy_time::Duration::from_millis(50)).await;
        assert!(matches!(error, Err(PingError::NoAnswer)));
    });
}
