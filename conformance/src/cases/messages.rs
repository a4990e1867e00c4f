//! Group 6: reliabilities, order and capsules; group 7: split messages.
//!
//! A connected ping may have any reliability, and its pong shows that it was delivered. These cases therefore work with
//! any server application. Of several pings that arrive together, a peer may answer only the last one.

use crate::case::{Case, Context};
use crate::case::{MUST, SHOULD};
use crate::check::{Check, ensure};
use crate::model::Fault;
use crate::session::Session;
use crate::wire::{self, Capsule, Split, id};

const CAPSULES: &str = "capsules";
const ORDER: &str = "ordering";
const SPLITS: &str = "splits";
const CONTROL: &str = "control-messages";

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    Case::new(600, "reliability-0", MUST, CAPSULES, "The peer delivers an unreliable message (reliability 0), which has a 3-byte header.", r0, Fault::DropsReliability(0)),
    Case::new(601, "reliability-1", MUST, CAPSULES, "The peer delivers an unreliable sequenced message (reliability 1), which has a 10-byte header.", r1, Fault::DropsReliability(1)),
    Case::new(602, "reliability-2", MUST, CAPSULES, "The peer delivers a reliable message (reliability 2), which has a 6-byte header.", r2, Fault::DropsReliability(2)),
    Case::new(603, "reliability-3", MUST, CAPSULES, "The peer delivers a reliable ordered message (reliability 3), which has a 10-byte header.", r3, Fault::DropsReliability(3)),
    Case::new(604, "reliability-4", MUST, CAPSULES, "The peer delivers a reliable sequenced message (reliability 4), which has a 13-byte header.", r4, Fault::DropsReliability(4)),
    Case::new(605, "reliability-5", SHOULD, CAPSULES, "The peer delivers a message with reliability 5, and reads its header without a reliable message number.", r5, Fault::DropsReliability(5)),
    Case::new(606, "reliability-6", SHOULD, CAPSULES, "The peer delivers a message with reliability 6, and reads its header without a reliable message number.", r6, Fault::DropsReliability(6)),
    Case::new(607, "reliability-7", SHOULD, CAPSULES, "The peer delivers a message with reliability 7, and reads its header with an ordering index and a channel.", r7, Fault::DropsReliability(7)),
    Case::new(608, "flags-low-bits", SHOULD, CAPSULES, "The peer ignores bits 3 to 0 of a capsule's flags.", low_bits, Fault::CapsuleFlagsExact),
    Case::new(609, "two-capsules", MUST, CAPSULES, "The peer delivers both capsules of a datagram.", two_capsules, Fault::FirstCapsuleOnly),
    Case::new(610, "many-capsules", MUST, CAPSULES, "The peer delivers the last of 40 capsules in one datagram.", many_capsules, Fault::FirstCapsulesOnly(16)),
    Case::new(611, "length-in-bits", SHOULD, CAPSULES, "The peer rounds a capsule length of 65 bits up to 9 bytes.", length_in_bits, Fault::BitsRoundedDown),
    Case::new(612, "zeros-at-the-end", MUST, CAPSULES, "The peer delivers a capsule that is followed by zeros at the end of the datagram.", zeros, Fault::ZerosDropDatagram),
    Case::new(613, "length-zero", MUST, CAPSULES, "A capsule of length 0 ends the datagram: the peer delivers the capsule before it, but not the capsule after it.", length_zero, Fault::SkipsEmptyCapsules),
    Case::new(614, "cut-off", MUST, CAPSULES, "The peer delivers the capsule before a truncated capsule, but not the truncated capsule.", cut_off, Fault::DeliversCutOff),
    Case::new(615, "channel-31", MUST, CAPSULES, "The peer delivers a message on channel 31, the highest channel.", channel_31, Fault::ChannelLimit(31)),
    Case::new(616, "channel-32", MUST, CAPSULES, "A capsule on channel 32 ends the datagram: the peer delivers the capsule before it, but not the capsule after it.", channel_32, Fault::ChannelLimit(255)),
    Case::new(617, "reliable-unordered", MUST, "where-the-documents-disagree", "The peer delivers a reliable message although a message with a lower reliable message number is missing.", unordered, Fault::ReliableInOrder),
    Case::new(618, "reliable-twice-in-datagram", MUST, "duplicates", "The peer delivers a message once if two capsules of one datagram have the same reliable message number.", twice_in_datagram, Fault::DeliversDuplicates),
    Case::new(619, "ordered-waits", MUST, ORDER, "The peer does not deliver an ordered message before the preceding ordered message has arrived.", ordered_waits, Fault::OrderedAtOnce),
    Case::new(620, "ordered-released", MUST, ORDER, "The peer delivers a waiting ordered message after the missing messages before it have arrived.", ordered_released, Fault::ForgetsWaiting),
    Case::new(621, "ordered-reversed", MUST, ORDER, "The peer delivers ten ordered messages in the order of their indices if they arrive in reverse.", ordered_reversed, Fault::ReleasesReversed),
    Case::new(622, "channels-independent", MUST, ORDER, "A message that waits on one channel does not delay a message on another channel.", channels, Fault::OneChannelForAll),
    Case::new(623, "ordered-on-every-channel", MUST, ORDER, "The peer delivers a first message with the ordering index 0 on each of the channels 1 to 31.", every_channel, Fault::OneChannelForAll),
    Case::new(624, "ordered-old-dropped", MUST, ORDER, "The peer drops an ordered message with a delivered ordering index, also if its reliable message number is new.", ordered_old, Fault::OrderedOldDelivered),
    Case::new(625, "sequenced-old-dropped", MUST, ORDER, "The peer drops an unreliable sequenced message that is older than the last delivered one.", sequenced_old, Fault::SequencedOldDelivered),
    Case::new(626, "reliable-sequenced-old-dropped", MUST, ORDER, "The peer drops a reliable sequenced message that is older than the last delivered one.", reliable_sequenced_old, Fault::SequencedOldDelivered),
    Case::new(627, "sequenced-gap", MUST, ORDER, "The peer delivers a sequenced message although earlier sequenced messages are missing.", sequenced_gap, Fault::SequencedWaits),
    Case::new(628, "sequencing-wraps", MUST, "serial-numbers", "The peer compares sequencing indices modulo 2^24, by the shorter distance.", sequencing_wraps, Fault::SequenceNoWrap),
    Case::new(629, "sequencing-restarts", MUST, ORDER, "Sequencing indices restart at 0 after an ordered message on the same channel.", sequencing_restarts, Fault::SequencingGoesOn),
    Case::new(630, "sequenced-of-next-gap", MUST, ORDER, "A sequenced message with a later ordering index waits for the missing ordered message before it.", sequenced_later, Fault::SequencedIgnoresOrder),
    Case::new(631, "ping-of-8-bytes", MUST, CONTROL, "The peer ignores a connected ping (00) of 8 bytes.", short_ping, Fault::ShortConnectedPing),
    Case::new(632, "ping-of-10-bytes", MUST, CONTROL, "The peer ignores a connected ping (00) of 10 bytes.", long_ping, Fault::LongConnectedPing),
    Case::new(633, "pong-layout", MUST, CONTROL, "A connected pong (03) has 17 bytes: its id, the time of the ping, and the time of the pong's sender.", pong_layout, Fault::LongConnectedPong),
    Case::new(634, "pong-unreliable", SHOULD, CONTROL, "The peer sends a connected pong (03) as an unreliable message.", pong_unreliable, Fault::PongReliable),
    Case::new(635, "pong-clock", SHOULD, "values", "The second time in a connected pong (03) comes from a clock that counts milliseconds.", pong_clock, Fault::PongClockStands),
    Case::new(636, "pong-once", MUST, CONTROL, "The peer sends exactly one connected pong (03) for a connected ping (00).", pong_once, Fault::ConnectedPongTwice),
    Case::new(637, "id-04-ignored", MUST, CONTROL, "Detect lost connections (04) does not close the connection.", id_04, Fault::DiesOfId(4)),
    Case::new(638, "unsolicited-pong", MUST, CONTROL, "An unsolicited connected pong (03) does not close the connection.", unsolicited, Fault::DiesOfId(3)),
    Case::new(639, "local-ids-dropped", MUST, "local-events", "The peer drops ids below 1B that RakNet never sends (0B, 0C, 0E, 0F, 11 and 16), and the connection stays open.", local_ids, Fault::DiesOfId(0x16)),
    Case::new(640, "datagram-numbers-of-server", MUST, "datagrams", "The peer numbers its datagrams from 0 without gaps.", server_numbers, Fault::SkipsDatagramNumbers),
    Case::new(701, "two-parts", MUST, SPLITS, "The peer reassembles a message that is split into two parts.", two_parts, Fault::NoSplits),
    Case::new(702, "two-parts-reversed", SHOULD, SPLITS, "The peer reassembles parts by their split index, not in the order of arrival.", reversed, Fault::PartsInArrivalOrder),
    Case::new(703, "nine-parts", MUST, SPLITS, "The peer reassembles a message of nine bytes that is split into nine parts.", nine_parts, Fault::PartLimit(8)),
    Case::new(704, "part-missing", MUST, SPLITS, "The peer does not deliver a message with a missing part.", part_missing, Fault::DeliversIncomplete),
    Case::new(705, "parts-interleaved", MUST, SPLITS, "The peer reassembles two messages with interleaved parts.", interleaved, Fault::OneSplitAtATime),
    Case::new(706, "parts-in-one-datagram", MUST, SPLITS, "The peer reassembles a message with two parts in one datagram.", one_datagram, Fault::OnePartADatagram),
    Case::new(707, "part-twice", MUST, SPLITS, "The peer reassembles a message although one of its parts arrives twice.", part_twice, Fault::CountsPartsTwice),
    Case::new(708, "parts-ordered", MUST, SPLITS, "A split ordered message waits for the ordered message before it.", parts_ordered, Fault::PartsIgnoreOrder),
    Case::new(709, "parts-once-delivered", MUST, SPLITS, "The peer does not reassemble a delivered message again if its parts arrive again.", parts_again, Fault::DeliversDuplicates),
    Case::new(710, "split-id-again", MUST, SPLITS, "The peer reassembles later messages that reuse the split id of an earlier message.", id_again, Fault::SplitIdOnce),
    Case::new(711, "one-part", SHOULD, SPLITS, "The peer delivers a message that is split into one part.", one_part, Fault::RefusesOnePart),
    Case::new(712, "index-equals-count", MUST, CAPSULES, "A part with a split index equal to the split count ends the datagram, and the capsule after it is not delivered.", index_equals_count, Fault::SplitIndexUnchecked),
    Case::new(713, "count-zero", MUST, CAPSULES, "A part with a split count of 0 ends the datagram, and the capsule after it is not delivered.", count_zero, Fault::SplitIndexUnchecked),
    Case::new(714, "count-of-all-ones", MUST, SPLITS, "Parts with a split count of 2^32 - 1 do not stop the server: it still answers pings and opens a new connection.", count_huge, Fault::DiesOfSplitCount),
    Case::new(715, "count-contradicts", MUST, SPLITS, "A part with a different split count than the first part does not complete the message.", count_contradicts, Fault::TakesLastCount),
    Case::new(716, "length-longer-than-datagram", MUST, CAPSULES, "The peer does not deliver a capsule that is longer than its datagram, and the connection stays open.", too_long, Fault::DeliversCutOff),
    Case::new(717, "unfinished-messages", MUST, SPLITS, "After parts of fifty incomplete messages, the peer still delivers other messages.", unfinished, Fault::DiesOfUnfinished(40)),
    Case::new(718, "parts-acknowledged", MUST, "acknowledgements", "The peer acknowledges the datagram of each part, also while the message is incomplete.", parts_acked, Fault::AcksWholeOnly),
];

fn ping(time: u64) -> Vec<u8> {
    wire::connected_ping(time)
}

fn of_reliability(context: &mut Context, reliability: u8) -> Check {
    let mut session = context.open()?;
    let time = 0x6000 + u64::from(reliability);
    let number = if matches!(reliability, 2..=4) { session.next_reliable() } else { 0 };
    let capsule =
        Capsule { reliability, number, channel: if reliability == 2 { 0 } else { 3 }, ..capsule(ping(time)) };
    session.send(&[capsule])?;
    session.expect_pong(time, &format!("a message with reliability {reliability}"))
}

fn capsule(payload: Vec<u8>) -> Capsule {
    Capsule::unreliable(payload)
}

fn r0(context: &mut Context) -> Check {
    of_reliability(context, 0)
}

fn r1(context: &mut Context) -> Check {
    of_reliability(context, 1)
}

fn r2(context: &mut Context) -> Check {
    of_reliability(context, 2)
}

fn r3(context: &mut Context) -> Check {
    of_reliability(context, 3)
}

fn r4(context: &mut Context) -> Check {
    of_reliability(context, 4)
}

fn r5(context: &mut Context) -> Check {
    of_reliability(context, 5)
}

fn r6(context: &mut Context) -> Check {
    of_reliability(context, 6)
}

fn r7(context: &mut Context) -> Check {
    of_reliability(context, 7)
}

/// Sends encoded capsules as the next datagram.
fn send_raw(session: &mut Session, capsules: &[u8]) -> Check<u32> {
    let number = session.number;
    session.number += 1;
    session.link.send(&[wire::data(0x84, number, &[]), capsules.to_vec()].concat())?;
    Ok(number)
}

fn low_bits(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let mut bytes = Vec::new();
    capsule(ping(608)).write_bits(72, 0x0f, &mut bytes);
    send_raw(&mut session, &bytes)?;
    session.expect_pong(608, "a capsule with all low flag bits set")
}

fn two_capsules(context: &mut Context) -> Check {
    let mut session = context.open()?;
    session.send(&[capsule(ping(60_900)), capsule(vec![4])])?;
    session.expect_pong(60_900, "the first capsule")?;
    session.send(&[capsule(vec![4]), capsule(ping(60_901))])?;
    session.expect_pong(60_901, "the second capsule")
}

fn many_capsules(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let mut capsules: Vec<_> = (0..39).map(|_| Capsule::reliable(session.next_reliable(), vec![4])).collect();
    capsules.push(capsule(ping(610)));
    session.send(&capsules)?;
    session.expect_pong(610, "the fortieth capsule")
}

fn length_in_bits(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let mut bytes = Vec::new();
    capsule(ping(611)).write_bits(65, 0, &mut bytes);
    send_raw(&mut session, &bytes)?;
    session.expect_pong(611, "a capsule of 65 bits")
}

fn zeros(context: &mut Context) -> Check {
    let mut session = context.open()?;
    for len in [1, 3, 4, 40] {
        let mut bytes = Vec::new();
        capsule(ping(0x6120 + len)).write(&mut bytes);
        bytes.resize(bytes.len() + len as usize, 0);
        send_raw(&mut session, &bytes)?;
        session.expect_pong(0x6120 + len, &format!("a capsule that is followed by {len} zeros"))?;
    }
    Ok(())
}

/// Sends a valid, an invalid and another valid capsule in one datagram. The first must be delivered, the last must not.
fn ends_datagram(context: &mut Context, bad: &[u8], what: &str) -> Check {
    let mut session = context.open()?;
    let mut bytes = Vec::new();
    capsule(ping(0x6130)).write(&mut bytes);
    bytes.extend(bad);
    capsule(ping(0x6131)).write(&mut bytes);
    send_raw(&mut session, &bytes)?;
    session.expect_pong(0x6130, &format!("the capsule before {what}"))?;
    session.expect_no_pong(0x6131, &format!("the capsule after {what}"))?;
    session.still_answers(what)
}

fn length_zero(context: &mut Context) -> Check {
    ends_datagram(context, &[0, 0, 0], "a capsule of length 0")
}

fn cut_off(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let mut bytes = Vec::new();
    capsule(ping(0x6140)).write(&mut bytes);
    capsule(vec![0, 0, 0, 0, 0, 0, 0, 0x61, 0x41]).write_bits(80, 0, &mut bytes);
    send_raw(&mut session, &bytes)?;
    session.expect_pong(0x6140, "the capsule before a truncated one")?;
    session.expect_no_pong(0x6141, "a truncated capsule")
}

fn on_channel(session: &mut Session, channel: u8, order: u32, time: u64) -> Check {
    let number = session.next_reliable();
    session.send(&[Capsule::ordered(number, order, channel, ping(time))])?;
    Ok(())
}

/// Sends an ordered message that the peer ignores. A ping is unsuitable, because a peer may answer only the last of
/// several.
fn filler_on_channel(session: &mut Session, channel: u8, order: u32) -> Check {
    let number = session.next_reliable();
    session.send(&[Capsule::ordered(number, order, channel, vec![4])])?;
    Ok(())
}

fn channel_31(context: &mut Context) -> Check {
    let mut session = context.open()?;
    on_channel(&mut session, 31, 0, 615)?;
    session.expect_pong(615, "a message on channel 31")
}

fn channel_32(context: &mut Context) -> Check {
    let mut bad = Vec::new();
    Capsule { reliability: 1, channel: 32, ..capsule(ping(0x6160)) }.write(&mut bad);
    ends_datagram(context, &bad, "a capsule on channel 32")
}

fn unordered(context: &mut Context) -> Check {
    let mut session = context.open()?;
    session.next_reliable();
    session.send_reliable(ping(617))?;
    session.expect_pong(617, "a reliable message after a missing one")
}

fn twice_in_datagram(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let message = Capsule::reliable(session.next_reliable(), ping(618));
    session.send(&[message.clone(), message])?;
    session.expect_pong(618, "the message")?;
    session.quiet()?;
    let count = session.pongs(618);
    ensure(count == 1, || format!("the peer delivered the message {count} times"))
}

fn ordered_waits(context: &mut Context) -> Check {
    let mut session = context.open()?;
    on_channel(&mut session, 5, 1, 619)?;
    session.expect_no_pong(619, "an ordered message after a missing one")
}

fn ordered_released(context: &mut Context) -> Check {
    let mut session = context.open()?;
    on_channel(&mut session, 5, 2, 0x6202)?;
    filler_on_channel(&mut session, 5, 1)?;
    filler_on_channel(&mut session, 5, 0)?;
    session.expect_pong(0x6202, "a waiting ordered message after the missing ones arrived")
}

fn ordered_reversed(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    for order in (0..10).rev() {
        on_channel(&mut session, 6, order, 0x6210 + u64::from(order))?;
    }
    session.expect_pong(0x6219, "the last of ten ordered messages")?;
    session.quiet()?;
    // Pongs are unreliable, so their position in the server's datagrams is their sending order.
    let mut pongs: Vec<_> = session.with_id(id::CONNECTED_PONG).collect();
    pongs.sort_by_key(|pong| pong.datagram);
    let times: Vec<_> = pongs.iter().filter_map(|pong| pong.capsule.payload.get(1..9)).collect();
    ensure(times.is_sorted(), || "the peer did not deliver the messages in order".into())
}

fn channels(context: &mut Context) -> Check {
    let mut session = context.open()?;
    on_channel(&mut session, 7, 1, 0x6220)?;
    on_channel(&mut session, 8, 0, 0x6221)?;
    session.expect_pong(0x6221, "a message on another channel")?;
    session.expect_no_pong(0x6220, "a waiting ordered message")
}

fn every_channel(context: &mut Context) -> Check {
    let mut session = context.open()?;
    for channel in 1..32 {
        let time = 0x6230 + u64::from(channel);
        on_channel(&mut session, channel, 0, time)?;
        session.expect_pong(time, &format!("the first message on channel {channel}"))?;
    }
    Ok(())
}

fn ordered_old(context: &mut Context) -> Check {
    let mut session = context.open()?;
    on_channel(&mut session, 9, 0, 0x6240)?;
    session.expect_pong(0x6240, "the first ordered message")?;
    on_channel(&mut session, 9, 0, 0x6241)?;
    session.expect_no_pong(0x6241, "an ordered message with a delivered ordering index")
}

fn sequenced(session: &mut Session, reliability: u8, sequence: u32, order: u32, time: u64) -> Check {
    let number = if reliability == 4 { session.next_reliable() } else { 0 };
    session.send(&[Capsule { reliability, number, sequence, order, channel: 10, ..capsule(ping(time)) }])?;
    Ok(())
}

fn old_dropped(context: &mut Context, reliability: u8) -> Check {
    let mut session = context.open()?;
    sequenced(&mut session, reliability, 5, 0, 0x6250)?;
    session.expect_pong(0x6250, "a sequenced message")?;
    sequenced(&mut session, reliability, 3, 0, 0x6251)?;
    session.expect_no_pong(0x6251, "an older sequenced message")?;
    sequenced(&mut session, reliability, 6, 0, 0x6252)?;
    session.expect_pong(0x6252, "a newer sequenced message")
}

fn sequenced_old(context: &mut Context) -> Check {
    old_dropped(context, 1)
}

fn reliable_sequenced_old(context: &mut Context) -> Check {
    old_dropped(context, 4)
}

fn sequenced_gap(context: &mut Context) -> Check {
    let mut session = context.open()?;
    sequenced(&mut session, 1, 4, 0, 627)?;
    session.expect_pong(627, "a sequenced message after four missing ones")
}

fn sequencing_wraps(context: &mut Context) -> Check {
    let mut session = context.open()?;
    for (time, sequence) in (0x6280..).zip([0, 0x7f_fff0, 0xff_ffe0, 0xff_ffff, 0, 1]) {
        sequenced(&mut session, 1, sequence, 0, time)?;
        session.expect_pong(time, &format!("a message with the sequencing index {sequence:#x}"))?;
    }
    sequenced(&mut session, 1, 0xff_fffe, 0, 0x628f)?;
    session.expect_no_pong(0x628f, "a message with the sequencing index 0xfffffe after index 1")
}

fn sequencing_restarts(context: &mut Context) -> Check {
    let mut session = context.open()?;
    sequenced(&mut session, 1, 7, 0, 0x6290)?;
    session.expect_pong(0x6290, "a sequenced message")?;
    on_channel(&mut session, 10, 0, 0x6291)?;
    session.expect_pong(0x6291, "the ordered message after a sequenced one")?;
    sequenced(&mut session, 1, 0, 1, 0x6292)?;
    session.expect_pong(0x6292, "the first sequenced message after an ordered one")
}

fn sequenced_later(context: &mut Context) -> Check {
    let mut session = context.open()?;
    sequenced(&mut session, 4, 0, 1, 0x6300)?;
    session.expect_no_pong(0x6300, "a sequenced message after a missing ordered one")?;
    filler_on_channel(&mut session, 10, 0)?;
    session.expect_pong(0x6300, "the waiting sequenced message")
}

fn short_ping(context: &mut Context) -> Check {
    let mut session = context.open()?;
    session.send(&[capsule(ping(0x6310)[..8].to_vec())])?;
    session.quiet()?;
    let came = session.first(id::CONNECTED_PONG).is_some();
    ensure(!came, || "the peer answered a connected ping (00) of 8 bytes".into())
}

fn long_ping(context: &mut Context) -> Check {
    let mut session = context.open()?;
    session.send(&[capsule([ping(632), vec![0]].concat())])?;
    session.expect_no_pong(632, "a message of 10 bytes")
}

fn one_pong(context: &mut Context, time: u64) -> Check<(Session, Capsule)> {
    let mut session = context.open()?;
    session.send(&[capsule(ping(time))])?;
    session.expect_pong(time, "a datagram")?;
    let pong = session.with_id(id::CONNECTED_PONG).last().map(|arrival| arrival.capsule.clone());
    Ok((session, pong.unwrap_or_default()))
}

fn pong_layout(context: &mut Context) -> Check {
    let (_, pong) = one_pong(context, 633)?;
    ensure(pong.payload.len() == 17, || format!("the connected pong (03) has {} bytes", pong.payload.len()))
}

fn pong_unreliable(context: &mut Context) -> Check {
    let (_, pong) = one_pong(context, 634)?;
    ensure(pong.reliability == 0, || {
        format!("the connected pong (03) has the reliability {}", pong.reliability)
    })
}

fn pong_clock(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let time_of = |session: &mut Session, time| -> Check<u64> {
        session.send(&[capsule(ping(time))])?;
        session.expect_pong(time, "a datagram")?;
        let pong = session.with_id(id::CONNECTED_PONG).last();
        let bytes = pong.and_then(|pong| pong.capsule.payload.get(9..17)?.try_into().ok());
        Ok(bytes.map_or(0, u64::from_be_bytes))
    };
    let one = time_of(&mut session, 0x6350)?;
    session.pass(context.timing.quiet)?;
    let two = time_of(&mut session, 0x6351)?;
    let (least, most) = (context.timing.quiet.as_millis() / 2, context.timing.answer.as_millis() * 4);
    let passed = u128::from(two.wrapping_sub(one));
    ensure((least..=most).contains(&passed), || {
        format!("the peer's clock went from {one} to {two}, which is not the elapsed time in milliseconds")
    })
}

fn pong_once(context: &mut Context) -> Check {
    let (mut session, _) = one_pong(context, 636)?;
    session.quiet()?;
    let count = session.pongs(636);
    ensure(count == 1, || format!("the peer sent {count} connected pongs (03)"))
}

fn harmless(context: &mut Context, messages: &[Vec<u8>], what: &str) -> Check {
    let mut session = context.open()?;
    for message in messages {
        session.send_reliable(message.clone())?;
    }
    session.quiet()?;
    session.still_answers(what)
}

fn id_04(context: &mut Context) -> Check {
    harmless(context, &[vec![4], vec![4, 0, 0]], "detect lost connections (04)")
}

fn unsolicited(context: &mut Context) -> Check {
    let pongs = [wire::connected_pong(1, 2), wire::connected_pong(u64::MAX, u64::MAX), vec![3]];
    harmless(context, &pongs, "unsolicited connected pongs (03)")
}

fn local_ids(context: &mut Context) -> Check {
    let messages = [0x0b, 0x0c, 0x0e, 0x0f, 0x11, 0x16].map(|id| vec![id, 0, 0, 0, 1]);
    harmless(context, &messages, "messages with ids that RakNet never sends")
}

fn server_numbers(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    for time in 0..8 {
        session.send(&[capsule(ping(0x6400 + time))])?;
        session.expect_pong(0x6400 + time, "a datagram")?;
    }
    let mut numbers: Vec<_> = session.datagrams.iter().map(|datagram| datagram.0).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let whole = numbers.iter().copied().eq(0..numbers.len() as u32);
    ensure(whole, || format!("the datagram numbers are {numbers:?}"))
}

fn part(session: &mut Session, count: u32, split_id: u16, index: u32, bytes: &[u8]) -> Capsule {
    let number = session.next_reliable();
    let split = Some(Split { count, id: split_id, index });
    Capsule { split, ..Capsule::reliable(number, bytes.to_vec()) }
}

/// Sends the parts of a ping, split into pieces of equal length, in the order of `indices`.
fn send_parts(session: &mut Session, time: u64, split_id: u16, len: usize, indices: &[usize]) -> Check {
    let message = ping(time);
    let pieces: Vec<_> = message.chunks(len).collect();
    for &index in indices {
        let capsule = part(session, pieces.len() as u32, split_id, index as u32, pieces[index]);
        session.send(&[capsule])?;
    }
    Ok(())
}

fn two_parts(context: &mut Context) -> Check {
    let mut session = context.open()?;
    send_parts(&mut session, 701, 0, 5, &[0, 1])?;
    session.expect_pong(701, "a message in two parts")
}

fn reversed(context: &mut Context) -> Check {
    let mut session = context.open()?;
    send_parts(&mut session, 702, 0, 5, &[1, 0])?;
    session.expect_pong(702, "a message whose second part arrives first")
}

fn nine_parts(context: &mut Context) -> Check {
    let mut session = context.open()?;
    send_parts(&mut session, 703, 0, 1, &[0, 1, 2, 3, 4, 5, 6, 7, 8])?;
    session.expect_pong(703, "a message in nine parts")
}

fn part_missing(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let zero = part(&mut session, 2, 0, 0, &ping(704));
    session.send(&[zero])?;
    session.expect_no_pong(704, "a message without its second part")
}

fn interleaved(context: &mut Context) -> Check {
    let mut session = context.open()?;
    send_parts(&mut session, 0x7050, 0, 5, &[0])?;
    send_parts(&mut session, 0x7051, 1, 5, &[0])?;
    send_parts(&mut session, 0x7050, 0, 5, &[1])?;
    session.expect_pong(0x7050, "the first message")?;
    send_parts(&mut session, 0x7051, 1, 5, &[1])?;
    session.expect_pong(0x7051, "the second message")
}

fn one_datagram(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let message = ping(706);
    let parts = [part(&mut session, 2, 0, 0, &message[..5]), part(&mut session, 2, 0, 1, &message[5..])];
    session.send(&parts)?;
    session.expect_pong(706, "a message with two parts in one datagram")
}

fn part_twice(context: &mut Context) -> Check {
    let mut session = context.open()?;
    send_parts(&mut session, 707, 0, 5, &[0, 0, 1])?;
    session.expect_pong(707, "a message with a duplicated part")
}

fn parts_ordered(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let message = ping(0x7080);
    for (index, piece) in (0..).zip(message.chunks(5)) {
        let split = Some(Split { count: 2, id: 0, index });
        let number = session.next_reliable();
        session.send(&[Capsule { split, ..Capsule::ordered(number, 1, 11, piece.to_vec()) }])?;
    }
    session.expect_no_pong(0x7080, "a split message after a missing one")?;
    filler_on_channel(&mut session, 11, 0)?;
    session.expect_pong(0x7080, "the waiting split message")
}

fn parts_again(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let message = ping(709);
    let parts = [part(&mut session, 2, 0, 0, &message[..5]), part(&mut session, 2, 0, 1, &message[5..])];
    session.send(&parts)?;
    session.expect_pong(709, "a message in two parts")?;
    session.send(&parts)?;
    session.quiet()?;
    let count = session.pongs(709);
    ensure(count == 1, || format!("the peer delivered the message {count} times"))
}

fn id_again(context: &mut Context) -> Check {
    let mut session = context.open()?;
    for time in [0x7100, 0x7101, 0x7102] {
        send_parts(&mut session, time, 4, 5, &[0, 1])?;
        session.expect_pong(time, "a message with the split id 4")?;
    }
    Ok(())
}

fn one_part(context: &mut Context) -> Check {
    let mut session = context.open()?;
    send_parts(&mut session, 711, 0, 9, &[0])?;
    session.expect_pong(711, "a message that is split into one part")
}

fn bad_split(context: &mut Context, count: u32, index: u32, what: &str) -> Check {
    let mut bad = Vec::new();
    let split = Some(Split { count, id: 3, index });
    Capsule { split, ..Capsule::reliable(40, ping(0x7120)) }.write(&mut bad);
    ends_datagram(context, &bad, what)
}

fn index_equals_count(context: &mut Context) -> Check {
    bad_split(context, 2, 2, "a part with the split index 2 and the split count 2")
}

fn count_zero(context: &mut Context) -> Check {
    bad_split(context, 0, 0, "a part with the split count 0")
}

fn count_huge(context: &mut Context) -> Check {
    let mut session = context.open()?;
    for split_id in 0..8 {
        let capsule = part(&mut session, u32::MAX, split_id, u32::MAX - 1, &[0x86; 100]);
        session.send(&[capsule])?;
    }
    session.quiet()?;
    // The server may close the connection, but must not stop.
    session.link.still_answers("parts with the split count 2^32 - 1")?;
    context.open()?.still_answers("another connection sent parts with the split count 2^32 - 1")
}

fn count_contradicts(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let message = ping(715);
    let first = part(&mut session, 3, 0, 0, &message[..5]);
    let second = part(&mut session, 2, 0, 1, &message[5..]);
    session.send(&[first])?;
    session.send(&[second])?;
    session.expect_no_pong(715, "a message with the split counts 3 and 2")
}

fn too_long(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let mut bytes = Vec::new();
    capsule(ping(0x7160)).write_bits(0xffff, 0, &mut bytes);
    send_raw(&mut session, &bytes)?;
    session.expect_no_pong(0x7160, "a capsule with a length field of 8,192 bytes")?;
    session.still_answers("a capsule that is longer than its datagram")
}

fn unfinished(context: &mut Context) -> Check {
    let mut session = context.open()?;
    for split_id in 0..50 {
        let capsule = part(&mut session, 2, split_id, 0, &[0x86; 20]);
        session.send(&[capsule])?;
    }
    session.still_answers("fifty messages with a missing part")
}

fn parts_acked(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let zero = part(&mut session, 2, 0, 0, &ping(718)[..5]);
    let number = session.send(&[zero])?;
    ensure(session.wait_ack(number)?, || "the peer did not acknowledge the datagram of the first part".into())
}
