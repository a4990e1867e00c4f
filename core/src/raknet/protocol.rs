//! RakNet as the endpoint knows it, and what only RakNet's peers can do.

use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;

use super::config::Config;
use super::connection::{BlockHeader, Connection};
use super::delivery::Delivery;
use super::error::SetError;
use super::reason::{ConnectFailure, DisconnectReason};
use super::state::{State, Storage};
use super::stats::{ConnectionStats, DropReason};
use super::types::{ConnectOptions, RakNet};
use super::wire::datagram::DatagramHeader;
use super::wire::{FirstByte, Guid, MAX_DATAGRAM, Wire, id};
use crate::cursor::Reader;
use crate::endpoint::{ConnectionId, Internals, Outcome, Peer, Protocol, Receipt};
use crate::serial::U24;
use crate::storage::{SlotEntry, Slots};

impl Protocol for RakNet {
    const NAME: &'static str = "RakNet";
    const MAX_DATAGRAM: usize = MAX_DATAGRAM;
    const FRESH_PORT: bool = false;
    const EARLY_DATA: bool = false;

    type Config = Config;
    type ConnectOptions<'o> = ConnectOptions<'o>;
    type Identity = Guid;
    type Delivery = Delivery;
    type ConnectFailure = ConnectFailure;
    type DisconnectReason = DisconnectReason;
    type DropReason = DropReason;
    type ConnectionStats = ConnectionStats;

    fn config(entropy: [u8; 32]) -> Config {
        Config::new(entropy)
    }

    fn max_incoming(config: &mut Config) -> &mut u16 {
        &mut config.max_incoming
    }

    fn is_request(datagram: &[u8]) -> bool {
        matches!(
            datagram.first(),
            Some(
                &(id::UNCONNECTED_PING
                    | id::UNCONNECTED_PING_OPEN_CONNECTIONS
                    | id::OPEN_CONNECTION_REQUEST_1
                    | id::OPEN_CONNECTION_REQUEST_2)
            )
        )
    }

    fn is_data(datagram: &[u8]) -> bool {
        matches!(DatagramHeader::read(&mut Reader::new(datagram)), Ok(DatagramHeader::Data { .. }))
    }

    fn describe(datagram: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match FirstByte::classify(datagram) {
            None => f.write_str("too short"),
            Some(FirstByte::Offline) => f.write_str(id::name(datagram.first().copied().unwrap_or(0))),
            Some(FirstByte::Connected) => match DatagramHeader::read(&mut Reader::new(datagram)) {
                Ok(DatagramHeader::Data { number, .. }) => write!(f, "data {}", number.get()),
                Ok(DatagramHeader::Ack { records, .. }) => write!(f, "acknowledgement, {records} records"),
                Ok(DatagramHeader::Nack { records }) => {
                    write!(f, "negative acknowledgement, {records} records")
                }
                Err(error) => write!(f, "malformed: {error}"),
            },
        }
    }
}

impl Internals for RakNet {
    const BURST: u8 = 1;

    type Connection = Connection;
    type BlockHeader = BlockHeader;
    type State<'a> = State<'a>;
    type StateTables<'a> = Slots<'a, SlotEntry>;
    type Storage<const CONNECTIONS: usize, const BLOCKS: usize> = Storage<CONNECTIONS>;

    #[inline(always)] // or it is copied
    fn state<'a>(guids: Self::StateTables<'a>, config: &Config) -> Self::State<'a> {
        State::new(guids, config)
    }

    fn secret(config: &Config) -> [u8; 16] {
        config.secret
    }

    fn connection_blocks(config: &Config) -> Option<u32> {
        config.connection_blocks
    }

    fn route(peer: &mut Peer<'_, Self>, from: SocketAddr, datagram: &[u8]) {
        peer.route(from, datagram);
    }

    fn poll_transmit(peer: &mut Peer<'_, Self>, buffer: &mut [u8]) -> Option<(SocketAddr, usize)> {
        peer.state.responder.poll_transmit(&peer.config, &mut peer.tables.pool, peer.last_now, buffer)
    }

    #[inline]
    fn delivery(header: &BlockHeader) -> Result<Delivery, (Receipt, Outcome)> {
        header.receipt().map_or_else(|| Ok(header.delivery()), Err)
    }
}

impl Peer<'_, RakNet> {
    /// Lets the counters of connections made from now on start at `number` instead of 0, to test what happens when
    /// they wrap. The other peer must do the same.
    #[doc(hidden)]
    pub fn start_numbers_at(&mut self, number: U24) {
        self.state.first_number = number;
    }

    /// Sets how long the other peer of one connection may stay silent.
    ///
    /// # Errors
    /// [`SetError::NoConnection`].
    pub fn set_timeout(&mut self, id: ConnectionId, timeout: Duration) -> Result<(), SetError> {
        self.get(id).ok_or(SetError::NoConnection)?;
        self.with(id.slot, |connection, _| connection.set_timeout(timeout));
        Ok(())
    }
}
