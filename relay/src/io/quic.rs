//! The UDP socket of QUIC, which also receives datagrams for data channels and the front at the same port.
//!
//! Also limits the QUIC handshakes in progress: in total, and per network for clients with a validated address.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

use super::app::App;
use super::data_channels::DataChannels;
use super::front::Gate;
use crate::addresses::canonical;
use crate::front::{FREE_SHARE, Places, site};
use crate::webrtc::DatagramKind;

/// The UDP socket of QUIC, which also receives datagrams for data channels and the front.
pub(super) struct SharedSocket {
    socket: Arc<dyn AsyncUdpSocket>,
    beside: Beside,
    app: Arc<App>,
}

/// The other parts that receive datagrams at the port of QUIC.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside {
    pub(crate) channels: Option<DataChannels>,
    pub(crate) front: Option<Arc<dyn Gate>>,
}

impl Beside {
    pub(super) const fn is_empty(&self) -> bool {
        self.channels.is_none() && self.front.is_none()
    }
}

impl fmt::Debug for SharedSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSocket").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl SharedSocket {
    pub(super) fn new(socket: Arc<dyn AsyncUdpSocket>, beside: Beside, app: Arc<App>) -> Self {
        Self { socket, beside, app }
    }

    /// Passes datagrams of one sender to the part that they belong to. Returns false if they belong to QUIC.
    fn pass_on(&self, from: SocketAddr, bytes: &[u8], stride: usize) -> bool {
        let Beside { channels, front } = &self.beside;
        if front.as_ref().is_some_and(|front| front.take(from, bytes, stride)) {
            return true;
        }
        let Some(channels) = channels.as_ref().filter(|_| DatagramKind::of(bytes) != DatagramKind::Other)
        else {
            return false;
        };
        for datagram in bytes.chunks(stride.max(1)) {
            channels.handle_datagram(&self.app, from, datagram);
        }
        true
    }
}

impl AsyncUdpSocket for SharedSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.socket).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let _only = self.beside.front.as_ref().map(|front| front.keep_fragmentation());
        self.socket.try_send(transmit)
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(self.socket.poll_recv(context, buffers, metas))?;
        for (buffer, meta) in buffers.iter().zip(&mut *metas).take(count) {
            // A buffer holds datagrams of one sender, which uses one protocol.
            if self.pass_on(canonical(meta.addr), &buffer[..meta.len], meta.stride) {
                // QUIC skips empty buffers.
                meta.len = 0;
            }
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

/// The maximum number of handshakes at a time.
const TOTAL_MAX: usize = 256;

/// Number of handshakes above which a client must validate its address before memory is allocated for it, at the cost
/// of a round trip.
const UNPROVEN_MAX: usize = 32;

/// The maximum number of handshakes of one address.
const OF_ADDRESS_MAX: usize = 32;

/// The QUIC handshakes in progress, limited in total, and per network for clients with a validated address. Clones
/// share the same slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Handshakes(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    taken: usize,
    of_address: Places,
    of_network: Places,
}

/// The slot of one handshake, released on drop.
#[derive(Debug)]
pub(super) struct Handshake {
    places: Handshakes,
    proven: Option<IpAddr>,
}

impl Handshakes {
    /// Returns true if there are so many handshakes that clients must validate their addresses first.
    pub(super) fn must_validate(&self) -> bool {
        self.lock().taken >= UNPROVEN_MAX
    }

    /// Takes a slot for a client, or returns `None` if there is none. Addresses that are not validated do not count for
    /// their network, because a forger could take the slots of others.
    pub(super) fn begin(&self, proven: Option<IpAddr>) -> Option<Handshake> {
        let proven = proven.map(|ip| ip.to_canonical());
        let mut places = self.lock();
        let free = TOTAL_MAX.checked_sub(places.taken + 1)?;
        if let Some(ip) = proven {
            let has_place = places.of_address.admits(ip, OF_ADDRESS_MAX)
                && places.of_network.admits(site(ip), free / FREE_SHARE + 1);
            if !has_place {
                return None;
            }
            places.of_network.take(site(ip));
            places.of_address.take(ip);
        }
        places.taken += 1;
        drop(places);
        Some(Handshake { places: self.clone(), proven })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Each change leaves the counts consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        let mut places = self.places.lock();
        places.taken = places.taken.saturating_sub(1);
        if let Some(ip) = self.proven {
            places.of_network.release(site(ip));
            places.of_address.release(ip);
        }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    mod shared_socket {
        use std::sync::{Mutex, PoisonError};
        use std::thread;

        use rustix::net::sockopt::{Ipv4PathMtuDiscovery, ip_mtu_discover};

        use super::super::*;
        use crate::admission::{Admission, Targets};
        use crate::config::Config;
        use crate::io::batch::BatchSocket;

        const ROUNDS: usize = 5_000;

        /// A front that sends datagrams longer than the minimum QUIC packet.
        #[derive(Debug)]
        struct Sending(BatchSocket);

        impl Gate for Sending {
            fn take(&self, _: SocketAddr, _: &[u8], _: usize) -> bool {
                false
            }

            fn keep_fragmentation(&self) -> MutexGuard<'_, ()> {
                self.0.keep_fragmentation()
            }
        }

        /// Records whether fragmentation is disabled when QUIC sends.
        #[derive(Debug)]
        struct Noting {
            socket: std::net::UdpSocket,
            found: Mutex<Vec<bool>>,
        }

        impl AsyncUdpSocket for Noting {
            fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
                unreachable!("the test does not wait")
            }

            fn try_send(&self, _: &Transmit<'_>) -> io::Result<()> {
                let is_forbidden = ip_mtu_discover(&self.socket)? == Ipv4PathMtuDiscovery::PROBE;
                self.found.lock().unwrap_or_else(PoisonError::into_inner).push(is_forbidden);
                Ok(())
            }

            fn poll_recv(
                &self,
                _: &mut Context<'_>,
                _: &mut [IoSliceMut<'_>],
                _: &mut [RecvMeta],
            ) -> Poll<io::Result<usize>> {
                Poll::Pending
            }

            fn local_addr(&self) -> io::Result<SocketAddr> {
                self.socket.local_addr()
            }
        }

        #[tokio::test]
        async fn quic_packets_are_never_fragmented_beside_a_front() {
            let config = Config::new("127.0.0.1:0".parse().unwrap());
            let admission = Admission::new(&config, Targets::default()).unwrap();
            let app = Arc::new(App::new(admission, &config, None));
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            let to = socket.local_addr().unwrap();
            let front = Arc::new(Sending(BatchSocket::beside_quic(socket.try_clone().unwrap()).unwrap()));
            let quic = Arc::new(Noting { socket, found: Mutex::default() });
            let gate = Arc::clone(&front) as Arc<dyn Gate>;
            let beside = Beside { channels: None, front: Some(gate) };
            let shared = SharedSocket::new(Arc::clone(&quic) as Arc<dyn AsyncUdpSocket>, beside, app);
            let transmit = Transmit {
                destination: to,
                ecn: None,
                contents: &[0; 1_400],
                segment_size: None,
                src_ip: None,
            };
            thread::scope(|scope| {
                let senders = [(); 2].map(|()| {
                    scope.spawn(|| {
                        (0..ROUNDS).for_each(|_| {
                            front.0.send(to, &[0; 1_400], 1_400);
                        });
                    })
                });
                while senders.iter().any(|sender| !sender.is_finished()) {
                    shared.try_send(&transmit).unwrap();
                }
            });
            let found = quic.found.lock().unwrap();
            assert!(found.iter().all(|is_forbidden| *is_forbidden), "of {} packets", found.len());
        }
    }

    mod handshakes {
        use super::super::*;

        fn ip(text: &str) -> Option<IpAddr> {
            Some(text.parse().unwrap())
        }

        #[test]
        fn handshakes_are_limited_by_address_and_network() {
            let handshakes = Handshakes::default();
            let mut taken: Vec<_> = (0..100).filter_map(|_| handshakes.begin(ip("192.0.2.1"))).collect();
            assert_eq!(taken.len(), OF_ADDRESS_MAX);
            taken.extend((0..=255).filter_map(|last| handshakes.begin(ip(&format!("192.0.2.{last}")))));
            assert_eq!(taken.len(), 52);
            // The IPv4-mapped form of the same address.
            assert!(handshakes.begin(ip("::ffff:192.0.2.9")).is_none());
            assert!(handshakes.begin(ip("198.51.100.1")).is_some());
            taken.clear();
            assert!(handshakes.begin(ip("192.0.2.1")).is_some());
            let places = handshakes.lock();
            assert!(places.taken == 0 && places.of_address.taken() == 0 && places.of_network.taken() == 0);
        }

        #[test]
        fn greedy_networks_leave_slots_for_others() {
            let handshakes = Handshakes::default();
            // Four networks of IPv4 and four of IPv6, each with many addresses.
            let mut taken = Vec::new();
            for host in 0..256 {
                for network in 0..4 {
                    taken.extend(handshakes.begin(ip(&format!("10.0.{network}.{host}"))));
                    taken.extend(handshakes.begin(ip(&format!("2001:db8:{network}:{host:x}::1"))));
                }
            }
            assert!((130..200).contains(&taken.len()), "{}", taken.len());
            for other in 0..30 {
                taken.push(handshakes.begin(ip(&format!("172.16.{other}.1"))).expect("a free slot"));
            }
        }

        #[test]
        fn many_handshakes_require_validation_and_are_limited() {
            let handshakes = Handshakes::default();
            let mut taken = Vec::new();
            while !handshakes.must_validate() {
                taken.push(handshakes.begin(None).unwrap());
            }
            assert_eq!(taken.len(), UNPROVEN_MAX);
            let networks = (0..=255).map(|third| ip(&format!("10.0.{third}.1")));
            taken.extend(networks.filter_map(|network| handshakes.begin(network)));
            assert_eq!(taken.len(), TOTAL_MAX);
            assert!(handshakes.begin(None).is_none());
        }
    }
}
