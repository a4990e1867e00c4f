//! Which messages are tried when nothing gets through any more.
//!
//! What was lost goes before what is new. But a peer may also refuse messages for want of room that only others can
//! make, such as the rest of a message that arrives in parts. It has no way to say so: what it refuses looks lost. So
//! after a few timeouts in a row all sources of messages are tried in turn, each in datagrams of its own, and most
//! datagrams go to the one from which something was acknowledged last.

use super::block_header::BlockHeader;
use crate::raknet::delivery::Priority;

/// One in this many datagrams tries another source than the one that works, and more while none is known that does.
const EXPLORE: u8 = 8;
const EXPLORE_AT_FIRST: u8 = 2;

/// Where the messages of a datagram come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SendSource {
    /// What was lost, then what is new.
    #[default]
    Usual,
    OldestLost,
    /// Parts of the message of which one was acknowledged last.
    PartlyDelivered,
    NewestLost,
    New(Priority),
}

/// What there is to try.
const SOURCES: [SendSource; 7] = [
    SendSource::New(Priority::Immediate),
    SendSource::OldestLost,
    SendSource::New(Priority::High),
    SendSource::PartlyDelivered,
    SendSource::New(Priority::Medium),
    SendSource::NewestLost,
    SendSource::New(Priority::Low),
];

impl SendSource {
    /// How many sources there are to try before it is known that none has anything to send.
    pub(super) const COUNT: usize = SOURCES.len();

    /// A number for it; 0 is the usual one.
    pub(super) fn code(self) -> u32 {
        let place = SOURCES.iter().position(|source| *source == self);
        place.map_or(0, |place| u32::try_from(place + 1).unwrap_or(0))
    }

    fn from_code(code: u32) -> Option<Self> {
        SOURCES.get(usize::try_from(code.checked_sub(1)?).ok()?).copied()
    }
}

/// What was found out since nothing got through.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockedReceiver {
    /// What to try next.
    next: u8,
    /// Datagrams until something else than what works is tried.
    spare: u8,
    works: Option<SendSource>,
    /// The message in parts of which a part was acknowledged last: it has found its room.
    message: Option<u16>,
}

impl BlockedReceiver {
    /// What the next datagram tries. While nothing works, that is most often the oldest message: others wait for it.
    pub(super) fn source(&mut self) -> SendSource {
        if let Some(spare) = self.spare.checked_sub(1) {
            self.spare = spare;
            return self.works.unwrap_or(SendSource::OldestLost);
        }
        self.spare = if self.works.is_some() { EXPLORE - 1 } else { EXPLORE_AT_FIRST - 1 };
        self.explore()
    }

    /// What comes next whatever works.
    pub(super) fn explore(&mut self) -> SendSource {
        let source = SOURCES.get(usize::from(self.next)).copied().unwrap_or_default();
        self.next = (self.next + 1) % SOURCES.len() as u8;
        source
    }

    /// A datagram was acknowledged that began with this message.
    pub(super) fn on_acknowledged(&mut self, header: &BlockHeader) {
        self.works = SendSource::from_code(header.virtual_time).or(self.works);
        if header.split_count > 0 {
            self.message = Some(header.split_id);
        }
    }

    /// A datagram was lost that began with this message: what worked may work no longer.
    pub(super) fn on_lost(&mut self, header: &BlockHeader) {
        if self.works == SendSource::from_code(header.virtual_time) {
            self.works = None;
        }
    }

    /// Whether this is a part of the message that has found its room.
    pub(super) fn prefers(&self, header: &BlockHeader) -> bool {
        header.split_count > 0 && self.message == Some(header.split_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_tried_until_something_works() {
        let mut blocked_receiver = BlockedReceiver::default();
        let tried: [SendSource; SendSource::COUNT * EXPLORE_AT_FIRST as usize] =
            core::array::from_fn(|_| blocked_receiver.source());
        assert!(SOURCES.iter().all(|source| tried.contains(source)));
    }

    #[test]
    fn what_works_gets_most_and_the_others_their_turns() {
        let mut blocked_receiver = BlockedReceiver::default();
        let virtual_time = SendSource::NewestLost.code();
        blocked_receiver.on_acknowledged(&BlockHeader { virtual_time, ..BlockHeader::default() });
        let tried: [SendSource; 64] = core::array::from_fn(|_| blocked_receiver.source());
        let count = |source| tried.iter().filter(|tried| **tried == source).count();
        assert!(count(SendSource::NewestLost) >= 50, "{tried:?}");
        assert!(SOURCES.iter().all(|source| count(*source) > 0));
    }

    #[test]
    fn what_works_no_longer_is_forgotten() {
        let mut blocked_receiver = BlockedReceiver::default();
        let header =
            BlockHeader { virtual_time: SendSource::New(Priority::Low).code(), ..BlockHeader::default() };
        blocked_receiver.on_acknowledged(&header);
        blocked_receiver.on_lost(&BlockHeader { virtual_time: SendSource::OldestLost.code(), ..header });
        assert_eq!(blocked_receiver.works, Some(SendSource::New(Priority::Low)));
        blocked_receiver.on_lost(&header);
        assert_eq!(blocked_receiver.works, None);
    }

    #[test]
    fn codes_name_one_course_each() {
        assert!(SOURCES.iter().all(|source| SendSource::from_code(source.code()) == Some(*source)));
        assert_eq!((SendSource::Usual.code(), SendSource::from_code(0)), (0, None));
    }
}
