//! The programs of the guide (docs/guide.md): each server with its clients, over loopback.

use std::time::Duration;

use rakwire_native::secure::StaticKey;
use rakwire_native::{Connection, Delivery, DisconnectReason, Endpoint, Options};
use tokio::sync::mpsc;
use tokio::time::timeout;

use self::guide_tag::messages::{News, Request};
use self::guide_tag::server::Limits;
use self::guide_tag::world::{HEIGHT, WIDTH, World};
use self::guide_tag::{bot, server};
use crate::support::DEADLINE;

#[path = "../../../examples/guide_chat.rs"]
#[expect(dead_code, reason = "the tests call functions of the program, but not `main`")]
mod guide_chat;
#[path = "../../../examples/guide_echo.rs"]
#[expect(dead_code, reason = "the tests call functions of the program, but not `main`")]
mod guide_echo;
#[path = "../../../examples/guide_plugin.rs"]
#[expect(dead_code, reason = "the tests call functions of the program, but not `main`")]
mod guide_plugin;
#[path = "../../../examples/guide_positions.rs"]
#[expect(dead_code, reason = "the tests call functions of the program, but not `main`")]
mod guide_positions;
#[path = "../../../examples/guide_secure.rs"]
#[expect(dead_code, reason = "the tests call functions of the program, but not `main`")]
mod guide_secure;
#[path = "../../../examples/guide_tag/main.rs"]
#[expect(dead_code, reason = "the tests call functions of the program, but not `main`")]
mod guide_tag;

async fn endpoint() -> Endpoint {
    Endpoint::bind("127.0.0.1:0", Options::server(64).expect("entropy")).await.expect("a free port")
}

/// Receives until `take` returns a value.
async fn receive<R>(connection: &Connection, mut take: impl FnMut(&[u8]) -> Option<R>) -> R {
    let receiving = async {
        loop {
            let message = connection.recv().await.expect("an open connection");
            if let Some(result) = take(&message.bytes) {
                return result;
            }
        }
    };
    timeout(DEADLINE, receiving).await.expect("a result before the timeout")
}

#[tokio::test]
async fn the_echo_server_returns_the_text() {
    let endpoint = endpoint().await;
    let address = endpoint.local_addr().to_string();
    tokio::spawn(guide_echo::serve(endpoint));
    assert_eq!(guide_echo::ask(&address, "hello").await.expect("an echo"), "hello");
}

#[tokio::test]
async fn chat_lines_carry_names_and_departures_are_announced() {
    let endpoint = endpoint().await;
    let address = endpoint.local_addr().to_string();
    tokio::spawn(guide_chat::serve(endpoint));
    let line = |connection, id, wanted: &'static str| async move {
        receive(connection, |message| guide_chat::text_of(message, id).filter(|line| line == wanted)).await
    };
    let (ann, ben) = (guide_chat::join(&address, "ann").await, guide_chat::join(&address, "ben").await);
    let (ann, ben) = (ann.expect("a free slot"), ben.expect("a free slot"));
    line(&ann, guide_chat::NOTICE, "ben has joined").await;
    guide_chat::say(&ben, "hello").await.expect("an open connection");
    line(&ann, guide_chat::CHAT, "ben: hello").await;
    ben.disconnect().await;
    line(&ann, guide_chat::NOTICE, "ben has left").await;
}

#[tokio::test]
async fn a_client_without_a_name_is_disconnected() {
    let endpoint = endpoint().await;
    let address = endpoint.local_addr().to_string();
    tokio::spawn(guide_chat::serve(endpoint));
    let unnamed = guide_chat::join(&address, "").await.expect("a connection");
    assert_eq!(unnamed.closed().await, DisconnectReason::Remote);
}

#[tokio::test]
async fn positions_of_all_players_arrive_alongside_the_chat() {
    let endpoint = endpoint().await;
    let address = endpoint.local_addr().to_string();
    tokio::spawn(guide_positions::serve(endpoint));
    let walker = guide_positions::join(&address).await.expect("a free slot");
    tokio::spawn(guide_positions::walk(walker.clone()));
    let watcher = guide_positions::join(&address).await.expect("a free slot");
    // The positions of two players, with three bytes each: one player walks, and the other has not moved.
    let seen = |message: &[u8]| match *message {
        [guide_positions::POSITIONS, _, first, 0, _, second, 0] => Some(first.max(second)),
        _ => None,
    };
    let first = receive(&watcher, seen).await;
    receive(&watcher, |message| seen(message).filter(|x| *x > first)).await;
    watcher
        .send(&[guide_positions::CHAT, b'x'], Delivery::RELIABLE_ORDERED)
        .await
        .expect("an open connection");
    receive(&walker, |message| (message == [guide_positions::CHAT, b'x']).then_some(())).await;
    walker.disconnect().await;
    receive(&watcher, |message| (message.len() == 4).then_some(())).await;
}

#[tokio::test]
async fn bots_tag_each_other_and_departures_are_announced() {
    let endpoint = endpoint().await;
    let address = endpoint.local_addr().to_string();
    tokio::spawn(server::run(endpoint, Limits::default()));
    let (sender, mut news) = mpsc::unbounded_channel();
    let watcher = bot::join(&address, "ann").await.expect("a free slot");
    tokio::spawn(bot::play(watcher, move |news| {
        let _ = sender.send(format!("{news:?}"));
    }));
    let mut until = async |wanted: &str| loop {
        let line = timeout(DEADLINE, news.recv()).await.expect("news in time").expect("a running bot");
        if line.starts_with(wanted) {
            return line;
        }
    };
    until("Welcome(0)").await;
    let ben = bot::join(&address, "ben").await.expect("a free slot");
    let playing = tokio::spawn(bot::play(ben.clone(), |_| {}));
    until("Joined(1, \"ben\")").await;
    // Each bot is "it" once.
    until("Tagged(1)").await;
    until("Tagged(0)").await;
    ben.disconnect().await;
    until("Left(1)").await;
    assert_eq!(playing.await.expect("no panic"), DisconnectReason::Local);
}

#[tokio::test]
async fn players_without_a_name_or_a_direction_are_disconnected() {
    let short = Duration::from_millis(100);
    let started = |limits| async move {
        let endpoint = endpoint().await;
        let address = endpoint.local_addr().to_string();
        tokio::spawn(server::run(endpoint, limits));
        address
    };
    let address = started(Limits { hello: short, ..Limits::default() }).await;
    let nameless = guide_positions::join(&address).await.expect("a connection");
    assert_eq!(nameless.closed().await, DisconnectReason::Remote);
    let address = started(Limits { idle: short, ..Limits::default() }).await;
    let idle = bot::join(&address, "ann").await.expect("a free slot");
    assert_eq!(idle.closed().await, DisconnectReason::Remote);
}

#[test]
fn the_world_limits_steps_and_passes_the_tag_on() {
    let mut world = World::default();
    let (first, second) =
        (world.join([0, 0]).expect("a free slot"), world.join([2, 0]).expect("a free slot"));
    assert_eq!(world.it(), Some(first));
    // A large number makes a player no faster, and no player can leave the field.
    world.steer(first, [100, -100]);
    world.steer(second, [-1, 1]);
    let mut tagged = (0..200).filter_map(|_| world.tick());
    assert_eq!(tagged.next(), None, "the players pass each other");
    drop(tagged);
    let cells: Vec<_> = world.players().collect();
    assert_eq!(cells, [(first, [WIDTH - 1, 0]), (second, [0, HEIGHT - 1])]);
    world.steer(second, [1, -1]);
    let tagged: Vec<_> = (0..60).filter_map(|_| world.tick()).collect();
    assert_eq!(tagged, [second]);
    world.leave(second);
    assert_eq!(world.it(), Some(first));
    assert_eq!((2..40).filter_map(|_| world.join([0, 0])).count(), 31, "a world has 32 places");
}

#[test]
fn messages_round_trip_and_malformed_messages_are_refused() {
    for request in [Request::Hello("ann".to_owned()), Request::Steer([-1, 1])] {
        assert_eq!(Request::decode(&request.encode()), Some(request));
    }
    let state = News::State(3, vec![(3, [15, 11]), (4, [0, 0])]);
    for news in [News::Welcome(1), News::Joined(1, "ann".to_owned()), News::Left(1), News::Tagged(2), state] {
        assert_eq!(News::decode(&news.encode()), Some(news));
    }
    let malformed: [&[u8]; 6] = [&[], &[0x86, 0xFF], &[0x87, 1], &[0x88], &[0x8C, 1, 2, 3], &[0xFF; 4]];
    for message in malformed {
        assert_eq!((Request::decode(message), News::decode(message)), (None, None), "{message:?}");
    }
}

#[tokio::test]
async fn a_token_admits_a_user_once() {
    let folder = std::env::temp_dir().join(format!("rakwire-guide-{}", std::process::id()));
    // A failed run of an earlier process with the same process id may have left the folder behind.
    let _ = std::fs::remove_dir_all(&folder);
    guide_secure::create_keys(&folder).expect("a new folder");
    let options = guide_secure::options(&folder).expect("two keys");
    let endpoint = Endpoint::bind("127.0.0.1:0", options).await.expect("a free port");
    let address = endpoint.local_addr().to_string();
    let key = StaticKey::from_bytes([3; 32]);
    let token = guide_secure::log_in(&folder, 42, key.public(), &address).expect("a token");
    std::fs::remove_dir_all(&folder).expect("the folder of this test");
    tokio::spawn(guide_secure::serve(endpoint));
    let greeting = guide_secure::connect(&address, &token, &key).await.expect("a free slot");
    assert_eq!(greeting, "welcome, user 42");
    assert!(guide_secure::connect(&address, &token, &key).await.is_err());
}

#[tokio::test]
async fn the_plugin_drops_lines_beyond_the_limit() {
    let (endpoint, guard) = guide_plugin::bind("127.0.0.1:0").await.expect("a free port");
    let address = endpoint.local_addr().to_string();
    tokio::spawn(guide_plugin::serve(endpoint));
    let player = guide_positions::join(&address).await.expect("a free slot");
    let lines = guide_plugin::LINES as u8 + 3;
    for line in 0..lines {
        player
            .send(&[guide_plugin::CHAT, line], Delivery::RELIABLE_ORDERED)
            .await
            .expect("an open connection");
    }
    // Messages with other ids are not limited.
    player.send(&[0xFF], Delivery::RELIABLE_ORDERED).await.expect("an open connection");
    let mut received = Vec::new();
    receive(&player, |message| {
        received.push(message.to_vec());
        (message == [0xFF]).then_some(())
    })
    .await;
    let expected = (0..guide_plugin::LINES as u8).map(|line| vec![guide_plugin::CHAT, line]);
    assert_eq!(received, expected.chain([vec![0xFF]]).collect::<Vec<_>>());
    assert_eq!(guard.with(|guard| guard.dropped), 3);
}
