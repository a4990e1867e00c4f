//! RakNet: opens connections, and the methods that only RakNet has.

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
/// The reason why a RakNet connection could not be opened.
pub type ConnectError = connection::ConnectError<RakNet>;
/// The reason why an open RakNet connection was closed.
pub type CloseReason = connection::CloseReason<RakNet>;
/// A received RakNet message.
pub type Message = connection::Message<RakNet>;

/// The options of a connection. `Debug` omits the password, which may be a token.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Options<'p> {
    /// The protocol version of the first request: 6 is RakNet 4.081, 10 and 11 are Minecraft Bedrock. If the server
    /// requires another version, the attempt continues with that version. Default: the version in the pong of the
    /// server, or 6 without a pong. The ping takes a round trip, or 500 ms if there is no pong.
    pub protocol_version: Option<u8>,
    /// The number of parts of a large message between two values of [`Connection::recv_progress`]; with 0 there are
    /// none. A part has about 1,400 bytes.
    pub progress_interval: u32,
    /// The password of the server, 0 to 255 bytes. It is sent unencrypted, except in a secure connection.
    pub password: &'p [u8],
    /// The memory of the connection. Default: [`Memory::RAKNET`].
    pub memory: Memory,
    /// The time without a datagram from the server after which the connection counts as lost. It runs only while an
    /// acknowledgement is outstanding. Default: 10 s.
    pub timeout: Option<Duration>,
    /// The transport to the relay. Default: WebTransport if available, otherwise a WebSocket.
    pub transport: Transport,
    /// True to close the connection when its page is closed, reloaded, navigated away from or put into the back/forward
    /// cache (`pagehide`). The server then does not keep an absent player. Messages in transit may be lost. Default:
    /// true.
    pub ends_with_page: bool,
    /// The maximum sending rate in bits per second. Default: limited only by congestion control.
    pub outgoing_limit: Option<u64>,
    /// The expected server. If set, the connection is encrypted end to end between the page and the server, and the
    /// relay cannot read it. Default: none, a plain connection.
    #[cfg(feature = "secure")]
    pub trust: Option<ServerTrust>,
    /// The key that identifies this client to the server of a secure connection; it requires `trust`. Default: none.
    #[cfg(feature = "secure")]
    pub identity: Option<&'p StaticKey>,
    /// The data for the server, sent with the identity, at most 95 bytes. Default: none.
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
    /// Sets the options to connect to one of the servers of a connect token. Trusts only the key of that server, and
    /// identifies the client with the key that the token was issued for. If the backend uses the relay's names,
    /// [`TokenServer::name`] is the target.
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

/// Opens a connection to the game server that the relay at `url` offers as `target`.
///
/// Dropping the future cancels connecting.
///
/// # Errors
/// A [`ConnectError`] that describes the cause.
pub async fn connect(url: &str, target: &str, options: Options<'_>) -> Result<Connection, ConnectError> {
    connect_with_hook(url, target, options, ()).await
}

/// Opens a connection like [`connect`], with a hook: a hook that inspects datagrams, or a
/// [`PluginHost`](rakwire::endpoint::PluginHost) with plugins. Plugins receive their messages when the application
/// requests the next message. [`Connection::wake`](connection::Connection::wake) runs the hook so that it can send. To
/// access a plugin, keep an `Rc` of it, and do not keep it borrowed while calling the connection.
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
/// // Messages of the server with other ids are dropped from now on.
/// filter.borrow_mut().deny_all(FilterGroup::DEFAULT);
/// filter.borrow_mut().allow(FilterGroup::DEFAULT, [0x86]);
/// connection.send(b"\x86hello", Delivery::RELIABLE_ORDERED)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As for [`connect`].
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

/// Returns the expected server and the parameters of the handshake. The peer refuses an identity without `trust`.
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
    /// Returns the verified identity of the server of a secure connection; `None` if the connection is plain or closed.
    #[cfg(feature = "secure")]
    #[must_use]
    pub fn secure_peer(&self) -> Option<SecurePeer> {
        self.driver.borrow().client.secure_peer()
    }

    /// Returns the addresses that the server reports as its own, without empty entries.
    #[must_use]
    pub fn internal_addresses(&self) -> Vec<SocketAddr> {
        self.driver.borrow().client.internal_addresses()
    }

    /// Returns the GUID chosen by the server; `None` when the connection is closed.
    #[must_use]
    pub fn guid(&self) -> Option<Guid> {
        self.driver.borrow().client.server_guid()
    }

    /// Returns the next outcome of a message that was sent with a receipt reliability; `None` once the connection is
    /// closed. The outcomes of messages that were still in flight then remain unknown.
    ///
    /// Messages that arrive during the wait are queued for [`recv`](Self::recv), up to 16 MiB.
    pub async fn recv_receipt(&self) -> Option<(Receipt, Outcome)> {
        self.next(ReceiveQueue::pop_receipt).await
    }

    /// Returns the progress of a large message in either direction, every
    /// [`progress_interval`](Options::progress_interval) parts; `None` once the connection is closed. Unread progress
    /// of a message is replaced by newer progress.
    ///
    /// Messages that arrive during the wait are queued for [`recv`](Self::recv), up to 16 MiB.
    pub async fn recv_progress(&self) -> Option<Progress> {
        self.next(ReceiveQueue::pop_progress).await
    }

    /// Returns the MTU of new datagrams, including 28 bytes of IP and UDP headers.
    #[must_use]
    pub fn mtu(&self) -> u16 {
        self.stats().mtu
    }

    /// Waits until the MTU of the connection has changed because the path MTU is below the negotiated MTU. Returns the
    /// latest MTU, including 28 bytes of IP and UDP headers; `None` once the connection is closed.
    ///
    /// Messages that arrive during the wait are queued for [`recv`](Self::recv), up to 16 MiB.
    pub async fn mtu_changed(&self) -> Option<u16> {
        self.next(ReceiveQueue::take_new_mtu).await
    }
}
