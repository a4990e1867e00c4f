//! The relay behind nginx, HAProxy and Caddy, with the example files of its package.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures_util::SinkExt;
use rakwire_relay::{Config, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::Message;

use crate::support::{
    Running, Server, config, connect_from, directory, eventually, game, reserve_port, within,
};
use crate::tls::{Authority, TlsClient, connect, connect_over};

/// The name of the page in the examples.
pub(crate) const NAME: &str = "play.example.org";

const NGINX: &str = include_str!("../../packaging/proxies/nginx.conf");
const HAPROXY: &str = include_str!("../../packaging/proxies/haproxy.cfg");
const HAPROXY_RELAYS: &str = include_str!("../../packaging/proxies/haproxy-relays.cfg");
const CADDY: &str = include_str!("../../packaging/proxies/Caddyfile");

/// A reverse proxy in its own process.
pub(crate) struct Proxy {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) authority: Authority,
    /// Keeps the port reserved.
    _port: TcpSocket,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The parameters for starting a proxy.
pub(crate) struct Setup {
    directory: PathBuf,
    /// The certificate of the proxy and its key, as separate files and as a combined file.
    chain: PathBuf,
    key: PathBuf,
    pub(crate) combined: PathBuf,
    authority: Authority,
    relay: SocketAddr,
}

impl Setup {
    pub(crate) fn new(name: &str, relay: SocketAddr) -> Self {
        let directory = directory(name);
        let [chain, key, combined] =
            ["chain.pem", "key.pem", "combined.pem"].map(|name| directory.join(name));
        let authority = Authority::new();
        authority.issue(NAME, &chain, &key);
        let both = fs::read_to_string(&chain).unwrap() + &fs::read_to_string(&key).unwrap();
        fs::write(&combined, both).unwrap();
        Self { directory, chain, key, combined, authority, relay }
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Starts a proxy on a free port, with the command that `command` creates for that port.
    pub(crate) async fn start(self, command: impl Fn(&Self, SocketAddr) -> Command) -> Proxy {
        let (port, address) = reserve_port();
        let log = fs::File::create(self.directory.join("log")).unwrap();
        let mut command = command(&self, address);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}; `cargo xtask setup` installs the proxies"));
        let mut proxy = Proxy { child, address, authority: self.authority, _port: port };
        let listens = proxy.listens().await;
        assert!(
            listens,
            "the proxy does not start: {}",
            fs::read_to_string(self.directory.join("log")).unwrap()
        );
        proxy
    }
}

impl Proxy {
    /// Returns true once the proxy accepts connections, and false if it exits before.
    async fn listens(&mut self) -> bool {
        within(async {
            loop {
                if TcpStream::connect(self.address).await.is_ok() {
                    return true;
                }
                if self.child.try_wait().unwrap().is_some() {
                    return false;
                }
                sleep(Duration::from_millis(20)).await;
            }
        })
        .await
    }
}

/// Returns the path of a daemon's program, which may not be in the user's `PATH`.
pub(crate) fn daemon(name: &str) -> Command {
    let in_sbin = Path::new("/usr/sbin").join(name);
    if in_sbin.is_file() { Command::new(in_sbin) } else { Command::new(name) }
}

/// Returns an example configuration with these texts replaced. Each must occur in it.
pub(crate) fn replaced(example: &str, replacements: &[(&str, &str)]) -> String {
    replacements.iter().fold(example.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "the example has no {from:?}");
        text.replace(from, to)
    })
}

pub(crate) fn display(path: &Path) -> String {
    path.display().to_string()
}

fn nginx(setup: &Setup, address: SocketAddr) -> Command {
    let site = replaced(
        NGINX,
        &[
            ("    listen [::]:443 ssl;\n", ""),
            ("listen 443 ssl;", &format!("listen {address} ssl;")),
            ("127.0.0.1:8080", &setup.relay.to_string()),
            ("/etc/ssl/play.example.org/fullchain.pem", &display(&setup.chain)),
            ("/etc/ssl/play.example.org/privkey.pem", &display(&setup.key)),
            ("/var/log/nginx/rakwire-relay.log", &display(&setup.directory.join("access.log"))),
        ],
    );
    let site = setup.write("site.conf", &site);
    let here = display(&setup.directory);
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String =
        temporary.iter().map(|name| format!("{name}_temp_path {here}/{name};\n")).collect();
    let all = format!(
        "daemon off;\nmaster_process off;\npid {here}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\n{temporary}\
         include {};\n}}\n",
        site.display()
    );
    let all = setup.write("nginx.conf", &all);
    let mut command = daemon("nginx");
    command.args(["-e", "stderr", "-p", &here, "-c"]).arg(all);
    command
}

fn haproxy(setup: &Setup, address: SocketAddr) -> Command {
    let text = replaced(
        HAPROXY,
        &[
            ("bind :443 ssl", &format!("bind {address} ssl")),
            ("127.0.0.1:8080", &setup.relay.to_string()),
            ("/etc/ssl/play.example.org/combined.pem", &display(&setup.combined)),
        ],
    );
    let mut command = daemon("haproxy");
    command.args(["-db", "-f"]).arg(setup.write("haproxy.cfg", &text));
    command
}

fn caddy(setup: &Setup, address: SocketAddr) -> Command {
    let site = format!(
        "{{\n\tadmin off\n\tauto_https disable_redirects\n\tservers {{\n\t\tprotocols h1 h2\n\t}}\n}}\n\
         https://{NAME}:{} {{\n\tbind {}\n\ttls {} {}\n",
        address.port(),
        address.ip(),
        setup.chain.display(),
        setup.key.display()
    );
    let text =
        replaced(CADDY, &[("play.example.org {\n", &site), ("127.0.0.1:8080", &setup.relay.to_string())]);
    let mut command = daemon("caddy");
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(setup.write("Caddyfile", &text));
    // Caddy stores certificates and its state in these directories.
    for variable in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
        command.env(variable, &setup.directory);
    }
    command
}

/// Returns the configuration of a relay for a proxy on this machine. The ping interval is so short that a session has
/// several pings.
async fn relay_behind_proxy() -> Config {
    let mut config = config(Server::echo().await);
    config.limits.ping_interval = Duration::from_secs(2);
    config.admission.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    config.admission.allow_any_origin = true;
    // With PROXY headers, the echo of the game server contains the address of the client.
    game(&mut config).proxy_protocol = true;
    config
}

/// Sends requests one after the other on one connection. Then keeps a session idle for many pings, until the relay is
/// stopped.
async fn serves(proxy: &Proxy, relay: Running) {
    let connector = proxy.authority.connector();
    let mut stream = connect(&connector, proxy.address, NAME).await;
    for _ in 0..3 {
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {NAME}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        while !answer.ends_with("\r\n\r\nok") {
            let mut buffer = [0; 1024];
            let length = within(stream.read(&mut buffer)).await.unwrap();
            assert_ne!(length, 0, "{answer}");
            answer += std::str::from_utf8(&buffer[..length]).unwrap();
        }
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    let elsewhere = Ipv4Addr::new(127, 0, 0, 2);
    let stream = connect_from(elsewhere.into(), proxy.address).await;
    let mut client = TlsClient::over(connect_over(&connector, stream, NAME).await, NAME).await;
    within(client.0.send(Message::binary(&b"hello"[..]))).await.unwrap();
    let first = client.receive().await.into_data();
    assert!(first.ends_with(b"hello"), "{first:?}");
    assert_eq!(first[16..20], elsewhere.octets(), "the game server receives the address of the client");
    client.echoes(b"again").await;
    // Without answers, the relay would close the session after three pings.
    for _ in 0..4 {
        client.answer_ping().await;
    }
    client.echoes(&[7; 1200]).await;
    let ended = tokio::spawn(relay.stop());
    let last = client.receive().await;
    let Message::Close(Some(frame)) = last else { panic!("no close frame: {last:?}") };
    assert_eq!(u16::from(frame.code), 1001, "{frame:?}");
    drop(client);
    within(ended).await.unwrap();
}

#[tokio::test]
async fn sessions_pass_through_nginx() {
    let relay = Running::start(relay_behind_proxy().await).await;
    let proxy = Setup::new("proxy-nginx", relay.address).start(nginx).await;
    serves(&proxy, relay).await;
    let log = directory("proxy-nginx").join("access.log");
    let log = || fs::read_to_string(&log).unwrap();
    eventually("the session is logged", || log().contains("/ws")).await;
    assert!(!log().contains("target="), "the query, which may contain a token, is not logged: {}", log());
}

#[tokio::test]
async fn sessions_pass_through_haproxy() {
    let mut config = relay_behind_proxy().await;
    config.admission.proxy_protocol = true;
    let relay = Running::start(config).await;
    let proxy = Setup::new("proxy-haproxy", relay.address).start(haproxy).await;
    serves(&proxy, relay).await;
}

#[tokio::test]
async fn sessions_pass_through_caddy() {
    let relay = Running::start(relay_behind_proxy().await).await;
    let proxy = Setup::new("proxy-caddy", relay.address).start(caddy).await;
    serves(&proxy, relay).await;
}

/// Returns the duration in seconds after a word of a file.
fn seconds(text: &str, word: &str) -> Duration {
    let mut values =
        text.lines().filter_map(|line| line.trim().strip_prefix(word)?.trim().strip_suffix(['s', ';']));
    let value = values.next().unwrap_or_else(|| panic!("the example has no {word}")).trim_end_matches('s');
    Duration::from_secs(value.parse().unwrap())
}

/// A proxy must neither send a request on a connection that the relay is about to close, nor close a connection for
/// which the relay still waits.
#[test]
fn example_timeouts_fit_the_limits_of_the_relay() {
    let limits = Limits::default();
    for (text, word) in [
        (NGINX, "keepalive_timeout"),
        (HAPROXY, "timeout http-keep-alive"),
        (HAPROXY_RELAYS, "timeout http-keep-alive"),
        (CADDY, "keepalive"),
    ] {
        assert!(seconds(text, word) < limits.header_timeout, "{word}");
    }
    for (text, word) in [
        (NGINX, "proxy_read_timeout"),
        (NGINX, "proxy_send_timeout"),
        (HAPROXY, "timeout tunnel"),
        (HAPROXY_RELAYS, "timeout tunnel"),
    ] {
        assert!(seconds(text, word) > 3 * limits.ping_interval, "{word}");
    }
}
