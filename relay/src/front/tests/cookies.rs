//! Cookies, their keys, and the published datagrams.

use std::fmt::Debug;
use std::sync::Mutex;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::*;

#[test]
fn a_cookie_is_of_no_use_to_others_and_not_for_long() {
    let mut bench = Bench::raknet();
    let cookie = bench.cookie(client_address(1));
    assert_eq!(bench.client(client_address(2), &request_2(cookie, 1_400)), []);
    bench.wait(Duration::from_secs(10));
    assert_eq!(bench.client(client_address(1), &request_2(cookie, 1_400)), []);
    assert_eq!(bench.drops(FrontDropReason::BadCookie), 2);
}

/// It may be one of the makes that know none, which an operator hears of once.
#[test]
fn a_request_without_its_cookie_is_counted_apart_and_logged_once() {
    let lines = Lines::default();
    let mut bench = Bench::raknet();
    tracing::subscriber::with_default(lines.clone(), || {
        for number in 1..=3 {
            let from = client_address(number);
            bench.cookie(from);
            let (security, server) = (ClientSecurity::None, address(FRONT));
            let request = Offline::Request2 { security, server, mtu: 1_400, guid: CLIENT };
            assert_eq!(bench.client(from, &bytes(&request)), []);
        }
    });
    assert_eq!(bench.drops(FrontDropReason::MissingCookie), 3);
    assert_eq!(bench.drops(FrontDropReason::BadCookie), 0);
    let lines = lines.0.lock().unwrap();
    assert!(matches!(&lines[..], [line] if line.contains("does not return its cookie")), "{lines:?}");
}

/// The lines of a log. `ops::Lines` does the same in the relay, but the crate of fuzzing includes the front and its tests by path, without
/// `ops` and its dependencies.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A line, with its fields behind each other.
#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        self.0.push_str(&format!("{value:?} "));
    }
}

/// The datagrams of docs/udp-front.md.
#[test]
fn the_published_datagrams_hold() {
    let keys = "000102030405060708090a0b0c0d0e0f".parse().unwrap();
    let mut bench = Bench::new(Settings { keys, ..settings(FrontProtocol::RakNet) });
    bench.pongs.learn(PingScope::Any, Pong { guid: 5, data: Vec::new(), at: bench.now.at, latency: None });
    let from = address("192.0.2.1:19132");
    let reply = "0600ffff00fefefefefdfdfdfd12345678000000000000000501f41a5c7e05d4";
    let sent = bench.client(from, &bytes(&Offline::Request1 { protocol: 11, mtu: 1_492 }));
    assert_eq!(sent, [(To::Client(from), hex(reply))]);
    let request = "0700ffff00fefefefefdfdfdfd12345678f41a5c7e00043ffffd9b4abc05d4000000000000000c";
    let sent = bench.client(from, &hex(request));
    assert!(matches!(sent[..], [(To::Server(_), _)]), "{sent:?}");
    assert_eq!(hex(request), request_2(0xF41A_5C7E, 1_492));
}

fn hex(digits: &str) -> Vec<u8> {
    let pairs = (0..digits.len()).step_by(2).map(|at| &digits[at..at + 2]);
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn a_clock_that_jumps_costs_one_more_round_trip() {
    let mut bench = Bench::raknet();
    let from = client_address(1);
    let cookie = bench.cookie(from);
    bench.now.wall -= Duration::from_secs(3_600);
    assert_eq!(bench.client(from, &request_2(cookie, 1_400)), []);
    let cookie = bench.cookie(from);
    assert_eq!(bench.client(from, &request_2(cookie, 1_400)).len(), 1);
}

#[test]
fn keys_are_replaced_while_clients_come() {
    let mut bench = Bench::raknet();
    let cookie = bench.cookie(client_address(1));
    bench
        .front
        .set_keys("11111111111111111111111111111111\n07070707070707070707070707070707".parse().unwrap());
    assert_eq!(bench.client(client_address(1), &request_2(cookie, 1_400)).len(), 1);
    bench.front.set_keys("11111111111111111111111111111111".parse().unwrap());
    assert_eq!(bench.client(client_address(2), &request_2(cookie, 1_400)), []);
}
