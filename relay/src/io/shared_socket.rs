//! The UDP socket of QUIC, on which datagrams of data channels and for the front arrive too.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

use super::app::App;
use super::data_channels::DataChannels;
use super::front_gate::Gate;
use crate::target::canonical;
use crate::webrtc::DatagramKind;

/// See the module.
pub(super) struct SharedSocket {
    socket: Arc<dyn AsyncUdpSocket>,
    beside: Beside,
    app: Arc<App>,
}

/// Who else has datagrams at the port of QUIC.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside {
    pub(crate) channels: Option<DataChannels>,
    pub(crate) front: Option<Arc<dyn Gate>>,
}

impl Beside {
    pub(super) const fn is_nobody(&self) -> bool {
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

    /// Gives datagrams of one sender to those whose they are, unless that is QUIC; says whether it did.
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
            // A buffer has datagrams of one sender, which speaks one protocol.
            if self.pass_on(canonical(meta.addr), &buffer[..meta.len], meta.stride) {
                // QUIC passes over buffers without bytes.
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

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use std::sync::{Mutex, PoisonError};
    use std::thread;

    use rustix::net::sockopt::{Ipv4PathMtuDiscovery, ip_mtu_discover};

    use super::*;
    use crate::admission::{Admission, Targets};
    use crate::config::Config;
    use crate::io::batch::BatchSocket;

    const ROUNDS: usize = 5_000;

    /// A front that sends what is longer than QUIC's smallest packets.
    #[derive(Debug)]
    struct Sending(BatchSocket);

    impl Gate for Sending {
        fn take(&self, _: SocketAddr, _: &[u8], _: usize) -> bool {
            false
        }

        fn keep_fragmentation(&self) -> std::sync::MutexGuard<'_, ()> {
            self.0.keep_fragmentation()
        }
    }

    /// Records whether fragmentation is forbidden when QUIC sends.
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
    async fn packets_of_quic_are_never_fragmented_while_a_front_sends_at_the_same_port() {
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
        let transmit =
            Transmit { destination: to, ecn: None, contents: &[0; 1_400], segment_size: None, src_ip: None };
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
