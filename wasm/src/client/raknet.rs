//! RakNet: the configuration of a client, and what only such a client can say.

use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use rakwire::endpoint::{ConnectionState, Protocol};
use rakwire::raknet::{ConnectOptions, DialledAddress, Guid, RakNet};

use super::{Client, Memory, OutOfMemory, SERVER};

/// How a RakNet client differs from the usual one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RakNetSettings<'p> {
    pub(crate) protocol_version: u8,
    pub(crate) progress_interval: u32,
    pub(crate) password: &'p [u8],
    pub(crate) memory: Memory,
    pub(crate) timeout: Option<Duration>,
    /// Bits a second.
    pub(crate) outgoing_limit: Option<u64>,
}

impl Client<RakNet> {
    /// A client that is not connected; the bytes must be random.
    pub(crate) fn raknet(entropy: [u8; 32], settings: RakNetSettings<'_>) -> Result<Self, OutOfMemory> {
        let mut config = RakNet::config(entropy);
        config.protocol_version = settings.protocol_version;
        config.progress_interval = settings.progress_interval;
        config.timeout = settings.timeout.unwrap_or(config.timeout);
        config.outgoing_limit = settings.outgoing_limit;
        config.dialled_address = DialledAddress::Unknown;
        #[cfg(feature = "npm-server")]
        {
            config.max_incoming = 1;
        }
        Self::new(settings.memory, config, settings.password, |peer, now, password| {
            peer.connect_with(now, SERVER, &ConnectOptions { password, ..ConnectOptions::default() })
        })
    }

    /// The addresses that the server has said are its own.
    pub(crate) fn internal_addresses(&self) -> Vec<SocketAddr> {
        self.id.map_or_else(Vec::new, |id| self.addresses_of(id))
    }

    /// The GUID of the server, while there is a connection.
    pub(crate) fn server_guid(&self) -> Option<Guid> {
        let connection = self.peer.connection(self.id?)?;
        (connection.state == ConnectionState::Connected).then_some(connection.identity)
    }
}
