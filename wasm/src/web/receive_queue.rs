//! What arrived and was not read yet: an application that waits for one kind of event may leave the others.

use std::collections::VecDeque;

use rakwire::endpoint::{Event, Outcome, Progress, Protocol, Receipt};

/// Bytes of messages that are set aside, each counted with 64 more, while only receipts or progress are asked for:
/// more than any server sends in the time that an acknowledgement takes.
const MAX_BYTES: usize = 16 << 20;
const OVERHEAD: usize = 64;
/// Large messages whose latest progress waits to be read; that of further ones replaces the oldest.
const MAX_PROGRESS: usize = 64;

/// A message that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message<P: Protocol> {
    /// Its bytes; in RakNet the first is its id.
    pub bytes: Vec<u8>,
    /// How it travelled. RakNet's priority is not on the wire and reads as the default.
    pub delivery: P::Delivery,
}

/// What waits for the application.
#[derive(Debug)]
pub(super) struct ReceiveQueue<P: Protocol> {
    messages: VecDeque<Message<P>>,
    bytes: usize,
    receipts: VecDeque<(Receipt, Outcome)>,
    progress: VecDeque<Progress>,
}

impl<P: Protocol> ReceiveQueue<P> {
    pub(super) const fn new() -> Self {
        Self { messages: VecDeque::new(), bytes: 0, receipts: VecDeque::new(), progress: VecDeque::new() }
    }

    /// Whether no further message may be set aside before some are read.
    pub(super) const fn is_full(&self) -> bool {
        self.bytes >= MAX_BYTES
    }

    /// Keeps what an event tells; the events of opening and ending are not for here.
    pub(super) fn push(&mut self, event: &Event<'_, P>) {
        match event {
            Event::Message { delivery, message, .. } => {
                self.push_message(Message { bytes: message.to_vec(), delivery: *delivery });
            }
            Event::Receipt { receipt, outcome, .. } => self.receipts.push_back((*receipt, *outcome)),
            Event::Progress { progress, .. } => self.push_progress(*progress),
            // A client has no others once it is open.
            Event::Connected { .. } | Event::Disconnected { .. } | _ => {}
        }
    }

    fn push_message(&mut self, message: Message<P>) {
        self.bytes += message.bytes.len() + OVERHEAD;
        self.messages.push_back(message);
    }

    /// Keeps how far a message has come, instead of what was known of it before.
    fn push_progress(&mut self, progress: Progress) {
        let same =
            |known: &Progress| known.direction == progress.direction && known.message == progress.message;
        self.progress.retain(|known| !same(known));
        if self.progress.len() == MAX_PROGRESS {
            self.progress.pop_front();
        }
        self.progress.push_back(progress);
    }

    pub(super) fn pop_message(&mut self) -> Option<Message<P>> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.bytes.len() + OVERHEAD;
        Some(message)
    }

    pub(super) fn pop_receipt(&mut self) -> Option<(Receipt, Outcome)> {
        self.receipts.pop_front()
    }

    pub(super) fn pop_progress(&mut self) -> Option<Progress> {
        self.progress.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use rakwire::endpoint::Direction;
    use rakwire::game_protocol::GameProtocol;
    use rakwire::raknet::RakNet;

    use super::*;

    fn set_aside_up_to_a_bound<P: Protocol>() {
        let message = |bytes| Message::<P> { bytes, delivery: P::Delivery::default() };
        let mut queue = ReceiveQueue::new();
        queue.push_message(message(vec![7; MAX_BYTES - OVERHEAD - 1]));
        assert!(!queue.is_full(), "{}", P::NAME);
        queue.push_message(message(vec![8]));
        assert!(queue.is_full());
        let large = queue.pop_message().unwrap();
        assert!(large.bytes.len() == MAX_BYTES - OVERHEAD - 1 && large.bytes.iter().all(|byte| *byte == 7));
        assert_eq!(large.delivery, P::Delivery::default());
        assert!(!queue.is_full());
        assert_eq!(queue.pop_message().map(|message| message.bytes), Some(vec![8]));
        assert!(queue.pop_message().is_none());
        assert_eq!(queue.bytes, 0);
    }

    #[test]
    fn messages_that_nobody_reads_are_set_aside_up_to_a_bound() {
        set_aside_up_to_a_bound::<RakNet>();
        set_aside_up_to_a_bound::<GameProtocol>();
    }

    #[test]
    fn progress_is_the_last_of_each_message_and_bounded() {
        let mut queue = ReceiveQueue::<RakNet>::new();
        let progress = |direction, message, done| Progress { direction, message, done, parts: 9 };
        for done in 1..=3 {
            queue.push_progress(progress(Direction::Receiving, 7, done));
            queue.push_progress(progress(Direction::Sending, 7, done + 1));
        }
        assert_eq!(queue.pop_progress(), Some(progress(Direction::Receiving, 7, 3)));
        assert_eq!(queue.pop_progress(), Some(progress(Direction::Sending, 7, 4)));
        (0..1_000).for_each(|message| queue.push_progress(progress(Direction::Sending, message, 1)));
        assert_eq!(queue.pop_progress(), Some(progress(Direction::Sending, 936, 1)));
        assert_eq!(queue.progress.len(), MAX_PROGRESS - 1);
    }
}
