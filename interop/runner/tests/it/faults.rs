//! Correct peers pass every judge, and each rule is broken by a fault.

use crate::tape::{Fault, PROTOCOL, capture};
use rakwire_interop_runner::capture::Fate;
use rakwire_interop_runner::cases::{ALL, Case};
use rakwire_interop_runner::finding::By;
use rakwire_interop_runner::judge::{Task, judge};
use rakwire_interop_runner::rules::{self, Rule};
use std::time::Duration;

fn case(name: &str) -> Case {
    *ALL.iter().find(|case| case.name == name).expect("a case")
}

/// The faults, each with a case that detects it and the rule that it breaks.
const FAULTS: [(Fault, &str, Rule); 47] = [
    (Fault::Garbage, "handshake", rules::READABLE),
    (Fault::BytesBehindCapsules, "handshake", rules::READABLE),
    (Fault::OtherVersion, "handshake", rules::VERSION),
    (Fault::NoReply2, "handshake", rules::HANDSHAKE),
    (Fault::Refusal, "handshake", rules::HANDSHAKE),
    (Fault::NoMessage13, "handshake", rules::HANDSHAKE),
    (Fault::OtherCookie, "handshake", rules::COOKIE),
    (Fault::Reply1RaisesMtu, "handshake", rules::MTU),
    (Fault::Reply2RaisesMtu, "handshake", rules::MTU),
    (Fault::NumberTwice, "handshake", rules::FRESH_NUMBER),
    (Fault::ChangedResend, "loss", rules::SAME_RESEND),
    (Fault::AckOfUnsent, "handshake", rules::ACK_OF_SENT),
    (Fault::NumberTwice, "loss", rules::FRESH_NUMBER),
    (Fault::AckOfUnsent, "loss", rules::ACK_OF_SENT),
    (Fault::AckOfLost, "loss", rules::ACK_OF_SENT),
    (Fault::PathWithoutFaults, "loss", rules::TOUCHED),
    (Fault::PathWithoutFaults, "reorder", rules::TOUCHED),
    (Fault::PathWithoutFaults, "duplicate", rules::TOUCHED),
    (Fault::WideMtu, "mtu", rules::PATH_MTU),
    (Fault::MessageMissing, "transfer-reliable", rules::SENT),
    (Fault::MessageTooShort, "transfer-reliable", rules::SENT),
    (Fault::OtherKind, "transfer-reliable", rules::KIND),
    (Fault::PartMissing, "split", rules::PARTS),
    (Fault::PartsDisagree, "split", rules::PARTS),
    (Fault::LongDatagram, "split", rules::FITS),
    (Fault::TinyMtu, "handshake", rules::FITS),
    (Fault::TinyMtu, "split", rules::FITS),
    (Fault::NoResend, "loss", rules::RECOVERED),
    (Fault::Lost, "transfer-unreliable", rules::ARRIVED),
    (Fault::EchoMissing, "transfer-reliable", rules::ECHOED),
    (Fault::EchoChanged, "split", rules::ECHO_SAME),
    (Fault::EchoTwice, "duplicate", rules::ECHO_ONCE),
    (Fault::EchoOfOtherKind, "transfer-reliable", rules::ECHO_KIND),
    (Fault::EchoOfOtherKind, "handshake", rules::ECHO_KIND),
    (Fault::EchoesOutOfOrder, "reorder", rules::ORDER),
    (Fault::SequenceRepeated, "transfer-unreliable-sequenced", rules::SEQUENCE),
    (Fault::NoAck, "idle", rules::ACKED),
    (Fault::NoGoodbye, "goodbye", rules::GOODBYE),
    (Fault::GoodbyeNotAcked, "goodbye", rules::GOODBYE_ACKED),
    (Fault::MessageAfterGoodbye, "goodbye", rules::SILENCE),
    (Fault::NoPong, "ping", rules::PONG),
    (Fault::PongOfOtherTime, "ping", rules::PONG),
    (Fault::LongAdvertisement, "ping", rules::ADVERTISEMENT),
    (Fault::NoPause, "idle", rules::PAUSE),
    (Fault::ClosedInPause, "idle", rules::KEPT_OPEN),
    (Fault::SilentInPause, "idle", rules::KEPT_ALIVE),
    (Fault::PingIgnored, "idle", rules::PING_ANSWERED),
];

#[test]
fn correct_peers_pass_every_case() {
    for case in ALL {
        let task = Task { case, protocol: PROTOCOL };
        assert_eq!(judge(&task, &capture(case, Fault::None)), Ok(()), "{}", case.name);
    }
}

#[test]
fn each_fault_is_reported_under_its_rule() {
    for (fault, name, rule) in FAULTS {
        let task = Task { case: case(name), protocol: PROTOCOL };
        let broken = judge(&task, &capture(task.case, fault)).expect_err(&format!("{fault:?}"));
        assert_eq!(broken.rule, rule, "{fault:?}: {broken}");
    }
    let task = Task { case: case("ping"), protocol: PROTOCOL };
    let broken = judge(&task, &capture(task.case, Fault::NoAdvertisement)).unwrap_err();
    assert_eq!(broken.rule, rules::ADVERTISEMENT, "{broken}");
}

/// Excludes the rule about starting programs, which the module `programs` tests.
#[test]
fn a_fault_exists_for_each_rule() {
    for rule in rules::ALL.iter().filter(|&&rule| rule != rules::STARTED) {
        assert!(FAULTS.iter().any(|(_, _, broken)| broken == rule), "no fault breaks {}", rule.name);
    }
}

/// A finding names the side (client or server) that broke the rule, because a limit excuses only failures of its own
/// side.
#[test]
fn a_finding_names_the_side_that_broke_the_rule() {
    for (fault, name, by) in [
        (Fault::NoReply2, "handshake", By::Server),
        (Fault::NoMessage13, "handshake", By::Client),
        (Fault::WideMtu, "mtu", By::Both),
        (Fault::MessageMissing, "transfer-reliable", By::Client),
        (Fault::EchoMissing, "transfer-reliable", By::Server),
        (Fault::SequenceRepeated, "transfer-unreliable-sequenced", By::Client),
        (Fault::NoAck, "idle", By::Server),
        (Fault::GoodbyeNotAcked, "goodbye", By::Server),
        (Fault::ClosedInPause, "idle", By::Server),
        (Fault::PingIgnored, "idle", By::Server),
    ] {
        let task = Task { case: case(name), protocol: PROTOCOL };
        let broken = judge(&task, &capture(task.case, fault)).expect_err(&format!("{fault:?}"));
        assert_eq!(broken.by, by, "{fault:?}: {broken}");
    }
}

/// A message that is not retransmitted is a fault of its sender, unless the receiver disconnected early.
#[test]
fn a_missing_retransmission_is_the_senders_fault_if_the_receiver_stayed() {
    let task = Task { case: case("loss"), protocol: PROTOCOL };
    let mut taken = capture(task.case, Fault::NoResend);
    assert_eq!(judge(&task, &taken).unwrap_err().by, By::Both);
    let first =
        taken.records.iter().position(|record| record.fate == Fate::Dropped).expect("a dropped datagram");
    // The receiver stays 10 s longer, so the sender had time to retransmit.
    for record in &mut taken.records[first + 1..] {
        record.at += Duration::from_secs(10);
        record.arrivals.iter_mut().for_each(|at| *at += Duration::from_secs(10));
    }
    let broken = judge(&task, &taken).unwrap_err();
    assert_eq!((broken.rule, broken.by), (rules::RECOVERED, By::Client), "{broken}");
}

#[test]
fn a_finding_states_the_datagram_and_the_offset() {
    let task = Task { case: case("handshake"), protocol: PROTOCOL };
    let taken = capture(task.case, Fault::BytesBehindCapsules);
    let broken = judge(&task, &taken).unwrap_err();
    let record = broken.record.expect("a datagram");
    // The bytes after the last valid capsule are a header with a length that exceeds the datagram.
    assert_eq!(taken.records[record].bytes[broken.offset..], [0, 0, 80, 1, 2, 3]);
    assert!(taken.excerpt(record, 0).starts_with("> "));
    assert!(broken.to_string().contains(&format!("datagram {record}, offset {:#x}", broken.offset)));
}
