//! The network between drivers: a simulated link for each direction of each pair of peers.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as Clock};

use rakwire::Instant;
use rakwire::sim::{Conditions, Link};

/// The maximum interval between polls of the sockets while nothing is in flight.
const PAUSE: Duration = Duration::from_micros(500);

/// One direction of the path between a pair of peers.
struct Direction {
    link: Link,
    from: UdpSocket,
    to: Option<SocketAddr>,
}

/// The state that the network shares with its thread.
struct Shared {
    directions: Vec<Direction>,
    /// The pairs of peers between which all datagrams are dropped, as indices.
    cut: Vec<(usize, usize)>,
    peers: usize,
}

/// A network between peers. Each peer sees every other peer at a separate address, which is the same for incoming and
/// outgoing connections.
pub struct Network {
    shared: Arc<Mutex<Shared>>,
    addresses: Vec<SocketAddr>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    peers: usize,
}

impl Network {
    /// Creates a network between `peers` peers.
    pub fn start(peers: usize, conditions: Conditions, seed: u64) -> io::Result<Self> {
        let mut directions = Vec::new();
        let mut addresses = Vec::new();
        for place in 0..peers * peers {
            // At this socket's address, another peer sees peer `of`. Each peer has its own IP address, so a script can
            // ban it.
            let of = place % peers;
            let socket = UdpSocket::bind(SocketAddrV4::new(ip_of(of), 0))?;
            socket.set_nonblocking(true)?;
            addresses.push(socket.local_addr()?);
            let link = Link::new(conditions, seed.wrapping_mul(1_000).wrapping_add(place as u64));
            directions.push(Direction { link, from: socket, to: None });
        }
        let shared = Arc::new(Mutex::new(Shared { directions, cut: Vec::new(), peers }));
        let is_over = Arc::new(AtomicBool::new(false));
        let (state, end) = (Arc::clone(&shared), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || carry(&state, &end));
        Ok(Self { shared, addresses, is_over, thread: Some(thread), peers })
    }

    /// Returns the address at which `seen_by` sees `of`.
    #[must_use]
    pub fn address(&self, of: usize, seen_by: usize) -> SocketAddr {
        self.addresses[seen_by * self.peers + of]
    }

    /// Returns the peer that `seen_by` sees at an address.
    #[must_use]
    pub fn peer_at(&self, address: SocketAddr, seen_by: usize) -> Option<usize> {
        (0..self.peers).find(|of| self.address(*of, seen_by) == address)
    }

    /// Sets the real socket address of a peer. Call it after each start of the peer.
    pub fn place(&self, peer: usize, at: SocketAddr) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let peers = shared.peers;
        // The socket at which `seen_by` sees `of` receives the datagrams from `seen_by` to `of`.
        for seen_by in 0..peers {
            shared.directions[seen_by * peers + peer].to = Some(at);
        }
    }

    /// Returns the real socket address of a peer, once it has started.
    #[must_use]
    pub fn place_of(&self, peer: usize) -> Option<SocketAddr> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).directions[peer].to
    }

    /// Starts or stops dropping all datagrams between two peers.
    pub fn cut(&self, one: usize, other: usize, is_cut: bool) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.cut.retain(|pair| *pair != (one, other) && *pair != (other, one));
        if is_cut {
            shared.cut.push((one, other));
        }
    }

    /// Sets the conditions of all links.
    pub fn set_conditions(&self, conditions: Conditions) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.directions.iter_mut().for_each(|direction| direction.link.set_conditions(conditions));
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, it has already printed the reason.
            let _ = thread.join();
        }
    }
}

/// Returns the IP address at which other peers see a peer.
#[must_use]
pub fn ip_of(peer: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 1, u8::try_from(peer + 1).unwrap_or(u8::MAX))
}

fn carry(shared: &Mutex<Shared>, is_over: &AtomicBool) {
    let start = Clock::now();
    let mut bytes = [0; 2_048];
    while !is_over.load(Ordering::Relaxed) {
        let now = Instant::from_micros(u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX));
        let moved = step(&mut shared.lock().unwrap_or_else(PoisonError::into_inner), now, &mut bytes);
        if !moved {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Passes received datagrams to the links, and sends the datagrams that the links deliver. Returns true if it received
/// or sent a datagram.
fn step(shared: &mut Shared, now: Instant, bytes: &mut [u8]) -> bool {
    let mut moved = false;
    let peers = shared.peers;
    for place in 0..shared.directions.len() {
        let (seen_by, of) = (place / peers, place % peers);
        let is_cut = shared.cut.contains(&(seen_by, of)) || shared.cut.contains(&(of, seen_by));
        let direction = &mut shared.directions[place];
        while let Ok((length, _)) = direction.from.recv_from(bytes) {
            moved = true;
            if !is_cut {
                direction.link.send(now, &bytes[..length]);
            }
        }
        let to = direction.to;
        while let Some(datagram) = shared.directions[place].link.receive(now) {
            moved = true;
            // Send from the socket at which `of` sees `seen_by`.
            if let (Some(to), false) = (to, is_cut) {
                // A datagram that the operating system refuses is lost, as on any network.
                let _ = shared.directions[of * peers + seen_by].from.send_to(&datagram, to);
            }
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(network: &Network, index: usize) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a time limit");
        network.place(index, socket.local_addr().expect("an address"));
        socket
    }

    #[test]
    fn a_peer_sends_to_the_address_that_it_receives_from() {
        let network = Network::start(3, Conditions::default(), 1).expect("a network");
        let (a, b) = (peer(&network, 0), peer(&network, 1));
        b.send_to(b"hello", network.address(0, 1)).expect("a datagram");
        let mut bytes = [0; 16];
        let (length, from) = a.recv_from(&mut bytes).expect("a datagram");
        assert_eq!((&bytes[..length], from), (&b"hello"[..], network.address(1, 0)));
        assert_eq!(network.peer_at(from, 0), Some(1));
        assert_eq!(from.ip(), ip_of(1));
        a.send_to(b"back", from).expect("a datagram");
        let (length, from) = b.recv_from(&mut bytes).expect("a datagram");
        assert_eq!((&bytes[..length], from), (&b"back"[..], network.address(0, 1)));
    }

    #[test]
    fn a_cut_direction_drops_datagrams_until_it_is_restored() {
        let network = Network::start(2, Conditions::default(), 1).expect("a network");
        let (a, b) = (peer(&network, 0), peer(&network, 1));
        network.cut(1, 0, true);
        b.send_to(b"lost", network.address(0, 1)).expect("a datagram");
        a.set_read_timeout(Some(Duration::from_millis(200))).expect("a time limit");
        assert!(a.recv_from(&mut [0; 16]).is_err());
        network.cut(1, 0, false);
        a.set_read_timeout(Some(Duration::from_secs(10))).expect("a time limit");
        b.send_to(b"there", network.address(0, 1)).expect("a datagram");
        let mut bytes = [0; 16];
        let (length, _) = a.recv_from(&mut bytes).expect("a datagram");
        assert_eq!(&bytes[..length], b"there");
    }
}
