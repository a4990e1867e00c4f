//! What a peer has to say: datagrams and events.

use core::net::SocketAddr;

use super::{Lent, Peer};
use crate::cursor::Writer;
use crate::game_protocol::connection::Ending;
use crate::game_protocol::event::{Event, Message};
use crate::game_protocol::wire::Header;
use crate::machine::Transmit;
use crate::storage::Block;
use crate::time::Instant;

/// Datagrams of one connection in a row while others wait: a whole snapshot of the game.
const TURN: u8 = 16;

impl Peer<'_> {
    /// Composes the next datagram to send at `now` in `buffer`, which must have room for
    /// [`MAX_PACKET`](crate::game_protocol::wire::MAX_PACKET) bytes.
    pub fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
        self.advance(now);
        let mut writer = Writer::new(buffer);
        let to = self.poll_acknowledgement(&mut writer);
        let to = to.or_else(|| self.desk.poll_transmit(&mut writer));
        let to = to.or_else(|| self.poll_connections(&mut writer))?;
        let payload = writer.finish();
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += payload.len() as u64;
        Some(Transmit { to, payload })
    }

    /// Acknowledgements go before everything else.
    fn poll_acknowledgement(&mut self, writer: &mut Writer<'_>) -> Option<SocketAddr> {
        loop {
            let due = self.tables.acknowledgements.pop()?;
            let connection = self.tables.connections.get(usize::from(due.slot))?;
            let is_alive = connection.generation == due.generation && !connection.is_over();
            if let (true, Some(remote)) = (is_alive, connection.remote()) {
                let header = Header::Acknowledgement { chunk: due.chunk, sequence: due.sequence };
                return header.write(writer).ok().map(|()| remote);
            }
        }
    }

    /// Lets the connections that have something to do take turns of several datagrams: a system sends those to one
    /// address with one call.
    fn poll_connections(&mut self, writer: &mut Writer<'_>) -> Option<SocketAddr> {
        while let Some(slot) = self.tables.ready.front() {
            let (connection, mut cx) = self.borrow(slot)?;
            let written = connection.poll_transmit(&mut cx, writer);
            let to = connection.remote();
            if let (Some(()), Some(to)) = (written, to) {
                self.in_a_row += 1;
                if self.in_a_row >= TURN {
                    self.in_a_row = 0;
                    self.tables.ready.pop();
                    self.tables.ready.push(slot);
                }
                return Some(to);
            }
            self.in_a_row = 0;
            self.tables.ready.pop();
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
        self.take_back();
        while let Some(slot) = self.tables.noticed.front() {
            if let Some(news) = self.news_of(slot) {
                return self.tell(slot, news);
            }
            self.tables.noticed.pop();
            if let Some(connection) = self.tables.connections.get_mut(usize::from(slot)) {
                connection.noticed = false;
            }
            self.release_if_finished(slot);
        }
        None
    }

    /// Gives back what the last event lent.
    pub(super) fn take_back(&mut self) {
        if let Lent::Message { message, id } = core::mem::replace(&mut self.lent, Lent::Nothing) {
            let blocks = self.tables.pool.free(message);
            if let Some(connection) = self.get_mut(id) {
                connection.on_read(blocks);
            }
        }
    }

    pub(super) fn news_of(&mut self, slot: u16) -> Option<News> {
        let news = self.poll_connection(slot)?;
        if let News::Message(message) = news {
            self.lent = Lent::Message { message, id: self.id(slot) };
        }
        Some(news)
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

    /// Puts news into the words of an event.
    pub(super) fn tell(&self, slot: u16, news: News) -> Option<Event<'_>> {
        let pool = &self.tables.pool;
        let id = self.id(slot);
        let connection = self.tables.connections.get(usize::from(slot))?;
        let remote = connection.remote()?;
        Some(match news {
            News::Opened => Event::Connected { id, remote, side: connection.side() },
            News::Message(message) => {
                let reliability = pool.header(message).reliability;
                Event::Message { id, reliability, message: Message::new(pool, message) }
            }
            News::Ended(Ending::Failed(reason)) => Event::ConnectFailed { id, remote, reason },
            News::Ended(Ending::Disconnected(reason)) => Event::Disconnected { id, remote, reason },
        })
    }
}

/// What is to be told.
#[derive(Clone, Copy)]
pub(super) enum News {
    Opened,
    Message(Block),
    Ended(Ending),
}
