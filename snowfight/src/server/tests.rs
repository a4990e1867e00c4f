//! The server's state transitions (docs/game.md#the-server), and hostile clients.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use rakwire::codec::rabbit::{to_vec, unpack};

use super::*;
use crate::message::{
    Action, ActionKind, Break, Direction, Entity, EntityId, EntityKind, Move, Player, Point, Throw,
};

/// Letters serve as connection keys.
type Key = char;

/// An output of the server, with owned bytes.
#[derive(Clone, Debug, PartialEq)]
enum Done {
    Sent(Key, Delivery, Vec<u8>),
    Closed(Key),
}

fn poll(server: &mut Server<Key>) -> Vec<Done> {
    let mut buffer = [0; MAX_MESSAGE];
    let mut done = Vec::new();
    while let Some(output) = server.poll_output(&mut buffer) {
        done.push(match output {
            Output::Send { to, delivery, payload } => Done::Sent(to, delivery, payload.to_vec()),
            Output::Close { connection } => Done::Closed(connection),
        });
    }
    done
}

fn message(done: &Done) -> ServerMessage<'_> {
    let Done::Sent(_, _, payload) = done else { panic!("{done:?} is not a message") };
    unpack(payload).expect("a valid message from the server")
}

fn deliver(server: &mut Server<Key>, from: Key, bytes: &[u8]) {
    server.handle_message(from, &bytes);
}

fn say(server: &mut Server<Key>, from: Key, message: ClientMessage) {
    deliver(server, from, &to_vec(&message).expect("a packed message"));
}

fn ask(server: &mut Server<Key>, from: Key, channel: u32, kind: RequestKind) {
    say(server, from, ClientMessage::Request(Request { channel: Channel(channel), kind }));
}

fn act(server: &mut Server<Key>, from: Key, kind: ActionKind) {
    say(server, from, ClientMessage::Action(Action { kind }));
}

/// Creates a server with these players in its game.
fn joined(players: &[Key]) -> Server<Key> {
    let mut server = Server::new(5);
    for player in players {
        server.handle_connected(*player).expect("a free slot");
        ask(&mut server, *player, 1, RequestKind::Init);
    }
    assert_eq!(poll(&mut server).len(), players.len());
    server
}

fn pong(channel: u32) -> ServerMessage<'static> {
    ServerMessage::Response(Response { channel: Channel(channel), kind: ResponseKind::Pong })
}

fn players(entities: &List<'_, Entity>) -> Vec<Player> {
    let players = entities.iter().filter_map(|entity| match entity.kind {
        EntityKind::Player(player) => Some(player),
        EntityKind::Object(_) | EntityKind::Dead => None,
    });
    players.collect()
}

fn entities_in(done: &Done) -> List<'_, Entity> {
    let ServerMessage::Event(Event { kind: EventKind::Snapshot(snapshot), .. }) = message(done) else {
        panic!("no snapshot")
    };
    snapshot.entities
}

fn game_over(done: &Done) -> Option<(Key, GameOver)> {
    let Done::Sent(to, Delivery::Reliable, _) = done else { return None };
    match message(done) {
        ServerMessage::Event(Event { kind: EventKind::GameOver(result), .. }) => Some((*to, result)),
        ServerMessage::Event(_) | ServerMessage::Response(_) => None,
    }
}

fn results(done: &[Done]) -> Vec<(Key, GameOver)> {
    done.iter().filter_map(game_over).collect()
}

/// Runs bots until a player falls, and returns the output of that tick.
fn play_until_a_player_falls(server: &mut Server<Key>, keys: &[Key]) -> Vec<Done> {
    for _ in 0..60 * 600 {
        for (key, owner) in keys.iter().zip((1..).map(PlayerId)) {
            let input = crate::bot::decide(&server.world.entities(), owner);
            act(server, *key, ActionKind::Move(Move { direction: input.movement }));
            act(server, *key, ActionKind::Break(Break { entity: input.breaking }));
            if let Some(target) = input.throw {
                act(server, *key, ActionKind::Throw(Throw { target }));
            }
        }
        server.tick();
        let done = poll(server);
        if !results(&done).is_empty() {
            return done;
        }
    }
    panic!("no player fell");
}

#[test]
fn new_connection_gets_no_message() {
    let mut server = Server::new(1);
    server.handle_connected('a').expect("a free slot");
    assert_eq!(poll(&mut server), []);
}

#[test]
fn connection_beyond_the_limit_is_refused() {
    let mut server = Server::<usize>::new(1);
    for connection in 0..MAX_SESSIONS {
        server.handle_connected(connection).expect("a free slot");
    }
    assert_eq!(server.handle_connected(MAX_SESSIONS), Err(Full));
    server.handle_disconnected(3);
    assert_eq!(server.handle_connected(MAX_SESSIONS), Ok(()));
}

#[test]
fn init_adds_a_player_and_returns_the_world() {
    let mut server = Server::new(1);
    server.handle_connected('a').expect("a free slot");
    ask(&mut server, 'a', 9, RequestKind::Init);
    let done = poll(&mut server);
    assert!(matches!(done.as_slice(), [Done::Sent('a', Delivery::Reliable, _)]));
    let ServerMessage::Response(Response { channel: Channel(9), kind: ResponseKind::Connect(connect) }) =
        message(&done[0])
    else {
        panic!("no Connect response")
    };
    assert_eq!(connect.player, PlayerId(1));
    assert_eq!(connect.snapshot.entities.len(), 301);
    // The snapshot contains the new player; no event precedes it.
    assert_eq!(players(&connect.snapshot.entities)[0].owner, PlayerId(1));
}

#[test]
fn joined_client_gets_a_pong() {
    let mut server = joined(&['a']);
    ask(&mut server, 'a', 2, RequestKind::Ping);
    assert_eq!(message(&poll(&mut server)[0]), pong(2));
}

#[test]
fn second_init_gets_an_error() {
    let mut server = joined(&['a']);
    ask(&mut server, 'a', 3, RequestKind::Ping);
    ask(&mut server, 'a', 4, RequestKind::Init);
    let done = poll(&mut server);
    assert!(matches!(
        done.as_slice(),
        [Done::Sent(_, Delivery::Unreliable, _), Done::Sent(_, Delivery::Reliable, _)]
    ));
    assert_eq!(message(&done[0]), pong(3));
    let text = Text::new("Requested 'Init' on already initialized player");
    let error = Response { channel: Channel(4), kind: ResponseKind::Error(text) };
    assert_eq!(message(&done[1]), ServerMessage::Response(error));
}

#[test]
fn every_ping_gets_a_pong() {
    let mut server = joined(&['a']);
    for channel in 0..20 {
        ask(&mut server, 'a', channel, RequestKind::Ping);
        assert_eq!(message(&poll(&mut server)[0]), pong(channel));
    }
}

#[test]
fn ticks_run_without_players() {
    let mut server = Server::<Key>::new(1);
    assert_eq!(server.poll_timeout(), Instant::ZERO);
    server.handle_timeout(Instant::ZERO);
    for _ in 0..60 {
        let now = server.poll_timeout();
        server.handle_timeout(now);
    }
    assert_eq!((server.world().time(), poll(&mut server)), (60, vec![]));
}

#[test]
fn tick_sends_a_snapshot_to_every_player() {
    let mut server = joined(&['a', 'b']);
    server.handle_connected('c').expect("a free slot");
    act(&mut server, 'a', ActionKind::Move(Move { direction: Direction::NORTH }));
    server.tick();
    let done = poll(&mut server);
    let to: Vec<_> = done
        .iter()
        .map(|done| if let Done::Sent(to, Delivery::Unreliable, _) = done { *to } else { '-' })
        .collect();
    assert_eq!(to, ['a', 'b']);
    assert_eq!(players(&entities_in(&done[1]))[0].movement, Direction::NORTH);
    let Done::Sent(_, _, payload) = &done[0] else { panic!("no message") };
    assert!((5_000..7_500).contains(&payload.len()), "{}", payload.len());
}

#[test]
fn unsent_snapshot_is_replaced_by_a_newer_snapshot() {
    let mut server = joined(&['a']);
    (0..100).for_each(|_| server.tick());
    let done = poll(&mut server);
    assert_eq!(done.len(), 1);
    assert!(matches!(message(&done[0]), ServerMessage::Event(Event { time: 100, .. })));
}

#[test]
fn game_continues_while_no_player_falls() {
    let mut server = joined(&['a', 'b']);
    for _ in 0..300 {
        server.tick();
        assert_eq!(results(&poll(&mut server)), []);
    }
    assert_eq!(server.world().players().count(), 2);
}

#[test]
fn player_does_not_win_when_the_others_leave() {
    let mut server = joined(&['a', 'b']);
    server.handle_disconnected('b');
    for _ in 0..60 {
        server.tick();
        assert_eq!(results(&poll(&mut server)), []);
    }
    assert_eq!(server.world().players().collect::<Vec<_>>(), [PlayerId(1)]);
}

#[test]
fn fallen_player_loses_and_the_remaining_player_wins() {
    let mut server = joined(&['a', 'b']);
    let mut results = results(&play_until_a_player_falls(&mut server, &['a', 'b']));
    results.sort_by_key(|(_, result)| *result == GameOver::Winner);
    assert_eq!(
        results.iter().map(|(_, result)| *result).collect::<Vec<_>>(),
        [GameOver::Loser, GameOver::Winner]
    );
    assert_eq!(server.world().players().count(), 0);
}

#[test]
fn game_continues_after_the_first_of_three_players_falls() {
    let keys = ['a', 'b', 'c'];
    let mut server = joined(&keys);
    let results = results(&play_until_a_player_falls(&mut server, &keys));
    assert!(matches!(results.as_slice(), [(_, GameOver::Loser)]), "{results:?}");
    assert_eq!(server.world().players().count(), 2);
}

#[test]
fn connection_closes_when_the_result_is_acknowledged_or_a_second_later() {
    let mut server = joined(&['a', 'b']);
    play_until_a_player_falls(&mut server, &['a', 'b']);
    server.tick();
    assert_eq!(poll(&mut server), []);
    // One client acknowledges everything, the other nothing.
    server.handle_drained('a');
    assert_eq!(poll(&mut server), [Done::Closed('a')]);
    (0..58).for_each(|_| server.tick());
    assert_eq!(poll(&mut server), []);
    server.tick();
    assert_eq!(poll(&mut server), [Done::Closed('b')]);
    let before = server.stats().ignored;
    ask(&mut server, 'b', 1, RequestKind::Ping);
    assert_eq!((poll(&mut server), server.stats().ignored), (vec![], before + 1));
}

#[test]
fn drained_connection_stays_open_before_the_game_is_over() {
    let mut server = joined(&['a']);
    server.handle_drained('a');
    server.handle_drained('z');
    assert_eq!(poll(&mut server), []);
}

/// The original game has the same bug: no player wins, and the server continues.
#[test]
fn last_two_players_falling_together_both_lose() {
    let mut server = joined(&['a', 'b']);
    server.world.leave(PlayerId(1));
    server.world.leave(PlayerId(2));
    let fallen: Fallen = [PlayerId(1), PlayerId(2)].into_iter().collect();
    server.check_win_condition(&fallen);
    assert_eq!(results(&poll(&mut server)), [('a', GameOver::Loser), ('b', GameOver::Loser)]);
    server.tick();
}

/// Creates a server with a full game, which one more player has requested to join. The keys are numbers.
fn full_game() -> Server<usize> {
    let mut server = Server::<usize>::new(1);
    let init = ClientMessage::Request(Request { channel: Channel(1), kind: RequestKind::Init });
    let init = to_vec(&init).expect("a packed message");
    for connection in 0..=MAX_PLAYERS {
        server.handle_connected(connection).expect("a free slot");
        server.handle_message(connection, &init.as_slice());
    }
    server
}

#[test]
fn full_game_is_reported_to_new_players() {
    let (mut server, mut buffer) = (full_game(), [0; MAX_MESSAGE]);
    let mut last = Vec::new();
    while let Some(Output::Send { to, payload, .. }) = server.poll_output(&mut buffer) {
        if to == MAX_PLAYERS {
            last = payload.to_vec();
        }
    }
    let ServerMessage::Response(response) = unpack(&last).expect("a valid message from the server") else {
        panic!("no response")
    };
    assert_eq!(response.kind, ResponseKind::Error(Text::new("The game is full")));
}

#[test]
fn snapshots_of_a_full_game_fit_in_half_of_the_maximum_message() {
    let (mut server, mut buffer) = (full_game(), [0; MAX_MESSAGE]);
    while server.poll_output(&mut buffer).is_some() {}
    server.tick();
    while let Some(output) = server.poll_output(&mut buffer) {
        let Output::Send { payload, .. } = output else { panic!("no connection should be closed") };
        assert!(payload.len() < MAX_MESSAGE / 2);
    }
}

/// Runs an attack from the third of three clients, and checks that the others are not affected.
fn attack(attack: impl FnOnce(&mut Server<Key>)) -> Vec<Done> {
    let mut server = joined(&['a', 'b', 'x']);
    attack(&mut server);
    let mut all = poll(&mut server);
    let start = server.world.time();
    for time in start + 1..=start + 60 {
        server.tick();
        let done = poll(&mut server);
        let sent = |key| done.iter().find(|done| matches!(done, Done::Sent(to, ..) if *to == key));
        for key in ['a', 'b'] {
            let snapshot = sent(key).expect("every client has a snapshot of every tick");
            assert!(matches!(message(snapshot), ServerMessage::Event(event) if event.time == time));
            assert!(players(&entities_in(snapshot)).iter().all(|player| player.health == 3));
            assert!(entities_in(snapshot).iter().all(|entity| is_somewhere(&entity)));
        }
        all.extend(done);
    }
    ask(&mut server, 'a', 77, RequestKind::Ping);
    assert_eq!(message(&poll(&mut server)[0]), pong(77));
    all
}

/// Lets the third player gather an object, and returns the player's position.
fn arm(server: &mut Server<Key>) -> Point {
    for _ in 0..60 * 60 {
        let entities = server.world.entities();
        let me = entities.iter().find_map(|entity| match entity.kind {
            EntityKind::Player(player) if player.owner == PlayerId(3) => Some(player),
            EntityKind::Player(_) | EntityKind::Object(_) | EntityKind::Dead => None,
        });
        let held = entities.iter().find(|entity| me.is_some_and(|me| me.holding == Some(entity.id)));
        if let Some(Entity { kind: EntityKind::Object(object), .. }) = held {
            act(server, 'x', ActionKind::Move(Move { direction: Direction::NONE }));
            server.tick();
            poll(server);
            return object.position;
        }
        let input = crate::bot::decide(&entities, PlayerId(3));
        act(server, 'x', ActionKind::Move(Move { direction: input.movement }));
        act(server, 'x', ActionKind::Break(Break { entity: input.breaking }));
        server.tick();
        poll(server);
    }
    panic!("the bot found no object");
}

/// Returns true if the third player holds an object in the last snapshot.
fn holds(done: &[Done]) -> bool {
    let last = done.iter().rfind(|done| matches!(done, Done::Sent('a', Delivery::Unreliable, _)));
    let players = players(&entities_in(last.expect("a snapshot of every tick")));
    players.iter().any(|player| player.owner == PlayerId(3) && player.holding.is_some())
}

fn is_somewhere(entity: &Entity) -> bool {
    match entity.kind {
        EntityKind::Object(object) => object.position.length() < 1_000.0,
        EntityKind::Player(player) => player.position.length() < 1_000.0,
        EntityKind::Dead => true,
    }
}

fn is_closed(done: &[Done]) -> bool {
    done.contains(&Done::Closed('x'))
}

#[test]
fn first_message_other_than_init_closes_its_connection() {
    for first in [
        ClientMessage::Request(Request { channel: Channel(0), kind: RequestKind::Ping }),
        ClientMessage::Action(Action { kind: ActionKind::Break(Break::default()) }),
    ] {
        let mut server = joined(&['a']);
        server.handle_connected('x').expect("a free slot");
        say(&mut server, 'x', first);
        assert_eq!(poll(&mut server), [Done::Closed('x')]);
        assert_eq!(server.stats().malformed, 1);
    }
}

/// A connection that has joined stays open.
#[test]
fn connection_that_never_joins_is_closed_after_ten_seconds() {
    let mut server = joined(&['a']);
    server.tick();
    server.handle_connected('x').expect("a free slot");
    let closed = |server: &mut Server<Key>| {
        server.tick();
        is_closed(&poll(server))
    };
    assert!((1..session::TIME_TO_JOIN).all(|_| !closed(&mut server)));
    assert!(closed(&mut server));
    assert_eq!(server.world().players().count(), 1);
    ask(&mut server, 'a', 2, RequestKind::Ping);
    assert_eq!(message(&poll(&mut server)[0]), pong(2));
}

#[test]
fn connections_that_never_join_are_closed_and_free_their_slots() {
    let mut server = Server::<usize>::new(1);
    for connection in 0..MAX_SESSIONS {
        server.handle_connected(connection).expect("a free slot");
    }
    assert_eq!(server.handle_connected(MAX_SESSIONS), Err(Full));
    (0..session::TIME_TO_JOIN).for_each(|_| server.tick());
    let mut buffer = [0; MAX_MESSAGE];
    let mut closed = 0;
    while let Some(output) = server.poll_output(&mut buffer) {
        closed += usize::from(matches!(output, Output::Close { .. }));
    }
    assert_eq!(closed, MAX_SESSIONS);
    assert_eq!(server.handle_connected(MAX_SESSIONS), Ok(()));
}

#[test]
fn refused_client_gets_the_error_before_the_close() {
    let mut server = Server::new(5);
    while server.world.join().is_some() {}
    server.handle_connected('x').expect("a free slot");
    (1..session::TIME_TO_JOIN).for_each(|_| server.tick());
    ask(&mut server, 'x', 1, RequestKind::Init);
    server.tick();
    assert!(matches!(
        poll(&mut server).as_slice(),
        [Done::Sent('x', Delivery::Reliable, _), Done::Closed('x')]
    ));
}

#[test]
fn pending_output_is_found_after_connections_close() {
    let mut server = joined(&['a', 'b', 'c']);
    server.tick();
    let mut buffer = [0; MAX_MESSAGE];
    for _ in 0..3 {
        assert!(server.poll_output(&mut buffer).is_some());
    }
    ['c', 'b'].into_iter().for_each(|gone| server.handle_disconnected(gone));
    server.tick();
    assert!(matches!(server.poll_output(&mut buffer), Some(Output::Send { to: 'a', .. })));
}

/// No client message contains a count, so the server reads these bytes as an action or as malformed.
#[test]
fn excessive_counts_do_not_affect_other_players() {
    let snapshot = to_vec(&(false, 7_u32, false, u32::MAX)).expect("a packed message");
    let connect = to_vec(&(true, 0_u32, (false, true), 1_u32, u32::MAX)).expect("a packed message");
    let mut text = to_vec(&(true, 0_u32, (false, false), u32::MAX)).expect("a packed message");
    text.extend([0xFF; 8]);
    for bytes in [snapshot, connect, text] {
        attack(|server| deliver(server, 'x', &bytes));
    }
    let kind_three = to_vec(&(true, (true, true), u32::MAX)).expect("a packed message");
    assert!(is_closed(&attack(|server| deliver(server, 'x', &kind_three))));
}

#[test]
fn unknown_variant_closes_only_its_sender() {
    assert!(is_closed(&attack(|server| deliver(server, 'x', &[0x07]))));
}

#[test]
fn empty_message_closes_only_its_sender() {
    assert!(is_closed(&attack(|server| deliver(server, 'x', &[]))));
}

#[test]
fn nan_positions_change_nothing() {
    for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let done = attack(|server| {
            arm(server);
            for target in [
                Point::new(number, 0.0, 0.0),
                Point::new(0.0, number, 0.0),
                Point::new(number, number, number),
            ] {
                act(server, 'x', ActionKind::Throw(Throw { target }));
            }
        });
        assert!(!is_closed(&done) && holds(&done));
    }
    for number in [f32::MAX, f32::MIN, f32::MIN_POSITIVE] {
        let done = attack(|server| {
            arm(server);
            act(server, 'x', ActionKind::Throw(Throw { target: Point::new(number, number, number) }));
        });
        assert!(!is_closed(&done));
    }
}

#[test]
fn unknown_entities_and_directions_change_nothing() {
    for entity in [0, 301, 302, 303, 304, u32::MAX] {
        let done = attack(|server| {
            act(server, 'x', ActionKind::Break(Break { entity: Some(EntityId(entity)) }));
            act(server, 'x', ActionKind::Move(Move { direction: Direction(0xFF) }));
        });
        assert!(!is_closed(&done));
    }
}

#[test]
fn throw_at_its_thrower_harms_no_player() {
    let done = attack(|server| {
        let target = arm(server);
        act(server, 'x', ActionKind::Throw(Throw { target }));
    });
    assert!(!is_closed(&done) && holds(&done), "its own position is not a valid target");
    let done = attack(|server| {
        arm(server);
        let target = server.world.position_of(PlayerId(3)).expect("a player");
        act(server, 'x', ActionKind::Throw(Throw { target }));
    });
    assert!(!is_closed(&done) && !holds(&done), "the object falls to the ground");
}

#[test]
fn truncated_message_closes_only_its_sender() {
    let target = Point::new(1.0, 2.0, 3.0);
    let messages = [
        ClientMessage::Request(Request { channel: Channel(u32::MAX), kind: RequestKind::Ping }),
        ClientMessage::Action(Action { kind: ActionKind::Throw(Throw { target }) }),
        ClientMessage::Action(Action { kind: ActionKind::Break(Break { entity: Some(EntityId(70_000)) }) }),
        ClientMessage::Action(Action { kind: ActionKind::Move(Move { direction: Direction::EAST }) }),
    ];
    for message in messages {
        let bytes = to_vec(&message).expect("a packed message");
        for length in 0..bytes.len() {
            let done = attack(|server| deliver(server, 'x', &bytes[..length]));
            assert!(is_closed(&done), "{message:?} cut to {length}");
        }
    }
}

#[test]
fn unpolled_server_limits_the_responses_to_a_request_flood() {
    let done = attack(|server| {
        (0..10_000).for_each(|channel| ask(server, 'x', channel, RequestKind::Ping));
        assert_eq!(server.stats().dropped, 10_000 - session::MAX_PENDING as u64);
    });
    assert!(!is_closed(&done));
}

#[test]
fn messages_of_unknown_connections_are_ignored() {
    attack(|server| {
        ask(server, 'y', 1, RequestKind::Init);
        server.handle_disconnected('y');
        assert_eq!(server.stats().ignored, 1);
    });
}

#[test]
fn a_buffer_that_is_too_small_drops_only_the_current_message() {
    let mut server = Server::new(5);
    server.handle_connected('a').expect("a free slot");
    ask(&mut server, 'a', 1, RequestKind::Init);
    assert!(server.poll_output(&mut [0; 100]).is_none());
    assert_eq!(server.stats().dropped, 1);
    server.tick();
    assert_eq!(poll(&mut server).len(), 1);
}

#[test]
fn snapshot_is_packed_once_per_tick() {
    let mut server = joined(&['a', 'b', 'c']);
    server.tick();
    let mut buffer = [0; MAX_MESSAGE];
    let mut places = Vec::new();
    while let Some(output) = server.poll_output(&mut buffer) {
        let Output::Send { payload, .. } = output else { panic!("no connection should be closed") };
        places.push(payload.as_ptr());
    }
    assert_eq!(places.len(), 3);
    assert!(places.iter().all(|place| *place == places[0]), "all clients must get the same bytes");
    assert_ne!(places[0], buffer.as_ptr(), "the snapshot must not be packed into the caller's buffer");
}

/// Sends a request to join with the given scope.
fn ask_for(server: &mut Server<Key>, from: Key, scope: Scope) {
    let request = Request { channel: Channel(0), kind: RequestKind::Init };
    let mut init = to_vec(&ClientMessage::Request(request)).expect("a packed message");
    let length = init.len();
    init.resize(length + 2, 0);
    scope.write(&mut init, length);
    deliver(server, from, &init);
}

fn ask_for_changes(server: &mut Server<Key>, from: Key) {
    ask_for(server, from, Scope::Changes);
}

#[test]
fn client_can_request_only_changes() {
    let mut server = joined(&['a']);
    server.handle_connected('b').expect("a free slot");
    ask_for_changes(&mut server, 'b');
    let done = poll(&mut server);
    let Done::Sent('b', Delivery::Reliable, payload) = &done[0] else { panic!("no answer: {done:?}") };
    let mut reader = Reader::new(payload);
    let answer = ServerMessage::unpack(&mut reader).expect("a valid message from the server");
    assert!(matches!(answer, ServerMessage::Response(Response { kind: ResponseKind::Connect(_), .. })));
    assert_eq!(Scope::read(&mut reader), Scope::Changes, "the server must confirm the scope");
    (0..100).for_each(|_| {
        server.tick();
        poll(&mut server);
    });
    act(&mut server, 'a', ActionKind::Move(Move { direction: Direction::EAST }));
    let (mut whole, mut changes) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        server.tick();
        for done in poll(&mut server) {
            let count = entities_in(&done).len();
            let Done::Sent(to, ..) = done else { panic!("no connection should be closed") };
            if to == 'a' { whole.push(count) } else { changes.push(count) }
        }
    }
    assert_eq!((whole.len(), changes.len()), (10, 5), "delta snapshots are sent every other tick");
    assert!(whole.iter().all(|count| *count == 302));
    assert!(changes.iter().all(|count| (1..10).contains(count)), "{changes:?}");
}

/// Returns the scope that the server confirms in its response to Init, and the number of entities in that response.
fn agreed(done: &[Done]) -> (Scope, usize) {
    let Some(Done::Sent(_, Delivery::Reliable, payload)) = done.first() else {
        panic!("no answer: {done:?}")
    };
    let mut reader = Reader::new(payload);
    let answer = ServerMessage::unpack(&mut reader).expect("a valid message from the server");
    let ServerMessage::Response(Response { kind: ResponseKind::Connect(connect), .. }) = answer else {
        panic!("no Connect: {answer:?}")
    };
    (Scope::read(&mut reader), connect.snapshot.entities.len())
}

/// A connection without replication gets whole snapshots instead.
#[test]
fn replication_is_used_only_where_it_is_offered() {
    let mut server = Server::new(5);
    for (connection, is_offered) in [('a', true), ('b', false), ('c', true)] {
        server.handle_connected(connection).expect("a free slot");
        if is_offered {
            server.offer_replication(connection);
        }
    }
    ask_for(&mut server, 'a', Scope::Replicated);
    assert_eq!(agreed(&poll(&mut server)), (Scope::Replicated, 1), "the only entity is its own player");
    ask_for(&mut server, 'b', Scope::Replicated);
    assert_eq!(agreed(&poll(&mut server)), (Scope::Whole, 302));
    ask(&mut server, 'c', 0, RequestKind::Init);
    assert_eq!(agreed(&poll(&mut server)), (Scope::Whole, 303));
    let replicated = |server: &Server<Key>| server.replicated().collect::<Vec<_>>();
    assert_eq!(replicated(&server), [('a', PlayerId(1))]);
    server.tick();
    assert!(poll(&mut server).iter().all(|done| !matches!(done, Done::Sent('a', ..))));
    server.handle_congestion(|connection| connection == 'a');
    assert_eq!(replicated(&server), []);
    server.handle_congestion(|_| false);
    assert_eq!(replicated(&server), [('a', PlayerId(1))]);
    server.handle_disconnected('a');
    assert_eq!(replicated(&server), []);
}

#[test]
fn departed_players_and_removed_objects_are_reported_dead() {
    let mut server = joined(&['a']);
    server.handle_connected('b').expect("a free slot");
    ask_for_changes(&mut server, 'b');
    server.tick();
    poll(&mut server);
    server.handle_disconnected('a');
    let is_reported = (0..4).any(|_| {
        server.tick();
        poll(&mut server).iter().any(|done| {
            let dead = Entity { id: EntityId(301), kind: EntityKind::Dead };
            entities_in(done).iter().any(|entity| entity == dead)
        })
    });
    assert!(is_reported);
}

/// Sends an action that acknowledges the snapshot of a tick.
fn acknowledge(server: &mut Server<Key>, from: Key, time: u32) {
    let action = ClientMessage::Action(Action { kind: ActionKind::Break(Break::default()) });
    let mut bytes = to_vec(&action).expect("a packed message");
    let length = bytes.len();
    bytes.resize(16, 0);
    let length = SnapshotAck { time }.write(&mut bytes, length);
    deliver(server, from, &bytes[..length]);
}

/// Returns the numbers of snapshots that `a` and `b` get in `ticks` ticks. `a` acknowledges every snapshot, `b` none.
fn snapshots(server: &mut Server<Key>, ticks: u32) -> [u32; 2] {
    let mut counts = [0; 2];
    for _ in 0..ticks {
        server.tick();
        for done in poll(server) {
            let Done::Sent(to, Delivery::Unreliable, _) = done else { panic!("{done:?} is no snapshot") };
            counts[usize::from(to == 'b')] += 1;
        }
        let time = server.world.time();
        acknowledge(server, 'a', time);
    }
    counts
}

#[test]
fn only_a_client_that_is_behind_gets_fewer_snapshots() {
    let mut server = joined(&['a', 'b']);
    assert_eq!(snapshots(&mut server, 120), [120, 120], "a client that never acknowledges gets everything");
    let time = server.world.time();
    acknowledge(&mut server, 'b', time);
    let [a, b] = snapshots(&mut server, 600);
    assert_eq!(a, 600);
    assert!((30..60).contains(&b), "{b}");
    assert_eq!(server.stats().thinned, u64::from(600 - b));
    // Pacing does not affect responses to requests.
    ask(&mut server, 'b', 5, RequestKind::Ping);
    assert_eq!(message(&poll(&mut server)[0]), pong(5));
    // `b` catches up.
    for _ in 0..180 {
        server.tick();
        poll(&mut server);
        let time = server.world.time();
        ['a', 'b'].into_iter().for_each(|key| acknowledge(&mut server, key, time));
    }
    assert_eq!(snapshots(&mut server, 1), [1, 1]);
}

#[test]
fn client_with_a_backlog_gets_no_snapshots() {
    let mut server = joined(&['a', 'b']);
    server.handle_congestion(|key| key == 'b');
    assert_eq!(snapshots(&mut server, 60), [60, 0]);
    assert_eq!((server.stats().thinned, server.stats().backlogged), (0, 60));
    server.handle_congestion(|_| false);
    assert_eq!(snapshots(&mut server, 60), [60, 60]);
    assert_eq!(server.stats().backlogged, 60);
}

#[test]
fn backlog_does_not_delay_probes() {
    let mut server = joined(&['a', 'b']);
    snapshots(&mut server, 1);
    let time = server.world.time();
    acknowledge(&mut server, 'b', time);
    // `b` is behind and gets no further snapshot before the first probe.
    while snapshots(&mut server, 1) == [1, 1] {}
    while server.stats().thinned < 14 {
        assert_eq!(snapshots(&mut server, 1), [1, 0]);
    }
    server.handle_congestion(|key| key == 'b');
    assert_eq!(snapshots(&mut server, 1), [1, 0]);
    server.handle_congestion(|_| false);
    assert_eq!(snapshots(&mut server, 1), [1, 1], "a probe due during a backlog must follow the backlog");
    assert_eq!((server.stats().thinned, server.stats().backlogged), (14, 1));
}

#[test]
fn every_client_gets_every_snapshot_without_pacing() {
    let mut server = joined(&['a', 'b']);
    server.set_pacing(Pacing::Unpaced);
    snapshots(&mut server, 1);
    let time = server.world.time();
    acknowledge(&mut server, 'b', time);
    assert_eq!(snapshots(&mut server, 600), [600, 600]);
    // A transport backlog still stops snapshots.
    server.handle_congestion(|key| key == 'b');
    assert_eq!(snapshots(&mut server, 60), [60, 0]);
    assert_eq!((server.stats().thinned, server.stats().backlogged), (0, 60));
}

#[test]
fn false_acknowledgements_do_not_affect_other_players() {
    for time in [0, 1, 1_000, u32::MAX / 2, u32::MAX] {
        let done =
            attack(|server| (0..100).for_each(|more| acknowledge(server, 'x', time.wrapping_add(more))));
        assert!(!is_closed(&done));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_messages_do_not_affect_other_players(messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..12)) {
        attack(|server| messages.iter().for_each(|bytes| deliver(server, 'x', bytes)));
    }
}
