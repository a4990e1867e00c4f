//! The UDP port of data channels, and their clients until they request a flow.

use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use tokio::time::timeout;
use tracing::warn;

use super::app::{AnnouncedWebRtc, App};
use super::batch::{BatchSocket, Received};
use super::client::{self, Opening, Resume, permission};
use super::front::Gate;
use super::serve::{TOO_MANY_CONNECTIONS, take_place};
use super::transport::{Connected, Connection, Inbox, Port, Transport, WebRtcTransport};
use crate::admission::Request;
use crate::close::CloseReason;
use crate::counters::TransportKind;
use crate::webrtc::{
    Certificate, ChallengeKey, DatagramEvent, Endpoint, Fingerprint, HANDSHAKE_TIMEOUT, NoRequest,
    OpenRequest, Session, SessionEvent, SessionSettings, WebRtcCounters, WebRtcDropReason,
};

/// Maximum number of receive calls before other tasks run.
const CALLS_MAX: usize = 8;

/// The close code for clients without a free slot.
const TRY_AGAIN_LATER: u16 = 1013;

/// The bound port of data channels.
#[derive(Debug, Clone)]
pub(crate) struct DataChannels(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    socket: BatchSocket,
    endpoint: Mutex<Endpoint<Inbox>>,
    settings: SessionSettings,
    fingerprint: Fingerprint,
    counters: Arc<WebRtcCounters>,
    /// The front that receives some of the datagrams, if it shares the port.
    front: OnceLock<Arc<dyn Gate>>,
}

impl Shared {
    fn endpoint(&self) -> MutexGuard<'_, Endpoint<Inbox>> {
        // The endpoint is consistent after each datagram, so a poisoned lock can be ignored.
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Port for Shared {
    fn send(&self, to: SocketAddr, datagram: &[u8]) {
        for _ in 0..self.socket.send(to, datagram, datagram.len()) {
            self.counters.dropped(WebRtcDropReason::SendRefused);
        }
    }

    fn prove(&self, client: SocketAddr, inbox: &Inbox) {
        self.counters.session_secured();
        // The previous page on this port is gone. Its flow waits for it to return, as after any loss.
        self.endpoint().prove(client, inbox).inspect(Inbox::evict);
    }

    fn follow(&self, client: SocketAddr, to: SocketAddr, inbox: &Inbox) -> bool {
        self.endpoint().follow(client, to, inbox)
    }

    fn close(&self, client: SocketAddr, inbox: &Inbox) {
        self.endpoint().close(client, inbox);
    }
}

impl DataChannels {
    /// Binds to `listen`; port 0 picks a free one.
    pub(crate) fn bind(
        listen: SocketAddr,
        certificate: &Certificate,
        counters: Arc<WebRtcCounters>,
    ) -> io::Result<Self> {
        let socket = BatchSocket::bind(listen)?.with_large_buffers();
        let settings = SessionSettings::new(certificate).map_err(io::Error::other)?;
        let fingerprint = *certificate.fingerprint();
        let mut key = ChallengeKey::default();
        getrandom::fill(&mut key).map_err(|_| io::Error::other("the system provides no random bytes"))?;
        let endpoint = Endpoint::new(&fingerprint, &key, Arc::clone(&counters), Instant::now());
        let endpoint =
            Mutex::new(endpoint.ok_or_else(|| io::Error::other("no HMAC with a key of this length"))?);
        let front = OnceLock::new();
        Ok(Self(Arc::new(Shared { socket, endpoint, settings, fingerprint, counters, front })))
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.0.socket.local_addr()
    }

    pub(crate) fn announced(&self) -> AnnouncedWebRtc {
        AnnouncedWebRtc { local_addr: self.local_addr(), fingerprint: self.0.fingerprint }
    }

    /// Receives until the socket fails. This runs as long as the relay, because closing sessions need it.
    async fn run(&self, app: &Arc<App>) -> io::Error {
        loop {
            if let Err(error) = self.0.socket.readable().await {
                return error;
            }
            for _ in 0..CALLS_MAX {
                if self.0.socket.try_receive(|received| self.handle(app, received)).is_err() {
                    break;
                }
            }
        }
    }

    fn handle(&self, app: &Arc<App>, received: Received<'_>) {
        for (from, bytes, stride) in received.iter() {
            if self.0.front.get().is_some_and(|front| front.take(from, bytes, stride)) {
                continue;
            }
            for datagram in bytes.chunks(stride.max(1)) {
                self.handle_datagram(app, from, datagram);
            }
        }
    }

    /// Lets this task pass datagrams for the front to `front`, while it is the receiver of the shared port.
    pub(crate) fn receive_for(&self, front: Arc<dyn Gate>) {
        let _ = self.0.front.set(front);
    }

    /// Duplicates the socket, for another receiver that passes datagrams for data channels to this one.
    pub(crate) fn try_clone_socket(&self) -> io::Result<UdpSocket> {
        self.0.socket.try_clone()
    }

    pub(super) fn handle_datagram(&self, app: &Arc<App>, from: SocketAddr, datagram: &[u8]) {
        let mut endpoint = self.0.endpoint();
        match endpoint.handle(Instant::now(), from, datagram) {
            DatagramEvent::Answer(answer) => {
                endpoint.session(from).inspect(|inbox| inbox.check());
                drop(endpoint);
                self.0.send(from, &answer);
            }
            DatagramEvent::Challenge { check, answer } => {
                drop(endpoint);
                // The check must be sent before the answer. It validates the page before the page sends its client
                // hello, which it does only after the answer.
                self.0.send(from, &check);
                self.0.send(from, &answer);
            }
            DatagramEvent::Validated | DatagramEvent::Dropped => {}
            DatagramEvent::Sessions(inboxes) => {
                drop(endpoint);
                // Each session can decrypt only its own datagrams.
                let pushed = inboxes.iter().flatten().filter(|inbox| inbox.push(from, datagram)).count();
                if pushed == 0 {
                    self.0.counters.dropped(WebRtcDropReason::SessionBusy);
                }
            }
            // A draining relay begins no sessions.
            DatagramEvent::Begin if app.drain.is_cancelled() => {
                self.0.counters.dropped(WebRtcDropReason::ShuttingDown);
            }
            DatagramEvent::Begin => {
                let inbox = Inbox::default();
                inbox.push(from, datagram);
                endpoint.open(from, inbox.clone()).inspect(Inbox::evict);
                drop(endpoint);
                self.begin(app, from, inbox);
            }
        }
    }

    fn begin(&self, app: &Arc<App>, client: SocketAddr, inbox: Inbox) {
        self.0.counters.session_begun();
        let session = Session::new(&self.0.settings, Instant::now());
        let port = Arc::clone(&self.0) as Arc<dyn Port>;
        let transport = WebRtcTransport::new(session, client, inbox, port);
        let (app, counters) = (Arc::clone(app), Arc::clone(&self.0.counters));
        tokio::spawn(async move { serve(&app, &counters, transport, client).await });
    }
}

/// The reason logged if a session ends before its client requests a flow. The client's address has answered a check.
const NO_HANDSHAKE: &str = "the data channel handshake failed, or the client sent no request within 10 s";
const VIOLATION: &str = "the first message of a data channel client was not a request for a flow";

/// The reason why a session ends before it has a flow.
enum Failure {
    /// The client closed the session, or returned with another one.
    Left,
    /// The client gets no reply; the reason is logged.
    Failed(&'static str),
    /// The client is notified with a close code and a text.
    Closed {
        code: u16,
        text: String,
        /// The reason as logged, one of a few fixed texts.
        class: &'static str,
    },
}

impl Failure {
    fn closed(code: u16, text: &'static str) -> Self {
        Self::Closed { code, text: text.to_owned(), class: text }
    }
}

impl From<CloseReason> for Failure {
    fn from(reason: CloseReason) -> Self {
        let code = reason.kind().code();
        code.map_or(Self::Left, |code| Self::Closed { code, text: reason.text(), class: reason.class() })
    }
}

/// Serves a client from its first datagram to its close.
async fn serve(app: &App, counters: &WebRtcCounters, mut transport: WebRtcTransport, client: SocketAddr) {
    let asked = tokio::select! {
        asked = timeout(HANDSHAKE_TIMEOUT, ask(app, &mut transport, client)) => {
            asked.unwrap_or(Err(Failure::Failed(NO_HANDSHAKE)))
        }
        () = app.drain.cancelled() => Err(Failure::closed(1001, "the relay is shutting down")),
    };
    match asked {
        Ok((connected, request)) => {
            let opening = open(app, client, request);
            counters.session_connected();
            // The token is taken before the flow begins, so that a concurrent shutdown waits for the flow.
            let tracked = app.sessions.token();
            let transport = Transport::WebRtc(Box::new(transport));
            let connection = Box::new(Connection::new(client, transport, &app.counters, tracked, connected));
            client::serve(app, connection, &opening).await;
        }
        Err(failure) => {
            counters.session_failed();
            match failure {
                Failure::Left => {}
                Failure::Failed(reason) => app.log_refusal(client, TransportKind::WebRtc, reason, reason),
                Failure::Closed { code, text, class } => {
                    app.log_refusal(client, TransportKind::WebRtc, class, &text);
                    transport.close_with(code, &text).await;
                }
            }
        }
    }
}

/// Completes the handshake, takes a connection slot for the client, and waits for its request.
async fn ask(
    app: &App,
    transport: &mut WebRtcTransport,
    client: SocketAddr,
) -> Result<(Connected, OpenRequest), Failure> {
    let mut connected = Err(Failure::Failed(VIOLATION));
    loop {
        match poll_fn(|context| transport.poll_event(context)).await {
            Some(SessionEvent::Secured) => connected = place(app, client),
            // The control channel, which carries a possible refusal, is open.
            Some(SessionEvent::Connected) => connected = Ok(connected?),
            Some(SessionEvent::Checked) => {}
            Some(SessionEvent::Control(message)) => {
                let request = OpenRequest::read(&message);
                let request = request.map_err(|error: NoRequest| Failure::Closed {
                    code: 1003,
                    text: error.to_string(),
                    class: "the request cannot be read",
                })?;
                return connected.map(|connected| (connected, request));
            }
            // Datagrams may overtake the request. The client resends those that matter.
            Some(SessionEvent::Datagram(_)) => {
                app.webrtc_counters.dropped(WebRtcDropReason::BeforeRequest);
            }
            Some(SessionEvent::Text | SessionEvent::Violation) => return Err(Failure::Failed(VIOLATION)),
            Some(SessionEvent::Unacknowledged | SessionEvent::Failed) => {
                return Err(Failure::Failed(NO_HANDSHAKE));
            }
            Some(SessionEvent::Closed) | None => return Err(Failure::Left),
        }
    }
}

/// Takes a connection slot for a client that has completed its handshake.
fn place(app: &App, client: SocketAddr) -> Result<Connected, Failure> {
    let Ok(permit) = Arc::clone(&app.connections).try_acquire_owned() else {
        app.counters.connections_refused.increment();
        return Err(Failure::closed(TRY_AGAIN_LATER, TOO_MANY_CONNECTIONS));
    };
    Ok(take_place(app, client, permit)?)
}

/// Creates the opening for a client's request.
fn open(app: &App, client: SocketAddr, request: OpenRequest) -> Opening {
    let OpenRequest { target, token, resume, defer, unreachable, .. } = request;
    let is_deferred = defer.is_some_and(|value| !value.is_empty());
    let resume = Resume::read(resume.as_ref().map(|secret| secret.0.as_str()));
    let is_returning = app.admits_resumption(resume.secret(), target.as_deref());
    let request = Request::without_origin(client, target, token.map(|token| token.0));
    let request =
        request.deferred(is_deferred).returning(is_returning).when_unreachable(unreachable.as_deref());
    Opening {
        client,
        permission: permission(app, &request),
        has_control: true,
        resume,
        is_deferred,
        is_counted: request.is_counted(),
        closes_on_unreachable: request.closes_on_unreachable,
    }
}

/// Runs the data channels. If their port fails while the relay runs, clients use other transports.
pub(crate) async fn run_data_channels(channels: DataChannels, app: Arc<App>) {
    let error = channels.run(&app).await;
    warn!(%error, "the UDP socket of the data channels failed: clients use other transports until the relay is restarted");
}

#[cfg(test)]
#[path = "data_channels_tests.rs"]
mod tests;

#[cfg(test)]
mod interruptions {
    use std::time::Duration;

    use rakwire_native::endpoint::{Endpoint, Options};
    use rakwire_native::raknet::RakNet;
    use tokio::net::UdpSocket;

    use super::tests::{Client, EVENT_TIMEOUT, OPEN, Relay, start};
    use super::*;
    use crate::config::Config;
    use crate::io::batch::narrow_path::{NarrowPath, connect, echo_large};
    use crate::protocol::ProtocolKind;

    #[tokio::test]
    async fn large_messages_survive_a_shrinking_path_mtu() {
        let server = Endpoint::bind("127.0.0.1:0", Options::<RakNet>::server(8).unwrap()).await.unwrap();
        let address = server.local_addr();
        tokio::spawn(async move {
            let connection = server.accept().await.unwrap();
            while let Some(message) = connection.recv().await {
                connection.send(&message.bytes, message.delivery).await.unwrap();
            }
        });
        let relay = start(|config| {
            let target = config.targets.values_mut().next().unwrap();
            target.address = address.to_string().parse().unwrap();
            target.kind = ProtocolKind::RakNet;
        })
        .await;
        let before = NarrowPath::to(relay.channels.local_addr()).await;
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.connect(before.address).await.unwrap();
        let mut client = Client::over(&relay, socket, "first").await;
        client.session.send_control(OPEN);
        assert_eq!(client.control().await["type"], "flow");

        let peer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = peer.local_addr().unwrap();
        let exchange = async {
            let connection = connect(address).await;
            let carried = 1_052;
            assert_eq!(
                echo_large(&connection).await,
                carried,
                "the longest datagram that the channel carries unfragmented"
            );
            // The minimum MTU of IPv6, which data channels also support.
            before.narrow(1_280);
            assert_eq!(echo_large(&connection).await, carried);
        };
        tokio::select! {
            exchanged = timeout(EVENT_TIMEOUT, exchange) => exchanged.unwrap(),
            () = client.carry(&peer) => unreachable!("`carry` never returns"),
        }
    }

    /// The machine is paused. Datagrams that the page sent meanwhile are read first.
    #[test]
    fn a_page_stays_connected_while_its_relay_is_paused() {
        const IDLE: Duration = Duration::from_secs(2);
        const THREADS: usize = 2;
        let (started, relay) = std::sync::mpsc::channel();
        let (stop, mut stops) = tokio::sync::mpsc::unbounded_channel::<std::sync::mpsc::Sender<()>>();
        let running = std::thread::spawn(move || {
            let threads =
                tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
            threads.unwrap().block_on(async move {
                let limit = |config: &mut Config| {
                    (config.limits.idle_timeout, config.limits.ping_interval) = (IDLE, IDLE);
                };
                started.send(Arc::new(start(limit).await)).unwrap();
                while let Some(stopped) = stops.recv().await {
                    // The barrier blocks all threads of the relay.
                    let all = Arc::new(std::sync::Barrier::new(THREADS + 1));
                    for _ in 0..THREADS {
                        let all = Arc::clone(&all);
                        tokio::spawn(async move {
                            all.wait();
                            std::thread::sleep(IDLE * 2);
                        });
                    }
                    all.wait();
                    stopped.send(()).unwrap();
                }
            });
        });
        let relay: Arc<Relay> = relay.recv().unwrap();
        let page = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        page.block_on(async {
            let mut client = Client::open(&relay, OPEN).await;
            let (before, _) = client.ask("before").await;
            let (stopping, stopped) = std::sync::mpsc::channel();
            stop.send(stopping).unwrap();
            stopped.recv().unwrap();
            assert_eq!(client.ask("after").await, (before, "after".to_owned()));
            // Skips the answers to questions asked during the pause.
            while client.ask("later").await.1 != "later" {}
        });
        drop((relay, stop));
        running.join().unwrap();
    }
}
