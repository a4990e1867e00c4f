//! Judges how connections stay open while idle, and how they close.

use super::talk::Talk;
use super::transport;
use crate::capture::{Capture, End};
use crate::cases::Case;
use crate::dissect::{DATAGRAM_HEADER, Message, Packet, dissect};
use crate::finding::Broken;
use crate::rules;
use rakwire_conformance::wire::id;
use std::time::Duration;

/// The time limit for the pong of a connected ping.
const PONG_TIME: Duration = Duration::from_millis(1_500);
/// The minimum fraction of a pause that a client must wait. Less than 1, because its timer may be coarse.
const MIN_PAUSE: f64 = 0.9;
/// The fraction of a pause in which the first message, its echo and their acknowledgements may still be in
/// flight.
const BUSY_PART: f64 = 0.1;
/// The offsets of the time in a connected ping or pong.
const TIME: std::ops::Range<usize> = 1..9;

/// Checks that a connection without messages stays open and alive.
///
/// Missing messages are judged elsewhere. If the message after the pause is missing, the pause lasts until
/// the end of the capture.
pub(super) fn idle(case: &Case, talk: &Talk<'_>) -> Result<(), Broken> {
    let of_number = |number| talk.user(End::Client).find(|message| message.number() == Some(number));
    let Some(first) = of_number(0) else { return Ok(()) };
    let last = of_number(case.count - 1);
    let until = last.map_or_else(|| talk.capture.end(), |last| last.at);
    for end in [End::Server, End::Client] {
        let goodbye = talk.goodbye_of(end).filter(|goodbye| last.is_none() || goodbye.at < until);
        if let Some(goodbye) = goodbye {
            let why = format!("the {} closed the connection", end.name());
            return Err(goodbye.breaks(rules::KEPT_OPEN, why));
        }
    }
    let pause = until.saturating_sub(first.at);
    if let Some(last) = last.filter(|_| pause < Duration::from_secs(case.pause).mul_f64(MIN_PAUSE)) {
        let why = format!("sent {:.1} s after the previous message", pause.as_secs_f64());
        return Err(last.breaks(rules::PAUSE, why));
    }
    for end in [End::Client, End::Server] {
        let from = first.at + pause.mul_f64(BUSY_PART);
        let sent = talk.capture.of(end).any(|(_, sent)| (from..until).contains(&sent.at));
        if !sent {
            let why = format!("the {} sent no datagram during the pause", end.name());
            return Err(Broken::missing(rules::KEPT_ALIVE, end, why));
        }
        pings_answered(talk, end, until)?;
    }
    Ok(())
}

/// Checks that the pings of one side that arrived before `until` are answered. A peer may answer only the
/// newest of several.
fn pings_answered(talk: &Talk<'_>, end: End, until: Duration) -> Result<(), Broken> {
    let pings: Vec<&Message> =
        talk.of(end).iter().filter(|message| message.id() == Some(id::CONNECTED_PING)).collect();
    let pongs: Vec<&Message> =
        talk.of(end.other()).iter().filter(|message| message.id() == Some(id::CONNECTED_PONG)).collect();
    for (index, ping) in pings.iter().enumerate() {
        let Some(arrived) = ping.arrived.filter(|&arrived| arrived + PONG_TIME < until) else { continue };
        let times: Vec<_> = pings.iter().skip(index).map(|ping| ping.bytes().get(TIME)).collect();
        let answered = pongs.iter().any(|pong| {
            (arrived..=arrived + PONG_TIME).contains(&pong.at) && times.contains(&pong.bytes().get(TIME))
        });
        if !answered {
            let why = format!("the {} sent no pong with this time", end.other().name());
            return Err(ping.shows(rules::PING_ANSWERED, end.other(), why));
        }
    }
    Ok(())
}

/// Checks that the client disconnects, and that the server then sends nothing except the acknowledgement.
pub(super) fn goodbye(talk: &Talk<'_>) -> Result<(), Broken> {
    let goodbye = talk
        .goodbye_of(End::Client)
        .ok_or_else(|| Broken::missing(rules::GOODBYE, End::Client, "the client sent no message 15"))?;
    if goodbye.arrived.is_none() {
        return Err(goodbye.breaks(rules::GOODBYE, "the message did not arrive"));
    }
    let acknowledged =
        transport::acknowledgement_of(talk.capture, End::Client, goodbye).ok_or_else(|| {
            goodbye.shows(rules::GOODBYE_ACKED, End::Server, "no acknowledgement covers its datagram")
        })?;
    match later_data(talk.capture, acknowledged) {
        Some((record, len)) => {
            let why = format!(
                "a datagram of {len} bytes with messages, sent after the acknowledgement of message 15"
            );
            Err(Broken::at(rules::SILENCE, End::Server, record, DATAGRAM_HEADER, why))
        }
        None => Ok(()),
    }
}

/// Returns the index and the length of the first datagram with capsules that the server sent after the time `after`.
fn later_data(capture: &Capture, after: Duration) -> Option<(usize, usize)> {
    capture.of(End::Server).find_map(|(record, sent)| {
        let has_capsules =
            matches!(dissect(&sent.bytes), Packet::Data { capsules, .. } if !capsules.is_empty());
        (sent.at > after && has_capsules).then_some((record, sent.bytes.len()))
    })
}
