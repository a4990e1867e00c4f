//! Group 22: the first requests of a client, and its reaction to invalid answers.

use crate::case::{Case, Context, Needs, Role};
use crate::case::{MUST, SHOULD};
use crate::check::{Check, Stop, ensure, fail};
use crate::link::Link;
use crate::listen::Attempt;
use crate::model::Fault;
use crate::wire::{self, id};
use std::time::{Duration, Instant};

const ATTEMPTS: &str = "connection-attempts";
const OFFLINE: &str = "offline-messages";
const VERSION: &str = "the-version-of-the-server";
const DATAGRAMS: &str = "datagrams";

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    client(2201, "dials", MUST, OFFLINE, "The client's first datagram is request 1 (05) with the magic.", dials, Fault::Mute(id::REQUEST_1)),
    client(2202, "request-1-longest", MUST, ATTEMPTS, "The client's first request 1 (05) has at most 1,464 bytes, which is an MTU of 1492.", longest, Fault::LongRequestOne),
    client(2203, "request-1-falls", SHOULD, ATTEMPTS, "The client does not increase the length of request 1 (05) while it gets no answer, except to restart with the first length.", falls, Fault::LadderRises),
    client(2204, "request-1-repeated", MUST, ATTEMPTS, "The client repeats request 1 (05) if it gets no answer.", repeated, Fault::AsksOnce),
    client(2205, "request-1-spaced", SHOULD, ATTEMPTS, "The client sends request 1 (05) at most 20 times per second.", spaced, Fault::AsksWildly),
    client(2206, "request-1-smaller", SHOULD, ATTEMPTS, "The client tries a smaller MTU if it gets no answer to request 1 (05).", smaller, Fault::LadderStands),
    client(2207, "request-1-floor", SHOULD, ATTEMPTS, "The client sends no request 1 (05) shorter than 548 bytes, which is an MTU of 576.", floor, Fault::LadderWithoutFloor),
    client(2208, "request-1-gives-up", SHOULD, ATTEMPTS, "The client gives up an attempt that gets no answer.", gives_up, Fault::AsksForever).needs(Needs::Start),
    client(2209, "request-1-version", MUST, VERSION, "The client announces the same protocol version in every request 1 (05) of an attempt.", version, Fault::VersionChanges),
    client(2210, "incompatible-ends", MUST, VERSION, "After incompatible protocol version (19), the client sends no request 2 (07), even if reply 1 (06) follows.", incompatible, Fault::IgnoresRefusal(id::INCOMPATIBLE)),
    client(2211, "incompatible-wrong-magic", MUST, DATAGRAMS, "Incompatible protocol version (19) with a wrong magic does not end the client's attempt.", incompatible_magic, Fault::IgnoresMagic),
    client(2212, "garbage-while-dialling", MUST, "hostile-bytes", "Random bytes from the server's address do not end the client's attempt.", garbage, Fault::DiesOfGarbage),
    client(2213, "reply-1-other-port", MUST, DATAGRAMS, "The client does not answer a reply 1 (06) from another port of the server's host.", other_port, Fault::BelievesStrangers),
    client(2214, "reply-1-truncated", MUST, OFFLINE, "The client does not answer a truncated reply 1 (06) with request 2 (07).", truncated, Fault::PadsShortDatagrams),
    client(2215, "reply-1-wrong-magic", MUST, DATAGRAMS, "The client does not answer a reply 1 (06) with a wrong magic with request 2 (07).", wrong_magic, Fault::IgnoresMagic),
    client(2216, "incompatible-truncated", SHOULD, OFFLINE, "A truncated incompatible protocol version (19) does not end the client's attempt.", incompatible_cut, Fault::PadsShortDatagrams),
    client(2217, "unknown-id-while-dialling", MUST, "message-ids", "The client does not answer a datagram that has the magic and an id that no offline message uses (1E to 7F).", unknown, Fault::AnswersUnknownIds),
];

pub(super) const fn client(
    number: u16,
    name: &'static str,
    level: crate::case::Level,
    section: &'static str,
    requirement: &'static str,
    run: fn(&mut Context) -> Check,
    fault: Fault,
) -> Case {
    Case::new(number, name, level, section, requirement, run, fault).of(Role::Client)
}

fn dials(context: &mut Context) -> Check {
    context.accept().map(|_| ())
}

/// Returns the times and bytes of the requests 1 that a client sends without receiving an answer.
fn unanswered(context: &mut Context, time: Duration) -> Check<Vec<(Instant, Vec<u8>)>> {
    let mut attempt = context.accept()?;
    let mut all = vec![(Instant::now(), attempt.first.clone())];
    let deadline = Instant::now() + time;
    while let Some(bytes) = attempt.link.receive(deadline)? {
        if wire::offline_id(&bytes) == Some(id::REQUEST_1) {
            all.push((Instant::now(), bytes));
        }
    }
    Ok(all)
}

fn lengths(context: &mut Context) -> Check<Vec<usize>> {
    let time = context.timing.lifetime;
    Ok(unanswered(context, time)?.iter().map(|request| request.1.len()).collect())
}

fn longest(context: &mut Context) -> Check {
    let attempt = context.accept()?;
    ensure(attempt.first.len() <= 1464, || {
        format!("the first request 1 (05) has {} bytes", attempt.first.len())
    })
}

fn falls(context: &mut Context) -> Check {
    let lengths = lengths(context)?;
    // After the smallest size, an attempt may start over with the largest.
    let rises = lengths.windows(2).any(|pair| pair[1] > pair[0] && pair[1] != lengths[0]);
    ensure(!rises && lengths[0] == lengths.iter().copied().max().unwrap_or_default(), || {
        format!("the lengths of request 1 (05) are {lengths:?}")
    })
}

fn repeated(context: &mut Context) -> Check {
    let lengths = lengths(context)?;
    ensure(lengths.len() > 1, || "the client sent only one request 1 (05)".into())
}

fn spaced(context: &mut Context) -> Check {
    let count = unanswered(context, Duration::from_secs(1))?.len();
    ensure(count <= 21, || format!("the client sent request 1 (05) {count} times in a second"))
}

fn smaller(context: &mut Context) -> Check {
    let lengths = lengths(context)?;
    ensure(lengths.iter().any(|&len| len < lengths[0]), || {
        format!("the lengths of request 1 (05) are {lengths:?}")
    })
}

fn floor(context: &mut Context) -> Check {
    let lengths = lengths(context)?;
    ensure(lengths.iter().all(|&len| len >= 548), || format!("the lengths of request 1 (05) are {lengths:?}"))
}

fn gives_up(context: &mut Context) -> Check {
    let lifetime = context.timing.lifetime;
    let all = unanswered(context, lifetime * 2)?;
    let late = all.last().is_some_and(|last| last.0 - all[0].0 > lifetime * 3 / 2);
    ensure(!late, || {
        format!(
            "the client sent request 1 (05) {} times, the last time after more than {:?}",
            all.len(),
            lifetime * 3 / 2
        )
    })
}

fn version(context: &mut Context) -> Check {
    let time = context.timing.lifetime;
    let all = unanswered(context, time)?;
    let versions: Vec<_> = all.iter().filter_map(|request| request.1.get(17)).collect();
    ensure(versions.windows(2).all(|pair| pair[0] == pair[1]), || {
        format!("the protocol versions are {versions:?}")
    })
}

/// Fails if request 2 arrives within the quiet time.
fn no_request_2(attempt: &mut Attempt, after: &str) -> Check {
    let came = attempt.link.during_quiet()?;
    let asked = came.iter().any(|bytes| wire::offline_id(bytes) == Some(id::REQUEST_2));
    ensure(!asked, || format!("the client sent request 2 (07) after {after}"))
}

/// Fails unless a correct reply 1 results in a request 2.
pub(super) fn goes_on(attempt: &mut Attempt, after: &str) -> Check {
    for _ in 0..2 {
        let reply = attempt.reply_1(None, attempt.probed());
        attempt.link.send(&reply)?;
        if attempt.request_2()?.is_some() {
            return Ok(());
        }
    }
    fail(format!("the client did not answer reply 1 (06) with request 2 (07) after {after}"))
}

fn incompatible(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    let refused = attempt.first.get(17).copied().unwrap_or_default();
    attempt.link.send(&wire::incompatible(refused.wrapping_add(1), attempt.guid))?;
    attempt.link.during_quiet()?;
    let reply = attempt.reply_1(None, attempt.probed());
    attempt.link.send(&reply)?;
    no_request_2(&mut attempt, "incompatible protocol version (19)")
}

fn incompatible_magic(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    let mut refusal = wire::incompatible(99, attempt.guid);
    refusal[9] ^= 1;
    attempt.link.send(&refusal)?;
    goes_on(&mut attempt, "incompatible protocol version (19) with a wrong magic")
}

fn garbage(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    for seed in 0..60_u32 {
        let mut bytes: Vec<u8> =
            (0..seed % 40 + 3).map(|at| (at ^ seed).wrapping_mul(0x9e37_79b1).to_be_bytes()[0]).collect();
        // The messages 0A, 0B, 0C and 11 end an attempt even without the magic. Setting this bit makes them other
        // messages.
        bytes[0] |= 0x40;
        attempt.link.send(&bytes)?;
    }
    goes_on(&mut attempt, "random bytes")
}

fn other_port(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    let mut other: Link = context.link()?;
    let reply = attempt.reply_1(None, attempt.probed());
    other.send(&reply)?;
    other.silence("a reply 1 (06) from another port")?;
    no_request_2(&mut attempt, "a reply 1 (06) from another port")?;
    goes_on(&mut attempt, "a reply 1 (06) from another port")
}

fn truncated(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    let reply = attempt.reply_1(None, attempt.probed());
    for len in 3..reply.len() {
        attempt.link.send(&reply[..len])?;
    }
    no_request_2(&mut attempt, "a truncated reply 1 (06)")?;
    goes_on(&mut attempt, "truncated copies of reply 1 (06)")
}

fn wrong_magic(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    for at in 1..17 {
        let mut reply = attempt.reply_1(None, attempt.probed());
        reply[at] ^= 1;
        attempt.link.send(&reply)?;
    }
    no_request_2(&mut attempt, "a reply 1 (06) with a wrong magic")
}

fn incompatible_cut(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    attempt.link.send(&wire::incompatible(99, attempt.guid)[..20])?;
    goes_on(&mut attempt, "a truncated incompatible protocol version (19)")
}

fn unknown(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    for id in 0x1e..0x80_u8 {
        attempt.link.send(&[&[id][..], &wire::MAGIC, &[0; 30]].concat())?;
    }
    let came = attempt.link.during_quiet()?;
    let answered = came.iter().any(|bytes| wire::offline_id(bytes) != Some(id::REQUEST_1));
    if answered {
        return Err(Stop::Failed("the client answered a datagram with an unused id".into()));
    }
    goes_on(&mut attempt, "datagrams with unused ids")
}
