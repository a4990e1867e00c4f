//! Judges datagrams, their numbers, acknowledgements, retransmissions and the effects of the path.

use super::talk::Talk;
use crate::capture::{Capture, End, Fate, Record};
use crate::cases::Case;
use crate::dissect::{Message, NUMBER, Packet, RANGES, dissect};
use crate::finding::{Broken, By};
use crate::path::{self, Kind, NARROW_MTU};
use crate::rules;
use rakwire_conformance::wire::UDP_OVERHEAD;
use std::collections::BTreeMap;
use std::time::Duration;

/// The time limit for an acknowledgement. Messages that arrive within this time before the end of the capture are not
/// judged.
/// Some peers delay their first acknowledgement by 1.5 s.
const ACKNOWLEDGEMENT_TIME: Duration = Duration::from_millis(2_500);

/// The maximum time that a sender may wait before it retransmits a reliable message.
const RESEND_TIME: Duration = Duration::from_secs(2);

/// Checks that every datagram can be decoded.
pub(super) fn readable(capture: &Capture) -> Result<(), Broken> {
    for (record, sent) in capture.records.iter().enumerate() {
        let (offset, why) = match dissect(&sent.bytes) {
            Packet::Unreadable => (0, "neither an offline message nor a datagram of a connection"),
            Packet::Data { broken: Some(offset), .. } => (offset, "not a valid capsule"),
            _ => continue,
        };
        return Err(Broken::at(
            rules::READABLE,
            sent.from,
            record,
            offset,
            format!("{why}, sent by the {}", sent.from.name()),
        ));
    }
    Ok(())
}

/// Checks that no datagram number is used twice.
pub(super) fn fresh_numbers(capture: &Capture) -> Result<(), Broken> {
    for end in [End::Client, End::Server] {
        let mut used = BTreeMap::new();
        for (record, sent) in capture.of(end) {
            let Packet::Data { number, .. } = dissect(&sent.bytes) else { continue };
            if let Some(before) = used.insert(number, record) {
                let why =
                    format!("the {} had already sent datagram {before} with the number {number}", end.name());
                return Err(Broken::at(rules::FRESH_NUMBER, end, record, NUMBER, why));
            }
        }
    }
    Ok(())
}

/// Checks that acknowledgements name only datagrams that had arrived.
pub(super) fn acknowledgements_of_sent(capture: &Capture) -> Result<(), Broken> {
    for end in [End::Client, End::Server] {
        let arrivals = arrivals_of(capture, end.other());
        for (record, sent) in capture.of(end) {
            let Packet::Ack(ranges) = dissect(&sent.bytes) else { continue };
            let has_arrived = |number: &u32| arrivals.get(number).is_some_and(|&at| at <= sent.at);
            let mut numbers = ranges.into_iter().flat_map(|(first, last)| first..=last);
            if let Some(number) = numbers.find(|number| !has_arrived(number)) {
                let why =
                    format!("the {} acknowledges the number {number}, which had not arrived", end.name());
                return Err(Broken::at(rules::ACK_OF_SENT, end, record, RANGES, why));
            }
        }
    }
    Ok(())
}

/// Returns the first arrival time of each datagram number that one side sent.
fn arrivals_of(capture: &Capture, from: End) -> BTreeMap<u32, Duration> {
    let mut arrivals = BTreeMap::new();
    for (_, sent) in capture.of(from) {
        if let (Packet::Data { number, .. }, Some(at)) = (dissect(&sent.bytes), sent.arrived()) {
            let first = arrivals.entry(number).or_insert(at);
            *first = at.min(*first);
        }
    }
    arrivals
}

/// Returns the acknowledgements that reached a side, each as time, first and last number.
fn acknowledged_ranges(capture: &Capture, of: End) -> Vec<(Duration, u32, u32)> {
    let arrived = capture.of(of.other()).filter_map(|(_, sent)| Some((sent.at, sent.arrived()?, sent)));
    arrived
        .flat_map(|(at, _, sent)| match dissect(&sent.bytes) {
            Packet::Ack(ranges) => ranges.into_iter().map(|(first, last)| (at, first, last)).collect(),
            _ => Vec::new(),
        })
        .collect()
}

/// Returns the time at which a datagram that carried a message was acknowledged.
pub(super) fn acknowledgement_of(capture: &Capture, of: End, message: &Message) -> Option<Duration> {
    let ranges = acknowledged_ranges(capture, of);
    time_in(capture, &ranges, message)
}

fn time_in(capture: &Capture, ranges: &[(Duration, u32, u32)], message: &Message) -> Option<Duration> {
    let numbers =
        message.carriers.iter().filter_map(|&record| capture.records.get(record)).filter_map(number_of);
    numbers
        .flat_map(|number| ranges.iter().filter(move |range| (range.1..=range.2).contains(&number)))
        .map(|range| range.0)
        .min()
}

fn number_of(record: &Record) -> Option<u32> {
    match dissect(&record.bytes) {
        Packet::Data { number, .. } => Some(number),
        _ => None,
    }
}

/// Checks that reliable messages are acknowledged, if they arrived early enough.
pub(super) fn acknowledged(talk: &Talk<'_>) -> Result<(), Broken> {
    for end in [End::Client, End::Server] {
        let last = talk.capture.of(end.other()).last().map_or(Duration::ZERO, |(_, sent)| sent.at);
        // A receiver that has disconnected need not acknowledge.
        let receiver_left = talk.goodbye_of(end.other()).map_or(last, |goodbye| goodbye.at);
        let deadline = receiver_left.saturating_sub(ACKNOWLEDGEMENT_TIME);
        let ranges = acknowledged_ranges(talk.capture, end);
        for message in talk.of(end).iter().filter(|message| message.capsule.is_reliable()) {
            let is_due = message.arrived.is_some_and(|arrived| arrived < deadline);
            if is_due && time_in(talk.capture, &ranges, message).is_none() {
                let why = format!(
                    "the {} acknowledged none of the datagrams with this message",
                    end.other().name()
                );
                return Err(message.shows(rules::ACKED, end.other(), why));
            }
        }
    }
    Ok(())
}

/// Checks that the path affected a message from each side.
pub(super) fn path(case: &Case, talk: &Talk<'_>) -> Result<(), Broken> {
    let wanted = match case.path {
        Kind::Clean | Kind::Narrow => return Ok(()),
        Kind::Loss => Fate::Dropped,
        Kind::Reorder => Fate::Held,
        Kind::Duplicate => Fate::Doubled,
    };
    for end in [End::Client, End::Server] {
        let met = talk.capture.of(end).any(|(record, sent)| {
            let took_effect = wanted != Fate::Held || was_overtaken(talk.capture, record, sent);
            sent.fate == wanted && took_effect && path::carries_a_message(&sent.bytes)
        });
        if !met {
            let why = format!("the path applied its fault to no message of the {}", end.name());
            return Err(Broken::missing(rules::TOUCHED, end, why));
        }
    }
    Ok(())
}

fn was_overtaken(capture: &Capture, record: usize, held: &Record) -> bool {
    let mut later = capture.of(held.from).skip_while(|(other, _)| *other <= record);
    later.any(|(_, other)| other.arrived().is_some_and(|at| held.arrived().is_some_and(|held| at < held)))
}

/// Checks that the MTU of the connection fits the path.
pub(super) fn mtu_of_path(case: &Case, talk: &Talk<'_>) -> Result<(), Broken> {
    if case.path != Kind::Narrow || usize::from(talk.mtu) <= NARROW_MTU {
        return Ok(());
    }
    let why = format!("an MTU of {} on a path with an MTU of {NARROW_MTU}", talk.mtu);
    Err(Broken::missing(rules::PATH_MTU, By::Both, why))
}

/// Checks that no datagram of a connection exceeds its MTU.
pub(super) fn fits(talk: &Talk<'_>) -> Result<(), Broken> {
    for (record, sent) in talk.capture.records.iter().enumerate() {
        let len = sent.bytes.len() + UDP_OVERHEAD;
        if matches!(dissect(&sent.bytes), Packet::Data { .. }) && len > usize::from(talk.mtu) {
            let why = format!(
                "{len} bytes with headers, sent by the {} at an MTU of {}",
                sent.from.name(),
                talk.mtu
            );
            return Err(Broken::at(
                rules::FITS,
                sent.from,
                record,
                usize::from(talk.mtu).saturating_sub(UDP_OVERHEAD),
                why,
            ));
        }
    }
    Ok(())
}

/// Returns true if the receiver stayed connected for so long after the last transmission that the sender had
/// to retransmit.
fn had_time(talk: &Talk<'_>, message: &Message) -> bool {
    let attempts = message.carriers.iter().filter_map(|&record| talk.capture.records.get(record));
    let last = attempts.map(|sent| sent.at).max().unwrap_or_default();
    let receiver = message.from.other();
    let stayed_until = match talk.goodbye_of(receiver) {
        Some(goodbye) => goodbye.at,
        None => talk.capture.of(receiver).last().map_or(Duration::ZERO, |(_, sent)| sent.at),
    };
    stayed_until > last + RESEND_TIME
}

/// Checks that reliable messages in dropped datagrams arrived later.
pub(super) fn recovered(case: &Case, talk: &Talk<'_>) -> Result<(), Broken> {
    if case.path != Kind::Loss {
        return Ok(());
    }
    for end in [End::Client, End::Server] {
        for message in talk.user(end).filter(|message| message.capsule.is_reliable()) {
            if message.arrived.is_none() {
                let why = format!(
                    "the {} sent it {} times, and it never arrived",
                    end.name(),
                    message.carriers.len()
                );
                let by = if had_time(talk, message) { end.into() } else { By::Both };
                return Err(message.shows(rules::RECOVERED, by, why));
            }
        }
    }
    Ok(())
}
