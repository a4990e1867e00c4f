//! Group 1: unconnected pings and pongs, and datagrams that must not be answered.

use crate::case::{Case, Context};
use crate::case::{MUST, SHOULD};
use crate::check::{Check, ensure, fail, skip};
use crate::model::Fault;
use crate::session::reply_1;
use crate::wire::{self, Pong, id};

const PINGS: &str = "unconnected-pings";
const OFFLINE: &str = "offline-messages";
const DATAGRAMS: &str = "datagrams";

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    Case::new(101, "ping-answered", MUST, PINGS, "The server answers an unconnected ping (01) with an unconnected pong (1C).", answered, Fault::Mute(id::PONG)),
    Case::new(102, "pong-time", MUST, PINGS, "The unconnected pong (1C) contains the time of the unconnected ping (01).", time, Fault::Flip(id::PONG, 8)),
    Case::new(103, "pong-time-of-all-ones", MUST, PINGS, "The unconnected pong (1C) returns a ping time of all ones unchanged.", time_of_all_ones, Fault::PongTimeSigned),
    Case::new(104, "pong-time-zero", MUST, PINGS, "The unconnected pong (1C) returns a ping time of zero unchanged.", time_zero, Fault::PongOwnTimeForZero),
    Case::new(105, "pong-magic", MUST, OFFLINE, "The unconnected pong (1C) has the magic at offset 17.", magic, Fault::Flip(id::PONG, 20)),
    Case::new(106, "pong-data-length", MUST, OFFLINE, "The data of the unconnected pong (1C) have at most 399 bytes.", data_length, Fault::LongPong),
    Case::new(107, "pong-guid-assigned", MUST, "values", "The server's GUID is not all ones, because all ones means no peer.", guid_assigned, Fault::GuidUnassigned),
    Case::new(108, "pong-guid-constant", MUST, "values", "The server's GUID is the same in all unconnected pongs (1C).", guid_constant, Fault::GuidChanges),
    Case::new(109, "pong-guid-of-reply", MUST, "values", "The server's unconnected pong (1C) and reply 1 (06) have the same GUID.", guid_of_reply, Fault::Flip(id::REPLY_1, 20)),
    Case::new(110, "one-pong", MUST, PINGS, "The server sends exactly one unconnected pong (1C) for each unconnected ping (01).", one_pong, Fault::Twice(id::PONG)),
    Case::new(111, "ping-open-answered", MUST, PINGS, "A server that accepts connections answers an unconnected ping for open connections (02) with an unconnected pong (1C).", open_answered, Fault::IgnoresPingOpen),
    Case::new(112, "ping-open-time", MUST, PINGS, "The unconnected pong (1C) contains the time of the unconnected ping for open connections (02).", open_time, Fault::PingOpenTimeLost),
    Case::new(113, "ping-without-guid", SHOULD, OFFLINE, "The server does not answer an unconnected ping (01) without a GUID.", ping_without_guid, Fault::AnswersShortPing),
    Case::new(114, "ping-wrong-magic", MUST, DATAGRAMS, "The server does not answer an unconnected ping (01) with a wrong magic.", wrong_magic, Fault::IgnoresMagic),
    Case::new(115, "ping-magic-moved", MUST, DATAGRAMS, "The server does not answer an unconnected ping (01) if its magic is one byte too early.", magic_moved, Fault::SearchesMagic),
    Case::new(116, "ping-truncated", MUST, OFFLINE, "The server does not answer an unconnected ping (01) that is truncated before the end of its magic.", ping_truncated, Fault::PadsShortDatagrams),
    Case::new(117, "tiny-datagrams", MUST, DATAGRAMS, "The server ignores datagrams of one or two bytes.", tiny, Fault::AnswersTiny),
    Case::new(118, "ping-of-connected", MUST, DATAGRAMS, "The server answers an unconnected ping (01) from the address of an open connection.", ping_of_connected, Fault::NoPongForConnected),
    Case::new(119, "pong-length-prefix", SHOULD, "advertisements", "The length of a Bedrock advertisement, as a u16, precedes its text in the unconnected pong (1C).", length_prefix, Fault::PongPrefixWrong),
    Case::new(120, "advertisement-fields", SHOULD, "advertisements", "A Bedrock advertisement has at least six fields; the game protocol, the players and the maximum are numbers or empty.", fields, Fault::AdvertisementShort),
    Case::new(121, "unknown-offline-id", MUST, "message-ids", "The server does not answer a datagram that has the magic and an id that no offline message uses (1E to 7F).", unknown_ids, Fault::AnswersUnknownIds),
    Case::new(122, "replies-not-answered", MUST, OFFLINE, "The server does not answer messages of servers: reply 1 (06), reply 2 (08), incompatible protocol version (19) and unconnected pong (1C).", replies, Fault::AnswersReplies),
    Case::new(123, "refusals-not-answered", MUST, OFFLINE, "The server does not answer refusals: connection attempt failed (11), already connected (12), no free incoming connections (14), connection banned (17), IP recently connected (1A).", refusals, Fault::AnswersRefusals),
    Case::new(124, "out-of-band-harmless", MUST, OFFLINE, "Out-of-band messages (0D) of 0 to 1,400 data bytes do not stop the server: it still answers unconnected pings.", out_of_band, Fault::DiesOfOutOfBand),
];

fn pong(context: &mut Context, ping_id: u8, time: u64) -> Check<(Vec<u8>, Pong)> {
    let mut link = context.link()?;
    let Some(bytes) = link.ask(&wire::ping(ping_id, time, 1), &[id::PONG])? else {
        return fail("the server did not send an unconnected pong (1C)");
    };
    match wire::read_pong(&bytes) {
        Some(pong) => Ok((bytes, pong)),
        None => fail("the unconnected pong (1C) is shorter than 33 bytes, or has no magic at offset 17"),
    }
}

fn answered(context: &mut Context) -> Check {
    let mut link = context.link()?;
    let came = link.ask(&wire::ping(id::PING, 1, 1), &[id::PONG])?;
    ensure(came.is_some(), || "the server answered neither of two unconnected pings (01)".into())
}

fn has_time(context: &mut Context, ping_id: u8, time: u64) -> Check {
    let (_, pong) = pong(context, ping_id, time)?;
    ensure(pong.time == time, || {
        format!("the ping has the time {time:#x}, and the pong (1C) has {:#x}", pong.time)
    })
}

fn time(context: &mut Context) -> Check {
    has_time(context, id::PING, 0x0123_4567_89ab_cdef)
}

fn time_of_all_ones(context: &mut Context) -> Check {
    has_time(context, id::PING, u64::MAX)
}

fn time_zero(context: &mut Context) -> Check {
    has_time(context, id::PING, 0)
}

fn magic(context: &mut Context) -> Check {
    let mut link = context.link()?;
    let Some(bytes) = link.ask(&wire::ping(id::PING, 5, 1), &[id::PONG])? else {
        return fail("the server did not send an unconnected pong (1C)");
    };
    ensure(bytes.get(17..33) == Some(&wire::MAGIC[..]), || {
        "bytes 17 to 32 of the pong (1C) are not the magic".into()
    })
}

fn data_length(context: &mut Context) -> Check {
    let (_, pong) = pong(context, id::PING, 6)?;
    ensure(pong.data.len() < 400, || format!("the pong (1C) has {} bytes of data", pong.data.len()))
}

fn guid_assigned(context: &mut Context) -> Check {
    let (_, pong) = pong(context, id::PING, 7)?;
    ensure(pong.guid != u64::MAX, || "the server's GUID is all ones".into())
}

fn guid_constant(context: &mut Context) -> Check {
    let (_, first) = pong(context, id::PING, 8)?;
    let (_, second) = pong(context, id::PING, 9)?;
    ensure(first.guid == second.guid, || {
        format!("the server's GUID changed from {:#x} to {:#x}", first.guid, second.guid)
    })
}

fn guid_of_reply(context: &mut Context) -> Check {
    let (_, pong) = pong(context, id::PING, 10)?;
    let mut link = context.link()?;
    let (_, reply) = reply_1(&mut link, context.options.version, 1464)?;
    ensure(pong.guid == reply.guid, || {
        format!("the GUID is {:#x} in the pong (1C) and {:#x} in reply 1 (06)", pong.guid, reply.guid)
    })
}

fn one_pong(context: &mut Context) -> Check {
    let mut link = context.link()?;
    link.send(&wire::ping(id::PING, 11, 1))?;
    if link.offline(&[id::PONG])?.is_none() {
        return fail("the server did not send an unconnected pong (1C)");
    }
    link.silence("one unconnected ping (01) a second time")
}

fn open_answered(context: &mut Context) -> Check {
    pong(context, id::PING_OPEN, 12).map(|_| ())
}

fn open_time(context: &mut Context) -> Check {
    has_time(context, id::PING_OPEN, 0x00ff_00ff_1234_5678)
}

/// Sends datagrams. Fails if one of them is answered, or if a later ping is not answered.
fn unanswered(context: &mut Context, datagrams: &[Vec<u8>], what: &str) -> Check {
    let mut link = context.link()?;
    for datagram in datagrams {
        link.send(datagram)?;
    }
    link.silence(what)?;
    link.still_answers(what)
}

fn ping_without_guid(context: &mut Context) -> Check {
    let mut ping = wire::ping(id::PING, 13, 1);
    ping.truncate(25);
    unanswered(context, &[ping], "an unconnected ping (01) without a GUID")
}

fn wrong_magic(context: &mut Context) -> Check {
    let damaged = |at: usize| {
        let mut ping = wire::ping(id::PING, 14, 1);
        ping[at] ^= 0x40;
        ping
    };
    let pings: Vec<_> = (9..25).map(damaged).collect();
    unanswered(context, &pings, "an unconnected ping (01) with a wrong magic")
}

fn magic_moved(context: &mut Context) -> Check {
    let mut ping = wire::ping(id::PING, 15, 1);
    ping.remove(1);
    ping.push(0);
    unanswered(context, &[ping], "an unconnected ping (01) with the magic at offset 8")
}

fn ping_truncated(context: &mut Context) -> Check {
    let whole = wire::ping(id::PING, 16, 1);
    let cut: Vec<_> = (1..25).map(|len| whole[..len].to_vec()).collect();
    unanswered(context, &cut, "a truncated unconnected ping (01)")
}

fn tiny(context: &mut Context) -> Check {
    let datagrams = [vec![0], vec![1], vec![0xc0], vec![5, 0], vec![0x84, 0], vec![0xa0, 0]];
    unanswered(context, &datagrams, "a datagram of one or two bytes")
}

fn ping_of_connected(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let answer = session.link.ask(&wire::ping(id::PING, 17, 1), &[id::PONG])?;
    ensure(answer.is_some(), || "the server did not send an unconnected pong (1C)".into())
}

/// Returns the text of a Minecraft Bedrock advertisement, and the two bytes before it.
fn advertisement(context: &mut Context) -> Check<(Vec<u8>, String)> {
    let (_, pong) = pong(context, id::PING, 18)?;
    let at = pong.data.windows(5).take(3).position(|bytes| matches!(bytes, b"MCPE;" | b"MCEE;"));
    match at {
        Some(at @ (0 | 2)) => {
            Ok((pong.data[..at].to_vec(), String::from_utf8_lossy(&pong.data[at..]).into_owned()))
        }
        _ => skip("the unconnected pong (1C) contains no Bedrock advertisement"),
    }
}

fn length_prefix(context: &mut Context) -> Check {
    let (prefix, text) = advertisement(context)?;
    ensure(prefix == (text.len() as u16).to_be_bytes(), || {
        format!("the advertisement has {} bytes, and the bytes before it are {prefix:02x?}", text.len())
    })
}

fn fields(context: &mut Context) -> Check {
    let (_, text) = advertisement(context)?;
    let escaped = text.replace("\\;", "\u{1}");
    let fields: Vec<_> = escaped.split(';').collect();
    ensure(fields.len() >= 6, || format!("the advertisement {text:?} has {} fields", fields.len()))?;
    for (at, name) in [(2, "game protocol"), (4, "players"), (5, "max players")] {
        ensure(fields[at].is_empty() || fields[at].parse::<i64>().is_ok(), || {
            format!("the field for the {name} is {:?}, which is not a number", fields[at])
        })?;
    }
    Ok(())
}

fn unknown_ids(context: &mut Context) -> Check {
    let build = |id: u8| [&[id][..], &wire::MAGIC, &[0; 30]].concat();
    let datagrams: Vec<_> = (0x1e..0x80).map(build).collect();
    unanswered(context, &datagrams, "a datagram with the magic and an unused id")
}

fn replies(context: &mut Context) -> Check {
    let one = [&[id::REPLY_1][..], &wire::MAGIC, &[0, 0, 0, 0, 0, 0, 0, 1, 0, 5, 0xd4]].concat();
    let mut two = wire::refusal(id::REPLY_2, 1);
    wire::put_address(&mut two, context.target);
    two.extend([5, 0xd4, 0]);
    let old = [&[id::INCOMPATIBLE, 6][..], &wire::MAGIC, &[0, 0, 0, 0, 0, 0, 0, 1]].concat();
    unanswered(context, &[one, two, old, wire::pong(19, 1, b"x")], "a message that only servers send")
}

fn refusals(context: &mut Context) -> Check {
    let all = [0x11, 0x12, 0x14, 0x17, 0x1a].map(|id| wire::refusal(id, 1));
    unanswered(context, &all, "a refusal")
}

fn out_of_band(context: &mut Context) -> Check {
    let mut link = context.link()?;
    let head = [&[id::OUT_OF_BAND][..], &[0, 0, 0, 0, 0, 0, 0, 1], &wire::MAGIC].concat();
    for len in [0, 1, 399, 400, 1400] {
        link.send(&[&head[..], &vec![0x86; len]].concat())?;
    }
    link.during_quiet()?;
    link.still_answers("out-of-band messages of 0, 1, 399, 400 and 1,400 bytes")
}
