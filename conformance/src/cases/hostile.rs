//! Group 10: malformed datagrams, and answers that an attacker could misuse.

use crate::case::{Case, Context};
use crate::case::{MUST, SHOULD};
use crate::check::{Check, ensure};
use crate::link::Link;
use crate::model::Fault;
use crate::session::{self, Session, new_guid, now, reply_1};
use crate::wire::{self, Capsule, id};
use std::time::{Duration, Instant};

const HOSTILE: &str = "hostile-bytes";
const VALIDATION: &str = "address-validation";
const IDS: &str = "which-messages-are-the-applications";

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    Case::new(1001, "garbage-offline", MUST, HOSTILE, "The server does not answer random datagrams from an unknown address, and still answers unconnected pings (01).", garbage_offline, Fault::EchoesGarbage),
    Case::new(1002, "garbage-connected", MUST, HOSTILE, "Random datagrams in a connection do not stop the server: it still answers pings and opens a new connection.", garbage_connected, Fault::DiesOfGarbage),
    Case::new(1003, "data-truncated", MUST, HOSTILE, "A data datagram that is truncated at any byte does not close the connection.", data_truncated, Fault::DiesOfTruncatedData),
    Case::new(1004, "empty-datagram", MUST, HOSTILE, "An empty datagram neither closes the connection nor stops the server.", empty, Fault::DiesOfEmptyDatagram),
    Case::new(1005, "datagram-of-2000", MUST, "sizes", "Datagrams of 2,000 bytes neither close the connection nor stop the server.", long, Fault::DiesOfLongDatagram),
    Case::new(1006, "datagram-of-60000", MUST, HOSTILE, "Datagrams of 60,000 bytes neither close the connection nor stop the server.", longest, Fault::DiesOfLongDatagram),
    Case::new(1007, "datagram-of-1480-read", SHOULD, "sizes", "The peer reads a datagram of 1,480 bytes in a connection with the MTU 1492.", longer_than_mtu, Fault::DropsLongerThanMtu),
    Case::new(1008, "reply-1-no-amplifier", MUST, VALIDATION, "Reply 1 (06) is not longer than request 1 (05).", amplifies_1, Fault::PadsReplyOne),
    Case::new(1009, "reply-2-no-amplifier", MUST, VALIDATION, "The server sends at most three times the bytes of request 2 (07) to a client that sends nothing after it.", amplifies_2, Fault::RepeatsReplyTwo),
    Case::new(1010, "accepted-no-amplifier", SHOULD, VALIDATION, "After a connection request (09), a silent client gets at most three times the bytes it sent, not counting pings and acknowledgements.", amplifies_9, Fault::ResendsWildly),
    Case::new(1011, "incompatible-no-amplifier", MUST, VALIDATION, "Incompatible protocol version (19) is not longer than request 1 (05).", amplifies_19, Fault::LongIncompatible),
    Case::new(1012, "other-source-data", MUST, "datagrams", "The peer does not accept data for a connection from another port of the remote's host.", other_source, Fault::SharesConnectionsOfHost),
    Case::new(1013, "other-source-disconnection", MUST, "datagrams", "A disconnection notification (15) from another port of the remote's host does not close the connection.", other_source_15, Fault::SharesConnectionsOfHost),
    Case::new(1014, "refusals-in-connection", MUST, "offline-messages", "Refusals from the remote's address do not close a connection: connection attempt failed (11), already connected (12), no free incoming connections (14), connection banned (17) and IP recently connected (1A).", refusals, Fault::BelievesRefusals),
    Case::new(1015, "reply-in-connection", MUST, "both-dial", "Connection request accepted (10) from a client does not close the connection.", accepted, Fault::DiesOfId(id::ACCEPTED)),
    Case::new(1016, "request-again", MUST, "both-dial", "A connection request (09) in an open connection does not close the connection.", request_again, Fault::DiesOfId(id::CONNECTION_REQUEST)),
    Case::new(1017, "new-incoming-again", MUST, "both-dial", "A second new incoming connection (13) does not close the connection.", new_incoming_again, Fault::DiesOfSecondNewIncoming),
    Case::new(1018, "offline-ids-inside", MUST, IDS, "The peer drops messages with ids of offline messages in a connection, and the connection stays open.", offline_ids, Fault::DiesOfId(id::REQUEST_1)),
    Case::new(1019, "ack-of-everything", MUST, HOSTILE, "The peer still answers pings in time after acknowledgements of nearly all 2^24 datagram numbers.", ack_all, Fault::HangsOnWideAck),
    Case::new(1020, "nak-of-everything", MUST, HOSTILE, "The peer still answers pings in time after negative acknowledgements of nearly all 2^24 datagram numbers.", nak_all, Fault::HangsOnWideAck),
    Case::new(1021, "flood-of-requests", MUST, OPENING, "The server still accepts a client after 300 copies of request 1 (05) from 30 addresses.", flood, Fault::DiesOfRequests(200)),
    Case::new(1022, "short-control", MUST, HOSTILE, "Control messages that are truncated at any byte do not stop the server: it answers pings and opens a new connection.", short_control, Fault::DiesOfShortControl),
    Case::new(1023, "request-truncated", MUST, HOSTILE, "The server does not accept a connection request (09) that is truncated before its security byte.", request_truncated, Fault::AcceptsShortRequest),
    Case::new(1024, "unfinished-handshakes", MUST, OPENING, "The server still accepts a client while eight other clients have sent nothing after reply 2 (08).", unfinished, Fault::HalfOpenLimit(4)),
];

const OPENING: &str = "opening-a-connection";

/// A small random number generator with a fixed seed, so that each run sends the same bytes.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len = self.next() % 200 + 3;
        (0..len).map(|_| self.next() as u8).collect()
    }
}

fn garbage_offline(context: &mut Context) -> Check {
    let mut random = Random(0x1001);
    let mut link = context.link()?;
    for _ in 0..300 {
        link.send(&random.bytes())?;
    }
    link.silence("a datagram of random bytes")?;
    link.still_answers("300 datagrams of random bytes")
}

fn garbage_connected(context: &mut Context) -> Check {
    let mut random = Random(0x1002);
    let mut session = context.open()?;
    for _ in 0..300 {
        let mut bytes = random.bytes();
        bytes[0] |= 0x80;
        session.link.send(&bytes)?;
    }
    session.quiet()?;
    // Random bytes may close this connection, but must not stop the server.
    let mut link = context.link()?;
    link.still_answers("random bytes in a connection")?;
    context.open()?.still_answers("random bytes in an earlier connection")
}

fn data_truncated(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let capsules = [
        Capsule { reliability: 4, number: 60, order: 9, channel: 20, ..Capsule::unreliable(vec![4; 12]) },
        Capsule::ordered(61, 9, 20, vec![4; 12]),
    ];
    for len in 1..wire::data(0x84, 0, &capsules).len() {
        let whole = wire::data(0x84, session.number, &capsules);
        session.link.send(&whole[..len])?;
        session.number += u32::from(len > 3);
    }
    session.still_answers("truncated datagrams")
}

fn empty(context: &mut Context) -> Check {
    let mut session = context.open()?;
    session.link.send(&[])?;
    session.still_answers("an empty datagram")?;
    let mut link = context.link()?;
    link.send(&[])?;
    link.still_answers("an empty datagram")
}

fn of_length(context: &mut Context, len: usize) -> Check {
    let mut session = context.open()?;
    let mut bytes = vec![0x86; len];
    session.link.send(&bytes)?;
    bytes[0] = 0x01;
    session.link.send(&bytes)?;
    session.still_answers(&format!("datagrams of {len} bytes"))?;
    session.link.still_answers(&format!("datagrams of {len} bytes"))
}

fn long(context: &mut Context) -> Check {
    of_length(context, 2000)
}

fn longest(context: &mut Context) -> Check {
    of_length(context, 60_000)
}

fn longer_than_mtu(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let filler = Capsule::unreliable(vec![4; 1480 - 4 - 3 - 3 - 9]);
    session.send(&[filler, Capsule::unreliable(wire::connected_ping(1007))])?;
    session.expect_pong(1007, "a datagram of 1,480 bytes")
}

fn amplifies_1(context: &mut Context) -> Check {
    let mut link = context.link()?;
    for len in [548, 1172, 1464] {
        let (bytes, _) = reply_1(&mut link, context.options.version, len)?;
        ensure(bytes.len() <= len, || {
            format!("reply 1 (06) has {} bytes, and request 1 (05) has {len}", bytes.len())
        })?;
    }
    Ok(())
}

/// Counts the bytes received within `time`. Fails if they exceed three times the bytes sent.
fn at_most_thrice(link: &mut Link, time: Duration) -> Check {
    let deadline = Instant::now() + time;
    while link.receive(deadline)?.is_some() {}
    let (sent, received) = (link.sent, link.received);
    ensure(received <= 3 * sent, || format!("the server sent {received} bytes for {sent} bytes"))
}

fn amplifies_2(context: &mut Context) -> Check {
    let mut link = context.link()?;
    // The smallest request gives an attacker the largest amplification.
    let (_, reply) = reply_1(&mut link, context.options.version, 548)?;
    (link.sent, link.received) = (0, 0);
    let request = session::request_2(&link, reply, reply.mtu, new_guid());
    link.send(&request)?;
    at_most_thrice(&mut link, context.timing.answer * 3)
}

fn amplifies_9(context: &mut Context) -> Check {
    let mut session = context.dial_with(wire::SMALLEST_MTU, new_guid())?;
    session.acknowledges = false;
    session.answers_pings = false;
    let request = wire::connection_request(session.guid, now(), &context.password());
    session.send_reliable(request)?;
    session.pass(context.timing.answer * 6)?;
    let paid: usize =
        session.arrivals.iter().filter(|arrival| arrival.capsule.payload[0] != 0).map(size).sum();
    let sent = session.link.sent;
    ensure(paid <= 3 * sent, || format!("the server sent {paid} bytes for {sent} bytes"))
}

fn size(arrival: &session::Arrival) -> usize {
    arrival.capsule.payload.len() + 10
}

fn amplifies_19(context: &mut Context) -> Check {
    let mut link = context.link()?;
    let request = wire::request_1(0xfe, 46);
    link.send(&request)?;
    let longest = link.during_quiet()?.iter().map(Vec::len).max().unwrap_or_default();
    ensure(longest <= request.len(), || {
        format!("the answer has {longest} bytes, and request 1 (05) has {}", request.len())
    })
}

fn other_source(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let mut other = context.link()?;
    let capsule = Capsule::unreliable(wire::connected_ping(1012));
    other.send(&wire::data(0x84, session.number, &[capsule]))?;
    session.expect_no_pong(1012, "a datagram from another port")?;
    other.silence("a datagram for a connection from another port")?;
    session.still_answers("a datagram from another port")
}

fn other_source_15(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    let mut other = context.link()?;
    let capsule = Capsule::reliable(session.reliable, vec![id::DISCONNECTION]);
    other.send(&wire::data(0x84, session.number, &[capsule]))?;
    session.quiet()?;
    session.still_answers("a disconnection notification (15) from another port")
}

fn refusals(context: &mut Context) -> Check {
    let mut session = context.open()?;
    for id in [0x11, 0x12, 0x14, 0x17, 0x1a] {
        session.link.send(&wire::refusal(id, session.guid))?;
        session.link.send(&wire::refusal(id, session.reply_2.guid))?;
    }
    session.still_answers("refusals with the message ids 11, 12, 14, 17 and 1A")
}

fn harmless(context: &mut Context, message: impl Fn(&Session) -> Vec<u8>, what: &str) -> Check {
    let mut session = context.open_and_settle()?;
    let message = message(&session);
    session.send_reliable(message)?;
    session.quiet()?;
    session.still_answers(what)
}

fn accepted(context: &mut Context) -> Check {
    let mut ten = vec![id::ACCEPTED];
    wire::put_address(&mut ten, context.target);
    ten.extend([0, 0]);
    (0..10).for_each(|_| wire::put_address(&mut ten, wire::unassigned()));
    ten.extend([0; 16]);
    harmless(context, |_| ten.clone(), "connection request accepted (10) from the client")
}

fn request_again(context: &mut Context) -> Check {
    let password = context.password();
    let request = |session: &Session| wire::connection_request(session.guid, now(), &password);
    harmless(context, request, "a connection request (09) in the open connection")
}

fn new_incoming_again(context: &mut Context) -> Check {
    let target = context.target;
    harmless(context, |_| wire::new_incoming(target, 10, 0, 0), "a second new incoming connection (13)")
}

fn offline_ids(context: &mut Context) -> Check {
    let mut session = context.open_and_settle()?;
    for id in [0x01, 0x02, 0x05, 0x06, 0x07, 0x08, 0x0d, 0x12, 0x14, 0x17, 0x19, 0x1a] {
        session.send_reliable([&[id][..], &wire::MAGIC, &[0; 20]].concat())?;
    }
    session.quiet()?;
    session.still_answers("messages with ids of offline messages in the connection")
}

fn wide(context: &mut Context, flags: u8) -> Check {
    let mut session = context.open_and_settle()?;
    let record = (0, 0xff_fffe);
    for _ in 0..3 {
        session.link.send(&wire::records(flags, &[record; 200]))?;
    }
    session.still_answers("600 records of the numbers 0 to FFFFFE")
}

fn ack_all(context: &mut Context) -> Check {
    wide(context, 0xc0)
}

fn nak_all(context: &mut Context) -> Check {
    wide(context, 0xa0)
}

fn flood(context: &mut Context) -> Check {
    for _ in 0..30 {
        let mut link = context.link()?;
        for _ in 0..10 {
            link.send(&wire::request_1(context.options.version, 548))?;
        }
        // The receive buffer of the server holds only some of them.
        link.receive(Instant::now() + context.timing.quiet / 4)?;
    }
    context.open()?.still_answers("300 copies of request 1 (05)")
}

fn short_control(context: &mut Context) -> Check {
    let mut session = context.open()?;
    let messages = [
        wire::connected_ping(1),
        wire::connected_pong(1, 1),
        wire::connection_request(1, 1, b""),
        wire::new_incoming(context.target, 2, 1, 1),
    ];
    for message in &messages {
        for len in 1..message.len() {
            session.send_reliable(message[..len].to_vec())?;
        }
    }
    session.quiet()?;
    session.link.still_answers("truncated control messages")?;
    context.open()?.still_answers("truncated control messages in an earlier connection")
}

fn request_truncated(context: &mut Context) -> Check {
    let mut session = context.dial()?;
    let request = wire::connection_request(session.guid, 1, b"");
    session.send_reliable(request[..12].to_vec())?;
    session.quiet()?;
    session::recover(context)?;
    ensure(session.first(id::ACCEPTED).is_none(), || {
        "the server accepted a truncated connection request (09)".into()
    })
}

fn unfinished(context: &mut Context) -> Check {
    for _ in 0..8 {
        context.dial()?;
    }
    context.open()?.still_answers("eight unfinished handshakes")
}
