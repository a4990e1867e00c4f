//! The relay program in front of independent servers, and with Redis of the distribution.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rakwire_native::{CookiePolicy, Delivery, Endpoint, Options};
use serde_json::Value;

use crate::support::{self, Server, TIME_LIMIT, peer, run, text};

/// The relay, until it is dropped.
struct Relay {
    child: Child,
    http: SocketAddr,
    /// The UDP address of the front; `None` without a front.
    udp: Option<SocketAddr>,
}

impl Relay {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(support::program("rakwire-relay"))
            .args(["--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let stdout = child.stdout.take().expect("a piped output");
        let mut lines = BufReader::new(stdout).lines();
        let mut address = |scheme: &str| {
            let line = lines.next().expect("a line").expect("UTF-8");
            let address = line.strip_prefix("listening on ").and_then(|rest| rest.strip_prefix(scheme));
            address.and_then(|address| address.parse().ok()).unwrap_or_else(|| panic!("{line:?}"))
        };
        let http = address("http://");
        let has_front = arguments.contains(&"--udp-listen");
        let udp = has_front.then(|| address("udp://"));
        Self { child, http, udp }
    }

    /// Starts a relay with a front for a RakNet server.
    fn front(server: SocketAddr) -> Self {
        Self::start(&["--target", &format!("game={server},kind=raknet"), "--udp-listen", "127.0.0.1:0"])
    }

    fn udp(&self) -> SocketAddr {
        self.udp.expect("a relay started with a UDP address")
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // The program may already have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a foreign client and returns its JSON verdict on the echoes.
async fn foreign_client(name: &str, protocol: u8, address: SocketAddr) -> Value {
    let (program, protocol, address) = (peer(name), protocol.to_string(), address.to_string());
    let client = tokio::task::spawn_blocking(move || {
        let arguments = ["client", &address, "--protocol", &protocol, "--count", "100", "--size", "100"];
        run(&program, &arguments).expect("the program runs")
    });
    let output = tokio::time::timeout(TIME_LIMIT, client)
        .await
        .expect("the exchange completes in time")
        .expect("the task does not panic");
    serde_json::from_str(&text(&output.stdout)).expect("a line of JSON")
}

async fn our_client(protocol: u8, address: SocketAddr) {
    let mut options = Options::client().expect("entropy");
    options.config.protocol_version = protocol;
    let client = Endpoint::bind("127.0.0.1:0", options).await.expect("a free port");
    let connection = client.connect(address).await.expect("a connection");
    for size in [100, 20_000] {
        let message: Vec<u8> = (0..size).map(|at| if at == 0 { 0xFE } else { at as u8 }).collect();
        connection.send(&message, Delivery::RELIABLE_ORDERED).await.expect("an open connection");
        let echo = tokio::time::timeout(TIME_LIMIT, connection.recv()).await.expect("an echo in time");
        assert!(echo.expect("an echo").bytes == message, "{size} bytes");
    }
    connection.disconnect().await;
}

/// The C++ server does not support cookies. The front performs the cookie exchange with the clients in its place.
#[tokio::test]
async fn clients_reach_foreign_servers_through_a_front() {
    for (server, protocol) in [("cpp", 6), ("cpp", 11), ("rust-raknet", 11)] {
        let server = Server::start(server, &["--protocol", &protocol.to_string()]).expect("a foreign server");
        let relay = Relay::front(server.address);
        our_client(protocol, relay.udp()).await;
        for client in ["cpp", "python"] {
            let found = foreign_client(client, protocol, relay.udp()).await;
            assert_eq!(found["echoed"], 100, "{client} with protocol {protocol}: {found}");
        }
    }
}

/// Our server runs with and without its own cookies.
#[tokio::test]
async fn foreign_clients_reach_our_server_through_a_front() {
    for cookies in [CookiePolicy::Off, CookiePolicy::Required] {
        let mut options = Options::server(8).expect("entropy");
        options.config.cookies = cookies;
        let server = Endpoint::bind("127.0.0.1:0", options).await.expect("a free port");
        let relay = Relay::front(server.local_addr());
        let echo = tokio::spawn(async move {
            while let Some(connection) = server.accept().await {
                tokio::spawn(async move {
                    while let Some(message) = connection.recv().await {
                        // Fails once the client has disconnected.
                        let _ = connection.send(&message.bytes, message.delivery).await;
                    }
                });
            }
        });
        for client in ["cpp", "python"] {
            let found = foreign_client(client, 11, relay.udp()).await;
            assert_eq!(found["echoed"], 100, "{client} with {cookies:?}: {found}");
        }
        echo.abort();
    }
}

/// The front forwards a request with a wrong protocol version, so the refusal is the server's own.
#[tokio::test]
async fn a_wrong_version_is_refused_by_the_server_behind_the_front() {
    let server = Server::start("cpp", &["--protocol", "6"]).expect("a foreign server");
    let relay = Relay::front(server.address);
    let found = foreign_client("cpp", 11, relay.udp()).await;
    assert_eq!(found["connected"], false, "{found}");
    // A client with the right version still connects through the front.
    our_client(6, relay.udp()).await;
}

/// The front answers pings from its cache of the server's pong.
#[tokio::test]
async fn the_front_answers_pings_for_a_foreign_server() {
    let server = Server::start("cpp", &[]).expect("a foreign server");
    let relay = Relay::front(server.address);
    let client =
        Endpoint::bind("127.0.0.1:0", Options::client().expect("entropy")).await.expect("a free port");
    let direct = client.ping(server.address, TIME_LIMIT).await.expect("a pong of the server");
    let pong = loop {
        // The relay pings the server when it starts. Pings to the front before the server's pong are not answered.
        if let Ok(pong) = client.ping(relay.udp(), Duration::from_millis(200)).await {
            break pong;
        }
    };
    assert_eq!((pong.data, pong.identity), (direct.data, direct.identity));
}

mod discovery {
    use std::net::TcpStream;
    use std::path::{Path, PathBuf};

    use futures_util::{SinkExt, StreamExt};
    use tokio::net::{TcpSocket, UdpSocket};
    use tokio_tungstenite::connect_async;
    use tokio_tungstenite::tungstenite::Message;

    use super::*;

    /// A Redis server of the distribution, until it is dropped.
    struct Redis {
        child: Child,
        folder: PathBuf,
        url: String,
        /// The file of its certificate authority; `None` without TLS.
        ca: Option<PathBuf>,
        /// Reserves the port of the server.
        _port: Option<TcpSocket>,
    }

    impl Redis {
        /// Starts Redis on a Unix socket.
        fn on_socket(name: &str) -> Self {
            let folder = folder(name);
            let socket = folder.join("redis.sock");
            let child = spawn_redis(&folder, &["--port", "0", "--unixsocket", &socket.display().to_string()]);
            let url = format!("unix://{}", socket.display());
            Self { child, folder, url, ca: None, _port: None }.when(|| socket.exists())
        }

        /// Starts Redis on a local port, with a separate database for game servers.
        fn on_port(name: &str) -> Self {
            let folder = folder(name);
            let (port, address) = free_port();
            let child = spawn_redis(&folder, &["--bind", "127.0.0.1", "--port", &address.port().to_string()]);
            let url = format!("redis://{address}/1");
            Self { child, folder, url, ca: None, _port: Some(port) }
                .when(|| TcpStream::connect(address).is_ok())
        }

        /// Starts Redis with TLS, a certificate for localhost and a password.
        fn with_tls(name: &str) -> Self {
            let folder = folder(name);
            let (port, address) = free_port();
            let pair = rcgen::KeyPair::generate().expect("a key");
            let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a valid name");
            let certificate = params.self_signed(&pair).expect("a certificate").pem();
            let (certificate_file, key_file) = (folder.join("redis.pem"), folder.join("redis.key"));
            std::fs::write(&certificate_file, certificate).expect("the file is written");
            std::fs::write(&key_file, pair.serialize_pem()).expect("the file is written");
            let (listen, file) = (address.port().to_string(), certificate_file.display().to_string());
            let tls =
                ["--bind", "127.0.0.1", "--port", "0", "--tls-port", &listen, "--tls-auth-clients", "no"];
            let files = ["--tls-cert-file", &file, "--tls-ca-cert-file", &file, "--tls-key-file"];
            let last = [key_file.to_str().expect("UTF-8"), "--requirepass", "snow"];
            let child = spawn_redis(&folder, &[&tls[..], &files, &last].concat());
            let url = format!("rediss://:snow@localhost:{}/1", address.port());
            Self { child, folder, url, ca: Some(certificate_file), _port: Some(port) }
                .when(|| TcpStream::connect(address).is_ok())
        }

        /// Returns `option` with the file of the certificate authority; empty without TLS.
        fn trust(&self, option: &str) -> Vec<String> {
            let ca = self.ca.iter().map(|ca| ca.display().to_string());
            ca.flat_map(|ca| [option.to_owned(), ca]).collect()
        }

        /// Waits until `listens` returns true. Panics if Redis exits first.
        fn when(mut self, listens: impl Fn() -> bool) -> Self {
            eventually("redis listens", || {
                assert!(matches!(self.child.try_wait(), Ok(None)), "redis-server has exited");
                listens()
            });
            self
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("rakwire-redis-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the folder is created");
        folder
    }

    /// Reserves a local port, which no other program is assigned while the socket exists.
    fn free_port() -> (TcpSocket, SocketAddr) {
        let port = TcpSocket::new_v4().expect("a socket");
        port.set_reuseaddr(true).expect("a supported option");
        port.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        let address = port.local_addr().expect("the local address");
        (port, address)
    }

    fn spawn_redis(folder: &Path, listen: &[&str]) -> Child {
        Command::new("redis-server")
            .args(["--save", "", "--appendonly", "no"])
            .args(listen)
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is missing: run `apt-get install redis-server`")
    }

    impl Drop for Redis {
        fn drop(&mut self) {
            // The programs may already have exited.
            let _ = self.child.kill();
            let _ = self.child.wait();
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    /// Starts a program that announces a server. Relays keep the server for `lifetime` after the program has exited.
    fn announce(redis: &Redis, name: &str, address: SocketAddr, lifetime: &str) -> Child {
        Command::new(support::program("rakwire-relay"))
            .args(["announce", "--redis", &redis.url, "--name", name, "--kind", "raknet"])
            .args(["--address", &address.to_string(), "--lifetime", lifetime])
            .args(redis.trust("--ca"))
            .stdout(Stdio::null())
            .spawn()
            .expect("the program starts")
    }

    /// Returns the servers that the relay lists.
    fn servers(relay: &Relay) -> Vec<Value> {
        let output = Command::new(support::program("rakwire-relay"))
            .args(["list", "--json", &format!("http://{}", relay.http)])
            .output()
            .expect("the program runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let list: Value = serde_json::from_str(&text(&output.stdout)).expect("JSON");
        list["servers"].as_array().expect("a list").clone()
    }

    fn names(relay: &Relay) -> Vec<String> {
        servers(relay).iter().map(|server| server["name"].as_str().expect("a name").to_owned()).collect()
    }

    fn eventually(what: &str, mut is_done: impl FnMut() -> bool) {
        let start = std::time::Instant::now();
        while !is_done() {
            assert!(start.elapsed() < TIME_LIMIT, "timed out while waiting until {what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Starts a relay with one configured target, which discovers others.
    fn discovering(redis: &Redis) -> Relay {
        let trust = redis.trust("--discover-ca");
        let trust: Vec<&str> = trust.iter().map(String::as_str).collect();
        let finding =
            ["--discover", &redis.url, "--discover-interval", "1s", "--discover-network", "127.0.0.0/8"];
        Relay::start(&[&["--target", "fixed=127.0.0.1:1"][..], &finding, &trust].concat())
    }

    #[test]
    fn announced_servers_are_listed_until_their_announcement_ends() {
        let redis = Redis::on_socket("come-and-go");
        let server = Server::start("cpp", &[]).expect("a foreign server");
        let relay = discovering(&redis);
        assert_eq!(names(&relay), ["fixed"]);
        let mut polite = announce(&redis, "arena-1", server.address, "2s");
        let mut killed = announce(&redis, "arena-2", server.address, "2s");
        eventually("both servers are listed and online", || {
            let servers = servers(&relay);
            servers.len() == 3 && servers.iter().filter(|server| server["online"] == true).count() == 2
        });
        // The first program withdraws its announcement when it is terminated. The announcement of the killed program
        // expires.
        let status =
            Command::new("kill").args(["-TERM", &polite.id().to_string()]).status().expect("kill runs");
        assert!(status.success() && polite.wait().expect("the program exits").success());
        eventually("the first server is no longer listed", || names(&relay) == ["arena-2", "fixed"]);
        killed.kill().expect("a running program");
        killed.wait().expect("the program exits");
        eventually("the second server is no longer listed", || names(&relay) == ["fixed"]);
    }

    #[test]
    fn servers_are_announced_and_found_over_tls() {
        let redis = Redis::with_tls("tls");
        let relay = discovering(&redis);
        let mut announcing = announce(&redis, "arena-1", ([127, 0, 0, 1], 9).into(), "30s");
        eventually("the server is listed", || names(&relay) == ["arena-1", "fixed"]);
        announcing.kill().expect("a running program");
        announcing.wait().expect("the program exits");
    }

    /// Simulates a page. Returns a UDP address. Datagrams to it are forwarded to the target through a WebSocket to the
    /// relay.
    async fn page(relay: &Relay, target: &str) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        let address = socket.local_addr().expect("the local address");
        let url = format!("ws://{}/ws?target={target}", relay.http);
        let (mut web, _) = connect_async(url).await.expect("a WebSocket");
        tokio::spawn(async move {
            let (mut buffer, mut client) = ([0; 2_048], None);
            loop {
                tokio::select! {
                    received = socket.recv_from(&mut buffer) => {
                        let (length, from) = received.expect("an open socket");
                        client = Some(from);
                        web.send(Message::binary(buffer[..length].to_vec())).await.expect("an open WebSocket");
                    }
                    message = web.next() => match (message, client) {
                        (Some(Ok(Message::Binary(datagram))), Some(client)) => {
                            socket.send_to(&datagram, client).await.expect("an open socket");
                        }
                        (Some(Ok(_)), _) => {}
                        // The relay has exited.
                        _ => return,
                    }
                }
            }
        });
        address
    }

    #[tokio::test]
    async fn pages_play_on_a_server_that_announced_itself() {
        for redis in [Redis::on_socket("play-socket"), Redis::on_port("play-port")] {
            let server = Server::start("cpp", &["--protocol", "11"]).expect("a foreign server");
            let relay = discovering(&redis);
            let mut announcing = announce(&redis, "arena-1", server.address, "30s");
            eventually("the server is listed", || names(&relay) == ["arena-1", "fixed"]);
            our_client(11, page(&relay, "arena-1").await).await;
            announcing.kill().expect("a running program");
            announcing.wait().expect("the program exits");
        }
    }
}
