//! The receive path of an endpoint: datagrams are read from the socket and queued with their arrival times until the
//! protocol handles them. Headers of the PROXY protocol, version 2, with which trusted proxies announce client
//! addresses, are removed here.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;
use rakwire::Instant;
use rakwire_udp::proxy::{ProxyHeader, SIGNATURE};

use crate::host::Clock;
use crate::simulation::{Direction, NetworkEmulator, Simulation};
use crate::socket::{Buffers, Received, RecvBatch, Socket};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum age of the observation that the socket was empty. Within this time, protocol time advances without another
/// read. The value is small compared with every idle timeout, and large enough that an endpoint under load makes no
/// extra system calls.
const FRESH: Duration = Duration::from_millis(5);

/// Maximum number of datagrams read before protocol time advances. A buffer of 4 MiB holds fewer: Linux charges at
/// least 768 bytes per datagram against twice the buffer size. Time therefore advances even if a sender is faster than
/// this machine.
const MAX_BEFORE_TIME: usize = 16_384;

/// Bytes charged for each batch in addition to its payload.
const OVERHEAD: usize = 64;

/// Reads from the socket, and records when it was last empty.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// `None` before the driver starts and after it has exited.
    socket: Option<Arc<Socket>>,
    buffers: Option<Buffers>,
    empty_at: Option<Instant>,
    /// Datagrams that were read while protocol time was held back.
    before_time: usize,
}

impl Reader {
    /// Sets the socket to read from; `None` stops reading.
    pub(crate) fn use_socket(&mut self, socket: Option<Arc<Socket>>) {
        self.socket = socket;
        self.empty_at = None;
    }

    /// Returns the socket in use, if there is one.
    pub(crate) fn socket(&self) -> Option<Arc<Socket>> {
        self.socket.clone()
    }

    /// Counts `count` datagrams that were read while protocol time is held back, and returns true if time may advance
    /// although the socket is not empty. Once [`MAX_BEFORE_TIME`] datagrams have been read, none of those still in the
    /// socket arrived before time was held back.
    pub(crate) fn time_may_pass(&mut self, count: usize) -> bool {
        self.before_time += count;
        let may_pass = self.before_time >= MAX_BEFORE_TIME;
        if may_pass {
            self.before_time = 0;
        }
        may_pass
    }

    /// Returns true if datagrams may have waited in the socket for longer than [`FRESH`].
    pub(crate) fn may_have_waiting(&self, now: Instant) -> bool {
        self.socket.is_some() && self.empty_at.is_none_or(|empty_at| empty_at + FRESH < now)
    }

    /// Reads the datagrams that the runtime has reported; returns `None` if they have been read already.
    pub(crate) fn read(&mut self, clock: &Clock) -> std::io::Result<Option<(Received<'_>, Arc<Socket>)>> {
        self.read_by(clock, |socket, buffers| socket.try_receive(clock, buffers))
    }

    /// Reads available datagrams without relying on the runtime's readiness; returns `None` if there are none. An error
    /// may concern a datagram that was sent earlier, so it does not imply that the socket is empty.
    pub(crate) fn read_now(&mut self, clock: &Clock) -> std::io::Result<Option<(Received<'_>, Arc<Socket>)>> {
        self.read_by(clock, |socket, buffers| match socket.receive_now(clock, buffers) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            received => received.map(Some),
        })
    }

    fn read_by<'b>(
        &'b mut self,
        clock: &Clock,
        read: impl FnOnce(&Socket, &'b mut Buffers) -> std::io::Result<Option<Received<'b>>>,
    ) -> std::io::Result<Option<(Received<'b>, Arc<Socket>)>> {
        let Some(socket) = self.socket.clone() else { return Ok(None) };
        let before = clock.now();
        let received = read(&socket, self.buffers.get_or_insert_with(Buffers::new))?;
        if received.as_ref().is_none_or(Received::are_all) {
            self.empty_at = Some(before);
            self.before_time = 0;
        }
        Ok(received.map(|received| (received, socket)))
    }
}

/// Received datagrams that have not been handled yet. If the queue is full, new ones are dropped and counted.
#[derive(Debug)]
pub(crate) struct ArrivalQueue {
    limit: usize,
    queue: Mutex<Queue>,
    /// False only if the queue is empty, which is the usual case: [`take`](Self::take) then needs no lock.
    may_have_batches: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    batches: VecDeque<RecvBatch>,
    bytes: usize,
    dropped: u64,
    /// The simulated network between the socket and this queue.
    network: Option<NetworkEmulator>,
}

impl ArrivalQueue {
    /// Creates a queue of at most `limit` bytes and at least one batch, behind a simulated network if one is given.
    pub(crate) fn new(limit: usize, simulation: Option<Simulation>) -> Self {
        let network = simulation.map(|simulation| NetworkEmulator::new(simulation, Direction::In));
        // Datagrams leave a simulated network by time, without a push.
        let may_have_batches = AtomicBool::new(network.is_some());
        let queue = Mutex::new(Queue { network, ..Queue::default() });
        Self { limit, queue, may_have_batches }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, batches: impl Iterator<Item = RecvBatch>) {
        let mut queue = self.lock();
        for batch in batches {
            if let Some(network) = &mut queue.network {
                batch.datagrams().for_each(|datagram| network.send(batch.at, batch.from, datagram));
            } else if queue.bytes >= self.limit {
                queue.dropped += batch.datagrams().len() as u64;
            } else {
                queue.bytes += batch.bytes.len() + OVERHEAD;
                queue.batches.push_back(batch);
            }
        }
        self.may_have_batches.store(true, Ordering::Release);
    }

    /// Returns true if a simulated network precedes the queue.
    pub(crate) fn is_simulated(&self) -> bool {
        self.lock().network.is_some()
    }

    /// Returns true if datagrams may be waiting.
    pub(crate) fn may_have_batches(&self) -> bool {
        self.may_have_batches.load(Ordering::Acquire)
    }

    /// Takes the datagrams that have arrived by `now`.
    pub(crate) fn take(&self, now: Instant) -> VecDeque<RecvBatch> {
        if !self.may_have_batches() {
            return VecDeque::new();
        }
        let mut queue = self.lock();
        if let Some(network) = &mut queue.network {
            let batches = network.receive(now).into_iter().map(|delivered| RecvBatch {
                at: delivered.at,
                from: delivered.address,
                stride: delivered.bytes.len(),
                bytes: delivered.bytes,
            });
            return batches.collect();
        }
        self.may_have_batches.store(false, Ordering::Release);
        queue.bytes = 0;
        std::mem::take(&mut queue.batches)
    }

    /// Returns the time at which the next datagram leaves the simulated network.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.lock().network.as_ref()?.next()
    }

    /// Returns the number of dropped datagrams.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }
}

/// Lifetime of a path without datagrams. It exceeds the silence timeout of every connection.
const KEPT: Duration = Duration::from_secs(300);
/// Number of paths that triggers the first sweep of silent ones.
const FIRST_SWEEP: usize = 1_024;
/// Maximum number of paths: those of four proxies that each use all 65,536 ports, one per client.
const MOST: usize = 1 << 18;

/// Maps client addresses, which the protocol uses, to the proxy paths on which their datagrams arrive, and back.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    trusted: Vec<IpNet>,
    clients: HashMap<SocketAddr, Client>,
    paths: HashMap<SocketAddr, SocketAddr>,
    /// Number of paths that triggers the next sweep of silent ones.
    sweep_at: usize,
    refused: u64,
}

/// The client behind a path.
#[derive(Clone, Copy, Debug)]
struct Client {
    address: SocketAddr,
    last_seen: Instant,
}

impl Proxies {
    pub(crate) fn new(trusted: Vec<IpNet>) -> Self {
        Self { trusted, sweep_at: FIRST_SWEEP, ..Self::default() }
    }

    /// Returns the number of datagrams from trusted proxies that were dropped, because their header was malformed or
    /// the path table was full.
    pub(crate) const fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the client address and the payload of a datagram without its header, or `None` if the datagram is
    /// dropped.
    pub(crate) fn receive<'d>(
        &mut self,
        at: Instant,
        from: SocketAddr,
        datagram: &'d [u8],
    ) -> Option<(SocketAddr, &'d [u8])> {
        if !self.trusted.iter().any(|network| network.contains(&from.ip())) {
            return Some((from, datagram));
        }
        if !datagram.starts_with(&SIGNATURE) {
            return Some((self.touch(at, from), datagram));
        }
        let header = ProxyHeader::read(datagram).ok().flatten();
        let Some((header, payload)) = header.and_then(|it| Some((it, datagram.get(it.length..)?))) else {
            self.refused += 1;
            return None;
        };
        let from = match header.client {
            Some(client) if self.learn(at, from, client) => client,
            Some(_) => {
                self.refused += 1;
                return None;
            }
            // A LOCAL header: the proxy sends on its own behalf, for example for a health check.
            None => from,
        };
        (!payload.is_empty()).then_some((from, payload))
    }

    /// Returns the path on which datagrams reach a client address.
    pub(crate) fn path_to(&self, address: SocketAddr) -> SocketAddr {
        if self.paths.is_empty() { address } else { self.paths.get(&address).copied().unwrap_or(address) }
    }

    /// Returns the address of the client behind a path.
    pub(crate) fn client_behind(&self, path: SocketAddr) -> SocketAddr {
        self.clients.get(&path).map_or(path, |client| client.address)
    }

    fn touch(&mut self, at: Instant, path: SocketAddr) -> SocketAddr {
        let Some(client) = self.clients.get_mut(&path) else { return path };
        client.last_seen = at;
        client.address
    }

    /// Records the client behind a path; replies to a client use its latest path. Returns false if the table is full.
    fn learn(&mut self, at: Instant, path: SocketAddr, address: SocketAddr) -> bool {
        if !self.clients.contains_key(&path) && self.clients.len() >= self.sweep_at.min(MOST) {
            self.sweep(at);
            if self.clients.len() >= MOST {
                return false;
            }
        }
        let before = self.clients.insert(path, Client { address, last_seen: at });
        if let Some(before) = before.filter(|before| before.address != address) {
            self.forget_path(before.address, path);
        }
        self.paths.insert(address, path);
        true
    }

    fn sweep(&mut self, at: Instant) {
        let is_silent = |client: &Client| at.saturating_since(client.last_seen) >= KEPT;
        let silent: Vec<_> = self.clients.extract_if(|_, client| is_silent(client)).collect();
        for (path, client) in silent {
            self.forget_path(client.address, path);
        }
        self.sweep_at = FIRST_SWEEP.max(2 * self.clients.len());
    }

    fn forget_path(&mut self, address: SocketAddr, path: SocketAddr) {
        if self.paths.get(&address) == Some(&path) {
            self.paths.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(bytes: &[u8], stride: usize) -> RecvBatch {
        RecvBatch { at: Instant::ZERO, from: ([127, 0, 0, 1], 1).into(), stride, bytes: bytes.into() }
    }

    #[test]
    fn a_batch_is_split_into_its_datagrams() {
        let batch = batch(&[1, 2, 3, 4, 5], 2);
        let datagrams: Vec<&[u8]> = batch.datagrams().collect();
        assert_eq!(datagrams, [&[1, 2][..], &[3, 4], &[5]]);
    }

    #[test]
    fn dropped_datagrams_are_counted() {
        let queue = ArrivalQueue::new(100, None);
        queue.push([batch(&[0; 100], 50), batch(&[0; 9], 3), batch(&[0; 1], 1)].into_iter());
        assert_eq!(queue.dropped(), 4);
        assert_eq!(queue.take(Instant::ZERO).len(), 1);
        queue.push([batch(&[0; 1], 1)].into_iter());
        assert_eq!((queue.take(Instant::ZERO).len(), queue.dropped()), (1, 4));
    }

    #[test]
    fn datagrams_arrive_when_they_leave_the_simulated_network() {
        let queue = ArrivalQueue::new(0, "latency=2ms".parse().ok());
        queue.push([batch(&[1, 2, 3], 2)].into_iter());
        let end = Instant::from_micros(2_000);
        assert_eq!(queue.next(), Some(end));
        assert!(queue.take(Instant::from_micros(1_999)).is_empty());
        let arrived = queue.take(end);
        assert!(arrived.iter().all(|batch| batch.at == end && batch.datagrams().count() == 1));
        assert_eq!((arrived.len(), queue.dropped()), (2, 0));
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("a literal address")
    }

    fn proxies() -> Proxies {
        Proxies::new(vec!["10.0.0.0/8".parse().expect("a literal network")])
    }

    /// Prepends a header with an IPv4 client address to `payload`.
    fn proxied(client: SocketAddr, payload: &[u8]) -> Vec<u8> {
        let SocketAddr::V4(v4) = client else { panic!("{client}") };
        let port = v4.port().to_be_bytes();
        [&SIGNATURE[..], &[0x21, 0x12, 0, 12], &v4.ip().octets(), &[10, 0, 0, 1], &port, &[0, 80], payload]
            .concat()
    }

    const NOW: Instant = Instant::ZERO;

    #[test]
    fn a_trusted_proxy_sets_the_client_address_of_its_path() {
        let mut proxies = proxies();
        let (path, client) = (address("10.0.0.1:5000"), address("192.0.2.1:7"));
        let datagram = proxied(client, b"first");
        assert_eq!(proxies.receive(NOW, path, &datagram), Some((client, &b"first"[..])));
        assert_eq!(proxies.receive(NOW, path, b"second"), Some((client, &b"second"[..])));
        assert_eq!((proxies.path_to(client), proxies.client_behind(path)), (path, client));
        // A datagram without a payload only sets the address.
        assert_eq!(proxies.receive(NOW, path, &proxied(client, b"")), None);
        assert_eq!(proxies.refused(), 0);
    }

    #[test]
    fn headers_from_untrusted_senders_are_treated_as_payload() {
        let mut proxies = proxies();
        let (from, client) = (address("192.0.2.66:1"), address("192.0.2.1:7"));
        let datagram = proxied(client, b"first");
        assert_eq!(proxies.receive(NOW, from, &datagram), Some((from, &datagram[..])));
        assert_eq!(proxies.path_to(client), client);
    }

    #[test]
    fn a_local_header_keeps_the_address_of_the_proxy() {
        let mut proxies = proxies();
        let path = address("10.0.0.1:5000");
        let local = [&SIGNATURE[..], &[0x20, 0, 0, 0], b"ping"].concat();
        assert_eq!(proxies.receive(NOW, path, &local), Some((path, &b"ping"[..])));
        assert_eq!(proxies.receive(NOW, path, b"ping"), Some((path, &b"ping"[..])));
    }

    #[test]
    fn malformed_headers_are_dropped_and_counted() {
        let mut proxies = proxies();
        let datagram = proxied(address("192.0.2.1:7"), b"");
        for end in SIGNATURE.len()..datagram.len() {
            assert_eq!(proxies.receive(NOW, address("10.0.0.1:5000"), &datagram[..end]), None);
        }
        assert_eq!(proxies.refused(), 16);
    }

    #[test]
    fn replies_use_the_latest_path_of_a_client() {
        let mut proxies = proxies();
        let [old, new] = ["10.0.0.1:5000", "10.0.0.1:5001"].map(address);
        let [one, two] = ["192.0.2.1:7", "192.0.2.2:7"].map(address);
        for (path, client) in [(old, one), (new, one), (old, two)] {
            proxies.receive(NOW, path, &proxied(client, b"payload"));
        }
        assert_eq!((proxies.path_to(one), proxies.path_to(two)), (new, old));
        assert_eq!((proxies.client_behind(old), proxies.client_behind(new)), (two, one));
        proxies.receive(NOW, new, &proxied(two, b"payload"));
        assert_eq!((proxies.path_to(one), proxies.path_to(two)), (one, new));
    }

    #[test]
    fn silent_paths_expire_and_their_number_is_bounded() {
        let mut proxies = proxies();
        let path = |number: usize| {
            let [.., a, b, c, d] = number.to_be_bytes();
            SocketAddr::from(([10, a, b, 1], u16::from_be_bytes([c, d])))
        };
        let client = |number: usize| {
            let [.., a, b, c, d] = number.to_be_bytes();
            SocketAddr::from(([192, a, b, 1], u16::from_be_bytes([c, d])))
        };
        for number in 0..MOST {
            assert!(proxies.learn(NOW, path(number), client(number)));
        }
        let one_more = proxied(client(MOST), b"payload");
        assert_eq!(proxies.receive(NOW, path(MOST), &one_more), None);
        assert_eq!(proxies.refused(), 1);
        let later = NOW + KEPT;
        proxies.touch(later, path(0));
        assert!(proxies.receive(later, path(MOST), &one_more).is_some());
        assert_eq!((proxies.clients.len(), proxies.paths.len()), (2, 2));
    }
}
