//! RakNet: how a connection is opened, and what only such a connection can do.

use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;

use rakwire::endpoint::Hook;
use rakwire::raknet::{Guid, Outcome, Progress, RakNet, Receipt};
#[cfg(feature = "secure")]
use rakwire::raknet::{SecurePeer, Security};
#[cfg(feature = "secure")]
use rakwire::secure::{ConnectToken, ServerTrust, StaticKey, TokenServer};

#[cfg(feature = "secure")]
use super::browser::entropy;
use super::browser::relay_url;
use super::carriers::Transport;
use super::connection;
use super::driver::Start;
use super::receive_queue::ReceiveQueue;
use crate::client::{Client, Memory, RakNetSettings};

/// An open RakNet connection.
pub type Connection = connection::Connection<RakNet>;
/// Why a RakNet connection could not be opened.
pub type ConnectError = connection::ConnectError<RakNet>;
/// Why an open RakNet connection ended.
pub type Ending = connection::Ending<RakNet>;
/// A RakNet message that arrived.
pub type Message = connection::Message<RakNet>;

/// How to connect. `Debug` does not show the password, which may be a token.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Options<'p> {
    /// The protocol version that the server is told first: 6 is the original, 11 is Minecraft Bedrock of today. If the
    /// server names another one, the attempt goes on with that. Default: the one that the server's pong shows, or 6; asking for
    /// that takes a round trip, or 500 ms where no pong comes.
    pub protocol_version: Option<u8>,
    /// After how many parts of a large message [`Connection::recv_progress`] tells how far it has come; 0 is never.
    /// A part has about 1,400 bytes.
    pub progress_interval: u32,
    /// What the server asks for, 0 to 255 bytes. It crosses the network in the clear, except in a secure connection.
    pub password: &'p [u8],
    /// The memory of the connection. Default: [`Memory::RAKNET`].
    pub memory: Memory,
    /// How long the server may be silent while something that it must acknowledge is under way, until the connection is
    /// lost. Default: 10 s.
    pub timeout: Option<Duration>,
    /// By what the connection reaches the relay. Default: WebTransport where there is one, and otherwise a WebSocket.
    pub transport: Transport,
    /// Whether the connection ends when its page is closed, reloaded, navigated away from or kept for a return (`pagehide`), so that the
    /// server has no player who has gone. What is on its way then may be lost. Default: true.
    pub ends_with_page: bool,
    /// The most that leaves in a second, in bits. Default: as much as the path carries.
    pub outgoing_limit: Option<u64>,
    /// Whom the server has to be; with it the connection is a secure one, from the page to the server, whatever the relay is.
    /// Default: none, and the connection is plain.
    #[cfg(feature = "secure")]
    pub trust: Option<ServerTrust>,
    /// The key with which this client identifies itself to the server of a secure connection; it needs `trust`. Default: it does
    /// not.
    #[cfg(feature = "secure")]
    pub identity: Option<&'p StaticKey>,
    /// What the server gets with the identity, at most 95 bytes. Default: nothing.
    #[cfg(feature = "secure")]
    pub identity_data: &'p [u8],
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            protocol_version,
            progress_interval,
            password: _,
            memory,
            timeout,
            transport,
            ends_with_page,
            outgoing_limit,
            #[cfg(feature = "secure")]
            trust,
            #[cfg(feature = "secure")]
            identity,
            #[cfg(feature = "secure")]
            identity_data,
        } = self;
        let mut debug = f.debug_struct("Options");
        debug
            .field("protocol_version", protocol_version)
            .field("progress_interval", progress_interval)
            .field("memory", memory)
            .field("timeout", timeout)
            .field("transport", transport)
            .field("ends_with_page", ends_with_page)
            .field("outgoing_limit", outgoing_limit);
        #[cfg(feature = "secure")]
        debug.field("trust", trust).field("identity", identity).field("identity_data", identity_data);
        debug.finish_non_exhaustive()
    }
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            protocol_version: None,
            progress_interval: 0,
            password: &[],
            memory: Memory::RAKNET,
            timeout: None,
            transport: Transport::Auto,
            ends_with_page: true,
            outgoing_limit: None,
            #[cfg(feature = "secure")]
            trust: None,
            #[cfg(feature = "secure")]
            identity: None,
            #[cfg(feature = "secure")]
            identity_data: &[],
        }
    }
}

#[cfg(feature = "secure")]
impl<'p> Options<'p> {
    /// Opens a connection with a connect token: with one of its servers, whose key alone is trusted, as the client with the
    /// key that the token is for. [`TokenServer::name`] is the target, if the backend names servers as the relay does.
    #[must_use]
    pub fn connect_token(
        token: &ConnectToken<'p>,
        server: &TokenServer<'_>,
        identity: &'p StaticKey,
    ) -> Self {
        let trust = Some(ServerTrust::Key(server.key));
        Self { password: token.sealed, trust, identity: Some(identity), ..Self::default() }
    }
}

/// Opens a connection to the game server that the relay at `url` knows as `target`.
///
/// Dropping the future gives up.
///
/// # Errors
/// A [`ConnectError`] that says in words who refused what.
pub async fn connect(url: &str, target: &str, options: Options<'_>) -> Result<Connection, ConnectError> {
    connect_with_hook(url, target, options, ()).await
}

/// As [`connect`], past a hook: one that looks at datagrams, or a
/// [`PluginHost`](rakwire::endpoint::PluginHost) with plugins, which hear of messages when the application asks for the next
/// one. [`Connection::wake`](connection::Connection::wake) has it send at once. The application keeps an `Rc` of a plugin to reach it, and must not keep it
/// borrowed while it calls the connection.
///
/// ```no_run
/// use std::cell::RefCell;
/// use std::rc::Rc;
///
/// use rakwire::endpoint::PluginHost;
/// use rakwire::raknet::{Delivery, FilterGroup, MessageFilter, RakNet};
/// use rakwire_wasm::web::{Options, connect_with_hook};
///
/// # async fn play() -> Result<(), Box<dyn std::error::Error>> {
/// let filter = Rc::new(RefCell::new(MessageFilter::<1>::new()));
/// let mut plugins = PluginHost::<_, 1>::new();
/// plugins.attach::<RakNet>(Rc::clone(&filter))?;
/// let connection = connect_with_hook("wss://play.example.org/ws", "game", Options::default(), plugins).await?;
/// // What the server sends with another id is dropped from now on.
/// filter.borrow_mut().forbid_all(FilterGroup::EVERYONE);
/// filter.borrow_mut().allow(FilterGroup::EVERYONE, [0x86]);
/// connection.send(b"\x86hello", Delivery::RELIABLE_ORDERED)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`connect`].
pub async fn connect_with_hook(
    url: &str,
    target: &str,
    options: Options<'_>,
    hook: impl Hook<RakNet> + 'static,
) -> Result<Connection, ConnectError> {
    let settings = RakNetSettings {
        protocol_version: options.protocol_version,
        progress_interval: options.progress_interval,
        password: options.password,
        memory: options.memory,
        timeout: options.timeout,
        outgoing_limit: options.outgoing_limit,
        #[cfg(feature = "secure")]
        security: security(options.trust, options.identity),
        #[cfg(feature = "secure")]
        identity_data: options.identity_data,
    };
    let start = Start {
        relay: relay_url(url, target),
        transport: options.transport,
        ends_with_page: options.ends_with_page,
        client: |entropy| Client::raknet(entropy, settings, Box::new(hook) as Box<dyn Hook<RakNet>>),
        set_carrier: Client::<RakNet, _>::set_carrier,
    };
    Connection::open(start).await
}

/// Whom the server has to be, and what a handshake needs. An identity alone is for the peer to refuse.
#[cfg(feature = "secure")]
fn security(
    trust: Option<ServerTrust>,
    identity: Option<&StaticKey>,
) -> Option<(Option<ServerTrust>, Security)> {
    let is_wanted = trust.is_some() || identity.is_some();
    is_wanted.then(|| {
        let mut security = Security::new(entropy());
        security.identity = identity.map(StaticKey::duplicate);
        (trust, security)
    })
}

impl Connection {
    /// Whom the server of a secure connection has shown to be; nothing if the connection is plain, or over.
    #[cfg(feature = "secure")]
    #[must_use]
    pub fn secure_peer(&self) -> Option<SecurePeer> {
        self.driver.borrow().client.secure_peer()
    }

    /// The addresses that the server has said are its own, without those that it left unassigned.
    #[must_use]
    pub fn internal_addresses(&self) -> Vec<SocketAddr> {
        self.driver.borrow().client.internal_addresses()
    }

    /// The GUID of the server, which chose it itself; nothing when the connection is over.
    #[must_use]
    pub fn guid(&self) -> Option<Guid> {
        self.driver.borrow().client.server_guid()
    }

    /// What became of the next message that was sent with a receipt reliability; nothing once the connection is over:
    /// what was still open then stays unknown.
    ///
    /// Messages that arrive meanwhile are set aside for [`recv`](Self::recv), up to 16 MiB.
    pub async fn recv_receipt(&self) -> Option<(Receipt, Outcome)> {
        self.next(ReceiveQueue::pop_receipt).await
    }

    /// How far a large message has come that this side sends or receives, every
    /// [`progress_interval`](Options::progress_interval) parts; nothing once the connection is over. A reader that is
    /// late gets only the latest progress of each message.
    ///
    /// Messages that arrive meanwhile are set aside for [`recv`](Self::recv), up to 16 MiB.
    pub async fn recv_progress(&self) -> Option<Progress> {
        self.next(ReceiveQueue::pop_progress).await
    }

    /// The MTU of new datagrams, with 28 bytes of IP and UDP headers.
    #[must_use]
    pub fn mtu(&self) -> u16 {
        self.stats().mtu
    }

    /// Waits until the MTU of the connection has changed, because the path carries less than the peers agreed on, and returns
    /// the latest one, with 28 bytes of IP and UDP headers; nothing once the connection is over.
    ///
    /// Messages that arrive meanwhile are set aside for [`recv`](Self::recv), up to 16 MiB.
    pub async fn mtu_changed(&self) -> Option<u16> {
        self.next(ReceiveQueue::take_new_mtu).await
    }
}
