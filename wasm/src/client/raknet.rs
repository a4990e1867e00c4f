//! RakNet: the configuration of a client, and what only such a client can say.

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

/// How a RakNet client differs from the usual one.
pub(crate) struct RakNetSettings<'p> {
    /// `None` asks the server by a ping, and says 6 if it shows no other.
    pub(crate) protocol_version: Option<u8>,
    pub(crate) progress_interval: u32,
    pub(crate) password: &'p [u8],
    pub(crate) memory: Memory,
    pub(crate) timeout: Option<Duration>,
    /// Bits a second.
    pub(crate) outgoing_limit: Option<u64>,
    /// Whom the server has to be, if that is known yet, and what the handshake needs.
    #[cfg(any(feature = "secure", feature = "npm-secure"))]
    pub(crate) security: Option<(Option<ServerTrust>, Security)>,
    /// What the server gets with the identity.
    #[cfg(any(feature = "secure", feature = "npm-secure"))]
    pub(crate) identity_data: &'p [u8],
}

impl<H: Hook<RakNet>> Client<RakNet, H> {
    /// A client that is not connected; the bytes must be random.
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
            // Who chooses the memory decides about the messages.
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

    /// Sets whom the server has to be, with which key the client identifies itself, and what it says with that.
    #[cfg(feature = "npm-secure")]
    pub(crate) fn set_trust(&mut self, trust: ServerTrust, identity: Option<StaticKey>, data: &[u8]) {
        self.dialling.trust = Some(trust);
        self.dialling.identity = identity;
        self.dialling.identity_data = data.to_vec();
    }

    /// Whom the server of a secure connection has shown to be, while there is one.
    #[cfg(any(feature = "secure", feature = "npm-secure"))]
    pub(crate) fn secure_peer(&self) -> Option<SecurePeer> {
        self.hooked.peer.secure_peer(self.id?)
    }

    /// Says what carries the datagrams from now on.
    pub(crate) fn set_carrier(&mut self, carrier: Carrier) {
        self.hooked.peer.set_carrier(carrier);
    }

    /// The addresses that the server has said are its own.
    pub(crate) fn internal_addresses(&self) -> Vec<SocketAddr> {
        self.id.map_or_else(Vec::new, |id| self.addresses_of(id))
    }

    /// The GUID of the server, while there is a connection.
    pub(crate) fn server_guid(&self) -> Option<Guid> {
        let connection = self.hooked.peer.connection(self.id?)?;
        (connection.state == ConnectionState::Connected).then_some(connection.identity)
    }
}
