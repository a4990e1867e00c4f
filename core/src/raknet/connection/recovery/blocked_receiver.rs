//! Probing a receiver whose memory is full.
//!
//! Lost messages go before new ones. But a receiver may also drop messages because its memory is full, and what frees
//! that memory may be other messages, such as the missing parts of a split message. RakNet has no way to say so: to the
//! sender, what was dropped looks lost. So after a few timeouts in a row all sources of messages are tried in turn, each
//! in datagrams of its own, and most datagrams go to the source from which something was acknowledged last.

use crate::raknet::connection::block_header::{OutgoingMessage, SendSource};

/// One in this many datagrams probes another source than the one that works.
const PROBE_INTERVAL: u8 = 8;
/// The same while no source is known to work.
const FIRST_PROBE_INTERVAL: u8 = 2;

/// What the probes of a receiver that seems to be blocked have shown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockedReceiver {
    /// The index of the next source to probe.
    next_probe: u8,
    /// Datagrams until the next probe.
    until_probe: u8,
    /// The source from which something was acknowledged last.
    working: Option<SendSource>,
    /// The split message of which a part was acknowledged last: the receiver has reserved memory for the rest.
    split_id: Option<u16>,
}

impl BlockedReceiver {
    /// Where the messages of the next datagram come from. While no source works, that is most often the oldest lost
    /// message, since others wait for it.
    pub(super) fn source(&mut self) -> SendSource {
        if let Some(left) = self.until_probe.checked_sub(1) {
            self.until_probe = left;
            return self.working.unwrap_or(SendSource::OldestLost);
        }
        self.until_probe = if self.working.is_some() { PROBE_INTERVAL - 1 } else { FIRST_PROBE_INTERVAL - 1 };
        self.next_probe()
    }

    /// The next source to probe.
    pub(super) fn next_probe(&mut self) -> SendSource {
        let source = SendSource::PROBED.get(usize::from(self.next_probe)).copied().unwrap_or_default();
        self.next_probe = (self.next_probe + 1) % SendSource::PROBED.len() as u8;
        source
    }

    /// A datagram with messages of `source` was acknowledged; `message` is the first of them.
    pub(super) fn on_ack(&mut self, source: SendSource, message: &OutgoingMessage) {
        if !matches!(source, SendSource::Usual | SendSource::PathProbe) {
            self.working = Some(source);
        }
        if message.is_split() {
            self.split_id = Some(message.split_id());
        }
    }

    /// A datagram with messages of `source` was lost: the source may no longer work.
    pub(super) fn on_lost(&mut self, source: SendSource) {
        if self.working == Some(source) {
            self.working = None;
        }
    }

    /// Whether this is a part of the message for which the receiver has reserved memory.
    pub(super) fn prefers(&self, message: &OutgoingMessage) -> bool {
        message.is_split() && self.split_id == Some(message.split_id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raknet::delivery::Priority;

    #[test]
    fn everything_is_tried_until_something_works() {
        let mut blocked = BlockedReceiver::default();
        let tried: [SendSource; SendSource::PROBED.len() * FIRST_PROBE_INTERVAL as usize] =
            core::array::from_fn(|_| blocked.source());
        assert!(SendSource::PROBED.iter().all(|source| tried.contains(source)));
    }

    #[test]
    fn what_works_gets_most_and_the_others_their_turns() {
        let mut blocked = BlockedReceiver::default();
        blocked.on_ack(SendSource::NewestLost, &OutgoingMessage::default());
        let tried: [SendSource; 64] = core::array::from_fn(|_| blocked.source());
        let count = |source| tried.iter().filter(|tried| **tried == source).count();
        assert!(count(SendSource::NewestLost) >= 50, "{tried:?}");
        assert!(SendSource::PROBED.iter().all(|source| count(*source) > 0));
    }

    #[test]
    fn what_works_no_longer_is_forgotten() {
        let mut blocked = BlockedReceiver::default();
        let low = SendSource::New(Priority::Low);
        blocked.on_ack(low, &OutgoingMessage::default());
        blocked.on_ack(SendSource::Usual, &OutgoingMessage::default());
        blocked.on_lost(SendSource::OldestLost);
        blocked.on_lost(SendSource::Usual);
        assert_eq!(blocked.working, Some(low));
        blocked.on_lost(low);
        assert_eq!(blocked.working, None);
    }
}
