//! Probing of a receiver with full memory.
//!
//! Usually lost messages precede new ones. However, a receiver with full memory drops messages too. Then only other
//! messages may free its memory, such as the missing parts of a split message. RakNet has no packet that reports this:
//! to the sender, the dropped messages look lost. After a few consecutive timeouts the sender therefore probes all send
//! sources in rotation, each in datagrams of its own. Most datagrams go to the source that was acknowledged last.

use crate::raknet::connection::block_header::{OutgoingMessage, SendSource};

/// While a source works, one of this many datagrams probes another source.
const PROBE_INTERVAL: u8 = 8;
/// [`PROBE_INTERVAL`] while no source is known to work.
const FIRST_PROBE_INTERVAL: u8 = 2;

/// The results of probing a receiver that seems to be blocked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockedReceiver {
    /// The index of the next source to probe.
    next_probe: u8,
    /// The number of datagrams until the next probe.
    until_probe: u8,
    /// The source that was acknowledged last.
    working: Option<SendSource>,
    /// The split message with the latest acknowledged part: the receiver has reserved memory for its rest.
    split_id: Option<u16>,
}

impl BlockedReceiver {
    /// Returns the send source for the next datagram.
    ///
    /// While no source works, it is usually the oldest lost message, because the receiver buffers later messages until
    /// it arrives.
    pub(super) fn source(&mut self) -> SendSource {
        if let Some(left) = self.until_probe.checked_sub(1) {
            self.until_probe = left;
            return self.working.unwrap_or(SendSource::OldestLost);
        }
        self.until_probe = if self.working.is_some() { PROBE_INTERVAL - 1 } else { FIRST_PROBE_INTERVAL - 1 };
        self.next_probe()
    }

    /// Returns the next source to probe.
    pub(super) fn next_probe(&mut self) -> SendSource {
        let source = SendSource::PROBED.get(usize::from(self.next_probe)).copied().unwrap_or_default();
        self.next_probe = (self.next_probe + 1) % SendSource::PROBED.len() as u8;
        source
    }

    /// Handles an acknowledged datagram with messages of `source`; `message` is the first of them.
    pub(super) fn on_ack(&mut self, source: SendSource, message: &OutgoingMessage) {
        if !matches!(source, SendSource::Usual | SendSource::PathProbe) {
            self.working = Some(source);
        }
        if message.is_split() {
            self.split_id = Some(message.split_id());
        }
    }

    /// Handles a lost datagram with messages of `source`. If `source` was the working source, it is forgotten.
    pub(super) fn on_lost(&mut self, source: SendSource) {
        if self.working == Some(source) {
            self.working = None;
        }
    }

    /// Returns true if this is a part of the message for which the receiver has reserved memory.
    pub(super) fn prefers(&self, message: &OutgoingMessage) -> bool {
        message.is_split() && self.split_id == Some(message.split_id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raknet::delivery::Priority;

    #[test]
    fn every_send_source_is_tried_while_none_is_acknowledged() {
        let mut blocked = BlockedReceiver::default();
        let tried: [SendSource; SendSource::PROBED.len() * FIRST_PROBE_INTERVAL as usize] =
            core::array::from_fn(|_| blocked.source());
        assert!(SendSource::PROBED.iter().all(|source| tried.contains(source)));
    }

    #[test]
    fn most_datagrams_use_the_send_source_acknowledged_last() {
        let mut blocked = BlockedReceiver::default();
        blocked.on_ack(SendSource::NewestLost, &OutgoingMessage::default());
        let tried: [SendSource; 64] = core::array::from_fn(|_| blocked.source());
        let count = |source| tried.iter().filter(|tried| **tried == source).count();
        assert!(count(SendSource::NewestLost) >= 50, "{tried:?}");
        assert!(SendSource::PROBED.iter().all(|source| count(*source) > 0));
    }

    #[test]
    fn a_working_send_source_is_forgotten_when_its_datagram_is_lost() {
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
