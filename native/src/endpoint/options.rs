//! How an endpoint behaves, and how much memory it takes.

use std::io;

use rakwire::endpoint::{Capacity, Protocol};

use crate::entropy::entropy;
use crate::simulation::Simulation;

/// How an endpoint behaves: the protocol's configuration, and the sizes of its queues.
///
/// ```
/// use std::time::Duration;
/// use rakwire_native::{Options, game_protocol};
///
/// let mut options = Options::server(64)?;
/// options.config.timeout = Duration::from_secs(30);
/// options.capacity.blocks = 32_768;
/// assert_eq!(options.config.max_incoming, 64);
///
/// let mut options = game_protocol::Options::server(64)?;
/// options.config.resend = game_protocol::Resend::ROUND_TRIP;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options<P: Protocol> {
    /// How the protocol behaves.
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
    /// Default: 64 connections with 32,768 blocks of 512 bytes: 64 KB are guaranteed to each in each direction, and a
    /// message may have 4 MB. [`server`](Self::server) has more for more connections. Memory of the machine is taken only
    /// as far as blocks are used.
    pub capacity: Capacity,
    /// Bytes of messages that one connection may have ready for the application, each counted with 64 more; 8 MiB
    /// unless changed.
    ///
    /// While there are more, the data of that connection are not taken, and so not acknowledged: the other peer sends
    /// again what is reliable, until the application has read half of what waits. No message is lost but unreliable
    /// ones, and no other connection is held up. One datagram can complete several messages; so a connection can have more ready
    /// than this, by at most half of the memory in `capacity`.
    pub receive_queue: usize,
    /// Connections that wait for [`accept`](super::Endpoint::accept); further ones are disconnected at once. 1,024
    /// unless changed.
    pub backlog: usize,
    /// Bytes of datagrams that wait for the protocol after they were received, each read counted with 64 more; further
    /// ones are dropped and counted. 16 MiB unless changed.
    pub arrival_queue: usize,
    /// A bad network to simulate between the endpoint and its socket, for tests and for games that want to know how
    /// they feel; none unless set. What is on its way takes memory without a limit.
    ///
    /// ```
    /// let mut options = rakwire_native::Options::client()?;
    /// options.simulate = Some("loss=5%,latency=50ms,jitter=10ms".parse()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub simulate: Option<Simulation>,
}

impl<P: Protocol> Options<P> {
    /// Options with this configuration, default memory and default queues.
    ///
    /// ```
    /// use rakwire_native::{Config, Options};
    ///
    /// // A constant only here: keys are made of these bytes, and nobody may guess them.
    /// let options = Options::new(Config::new([7; 32]));
    /// assert_eq!(options.receive_queue, 8 << 20);
    /// ```
    #[must_use]
    pub fn new(config: P::Config) -> Self {
        Self {
            config,
            capacity: Capacity::default(),
            receive_queue: 8 << 20,
            backlog: 1_024,
            arrival_queue: 16 << 20,
            simulate: None,
        }
    }

    /// Options of an endpoint that accepts no connections.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    ///
    /// ```
    /// assert_eq!(rakwire_native::Options::client()?.config.max_incoming, 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn client() -> io::Result<Self> {
        Ok(Self::new(P::config(entropy()?)))
    }

    /// Options of an endpoint that accepts up to `max_incoming` connections and can open as many as it has room for.
    /// There is [memory](Capacity::for_connections) for `max_incoming` connections or the default, whichever is more: with
    /// 256 to 16,384 connections each is sure of 16 KB in each direction, whatever the others do.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    ///
    /// ```
    /// let options = rakwire_native::Options::server(500)?;
    /// assert_eq!((options.config.max_incoming, options.capacity.connections), (500, 500));
    /// assert_eq!(options.capacity.blocks, 64_000);
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
