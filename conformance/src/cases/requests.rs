//! Group 2: request 1, its MTU and protocol versions. Group 3: request 2, and cookies (from case 351).

use crate::case::{Case, Context, Needs};
use crate::case::{MUST, SHOULD};
use crate::check::{Check, ensure, fail, skip};
use crate::link::Link;
use crate::model::Fault;
use crate::session::{self, answer_to_request_2, answer_to_request_2_for, new_guid, reply_1};
use crate::wire::{self, Reply1, Reply2, id};

const OFFLINE: &str = "offline-messages";
const OPENING: &str = "opening-a-connection";
const VERSION: &str = "the-version-of-the-server";
const MTU: &str = "connection-attempts";
const REQUEST_2: &str = "request-2";
const COOKIES: &str = "cookies";

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    Case::new(201, "reply-1", MUST, OPENING, "The server answers request 1 (05) with reply 1 (06), which contains the magic and a GUID.", reply, Fault::Mute(id::REPLY_1)),
    Case::new(202, "reply-1-length", MUST, OFFLINE, "Reply 1 (06) has 28 bytes, 32 with a cookie, or 96 with a cookie and a key; only zeros may follow.", reply_length, Fault::ReplyOneTail),
    Case::new(203, "reply-1-mtu-1492", SHOULD, VERSION, "The server answers a request 1 (05) of 1,464 bytes with the MTU 1492.", mtu_1492, Fault::MtuCap(1400)),
    Case::new(204, "reply-1-mtu-1200", MUST, VERSION, "The server answers a request 1 (05) of 1,172 bytes with the MTU 1200.", mtu_1200, Fault::MtuConstant),
    Case::new(205, "reply-1-mtu-576", MUST, VERSION, "The server answers a request 1 (05) of 548 bytes with the MTU 576.", mtu_576, Fault::MtuConstant),
    Case::new(206, "reply-1-mtu-odd", MUST, VERSION, "The MTU in reply 1 (06) is the length of request 1 (05) plus 28 bytes, also for an odd length.", mtu_odd, Fault::MtuRounded),
    Case::new(207, "reply-1-mtu-limit", MUST, MTU, "The MTU in reply 1 (06) is at most 1492, also for a request 1 (05) of 2,000 bytes.", mtu_limit, Fault::MtuUnlimited),
    Case::new(208, "reply-1-mtu-least", SHOULD, MTU, "The server ignores a request 1 (05) of 100 bytes, or answers it with an MTU of at least 576.", mtu_least, Fault::MtuWithoutFloor),
    Case::new(209, "request-1-repeated", MUST, MTU, "The server answers each repetition of request 1 (05).", repeated, Fault::AnswersRequestOneOnce),
    Case::new(210, "request-1-stateless", MUST, OPENING, "The server answers a request 1 (05) of another length from the same address with the MTU for the new length.", stateless, Fault::RemembersMtu),
    Case::new(211, "security-byte", SHOULD, "values", "The security byte in reply 1 (06) is 0 or 1.", security_byte, Fault::SecurityByteOdd),
    Case::new(212, "version-refused", MUST, VERSION, "The server answers a request 1 (05) with an unsupported protocol version with incompatible protocol version (19).", version_refused, Fault::AcceptsAnyVersion),
    Case::new(213, "version-refused-length", MUST, OFFLINE, "Incompatible protocol version (19) has 26 bytes, with the magic at offset 2.", refused_length, Fault::LongIncompatible),
    Case::new(214, "version-refused-guid", MUST, OFFLINE, "Incompatible protocol version (19) contains the server's GUID, as in reply 1 (06).", refused_guid, Fault::Flip(id::INCOMPATIBLE, 24)),
    Case::new(215, "version-zero", MUST, VERSION, "The server answers a request 1 (05) with the protocol version 0 with incompatible protocol version (19).", version_zero, Fault::AcceptsVersionZero),
    Case::new(216, "version-named", MUST, VERSION, "The version in incompatible protocol version (19) differs from the refused version.", version_named, Fault::NamesRefusedVersion),
    Case::new(217, "version-named-works", MUST, VERSION, "The server accepts the version that it names in incompatible protocol version (19).", named_works, Fault::NamesWrongVersion),
    Case::new(218, "version-refused-alone", MUST, VERSION, "The server sends nothing else, such as reply 1 (06), besides incompatible protocol version (19).", refused_alone, Fault::RefusesAndReplies),
    Case::new(219, "request-1-wrong-magic", MUST, "datagrams", "The server ignores a request 1 (05) with a wrong magic.", wrong_magic, Fault::IgnoresMagic),
    Case::new(220, "request-1-truncated", MUST, OFFLINE, "The server ignores a request 1 (05) that is truncated before its protocol version.", truncated_1, Fault::PadsShortDatagrams),
    Case::new(221, "reply-1-once", MUST, OPENING, "The server sends exactly one reply 1 (06) for each request 1 (05).", reply_once, Fault::Twice(id::REPLY_1)),
    Case::new(301, "reply-2", MUST, OPENING, "The server answers request 2 (07) with reply 2 (08), which contains the magic.", two, Fault::Mute(id::REPLY_2)),
    Case::new(302, "reply-2-length", MUST, OFFLINE, "Reply 2 (08) without an encrypted answer has 35 bytes with an IPv4 address, and 57 bytes with an IPv6 address.", two_length, Fault::LongReplyTwo),
    Case::new(303, "reply-2-guid", MUST, OFFLINE, "Reply 2 (08) has the same GUID as reply 1 (06).", two_guid, Fault::Flip(id::REPLY_2, 20)),
    Case::new(304, "reply-2-address", SHOULD, OFFLINE, "Reply 2 (08) contains the client's port and, over loopback, the client's IP address.", two_address, Fault::WrongClientAddress),
    Case::new(305, "reply-2-mtu", MUST, MTU, "The MTU in reply 2 (08) equals the MTU in request 2 (07).", two_mtu, Fault::ReplyTwoMtuConstant),
    Case::new(306, "reply-2-mtu-limit", MUST, MTU, "The MTU in reply 2 (08) is at most 1492, also if request 2 (07) asks for 65535.", two_limit, Fault::MtuUnlimited),
    Case::new(307, "reply-2-mtu-least", SHOULD, MTU, "The server ignores or refuses a request 2 (07) with the MTU 100, or answers it with an MTU of at least 576.", two_least, Fault::MtuWithoutFloor),
    Case::new(308, "reply-2-encryption", SHOULD, OFFLINE, "The encryption byte in reply 2 (08) is 0 if the server does not use its secure mode.", two_encryption, Fault::EncryptionByte),
    Case::new(309, "request-2-again", MUST, REQUEST_2, "The server answers a repeated request 2 (07) with an identical reply 2 (08) if the client has sent no connected datagram in between.", again, Fault::RefusesSecondRequestTwo),
    Case::new(310, "request-2-other-guid", MUST, REQUEST_2, "The server answers a request 2 (07) from a known address with a new GUID with already connected (12).", other_guid, Fault::IgnoresKnownAddress),
    Case::new(311, "already-connected-length", MUST, OFFLINE, "Already connected (12) has 25 bytes, with the magic at offset 1.", refusal_length, Fault::LongAlreadyConnected),
    Case::new(312, "already-connected-guid", MUST, "where-the-documents-disagree", "Already connected (12) contains the server's GUID.", refusal_guid, Fault::RefusalWithClientGuid),
    Case::new(313, "request-2-known-guid", MUST, REQUEST_2, "The server answers a request 2 (07) with the GUID of an open connection from a new address with already connected (12).", known_guid, Fault::IgnoresKnownGuid),
    Case::new(314, "request-2-connected", MUST, REQUEST_2, "The server answers a request 2 (07) from the address and GUID of an open connection with already connected (12).", connected, Fault::ReplyTwoWhenConnected),
    Case::new(315, "request-2-wrong-magic", MUST, "datagrams", "The server ignores a request 2 (07) with a wrong magic.", wrong_magic_2, Fault::IgnoresMagic),
    Case::new(316, "request-2-truncated", MUST, OFFLINE, "The server does not answer a truncated request 2 (07) with reply 2 (08).", truncated_2, Fault::PadsShortDatagrams),
    Case::new(317, "request-2-hidden-address", SHOULD, "request-2", "The server accepts a request 2 (07) that contains a server address unknown to the server.", hidden_address, Fault::ChecksServerAddress),
    Case::new(318, "request-2-alone", SHOULD, OPENING, "The server stores no state for request 1 (05): it answers a lone request 2 (07) with reply 2 (08), or with reply 1 (06).", alone, Fault::NeedsRequestOne),
    Case::new(319, "two-clients", MUST, REQUEST_2, "The server sends reply 2 (08) to each of two clients with different addresses and GUIDs.", two_clients, Fault::OneClientOnly),
    Case::new(331, "full", MUST, REQUEST_2, "A full server answers request 2 (07) with no free incoming connections (14).", full, Fault::NeverFull).needs(Needs::Capacity),
    Case::new(332, "full-length", MUST, OFFLINE, "No free incoming connections (14) has 25 bytes, with the magic and the server's GUID.", full_length, Fault::LongNoFree).needs(Needs::Capacity),
    Case::new(333, "full-ping", MUST, PINGS, "A full server answers an unconnected ping (01).", full_ping, Fault::FullIgnoresPing).needs(Needs::Capacity),
    Case::new(334, "full-ping-open", MUST, PINGS, "A full server does not answer an unconnected ping for open connections (02).", full_ping_open, Fault::FullAnswersPingOpen).needs(Needs::Capacity),
    Case::new(335, "full-place-free", MUST, "timeouts", "A disconnection notification (15) frees the client's slot for another client.", place_free, Fault::PlaceNeverFree).needs(Needs::Capacity),
    Case::new(351, "cookie-missing", MUST, COOKIES, "A server that requires cookies does not answer a request 2 (07) without a cookie with reply 2 (08).", cookie_missing, Fault::CookieOptional).needs(Needs::Cookies),
    Case::new(352, "cookie-wrong", MUST, COOKIES, "The server does not answer a request 2 (07) with a wrong cookie with reply 2 (08).", cookie_wrong, Fault::CookieUnchecked).needs(Needs::Cookies),
    Case::new(353, "cookie-of-another", MUST, COOKIES, "The server does not answer a request 2 (07) that has the cookie of another address with reply 2 (08).", cookie_of_another, Fault::CookieForAll).needs(Needs::Cookies),
    Case::new(354, "cookie-right", MUST, COOKIES, "The server answers a request 2 (07) that has the cookie from reply 1 (06) with reply 2 (08).", cookie_right, Fault::CookieRefused).needs(Needs::Cookies),
    Case::new(355, "cookie-differs", MUST, COOKIES, "The server sends different cookies to different addresses.", cookie_differs, Fault::CookieForAll).needs(Needs::Cookies),
    Case::new(356, "cookie-again", MUST, COOKIES, "A cookie stays valid after the server has sent another reply 1 (06) to the same address.", cookie_again, Fault::CookieOfLastRequest).needs(Needs::Cookies),
    Case::new(357, "cookie-stateless", MUST, COOKIES, "A request 2 (07) with a wrong cookie does not invalidate the correct cookie.", cookie_after_wrong, Fault::CookieSpoiled).needs(Needs::Cookies),
];

const PINGS: &str = "unconnected-pings";

fn first(context: &mut Context, len: usize) -> Check<(Link, Vec<u8>, Reply1)> {
    let mut link = context.link()?;
    let (bytes, reply) = reply_1(&mut link, context.options.version, len)?;
    Ok((link, bytes, reply))
}

fn reply(context: &mut Context) -> Check {
    first(context, 1464).map(|_| ())
}

fn reply_length(context: &mut Context) -> Check {
    let (_, bytes, reply) = first(context, 1464)?;
    let least = match (reply.security, reply.key) {
        (0, _) => 28,
        (_, false) => 32,
        (_, true) => 96,
    };
    let padded = bytes.len() >= least && bytes[least..].iter().all(|&byte| byte == 0);
    ensure(padded, || {
        format!(
            "reply 1 (06) has {} bytes instead of {least}, or bytes other than zeros after them",
            bytes.len()
        )
    })
}

fn has_mtu(context: &mut Context, len: usize, mtu: u16) -> Check {
    let (_, _, reply) = first(context, len)?;
    ensure(reply.mtu == mtu, || format!("the MTU in reply 1 (06) is {}, not {mtu}", reply.mtu))
}

fn mtu_1492(context: &mut Context) -> Check {
    has_mtu(context, 1464, 1492)
}

fn mtu_1200(context: &mut Context) -> Check {
    has_mtu(context, 1172, 1200)
}

fn mtu_576(context: &mut Context) -> Check {
    has_mtu(context, 548, 576)
}

fn mtu_odd(context: &mut Context) -> Check {
    has_mtu(context, 1001, 1029)
}

fn mtu_limit(context: &mut Context) -> Check {
    let mut link = context.link()?;
    let request = wire::request_1(context.options.version, 2000);
    match link.ask(&request, &[id::REPLY_1])?.map(|bytes| wire::read_reply_1(&bytes)) {
        Some(Some(reply)) => {
            ensure(reply.mtu <= 1492, || format!("the MTU in reply 1 (06) is {}", reply.mtu))
        }
        Some(None) => fail("the suite cannot parse reply 1 (06)"),
        None => skip("the server does not answer a request 1 (05) of 2,000 bytes"),
    }
}

fn mtu_least(context: &mut Context) -> Check {
    let mut link = context.link()?;
    let request = wire::request_1(context.options.version, 100);
    let reply = link.ask(&request, &[id::REPLY_1])?.and_then(|bytes| wire::read_reply_1(&bytes));
    ensure(reply.is_none_or(|reply| reply.mtu >= 576), || {
        format!("the MTU in reply 1 (06) is {}", reply.map_or(0, |reply| reply.mtu))
    })
}

fn repeated(context: &mut Context) -> Check {
    let mut link = context.link()?;
    for count in 1..=4 {
        link.send(&wire::request_1(context.options.version, 1464))?;
        ensure(link.offline(&[id::REPLY_1])?.is_some(), || {
            format!("the server did not answer request 1 (05) number {count}")
        })?;
    }
    Ok(())
}

fn stateless(context: &mut Context) -> Check {
    let mut link = context.link()?;
    for mtu in [1200, 576, 1100] {
        let (_, reply) = reply_1(&mut link, context.options.version, usize::from(mtu) - 28)?;
        ensure(reply.mtu == mtu, || format!("the MTU in reply 1 (06) is {}, not {mtu}", reply.mtu))?;
    }
    Ok(())
}

fn security_byte(context: &mut Context) -> Check {
    let (_, _, reply) = first(context, 1464)?;
    ensure(reply.security <= 1, || format!("the security byte in reply 1 (06) is {:02x}", reply.security))
}

fn refused(context: &mut Context, version: u8) -> Check<(Link, Vec<u8>)> {
    let mut link = context.link()?;
    match link.ask(&wire::request_1(version, 1464), &[id::INCOMPATIBLE, id::REPLY_1])? {
        Some(bytes) if bytes[0] == id::INCOMPATIBLE => Ok((link, bytes)),
        Some(_) => fail(format!("the server accepted the protocol version {version}")),
        None => {
            fail(format!("the server did not answer a request 1 (05) with the protocol version {version}"))
        }
    }
}

fn version_refused(context: &mut Context) -> Check {
    refused(context, 0xfe).map(|_| ())
}

fn refused_length(context: &mut Context) -> Check {
    let (_, bytes) = refused(context, 0xfe)?;
    ensure(bytes.len() == 26, || format!("incompatible protocol version (19) has {} bytes", bytes.len()))?;
    ensure(bytes[2..18] == wire::MAGIC, || {
        "bytes 2 to 17 of incompatible protocol version (19) are not the magic".into()
    })
}

fn refused_guid(context: &mut Context) -> Check {
    let (_, bytes) = refused(context, 0xfe)?;
    let (_, _, reply) = first(context, 1464)?;
    ensure(bytes.get(18..26) == Some(&reply.guid.to_be_bytes()[..]), || {
        "the GUID differs from the GUID in reply 1 (06)".into()
    })
}

fn version_zero(context: &mut Context) -> Check {
    refused(context, 0).map(|_| ())
}

fn version_named(context: &mut Context) -> Check {
    let (_, bytes) = refused(context, 0xfe)?;
    ensure(bytes.get(1) != Some(&0xfe), || {
        "incompatible protocol version (19) contains the refused version FE".into()
    })
}

fn named_works(context: &mut Context) -> Check {
    let (mut link, bytes) = refused(context, 0xfe)?;
    let named = bytes.get(1).copied().unwrap_or_default();
    let reply = link.ask(&wire::request_1(named, 1464), &[id::REPLY_1])?;
    ensure(reply.is_some(), || format!("the server did not accept the version {named}, which it named"))
}

fn refused_alone(context: &mut Context) -> Check {
    let (mut link, _) = refused(context, 0xfe)?;
    link.silence("a request 1 (05) with an unsupported version a second time")
}

fn wrong_magic(context: &mut Context) -> Check {
    let mut link = context.link()?;
    for at in 1..17 {
        let mut request = wire::request_1(context.options.version, 1464);
        request[at] ^= 1;
        link.send(&request)?;
    }
    link.silence("a request 1 (05) with a wrong magic")?;
    link.still_answers("copies of request 1 (05) with a wrong magic")
}

fn truncated_1(context: &mut Context) -> Check {
    let mut link = context.link()?;
    let request = wire::request_1(context.options.version, 18);
    for len in 1..18 {
        link.send(&request[..len])?;
    }
    link.silence("a request 1 (05) without a protocol version")?;
    link.still_answers("truncated copies of request 1 (05)")
}

fn reply_once(context: &mut Context) -> Check {
    let mut link = context.link()?;
    link.send(&wire::request_1(context.options.version, 1464))?;
    if link.offline(&[id::REPLY_1])?.is_none() {
        return fail("the server did not send reply 1 (06)");
    }
    link.silence("one request 1 (05) a second time")
}

/// Sends a request 2 with this MTU after a request 1 with the largest MTU.
fn second(context: &mut Context, mtu: u16) -> Check<(Link, Vec<u8>)> {
    let (mut link, _, mut reply) = first(context, 1464)?;
    // A client must not request more than the server offered.
    let mtu = mtu.min(reply.mtu);
    let bytes = answer_to_request_2(&mut link, &mut reply, mtu, new_guid())?;
    Ok((link, bytes))
}

fn second_read(context: &mut Context, mtu: u16) -> Check<(Link, Vec<u8>, Reply2)> {
    let (link, bytes) = second(context, mtu)?;
    match wire::read_reply_2(&bytes) {
        Some(reply) => Ok((link, bytes, reply)),
        None => fail(format!(
            "the server answered request 2 (07) with message id {:02x}, or with an invalid reply 2 (08)",
            bytes[0]
        )),
    }
}

fn two(context: &mut Context) -> Check {
    second_read(context, 1492).map(|_| ())
}

fn two_length(context: &mut Context) -> Check {
    let (link, bytes, _) = second_read(context, 1492)?;
    let due = 28 + wire::address_len(link.target);
    ensure(bytes.len() == due, || format!("reply 2 (08) has {} bytes, not {due}", bytes.len()))
}

fn two_guid(context: &mut Context) -> Check {
    let session = context.dial()?;
    let (one, two) = (session.reply_1.guid, session.reply_2.guid);
    ensure(one == two, || format!("the GUID is {one:#x} in reply 1 (06) and {two:#x} in reply 2 (08)"))
}

fn two_address(context: &mut Context) -> Check {
    let session = context.dial()?;
    let (port, said) = (session.link.local()?.port(), session.reply_2.client);
    ensure(said.port() == port, || {
        format!("the address in reply 2 (08) is {said}, but the client's port is {port}")
    })?;
    let local = !context.target.ip().is_loopback() || said.ip() == context.target.ip();
    ensure(local, || {
        format!(
            "the address in reply 2 (08) is {said}, but the client's IP address is {}",
            context.target.ip()
        )
    })
}

fn two_mtu(context: &mut Context) -> Check {
    for mtu in [1492, 1200, 576] {
        let session = context.dial_with(mtu, new_guid())?;
        let (offered, agreed) = (session.reply_1.mtu, session.reply_2.mtu);
        ensure(agreed == offered, || {
            format!("the MTU is {offered} in request 2 (07) and {agreed} in reply 2 (08)")
        })?;
    }
    Ok(())
}

fn two_limit(context: &mut Context) -> Check {
    let (mut link, _, reply) = first(context, 1464)?;
    let request = session::request_2(&link, reply, 0xffff, new_guid());
    // A server may also refuse, or not answer; then there is no MTU to check.
    let reply = link.ask(&request, &[id::REPLY_2])?.and_then(|bytes| wire::read_reply_2(&bytes));
    ensure(reply.is_none_or(|reply| reply.mtu <= 1492), || {
        format!("the MTU in reply 2 (08) is {}", reply.map_or(0, |reply| reply.mtu))
    })
}

fn two_least(context: &mut Context) -> Check {
    let (mut link, _, reply) = first(context, 1464)?;
    let request = session::request_2(&link, reply, 100, new_guid());
    let answer = link.ask(&request, &[id::REPLY_2])?.and_then(|bytes| wire::read_reply_2(&bytes));
    ensure(answer.is_none_or(|reply| reply.mtu >= 576), || {
        format!("the MTU in reply 2 (08) is {}", answer.map_or(0, |reply| reply.mtu))
    })
}

fn two_encryption(context: &mut Context) -> Check {
    let session = context.dial()?;
    let byte = session.reply_2.encryption;
    ensure(byte == 0, || format!("the encryption byte in reply 2 (08) is {byte:02x}"))
}

fn again(context: &mut Context) -> Check {
    let (mut link, _, mut reply) = first(context, 1464)?;
    let mtu = reply.mtu;
    let guid = new_guid();
    let one = answer_to_request_2(&mut link, &mut reply, mtu, guid)?;
    let two = answer_to_request_2(&mut link, &mut reply, mtu, guid)?;
    ensure(one[0] == id::REPLY_2, || {
        format!("the server answered the first request 2 (07) with message id {:02x}", one[0])
    })?;
    ensure(one == two, || {
        format!(
            "the server answered the second request 2 (07) with message id {:02x}, or with a different reply 2 (08)",
            two[0]
        )
    })
}

fn refused_for_guid(context: &mut Context) -> Check<(Reply1, Vec<u8>, u64)> {
    let (mut link, _, mut reply) = first(context, 1464)?;
    let mtu = reply.mtu;
    let one = answer_to_request_2(&mut link, &mut reply, mtu, new_guid())?;
    ensure(one[0] == id::REPLY_2, || {
        format!("the server answered the first request 2 (07) with message id {:02x}", one[0])
    })?;
    let guid = new_guid();
    let two = answer_to_request_2(&mut link, &mut reply, mtu, guid)?;
    ensure(two[0] == id::ALREADY_CONNECTED, || {
        format!("the server answered the request 2 (07) that has a new GUID with message id {:02x}", two[0])
    })?;
    Ok((reply, two, guid))
}

fn other_guid(context: &mut Context) -> Check {
    refused_for_guid(context).map(|_| ())
}

fn refusal_length(context: &mut Context) -> Check {
    let (_, bytes, _) = refused_for_guid(context)?;
    ensure(bytes.len() == 25, || format!("already connected (12) has {} bytes", bytes.len()))?;
    ensure(bytes[1..17] == wire::MAGIC, || "bytes 1 to 16 of already connected (12) are not the magic".into())
}

fn refusal_guid(context: &mut Context) -> Check {
    let (reply, bytes, guid) = refused_for_guid(context)?;
    let said = bytes.get(17..25);
    ensure(said != Some(&guid.to_be_bytes()[..]), || {
        "already connected (12) contains the client's GUID".into()
    })?;
    ensure(said == Some(&reply.guid.to_be_bytes()[..]), || {
        "already connected (12) does not contain the server's GUID".into()
    })
}

fn known_guid(context: &mut Context) -> Check {
    let session = context.open()?;
    let (mut link, _, mut reply) = first(context, 1464)?;
    let mtu = reply.mtu;
    let bytes = answer_to_request_2(&mut link, &mut reply, mtu, session.guid)?;
    ensure(bytes[0] == id::ALREADY_CONNECTED, || {
        format!("the server answered request 2 (07) with message id {:02x}", bytes[0])
    })
}

fn connected(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    // Some servers do not answer a request 1 from a connected address. Then try the cookie of the first reply.
    let found = reply_1(&mut session.link, context.options.version, 1464);
    let mut reply = found.map_or(session.reply_1, |found| found.1);
    let mtu = reply.mtu;
    let bytes = answer_to_request_2(&mut session.link, &mut reply, mtu, session.guid)?;
    ensure(bytes[0] == id::ALREADY_CONNECTED, || {
        format!("the server answered request 2 (07) with message id {:02x}", bytes[0])
    })
}

fn wrong_magic_2(context: &mut Context) -> Check {
    let (mut link, _, reply) = first(context, 1464)?;
    for at in 1..17 {
        let mut request = session::request_2(&link, reply, 1492, new_guid());
        request[at] ^= 1;
        link.send(&request)?;
    }
    link.silence("a request 2 (07) with a wrong magic")
}

fn truncated_2(context: &mut Context) -> Check {
    let (mut link, _, reply) = first(context, 1464)?;
    let request = session::request_2(&link, reply, 1492, new_guid());
    for len in 1..request.len() {
        link.send(&request[..len])?;
    }
    let replied = link.during_quiet()?.iter().any(|bytes| bytes[..1] == [id::REPLY_2]);
    ensure(!replied, || "the server answered a truncated request 2 (07) with reply 2 (08)".into())?;
    link.still_answers("truncated copies of request 2 (07)")
}

fn hidden_address(context: &mut Context) -> Check {
    let (mut link, _, mut reply) = first(context, 1464)?;
    let other = "192.0.2.77:7".parse().unwrap_or(link.target);
    let mtu = reply.mtu;
    let answer = answer_to_request_2_for(&mut link, &mut reply, other, mtu, new_guid())?;
    ensure(answer[0] == id::REPLY_2, || {
        format!("the server answered request 2 (07) with message id {:02x}", answer[0])
    })
}

fn alone(context: &mut Context) -> Check {
    let mut link = context.link()?;
    let request = wire::request_2(None, link.target, 1492, new_guid());
    let answer = link.ask(&request, &[id::REPLY_1, id::REPLY_2])?;
    if answer.is_none() && first(context, 1464)?.2.cookie.is_some() {
        return skip("the server requires cookies");
    }
    ensure(answer.is_some(), || "the server sent neither reply 2 (08) nor reply 1 (06)".into())
}

fn two_clients(context: &mut Context) -> Check {
    let one = context.dial()?;
    let two = context.dial()?;
    ensure(one.reply_2.guid == two.reply_2.guid, || {
        "the two copies of reply 2 (08) have different GUIDs of the server".into()
    })
}

/// Occupies all slots of the server, and sends another request 2. Returns the connections in the slots, and the socket,
/// reply 1 and answer of the additional request.
fn filled(context: &mut Context) -> Check<(Vec<session::Session>, Link, Reply1, Vec<u8>)> {
    let mut taken = Vec::new();
    for _ in 0..context.options.capacity.unwrap_or_default() {
        taken.push(context.open()?);
    }
    let (mut link, _, mut reply) = first(context, 1464)?;
    let mtu = reply.mtu;
    let bytes = answer_to_request_2(&mut link, &mut reply, mtu, new_guid())?;
    Ok((taken, link, reply, bytes))
}

/// Closes all connections of a case, to free their slots for the next case.
fn leave(taken: Vec<session::Session>) -> Check {
    for mut session in taken {
        session.send_reliable(vec![id::DISCONNECTION])?;
        session.quiet()?;
    }
    Ok(())
}

fn full(context: &mut Context) -> Check {
    let (taken, _, _, bytes) = filled(context)?;
    leave(taken)?;
    ensure(bytes[0] == id::NO_FREE_CONNECTIONS, || {
        format!("the full server answered request 2 (07) with message id {:02x}", bytes[0])
    })
}

fn full_length(context: &mut Context) -> Check {
    let (taken, _, reply, bytes) = filled(context)?;
    leave(taken)?;
    ensure(bytes == wire::refusal(id::NO_FREE_CONNECTIONS, reply.guid), || {
        format!("the answer of the full server has {} bytes, or a different id, magic or GUID", bytes.len())
    })
}

fn full_ping(context: &mut Context) -> Check {
    let (taken, mut link, _, _) = filled(context)?;
    let answered = link.still_answers("the last slot was taken");
    leave(taken)?;
    answered
}

fn full_ping_open(context: &mut Context) -> Check {
    let (taken, mut link, _, _) = filled(context)?;
    link.send(&wire::ping(id::PING_OPEN, 20, 1))?;
    let silent = link.silence("an unconnected ping for open connections (02) to a full server");
    leave(taken)?;
    silent
}

fn place_free(context: &mut Context) -> Check {
    let (taken, mut link, mut reply, _) = filled(context)?;
    let mtu = reply.mtu;
    leave(taken)?;
    let bytes = answer_to_request_2(&mut link, &mut reply, mtu, new_guid())?;
    ensure(bytes[0] == id::REPLY_2, || {
        format!(
            "the server answered request 2 (07) with message id {:02x}, although a slot is free",
            bytes[0]
        )
    })
}

fn cookie(context: &mut Context) -> Check<(Link, Reply1, u32)> {
    let (link, _, reply) = first(context, 1464)?;
    match reply.cookie {
        Some(cookie) if !reply.key => Ok((link, reply, cookie)),
        Some(_) => skip("the server requires its secure mode"),
        None => skip("the server does not require cookies"),
    }
}

fn no_reply_2(link: &mut Link, request: &[u8], what: &str) -> Check {
    link.send(request)?;
    let replied = link.during_quiet()?.iter().any(|bytes| bytes[..1] == [id::REPLY_2]);
    ensure(!replied, || format!("the server answered a request 2 (07) {what} with reply 2 (08)"))
}

fn cookie_missing(context: &mut Context) -> Check {
    let (mut link, reply, _) = cookie(context)?;
    let request = wire::request_2(None, link.target, reply.mtu, new_guid());
    no_reply_2(&mut link, &request, "without a cookie")
}

fn cookie_wrong(context: &mut Context) -> Check {
    let (mut link, reply, cookie) = cookie(context)?;
    for wrong in [cookie ^ 1, cookie ^ 0x8000_0000, 0, !cookie] {
        let request = wire::request_2(Some(wrong), link.target, reply.mtu, new_guid());
        no_reply_2(&mut link, &request, "with a wrong cookie")?;
    }
    Ok(())
}

fn cookie_of_another(context: &mut Context) -> Check {
    let (_, _, other) = cookie(context)?;
    let (mut link, reply, _) = cookie(context)?;
    let request = wire::request_2(Some(other), link.target, reply.mtu, new_guid());
    no_reply_2(&mut link, &request, "with the cookie of another address")
}

fn cookie_accepted(link: &mut Link, reply: Reply1, cookie: u32) -> Check {
    let request = wire::request_2(Some(cookie), link.target, reply.mtu, new_guid());
    let answer = link.ask(&request, &[id::REPLY_2])?;
    ensure(answer.is_some(), || "the server did not answer the correct cookie with reply 2 (08)".into())
}

fn cookie_right(context: &mut Context) -> Check {
    let (mut link, reply, cookie) = cookie(context)?;
    cookie_accepted(&mut link, reply, cookie)
}

fn cookie_differs(context: &mut Context) -> Check {
    let (_, _, one) = cookie(context)?;
    let (_, _, two) = cookie(context)?;
    ensure(one != two, || format!("the cookies of two addresses are both {one:08x}"))
}

fn cookie_again(context: &mut Context) -> Check {
    let (mut link, reply, cookie) = cookie(context)?;
    reply_1(&mut link, context.options.version, 1172)?;
    cookie_accepted(&mut link, reply, cookie)
}

fn cookie_after_wrong(context: &mut Context) -> Check {
    let (mut link, reply, cookie) = cookie(context)?;
    let request = wire::request_2(Some(!cookie), link.target, reply.mtu, new_guid());
    link.send(&request)?;
    cookie_accepted(&mut link, reply, cookie)
}
