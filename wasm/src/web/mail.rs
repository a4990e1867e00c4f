//! What arrived and was not asked for yet: an application that waits for one kind of news may leave the others.

use std::collections::VecDeque;

use rakwire::raknet::{Event, Outcome, Progress, Receipt};

use super::connection::Message;

/// Bytes of messages that are set aside, each counted with 64 more, while only receipts or progress are asked for:
/// more than any server sends in the time that an acknowledgement takes.
const MOST_ASIDE: usize = 16 << 20;
const OVERHEAD: usize = 64;
/// Large messages of which the last news wait to be read; those of further ones push the oldest out.
const PROGRESS: usize = 64;

/// News that wait for the application.
#[derive(Debug, Default)]
pub(super) struct Mail {
    messages: VecDeque<Message>,
    bytes: usize,
    receipts: VecDeque<(Receipt, Outcome)>,
    progress: VecDeque<Progress>,
}

impl Mail {
    /// Whether no further message may be set aside before some are read.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= MOST_ASIDE
    }

    /// Keeps what an event tells; the events of opening and ending are not for here.
    pub(super) fn put(&mut self, event: &Event<'_>) {
        match event {
            Event::Message { delivery, message, .. } => {
                self.put_message(Message { bytes: message.to_vec(), delivery: *delivery });
            }
            Event::Receipt { receipt, outcome, .. } => self.receipts.push_back((*receipt, *outcome)),
            Event::Progress { progress, .. } => self.put_progress(*progress),
            // A client has no others once it is open.
            Event::Connected { .. } | Event::Disconnected { .. } | _ => {}
        }
    }

    fn put_message(&mut self, message: Message) {
        self.bytes += message.bytes.len() + OVERHEAD;
        self.messages.push_back(message);
    }

    /// Keeps how far a message has come, instead of what was known of it before.
    fn put_progress(&mut self, progress: Progress) {
        let same =
            |known: &Progress| known.direction == progress.direction && known.message == progress.message;
        self.progress.retain(|known| !same(known));
        if self.progress.len() == PROGRESS {
            self.progress.pop_front();
        }
        self.progress.push_back(progress);
    }

    pub(super) fn take_message(&mut self) -> Option<Message> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.bytes.len() + OVERHEAD;
        Some(message)
    }

    pub(super) fn take_receipt(&mut self) -> Option<(Receipt, Outcome)> {
        self.receipts.pop_front()
    }

    pub(super) fn take_progress(&mut self) -> Option<Progress> {
        self.progress.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use rakwire::raknet::{Delivery, Direction};

    use super::*;

    #[test]
    fn messages_that_nobody_reads_are_set_aside_up_to_a_bound() {
        let mut mail = Mail::default();
        let large = Message { bytes: vec![7; MOST_ASIDE - OVERHEAD - 1], delivery: Delivery::RELIABLE };
        mail.put_message(large.clone());
        assert!(!mail.is_full());
        mail.put_message(Message { bytes: vec![8], delivery: Delivery::RELIABLE });
        assert!(mail.is_full());
        assert_eq!(mail.take_message(), Some(large));
        assert!(!mail.is_full());
        assert_eq!(mail.take_message().map(|message| message.bytes), Some(vec![8]));
        assert_eq!((mail.take_message(), mail.bytes), (None, 0));
    }

    #[test]
    fn progress_is_the_last_of_each_message_and_bounded() {
        let mut mail = Mail::default();
        let progress = |direction, message, done| Progress { direction, message, done, parts: 9 };
        for done in 1..=3 {
            mail.put_progress(progress(Direction::Receiving, 7, done));
            mail.put_progress(progress(Direction::Sending, 7, done + 1));
        }
        assert_eq!(mail.take_progress(), Some(progress(Direction::Receiving, 7, 3)));
        assert_eq!(mail.take_progress(), Some(progress(Direction::Sending, 7, 4)));
        (0..1_000).for_each(|message| mail.put_progress(progress(Direction::Sending, message, 1)));
        assert_eq!(mail.take_progress(), Some(progress(Direction::Sending, 936, 1)));
        assert_eq!(mail.progress.len(), PROGRESS - 1);
    }
}
