//! Accepts TCP connections up to a limit, and serves HTTP on them. Each step of a client has a deadline. Also serves
//! the admin address and the admin socket.

use std::error::Error as _;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rakwire_udp::proxy::ProxyHeader;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, error};

#[cfg(unix)]
pub(crate) use self::socket::AdminSocket;
use super::app::App;
use super::http::router_for_banned;
use super::tcp::{ReadAhead, WriteDeadline, tune};
use super::transport::Connected;
use crate::admission::Refusal;
use crate::close::{BANNED, CloseReason};
use crate::time::Now;

/// The transport name in the log before the client's request is known.
const TCP: &str = "tcp";

/// The text for clients refused at the connection limit.
pub(super) const TOO_MANY_CONNECTIONS: &str = "this relay has too many open connections; try again later";

/// Pause of a listener when the system is out of resources such as file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// The maximum length of a request header in bytes. Browsers also send their cookies for the site.
const HEADER_MAX: usize = 16 * 1024;

/// The length of the fixed part of a PROXY protocol header, which contains the length of the rest.
const PROXY_HEADER_FIXED: usize = 16;

/// The maximum number of fields in a request header.
const HEADER_FIELDS_MAX: usize = 64;

/// Serves until the relay drains and pending responses have been sent.
pub(crate) async fn serve(app: Arc<App>, listener: TcpListener, router: Router) {
    let connections = TaskTracker::new();
    loop {
        let (stream, peer) = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = app.drain.cancelled() => break,
        };
        let Ok(permit) = Arc::clone(&app.connections).try_acquire_owned() else {
            app.counters.connections_refused.increment();
            app.log_refusal(peer, TCP, TOO_MANY_CONNECTIONS, TOO_MANY_CONNECTIONS);
            continue;
        };
        tune(&stream);
        let (app, router) = (Arc::clone(&app), router.clone());
        if app.expects_proxy_header(peer) {
            connections.spawn(serve_proxy(app, stream, peer, permit, router));
        } else if let Some(connected) = admit(&app, peer, permit, TCP) {
            connections.spawn(serve_connection(app, stream, router, connected));
        }
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

/// Takes a slot for a connection of `peer`, or logs and counts the refusal.
pub(super) fn admit(
    app: &App,
    peer: SocketAddr,
    permit: OwnedSemaphorePermit,
    transport: impl Display,
) -> Option<Connected> {
    let refused = |reason: &CloseReason| app.log_refusal(peer, transport, reason.class(), reason.class());
    take_place(app, peer, permit).inspect_err(refused).ok()
}

/// Takes a connection slot for `peer`, if the limits of its address allow it. A few connections of banned addresses get
/// a slot until they have been notified. This function counts refusals, and the caller logs them.
pub(super) fn take_place(
    app: &App,
    peer: SocketAddr,
    permit: OwnedSemaphorePermit,
) -> Result<Connected, CloseReason> {
    let now = Now::read();
    match app.admission.admit_connection(now, peer.ip()) {
        Ok(share) => Ok(Connected::new(peer, permit, share)),
        Err(Refusal::Forbidden(_)) if app.ban_notices.admits(now.at, 1) => {
            Ok(Connected::new(peer, permit, None).banned())
        }
        Err(Refusal::Forbidden(_)) => {
            app.counters.bans_refused.increment();
            Err(CloseReason::Forbidden(BANNED))
        }
        Err(Refusal::Close(reason)) => {
            app.counters.connections_refused.increment();
            Err(reason)
        }
    }
}

/// Serves a connection of a trusted proxy, after the proxy has announced its client.
async fn serve_proxy(
    app: Arc<App>,
    mut stream: TcpStream,
    proxy: SocketAddr,
    permit: OwnedSemaphorePermit,
    router: Router,
) {
    let header = async { if begins(&stream).await { Some(read_client(&mut stream).await) } else { None } };
    match timeout(app.limits.header_timeout, header).await {
        Ok(Some(Ok(client))) => {
            if let Some(connected) = admit(&app, client.unwrap_or(proxy), permit, TCP) {
                let connected = if client.is_some() { connected.with_proxy_header() } else { connected };
                serve_connection(app, stream, router, connected).await;
            }
        }
        Ok(Some(Err(error))) => {
            app.counters.proxy_headers_refused.increment();
            app.log_refusal(proxy, TCP, NO_PROXY_HEADER, NO_PROXY_HEADER);
            debug!(%proxy, %error, "no PROXY protocol header");
        }
        Ok(None) => {}
        Err(_) => {
            app.counters.handshakes_timed_out.increment();
            app.log_refusal(proxy, TCP, LATE_PROXY_HEADER, LATE_PROXY_HEADER);
        }
    }
}

/// Returns true once the first byte arrives, and false if the connection is closed before. Health checks close their
/// connections without sending anything, which is not an error.
async fn begins(stream: &TcpStream) -> bool {
    stream.peek(&mut [0]).await.is_ok_and(|length| length > 0)
}

/// Reads exactly the PROXY protocol header. Returns the client, or `None` if the proxy connects on its own behalf.
async fn read_client(stream: &mut TcpStream) -> io::Result<Option<SocketAddr>> {
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut header = vec![0; PROXY_HEADER_FIXED];
    stream.read_exact(&mut header).await?;
    // A malformed or oversized header is rejected before the rest is read.
    if let Some(parsed) = ProxyHeader::read(&header).map_err(invalid)? {
        return Ok(parsed.client);
    }
    let rest = header.last_chunk().map_or(0, |length| usize::from(u16::from_be_bytes(*length)));
    header.resize(PROXY_HEADER_FIXED + rest, 0);
    stream.read_exact(&mut header[PROXY_HEADER_FIXED..]).await?;
    Ok(ProxyHeader::read(&header).map_err(invalid)?.and_then(|parsed| parsed.client))
}

pub(super) async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_client_error(error.kind()) => {}
            Err(error) => {
                error!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Returns true for errors about a connection that ended before it was accepted.
const fn is_client_error(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(kind, ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// The reason logged for connections without the required header.
const NO_PROXY_HEADER: &str = "a trusted proxy sent no PROXY protocol header (version 2); configure the proxy to send it, or turn admission.proxy_protocol off";
const LATE_PROXY_HEADER: &str = "a trusted proxy sent no PROXY protocol header within limits.header_timeout; configure the proxy to send it, or turn admission.proxy_protocol off";
const LATE_TLS: &str = "the client did not complete the TLS handshake within limits.header_timeout";
const LARGE_HEADER: &str = "the header of the request is too long";
const NO_HTTP: &str = "no HTTP request received; for TLS configure a certificate, for the PROXY protocol list the proxy in admission.trusted_proxies";

/// Returns the reason why a TLS handshake failed, as one of a few fixed texts.
fn handshake_reason(error: &io::Error) -> &'static str {
    use rustls::AlertDescription::{BadCertificate, CertificateExpired, CertificateUnknown, UnknownCA};
    match error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::AlertReceived(CertificateExpired)) => {
            "the client reports that the certificate has expired"
        }
        Some(rustls::Error::AlertReceived(UnknownCA | BadCertificate | CertificateUnknown)) => {
            "the client does not trust the certificate"
        }
        Some(rustls::Error::InvalidMessage(_)) => "the client does not speak TLS",
        Some(_) | None => "the TLS handshake failed",
    }
}

/// Answers the requests on one connection until it ends or becomes a WebSocket.
async fn serve_connection(app: Arc<App>, stream: TcpStream, router: Router, connected: Connected) {
    let router = if connected.is_banned() { router_for_banned(Arc::clone(&app)) } else { router };
    let Some(tls) = &app.tls else {
        return serve_requests(&app, stream, router, connected).await;
    };
    let handshake = async { if begins(&stream).await { Some(tls.accept(stream).await) } else { None } };
    match timeout(app.limits.header_timeout, handshake).await {
        Ok(Some(Ok(Some(stream)))) => serve_requests(&app, stream, router, connected).await,
        Ok(Some(Ok(None)) | None) => {}
        Ok(Some(Err(error))) => {
            app.counters.handshakes_failed.increment();
            let reason = handshake_reason(&error);
            app.log_refusal(connected.peer(), TCP, reason, reason);
            debug!(%error, "TLS handshake failed");
        }
        Err(_) => {
            app.counters.handshakes_timed_out.increment();
            app.log_refusal(connected.peer(), TCP, LATE_TLS, LATE_TLS);
        }
    }
}

async fn serve_requests<S>(app: &App, stream: S, router: Router, connected: Connected)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (stall, peer) = (app.admission.limits().write_stall_timeout, connected.peer());
    let stream = ReadAhead::new(WriteDeadline::new(stream, stall, connected.is_websocket()));
    match serve_http(stream, router, connected, app.limits.header_timeout, &app.drain).await {
        Err(error) if error.is_timeout() => {
            // A browser's idle connection also ends this way, so a log line would blame innocent clients.
            app.counters.headers_timed_out.increment();
            debug!("request header timed out");
        }
        Err(error) => {
            if is_stalled(&error) {
                app.counters.stalled.increment();
            }
            if error.is_parse() {
                app.counters.handshakes_failed.increment();
                let reason = if error.is_parse_too_large() { LARGE_HEADER } else { NO_HTTP };
                app.log_refusal(peer, TCP, reason, reason);
            }
            debug!(%error, "connection failed");
        }
        Ok(()) => {}
    }
}

/// Returns true if a connection was closed because its peer did not read.
fn is_stalled(error: &hyper::Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
}

/// Answers the requests on a connection, each with `extension`. `stop` closes it after the current response.
pub(super) async fn serve_http<S, E>(
    stream: S,
    router: Router,
    extension: E,
    header_timeout: Duration,
    stop: &CancellationToken,
) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    E: Clone + Send + Sync + 'static,
{
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(extension.clone());
        router.call(request)
    });
    // hyper-util's builder is not used, because it waits without a timeout for the first bytes, to detect the HTTP
    // version.
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_buf_size(HEADER_MAX)
        .max_headers(HEADER_FIELDS_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    tokio::select! {
        served = connection.as_mut() => served,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    }
}

/// The maximum number of concurrent connections, which exceeds the needs of monitoring.
const CONNECTIONS_MAX: usize = 64;

/// The deadline for receiving a request header, and for sending a pending response.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum lifetime of a connection to the admin socket, which carries one command and its response.
#[cfg(unix)]
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves the admin socket for as long as it is polled.
#[cfg(unix)]
pub(crate) async fn serve_admin_socket(socket: AdminSocket, router: Router) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let stop = CancellationToken::new();
    let _stop_on_drop = stop.clone().drop_guard();
    loop {
        // A slot is taken first, so that connections wait in the system's backlog and not in this process.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let stream = match socket.accept().await {
            Ok(stream) => stream,
            Err(error) => {
                debug!(%error, "cannot accept a connection to the admin socket");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (router, stop) = (router.clone(), stop.clone());
        tokio::spawn(async move {
            let stream = WriteDeadline::new(stream, TIMEOUT, Arc::default());
            let served = serve_http(stream, router, (), TIMEOUT, &stop);
            match timeout(CONNECTION_TIMEOUT, served).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => debug!(%error, "connection to the admin socket failed"),
                Err(_) => debug!("connection to the admin socket timed out"),
            }
            drop(slot);
        });
    }
}

/// Serves the admin address for as long as it is polled, including while the relay drains.
pub(crate) async fn serve_admin(listener: TcpListener, router: Router) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let stop = CancellationToken::new();
    let _stop_on_drop = stop.clone().drop_guard();
    loop {
        let (stream, _) = accept(&listener).await;
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            debug!("too many connections to the admin address");
            continue;
        };
        let (router, stop) = (router.clone(), stop.clone());
        tokio::spawn(async move {
            let stream = WriteDeadline::new(stream, TIMEOUT, Arc::default());
            if let Err(error) = serve_http(stream, router, (), TIMEOUT, &stop).await {
                debug!(%error, "connection to the admin address failed");
            }
            drop(slot);
        });
    }
}

/// The admin socket: a Unix socket that only the relay's user can open.
#[cfg(unix)]
mod socket {
    use std::fs;
    use std::io;
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
    use std::os::unix::net::UnixStream;
    use std::path::{Path, PathBuf};

    use nix::errno::Errno;
    use nix::fcntl::{Flock, FlockArg};
    use rakwire_udp::private_file;
    use socket2::{Domain, SockAddr, Socket, Type};
    use tokio::net::UnixListener;

    /// The backlog of connections to accept.
    const BACKLOG: i32 = 16;

    /// The admin socket; its file is removed on drop.
    #[derive(Debug)]
    pub(crate) struct AdminSocket {
        listener: UnixListener,
        file: SocketFile,
    }

    #[derive(Debug)]
    struct SocketFile {
        path: PathBuf,
        /// Device and inode of the socket file, because another relay may since have created a socket at the same path.
        identity: (u64, u64),
        /// Closing this file, which releases the lock, comes after the removal of the socket.
        _lock: Flock<fs::File>,
    }

    impl AdminSocket {
        /// Listens on a socket with mode 0600 at `path`.
        ///
        /// A stale socket of an earlier relay is removed. A file, a link, or a socket on which another program listens
        /// is not. Relays that start at the same time are serialized by a lock on a file next to the socket; this file
        /// is never removed.
        pub(crate) fn bind(path: &Path) -> io::Result<Self> {
            let lock = lock(path)?;
            remove_stale(path)?;
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            // Binding creates the socket file. Binding fails if the path exists, even as a link. Clients can connect
            // only after `listen`.
            socket.bind(&SockAddr::unix(path)?)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
            let made = fs::symlink_metadata(path)?;
            if !made.file_type().is_socket() || made.permissions().mode() & 0o777 != 0o600 {
                return Err(io::Error::other("another program has replaced the socket"));
            }
            let file = SocketFile { path: path.to_owned(), identity: (made.dev(), made.ino()), _lock: lock };
            socket.listen(BACKLOG)?;
            socket.set_nonblocking(true)?;
            Ok(Self {
                listener: UnixListener::from_std(std::os::unix::net::UnixListener::from(socket))?,
                file,
            })
        }

        pub(crate) fn path(&self) -> &Path {
            &self.file.path
        }

        pub(super) async fn accept(&self) -> io::Result<tokio::net::UnixStream> {
            self.listener.accept().await.map(|(stream, _)| stream)
        }
    }

    impl Drop for SocketFile {
        fn drop(&mut self) {
            let is_own = |found: fs::Metadata| (found.dev(), found.ino()) == self.identity;
            if fs::symlink_metadata(&self.path).is_ok_and(is_own) {
                // A leftover file is removed at the next start.
                let _ = fs::remove_file(&self.path);
            }
        }
    }

    /// Locks the file next to a socket until the file is closed. The file is never removed, because two relays could
    /// otherwise lock different files with the same name.
    fn lock(path: &Path) -> io::Result<Flock<fs::File>> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        // Links are not followed, because another user could redirect the call to a file of this user.
        let locked = Flock::lock(private_file::append(name)?, FlockArg::LockExclusiveNonblock);
        locked.map_err(|(_, error)| if error == Errno::EWOULDBLOCK { in_use() } else { error.into() })
    }

    fn in_use() -> io::Error {
        io::Error::new(io::ErrorKind::AddrInUse, "another program listens on it")
    }

    fn remove_stale(path: &Path) -> io::Result<()> {
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if !found.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the path exists and is not a socket"));
        }
        match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
            Err(error) => Err(error),
            Ok(_) => Err(in_use()),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn directory(name: &str) -> PathBuf {
            let path = std::env::temp_dir().join(format!("rakwire-relay-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            path
        }

        #[tokio::test]
        async fn the_socket_is_private_and_a_stale_socket_is_removed() {
            let path = directory("socket").join("admin.sock");
            drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
            assert!(path.exists(), "a closed listener leaves its socket file");
            let socket = AdminSocket::bind(&path).unwrap();
            assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            let second = AdminSocket::bind(&path).unwrap_err();
            assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
            drop(socket);
            assert!(!path.exists());
        }

        #[tokio::test]
        async fn concurrent_starts_do_not_steal_the_socket() {
            let path = directory("race").join("admin.sock");
            drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
            // Another relay holds the lock, but does not listen on its socket yet.
            let other = lock(&path).unwrap();
            let refused = AdminSocket::bind(&path).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
            assert!(path.exists(), "a refused bind does not remove the socket");
            drop(other);
            let socket = AdminSocket::bind(&path).unwrap();
            drop(socket);
            let links = directory("race-link");
            let path = links.join("admin.sock");
            let _ = fs::remove_file(links.join("admin.sock.lock"));
            std::os::unix::fs::symlink(links.join("elsewhere"), links.join("admin.sock.lock")).unwrap();
            assert!(AdminSocket::bind(&path).is_err());
            assert!(!links.join("elsewhere").exists() && !path.exists());
        }

        #[tokio::test]
        async fn existing_files_are_not_replaced_by_a_socket() {
            let directory = directory("no-socket");
            let (file, link) = (directory.join("file"), directory.join("link"));
            fs::write(&file, "precious").unwrap();
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(directory.join("elsewhere"), &link).unwrap();
            for path in [&file, &link] {
                assert_eq!(AdminSocket::bind(path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            }
            assert_eq!(fs::read(&file).unwrap(), b"precious");
            assert!(!directory.join("elsewhere").exists() && fs::read_link(&link).is_ok());
        }
    }
}
