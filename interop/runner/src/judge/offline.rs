//! Judges unconnected pings and pongs.

use crate::capture::{Capture, End};
use crate::finding::Broken;
use crate::rules;
use rakwire_conformance::wire::{self, id};

/// The exclusive limit of the data length in a pong.
const DATA_LIMIT: usize = 400;
/// The offsets of the time in a ping or pong.
const TIME: std::ops::Range<usize> = 1..9;
/// The offset of the data in a pong.
const DATA: usize = 33;

/// Checks that a ping from the client was answered.
pub(super) fn ping(capture: &Capture) -> Result<(), Broken> {
    let times: Vec<(u64, std::time::Duration)> = capture
        .of(End::Client)
        .filter(|(_, sent)| matches!(wire::offline_id(&sent.bytes), Some(id::PING | id::PING_OPEN)))
        .filter_map(|(_, sent)| {
            let time = sent.bytes.get(TIME)?.try_into().ok()?;
            Some((u64::from_be_bytes(time), sent.arrived()?))
        })
        .collect();
    if times.is_empty() {
        return Err(Broken::missing(rules::PONG, End::Client, "the client sent no ping"));
    }
    let mut found = None;
    for (record, sent) in capture.of(End::Server) {
        let Some(pong) = wire::read_pong(&sent.bytes) else { continue };
        if !times.iter().any(|&(time, at)| time == pong.time && at <= sent.at) {
            return Err(Broken::at(
                rules::PONG,
                End::Server,
                record,
                TIME.start,
                format!("no earlier ping contains the time {}", pong.time),
            ));
        }
        found = found.or(Some((record, pong)));
    }
    let (record, pong) =
        found.ok_or_else(|| Broken::missing(rules::PONG, End::Server, "the server sent no pong"))?;
    if !(1..DATA_LIMIT).contains(&pong.data.len()) {
        let why = format!("the pong contains {} bytes of data", pong.data.len());
        return Err(Broken::at(rules::ADVERTISEMENT, End::Server, record, DATA, why));
    }
    Ok(())
}
