//! Players with a replicated world, and players with snapshots on the same server.

use std::collections::BTreeMap;

use rakwire_native::raknet::{Delivery, Options};
use rakwire_native::{Connection, Endpoint};
use snowfight::client::Input;
use snowfight::message::{Direction, EntityId, EntityKind, ObjectKind, Point, Scope};
use snowfight_replication::{NEAR, POSITION_SCALE};
use snowfight_server::{Player, Protocol};

use crate::support::{Server, both, repeat};

/// Returns the objects on the ground within sight of a player, with their kind, health and position.
fn objects(of: &Player, seen_by: &Player) -> BTreeMap<EntityId, (ObjectKind, u32, Point)> {
    let Some(me) = seen_by.me().map(|me| me.position) else { return BTreeMap::new() };
    let entities = of.view().entities().iter();
    let object = entities.filter_map(|entity| match entity.kind {
        EntityKind::Object(object)
            if object.position.z == 0.0 && (object.position - me).length() < NEAR - 1.0 =>
        {
            Some((entity.id, (object.kind, object.health, object.position)))
        }
        EntityKind::Object(_) | EntityKind::Player(_) | EntityKind::Dead => None,
    });
    object.collect()
}

/// Within sight, and within the precision of the fields, a player that joins late sees the same as a player with
/// whole snapshots.
#[tokio::test]
async fn clients_with_replication_and_with_snapshots_see_the_same_world() {
    let server = Server::start(4).await;
    let mut whole = server.join(Protocol::RakNet, Scope::Whole).await;
    repeat("the game is under way", async || {
        whole.frame(Input::default()).await.expect("the server keeps running");
        whole.snapshots() >= 100
    })
    .await;
    let mut late = server.join(Protocol::RakNet, Scope::Replicated).await;
    assert!(late.me().is_some(), "the client sees its own player immediately");
    repeat("both clients show the same world", async || {
        both(&mut whole, Input::default(), &mut late, Input::default()).await;
        let (all, near) = (objects(&whole, &late), objects(&late, &late));
        let is_alike = |(a, b): (&(ObjectKind, u32, Point), &(ObjectKind, u32, Point))| {
            (a.0, a.1) == (b.0, b.1) && (a.2 - b.2).length() <= 1.0 / POSITION_SCALE
        };
        late.snapshots() > 30
            && near.len() > 100
            && all.keys().eq(near.keys())
            && all.values().zip(near.values()).all(is_alike)
    })
    .await;
    let me = whole.id();
    repeat("the late client shows the moving player", async || {
        let east = Input { movement: Direction::EAST, ..Input::default() };
        both(&mut whole, east, &mut late, Input::default()).await;
        late.view().player(me).is_some_and(|(_, body)| body.movement == Direction::EAST)
    })
    .await;
    whole.leave().await;
    repeat("the late client shows that a player left", async || {
        late.frame(Input::default()).await.expect("the server keeps running");
        late.view().player(me).is_none()
    })
    .await;
}

/// The Game Protocol does not support replication.
#[tokio::test]
async fn game_protocol_client_that_requests_replication_gets_snapshots() {
    let server = Server::start(0).await;
    let mut player = server.join(Protocol::GameProtocol, Scope::Replicated).await;
    repeat("the client shows the world", async || {
        player.frame(Input::default()).await.expect("the server keeps running");
        player.snapshots() > 10 && player.view().entities().len() == 301
    })
    .await;
}

/// Opens a connection that requests replication and then sends arbitrary messages.
async fn liar(server: &Server) -> (Endpoint, Connection) {
    let endpoint = Endpoint::bind("127.0.0.1:0", Options::client().expect("random bytes")).await;
    let endpoint = endpoint.expect("loopback has free ports");
    let connection = endpoint.connect(server.raknet).await.expect("a free slot");
    let init = [0x86, 0x00, 0x08, 0xC4, 0xA8];
    connection.send(&init, Delivery::RELIABLE_ORDERED).await.expect("the message is queued");
    (endpoint, connection)
}

/// Wrong acknowledgements, malformed messages and updates from a client without ownership do not affect other
/// clients.
#[tokio::test]
async fn false_replication_messages_do_not_affect_other_clients() {
    let server = Server::start(0).await;
    let mut player = server.join(Protocol::RakNet, Scope::Replicated).await;
    let (_endpoint, evil) = liar(&server).await;
    let before = player.snapshots();
    let (mut number, mut moved) = (0_u32, 0);
    let mut last = player.me().expect("the player has joined").position;
    repeat("the game of the other player continues", async || {
        for kind in 0..=3 {
            let lie =
                [&[131, kind][..], &number.wrapping_mul(0x9E37_79B9).to_be_bytes(), &number.to_be_bytes()];
            let lie = lie.concat();
            // A full queue affects only this client.
            let _ = evil.try_send(&lie, Delivery::UNRELIABLE);
            let _ = evil.try_send(&lie[..lie.len() - 5], Delivery::UNRELIABLE);
        }
        // Only an authority sends updates, never a client.
        let _ = evil.try_send(&[130, 0, 0, 0, 1, 0x80], Delivery::UNRELIABLE);
        number += 1;
        let movement = if number / 60 % 2 == 0 { Direction::EAST } else { Direction::WEST };
        let input = Input { movement, ..Input::default() };
        assert_eq!(player.frame(input).await.expect("the server keeps running"), None);
        let now = player.me().expect("the player is alive").position;
        moved += u32::from(now != last);
        last = now;
        player.snapshots() > before + 100 && moved > 50
    })
    .await;
    assert_eq!(
        player.view().entities().iter().filter(|entity| matches!(entity.kind, EntityKind::Player(_))).count(),
        2
    );
}
