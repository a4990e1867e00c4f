//! Group 24: the connected part of a client's handshake.

use super::attempt::client;
use crate::case::{Case, Context};
use crate::case::{MUST, SHOULD};
use crate::check::{Check, ensure, fail};
use crate::model::Fault;
use crate::session::{Session, now};
use crate::wire::{self, Capsule, id};
use std::net::{Ipv6Addr, SocketAddr};

const CONTROL: &str = "control-messages";
const OPENING: &str = "opening-a-connection";
const SENDING: &str = "sending";
const MISMATCHES: &str = "where-the-documents-disagree";

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    client(2401, "request", MUST, OPENING, "The client answers reply 2 (08) with a connection request (09).", request, Fault::MuteControl(id::CONNECTION_REQUEST)),
    client(2402, "request-numbers", MUST, "address-validation", "The client sends the connection request (09) in datagram 0 as reliable message 0.", numbers, Fault::FirstDatagram(1)),
    client(2403, "request-layout", MUST, CONTROL, "After its id, a connection request (09) has at least 17 bytes: the GUID, the time and the security byte.", layout, Fault::RequestTruncated),
    client(2404, "request-guid", MUST, CONTROL, "The connection request (09) has the same GUID as request 2 (07).", same_guid, Fault::RequestGuidDiffers),
    client(2405, "request-reliable", MUST, CONTROL, "The client sends the connection request (09) as a reliable message.", reliable, Fault::RequestUnreliable),
    client(2406, "request-resent", MUST, "gaps", "The client retransmits the connection request (09) until the server acknowledges it.", resent, Fault::NeverResends),
    client(2407, "request-plain", MUST, CONTROL, "The security byte in the connection request (09) is 0 if reply 1 (06) has no key.", plain, Fault::RequestWantsSecurity),
    client(2408, "accepted-acknowledged", MUST, "acknowledgements", "The client acknowledges the datagram that contains connection request accepted (10).", ten_acked, Fault::NoAckOfFirst),
    client(2409, "new-incoming", MUST, OPENING, "The client answers connection request accepted (10) with new incoming connection (13).", thirteen, Fault::MuteControl(id::NEW_INCOMING)),
    client(2410, "new-incoming-layout", MUST, CONTROL, "New incoming connection (13) consists of exactly an address, a list of addresses and two times.", thirteen_layout, Fault::AcceptedTail),
    client(2411, "new-incoming-time", MUST, CONTROL, "New incoming connection (13) contains the server's time from connection request accepted (10).", thirteen_time, Fault::AcceptedTimeWrong),
    client(2412, "new-incoming-addresses", SHOULD, "internal-addresses", "New incoming connection (13) lists 10 addresses for protocol versions up to 8, and 20 addresses for versions from 9.", thirteen_list, Fault::AddressCount(9)),
    client(2413, "new-incoming-ordered", SHOULD, CONTROL, "The client sends new incoming connection (13) as a reliable ordered message on channel 0.", thirteen_ordered, Fault::AcceptedUnreliable),
    client(2414, "new-incoming-first-order", MUST, SENDING, "New incoming connection (13) has the ordering index 0.", thirteen_order, Fault::FirstOrder(1)),
    client(2415, "new-incoming-resent", MUST, "gaps", "The client retransmits new incoming connection (13) until the server acknowledges it.", thirteen_resent, Fault::NeverResends),
    client(2416, "accepted-twenty-addresses", MUST, CONTROL, "The client accepts a connection request accepted (10) that lists 20 addresses.", twenty, Fault::NewIncomingCount),
    client(2417, "accepted-one-address", MUST, CONTROL, "The client accepts a connection request accepted (10) with one listed address: the list ends 16 bytes before the end.", one, Fault::NewIncomingCount),
    client(2418, "accepted-ten-addresses", MUST, CONTROL, "The client accepts a connection request accepted (10) that lists 10 addresses.", ten, Fault::NewIncomingTen),
    client(2419, "accepted-other-address", SHOULD, MISMATCHES, "The client does not check its own address in connection request accepted (10).", other_address, Fault::ChecksNewIncoming),
    client(2420, "accepted-mixed-addresses", SHOULD, CONTROL, "The client accepts a connection request accepted (10) that lists both IPv4 and IPv6 addresses.", mixed, Fault::Ipv4Only),
    client(2421, "accepted-truncated", MUST, "hostile-bytes", "The client does not accept a connection request accepted (10) that is truncated within the client's address.", truncated, Fault::AcceptsShortRequest),
    client(2422, "accepted-unreliable", SHOULD, "connection-attempts", "The client accepts an unreliable connection request accepted (10), because some servers send it so.", unreliable, Fault::AcceptedOrderedOnly),
    client(2423, "password-refused", MUST, CONTROL, "Invalid password (18) ends the attempt: the client does not answer a later connection request accepted (10).", refused, Fault::IgnoresRefusal(id::INVALID_PASSWORD)),
    client(2424, "password-refused-nine-bits", SHOULD, "cut-messages", "Invalid password (18) also ends the attempt if it is truncated to nine bits.", refused_cut, Fault::PasswordRefusalExact),
    client(2425, "accepted-in-parts", SHOULD, "splits", "The client reassembles a connection request accepted (10) that is split into two parts.", in_parts, Fault::NoSplits),
    client(2426, "accepted-twice", MUST, "both-dial", "The client sends no second new incoming connection (13) for a second connection request accepted (10).", accepted_twice, Fault::AnswersEveryAccepted),
    client(2427, "ping-after-opening", MUST, OPENING, "The connection is open after new incoming connection (13): the client answers connected pings (00).", opened, Fault::MuteControl(id::CONNECTED_PONG)),
];

fn request(context: &mut Context) -> Check {
    context.requested().map(|_| ())
}

fn numbers(context: &mut Context) -> Check {
    let (session, request) = context.requested()?;
    let first = session.first(id::CONNECTION_REQUEST).map_or(0, |arrival| arrival.datagram);
    ensure(first == 0 && request.number == 0, || {
        format!(
            "the connection request (09) is in datagram {first} and has the reliable message number {}",
            request.number
        )
    })
}

fn layout(context: &mut Context) -> Check {
    let (_, request) = context.requested()?;
    ensure(request.payload.len() >= 18, || {
        format!("the connection request (09) has {} bytes", request.payload.len())
    })
}

fn same_guid(context: &mut Context) -> Check {
    let mut attempt = context.accept()?;
    let mtu = attempt.probed();
    attempt.link.send(&attempt.reply_1(None, mtu))?;
    let Some((_, second)) = attempt.request_2()? else {
        return fail("the client did not answer reply 1 (06) with request 2 (07)");
    };
    attempt.link.send(&attempt.reply_2(second.mtu))?;
    let mut session = attempt.session(second.mtu);
    let request = session.wait_for(id::CONNECTION_REQUEST)?;
    let same = request.payload.get(1..9) == Some(&second.guid.to_be_bytes()[..]);
    ensure(same, || {
        format!(
            "the GUID is {:016x} in request 2 (07) and {:02x?} in the connection request (09)",
            second.guid,
            request.payload.get(1..9)
        )
    })
}

fn reliable(context: &mut Context) -> Check {
    let (_, request) = context.requested()?;
    ensure(request.is_reliable(), || {
        format!("the connection request (09) has the reliability {}", request.reliability)
    })
}

/// Fails unless an unacknowledged message is received three times with the same message number.
fn comes_again(session: &mut Session, id: u8) -> Check {
    // The first retransmission of a peer may take seconds, and the second twice as long.
    let patience = session.link.timing.lifetime;
    let again = |session: &Session| {
        let first = session.first(id).map(|arrival| arrival.capsule.number);
        session.with_id(id).filter(|arrival| Some(arrival.capsule.number) == first).count() > 2
    };
    let came = session.wait(patience, again)?;
    ensure(came, || "the client did not retransmit the unacknowledged message twice".into())
}

fn resent(context: &mut Context) -> Check {
    let mut session = context.reserve()?;
    session.acknowledges = false;
    comes_again(&mut session, id::CONNECTION_REQUEST)
}

fn plain(context: &mut Context) -> Check {
    let (_, request) = context.requested()?;
    let security = request.payload.get(17);
    ensure(security == Some(&0), || format!("the security byte is {security:02x?}"))
}

fn ten_acked(context: &mut Context) -> Check {
    let (mut session, _) = context.requested()?;
    let accepted = session.accepted(session.addresses);
    let number = session.send_10(accepted)?;
    ensure(session.wait_ack(number)?, || {
        "the client did not acknowledge connection request accepted (10)".into()
    })
}

/// Sends a connection request accepted (10), and returns the resulting new incoming connection (13).
fn thirteen_for(context: &mut Context, build: impl Fn(&Session) -> Vec<u8>) -> Check<(Session, Capsule)> {
    let (mut session, _) = context.requested()?;
    let accepted = build(&session);
    session.send_10(accepted)?;
    let thirteen = session.wait_for(id::NEW_INCOMING)?;
    Ok((session, thirteen))
}

fn usual(context: &mut Context) -> Check<(Session, Capsule)> {
    thirteen_for(context, |session| session.accepted(session.addresses))
}

fn thirteen(context: &mut Context) -> Check {
    usual(context).map(|_| ())
}

fn read(capsule: &Capsule) -> Check<wire::NewIncoming> {
    match wire::read_new_incoming(&capsule.payload) {
        Some(read) => Ok(read),
        None => fail(
            "new incoming connection (13) is invalid: its address list does not end 16 bytes before its end",
        ),
    }
}

fn thirteen_layout(context: &mut Context) -> Check {
    let (_, thirteen) = usual(context)?;
    read(&thirteen).map(|_| ())
}

fn thirteen_time(context: &mut Context) -> Check {
    let build = |session: &Session| wire::accepted(session.link.target, 10, 7, 0x0011_2233_4455);
    let (_, thirteen) = thirteen_for(context, build)?;
    let time = read(&thirteen)?.accepted;
    ensure(time == 0x0011_2233_4455, || {
        format!("the server's time in new incoming connection (13) is {time:#x}")
    })
}

fn thirteen_list(context: &mut Context) -> Check {
    let (_, thirteen) = usual(context)?;
    let version = context.trace.entries().first().and_then(|entry| entry.bytes.get(17).copied());
    let due = if version > Some(8) { 20 } else { 10 };
    let count = read(&thirteen)?.addresses;
    ensure(count == due, || format!("new incoming connection (13) lists {count} addresses, not {due}"))
}

fn thirteen_ordered(context: &mut Context) -> Check {
    let (_, thirteen) = usual(context)?;
    ensure(thirteen.reliability == 3 && thirteen.channel == 0, || {
        format!(
            "new incoming connection (13) has the reliability {} and the channel {}",
            thirteen.reliability, thirteen.channel
        )
    })
}

fn thirteen_order(context: &mut Context) -> Check {
    let (_, thirteen) = usual(context)?;
    ensure(thirteen.order == 0, || {
        format!("the ordering index of new incoming connection (13) is {}", thirteen.order)
    })
}

fn thirteen_resent(context: &mut Context) -> Check {
    let (mut session, _) = context.requested()?;
    session.acknowledges = false;
    let accepted = session.accepted(session.addresses);
    session.send_10(accepted)?;
    comes_again(&mut session, id::NEW_INCOMING)
}

fn with_addresses(context: &mut Context, count: usize) -> Check {
    thirteen_for(context, |session| session.accepted(count)).map(|_| ())
}

fn twenty(context: &mut Context) -> Check {
    with_addresses(context, 20)
}

fn one(context: &mut Context) -> Check {
    with_addresses(context, 1)
}

fn ten(context: &mut Context) -> Check {
    with_addresses(context, 10)
}

fn other_address(context: &mut Context) -> Check {
    let other = SocketAddr::from(([203, 0, 113, 7], 4));
    thirteen_for(context, |_| wire::accepted(other, 10, 1, now())).map(|_| ())
}

fn mixed(context: &mut Context) -> Check {
    let build = |session: &Session| {
        let mut out = vec![id::ACCEPTED];
        wire::put_address(&mut out, session.link.target);
        out.extend([0, 0]);
        for at in 0..10 {
            let version_6 = SocketAddr::from((Ipv6Addr::LOCALHOST, at));
            wire::put_address(&mut out, if at == 3 { version_6 } else { wire::unassigned() });
        }
        out.extend([1_u64.to_be_bytes(), now().to_be_bytes()].concat());
        out
    };
    thirteen_for(context, build).map(|_| ())
}

/// Fails if new incoming connection (13) arrives within the quiet time.
fn no_13(session: &mut Session, after: &str) -> Check {
    session.quiet()?;
    ensure(session.first(id::NEW_INCOMING).is_none(), || {
        format!("the client sent new incoming connection (13) after {after}")
    })
}

fn truncated(context: &mut Context) -> Check {
    let (mut session, _) = context.requested()?;
    let accepted = session.accepted(session.addresses);
    session.send_10(accepted[..5].to_vec())?;
    no_13(&mut session, "a truncated connection request accepted (10)")
}

fn unreliable(context: &mut Context) -> Check {
    let (mut session, _) = context.requested()?;
    let accepted = session.accepted(session.addresses);
    session.send(&[Capsule::unreliable(accepted)])?;
    session.wait_for(id::NEW_INCOMING).map(|_| ())
}

/// Refuses the password, then accepts the client, and fails if new incoming connection (13) arrives.
fn refused_by(context: &mut Context, cut: bool) -> Check {
    let (mut session, _) = context.requested()?;
    let whole = [&[id::INVALID_PASSWORD][..], &session.guid.to_be_bytes()].concat();
    let number = session.next_reliable();
    if cut {
        // Nine bits: the id, and the first bit of the next byte.
        let mut bytes = wire::data(0x84, session.number, &[]);
        Capsule::reliable(number, whole[..2].to_vec()).write_bits(9, 0, &mut bytes);
        session.link.send(&bytes)?;
        session.number += 1;
    } else {
        session.send(&[Capsule::reliable(number, whole)])?;
    }
    session.quiet()?;
    let accepted = session.accepted(session.addresses);
    session.send_10(accepted)?;
    no_13(&mut session, "invalid password (18) and connection request accepted (10)")
}

fn refused(context: &mut Context) -> Check {
    refused_by(context, false)
}

fn refused_cut(context: &mut Context) -> Check {
    refused_by(context, true)
}

fn in_parts(context: &mut Context) -> Check {
    let (mut session, _) = context.requested()?;
    let accepted = session.accepted(session.addresses);
    for (index, piece) in (0..).zip(accepted.chunks(accepted.len().div_ceil(2))) {
        let number = session.next_reliable();
        let split = Some(wire::Split { count: 2, id: 0, index });
        session.send(&[Capsule { split, ..Capsule::ordered(number, 0, 0, piece.to_vec()) }])?;
    }
    session.wait_for(id::NEW_INCOMING).map(|_| ())
}

fn accepted_twice(context: &mut Context) -> Check {
    let (mut session, first) = usual(context)?;
    let accepted = session.accepted(session.addresses);
    let number = session.next_reliable();
    session.send(&[Capsule::ordered(number, 1, 0, accepted)])?;
    session.quiet()?;
    let others = session.with_id(id::NEW_INCOMING).filter(|other| other.capsule.number != first.number);
    let count = others.count();
    ensure(count == 0, || format!("the client sent {count} more new incoming connections (13)"))
}

fn opened(context: &mut Context) -> Check {
    let mut session = context.open()?;
    session.send(&[Capsule::unreliable(wire::connected_ping(2427))])?;
    session.expect_pong(2427, "an open connection")
}
