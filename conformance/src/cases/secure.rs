//! Groups 51 and 52: servers that require secure connections, with the suite's own handshake.

use crate::case::{Case, Context, Level, Role};
use crate::case::{MUST, SHOULD};
use crate::check::{Check, ensure, fail};
use crate::link::Link;
use crate::model::{Fault, SecureFault};
use crate::secure::{Handshake, OVERHEAD, SUITE, read_reply_1};
use crate::secured::{self, Choices, REPLY_1, finish};
use crate::session::{Session, new_guid, now};
use crate::wire::{self, Capsule, id};

const HANDSHAKE: &str = "the-handshake";
const KEY: &str = "reply-1-the-key-64-bytes";
const CHALLENGE: &str = "request-2-the-challenge-64-bytes";
const ANSWER: &str = "reply-2-the-answer-128-bytes";
const PROOF: &str = "connection-request-proof-and-identity";
const DATAGRAMS: &str = "datagrams";
const COMPATIBILITY: &str = "compatibility";

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    secure(5101, "secure-reply-1", MUST, KEY, "Reply 1 (06) has 96 bytes, with the cookie and the key; only zeros may follow.", reply_length, SecureFault::KeyTail),
    secure(5102, "secure-suite", MUST, KEY, "The key in reply 1 (06) contains the cipher suite rws01.", suite, SecureFault::SuiteOdd),
    secure(5103, "secure-mtu-twice", MUST, KEY, "The key in reply 1 (06) begins with a copy of the MTU of reply 1.", mtu_twice, SecureFault::MtuOnce),
    secure(5104, "secure-flags", SHOULD, KEY, "All flags of the key in reply 1 (06) except 1 and 2 are 0.", flags, SecureFault::FlagsOdd),
    secure(5105, "secure-short-request-1", MUST, KEY, "The server does not answer a request 1 (05) of 95 bytes.", short_request, SecureFault::AnswersShortRequest),
    secure(5106, "secure-plain-refused", MUST, COMPATIBILITY, "The server does not answer a request 2 (07) without a challenge with reply 2 (08).", plain, SecureFault::AcceptsPlain),
    secure(5107, "secure-answer", MUST, ANSWER, "The server answers a correct challenge with a reply 2 (08) whose encrypted answer the client can decrypt.", answer, SecureFault::AnswerBroken),
    secure(5108, "secure-answer-agrees", MUST, ANSWER, "The encrypted answer in reply 2 (08) contains the same address and MTU as the unencrypted fields.", answer, SecureFault::AnswerOfAnother),
    secure(5109, "secure-challenge-flipped", MUST, CHALLENGE, "The server does not send reply 2 (08) for a challenge with a wrong bit in its key, payload or tag.", flipped, SecureFault::TagUnchecked),
    secure(5110, "secure-mtu-covered", MUST, CHALLENGE, "The server does not send reply 2 (08) for a request 2 (07) whose MTU was changed on the path.", mtu_covered, SecureFault::MtuUncovered),
    secure(5111, "secure-guid-covered", MUST, CHALLENGE, "The server does not send reply 2 (08) for a request 2 (07) whose GUID was changed on the path.", guid_covered, SecureFault::GuidUncovered),
    secure(5112, "secure-cookie-wrong", MUST, CHALLENGE, "The server does not send reply 2 (08) for a challenge with a wrong cookie.", cookie, SecureFault::CookieUnchecked),
    secure(5113, "secure-pattern-unknown", MUST, CHALLENGE, "The server does not send reply 2 (08) for a challenge with a pattern other than 1 or 2.", pattern, SecureFault::AnyPattern),
    secure(5115, "secure-request-again", MUST, CHALLENGE, "The server answers a repeated request 2 (07) with an identical reply 2 (08).", again, SecureFault::NewAnswer),
    secure(5116, "secure-lower-number", MUST, CHALLENGE, "The server does not send reply 2 (08) for a second challenge with a lower number than the first.", lower, SecureFault::AnyNumber),
    secure(5117, "secure-higher-number", MUST, CHALLENGE, "The server answers a second challenge with a higher number than the first.", higher, SecureFault::KeepsFirst),
    secure(5118, "secure-reply-1-no-amplifier", MUST, HANDSHAKE, "Reply 1 (06) to a request 1 (05) of 96 bytes has at most 96 bytes.", amplifies_1, SecureFault::KeyTail),
    secure(5119, "secure-reply-2-no-amplifier", MUST, HANDSHAKE, "The server sends at most three times the bytes of request 2 (07) to a client that sends nothing after it.", amplifies_2, SecureFault::RepeatsAnswer),
    secure(5201, "secure-opens", MUST, PROOF, "The correct proof opens the connection: the server answers connected pings (00).", opens, SecureFault::NeverAccepts),
    secure(5202, "secure-plain-request", MUST, PROOF, "The server neither accepts nor acknowledges a connection request (09) in an unencrypted datagram.", plain_request, SecureFault::OpensPlain),
    secure(5203, "secure-plain-data", MUST, DATAGRAMS, "The server drops an unencrypted datagram in a secure connection.", plain_data, SecureFault::OpensPlain),
    secure(5204, "secure-plain-disconnection", MUST, DATAGRAMS, "An unencrypted disconnection notification (15) does not close a secure connection.", plain_15, SecureFault::OpensPlain),
    secure(5205, "secure-proof-wrong", MUST, PROOF, "The server does not accept a connection request (09) with a wrong proof.", proof_wrong, SecureFault::ProofUnchecked),
    secure(5206, "secure-proof-missing", MUST, PROOF, "The server does not accept a connection request (09) without a proof.", proof_missing, SecureFault::ProofOptional),
    secure(5207, "secure-replay", MUST, DATAGRAMS, "The server drops a replayed sealed datagram, and does not acknowledge it again.", replay, SecureFault::TakesReplays),
    secure(5208, "secure-bits-flipped", MUST, DATAGRAMS, "The server drops a sealed datagram with a wrong bit, and does not acknowledge it.", bits, SecureFault::IgnoresTag),
    secure(5209, "secure-forgeries-end-nothing", MUST, DATAGRAMS, "Datagrams that the server cannot decrypt do not close the connection.", forgeries, SecureFault::BadSealEnds),
    secure(5210, "secure-truncated", MUST, DATAGRAMS, "Sealed datagrams that are truncated at any byte do not close the connection.", truncated, SecureFault::DiesOfShortSeal),
    secure(5211, "secure-counters", MUST, DATAGRAMS, "The counters of the server's sealed datagrams start at 0 and do not repeat.", counters, SecureFault::CounterStands),
    secure(5212, "secure-overtaken", MUST, DATAGRAMS, "The server accepts a sealed datagram whose counter is more than 100 below the newest one.", overtaken, SecureFault::InOrderOnly),
    secure(5213, "secure-too-old", MUST, DATAGRAMS, "The server drops a sealed datagram whose counter is more than 3,000 below the newest one.", too_old, SecureFault::WindowEndless),
    secure(5214, "secure-other-epoch", MUST, DATAGRAMS, "The server drops a sealed datagram with the wrong epoch in its header.", epoch, SecureFault::AnyEpoch),
];

const fn secure(
    number: u16,
    name: &'static str,
    level: Level,
    section: &'static str,
    requirement: &'static str,
    run: fn(&mut Context) -> Check,
    fault: SecureFault,
) -> Case {
    Case::new(number, name, level, section, requirement, run, Fault::Secure(fault)).of(Role::SecureServer)
}

fn first(context: &mut Context, len: usize) -> Check<Vec<u8>> {
    let mut link = context.link()?;
    match link.ask(&wire::request_1(context.options.version, len), &[id::REPLY_1])? {
        Some(bytes) => Ok(bytes),
        None => fail("the server did not send reply 1 (06)"),
    }
}

fn reply_length(context: &mut Context) -> Check {
    let bytes = first(context, 1464)?;
    ensure(bytes.len() >= REPLY_1, || format!("reply 1 (06) has {} bytes", bytes.len()))?;
    let padded = bytes[REPLY_1..].iter().all(|&byte| byte == 0);
    ensure(padded, || {
        format!("reply 1 (06) has {} bytes, and bytes other than zeros after the MTU", bytes.len())
    })
}

fn suite(context: &mut Context) -> Check {
    let (_, reply) = context.secure_reply()?;
    ensure(reply.key[3..8] == *SUITE, || format!("the cipher suite is {:02x?}", &reply.key[3..8]))
}

fn mtu_twice(context: &mut Context) -> Check {
    let (_, reply) = context.secure_reply()?;
    ensure(reply.key[..2] == reply.mtu.to_be_bytes(), || {
        format!("the key begins with {:02x?}", &reply.key[..2])
    })
}

fn flags(context: &mut Context) -> Check {
    let (_, reply) = context.secure_reply()?;
    ensure(reply.key[2] & !3 == 0, || format!("the flags of the key are {:02x}", reply.key[2]))
}

fn short_request(context: &mut Context) -> Check {
    let mut link = context.link()?;
    link.send(&wire::request_1(context.options.version, 95))?;
    link.silence("a request 1 (05) of 95 bytes")
}

fn no_reply_2(link: &mut Link, request: &[u8], what: &str) -> Check {
    link.send(request)?;
    let came = link.during_quiet()?;
    let taken = came.iter().any(|bytes| wire::offline_id(bytes) == Some(id::REPLY_2));
    ensure(!taken, || format!("the server answered {what} with reply 2 (08)"))
}

fn plain(context: &mut Context) -> Check {
    let (mut link, reply) = context.secure_reply()?;
    let request = wire::request_2(Some(reply.cookie), link.target, reply.mtu, new_guid());
    no_reply_2(&mut link, &request, "a request 2 (07) without a challenge")
}

fn answer(context: &mut Context) -> Check {
    context.secure_dial().map(|_| ())
}

/// Sends a correct request 2 with a change applied. Fails if it is answered.
fn changed(context: &mut Context, change: impl Fn(&mut Vec<u8>), what: &str) -> Check {
    let (mut link, reply) = context.secure_reply()?;
    let mut challenge = context.challenge(&link, &reply, context.choices());
    change(&mut challenge.request);
    no_reply_2(&mut link, &challenge.request, what)
}

/// The offset of the challenge in request 2.
const CHALLENGE_AT: usize = 22;

fn flipped(context: &mut Context) -> Check {
    for at in [8, 30, 40, 47, 48, 63] {
        let what = format!("a challenge with a wrong bit in byte {at}");
        changed(context, |request| request[CHALLENGE_AT + at] ^= 1, &what)?;
    }
    Ok(())
}

fn mtu_covered(context: &mut Context) -> Check {
    let change = |request: &mut Vec<u8>| {
        let at = request.len() - 9;
        request[at] ^= 4;
    };
    changed(context, change, "a request 2 (07) with a changed MTU")
}

fn guid_covered(context: &mut Context) -> Check {
    let (mut link, reply) = context.secure_reply()?;
    let choices = Choices { guid: new_guid() & !1, ..context.choices() };
    let mut challenge = context.challenge(&link, &reply, choices);
    if let Some(last) = challenge.request.last_mut() {
        *last ^= 1;
    }
    no_reply_2(&mut link, &challenge.request, "a request 2 (07) with a changed GUID")
}

fn cookie(context: &mut Context) -> Check {
    let (mut link, mut reply) = context.secure_reply()?;
    reply.cookie ^= 0x10;
    let challenge = context.challenge(&link, &reply, context.choices());
    no_reply_2(&mut link, &challenge.request, "a challenge with a wrong cookie")
}

fn pattern(context: &mut Context) -> Check {
    let (mut link, reply) = context.secure_reply()?;
    let challenge = context.challenge(&link, &reply, Choices { pattern: 3, ..context.choices() });
    no_reply_2(&mut link, &challenge.request, "a challenge with the pattern 3")
}

fn again(context: &mut Context) -> Check {
    let (mut link, reply) = context.secure_reply()?;
    let challenge = context.challenge(&link, &reply, context.choices());
    let one = link.ask(&challenge.request, &[id::REPLY_2])?;
    ensure(one.is_some(), || "the server did not answer a correct challenge with reply 2 (08)".into())?;
    let two = link.ask(&challenge.request, &[id::REPLY_2])?;
    ensure(one == two, || "the second reply 2 (08) is missing, or differs from the first".into())
}

/// Sends a challenge with the first number, and fails unless it is answered. Returns another challenge with the second
/// number, which is not sent yet.
fn two_challenges(context: &mut Context, numbers: [u8; 2]) -> Check<(Link, secured::Challenge)> {
    let (mut link, reply) = context.secure_reply()?;
    let choices = Choices { number: numbers[0], ..context.choices() };
    let one = context.challenge(&link, &reply, choices);
    let came = link.ask(&one.request, &[id::REPLY_2])?;
    ensure(came.is_some(), || "the server did not answer a correct challenge with reply 2 (08)".into())?;
    let two = context.challenge(&link, &reply, Choices { number: numbers[1], ..choices });
    Ok((link, two))
}

fn lower(context: &mut Context) -> Check {
    let (mut link, two) = two_challenges(context, [3, 2])?;
    no_reply_2(&mut link, &two.request, "a challenge with a lower number")
}

fn higher(context: &mut Context) -> Check {
    let (mut link, two) = two_challenges(context, [0, 1])?;
    match link.ask(&two.request, &[id::REPLY_2])? {
        Some(bytes) => finish(&two, &bytes).map(|_| ()),
        None => fail("the server did not answer a challenge with a higher number with reply 2 (08)"),
    }
}

fn amplifies_1(context: &mut Context) -> Check {
    let bytes = first(context, REPLY_1)?;
    ensure(bytes.len() <= REPLY_1, || format!("reply 1 (06) has {} bytes", bytes.len()))?;
    ensure(read_reply_1(&bytes).is_some(), || "reply 1 (06) has no key".into())
}

fn amplifies_2(context: &mut Context) -> Check {
    let (mut link, reply) = context.secure_reply()?;
    let challenge = context.challenge(&link, &reply, context.choices());
    (link.sent, link.received) = (0, 0);
    link.send(&challenge.request)?;
    for _ in 0..4 {
        link.during_quiet()?;
    }
    let (sent, received) = (link.sent, link.received);
    ensure(received <= 3 * sent, || format!("the server sent {received} bytes for {sent} bytes"))
}

fn opens(context: &mut Context) -> Check {
    context.secure_open()?.still_answers("the handshake")
}

/// Fails if connection request accepted (10) arrives within the quiet time.
fn no_10(session: &mut Session, what: &str) -> Check {
    session.quiet()?;
    ensure(session.first(id::ACCEPTED).is_none(), || format!("the server accepted {what}"))
}

fn plain_request(context: &mut Context) -> Check {
    let (mut session, handshake) = context.secure_dial()?;
    let request = secured::request(&session, &handshake.proof(), b"");
    let bytes = wire::data(0x84, 0, &[Capsule::reliable(0, request)]);
    session.link.send_as_it_is(&bytes)?;
    no_10(&mut session, "an unencrypted connection request (09)")?;
    ensure(!session.is_acked(0), || "the server acknowledged an unencrypted connection request (09)".into())
}

fn plain_data(context: &mut Context) -> Check {
    let mut session = context.secure_open()?;
    let ping = Capsule::unreliable(wire::connected_ping(5203));
    let bytes = wire::data(0x84, session.number, &[ping]);
    session.link.send_as_it_is(&bytes)?;
    session.expect_no_pong(5203, "an unencrypted datagram")?;
    session.still_answers("an unencrypted datagram")
}

fn plain_15(context: &mut Context) -> Check {
    let mut session = context.secure_open()?;
    let notice = Capsule::reliable(session.reliable, vec![id::DISCONNECTION]);
    let bytes = wire::data(0x84, session.number, &[notice]);
    session.link.send_as_it_is(&bytes)?;
    session.quiet()?;
    session.still_answers("an unencrypted disconnection notification (15)")
}

fn proof_wrong(context: &mut Context) -> Check {
    let (mut session, handshake) = context.secure_dial()?;
    let mut proof = handshake.proof();
    proof[31] ^= 1;
    let request = secured::request(&session, &proof, b"");
    session.send_reliable(request)?;
    no_10(&mut session, "a connection request (09) with a wrong proof")
}

fn proof_missing(context: &mut Context) -> Check {
    let (mut session, _): (Session, Handshake) = context.secure_dial()?;
    let request = wire::connection_request(session.guid, now(), b"");
    session.send_reliable(request)?;
    no_10(&mut session, "a connection request (09) without a proof")
}

/// Encrypts a ping with the next datagram number and counter, without sending it.
fn sealed(session: &mut Session, time: u64) -> (Vec<u8>, u32) {
    let number = session.number;
    session.number += 1;
    let plain = wire::data(0x84, number, &[Capsule::unreliable(wire::connected_ping(time))]);
    let bytes = session.link.seal.as_mut().map(|seal| seal.seal(&plain));
    (bytes.unwrap_or_default(), number)
}

fn replay(context: &mut Context) -> Check {
    let mut session = context.secure_open()?;
    session.quiet()?;
    let (bytes, number) = sealed(&mut session, 5207);
    session.link.send_as_it_is(&bytes)?;
    ensure(session.wait_ack(number)?, || "the server did not acknowledge the sealed datagram".into())?;
    session.quiet()?;
    session.acked.clear();
    session.link.send_as_it_is(&bytes)?;
    session.quiet()?;
    ensure(!session.is_acked(number), || "the server acknowledged the replayed datagram".into())?;
    session.still_answers("a replayed datagram")
}

fn bits(context: &mut Context) -> Check {
    let mut session = context.secure_open()?;
    session.still_answers("the handshake")?;
    session.answers_pings = false;
    session.quiet()?;
    let before = session.receipts.len();
    for at in [3, 4, 7, 12, 20] {
        let (mut bytes, _) = sealed(&mut session, 5208);
        let at = at.min(bytes.len() - 1);
        bytes[at] ^= 0x20;
        session.link.send_as_it_is(&bytes)?;
    }
    session.quiet()?;
    ensure(session.receipts.len() == before, || {
        "the server acknowledged a datagram with a wrong bit".into()
    })?;
    ensure(session.pongs(5208) == 0, || {
        "the server answered the connected ping (00) in a datagram with a wrong bit".into()
    })
}

fn forgeries(context: &mut Context) -> Check {
    let mut session = context.secure_open()?;
    session.still_answers("the handshake")?;
    for seed in 0..200_usize {
        let bytes: Vec<u8> = (0..seed + OVERHEAD).map(|at| (at * 31 + seed * 7) as u8).collect();
        session.link.send_as_it_is(&[&[0x80 | bytes[0]][..], &bytes[1..]].concat())?;
    }
    session.quiet()?;
    session.still_answers("200 forged datagrams")
}

fn truncated(context: &mut Context) -> Check {
    let mut session = context.secure_open()?;
    let (bytes, _) = sealed(&mut session, 5210);
    for len in 1..bytes.len() {
        session.link.send_as_it_is(&bytes[..len])?;
    }
    session.quiet()?;
    session.still_answers("truncated sealed datagrams")
}

fn counters(context: &mut Context) -> Check {
    let mut session = context.secure_open()?;
    for time in 0..5 {
        session.send(&[Capsule::unreliable(wire::connected_ping(52_110 + time))])?;
        session.expect_pong(52_110 + time, "a datagram")?;
    }
    let mut counters = session.link.counters.clone();
    counters.sort_unstable();
    let first = counters.first().copied();
    let twice = counters.windows(2).any(|pair| pair[0] == pair[1]);
    ensure(first == Some(0) && !twice, || format!("the counters are {counters:?}"))
}

/// Encrypts a ping without sending it, increases the counter by `ahead`, sends another ping, and then the first ping.
fn behind(context: &mut Context, ahead: u64, time: u64) -> Check<Session> {
    let mut session = context.secure_open()?;
    session.quiet()?;
    let (late, _) = sealed(&mut session, time);
    if let Some(seal) = session.link.seal.as_mut() {
        seal.next += ahead;
    }
    session.still_answers("the counter was increased")?;
    session.link.send_as_it_is(&late)?;
    Ok(session)
}

fn overtaken(context: &mut Context) -> Check {
    behind(context, 100, 5212)?.expect_pong(5212, "a datagram with a lower counter")
}

fn too_old(context: &mut Context) -> Check {
    behind(context, 3000, 5213)?.expect_no_pong(5213, "a datagram with a counter that is too old")
}

fn epoch(context: &mut Context) -> Check {
    let mut session = context.secure_open()?;
    session.still_answers("the handshake")?;
    session.answers_pings = false;
    session.quiet()?;
    let before = session.receipts.len();
    let (mut bytes, _) = sealed(&mut session, 5214);
    bytes[0] |= 0x20;
    session.link.send_as_it_is(&bytes)?;
    session.quiet()?;
    ensure(session.receipts.len() == before, || {
        "the server acknowledged a datagram with the wrong epoch".into()
    })?;
    session.still_answers("a datagram with the wrong epoch")
}
