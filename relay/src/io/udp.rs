//! The UDP socket of one client, connected to its game server. Each socket has its own source address or port. It sends
//! and receives several datagrams per call, and classifies errors as reported by the network, temporary or permanent.

use std::cell::RefCell;
use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use quinn_udp::{Transmit, UdpSockRef, UdpSocketState};
use rakwire_udp::fragmenting_state;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio_util::sync::ReusableBoxFuture;
use tracing::warn;

use super::batch::{Received, send_datagram, try_receive};
use crate::flow::{Batch, Flow, FromServer, Sending, Source, Unreachable};

/// The minimum size of a receive buffer, above the length of any datagram of either protocol.
const RECEIVE_MIN: usize = 2048;

thread_local! {
    /// The buffer for sending batches.
    static SEND_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The result of [`ServerSocket::try_send`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    /// The number of datagrams that were sent or dropped.
    pub(crate) count: usize,
    pub(crate) sending: Sending,
    /// The reason why the game server is unreachable, if that was reported.
    pub(crate) unreachable: Option<Unreachable>,
}

/// The UDP socket of one client, connected to its game server. It sends and receives several datagrams per call.
#[derive(Debug)]
pub(crate) struct ServerSocket {
    socket: Arc<UdpSocket>,
    state: UdpSocketState,
    server: SocketAddr,
    /// Completes with the next error that the network reports. Exists only while errors are polled for.
    errors: Option<ReusableBoxFuture<'static, io::Error>>,
    /// The maximum length in bytes of a forwarded datagram.
    longest: usize,
    /// The number of buffers to prepare for the next receive call.
    expected: usize,
}

impl ServerSocket {
    /// Creates a socket on a free port, connected so that it receives only from `server`. With a loopback pool, its
    /// source address is the client's address in the pool.
    pub(crate) async fn connect(
        server: SocketAddr,
        client: IpAddr,
        source: Source,
        max_datagram: usize,
    ) -> io::Result<Self> {
        let socket = UdpSocket::from_std(bind_source(source, client, server)?)?;
        Self::over(socket, server, max_datagram).await
    }

    /// Connects a socket. Datagrams that arrived earlier may have any sender.
    async fn over(socket: UdpSocket, server: SocketAddr, max_datagram: usize) -> io::Result<Self> {
        socket.connect(server).await?;
        let socket = socket.into_std()?;
        let state = fragmenting_state(&socket)?;
        let socket = Arc::new(UdpSocket::from_std(socket)?);
        let longest = max_datagram.max(RECEIVE_MIN);
        Ok(Self { socket, state, server, errors: None, longest, expected: 1 })
    }

    pub(crate) const fn server(&self) -> SocketAddr {
        self.server
    }

    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_recv_ready(context)
    }

    pub(crate) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_send_ready(context)
    }

    /// Returns the next report that the server is unreachable. Readiness to read or write would show a report only with
    /// the next datagram.
    pub(crate) fn poll_unreachable(&mut self, context: &mut Context<'_>) -> Poll<Unreachable> {
        loop {
            let next = || next_error(Arc::clone(&self.socket));
            let errors = self.errors.get_or_insert_with(|| ReusableBoxFuture::new(next()));
            let error = ready!(errors.poll(context));
            errors.set(next());
            if let Some(reason) = unreachable(&error) {
                return Poll::Ready(reason);
            }
        }
    }

    /// Frees the resources of [`poll_unreachable`](Self::poll_unreachable).
    pub(crate) fn ignore_errors(&mut self) {
        self.errors = None;
    }

    /// Sends the next datagrams of a flow. Returns `Poll::Pending` while the socket is full, and `None` if the flow has
    /// no datagrams.
    pub(crate) fn try_send(&self, flow: &mut Flow, now: Instant) -> Option<Poll<Sent>> {
        let max_count = self.state.max_gso_segments();
        SEND_BUFFER.with_borrow_mut(|buffer| {
            let batch = flow.poll_to_server(now, max_count, buffer)?;
            Some(self.try_send_batch(&batch))
        })
    }

    fn try_send_batch(&self, batch: &Batch<'_>) -> Poll<Sent> {
        let mut reported = None;
        if batch.count > 1 {
            let transmit = Transmit {
                destination: self.server,
                ecn: None,
                contents: batch.contents,
                segment_size: Some(batch.segment),
                src_ip: None,
            };
            let send = || self.state.try_send(UdpSockRef::from(&self.socket), &transmit);
            match self.socket.try_io(Interest::WRITABLE, send) {
                Ok(()) => {
                    let sending = Sending::Sent;
                    return Poll::Ready(Sent { count: batch.count, sending, unreachable: None });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                // The error is one of two kinds. If the path does not support segmentation, single datagrams are sent.
                // If it is an ICMP error about an earlier datagram, it is not reported again. The next send of a single
                // datagram reports any other error.
                Err(error) => reported = unreachable(&error),
            }
        }
        match self.try_send_single(batch.contents.get(..batch.segment).unwrap_or(batch.contents)) {
            Poll::Ready(sent) => Poll::Ready(Sent { unreachable: sent.unreachable.or(reported), ..sent }),
            Poll::Pending if reported.is_some() => {
                Poll::Ready(Sent { count: 0, sending: Sending::Refused, unreachable: reported })
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn try_send_single(&self, datagram: &[u8]) -> Poll<Sent> {
        let send = |datagram: &[u8]| self.socket.try_send(datagram).map(drop);
        let send = || send_datagram(&self.socket, self.server, datagram, send);
        let mut result = send();
        let unreachable = result.as_ref().err().and_then(unreachable);
        if unreachable.is_some() {
            // This is usually an ICMP error about an earlier datagram. It has been reported now, so sending is retried.
            result = send();
        }
        let sending = match result {
            Ok(_) => Sending::Sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            Err(error) if is_temporary(&error) => Sending::Refused,
            Err(error) => {
                warn!(server = %self.server, %error, "cannot send to the game server: the flow is closed");
                Sending::Failed
            }
        };
        Poll::Ready(Sent { count: 1, sending, unreachable })
    }

    /// Passes received datagrams, or an error, to `handle`. Returns `Break` if there are none.
    pub(crate) fn try_recv(&mut self, mut handle: impl FnMut(FromServer<'_>)) -> ControlFlow<()> {
        let Self { socket, state, server, longest, expected, .. } = self;
        let result = try_receive(socket, state, expected, |received| {
            for datagram in datagrams(received, *server) {
                handle(match datagram {
                    None => FromServer::Foreign,
                    Some(datagram) if datagram.len() > *longest => FromServer::Oversized,
                    Some(datagram) => FromServer::Datagram(datagram),
                });
            }
        });
        match result {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return ControlFlow::Break(()),
            Err(error) => match unreachable(&error) {
                Some(reason) => handle(FromServer::Unreachable(reason)),
                None if is_temporary(&error) => {}
                None => {
                    warn!(%server, %error, "cannot receive from the game server: the flow is closed");
                    handle(FromServer::Failed);
                }
            },
        }
        ControlFlow::Continue(())
    }
}

/// Waits for the next error that the network reports.
async fn next_error(socket: Arc<UdpSocket>) -> io::Error {
    let take = || socket.take_error()?.ok_or_else(|| io::ErrorKind::WouldBlock.into());
    match socket.async_io(Interest::ERROR, take).await {
        Ok(error) => error,
        // The socket itself has failed, which the next send or receive call reports.
        Err(_) => pending().await,
    }
}

/// Returns the datagrams of `sender`, and `None` for each datagram of another sender, which arrived before the socket
/// was connected.
fn datagrams(received: Received<'_>, sender: SocketAddr) -> impl Iterator<Item = Option<&[u8]>> {
    received.iter().flat_map(move |(from, bytes, stride)| {
        // An empty datagram yields no chunk.
        let empty = bytes.is_empty().then_some(bytes);
        let all = empty.into_iter().chain(bytes.chunks(stride.max(1)));
        all.map(move |datagram| is_same(from, sender).then_some(datagram))
    })
}

fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    (one.ip().to_canonical(), one.port()) == (other.ip().to_canonical(), other.port())
}

#[cfg(test)]
impl ServerSocket {
    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Returns true if a datagram is queued.
    pub(super) fn has_more(&self) -> bool {
        self.socket.try_recv(&mut [0]).is_ok()
    }
}

/// Binds a non-blocking socket on a free port, for datagrams from `client` to `server`.
pub(super) fn bind_source(
    source: Source,
    client: IpAddr,
    server: SocketAddr,
) -> io::Result<std::net::UdpSocket> {
    let socket = match source.address(client, server) {
        Some(address) => bind_to_pool(address)?,
        None => bind_to_any(server)?,
    };
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn bind_to_any(server: SocketAddr) -> io::Result<std::net::UdpSocket> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    std::net::UdpSocket::bind((any, 0))
}

/// Binds to an address of the loopback pool, or to any address on systems without the pool.
fn bind_to_pool(address: Ipv4Addr) -> io::Result<std::net::UdpSocket> {
    static WARNED: AtomicBool = AtomicBool::new(false);

    match std::net::UdpSocket::bind((address, 0)) {
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            if !WARNED.swap(true, Ordering::Relaxed) {
                warn!(%address, "this system cannot use all addresses of 127.0.0.0/8 for source = loopback-pool: clients share one source address");
            }
            std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
        }
        bound => bound,
    }
}

/// Returns the reason why the game server is unreachable, or `None` if an error concerns the socket itself.
pub(super) fn unreachable(error: &io::Error) -> Option<Unreachable> {
    use io::ErrorKind::{
        ConnectionRefused, ConnectionReset, HostUnreachable, NetworkDown, NetworkUnreachable,
        PermissionDenied,
    };
    let kind = error.kind();
    if matches!(kind, ConnectionRefused | ConnectionReset) {
        Some(Unreachable::ClosedPort)
    } else if kind == HostUnreachable {
        Some(Unreachable::Host)
    } else if matches!(kind, NetworkDown | NetworkUnreachable) {
        Some(Unreachable::Network)
    } else if kind == PermissionDenied {
        Some(Unreachable::Forbidden)
    } else {
        is_icmp(error).then_some(Unreachable::Other)
    }
}

/// Returns true if Linux derives this error from an ICMP message (`icmp_err_convert`, and parameter problems). Checks
/// only errors without a specific `ErrorKind`.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_icmp(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let icmp = [Errno::NOPROTOOPT, Errno::HOSTDOWN, Errno::NONET, Errno::PROTO, Errno::OPNOTSUPP];
    Errno::from_io_error(error).is_some_and(|errno| icmp.contains(&errno))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
const fn is_icmp(_: &io::Error) -> bool {
    false
}

/// Returns true if the socket is still usable after an error. For example, a datagram may have exceeded the path MTU.
fn is_temporary(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory};
    unreachable(error).is_some()
        || quinn_udp::is_msg_size_err(error)
        || matches!(error.kind(), Interrupted | OutOfMemory)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::Ipv4Addr;

    use super::*;

    async fn connect(server: &UdpSocket, source: Source) -> ServerSocket {
        let client = Ipv4Addr::new(192, 0, 2, 7).into();
        ServerSocket::connect(server.local_addr().unwrap(), client, source, 1472).await.unwrap()
    }

    async fn received(socket: &mut ServerSocket, count: usize) -> Vec<String> {
        let mut received = Vec::new();
        while received.len() < count {
            poll_fn(|context| socket.poll_readable(context)).await.unwrap();
            let _ = socket.try_recv(|input| received.push(format!("{input:?}")));
        }
        received
    }

    #[tokio::test]
    async fn only_datagrams_from_the_server_are_received() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut socket = connect(&server, Source::Shared).await;
        let port = socket.local_addr().unwrap().port();
        other.send_to(b"other", ("127.0.0.1", port)).await.unwrap();
        server.send_to(b"server", ("127.0.0.1", port)).await.unwrap();
        assert_eq!(received(&mut socket, 1).await, [format!("{:?}", FromServer::Datagram(b"server"))]);
    }

    #[tokio::test]
    async fn datagrams_from_before_the_connect_are_marked_foreign() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        let bound = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        let port = bound.local_addr().unwrap().port();
        for (sender, text) in [(&other, "other"), (&server, "server"), (&other, "again"), (&server, "last")] {
            sender.send_to(text.as_bytes(), ("127.0.0.1", port)).await.unwrap();
        }
        let mut socket = ServerSocket::over(bound, address, 1472).await.unwrap();
        let [server, last] = ["server", "last"].map(|text| FromServer::Datagram(text.as_bytes()));
        let expected = [FromServer::Foreign, server, FromServer::Foreign, last];
        assert_eq!(received(&mut socket, 4).await, expected.map(|input| format!("{input:?}")));
    }

    #[tokio::test]
    async fn batched_datagrams_keep_their_boundaries() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut socket = connect(&server, Source::Shared).await;
        let port = socket.local_addr().unwrap().port();
        for len in [3, 0, 2049, 2048] {
            server.send_to(&vec![7; len], ("127.0.0.1", port)).await.unwrap();
        }
        let expected = [
            FromServer::Datagram(&[7; 3]),
            FromServer::Datagram(&[]),
            FromServer::Oversized,
            FromServer::Datagram(&[7; 2048]),
        ];
        assert_eq!(received(&mut socket, 4).await, expected.map(|input| format!("{input:?}")));
    }

    #[tokio::test]
    async fn a_batch_arrives_as_single_datagrams() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let socket = connect(&server, Source::Shared).await;
        let contents: Vec<u8> = (0..35).collect();
        let mut rest = Batch { contents: &contents, segment: 10, count: 4 };
        while rest.count > 0 {
            poll_fn(|context| socket.poll_writable(context)).await.unwrap();
            let Poll::Ready(Sent { count, sending: Sending::Sent, .. }) = socket.try_send_batch(&rest) else {
                panic!("not sent");
            };
            let contents = rest.contents.get(count * 10..).unwrap_or_default();
            rest = Batch { contents, count: rest.count - count, ..rest };
        }
        for expected in contents.chunks(10) {
            let mut buffer = [0; 100];
            let (len, _) = server.recv_from(&mut buffer).await.unwrap();
            assert_eq!(buffer[..len], *expected);
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_closed_port_is_reported_for_a_batch() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let socket = connect(&server, Source::Shared).await;
        // The socket is connected to itself, so that its port is closed for all other senders.
        server.connect(server.local_addr().unwrap()).await.unwrap();
        socket.socket.writable().await.unwrap();
        assert!(matches!(socket.try_send_single(b"lost"), Poll::Ready(Sent { unreachable: None, .. })));
        socket.socket.ready(Interest::ERROR).await.unwrap();
        let batch = Batch { contents: &[7; 35], segment: 10, count: 4 };
        let Poll::Ready(sent) = socket.try_send_batch(&batch) else { panic!("the socket is full") };
        assert_eq!((sent.count, sent.sending), (1, Sending::Sent));
        assert_eq!(sent.unreachable, Some(Unreachable::ClosedPort));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn sockets_of_one_client_share_its_loopback_pool_address() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (one, two) =
            (connect(&server, Source::LoopbackPool).await, connect(&server, Source::LoopbackPool).await);
        let (one, two) = (one.local_addr().unwrap(), two.local_addr().unwrap());
        assert_eq!(one.ip(), two.ip());
        assert_ne!(one.port(), two.port());
        assert_ne!(one.ip(), IpAddr::from(Ipv4Addr::LOCALHOST));
        let shared = connect(&server, Source::Shared).await.local_addr().unwrap();
        assert_eq!(shared.ip(), IpAddr::from(Ipv4Addr::LOCALHOST));
    }

    #[test]
    fn refused_and_unreachable_errors_are_temporary() {
        let is_temporary = |kind: io::ErrorKind| is_temporary(&kind.into());
        assert!(is_temporary(io::ErrorKind::ConnectionRefused));
        assert!(is_temporary(io::ErrorKind::HostUnreachable));
        assert!(!is_temporary(io::ErrorKind::NotConnected));
        assert!(!is_temporary(io::ErrorKind::InvalidInput));
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn only_a_closed_port_means_an_absent_server() {
        use rustix::io::Errno;
        let reasons = [
            (Errno::CONNREFUSED, Unreachable::ClosedPort),
            (Errno::CONNRESET, Unreachable::ClosedPort),
            (Errno::HOSTUNREACH, Unreachable::Host),
            (Errno::NETUNREACH, Unreachable::Network),
            (Errno::NETDOWN, Unreachable::Network),
            (Errno::PERM, Unreachable::Forbidden),
            (Errno::ACCESS, Unreachable::Forbidden),
            (Errno::NOPROTOOPT, Unreachable::Other),
            (Errno::HOSTDOWN, Unreachable::Other),
            (Errno::PROTO, Unreachable::Other),
        ];
        for (errno, reason) in reasons {
            let error = errno.into();
            assert_eq!(unreachable(&error), Some(reason), "{errno}");
            assert!(is_temporary(&error), "{errno}");
            assert_eq!(reason.is_server_absent(), reason == Unreachable::ClosedPort);
        }
        assert_eq!(unreachable(&Errno::BADF.into()), None);
    }
}
