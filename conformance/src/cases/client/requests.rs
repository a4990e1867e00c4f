//! Group 23: the client's request 2, cookies, reply 2 and refusals.

use super::attempt::client;
use crate::case::{Case, Context};
use crate::case::{MUST, SHOULD};
use crate::check::{Check, ensure, fail};
use crate::listen::Attempt;
use crate::model::Fault;
use crate::wire::{self, Request2, id};
use std::time::{Duration, Instant};

const ATTEMPTS: &str = "connection-attempts";
const OFFLINE: &str = "offline-messages";
const COOKIES: &str = "cookies";
const DATAGRAMS: &str = "datagrams";
const MISMATCHES: &str = "where-the-documents-disagree";

/// The cases.
#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    client(2301, "request-2", MUST, OFFLINE, "Reply 1 brings request 2 (07) with the magic.", asked, Fault::Mute(id::REQUEST_2)),
    client(2302, "request-2-length", MUST, OFFLINE, "Request 2 is exactly an address, an MTU and a GUID behind the magic, and the cookie with its byte before them.", length, Fault::LongRequestTwo),
    client(2303, "request-2-mtu", MUST, ATTEMPTS, "Request 2 has the MTU of reply 1, if that is smaller than what was asked for.", mtu, Fault::MtuConstant),
    client(2304, "request-2-mtu-limit", SHOULD, ATTEMPTS, "A reply 1 does not raise the MTU above that of request 1.", mtu_limit, Fault::MtuUnlimited),
    client(2305, "request-2-guid", MUST, "values", "The GUID of a client is not all ones, which is no peer.", guid, Fault::GuidUnassigned),
    client(2306, "request-2-server", SHOULD, OFFLINE, "Request 2 has the port that was dialled.", server, Fault::WrongClientAddress),
    client(2307, "request-2-guid-constant", MUST, "values", "Two requests 2 of an attempt have one GUID.", guid_constant, Fault::GuidChanges),
    client(2308, "cookie-echoed", MUST, COOKIES, "The cookie of reply 1 comes back in request 2 as it was.", cookie, Fault::CookieSwapped),
    client(2309, "cookie-zero", SHOULD, COOKIES, "A cookie of zeros comes back as well.", cookie_zero, Fault::CookieNotZero),
    client(2310, "cookie-no-challenge", MUST, COOKIES, "Without a key in reply 1 a zero stands behind the cookie.", challenge, Fault::ChallengeFlag),
    client(2311, "reply-1-again", MUST, ATTEMPTS, "A second reply 1 with another cookie brings a request 2 with that cookie.", again, Fault::AnswersFirstReplyOnly),
    client(2312, "reply-1-padded", MUST, MISMATCHES, "A reply 1 that is padded with zeros is read.", padded, Fault::ReplyLengthExact),
    client(2313, "cookie-padded", MUST, COOKIES, "A reply 1 with a cookie that is padded with zeros is read, and its zeros are no key.", cookie_padded, Fault::ReplyLengthExact),
    client(2314, "security-byte-any", SHOULD, "values", "Any security byte but 0 in reply 1 announces a cookie.", security_byte, Fault::SecurityByteExact),
    client(2315, "request-2-paced", SHOULD, ATTEMPTS, "A reply 1 brings at most four requests 2 in a second.", paced, Fault::RepeatsRequestTwo),
    client(2316, "request-2-mtu-least", SHOULD, ATTEMPTS, "A reply 1 with the MTU 100 is ignored, or request 2 has 576 at least.", mtu_least, Fault::MtuWithoutFloor),
    client(2317, "small-mtu", MUST, "sizes", "A connection of the MTU 576 opens, and no datagram of it has more than 548 bytes.", small_mtu, Fault::IgnoresMtu),
    client(2318, "cookie-of-the-last-reply", MUST, COOKIES, "Each of three replies 1 has its cookie sent back.", three_cookies, Fault::CookieOfLastRequest),
    client(2319, "request-2-after-reply-1", MUST, "opening-a-connection", "No request 2 leaves before a reply 1 has come.", not_before, Fault::RequestTwoUnasked),
    client(2321, "already-connected-ends", MUST, ATTEMPTS, "12 ends the attempt: a reply 2 behind it is not followed by 09.", refused_12, Fault::IgnoresRefusal(0x12)),
    client(2322, "no-free-places-ends", MUST, ATTEMPTS, "14 ends the attempt.", refused_14, Fault::IgnoresRefusal(0x14)),
    client(2323, "banned-ends", MUST, ATTEMPTS, "17 ends the attempt.", refused_17, Fault::IgnoresRefusal(0x17)),
    client(2324, "recently-connected-ends", MUST, ATTEMPTS, "1A ends the attempt.", refused_1a, Fault::IgnoresRefusal(0x1a)),
    client(2325, "attempt-failed-ends", SHOULD, ATTEMPTS, "11 with the magic ends the attempt.", refused_11, Fault::IgnoresRefusal(0x11)),
    client(2326, "refusal-wrong-magic", MUST, DATAGRAMS, "A 14 with another magic does not end the attempt.", refusal_magic, Fault::IgnoresMagic),
    client(2327, "reply-2-other-port", MUST, DATAGRAMS, "A reply 2 from another port of the server's host is not followed by 09.", other_port, Fault::BelievesStrangers),
    client(2328, "reply-2-truncated", MUST, OFFLINE, "A reply 2 that is cut off is not followed by 09.", truncated, Fault::PadsShortDatagrams),
    client(2329, "reply-2-wrong-magic", MUST, DATAGRAMS, "A reply 2 with another magic is not followed by 09.", wrong_magic, Fault::IgnoresMagic),
    client(2331, "reply-2-twice", MUST, "request-2", "A second reply 2 does not begin a second connection: 09 comes under one message number.", twice, Fault::OpensTwice),
    client(2332, "request-1-ends", MUST, ATTEMPTS, "After reply 2 no request 1 leaves.", request_1_ends, Fault::AsksWhenAnswered),
    client(2333, "encryption-byte-for-nothing", SHOULD, MISMATCHES, "A reply 2 with its encryption byte set and no answer is taken.", encryption, Fault::EncryptionExact),
];

/// Sends a reply 1 and returns the resulting request 2.
fn request_2(attempt: &mut Attempt, reply: &[u8]) -> Check<(Vec<u8>, Request2)> {
    for _ in 0..2 {
        attempt.link.send(reply)?;
        if let Some(bytes) = attempt.link.offline(&[id::REQUEST_2])? {
            return match wire::read_request_2(&bytes) {
                Some(request) => Ok((bytes, request)),
                None => fail("request 2 cannot be read"),
            };
        }
    }
    fail("no request 2 after reply 1")
}

fn plain(context: &mut Context) -> Check<(Attempt, Vec<u8>, Request2)> {
    let mut attempt = context.accept()?;
    let reply = attempt.reply_1(None, attempt.probed());
    let (bytes, request) = request_2(&mut attempt, &reply)?;
    Ok((attempt, bytes, request))
}

fn asked(context: &mut Context) -> Check {
    plain(context).map(|_| ())
}

fn length(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    for cookie in [None, Some(0x0102_0304)] {
        let reply = attempt.reply_1(cookie, attempt.probed());
        let (bytes, request) = request_2(&mut attempt, &reply)?;
        let due = 27 + wire::address_len(request.server) + if request.cookie.is_some() { 5 } else { 0 };
        ensure(bytes.len() == due, || format!("{} bytes, {due} are due", bytes.len()))?;
    }
    Ok(())
}

fn mtu_for(context: &mut Context, mtu: u16) -> Check<(u16, u16)> {
    let mut attempt = context.accept()?;
    let probed = attempt.probed();
    let reply = attempt.reply_1(None, mtu);
    let (_, request) = request_2(&mut attempt, &reply)?;
    Ok((request.mtu, probed))
}

fn mtu(context: &mut Context) -> Check {
    let (mtu, _) = mtu_for(context, 1000)?;
    ensure(mtu == 1000, || format!("it has {mtu}, and reply 1 had 1000"))
}

fn mtu_limit(context: &mut Context) -> Check {
    let (mtu, probed) = mtu_for(context, 4000)?;
    ensure(mtu <= probed, || format!("it has {mtu}, and request 1 probed {probed}"))
}

fn guid(context: &mut Context) -> Check {
    let (_, _, request) = plain(context)?;
    ensure(request.guid != u64::MAX, || "it is".into())
}

fn server(context: &mut Context) -> Check {
    let (attempt, _, request) = plain(context)?;
    let port = attempt.link.local()?.port();
    ensure(request.server.port() == port, || format!("{}, and {port} was dialled", request.server))
}

fn guid_constant(context: &mut Context) -> Check {
    let (mut attempt, _, first) = plain(context)?;
    let reply = attempt.reply_1(None, attempt.probed());
    let (_, second) = request_2(&mut attempt, &reply)?;
    ensure(first.guid == second.guid, || format!("{:#x} and then {:#x}", first.guid, second.guid))
}

/// Fails unless the client returns the cookie.
fn comes_back(attempt: &mut Attempt, cookie: u32, reply: &[u8]) -> Check<Request2> {
    let (_, request) = request_2(attempt, reply)?;
    ensure(request.cookie == Some(cookie), || {
        format!("sent {cookie:08x}, received {:08x?}", request.cookie)
    })?;
    Ok(request)
}

fn cookie_of(context: &mut Context, cookie: u32) -> Check<Request2> {
    let mut attempt = context.accept()?;
    let reply = attempt.reply_1(Some(cookie), attempt.probed());
    comes_back(&mut attempt, cookie, &reply)
}

fn cookie(context: &mut Context) -> Check {
    cookie_of(context, 0x8091_a2b3).map(|_| ())
}

fn cookie_zero(context: &mut Context) -> Check {
    cookie_of(context, 0).map(|_| ())
}

fn challenge(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    let reply = attempt.reply_1(Some(0x1111_2222), attempt.probed());
    attempt.link.send(&reply)?;
    let Some(bytes) = attempt.link.offline(&[id::REQUEST_2])? else {
        return fail("no request 2 after reply 1");
    };
    ensure(bytes.get(21) == Some(&0), || format!("it is {:02x?}", bytes.get(21)))
}

fn again(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    for cookie in [0x0a0b_0c0d, 0x7777_0001] {
        let reply = attempt.reply_1(Some(cookie), attempt.probed());
        comes_back(&mut attempt, cookie, &reply)?;
    }
    Ok(())
}

fn three_cookies(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    for cookie in [3, 0xffff_ffff, 0x0100_0000] {
        let reply = attempt.reply_1(Some(cookie), attempt.probed());
        comes_back(&mut attempt, cookie, &reply)?;
    }
    Ok(())
}

fn padded(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    let mut reply = attempt.reply_1(None, 1100);
    reply.resize(attempt.first.len(), 0);
    let (_, request) = request_2(&mut attempt, &reply)?;
    ensure(request.mtu == 1100, || format!("request 2 has the MTU {}", request.mtu))
}

fn cookie_padded(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    let mut reply = attempt.reply_1(Some(0x0506_0708), attempt.probed());
    reply.resize(attempt.first.len(), 0);
    comes_back(&mut attempt, 0x0506_0708, &reply).map(|_| ())
}

fn security_byte(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    let mut reply = attempt.reply_1(Some(0x0908_0706), attempt.probed());
    reply[25] = 0x80;
    comes_back(&mut attempt, 0x0908_0706, &reply).map(|_| ())
}

fn paced(context: &mut Context) -> Check {
    let (mut attempt, _, _) = plain(context)?;
    let deadline = Instant::now() + Duration::from_secs(1);
    let mut count = 1;
    while let Some(bytes) = attempt.link.receive(deadline)? {
        count += usize::from(wire::offline_id(&bytes) == Some(id::REQUEST_2));
    }
    ensure(count <= 5, || format!("{count} came in a second"))
}

fn mtu_least(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    let reply = attempt.reply_1(None, 100);
    attempt.link.send(&reply)?;
    let mtu = attempt.request_2()?.map(|(_, request)| request.mtu);
    ensure(mtu.is_none_or(|mtu| mtu >= wire::SMALLEST_MTU), || format!("it has {}", mtu.unwrap_or_default()))
}

fn small_mtu(context: &mut Context) -> Check {
    let mut session = context.accept()?.reserve(wire::SMALLEST_MTU)?;
    session.open_as_server()?;
    session.pass(context.timing.quiet)?;
    let longest = session.datagrams.iter().map(|datagram| datagram.2).max().unwrap_or_default();
    ensure(longest <= 548, || format!("a datagram has {longest} bytes"))
}

fn not_before(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    let came = attempt.link.during_quiet()?;
    let asked = came.iter().any(|bytes| wire::offline_id(bytes) == Some(id::REQUEST_2));
    ensure(!asked, || "one came before".into())
}

/// Fails if a datagram of a connection arrives within the quiet time.
fn no_09(attempt: &mut Attempt, after: &str) -> Check {
    let came = attempt.link.during_quiet()?;
    let opened = came.iter().any(|bytes| bytes.first().is_some_and(|first| first & 0x80 != 0));
    ensure(!opened, || format!("{after} was followed by a datagram of a connection"))
}

fn refused(context: &mut Context, kind: u8) -> Check {
    let (mut attempt, _, request) = plain(context)?;
    attempt.link.send(&wire::refusal(kind, attempt.guid))?;
    attempt.link.during_quiet()?;
    let reply = attempt.reply_2(request.mtu);
    attempt.link.send(&reply)?;
    no_09(&mut attempt, &format!("{kind:02x} and then reply 2"))
}

fn refused_12(context: &mut Context) -> Check {
    refused(context, 0x12)
}

fn refused_14(context: &mut Context) -> Check {
    refused(context, 0x14)
}

fn refused_17(context: &mut Context) -> Check {
    refused(context, 0x17)
}

fn refused_1a(context: &mut Context) -> Check {
    refused(context, 0x1a)
}

fn refused_11(context: &mut Context) -> Check {
    refused(context, 0x11)
}

/// Fails unless a connection request (09) follows a correct reply 2.
fn opens(mut attempt: Attempt, mtu: u16, after: &str) -> Check {
    let reply = attempt.reply_2(mtu);
    attempt.link.send(&reply)?;
    let mut session = attempt.session(mtu);
    let answer = session.link.timing.answer;
    let came = session.wait(answer, |session| session.first(id::CONNECTION_REQUEST).is_some())?;
    ensure(came, || format!("no 09 for a reply 2 after {after}"))
}

fn refusal_magic(context: &mut Context) -> Check {
    let (mut attempt, _, request) = plain(context)?;
    let mut refusal = wire::refusal(id::NO_FREE_CONNECTIONS, attempt.guid);
    refusal[4] ^= 1;
    attempt.link.send(&refusal)?;
    opens(attempt, request.mtu, "a 14 with another magic")
}

fn other_port(context: &mut Context) -> Check {
    let (mut attempt, _, request) = plain(context)?;
    let mut other = context.link()?;
    other.send(&attempt.reply_2(request.mtu))?;
    other.silence("a reply 2 from another port")?;
    no_09(&mut attempt, "a reply 2 from another port")?;
    opens(attempt, request.mtu, "one from another port")
}

fn truncated(context: &mut Context) -> Check {
    let (mut attempt, _, request) = plain(context)?;
    let reply = attempt.reply_2(request.mtu);
    // The encryption byte at the end is a single bit in RakNet, and some peers omit it.
    for len in 3..reply.len() - 1 {
        attempt.link.send(&reply[..len])?;
    }
    no_09(&mut attempt, "a truncated reply 2")
}

fn wrong_magic(context: &mut Context) -> Check {
    let (mut attempt, _, request) = plain(context)?;
    for at in 1..17 {
        let mut reply = attempt.reply_2(request.mtu);
        reply[at] ^= 1;
        attempt.link.send(&reply)?;
    }
    no_09(&mut attempt, "a reply 2 with another magic")
}

fn twice(context: &mut Context) -> Check {
    let (mut attempt, _, request) = plain(context)?;
    let reply = attempt.reply_2(request.mtu);
    attempt.link.send(&reply)?;
    attempt.link.send(&reply)?;
    let mut session = attempt.session(request.mtu);
    session.wait_for(id::CONNECTION_REQUEST)?;
    session.quiet()?;
    let mut numbers: Vec<_> =
        session.with_id(id::CONNECTION_REQUEST).map(|request| request.capsule.number).collect();
    numbers.dedup();
    ensure(numbers.len() == 1, || format!("the message numbers are {numbers:?}"))
}

fn request_1_ends(context: &mut Context) -> Check {
    let mut session = context.open()?;
    // A request 1 may have been sent before reply 1 arrived.
    session.quiet()?;
    let deadline = Instant::now() + context.timing.answer;
    while let Some(bytes) = session.link.receive(deadline)? {
        ensure(wire::offline_id(&bytes) != Some(id::REQUEST_1), || "one came".into())?;
    }
    Ok(())
}

fn encryption(context: &mut Context) -> Check {
    let (mut attempt, _, request) = plain(context)?;
    let mut reply = attempt.reply_2(request.mtu);
    if let Some(last) = reply.last_mut() {
        *last = 0x80;
    }
    attempt.link.send(&reply)?;
    let mut session = attempt.session(request.mtu);
    session.wait_for(id::CONNECTION_REQUEST).map(|_| ())
}
