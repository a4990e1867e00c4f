//! Group 5: acknowledgements, missing datagrams and retransmission.

use crate::case::{Case, Context};
use crate::case::{MUST, SHOULD};
use crate::check::{Check, ensure, fail, skip};
use crate::model::Fault;
use crate::session::{Session, now};
use crate::wire::{self, Capsule, U24, id};
use std::time::Instant;

const ACKS: &str = "acknowledgements";
const GAPS: &str = "gaps";
const RECORDS: &str = "records";
const DUPLICATES: &str = "duplicates";
const DATAGRAMS: &str = "datagrams";
const SERIAL: &str = "serial-numbers";

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    Case::new(501, "unreliable-acknowledged", MUST, ACKS, "The peer acknowledges a datagram that contains only unreliable messages.", unreliable_acked, Fault::AcksOnlyReliable),
    Case::new(502, "ack-in-time", SHOULD, ACKS, "The peer sends an acknowledgement within 10 ms; the suite allows 100 ms, because the path adds a delay.", in_time, Fault::LateAcks),
    Case::new(503, "ack-format", MUST, RECORDS, "An acknowledgement contains exactly as many records as its count field states.", format, Fault::AckTail),
    Case::new(504, "ack-not-acknowledged", MUST, ACKS, "The peer does not acknowledge an acknowledgement.", ack_of_ack, Fault::AcksAcks),
    Case::new(505, "nak-not-acknowledged", MUST, ACKS, "The peer does not acknowledge a negative acknowledgement.", ack_of_nak, Fault::AcksNaks),
    Case::new(506, "gap-reported", MUST, GAPS, "The peer reports a skipped datagram number in a negative acknowledgement.", gap_reported, Fault::NoNaks),
    Case::new(507, "gap-exact", MUST, GAPS, "The peer reports exactly the numbers between the expected and the received datagram number as missing.", gap_exact, Fault::NaksTooMany),
    Case::new(508, "gap-once", SHOULD, GAPS, "The peer reports a gap in the datagram numbers only once.", gap_once, Fault::NaksTwice),
    Case::new(509, "gap-of-3000", SHOULD, GAPS, "After a jump to datagram number 3000, the peer reports only the last 1,000 missing numbers, 2000 to 2999.", gap_long, Fault::NaksAll),
    Case::new(510, "jump-ignored", SHOULD, GAPS, "The peer neither acknowledges nor processes a datagram whose number is more than 50,000 ahead.", jump_ignored, Fault::TakesAnyJump),
    Case::new(511, "jump-forgotten", MUST, GAPS, "After the peer has ignored a datagram that is too far ahead, it accepts the datagram with the expected number.", jump_forgotten, Fault::JumpConfuses),
    Case::new(512, "jump-taken", MUST, GAPS, "The peer processes and acknowledges a datagram whose number is 1,000 ahead.", jump_taken, Fault::RefusesJumps),
    Case::new(513, "duplicate-acknowledged", MUST, DUPLICATES, "The peer acknowledges a duplicate datagram again.", duplicate_acked, Fault::NoAckOfDuplicates),
    Case::new(514, "duplicate-delivered-once", MUST, DUPLICATES, "The peer delivers a reliable message once if its datagram is duplicated.", duplicate_once, Fault::DeliversDuplicates),
    Case::new(515, "resend-delivered-once", MUST, DUPLICATES, "The peer delivers a reliable message once if it is retransmitted in new datagrams.", resend_once, Fault::DeliversDuplicates),
    Case::new(516, "late-taken", MUST, GAPS, "The peer processes and acknowledges a datagram that arrives after a datagram with a higher number.", late_taken, Fault::DropsLate),
    Case::new(517, "late-not-missing", SHOULD, GAPS, "The peer does not report a datagram number as missing after the datagram has arrived.", late_not_missing, Fault::NaksTwice),
    Case::new(518, "nak-resends", MUST, GAPS, "The server immediately retransmits the messages of a datagram for which it receives a negative acknowledgement.", nak_resends, Fault::IgnoresNaks),
    Case::new(519, "resend-new-number", MUST, GAPS, "The server retransmits a message in a datagram with a new number.", resend_number, Fault::ResendsSameDatagram),
    Case::new(520, "resend-same-message-number", MUST, GAPS, "The server keeps the reliable message number of a message that it retransmits.", resend_message, Fault::ResendsRenumbered),
    Case::new(521, "acknowledged-not-resent", MUST, ACKS, "The server does not retransmit an acknowledged message.", acked_not_resent, Fault::ResendsForever),
    Case::new(522, "ack-run-read", MUST, RECORDS, "An acknowledgement record for a range (flag byte 00) acknowledges every datagram number from its first to its last.", run_read, Fault::ReadsRunsAsSingles),
    Case::new(523, "ack-odd-flag", SHOULD, RECORDS, "The server reads an acknowledgement record with a flag byte other than 00 or 01 as a single number.", odd_flag, Fault::FlagOneOnly),
    Case::new(524, "ack-with-speed", SHOULD, DATAGRAMS, "The server reads an acknowledgement that contains an arrival speed: its first byte is E0 instead of C0.", with_speed, Fault::IgnoresSpeedForm),
    Case::new(525, "ack-low-bits", SHOULD, DATAGRAMS, "The server ignores bits 4 to 0 of the first byte of an acknowledgement.", low_bits, Fault::AckByteExact),
    Case::new(526, "ack-unknown-harmless", MUST, ACKS, "An acknowledgement of datagram numbers that the peer has not sent does not close the connection.", unknown_ack, Fault::DiesOfUnknownAck),
    Case::new(527, "nak-unknown-harmless", MUST, ACKS, "A negative acknowledgement of datagram numbers that the peer has not sent does not close the connection.", unknown_nak, Fault::DiesOfUnknownNak),
    Case::new(528, "ack-backwards-harmless", MUST, RECORDS, "A record with a last number below its first number does not close the connection.", backwards, Fault::DiesOfBackwardsRecord),
    Case::new(529, "ack-truncated-harmless", MUST, RECORDS, "Truncated acknowledgements do not close the connection.", truncated, Fault::DiesOfTruncatedAck),
    Case::new(530, "burst-acknowledged", MUST, ACKS, "The peer acknowledges every datagram of a burst of 40.", burst, Fault::AcksLastOfBurst),
    Case::new(531, "burst-merged", SHOULD, ACKS, "The peer acknowledges a burst of 40 datagrams with fewer than 40 acknowledgements.", merged, Fault::AcksSingly),
    Case::new(532, "ack-nothing-unsent", MUST, ACKS, "The peer acknowledges no datagram number that the suite has not sent.", nothing_unsent, Fault::AcksOneMore),
    Case::new(533, "data-hints-ignored", MUST, DATAGRAMS, "The peer accepts data datagrams with any value in bits 4 to 0 of the first byte, because these bits are hints.", hints, Fault::DataByteExact),
    Case::new(534, "datagram-numbers-wrap", MUST, SERIAL, "Datagram numbers wrap at 2^24: the peer accepts and acknowledges the datagram number 0 after the highest number, FFFFFF.", wrap, Fault::NoWrap),
    Case::new(535, "gap-across-wrap", SHOULD, RECORDS, "The peer reports a gap that crosses the wrap at 2^24 in ranges that do not wrap.", gap_across_wrap, Fault::NaksWrapped),
    Case::new(536, "repeated-number-read", SHOULD, DUPLICATES, "The peer delivers a new reliable message in a datagram whose number it has already received.", number_twice, Fault::DropsRepeatedNumbers),
    Case::new(537, "repeated-number-unreliable", SHOULD, DUPLICATES, "The peer drops the unreliable messages of a duplicate datagram.", unreliable_once, Fault::UnreliableTwice),
];

fn ping(session: &mut Session, time: u64) -> Check<u32> {
    session.send(&[Capsule::unreliable(wire::connected_ping(time))])
}

fn unreliable_acked(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let number = ping(&mut session, 501)?;
    ensure(session.wait_ack(number)?, || format!("the peer did not acknowledge datagram {number}"))
}

fn in_time(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    // If the suite answered the server's pings, the acknowledgement of its pong could include the measured message.
    session.answers_pings = false;
    session.pass(context.timing.quiet * 2)?;
    let mut best = u128::MAX;
    for time in 0..3 {
        let began = Instant::now();
        let number = ping(&mut session, 50_200 + time)?;
        if session.wait_ack(number)? {
            best = best.min(began.elapsed().as_millis());
        }
    }
    ensure(best < 100, || format!("the fastest of three acknowledgements took {best} ms"))
}

fn format(context: &mut Context) -> Check {
    let mut session = context.open()?;
    for time in 0..4 {
        ping(&mut session, 50_300 + time)?;
        session.number += 1;
    }
    session.quiet()?;
    ensure(session.broken == 0, || format!("the peer sent {} malformed datagrams", session.broken))?;
    ensure(!session.receipts.is_empty(), || "the peer sent no acknowledgement".into())
}

fn only_answers(context: &mut Context, bytes: &[u8]) -> Check {
    let mut session = context.open()?;
    // If the suite answered the server's pings, the server would correctly acknowledge the pong.
    session.answers_pings = false;
    session.quiet()?;
    let before = session.receipts.len();
    for _ in 0..3 {
        session.link.send(bytes)?;
    }
    session.quiet()?;
    ensure(session.receipts.len() == before, || "the peer sent an acknowledgement".into())
}

fn ack_of_ack(context: &mut Context) -> Check {
    only_answers(context, &wire::records(0xc0, &[(0, 0)]))
}

fn ack_of_nak(context: &mut Context) -> Check {
    only_answers(context, &wire::records(0xa0, &[(5000, 5000)]))
}

/// Skips `count` datagram numbers and returns the first of them.
fn skip_numbers(session: &mut Session, count: u32, time: u64) -> Check<u32> {
    let first = session.number;
    session.number = (first + count) % U24;
    ping(session, time)?;
    Ok(first)
}

fn gap_reported(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let first = skip_numbers(&mut session, 1, 506)?;
    let answer = context.timing.answer;
    let reported = session.wait(answer, |session| session.is_missing(first))?;
    ensure(reported, || format!("the peer did not report datagram {first} as missing"))
}

fn gap_exact(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let first = skip_numbers(&mut session, 5, 507)?;
    session.quiet()?;
    for number in first.saturating_sub(3)..first + 8 {
        let due = (first..first + 5).contains(&number);
        let missing = session.is_missing(number);
        ensure(missing == due, || {
            format!("reported missing is {missing} for datagram {number}; the gap of five begins at {first}")
        })?;
    }
    Ok(())
}

fn gap_once(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let first = skip_numbers(&mut session, 2, 508)?;
    session.quiet()?;
    ping(&mut session, 50_801)?;
    session.quiet()?;
    let times = session.missing.iter().filter(|record| (record.0..=record.1).contains(&first)).count();
    ensure(times == 1, || format!("the peer reported the gap {times} times"))
}

fn gap_long(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    session.number = 3000;
    ping(&mut session, 509)?;
    session.quiet()?;
    for (number, due) in [(1999, false), (2000, true), (2500, true), (2999, true), (3000, false)] {
        let missing = session.is_missing(number);
        ensure(missing == due, || format!("reported missing is {missing} for datagram {number}, not {due}"))?;
    }
    Ok(())
}

fn jump_ignored(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let far = session.number + 60_000;
    session.send_as(far, &[Capsule::unreliable(wire::connected_ping(510))])?;
    session.expect_no_pong(510, "a datagram that is 60,000 ahead")?;
    ensure(!session.is_acked(far), || "the peer acknowledged the datagram".into())
}

fn jump_forgotten(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let far = session.number + 60_000;
    session.send_as(far, &[Capsule::unreliable(wire::connected_ping(511))])?;
    session.quiet()?;
    let number = ping(&mut session, 51_100)?;
    session.expect_pong(51_100, "the datagram with the expected number")?;
    ensure(session.wait_ack(number)?, || {
        "the peer did not acknowledge the datagram with the expected number".into()
    })
}

fn jump_taken(context: &mut Context) -> Check {
    let mut session = context.open()?;
    skip_numbers(&mut session, 1000, 512)?;
    session.expect_pong(512, "a datagram that is 1,000 ahead")?;
    ensure(session.wait_ack(session.number - 1)?, || "the peer did not acknowledge the datagram".into())
}

fn duplicate_acked(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let number = session.number;
    session.send_reliable(wire::connected_ping(513))?;
    ensure(session.wait_ack(number)?, || {
        "the peer did not acknowledge the first copy of the datagram".into()
    })?;
    session.quiet()?;
    session.acked.clear();
    let again = Capsule::reliable(session.reliable - 1, wire::connected_ping(513));
    session.send_as(number, &[again])?;
    ensure(session.wait_ack(number)?, || {
        "the peer did not acknowledge the second copy of the datagram".into()
    })
}

fn delivered_once(context: &mut Context, same_datagram: bool) -> Check {
    let mut session = context.open_and_settle()?;
    let number = session.next_reliable();
    let capsule = [Capsule::reliable(number, wire::connected_ping(514))];
    let first = session.send(&capsule)?;
    session.expect_pong(514, "a reliable message")?;
    for _ in 0..3 {
        if same_datagram {
            session.send_as(first, &capsule)?;
        } else {
            session.send(&capsule)?;
        }
    }
    session.quiet()?;
    let count = distinct_pongs(&session, 514);
    ensure(count == 1, || format!("the peer delivered the message {count} times"))
}

/// Returns the number of distinct pongs for a ping. Retransmissions of a pong do not count.
fn distinct_pongs(session: &Session, time: u64) -> usize {
    let time = time.to_be_bytes();
    let mut reliable = Vec::new();
    let mut count = 0;
    for pong in session.with_id(id::CONNECTED_PONG) {
        let again = pong.capsule.is_reliable() && reliable.contains(&pong.capsule.number);
        if pong.capsule.payload.get(1..9) == Some(&time[..]) && !again {
            count += 1;
            reliable.push(pong.capsule.number);
        }
    }
    count
}

fn duplicate_once(context: &mut Context) -> Check {
    delivered_once(context, true)
}

fn resend_once(context: &mut Context) -> Check {
    delivered_once(context, false)
}

fn late_taken(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let late = skip_numbers(&mut session, 1, 51_600)?;
    session.expect_pong(51_600, "the datagram after a gap")?;
    session.send_as(late, &[Capsule::unreliable(wire::connected_ping(51_601))])?;
    session.expect_pong(51_601, "a late datagram")?;
    ensure(session.wait_ack(late)?, || "the peer did not acknowledge the late datagram".into())
}

fn late_not_missing(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let late = skip_numbers(&mut session, 1, 51_700)?;
    session.send_as(late, &[Capsule::unreliable(wire::connected_ping(51_701))])?;
    session.quiet()?;
    session.missing.clear();
    ping(&mut session, 51_702)?;
    session.quiet()?;
    ensure(!session.is_missing(late), || "the peer reported a received datagram as missing".into())
}

/// Sends a connection request (09), and does not acknowledge connection request accepted (10). Returns message 10 and
/// its datagram number.
fn unacked(context: &mut Context) -> Check<(Session, Capsule, u32)> {
    let password = context.password();
    let mut session = context.dial()?;
    session.acknowledges = false;
    let request = wire::connection_request(session.guid, now(), &password);
    session.send_reliable(request)?;
    let answer = context.timing.answer;
    session.wait(answer, |session| session.first(id::ACCEPTED).is_some())?;
    match session.first(id::ACCEPTED).cloned() {
        // Case 408 tests that this message is reliable. No other server message is required to be reliable.
        Some(first) if !first.capsule.is_reliable() => skip("connection request accepted (10) is unreliable"),
        Some(first) => Ok((session, first.capsule, first.datagram)),
        None => fail("the server did not send connection request accepted (10)"),
    }
}

/// Waits until message 10 is retransmitted. Returns its datagram number and capsule.
fn resent(session: &mut Session, patience: u32) -> Check<(u32, Capsule)> {
    let before = session.with_id(id::ACCEPTED).count();
    let time = session.link.timing.answer * patience;
    session.wait(time, |session| session.with_id(id::ACCEPTED).count() > before)?;
    match session.with_id(id::ACCEPTED).nth(before) {
        Some(arrival) => Ok((arrival.datagram, arrival.capsule.clone())),
        None => fail("the server did not retransmit connection request accepted (10)"),
    }
}

fn nak_resends(context: &mut Context) -> Check {
    let (mut session, _, datagram) = unacked(context)?;
    let began = Instant::now();
    session.link.send(&wire::records(0xa0, &[(datagram, datagram)]))?;
    resent(&mut session, 1)?;
    let first = began.elapsed();
    // A retransmission after a timeout arrives later; one requested by a NAK arrives immediately.
    ensure(first < context.timing.quiet, || {
        format!("the server retransmitted {first:?} after the negative acknowledgement")
    })
}

fn resend_number(context: &mut Context) -> Check {
    let (mut session, _, datagram) = unacked(context)?;
    let (again, _) = resent(&mut session, 4)?;
    ensure(again != datagram, || format!("both datagrams have the number {datagram}"))
}

fn resend_message(context: &mut Context) -> Check {
    let (mut session, first, _) = unacked(context)?;
    let (_, again) = resent(&mut session, 4)?;
    ensure(first == again, || {
        format!(
            "the reliable message number changed from {} to {}, or the message changed",
            first.number, again.number
        )
    })
}

/// Acknowledges outstanding datagrams with `ack`, and fails if message 10 is retransmitted.
fn not_resent(context: &mut Context, ack: impl Fn(u32) -> Vec<u8>) -> Check {
    let (mut session, first, datagram) = unacked(context)?;
    // Request a retransmission with a NAK first, so that the message is not in the first datagram of the range.
    session.link.send(&wire::records(0xa0, &[(datagram, datagram)]))?;
    resent(&mut session, 4)?;
    let newest = session.datagrams.iter().map(|datagram| datagram.0).max().unwrap_or_default();
    session.link.send(&ack(newest))?;
    // A retransmission that was sent earlier may be in flight.
    session.quiet()?;
    let newest = session.datagrams.iter().map(|datagram| datagram.0).max().unwrap_or_default();
    session.link.send(&ack(newest))?;
    session.pass(context.timing.quiet / 4)?;
    let before = session.arrivals.len();
    session.pass(context.timing.answer * 2)?;
    let again = session.arrivals[before..].iter().any(|arrival| arrival.capsule == first);
    ensure(!again, || "the server retransmitted an acknowledged message".into())
}

fn singles(newest: u32, flag: u8) -> Vec<u8> {
    let mut out = vec![];
    out.extend((newest as u16 + 1).to_be_bytes());
    for number in 0..=newest {
        out.push(flag);
        wire::put_u24(&mut out, number);
    }
    out
}

fn acked_not_resent(context: &mut Context) -> Check {
    not_resent(context, |newest| [vec![0xc0], singles(newest, 1)].concat())
}

fn run_read(context: &mut Context) -> Check {
    // The range ends at a number that was not sent. It is therefore a real range, even for a single datagram.
    not_resent(context, |newest| wire::records(0xc0, &[(0, newest + 1)]))
}

fn odd_flag(context: &mut Context) -> Check {
    not_resent(context, |newest| [vec![0xc0], singles(newest, 0xff)].concat())
}

fn with_speed(context: &mut Context) -> Check {
    not_resent(context, |newest| [vec![0xe0, 0x44, 0x7a, 0, 0], singles(newest, 1)].concat())
}

fn low_bits(context: &mut Context) -> Check {
    not_resent(context, |newest| [vec![0xdf], singles(newest, 1)].concat())
}

fn harmless(context: &mut Context, datagrams: &[Vec<u8>], what: &str) -> Check {
    let mut session = context.open_and_settle()?;
    for datagram in datagrams {
        session.link.send(datagram)?;
    }
    session.quiet()?;
    session.still_answers(what)
}

fn unknown_ack(context: &mut Context) -> Check {
    let all = [(1000, 1000), (2000, 3000), (0xff_fff0, 0xff_fffe)].map(|run| wire::records(0xc0, &[run]));
    harmless(context, &all, "acknowledgements of unknown numbers")
}

fn unknown_nak(context: &mut Context) -> Check {
    let all = [(1000, 1000), (2000, 3000), (0xff_fff0, 0xff_fffe)].map(|run| wire::records(0xa0, &[run]));
    harmless(context, &all, "negative acknowledgements of unknown numbers")
}

fn backwards(context: &mut Context) -> Check {
    let all = [0xc0, 0xa0].map(|flags| vec![flags, 0, 1, 0, 9, 0, 0, 3, 0, 0]);
    harmless(context, &all, "records with a last number below the first")
}

fn truncated(context: &mut Context) -> Check {
    let whole = wire::records(0xc0, &[(3000, 3000), (4000, 5000)]);
    let mut all: Vec<_> = (3..whole.len()).map(|len| whole[..len].to_vec()).collect();
    all.push(vec![0xc0, 0xff, 0xff]);
    all.push(vec![0xa0, 0xff, 0xff, 1, 0, 0]);
    harmless(context, &all, "truncated acknowledgements")
}

fn burst_of_40(context: &mut Context) -> Check<(Session, u32)> {
    let mut session = context.open_and_settle()?;
    session.receipts.clear();
    let first = session.number;
    for _ in 0..40 {
        let number = session.next_reliable();
        session.send(&[Capsule::reliable(number, vec![4])])?;
    }
    let answer = context.timing.answer;
    let all = move |session: &Session| (first..first + 40).all(|number| session.is_acked(number));
    session.wait(answer, all)?;
    Ok((session, first))
}

fn burst(context: &mut Context) -> Check {
    let (session, first) = burst_of_40(context)?;
    let lost: Vec<_> = (first..first + 40).filter(|&number| !session.is_acked(number)).collect();
    ensure(lost.is_empty(), || {
        format!("the peer did not acknowledge the datagrams {lost:?} of 40 from {first}")
    })
}

fn merged(context: &mut Context) -> Check {
    let (session, _) = burst_of_40(context)?;
    let count = session.receipts.len();
    ensure(count < 40, || format!("the peer sent {count} acknowledgements for 40 datagrams"))
}

fn nothing_unsent(context: &mut Context) -> Check {
    let (session, _) = burst_of_40(context)?;
    let unsent = session.acked.iter().find(|record| record.1 >= session.number);
    ensure(unsent.is_none(), || {
        format!("the peer acknowledged {unsent:?}, but the next datagram has the number {}", session.number)
    })
}

fn hints(context: &mut Context) -> Check {
    let mut session = context.open()?;
    for (time, flags) in (53_300..).zip([0x80, 0x84, 0x88, 0x8c, 0x90, 0x94, 0x9f]) {
        let number = session.number;
        session.number += 1;
        let capsule = Capsule::unreliable(wire::connected_ping(time));
        session.link.send(&wire::data(flags, number, &[capsule]))?;
        session.expect_pong(time, &format!("a data datagram with the first byte {flags:02x}"))?;
    }
    Ok(())
}

/// Advances the datagram number to just before its wrap-around, in steps that a receiver accepts.
fn approach_end(context: &mut Context) -> Check<Session> {
    let mut session = context.open_and_settle()?;
    let mut step = 0;
    while session.number < U24 - 40_001 {
        session.number += 40_000;
        ping(&mut session, 0x5340_0000 + step)?;
        step += 1;
        // Wait regularly, because this case does not test the capacity of the peer's receive queue.
        if step.is_multiple_of(4) {
            let last = session.number - 1;
            ensure(session.wait_ack(last)?, || format!("the peer did not acknowledge datagram {last}"))?;
        }
    }
    Ok(session)
}

fn wrap(context: &mut Context) -> Check {
    let mut session = approach_end(context)?;
    session.number = U24 - 3;
    for step in 0..6 {
        session.acked.clear();
        let time = 0x5341_0000 + step;
        let number = ping(&mut session, time)?;
        session.expect_pong(time, &format!("the datagram with number {number:#x}"))?;
        ensure(session.wait_ack(number)?, || {
            format!("the peer did not acknowledge datagram number {number:#x}")
        })?;
    }
    Ok(())
}

fn gap_across_wrap(context: &mut Context) -> Check {
    let mut session = approach_end(context)?;
    // A pong to the server would use up a datagram number.
    session.answers_pings = false;
    session.number = U24 - 3;
    ping(&mut session, 0x5351_0000)?;
    session.expect_pong(0x5351_0000, "the datagram with number 0xfffffd")?;
    session.quiet()?;
    session.missing.clear();
    session.broken = 0;
    session.number = 2;
    ping(&mut session, 0x5351_0001)?;
    session.quiet()?;
    let reported = [0xff_fffe, 0xff_ffff, 0, 1].iter().filter(|&&number| session.is_missing(number)).count();
    ensure(session.broken == 0, || "the peer sent a malformed negative acknowledgement".into())?;
    ensure(reported == 4, || format!("the peer reported {reported} of the four missing numbers"))
}

fn number_twice(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let number = session.send_reliable(wire::connected_ping(53_600))?;
    session.expect_pong(53_600, "the first datagram")?;
    let reliable = session.next_reliable();
    session.send_as(number, &[Capsule::reliable(reliable, wire::connected_ping(53_601))])?;
    session.expect_pong(53_601, "another datagram with the same number")
}

fn unreliable_once(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let number = ping(&mut session, 537)?;
    session.expect_pong(537, "the first datagram")?;
    session.send_as(number, &[Capsule::unreliable(wire::connected_ping(537))])?;
    session.quiet()?;
    let count = distinct_pongs(&session, 537);
    ensure(count == 1, || format!("the peer delivered the unreliable message {count} times"))
}
