//! Group 4: the connected part of the handshake.

use crate::case::{Case, Context, Needs};
use crate::case::{MUST, SHOULD};
use crate::check::{Check, Stop, ensure, fail, skip};
use crate::model::Fault;
use crate::session::{Session, now, recover};
use crate::wire::{self, Capsule, id};
use std::net::SocketAddr;

const OPENING: &str = "opening-a-connection";
const CONTROL: &str = "control-messages";
const LISTS: &str = "internal-addresses";

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    Case::new(401, "request-acknowledged", MUST, "acknowledgements", "The server acknowledges the datagram that contains the connection request (09).", request_acked, Fault::NoAckOfFirst),
    Case::new(402, "accepted", MUST, OPENING, "The server answers a connection request (09) with connection request accepted (10).", accepted, Fault::MuteControl(id::ACCEPTED)),
    Case::new(403, "accepted-time", MUST, CONTROL, "Connection request accepted (10) contains the time of the connection request (09).", accepted_time, Fault::AcceptedTimeWrong),
    Case::new(404, "accepted-address", SHOULD, CONTROL, "The client address in connection request accepted (10) has the client's port.", accepted_address, Fault::WrongClientAddress),
    Case::new(405, "accepted-layout", MUST, CONTROL, "Connection request accepted (10) consists of exactly an address, a system index, a list of addresses and two times.", accepted_layout, Fault::AcceptedTail),
    Case::new(406, "accepted-addresses", SHOULD, LISTS, "Connection request accepted (10) lists 10 addresses for protocol versions up to 8, and 20 addresses for versions from 9.", accepted_list, Fault::AddressCount(9)),
    Case::new(407, "accepted-ordered", SHOULD, CONTROL, "The server sends connection request accepted (10) as a reliable ordered message on channel 0.", accepted_ordered, Fault::AcceptedUnreliable),
    Case::new(408, "accepted-resent", MUST, "gaps", "The server retransmits connection request accepted (10) until the client acknowledges it.", accepted_resent, Fault::NeverResends),
    Case::new(409, "first-datagram-zero", MUST, "address-validation", "The server numbers its datagrams from 0.", numbered_from_zero, Fault::FirstDatagram(1)),
    Case::new(410, "accepted-first-order", MUST, "sending", "The server's first ordered message on channel 0 has the ordering index 0.", first_order, Fault::FirstOrder(1)),
    Case::new(411, "opened", MUST, OPENING, "The connection is open after new incoming connection (13): the server answers connected pings (00).", opened, Fault::MuteControl(id::CONNECTED_PONG)),
    Case::new(412, "new-incoming-acknowledged", MUST, "acknowledgements", "The server acknowledges the datagram that contains new incoming connection (13).", new_incoming_acked, Fault::NoAckOfNewIncoming),
    Case::new(413, "new-incoming-one-address", MUST, CONTROL, "The server accepts a new incoming connection (13) with one listed address: the list ends 16 bytes before the end.", one_address, Fault::NewIncomingCount),
    Case::new(414, "new-incoming-twenty", MUST, CONTROL, "The server accepts a new incoming connection (13) that lists 20 addresses.", twenty_addresses, Fault::NewIncomingCount),
    Case::new(415, "new-incoming-ten", MUST, CONTROL, "The server accepts a new incoming connection (13) that lists 10 addresses.", ten_addresses, Fault::NewIncomingTen),
    Case::new(416, "new-incoming-other-port", MUST, "where-the-documents-disagree", "The server does not check the server address in new incoming connection (13).", other_port, Fault::ChecksNewIncoming),
    Case::new(417, "server-pings", SHOULD, "pings", "The server sends a connected ping (00) when a connection opens, or within the timeout for silent connections (--lifetime).", server_pings, Fault::MuteControl(id::CONNECTED_PING)),
    Case::new(418, "password-unexpected", MUST, CONTROL, "The server refuses a password that it does not have with invalid password (18).", password_wrong, Fault::IgnoresPassword),
    Case::new(419, "password-no-acceptance", MUST, CONTROL, "The server does not send connection request accepted (10) after a wrong password.", password_no_acceptance, Fault::RefusesAndAccepts),
    Case::new(420, "password-reliable", SHOULD, CONTROL, "The server sends invalid password (18) as a reliable message.", password_reliable, Fault::RefusesUnreliably),
    Case::new(421, "password-no-connection", MUST, CONTROL, "A connection with a wrong password is not opened: the server answers no connected ping (00) in it.", password_no_connection, Fault::OpensAfterRefusal),
    Case::new(422, "password-right", MUST, CONTROL, "The server opens a connection with the correct password.", password_right, Fault::RefusesEveryPassword).needs(Needs::Password),
    Case::new(423, "password-prefix", MUST, CONTROL, "The server refuses its password without the last byte.", password_prefix, Fault::PasswordPrefix).needs(Needs::Password),
    Case::new(424, "password-longer", MUST, CONTROL, "The server refuses its password with an additional byte at the end.", password_longer, Fault::PasswordLonger).needs(Needs::Password),
    Case::new(425, "password-missing", MUST, CONTROL, "A server with a password refuses a connection request (09) without a password.", password_missing, Fault::PasswordOptional).needs(Needs::Password),
    Case::new(426, "no-connection-no-answer", MUST, "datagrams", "The server does not answer a data datagram from an address without a connection.", stranger, Fault::AcksStrangers),
    Case::new(427, "nothing-before-request", MUST, OPENING, "The server does not answer a connected ping (00) before a connection request (09).", ping_before_request, Fault::AnswersBeforeRequest),
    Case::new(428, "own-clock", SHOULD, "values", "The server's clock, sent in connection request accepted (10), does not go back between two connections.", clock, Fault::ClockBackwards),
    Case::new(429, "two-connections", MUST, OPENING, "The server keeps two connections from one host open at the same time, and answers pings in both.", two_connections, Fault::OneConnectionOnly),
    Case::new(430, "request-in-small-mtu", MUST, "sizes", "The server opens a connection with the MTU 576, and sends datagrams of at most 548 bytes in it.", small_mtu, Fault::IgnoresMtu),
];

/// Sends a connection request with this password.
fn request(context: &mut Context, password: &[u8]) -> Check<(Session, u32)> {
    let mut session = context.dial()?;
    let request = wire::connection_request(session.guid, 0x0102_0304_0506, password);
    let number = session.send_reliable(request)?;
    Ok((session, number))
}

fn received(context: &mut Context, acknowledges: bool) -> Check<(Session, Capsule)> {
    let password = context.password();
    let mut session = context.dial()?;
    session.acknowledges = acknowledges;
    let request = wire::connection_request(session.guid, 0x0102_0304_0506, &password);
    session.send_reliable(request)?;
    let answer = session.link.timing.answer;
    session.wait(answer, |session| session.first(id::ACCEPTED).is_some())?;
    match session.first(id::ACCEPTED).map(|arrival| arrival.capsule.clone()) {
        Some(capsule) => Ok((session, capsule)),
        None => fail("the server did not send connection request accepted (10)"),
    }
}

fn request_acked(context: &mut Context) -> Check {
    let password = context.password();
    let (mut session, number) = request(context, &password)?;
    ensure(session.wait_ack(number)?, || "the server did not acknowledge the connection request (09)".into())
}

fn accepted(context: &mut Context) -> Check {
    received(context, true).map(|_| ())
}

fn read(capsule: &Capsule) -> Check<wire::Accepted> {
    match wire::read_accepted(&capsule.payload) {
        Some(accepted) => Ok(accepted),
        None => fail(
            "connection request accepted (10) is invalid: its address list does not end 16 bytes before its end",
        ),
    }
}

fn accepted_time(context: &mut Context) -> Check {
    let (_, capsule) = received(context, true)?;
    let time = read(&capsule)?.request_time;
    ensure(time == 0x0102_0304_0506, || {
        format!("the request time in connection request accepted (10) is {time:#x}")
    })
}

fn accepted_address(context: &mut Context) -> Check {
    let (session, capsule) = received(context, true)?;
    let (said, port) = (read(&capsule)?.client, session.link.local()?.port());
    ensure(said.port() == port, || format!("the client address is {said}, but the client's port is {port}"))
}

fn accepted_layout(context: &mut Context) -> Check {
    let (_, capsule) = received(context, true)?;
    read(&capsule).map(|_| ())
}

fn accepted_list(context: &mut Context) -> Check {
    let due = if context.options.version > 8 { 20 } else { 10 };
    let (_, capsule) = received(context, true)?;
    let count = read(&capsule)?.addresses;
    ensure(count == due, || format!("connection request accepted (10) lists {count} addresses, not {due}"))
}

fn accepted_ordered(context: &mut Context) -> Check {
    let (_, capsule) = received(context, true)?;
    ensure(capsule.reliability == 3 && capsule.channel == 0, || {
        format!(
            "connection request accepted (10) has the reliability {} and the channel {}",
            capsule.reliability, capsule.channel
        )
    })
}

fn accepted_resent(context: &mut Context) -> Check {
    let (mut session, _) = received(context, false)?;
    // The first retransmission of a peer may take seconds, and the second twice as long.
    let patience = session.link.timing.lifetime;
    let resent = session.wait(patience, |session| session.with_id(id::ACCEPTED).count() > 2)?;
    ensure(resent, || {
        "the server did not retransmit the unacknowledged connection request accepted (10) twice".into()
    })
}

fn numbered_from_zero(context: &mut Context) -> Check {
    let (session, _) = received(context, true)?;
    let first = session.datagrams.first().map_or(0, |datagram| datagram.0);
    ensure(first == 0, || format!("the server's first datagram has the number {first}"))
}

fn first_order(context: &mut Context) -> Check {
    let (_, capsule) = received(context, true)?;
    if !capsule.has_order() {
        return skip("connection request accepted (10) has no ordering index");
    }
    ensure(capsule.order == 0, || {
        format!("the ordering index of connection request accepted (10) is {}", capsule.order)
    })
}

fn opened(context: &mut Context) -> Check {
    context.open()?.still_answers("new incoming connection (13)")
}

fn new_incoming_acked(context: &mut Context) -> Check {
    context.open().map(|_| ())
}

fn with_addresses(context: &mut Context, count: usize, server: Option<SocketAddr>) -> Check {
    let mut session = context.dial()?;
    let accepted = session.request(&context.password())?;
    let server = server.unwrap_or(context.target);
    session.send_13(server, count, accepted.time)?;
    session.still_answers(&format!("new incoming connection (13) with {count} addresses"))
}

fn one_address(context: &mut Context) -> Check {
    with_addresses(context, 1, None)
}

fn ten_addresses(context: &mut Context) -> Check {
    with_addresses(context, 10, None)
}

fn twenty_addresses(context: &mut Context) -> Check {
    with_addresses(context, 20, None)
}

fn other_port(context: &mut Context) -> Check {
    let other = SocketAddr::from(([192, 0, 2, 1], 9));
    with_addresses(context, 10, Some(other))
}

fn server_pings(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let lifetime = session.link.timing.lifetime;
    let pinged = session.wait(lifetime, |session| session.first(id::CONNECTED_PING).is_some())?;
    ensure(pinged, || "the server did not send a connected ping (00)".into())
}

fn wrong_password(context: &Context) -> Vec<u8> {
    let mut password = context.password();
    password.extend(b"wrong");
    password
}

fn refused(context: &mut Context, password: &[u8]) -> Check<Session> {
    let (mut session, _) = request(context, password)?;
    let answer = session.link.timing.answer;
    let came = session.wait(answer, |session| session.first(id::INVALID_PASSWORD).is_some())?;
    ensure(session.first(id::ACCEPTED).is_none(), || {
        "the server sent connection request accepted (10)".into()
    })?;
    ensure(came, || "the server did not send invalid password (18)".into())?;
    Ok(session)
}

fn password_wrong(context: &mut Context) -> Check {
    let password = wrong_password(context);
    refused(context, &password).map(|_| ())
}

fn password_no_acceptance(context: &mut Context) -> Check {
    let password = wrong_password(context);
    let (mut session, _) = request(context, &password)?;
    session.pass(context.timing.answer)?;
    ensure(session.first(id::ACCEPTED).is_none(), || {
        "the server sent connection request accepted (10)".into()
    })
}

fn password_reliable(context: &mut Context) -> Check {
    let password = wrong_password(context);
    let session = refused(context, &password)?;
    let reliable = session.first(id::INVALID_PASSWORD).is_some_and(|arrival| arrival.capsule.is_reliable());
    ensure(reliable, || "invalid password (18) is unreliable".into())
}

fn password_no_connection(context: &mut Context) -> Check {
    let password = wrong_password(context);
    let mut session = refused(context, &password)?;
    let number = session.next_reliable();
    let payload = wire::new_incoming(context.target, 10, 0, now());
    session.send(&[Capsule::ordered(number, 0, 0, payload)])?;
    session.send(&[Capsule::unreliable(wire::connected_ping(0x421))])?;
    session.expect_no_pong(0x421, "a connection with a wrong password")
}

fn password_right(context: &mut Context) -> Check {
    context.open()?.still_answers("the handshake with the correct password")
}

fn password_prefix(context: &mut Context) -> Check {
    let mut password = context.password();
    password.pop();
    refused(context, &password).map(|_| ())
}

fn password_longer(context: &mut Context) -> Check {
    let mut password = context.password();
    password.push(b'x');
    refused(context, &password).map(|_| ())
}

fn password_missing(context: &mut Context) -> Check {
    refused(context, b"").map(|_| ())
}

fn stranger(context: &mut Context) -> Check {
    let mut link = context.link()?;
    for number in 0..3 {
        link.send(&wire::data(0x84, number, &[Capsule::reliable(number, wire::connected_ping(1))]))?;
    }
    link.silence("a data datagram from an address without a connection")
}

fn ping_before_request(context: &mut Context) -> Check {
    let mut session = context.dial()?;
    session.send(&[Capsule::unreliable(wire::connected_ping(0x427))])?;
    let judged = session.expect_no_pong(0x427, "a connection without a connection request (09)");
    recover(context)?;
    judged
}

fn clock(context: &mut Context) -> Check {
    let mut before = 0;
    for _ in 0..2 {
        let (_, capsule) = received(context, true)?;
        let time = read(&capsule)?.time;
        ensure(time >= before, || format!("the server's clock went back from {before} to {time}"))?;
        before = time;
    }
    Ok(())
}

fn two_connections(context: &mut Context) -> Check {
    let mut one = context.open()?;
    let mut two = context.open()?;
    one.still_answers("a second connection was opened")?;
    two.still_answers("the handshake of a second connection")
}

fn small_mtu(context: &mut Context) -> Check {
    let mut session = context.dial_with(wire::SMALLEST_MTU, crate::session::new_guid())?;
    session.open(&context.password())?;
    session.quiet()?;
    let longest = session.datagrams.iter().map(|datagram| datagram.2).max().unwrap_or_default();
    if longest == 0 {
        return Err(Stop::Failed("the server sent no datagram".into()));
    }
    ensure(longest <= 548, || format!("the server's longest datagram has {longest} bytes"))
}
