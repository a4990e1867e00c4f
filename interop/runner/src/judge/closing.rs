//! Idle connections, and the end of a connection.

use super::talk::Talk;
use super::transport;
use crate::capture::{Capture, End};
use crate::cases::Case;
use crate::dissect::{Message, Packet, dissect};
use crate::finding::Broken;
use crate::rules;
use rakwire_conformance::wire::id;
use std::time::Duration;

/// The time for the pong of a connected ping.
const PONG_TIME: Duration = Duration::from_millis(1_500);
/// The offset of the time in a connected ping or pong.
const TIME: std::ops::Range<usize> = 1..9;

fn goodbye_of<'a>(talk: &'a Talk<'_>, end: End) -> Option<&'a Message> {
    talk.of(end).iter().find(|message| message.id() == Some(id::DISCONNECTION))
}

/// Checks that a connection without messages stays open and alive.
pub(super) fn idle(case: &Case, talk: &Talk<'_>) -> Result<(), Broken> {
    let of_number = |number| talk.user(End::Client).find(|message| message.number() == Some(number));
    let (Some(first), Some(last)) = (of_number(0), of_number(case.count - 1)) else {
        return Err(Broken::missing(rules::PAUSE, "its messages were not sent"));
    };
    let pause = last.at.saturating_sub(first.at);
    if pause < Duration::from_secs(case.pause) * 9 / 10 {
        let why = format!("{:.1} s after the message before it", pause.as_secs_f64());
        return Err(last.breaks(rules::PAUSE, why));
    }
    for end in [End::Client, End::Server] {
        if let Some(goodbye) = goodbye_of(talk, end).filter(|goodbye| goodbye.at < last.at) {
            let why = format!("the {} ended the connection", end.name());
            return Err(goodbye.breaks(rules::KEPT_OPEN, why));
        }
        let (from, until) = (first.at + pause / 10, last.at);
        let sent = talk.capture.of(end).any(|(_, sent)| (from..until).contains(&sent.at));
        if !sent {
            return Err(Broken::missing(
                rules::KEPT_ALIVE,
                format!("the {} sent nothing in the pause", end.name()),
            ));
        }
        pings_answered(talk, end, last.at)?;
    }
    Ok(())
}

/// Checks that the pings of an end that arrived before a time are answered. A peer may answer only the newest of several.
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
            return Err(ping.breaks(rules::PING_ANSWERED, why));
        }
    }
    Ok(())
}

/// Checks that the client disconnects, and that the server acknowledges it and sends nothing else afterwards.
pub(super) fn goodbye(talk: &Talk<'_>) -> Result<(), Broken> {
    let goodbye = goodbye_of(talk, End::Client)
        .ok_or_else(|| Broken::missing(rules::GOODBYE, "the client sent no message 15"))?;
    if goodbye.arrived.is_none() {
        return Err(goodbye.breaks(rules::GOODBYE, "it never arrived"));
    }
    let acknowledged = transport::acknowledgement_of(talk.capture, End::Client, goodbye)
        .ok_or_else(|| goodbye.breaks(rules::GOODBYE_ACKED, "no acknowledgement has its datagram"))?;
    match later_data(talk.capture, acknowledged) {
        Some((record, len)) => {
            let why = format!("{len} bytes with messages after the acknowledgement of message 15");
            Err(Broken::at(rules::SILENCE, record, 4, why))
        }
        None => Ok(()),
    }
}

/// Returns a datagram with capsules that the server sent after a time.
fn later_data(capture: &Capture, after: Duration) -> Option<(usize, usize)> {
    capture.of(End::Server).find_map(|(record, sent)| {
        let has_capsules =
            matches!(dissect(&sent.bytes), Packet::Data { capsules, .. } if !capsules.is_empty());
        (sent.at > after && has_capsules).then_some((record, sent.bytes.len()))
    })
}
