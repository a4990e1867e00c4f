//! Hostile senders and clients do not affect the players of a running server.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use rakwire::codec::rabbit::to_vec;
use rakwire::raknet::{Delivery, Guid};
use rakwire::wire::offline::{Offline, PingScope};
use rakwire::wire::{Wire, Writer};
use rakwire_native::{ConnectOptions, Endpoint, game_protocol};
use snowfight::client::Input;
use snowfight::message::{Direction, EntityId, EntityKind, PlayerId, Point, Scope};
use snowfight::world::HEALTH;
use snowfight_server::{Player, Protocol};

use crate::support::{LIMIT, ONE_AT_A_TIME, Server, both, gather, object, repeat, until};

const FORGED: u32 = 10_000;
/// The number of forged datagrams between two frames of the player.
const BURST: u32 = 200;
const END: [u8; 4] = [0x0C, 0, 0, 0];
/// A request to join, packed.
const INIT: [u8; 2] = [0x00, 0x08];

fn written(packet: &Offline<'_>) -> Vec<u8> {
    let mut buffer = [0; 1_024];
    let mut writer = Writer::new(&mut buffer);
    packet.write(&mut writer).expect("enough space");
    writer.finish().to_vec()
}

/// Sends a datagram from a loopback address that depends on `number`; each of ten thousand addresses is used once.
fn from_nowhere(number: u32, to: SocketAddr, datagram: &[u8]) {
    let [_, a, b, c] = (number + 0x0001_0000).to_be_bytes();
    let socket = UdpSocket::bind((Ipv4Addr::new(127, a, b, c), 0)).expect("all of 127/8 is loopback");
    // If the send buffer is full, the datagram is lost.
    let _ = socket.send_to(datagram, to);
}

/// Attacks between the frames of a player that walks back and forth, and checks that the server still responds to the
/// player.
async fn play_during(mut player: Player, mut attack: impl FnMut(u32)) {
    let turns = FORGED / BURST;
    let mut last = player.me().expect("the player has joined").position;
    let (mut turn, mut moved) = (0, 0);
    // On a busy machine the player may need more frames to move.
    repeat("the player moves in a tenth of the turns", async || {
        (0..BURST).for_each(|number| attack(turn * BURST + number));
        let movement = if turn / 10 % 2 == 0 { Direction::EAST } else { Direction::WEST };
        let before = player.snapshots();
        let input = Input { movement, ..Input::default() };
        play(&mut player, input, |player| player.snapshots() > before).await;
        let now = player.me().expect("the player is alive").position;
        moved += u32::from(now != last);
        last = now;
        turn += 1;
        turn >= turns && moved > turns / 10
    })
    .await;
    let input = Input { movement: Direction::NORTH, ..Input::default() };
    play(&mut player, input, |player| player.me().is_some_and(|me| me.movement == Direction::NORTH)).await;
}

/// Sends an input every frame until a condition holds.
async fn play(player: &mut Player, input: Input, done: impl Fn(&Player) -> bool) {
    repeat("the server answers an input", async || {
        assert_eq!(player.frame(input).await.expect("the server keeps running"), None);
        done(player)
    })
    .await;
}

#[tokio::test]
async fn forged_half_open_handshakes_do_not_affect_players() {
    let _alone = ONE_AT_A_TIME.lock().await;
    for protocol in [Protocol::GameProtocol, Protocol::RakNet] {
        let server = Server::start(0).await;
        let player = server.join(protocol, Scope::Whole).await;
        let request = written(&Offline::Request1 { protocol: 6, mtu: 576 });
        play_during(player, |number| {
            from_nowhere(number, server.game, &number.to_be_bytes());
            from_nowhere(number, server.raknet, &request);
        })
        .await;
        // Another player can still join.
        drop(server.join(protocol, Scope::Whole).await);
    }
}

#[tokio::test]
async fn flood_of_end_datagrams_from_forged_addresses_does_not_affect_players() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let server = Server::start(0).await;
    let player = server.join(Protocol::GameProtocol, Scope::Whole).await;
    play_during(player, |number| from_nowhere(number, server.game, &END)).await;
}

#[tokio::test]
async fn flood_of_pings_and_malformed_datagrams_does_not_affect_players() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let server = Server::start(0).await;
    let player = server.join(Protocol::RakNet, Scope::Changes).await;
    let ping = written(&Offline::Ping { scope: PingScope::Any, time: 1, guid: Some(Guid(1)) });
    play_during(player, |number| {
        from_nowhere(number, server.raknet, &ping);
        from_nowhere(number, server.raknet, &[(number % 256) as u8; 600]);
        from_nowhere(number, server.game, &[(number % 256) as u8; 600]);
    })
    .await;
}

/// Clients that send malformed messages after joining lose only their own connections.
#[tokio::test]
async fn malformed_messages_close_only_their_own_connection() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let server = Server::start(0).await;
    let player = server.join(Protocol::GameProtocol, Scope::Whole).await;
    let attack = tokio::spawn(send_nonsense(server.game, server.raknet));
    play_during(player, |_| {}).await;
    attack.await.expect("the server closes each connection");
}

/// Connects over the Game Protocol, with a long timeout for busy machines.
async fn connected(server: SocketAddr) -> game_protocol::Connection {
    let options = game_protocol::Options::client().expect("random bytes");
    let attempts = game_protocol::Attempts { max: 30, timeout: LIMIT / 30 };
    game_protocol::connect_with(server, options, attempts).await.expect("a free slot")
}

/// Returns the same timeout for RakNet connections.
fn patient() -> ConnectOptions<'static> {
    ConnectOptions { connect_timeout: Some(LIMIT), ..ConnectOptions::default() }
}

async fn send_nonsense(game_server: SocketAddr, raknet_server: SocketAddr) {
    let endpoint = Endpoint::bind("127.0.0.1:0", rakwire_native::Options::client().expect("random bytes"));
    let endpoint = endpoint.await.expect("a free port");
    for nonsense in [&b"\x07"[..], b"\xff\xff\xff\xff\xff", b"\x00", &[0x55; 2_000]] {
        let evil = connected(game_server).await;
        evil.send(nonsense, game_protocol::Reliability::Reliable).await.expect("the message is queued");
        while evil.recv().await.is_some() {}
        let evil = endpoint.connect_with(raknet_server, &patient()).await.expect("a free slot");
        let message = [&[0x86], nonsense].concat();
        evil.send(&message, Delivery::RELIABLE_ORDERED).await.expect("the message is queued");
        while evil.recv().await.is_some() {}
    }
}

/// A server message with a length of 2^32-1, sent to a server. No client message contains a length, so the server
/// reads the bytes as an action or as malformed.
#[tokio::test]
async fn excessive_counts_do_not_affect_players() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let server = Server::start(0).await;
    let player = server.join(Protocol::RakNet, Scope::Whole).await;
    let attack = tokio::spawn(send_counts(server.game, server.raknet));
    play_during(player, |_| {}).await;
    attack.await.expect("the attack completes");
}

async fn send_counts(game_server: SocketAddr, raknet_server: SocketAddr) {
    let snapshot = to_vec(&(false, 7_u32, false, u32::MAX)).expect("a packed message");
    let connect = to_vec(&(true, 0_u32, (false, true), 1_u32, u32::MAX)).expect("a packed message");
    let text = to_vec(&(true, 0_u32, (false, false), u32::MAX)).expect("a packed message");
    let filler = [0xFF; 2_000];
    for bytes in [snapshot, connect, text].map(|bytes| [&bytes[..], &filler].concat()) {
        let evil = connected(game_server).await;
        evil.send(&INIT, game_protocol::Reliability::Reliable).await.expect("the message is queued");
        let client = rakwire_native::Options::client().expect("random bytes");
        let endpoint = Endpoint::bind("127.0.0.1:0", client).await.expect("a free port");
        let other = endpoint.connect_with(raknet_server, &patient()).await.expect("a free slot");
        other
            .send(&[&[0x86], &INIT[..]].concat(), Delivery::RELIABLE_ORDERED)
            .await
            .expect("the message is queued");
        for _ in 0..100 {
            // The connection may have been closed already.
            let _ = evil.send(&bytes, game_protocol::Reliability::Reliable).await;
            let _ = other.send(&[&[0x86], &bytes[..]].concat(), Delivery::RELIABLE_ORDERED).await;
        }
    }
}

/// Throws at invalid targets and breaks of unknown entities affect no player.
///
/// A player throws an object at invalid positions, at the object itself and at the player's own feet, and breaks
/// entities that do not exist. Both players stay in the game with full health.
#[tokio::test]
async fn throws_at_invalid_targets_harm_no_player() {
    let _alone = ONE_AT_A_TIME.lock().await;
    for protocol in [Protocol::GameProtocol, Protocol::RakNet] {
        let server = Server::start(0).await;
        let mut good = server.join(Protocol::RakNet, Scope::Whole).await;
        let mut evil = server.join(protocol, Scope::Whole).await;
        let held = gather(&mut evil, &mut good).await;
        let hands = object(&evil, held).expect("the object exists").position;
        let nowhere = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        let places = nowhere.into_iter().flat_map(|number| {
            [Point::new(number, 0.0, 0.0), Point::new(0.0, 0.0, number), Point::new(number, number, number)]
        });
        for (place, breaking) in places.chain([hands]).zip([0, 301, 302, u32::MAX].into_iter().cycle()) {
            let input = Input { throw: Some(place), breaking: Some(EntityId(breaking)), ..Input::default() };
            for _ in 0..3 {
                assert_eq!(both(&mut evil, input, &mut good, Input::default()).await, (None, None));
            }
        }
        for _ in 0..30 {
            both(&mut evil, Input::default(), &mut good, Input::default()).await;
        }
        assert_eq!(evil.me().and_then(|me| me.holding), Some(held), "the client still holds the object");
        let feet = evil.me().expect("the player is alive").position;
        let at_itself = |_: &Player| Input { throw: Some(feet), ..Input::default() };
        until(&mut evil, &mut good, at_itself, |player| object(player, held).is_none()).await;
        for _ in 0..30 {
            both(&mut evil, Input::default(), &mut good, Input::default()).await;
        }
        assert_sound(&good, &[evil.id(), good.id()]);
        play_during(good, |_| {}).await;
    }
}

/// Checks that all positions are finite, and that the players `whole` have full health.
fn assert_sound(player: &Player, whole: &[PlayerId]) {
    for entity in player.view().entities() {
        let position = match entity.kind {
            EntityKind::Object(object) => object.position,
            EntityKind::Player(body) => body.position,
            EntityKind::Dead => continue,
        };
        assert!(position.length() < 100.0, "{entity:?}");
    }
    for id in whole {
        assert_eq!(player.view().player(*id).map(|(_, body)| body.health), Some(HEALTH));
    }
}

/// Clients complete the handshake, join, and close immediately with superfluous END datagrams, 200 times.
#[tokio::test]
async fn clients_that_join_and_leave_repeatedly_do_not_affect_players() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let server = Server::start(0).await;
    let player = server.join(Protocol::GameProtocol, Scope::Whole).await;
    let address = server.game;
    let flood = tokio::spawn(async move {
        for number in 0..200 {
            join_and_end(number, address).await;
        }
    });
    play_during(player, |_| {}).await;
    flood.await.expect("the flood completes");
    assert!(
        server.join(Protocol::GameProtocol, Scope::Whole).await.me().is_some(),
        "the next client must be able to join"
    );
}

/// Returns a socket that the server has challenged, and the answer to the challenge (the seasoning).
async fn challenged(number: u8, server: SocketAddr) -> (tokio::net::UdpSocket, [u8; 4]) {
    // Each client has its own network, so that the limits per network do not apply.
    let here = Ipv4Addr::new(127, 77, number, 1);
    let socket = tokio::net::UdpSocket::bind((here, 0)).await.expect("all of 127/8 is loopback");
    let salt = 0x4000_0000 | u32::from(number);
    let ask = async {
        let mut pepper = [0; 4];
        loop {
            let _ = socket.send_to(&salt.to_be_bytes(), server).await;
            let reply = tokio::time::timeout(Duration::from_secs(1), socket.recv_from(&mut pepper)).await;
            if reply.is_ok_and(|reply| reply.is_ok()) {
                return pepper;
            }
        }
    };
    let pepper = tokio::time::timeout(LIMIT, ask).await.expect("the server challenges");
    let seasoning = salt ^ u32::from_be_bytes(pepper);
    (socket, seasoning.to_be_bytes())
}

async fn join_and_end(number: u8, server: SocketAddr) {
    let (socket, seasoning) = challenged(number, server).await;
    let init = [&[0x05, 0, 0, 0], &INIT[..]].concat();
    for datagram in [&seasoning[..], &init].into_iter().chain([&END[..]; 50]) {
        let _ = socket.send_to(datagram, server).await;
    }
}

/// A client requests more responses than can be queued, and acknowledges none. The server closes a connection on
/// which it cannot queue a reliable message.
#[tokio::test]
async fn client_that_acknowledges_nothing_is_closed() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let server = Server::start(0).await;
    let player = server.join(Protocol::GameProtocol, Scope::Whole).await;
    let flood = tokio::spawn(ask_and_acknowledge_nothing(server.game));
    play_during(player, |_| {}).await;
    assert!(flood.await.expect("the flood completes"), "the client is still connected");
}

/// Floods the server without acknowledgements; returns true if the server has closed the connection.
async fn ask_and_acknowledge_nothing(server: SocketAddr) -> bool {
    let (socket, seasoning) = challenged(1, server).await;
    let _ = socket.send_to(&seasoning, server).await;
    let mut buffer = [0; 2_048];
    for sequence in 0..8_000_u16 {
        let [high, low] = sequence.to_be_bytes();
        let _ = socket.send_to(&[0x05, 0, high, low, INIT[0], INIT[1]], server).await;
        while let Ok(length) = socket.try_recv(&mut buffer) {
            if buffer[..length] == END {
                return true;
            }
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    false
}

/// A client that floods the server with actions slows down only itself.
#[tokio::test]
async fn action_flood_slows_only_its_sender() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let server = Server::start(0).await;
    let player = server.join(Protocol::RakNet, Scope::Whole).await;
    let evil = connected(server.game).await;
    evil.send(&INIT, game_protocol::Reliability::Reliable).await.expect("the message is queued");
    let walk = [0x4D, 0x00];
    play_during(player, |_| {
        // A full queue delays only the flooding client.
        let _ = evil.try_send(&walk, game_protocol::Reliability::Unreliable);
    })
    .await;
}
