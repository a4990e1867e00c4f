//! Judges the messages of the case and their echoes.

use super::talk::Talk;
use crate::capture::End;
use crate::cases::Case;
use crate::dissect::Message;
use crate::finding::{Broken, By};
use crate::rules;
use std::collections::BTreeMap;

/// Checks the messages that the client sent.
pub(super) fn sent(case: &Case, talk: &Talk<'_>) -> Result<(), Broken> {
    let mut numbers = BTreeMap::new();
    for message in talk.user(End::Client) {
        let number = message.number().filter(|&number| number < case.count);
        let Some(number) = number else {
            return Err(message.breaks(
                rules::SENT,
                format!("a message that is not part of the case: {:?}", message.number()),
            ));
        };
        if !message.is_complete {
            return Err(
                message.breaks(rules::PARTS, format!("not all of its {} parts were sent", message.parts))
            );
        }
        if message.bytes().len() != case.size {
            let why = format!("{} bytes instead of {}", message.bytes().len(), case.size);
            return Err(message.breaks(rules::SENT, why));
        }
        if message.capsule.reliability != case.wire {
            let why = format!("reliability {} instead of {}", message.capsule.reliability, case.wire);
            return Err(message.breaks(rules::KIND, why));
        }
        if numbers.insert(number, ()).is_some() {
            return Err(message.breaks(rules::SENT, format!("message {number} was sent twice")));
        }
    }
    Ok(())
}

/// Checks that the client sent all messages of the case.
///
/// A client that waits for missing echoes cannot send more. In that case the finding is about the server.
pub(super) fn all_sent(case: &Case, talk: &Talk<'_>) -> Result<(), Broken> {
    let sent = talk.user(End::Client).count();
    if sent < case.count as usize {
        let arrived = talk.user(End::Client).filter(|message| message.arrived.is_some()).count();
        let echoed = talk.user(End::Server).count();
        let by = if echoed < arrived { By::Server } else { By::Client };
        return Err(Broken::missing(rules::SENT, by, format!("{sent} of {} messages were sent", case.count)));
    }
    Ok(())
}

/// Checks that the client's messages arrived.
pub(super) fn arrived(talk: &Talk<'_>) -> Result<(), Broken> {
    match talk.user(End::Client).find(|message| message.arrived.is_none()) {
        Some(message) => Err(message.breaks(rules::ARRIVED, "the message did not arrive")),
        None => Ok(()),
    }
}

/// Checks that each message is echoed at most once, unchanged.
pub(super) fn echoed(talk: &Talk<'_>) -> Result<(), Broken> {
    let sent: BTreeMap<u32, &Message> =
        talk.user(End::Client).filter_map(|message| Some((message.number()?, message))).collect();
    let mut echoes = BTreeMap::new();
    for echo in talk.user(End::Server) {
        let original = echo.number().and_then(|number| sent.get(&number));
        let Some(original) = original else {
            return Err(echo.breaks(rules::ECHO_SAME, "an echo of a message that was not sent"));
        };
        if !echo.is_complete {
            return Err(echo.breaks(rules::PARTS, format!("not all of its {} parts were sent", echo.parts)));
        }
        if let Some(at) = difference(original.bytes(), echo.bytes()) {
            return Err(echo.breaks(rules::ECHO_SAME, format!("the echo differs from byte {at} on")));
        }
        if echoes.insert(echo.number(), ()).is_some() {
            return Err(echo.breaks(rules::ECHO_ONCE, "the message was already echoed"));
        }
    }
    Ok(())
}

/// Checks that echoes have the reliability of the case.
pub(super) fn echo_kinds(case: &Case, talk: &Talk<'_>) -> Result<(), Broken> {
    match talk.user(End::Server).find(|echo| echo.capsule.reliability != case.wire) {
        Some(echo) => {
            let why = format!("reliability {} instead of {}", echo.capsule.reliability, case.wire);
            Err(echo.breaks(rules::ECHO_KIND, why))
        }
        None => Ok(()),
    }
}

/// Checks that every message is echoed.
pub(super) fn all_echoed(case: &Case, talk: &Talk<'_>) -> Result<(), Broken> {
    let arrived = talk.user(End::Server).filter(|echo| echo.arrived.is_some()).count();
    if arrived < case.count as usize {
        return Err(Broken::missing(
            rules::ECHOED,
            End::Server,
            format!("{arrived} of {} messages were echoed", case.count),
        ));
    }
    Ok(())
}

/// Returns the first offset at which two messages differ.
fn difference(one: &[u8], other: &[u8]) -> Option<usize> {
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    (same < one.len().max(other.len())).then_some(same)
}

/// Checks the ordering and sequencing indices of messages and echoes against their numbers.
pub(super) fn indices(case: &Case, talk: &Talk<'_>) -> Result<(), Broken> {
    for end in [End::Client, End::Server] {
        let mut messages: Vec<&Message> = talk.user(end).collect();
        messages.sort_by_key(|message| message.number());
        for pair in messages.windows(2) {
            let [before, message] = pair else { continue };
            let both = [before, message].map(|message| &message.capsule);
            if both.iter().any(|capsule| capsule.reliability != case.wire) {
                continue;
            }
            let [one, other] = both;
            if case.wire == 3 && one.order >= other.order {
                let why = format!(
                    "the {} sent message {} with the ordering index {} and the previous one with {}",
                    end.name(),
                    message.number().unwrap_or_default(),
                    other.order,
                    one.order
                );
                return Err(message.breaks(rules::ORDER, why));
            }
            if one.is_sequenced() && (one.order, one.sequence) >= (other.order, other.sequence) {
                let why = format!(
                    "the {} sent it with the sequencing index {} after {}",
                    end.name(),
                    other.sequence,
                    one.sequence
                );
                return Err(message.breaks(rules::SEQUENCE, why));
            }
        }
    }
    Ok(())
}
