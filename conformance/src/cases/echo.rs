//! Group 11: application messages, end to end, with a server that echoes them.
//!
//! Servers may choose the reliability and the channel of echoes. Only their bytes, number and order are tested.

use crate::case::{Case, Context, Needs};
use crate::case::{MUST, SHOULD};
use crate::check::{Check, ensure, fail};
use crate::model::Fault;
use crate::session::{Arrival, Session};
use crate::wire::{self, Capsule, Split, U24, id};
use std::collections::BTreeMap;

const SENDING: &str = "sending";
const CAPSULES: &str = "capsules";
const SIZES: &str = "sizes";
const SPLITS: &str = "splits";
const ORDER: &str = "ordering";
const APPLICATION: &str = "which-messages-are-the-applications";

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    echo(1101, "echo-unreliable", MUST, APPLICATION, "The server's application receives and echoes an unreliable message (reliability 0).", e0, Fault::DropsReliability(0)),
    echo(1102, "echo-sequenced", MUST, APPLICATION, "The server's application receives and echoes an unreliable sequenced message (reliability 1).", e1, Fault::DropsReliability(1)),
    echo(1103, "echo-reliable", MUST, APPLICATION, "The server's application receives and echoes a reliable message (reliability 2).", e2, Fault::DropsReliability(2)),
    echo(1104, "echo-ordered", MUST, APPLICATION, "The server's application receives and echoes a reliable ordered message (reliability 3).", e3, Fault::DropsReliability(3)),
    echo(1105, "echo-reliable-sequenced", MUST, APPLICATION, "The server's application receives and echoes a reliable sequenced message (reliability 4).", e4, Fault::DropsReliability(4)),
    echo(1106, "echo-one-byte", MUST, APPLICATION, "The server's application receives and echoes a message of one byte, its id.", one_byte, Fault::DropsOneByte),
    echo(1107, "echo-1200-bytes", MUST, SIZES, "The server echoes a message of 1,200 bytes completely.", bytes_1200, Fault::EchoLimit(1000)),
    echo(1108, "echo-5000-bytes", MUST, SPLITS, "The server echoes a split message of 5,000 bytes completely.", bytes_5000, Fault::EchoLimit(4000)),
    echo(1109, "echo-100000-bytes", MUST, SPLITS, "The server echoes a split message of 100,000 bytes completely.", bytes_100000, Fault::EchoLimit(60_000)),
    echo(1110, "echo-in-order", MUST, ORDER, "The server echoes thirty ordered messages in order.", in_order, Fault::EchoesPairsSwapped),
    echo(1111, "echo-reversed", MUST, ORDER, "The server echoes thirty ordered messages in order if they arrive in reverse.", reversed, Fault::OrderedAtOnce),
    echo(1112, "echo-once", MUST, "duplicates", "The server echoes a reliable message once if it arrives four times.", once, Fault::DeliversDuplicates),
    echo(1113, "echo-parts-shuffled", SHOULD, SPLITS, "The server reassembles and echoes a message whose parts do not arrive in order.", shuffled, Fault::PartsInArrivalOrder),
    echo(1114, "echo-resent", MUST, "gaps", "The server retransmits an unacknowledged echo with the same reliable message number.", resent, Fault::ResendsRenumbered),
    echo(1115, "echo-fits-mtu", MUST, SIZES, "The server sends no datagram that is longer than the MTU minus 28 bytes.", fits_mtu, Fault::IgnoresMtu),
    echo(1116, "echo-fits-small-mtu", MUST, SIZES, "The server sends no datagram that is longer than 548 bytes in a connection with the MTU 576.", fits_small_mtu, Fault::IgnoresMtu),
    echo(1117, "echo-parts-share", MUST, SPLITS, "All parts of the server's message have the same split id, split count, reliability, channel, ordering index and sequencing index.", parts_share, Fault::PartsDiffer),
    echo(1118, "echo-parts-numbers", MUST, SPLITS, "Each part of the server's message has its own reliable message number.", parts_numbers, Fault::PartsShareNumber),
    echo(1119, "echo-parts-reliable", MUST, SENDING, "The server sends the parts of a split message as reliable messages.", parts_reliable, Fault::PartsUnreliable),
    echo(1120, "echo-numbers-rise", MUST, SENDING, "The server assigns reliable message numbers without gaps.", numbers_rise, Fault::SkipsReliableNumbers),
    echo(1121, "echo-order-rises", MUST, SENDING, "The server assigns the ordering indices of each channel from 0 without gaps.", order_rises, Fault::SkipsOrder),
    echo(1122, "echo-reserved-id", SHOULD, APPLICATION, "The server does not deliver a message with the reserved id 0E, below 1B, to its application: no echo arrives.", reserved_id, Fault::EchoesReserved),
    echo(1123, "echo-sequenced-old", MUST, ORDER, "The server does not echo a sequenced message that is older than the last delivered one.", sequenced_old, Fault::SequencedOldDelivered),
    echo(1124, "echo-channels", MUST, ORDER, "An ordered message that waits on one channel does not delay a message on another channel.", channels, Fault::OneChannelForAll),
    echo(1125, "echo-before-disconnection", SHOULD, "keeping-and-closing-it", "The server acknowledges a datagram that contains an application message and then a disconnection notification (15).", before_15, Fault::NoAckOfDisconnection),
    echo(1126, "echo-after-loss", MUST, "gaps", "The server echoes ordered messages that are lost at first and arrive when they are retransmitted.", after_loss, Fault::DropsLate),
    echo(1127, "echo-every-ack-lost", MUST, "duplicates", "The server echoes each reliable message once if the client retransmits all of them, as after lost acknowledgements.", acks_lost, Fault::DeliversDuplicates),
    echo(1128, "echo-nested", MUST, CAPSULES, "The server echoes a message that contains the bytes of a datagram unchanged.", nested, Fault::EchoFlipsLast),
];

const fn echo(
    number: u16,
    name: &'static str,
    level: crate::case::Level,
    section: &'static str,
    requirement: &'static str,
    run: fn(&mut Context) -> Check,
    fault: Fault,
) -> Case {
    Case::new(number, name, level, section, requirement, run, fault).needs(Needs::Echo)
}

/// Returns the bytes of a message that differs from all others.
fn message(seed: u32, len: usize) -> Vec<u8> {
    // Libraries for Minecraft Bedrock deliver only messages that begin with this byte.
    let mut bytes = vec![0xfe];
    bytes.extend(seed.to_be_bytes());
    bytes.extend((bytes.len()..len.max(5)).map(|at| (at as u32).wrapping_mul(seed | 1).rotate_left(7) as u8));
    bytes.truncate(len.max(1));
    bytes
}

/// Returns the completely received messages, in the order in which they become deliverable.
fn messages(session: &Session) -> Vec<Vec<u8>> {
    let mut seen = Vec::new();
    let mut parts: BTreeMap<u16, BTreeMap<u32, &Arrival>> = BTreeMap::new();
    let mut whole: Vec<(&Capsule, Vec<u8>)> = Vec::new();
    for arrival in &session.arrivals {
        let capsule = &arrival.capsule;
        if capsule.is_reliable() && seen.contains(&capsule.number) {
            continue;
        }
        seen.push(if capsule.is_reliable() { capsule.number } else { U24 });
        let Some(split) = capsule.split else {
            whole.push((capsule, capsule.payload.clone()));
            continue;
        };
        let together = parts.entry(split.id).or_default();
        together.insert(split.index, arrival);
        if together.len() == split.count as usize {
            let bytes = together.values().flat_map(|part| part.capsule.payload.clone()).collect();
            whole.push((capsule, bytes));
            parts.remove(&split.id);
        }
    }
    // Ordered messages are sorted by their index, because retransmissions arrive later.
    let mut ordered: Vec<usize> = (0..whole.len()).filter(|&at| whole[at].0.reliability == 3).collect();
    let places = ordered.clone();
    ordered.sort_by_key(|&at| (whole[at].0.channel, whole[at].0.order));
    let mut out: Vec<Vec<u8>> = whole.iter().map(|message| message.1.clone()).collect();
    for (place, from) in places.into_iter().zip(ordered) {
        out[place].clone_from(&whole[from].1);
    }
    out.retain(|bytes| bytes.first().is_some_and(|&first| first >= id::USER));
    out
}

fn came(session: &Session, bytes: &[u8]) -> usize {
    messages(session).iter().filter(|message| message[..] == *bytes).count()
}

fn expect(session: &mut Session, bytes: &[u8], what: &str) -> Check {
    let time = session.link.timing.answer * 4;
    let back = session.wait(time, |session| came(session, bytes) > 0)?;
    ensure(back, || format!("the server did not echo {what}"))
}

fn of_reliability(context: &mut Context, reliability: u8) -> Check {
    let mut session = context.open()?;
    let bytes = message(1100 + u32::from(reliability), 40);
    let number = if reliability >= 2 { session.next_reliable() } else { 0 };
    let channel = if matches!(reliability, 1 | 3 | 4) { 4 } else { 0 };
    session.send(&[Capsule { reliability, number, channel, ..Capsule::unreliable(bytes.clone()) }])?;
    expect(&mut session, &bytes, &format!("a message with reliability {reliability}"))
}

fn e0(context: &mut Context) -> Check {
    of_reliability(context, 0)
}

fn e1(context: &mut Context) -> Check {
    of_reliability(context, 1)
}

fn e2(context: &mut Context) -> Check {
    of_reliability(context, 2)
}

fn e3(context: &mut Context) -> Check {
    of_reliability(context, 3)
}

fn e4(context: &mut Context) -> Check {
    of_reliability(context, 4)
}

fn one_byte(context: &mut Context) -> Check {
    let mut session = context.open()?;
    session.send_reliable(vec![0xfe])?;
    expect(&mut session, &[0xfe], "a message of one byte")
}

/// Sends a message, split if necessary, and waits until all of it is acknowledged.
fn send_long(session: &mut Session, bytes: &[u8], split_id: u16) -> Check {
    let longest = usize::from(session.reply_2.mtu) - 28 - 9 - 23;
    let pieces: Vec<_> = bytes.chunks(longest).collect();
    let mut open = Vec::new();
    for (index, piece) in (0..).zip(&pieces) {
        let mut capsule = Capsule::reliable(session.next_reliable(), piece.to_vec());
        if pieces.len() > 1 {
            capsule.split = Some(Split { count: pieces.len() as u32, id: split_id, index });
        }
        open.push(capsule);
    }
    for _ in 0..20 {
        let mut left = Vec::new();
        for capsules in open.chunks(16) {
            let mut sent = Vec::new();
            for capsule in capsules {
                sent.push((session.send(std::slice::from_ref(capsule))?, capsule.clone()));
            }
            let numbers: Vec<_> = sent.iter().map(|part| part.0).collect();
            let answer = session.link.timing.answer;
            session.wait(answer, |session| numbers.iter().all(|&number| session.is_acked(number)))?;
            left.extend(sent.into_iter().filter(|part| !session.is_acked(part.0)).map(|part| part.1));
        }
        open = left;
        if open.is_empty() {
            return Ok(());
        }
    }
    fail(format!("the server did not acknowledge {} parts", open.len()))
}

fn long_echo(context: &mut Context, len: usize) -> Check<Session> {
    long_echo_with(context, len, wire::LARGEST_MTU)
}

fn long_echo_with(context: &mut Context, len: usize, mtu: u16) -> Check<Session> {
    let mut session = context.dial_with(mtu, crate::session::new_guid())?;
    session.open(&context.password())?;
    let bytes = message(len as u32, len);
    send_long(&mut session, &bytes, 1)?;
    expect(&mut session, &bytes, &format!("a message of {len} bytes"))?;
    Ok(session)
}

fn bytes_1200(context: &mut Context) -> Check {
    long_echo(context, 1200).map(|_| ())
}

fn bytes_5000(context: &mut Context) -> Check {
    long_echo(context, 5000).map(|_| ())
}

fn bytes_100000(context: &mut Context) -> Check {
    long_echo(context, 100_000).map(|_| ())
}

fn thirty(context: &mut Context, reverse: bool) -> Check {
    let mut session = context.open_and_settle()?;
    let mut capsules: Vec<_> = (0..30)
        .map(|order| Capsule::ordered(session.next_reliable(), order, 2, message(order + 1, 30)))
        .collect();
    if reverse {
        capsules.reverse();
    }
    for capsule in capsules {
        session.send(&[capsule])?;
    }
    let answer = session.link.timing.answer * 4;
    session.wait(answer, |session| messages(session).len() >= 30)?;
    let back = messages(&session);
    ensure(back.len() == 30, || format!("the server echoed {} messages, not 30", back.len()))?;
    let in_order = back.iter().zip(1..).all(|(bytes, seed)| *bytes == message(seed, 30));
    ensure(in_order, || "the server did not echo the messages in order".into())
}

fn in_order(context: &mut Context) -> Check {
    thirty(context, false)
}

fn reversed(context: &mut Context) -> Check {
    thirty(context, true)
}

fn once(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let bytes = message(1112, 20);
    let capsule = [Capsule::reliable(session.next_reliable(), bytes.clone())];
    for _ in 0..4 {
        session.send(&capsule)?;
    }
    expect(&mut session, &bytes, "a message")?;
    session.quiet()?;
    let count = came(&session, &bytes);
    ensure(count == 1, || format!("the server echoed the message {count} times"))
}

fn shuffled(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let bytes = message(1113, 300);
    let mut parts: Vec<_> = (0..3)
        .map(|index| {
            let split = Some(Split { count: 3, id: 2, index });
            let at = index as usize * 100;
            Capsule { split, ..Capsule::reliable(session.next_reliable(), bytes[at..at + 100].to_vec()) }
        })
        .collect();
    parts.rotate_left(1);
    for part in parts {
        session.send(&[part])?;
    }
    expect(&mut session, &bytes, "a message in shuffled parts")
}

fn resent(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    session.acknowledges = false;
    let bytes = message(1114, 20);
    session.send_reliable(bytes.clone())?;
    let time = session.link.timing.answer * 4;
    let again =
        |session: &Session| session.arrivals.iter().filter(|a| a.capsule.payload == bytes).count() > 1;
    session.wait(time, again)?;
    let copies: Vec<_> = session.arrivals.iter().filter(|a| a.capsule.payload == bytes).collect();
    let Some((first, rest)) = copies.split_first() else {
        return fail("the server did not echo the message");
    };
    if !first.capsule.is_reliable() {
        return crate::check::skip("the server's echo is unreliable");
    }
    ensure(!rest.is_empty(), || "the server did not retransmit the echo".into())?;
    let same = rest.iter().all(|copy| copy.capsule.number == first.capsule.number);
    ensure(same, || "the retransmission has another reliable message number".into())
}

fn fits(context: &mut Context, mtu: u16) -> Check {
    let session = long_echo_with(context, 5000, mtu)?;
    let longest = session.datagrams.iter().map(|datagram| datagram.2).max().unwrap_or_default();
    let limit = usize::from(session.reply_2.mtu) - wire::UDP_OVERHEAD;
    ensure(longest <= limit, || {
        format!("the server's longest datagram has {longest} bytes, and the limit is {limit}")
    })
}

fn fits_mtu(context: &mut Context) -> Check {
    fits(context, wire::LARGEST_MTU)
}

fn fits_small_mtu(context: &mut Context) -> Check {
    fits(context, wire::SMALLEST_MTU)
}

/// Sends a split message, and returns the parts of its echo without retransmissions.
fn parts_of_echo(context: &mut Context) -> Check<Vec<Capsule>> {
    let session = long_echo(context, 5000)?;
    let mut parts = BTreeMap::new();
    for arrival in &session.arrivals {
        if let Some(split) = arrival.capsule.split {
            parts.entry(split.index).or_insert_with(|| arrival.capsule.clone());
        }
    }
    ensure(parts.len() > 1, || "the server did not split the echo".into())?;
    Ok(parts.into_values().collect())
}

fn parts_share(context: &mut Context) -> Check {
    let parts = parts_of_echo(context)?;
    let of = |part: &Capsule| {
        let split = part.split.map(|split| (split.id, split.count));
        (split, part.reliability, part.channel, part.order, part.sequence)
    };
    let same = parts.iter().all(|part| of(part) == of(&parts[0]));
    ensure(same, || {
        "the parts of the echo have different split fields, reliabilities, channels or indices".into()
    })
}

fn parts_numbers(context: &mut Context) -> Check {
    let parts = parts_of_echo(context)?;
    let mut numbers: Vec<_> = parts.iter().map(|part| part.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    ensure(numbers.len() == parts.len(), || format!("{} parts have the numbers {numbers:?}", parts.len()))
}

fn parts_reliable(context: &mut Context) -> Check {
    let parts = parts_of_echo(context)?;
    let reliable = parts.iter().all(Capsule::is_reliable);
    ensure(reliable, || {
        format!("the first part has the reliability {}, and not all parts are reliable", parts[0].reliability)
    })
}

fn ten_echoes(context: &mut Context) -> Check<Session> {
    let mut session = context.open_and_settle()?;
    for order in 0..10 {
        let number = session.next_reliable();
        session.send(&[Capsule::ordered(number, order, 1, message(order + 1, 20))])?;
    }
    let answer = session.link.timing.answer * 4;
    session.wait(answer, |session| messages(session).len() >= 10)?;
    session.quiet()?;
    Ok(session)
}

fn numbers_rise(context: &mut Context) -> Check {
    let session = ten_echoes(context)?;
    let reliable = session.arrivals.iter().filter(|arrival| arrival.capsule.is_reliable());
    let mut numbers: Vec<_> = reliable.map(|arrival| arrival.capsule.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let first = numbers.first().copied().unwrap_or_default();
    let whole = numbers.iter().copied().eq(first..first + numbers.len() as u32);
    ensure(whole, || format!("the reliable message numbers are {numbers:?}"))
}

fn order_rises(context: &mut Context) -> Check {
    let session = ten_echoes(context)?;
    for channel in 0..32 {
        let here =
            session.arrivals.iter().filter(|a| a.capsule.reliability == 3 && a.capsule.channel == channel);
        let mut orders: Vec<_> = here.map(|arrival| arrival.capsule.order).collect();
        orders.sort_unstable();
        orders.dedup();
        let whole = orders.iter().copied().eq(0..orders.len() as u32);
        ensure(whole, || format!("the ordering indices of channel {channel} are {orders:?}"))?;
    }
    Ok(())
}

fn reserved_id(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let bytes = vec![0x0e, 1, 2, 3, 4];
    session.send_reliable(bytes.clone())?;
    session.quiet()?;
    let back = session.arrivals.iter().any(|arrival| arrival.capsule.payload == bytes);
    ensure(!back, || "the server echoed the message with the id 0E".into())
}

fn sequenced_old(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let send = |session: &mut Session, sequence, seed| {
        let bytes = message(seed, 20);
        session.send(&[Capsule { reliability: 1, sequence, channel: 3, ..Capsule::unreliable(bytes) }])
    };
    send(&mut session, 5, 1)?;
    expect(&mut session, &message(1, 20), "the first sequenced message")?;
    send(&mut session, 4, 2)?;
    send(&mut session, 6, 3)?;
    expect(&mut session, &message(3, 20), "the newer sequenced message")?;
    session.quiet()?;
    ensure(came(&session, &message(2, 20)) == 0, || "the server echoed the older sequenced message".into())
}

fn channels(context: &mut Context) -> Check {
    let mut session = context.open()?;
    for (channel, order) in [(3, 1), (4, 0)] {
        let number = session.next_reliable();
        session.send(&[Capsule::ordered(number, order, channel, message(u32::from(channel), 20))])?;
    }
    expect(&mut session, &message(4, 20), "the message on another channel")?;
    session.quiet()?;
    ensure(came(&session, &message(3, 20)) == 0, || "the server echoed the waiting message".into())
}

fn before_15(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let first = Capsule::reliable(session.next_reliable(), message(1125, 20));
    let last = Capsule::reliable(session.next_reliable(), vec![id::DISCONNECTION]);
    let number = session.send(&[first, last])?;
    ensure(session.wait_ack(number)?, || "the server did not acknowledge the datagram".into())
}

fn after_loss(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let mut lost = Vec::new();
    for order in 0..12 {
        let number = session.next_reliable();
        let capsule = Capsule::ordered(number, order, 2, message(order + 1, 20));
        if order % 3 == 0 {
            // Skip the datagram number without sending, as if the datagram were lost.
            lost.push((session.number, capsule));
            session.number += 1;
        } else {
            session.send(&[capsule])?;
        }
    }
    session.quiet()?;
    for (number, capsule) in lost {
        session.send_as(number, &[capsule])?;
    }
    for seed in 1..=12 {
        expect(&mut session, &message(seed, 20), &format!("message {seed}"))?;
    }
    Ok(())
}

fn acks_lost(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let capsules: Vec<_> =
        (0..10).map(|seed| Capsule::reliable(session.next_reliable(), message(seed, 20))).collect();
    for _ in 0..2 {
        for capsule in &capsules {
            session.send(std::slice::from_ref(capsule))?;
        }
        session.quiet()?;
    }
    for seed in 0..10 {
        let count = came(&session, &message(seed, 20));
        ensure(count == 1, || format!("the server echoed message {seed} {count} times"))?;
    }
    Ok(())
}

fn nested(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let inner = wire::data(0x84, 0, &[Capsule::unreliable(wire::connected_ping(9))]);
    let bytes = [vec![0xfe], inner, vec![0xff]].concat();
    session.send_reliable(bytes.clone())?;
    expect(&mut session, &bytes, "a message that contains the bytes of a datagram")
}
