//! Secure connections between machines.

use rakwire::raknet::{Config, ConnectFailure, ConnectOptions, Delivery, RakNet, SecurePeer, Security};
use rakwire::secure::{
    SeededRandom, ServerIdentity, ServerTrust, StaticKey, TokenClaims, TokenKey, TokenVerifier,
};
use rakwire_embassy::raknet::{ConnectError, UsedTokenTable};

use crate::support::{Machine, Net, PORT, Wire, echo, round_trips, run};

fn server_key() -> StaticKey {
    StaticKey::from_bytes([0x5E; 32])
}

fn server(net: &mut Net) -> Machine<RakNet> {
    server_with(net, |_| ())
}

fn server_with(net: &mut Net, change: impl FnOnce(&mut ServerIdentity)) -> Machine<RakNet> {
    net.machine::<RakNet, 3, 192, 128, 8>(PORT, |config: &mut Config| {
        let mut identity = ServerIdentity::new(server_key());
        identity.requires_security = true;
        change(&mut identity);
        let mut security = Security::new([0xA1; 32]);
        security.server = Some(identity);
        config.security = Some(security);
        config.max_incoming = 3;
    })
}

fn client(net: &mut Net) -> Machine<RakNet> {
    net.machine::<RakNet, 3, 192, 128, 8>(0, |config: &mut Config| {
        let mut security = Security::new([0xB2; 32]);
        security.identity = Some(StaticKey::from_bytes([0xC1; 32]));
        config.security = Some(security);
    })
}

fn trusting(key: &StaticKey) -> ConnectOptions<'static> {
    ConnectOptions { trust: Some(ServerTrust::Key(key.public())), ..ConnectOptions::default() }
}

#[test]
fn messages_arrive_over_a_secure_connection_and_both_peers_are_identified() {
    run(async {
        let mut net = Net::new(Wire::losing(30));
        let (client, server) = (client(&mut net), server(&mut net));
        let options = ConnectOptions { identity_data: b"hall 3", ..trusting(&server_key()) };
        let (here, there) =
            tokio::join!(client.handle.connect_with(server.address, &options), server.handle.accept());
        let here = here.expect("a connection");
        let Some(SecurePeer::Server(known)) = here.secure_peer() else { panic!("the server is not secure") };
        assert_eq!(known.key, server_key().public());
        let Some(SecurePeer::Client(Some(shown))) = there.secure_peer() else {
            panic!("the client has no identity")
        };
        assert_eq!(shown.key, StaticKey::from_bytes([0xC1; 32]).public());
        assert_eq!(shown.data(), b"hall 3");
        tokio::task::spawn_local(echo(there));
        round_trips(&here, 50, 400).await;
        here.send(&[0xFE; 2_000], Delivery::RELIABLE_ORDERED).await.expect("an open connection");
        assert_eq!(here.recv().await.expect("an answer").len(), 2_000);
        here.disconnect().await;
    });
}

#[test]
fn a_server_with_a_different_key_is_rejected() {
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

/// The board does not know the time when it starts. Once the time is set, each token opens one connection.
#[test]
fn a_token_opens_one_connection_once_the_time_is_set() {
    const TODAY: u64 = 1_800_000_000;
    static USED: UsedTokenTable<4> = UsedTokenTable::new();
    let token_key = || TokenKey::from_bytes([0x7A; 32]);
    let servers = [server_key().public().hash()];
    let client_key = StaticKey::from_bytes([0xC1; 32]).public();
    let claims = TokenClaims {
        user_id: 42,
        expires: TODAY + 60,
        client: client_key,
        servers: &servers,
        user_data: b"level 3",
    };
    let token = claims.seal(&token_key(), &mut SeededRandom::new([3; 32])).expect("enough space");
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let client = client(&mut net);
        let server = server_with(&mut net, |identity| {
            identity.tokens = Some(TokenVerifier::new([token_key()].into_iter().collect(), &USED));
        });
        let options = ConnectOptions { password: &token, ..trusting(&server_key()) };
        let invalid = ConnectError::Failed(ConnectFailure::InvalidPassword);
        let early = client.handle.connect_with(server.address, &options).await;
        assert_eq!(early.expect_err("the server's time is not set"), invalid);

        server.handle.set_unix_time(TODAY);
        let (opened, accepted) =
            tokio::join!(client.handle.connect_with(server.address, &options), server.handle.accept());
        let opened = opened.expect("a connection");
        let shown = accepted.accepted_token().expect("a token");
        assert_eq!((shown.user_id, shown.user_data()), (42, &b"level 3"[..]));
        assert_eq!(opened.accepted_token(), None, "only servers return token contents");
        opened.disconnect().await;
        assert_eq!(accepted.recv().await.map(|message| message.len()), None, "the client has gone");
        let again = client.handle.connect_with(server.address, &options).await;
        assert_eq!(again.expect_err("the token was used"), invalid);
    });
}
