//! RakNet: the configuration of a client, and the functions that only RakNet has.

use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use rakwire::endpoint::{ConnectionState, Hook, Protocol};
use rakwire::raknet::{Carrier, ConnectOptions, DialledAddress, Guid, RakNet};
#[cfg(any(feature = "secure", feature = "npm-secure"))]
use rakwire::raknet::{SecurePeer, Security};
#[cfg(any(feature = "secure", feature = "npm-secure"))]
use rakwire::secure::ServerTrust;
#[cfg(feature = "npm-secure")]
use rakwire::secure::StaticKey;

use super::{Client, Dial, Dialling, Memory, OutOfMemory, SERVER};

/// The settings of a RakNet client that differ from the defaults.
pub(crate) struct RakNetSettings<'p> {
    /// If `None`, the client pings the server for its version, and uses 6 if there is no pong.
    pub(crate) protocol_version: Option<u8>,
    pub(crate) progress_interval: u32,
    pub(crate) password: &'p [u8],
    pub(crate) memory: Memory,
    pub(crate) timeout: Option<Duration>,
    /// The maximum sending rate in bits per second.
    pub(crate) outgoing_limit: Option<u64>,
    /// The expected server, if it is already known, and the parameters of the handshake.
    #[cfg(any(feature = "secure", feature = "npm-secure"))]
    pub(crate) security: Option<(Option<ServerTrust>, Security)>,
    /// The data sent with the identity.
    #[cfg(any(feature = "secure", feature = "npm-secure"))]
    pub(crate) identity_data: &'p [u8],
}

impl<H: Hook<RakNet>> Client<RakNet, H> {
    /// Creates a client that is not connected. `entropy` must be random.
    pub(crate) fn raknet(
        entropy: [u8; 32],
        settings: RakNetSettings<'_>,
        hook: H,
    ) -> Result<Self, OutOfMemory> {
        let mut config = RakNet::config(entropy);
        config.learn_version = settings.protocol_version.is_none();
        config.protocol_version = settings.protocol_version.unwrap_or(config.protocol_version);
        config.progress_interval = settings.progress_interval;
        config.timeout = settings.timeout.unwrap_or(config.timeout);
        config.outgoing_limit = settings.outgoing_limit;
        config.dialled_address = DialledAddress::Unknown;
        #[cfg(feature = "npm-server")]
        {
            config.max_incoming = 1;
        }
        #[cfg(any(feature = "secure", feature = "npm-secure"))]
        let (trust, security) = settings.security.unzip();
        #[cfg(any(feature = "secure", feature = "npm-secure"))]
        {
            config.security = security;
        }
        let dialling = Dialling {
            password: settings.password.to_vec(),
            #[cfg(any(feature = "secure", feature = "npm-secure"))]
            trust: trust.flatten(),
            #[cfg(any(feature = "secure", feature = "npm-secure"))]
            identity_data: settings.identity_data.to_vec(),
            #[cfg(feature = "npm-secure")]
            identity: None,
        };
        if settings.memory != Memory::RAKNET {
            // The memory limits the length of messages.
            config.max_message_len = u32::MAX;
        }
        let dial: Dial<RakNet> = |peer, now, dialling| {
            let options = ConnectOptions {
                password: &dialling.password,
                #[cfg(any(feature = "secure", feature = "npm-secure"))]
                trust: dialling.trust,
                #[cfg(any(feature = "secure", feature = "npm-secure"))]
                identity_data: &dialling.identity_data,
                #[cfg(feature = "npm-secure")]
                identity: dialling.identity.as_ref(),
                ..ConnectOptions::default()
            };
            peer.connect_with(now, SERVER, &options)
        };
        Self::new(settings.memory, config, dialling, dial, hook)
    }

    /// Sets the expected server, the key that identifies the client, and the data sent with it.
    #[cfg(feature = "npm-secure")]
    pub(crate) fn set_trust(&mut self, trust: ServerTrust, identity: Option<StaticKey>, data: &[u8]) {
        self.dialling.trust = Some(trust);
        self.dialling.identity = identity;
        self.dialling.identity_data = data.to_vec();
    }

    /// Returns the verified identity of the server while a secure connection exists.
    #[cfg(any(feature = "secure", feature = "npm-secure"))]
    pub(crate) fn secure_peer(&self) -> Option<SecurePeer> {
        self.hooked.peer.secure_peer(self.id?)
    }

    /// Sets the carrier of the following datagrams.
    pub(crate) fn set_carrier(&mut self, carrier: Carrier) {
        self.hooked.peer.set_carrier(carrier);
    }

    /// Returns the addresses that the server reports as its own.
    pub(crate) fn internal_addresses(&self) -> Vec<SocketAddr> {
        self.id.map_or_else(Vec::new, |id| self.addresses_of(id))
    }

    /// Returns the GUID of the server, while there is a connection.
    pub(crate) fn server_guid(&self) -> Option<Guid> {
        let connection = self.hooked.peer.connection(self.id?)?;
        (connection.state == ConnectionState::Connected).then_some(connection.identity)
    }
}
