//! What a peer has to say: datagrams and events.

use core::net::SocketAddr;

use super::{Lent, Peer, Stranger};
use crate::machine::Transmit;
use crate::raknet::connection::{Connection, Ending};
use crate::raknet::event::{Event, Message, Progress, Said};
use crate::raknet::hook::Verdict;
use crate::storage::Block;
use crate::time::Instant;

impl Peer<'_> {
    /// Composes the next datagram to send at `now` in `buffer`, which must have room for
    /// [`MAX_DATAGRAM`](crate::wire::MAX_DATAGRAM) bytes.
    pub fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
        self.advance(now);
        let (to, length) =
            match self.desk.poll_transmit(&self.config, &mut self.tables.pool, self.last_now, buffer) {
                Some(answer) => answer,
                None => self.poll_connections(buffer)?,
            };
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += length as u64;
        Some(Transmit { to, payload: buffer.get(..length)? })
    }

    /// Lets the connections that have something to do take turns.
    fn poll_connections(&mut self, buffer: &mut [u8]) -> Option<(SocketAddr, usize)> {
        while let Some(slot) = self.tables.ready.front() {
            let (connection, mut cx) = self.borrow(slot)?;
            let length = connection.poll_transmit(&mut cx, buffer);
            let to = connection.remote();
            self.tables.ready.pop();
            if let (Some(length), Some(to)) = (length, to) {
                self.tables.ready.push(slot);
                return Some((to, length));
            }
            self.put_to_rest(slot);
        }
        None
    }

    /// A connection has nothing to do until its deadline.
    fn put_to_rest(&mut self, slot: u16) {
        let Some((connection, cx)) = self.borrow(slot) else {
            return;
        };
        connection.ready = false;
        let deadline = connection.deadline(&cx);
        self.tables.deadlines.set(slot, deadline);
        self.notice(slot);
        self.release_if_finished(slot);
    }

    /// What happened next, if anything. An event lends its bytes until the next call that changes this peer.
    pub fn poll_event(&mut self) -> Option<Event<'_>> {
        loop {
            self.take_back();
            let news = self.next_news()?;
            if self.is_told(news) {
                return self.tell(news);
            }
        }
    }

    /// Whether there is anything to tell: the connection may be gone.
    fn is_told(&self, (slot, news): (u16, News)) -> bool {
        let connection = self.tables.connections.get(usize::from(slot));
        matches!(news, News::Stranger | News::Message(_))
            || connection.is_some_and(|connection| connection.remote().is_some())
    }

    /// What happened next that passes `judge`; what does not is dropped.
    pub(crate) fn poll_event_if(
        &mut self,
        mut judge: impl FnMut(&Event<'_>) -> Verdict,
    ) -> Option<Event<'_>> {
        loop {
            self.take_back();
            let news = self.next_news()?;
            if self.tell(news).is_some_and(|event| judge(&event) == Verdict::Pass) {
                return self.tell(news);
            }
        }
    }

    #[cfg_attr(target_pointer_width = "64", inline)]
    fn next_news(&mut self) -> Option<(u16, News)> {
        if let Some(news) = self.news_of_strangers() {
            return Some((0, news));
        }
        while let Some(slot) = self.tables.noticed.front() {
            if let Some(news) = self.news_of(slot) {
                return Some((slot, news));
            }
            self.tables.noticed.pop();
            if let Some(connection) = self.tables.connections.get_mut(usize::from(slot)) {
                connection.noticed = false;
            }
            self.release_if_finished(slot);
        }
        None
    }

    pub(super) fn news_of_strangers(&mut self) -> Option<News> {
        if self.strangers.is_empty() {
            return None;
        }
        self.lent = Lent::Stranger;
        Some(News::Stranger)
    }

    pub(super) fn news_of(&mut self, slot: u16) -> Option<News> {
        let news = self.poll_connection(slot)?;
        if let News::Message(message) = news {
            self.lent = Lent::Message { message, id: self.id(slot) };
        }
        Some(news)
    }

    /// Gives back what the last event lent.
    #[cfg_attr(target_pointer_width = "64", inline)]
    pub(super) fn take_back(&mut self) {
        match core::mem::replace(&mut self.lent, Lent::Nothing) {
            Lent::Nothing => {}
            Lent::Stranger => {
                if let Some(stranger) = self.strangers.pop_front() {
                    self.tables.pool.free(stranger.data);
                }
            }
            Lent::Message { message, id } => {
                let blocks = self.tables.pool.free(message);
                let Some(connection) = self.get_mut(id) else { return };
                connection.on_read(blocks);
                if connection.has_refused() {
                    self.with_quietly(id.slot, Connection::recall);
                }
            }
        }
    }

    fn poll_connection(&mut self, slot: u16) -> Option<News> {
        let (connection, mut cx) = self.borrow(slot)?;
        if !connection.has_news() {
            None
        } else if connection.take_opened() {
            Some(News::Opened)
        } else if let Some(progress) = connection.take_progress() {
            Some(News::Progress(progress))
        } else if let Some(message) = connection.take_message(&mut cx) {
            Some(News::Message(message))
        } else {
            connection.take_ending().map(News::Ended)
        }
    }

    /// Puts news into the words of an event.
    #[cfg_attr(target_pointer_width = "64", inline)]
    pub(super) fn tell(&self, (slot, news): (u16, News)) -> Option<Event<'_>> {
        let pool = &self.tables.pool;
        if let News::Stranger = news {
            let &Stranger { from, guid, said, data } = self.strangers.front()?;
            let data = Message::new(pool, data);
            return Some(match said {
                Said::Pong(latency) => Event::Pong { from, guid, latency, data },
                Said::OutOfBand => Event::OutOfBand { from, guid, data },
                Said::Advertisement => Event::Advertisement { from, guid, data },
            });
        }
        let id = self.id(slot);
        let connection = self.tables.connections.get(usize::from(slot))?;
        if let News::Message(message) = news {
            let header = pool.header(message);
            return Some(match header.receipt() {
                Some((receipt, outcome)) => Event::Receipt { id, receipt, outcome },
                None => {
                    Event::Message { id, delivery: header.delivery(), message: Message::new(pool, message) }
                }
            });
        }
        let remote = connection.remote()?;
        Some(match news {
            News::Opened => Event::Connected { id, remote, guid: connection.guid(), side: connection.side() },
            News::Progress(progress) => Event::Progress { id, progress },
            News::Ended(Ending::Failed(reason)) => Event::ConnectFailed { id, remote, reason },
            News::Ended(Ending::Disconnected(reason)) => Event::Disconnected { id, remote, reason },
            News::Message(_) | News::Stranger => return None,
        })
    }
}

/// What is to be told.
#[derive(Clone, Copy)]
pub(super) enum News {
    Opened,
    Progress(Progress),
    Message(Block),
    Ended(Ending),
    /// The first stranger in the queue.
    Stranger,
}
