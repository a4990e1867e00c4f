//! A relay, clients and game servers for tests. No wait exceeds [`TIMEOUT`].

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket as StdUdpSocket};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use rakwire_relay::config::Target;
use rakwire_relay::flow::FLOW_PROTOCOL;
use rakwire_relay::{Config, Counters, Relay, Snapshot};
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Response;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Time limit for every wait, long enough for the slowest machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Time after which a datagram counts as lost and is sent again.
const RESEND_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(TIMEOUT, future).await.expect("timed out")
}

/// Returns a directory for files of tests.
pub(crate) fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Waits until `condition` holds.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(TIMEOUT, wait).await.is_ok(), "timed out before {what}");
}

/// Sends repeatedly until there is an answer, because UDP may lose datagrams.
pub(crate) async fn repeated<T>(mut send: impl AsyncFnMut(), answer: impl Future<Output = T>) -> T {
    let mut answer = pin!(answer);
    within(async {
        loop {
            send().await;
            if let Ok(answer) = timeout(RESEND_INTERVAL, answer.as_mut()).await {
                return answer;
            }
        }
    })
    .await
}

/// Reserves a port of this machine for as long as the socket exists. The socket does not listen, so a server that
/// reuses addresses can bind the port.
pub(crate) fn reserve_port() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Returns a closed UDP port of this machine, which ICMP reports to senders. The socket is connected to a silent peer,
/// so other programs cannot use the port.
pub(crate) fn closed_port() -> (StdUdpSocket, SocketAddr) {
    let socket = StdUdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect("127.0.0.1:9").unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Returns a configuration with one target, which listens on a free port.
pub(crate) fn config(server: SocketAddr) -> Config {
    let config = Config::new("127.0.0.1:0".parse().unwrap());
    let mut config = config.with_target(format!("game={server}").parse().unwrap());
    config.drain_timeout = Duration::ZERO;
    config
}

/// Returns the settings of the target `game`.
pub(crate) fn game(config: &mut Config) -> &mut Target {
    config.targets.values_mut().next().unwrap()
}

/// A relay in this process.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) admin: Option<SocketAddr>,
    pub(crate) counters: Arc<Counters>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl Running {
    pub(crate) async fn start(config: Config) -> Self {
        let relay = Relay::bind(config).await.unwrap();
        let (stop, stopped) = oneshot::channel();
        let (address, admin, counters) = (relay.local_addr(), relay.admin_addr(), relay.counters());
        let task = tokio::spawn(relay.run(async { drop(stopped.await) }));
        Self { address, admin, counters, stop, task }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.counters.snapshot()
    }

    /// Connects a client to the target `game`.
    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.address, "/ws?target=game").await
    }

    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        within(self.task).await.unwrap().unwrap();
    }
}

/// Connects to `address` from another address of this machine.
pub(crate) async fn connect_from(source: IpAddr, address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((source, 0).into()).unwrap();
    within(socket.connect(address)).await.unwrap()
}

/// A WebSocket client in place of a browser.
pub(crate) struct Client(pub(crate) WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    pub(crate) async fn connect(relay: SocketAddr, path: &str) -> Self {
        Self(within(connect_async(format!("ws://{relay}{path}"))).await.unwrap().0)
    }

    /// Connects a client that accepts control messages. Returns it with the first of them.
    pub(crate) async fn with_control(relay: SocketAddr, path: &str) -> (Self, Flow) {
        let mut client = Self::connect_with_control(relay, path).await;
        let flow = client.flow().await;
        (client, flow)
    }

    /// Returns the first control message.
    pub(crate) async fn flow(&mut self) -> Flow {
        let text = self.text().await;
        let flow: Flow = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(flow.kind, "flow");
        flow
    }

    pub(crate) async fn connect_with_control(relay: SocketAddr, path: &str) -> Self {
        let offer = ("sec-websocket-protocol", FLOW_PROTOCOL);
        let (client, response) = open_with_header(relay, path, offer).await;
        assert_eq!(response.headers().get(offer.0).unwrap(), FLOW_PROTOCOL);
        client
    }

    pub(crate) async fn send(&mut self, datagram: &[u8]) {
        self.message(Message::binary(datagram.to_vec())).await;
    }

    pub(crate) async fn message(&mut self, message: Message) {
        within(self.0.send(message)).await.unwrap();
    }

    /// Returns the next message, which must be binary.
    pub(crate) async fn receive(&mut self) -> Vec<u8> {
        loop {
            match within(self.0.next()).await {
                Some(Ok(Message::Binary(datagram))) => return datagram.into(),
                Some(Ok(Message::Ping(_))) => {}
                other => panic!("no datagram: {other:?}"),
            }
        }
    }

    /// Returns the next datagram, skipping control messages.
    pub(crate) async fn datagram(&mut self) -> Vec<u8> {
        loop {
            match within(self.0.next()).await {
                Some(Ok(Message::Binary(datagram))) => return datagram.into(),
                Some(Ok(Message::Ping(_) | Message::Text(_))) => {}
                other => panic!("no datagram: {other:?}"),
            }
        }
    }

    /// Returns the next control message, skipping datagrams.
    pub(crate) async fn text(&mut self) -> String {
        loop {
            match within(self.0.next()).await {
                Some(Ok(Message::Text(text))) => return text.to_string(),
                Some(Ok(Message::Ping(_) | Message::Binary(_))) => {}
                other => panic!("no text: {other:?}"),
            }
        }
    }

    /// Waits for the close frame, and returns its code and text.
    pub(crate) async fn closed(mut self) -> (u16, String) {
        loop {
            match within(self.0.next()).await {
                Some(Ok(Message::Close(Some(frame)))) => {
                    return (frame.code.into(), frame.reason.to_string());
                }
                Some(Ok(_)) => {}
                other => panic!("no close frame: {other:?}"),
            }
        }
    }

    /// Returns the connection below the WebSocket.
    pub(crate) fn tcp(&mut self) -> &mut TcpStream {
        match self.0.get_mut() {
            MaybeTlsStream::Plain(stream) => stream,
            _ => panic!("the connection uses TLS"),
        }
    }
}

/// The first control message.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flow {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) resume: String,
    pub(crate) resume_within_ms: u64,
    pub(crate) resumed: bool,
    pub(crate) max_datagram: usize,
}

/// A game server. The test reads and writes its datagrams.
pub(crate) struct Server(pub(crate) UdpSocket);

impl Server {
    pub(crate) async fn bind() -> Self {
        Self::bind_to("127.0.0.1:0".parse().unwrap()).await
    }

    pub(crate) async fn bind_to(address: SocketAddr) -> Self {
        Self(UdpSocket::bind(address).await.unwrap())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    pub(crate) async fn receive(&self) -> (Vec<u8>, SocketAddr) {
        let mut buffer = vec![0; 65_536];
        let (len, from) = within(self.0.recv_from(&mut buffer)).await.unwrap();
        buffer.truncate(len);
        (buffer, from)
    }

    /// Receives datagrams until this one arrives, and returns its source.
    pub(crate) async fn receive_until(&self, datagram: &[u8]) -> SocketAddr {
        loop {
            let (received, from) = self.receive().await;
            if received == datagram {
                return from;
            }
        }
    }

    pub(crate) async fn send(&self, datagram: &[u8], to: SocketAddr) {
        self.0.send_to(datagram, to).await.unwrap();
    }

    /// Starts a server that echoes every datagram.
    pub(crate) async fn echo() -> SocketAddr {
        let server = Self::bind().await;
        let address = server.address();
        tokio::spawn(async move {
            let mut buffer = vec![0; 65_536];
            loop {
                let (len, from) = server.0.recv_from(&mut buffer).await.unwrap();
                server.0.send_to(&buffer[..len], from).await.unwrap();
            }
        });
        address
    }
}

/// Opens a WebSocket with an additional header.
pub(crate) async fn open_with_header(
    relay: SocketAddr,
    path: &str,
    (name, value): (&'static str, &str),
) -> (Client, Response) {
    let mut request = format!("ws://{relay}{path}").into_client_request().unwrap();
    request.headers_mut().insert(name, value.parse().unwrap());
    let (socket, response) = within(connect_async(request)).await.unwrap();
    (Client(socket), response)
}

/// Opens a WebSocket to an echo server. The error is the close code with which the relay refuses it.
pub(crate) async fn open_with_origin(relay: SocketAddr, origin: Option<&str>) -> Result<(), u16> {
    let mut request = format!("ws://{relay}/ws?target=game").into_client_request().unwrap();
    if let Some(origin) = origin {
        request.headers_mut().insert("origin", origin.parse().unwrap());
    }
    match within(connect_async(request)).await {
        Ok((socket, _)) => {
            let mut client = Client(socket);
            // A refused connection may already be closed.
            let _ = within(client.0.send(Message::binary(&b"x"[..]))).await;
            match within(client.0.next()).await {
                Some(Ok(Message::Close(Some(frame)))) => Err(frame.code.into()),
                Some(Ok(Message::Binary(_))) => Ok(()),
                other => panic!("no answer: {other:?}"),
            }
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns the header and body of the response to a GET request.
pub(crate) async fn get(relay: SocketAddr, path: &str) -> (String, String) {
    get_with(relay, path, &[]).await
}

/// Like `get`, with additional headers.
pub(crate) async fn get_with(relay: SocketAddr, path: &str, headers: &[(&str, &str)]) -> (String, String) {
    let mut stream = TcpStream::connect(relay).await.unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {relay}\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}
