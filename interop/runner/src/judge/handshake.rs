//! Judges the seven messages of the handshake.

use super::talk::Task;
use crate::capture::{Capture, End, Record};
use crate::dissect::{Packet, dissect};
use crate::finding::Broken;
use crate::rules;
use rakwire_conformance::wire::{self, Reply1, Reply2, Request2, UDP_OVERHEAD, id};
use std::time::Duration;

/// The length of an id and the 16 magic bytes of offline messages.
const OFFLINE_HEADER: usize = 17;
/// The offset of the protocol version in request 1.
const VERSION: usize = OFFLINE_HEADER;
/// The offset of the cookie in request 2.
const COOKIE: usize = OFFLINE_HEADER;
/// The offset of the MTU in a reply 1 without a cookie: after the GUID and the security byte.
const REPLY_1_MTU: usize = OFFLINE_HEADER + 9;
/// The length of a cookie.
const COOKIE_LEN: usize = 4;
/// The offset of the client's address in reply 2: after the GUID. The MTU follows the address.
const REPLY_2_ADDRESS: usize = OFFLINE_HEADER + 8;
/// The messages with which a server refuses: connection attempt failed, already connected, no free
/// connections, banned, incompatible protocol version, and address connected recently.
const REFUSALS: [u8; 6] = [0x11, 0x12, 0x14, 0x17, 0x19, 0x1a];
/// The id of a connection request.
const CONNECTION_REQUEST: u8 = 0x09;

/// A step of the handshake, located in the capture.
#[derive(Clone, Copy, Debug)]
struct Step<'a> {
    record: usize,
    bytes: &'a [u8],
    arrived: Duration,
}

/// Finds the first matching datagram that a side sent at or after the time `after` and that arrived.
fn find<'a>(
    capture: &'a Capture,
    from: End,
    after: Duration,
    name: &str,
    fits: impl Fn(&Record) -> bool,
) -> Result<Step<'a>, Broken> {
    let found = capture.of(from).find_map(|(record, sent)| {
        let arrived = sent.arrived()?;
        (sent.at >= after && fits(sent)).then_some(Step { record, bytes: &sent.bytes, arrived })
    });
    found.ok_or_else(|| missing(capture, from, name))
}

/// Returns the finding of a missing step, with the server's refusal if it sent one.
fn missing(capture: &Capture, from: End, name: &str) -> Broken {
    let refusal = capture.of(End::Server).find_map(|(record, sent)| {
        wire::offline_id(&sent.bytes).filter(|id| REFUSALS.contains(id)).map(|id| (record, id))
    });
    let why = format!("no {name} from the {} arrived at this point of the handshake", from.name());
    match refusal {
        Some((record, id)) => Broken::at(
            rules::HANDSHAKE,
            End::Server,
            record,
            0,
            format!("{why}, and the server refused with message {id:02x}"),
        ),
        None => Broken::missing(rules::HANDSHAKE, from, why),
    }
}

fn is_offline(wanted: u8) -> impl Fn(&Record) -> bool {
    move |sent| wire::offline_id(&sent.bytes) == Some(wanted)
}

fn carries(wanted: u8) -> impl Fn(&Record) -> bool {
    move |sent| match dissect(&sent.bytes) {
        Packet::Data { capsules, .. } => {
            capsules.iter().any(|placed| placed.capsule.payload.first() == Some(&wanted))
        }
        _ => false,
    }
}

/// A completed handshake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handshake<'a> {
    capture: &'a Capture,
    reply_1: Step<'a>,
    request_2: Step<'a>,
    reply_2: Step<'a>,
    offered: Reply1,
    asked: Request2,
    agreed: Reply2,
}

/// Checks that the messages of the handshake arrived in order.
pub(super) fn check<'a>(task: &Task, capture: &'a Capture) -> Result<Handshake<'a>, Broken> {
    let request_1 = find(capture, End::Client, Duration::ZERO, "request 1", is_offline(id::REQUEST_1))?;
    let version = request_1.bytes.get(VERSION).copied().unwrap_or_default();
    if version != task.protocol {
        let why = format!("version {version} instead of {}", task.protocol);
        return Err(Broken::at(rules::VERSION, End::Client, request_1.record, VERSION, why));
    }
    let reply_1 = find(capture, End::Server, request_1.arrived, "reply 1", is_offline(id::REPLY_1))?;
    let request_2 = find(capture, End::Client, reply_1.arrived, "request 2", is_offline(id::REQUEST_2))?;
    let reply_2 = find(capture, End::Server, request_2.arrived, "reply 2", is_offline(id::REPLY_2))?;
    let cut_off = |from, step: &Step<'_>, name: &str| {
        Broken::at(rules::HANDSHAKE, from, step.record, step.bytes.len(), format!("{name} is truncated"))
    };
    let offered =
        wire::read_reply_1(reply_1.bytes).ok_or_else(|| cut_off(End::Server, &reply_1, "reply 1"))?;
    let asked =
        wire::read_request_2(request_2.bytes).ok_or_else(|| cut_off(End::Client, &request_2, "request 2"))?;
    let agreed =
        wire::read_reply_2(reply_2.bytes).ok_or_else(|| cut_off(End::Server, &reply_2, "reply 2"))?;
    let request =
        find(capture, End::Client, reply_2.arrived, "connection request 09", carries(CONNECTION_REQUEST))?;
    let accepted = find(capture, End::Server, request.arrived, "acceptance 10", carries(id::ACCEPTED))?;
    find(capture, End::Client, accepted.arrived, "message 13", carries(id::NEW_INCOMING))?;
    Ok(Handshake { capture, reply_1, request_2, reply_2, offered, asked, agreed })
}

impl Handshake<'_> {
    /// Returns the negotiated MTU.
    pub(super) fn mtu(&self) -> u16 {
        self.agreed.mtu
    }

    /// Checks the fields without which a connection may still work.
    pub(super) fn formal(&self) -> Result<(), Broken> {
        self.cookie()?;
        self.mtus()
    }

    /// Checks that request 2 returns the cookie of a reply 1 that the client received.
    fn cookie(&self) -> Result<(), Broken> {
        let mut replies = self
            .capture
            .of(End::Server)
            .take_while(|(record, _)| *record < self.request_2.record)
            .filter_map(|(_, sent)| wire::read_reply_1(&sent.bytes));
        let returned = self.asked.cookie;
        if replies.any(|reply| reply.cookie == returned) {
            return Ok(());
        }
        let why = match returned {
            Some(cookie) => format!("no reply 1 contained the cookie {cookie:08x}"),
            None => "request 2 contains no cookie".to_owned(),
        };
        Err(Broken::at(rules::COOKIE, End::Client, self.request_2.record, COOKIE, why))
    }

    /// Checks the MTU of both replies against the preceding requests.
    fn mtus(&self) -> Result<(), Broken> {
        let probed = self
            .capture
            .of(End::Client)
            .take_while(|(record, _)| *record < self.reply_1.record)
            .filter(|(_, sent)| sent.arrived().is_some() && is_offline(id::REQUEST_1)(sent))
            .map(|(_, sent)| sent.bytes.len() + UDP_OVERHEAD)
            .max()
            .unwrap_or_default();
        if usize::from(self.offered.mtu) > probed {
            let why = format!("reply 1 offers {} after requests of at most {probed}", self.offered.mtu);
            let offset = REPLY_1_MTU + self.offered.cookie.map_or(0, |_| COOKIE_LEN);
            return Err(Broken::at(rules::MTU, End::Server, self.reply_1.record, offset, why));
        }
        if self.agreed.mtu > self.asked.mtu {
            let why = format!(
                "reply 2 offers an MTU of {} after a request for {}",
                self.agreed.mtu, self.asked.mtu
            );
            let offset = REPLY_2_ADDRESS + wire::address_len(self.agreed.client);
            return Err(Broken::at(rules::MTU, End::Server, self.reply_2.record, offset, why));
        }
        Ok(())
    }
}
