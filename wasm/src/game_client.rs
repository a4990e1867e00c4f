//! One connection of the Game Protocol to the one game server behind a relay.

use core::time::Duration;

use rakwire::Instant;
use rakwire::game_protocol::wire::MAX_PACKET;
use rakwire::game_protocol::{
    Capacity, Config, ConnectError, ConnectionId, ConnectionStats, Event, Peer, PeerStats, Reliability,
    SendError,
};

use crate::client::SERVER;

/// Half of it may hold what was sent and half what arrived: eight messages of the longest kind each way.
const CAPACITY: Capacity = Capacity { connections: 1, blocks: 4_096, block_size: 512 };
/// How long one attempt to connect waits. The next one needs another WebSocket, for which the relay calls the server
/// from another port: an original server does not hear a client twice from the same one.
const ATTEMPT: Duration = Duration::from_secs(2);

/// A peer that knows one server.
#[derive(Debug)]
pub(crate) struct GameClient {
    peer: Peer<'static>,
    id: Option<ConnectionId>,
    buffer: [u8; MAX_PACKET],
}

impl GameClient {
    /// A client that is not connected; the bytes must be random.
    pub(crate) fn new(entropy: [u8; 32]) -> Self {
        let mut config = Config::new(entropy);
        config.handshake_timeout = ATTEMPT;
        Self { peer: Peer::with_capacity(CAPACITY, config), id: None, buffer: [0; MAX_PACKET] }
    }

    pub(crate) fn connect(&mut self, now: Instant) -> Result<(), ConnectError> {
        self.id = Some(self.peer.connect(now, SERVER)?);
        Ok(())
    }

    pub(crate) fn disconnect(&mut self, now: Instant) {
        if let Some(id) = self.id {
            self.peer.disconnect(now, id);
        }
    }

    pub(crate) fn send(
        &mut self,
        now: Instant,
        message: &[u8],
        reliability: Reliability,
    ) -> Result<(), SendError> {
        let id = self.id.ok_or(SendError::NotConnected)?;
        self.peer.send(now, id, message, reliability)
    }

    pub(crate) fn handle(&mut self, now: Instant, datagram: &[u8]) {
        self.peer.handle_datagram(now, SERVER, datagram);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.peer.handle_timeout(now);
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<&[u8]> {
        let transmit = self.peer.poll_transmit(now, &mut self.buffer)?;
        Some(transmit.payload)
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event<'_>> {
        self.peer.poll_event()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.peer.poll_timeout()
    }

    /// Whether nothing more can arrive; events may still wait.
    #[cfg(any(feature = "npm", test))]
    pub(crate) fn is_over(&self) -> bool {
        use rakwire::game_protocol::ConnectionState;
        self.id.is_some_and(|id| {
            let connection = self.peer.connection(id);
            connection.is_none_or(|connection| connection.state == ConnectionState::Disconnected)
        })
    }

    /// The counters of the connection, zero while there is none, and of the whole peer.
    pub(crate) fn stats(&self) -> (ConnectionStats, &PeerStats) {
        let connection = self.id.and_then(|id| self.peer.connection_stats(id));
        (connection.unwrap_or_default(), self.peer.stats())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_answer_is_asked_once() {
        let mut client = GameClient::new([1; 32]);
        let sent = client.send(Instant::ZERO, b"hi", Reliability::Reliable);
        assert_eq!(sent, Err(SendError::NotConnected));
        client.connect(Instant::ZERO).unwrap();
        let salt = client.poll_transmit(Instant::ZERO).map(<[u8]>::len);
        assert_eq!((salt, client.poll_transmit(Instant::ZERO)), (Some(4), None));
        let end = client.poll_timeout().unwrap();
        assert_eq!(end, Instant::ZERO + ATTEMPT);
        client.handle_timeout(end);
        assert!(matches!(client.poll_event(), Some(Event::ConnectFailed { .. })));
        assert!(client.is_over() && client.poll_event().is_none());
    }
}
