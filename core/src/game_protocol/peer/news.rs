//! Events by connection, for drivers that must not take what nobody reads yet.

use super::{Lent, Peer};
use crate::game_protocol::event::{ConnectionId, Event, Message};

impl Peer<'_> {
    /// The next connection that may have something to tell, for [`poll_event_of`](Self::poll_event_of). It is named
    /// again when more happens on it, and stays unread until then.
    ///
    /// With these two in place of [`poll_event`](Self::poll_event), a slow reader of one connection holds up no other
    /// one, and nothing is copied in between.
    ///
    /// ```
    /// use rakwire::game_protocol::{Event, Peer};
    ///
    /// fn count(peer: &mut Peer<'_>) -> usize {
    ///     let mut messages = 0;
    ///     while let Some(id) = peer.poll_news() {
    ///         while let Some(event) = peer.poll_event_of(id) {
    ///             messages += usize::from(matches!(event, Event::Message { .. }));
    ///         }
    ///     }
    ///     messages
    /// }
    /// ```
    pub fn poll_news(&mut self) -> Option<ConnectionId> {
        while let Some(slot) = self.tables.noticed.front() {
            self.tables.noticed.pop();
            let connection = self.tables.connections.get_mut(usize::from(slot))?;
            connection.noticed = false;
            if connection.has_news() {
                return Some(self.id(slot));
            }
            self.release_if_finished(slot);
        }
        None
    }

    /// What happened next on one connection, if anything. It gives back what the last event lent, as
    /// [`poll_event`](Self::poll_event) does.
    pub fn poll_event_of(&mut self, id: ConnectionId) -> Option<Event<'_>> {
        self.take_back();
        self.get(id)?;
        match self.news_of(id.slot) {
            Some(news) => self.tell(id.slot, news),
            None => {
                self.release_if_finished(id.slot);
                None
            }
        }
    }

    /// Gives back what the last event lent, so that its memory is free before another event is asked for.
    ///
    /// ```
    /// use rakwire::game_protocol::{Event, Peer};
    ///
    /// /// Reads the next message, and leaves all memory to the answer.
    /// fn read(peer: &mut Peer<'_>) -> Option<u8> {
    ///     let first = match peer.poll_event()? {
    ///         Event::Message { message, .. } => message.chunks().flatten().next().copied(),
    ///         _ => None,
    ///     };
    ///     peer.give_back();
    ///     first
    /// }
    /// ```
    pub fn give_back(&mut self) {
        self.take_back();
    }

    /// The bytes of the message that the last event lent. They stay until the next event is asked for or they are
    /// [given back](Self::give_back), whatever else happens meanwhile. Empty when nothing is lent.
    #[must_use]
    pub const fn lent(&self) -> Message<'_> {
        match self.lent {
            Lent::Nothing => Message::empty(&self.tables.pool),
            Lent::Message { message, .. } => Message::new(&self.tables.pool, message),
        }
    }
}
