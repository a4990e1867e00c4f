//! Guarantees that each trace must meet, independently of the reference:
//!
//! - no corrupted or duplicate messages
//! - sequenced messages in order
//! - messages only within a connection
//! - no acknowledgement of a message that did not arrive

use std::collections::BTreeSet;

use crate::difference::{Difference, has_end, listed};
use crate::script::Script;
use crate::trace::{Entry, ITSELF, Stream, Trace};
use crate::traffic::Traffic;

/// Returns the guarantees that a trace breaks at a peer.
pub(crate) fn broken(traffic: &Traffic<'_>, script: &Script, trace: &Trace, peer: usize) -> Vec<Difference> {
    let mut broken = Vec::new();
    let mut report = |stream: &str, text: String| {
        broken.push(Difference {
            script: script.name.clone(),
            peer: script.peers[peer].clone(),
            stream: format!("promise of {stream}"),
            reference: "kept".to_owned(),
            other: text,
        });
    };
    for (stream, list) in trace.streams(peer) {
        if let Stream::Messages { reliability, .. } = stream {
            let numbers: Vec<u64> =
                list.iter().filter_map(|text| text.split(':').next()?.parse().ok()).collect();
            let is_increasing = numbers.windows(2).all(|pair| pair[0] < pair[1]);
            let different: BTreeSet<_> = numbers.iter().collect();
            if matches!(reliability, 1 | 3 | 4) && !is_increasing {
                report(&stream.to_string(), format!("out of order: {}", listed(&list)));
            } else if different.len() < numbers.len() {
                report(&stream.to_string(), format!("twice: {}", listed(&list)));
            }
        }
        if list.iter().any(|text| text == "damaged") {
            report(&stream.to_string(), "damaged bytes".to_owned());
        }
    }
    if let Some(from) = outside(&trace.peers[peer]) {
        report("connections", format!("a message from {from} without a connection"));
    }
    for (with, number) in acknowledged_in_vain(traffic, script, trace, peer) {
        report(
            &format!("receipts of {with}"),
            format!("{number} acked, but {with} has not received the message"),
        );
    }
    broken
}

/// Returns messages that were acknowledged, although the remote application did not receive them.
fn acknowledged_in_vain(
    traffic: &Traffic<'_>,
    script: &Script,
    trace: &Trace,
    peer: usize,
) -> Vec<(String, u32)> {
    if !traffic.waits_for_receipts() {
        return Vec::new();
    }
    let name = &script.peers[peer];
    let in_vain = trace.peers[peer].iter().filter_map(|entry| {
        let Entry::Receipt { with, number, is_acknowledged: true } = entry else { return None };
        // The original reports no number for the receipt of a message to itself.
        let number = u32::try_from(*number).ok()?;
        let is_own = with == ITSELF;
        let remote = if is_own { peer } else { script.peers.iter().position(|known| known == with)? };
        let sender = if is_own { ITSELF } else { name };
        let has_message = trace.peers[remote].iter().any(|entry| {
            matches!(entry, Entry::Message(message) if message.from == sender && message.number == number)
        });
        let is_lost = has_end(trace, peer, remote);
        (!has_message && !traffic.cut_off(peer, remote, is_lost).has(number)).then(|| (with.clone(), number))
    });
    in_vain.collect()
}

/// Returns the sender of a message that was received outside a connection, if there is one.
fn outside(entries: &[Entry]) -> Option<String> {
    let mut open = BTreeSet::new();
    for entry in entries {
        match entry {
            Entry::Connection { event, with }
                if event.starts_with("accepted") || event.starts_with("incoming") =>
            {
                open.insert(with.clone());
            }
            Entry::Connection { event, with }
                if event.starts_with("disconnected") || event.starts_with("lost") =>
            {
                open.remove(with);
            }
            Entry::Message(message) if message.from != ITSELF && !open.contains(&message.from) => {
                return Some(message.from.clone());
            }
            _ => {}
        }
    }
    None
}
