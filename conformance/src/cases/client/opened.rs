//! Groups 25, 28 and 30: retransmission, pacing, and malformed datagrams of a client's connection.

use super::attempt::{client, goes_on};
use crate::case::{Case, Context};
use crate::case::{MUST, SHOULD};
use crate::check::{Check, ensure, fail};
use crate::model::Fault;
use crate::session::Session;
use crate::wire::{self, Capsule, id};
use std::time::{Duration, Instant};

const GAPS: &str = "gaps";
const RECORDS: &str = "records";
const DATAGRAMS: &str = "datagrams";
const HOSTILE_BYTES: &str = "hostile-bytes";

/// The cases of retransmission.
#[rustfmt::skip]
pub(super) const RESENDS: &[Case] = &[
    client(2541, "nak-resends-13", MUST, GAPS, "The client immediately retransmits the messages of a datagram for which it receives a negative acknowledgement.", nak, Fault::IgnoresNaks),
    client(2542, "resend-of-13-new-number", MUST, GAPS, "The client retransmits a message in a datagram with a new number.", new_number, Fault::ResendsSameDatagram),
    client(2543, "resend-of-13-same-message", MUST, GAPS, "The client keeps the reliable message number of a message that it retransmits.", same_message, Fault::ResendsRenumbered),
    client(2544, "acknowledged-13-not-resent", MUST, "acknowledgements", "The client does not retransmit an acknowledged message.", acked, Fault::ResendsForever),
    client(2545, "ack-run-read-by-client", MUST, RECORDS, "An acknowledgement record for a range (flag byte 00) acknowledges every datagram number from its first to its last.", run_read, Fault::ReadsRunsAsSingles),
    client(2546, "ack-odd-flag-of-server", SHOULD, RECORDS, "The client reads an acknowledgement record with a flag byte other than 00 or 01 as a single number.", odd_flag, Fault::FlagOneOnly),
    client(2547, "ack-with-speed-of-server", SHOULD, DATAGRAMS, "The client reads an acknowledgement that contains an arrival speed: its first byte is E0 instead of C0.", with_speed, Fault::IgnoresSpeedForm),
    client(2548, "ack-low-bits-of-server", SHOULD, DATAGRAMS, "The client ignores bits 4 to 0 of the first byte of an acknowledgement.", low_bits, Fault::AckByteExact),
];

/// The cases of pacing.
#[rustfmt::skip]
pub(super) const PACE: &[Case] = &[
    client(2811, "resends-of-13-bounded", SHOULD, "round-trip", "The client retransmits an unacknowledged message at most 40 times in a second.", bounded, Fault::ResendsWildly),
    client(2812, "resends-of-13-spaced", SHOULD, "round-trip", "The client does not retransmit a message earlier than 10 ms after its first transmission.", spaced, Fault::ResendsWildly),
    client(2813, "handshake-given-up", MUST, "timeouts", "The client stops sending within twice the connection timeout (--lifetime) if its connection request (09) is acknowledged but not answered.", given_up, Fault::NeverGivesUp),
];

/// The cases of malformed datagrams.
#[rustfmt::skip]
pub(super) const HOSTILE: &[Case] = &[
    client(3031, "replies-no-amplifier", MUST, "address-validation", "The client sends at most three times the bytes of the repeated reply 1 (06), not counting request 1 (05).", amplifies, Fault::RepeatsRequestTwo),
    client(3032, "late-reply-1", MUST, "offline-messages", "The client sends no request 2 (07) for a reply 1 (06) in an open connection, and the connection stays open.", late_reply, Fault::AnswersLateReplies),
    client(3033, "incompatible-in-connection", MUST, "offline-messages", "Incompatible protocol version (19) from the server's address does not close an open connection.", incompatible, Fault::BelievesRefusals),
    client(3034, "empty-datagram-to-client", MUST, HOSTILE_BYTES, "An empty datagram does not close the connection.", empty, Fault::DiesOfEmptyDatagram),
    client(3035, "datagram-of-2000-to-client", MUST, "sizes", "Datagrams of 2,000 bytes do not close the connection.", long, Fault::DiesOfLongDatagram),
    client(3036, "datagram-of-60000-to-client", MUST, HOSTILE_BYTES, "Datagrams of 60,000 bytes do not close the connection.", longest, Fault::DiesOfLongDatagram),
    client(3037, "long-datagrams-while-dialling", MUST, HOSTILE_BYTES, "Datagrams of 2,000 bytes do not end the client's attempt.", long_dialling, Fault::DiesOfLongDatagram),
    client(3038, "second-new-incoming", MUST, "both-dial", "New incoming connection (13) from the server does not close the connection.", thirteen, Fault::DiesOfSecondNewIncoming),
    client(3039, "short-control-to-client", MUST, HOSTILE_BYTES, "Connected pings (00) and pongs (03) that are truncated at any byte do not close the connection.", short_control, Fault::DiesOfShortControl),
    client(3040, "ids-of-requests-inside", MUST, "message-ids", "The client drops request 1 (05) and request 2 (07) in a connection, and the connection stays open.", requests_inside, Fault::DiesOfId(id::REQUEST_1)),
];

/// Opens a connection, and does not acknowledge the message NEW_INCOMING_CONNECTION (13). Returns the message and
/// its datagram number.
fn unacked(context: &mut Context) -> Check<(Session, Capsule, u32)> {
    let (mut session, _) = context.requested()?;
    session.acknowledges = false;
    let accepted = session.accepted(session.addresses);
    session.send_10(accepted)?;
    let thirteen = session.wait_for(id::NEW_INCOMING)?;
    let datagram = session.first(id::NEW_INCOMING).map_or(0, |arrival| arrival.datagram);
    Ok((session, thirteen, datagram))
}

/// Waits until new incoming connection (13) is retransmitted. Returns its datagram number and capsule.
fn resent(session: &mut Session, patience: u32) -> Check<(u32, Capsule)> {
    let before = session.with_id(id::NEW_INCOMING).count();
    let time = session.link.timing.answer * patience;
    session.wait(time, |session| session.with_id(id::NEW_INCOMING).count() > before)?;
    match session.with_id(id::NEW_INCOMING).nth(before) {
        Some(arrival) => Ok((arrival.datagram, arrival.capsule.clone())),
        None => fail("the client did not retransmit new incoming connection (13)"),
    }
}

fn nak(context: &mut Context) -> Check {
    let (mut session, _, datagram) = unacked(context)?;
    let began = Instant::now();
    session.link.send(&wire::records(0xa0, &[(datagram, datagram)]))?;
    resent(&mut session, 1)?;
    let first = began.elapsed();
    // A retransmission after a timeout arrives later; one requested by a NAK arrives immediately.
    ensure(first < context.timing.quiet, || {
        format!("the client retransmitted {first:?} after the negative acknowledgement")
    })
}

fn new_number(context: &mut Context) -> Check {
    let (mut session, _, datagram) = unacked(context)?;
    let (again, _) = resent(&mut session, 4)?;
    ensure(again != datagram, || format!("both datagrams have the number {datagram}"))
}

fn same_message(context: &mut Context) -> Check {
    let (mut session, first, _) = unacked(context)?;
    let (_, again) = resent(&mut session, 4)?;
    ensure(first == again, || {
        format!(
            "the reliable message number changed from {} to {}, or the message changed",
            first.number, again.number
        )
    })
}

/// Acknowledges all datagrams with `ack`, and fails if new incoming connection (13) is retransmitted.
fn not_resent(context: &mut Context, ack: impl Fn(u32) -> Vec<u8>) -> Check {
    let (mut session, first, datagram) = unacked(context)?;
    // Request a retransmission with a NAK first, so that the message is not in the first datagram of the range.
    session.link.send(&wire::records(0xa0, &[(datagram, datagram)]))?;
    resent(&mut session, 4)?;
    for _ in 0..2 {
        let newest = session.datagrams.iter().map(|datagram| datagram.0).max().unwrap_or_default();
        session.link.send(&ack(newest))?;
        // A retransmission that was sent earlier may be in flight.
        session.quiet()?;
    }
    let before = session.arrivals.len();
    session.pass(context.timing.answer * 2)?;
    let again = session.arrivals[before..].iter().any(|arrival| arrival.capsule == first);
    ensure(!again, || "the client retransmitted an acknowledged message".into())
}

/// Returns a single-number range for each number up to the newest.
fn singles(newest: u32) -> Vec<(u32, u32)> {
    (0..=newest).map(|number| (number, number)).collect()
}

fn acked(context: &mut Context) -> Check {
    not_resent(context, |newest| wire::records(0xc0, &singles(newest)))
}

fn run_read(context: &mut Context) -> Check {
    not_resent(context, |newest| wire::records(0xc0, &[(0, newest)]))
}

fn odd_flag(context: &mut Context) -> Check {
    not_resent(context, |newest| {
        let mut bytes = wire::records(0xc0, &singles(newest));
        // Each range has four bytes, after a header of three.
        bytes.iter_mut().skip(3).step_by(4).for_each(|flag| *flag = 7);
        bytes
    })
}

fn with_speed(context: &mut Context) -> Check {
    not_resent(context, |newest| {
        let plain = wire::records(0xe0, &singles(newest));
        [&plain[..1], &1000.0_f32.to_be_bytes(), &plain[1..]].concat()
    })
}

fn low_bits(context: &mut Context) -> Check {
    not_resent(context, |newest| wire::records(0xdf, &singles(newest)))
}

fn resends(context: &mut Context) -> Check<Vec<Instant>> {
    let (mut session, _, _) = unacked(context)?;
    session.pass(Duration::from_secs(1))?;
    Ok(session.with_id(id::NEW_INCOMING).map(|arrival| arrival.at).collect())
}

fn bounded(context: &mut Context) -> Check {
    let count = resends(context)?.len();
    ensure(count <= 41, || format!("the client sent new incoming connection (13) {count} times in a second"))
}

fn spaced(context: &mut Context) -> Check {
    let times = resends(context)?;
    let shortest = times.windows(2).map(|pair| pair[1] - pair[0]).next();
    let spaced = shortest.is_none_or(|time| time >= Duration::from_millis(10));
    ensure(spaced, || format!("the first retransmission was sent after {shortest:?}"))
}

fn given_up(context: &mut Context) -> Check {
    let (mut session, _) = context.requested()?;
    // Acknowledge the first datagrams, and then send nothing.
    session.quiet()?;
    session.acknowledges = false;
    session.answers_pings = false;
    session.pass(context.timing.lifetime * 2)?;
    let before = session.datagrams.len();
    session.pass(context.timing.lifetime)?;
    let after = session.datagrams.len() - before;
    ensure(after == 0, || format!("the client sent {after} datagrams after twice the timeout (--lifetime)"))
}

fn amplifies(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    let reply = attempt.reply_1(None, attempt.probed());
    attempt.link.during_quiet()?;
    let mut received = 0;
    let mut sent = 0;
    for _ in 0..30 {
        attempt.link.send(&reply)?;
        sent += reply.len();
    }
    for bytes in attempt.link.during_quiet()? {
        received += if wire::offline_id(&bytes) == Some(id::REQUEST_1) { 0 } else { bytes.len() };
    }
    ensure(received <= 3 * sent, || format!("the client sent {received} bytes for {sent} bytes"))
}

fn late_reply(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let reply = wire::reply_1(session.guid, None, session.reply_2.mtu);
    session.link.send(&reply)?;
    let deadline = Instant::now() + context.timing.quiet;
    while let Some(bytes) = session.link.receive(deadline)? {
        ensure(wire::offline_id(&bytes) != Some(id::REQUEST_2), || "the client sent request 2 (07)".into())?;
    }
    session.still_answers("a late reply 1 (06)")
}

fn incompatible(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let refusal = wire::incompatible(99, session.guid);
    session.link.send(&refusal)?;
    session.still_answers("incompatible protocol version (19)")
}

fn empty(context: &mut Context) -> Check {
    let mut session = context.open()?;
    session.link.send(&[])?;
    session.still_answers("an empty datagram")
}

fn of_length(context: &mut Context, len: usize) -> Check {
    let mut session = context.open()?;
    for first in [0x86, 0x06] {
        let mut bytes = vec![0x86; len];
        bytes[0] = first;
        session.link.send(&bytes)?;
    }
    session.still_answers(&format!("datagrams of {len} bytes"))
}

fn long(context: &mut Context) -> Check {
    of_length(context, 2000)
}

fn longest(context: &mut Context) -> Check {
    of_length(context, 60_000)
}

fn long_dialling(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    for first in [0x06, 0x08, 0x86] {
        let mut bytes = vec![0; 2000];
        bytes[0] = first;
        attempt.link.send(&bytes)?;
    }
    goes_on(&mut attempt, "datagrams of 2,000 bytes")
}

fn harmless(context: &mut Context, messages: &[Vec<u8>], what: &str) -> Check {
    let mut session = context.open_and_settle()?;
    for message in messages {
        session.send_reliable(message.clone())?;
    }
    session.quiet()?;
    session.still_answers(what)
}

fn thirteen(context: &mut Context) -> Check {
    harmless(
        context,
        &[wire::new_incoming(wire::unassigned(), 10, 1, 2)],
        "new incoming connection (13) from the server",
    )
}

fn short_control(context: &mut Context) -> Check {
    let whole = [wire::connected_ping(1), wire::connected_pong(1, 1)];
    let cut: Vec<_> =
        whole.iter().flat_map(|message| (1..message.len()).map(|len| message[..len].to_vec())).collect();
    harmless(context, &cut, "truncated pings and pongs")
}

fn requests_inside(context: &mut Context) -> Check {
    let messages = [wire::request_1(6, 100), wire::request_2(None, wire::unassigned(), 1492, 9)];
    harmless(context, &messages, "request 1 (05) and request 2 (07) in the connection")
}
