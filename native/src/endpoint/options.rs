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
    /// How many connections there may be, and the memory for messages that are on their way.
    ///
    /// Half of the blocks are guaranteed to the connections in equal parts, one half of each for what it sends and one for
    /// what it receives; within that nobody waits for anybody else, however many others take all they can. What a
    /// connection needs beyond, it borrows from the other half of the blocks, in each direction as long as it leaves as
    /// much free as it has borrowed. So a message that is larger than the guaranteed part may have to wait for others,
    /// and one larger than that and a quarter of all blocks never fits. An endpoint for a single connection may use half
    /// of all blocks in each direction.
    ///
    /// Default: 64 connections with 65,536 blocks of 512 bytes: 128 KB are guaranteed to each in each direction, and a
    /// message may have 4,000,000 bytes. [`server`](Self::server) has more for more connections. Memory of the machine is taken only
    /// as far as blocks are used, and large messages of RakNet that arrive may take as much again in vectors of their own, which
    /// [`recv`](super::Connection::recv) returns. Blocks are taken by pages, and on Linux beyond the first 2 MiB by huge pages of 2 MiB, where
    /// `/sys/kernel/mm/transparent_hugepage/enabled` lets a program ask for them.
    pub capacity: Capacity,
    /// The size of the receive queue of each connection in bytes; every message is charged 64 bytes more. The default is
    /// 8 MiB.
    ///
    /// A full queue pauses its connection: datagrams with messages are dropped until the application has read half of the
    /// queue. The other peer resends reliable messages; unreliable ones are lost. Other connections are not affected. One
    /// datagram can complete several messages, so a queue can exceed its size by up to half of the memory in `capacity`.
    pub receive_queue: usize,
    /// How many connections can wait for [`accept`](super::Endpoint::accept); further ones are closed at once. The default
    /// is 1,024.
    pub backlog: usize,
    /// Whether the application decides about each client that asks for a connection: then
    /// [`incoming`](super::Endpoint::incoming) returns it as an [`Incoming`](super::Incoming), and nobody is let in
    /// otherwise. As many clients as `backlog` says can wait for that; requests of others are dropped. A client of the
    /// Game Protocol counts its connection as open while it waits: what it sends reliably is resent, and the rest is
    /// lost. The default is false.
    pub defer_incoming: bool,
    /// The size of the queue between the socket and the protocol in bytes; every receive call is charged 64 bytes more.
    /// Further datagrams are dropped and counted. The default is 16 MiB.
    pub arrival_queue: usize,
    /// Whether an attempt to connect and a ping end at once when the system or a router reports that nothing can be reached at the
    /// address: with [`ConnectFailure::Unreachable`](crate::raknet::ConnectFailure::Unreachable), before the server has answered.
    /// Routers' reports (ICMP) are heard on Linux and Android only; on other systems an attempt at a closed port ends by its timeout.
    /// The default is true. NAT traversal and meshes need false: the router of the other peer may refuse what arrives before that
    /// peer has sent something.
    pub hears_unreachable: bool,
    /// Proxies, such as a [relay](https://docs.rs/rakwire-relay) with `proxy_protocol` for its target, that name the address of each
    /// client by a header of the PROXY protocol, version 2, before the client's first datagrams. Connections, limits and bans have that
    /// address then, and what is sent to it leaves by the proxy. Headers of other senders count for nothing: they are payload that neither
    /// protocol knows. Let only the proxies reach the port, or the addresses of proxies that others cannot forge. The default is none.
    ///
    /// ```
    /// let mut options = rakwire_native::Options::server(8)?;
    /// options.trusted_proxies = vec!["10.0.0.7/32".parse()?, "fd00::/64".parse()?];
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub trusted_proxies: Vec<IpNet>,
    /// A bad network to simulate between the endpoint and its socket, for tests; none by default. Datagrams in it use
    /// memory without a limit. With the feature `sim`.
    #[cfg(feature = "sim")]
    pub simulate: Option<Simulation>,
}

impl<P: Protocol> Options<P> {
    /// The defaults with this configuration.
    #[must_use]
    pub fn new(config: P::Config) -> Self {
        Self {
            config,
            capacity: Capacity::default(),
            receive_queue: 8 << 20,
            backlog: 1_024,
            defer_incoming: false,
            arrival_queue: 16 << 20,
            hears_unreachable: true,
            trusted_proxies: Vec::new(),
            #[cfg(feature = "sim")]
            simulate: None,
        }
    }

    /// The network to simulate, if there is one.
    #[cfg(feature = "sim")]
    pub(crate) const fn simulation(&self) -> Option<Simulation> {
        self.simulate
    }

    /// None, without the feature `sim`.
    #[cfg(not(feature = "sim"))]
    pub(crate) const fn simulation(&self) -> Option<Simulation> {
        None
    }

    /// The defaults for an endpoint that accepts no connections.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub fn client() -> io::Result<Self> {
        Ok(Self::new(P::config(entropy()?)))
    }

    /// Options of an endpoint that accepts up to `max_incoming` connections and can open as many as it has room for.
    /// There is [memory](Capacity::for_connections) for `max_incoming` connections or the default, whichever is more: with
    /// 512 to 16,384 connections each is sure of 16 KB in each direction, whatever the others do.
    ///
    /// # Errors
    /// If the system provides no random bytes.
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

/// Returns random bytes of the system for the keys of a configuration.
pub(crate) fn entropy() -> io::Result<[u8; 32]> {
    let mut entropy = [0; 32];
    getrandom::fill(&mut entropy).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(entropy)
}

/// How many endpoints this program has had.
static ENDPOINTS: AtomicU64 = AtomicU64::new(0);

/// The configuration of one endpoint: others from the same options, as the shards of a server, do not draw the same random
/// bytes, and whoever reads the options later does not compute them.
pub(crate) fn config_of_one<P: Protocol>(mut config: P::Config) -> P::Config {
    // The number alone makes them differ, should the system provide nothing.
    let mut with = entropy().unwrap_or_default();
    let number = ENDPOINTS.fetch_add(1, Ordering::Relaxed);
    with.iter_mut().zip(number.to_be_bytes()).for_each(|(byte, number)| *byte ^= number);
    P::diversify(&mut config, &with);
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

    /// The second request of a client, whose ephemeral key is new.
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
        Offline::Reply1 { guid: Guid(9), security, mtu: 1_492 }.write(&mut writer).expect("room");
        let reply = writer.finish().to_vec();
        client.handle_datagram(Instant::ZERO, address, &reply);
        let request = Machine::poll_transmit(&mut client, Instant::ZERO, &mut buffer);
        request.expect("the second request").payload.to_vec()
    }

    #[test]
    fn endpoints_from_the_same_options_draw_other_random_bytes() {
        let mut options = Options::<RakNet>::client().expect("entropy");
        options.secure().expect("entropy");
        let [first, second] = [(); 2].map(|()| challenge(config_of_one::<RakNet>(options.config.clone())));
        assert_ne!(first, second);
        assert_eq!(challenge(options.config.clone()), challenge(options.config));
    }
}
