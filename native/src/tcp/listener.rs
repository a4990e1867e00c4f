//! Accepts the connections that others open.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rakwire::endpoint::Side;
use rakwire_udp::canonical;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::connection::Connection;
use super::places::{NoPlace, Place, Places};
use super::run::start;
use super::shared::Opened;
use super::state::EndpointState;
use super::stream::configure;

/// How long a process without a free descriptor waits for one.
const PAUSE: Duration = Duration::from_millis(100);

/// A place for a connection that others opened. It is free once the connection has ended and has been accepted.
type SharedPlace = Arc<Place>;

/// A connection that waits to be accepted.
#[derive(Debug)]
pub(super) struct Unaccepted {
    pub(super) connection: Connection,
    _place: SharedPlace,
}

/// Lets others connect until the endpoint closes.
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

/// Counts a client whose connection is closed at once.
fn refuse(remote: SocketAddr, reason: NoPlace, state: &EndpointState) {
    let (counter, reason) = match reason {
        NoPlace::Full => (&state.counters.refused, "too many connections"),
        NoPlace::FullForAddress => {
            (&state.counters.refused_by_address, "too many connections of its address")
        }
        NoPlace::FullForNetwork => {
            (&state.counters.refused_by_network, "too many connections of its network")
        }
    };
    counter.add(1);
    state.span.refused(state.clock.now(), canonical(remote), &reason);
}

/// Whether an error is about one client that was gone before it was accepted, and so concerns no other client.
fn is_of_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Opens a connection on a stream, behind the handshake of TLS if there is one.
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
                    state.span.refused(state.clock.now(), remote, &"no handshake of TLS");
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
    // Nobody accepts any more if it cannot be queued, and the connection ends with its only handle.
    let _ = queue.send(Unaccepted { connection: Connection::new(shared), _place: place });
}
