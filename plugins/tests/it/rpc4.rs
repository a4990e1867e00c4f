//! RPC4: compatibility with C++ RakNet, and hostile peers.

use core::time::Duration;

use proptest::prelude::*;
use rakwire::Instant;
use rakwire::codec::bitstream::{BitStreamReader, BitStreamWriter};
use rakwire::endpoint::{ConnectionId, Plugin, Verdict};
use rakwire::raknet::{Delivery, DisconnectReason, RakNet};
use rakwire::wire::WireError;
use rakwire_plugins::calls::rpc4::{Answer, Message, Rpc4};
use rakwire_plugins::calls::{CallError, CallFailure, MAX_NAME, Refusal, RegisterError};
use serde_json::Value;

use crate::support::{Collector, connections};

const TIMEOUT: Duration = Duration::from_secs(1);
const ORDERED: Delivery = Delivery::RELIABLE_ORDERED;

#[derive(Default)]
struct Game {
    noted: Vec<u32>,
    muted: Option<ConnectionId>,
}

type Calls = Rpc4<Game, 6, 4, 128>;

fn rpc4() -> Calls {
    let mut rpc4 = Calls::new(Game::default());
    let may_call = |game: &Game, caller| game.muted != Some(caller);
    rpc4.register_answered("Add", may_call, |_, _, arguments, answer| {
        answer.write(arguments.read::<u32>()?.wrapping_add(arguments.read()?))
    })
    .expect("enough space");
    rpc4.register("Note", may_call, note).expect("enough space");
    rpc4.connect("Hit", 1, may_call, note).expect("a free slot");
    rpc4.connect("Hit", 3, may_call, note_more).expect("a free slot");
    rpc4
}

fn note(game: &mut Game, _: ConnectionId, arguments: &mut BitStreamReader<'_>) -> Result<(), WireError> {
    game.noted.push(arguments.read()?);
    Ok(())
}

fn note_more(game: &mut Game, _: ConnectionId, arguments: &mut BitStreamReader<'_>) -> Result<(), WireError> {
    game.noted.push(arguments.read::<u32>()?.wrapping_add(100));
    Ok(())
}

fn receive(rpc4: &mut Calls, from: ConnectionId, bytes: &[u8]) {
    let plugin: &mut dyn Plugin<RakNet> = rpc4;
    assert_eq!(plugin.on_message(Instant::ZERO, from, ORDERED, &bytes), Verdict::Drop);
}

fn transmit(rpc4: &mut Calls, now: Instant) -> Vec<Vec<u8>> {
    let mut sender = Collector::<RakNet>::new();
    rpc4.update(now, &mut sender);
    sender.bytes()
}

fn encoded(message: Message<'_>) -> Vec<u8> {
    let mut buffer = [0; 1_000];
    let length = message.encode(&mut buffer).expect("enough space");
    buffer[..length].to_vec()
}

fn call(name: &str, is_answered: bool, arguments: &[u8]) -> Vec<u8> {
    encoded(Message::Call { name: name.as_bytes(), is_answered, arguments })
}

fn ask(rpc4: &mut Calls, to: ConnectionId) -> Result<(), CallError> {
    rpc4.call_answered(to, "Add", |bits| bits.write(2_u32).and_then(|()| bits.write(3_u32)), TIMEOUT)
}

/// Exchanges messages until none are left.
fn exchange(client: &mut Calls, server: &mut Calls, id: ConnectionId) {
    loop {
        let requests = transmit(client, Instant::ZERO);
        requests.iter().for_each(|message| receive(server, id, message));
        let answers = transmit(server, Instant::ZERO);
        answers.iter().for_each(|message| receive(client, id, message));
        if requests.is_empty() && answers.is_empty() {
            return;
        }
    }
}

fn answer(from: ConnectionId, outcome: Result<&[u8], CallFailure>) -> Answer<128> {
    let outcome = outcome.map(|bytes| heapless::Vec::from_slice(bytes).expect("enough space"));
    Answer { from, outcome }
}

#[test]
fn message_encoding_matches_the_test_vectors() {
    let vectors: Vec<Value> = serde_json::from_str(include_str!("../vectors/rpc4.json")).expect("valid JSON");
    assert_eq!(vectors.len(), 6);
    for vector in vectors {
        let text = |name: &str| vector[name].as_str().unwrap_or_default();
        let bytes = |name: &str| {
            let hex = text(name);
            let byte =
                |at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hexadecimal digits");
            (0..hex.len() / 2).map(byte).collect::<Vec<_>>()
        };
        let (name, payload) = (text("name").as_bytes(), bytes("payload"));
        let message = match text("message") {
            "call" => Message::Call { name, is_answered: false, arguments: &payload },
            "answered call" => Message::Call { name, is_answered: true, arguments: &payload },
            "answer" => Message::Answer { answer: &payload },
            "signal" => Message::Signal { name, arguments: &payload },
            _ => Message::Unknown { name },
        };
        let (hex, mut name) = (bytes("hex"), [0; MAX_NAME]);
        assert_eq!(encoded(message), hex, "{vector}");
        assert_eq!(Message::decode(&hex, &mut name), Some(message), "{vector}");
    }
}

#[test]
fn call_is_answered_and_slots_run_in_descending_order() {
    let id = connections::<RakNet>(1)[0];
    let (mut client, mut server) = (rpc4(), rpc4());
    ask(&mut client, id).expect("enough space");
    assert_eq!(ask(&mut client, id), Err(CallError::TooManyCalls), "only one call per peer may be open");
    client.call(id, "Note", |bits| bits.write(7_u32), ORDERED).expect("enough space");
    client.signal(id, "Hit", |bits| bits.write(9_u32), ORDERED).expect("enough space");
    client.signal(id, "Miss", |_| Ok(()), ORDERED).expect("enough space");
    exchange(&mut client, &mut server, id);
    assert_eq!(client.poll_answer(), Some(answer(id, Ok(&[0, 0, 0, 5]))));
    assert_eq!((client.poll_answer(), server.context.noted), (None, vec![7, 109, 9]));
}

#[test]
fn unregistered_or_forbidden_calls_do_not_run() {
    let id = connections::<RakNet>(1)[0];
    let (mut client, mut server) = (rpc4(), rpc4());
    server.context.muted = Some(id);
    let refused = Some(answer(id, Err(CallFailure::Refused(Refusal::Unknown))));
    ask(&mut client, id).expect("enough space");
    client.call(id, "Note", |bits| bits.write(7_u32), ORDERED).expect("enough space");
    client.signal(id, "Hit", |bits| bits.write(7_u32), ORDERED).expect("enough space");
    exchange(&mut client, &mut server, id);
    assert_eq!(client.poll_answer(), refused);
    let unknown = client.poll_unknown().map(|(from, name)| (from, name.to_vec()));
    assert_eq!((unknown, client.poll_unknown()), (Some((id, b"Note".to_vec())), None));
    assert_eq!((server.stats().calls, server.stats().refused, server.context.noted.len()), (0, 4, 0));

    server.context.muted = None;
    assert!(server.unregister("Add") && !server.unregister("Add"));
    ask(&mut client, id).expect("enough space");
    exchange(&mut client, &mut server, id);
    assert_eq!(client.poll_answer(), refused);
}

/// RPC4 has no error for short arguments, so the caller gets the error for an unknown function.
#[test]
fn calls_with_truncated_arguments_do_not_run() {
    let id = connections::<RakNet>(1)[0];
    let mut server = rpc4();
    receive(&mut server, id, &call("Add", true, &[1, 2, 3]));
    receive(&mut server, id, &call("Note", false, &[]));
    assert_eq!(transmit(&mut server, Instant::ZERO), [encoded(Message::Unknown { name: b"Add" })]);
    assert_eq!((server.stats().refused, server.context.noted.len()), (2, 0));
}

#[test]
fn names_are_limited_and_unique_per_kind() {
    let id = connections::<RakNet>(1)[0];
    let mut rpc4 = rpc4();
    let taken = rpc4.register("Note", |_, _| true, |_, _, _| Ok(()));
    assert_eq!(taken, Err(RegisterError::NameTaken));
    assert_eq!(rpc4.register("", |_, _| true, |_, _, _| Ok(())), Err(RegisterError::BadName));
    rpc4.register("Add", |_, _| true, |_, _, _| Ok(()))
        .expect("functions with and without an answer have separate names");
    rpc4.register("Another", |_, _| true, |_, _, _| Ok(())).expect("enough space");
    assert_eq!(rpc4.register("One more", |_, _| true, |_, _, _| Ok(())), Err(RegisterError::Full));
    let long = "x".repeat(MAX_NAME + 1);
    for name in ["", &long] {
        assert_eq!(rpc4.call(id, name, |_| Ok(()), ORDERED), Err(CallError::BadName));
        assert_eq!(rpc4.call_answered(id, name, |_| Ok(()), TIMEOUT), Err(CallError::BadName));
        assert_eq!(rpc4.signal(id, name, |_| Ok(()), ORDERED), Err(CallError::BadName));
    }
    let is_long = |bits: &mut BitStreamWriter<'_>| bits.string(&[0; 120]);
    assert_eq!(rpc4.signal(id, "Hit", is_long, ORDERED), Err(CallError::TooLong));
    receive(&mut rpc4, id, &call(&long, false, &[]));
    receive(&mut rpc4, id, &[74; 129]);
    assert_eq!(rpc4.stats().malformed, 2);
}

/// Callers that do not read their answers do not block other callers.
#[test]
fn call_flood_is_limited_per_caller() {
    let ids = connections::<RakNet>(3);
    let mut server = rpc4();
    let add = call("Add", true, &[0; 8]);
    for _ in 0..100 {
        receive(&mut server, ids[0], &add);
        receive(&mut server, ids[1], &add);
    }
    assert_eq!((server.stats().calls, server.stats().busy), (4, 196), "each caller gets two answers");
    receive(&mut server, ids[2], &add);
    let mut sender = Collector::<RakNet>::new();
    server.update(Instant::ZERO, &mut sender);
    let to: Vec<_> = sender.messages.iter().map(|(to, ..)| *to).collect();
    assert_eq!((to.len(), to.contains(&ids[2])), (4, true));
    // Calls without an answer, and signals, need no slot.
    for _ in 0..100 {
        receive(&mut server, ids[0], &call("Note", false, &[0; 4]));
    }
    assert_eq!((server.context.noted.len(), transmit(&mut server, Instant::ZERO).len()), (100, 0));
}

#[test]
fn only_the_called_peer_can_answer_and_only_once() {
    let ids = connections::<RakNet>(2);
    let mut client = rpc4();
    ask(&mut client, ids[0]).expect("enough space");
    transmit(&mut client, Instant::ZERO);
    let forged = encoded(Message::Answer { answer: &[6] });
    receive(&mut client, ids[1], &forged);
    assert_eq!((client.poll_answer(), client.stats().unexpected), (None, 1));
    receive(&mut client, ids[0], &forged);
    receive(&mut client, ids[0], &forged);
    assert_eq!(client.poll_answer(), Some(answer(ids[0], Ok(&[6]))));
    assert_eq!((client.poll_answer(), client.stats().unexpected), (None, 2));
}

/// Each peer occupies at most one entry in the queue of unknown functions.
#[test]
fn an_unknown_reply_for_a_function_that_was_not_called_does_not_fail_the_call() {
    let ids = connections::<RakNet>(2);
    let mut client = rpc4();
    ask(&mut client, ids[0]).expect("enough space");
    transmit(&mut client, Instant::ZERO);
    for number in 0..100 {
        receive(&mut client, ids[1], &encoded(Message::Unknown { name: &[b'a', number] }));
    }
    receive(&mut client, ids[0], &encoded(Message::Unknown { name: b"Sub" }));
    assert_eq!(client.poll_answer(), None);
    let unknown: Vec<_> = core::iter::from_fn(|| client.poll_unknown()).map(|(from, _)| from).collect();
    assert_eq!(unknown, [ids[1], ids[0]]);
    receive(&mut client, ids[0], &encoded(Message::Answer { answer: &[6] }));
    assert_eq!(client.poll_answer(), Some(answer(ids[0], Ok(&[6]))));
}

#[test]
fn an_unanswered_call_fails_at_its_timeout_or_at_the_disconnect() {
    let ids = connections::<RakNet>(2);
    let mut client = rpc4();
    ask(&mut client, ids[0]).expect("enough space");
    transmit(&mut client, Instant::ZERO);
    let plugin: &dyn Plugin<RakNet> = &client;
    assert_eq!(plugin.poll_timeout(), Some(Instant::ZERO + TIMEOUT));
    transmit(&mut client, Instant::ZERO + TIMEOUT);
    assert_eq!(client.poll_answer(), Some(answer(ids[0], Err(CallFailure::TimedOut))));
    let plugin: &dyn Plugin<RakNet> = &client;
    assert_eq!(plugin.poll_timeout(), None);
    // The late answer does not finish the next call.
    assert_eq!(ask(&mut client, ids[0]), Err(CallError::TooManyCalls));
    receive(&mut client, ids[0], &encoded(Message::Answer { answer: &[1] }));
    assert_eq!((client.poll_answer(), client.stats().unexpected), (None, 0));
    ask(&mut client, ids[0]).expect("the slot of the timed-out call is free");
    ask(&mut client, ids[1]).expect("enough space");
    for id in ids.iter().copied() {
        let plugin: &mut dyn Plugin<RakNet> = &mut client;
        plugin.on_disconnected(Instant::ZERO, id, DisconnectReason::Lost);
        assert_eq!(client.poll_answer(), Some(answer(id, Err(CallFailure::Disconnected))));
    }
    assert_eq!(transmit(&mut client, Instant::ZERO).len(), 0, "no reply is queued for closed connections");
}

/// A call that was never sent occupies no slot after its timeout.
#[test]
fn unsent_call_frees_its_slot() {
    let id = connections::<RakNet>(1)[0];
    let mut client = rpc4();
    ask(&mut client, id).expect("enough space");
    let mut sender = Collector::<RakNet> { room: 0, ..Collector::new() };
    client.update(Instant::ZERO, &mut sender);
    client.update(Instant::ZERO + TIMEOUT, &mut sender);
    assert_eq!(client.poll_answer(), Some(answer(id, Err(CallFailure::TimedOut))));
    ask(&mut client, id).expect("the unsent call left no open slot");
    sender.gone = Some(id);
    client.update(Instant::ZERO, &mut sender);
    assert!(matches!(client.poll_answer(), Some(Answer { outcome: Err(CallFailure::NotSent(_)), .. })));
}

proptest! {
    #[test]
    fn messages_round_trip(name in "[ -~]{0,64}", is_answered: bool, payload in proptest::collection::vec(any::<u8>(), 0..200)) {
        let name = name.as_bytes();
        for message in [
            Message::Call { name, is_answered, arguments: &payload },
            Message::Signal { name, arguments: &payload },
            Message::Answer { answer: &payload },
            Message::Unknown { name },
        ] {
            let (bytes, mut name) = (encoded(message), [0; MAX_NAME]);
            prop_assert_eq!(Message::decode(&bytes, &mut name), Some(message));
        }
    }

    #[test]
    fn arbitrary_bytes_get_at_most_one_answer(id in 73..=74_u8, kind in 0..4_u8, bytes in proptest::collection::vec(any::<u8>(), 0..150)) {
        let from = connections::<RakNet>(1)[0];
        let mut rpc4 = rpc4();
        let message: Vec<u8> = [id, kind].into_iter().chain(bytes).collect();
        receive(&mut rpc4, from, &message);
        prop_assert!(transmit(&mut rpc4, Instant::ZERO).len() <= 1);
    }
}
