//! How an endpoint behaves, and how much memory it takes.

use std::io;
use std::time::Duration;

use rakwire::game_protocol::{Capacity, Config};

use crate::simulation::Simulation;

/// How an endpoint behaves: the protocol's configuration, and the sizes of its queues.
///
/// ```
/// use rakwire_native::game::{Options, Resend};
///
/// let mut options = Options::server(64)?;
/// options.config.resend = Resend::ROUND_TRIP;
/// assert_eq!(options.config.max_incoming, 64);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How the protocol behaves.
    pub config: Config,
    /// How many connections there may be, and the memory for messages that are on their way. One connection takes at
    /// most half of it in each direction.
    pub capacity: Capacity,
    /// Bytes of messages that one connection may have ready for the application, each counted with 64 more; 8 MiB
    /// unless changed. While there are more, its chunks are not taken and not acknowledged: what is reliable is sent
    /// again.
    pub receive_queue: usize,
    /// Connections that wait for [`accept`](super::Endpoint::accept); further ones are disconnected at once. 1,024
    /// unless changed.
    pub backlog: usize,
    /// Bytes of datagrams that wait for the protocol after they were received, each read counted with 64 more; further
    /// ones are dropped and counted. 16 MiB unless changed.
    pub arrival_queue: usize,
    /// From how many ports [`connect`](super::connect) tries, at least 1; 5 unless changed.
    pub attempts: u8,
    /// A bad network to simulate between the endpoint and its socket; none unless set.
    pub simulate: Option<Simulation>,
}

/// How long a client waits for a challenge before it tries again from another port.
const ATTEMPT: Duration = Duration::from_secs(1);

impl Options {
    /// Options with this configuration, default memory and default queues.
    ///
    /// ```
    /// use rakwire_native::game::{Config, Options};
    ///
    /// // Only where nobody may guess the entropy: it becomes the keys of peppers and salts.
    /// let options = Options::new(Config::new([7; 32]));
    /// assert_eq!(options.attempts, 5);
    /// ```
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            capacity: Capacity::default(),
            receive_queue: 8 << 20,
            backlog: 1_024,
            arrival_queue: 16 << 20,
            attempts: 5,
            simulate: None,
        }
    }

    /// Options of an endpoint that accepts no connections. Each attempt to open one takes a second at most.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn client() -> io::Result<Self> {
        let mut options = Self::new(Config::new(entropy()?));
        options.config.handshake_timeout = ATTEMPT;
        Ok(options)
    }

    /// Options of an endpoint that accepts up to `max_incoming` connections. Memory is made for `max_incoming`
    /// connections or the default, whichever is more.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn server(max_incoming: u16) -> io::Result<Self> {
        let mut options = Self::client()?;
        options.config.max_incoming = max_incoming;
        options.capacity.connections = options.capacity.connections.max(max_incoming.into());
        Ok(options)
    }

    /// The same with another salt.
    pub(super) fn fresh(&self) -> io::Result<Self> {
        let mut options = self.clone();
        let fresh = Config::new(entropy()?);
        options.config.salt_key = fresh.salt_key;
        if let Some(simulation) = &mut options.simulate {
            // What befell one attempt need not befall the next.
            simulation.seed = simulation.seed.wrapping_add(1);
        }
        Ok(options)
    }
}

fn entropy() -> io::Result<[u8; 32]> {
    let mut entropy = [0; 32];
    getrandom::fill(&mut entropy).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(entropy)
}
