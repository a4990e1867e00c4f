//! Tests how connections open and close.

use std::time::Duration;

use bevy::prelude::*;
use bevy_replicon::prelude::*;
use bevy_replicon::shared::backend::connected_client::NetworkIdMap;
use rakwire_bevy::rakwire_native::raknet::Refusal;
use rakwire_bevy::rakwire_native::secure::{ServerTrust, StaticKey};
use rakwire_bevy::rakwire_native::{ConnectFailure, DisconnectReason};
use rakwire_bevy::{
    ClientConnection, ClientSettings, ConnectError, DisconnectCause, RakwireClient, RakwireServer,
    ServerError, ServerSettings,
};

use crate::support::{Data, Game, Input, LOCAL, app, state};

fn server_state(game: &Game) -> ServerState {
    *game.server.world().resource::<State<ServerState>>().get()
}

#[test]
fn a_client_connects_and_disconnects() {
    let mut game = Game::new(1);
    assert_eq!(server_state(&game), ServerState::Running);
    let client = game.connected()[0];
    let connection =
        game.server.world().get::<ClientConnection>(client).expect("a client entity has a connection");
    assert!(connection.remote().ip().is_loopback());
    assert_eq!(game.server.world().resource::<NetworkIdMap>().len(), 1);

    game.clients[0].world_mut().resource_mut::<RakwireClient>().disconnect();
    game.until("the server has despawned the client", |game| game.connected().is_empty());
    assert_eq!(game.cause(0), Some(DisconnectCause::Ended(DisconnectReason::Local)));
    assert_eq!(state(&game.clients[0]), ClientState::Disconnected);
    assert!(game.server.world().get_entity(client).is_err(), "the entity of the client must be despawned");
    game.until("the server has closed the connection", |game| {
        game.server.world_mut().resource_mut::<RakwireServer>().connections() == 0
    });
}

#[test]
fn removing_the_client_resource_disconnects_the_client() {
    let mut game = Game::new(2);
    game.clients[0].world_mut().remove_resource::<RakwireClient>();
    game.until("the server has despawned the client", |game| game.connected().len() == 1);
    assert_eq!(state(&game.clients[0]), ClientState::Disconnected);
    assert_eq!(state(&game.clients[1]), ClientState::Connected);
}

#[test]
fn messages_sent_before_a_disconnect_request_arrive() {
    let mut game = Game::new(1);
    game.server.world_mut().spawn((Replicated, Data(vec![1])));
    game.tell_all(7);
    let client = game.connected()[0];
    game.server.world_mut().write_message(DisconnectRequest { client });
    game.until("the client is disconnected", |game| game.cause(0).is_some());
    game.until("replicon reports the disconnect", |game| {
        state(&game.clients[0]) == ClientState::Disconnected
    });
    assert_eq!(game.cause(0), Some(DisconnectCause::Ended(DisconnectReason::Remote)));
    assert_eq!(game.notes(0), [7]);
    assert_eq!(game.seen(0), [[1]]);
    assert!(game.connected().is_empty());
}

#[test]
fn messages_sent_before_a_client_disconnects_arrive() {
    let mut game = Game::new(1);
    game.clients[0].world_mut().write_message(Input(9));
    game.clients[0].update();
    game.clients[0].world_mut().resource_mut::<RakwireClient>().disconnect();
    game.until("the server has despawned the client", |game| game.connected().is_empty());
    assert_eq!(game.inputs(), [9]);
}

#[test]
fn despawning_a_client_disconnects_it() {
    let mut game = Game::new(2);
    let client = game.connected()[0];
    game.server.world_mut().despawn(client);
    game.until("one client is disconnected", |game| (0..2).any(|client| game.cause(client).is_some()));
    assert_eq!(game.connected().len(), 1);
}

#[test]
fn removing_the_server_resource_disconnects_its_clients() {
    let mut game = Game::new(2);
    game.tell_all(8);
    game.server.update();
    game.server.world_mut().remove_resource::<RakwireServer>();
    game.until("the clients are disconnected", |game| {
        game.clients.iter().all(|client| state(client) == ClientState::Disconnected)
    });
    assert_eq!(game.cause(1), Some(DisconnectCause::Ended(DisconnectReason::Remote)));
    assert_eq!((game.notes(0), game.notes(1)), (&[8][..], &[8][..]));
    assert_eq!(server_state(&game), ServerState::Stopped);
    assert!(game.connected().is_empty());
}

#[test]
fn disconnect_all_keeps_the_server_running() {
    let mut game = Game::new(2);
    game.tell_all(3);
    game.server.update();
    game.server.world_mut().resource_mut::<RakwireServer>().disconnect_all();
    game.until("the server has closed all connections", |game| {
        game.server.world_mut().resource_mut::<RakwireServer>().connections() == 0
    });
    game.until("both clients are disconnected", |game| game.cause(0).is_some() && game.cause(1).is_some());
    assert_eq!((game.notes(0), game.notes(1)), (&[3][..], &[3][..]));
    assert_eq!(server_state(&game), ServerState::Running);
    assert!(game.connected().is_empty());
}

#[test]
fn inserting_another_client_resource_reconnects() {
    let mut game = Game::new(1);
    game.server.world_mut().spawn((Replicated, Data(vec![5])));
    game.until("the component is replicated", |game| game.seen(0) == [[5]]);
    game.clients[0].world_mut().resource_mut::<RakwireClient>().disconnect();
    game.until("the server has despawned the client", |game| game.connected().is_empty());
    let again = game.connect(ClientSettings::new().expect("entropy"));
    game.clients[0].insert_resource(again);
    game.until("the client is connected again", Game::all_connected);
    game.tell_all(1);
    game.until("the client receives a note", |game| game.notes(0) == [1]);
}

#[test]
fn replicon_sees_a_disconnect_when_the_client_resource_is_replaced() {
    let mut game = Game::new(1);
    let before = game.connected();
    let again = game.connect(ClientSettings::new().expect("entropy"));
    game.clients[0].insert_resource(again);
    game.clients[0].update();
    assert_eq!(state(&game.clients[0]), ClientState::Disconnected);
    game.until("the client is connected again", |game| game.all_connected() && game.connected() != before);
}

#[test]
fn a_replaced_server_starts_without_clients() {
    let mut game = Game::new(1);
    let settings = ServerSettings::new(8).expect("entropy");
    game.server.insert_resource(RakwireServer::bind(LOCAL, settings).expect("a free port"));
    game.server.update();
    assert_eq!(server_state(&game), ServerState::Stopped);
    assert!(game.connected().is_empty());
    game.until("the server runs", |game| server_state(game) == ServerState::Running);
    let again = game.connect(ClientSettings::new().expect("entropy"));
    game.clients[0].insert_resource(again);
    game.until("the client is connected again", Game::all_connected);
}

#[test]
fn a_client_refused_by_a_full_server_gets_the_reason() {
    let mut game = Game::with(ServerSettings::new(1).expect("entropy"));
    game.join(ClientSettings::new().expect("entropy"));
    game.until("the first client is connected", Game::all_connected);
    game.join(ClientSettings::new().expect("entropy"));
    game.until("the second client is refused", |game| game.cause(1).is_some());
    let full = ConnectFailure::Refused(Refusal::NoFreeIncomingConnections);
    assert_eq!(game.cause(1), Some(DisconnectCause::Failed(full)));
    assert_eq!(game.cause(1).map(|cause| cause.to_string()).as_deref(), Some("the server is full"));
    assert_eq!(state(&game.clients[0]), ClientState::Connected);
}

#[test]
fn only_a_client_with_the_right_password_connects() {
    let mut settings = ServerSettings::new(8).expect("entropy");
    settings.password = b"snow".to_vec();
    let mut game = Game::with(settings);
    for password in [&b"rain"[..], b"snow"] {
        let mut settings = ClientSettings::new().expect("entropy");
        settings.password = password.to_vec();
        game.join(settings);
    }
    game.until("the client with the wrong password is refused", |game| game.cause(0).is_some());
    assert_eq!(game.cause(0), Some(DisconnectCause::Failed(ConnectFailure::InvalidPassword)));
    game.until("the client with the right password is connected", |game| {
        state(&game.clients[1]) == ClientState::Connected
    });
}

#[test]
fn a_secure_server_accepts_only_clients_that_trust_its_key() {
    let key = StaticKey::from_bytes([7; 32]);
    let public = key.public();
    let mut settings = ServerSettings::new(8).expect("entropy");
    settings.require_security(key).expect("entropy");
    let mut game = Game::with(settings);
    let other = StaticKey::from_bytes([8; 32]).public();
    for trust in [None, Some(ServerTrust::Key(other)), Some(ServerTrust::Key(public))] {
        let mut settings = ClientSettings::new().expect("entropy");
        settings.trust = trust;
        game.join(settings);
    }
    game.until("the first two clients are refused", |game| {
        game.cause(0).is_some() && game.cause(1).is_some()
    });
    assert_eq!(game.cause(0), Some(DisconnectCause::Failed(ConnectFailure::SecurityRequired)));
    assert_eq!(game.cause(1), Some(DisconnectCause::Failed(ConnectFailure::PublicKeyMismatch)));
    game.until("the third client is connected", |game| state(&game.clients[2]) == ClientState::Connected);
    game.tell_all(4);
    game.until("the client receives a note", |game| game.notes(2) == [4]);
}

#[test]
fn connecting_to_an_unresponsive_server_fails_with_no_answer() {
    let silent = std::net::UdpSocket::bind(LOCAL).expect("a free port");
    let mut settings = ClientSettings::new().expect("entropy");
    settings.connect_timeout = Some(Duration::from_secs(3));
    let mut game = Game::with(ServerSettings::new(1).expect("entropy"));
    let mut client = app();
    let to = silent.local_addr().expect("a bound socket");
    client.insert_resource(RakwireClient::connect(to, settings).expect("an address"));
    game.clients.push(client);
    game.until("the client is connecting", |game| state(&game.clients[0]) == ClientState::Connecting);
    game.until("the attempt fails", |game| game.cause(0).is_some());
    assert_eq!(game.cause(0), Some(DisconnectCause::Failed(ConnectFailure::NoAnswer)));
    game.until("replicon reports the disconnect", |game| {
        state(&game.clients[0]) == ClientState::Disconnected
    });
}

/// A name such as "localhost" may resolve to an IPv6 address first, although the server listens only at 127.0.0.1.
#[test]
fn a_server_that_answers_only_at_a_later_address_is_reached() {
    let silent = std::net::UdpSocket::bind(LOCAL).expect("a free port");
    let silent = silent.local_addr().expect("a bound socket");
    let mut game = Game::with(ServerSettings::new(1).expect("entropy"));
    let server = game.server.world().resource::<RakwireServer>().local_addr();
    let other_family = (std::net::Ipv6Addr::LOCALHOST, server.port()).into();
    let mut settings = ClientSettings::new().expect("entropy");
    settings.connect_timeout = Some(Duration::from_secs(1));
    let mut client = app();
    let to = [other_family, silent, server];
    client.insert_resource(RakwireClient::connect(&to[..], settings).expect("an address"));
    game.clients.push(client);
    game.until("the attempt ends", |game| game.cause(0).is_some() || game.all_connected());
    assert_eq!(game.cause(0), None);
    game.clients[0].world_mut().write_message(Input(9));
    game.until("the server receives an input", |game| game.inputs() == [9]);
}

#[test]
fn a_refusal_ends_the_attempt_without_trying_later_addresses() {
    let mut settings = ServerSettings::new(1).expect("entropy");
    settings.password = b"snow".to_vec();
    let mut game = Game::with(settings);
    let open = Game::with(ServerSettings::new(1).expect("entropy"));
    let to = [&game, &open].map(|game| game.server.world().resource::<RakwireServer>().local_addr());
    let mut client = app();
    let settings = ClientSettings::new().expect("entropy");
    client.insert_resource(RakwireClient::connect(&to[..], settings).expect("an address"));
    game.clients.push(client);
    game.until("the attempt fails", |game| game.cause(0).is_some());
    assert_eq!(game.cause(0), Some(DisconnectCause::Failed(ConnectFailure::InvalidPassword)));
}

#[test]
fn invalid_addresses_and_passwords_are_errors() {
    let new = || ClientSettings::new().expect("entropy");
    assert!(matches!(RakwireClient::connect("no port", new()), Err(ConnectError::Resolve(Some(_)))));
    assert!(matches!(RakwireClient::connect(&[][..], new()), Err(ConnectError::Resolve(None))));
    assert!(matches!(RakwireClient::connect("127.0.0.1:0", new()), Err(ConnectError::Attempt(_))));
    let mut settings = new();
    settings.password = vec![b'x'; 256];
    assert!(matches!(RakwireClient::connect("127.0.0.1:9", settings), Err(ConnectError::Attempt(_))));
    let mut settings = ServerSettings::new(8).expect("entropy");
    settings.password = vec![b'x'; 256];
    assert!(matches!(RakwireServer::bind(LOCAL, settings), Err(ServerError::Password(_))));
    let taken = std::net::UdpSocket::bind(LOCAL).expect("a free port").local_addr();
    let held = std::net::UdpSocket::bind(taken.expect("a bound socket")).expect("the same port");
    let address = held.local_addr().expect("a bound socket");
    let settings = ServerSettings::new(8).expect("entropy");
    assert!(matches!(RakwireServer::bind(address, settings), Err(ServerError::Bind(_))));
}
