//! Whole games over loopback, on both protocols: join, move, break, throw, hit and win.

use rakwire_native::raknet::{ConnectOptions, SecurePeer};
use rakwire_native::secure::{KnownServer, ServerTrust};
use rakwire_native::{Endpoint, create_key_file};
use snowfight::advertisement::Advertisement;
use snowfight::bot;
use snowfight::client::Input;
use snowfight::message::{Direction, EntityId, EntityKind, GameOver, Object, Player as Body, Scope};
use snowfight::world::{HEALTH, REACH};
use snowfight_server::{Host, Options, OptionsError, Player, Protocol};

use crate::support::{CHEST, LIMIT, ONE_AT_A_TIME, Server, approach, both, gather, object, repeat, until};

/// The maximum number of throws in a game. Some of them hit trees.
const THROWS: u32 = 30;

async fn pair(server: &Server, protocol: Protocol, scope: Scope) -> (Player, Player) {
    let first = server.join(protocol, scope).await;
    let second = server.join(protocol, scope).await;
    assert_ne!(first.id(), second.id());
    (first, second)
}

/// Plays one game in which `winner` throws at `loser` until `loser` has fallen.
async fn whole_game(protocol: Protocol, scope: Scope) {
    let _alone = ONE_AT_A_TIME.lock().await;
    let server = Server::start(0).await;
    let (winner, loser) = pair(&server, protocol, scope).await;
    play_to_the_end(winner, loser).await;
}

/// Lets `winner` throw at `loser` until `loser` has fallen, and checks that both receive the result.
async fn play_to_the_end(mut winner: Player, mut loser: Player) {
    let before = winner.me().expect("the player has joined").position;
    let north = Input { movement: Direction::NORTH, ..Input::default() };
    let moved = |me: &Body| me.position.y > before.y + 0.5 || me.position.x != before.x;
    until(&mut winner, &mut loser, |_| north, |player| player.me().is_some_and(moved)).await;

    let mut health = HEALTH;
    for _ in 0..THROWS {
        if health == 0 {
            break;
        }
        throw_at(&mut winner, &mut loser).await;
        let alive = loser.me().filter(|_| loser.result().is_none());
        let left = alive.map_or(0, |me| me.health);
        assert!(
            left == health || left == health - 1,
            "a throw must take at most one of {health} points of health, but left {left}"
        );
        health = left;
    }
    assert_eq!(health, 0, "the loser survived all throws");
    let mut results = (None, None);
    repeat("both players have the result", async || {
        results = both(&mut winner, Input::default(), &mut loser, Input::default()).await;
        results.0.is_some() && results.1.is_some()
    })
    .await;
    assert_eq!(results, (Some(GameOver::Winner), Some(GameOver::Loser)));
    tokio::join!(winner.closed(), loser.closed());
}

/// Throws an object at a player, and waits until the object has hit or missed.
async fn throw_at(thrower: &mut Player, target: &mut Player) {
    let held = gather(thrower, target).await;
    let seen = |player: &Player| object(player, held).is_some_and(|object| object.durability.is_none());
    until(target, thrower, |_| Input::default(), seen).await;
    approach(thrower, target, 2.0).await;
    let place = target.me().expect("the player is alive").position + CHEST;
    // A throw is sent only once and may be lost, so it is repeated.
    let throw = |player: &Player| {
        let holds = player.me().is_some_and(|me| me.holding.is_some());
        Input { throw: holds.then_some(place), ..Input::default() }
    };
    let gone = |player: &Player| object(player, held).is_none();
    until(thrower, target, throw, gone).await;
    until(target, thrower, |_| Input::default(), gone).await;
}

#[tokio::test]
async fn a_game_over_the_game_protocol_ends_with_a_winner_and_a_loser() {
    whole_game(Protocol::GameProtocol, Scope::Whole).await;
}

#[tokio::test]
async fn a_game_over_raknet_ends_with_a_winner_and_a_loser() {
    whole_game(Protocol::RakNet, Scope::Whole).await;
}

#[tokio::test]
async fn a_game_with_delta_snapshots_over_the_game_protocol_ends_with_a_winner_and_a_loser() {
    whole_game(Protocol::GameProtocol, Scope::Changes).await;
}

#[tokio::test]
async fn a_game_with_delta_snapshots_over_raknet_ends_with_a_winner_and_a_loser() {
    whole_game(Protocol::RakNet, Scope::Changes).await;
}

#[tokio::test]
async fn a_game_with_replicated_updates_ends_with_a_winner_and_a_loser() {
    whole_game(Protocol::RakNet, Scope::Replicated).await;
}

#[tokio::test]
async fn both_protocols_share_one_world() {
    let server = Server::start(0).await;
    let mut first = server.join(Protocol::GameProtocol, Scope::Whole).await;
    let mut second = server.join(Protocol::RakNet, Scope::Changes).await;
    let (one, two) = (first.id(), second.id());
    let sees = |player: &Player, other| player.view().player(other).is_some();
    until(&mut first, &mut second, |_| Input::default(), |player| sees(player, two)).await;
    until(&mut second, &mut first, |_| Input::default(), |player| sees(player, one)).await;
    second.leave().await;
    repeat("the departed player is gone", async || {
        first.frame(Input::default()).await.expect("the server keeps running");
        !sees(&first, two)
    })
    .await;
}

#[tokio::test]
async fn server_bots_play_with_a_guest() {
    let server = Server::start(3).await;
    let mut guest = server.join(Protocol::GameProtocol, Scope::Whole).await;
    let mut most = 0;
    let mut holding = 0;
    repeat("there are four players, and one holds an object", async || {
        guest.frame(Input::default()).await.expect("the server keeps running");
        let bodies = guest.view().entities().iter().filter_map(|entity| match &entity.kind {
            EntityKind::Player(body) => Some(body),
            EntityKind::Object(_) | EntityKind::Dead => None,
        });
        let bodies: Vec<&Body> = bodies.collect();
        most = most.max(bodies.len());
        holding = holding.max(bodies.iter().filter(|body| body.holding.is_some()).count());
        most == 4 && holding > 0
    })
    .await;
}

/// A bot that plays over the network gathers an object.
#[tokio::test]
async fn bot_plays_over_the_network() {
    let server = Server::start(0).await;
    let mut player = server.join(Protocol::GameProtocol, Scope::Changes).await;
    repeat("the bot holds an object", async || {
        let input = bot::decide(player.view().entities(), player.id());
        assert_eq!(player.frame(input).await.expect("the server keeps running"), None);
        player.me().is_some_and(|me| me.holding.is_some())
    })
    .await;
}

/// Whole snapshots and delta snapshots show the same world.
#[tokio::test]
async fn delta_snapshots_show_the_whole_world() {
    let server = Server::start(4).await;
    let (mut whole, mut changes) = (
        server.join(Protocol::GameProtocol, Scope::Whole).await,
        server.join(Protocol::GameProtocol, Scope::Changes).await,
    );
    repeat("a hundred snapshots arrive", async || {
        both(&mut whole, Input::default(), &mut changes, Input::default()).await;
        whole.snapshots() >= 100
    })
    .await;
    let objects = |player: &Player| -> Vec<(EntityId, Object)> {
        let entities = player.view().entities().iter();
        let mut objects: Vec<_> = entities
            .filter_map(|entity| match entity.kind {
                EntityKind::Object(object) if object.position.z == 0.0 => Some((entity.id, object)),
                EntityKind::Object(_) | EntityKind::Player(_) | EntityKind::Dead => None,
            })
            .collect();
        objects.sort_by_key(|(id, _)| *id);
        objects
    };
    // One of the two views may be a tick older, so an object that is being broken may differ.
    let differ =
        |(a, b): &(&(EntityId, Object), &(EntityId, Object))| a.0 != b.0 || a.1.position != b.1.position;
    repeat("both clients show the same world", async || {
        both(&mut whole, Input::default(), &mut changes, Input::default()).await;
        let (all, merged) = (objects(&whole), objects(&changes));
        all.len() == merged.len() && !all.iter().zip(&merged).any(|pair| differ(&pair))
    })
    .await;
    // Snapshots may be lost in a burst after a pause, so the check is repeated.
    repeat("delta snapshots arrive less often than whole snapshots", async || {
        both(&mut whole, Input::default(), &mut changes, Input::default()).await;
        changes.snapshots() * 3 / 2 < whole.snapshots()
    })
    .await;
}

#[tokio::test]
async fn game_continues_despite_loss() {
    let server = Server::start(0).await;
    let mut player =
        server.join_through("loss=10%,latency=20ms", Protocol::GameProtocol, Scope::Changes).await;
    let start = player.me().expect("the player has joined").position;
    let far = |me: &Body| (me.position - start).length() > REACH;
    let mut frame = 0;
    repeat("the player moves far", async || {
        // An obstacle blocks some directions but not all.
        let movement = [Direction::EAST, Direction::NORTH, Direction::WEST, Direction::SOUTH];
        let input = Input { movement: movement[frame / 60 % 4], ..Input::default() };
        frame += 1;
        player.frame(input).await.expect("the server keeps running");
        player.me().is_some_and(far)
    })
    .await;
}

/// The result arrives despite a loss of 20 %, because the server sends END only once the result is acknowledged.
#[tokio::test]
async fn game_result_arrives_despite_loss() {
    for (protocol, scope) in [
        (Protocol::GameProtocol, Scope::Changes),
        (Protocol::RakNet, Scope::Changes),
        (Protocol::RakNet, Scope::Replicated),
    ] {
        let _alone = ONE_AT_A_TIME.lock().await;
        let server = Server::start(0).await;
        let bad = "loss=20%,latency=10ms,duplicate=5%,reorder=5%,seed=3";
        let winner = server.join_through(bad, protocol, scope).await;
        let loser = server.join_through(bad, protocol, scope).await;
        play_to_the_end(winner, loser).await;
    }
}

/// The pong to a RakNet ping contains the port of the Game Protocol.
#[tokio::test]
async fn server_answers_a_ping_with_its_game_protocol_port() {
    let server = Server::start(0).await;
    let client = Endpoint::bind("127.0.0.1:0", rakwire_native::Options::client().expect("random bytes"));
    let client = client.await.expect("loopback has free ports");
    let pong = client.ping(server.raknet, LIMIT).await.expect("an answer");
    assert_eq!(Advertisement::server(&pong.data, pong.from), Some(server.game));
}

/// Connections without encryption remain possible.
#[tokio::test]
async fn server_with_a_key_accepts_secure_and_plain_clients() {
    let file = std::env::temp_dir().join(format!("snowfight-key-{}", std::process::id()));
    let key = create_key_file(&file).expect("a new file").public();
    let server = Server::with(Options { secure: Some(file.clone()), ..Options::on_loopback() }).await;
    std::fs::remove_file(&file).expect("an existing file");
    let mut options = rakwire_native::raknet::Options::client().expect("random bytes");
    options.secure().expect("random bytes");
    let client = Endpoint::bind("127.0.0.1:0", options).await.expect("loopback has free ports");
    for trust in [None, Some(ServerTrust::Key(key))] {
        let options = ConnectOptions { trust, connect_timeout: Some(LIMIT), ..ConnectOptions::default() };
        let connection = client.connect_with(server.raknet, &options).await.expect("a free slot");
        let shown = connection.secure_peer();
        assert_eq!(shown, trust.map(|_| SecurePeer::Server(KnownServer { key, next: None })));
        connection.disconnect().await;
    }
    let missing = Options { secure: Some(file), ..Options::on_loopback() };
    assert!(matches!(Host::bind(&missing).await, Err(OptionsError::Key(_))));
}

#[tokio::test]
async fn lone_player_does_not_win() {
    let server = Server::start(0).await;
    let mut player = server.join(Protocol::RakNet, Scope::Whole).await;
    let mut play_until = async |what: &str, done: &dyn Fn(&Player) -> bool| {
        repeat(what, async || {
            assert_eq!(player.frame(Input::default()).await.expect("the server keeps running"), None);
            done(&player)
        })
        .await;
        player.snapshots()
    };
    play_until("the client shows the world", &|player| player.snapshots() > 20).await;
    let other = server.join(Protocol::GameProtocol, Scope::Whole).await;
    let id = other.id();
    play_until("the client shows the other player", &|player| player.view().player(id).is_some()).await;
    other.leave().await;
    let snapshots =
        play_until("the other player is gone", &|player| player.view().player(id).is_none()).await;
    play_until("the game continues", &|player| player.snapshots() > snapshots + 10).await;
}
