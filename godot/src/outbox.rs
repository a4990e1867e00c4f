//! Messages of one connection that wait for room.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Instant;

use rakwire_native::raknet::ConnectionId;
use rakwire_native::rakwire::endpoint::SendError;
use rakwire_native::{Delivery, RakNet, polled};

use crate::packet::cost;

/// The outcome of a message that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It is queued in the connection, or in the outbox.
    Queued,
    /// It is unreliable, and the queue of the connection is full.
    Dropped,
    /// It is reliable, and the waiting bytes would exceed the limit.
    Overflow,
}

/// The reliable messages of one connection that wait for room, in order.
#[derive(Debug)]
pub(crate) struct Outbox {
    id: ConnectionId,
    waiting: VecDeque<(Delivery, Vec<u8>)>,
    bytes: usize,
    limit: usize,
    /// Set if the connection is closed once nothing waits, and at this time at the latest.
    close_by: Option<Instant>,
}

impl Outbox {
    pub(crate) const fn new(id: ConnectionId, limit: usize) -> Self {
        Self { id, waiting: VecDeque::new(), bytes: 0, limit, close_by: None }
    }

    /// Sends a message, or queues it. A large owned message is not copied.
    pub(crate) fn send(
        &mut self,
        endpoint: &mut polled::Endpoint<RakNet>,
        mut message: Cow<'_, [u8]>,
        delivery: Delivery,
    ) -> Result<Sent, SendError> {
        let is_reliable = delivery.reliability.is_reliable();
        if is_reliable && !self.waiting.is_empty() {
            return Ok(self.wait(message, delivery));
        }
        let sent = match &mut message {
            Cow::Borrowed(bytes) => endpoint.send(self.id, bytes, delivery),
            Cow::Owned(bytes) => endpoint.send_vec(self.id, bytes, delivery),
        };
        match sent {
            Ok(_) => Ok(Sent::Queued),
            Err(SendError::QuotaExceeded | SendError::PoolExhausted) if is_reliable => {
                Ok(self.wait(message, delivery))
            }
            Err(SendError::QuotaExceeded | SendError::PoolExhausted) => Ok(Sent::Dropped),
            Err(error) => Err(error),
        }
    }

    /// Lets a message wait for room.
    pub(crate) fn wait(&mut self, message: Cow<'_, [u8]>, delivery: Delivery) -> Sent {
        let bytes = self.bytes.saturating_add(cost(&message));
        if bytes > self.limit {
            return Sent::Overflow;
        }
        self.bytes = bytes;
        self.waiting.push_back((delivery, message.into_owned()));
        Sent::Queued
    }

    /// Sends the waiting messages for which there is room now.
    ///
    /// # Errors
    /// Returns the error of a message that the connection refuses for another reason. The connection is then aborted,
    /// because the messages after it would arrive with a gap.
    pub(crate) fn retry(&mut self, endpoint: &mut polled::Endpoint<RakNet>) -> Result<(), SendError> {
        if self.close_by.is_some_and(|until| Instant::now() >= until) {
            self.abort(endpoint);
            return Ok(());
        }
        while let Some((delivery, mut message)) = self.waiting.pop_front() {
            let cost = cost(&message);
            match endpoint.send_vec(self.id, &mut message, delivery) {
                // An event reports the end of a connection that is not open any more.
                Ok(_) | Err(SendError::NotConnected) => self.bytes -= cost,
                Err(SendError::QuotaExceeded | SendError::PoolExhausted) => {
                    self.waiting.push_front((delivery, message));
                    return Ok(());
                }
                Err(error) => {
                    self.abort(endpoint);
                    return Err(error);
                }
            }
        }
        if self.close_by.is_some() {
            endpoint.disconnect(self.id);
        }
        Ok(())
    }

    /// Closes the connection when the messages that wait for room have been sent, or after the time for which closing
    /// connections wait.
    ///
    /// # Errors
    /// The same as for [`retry`](Self::retry).
    pub(crate) fn close(&mut self, endpoint: &mut polled::Endpoint<RakNet>) -> Result<(), SendError> {
        let timeout = endpoint.peer().config().close_timeout;
        self.close_by.get_or_insert_with(|| Instant::now() + timeout);
        self.retry(endpoint)
    }

    /// Closes the connection without the messages that wait for room.
    pub(crate) fn abort(&mut self, endpoint: &mut polled::Endpoint<RakNet>) {
        self.waiting.clear();
        self.bytes = 0;
        endpoint.disconnect(self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use rakwire_native::Options;
    use rakwire_native::rakwire::endpoint::Event;

    use super::*;

    /// A server, and a client with an open connection to it.
    struct Pair {
        server: polled::Endpoint<RakNet>,
        client: polled::Endpoint<RakNet>,
        id: ConnectionId,
    }

    impl Pair {
        fn new() -> Self {
            let bind = |options: Options| polled::Endpoint::<RakNet>::bind("127.0.0.1:0", options);
            let server = bind(Options::server(1).expect("entropy")).expect("a port");
            let mut client = bind(Options::client().expect("entropy")).expect("a port");
            let id = client.connect(server.local_addr()).expect("an attempt");
            let mut pair = Self { server, client, id };
            pair.until(|event| matches!(event, Event::Connected { .. }));
            pair
        }

        /// Polls both until the client has such an event.
        fn until(&mut self, is_wanted: impl Fn(&Event<'_, RakNet>) -> bool) {
            for _ in 0..60_000 {
                self.server.update();
                while self.server.poll_event().is_some() {}
                self.client.update();
                while let Some(event) = self.client.poll_event() {
                    if is_wanted(&event) {
                        return;
                    }
                }
                thread::sleep(Duration::from_millis(1));
            }
            panic!("there is no such event");
        }

        /// An outbox in which messages wait because the connection has no room.
        fn full_outbox(&mut self) -> Outbox {
            let mut outbox = Outbox::new(self.id, 1 << 20);
            let message = vec![0x86; 100_000];
            for _ in 0..1_000 {
                let message = Cow::Borrowed(&message[..]);
                let sent = outbox.send(&mut self.client, message, Delivery::RELIABLE_ORDERED);
                assert_eq!(sent, Ok(Sent::Queued));
                if !outbox.waiting.is_empty() {
                    return outbox;
                }
            }
            panic!("there is always room");
        }

        fn is_disconnected(&mut self) -> bool {
            let sent = self.client.send(self.id, &[0x86], Delivery::UNRELIABLE);
            sent == Err(SendError::NotConnected)
        }
    }

    #[test]
    fn queued_messages_count_for_more_than_their_length() {
        let mut pair = Pair::new();
        let mut outbox = Outbox::new(pair.id, 650);
        let sent: Vec<Sent> =
            (0..11).map(|_| outbox.wait(Cow::Borrowed(&[0x86]), Delivery::RELIABLE)).collect();
        assert_eq!((&sent[..10], sent[10]), (&[Sent::Queued; 10][..], Sent::Overflow));
        outbox.retry(&mut pair.client).expect("room");
        assert_eq!((outbox.bytes, outbox.waiting.len()), (0, 0));
    }

    #[test]
    fn queued_messages_are_sent_before_the_connection_closes() {
        let mut pair = Pair::new();
        let mut outbox = pair.full_outbox();
        outbox.close(&mut pair.client).expect("no room");
        assert!(!outbox.waiting.is_empty() && !pair.is_disconnected());
        for _ in 0..60_000 {
            pair.server.update();
            while pair.server.poll_event().is_some() {}
            pair.client.update();
            outbox.retry(&mut pair.client).expect("sent, or no room");
            if outbox.waiting.is_empty() {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        assert!(pair.is_disconnected());
    }

    #[test]
    fn a_closing_connection_is_aborted_at_its_deadline() {
        let mut pair = Pair::new();
        let mut outbox = pair.full_outbox();
        outbox.close(&mut pair.client).expect("no room");
        let until = outbox.close_by.expect("a deadline");
        assert!(until <= Instant::now() + pair.client.peer().config().close_timeout);
        // Closing again does not move the deadline.
        outbox.close(&mut pair.client).expect("no room");
        assert_eq!(outbox.close_by, Some(until));
        outbox.close_by = Some(Instant::now());
        outbox.retry(&mut pair.client).expect("aborted");
        assert!(outbox.waiting.is_empty() && pair.is_disconnected());
    }

    #[test]
    fn a_refused_message_aborts_the_connection() {
        let mut pair = Pair::new();
        let mut outbox = Outbox::new(pair.id, 1_000);
        for message in [&[0x86, 1][..], &[0], &[0x86, 2]] {
            assert_eq!(outbox.wait(Cow::Borrowed(message), Delivery::RELIABLE_ORDERED), Sent::Queued);
        }
        assert_eq!(outbox.retry(&mut pair.client), Err(SendError::ReservedId));
        assert!(outbox.waiting.is_empty() && pair.is_disconnected());
    }

    #[test]
    fn messages_for_a_closed_connection_are_dropped() {
        let mut pair = Pair::new();
        let mut outbox = Outbox::new(pair.id, 1_000);
        outbox.wait(Cow::Borrowed(&[0x86, 1]), Delivery::RELIABLE);
        pair.client.disconnect(pair.id);
        assert_eq!(outbox.retry(&mut pair.client), Ok(()));
        assert_eq!((outbox.bytes, outbox.waiting.len()), (0, 0));
    }
}
