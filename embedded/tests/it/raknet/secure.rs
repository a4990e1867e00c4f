//! Secure connections between machines.

use rakwire::raknet::{Config, ConnectFailure, ConnectOptions, Delivery, RakNet, SecurePeer, Security};
use rakwire::secure::{ServerIdentity, ServerTrust, StaticKey};
use rakwire_embassy::raknet::ConnectError;

use crate::support::{Machine, Net, PORT, Wire, echo, round_trips, run};

fn server_key() -> StaticKey {
    StaticKey::from_bytes([0x5E; 32])
}

fn server(net: &mut Net) -> Machine<RakNet> {
    net.machine::<RakNet, 1, 64, 128, 8>(PORT, |config: &mut Config| {
        let mut identity = ServerIdentity::new(server_key());
        identity.requires_security = true;
        let mut security = Security::new([0xA1; 32]);
        security.server = Some(identity);
        config.security = Some(security);
        config.max_incoming = 1;
    })
}

fn client(net: &mut Net) -> Machine<RakNet> {
    net.machine::<RakNet, 1, 64, 128, 8>(0, |config: &mut Config| {
        let mut security = Security::new([0xB2; 32]);
        security.identity = Some(StaticKey::from_bytes([0xC1; 32]));
        config.security = Some(security);
    })
}

fn trusting(key: &StaticKey) -> ConnectOptions<'static> {
    ConnectOptions { trust: Some(ServerTrust::Key(key.public())), ..ConnectOptions::default() }
}

#[test]
fn messages_pass_sealed_and_each_machine_knows_the_other() {
    run(async {
        let mut net = Net::new(Wire::losing(30));
        let (client, server) = (client(&mut net), server(&mut net));
        let options = trusting(&server_key());
        let (here, there) =
            tokio::join!(client.handle.connect_with(server.address, &options), server.handle.accept());
        let here = here.expect("a connection");
        let Some(SecurePeer::Server(known)) = here.secure_peer() else { panic!("a plain server") };
        assert_eq!(known.key, server_key().public());
        let Some(SecurePeer::Client(Some(shown))) = there.secure_peer() else { panic!("an unknown client") };
        assert_eq!(shown.key, StaticKey::from_bytes([0xC1; 32]).public());
        tokio::task::spawn_local(echo(there));
        round_trips(&here, 50, 400).await;
        here.send(&[0xFE; 2_000], Delivery::RELIABLE_ORDERED).await.expect("an open end");
        assert_eq!(here.recv().await.expect("an answer").len(), 2_000);
        here.disconnect().await;
    });
}

#[test]
fn a_server_with_another_key_is_none() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let (client, server) = (client(&mut net), server(&mut net));
        let options = trusting(&StaticKey::from_bytes([0x0F; 32]));
        let refused = client.handle.connect_with(server.address, &options).await.expect_err("another key");
        assert_eq!(refused, ConnectError::Failed(ConnectFailure::PublicKeyMismatch));
        let plain = net.client::<RakNet, 1, 48, 128, 8>();
        let refused = plain.handle.connect(server.address).await.expect_err("a client without security");
        assert_eq!(refused, ConnectError::Failed(ConnectFailure::SecurityRequired));
    });
}
