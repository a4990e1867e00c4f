//! Fuzzes the relay's data channel port with datagrams from arbitrary sources.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crc::{CRC_32_ISO_HDLC, Crc};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

use crate::steps::steps;
use crate::webrtc::{DatagramEvent, DatagramKind, Endpoint, Fingerprint, WebRtcCounters, WebRtcDropReason};

/// The type of the STUN attribute MESSAGE-INTEGRITY (RFC 8489 section 14.5).
const INTEGRITY: u16 = 0x0008;
/// The type of the STUN attribute FINGERPRINT (RFC 8489 section 14.7).
const FINGERPRINT: u16 = 0x8028;
/// The total length of both attributes in bytes.
const TAIL: usize = 24 + 8;

/// The USERNAME attribute of a connectivity check, in which the page includes its own password.
const NAMES: &[u8; 36] = b"\0\x06\0\x20rakwire/p4ssw0rdOfThePage/0123:a";

/// The time for which a source stays validated after it has answered.
const VALIDATED: Duration = Duration::from_secs(10);

/// Builds a connectivity check with these attributes, signed with `password`, with a valid fingerprint.
fn check(attributes: &[u8], password: &str) -> Vec<u8> {
    let attributes = [NAMES, attributes].concat();
    let length = |more: usize| u16::try_from(attributes.len() + more).expect("a step is short").to_be_bytes();
    let mut message =
        [&[0, 1][..], &length(24), &0x2112_a442_u32.to_be_bytes(), &[7; 12], &attributes].concat();
    let mut mac = Hmac::<Sha1>::new_from_slice(password.as_bytes()).expect("HMAC accepts keys of any length");
    mac.update(&message);
    let sum = mac.finalize().into_bytes();
    message.extend(INTEGRITY.to_be_bytes().into_iter().chain([0, 20]).chain(sum));
    message[2..4].copy_from_slice(&length(TAIL));
    let sum = Crc::<u32>::new(&CRC_32_ISO_HDLC).checksum(&message) ^ 0x5354_554e;
    message.extend(FINGERPRINT.to_be_bytes().into_iter().chain([0, 4]).chain(sum.to_be_bytes()));
    message
}

fn source(flags: u8) -> SocketAddr {
    ([198, 51, 100, flags & 1], 1_000 + u16::from((flags >> 1) & 1)).into()
}

/// Builds the page's answer to a connectivity check of the relay.
fn answer_to(challenge: &[u8]) -> Vec<u8> {
    [&[1, 1, 0, 0][..], challenge.get(4..20).expect("a header")].concat()
}

/// Checks the guarantees of the endpoint.
///
/// - The relay answers only checks with the password, with at most twice the received bytes.
/// - Only a source that has answered a check of the relay can start a session, or move one from another port of its
///   address.
/// - Every answered, challenged or dropped datagram is counted.
pub fn datagrams(input: &[u8]) {
    let fingerprint = Fingerprint::of(b"a certificate");
    let password = fingerprint.to_string().replace(':', "").to_ascii_lowercase();
    let counters = Arc::<WebRtcCounters>::default();
    let mut now = Instant::now();
    let mut endpoint =
        Endpoint::new(&fingerprint, &[3; 20], Arc::clone(&counters), now).expect("a valid key");
    // The expected sessions of each source: the half-open session, and the session with a complete handshake.
    let mut sessions = HashMap::<SocketAddr, [Option<u32>; 2]>::new();
    // The time until which each source is validated.
    let mut validated = HashMap::<SocketAddr, Instant>::new();
    let (mut next, mut answered, mut challenged, mut dropped) = (0, 0, 0, 0);
    for step in steps(input) {
        let from = source(step.flags);
        now += Duration::from_millis(u64::from(step.flags >> 6) * 300);
        let datagram = match (step.flags >> 2) & 3 {
            0 => step.bytes.to_vec(),
            1 => check(step.bytes, &password),
            2 => check(step.bytes, "guessed"),
            _ => [&[22, 0xfe, 0xfd][..], &[0; 8], &[0, 40], step.bytes].concat(),
        };
        let mut known = sessions.get(&from).copied().unwrap_or_default();
        match endpoint.handle(now, from, &datagram) {
            DatagramEvent::Answer(answer) => {
                assert_eq!(DatagramKind::of(&datagram), DatagramKind::Stun);
                assert_ne!((step.flags >> 2) & 3, 2, "a check with a wrong password was answered");
                assert!(answer.len() <= datagram.len());
                answered += 1;
            }
            DatagramEvent::Challenge { check, answer } => {
                assert_eq!(
                    (step.flags >> 2) & 3,
                    1,
                    "a datagram other than a check with the password was challenged"
                );
                assert!(check.len() + answer.len() <= 2 * datagram.len());
                answered += 1;
                challenged += 1;
                if (step.flags >> 4) & 3 == 1 {
                    let answer = answer_to(&check);
                    assert_eq!(endpoint.handle(now, source(!step.flags), &answer), DatagramEvent::Dropped);
                    dropped += 1;
                    assert_eq!(endpoint.handle(now, from, &answer), DatagramEvent::Validated);
                    validated.insert(from, now + VALIDATED);
                }
            }
            DatagramEvent::Validated => panic!("a source was validated without an answer to a check"),
            // The page with the session at the other port of this address has moved to this port.
            DatagramEvent::Sessions([Some(session), None]) if known == [None; 2] => {
                let home = source(step.flags ^ 2);
                let at_home = sessions.get_mut(&home).expect("a session at the other port of the address");
                assert_eq!(at_home[1], Some(session));
                assert!(
                    validated.contains_key(&from),
                    "a source that has never answered a check reached a session"
                );
                if (step.flags >> 4) & 3 == 1 {
                    assert!(endpoint.follow(home, from, &session));
                    known[1] = at_home[1].take();
                    assert_eq!(endpoint.session(home), None);
                }
            }
            DatagramEvent::Sessions([proved, half_open]) => {
                assert_eq!([half_open, proved], known);
                assert!(proved.or(half_open).is_some());
            }
            DatagramEvent::Begin => {
                assert_eq!(known[0], None, "a source with a half-open session started another one");
                assert!(
                    validated.get(&from).is_some_and(|end| now < *end),
                    "an unvalidated source started a session"
                );
                assert_eq!(
                    endpoint.open(from, next),
                    None,
                    "a new session evicted another one, although slots are free"
                );
                known[0] = Some(next);
                next += 1;
            }
            DatagramEvent::Dropped => dropped += 1,
        }
        match ((step.flags >> 4) & 3, known) {
            (1, [Some(half_open), proved]) => {
                assert_eq!(endpoint.prove(from, &half_open), proved);
                known = [None, Some(half_open)];
            }
            (2, [_, Some(proved)]) => {
                endpoint.close(from, &proved);
                known[1] = None;
            }
            (3, [Some(half_open), _]) => {
                endpoint.close(from, &half_open);
                known[0] = None;
            }
            _ => {}
        }
        assert_eq!(endpoint.session(from), known[1].as_ref());
        sessions.insert(from, known);
    }
    let snapshot = counters.snapshot();
    let drops: u64 = WebRtcDropReason::ALL.into_iter().map(|reason| snapshot.drops(reason)).sum();
    assert_eq!((snapshot.answers, snapshot.challenges, drops), (answered, challenged, dropped));
}
