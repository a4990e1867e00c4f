//! Group 8: keep-alive and timeouts; group 9: disconnects.

use crate::case::{Case, Context};
use crate::case::{MUST, SHOULD};
use crate::check::{Check, ensure, fail};
use crate::model::Fault;
use crate::session::{Session, answer_to_request_2, new_guid, now, reply_1};
use crate::wire::{self, Capsule, id};
use std::time::{Duration, Instant};

const KEEPING: &str = "keeping-and-closing-it";
const TIMEOUTS: &str = "timeouts";
const CONTROL: &str = "control-messages";

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    Case::new(801, "idle-pinged", MUST, KEEPING, "The peer sends a connected ping (00) on an idle connection within the timeout for silent connections (--lifetime).", idle_pinged, Fault::MuteControl(id::CONNECTED_PING)),
    Case::new(802, "idle-pinged-again", MUST, KEEPING, "The peer sends at least two connected pings (00) on an idle connection within twice the timeout (--lifetime).", pinged_again, Fault::PingsOnce),
    Case::new(803, "ping-layout", MUST, CONTROL, "A connected ping (00) has 9 bytes.", ping_layout, Fault::LongPingOfServer),
    Case::new(804, "idle-kept", MUST, KEEPING, "The peer keeps a connection open for longer than the timeout (--lifetime) if the remote acknowledges datagrams and answers pings.", idle_kept, Fault::DropsIdle),
    Case::new(805, "silent-given-up", MUST, TIMEOUTS, "The server closes the connection of a silent client: the client's address can connect again.", given_up, Fault::NeverGivesUp),
    Case::new(806, "silent-guid-free", MUST, TIMEOUTS, "The server closes the connection of a silent client: the client's GUID can connect from another address.", guid_free, Fault::NeverGivesUp),
    Case::new(807, "silent-left-alone", MUST, TIMEOUTS, "The peer sends nothing more to a silent remote after it has closed the connection.", left_alone, Fault::SendsForever),
    Case::new(808, "half-open-given-up", MUST, TIMEOUTS, "The server frees the slot of a client that sends nothing after reply 2 (08).", half_open, Fault::KeepsHalfOpen),
    Case::new(809, "resends-bounded", SHOULD, "round-trip", "The server retransmits an unacknowledged message at most 40 times in a second.", resends_bounded, Fault::ResendsWildly),
    Case::new(810, "resends-spaced", SHOULD, "round-trip", "The server does not retransmit a message earlier than 10 ms after its first transmission.", resends_spaced, Fault::ResendsWildly),
    Case::new(901, "disconnection-acknowledged", MUST, KEEPING, "The peer acknowledges a disconnection notification (15).", acknowledged, Fault::NoAckOfDisconnection),
    Case::new(902, "disconnection-ends-pings", MUST, KEEPING, "The peer answers no connected ping (00) after it has received a disconnection notification (15).", ends_pings, Fault::GoesOnAfterDisconnection),
    Case::new(903, "disconnection-ends-sending", MUST, KEEPING, "The peer sends no more data datagrams after it has received a disconnection notification (15).", ends_sending, Fault::IgnoresDisconnection),
    Case::new(904, "disconnection-frees-address", MUST, TIMEOUTS, "After a disconnection notification (15), the client's address can connect again.", frees_address, Fault::KeepsClosed),
    Case::new(905, "disconnection-frees-guid", MUST, TIMEOUTS, "After a disconnection notification (15), the client's GUID can connect from another address.", frees_guid, Fault::KeepsClosed),
    Case::new(906, "disconnection-with-reason", SHOULD, "closing-for-size", "A disconnection notification (15) that is followed by a byte 01 also closes the connection.", with_reason, Fault::DisconnectionExact),
    Case::new(907, "disconnection-repeated", SHOULD, KEEPING, "The server acknowledges a repeated disconnection notification (15) again.", repeated, Fault::ForgetsClosedAtOnce),
    Case::new(908, "disconnection-of-one", MUST, KEEPING, "A disconnection notification (15) does not close other connections.", of_one, Fault::DisconnectsAll),
    Case::new(909, "disconnection-half-open", MUST, KEEPING, "A disconnection notification (15) before new incoming connection (13) also frees the client's address.", before_open, Fault::KeepsClosedHalfOpen),
    Case::new(910, "disconnection-reconnect-works", MUST, KEEPING, "The server accepts numbers from 0 in a new connection from the same address, and its first ordering index is 0.", reconnects, Fault::ReusesState),
];

fn pings(session: &Session) -> usize {
    session.with_id(id::CONNECTED_PING).count()
}

fn wait_pings(context: &mut Context, count: usize) -> Check<Session> {
    let mut session = context.open_and_settle()?;
    session.arrivals.clear();
    let came = session.wait(context.timing.lifetime * count as u32, |session| pings(session) >= count)?;
    ensure(came, || format!("the peer sent only {} connected pings (00)", pings(&session)))?;
    Ok(session)
}

fn idle_pinged(context: &mut Context) -> Check {
    wait_pings(context, 1).map(|_| ())
}

fn pinged_again(context: &mut Context) -> Check {
    wait_pings(context, 2).map(|_| ())
}

fn ping_layout(context: &mut Context) -> Check {
    let session = wait_pings(context, 1)?;
    let len = session.first(id::CONNECTED_PING).map_or(0, |ping| ping.capsule.payload.len());
    ensure(len == 9, || format!("the connected ping (00) has {len} bytes"))
}

fn idle_kept(context: &mut Context) -> Check {
    let mut session = context.open()?;
    session.pass(context.timing.lifetime)?;
    session.still_answers("the timeout (--lifetime), in which the suite sent only acknowledgements and pongs")
}

/// Repeats requests 1 and 2 until the server sends reply 2. Fails after twice the timeout of the peer.
fn granted_in_time(context: &Context, mut link: crate::link::Link, guid: u64) -> Check {
    let deadline = Instant::now() + context.timing.lifetime * 2;
    let version = context.options.version;
    while Instant::now() < deadline {
        let answer = reply_1(&mut link, version, 1464).and_then(|(_, mut reply)| {
            let mtu = reply.mtu;
            answer_to_request_2(&mut link, &mut reply, mtu, guid)
        });
        if matches!(&answer, Ok(bytes) if bytes[0] == id::REPLY_2) {
            return Ok(());
        }
        let pause = Instant::now() + context.timing.lifetime / 30;
        while link.receive(pause)?.is_some() {}
    }
    fail("the server did not answer request 2 (07) with reply 2 (08) within twice the timeout (--lifetime)")
}

fn given_up(context: &mut Context) -> Check {
    let session = context.open()?;
    granted_in_time(context, session.link, new_guid())
}

fn guid_free(context: &mut Context) -> Check {
    let session = context.open()?;
    let link = context.link()?;
    granted_in_time(context, link, session.guid)
}

fn left_alone(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    // From here on, the suite acknowledges nothing.
    session.acknowledges = false;
    session.answers_pings = false;
    session.pass(context.timing.lifetime * 2)?;
    let before = session.datagrams.len();
    session.pass(context.timing.lifetime)?;
    let after = session.datagrams.len() - before;
    ensure(after == 0, || format!("the peer sent {after} datagrams to the silent remote"))
}

fn half_open(context: &mut Context) -> Check {
    let session = context.dial()?;
    granted_in_time(context, session.link, new_guid())
}

fn resends(context: &mut Context) -> Check<Vec<Instant>> {
    let password = context.password();
    let mut session = context.dial()?;
    session.acknowledges = false;
    let request = wire::connection_request(session.guid, now(), &password);
    session.send_reliable(request)?;
    session.pass(Duration::from_secs(1))?;
    let times: Vec<_> = session.with_id(id::ACCEPTED).map(|arrival| arrival.at).collect();
    ensure(!times.is_empty(), || "the server did not send connection request accepted (10)".into())?;
    Ok(times)
}

fn resends_bounded(context: &mut Context) -> Check {
    let count = resends(context)?.len();
    ensure(count <= 41, || {
        format!("the server sent connection request accepted (10) {count} times in a second")
    })
}

fn resends_spaced(context: &mut Context) -> Check {
    let times = resends(context)?;
    let shortest = times.windows(2).map(|pair| pair[1] - pair[0]).next();
    let spaced = shortest.is_none_or(|time| time >= Duration::from_millis(10));
    ensure(spaced, || format!("the first retransmission was sent after {shortest:?}"))
}

/// Opens a connection, and sends a disconnection notification (15) with these bytes.
fn closed(context: &mut Context, notice: &[u8]) -> Check<(Session, u32)> {
    let mut session = context.open_and_settle()?;
    let number = session.send_reliable(notice.to_vec())?;
    Ok((session, number))
}

fn acknowledged(context: &mut Context) -> Check {
    let (mut session, number) = closed(context, &[id::DISCONNECTION])?;
    ensure(session.wait_ack(number)?, || {
        "the peer did not acknowledge the disconnection notification (15)".into()
    })
}

fn no_pong_after(context: &mut Context, notice: &[u8]) -> Check {
    let (mut session, number) = closed(context, notice)?;
    session.wait(context.timing.quiet, |session| session.is_acked(number))?;
    session.send(&[Capsule::unreliable(wire::connected_ping(902))])?;
    session.expect_no_pong(902, "a closed connection")
}

fn ends_pings(context: &mut Context) -> Check {
    no_pong_after(context, &[id::DISCONNECTION])
}

fn with_reason(context: &mut Context) -> Check {
    no_pong_after(context, &[id::DISCONNECTION, 1])
}

fn ends_sending(context: &mut Context) -> Check {
    let (mut session, number) = closed(context, &[id::DISCONNECTION])?;
    session.wait_ack(number)?;
    session.quiet()?;
    let before = session.datagrams.len();
    session.pass(context.timing.lifetime)?;
    let after = session.datagrams.len() - before;
    ensure(after == 0, || format!("the peer sent {after} datagrams in the closed connection"))
}

fn grants_soon(context: &Context, link: &mut crate::link::Link, guid: u64) -> Check {
    let deadline = Instant::now() + context.timing.lifetime / 3 + context.timing.answer;
    let mut last = 0;
    while Instant::now() < deadline {
        let answer = reply_1(link, context.options.version, 1464).and_then(|(_, mut reply)| {
            let mtu = reply.mtu;
            answer_to_request_2(link, &mut reply, mtu, guid)
        });
        last = answer.map_or(last, |bytes| bytes[0]);
        if last == id::REPLY_2 {
            return Ok(());
        }
        link.during_quiet()?;
    }
    fail(format!("the server answered request 2 (07) with message id {last:02x} (00: no answer)"))
}

fn frees_address(context: &mut Context) -> Check {
    let (mut session, number) = closed(context, &[id::DISCONNECTION])?;
    session.wait_ack(number)?;
    grants_soon(context, &mut session.link, new_guid())
}

fn frees_guid(context: &mut Context) -> Check {
    let (mut session, number) = closed(context, &[id::DISCONNECTION])?;
    session.wait_ack(number)?;
    let mut link = context.link()?;
    grants_soon(context, &mut link, session.guid)
}

fn repeated(context: &mut Context) -> Check {
    let (mut session, number) = closed(context, &[id::DISCONNECTION])?;
    ensure(session.wait_ack(number)?, || {
        "the server did not acknowledge the first disconnection notification (15)".into()
    })?;
    session.pass(Duration::from_millis(30))?;
    session.acked.clear();
    let again = session.number;
    let capsule = Capsule::reliable(session.reliable - 1, vec![id::DISCONNECTION]);
    session.send_as(again, &[capsule])?;
    ensure(session.wait_ack(again)?, || {
        "the server did not acknowledge the repeated disconnection notification (15)".into()
    })
}

fn of_one(context: &mut Context) -> Check {
    let mut other = context.open_and_settle()?;
    let (mut session, number) = closed(context, &[id::DISCONNECTION])?;
    session.wait_ack(number)?;
    other.still_answers("another client closed its connection")
}

fn before_open(context: &mut Context) -> Check {
    let mut session = context.dial()?;
    session.request(&context.password())?;
    let number = session.send_reliable(vec![id::DISCONNECTION])?;
    session.wait_ack(number)?;
    grants_soon(context, &mut session.link, new_guid())
}

fn reconnects(context: &mut Context) -> Check {
    let (mut session, number) = closed(context, &[id::DISCONNECTION])?;
    session.wait_ack(number)?;
    session.guid = new_guid();
    grants_soon(context, &mut session.link, session.guid)?;
    session.number = 0;
    session.reliable = 0;
    session.arrivals.clear();
    session.datagrams.clear();
    session.acked.clear();
    session.open(&context.password())?;
    let first = session.first(id::ACCEPTED).map_or((0, 0), |ten| (ten.datagram, ten.capsule.order));
    ensure(first.1 == 0, || format!("connection request accepted (10) has the ordering index {}", first.1))?;
    session.still_answers("a second handshake from the same address")
}
