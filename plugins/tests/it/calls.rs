//! Remote calls, over both protocols where the protocol makes a difference.

use core::task::Poll;
use core::time::Duration;

use proptest::prelude::*;
use rakwire::Instant;
use rakwire::codec::bitstream::{BitStreamReader, BitStreamWriter};
use rakwire::codec::rabbit::{List, Pack, Text, Unpack};
use rakwire::endpoint::{
    Capacity, ConnectionId, Event, Hooked, Peer, Plugin, PluginHost, PluginKey, Protocol, SendError, Verdict,
};
use rakwire::game_protocol::GameProtocol;
use rakwire::raknet::{Channel, Delivery, DisconnectReason, RakNet};
use rakwire::sim::{Conditions, Pair};
use rakwire_plugins::calls::{
    CallError, CallFailure, DeferredHandler, Function, Handler, MAX_NAME, Message, PendingCall, Refusal,
    RegisterError, RemoteCalls,
};
use serde_json::Value;

use crate::support::{Collector, connections};

const TIMEOUT: Duration = Duration::from_secs(1);
const ORDERED: Delivery = Delivery::RELIABLE_ORDERED;

macro_rules! function {
    ($name:ident, $text:expr, $arguments:ty, $answer:ty) => {
        struct $name;

        impl Function for $name {
            const NAME: &'static str = $text;
            type Arguments<'a> = $arguments;
            type Answer<'a> = $answer;
        }
    };
}

mod deferred;
mod schemas;

function!(Add, "add", (u32, u32), u32);
function!(Shout, "shout", Text<'a>, Text<'a>);
function!(Sum, "sum", List<'a, u32>, u64);
function!(Moved, "moved", u8, ());
function!(Nameless, "", (), ());
function!(Long, "a name of 65 bytes, which is one more than the names of functions have", (), ());

/// The strength of a throw.
#[derive(Clone, Copy, Debug, PartialEq, Pack, Unpack)]
enum Power {
    Weak,
    Charged(u8),
}

#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
struct Shot<'a> {
    at: (i16, i16),
    power: Power,
    name: Text<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Pack, Unpack)]
struct Hit {
    distance: u32,
    is_deadly: bool,
}

function!(Throw, "throw", Shot<'a>, Hit);

impl Handler<Self, Game> for Throw {
    fn is_allowed(_: &Game, _: ConnectionId) -> bool {
        true
    }

    fn handle(game: &mut Game, _: ConnectionId, Shot { at, power, name }: Shot<'_>) -> Result<Hit, Refusal> {
        game.log.push(format!("{name}"));
        let distance = [at.0, at.1].map(|axis| u32::from(axis.unsigned_abs()).pow(2)).iter().sum();
        Ok(Hit { distance, is_deadly: power != Power::Weak })
    }
}

/// The context of the handlers.
#[derive(Default)]
struct Game {
    log: Vec<String>,
    shouted: String,
    muted: Option<ConnectionId>,
}

impl Handler<Self, Game> for Add {
    fn is_allowed(game: &Game, caller: ConnectionId) -> bool {
        game.muted != Some(caller)
    }

    fn handle(game: &mut Game, _: ConnectionId, (a, b): (u32, u32)) -> Result<u32, Refusal> {
        game.log.push(format!("{a} + {b}"));
        a.checked_add(b).ok_or(Refusal::Failed(12))
    }
}

impl Handler<Self, Game> for Shout {
    fn is_allowed(_: &Game, _: ConnectionId) -> bool {
        true
    }

    fn handle<'c>(game: &'c mut Game, _: ConnectionId, text: Text<'_>) -> Result<Text<'c>, Refusal> {
        game.shouted = format!("{text}").to_uppercase().repeat(10);
        Ok(Text::new(game.shouted.as_str()))
    }
}

impl Handler<Self, Game> for Sum {
    fn is_allowed(_: &Game, _: ConnectionId) -> bool {
        true
    }

    fn handle(_: &mut Game, _: ConnectionId, numbers: List<'_, u32>) -> Result<u64, Refusal> {
        Ok(numbers.iter().map(u64::from).sum())
    }
}

macro_rules! listener {
    ($name:ident, $is_strict:expr) => {
        struct $name;

        impl Handler<Moved, Game> for $name {
            fn is_allowed(game: &Game, caller: ConnectionId) -> bool {
                let is_strict: bool = $is_strict;
                !is_strict || game.muted != Some(caller)
            }

            fn handle(game: &mut Game, _: ConnectionId, how: u8) -> Result<(), Refusal> {
                game.log.push(format!("{} {how}", stringify!($name)));
                Ok(())
            }
        }
    };
}

listener!(First, false);
listener!(Second, true);
listener!(Third, false);

type Calls = RemoteCalls<RakNet, Game, 6, 4, 128>;
type Client = RemoteCalls<RakNet, (), 1, 4, 128>;

fn server() -> Calls {
    let mut calls = Calls::new(Game::default());
    calls.register::<Add, Add>().expect("enough space");
    calls.register::<Shout, Shout>().expect("enough space");
    calls.register::<Sum, Sum>().expect("enough space");
    calls
}

fn receive(calls: &mut dyn Plugin<RakNet>, from: ConnectionId, bytes: &[u8]) {
    assert_eq!(calls.on_message(Instant::ZERO, from, ORDERED, &bytes), Verdict::Drop);
}

fn transmit(calls: &mut dyn Plugin<RakNet>, now: Instant) -> Vec<Vec<u8>> {
    let mut sender = Collector::new();
    calls.update(now, &mut sender);
    sender.bytes()
}

/// Exchanges messages until both queues are empty.
fn exchange(client: &mut Client, server: &mut Calls, id: ConnectionId) {
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

fn call(
    client: &mut Client,
    server: &mut Calls,
    id: ConnectionId,
    a: u32,
    b: u32,
) -> Result<u32, CallFailure> {
    let call = client.call::<Add>(id, &(a, b), TIMEOUT, ORDERED).expect("enough space");
    exchange(client, server, id);
    let finished = client.poll_finished().expect("the call has finished");
    assert_eq!((finished.id, client.poll_finished().is_none()), (call, true));
    finished.answer::<Add>()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex")).collect()
}

#[test]
fn message_encoding_matches_the_test_vectors() {
    let vectors: Vec<Value> =
        serde_json::from_str(include_str!("../vectors/calls.json")).expect("valid JSON");
    assert_eq!(vectors.len(), 7);
    for vector in vectors {
        let text = |name: &str| vector[name].as_str().unwrap_or_default();
        let (expected, payload) = (bytes(text("hex")), bytes(text("payload")));
        let number = vector["number"].as_u64().unwrap_or_default() as u32;
        let name = text("name").as_bytes();
        let message = match text("message") {
            "call" => Message::Call { number, name, arguments: &payload },
            "answer" => Message::Answer { number, answer: &payload },
            "signal" => Message::Signal { name, arguments: &payload },
            _ if text("refusal") == "failed" => Message::Refusal {
                number,
                refusal: Refusal::Failed(vector["code"].as_u64().unwrap_or(0) as u8),
            },
            _ => Message::Refusal { number, refusal: Refusal::Unknown },
        };
        let mut buffer = [0; 64];
        let length = message.encode(&mut buffer).expect("enough space");
        assert_eq!((&buffer[..length], Message::decode(&expected)), (&expected[..], Some(message)));
    }
}

#[test]
fn call_returns_the_answer_of_the_function() {
    let id = connections::<RakNet>(1)[0];
    let (mut client, mut server) = (Client::new(()), server());
    assert_eq!(call(&mut client, &mut server, id, 2, 3), Ok(5));
    assert_eq!(
        call(&mut client, &mut server, id, u32::MAX, 1),
        Err(CallFailure::Refused(Refusal::Failed(12)))
    );
    assert_eq!((server.stats().calls, server.stats().refused), (2, 1));
    // The answer borrows text from the context of the handler.
    client.call::<Shout>(id, &Text::new("hey"), TIMEOUT, ORDERED).expect("enough space");
    exchange(&mut client, &mut server, id);
    let finished = client.poll_finished().expect("the call has finished");
    assert_eq!(finished.answer::<Shout>().map(|text| format!("{text}")), Ok("HEY".repeat(10)));
    assert_eq!(client.open_calls(), 0);
}

#[test]
fn unregistered_or_forbidden_calls_do_not_run() {
    let id = connections::<RakNet>(1)[0];
    let (mut client, mut server) = (Client::new(()), server());
    server.context.muted = Some(id);
    assert_eq!(call(&mut client, &mut server, id, 2, 3), Err(CallFailure::Refused(Refusal::Forbidden)));
    server.context.muted = None;
    assert!(server.unregister::<Add>() && !server.unregister::<Add>());
    assert_eq!(call(&mut client, &mut server, id, 2, 3), Err(CallFailure::Refused(Refusal::Unknown)));
    assert_eq!((server.context.log.len(), server.stats().calls, server.stats().refused), (0, 0, 2));
    // Neither side may use a function as a signal or a signal as a function.
    server.register::<Add, Add>().expect("enough space");
    server.connect::<Moved, First>(0).expect("a free slot");
    client.signal::<Add>(id, &(1, 2), ORDERED).expect("enough space");
    client.call::<Moved>(id, &1, TIMEOUT, ORDERED).expect("enough space");
    exchange(&mut client, &mut server, id);
    let finished = client.poll_finished().expect("the call has finished");
    assert_eq!(finished.answer::<Moved>(), Err(CallFailure::Refused(Refusal::Unknown)));
    assert_eq!(server.context.log.len(), 0);
}

#[test]
fn calls_with_malformed_arguments_do_not_run() {
    let id = connections::<RakNet>(1)[0];
    let mut server = server();
    // Missing arguments, and a list and a text whose announced length exceeds every message.
    let bombs: [(&str, &[u8]); 3] = [("add", &[]), ("sum", &[0xFF; 5]), ("shout", &[0x07, 0xFF, 0xFF])];
    for (number, (name, arguments)) in (0..).zip(bombs) {
        let mut buffer = [0; 64];
        let call = Message::Call { number, name: name.as_bytes(), arguments };
        let length = call.encode(&mut buffer).expect("enough space");
        receive(&mut server, id, &buffer[..length]);
        let answers = transmit(&mut server, Instant::ZERO);
        let refused = Message::Refusal { number, refusal: Refusal::BadArguments };
        assert_eq!(Message::decode(&answers[0]), Some(refused), "{name}");
    }
    assert_eq!(server.context.log.len(), 0);
}

#[test]
fn an_answer_longer_than_the_maximum_is_refused() {
    let id = connections::<RakNet>(1)[0];
    let (mut client, mut server) = (Client::new(()), server());
    client.call::<Shout>(id, &Text::new("fifteen letters"), TIMEOUT, ORDERED).expect("enough space");
    exchange(&mut client, &mut server, id);
    let finished = client.poll_finished().expect("the call has finished");
    assert_eq!(finished.answer::<Shout>().err(), Some(CallFailure::Refused(Refusal::AnswerTooLong)));
    let text = "x".repeat(200);
    let refused = client.call::<Shout>(id, &Text::new(text.as_str()), TIMEOUT, ORDERED);
    assert_eq!(refused.err(), Some(CallError::TooLong));
    // A message that exceeds the maximum length.
    receive(&mut server, id, &[127; 129]);
    assert_eq!((server.stats().malformed, client.open_calls()), (1, 0));
}

/// If the connection can never send an answer, a refusal is sent instead. Every lost answer is counted.
#[test]
fn unsendable_answers_are_counted_and_refused() {
    let (mut client, mut server) = (Client::new(()), server());
    let id = connections::<RakNet>(1)[0];
    let call = |client: &mut Client, server: &mut Calls| {
        client.call::<Shout>(id, &Text::new("a word"), TIMEOUT, ORDERED).expect("enough space");
        let requests = transmit(client, Instant::ZERO);
        requests.iter().for_each(|message| receive(server, id, message));
    };
    call(&mut client, &mut server);
    let mut sender = Collector::new();
    sender.longest = 40;
    // The first attempt sends the answer and fails; the second one sends the refusal.
    for _ in 0..2 {
        Plugin::<RakNet>::update(&mut server, Instant::ZERO, &mut sender);
    }
    sender.bytes().iter().for_each(|message| receive(&mut client, id, message));
    let finished = client.poll_finished().expect("a refused call");
    assert_eq!(finished.answer::<Shout>(), Err(CallFailure::Refused(Refusal::AnswerTooLong)));
    assert_eq!(server.stats().unsent, 1);
    // A peer that has disconnected receives neither the answer nor a refusal.
    call(&mut client, &mut server);
    sender.gone = Some(id);
    server.signal::<Moved>(id, &1, ORDERED).expect("enough space");
    Plugin::<RakNet>::update(&mut server, Instant::ZERO, &mut sender);
    let plugin: &dyn Plugin<RakNet> = &server;
    assert_eq!((plugin.poll_timeout(), server.stats().unsent), (None, 3));
}

/// Application types as arguments and answer, on a channel other than the default.
#[test]
fn derived_types_can_be_arguments_on_any_channel() {
    let (mut client, mut server) = (Client::new(()), server());
    server.register::<Throw, Throw>().expect("enough space");
    let id = connections::<RakNet>(1)[0];
    let delivery = Delivery { channel: Channel::new(3).expect("a channel below 32"), ..ORDERED };
    let shot = Shot { at: (3, -4), power: Power::Charged(7), name: Text::new("curve") };
    client.call::<Throw>(id, &shot, TIMEOUT, delivery).expect("enough space");
    let mut sender = Collector::new();
    Plugin::<RakNet>::update(&mut client, Instant::ZERO, &mut sender);
    for (_, bytes, sent_by) in sender.messages.drain(..) {
        assert_eq!(sent_by, delivery);
        Plugin::<RakNet>::on_message(&mut server, Instant::ZERO, id, sent_by, &&bytes[..]);
    }
    Plugin::<RakNet>::update(&mut server, Instant::ZERO, &mut sender);
    for (_, bytes, sent_by) in sender.messages.drain(..) {
        assert_eq!(sent_by, delivery, "the answer must have the delivery of the call");
        Plugin::<RakNet>::on_message(&mut client, Instant::ZERO, id, sent_by, &&bytes[..]);
    }
    let finished = client.poll_finished().expect("the call has finished");
    assert_eq!(finished.answer::<Throw>(), Ok(Hit { distance: 25, is_deadly: true }));
    assert_eq!(server.context.log, ["curve"]);
}

#[test]
fn an_unanswered_call_fails_at_its_timeout_or_at_the_disconnect() {
    let ids = connections::<RakNet>(2);
    let mut client = Client::new(());
    let start = Instant::from_micros(5);
    let late = client.call::<Add>(ids[0], &(1, 2), TIMEOUT, ORDERED).expect("enough space");
    let lost = client.call::<Add>(ids[1], &(1, 2), TIMEOUT, ORDERED).expect("enough space");
    let sent = transmit(&mut client, start);
    let plugin: &mut dyn Plugin<RakNet> = &mut client;
    assert_eq!(plugin.poll_timeout(), Some(start + TIMEOUT));
    plugin.on_disconnected(start, ids[1], DisconnectReason::Lost);
    let finished = client.poll_finished().expect("the call has finished");
    assert_eq!((finished.id, finished.answer::<Add>()), (lost, Err(CallFailure::Disconnected)));
    transmit(&mut client, start + TIMEOUT);
    let finished = client.poll_finished().expect("the call has finished");
    assert_eq!((finished.id, finished.answer::<Add>()), (late, Err(CallFailure::TimedOut)));
    // The answer arrives late.
    let mut server = server();
    receive(&mut server, ids[0], &sent[0]);
    let answer = transmit(&mut server, start);
    receive(&mut client, ids[0], &answer[0]);
    assert_eq!((client.stats().unexpected, client.poll_finished().is_none()), (1, true));
}

#[test]
fn cancelled_call_is_not_sent_or_its_answer_is_ignored() {
    let id = connections::<RakNet>(1)[0];
    let (mut client, mut server) = (Client::new(()), server());
    let first = client.call::<Add>(id, &(1, 2), TIMEOUT, ORDERED).expect("enough space");
    assert!(client.cancel(first) && !client.cancel(first));
    assert!(transmit(&mut client, Instant::ZERO).is_empty(), "a cancelled call must not be sent");
    let second = client.call::<Add>(id, &(1, 2), TIMEOUT, ORDERED).expect("enough space");
    let sent = transmit(&mut client, Instant::ZERO);
    assert!(client.cancel(second));
    receive(&mut server, id, &sent[0]);
    transmit(&mut server, Instant::ZERO).iter().for_each(|answer| receive(&mut client, id, answer));
    assert!(client.poll_finished().is_none());
    assert_eq!(client.stats().unexpected, 1);
}

/// Steers to the left or right by an angle. The answer consists of `angle` copies of the angle.
fn steer(
    game: &mut Game,
    _: ConnectionId,
    arguments: &mut BitStreamReader<'_>,
    answer: &mut BitStreamWriter<'_>,
) -> Result<(), Refusal> {
    let (is_left, angle): (bool, u16) = (arguments.read()?, arguments.read_compressed()?);
    game.log.push(format!("{} {angle}", if is_left { "left" } else { "right" }));
    (0..angle).try_for_each(|_| answer.write(angle))?;
    if is_left { Ok(()) } else { Err(Refusal::Failed(7)) }
}

/// Functions and signals with bit streams use the same messages and limits as those with Rabbit values.
#[test]
fn bit_streams_work_as_arguments() {
    let id = connections::<RakNet>(1)[0];
    let (mut client, mut server) = (Client::new(()), server());
    let is_allowed = |game: &Game, caller: ConnectionId| game.muted != Some(caller);
    assert_eq!(server.register_bits("add", is_allowed, steer), Err(RegisterError::NameTaken));
    assert_eq!(server.register_bits("steer", is_allowed, steer), Ok(()));
    assert_eq!(server.connect_bits("steered", 1, is_allowed, steer), Ok(()));
    let arguments = |is_left: bool, angle: u16| {
        move |writer: &mut BitStreamWriter<'_>| {
            writer.write(is_left)?;
            writer.write_compressed(angle)
        }
    };
    let mut call = |server: &mut Calls, is_left, angle| {
        client.call_bits(id, "steer", arguments(is_left, angle), TIMEOUT, ORDERED).expect("enough space");
        exchange(&mut client, server, id);
        let finished = client.poll_finished().expect("the call has finished");
        finished.answer_bits().map(|mut answer| (answer.read::<u16>(), answer.remaining()))
    };
    let refused = |refusal| Err(CallFailure::Refused(refusal));
    assert_eq!(call(&mut server, true, 3), Ok((Ok(3), 32)));
    assert_eq!(call(&mut server, false, 3), refused(Refusal::Failed(7)));
    assert_eq!(call(&mut server, true, 100), refused(Refusal::AnswerTooLong));
    server.context.muted = Some(id);
    assert_eq!(call(&mut server, true, 3), refused(Refusal::Forbidden));
    server.context.muted = None;
    assert_eq!(server.context.log, ["left 3", "right 3", "left 100"]);
    client.signal_bits(id, "steered", arguments(true, 5), ORDERED).expect("enough space");
    client.call_bits(id, "steer", |_| Ok(()), TIMEOUT, ORDERED).expect("enough space");
    exchange(&mut client, &mut server, id);
    assert_eq!(server.context.log[3..], ["left 5"]);
    let finished = client.poll_finished().expect("the call has finished");
    assert_eq!(finished.answer_bits().err(), Some(CallFailure::Refused(Refusal::BadArguments)));
    assert!(server.unregister_name("steer") && !server.unregister_name("steer"));
    let too_long = |writer: &mut BitStreamWriter<'_>| (0..200).try_for_each(|_| writer.write(1_u8));
    assert_eq!(client.signal_bits(id, "steered", too_long, ORDERED), Err(CallError::TooLong));
    for name in ["", &"x".repeat(MAX_NAME + 1)] {
        let called = client.call_bits(id, name, |_| Ok(()), TIMEOUT, ORDERED);
        assert_eq!(called, Err(CallError::BadName));
        assert_eq!(client.signal_bits(id, name, |_| Ok(()), ORDERED), Err(CallError::BadName));
    }
    client
        .call_bits(id, &"x".repeat(MAX_NAME), |_| Ok(()), TIMEOUT, ORDERED)
        .expect("a name of the maximum length");
}

#[test]
fn only_the_called_peer_can_answer() {
    let ids = connections::<RakNet>(2);
    let (mut client, mut server) = (Client::new(()), server());
    client.call::<Add>(ids[0], &(1, 2), TIMEOUT, ORDERED).expect("enough space");
    let sent = transmit(&mut client, Instant::ZERO);
    receive(&mut server, ids[0], &sent[0]);
    let answer = transmit(&mut server, Instant::ZERO);
    receive(&mut client, ids[1], &answer[0]);
    assert_eq!((client.open_calls(), client.stats().unexpected), (1, 1));
    receive(&mut client, ids[0], &answer[0]);
    receive(&mut client, ids[0], &answer[0]);
    assert_eq!((client.open_calls(), client.stats().unexpected), (0, 2), "the second answer is unexpected");
    assert_eq!(client.poll_finished().expect("the call has finished").answer::<Add>(), Ok(3));
}

#[test]
fn answer_of_another_type_is_rejected() {
    let id = connections::<RakNet>(1)[0];
    let mut client = Client::new(());
    client.call::<Add>(id, &(1, 2), TIMEOUT, ORDERED).expect("enough space");
    transmit(&mut client, Instant::ZERO);
    let mut buffer = [0; 16];
    let length = Message::Answer { number: 0, answer: &[] }.encode(&mut buffer).expect("enough space");
    receive(&mut client, id, &buffer[..length]);
    let finished = client.poll_finished().expect("the call has finished");
    assert_eq!(finished.answer::<Add>(), Err(CallFailure::BadAnswer));
}

#[test]
fn signals_reach_all_handlers_in_descending_order() {
    let id = connections::<RakNet>(1)[0];
    let (mut client, mut server) = (Client::new(()), server());
    server.connect::<Moved, Second>(5).expect("a free slot");
    server.connect::<Moved, Third>(-1).expect("a free slot");
    server.connect::<Moved, First>(9).expect("a free slot");
    assert_eq!(server.connect::<Moved, First>(9), Err(RegisterError::Full));
    client.signal::<Moved>(id, &3, ORDERED).expect("enough space");
    exchange(&mut client, &mut server, id);
    assert_eq!(server.context.log, ["First 3", "Second 3", "Third 3"]);
    server.context.log.clear();
    server.context.muted = Some(id);
    client.signal::<Moved>(id, &4, ORDERED).expect("enough space");
    exchange(&mut client, &mut server, id);
    assert_eq!(server.context.log, ["First 4", "Third 4"]);
    assert_eq!((server.stats().signals, server.stats().refused), (2, 1));
}

#[test]
fn invalid_and_duplicate_names_are_refused_at_registration() {
    let mut calls = RemoteCalls::<RakNet, (), 4, 1, 64>::new(());
    struct Nothing;
    impl<F: for<'a> Function<Answer<'a> = ()>> Handler<F, ()> for Nothing {
        fn is_allowed((): &(), _: ConnectionId) -> bool {
            true
        }

        fn handle<'c>(
            (): &'c mut (),
            _: ConnectionId,
            _: F::Arguments<'_>,
        ) -> Result<F::Answer<'c>, Refusal> {
            Ok(())
        }
    }
    assert!(Long::NAME.len() > MAX_NAME);
    assert_eq!(calls.register::<Nameless, Nothing>(), Err(RegisterError::BadName));
    assert_eq!(calls.register::<Long, Nothing>(), Err(RegisterError::BadName));
    assert_eq!(calls.register::<Moved, Nothing>(), Ok(()));
    assert_eq!(calls.register::<Moved, Nothing>(), Err(RegisterError::NameTaken));
}

/// Callers that do not read their answers do not block answers to other callers.
#[test]
fn answers_of_the_caller_with_the_most_answers_are_dropped_first() {
    let ids = connections::<RakNet>(3);
    let mut server = server();
    for _ in 0..3 {
        receive_calls(&mut server, ids[0], 1);
        receive_calls(&mut server, ids[1], 1);
    }
    assert_eq!((server.stats().calls, server.stats().busy), (4, 2));
    receive_calls(&mut server, ids[2], 1);
    assert_eq!((server.stats().calls, server.stats().busy), (5, 3));
    let mut sender = Collector::new();
    let plugin: &mut dyn Plugin<RakNet> = &mut server;
    plugin.update(Instant::ZERO, &mut sender);
    let to = |id| sender.messages.iter().filter(|(to, ..)| *to == id).count();
    // Three answers, two refusals, and the notification of the dropped answer.
    assert_eq!((to(ids[0]) + to(ids[1]), to(ids[2])), (6, 1));
}

/// Delivers `count` calls of `add` with the arguments 1 and 2.
fn receive_calls(server: &mut Calls, from: ConnectionId, count: usize) {
    let mut buffer = [0; 64];
    let call = Message::Call { number: 9, name: b"add", arguments: &[0x04, 0x20, 0x00] };
    let length = call.encode(&mut buffer).expect("enough space");
    (0..count).for_each(|_| receive(server, from, &buffer[..length]));
}

/// Answers for a caller that reads none occupy only its own slots, and take no further memory.
#[test]
fn call_flood_is_limited_per_caller() {
    let ids = connections::<RakNet>(2);
    let mut server = server();
    receive_calls(&mut server, ids[0], 1_000);
    assert_eq!((server.stats().calls, server.stats().busy), (2, 998));
    receive_calls(&mut server, ids[1], 1);
    assert_eq!(server.stats().calls, 3);
    let mut sender = Collector { blocked: Some(ids[0]), ..Collector::new() };
    let plugin: &mut dyn Plugin<RakNet> = &mut server;
    plugin.update(Instant::ZERO, &mut sender);
    assert_eq!(sender.messages.iter().map(|(to, ..)| *to).collect::<Vec<_>>(), [ids[1]]);
    plugin.on_disconnected(Instant::ZERO, ids[0], DisconnectReason::Lost);
    assert_eq!(plugin.poll_timeout(), None, "the caller's answers were dropped with its connection");
}

/// Refusals for a caller that reads none occupy only its own slots. Calls of other callers are therefore answered or
/// refused before they time out.
#[test]
fn a_call_flood_does_not_drop_refusals_of_other_callers() {
    let ids = connections::<RakNet>(2);
    let mut server = server();
    receive_calls(&mut server, ids[0], 1_000);
    receive_calls(&mut server, ids[1], 3);
    let mut sender = Collector { blocked: Some(ids[0]), ..Collector::new() };
    let plugin: &mut dyn Plugin<RakNet> = &mut server;
    plugin.update(Instant::ZERO, &mut sender);
    assert_eq!(sender.messages.iter().map(|(to, ..)| *to).collect::<Vec<_>>(), [ids[1]; 3]);
}

/// Without any time passing, each call gets an answer or a refusal.
#[test]
fn concurrent_calls_beyond_the_limit_are_refused_immediately() {
    type Many<C> = RemoteCalls<RakNet, C, 6, 16, 128>;
    let id = connections::<RakNet>(1)[0];
    let (mut client, mut server) = (Many::new(()), Many::new(Game::default()));
    server.register::<Add, Add>().expect("enough space");
    for _ in 0..16 {
        client.call::<Add>(id, &(1, 2), TIMEOUT, ORDERED).expect("enough space");
    }
    transmit(&mut client, Instant::ZERO).iter().for_each(|call| receive(&mut server, id, call));
    transmit(&mut server, Instant::ZERO).iter().for_each(|answer| receive(&mut client, id, answer));
    let (mut sums, mut busy) = (0, 0);
    while let Some(finished) = client.poll_finished() {
        match finished.answer::<Add>() {
            Ok(3) => sums += 1,
            Err(CallFailure::Refused(Refusal::Busy)) => busy += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((sums, busy, client.open_calls()), (8, 8, 0));
    assert_eq!((server.stats().calls, server.stats().busy), (8, 8));
}

/// A caller is notified if its answer was dropped to free a slot for another caller.
#[test]
fn dropped_answer_is_reported_to_its_caller() {
    let ids = connections::<RakNet>(3);
    let mut server = server();
    let mut buffer = [0; 64];
    for (number, id) in [(1, ids[0]), (2, ids[0]), (3, ids[1]), (4, ids[1]), (5, ids[2])] {
        let call = Message::Call { number, name: b"add", arguments: &[0x04, 0x20, 0x00] };
        let length = call.encode(&mut buffer).expect("enough space");
        receive(&mut server, id, &buffer[..length]);
    }
    let mut sender = Collector::new();
    Plugin::<RakNet>::update(&mut server, Instant::ZERO, &mut sender);
    let dropped: Vec<_> = sender
        .messages
        .iter()
        .filter(|(_, bytes, _)| {
            matches!(Message::decode(bytes), Some(Message::Refusal { refusal: Refusal::AnswerDropped, .. }))
        })
        .collect();
    assert_eq!((sender.messages.len(), dropped.len()), (5, 1), "every call gets an answer or a refusal");
}

/// Stores the pending calls with their arguments.
#[derive(Default)]
struct Queries(Vec<(PendingCall, (u32, u32))>);

impl DeferredHandler<Self, Queries> for Add {
    fn is_allowed(_: &Queries, _: ConnectionId) -> bool {
        true
    }

    fn begin(queries: &mut Queries, pending: PendingCall, arguments: (u32, u32)) -> Result<(), Refusal> {
        queries.0.push((pending, arguments));
        Ok(())
    }
}

#[test]
fn deferred_calls_of_one_caller_take_at_most_half_of_the_slots_and_can_be_answered_or_refused() {
    let ids = connections::<RakNet>(2);
    let mut server = RemoteCalls::<RakNet, Queries, 2, 4, 128>::new(Queries::default());
    server.register_deferred::<Add, Add>().expect("enough space");
    let mut client = Client::new(());
    for number in 0..4 {
        client.call::<Add>(ids[0], &(number, 1), TIMEOUT, ORDERED).expect("enough space");
    }
    transmit(&mut client, Instant::ZERO).iter().for_each(|call| receive(&mut server, ids[0], call));
    let refusals = transmit(&mut server, Instant::ZERO);
    assert_eq!((server.context.0.len(), refusals.len()), (2, 2));
    refusals.iter().for_each(|refusal| receive(&mut client, ids[0], refusal));

    let [(one, (a, b)), (other, _)] = server.context.0[..] else { panic!("not two pending calls") };
    assert_eq!(one.caller(), ids[0]);
    assert!(server.answer::<Add>(one, &(a + b)) && server.refuse(other, Refusal::Failed(7)));
    assert!(!server.answer::<Add>(one, &0), "the call was already answered");
    transmit(&mut server, Instant::ZERO).iter().for_each(|answer| receive(&mut client, ids[0], answer));
    let ends: Vec<_> = std::iter::from_fn(|| client.poll_finished()).map(|end| end.answer::<Add>()).collect();
    let busy = Err(CallFailure::Refused(Refusal::Busy));
    assert_eq!(ends, [busy, busy, Ok(1), Err(CallFailure::Refused(Refusal::Failed(7)))]);
}

#[test]
fn claimed_call_is_returned_only_by_poll_call() {
    let id = connections::<RakNet>(1)[0];
    let (mut client, mut server) = (Client::new(()), server());
    let mine = client.call::<Add>(id, &(1, 2), TIMEOUT, ORDERED).expect("enough space");
    let other = client.call::<Add>(id, &(3, 4), TIMEOUT, ORDERED).expect("enough space");
    assert!(client.claim(mine));
    let waker = core::task::Waker::noop();
    assert!(client.poll_call(mine, waker).is_pending());
    exchange(&mut client, &mut server, id);
    assert_eq!(client.poll_finished().map(|finished| finished.id), Some(other));
    assert!(client.poll_finished().is_none());
    let Poll::Ready(Some(finished)) = client.poll_call(mine, waker) else {
        panic!("the call has not finished")
    };
    assert_eq!(finished.answer::<Add>(), Ok(3));
    assert!(matches!(client.poll_call(mine, waker), Poll::Ready(None)), "a result is returned once");
}

#[test]
fn the_number_of_calls_is_limited_and_unsent_calls_report_the_reason() {
    let ids = connections::<RakNet>(1);
    let mut client = Client::new(());
    for _ in 0..4 {
        client.call::<Add>(ids[0], &(1, 2), TIMEOUT, ORDERED).expect("enough space");
    }
    assert_eq!(client.call::<Add>(ids[0], &(1, 2), TIMEOUT, ORDERED), Err(CallError::TooManyCalls));
    let mut sender = Collector { gone: Some(ids[0]), ..Collector::new() };
    let plugin: &mut dyn Plugin<RakNet> = &mut client;
    plugin.update(Instant::ZERO, &mut sender);
    // Results that were not polled count too.
    assert_eq!(client.call::<Add>(ids[0], &(1, 2), TIMEOUT, ORDERED), Err(CallError::TooManyCalls));
    for _ in 0..4 {
        let finished = client.poll_finished().expect("the call has finished");
        assert_eq!(finished.answer::<Add>(), Err(CallFailure::NotSent(SendError::NotConnected)));
    }
    assert!(client.call::<Add>(ids[0], &(1, 2), TIMEOUT, ORDERED).is_ok());
}

/// One caller may use half of the answer slots.
const CALLS: usize = 16;

type Attached<P> = PluginHost<RemoteCalls<P, Game, 6, CALLS, 128>, 1>;

/// Creates peers with a lossy path in the simulator.
fn hooked<P: Protocol>(config: P::Config) -> (Hooked<'static, P, Attached<P>>, PluginKey) {
    let mut calls = RemoteCalls::new(Game::default());
    calls.register::<Add, Add>().expect("enough space");
    let mut host = PluginHost::new();
    let key = host.attach::<P>(calls).expect("a free slot");
    let capacity = Capacity { connections: 2, blocks: 512, block_size: 128 };
    (Hooked::new(Peer::with_capacity(capacity, config), host), key)
}

/// Checks that every call gets its own answer exactly once on a lossy path.
fn calls_survive_a_bad_path<P: Protocol>(seed: u64) {
    let mut config = P::config([2; 32]);
    *P::max_incoming(&mut config) = 1;
    let (server, at_server) = hooked::<P>(config);
    let (client, key) = hooked::<P>(P::config([1; 32]));
    let conditions = Conditions {
        loss: 0.1,
        duplication: 0.05,
        reordering: 0.1,
        latency: Duration::from_millis(20),
        jitter: Duration::from_millis(5),
        ..Conditions::default()
    };
    let mut pair = Pair::new(client, server, Conditions { loss: 0.0, ..conditions }, seed);
    let id = pair.a.peer.connect(pair.now, pair.b_address).expect("a free slot");
    while !matches!(pair.a.poll_event(), Some(Event::Connected { .. })) {
        assert!(pair.step());
    }
    pair.set_conditions(conditions);
    let (mut begun, mut sums) = (0, Vec::new());
    while sums.len() < 50 {
        let calls = pair.a.hook.get_mut(key).expect("the plugin is attached");
        let timeout = Duration::from_secs(60);
        while begun < 50
            && calls.open_calls() < CALLS / 2
            && calls.call::<Add>(id, &(begun, 1_000), timeout, P::Delivery::default()).is_ok()
        {
            begun += 1;
        }
        while let Some(finished) = calls.poll_finished() {
            sums.push(finished.answer::<Add>().expect("an answer"));
        }
        assert!(pair.step());
        while pair.a.poll_event().is_some() {}
        while let Some(event) = pair.b.poll_event() {
            assert!(!matches!(event, Event::Message { .. }), "the application must not receive a call");
        }
    }
    sums.sort_unstable();
    assert!(sums.into_iter().eq(1_000..1_050));
    let calls = pair.b.hook.get(at_server).expect("the plugin is attached");
    assert_eq!((calls.stats().calls, calls.context.log.len()), (50, 50));
}

#[test]
fn calls_over_raknet_complete_on_a_lossy_path() {
    (1..=5).for_each(calls_survive_a_bad_path::<RakNet>);
}

#[test]
fn calls_over_the_game_protocol_complete_on_a_lossy_path() {
    (1..=5).for_each(calls_survive_a_bad_path::<GameProtocol>);
}

proptest! {
    /// No message causes a panic or more than one answer.
    #[test]
    fn each_arbitrary_message_gets_at_most_one_answer(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..30)) {
        let id = connections::<RakNet>(1)[0];
        let mut server = server();
        server.connect::<Moved, First>(0).expect("a free slot");
        for message in messages {
            receive(&mut server, id, &message);
            receive(&mut server, id, &[&[127][..], &message].concat());
            let answers = transmit(&mut server, Instant::ZERO);
            prop_assert!(answers.len() <= 2);
            for answer in answers {
                prop_assert!(Message::decode(&answer).is_some());
            }
        }
    }

    /// Every message decodes to itself, and is encoded only into a buffer that is long enough.
    #[test]
    fn messages_round_trip(number: u32, name in prop::collection::vec(any::<u8>(), 0..70), payload in prop::collection::vec(any::<u8>(), 0..70)) {
        for message in [
            Message::Call { number, name: &name, arguments: &payload },
            Message::Signal { name: &name, arguments: &payload },
            Message::Answer { number, answer: &payload },
        ] {
            let mut buffer = [0; 256];
            let Some(length) = message.encode(&mut buffer) else {
                prop_assert!(name.len() > MAX_NAME);
                continue;
            };
            prop_assert_eq!(Message::decode(&buffer[..length]), Some(message));
            prop_assert_eq!(message.encode(&mut buffer[..length - 1]), None);
        }
    }
}
