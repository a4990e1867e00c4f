//! Accepts incoming connections, with limits in total, per address and per network.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rakwire::endpoint::{ClientLimits, Origin, Side};
use rakwire_native::Clock;
use rakwire_udp::canonical;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use super::connection::{Connection, Counter, Opened, Shared};
use super::options::Options;
use super::spans::EndpointSpan;
use super::stream::{configure, start};

/// Pause after a failed accept call, usually because the process has no free file descriptor.
const PAUSE: Duration = Duration::from_millis(100);

/// The counters of an endpoint since it was bound.
///
/// ```
/// use rakwire_extras::tcp::{Endpoint, Options};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Endpoint::bind("127.0.0.1:0", Options::server(1)).await?;
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()).await?;
/// let first = client.connect(server.local_addr()).await?;
/// let second = client.connect(server.local_addr()).await?;
/// second.closed().await; // there is one slot
/// assert_eq!(server.stats().refused, 1);
/// # drop(first);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Incoming connections that are open, or being opened or closed.
    pub incoming: usize,
    /// Incoming connections closed immediately because [`max_incoming`](super::Options::max_incoming) was reached.
    pub refused: u64,
    /// Incoming connections closed immediately because [`max_per_address`](super::Options::max_per_address) was
    /// reached.
    pub refused_by_address: u64,
    /// Incoming connections closed immediately because [`max_per_network`](super::Options::max_per_network) was
    /// reached.
    pub refused_by_network: u64,
    /// TLS handshakes of clients that failed or exceeded [`handshake_timeout`](super::Options::handshake_timeout).
    pub handshakes_failed: u64,
    /// Failed accept calls, usually because the process has no free file descriptor.
    pub accept_failures: u64,
}

/// State shared by the tasks of an endpoint.
#[derive(Debug)]
pub(super) struct EndpointState {
    pub(super) options: Options,
    pub(super) counters: EndpointCounters,
    pub(super) span: EndpointSpan,
    clock: Clock,
    connections: Mutex<Vec<Weak<Shared>>>,
    is_closed: watch::Sender<bool>,
}

#[derive(Debug, Default)]
pub(super) struct EndpointCounters {
    pub(super) refused: Counter,
    pub(super) refused_by_address: Counter,
    pub(super) refused_by_network: Counter,
    pub(super) accept_failures: Counter,
    #[cfg(feature = "tls")]
    pub(super) handshakes_failed: Counter,
}

impl EndpointState {
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            counters: EndpointCounters::default(),
            span: EndpointSpan::new(),
            clock: Clock::start(),
            connections: Mutex::default(),
            is_closed: watch::Sender::new(false),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        *self.is_closed.borrow()
    }

    /// Waits until the endpoint stops accepting connections.
    pub(super) async fn closed(&self) {
        // This cannot fail: the sender lives as long as this value.
        let _ = self.is_closed.subscribe().wait_for(|is_closed| *is_closed).await;
    }

    pub(super) fn stop(&self) {
        self.is_closed.send_replace(true);
    }

    /// Registers a connection, to close it with the endpoint.
    pub(super) fn register(&self, shared: &Arc<Shared>) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        // Closed connections are removed whenever the list would grow, so that the cost is amortised.
        if connections.len() == connections.capacity() {
            connections.retain(|connection| connection.strong_count() > 0);
        }
        connections.push(Arc::downgrade(shared));
        drop(connections);
        if self.is_closed() {
            shared.close();
        }
    }

    pub(super) fn connections(&self) -> Vec<Arc<Shared>> {
        let connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.iter().filter_map(Weak::upgrade).collect()
    }
}

/// The slot of an incoming connection. It is freed once the connection has been accepted and has closed.
type SharedPlace = Arc<Place>;

/// A connection that waits to be accepted.
#[derive(Debug)]
pub(super) struct Unaccepted {
    pub(super) connection: Connection,
    _place: SharedPlace,
}

/// Accepts connections until the endpoint closes.
pub(super) async fn listen(
    listener: TcpListener,
    places: Arc<Places>,
    queue: mpsc::UnboundedSender<Unaccepted>,
    state: Arc<EndpointState>,
) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = state.closed() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, remote) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                state.counters.accept_failures.add(1);
                if !is_of_client(&error) {
                    tokio::time::sleep(PAUSE).await;
                }
                continue;
            }
        };
        match places.take(remote) {
            Ok(place) => {
                configure(&stream, state.options.timeout);
                open(stream, canonical(remote), Arc::new(place), queue.clone(), &state);
            }
            Err(reason) => refuse(remote, reason, &state),
        }
    }
    drop(listener);
    state.span.closed();
}

/// Counts and logs a refused client. Its connection is closed immediately.
fn refuse(remote: SocketAddr, reason: NoPlace, state: &EndpointState) {
    let (counter, reason) = match reason {
        NoPlace::Full => (&state.counters.refused, "too many connections"),
        NoPlace::FullForAddress => {
            (&state.counters.refused_by_address, "too many connections from its address")
        }
        NoPlace::FullForNetwork => {
            (&state.counters.refused_by_network, "too many connections from its network")
        }
    };
    counter.add(1);
    state.span.refused(state.clock.now(), canonical(remote), &reason);
}

/// Returns true if an accept error concerns a single client that has already left, and not the listener.
fn is_of_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Opens a connection on a stream, after the TLS handshake if there is one.
fn open(
    stream: TcpStream,
    remote: SocketAddr,
    place: SharedPlace,
    queue: mpsc::UnboundedSender<Unaccepted>,
    state: &Arc<EndpointState>,
) {
    #[cfg(feature = "tls")]
    if let Some(config) = state.options.tls.clone() {
        let state = state.clone();
        tokio::spawn(async move {
            let handshake = tokio_rustls::TlsAcceptor::from(config).accept(stream);
            let stream = tokio::select! {
                biased;
                () = state.closed() => return,
                stream = tokio::time::timeout(state.options.handshake_timeout, handshake) => stream,
            };
            match stream {
                Ok(Ok(stream)) => enqueue(stream, remote, place, &queue, &state),
                Ok(Err(_)) | Err(_) => {
                    state.counters.handshakes_failed.add(1);
                    state.span.refused(state.clock.now(), remote, &"the TLS handshake failed");
                }
            }
        });
        return;
    }
    enqueue(stream, remote, place, &queue, state);
}

fn enqueue(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    remote: SocketAddr,
    place: SharedPlace,
    queue: &mpsc::UnboundedSender<Unaccepted>,
    state: &Arc<EndpointState>,
) {
    let span = state.span.connection(remote, Side::Server);
    let opened = Opened { remote, span, first_message_timeout: state.options.first_message_timeout };
    let shared = start(stream, opened, &state.options, place.clone());
    state.register(&shared);
    // If the endpoint no longer accepts, this drops the only handle, which closes the connection.
    let _ = queue.send(Unaccepted { connection: Connection::new(shared), _place: place });
}

/// The reason why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoPlace {
    /// All slots are taken.
    Full,
    /// The address has reached its limit.
    FullForAddress,
    /// The network has reached its limit.
    FullForNetwork,
}

/// The slots of an endpoint.
#[derive(Debug)]
pub(super) struct Places {
    max: usize,
    limits: ClientLimits,
    taken: Mutex<Taken>,
}

/// Slots in use, by address and by network. Entries without a slot are removed, so that the tables have no more entries
/// than there are slots.
#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_address: HashMap<u128, usize>,
    by_network: HashMap<u128, usize>,
}

/// A slot, which is freed when this value is dropped.
#[derive(Debug)]
struct Place {
    places: Arc<Places>,
    /// `None` if the client's address is not limited.
    origin: Option<Origin>,
}

impl Places {
    pub(super) fn new(options: &Options) -> Arc<Self> {
        let max_incoming = u16::try_from(options.max_incoming).unwrap_or(u16::MAX);
        let limits = ClientLimits::new(max_incoming, options.max_per_address, options.max_per_network);
        Arc::new(Self { max: options.max_incoming, limits, taken: Mutex::default() })
    }

    /// Takes a slot for a client.
    fn take(self: &Arc<Self>, client: SocketAddr) -> Result<Place, NoPlace> {
        let origin = Origin::of(client.ip());
        let mut taken = self.lock();
        if taken.all >= self.max {
            return Err(NoPlace::Full);
        }
        if let Some(origin) = origin {
            if is_full(&taken.by_address, origin.address, self.limits.address) {
                return Err(NoPlace::FullForAddress);
            }
            if is_full(&taken.by_network, origin.network, self.limits.network) {
                return Err(NoPlace::FullForNetwork);
            }
            *taken.by_address.entry(origin.address).or_default() += 1;
            *taken.by_network.entry(origin.network).or_default() += 1;
        }
        taken.all += 1;
        drop(taken);
        Ok(Place { places: Arc::clone(self), origin })
    }

    pub(super) fn taken(&self) -> usize {
        self.lock().all
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if an address or a network has reached its limit. `u16::MAX` means no limit.
fn is_full(taken: &HashMap<u128, usize>, part: u128, limit: u16) -> bool {
    limit < u16::MAX && taken.get(&part).is_some_and(|taken| *taken >= usize::from(limit.max(1)))
}

fn leave(taken: &mut HashMap<u128, usize>, part: u128) {
    if let Some(of_part) = taken.get_mut(&part) {
        *of_part = of_part.saturating_sub(1);
        if *of_part == 0 {
            taken.remove(&part);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.all = taken.all.saturating_sub(1);
        if let Some(origin) = self.origin {
            leave(&mut taken.by_address, origin.address);
            leave(&mut taken.by_network, origin.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(ip: &str) -> SocketAddr {
        SocketAddr::new(ip.parse().expect("an address"), 19_132)
    }

    fn places(max: usize, per_address: Option<u16>, per_network: Option<u16>) -> Arc<Places> {
        let mut options = Options::server(max);
        (options.max_per_address, options.max_per_network) = (per_address, per_network);
        Places::new(&options)
    }

    impl Places {
        fn entries(&self) -> (usize, usize) {
            let taken = self.lock();
            (taken.by_address.len(), taken.by_network.len())
        }
    }

    #[test]
    fn per_address_limits_count_mapped_ipv4_as_ipv4_and_ipv6_by_prefix() {
        let places = places(10, Some(2), None);
        for (one, same, other) in [
            ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
            ("2001:db8::1", "2001:db8::ffff:0:0:2", "2001:db8:0:1::1"),
        ] {
            let kept = [places.take(client(one)), places.take(client(same))];
            assert!(kept.iter().all(Result::is_ok));
            for ip in [one, same] {
                assert_eq!(places.take(client(ip)).err(), Some(NoPlace::FullForAddress), "{ip}");
            }
            assert!(places.take(client(other)).is_ok());
            drop(kept);
            assert!(places.take(client(same)).is_ok(), "free again");
        }
        assert_eq!((places.taken(), places.entries()), (0, (0, 0)));
    }

    #[test]
    fn all_addresses_of_a_network_share_one_limit() {
        let places = places(10, None, Some(2));
        for (members, other) in [
            (["192.0.2.1", "192.0.2.2", "::ffff:192.0.2.3"], "192.0.3.1"),
            (["2001:db8::1", "2001:db8:0:1::1", "2001:db8:0:2::1"], "2001:db8:1::1"),
        ] {
            let [first, second, third] = members;
            let kept = [first, second].map(|ip| places.take(client(ip)).expect("a free slot"));
            assert_eq!(places.take(client(third)).err(), Some(NoPlace::FullForNetwork), "{third}");
            assert!(places.take(client(other)).is_ok());
            drop(kept);
            assert!(places.take(client(third)).is_ok(), "free again");
        }
        assert_eq!((places.taken(), places.entries()), (0, (0, 0)));
    }

    #[test]
    fn default_limits_leave_slots_for_other_addresses_and_networks() {
        let places = places(16, None, None);
        let taken: Vec<_> = (0..12).map(|_| places.take(client("192.0.2.1")).expect("a free slot")).collect();
        assert_eq!(places.take(client("192.0.2.1")).err(), Some(NoPlace::FullForAddress));
        let neighbours = ["192.0.2.2", "192.0.2.3"].map(|ip| places.take(client(ip)).expect("a free slot"));
        assert_eq!(places.take(client("192.0.2.4")).err(), Some(NoPlace::FullForNetwork));
        assert!(places.take(client("198.51.100.1")).is_ok());
        drop((taken, neighbours));
    }

    #[test]
    fn loopback_and_private_addresses_have_no_per_address_or_network_limit() {
        let places = places(40, Some(1), Some(1));
        let local = ["127.0.0.1", "10.1.2.3", "fd00::1", "::1"];
        let kept: Vec<_> = local.iter().cycle().take(40).map(|ip| places.take(client(ip))).collect();
        assert!(kept.iter().all(Result::is_ok));
        assert_eq!(places.take(client("127.0.0.1")).err(), Some(NoPlace::Full));
    }

    #[test]
    fn all_addresses_together_stay_within_max_incoming() {
        let places = places(2, None, None);
        let kept = ["192.0.2.1", "192.0.2.2"].map(|ip| places.take(client(ip)).expect("a free slot"));
        assert_eq!(places.take(client("192.0.2.3")).err(), Some(NoPlace::Full));
        assert_eq!((places.taken(), places.entries()), (2, (2, 1)));
        drop(kept);
        assert_eq!(places.taken(), 0);
    }

    #[test]
    fn limits_of_zero_admit_one_connection_per_address() {
        assert!(places(1, Some(0), Some(0)).take(client("192.0.2.1")).is_ok());
    }
}
