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

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    client(2301, "request-2", MUST, OFFLINE, "The client answers reply 1 (06) with request 2 (07), which contains the magic.", asked, Fault::Mute(id::REQUEST_2)),
    client(2302, "request-2-length", MUST, OFFLINE, "After the magic, request 2 (07) consists of exactly an address, an MTU and a GUID, preceded by the cookie and a byte, if any.", length, Fault::LongRequestTwo),
    client(2303, "request-2-mtu", MUST, ATTEMPTS, "The MTU in request 2 (07) is that of reply 1 (06) if the server offers less than request 1 (05).", mtu, Fault::MtuConstant),
    client(2304, "request-2-mtu-limit", SHOULD, ATTEMPTS, "The MTU in request 2 (07) is not above that of request 1 (05), even if reply 1 (06) offers more.", mtu_limit, Fault::MtuUnlimited),
    client(2305, "request-2-guid", MUST, "values", "The client's GUID is not all ones, because all ones means no peer.", guid, Fault::GuidUnassigned),
    client(2306, "request-2-server", SHOULD, OFFLINE, "The server address in request 2 (07) has the port to which the client connects.", server, Fault::WrongClientAddress),
    client(2307, "request-2-guid-constant", MUST, "values", "The client uses the same GUID in every request 2 (07) of an attempt.", guid_constant, Fault::GuidChanges),
    client(2308, "cookie-echoed", MUST, COOKIES, "The client returns the cookie of reply 1 (06) unchanged in request 2 (07).", cookie, Fault::CookieSwapped),
    client(2309, "cookie-zero", SHOULD, COOKIES, "The client returns a cookie of zeros in request 2 (07).", cookie_zero, Fault::CookieNotZero),
    client(2310, "cookie-no-challenge", MUST, COOKIES, "The byte after the cookie in request 2 (07) is zero if reply 1 (06) has no key.", challenge, Fault::ChallengeFlag),
    client(2311, "reply-1-again", MUST, ATTEMPTS, "The client answers a second reply 1 (06) that has a new cookie with a request 2 (07) that has the new cookie.", again, Fault::AnswersFirstReplyOnly),
    client(2312, "reply-1-padded", MUST, MISMATCHES, "The client accepts a reply 1 (06) that is padded with zeros.", padded, Fault::ReplyLengthExact),
    client(2313, "cookie-padded", MUST, COOKIES, "The client accepts a reply 1 (06) with a cookie and zero padding, and does not read the zeros as a key.", cookie_padded, Fault::ReplyLengthExact),
    client(2314, "security-byte-any", SHOULD, "values", "The client expects a cookie in reply 1 (06) for any security byte except 0.", security_byte, Fault::SecurityByteExact),
    client(2315, "request-2-paced", SHOULD, ATTEMPTS, "In the second after its first request 2 (07), the client sends request 2 at most four more times.", paced, Fault::RepeatsRequestTwo),
    client(2316, "request-2-mtu-least", SHOULD, ATTEMPTS, "The client ignores a reply 1 (06) with the MTU 100, or sends request 2 (07) with an MTU of at least 576.", mtu_least, Fault::MtuWithoutFloor),
    client(2317, "small-mtu", MUST, "sizes", "The client opens a connection with the MTU 576, and sends datagrams of at most 548 bytes in it.", small_mtu, Fault::IgnoresMtu),
    client(2318, "cookie-of-the-last-reply", MUST, COOKIES, "The client returns the cookie of each reply 1 (06), also of a second and a third reply.", three_cookies, Fault::CookieOfLastRequest),
    client(2319, "request-2-after-reply-1", MUST, "opening-a-connection", "The client sends no request 2 (07) before it receives reply 1 (06).", not_before, Fault::RequestTwoUnasked),
    client(2321, "already-connected-ends", MUST, ATTEMPTS, "After already connected (12), the client does not answer reply 2 (08) with a connection request (09).", refused_12, Fault::IgnoresRefusal(0x12)),
    client(2322, "no-free-places-ends", MUST, ATTEMPTS, "After no free incoming connections (14), the client does not answer reply 2 (08) with a connection request (09).", refused_14, Fault::IgnoresRefusal(0x14)),
    client(2323, "banned-ends", MUST, ATTEMPTS, "After connection banned (17), the client does not answer reply 2 (08) with a connection request (09).", refused_17, Fault::IgnoresRefusal(0x17)),
    client(2324, "recently-connected-ends", MUST, ATTEMPTS, "After IP recently connected (1A), the client does not answer reply 2 (08) with a connection request (09).", refused_1a, Fault::IgnoresRefusal(0x1a)),
    client(2325, "attempt-failed-ends", SHOULD, ATTEMPTS, "After connection attempt failed (11) with the magic, the client does not answer reply 2 (08) with a connection request (09).", refused_11, Fault::IgnoresRefusal(0x11)),
    client(2326, "refusal-wrong-magic", MUST, DATAGRAMS, "No free incoming connections (14) with a wrong magic does not end the client's attempt.", refusal_magic, Fault::IgnoresMagic),
    client(2327, "reply-2-other-port", MUST, DATAGRAMS, "The client does not answer a reply 2 (08) from another port of the server's host with a connection request (09).", other_port, Fault::BelievesStrangers),
    client(2328, "reply-2-truncated", MUST, OFFLINE, "The client does not answer a truncated reply 2 (08) with a connection request (09).", truncated, Fault::PadsShortDatagrams),
    client(2329, "reply-2-wrong-magic", MUST, DATAGRAMS, "The client does not answer a reply 2 (08) with a wrong magic with a connection request (09).", wrong_magic, Fault::IgnoresMagic),
    client(2331, "reply-2-twice", MUST, "request-2", "The client opens one connection if reply 2 (08) arrives twice: its connection requests (09) have one reliable message number.", twice, Fault::OpensTwice),
    client(2332, "request-1-ends", MUST, ATTEMPTS, "The client sends no request 1 (05) in an open connection.", request_1_ends, Fault::AsksWhenAnswered),
    client(2333, "encryption-byte-for-nothing", SHOULD, MISMATCHES, "The client accepts a reply 2 (08) in which the encryption byte is set and no encrypted answer follows.", encryption, Fault::EncryptionExact),
];

/// Sends a reply 1 and returns the resulting request 2.
fn request_2(attempt: &mut Attempt, reply: &[u8]) -> Check<(Vec<u8>, Request2)> {
    for _ in 0..2 {
        attempt.link.send(reply)?;
        if let Some(bytes) = attempt.link.offline(&[id::REQUEST_2])? {
            return match wire::read_request_2(&bytes) {
                Some(request) => Ok((bytes, request)),
                None => fail("the suite cannot parse request 2 (07)"),
            };
        }
    }
    fail("the client did not answer reply 1 (06) with request 2 (07)")
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
        ensure(bytes.len() == due, || format!("request 2 (07) has {} bytes, not {due}", bytes.len()))?;
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
    ensure(mtu == 1000, || format!("the MTU is {mtu} in request 2 (07) and 1000 in reply 1 (06)"))
}

fn mtu_limit(context: &mut Context) -> Check {
    let (mtu, probed) = mtu_for(context, 4000)?;
    ensure(mtu <= probed, || format!("the MTU is {mtu} in request 2 (07) and {probed} in request 1 (05)"))
}

fn guid(context: &mut Context) -> Check {
    let (_, _, request) = plain(context)?;
    ensure(request.guid != u64::MAX, || "the client's GUID is all ones".into())
}

fn server(context: &mut Context) -> Check {
    let (attempt, _, request) = plain(context)?;
    let port = attempt.link.local()?.port();
    ensure(request.server.port() == port, || {
        format!("the server address in request 2 (07) is {}, but the server's port is {port}", request.server)
    })
}

fn guid_constant(context: &mut Context) -> Check {
    let (mut attempt, _, first) = plain(context)?;
    let reply = attempt.reply_1(None, attempt.probed());
    let (_, second) = request_2(&mut attempt, &reply)?;
    ensure(first.guid == second.guid, || {
        format!("the client's GUID changed from {:#x} to {:#x}", first.guid, second.guid)
    })
}

/// Fails unless the client returns the cookie.
fn comes_back(attempt: &mut Attempt, cookie: u32, reply: &[u8]) -> Check<Request2> {
    let (_, request) = request_2(attempt, reply)?;
    ensure(request.cookie == Some(cookie), || {
        format!("the suite sent the cookie {cookie:08x} and received {:08x?}", request.cookie)
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
        return fail("the client did not answer reply 1 (06) with request 2 (07)");
    };
    ensure(bytes.get(21) == Some(&0), || format!("the byte after the cookie is {:02x?}", bytes.get(21)))
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
    ensure(request.mtu == 1100, || format!("the MTU in request 2 (07) is {}, not 1100", request.mtu))
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
    ensure(count <= 5, || format!("the client sent request 2 (07) {count} times in about a second"))
}

fn mtu_least(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    let reply = attempt.reply_1(None, 100);
    attempt.link.send(&reply)?;
    let mtu = attempt.request_2()?.map(|(_, request)| request.mtu);
    ensure(mtu.is_none_or(|mtu| mtu >= wire::SMALLEST_MTU), || {
        format!("the MTU in request 2 (07) is {}", mtu.unwrap_or_default())
    })
}

fn small_mtu(context: &mut Context) -> Check {
    let mut session = context.accept()?.reserve(wire::SMALLEST_MTU)?;
    session.open_as_server()?;
    session.pass(context.timing.quiet)?;
    let longest = session.datagrams.iter().map(|datagram| datagram.2).max().unwrap_or_default();
    ensure(longest <= 548, || format!("the client's longest datagram has {longest} bytes"))
}

fn not_before(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    let came = attempt.link.during_quiet()?;
    let asked = came.iter().any(|bytes| wire::offline_id(bytes) == Some(id::REQUEST_2));
    ensure(!asked, || "the client sent request 2 (07) before reply 1 (06)".into())
}

/// Fails if a datagram of a connection arrives within the quiet time.
fn no_09(attempt: &mut Attempt, after: &str) -> Check {
    let came = attempt.link.during_quiet()?;
    let opened = came.iter().any(|bytes| bytes.first().is_some_and(|first| first & 0x80 != 0));
    ensure(!opened, || format!("the client sent a connected datagram after {after}"))
}

fn refused(context: &mut Context, kind: u8) -> Check {
    let (mut attempt, _, request) = plain(context)?;
    attempt.link.send(&wire::refusal(kind, attempt.guid))?;
    attempt.link.during_quiet()?;
    let reply = attempt.reply_2(request.mtu);
    attempt.link.send(&reply)?;
    no_09(&mut attempt, &format!("the refusal with message id {kind:02x} and a reply 2 (08)"))
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
    ensure(came, || {
        format!("the client did not answer reply 2 (08) with a connection request (09) after {after}")
    })
}

fn refusal_magic(context: &mut Context) -> Check {
    let (mut attempt, _, request) = plain(context)?;
    let mut refusal = wire::refusal(id::NO_FREE_CONNECTIONS, attempt.guid);
    refusal[4] ^= 1;
    attempt.link.send(&refusal)?;
    opens(attempt, request.mtu, "no free incoming connections (14) with a wrong magic")
}

fn other_port(context: &mut Context) -> Check {
    let (mut attempt, _, request) = plain(context)?;
    let mut other = context.link()?;
    other.send(&attempt.reply_2(request.mtu))?;
    other.silence("a reply 2 (08) from another port")?;
    no_09(&mut attempt, "a reply 2 (08) from another port")?;
    opens(attempt, request.mtu, "a reply 2 (08) from another port")
}

fn truncated(context: &mut Context) -> Check {
    let (mut attempt, _, request) = plain(context)?;
    let reply = attempt.reply_2(request.mtu);
    // The encryption byte at the end is a single bit in RakNet, and some peers omit it.
    for len in 3..reply.len() - 1 {
        attempt.link.send(&reply[..len])?;
    }
    no_09(&mut attempt, "a truncated reply 2 (08)")
}

fn wrong_magic(context: &mut Context) -> Check {
    let (mut attempt, _, request) = plain(context)?;
    for at in 1..17 {
        let mut reply = attempt.reply_2(request.mtu);
        reply[at] ^= 1;
        attempt.link.send(&reply)?;
    }
    no_09(&mut attempt, "a reply 2 (08) with a wrong magic")
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
    ensure(numbers.len() == 1, || {
        format!("the reliable message numbers of the connection requests (09) are {numbers:?}")
    })
}

fn request_1_ends(context: &mut Context) -> Check {
    let mut session = context.open()?;
    // A request 1 may have been sent before reply 1 arrived.
    session.quiet()?;
    let deadline = Instant::now() + context.timing.answer;
    while let Some(bytes) = session.link.receive(deadline)? {
        ensure(wire::offline_id(&bytes) != Some(id::REQUEST_1), || {
            "the client sent request 1 (05) in an open connection".into()
        })?;
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
