//! Clients on WebTransport.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connection, Endpoint, RecvStream, SendStream, TransportConfig};
use rakwire_native::raknet::Delivery;
use rakwire_relay::config::{Loaded, WebTransportMode};
use rakwire_relay::flow::{CONTROL_PREFIX, FLOW_PROTOCOL, FLOW_REQUEST};
use rakwire_relay::front::FrontDropReason;
use rakwire_relay::protocol::ProtocolKind;
use rakwire_relay::token::{Claims, SigningKey};
use rakwire_relay::{CloseKind, Config, ConfigError, DropReason, Relay, TransportKind};
use rustls::ClientConfig;
use rustls::crypto::ring;
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;
use web_transport_proto::{
    Capsule, ConnectError, ConnectRequest, ConnectResponse, Frame, Http3CapsuleReader, Settings, VarInt, http,
};

use crate::front;
use crate::program::{Program, relay};
use crate::proxy_headers::header as proxy_header;
use crate::support::{
    self, Client, Flow, Running, Server, directory, eventually, game, get, get_with, repeated, within,
};
use crate::verifier::Accept;

/// The transports announced by a relay.
#[derive(Debug, Clone, Deserialize)]
struct Transports {
    webtransport: Option<Announced>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Announced {
    pub(crate) port: u16,
    pub(crate) path: String,
    pub(crate) certificate_hashes: Vec<String>,
}

/// Returns a configuration with a separate UDP port, because another test may use the UDP port with the number of the
/// relay's TCP port.
pub(crate) fn config(server: SocketAddr) -> Config {
    let mut config = support::config(server);
    config.webtransport.listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    config
}

pub(crate) async fn announced(relay: SocketAddr) -> Option<Announced> {
    let (_, body) = get(relay, "/transports").await;
    serde_json::from_str::<Transports>(&body).unwrap().webtransport
}

/// Creates a client endpoint that expects the announced certificate.
fn client_endpoint(announced: &Announced, transport: TransportConfig, to: SocketAddr) -> Endpoint {
    let hash = STANDARD.decode(&announced.certificate_hashes[0]).unwrap();
    let mut tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Accept::Sha256(hash)))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let mut client = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    client.transport_config(Arc::new(transport));
    let local = if to.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
    let mut endpoint = Endpoint::client(local.parse().unwrap()).unwrap();
    endpoint.set_default_client_config(client);
    endpoint
}

/// Connects a client that expects the announced certificate. It has sent nothing on the connection.
pub(crate) async fn dial(
    announced: &Announced,
    relay: SocketAddr,
) -> Result<(Endpoint, Connection), quinn::ConnectionError> {
    let to = SocketAddr::new(relay.ip(), announced.port);
    let endpoint = client_endpoint(announced, TransportConfig::default(), to);
    let connection = within(endpoint.connect(to, "127.0.0.1").unwrap()).await?;
    Ok((endpoint, connection))
}

/// Handshakes that the relay cannot complete. The relay requests the client to validate its address, and the client's
/// further packets do not arrive.
pub(crate) struct Unfinished {
    address: SocketAddr,
    _endpoint: Endpoint,
    _connecting: Vec<quinn::Connecting>,
    carrying: tokio::task::JoinHandle<()>,
}

impl Unfinished {
    pub(crate) async fn start(announced: &Announced, relay: SocketAddr, count: usize) -> Self {
        let to = SocketAddr::new(relay.ip(), announced.port);
        let [inner, outer] = [(); 2].map(|()| tokio::net::UdpSocket::bind("127.0.0.1:0"));
        let (inner, outer) = (inner.await.unwrap(), outer.await.unwrap());
        outer.connect(to).await.unwrap();
        let (between, address) = (inner.local_addr().unwrap(), outer.local_addr().unwrap());
        let endpoint = client_endpoint(announced, TransportConfig::default(), between);
        let client = SocketAddr::from(([127, 0, 0, 1], endpoint.local_addr().unwrap().port()));
        let connecting = (0..count).map(|_| endpoint.connect(between, "127.0.0.1").unwrap()).collect();
        let carrying = tokio::spawn(async move {
            let (mut sent, mut answered) = ([0; 2_048], [0; 2_048]);
            loop {
                tokio::select! {
                    received = inner.recv_from(&mut sent) => {
                        outer.send(&sent[..received.unwrap().0]).await.unwrap();
                    }
                    received = outer.recv(&mut answered) => {
                        let packet = &answered[..received.unwrap()];
                        // A retry packet (RFC 9000 section 17.2.5).
                        if packet[0] & 0xf0 == 0xf0 {
                            inner.send_to(packet, client).await.unwrap();
                        }
                    }
                }
            }
        });
        Self { address, _endpoint: endpoint, _connecting: connecting, carrying }
    }

    /// Returns the source address of the handshakes.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.carrying.abort();
    }
}

/// Connects a client, which has sent nothing on the connection. Also returns the relay's UDP address.
async fn connected(relay: SocketAddr) -> (Endpoint, Connection, SocketAddr) {
    let announced = announced(relay).await.expect("the relay announces WebTransport");
    let to = SocketAddr::new(relay.ip(), announced.port);
    let (endpoint, connection) = dial(&announced, relay).await.unwrap();
    (endpoint, connection, to)
}

/// Returns the error with which the relay closes the connection of a client with these settings. The client does not
/// wait for the relay's settings.
pub(crate) async fn end_of(relay: SocketAddr, settings: &Settings) -> quinn::ConnectionError {
    let (_endpoint, connection, _) = connected(relay).await;
    let mut sent = within(connection.open_uni()).await.unwrap();
    settings.write(&mut sent).await.unwrap();
    within(connection.closed()).await
}

/// A session in place of a browser's.
pub(crate) struct Session {
    connection: Connection,
    request: SendStream,
    answers: RecvStream,
    _settings: (SendStream, RecvStream),
    /// Other streams that the client has opened.
    _behind: Vec<SendStream>,
    _endpoint: Endpoint,
}

impl Session {
    /// Opens a session with this query. The error is the HTTP status.
    async fn open(relay: SocketAddr, query: &str, origin: Option<&str>) -> Result<Self, u16> {
        let announced = announced(relay).await.expect("the relay announces WebTransport");
        let to = SocketAddr::new(relay.ip(), announced.port);
        let endpoint = client_endpoint(&announced, TransportConfig::default(), to);
        let connection = within(endpoint.connect(to, "127.0.0.1").unwrap()).await.unwrap();
        let url: Url = format!("https://{to}{}?{query}", announced.path).parse().unwrap();
        let mut asked = ConnectRequest::new(url);
        if let Some(origin) = origin {
            asked = asked.with_header(http::header::ORIGIN, origin.parse().unwrap());
        }
        within(Self::request(endpoint, connection, asked)).await
    }

    async fn request(endpoint: Endpoint, connection: Connection, asked: ConnectRequest) -> Result<Self, u16> {
        let mut settings = Settings::default();
        settings.enable_webtransport(1);
        let mut request = BytesMut::new();
        asked.encode(&mut request).unwrap();
        Self::request_in(endpoint, connection, &settings, &request).await
    }

    /// Opens a session at `/wt` with these settings, and with the request that `encode` creates for a host and port.
    pub(crate) async fn open_with(
        relay: SocketAddr,
        settings: &Settings,
        encode: impl Fn(&str) -> Vec<u8>,
    ) -> Result<Self, u16> {
        let (endpoint, connection, to) = connected(relay).await;
        within(Self::request_in(endpoint, connection, settings, &encode(&to.to_string()))).await
    }

    /// Opens a session of a client that has opened streams with these bytes before its settings. The error is the HTTP
    /// status.
    pub(crate) async fn open_behind(relay: SocketAddr, streams: &[&[u8]]) -> Result<Self, u16> {
        let (endpoint, connection, to) = connected(relay).await;
        let mut behind = Vec::new();
        for bytes in streams {
            let mut stream = within(connection.open_uni()).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            behind.push(stream);
        }
        let asked = ConnectRequest::new(format!("https://{to}/wt?target=game").parse::<Url>().unwrap());
        let session = within(Self::request(endpoint, connection, asked)).await?;
        Ok(Self { _behind: behind, ..session })
    }

    async fn request_in(
        endpoint: Endpoint,
        connection: Connection,
        settings: &Settings,
        asked: &[u8],
    ) -> Result<Self, u16> {
        let mut sent = connection.open_uni().await.unwrap();
        settings.write(&mut sent).await.unwrap();
        let mut received = connection.accept_uni().await.unwrap();
        Settings::read(&mut received).await.unwrap();
        let (mut request, mut answers) = connection.open_bi().await.unwrap();
        request.write_all(asked).await.unwrap();
        match ConnectResponse::read(&mut answers).await {
            Ok(_) => {}
            Err(ConnectError::WrongStatus(Some(status))) => return Err(status.as_u16()),
            Err(ConnectError::ErrorStatus(status)) => return Err(status.as_u16()),
            Err(error) => panic!("{error}"),
        }
        Ok(Self {
            connection,
            request,
            answers,
            _settings: (sent, received),
            _behind: Vec::new(),
            _endpoint: endpoint,
        })
    }

    pub(crate) async fn game(relay: SocketAddr) -> Self {
        Self::open(relay, "target=game", None).await.unwrap()
    }

    pub(crate) async fn with_control(relay: SocketAddr, more: &str) -> Self {
        Self::open(relay, &format!("target=game&protocol={FLOW_PROTOCOL}{more}"), None).await.unwrap()
    }

    pub(crate) fn send(&self, datagram: &[u8]) {
        let mut framed = BytesMut::new();
        VarInt::from_u32(0).encode(&mut framed);
        framed.extend_from_slice(datagram);
        self.connection.send_datagram(framed.freeze()).unwrap();
    }

    pub(crate) async fn receive(&self) -> Bytes {
        let mut datagram = within(self.connection.read_datagram()).await.unwrap();
        assert_eq!(VarInt::decode(&mut datagram).unwrap(), VarInt::from_u32(0));
        datagram
    }

    /// Sends a datagram repeatedly until the game server receives it. Returns the client's source address at the
    /// server.
    async fn reach(&self, server: &Server, datagram: &[u8]) -> SocketAddr {
        repeated(async || self.send(datagram), server.receive_until(datagram)).await
    }

    /// Sends a datagram and waits for its echo.
    pub(crate) async fn echoes(&self) {
        let echo = repeated(async || self.send(b"hello"), self.receive()).await;
        assert_eq!(*echo, *b"hello");
    }

    /// Returns the next control message, skipping datagrams.
    pub(crate) async fn control(&self) -> String {
        loop {
            let datagram = self.receive().await;
            if let Some(text) = datagram.strip_prefix(CONTROL_PREFIX) {
                return String::from_utf8(text.to_vec()).unwrap();
            }
        }
    }

    /// Requests the first control message until it arrives.
    pub(crate) async fn request_flow(&self) -> Flow {
        let request = [CONTROL_PREFIX, FLOW_REQUEST.as_bytes()].concat();
        repeated(async || self.send(&request), self.flow()).await
    }

    async fn flow(&self) -> Flow {
        serde_json::from_str(&self.control().await).unwrap()
    }

    /// Waits for the relay to close the session, and returns the code and the text.
    pub(crate) async fn closed(self) -> (u32, String) {
        let mut capsules = Http3CapsuleReader::new(self.answers);
        match within(capsules.read()).await.unwrap() {
            Some(Capsule::CloseWebTransportSession { code, reason }) => (code, reason),
            other => panic!("no close: {other:?}"),
        }
    }

    /// Returns the error with which the connection was closed.
    #[cfg(unix)]
    pub(crate) async fn lost(self) -> quinn::ConnectionError {
        within(self.connection.closed()).await
    }

    async fn close(mut self) {
        let mut capsule = BytesMut::new();
        Capsule::CloseWebTransportSession { code: 1000, reason: String::new() }.encode(&mut capsule);
        self.request.write_all(&data_frame(&capsule)).await.unwrap();
        self.request.finish().unwrap();
        within(self.connection.closed()).await;
    }
}

/// Returns an HTTP/3 frame that contains bytes of capsules.
fn data_frame(contents: &[u8]) -> Bytes {
    let mut frame = BytesMut::new();
    Frame::DATA.encode(&mut frame);
    VarInt::try_from(contents.len()).unwrap().encode(&mut frame);
    frame.extend_from_slice(contents);
    frame.freeze()
}

#[tokio::test]
async fn datagrams_pass_in_both_directions() {
    let server = Server::bind().await;
    let relay = Running::start(config(server.address())).await;
    let session = Session::game(relay.address).await;
    let from = session.reach(&server, b"hello").await;
    let welcome = repeated(async || server.send(b"welcome", from).await, session.receive()).await;
    assert_eq!(*welcome, *b"welcome");
    let counts = relay.snapshot().transport(TransportKind::WebTransport);
    assert_eq!((counts.open, counts.opened, relay.snapshot().clients), (1, 1, 1));
    session.close().await;
    eventually("the flow has ended", || relay.snapshot().clients == 0).await;
    eventually("the close is counted", || relay.snapshot().closes(CloseKind::ClientClosed) == 1).await;
    eventually("no session is open", || relay.snapshot().transport(TransportKind::WebTransport).open == 0)
        .await;
    relay.stop().await;
}

#[tokio::test]
async fn a_flow_moves_between_transports() {
    let server = Server::bind().await;
    let relay = Running::start(config(server.address())).await;
    let (mut socket, flow) = Client::with_control(relay.address, "/ws?target=game").await;
    socket.send(b"by WebSocket").await;
    let (_, from) = server.receive().await;

    let more = format!("&defer=1&resume={}", flow.resume);
    let session = Session::with_control(relay.address, &more).await;
    socket.send(b"still by WebSocket").await;
    assert_eq!(server.receive().await, (b"still by WebSocket".to_vec(), from));
    assert_eq!(session.request_flow().await, Flow { resumed: true, ..flow.clone() });
    assert_eq!(socket.closed().await.0, 4409);
    assert_eq!(session.reach(&server, b"by WebTransport").await, from);
    // The client can request the message again, because it may be lost.
    assert_eq!(session.request_flow().await.resume, flow.resume);

    let path = format!("/ws?target=game&resume={}", flow.resume);
    let (mut socket, back) = Client::with_control(relay.address, &path).await;
    assert!(back.resumed);
    assert_eq!(session.closed().await, (4409, "resumed by another connection".to_owned()));
    socket.send(b"by WebSocket again").await;
    assert_eq!(server.receive_until(b"by WebSocket again").await, from);
}

#[tokio::test]
async fn a_deferred_session_has_no_flow_before_its_first_datagram() {
    let server = Server::bind().await;
    let relay = Running::start(config(server.address())).await;
    let session = Session::with_control(relay.address, "&defer=1").await;
    assert_eq!(relay.snapshot().flows, 0);
    session.reach(&server, b"hello").await;
    assert!(!session.request_flow().await.resumed);
    assert_eq!(relay.snapshot().flows, 1);
}

#[tokio::test]
async fn refused_webtransport_sessions_get_websocket_close_codes() {
    let key = SigningKey::ed25519().unwrap();
    let file = directory("webtransport").join("token.key.pub");
    fs::write(&file, key.public_text().unwrap()).unwrap();
    let mut config = config(Server::echo().await);
    config.tokens.keys = vec![file];
    config.limits.max_clients = 1;
    let relay = Running::start(config).await;
    let open = async |query: &str| Session::open(relay.address, query, None).await.unwrap().closed().await.0;
    assert_eq!(open("").await, 4400);
    assert_eq!(open("target=none").await, 4404);
    assert_eq!(open("target=game").await, 4401);
    let claims = Claims::new("game", SystemTime::now() + Duration::from_secs(60)).unwrap();
    let query = format!("target=game&token={}", key.sign(&claims).unwrap());
    let session = Session::open(relay.address, &query, None).await.unwrap();
    session.echoes().await;
    assert_eq!(open(&query).await, 1013);

    let foreign = Session::open(relay.address, &query, Some("https://example.com")).await.unwrap();
    assert_eq!(foreign.closed().await, (4403, "this relay does not accept pages of this origin".to_owned()));
    assert_eq!(relay.snapshot().origins_refused, 1);
    relay.stop().await;
    assert_eq!(session.closed().await, (1001, "relay is shutting down".to_owned()));
}

#[tokio::test]
async fn datagrams_beyond_the_session_limit_are_counted() {
    let server = Server::bind().await;
    let relay = Running::start(config(server.address())).await;
    let session = Session::with_control(relay.address, "").await;
    let from = session.reach(&server, b"hello").await;
    let reserved = [CONTROL_PREFIX, br#"{"type":"flow","resume":"evil"}"#].concat();
    server.send(&reserved, from).await;
    server.send(&[1; 1_472], from).await;
    let carried = async {
        loop {
            let datagram = session.receive().await;
            assert_ne!(*datagram, *reserved);
            if !datagram.starts_with(CONTROL_PREFIX) {
                break datagram;
            }
        }
    };
    let carried = repeated(async || server.send(&[2; 1_024], from).await, carried).await;
    assert_eq!(*carried, [2; 1_024]);
    assert_eq!(relay.snapshot().drops(DropReason::Reserved), 1);
    assert_eq!(relay.snapshot().drops(DropReason::DatagramTooBig), 1);
    // A datagram that has the prefix of control messages but no control message is one of the game.
    session.reach(&server, &[CONTROL_PREFIX, b"hello"].concat()).await;
}

/// The server offers the largest MTU, and the client receives the MTU that the session carries.
#[tokio::test]
async fn the_raknet_mtu_is_clamped_to_the_session() {
    const MAGIC: &[u8] = b"\x00\xff\xff\x00\xfe\xfe\xfe\xfe\xfd\xfd\xfd\xfd\x12\x34\x56\x78";
    const IP_UDP: usize = 28;

    let server = Server::bind().await;
    let mut config = config(server.address());
    game(&mut config).kind = ProtocolKind::RakNet;
    let relay = Running::start(config).await;
    let session = Session::game(relay.address).await;
    let request = [b"\x05", MAGIC, &[11; 500]].concat();
    let from = session.reach(&server, &request).await;
    let reply = [b"\x06", MAGIC, &[7; 8], &[0], &1_492_u16.to_be_bytes()].concat();
    let answered = repeated(async || server.send(&reply, from).await, session.receive()).await;
    let (head, mtu) = answered.split_at(reply.len() - 2);
    assert_eq!(head, &reply[..reply.len() - 2]);
    let mtu = usize::from(u16::from_be_bytes(mtu.try_into().unwrap()));
    // One byte of the datagram is the session id.
    let carried = session.connection.max_datagram_size().unwrap() - 1;
    assert!(mtu < 1_492 && mtu - IP_UDP <= carried, "an MTU of {mtu} where {carried} bytes pass");
    let datagram = [&[0x84], &vec![9; mtu - IP_UDP - 1][..]].concat();
    session.send(&datagram);
}

#[tokio::test]
async fn a_reload_changes_the_ping_interval() {
    let server = Server::echo().await;
    let path = directory("webtransport").join("pings.toml");
    let write = |interval: &str| {
        let target = format!("[targets.game]\naddress = \"{server}\"\n");
        let limits = format!("[limits]\nidle_timeout = \"1day\"\nping_interval = \"{interval}\"\n");
        fs::write(&path, format!("listen = \"127.0.0.1:0\"\n{target}{limits}")).unwrap();
    };
    write("1day");
    let file = path.clone();
    let load = move || Loaded::load(Some(&file), &[]);
    let relay = Relay::bind(load().unwrap().config).await.unwrap();
    let (address, reloader) = (relay.local_addr(), relay.reloader(load));
    let running = tokio::spawn(relay.run(std::future::pending()));
    write("1s");
    reloader.reload().await.unwrap();
    let session = Session::game(address).await;
    // QUIC's MTU discovery also sends a few pings.
    eventually("the relay pings", || session.connection.stats().frame_rx.ping > 12).await;
    running.abort();
}

/// An incomplete capsule is buffered. The code of a close capsule has four bytes.
#[tokio::test]
async fn an_incomplete_close_capsule_ends_the_session() {
    const SHORT_CLOSE: &[u8] = b"\x68\x43\x03abc";

    let relay = Running::start(config(Server::echo().await)).await;
    for defer in ["", "&defer=1"] {
        let mut session = Session::with_control(relay.address, defer).await;
        session.request.write_all(&data_frame(SHORT_CLOSE)).await.unwrap();
        // The relay stops reading at its limit.
        while session.request.write_all(&data_frame(&[0; 1_000])).await.is_ok() {}
        assert_eq!(session.closed().await.0, 1002, "{defer}");
    }
    assert_eq!(relay.snapshot().closes(CloseKind::ProtocolViolation), 2);
}

#[tokio::test]
async fn a_malformed_capsule_ends_the_session() {
    let relay = Running::start(config(Server::echo().await)).await;
    let mut session = Session::game(relay.address).await;
    session.request.write_all(&data_frame(b"\x68\x43\x05\0\0\0\0\xff")).await.unwrap();
    assert_eq!(session.closed().await.0, 1002);
}

#[tokio::test]
async fn a_reset_or_truncated_request_closes_the_session() {
    let relay = Running::start(config(Server::echo().await)).await;
    let mut reset = Session::with_control(relay.address, "").await;
    reset.request.reset(0_u32.into()).unwrap();
    eventually("the reset counts as a close", || relay.snapshot().closes(CloseKind::ClientClosed) == 1).await;
    let mut cut_off = Session::with_control(relay.address, "").await;
    cut_off.request.write_all(&data_frame(b"\x68\x43")).await.unwrap();
    cut_off.request.finish().unwrap();
    eventually("the truncation counts as a close", || relay.snapshot().closes(CloseKind::ClientClosed) == 2)
        .await;
    assert_eq!(relay.snapshot().all().detached, 0);
}

#[tokio::test]
async fn a_vanished_client_can_resume() {
    let server = Server::bind().await;
    let mut config = config(server.address());
    config.limits.ping_interval = Duration::from_secs(2);
    let relay = Running::start(config).await;
    let session = Session::with_control(relay.address, "").await;
    session.reach(&server, b"hello").await;
    let flow = session.request_flow().await;
    // The client closes the connection with an error, like a browser that abandons it.
    session.connection.close(7_u32.into(), b"");
    eventually("the flow is detached", || relay.snapshot().all().detached == 1).await;
    let session = Session::with_control(relay.address, &format!("&resume={}", flow.resume)).await;
    assert!(session.request_flow().await.resumed);
}

#[tokio::test]
async fn a_flow_without_resumption_ends_with_its_connection() {
    let relay = Running::start(config(Server::echo().await)).await;
    let session = Session::with_control(relay.address, "&resume=never").await;
    assert_eq!(session.request_flow().await.resume_within_ms, 0);
    session.connection.close(7_u32.into(), b"");
    eventually("the flow has ended", || relay.snapshot().closes(CloseKind::ClientVanished) == 1).await;
    assert_eq!(relay.snapshot().all().detached, 0);
}

#[tokio::test]
async fn webtransport_can_be_disabled() {
    let server = Server::echo().await;
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let with = |mode, listen| {
        let mut config: Config = config(server);
        config.webtransport.mode = mode;
        config.webtransport.listen = listen;
        config
    };
    let off = Running::start(with(WebTransportMode::Off, None)).await;
    assert!(announced(off.address).await.is_none());
    let taken = Some(taken.local_addr().unwrap());
    let auto = Running::start(with(WebTransportMode::Auto, taken)).await;
    assert!(announced(auto.address).await.is_none());
    let error = Relay::bind(with(WebTransportMode::On, taken)).await.unwrap_err().to_string();
    assert!(error.contains("another webtransport.listen"), "{error}");
    let elsewhere = Running::start(with(WebTransportMode::On, "127.0.0.1:0".parse().ok())).await;
    assert!(announced(elsewhere.address).await.is_some());
    let public = Relay::bind(with(WebTransportMode::Auto, "0.0.0.0:0".parse().ok())).await;
    assert!(public.unwrap_err().to_string().contains("admission.allow_origins"));
}

const PONG: u8 = 0x1C;

/// Returns an unconnected ping of RakNet: its id, a time, the magic and a GUID.
fn ping() -> Vec<u8> {
    let magic = [0, 255, 255, 0, 254, 254, 254, 254, 253, 253, 253, 253, 0x12, 0x34, 0x56, 0x78];
    [&[1][..], &[7; 8], &magic, &[9; 8]].concat()
}

/// Starts a relay with WebTransport, and with a front if configured, on one free UDP port of this address. If another
/// program takes the port before the relay binds it, tries another port.
async fn on_one_port(mut config: Config, ip: IpAddr, has_front: bool) -> (Relay, SocketAddr) {
    loop {
        let address = UdpSocket::bind((ip, 0)).unwrap().local_addr().unwrap();
        config.udp.listen = has_front.then_some(address);
        config.webtransport.listen = Some(address);
        match Relay::bind(config.clone()).await {
            Ok(relay) => return (relay, address),
            Err(ConfigError::UdpListen { source, .. } | ConfigError::WebTransportListen { source, .. })
                if source.kind() == ErrorKind::AddrInUse => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Every transport reaches the wildcard sockets at an IPv4 and an IPv6 address. The second run has data channels and a
/// front on the port of QUIC.
#[tokio::test]
async fn websocket_webtransport_and_udp_work_on_dual_stack_sockets() {
    let server = front::echo().await;
    for is_shared in [false, true] {
        let mut config =
            Config::new("[::]:0".parse().unwrap()).with_target(format!("game={server}").parse().unwrap());
        config.admin.listen = None;
        game(&mut config).kind = ProtocolKind::RakNet;
        config.admission.allow_any_origin = true;
        config.webtransport.mode = WebTransportMode::On;
        config.webrtc.allow_without_origin = is_shared;
        let (relay, at_udp) = on_one_port(config, Ipv6Addr::UNSPECIFIED.into(), is_shared).await;
        let tcp = relay.local_addr().port();
        let running = tokio::spawn(relay.run(std::future::pending()));
        for at in ["127.0.0.1", "::1"] {
            let address = SocketAddr::new(at.parse().unwrap(), tcp);
            let mut socket = Client::connect(address, "/ws?target=game").await;
            socket.send(&ping()).await;
            assert_eq!(socket.receive().await.first(), Some(&PONG));
            let session = Session::game(address).await;
            let pong = repeated(async || session.send(&ping()), session.receive()).await;
            assert_eq!(pong.first(), Some(&PONG));
            if is_shared {
                let client = front::client_at("[::]:0").await;
                let udp = SocketAddr::new(address.ip(), at_udp.port());
                front::echoes(&within(client.connect(udp)).await.unwrap()).await;
            }
        }
        running.abort();
    }
}

/// Native UDP clients and pages reach the game server through one port, with and without data channels.
#[tokio::test]
async fn a_front_shares_the_port_of_webtransport() {
    let server = front::echo().await;
    for has_channels in [false, true] {
        let mut config: Config = config(server);
        game(&mut config).kind = ProtocolKind::RakNet;
        config.webtransport.mode = WebTransportMode::On;
        config.webrtc.allow_without_origin = has_channels;
        let (relay, port) = on_one_port(config, Ipv4Addr::LOCALHOST.into(), true).await;
        assert_eq!(relay.udp_addr().zip(relay.webtransport_addr()), Some((port, port)));
        assert_eq!(relay.webrtc().map(|(address, _)| address), has_channels.then_some(port));
        let (address, counters) = (relay.local_addr(), relay.front_counters());
        let running = tokio::spawn(relay.run(std::future::pending()));

        let client = front::client().await;
        let connection = within(client.connect(port)).await.unwrap();
        let session = Session::game(address).await;
        front::echoes(&connection).await;
        // Many large messages: several arrive in one receive call, and acknowledgements begin like QUIC packets.
        for _ in 0..50 {
            connection.send(&[0xFE; 50_000], Delivery::RELIABLE_ORDERED).await.unwrap();
        }
        for _ in 0..50 {
            assert_eq!(within(connection.recv()).await.unwrap().bytes.len(), 50_000);
        }
        let pong = repeated(async || session.send(&ping()), session.receive()).await;
        assert_eq!(pong.first(), Some(&PONG));
        assert_eq!(counters.snapshot().drops(FrontDropReason::Unreadable), 0);
        running.abort();
    }
}

#[tokio::test]
async fn allowed_pages_can_read_the_transports() {
    let relay = Running::start(config(Server::echo().await)).await;
    let (local, _) = get_with(relay.address, "/transports", &[("origin", "http://localhost:5173")]).await;
    assert!(local.contains("access-control-allow-origin: http://localhost:5173"), "{local}");
}

/// A page that supports only WebTransport reads in these responses why it gets no session.
#[tokio::test]
async fn refused_pages_can_read_the_reason() {
    const FOREIGN: [(&str, &str); 1] = [("origin", "https://example.com")];
    let refused = async |relay: &Running, path: &str| {
        let (head, body) = get_with(relay.address, path, &FOREIGN).await;
        assert!(head.starts_with("http/1.1 403"), "{head}");
        assert!(head.contains("access-control-allow-origin: https://example.com"), "{head}");
        assert!(head.contains("vary: origin"), "{head}");
        body
    };
    let relay = Running::start(config(Server::echo().await)).await;
    for path in ["/transports", "/servers.json"] {
        let told = r#"{"code":4403,"reason":"this relay does not accept pages of this origin"}"#;
        assert_eq!(refused(&relay, path).await, told);
    }
    assert_eq!(relay.snapshot().origins_refused, 2);

    let bans = Path::new(env!("CARGO_TARGET_TMPDIR")).join("banned-from-the-transports");
    fs::write(&bans, "127.0.0.1\n").unwrap();
    let mut config = config(Server::echo().await);
    config.admission.bans = Some(bans);
    let relay = Running::start(config).await;
    let told = r#"{"code":4403,"reason":"this address is banned"}"#;
    assert_eq!(refused(&relay, "/transports").await, told);
    assert_eq!(relay.snapshot().bans_refused, 1);
}

/// Returns the UDP ports announced by a relay with a proxy at 127.0.0.1 and this public port.
async fn announced_behind_proxy(public_port: Option<u16>, has_header: bool) -> (Option<u16>, Option<u16>) {
    let mut config = config(Server::echo().await);
    config.admission.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    config.admission.allow_any_origin = true;
    config.admission.proxy_protocol = has_header;
    config.webtransport.public_port = public_port.and_then(|port| port.try_into().ok());
    let relay = Running::start(config).await;
    let mut stream = TcpStream::connect(relay.address).await.unwrap();
    if has_header {
        stream.write_all(&proxy_header()).await.unwrap();
    }
    stream.write_all(b"GET /transports HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.unwrap();
    let list: serde_json::Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let port = |transport: &str| list[transport]["port"].as_u64().map(|port| port as u16);
    (port("webtransport"), port("webrtc"))
}

#[tokio::test]
async fn pages_behind_a_proxy_see_only_the_public_port() {
    for has_header in [false, true] {
        assert_eq!(announced_behind_proxy(None, has_header).await, (None, None));
        assert_eq!(announced_behind_proxy(Some(443), has_header).await, (Some(443), Some(443)));
    }
    let mut elsewhere = support::config(Server::echo().await);
    elsewhere.admission.trusted_proxies = vec!["192.0.2.0/24".parse().unwrap()];
    elsewhere.admission.allow_any_origin = true;
    let relay = Running::start(elsewhere).await;
    assert_eq!(announced(relay.address).await.map(|announced| announced.port), Some(relay.address.port()));
}

#[tokio::test]
async fn the_log_contains_no_tokens_or_secrets() {
    let server = Server::echo().await;
    let log = directory("webtransport").join("trace.log");
    let program = Program::run(
        relay()
            .args([
                "--listen",
                "127.0.0.1:0",
                "--target",
                &format!("game={server}"),
                "--log-lines-per-second",
                "1000000",
            ])
            .env("RUST_LOG", "trace")
            .stderr(Stdio::from(fs::File::create(&log).unwrap())),
    );
    let session = Session::with_control(program.address, "&token=a-token-of-somebody").await;
    let flow = session.request_flow().await;
    let again = Session::with_control(program.address, &format!("&resume={}", flow.resume)).await;
    assert!(again.request_flow().await.resumed);
    let text = || fs::read_to_string(&log).unwrap();
    // The client is notified before the log line is written.
    eventually("the resumption is logged", || text().contains("resumed its flow")).await;
    drop(program);
    let text = text();
    assert!(!text.contains("a-token-of-somebody") && !text.contains(&flow.resume));
}

#[tokio::test]
async fn a_client_that_never_reads_the_response_is_disconnected() {
    let mut config = config(Server::echo().await);
    config.limits.header_timeout = Duration::from_secs(10);
    let relay = Running::start(config).await;
    let announced = announced(relay.address).await.unwrap();
    let mut settings = Settings::default();
    settings.enable_webtransport(1);
    let mut room = BytesMut::new();
    settings.encode(&mut room);
    // The client's receive window has space only for the relay's SETTINGS, so the response is blocked.
    let mut transport = TransportConfig::default();
    transport.receive_window(u32::try_from(room.len()).unwrap().into());
    let to = SocketAddr::new(relay.address.ip(), announced.port);
    let endpoint = client_endpoint(&announced, transport, to);
    let connection = within(endpoint.connect(to, "127.0.0.1").unwrap()).await.unwrap();
    let mut sent = connection.open_uni().await.unwrap();
    settings.write(&mut sent).await.unwrap();
    let (mut request, _answers) = connection.open_bi().await.unwrap();
    let url: Url = format!("https://{to}{}?target=game", announced.path).parse().unwrap();
    ConnectRequest::new(url).write(&mut request).await.unwrap();
    eventually("the handshake has timed out", || relay.snapshot().handshakes_timed_out == 1).await;
    within(connection.closed()).await;
}

/// The limit is 32 concurrent handshakes per address.
#[tokio::test]
async fn a_connected_client_releases_its_handshake_slot() {
    let relay = Running::start(config(Server::echo().await)).await;
    let announced = within(announced(relay.address)).await.unwrap();
    let to = SocketAddr::new(relay.address.ip(), announced.port);
    let endpoint = client_endpoint(&announced, TransportConfig::default(), to);
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(within(endpoint.connect(to, "127.0.0.1").unwrap()).await.unwrap());
    }
    let session = within(Session::open(relay.address, "target=game", None)).await;
    assert!(session.is_ok(), "{:?}", session.err());
    assert_eq!(relay.snapshot().connections_refused, 0);
    drop(silent);
}

/// A client that does not continue its handshake keeps no resources.
#[tokio::test]
async fn an_unfinished_handshake_is_abandoned() {
    let mut config = config(Server::echo().await);
    config.limits.header_timeout = Duration::from_secs(10);
    let relay = Running::start(config).await;
    let announced = within(announced(relay.address)).await.unwrap();
    let to = SocketAddr::from(([127, 0, 0, 1], announced.port));
    let forger = UdpSocket::bind("127.0.0.1:0").unwrap();
    // A packet that is not QUIC, and one with an unknown version.
    for packet in [vec![0; 1_200], [&[0xc0, 0x0a, 0x0a, 0x0a, 0x0a, 8][..], &[7; 1_300]].concat()] {
        forger.send_to(&packet, to).unwrap();
    }
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    // The first packet from a client, which is not answered.
    let between = socket.local_addr().unwrap();
    let endpoint = client_endpoint(&announced, TransportConfig::default(), between);
    let connecting = endpoint.connect(between, "127.0.0.1").unwrap();
    let mut first = [0; 2_048];
    let (len, _) = within(socket.recv_from(&mut first)).await.unwrap();
    socket.send_to(&first[..len], to).await.unwrap();
    eventually("the handshake has timed out", || relay.snapshot().handshakes_timed_out == 1).await;
    assert_eq!(relay.snapshot().handshakes_failed, 0);
    drop(connecting);
}

#[tokio::test]
async fn an_absent_game_server_closes_the_session_if_requested() {
    // The socket is connected to itself, so its port is closed for other senders but stays reserved.
    let reserved = UdpSocket::bind("127.0.0.1:0").unwrap();
    let absent = reserved.local_addr().unwrap();
    reserved.connect(absent).unwrap();
    let relay = Running::start(config(absent)).await;
    let session = Session::open(relay.address, "target=game&unreachable=close", None).await.unwrap();
    session.send(b"anybody there?");
    assert_eq!(session.closed().await.0, 4502);
}
