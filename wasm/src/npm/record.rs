//! Events as records: a kind, two numbers and bytes.

#[cfg(feature = "npm-raknet-server")]
use rakwire::endpoint::RefuseReason;
use rakwire::endpoint::{Direction, Event, Outcome};

use super::buffer::Buffer;
use super::numbers::Numbers;

/// The kinds of events, as in `ts/rust.ts`.
const CONNECTED: u32 = 1;
const FAILED: u32 = 2;
const ENDED: u32 = 3;
const MESSAGE: u32 = 4;
const RECEIPT: u32 = 5;
const SENDING: u32 = 6;
const RECEIVING: u32 = 7;
/// An event that does not occur on a client connection.
const OTHER: u32 = 8;
const MTU: u32 = 9;
/// The kind of a refused client, as in `ts/server/peers.ts`.
#[cfg(feature = "npm-raknet-server")]
const REFUSED: u32 = 10;
/// The address returned if there is no memory for an event. Null means that there is no event.
const NO_MEMORY: *const u8 = core::ptr::without_provenance(1);

/// Writes an event and returns its address, or [`NO_MEMORY`].
pub(super) fn write<P: Numbers>(event: &Event<'_, P>, buffer: &mut Buffer) -> *const u8 {
    written(write_numbers(event, buffer))
}

fn written(at: *const u8) -> *const u8 {
    if at.is_null() { NO_MEMORY } else { at }
}

fn write_numbers<P: Numbers>(event: &Event<'_, P>, buffer: &mut Buffer) -> *const u8 {
    let (numbers, more) = match event {
        Event::Connected { .. } => ([CONNECTED, 0, 0], 0),
        Event::ConnectFailed { reason, .. } => {
            let (number, detail) = P::failure(*reason);
            ([FAILED, number, detail], 0)
        }
        Event::Disconnected { reason, .. } => ([ENDED, P::end(*reason), 0], 0),
        Event::Message { delivery, message, .. } => {
            let (reliability, channel) = P::delivery_numbers(*delivery);
            let numbers = [MESSAGE, reliability, channel];
            return buffer.write(numbers, message.len(), message.chunks());
        }
        Event::Receipt { receipt, outcome, .. } => {
            ([RECEIPT, receipt.0, u32::from(*outcome == Outcome::Acknowledged)], 0)
        }
        Event::Progress { progress, .. } => {
            let kind = if progress.direction == Direction::Sending { SENDING } else { RECEIVING };
            let parts = progress.parts.to_le_bytes();
            let numbers = [kind, progress.message.into(), progress.done];
            return buffer.write(numbers, parts.len(), core::iter::once(&parts[..]));
        }
        Event::MtuChanged { mtu, .. } => ([MTU, (*mtu).into(), 0], 0),
        #[cfg(feature = "npm-raknet-server")]
        Event::Refused { reason, is_validated, .. } => {
            ([REFUSED, refuse_number(*reason), u32::from(*is_validated)], 0)
        }
        Event::Pong { .. } | _ => ([OTHER, 0, 0], 0),
    };
    buffer.write(numbers, more, core::iter::empty())
}

/// Returns the number of a refuse reason, as in `ts/server/peers.ts`.
#[cfg(feature = "npm-raknet-server")]
fn refuse_number(reason: RefuseReason) -> u32 {
    match reason {
        RefuseReason::WrongPassword => 1,
        RefuseReason::NoIdentity => 2,
        RefuseReason::InvalidIdentity => 3,
        RefuseReason::NoToken => 4,
        RefuseReason::TokenExpired => 5,
        RefuseReason::TokenForOtherServer => 6,
        RefuseReason::TokenOfOtherClient => 7,
        RefuseReason::TokenUsed => 8,
        RefuseReason::TokenStoreFull => 9,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_without_memory_differs_from_no_event() {
        let mut buffer = Buffer::new();
        let at = buffer.write([MESSAGE, 0, 0], usize::MAX, core::iter::empty());
        assert!(at.is_null());
        assert_eq!(written(at), NO_MEMORY);
        let at = buffer.write([MESSAGE, 0, 0], 3, core::iter::once(&b"abc"[..]));
        assert_eq!(written(at), at);
    }
}
