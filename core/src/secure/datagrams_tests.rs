//! Tests of sealed datagrams and key epochs, and of counters against slow reference definitions.

use std::collections::BTreeSet;
use std::vec::Vec;

use bolero::{one_of, produce};

use super::*;

const START: Instant = Instant::ZERO;
const TO_SERVER: [u8; 32] = [1; 32];
const TO_CLIENT: [u8; 32] = [2; 32];

fn both() -> [DatagramProtection; 2] {
    [
        DatagramProtection::with_keys(TO_SERVER, TO_CLIENT, START),
        DatagramProtection::with_keys(TO_CLIENT, TO_SERVER, START),
    ]
}

fn early(limits: RekeyLimits) -> [DatagramProtection; 2] {
    let early = || [[3; 32], [4; 32]].map(Secret::new);
    let last = || [[5; 32], [6; 32]].map(Secret::new);
    let mut both = [
        DatagramProtection::early_of_client(Keys::of_client(early()), Keys::of_client(last()), START),
        DatagramProtection::early_of_server(Keys::of_server(early()), START),
    ];
    both.iter_mut().for_each(|one| one.set_limits(limits));
    both
}

fn install(server: &mut DatagramProtection) {
    server.install(Keys::of_server([[5; 32], [6; 32]].map(Secret::new)), START);
}

fn seal_at(from: &mut DatagramProtection, now: Instant, plain: &[u8]) -> Vec<u8> {
    let mut datagram = plain.to_vec();
    datagram.resize(plain.len() + usize::from(OVERHEAD), 0xEE);
    assert_eq!(from.seal(now, &mut datagram, plain.len()), Some(datagram.len()));
    datagram
}

fn send(from: &mut DatagramProtection, plain: &[u8]) -> Vec<u8> {
    seal_at(from, START, plain)
}

fn receive(to: &mut DatagramProtection, datagram: &[u8]) -> Result<Vec<u8>, OpenError> {
    let mut copy = datagram.to_vec();
    to.open(START, &mut copy).map(|plain| plain.to_vec())
}

#[test]
fn a_datagram_has_the_documented_bytes() {
    let [mut client, _] = both();
    assert_eq!(send(&mut client, b"x")[..3], [0x80, 0, 0]);
    assert_eq!(send(&mut client, b"x")[..3], [0x80, 0, 1]);
    client.sending.counter = 0x20_0000 + 0x1F_FFFF;
    client.sending.epoch = 6;
    assert_eq!(send(&mut client, b"x")[..3], [0x80 | 2 << 5 | 0x1F, 0xFF, 0xFF]);
    assert_eq!(send(&mut client, b"x")[..3], [0x80 | 2 << 5, 0, 0]);
}

#[test]
fn every_changed_bit_and_wrong_length_is_detected() {
    let [mut client, mut server] = both();
    let datagram = send(&mut client, b"some plain bytes");
    for bit in 0..datagram.len() * 8 {
        let mut changed = datagram.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(receive(&mut server, &changed).is_err(), "bit {bit}");
    }
    for length in 0..datagram.len() {
        assert!(receive(&mut server, &datagram[..length]).is_err(), "{length} bytes");
    }
    assert!(!server.has_opened());
    assert_eq!(receive(&mut server, &datagram), Ok(b"some plain bytes".to_vec()));
    assert_eq!(receive(&mut server, &datagram), Err(OpenError::Replayed));
}

#[test]
fn a_datagram_opens_only_with_the_keys_of_its_recipient() {
    let [mut client, mut server] = both();
    let reflected = send(&mut client, b"plain");
    assert_eq!(receive(&mut client, &reflected), Err(OpenError::Forged));
    let mut other = DatagramProtection::with_keys([9; 32], [8; 32], START);
    assert_eq!(receive(&mut other, &reflected), Err(OpenError::Forged));
    assert!(receive(&mut server, &reflected).is_ok());
}

#[test]
fn datagrams_that_are_too_short_or_lack_bit_7_are_malformed() {
    let [_, mut server] = both();
    assert_eq!(receive(&mut server, &[0x80; 18]), Err(OpenError::Malformed));
    assert_eq!(receive(&mut server, &[0x80; 19]), Err(OpenError::Forged));
    assert_eq!(receive(&mut server, &[0x7F; 40]), Err(OpenError::Malformed));
}

#[test]
fn sealing_fails_without_space_for_the_overhead_or_after_the_last_counter() {
    let [mut client, _] = both();
    assert_eq!(client.seal(START, &mut [0; 18], 0), None);
    assert_eq!(client.seal(START, &mut [0; 19], 0), Some(19));
    assert_eq!(client.seal(START, &mut [0; 19], usize::MAX), None);
    client.sending.counter = COUNTER_END - 1;
    assert_eq!(client.seal(START, &mut [0; 19], 0), Some(19));
    assert_eq!(client.seal(START, &mut [0; 19], 0), None, "no counter is used twice");
}

#[test]
fn datagrams_with_the_highest_counters_can_be_opened() {
    let [mut client, mut server] = both();
    for counter in [COUNTER_END - 900_000, COUNTER_END - 2, COUNTER_END - 1] {
        client.sending.counter = counter;
        server.receiving.window.mark(counter - 1);
        let datagram = send(&mut client, b"late");
        assert!(receive(&mut server, &datagram).is_ok(), "{counter}");
    }
    let beyond = send(&mut both()[0], b"counter 0 again");
    assert!(receive(&mut server, &beyond).is_err());
}

#[test]
fn opening_a_copy_leaves_the_datagram_unchanged() {
    let [mut client, mut server] = both();
    let datagram = send(&mut client, b"plain");
    let mut buffer = [0; 5];
    assert_eq!(server.open_copy(START, &datagram, &mut [0; 4]), Err(OpenError::Malformed));
    assert_eq!(server.open_copy(START, &datagram, &mut buffer), Ok(5));
    assert_eq!(&buffer, b"plain");
    assert_eq!(server.open_copy(START, &datagram, &mut buffer), Err(OpenError::Replayed));
    assert_eq!(server.open_copy(START, &[0x80; 18], &mut buffer), Err(OpenError::Malformed));
}

#[test]
fn datagrams_reordered_within_the_replay_window_are_opened() {
    let [mut client, mut server] = both();
    let mut sent: Vec<Vec<u8>> =
        (0..2048_u32).map(|number| send(&mut client, &number.to_be_bytes())).collect();
    sent.reverse();
    assert!(sent.iter().all(|datagram| receive(&mut server, datagram).is_ok()));
    assert!(sent.iter().all(|datagram| receive(&mut server, datagram) == Err(OpenError::Replayed)));
    let too_old = send(&mut client, b"old");
    let newer: Vec<Vec<u8>> = (0..2048).map(|_| send(&mut client, b"new")).collect();
    assert!(receive(&mut server, &newer[2047]).is_ok());
    assert_eq!(receive(&mut server, &too_old), Err(OpenError::Replayed));
    assert!(receive(&mut server, &newer[0]).is_ok());
}

const FEW: RekeyLimits = RekeyLimits {
    datagrams: 3,
    age: Duration::from_secs(120),
    forged: 5,
    previous_key: Duration::from_secs(5),
};

fn rekeying(limits: RekeyLimits) -> [DatagramProtection; 2] {
    let mut both = both();
    both.iter_mut().for_each(|one| one.set_limits(limits));
    both
}

#[test]
fn the_datagram_limit_begins_the_next_epoch() {
    let [mut client, mut server] = rekeying(FEW);
    for _ in 0..10 {
        let datagram = send(&mut client, b"no answer yet");
        assert!(receive(&mut server, &datagram).is_ok());
    }
    assert_eq!(client.epoch(), 0, "the next epoch waits until the peer has entered this one");
    for round in 1..20 {
        let answer = send(&mut server, b"answer");
        assert!(receive(&mut client, &answer).is_ok());
        for _ in 0..4 {
            let datagram = send(&mut client, b"more");
            assert!(receive(&mut server, &datagram).is_ok());
        }
        assert_eq!((client.epoch(), server.epoch()), (round, round));
    }
}

#[test]
fn age_and_forgery_limits_begin_the_next_epoch() {
    let [mut client, mut server] = rekeying(RekeyLimits { datagrams: u64::MAX, ..FEW });
    let answer = send(&mut server, b"answer");
    assert!(receive(&mut client, &answer).is_ok());
    let [just_before, due] = [119_999_999, 120_000_000].map(Instant::from_micros);
    seal_at(&mut client, just_before, b"early");
    assert_eq!(client.epoch(), 0);
    let datagram = seal_at(&mut client, due, b"due");
    assert_eq!(client.epoch(), 1);
    assert!(receive(&mut server, &datagram).is_ok());
    assert_eq!(server.epoch(), 1, "the server enters the epoch of the client");
    for _ in 0..4 {
        assert_eq!(receive(&mut server, &[0xA0; 40]), Err(OpenError::Forged));
    }
    send(&mut server, b"not yet");
    assert_eq!(server.epoch(), 1);
    assert_eq!(receive(&mut server, &[0xA0; 40]), Err(OpenError::Forged));
    send(&mut server, b"enough");
    assert_eq!(server.epoch(), 2);
}

#[test]
fn datagrams_of_the_previous_epoch_open_until_expiry() {
    for (at, opens) in [(4_999_999, true), (5_000_000, false)] {
        let [mut client, mut server] = rekeying(FEW);
        let [overtaken, twin] = [(); 2].map(|()| send(&mut client, b"overtaken"));
        let answer = send(&mut server, b"answer");
        assert!(receive(&mut client, &answer).is_ok());
        send(&mut client, b"the third");
        let next = send(&mut client, b"next epoch");
        assert!(receive(&mut server, &next).is_ok());
        assert!(receive(&mut server, &twin).is_ok());
        let mut copy = overtaken.clone();
        assert_eq!(server.open(Instant::from_micros(at), &mut copy).is_ok(), opens, "at {at}");
        assert_eq!(server.receiving.previous.is_some(), opens, "the previous key is erased on expiry");
    }
}

#[test]
fn keys_of_past_epochs_are_erased() {
    let [mut client, mut server] = rekeying(FEW);
    let first = *client.sending.key.as_bytes();
    let answer = send(&mut server, b"answer");
    assert!(receive(&mut client, &answer).is_ok());
    (0..4).for_each(|_| {
        let datagram = send(&mut client, b"more");
        assert!(receive(&mut server, &datagram).is_ok());
    });
    server.expire(Instant::from_micros(5_000_000));
    let keys =
        [&client.sending.key, &server.receiving.key, server.receiving.next.as_ref().expect("a next key")];
    assert!(keys.iter().all(|key| *key.as_bytes() != first));
    assert_eq!(client.sending.key.as_bytes(), server.receiving.key.as_bytes());
}

/// The server enters epoch 1, everything that it sends in that epoch is lost, and it enters epoch 2.
#[test]
fn a_receiver_skips_an_epoch_if_all_its_datagrams_are_lost() {
    let [mut client, mut server] = rekeying(FEW);
    let answer = send(&mut server, b"answer");
    assert!(receive(&mut client, &answer).is_ok());
    for _ in 0..4 {
        let datagram = send(&mut client, b"into epoch 1");
        assert!(receive(&mut server, &datagram).is_ok());
    }
    let lost: Vec<Vec<u8>> = (0..3).map(|_| send(&mut server, b"epoch 1, lost or late")).collect();
    let second: Vec<Vec<u8>> = (0..10).map(|_| send(&mut server, b"epoch 2")).collect();
    assert_eq!((client.epoch(), server.epoch()), (1, 2), "the server waits for the client in epoch 2");
    assert!(receive(&mut client, &second[9]).is_ok());
    assert_eq!(client.epoch(), 2);
    assert!(receive(&mut client, &lost[2]).is_ok(), "the previous key opens late datagrams");
    let on = send(&mut client, b"on");
    assert!(receive(&mut server, &on).is_ok());
}

#[test]
fn epoch_0_of_xk_ends_with_the_handshake_and_not_at_a_limit() {
    let [mut client, mut server] = early(FEW);
    for _ in 0..10 {
        let request = send(&mut client, b"connection request");
        assert!(receive(&mut server, &request).is_ok());
        let acknowledgement = send(&mut server, b"acknowledgement");
        assert!(receive(&mut client, &acknowledgement).is_ok());
    }
    assert_eq!((client.epoch(), server.epoch()), (0, 0));
    let late = send(&mut client, b"sent before the answer came");
    install(&mut server);
    let accepted = send(&mut server, b"accepted");
    assert_eq!(accepted[0] >> 5 & 3, 1);
    assert!(receive(&mut client, &accepted).is_ok());
    assert_eq!((client.epoch(), server.epoch()), (1, 1));
    assert!(receive(&mut server, &late).is_ok());
    let first = send(&mut client, b"the first message");
    assert!(receive(&mut server, &first).is_ok());
    for _ in 0..4 {
        let datagram = send(&mut client, b"and more");
        assert!(receive(&mut server, &datagram).is_ok());
    }
    assert_eq!((client.epoch(), server.epoch()), (2, 2), "the limits apply after the handshake");
}

#[test]
fn a_server_opens_epoch_1_only_after_accepting_the_identity() {
    let [mut client, mut server] = early(FEW);
    client.begin_sending_epoch(START);
    let hasty = send(&mut client, b"hasty");
    assert_eq!(receive(&mut server, &hasty), Err(OpenError::Forged));
    install(&mut server);
    assert!(receive(&mut server, &hasty).is_ok());
}

/// Each peer opens each sent datagram at most once, and the connection continues to work, whatever the path does.
///
/// The path loses, duplicates and forges datagrams, and reorders them within the window.
#[test]
fn any_datagram_history_opens_each_datagram_at_most_once() {
    let step = (produce::<bool>(), 0..10_u8, produce::<u8>());
    let steps = produce::<Vec<(bool, u8, u8)>>().with().len(1..400_usize).values(step);
    let input = (produce::<bool>(), steps);
    bolero::check!().with_iterations(256).with_generator(input).for_each(|(is_early, steps)| {
        let is_early = *is_early;
        let mut peers = if is_early { early(FEW) } else { rekeying(FEW) };
        if is_early {
            install(&mut peers[1]);
        }
        let mut under_way: [Vec<(u32, Vec<u8>)>; 2] = [Vec::new(), Vec::new()];
        let mut opened: [Vec<u32>; 2] = [Vec::new(), Vec::new()];
        for (number, &(to_server, action, pick)) in (0_u32..).zip(steps) {
            let from = usize::from(!to_server);
            let queue = &mut under_way[from];
            match action {
                0..5 => queue.push((number, send(&mut peers[from], &number.to_be_bytes()))),
                _ if queue.is_empty() => {}
                5 => {
                    let mut forged = queue[usize::from(pick) % queue.len()].1.clone();
                    let at = usize::from(pick) % forged.len();
                    forged[at] ^= 1 << (number % 8);
                    assert!(receive(&mut peers[1 - from], &forged).is_err());
                }
                6 => drop(queue.remove(usize::from(pick) % queue.len())),
                _ => {
                    let (sent, datagram) = queue.remove(usize::from(pick) % queue.len());
                    if let Ok(plain) = receive(&mut peers[1 - from], &datagram) {
                        assert_eq!(plain, sent.to_be_bytes().to_vec());
                        assert!(!opened[from].contains(&sent));
                        opened[from].push(sent);
                        assert_eq!(receive(&mut peers[1 - from], &datagram), Err(OpenError::Replayed));
                    }
                }
            }
            assert!(peers[0].epoch().abs_diff(peers[1].epoch()) <= 1);
        }
        for _ in 0..3 {
            for from in [1, 0] {
                let datagram = send(&mut peers[from], b"still here");
                assert!(receive(&mut peers[1 - from], &datagram).is_ok());
            }
        }
    });
}

const SPAN: u64 = 1 << COUNTER_BITS;

/// A counter less than half a span away from the expected counter is reconstructed from its low bits.
#[test]
#[cfg_attr(kani, kani::proof)]
fn any_near_counter_is_reconstructed_from_its_low_bits() {
    let places = one_of((0..COUNTER_END, 0..4 * SPAN, COUNTER_END - 4 * SPAN..COUNTER_END));
    let input = (places, produce::<bool>(), 0..SPAN / 2);
    bolero::check!().with_iterations(10_000).with_generator(input).for_each(
        |&(expected, is_ahead, distance)| {
            let counter =
                if is_ahead { expected.checked_add(distance) } else { expected.checked_sub(distance) };
            if let Some(counter) = counter.filter(|counter| *counter < COUNTER_END) {
                assert_eq!(reconstruct(expected, counter & COUNTER_MASK), counter, "{expected} expected");
            }
        },
    );
}

/// Tests all low bits of counters near each critical value, including those at the edge of the reconstructible
/// range.
#[test]
fn counters_are_reconstructed_from_their_low_bits() {
    let places = [0, 1, SPAN / 2, SPAN, 3 * SPAN / 2, 2 * SPAN, 1 << 32, COUNTER_END - SPAN, COUNTER_END - 1];
    for expected in places.into_iter().flat_map(|place: u64| place.saturating_sub(3)..=place + 3) {
        let nearest = expected.saturating_sub(SPAN / 2 - 1)..=(expected + SPAN / 2).min(COUNTER_END - 1);
        let edges = [nearest.start(), nearest.end()].map(|edge| edge.saturating_sub(40)..=*edge + 40);
        let near = expected.saturating_sub(4096)..=expected + 4096;
        for counter in edges.into_iter().chain([near]).flatten().filter(|counter| nearest.contains(counter)) {
            assert_eq!(reconstruct(expected, counter & COUNTER_MASK), counter, "{expected} expected");
        }
    }
}

/// Tests every value of the low bits against the definition, for a few expected counters.
#[test]
fn all_low_bits_yield_the_closest_counter() {
    for expected in [0, 5, SPAN - 1, SPAN + 7, 9 * SPAN + SPAN / 2] {
        for low in 0..SPAN {
            let found = reconstruct(expected, low);
            assert_eq!(found & COUNTER_MASK, low);
            let distance = found.abs_diff(expected);
            assert!(distance <= SPAN / 2 || found < SPAN, "{found} is not the closest to {expected}");
            let others = [found.checked_sub(SPAN), Some(found + SPAN)];
            assert!(others.into_iter().flatten().all(|other| other.abs_diff(expected) >= distance));
        }
    }
}

/// A reference window without a size limit.
#[derive(Default)]
struct Model {
    seen: BTreeSet<u64>,
}

impl Model {
    fn is_new(&self, counter: u64) -> bool {
        let next = self.seen.last().map_or(0, |last| last + 1);
        counter + WINDOW >= next && !self.seen.contains(&counter)
    }
}

fn check(counters: impl IntoIterator<Item = u64>) {
    let (mut window, mut model) = (ReplayWindow::new(), Model::default());
    for counter in counters {
        assert_eq!(window.is_new(counter), model.is_new(counter), "{counter}");
        if model.is_new(counter) {
            window.mark(counter);
            model.seen.insert(counter);
            assert!(!window.is_new(counter));
        }
        assert_eq!(window.next(), model.seen.last().map_or(0, |last| last + 1));
    }
}

/// Tests every sequence of five counters from a set with the neighbours and edges of the window.
#[test]
fn every_short_sequence_agrees_with_the_reference_window() {
    let places = [0, 1, 31, 32, WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW, 3 * WINDOW + 5];
    let count = places.len();
    for index in 0..count.pow(5) {
        check((0..5).map(|digit| places[index / count.pow(digit) % count]));
    }
}

#[test]
fn counters_of_every_age_within_the_window_are_tracked() {
    let top = 5 * WINDOW + 77;
    let mut window = ReplayWindow::new();
    (0..=top).filter(|counter| counter % 3 == 0).for_each(|counter| window.mark(counter));
    let next = window.next();
    for counter in 0..next + 10 {
        let expected = counter >= next || (counter + WINDOW >= next && counter % 3 != 0);
        assert_eq!(window.is_new(counter), expected, "{counter}");
    }
}

/// A counter is new if it is in the window or ahead of it and was not marked, in any order of arrival.
#[test]
fn any_sequence_agrees_with_the_reference_window() {
    let step = (0_u64..3 * WINDOW, produce::<bool>());
    let steps = produce::<Vec<(u64, bool)>>().with().len(1..200_usize).values(step);
    bolero::check!().with_iterations(256).with_generator(steps).for_each(|steps| {
        let mut at = 0_u64;
        check(steps.iter().map(|(step, is_ahead)| {
            let counter = if *is_ahead { at + step % 70 } else { (at + 8).saturating_sub(*step) };
            at = at.max(counter);
            counter
        }));
    });
}
