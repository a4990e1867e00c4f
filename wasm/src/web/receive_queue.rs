//! The queue of received events. An application that waits for one kind of event leaves the other kinds queued.

use std::collections::VecDeque;
use std::time::Duration;

use rakwire::endpoint::{Event, Outcome, Progress, Protocol, Receipt};

/// The size limit of queued messages in bytes.
const MAX_BYTES: usize = 16 << 20;
/// The bytes counted for each message in addition to its contents.
const OVERHEAD: usize = 64;
/// The maximum number of large messages with unread progress. The progress of a further message replaces the oldest.
const MAX_PROGRESS: usize = 64;

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message<P: Protocol> {
    /// The bytes; in RakNet the first one is the message id.
    pub bytes: Vec<u8>,
    /// The delivery of the message. RakNet does not transmit the priority, so it is always the default.
    pub delivery: P::Delivery,
}

/// The unread events of a connection.
#[derive(Debug)]
pub(super) struct ReceiveQueue<P: Protocol> {
    messages: VecDeque<Message<P>>,
    bytes: usize,
    receipts: VecDeque<(Receipt, Outcome)>,
    progress: VecDeque<Progress>,
    /// The MTU, if it has changed since the last read.
    new_mtu: Option<u16>,
    /// The unread announcement of a shutdown: the remaining time of the relay.
    draining: Option<Duration>,
}

impl<P: Protocol> ReceiveQueue<P> {
    pub(super) const fn new() -> Self {
        Self {
            messages: VecDeque::new(),
            bytes: 0,
            receipts: VecDeque::new(),
            progress: VecDeque::new(),
            new_mtu: None,
            draining: None,
        }
    }

    /// Returns true if messages must be read before further events are queued.
    pub(super) const fn is_full(&self) -> bool {
        self.bytes >= MAX_BYTES
    }

    /// Queues an event of an open connection.
    pub(super) fn push(&mut self, event: &Event<'_, P>) {
        match event {
            Event::Message { delivery, message, .. } => {
                self.push_message(Message { bytes: message.to_vec(), delivery: *delivery });
            }
            Event::Receipt { receipt, outcome, .. } => self.receipts.push_back((*receipt, *outcome)),
            Event::Progress { progress, .. } => self.push_progress(*progress),
            Event::MtuChanged { mtu, .. } => self.new_mtu = Some(*mtu),
            // An open connection of a client has no other events.
            Event::Connected { .. } | Event::Disconnected { .. } | _ => {}
        }
    }

    /// Stores the announcement that the relay is shutting down.
    pub(super) const fn set_draining(&mut self, left: Duration) {
        self.draining = Some(left);
    }

    pub(super) const fn take_draining(&mut self) -> Option<Duration> {
        self.draining.take()
    }

    fn push_message(&mut self, message: Message<P>) {
        self.bytes += message.bytes.len() + OVERHEAD;
        self.messages.push_back(message);
    }

    /// Adds the progress of a message, replacing its earlier progress.
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

    pub(super) const fn take_new_mtu(&mut self) -> Option<u16> {
        self.new_mtu.take()
    }
}

#[cfg(test)]
mod tests {
    use rakwire::endpoint::Direction;
    use rakwire::game_protocol::GameProtocol;
    use rakwire::raknet::RakNet;

    use super::*;

    fn messages_are_queued_up_to_a_bound<P: Protocol>() {
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
    fn unread_messages_are_queued_up_to_a_limit() {
        messages_are_queued_up_to_a_bound::<RakNet>();
        messages_are_queued_up_to_a_bound::<GameProtocol>();
    }

    #[test]
    fn latest_progress_of_each_message_is_kept_up_to_a_limit() {
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
