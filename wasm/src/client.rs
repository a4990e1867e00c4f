//! One connection to the one game server behind a relay.

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use rakwire::Instant;
use rakwire::raknet::{
    Capacity, Config, ConnectError, ConnectionId, ConnectionStats, Delivery, DialledAddress, Event, Peer,
    PeerStats, Receipt, SendError,
};
use rakwire::wire::MAX_DATAGRAM;

/// Stands for the game server: only the relay knows where that is. The address is of the range for documentation.
pub(crate) const SERVER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 19_132));

/// Half of it may hold what was sent and half what arrived, so that messages of 1 MB pass both ways with room to spare.
const CAPACITY: Capacity = Capacity { connections: 1, blocks: 16_384, block_size: 512 };

/// A peer that knows one server.
#[derive(Debug)]
pub(crate) struct Client {
    peer: Peer<'static>,
    id: Option<ConnectionId>,
    buffer: [u8; MAX_DATAGRAM],
}

impl Client {
    /// A client that is not connected; the bytes must be random.
    pub(crate) fn new(entropy: [u8; 32], protocol_version: u8, progress_interval: u32) -> Self {
        let mut config = Config::new(entropy);
        config.protocol_version = protocol_version;
        config.progress_interval = progress_interval;
        config.dialled_address = DialledAddress::Unknown;
        Self { peer: Peer::with_capacity(CAPACITY, config), id: None, buffer: [0; MAX_DATAGRAM] }
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

    /// Takes a message for sending, and names its receipt if it asks for one.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        message: &[u8],
        delivery: Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        let id = self.id.ok_or(SendError::NotConnected)?;
        self.peer.send(now, id, message, delivery)
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
        use rakwire::raknet::ConnectionState;
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

/// The milliseconds of a JavaScript clock as an instant, to the nearest microsecond.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and no clock is negative"
)]
pub(crate) fn instant(now_ms: f64) -> Instant {
    Instant::from_micros((now_ms * 1_000.0 + 0.5) as u64)
}

/// An instant as milliseconds of a JavaScript clock.
#[allow(clippy::cast_precision_loss, reason = "exact for the first 285 years of a page")]
pub(crate) fn millis(at: Instant) -> f64 {
    at.as_micros() as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_the_way_through_milliseconds() {
        for micros in [0, 1, 999, 1_234_567, 86_400_000_001, 1_700_000_000_000_003] {
            let at = Instant::from_micros(micros);
            assert_eq!(instant(millis(at)), at);
        }
        assert_eq!(instant(f64::NAN), Instant::ZERO);
        assert_eq!(instant(-5.0), Instant::ZERO);
    }

    #[test]
    fn nothing_can_be_sent_before_there_is_a_connection() {
        let mut client = Client::new([1; 32], 6, 0);
        let sent = client.send(Instant::ZERO, b"\xFEhi", Delivery::RELIABLE);
        assert_eq!(sent, Err(SendError::NotConnected));
        assert!(!client.is_over());
        assert!(client.poll_transmit(Instant::ZERO).is_none());
    }

    #[test]
    fn a_server_that_does_not_answer_is_given_up() {
        let mut client = Client::new([1; 32], 11, 0);
        let mut now = Instant::ZERO;
        client.connect(now).unwrap();
        let mut datagrams = 0;
        let failed = loop {
            while client.poll_transmit(now).is_some() {
                datagrams += 1;
            }
            if let Some(event) = client.poll_event() {
                break matches!(event, Event::ConnectFailed { .. });
            }
            now = client.poll_timeout().unwrap();
            client.handle_timeout(now);
        };
        assert!(failed);
        assert!(client.is_over());
        assert!(datagrams >= 12, "{datagrams} requests");
        assert!(client.poll_event().is_none());
        assert!(client.is_over());
    }
}
