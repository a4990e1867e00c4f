//! RakNet: the configuration of a client, and what only such a client can say.

use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use rakwire::endpoint::{ConnectionState, Protocol};
use rakwire::raknet::{ConnectOptions, DialledAddress, Guid, RakNet};
#[cfg(feature = "secure")]
use rakwire::raknet::{SecurePeer, Security};
#[cfg(feature = "secure")]
use rakwire::secure::ServerTrust;

use super::{Client, Dialling, Memory, OutOfMemory, SERVER};

/// How a RakNet client differs from the usual one.
#[derive(Debug)]
pub(crate) struct RakNetSettings<'p> {
    pub(crate) protocol_version: u8,
    pub(crate) progress_interval: u32,
    pub(crate) password: &'p [u8],
    pub(crate) memory: Memory,
    pub(crate) timeout: Option<Duration>,
    /// Bits a second.
    pub(crate) outgoing_limit: Option<u64>,
    /// Whom the server has to be, and what the handshake needs.
    #[cfg(feature = "secure")]
    pub(crate) security: Option<(ServerTrust, Security)>,
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
        #[cfg(feature = "secure")]
        let (trust, security) = settings.security.unzip();
        #[cfg(feature = "secure")]
        {
            config.security = security;
        }
        let dialling = Dialling {
            password: settings.password.to_vec(),
            #[cfg(feature = "secure")]
            trust,
        };
        Self::new(settings.memory, config, dialling, |peer, now, dialling| {
            let options = ConnectOptions {
                password: &dialling.password,
                #[cfg(feature = "secure")]
                trust: dialling.trust,
                ..ConnectOptions::default()
            };
            peer.connect_with(now, SERVER, &options)
        })
    }

    /// Whom the server of a secure connection has shown to be, while there is one.
    #[cfg(feature = "secure")]
    pub(crate) fn secure_peer(&self) -> Option<SecurePeer> {
        self.peer.secure_peer(self.id?)
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
