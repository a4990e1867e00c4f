//! Admission of clients, and the server's information about them.

use std::time::Duration;

use embassy_net::udp::{PacketMetadata, UdpSocket};
use rakwire::raknet::{
    AddressPattern, BanList, ConnectFailure, ConnectOptions, CookiePolicy, Delivery, Guid, RakNet, Refusal,
    SetError,
};
use rakwire::wire::offline::{ClientSecurity, Offline};
use rakwire::wire::{MAX_MTU, Wire as _, Writer};
use rakwire_embassy::raknet::{BanError, ConnectError};

use crate::support::{LOST, Net, PORT, Wire, connected, end, join, message, pair, run, until};

#[test]
fn a_password_admits_clients_that_send_it() {
    run(async {
        let (client, server) = pair::<RakNet>(Wire::losing(0));
        assert_eq!(server.handle.set_password(&[7; 256]), Err(SetError::PasswordTooLong));
        assert_eq!(server.handle.set_password(b"friends"), Ok(()));
        let failed = client.handle.connect(server.address).await.expect_err("no password");
        assert_eq!(failed, ConnectError::Failed(ConnectFailure::InvalidPassword));
        let options = ConnectOptions { password: b"friends", ..Default::default() };
        // The server is still closing the previous attempt.
        while client.handle.connect_with(server.address, &options).await.is_err() {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn bans_end_when_removed_or_expired() {
    run(async {
        let (client, server) = pair::<RakNet>(Wire::losing(0));
        let pattern: AddressPattern = "10.0.0.*".parse().expect("a pattern");
        server.handle.set_ban_list(Box::leak(Box::new(BanList::new())));
        assert_eq!(server.handle.ban(pattern, Some(Duration::ZERO)), Ok(()));
        drop(tokio::join!(join(&client, server.address), server.handle.accept()));

        assert_eq!(server.handle.ban(pattern, Some(Duration::from_secs(3_600))), Ok(()));
        let mut bans = Vec::new();
        server.handle.bans(|pattern, left| bans.push((pattern, left)));
        assert!(
            matches!(bans[..], [(banned, Some(left))] if banned == pattern && left > Duration::from_secs(3_000))
        );
        let refused = loop {
            let error = client.handle.connect(server.address).await.expect_err("a ban");
            if !matches!(error, ConnectError::NotStarted(_)) {
                break error;
            }
            // The server is still closing the previous connection.
            tokio::task::yield_now().await;
        };
        assert_eq!(refused, ConnectError::Failed(ConnectFailure::Refused(Refusal::Banned)));
        for number in 1..64_u8 {
            let other = format!("192.0.2.{number}").parse().expect("a pattern");
            assert_eq!(server.handle.ban(other, None), Ok(()));
        }
        assert_eq!(server.handle.ban("192.0.2.64".parse().expect("a pattern"), None), Err(BanError::Full));
        assert!(server.handle.unban(pattern));
        tokio::join!(join(&client, server.address), server.handle.accept());
    });
}

#[test]
fn a_connection_is_found_by_the_guid_of_the_remote_peer() {
    run(async {
        let (client, server, here, there) = connected::<RakNet>(Wire::losing(0)).await;
        assert_eq!((here.guid(), there.guid()), (server.handle.guid(), client.handle.guid()));
        assert_eq!((client.handle.connections(), server.handle.connections()), (1, 1));
        assert!(server.handle.connection_of(Guid(1)).is_none());
        let same = server.handle.connection_of(client.handle.guid()).expect("a connected client");
        assert_eq!((same.id(), same.remote()), (there.id(), there.remote()));
        // `there` is a separate reference.
        drop(there);
        here.send(&message(1, 9), Delivery::RELIABLE).await.expect("an open connection");
        assert!(same.recv().await.is_some());
        here.disconnect().await;
        assert!(same.recv().await.is_none());
        assert!(server.handle.connection_of(client.handle.guid()).is_none());
    });
}

#[test]
fn a_connection_can_override_the_timeout() {
    run(async {
        let wire = Wire::losing(0);
        let (_client, _server, here, _there) = connected::<RakNet>(wire.clone()).await;
        wire.loss_percent.set(100);
        here.send(&message(1, 9), Delivery::RELIABLE).await.expect("an open connection");
        assert_eq!(here.set_timeout(Duration::from_millis(50)), Ok(()));
        // The timeout of the configuration is longer than the test may take.
        assert!(here.recv().await.is_none());
        assert_eq!(end(&here), LOST);
    });
}

#[test]
fn a_server_advises_on_cookies_after_a_client_returned_none() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let server = net.machine::<RakNet, 1, 48, 128, 4>(PORT, |config| {
            (config.max_incoming, config.cookies) = (1, CookiePolicy::Required);
        });
        let (sender, _) = net.machine_without_peer();
        let (mut receive, mut send) = ([0; 256], [0; 256]);
        let mut metadata = [[PacketMetadata::EMPTY; 4]; 2];
        let [received, sent] = &mut metadata;
        let mut socket = UdpSocket::new(sender, received, &mut receive, sent, &mut send);
        socket.bind(PORT).expect("a free port");
        let mut datagram = [0; 64];
        let mut writer = Writer::new(&mut datagram);
        let (security, guid) = (ClientSecurity::None, Guid(1));
        let request = Offline::Request2 { security, server: server.address, mtu: MAX_MTU, guid };
        request.write(&mut writer).expect("enough space");
        assert_eq!(server.handle.advice(), None);
        socket.send_to(writer.finish(), server.address).await.expect("a route to the server");
        until(|| server.handle.advice().is_some_and(|advice| advice.contains("cookie"))).await;
    });
}
