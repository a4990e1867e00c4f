//! The options of an endpoint.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use ipnet::IpNet;
use rakwire::endpoint::{Capacity, Protocol};

use crate::simulation::Simulation;

/// The options of an endpoint: the configuration of the protocol, the memory, and the sizes of the queues.
///
/// ```
/// use std::time::Duration;
/// use rakwire_native::{Options, game_protocol};
///
/// assert_eq!(Options::client()?.config.max_incoming, 0);
/// let mut options = Options::server(500)?;
/// assert_eq!((options.config.max_incoming, options.capacity.connections), (500, 500));
/// options.config.timeout = Duration::from_secs(30);
/// options.capacity.blocks = 32_768;
/// options.simulate = Some("loss=5%,latency=50ms,jitter=10ms".parse()?);
///
/// let mut options = game_protocol::Options::server(64)?;
/// assert_eq!(options.config.max_incoming, 64);
/// options.config.resend_interval = game_protocol::ResendInterval::MEASURED;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options<P: Protocol> {
    /// The configuration of the protocol.
    pub config: P::Config,
    /// Maximum number of connections, and the memory for messages in flight.
    ///
    /// Half of the blocks are guaranteed to the connections in equal parts, one half of each part for sending and one
    /// for receiving. The other half is shared. In each direction, a connection may borrow shared blocks while at
    /// least as many of them stay free as it has borrowed.
    ///
    /// A message that exceeds the guaranteed part may have to wait for other connections. A message that exceeds it
    /// plus a quarter of all blocks never fits. An endpoint with a single connection may use half of all blocks in
    /// each direction.
    ///
    /// Default: 64 connections with 65,536 blocks of 512 bytes. Each is guaranteed 128 KB in each direction, and a
    /// message may have 4,000,000 bytes. [`server`](Self::server) provides more for more connections. Physical memory
    /// is used only as blocks are used. Large RakNet messages that arrive may use as much again in separate vectors,
    /// which [`recv`](super::Connection::recv) returns. Blocks use regular pages, and on Linux huge pages of 2 MiB
    /// beyond the first 2 MiB if `/sys/kernel/mm/transparent_hugepage/enabled` permits it.
    pub capacity: Capacity,
    /// Size of the receive queue of each connection in bytes. Each message is charged 64 bytes in addition to its
    /// length.
    ///
    /// The default is 8 MiB. A full queue pauses its connection: datagrams with messages are dropped until the
    /// application has read half of the queue. The peer resends reliable messages; unreliable messages are lost. Other
    /// connections are not affected. One datagram can complete several messages, so a queue can exceed its size by up
    /// to half of the memory in `capacity`.
    pub receive_queue: usize,
    /// Maximum number of connections that wait for [`accept`](super::Endpoint::accept).
    ///
    /// Further connections are closed immediately. The default is 1,024.
    pub backlog: usize,
    /// True if the application decides on each client that requests a connection.
    ///
    /// [`incoming`](super::Endpoint::incoming) then returns each client as an [`Incoming`](super::Incoming), and only
    /// accepted clients are admitted. Up to `backlog` clients can wait for a decision; requests of others are dropped.
    /// A Game Protocol client considers its connection open while it waits: its reliable messages are resent, and the
    /// others are lost. The default is false.
    pub defer_incoming: bool,
    /// Size of the queue between the socket and the protocol in bytes. Each receive call is charged 64 bytes in
    /// addition to its datagrams.
    ///
    /// When the queue is full, further datagrams are dropped and counted. The default is 16 MiB.
    pub arrival_queue: usize,
    /// True if a connection attempt or a ping fails as soon as the system or a router reports the address unreachable.
    ///
    /// The attempt fails with [`ConnectFailure::Unreachable`](crate::raknet::ConnectFailure::Unreachable), unless the
    /// server has answered. Reports of routers (ICMP) are received on Linux and Android only; on other systems an
    /// attempt at a closed port ends by its timeout. The default is true. Set this to false for NAT traversal and
    /// meshes: the peer's router may reject datagrams until the peer itself has sent one.
    pub fail_on_unreachable: bool,
    /// Proxies that announce the address of each client by a header of the PROXY protocol, version 2, before its first
    /// datagrams.
    ///
    /// An example is a [relay](https://docs.rs/rakwire-relay) with `proxy_protocol` for its target. Connections, limits
    /// and bans then use the client's address, and replies are sent through the proxy. Headers from other senders are
    /// treated as payload, which neither protocol accepts. Allow only the proxies to reach the port, or list only proxy
    /// addresses that cannot be forged. The default is none.
    ///
    /// ```
    /// let mut options = rakwire_native::Options::server(8)?;
    /// options.trusted_proxies = vec!["10.0.0.7/32".parse()?, "fd00::/64".parse()?];
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub trusted_proxies: Vec<IpNet>,
    /// A lossy network to simulate between the endpoint and its socket, for tests; none by default.
    ///
    /// Datagrams in it use unbounded memory. Requires the feature `sim`.
    #[cfg(feature = "sim")]
    pub simulate: Option<Simulation>,
}

impl<P: Protocol> Options<P> {
    /// Creates options with this configuration and the default limits.
    #[must_use]
    pub fn new(config: P::Config) -> Self {
        Self {
            config,
            capacity: Capacity::default(),
            receive_queue: 8 << 20,
            backlog: 1_024,
            defer_incoming: false,
            arrival_queue: 16 << 20,
            fail_on_unreachable: true,
            trusted_proxies: Vec::new(),
            #[cfg(feature = "sim")]
            simulate: None,
        }
    }

    /// Returns the network to simulate, if there is one.
    #[cfg(feature = "sim")]
    pub(crate) const fn simulation(&self) -> Option<Simulation> {
        self.simulate
    }

    /// Returns `None` without the feature `sim`.
    #[cfg(not(feature = "sim"))]
    pub(crate) const fn simulation(&self) -> Option<Simulation> {
        None
    }

    /// Creates the default options for an endpoint that accepts no connections.
    ///
    /// # Errors
    /// Returns an error if the system provides no random bytes.
    pub fn client() -> io::Result<Self> {
        Ok(Self::new(P::config(entropy()?)))
    }

    /// Creates options for an endpoint that accepts up to `max_incoming` connections, and can open connections while
    /// slots are free.
    ///
    /// There is [memory](Capacity::for_connections) for `max_incoming` connections or the default, whichever is more:
    /// with 512 to 16,384 connections each is guaranteed 16 KB in each direction.
    ///
    /// # Errors
    /// Returns an error if the system provides no random bytes.
    ///
    /// ```
    /// let options = rakwire_native::Options::server(500)?;
    /// assert_eq!((options.config.max_incoming, options.capacity.connections), (500, 500));
    /// assert_eq!(options.capacity.blocks, 65_536);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn server(max_incoming: u16) -> io::Result<Self> {
        let mut options = Self::client()?;
        *P::max_incoming(&mut options.config) = max_incoming;
        let connections = options.capacity.connections.max(max_incoming.into());
        options.capacity = Capacity::for_connections(connections);
        Ok(options)
    }
}

/// Returns random bytes from the system for the keys of a configuration.
pub(crate) fn entropy() -> io::Result<[u8; 32]> {
    let mut entropy = [0; 32];
    getrandom::fill(&mut entropy).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(entropy)
}

/// Number of endpoints that this program has created.
static ENDPOINTS: AtomicU64 = AtomicU64::new(0);

/// Returns the configuration of one endpoint, with random bytes of its own. Endpoints with the same options, such as
/// the shards of a server, therefore differ, and the bytes cannot be computed from the options.
pub(crate) fn config_of_one<P: Protocol>(mut config: P::Config) -> P::Config {
    // The number alone makes the endpoints differ if the system provides no random bytes.
    let mut with = entropy().unwrap_or_default();
    let number = ENDPOINTS.fetch_add(1, Ordering::Relaxed);
    with.iter_mut().zip(number.to_be_bytes()).for_each(|(byte, number)| *byte ^= number);
    P::mix_entropy(&mut config, &with);
    config
}

#[cfg(test)]
mod tests {
    use rakwire::endpoint::Peer;
    use rakwire::raknet::{ConnectOptions, Guid, RakNet};
    use rakwire::secure::{ServerIdentity, ServerTrust, StaticKey};
    use rakwire::wire::offline::{Offline, ServerSecurity};
    use rakwire::wire::{Wire, Writer};
    use rakwire::{Instant, Machine};

    use super::*;

    /// Returns the second request of a client, which has a new ephemeral key.
    fn challenge(config: rakwire::raknet::Config) -> Vec<u8> {
        let server = ServerIdentity::new(StaticKey::from_bytes([1; 32]));
        let address = ([192, 0, 2, 1], 19_132).into();
        let mut client = Peer::<RakNet>::with_capacity(Capacity::default(), config);
        let options = ConnectOptions { trust: Some(ServerTrust::Any), ..ConnectOptions::default() };
        client.connect_with(Instant::ZERO, address, &options).expect("a free slot");
        let mut buffer = [0; 1_500];
        while client.poll_transmit(Instant::ZERO, &mut buffer).is_some() {}
        let field = server.field(1_492);
        let security = ServerSecurity::PublicKey { cookie: 7, key: &field };
        let mut writer = Writer::new(&mut buffer);
        Offline::Reply1 { guid: Guid(9), security, mtu: 1_492 }.write(&mut writer).expect("enough space");
        let reply = writer.finish().to_vec();
        client.handle_datagram(Instant::ZERO, address, &reply);
        let request = Machine::poll_transmit(&mut client, Instant::ZERO, &mut buffer);
        request.expect("the second request").payload.to_vec()
    }

    #[test]
    fn endpoints_from_the_same_options_use_different_random_bytes() {
        let mut options = Options::<RakNet>::client().expect("entropy");
        options.secure().expect("entropy");
        let [first, second] = [(); 2].map(|()| challenge(config_of_one::<RakNet>(options.config.clone())));
        assert_ne!(first, second);
        assert_eq!(challenge(options.config.clone()), challenge(options.config));
    }
}
