//! Hostile strangers and clients of a running server: the game of the others goes on.

mod support;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use rakwire::raknet::{Delivery, Guid};
use rakwire::wire::offline::{Offline, PingScope};
use rakwire::wire::{Wire, Writer};
use rakwire_native::{Endpoint, game};
use snowfight::client::Input;
use snowfight::message::{Direction, Scope};
use snowfight_server::{Player, Protocol};
use support::Server;

const FORGED: u32 = 10_000;
/// Datagrams between two frames of the player.
const BURST: u32 = 200;
const END: [u8; 4] = [0x0C, 0, 0, 0];

fn written(packet: &Offline<'_>) -> Vec<u8> {
    let mut buffer = [0; 1_024];
    let mut writer = Writer::new(&mut buffer);
    packet.write(&mut writer).expect("it fits");
    writer.finish().to_vec()
}

/// Sends from one of ten thousand addresses, none of which is ever heard of again.
fn from_nowhere(number: u32, to: SocketAddr, datagram: &[u8]) {
    let [_, a, b, c] = (number + 0x0001_0000).to_be_bytes();
    let socket = UdpSocket::bind((Ipv4Addr::new(127, a, b, c), 0)).expect("all of 127/8 is loopback");
    // A socket that is full has lost it, as any network may.
    let _ = socket.send_to(datagram, to);
}

/// Does something between the frames of a player, who walks to and fro, and sees that the server still hears and tells.
async fn goes_on(mut player: Player, mut attack: impl FnMut(u32)) {
    let turns = FORGED / BURST;
    let mut last = player.me().expect("it has joined").position;
    let (mut moved, before) = (0, player.snapshots());
    for turn in 0..turns {
        (0..BURST).for_each(|number| attack(turn * BURST + number));
        let movement = if turn / 10 % 2 == 0 { Direction::EAST } else { Direction::WEST };
        let result = player.frame(Input { movement, ..Input::default() }).await;
        assert_eq!(result.expect("the server goes on"), None);
        let now = player.me().expect("it lives").position;
        moved += u32::from(now != last);
        last = now;
    }
    // What is late comes in the end.
    for _ in 0..120 {
        player
            .frame(Input { movement: Direction::NORTH, ..Input::default() })
            .await
            .expect("the server goes on");
    }
    assert!(moved > turns / 10, "it moved in {moved} of {turns} frames");
    assert!(player.snapshots() - before > u64::from(turns / 3), "{} snapshots", player.snapshots() - before);
    assert!(player.me().expect("it lives").position.y > last.y, "its last word was heard");
}

#[tokio::test]
async fn ten_thousand_half_open_handshakes_from_forged_addresses() {
    for protocol in [Protocol::Game, Protocol::RakNet] {
        let server = Server::start(0).await;
        let player = server.join(protocol, Scope::Whole).await;
        let request = written(&Offline::Request1 { protocol: 6, mtu: 576 });
        goes_on(player, |number| {
            from_nowhere(number, server.game, &number.to_be_bytes());
            from_nowhere(number, server.raknet, &request);
        })
        .await;
        assert_eq!(server.join(protocol, Scope::Whole).await.snapshots(), 0, "there is room for the next");
    }
}

#[tokio::test]
async fn a_flood_of_ends() {
    let server = Server::start(0).await;
    let player = server.join(Protocol::Game, Scope::Whole).await;
    goes_on(player, |number| from_nowhere(number, server.game, &END)).await;
}

#[tokio::test]
async fn a_flood_of_pings_and_nonsense() {
    let server = Server::start(0).await;
    let player = server.join(Protocol::RakNet, Scope::Changes).await;
    let ping = written(&Offline::Ping { scope: PingScope::Any, time: 1, guid: Some(Guid(1)) });
    goes_on(player, |number| {
        from_nowhere(number, server.raknet, &ping);
        from_nowhere(number, server.raknet, &[(number % 256) as u8; 600]);
        from_nowhere(number, server.game, &[(number % 256) as u8; 600]);
    })
    .await;
}

/// Clients that are let in, and then say what is no message: each loses its connection, and nobody else does.
#[tokio::test]
async fn malformed_messages_end_only_their_own_connection() {
    let server = Server::start(0).await;
    let player = server.join(Protocol::Game, Scope::Whole).await;
    let endpoint = Endpoint::bind("127.0.0.1:0", rakwire_native::Options::client().expect("random bytes"));
    let endpoint = endpoint.await.expect("a free port");
    for nonsense in [&b"\x07"[..], b"\xff\xff\xff\xff\xff", b"\x00", &[0x55; 2_000]] {
        let client = game::Options::client().expect("random bytes");
        let evil = game::connect(server.game, client).await.expect("there is room");
        evil.send(nonsense, game::Reliability::Reliable).await.expect("it is taken");
        while evil.recv().await.is_some() {}
        let evil = endpoint.connect(server.raknet).await.expect("there is room");
        let message = [&[0x86], nonsense].concat();
        evil.send(&message, Delivery::RELIABLE_ORDERED).await.expect("it is taken");
        while evil.recv().await.is_some() {}
    }
    goes_on(player, |_| {}).await;
}

/// A client that plays and floods the server with actions slows nobody but itself.
#[tokio::test]
async fn a_flood_of_actions() {
    let server = Server::start(0).await;
    let player = server.join(Protocol::RakNet, Scope::Whole).await;
    let client = game::Options::client().expect("random bytes");
    let evil = game::connect(server.game, client).await.expect("there is room");
    let init = [0x00, 0x08];
    evil.send(&init, game::Reliability::Reliable).await.expect("it is taken");
    let walk = [0x4D, 0x00];
    goes_on(player, |_| {
        // A queue that is full is the flooder's own.
        let _ = evil.try_send(&walk, game::Reliability::Unreliable);
    })
    .await;
}
