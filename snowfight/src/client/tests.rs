//! The client's state transitions (docs/game.md#the-client), and messages from hostile servers.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use rakwire::codec::rabbit::{to_vec, unpack};

use super::*;
use crate::message::{Connect, EntityKind, Object, ObjectKind, Snapshot};

const NOW: Instant = Instant::ZERO;
const ENTITIES: [Entity; 1] = [Entity { id: EntityId(1), kind: EntityKind::Dead }];

fn taken(client: &mut Client) -> Vec<ClientMessage> {
    let mut buffer = [0; 16];
    let mut messages = Vec::new();
    while let Some((delivery, payload)) = client.poll_message(&mut buffer) {
        let message: ClientMessage = unpack(payload).expect("a valid message from the client");
        assert_eq!(message.delivery(), delivery);
        messages.push(message);
    }
    messages
}

fn deliver(client: &mut Client, message: &ServerMessage<'_>) -> bool {
    let bytes = to_vec(message).expect("a packed message");
    let pieces: Vec<_> = bytes.chunks(3).collect();
    client.handle_message(NOW, &pieces.as_slice()) != Ok(Update::Ignored)
}

fn connect(channel: Channel) -> ServerMessage<'static> {
    let snapshot = Snapshot { entities: List::new(&ENTITIES) };
    let kind = ResponseKind::Connect(Connect { player: PlayerId(4), snapshot });
    ServerMessage::Response(Response { channel, kind })
}

fn snapshot(time: u32) -> ServerMessage<'static> {
    ServerMessage::Event(Event {
        time,
        kind: EventKind::Snapshot(Snapshot { entities: List::new(&ENTITIES) }),
    })
}

fn over(result: GameOver) -> ServerMessage<'static> {
    ServerMessage::Event(Event { time: 1, kind: EventKind::GameOver(result) })
}

fn playing() -> Client {
    let mut client = Client::new();
    client.handle_connected();
    assert!(deliver(&mut client, &connect(INIT)));
    taken(&mut client);
    client
}

fn request(channel: u32, kind: RequestKind) -> ClientMessage {
    ClientMessage::Request(Request { channel: Channel(channel), kind })
}

fn action(kind: ActionKind) -> ClientMessage {
    ClientMessage::Action(Action { kind })
}

#[test]
fn unconnected_client_sends_nothing() {
    let mut client = Client::new();
    client.handle_frame(NOW, Input::default());
    assert_eq!((taken(&mut client), client.player(), client.result()), (vec![], None, None));
}

#[test]
fn connected_client_requests_to_join_once() {
    let mut client = Client::new();
    client.handle_connected();
    client.handle_connected();
    assert_eq!(taken(&mut client), [request(0, RequestKind::Init)]);
}

#[test]
fn client_joins_on_the_response_to_its_request() {
    let mut client = Client::new();
    client.handle_connected();
    taken(&mut client);
    // Snapshots, and a Connect with the channel of another request.
    assert!(!deliver(&mut client, &snapshot(1)));
    assert!(!deliver(&mut client, &connect(Channel(9))));
    client.handle_frame(NOW, Input::default());
    assert_eq!((taken(&mut client), client.player()), (vec![], None));
    let bytes = to_vec(&connect(INIT)).expect("a packed message");
    let joined = Update::Joined { player: PlayerId(4), entities: List::new(&ENTITIES) };
    assert_eq!(client.handle_message(NOW, &bytes.as_slice()), Ok(joined));
}

#[test]
fn view_shows_entities_up_to_its_capacity() {
    let client = playing();
    assert_eq!(client.player(), Some(PlayerId(4)));
    let mut view = View::<2>::new();
    view.update(&List::new(&ENTITIES));
    assert_eq!(view.entities(), ENTITIES);
    view.update(&List::new(&[ENTITIES[0]; 3]));
    assert_eq!(view.entities().len(), 2);
}

#[test]
fn outdated_snapshots_are_ignored() {
    let mut client = playing();
    assert!(deliver(&mut client, &snapshot(10)) && deliver(&mut client, &snapshot(12)));
    assert!(!deliver(&mut client, &snapshot(11)) && !deliver(&mut client, &snapshot(12)));
    assert!(deliver(&mut client, &snapshot(13)));
    // Ticks wrap around.
    let mut client = playing();
    assert!(deliver(&mut client, &snapshot(u32::MAX)) && deliver(&mut client, &snapshot(0)));
    assert!(!deliver(&mut client, &snapshot(u32::MAX)));
}

#[test]
fn client_pings_once_per_second_and_measures_the_round_trip() {
    let mut client = playing();
    let pings = |client: &mut Client, millis: u64| {
        client.handle_frame(Instant::from_micros(millis * 1_000), Input::default());
        let messages = taken(client);
        messages.iter().filter(|message| matches!(message, ClientMessage::Request(_))).count()
    };
    assert_eq!(
        [0, 500, 999, 1_000, 1_500, 2_000].map(|millis| pings(&mut client, millis)),
        [1, 0, 0, 1, 0, 1]
    );
    let pong = ServerMessage::Response(Response { channel: Channel(3), kind: ResponseKind::Pong });
    let bytes = to_vec(&pong).expect("a packed message");
    let now = Instant::from_micros(2_030_000);
    let known = Update::Pong { round_trip: Some(Duration::from_millis(30)) };
    assert_eq!(client.handle_message(now, &bytes.as_slice()), Ok(known));
    let pong = ServerMessage::Response(Response { channel: Channel(1), kind: ResponseKind::Pong });
    let bytes = to_vec(&pong).expect("a packed message");
    let unknown = Update::Pong { round_trip: None };
    assert_eq!(client.handle_message(now, &bytes.as_slice()), Ok(unknown));
}

#[test]
fn frame_sends_changed_input() {
    let mut client = playing();
    let target = Point::new(1.0, 2.0, 3.0);
    let input = Input { movement: Direction::WEST, breaking: Some(EntityId(7)), throw: Some(target) };
    client.handle_frame(NOW, input);
    let expected = [
        request(1, RequestKind::Ping),
        action(ActionKind::Move(Move { direction: Direction::WEST })),
        action(ActionKind::Break(Break { entity: Some(EntityId(7)) })),
        action(ActionKind::Throw(Throw { target })),
    ];
    assert_eq!(taken(&mut client), expected);
}

/// Messages are unordered, so the last action to arrive may be an outdated one.
#[test]
fn unchanged_actions_are_repeated_at_intervals() {
    let mut client = playing();
    let frame = |client: &mut Client, input| {
        client.handle_frame(NOW, input);
        let messages = taken(client);
        messages.iter().filter(|message| matches!(message, ClientMessage::Action(_))).count()
    };
    let still = Input::default();
    let counts: Vec<_> = (0..13).map(|_| frame(&mut client, still)).collect();
    assert_eq!(counts, [2, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1]);
    assert_eq!(frame(&mut client, Input { movement: Direction::EAST, ..still }), 1);
    assert_eq!(frame(&mut client, Input { movement: Direction::EAST, ..still }), 0);
    assert!(deliver(&mut client, &snapshot(1)));
}

/// Every third frame acknowledges the newest snapshot. The buffer has space for an acknowledgement after the longest
/// action.
#[test]
fn actions_acknowledge_the_newest_snapshot() {
    let mut client = playing();
    let acks = |client: &mut Client| {
        let input = Input { breaking: Some(EntityId(u32::MAX)), ..Input::default() };
        client.handle_frame(NOW, input);
        let (mut buffer, mut acks) = ([0; 16], Vec::new());
        while let Some((_, payload)) = client.poll_message(&mut buffer) {
            let mut reader = Reader::new(payload);
            ClientMessage::unpack(&mut reader).expect("a valid message from the client");
            acks.extend(SnapshotAck::read(&mut reader).map(|ack| ack.time));
        }
        acks
    };
    assert_eq!(acks(&mut client), [], "nothing can be acknowledged before the first snapshot");
    assert!(deliver(&mut client, &snapshot(70_000)) && deliver(&mut client, &snapshot(u32::MAX / 3)));
    let mut frames = (0..6).map(|_| acks(&mut client));
    let expected = [vec![], vec![], vec![u32::MAX / 3], vec![], vec![], vec![u32::MAX / 3]];
    assert!(expected.iter().all(|expected| frames.next().as_ref() == Some(expected)));
}

#[test]
fn whole_snapshot_time_is_read_without_handling_the_message() {
    let time = |client: &Client, message: &ServerMessage<'_>| {
        client.whole_snapshot_time(&to_vec(message).expect("a packed message").as_slice())
    };
    let client = playing();
    assert_eq!(time(&client, &snapshot(70_000)), Some(70_000));
    for other in [connect(INIT), over(GameOver::Winner), over(GameOver::Loser)] {
        assert_eq!(time(&client, &other), None);
    }
    assert_eq!(client.whole_snapshot_time(&[0_u8; 0].as_slice()), None);
    assert_eq!(time(&Client::new(), &snapshot(7)), None, "the client is not in a game");
    let mut client = Client::with_scope(Scope::Changes);
    client.handle_connected();
    let mut bytes = to_vec(&connect(INIT)).expect("a packed message");
    let length = bytes.len();
    bytes.resize(length + 2, 0);
    Scope::Changes.write(&mut bytes, length);
    assert!(client.handle_message(NOW, &bytes.as_slice()).is_ok());
    assert_eq!(time(&client, &snapshot(7)), None, "a delta snapshot does not replace an earlier one");
}

#[test]
fn finished_client_ignores_further_messages() {
    let mut client = playing();
    client.handle_frame(NOW, Input::default());
    assert!(deliver(&mut client, &over(GameOver::Winner)));
    assert_eq!(
        (client.result(), client.player(), taken(&mut client)),
        (Some(GameOver::Winner), None, vec![])
    );
    assert!(!deliver(&mut client, &snapshot(99)) && !deliver(&mut client, &over(GameOver::Loser)));
    client.handle_disconnected();
    assert_eq!(client.result(), Some(GameOver::Winner));
}

/// Both messages are reliable but unordered, so the result may overtake Connect.
#[test]
fn a_result_that_precedes_the_join_response_is_kept() {
    let mut client = Client::new();
    assert!(!deliver(&mut client, &over(GameOver::Loser)), "the client has not requested to join");
    client.handle_connected();
    assert!(deliver(&mut client, &over(GameOver::Loser)));
    assert!(!deliver(&mut client, &connect(INIT)));
    let state = (client.result(), client.player(), taken(&mut client));
    assert_eq!(state, (Some(GameOver::Loser), None, vec![]));
}

#[test]
fn client_starts_over_after_a_disconnect() {
    let mut client = playing();
    client.handle_disconnected();
    assert_eq!(client.player(), None);
    client.handle_connected();
    assert_eq!(taken(&mut client), [request(0, RequestKind::Init)]);
}

#[test]
fn a_rejected_join_request_returns_the_reason_of_the_server() {
    let mut client = playing();
    let error = ResponseKind::Error(Text::new("no ☃"));
    let bytes =
        to_vec(&ServerMessage::Response(Response { channel: INIT, kind: error })).expect("a packed message");
    let update = Update::Rejected(Text::new("no ☃"));
    assert_eq!(client.handle_message(NOW, &bytes.as_slice()), Ok(update));
}

#[test]
fn excessive_counts_are_errors() {
    let mut client = playing();
    // An event with a snapshot, a Connect and an error, each with a length of 2^32-1.
    let snapshot = to_vec(&(false, 7_u32, false, u32::MAX)).expect("a packed message");
    let mut error = to_vec(&(true, 0_u32, (false, false), u32::MAX)).expect("a packed message");
    error.extend([0x41; 30]);
    for bytes in [snapshot, error] {
        let error = client.handle_message(NOW, &bytes.as_slice()).expect_err("an excessive count");
        assert!(
            matches!(error.kind, rakwire::codec::rabbit::ErrorKind::TooMany { count: u32::MAX, .. }),
            "{error}"
        );
    }
    assert_eq!(client.player(), Some(PlayerId(4)));
}

#[test]
fn truncated_message_is_an_error() {
    for message in [snapshot(70_000), connect(Channel(300)), over(GameOver::Winner)] {
        let bytes = to_vec(&message).expect("a packed message");
        for length in 0..bytes.len() {
            let mut client = playing();
            assert!(client.handle_message(NOW, &&bytes[..length]).is_err());
            assert_eq!(client.player(), Some(PlayerId(4)));
        }
    }
}

#[test]
fn unpolled_client_limits_its_queue() {
    let mut client = playing();
    for frame in 0..10_000_u64 {
        client.handle_frame(Instant::from_micros(frame * 16_667), Input::default());
    }
    assert_eq!(taken(&mut client).len(), MAX_QUEUED);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn client_continues_after_arbitrary_messages(bytes: Vec<u8>) {
        let mut client = playing();
        if let Ok(Update::Snapshot { entities, .. }) = client.handle_message(NOW, &bytes.as_slice()) {
            prop_assert_eq!(entities.iter().count(), entities.len());
        }
        client.handle_frame(NOW, Input::default());
        taken(&mut client);
    }
}

#[test]
fn only_entities_without_updates_expire() {
    let object = |id| {
        let object = Object {
            position: Point::default(),
            kind: ObjectKind::Tree,
            durability: Some(1.0),
            health: 3,
            max_health: 3,
        };
        Entity { id: EntityId(id), kind: EntityKind::Object(object) }
    };
    let mut view = View::<4>::new();
    view.update(&List::new(&[object(1), object(2)]));
    let start = u32::MAX - 100;
    view.merge(start, &List::new(&[object(3)]));
    for passed in (0..=Scope::EXPIRY_TICKS).step_by(2) {
        view.merge(start.wrapping_add(passed), &List::new(&[object(2)]));
        assert_eq!(view.entities().len(), 3, "after {passed} ticks");
    }
    view.merge(start.wrapping_add(Scope::EXPIRY_TICKS + 1), &List::new(&[]));
    assert_eq!(view.entities(), [object(2)]);
    let dead = Entity { id: EntityId(2), kind: EntityKind::Dead };
    view.merge(0, &List::new(&[dead, object(4)]));
    assert_eq!(view.entities(), [object(4)]);
}
