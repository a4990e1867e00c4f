//! Clients of a bound port of data channels, with a game server that echoes.

use std::time::Duration;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::*;
use crate::admission::{Admission, Targets};
use crate::config::{AddressLimits, Config};
use crate::flow::DropReason;
use crate::front::tests::marks::{MarkOutcome, marks};
use crate::ops::Lines;
use crate::webrtc::{Password, Version, check, client, page_answer, username};

pub(super) const EVENT_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct Relay {
    pub(super) app: Arc<App>,
    pub(super) channels: DataChannels,
    running: JoinHandle<()>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.app.stop.cancel();
        self.running.abort();
    }
}

async fn game_server() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 2_000];
        loop {
            let (len, from) = socket.recv_from(&mut buffer).await.unwrap();
            // The reply is the sender's address, followed by the question.
            let answer = [format!("{from} ").as_bytes(), &buffer[..len]].concat();
            socket.send_to(&answer, from).await.unwrap();
        }
    });
    address
}

pub(super) async fn start(change: impl FnOnce(&mut Config)) -> Relay {
    start_at("127.0.0.1:0", game_server().await, change).await
}

async fn start_at(listen: &str, server: SocketAddr, change: impl FnOnce(&mut Config)) -> Relay {
    let target = format!("game={server}").parse().unwrap();
    let mut config = Config::new(listen.parse().unwrap()).with_target(target);
    config.webrtc.allow_without_origin = true;
    change(&mut config);
    let targets = Targets::resolve(&config, &Targets::default()).await.unwrap();
    let app = Arc::new(App::new(Admission::new(&config, targets).unwrap(), &config, None));
    let counters = Arc::clone(&app.webrtc_counters);
    let channels =
        DataChannels::bind(config.listen.address().unwrap(), &Certificate::make().unwrap(), counters)
            .unwrap();
    let running = tokio::spawn(run_data_channels(channels.clone(), Arc::clone(&app)));
    Relay { app, channels, running }
}

/// Sends connectivity checks to a relay, as ICE does, until one of them is answered.
async fn find(relay: &Relay, socket: &UdpSocket, name: &str) {
    let password = Password::new(&relay.channels.announced().fingerprint).unwrap();
    let mut buffer = [0; 2_048];
    socket.send(&check(&password, &username(name), 16)).await.unwrap();
    loop {
        let len = timeout(EVENT_TIMEOUT, socket.recv(&mut buffer)).await.unwrap().unwrap();
        match buffer[..len] {
            [0, 1, ..] => {
                socket.send(&page_answer(&buffer[..len])).await.unwrap();
            }
            [1, 1, ..] => return,
            // Datagrams that were sent to the previous page are skipped.
            _ => {}
        }
    }
}

/// A client that runs only while it is polled. At other times its events stay queued.
pub(super) struct Client {
    pub(super) session: Session,
    socket: UdpSocket,
}

impl Client {
    async fn connect(relay: &Relay) -> Self {
        Self::connect_from("127.0.0.1:0", relay).await
    }

    /// Connects from this local address, on which the relay also listens.
    async fn connect_from(local: &str, relay: &Relay) -> Self {
        let socket = UdpSocket::bind(local).await.unwrap();
        let to = SocketAddr::new(socket.local_addr().unwrap().ip(), relay.channels.local_addr().port());
        socket.connect(to).await.unwrap();
        Self::over(relay, socket, "first").await
    }

    /// Connects with this user name from this socket, which another client may have used.
    pub(super) async fn over(relay: &Relay, socket: UdpSocket, name: &str) -> Self {
        find(relay, &socket, name).await;
        let mut client = Self { session: client(Version::Either, Instant::now()), socket };
        while client.next().await != Some(SessionEvent::Connected) {}
        client
    }

    /// Returns the next event, or `None` at the timeout.
    async fn next(&mut self) -> Option<SessionEvent> {
        let end = Instant::now() + EVENT_TIMEOUT;
        let mut buffer = [0; 2_048];
        loop {
            self.session.flush(Instant::now());
            while let Some(datagram) = self.session.poll_transmit() {
                self.socket.send(&datagram).await.unwrap();
            }
            if let Some(event) = self.session.poll_event() {
                return Some(event);
            }
            if Instant::now() > end || self.session.is_ended() {
                return None;
            }
            let due = self.session.poll_timeout().unwrap_or(end).min(end);
            match tokio::time::timeout_at(due.into(), self.socket.recv(&mut buffer)).await {
                Ok(received) => self.session.handle_datagram(Instant::now(), &buffer[..received.unwrap()]),
                Err(_) => self.session.handle_timeout(Instant::now()),
            }
        }
    }

    /// Forwards the datagrams of a UDP peer over the channel.
    pub(super) async fn carry(&mut self, peer: &UdpSocket) {
        let (mut of_peer, mut of_relay, mut address) = ([0; 2_048], [0; 2_048], None);
        loop {
            self.session.flush(Instant::now());
            while let Some(datagram) = self.session.poll_transmit() {
                self.socket.send(&datagram).await.unwrap();
            }
            while let Some(event) = self.session.poll_event() {
                if let (SessionEvent::Datagram(datagram), Some(address)) = (event, address) {
                    peer.send_to(&datagram, address).await.unwrap();
                }
            }
            assert!(!self.session.is_ended(), "the session ended");
            let due = self.session.poll_timeout().unwrap_or_else(|| Instant::now() + EVENT_TIMEOUT);
            tokio::select! {
                received = self.socket.recv(&mut of_relay) => {
                    self.session.handle_datagram(Instant::now(), &of_relay[..received.unwrap()]);
                }
                received = peer.recv_from(&mut of_peer) => {
                    let (length, from) = received.unwrap();
                    address = Some(from);
                    // A full channel drops the datagram, as UDP does.
                    let _ = self.session.send_datagram(&of_peer[..length]);
                }
                () = tokio::time::sleep_until(due.into()) => self.session.handle_timeout(Instant::now()),
            }
        }
    }

    pub(super) async fn open(relay: &Relay, request: &str) -> Self {
        let mut client = Self::connect(relay).await;
        client.session.send_control(request);
        client
    }

    /// Returns the next control message.
    pub(super) async fn control(&mut self) -> serde_json::Value {
        loop {
            match self.next().await {
                Some(SessionEvent::Control(text)) => return serde_json::from_slice(&text).unwrap(),
                Some(SessionEvent::Secured | SessionEvent::Connected | SessionEvent::Datagram(_)) => {}
                other => panic!("no control message but {other:?}"),
            }
        }
    }

    /// Returns the game server's answer: the client's address as the server sees it, and the rest.
    pub(super) async fn ask(&mut self, question: &str) -> (String, String) {
        loop {
            // The channel drops datagrams, as UDP does.
            assert!(self.session.send_datagram(question.as_bytes()));
            match timeout(Duration::from_secs(1), self.next()).await {
                Ok(Some(SessionEvent::Datagram(answer))) => {
                    let answer = String::from_utf8(answer.to_vec()).unwrap();
                    let (address, rest) = answer.split_once(' ').unwrap();
                    return (address.to_owned(), rest.to_owned());
                }
                Ok(Some(SessionEvent::Control(_))) | Err(_) => {}
                Ok(other) => panic!("no answer but {other:?}"),
            }
        }
    }
}

/// Polls until the condition holds. If the condition never holds, the timeout of the test runner ends the test.
async fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A dual-stack socket receives datagrams of both families, with ancillary data of different sizes.
#[tokio::test]
async fn a_wildcard_relay_serves_data_channels_on_both_families() {
    let relay =
        start_at("[::]:0", game_server().await, |config| config.admission.allow_any_origin = true).await;
    for local in ["127.0.0.1:0", "[::1]:0"] {
        let mut client = Client::connect_from(local, &relay).await;
        client.session.send_control(OPEN);
        assert_eq!(client.control().await["type"], "flow", "{local}");
        for question in ["hello", "again"] {
            assert_eq!(client.ask(question).await.1, question, "{local}");
        }
    }
    let snapshot = relay.app.counters.snapshot();
    assert_eq!((snapshot.flows, relay.app.webrtc_counters.snapshot().connected), (2, 2));
}

impl Client {
    /// Sends datagrams repeatedly until `server` receives the last one. Returns all datagrams that it received, and
    /// their sender.
    async fn send_to(&mut self, server: &UdpSocket, datagrams: &[&[u8]]) -> (Vec<Vec<u8>>, SocketAddr) {
        let (mut arrived, mut buffer) = (Vec::new(), [0; 2_048]);
        loop {
            for datagram in datagrams {
                assert!(self.session.send_datagram(datagram));
            }
            self.session.flush(Instant::now());
            while let Some(datagram) = self.session.poll_transmit() {
                self.socket.send(&datagram).await.unwrap();
            }
            while let Ok(received) = timeout(Duration::from_secs(1), server.recv_from(&mut buffer)).await {
                let (length, from) = received.unwrap();
                arrived.push(buffer[..length].to_vec());
                if datagrams.last().is_some_and(|last| buffer[..length].ends_with(last)) {
                    return (arrived, from);
                }
            }
        }
    }

    /// Lets `server` send datagrams repeatedly until the last one arrives. Returns everything that arrived, including
    /// control messages.
    async fn receive_from(
        &mut self,
        server: &UdpSocket,
        flow: SocketAddr,
        datagrams: &[&[u8]],
    ) -> Vec<SessionEvent> {
        let mut arrived = Vec::new();
        loop {
            for datagram in datagrams {
                server.send_to(datagram, flow).await.unwrap();
            }
            while let Ok(event) = timeout(Duration::from_secs(1), self.next()).await {
                arrived.push(event.unwrap());
                if let Some(SessionEvent::Datagram(datagram)) = arrived.last()
                    && datagrams.last().is_some_and(|last| datagram == last)
                {
                    return arrived;
                }
            }
        }
    }
}

#[tokio::test]
async fn marked_datagrams_have_the_outcome_of_the_table() {
    for mark in marks() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let change = |config: &mut Config| {
            config.targets.values_mut().for_each(|target| target.proxy_protocol = mark.reads_headers);
        };
        let relay = start_at("127.0.0.1:0", server.local_addr().unwrap(), change).await;
        let mut client = Client::open(&relay, OPEN).await;
        client.control().await;
        let (arrived, flow) = client.send_to(&server, &[&mark.datagram, b"end"]).await;
        // The relay's own PROXY header may precede the datagram.
        let has_passed = arrived.iter().any(|datagram| datagram.ends_with(&mark.datagram));
        let to_server = mark.to_server("data channels");
        assert_eq!(has_passed, to_server == MarkOutcome::Passes, "{} to the server", mark.name);
        let arrived = client.receive_from(&server, flow, &[&mark.datagram, b"end"]).await;
        let has = |wanted: SessionEvent| arrived.contains(&wanted);
        let has_passed = has(SessionEvent::Datagram(Bytes::copy_from_slice(&mark.datagram)));
        let to_client = mark.to_client("data channels");
        assert_eq!(has_passed, to_client == MarkOutcome::Passes, "{} to the client", mark.name);
        let has_control = has(SessionEvent::Control(Bytes::copy_from_slice(&mark.datagram)));
        assert!(!has_control, "{} as a control message", mark.name);
        let snapshot = relay.app.counters.snapshot();
        let [forged, reserved] =
            [DropReason::ForgedHeader, DropReason::Reserved].map(|reason| snapshot.drops(reason) > 0);
        assert_eq!((forged, reserved), (to_server == MarkOutcome::Forged, false), "{}: counted", mark.name);
    }
}

pub(super) const OPEN: &str = r#"{"type":"open","target":"game"}"#;

/// Eight networks flood the relay with hellos from unvalidated sources, checks without a response, and checks with the
/// password of another relay. The relay has to read all of them. Each network has also begun a handshake that it does
/// not complete.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_client_connects_during_a_flood_of_forged_handshakes() {
    const HELLOS: u64 = 16;
    let relay = start(|_| {}).await;
    let counters = &relay.app.webrtc_counters;
    let hello = [&[22, 0xfe, 0xfd][..], &[0; 8], &[0, 40], &[1], &[0; 39]].concat();
    let (mut sources, mut left) = (Vec::new(), Vec::new());
    for network in 1..=8 {
        for sockets in [&mut sources, &mut left] {
            let socket = UdpSocket::bind(SocketAddr::from(([127, network, 0, 1], 0))).await.unwrap();
            socket.connect(relay.channels.local_addr()).await.unwrap();
            sockets.push(socket);
        }
    }
    for socket in &left {
        find(&relay, socket, "left").await;
        socket.send(&hello).await.unwrap();
    }
    until(|| counters.snapshot().begun == left.len() as u64).await;
    let checked =
        |fingerprint: &Fingerprint| check(&Password::new(fingerprint).unwrap(), &username("forged"), 16);
    let unanswered = checked(&relay.channels.announced().fingerprint);
    let wrong = checked(Certificate::make().unwrap().fingerprint());
    let mut rounds = 0;
    let mut flood = async || {
        rounds += 1;
        for source in &sources {
            for _ in 0..HELLOS {
                source.send(&hello).await.unwrap();
            }
            source.send(&unanswered).await.unwrap();
            source.send(&wrong).await.unwrap();
        }
        // The relay reads all of them, so that none is lost on the loopback interface.
        let sent = rounds * sources.len() as u64;
        let dropped = |reason| counters.snapshot().drops(reason);
        until(|| {
            dropped(WebRtcDropReason::UnvalidatedSource) == sent * HELLOS
                && dropped(WebRtcDropReason::WrongPassword) == sent
        })
        .await;
    };
    for _ in 0..20 {
        flood().await;
    }
    let honest = async {
        let mut client = Client::open(&relay, OPEN).await;
        assert_eq!(client.control().await["type"], "flow");
        client.ask("hello").await.1
    };
    let endless = async {
        loop {
            flood().await;
        }
    };
    tokio::select! {
        answer = honest => assert_eq!(answer, "hello"),
        () = endless => {}
    }
    let counts = counters.snapshot();
    assert_eq!((counts.begun, counts.connected), (left.len() as u64 + 1, 1));
}

#[tokio::test]
async fn a_client_resumes_after_a_lost_connection() {
    let relay = start(|_| {}).await;
    let mut client = Client::open(&relay, OPEN).await;
    let flow = client.control().await;
    assert_eq!(
        (&flow["type"], &flow["resumed"], &flow["max_datagram"]),
        (&"flow".into(), &false.into(), &1472.into())
    );
    let (address, answer) = client.ask("hello").await;
    assert_eq!(answer, "hello");

    // The page still exists, but its network has changed.
    let secret = flow["resume"].as_str().unwrap();
    let again = format!(r#"{{"type":"open","target":"game","resume":"{secret}","defer":"1"}}"#);
    let mut returned = Client::open(&relay, &again).await;
    assert_eq!(returned.ask("again").await, (address, "again".to_owned()));
    let told = client.control().await;
    assert_eq!((&told["type"], &told["code"]), (&"close".into(), &4409.into()));
    assert_eq!(client.next().await, Some(SessionEvent::Closed));

    // The client ends its session, which ends the flow.
    returned.session.abandon(Instant::now());
    returned.next().await;
    until(|| relay.app.counters.snapshot().clients == 0).await;
    let counts = relay.app.webrtc_counters.snapshot();
    assert_eq!((counts.begun, counts.secured, counts.connected, counts.failed), (2, 2, 2, 0));
}

#[tokio::test]
async fn a_reloaded_page_resumes_on_the_same_port() {
    let relay = start(|_| {}).await;
    let mut page = Client::open(&relay, OPEN).await;
    let flow = page.control().await;
    let (address, _) = page.ask("hello").await;
    // The first page leaves without closing its session.
    let mut again = Client::over(&relay, page.socket, "second").await;
    let secret = flow["resume"].as_str().unwrap();
    again.session.send_control(&format!(r#"{{"type":"open","target":"game","resume":"{secret}"}}"#));
    assert_eq!(again.control().await["resumed"], true);
    assert_eq!(again.ask("again").await, (address, "again".to_owned()));
    let snapshot = relay.app.counters.snapshot();
    assert_eq!((snapshot.clients, snapshot.flows), (1, 1));
}

#[tokio::test]
async fn a_session_follows_its_page_but_not_forged_checks() {
    let relay = start(|_| {}).await;
    let mut page = Client::open(&relay, OPEN).await;
    page.control().await;
    let (address, _) = page.ask("hello").await;

    // An observer of the network knows the user names and the encrypted datagrams from the page.
    let observer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    observer.connect(relay.channels.local_addr()).await.unwrap();
    find(&relay, &observer, "first").await;
    assert!(page.session.send_datagram(b"seen"));
    page.session.flush(Instant::now());
    while let Some(datagram) = page.session.poll_transmit() {
        page.socket.send(&datagram).await.unwrap();
        observer.send(&datagram).await.unwrap();
        observer.send(&[&datagram[..datagram.len() - 1], &[0]].concat()).await.unwrap();
    }
    assert_eq!(page.ask("still here").await.0, address);
    let mut buffer = [0; 2_048];
    let heard = observer.try_recv(&mut buffer);
    assert!(heard.is_err(), "the observer got {heard:?}");

    // A NAT assigns another port to the page.
    page.socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    page.socket.connect(relay.channels.local_addr()).await.unwrap();
    find(&relay, &page.socket, "first").await;
    let answer = loop {
        let (from, answer) = page.ask("again").await;
        assert_eq!(from, address);
        if answer == "again" {
            break answer;
        }
    };
    assert_eq!(answer, "again");
    let counts = relay.app.webrtc_counters.snapshot();
    assert_eq!((counts.begun, counts.connected, relay.app.counters.snapshot().flows), (1, 1, 1));
    page.session.abandon(Instant::now());
    page.next().await;
    until(|| relay.app.counters.snapshot().clients == 0).await;
}

#[tokio::test]
async fn refused_clients_get_the_close_code_of_a_websocket() {
    let cases = [
        (r#"{"type":"open","target":"other"}"#, 4404, "this relay offers: game"),
        (r#"{"type":"open"}"#, 4400, "no target given"),
        ("hello", 1003, "JSON"),
    ];
    let relay = start(|_| {}).await;
    for (request, code, text) in cases {
        let mut client = Client::open(&relay, request).await;
        let told = client.control().await;
        assert_eq!(told["code"], code, "{told}");
        assert!(told["reason"].as_str().unwrap().contains(text), "{told}");
        assert_eq!(client.next().await, Some(SessionEvent::Closed));
    }
    let relay = start(|config| config.webrtc.allow_without_origin = false).await;
    let mut client = Client::open(&relay, OPEN).await;
    assert_eq!(client.control().await["code"], 4403);
    assert_eq!(relay.app.counters.snapshot().origins_refused, 1);
    let full = start(|config| config.limits.max_clients = 1).await;
    let mut first = Client::open(&full, OPEN).await;
    assert_eq!(first.control().await["type"], "flow");
    let mut second = Client::open(&full, OPEN).await;
    assert_eq!(second.control().await["code"], 1013);
}

#[tokio::test]
async fn banned_and_excess_clients_get_distinct_close_codes() {
    let bans = std::env::temp_dir().join(format!("rakwire-relay-{}-bans", std::process::id()));
    std::fs::write(&bans, "127.0.0.1\n").unwrap();
    let relay = start(|config| config.admission.bans = Some(bans.clone())).await;
    let mut banned = Client::open(&relay, OPEN).await;
    let told = banned.control().await;
    assert_eq!((&told["code"], &told["reason"]), (&4403.into(), &"this address is banned".into()));
    assert_eq!(relay.app.counters.snapshot().bans_refused, 1);
    std::fs::remove_file(bans).unwrap();

    let relay = start(|config| {
        config.clients.per_address = 1;
        config.admission.exempt = Vec::new();
    })
    .await;
    let most = AddressLimits { per_address: 1, ..AddressLimits::default() }.for_connections().per_address;
    let mut connected = Vec::new();
    for _ in 0..most {
        connected.push(Client::connect(&relay).await);
    }
    let lines = Lines::take();
    let mut more = Client::connect(&relay).await;
    assert_eq!(more.control().await["code"], 4429);
    let [line] = &lines.with("client refused")[..] else { panic!("{}", lines.text()) };
    assert!(line.contains("transport=webrtc"), "{line}");
}

/// A page that closes regularly is not logged.
#[tokio::test]
async fn failed_handshakes_of_validated_sources_are_logged() {
    let relay = start(|_| {}).await;
    let failed = || relay.app.webrtc_counters.snapshot().failed;
    let lines = Lines::take();
    let mut page = Client::connect(&relay).await;
    page.session.abandon(Instant::now());
    page.next().await;
    until(|| failed() == 1).await;
    assert!(!lines.text().contains("client refused"), "{}", lines.text());

    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(relay.channels.local_addr()).await.unwrap();
    find(&relay, &socket, "first").await;
    let mut page = client(Version::Either, Instant::now());
    page.handle_timeout(Instant::now());
    socket.send(&page.poll_transmit().unwrap()).await.unwrap();
    until(|| relay.app.webrtc_counters.snapshot().begun == 2).await;
    // A fatal alert of a client without a common cipher (RFC 5246 section 7.2).
    socket.send(&[21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 40]).await.unwrap();
    until(|| failed() == 2).await;
    let [line] = &lines.with("client refused")[..] else { panic!("{}", lines.text()) };
    let from = format!("client={} transport=webrtc", socket.local_addr().unwrap());
    assert!(line.contains(&from) && line.contains("the data channel handshake failed"), "{line}");
}

/// The limit covers the connections of all transports, so it can refuse data channels even without another client.
#[tokio::test]
async fn the_connection_limit_is_reported_to_the_client() {
    let relay = start(|_| {}).await;
    let all = u32::try_from(relay.app.connections.available_permits()).unwrap();
    let taken = relay.app.connections.try_acquire_many(all).unwrap();
    let mut client = Client::connect(&relay).await;
    let close = client.control().await;
    assert_eq!(close["code"], 1013);
    assert_eq!(close["reason"], "this relay has too many open connections; try again later");
    drop(taken);
    let mut client = Client::open(&relay, OPEN).await;
    assert_eq!(client.control().await["type"], "flow");
}

#[tokio::test]
async fn a_ban_ends_the_flows_of_data_channels() {
    use crate::ops::Control as _;

    let relay = start(|_| {}).await;
    let mut client = Client::open(&relay, OPEN).await;
    client.control().await;
    client.ask("hello").await;
    assert_eq!(relay.app.ban("127.0.0.0/8".parse().unwrap(), None), Ok(1));
    let told = client.control().await;
    assert_eq!((&told["type"], &told["code"]), (&"close".into(), &4403.into()));
    until(|| relay.app.counters.snapshot().clients == 0).await;
    let mut again = Client::open(&relay, OPEN).await;
    assert_eq!(again.control().await["code"], 4403);
}

#[tokio::test]
async fn a_shutdown_notifies_clients() {
    let relay = start(|_| {}).await;
    let mut client = Client::open(&relay, OPEN).await;
    client.control().await;
    relay.app.drain.cancel();
    relay.app.stop.cancel();
    let told = client.control().await;
    assert_eq!((&told["type"], &told["code"]), (&"close".into(), &1001.into()));
}

#[tokio::test]
async fn datagrams_outside_of_a_flow_are_counted() {
    let relay = start(|_| {}).await;
    let dropped = |reason| relay.app.webrtc_counters.snapshot().drops(reason);
    let mut early = Client::connect(&relay).await;
    assert!(early.session.send_datagram(b"early"));
    early.session.flush(Instant::now());
    while let Some(datagram) = early.session.poll_transmit() {
        early.socket.send(&datagram).await.unwrap();
    }
    until(|| dropped(WebRtcDropReason::BeforeRequest) == 1).await;

    relay.app.drain.cancel();
    let mut late = client(Version::Either, Instant::now());
    late.handle_timeout(Instant::now());
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(relay.channels.local_addr()).await.unwrap();
    find(&relay, &socket, "late").await;
    socket.send(&late.poll_transmit().unwrap()).await.unwrap();
    until(|| dropped(WebRtcDropReason::ShuttingDown) == 1).await;
}

#[tokio::test]
async fn long_messages_and_texts_end_a_flow_with_a_close_code() {
    let relay = start(|_| {}).await;
    for (send, code) in [
        (
            Box::new(|session: &mut Session| assert!(session.send_datagram(&[1; 1_473])))
                as Box<dyn Fn(&mut Session)>,
            1009,
        ),
        (Box::new(|session: &mut Session| session.send_control("more")), 1003),
    ] {
        let mut client = Client::open(&relay, OPEN).await;
        client.control().await;
        send(&mut client.session);
        assert_eq!(client.control().await["code"], code);
    }
}

#[tokio::test]
async fn a_client_that_floods_a_channel_receives_its_drop_counts() {
    let relay = start(|config| config.limits.datagrams_per_second = 20).await;
    let mut client = Client::open(&relay, OPEN).await;
    client.control().await;
    let mut dropped = 0;
    while dropped < 100 {
        // The channel itself may drop a part of the flood.
        for _ in 0..200 {
            assert!(client.session.send_datagram(b"flood"));
        }
        let told = client.control().await;
        assert_eq!(told["type"], "drops");
        dropped = told["to_server"]["rate_limited"].as_u64().unwrap();
    }
}

#[tokio::test]
async fn only_checks_with_the_right_password_are_answered() {
    let relay = start(|_| {}).await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(relay.channels.local_addr()).await.unwrap();
    let other = Certificate::make().unwrap();
    // The datagrams fit into the socket's buffer.
    for _ in 0..20 {
        let check = check(&Password::new(other.fingerprint()).unwrap(), &username("abcd"), 16);
        socket.send(&check).await.unwrap();
        socket.send(&[22; 40]).await.unwrap();
    }
    find(&relay, &socket, "abcd").await;
    let counts = relay.app.webrtc_counters.snapshot();
    assert_eq!((counts.challenges, counts.answers, counts.begun), (1, 1, 0));
    assert_eq!(counts.drops(WebRtcDropReason::WrongPassword), 20);
    assert_eq!(counts.drops(WebRtcDropReason::UnknownSource), 20);
}

#[tokio::test]
async fn an_absent_game_server_closes_the_client_if_requested() {
    // The socket is connected to itself, so that its port is closed for other senders but stays reserved.
    let reserved = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let absent = reserved.local_addr().unwrap();
    reserved.connect(absent).await.unwrap();
    let relay = start(|config| {
        config.targets.values_mut().for_each(|target| target.address = absent.to_string().parse().unwrap())
    })
    .await;
    let mut client = Client::open(&relay, r#"{"type":"open","target":"game","unreachable":"close"}"#).await;
    assert_eq!(client.control().await["type"], "flow");
    assert!(client.session.send_datagram(b"anybody there?"));
    assert_eq!(client.control().await["code"], 4502);
}
