//! What a peer has to say: datagrams and events.

use core::net::SocketAddr;

use super::{Lent, Peer};
use crate::machine::Transmit;
use crate::raknet::connection::Ending;
use crate::raknet::event::{Event, Message};
use crate::storage::{Block, Listed};
use crate::time::Instant;

impl Peer<'_> {
    /// Composes the next datagram to send at `now` in `buffer`, which must have room for
    /// [`MAX_DATAGRAM`](super::wire::MAX_DATAGRAM) bytes.
    pub fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
        self.advance(now);
        let (to, length) = match self.desk.poll_transmit(&self.config, self.last_now, buffer) {
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
        connection.ready = Listed::No;
        let deadline = connection.deadline(&cx);
        self.tables.deadlines.set(slot, deadline);
        self.notice(slot);
        self.release_if_finished(slot);
    }

    /// What happened next, if anything. An event lends its bytes until the next call that changes this peer.
    pub fn poll_event(&mut self) -> Option<Event<'_>> {
        self.take_back();
        if let Some(pong) = self.pongs.pop_front() {
            self.lent = Lent::Pong { data: pong.data };
            let data = Message::new(&self.tables.pool, pong.data);
            return Some(Event::Pong { from: pong.from, guid: pong.guid, latency: pong.latency, data });
        }
        while let Some(slot) = self.tables.noticed.front() {
            match self.poll_connection(slot) {
                Some(news) => return self.tell(slot, news),
                None => {
                    self.tables.noticed.pop();
                    if let Some(connection) = self.tables.connections.get_mut(usize::from(slot)) {
                        connection.noticed = Listed::No;
                    }
                    self.release_if_finished(slot);
                }
            }
        }
        None
    }

    /// Gives back what the last event lent.
    fn take_back(&mut self) {
        match core::mem::replace(&mut self.lent, Lent::Nothing) {
            Lent::Nothing => {}
            Lent::Pong { data } => {
                self.tables.pool.free(data);
            }
            Lent::Message { message, id } => {
                let blocks = self.tables.pool.free(message);
                if let Some(connection) = self.get_mut(id) {
                    connection.on_read(blocks);
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
        } else if let Some(message) = connection.take_message(&mut cx) {
            Some(News::Message(message))
        } else {
            connection.take_ending().map(News::Ended)
        }
    }

    fn tell(&mut self, slot: u16, news: News) -> Option<Event<'_>> {
        let id = self.id(slot);
        let connection = self.tables.connections.get(usize::from(slot))?;
        let remote = connection.remote()?;
        Some(match news {
            News::Opened => Event::Connected { id, remote, guid: connection.guid(), side: connection.side() },
            News::Message(message) => {
                self.lent = Lent::Message { message, id };
                let delivery = self.tables.pool.header(message).delivery();
                Event::Message { id, delivery, message: Message::new(&self.tables.pool, message) }
            }
            News::Ended(Ending::Failed(reason)) => Event::ConnectFailed { id, remote, reason },
            News::Ended(Ending::Disconnected(reason)) => Event::Disconnected { id, remote, reason },
        })
    }
}

/// What is to be told of a connection.
enum News {
    Opened,
    Message(Block),
    Ended(Ending),
}
