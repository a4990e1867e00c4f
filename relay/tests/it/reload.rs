//! Reloads of a running relay's configuration.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rakwire_native::endpoint::{Endpoint, Options};
use rakwire_native::raknet::RakNet;
use rakwire_relay::config::{LoadError, Loaded};
use rakwire_relay::{Counters, Relay, Reloader};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::program::{self, relay};
use crate::support::{Client, Server, config, directory, eventually, get, open_with_origin, within};
use crate::tls::Authority;

fn file(name: &str, text: &str) -> PathBuf {
    let path = directory("reload").join(name);
    fs::write(&path, text).unwrap();
    path
}

fn targets(targets: &[(&str, SocketAddr)]) -> String {
    let table = |(name, address): &(&str, SocketAddr)| format!("[targets.{name}]\naddress = \"{address}\"\n");
    targets.iter().map(table).collect()
}

/// A relay in this process with a configuration file.
pub(crate) struct FromFile {
    address: SocketAddr,
    admin: Option<SocketAddr>,
    front: Option<SocketAddr>,
    counters: Arc<Counters>,
    pub(crate) reloader: Reloader,
    _stop: oneshot::Sender<()>,
}

impl FromFile {
    pub(crate) async fn start(path: &Path) -> Self {
        let file = path.to_owned();
        let load = move || -> Result<Loaded, LoadError> { Loaded::load(Some(&file), &[]) };
        let relay = Relay::bind(load().unwrap().config).await.unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let (address, admin, reloader) = (relay.local_addr(), relay.admin_addr(), relay.reloader(load));
        let (front, counters) = (relay.udp_addr(), relay.counters());
        tokio::spawn(relay.run(async { drop(stopped.await) }));
        Self { address, admin, front, counters, reloader, _stop: stop }
    }

    async fn code(&self, path: &str) -> u16 {
        Client::connect(self.address, path).await.closed().await.0
    }

    pub(crate) async fn client(&self, target: &str) -> Client {
        Client::connect(self.address, &format!("/ws?target={target}")).await
    }
}

pub(crate) async fn echoes(client: &mut Client) {
    client.send(b"hello").await;
    assert_eq!(client.receive().await, b"hello");
}

const LISTEN: &str = "listen = \"127.0.0.1:0\"\n";

#[tokio::test]
async fn flows_survive_changes_of_targets() {
    let (one, two) = (Server::echo().await, Server::bind().await);
    let path = file("targets", &format!("{LISTEN}{}", targets(&[("a", one)])));
    let relay = FromFile::start(&path).await;
    let mut early = relay.client("a").await;
    echoes(&mut early).await;
    assert_eq!(relay.code("/ws?target=b").await, 4404);

    fs::write(&path, format!("{LISTEN}{}", targets(&[("b", two.address())]))).unwrap();
    let changes = relay.reloader.reload().await.unwrap().to_string();
    assert_eq!(changes.matches("targets.a.address").count(), 1, "{changes}");
    let mut late = relay.client("b").await;
    late.send(b"late").await;
    assert_eq!(two.receive().await.0, b"late");
    assert_eq!(relay.code("/ws?target=a").await, 4404);
    echoes(&mut early).await;

    // The address of the target changes. A flow keeps the address to which it was opened.
    fs::write(&path, format!("{LISTEN}{}", targets(&[("b", one)]))).unwrap();
    relay.reloader.reload().await.unwrap();
    late.send(b"still here").await;
    assert_eq!(two.receive().await.0, b"still here");
    echoes(&mut relay.client("b").await).await;
}

#[tokio::test]
async fn a_reload_does_not_resolve_the_current_listen_name() {
    // A label of 64 bytes is too long for a query. The socket already exists, like one of a service manager.
    let listen = format!("listen = \"{}.invalid:1\"\n", "a".repeat(64));
    let (one, two) = (Server::echo().await, Server::echo().await);
    let path = file("listen-name", &format!("{listen}{}", targets(&[("a", one)])));
    let file = path.clone();
    let load = move || -> Result<Loaded, LoadError> { Loaded::load(Some(&file), &[]) };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let relay = Relay::bind_on(load().unwrap().config, Some(listener)).await.unwrap();
    let reloader = relay.reloader(load);
    fs::write(&path, format!("{listen}{}", targets(&[("b", two)]))).unwrap();
    let changes = reloader.reload().await.unwrap().to_string();
    assert_eq!(changes.matches("targets.a.address").count(), 1, "{changes}");
    // A start would have to resolve another name.
    let other = listen.replace(".invalid", ".test");
    fs::write(&path, format!("{other}{}", targets(&[("b", two)]))).unwrap();
    assert!(reloader.reload().await.unwrap_err().to_string().contains("cannot resolve"));
}

#[tokio::test]
async fn a_client_resumes_a_flow_to_a_removed_target() {
    let (one, two) = (Server::echo().await, Server::echo().await);
    let path = file("gone", &format!("{LISTEN}{}", targets(&[("a", one)])));
    let relay = FromFile::start(&path).await;
    let (client, flow) = Client::with_control(relay.address, "/ws?target=a").await;
    fs::write(&path, format!("{LISTEN}{}", targets(&[("b", two)]))).unwrap();
    relay.reloader.reload().await.unwrap();
    drop(client);
    let back = |target: &str| format!("/ws?target={target}&resume={}", flow.resume);
    let (mut client, resumed) = Client::with_control(relay.address, &back("a")).await;
    assert!(resumed.resumed);
    client.send(b"hello").await;
    assert_eq!(client.datagram().await, b"hello");
    assert!(!Client::with_control(relay.address, &back("b")).await.1.resumed);
    assert_eq!(relay.code("/ws?target=a").await, 4404);
}

#[tokio::test]
async fn an_invalid_file_is_refused_and_the_old_configuration_stays() {
    let server = Server::echo().await;
    let good = format!("{LISTEN}{}", targets(&[("game", server)]));
    let path = file("bad", &good);
    let relay = FromFile::start(&path).await;
    let mut early = relay.client("game").await;
    let cases = [
        (format!("{good}kid = \"raw\"\n"), ":4: targets.game.kid: there is no such key: did you mean kind?"),
        (format!("{good}[limits]\nqueue = 0\n"), ":5: limits.queue: 0 is out of range"),
        (LISTEN.to_owned(), "no target given"),
        (
            format!("{LISTEN}[targets.game]\naddress = \"169.254.169.254:80\"\n"),
            ":3: targets.game.address: '169.254.169.254:80' of target 'game'",
        ),
        (format!("{good}[admission]\nbans = \"no/such\"\n"), ":5: admission.bans: no/such: cannot be read"),
        (
            "listen = \"0.0.0.0:1\"\n[targets.game]\naddress = \"127.0.0.1:1\"\n".to_owned(),
            ":1: listen: 0.0.0.0:1 can be reached",
        ),
    ];
    for (text, expected) in cases {
        fs::write(&path, text).unwrap();
        let error = relay.reloader.reload().await.unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
        assert_eq!(error.lines().count(), 1);
        echoes(&mut early).await;
        echoes(&mut relay.client("game").await).await;
    }
    fs::write(&path, good).unwrap();
    assert_eq!(relay.reloader.reload().await.unwrap().to_string(), "nothing changed");
}

/// The public socket and its rules stay in force when the configuration contains another address.
#[tokio::test]
async fn a_configuration_for_loopback_does_not_open_a_public_socket() {
    let target = targets(&[("game", Server::echo().await)]);
    let with = |listen: &str, origins: &str| {
        format!("listen = \"{listen}:0\"\n{target}[admission]\nallow_origins = [{origins}]\n")
    };
    let path = file("public", &with("0.0.0.0", "\"https://play.example.org\""));
    let relay = FromFile::start(&path).await;
    let address = SocketAddr::new([127, 0, 0, 1].into(), relay.address.port());
    assert_eq!(open_with_origin(address, None).await, Err(4403));
    fs::write(&path, with("127.0.0.1", "")).unwrap();
    let error = relay.reloader.reload().await.unwrap_err().to_string();
    assert!(error.contains("0.0.0.0") && error.contains("can be reached"), "{error}");
    assert_eq!(open_with_origin(address, None).await, Err(4403));
    assert_eq!(open_with_origin(address, Some("http://localhost")).await, Err(4403));
}

/// A reload may take long to read its files and resolve its names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_does_not_wait_for_a_reload() {
    let relay = Relay::bind(config(Server::echo().await)).await.unwrap();
    let address = relay.local_addr();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (begun, begins) = oneshot::channel::<()>();
    let (begun, released) = (std::sync::Mutex::new(Some(begun)), std::sync::Mutex::new(released));
    let reloader = relay.reloader(move || {
        drop(begun.lock().unwrap().take());
        let _ = released.lock().unwrap().recv();
        Loaded::load(None, &[])
    });
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(relay.run(async { drop(stopped.await) }));
    echoes(&mut Client::connect(address, "/ws?target=game").await).await;
    let reload = tokio::spawn(async move { reloader.reload().await.is_err() });
    assert!(within(begins).await.is_err());
    drop(stop);
    within(running).await.unwrap().unwrap();
    drop(release);
    assert!(within(reload).await.unwrap());
}

#[tokio::test]
async fn a_reload_lists_the_changes_that_need_a_restart() {
    let target = targets(&[("game", Server::echo().await)]);
    let path = file("restart", &format!("{LISTEN}{target}"));
    let relay = FromFile::start(&path).await;
    fs::write(&path, format!("listen = \"127.0.0.1:1\"\n{target}[limits]\nmax_clients = 5\n")).unwrap();
    let changes = relay.reloader.reload().await.unwrap();
    assert_eq!(changes.to_string(), "changed: limits.max_clients; after a restart: listen");
    echoes(&mut relay.client("game").await).await;
}

#[tokio::test]
async fn unsupported_changes_wait_for_a_restart() {
    let target = targets(&[("game", Server::echo().await)]);
    let with = |kind: &str| {
        format!(
            "{LISTEN}{target}kind = \"{kind}\"\n[udp]\nlisten = \"127.0.0.1:0\"\n[webtransport]\nmode = \"off\"\n"
        )
    };
    let path = file("cannot", &with("raknet"));
    let relay = FromFile::start(&path).await;
    let (certificate, key) =
        (directory("reload").join("certificate.pem"), directory("reload").join("certificate.key"));
    Authority::new().issue("localhost", &certificate, &key);
    let tls = format!("[tls]\ncertificate = {certificate:?}\nkey = {key:?}\n");
    fs::write(&path, format!("{}{tls}", with("raknet"))).unwrap();
    let changes = relay.reloader.reload().await.unwrap().to_string();
    assert_eq!(changes, "nothing changed; after a restart: tls.certificate, tls.key");
    fs::write(&path, format!("{}{tls}", with("game-protocol"))).unwrap();
    let changes = relay.reloader.reload().await.unwrap().to_string();
    assert_eq!(changes, "changed: targets.game.kind; after a restart: targets.game.kind for the front");
    fs::write(&path, format!("{}{tls}", with("raknet"))).unwrap();
    let changes = relay.reloader.reload().await.unwrap().to_string();
    assert_eq!(changes, "changed: targets.game.kind", "the front kept this protocol");
}

#[tokio::test]
async fn a_front_answers_pings_after_its_target_changes_protocol() {
    let server = Endpoint::bind("127.0.0.1:0", Options::<RakNet>::server(8).unwrap()).await.unwrap();
    let other = Server::bind().await;
    let game = targets(&[("game", server.local_addr())]);
    let rest = "[udp]\nlisten = \"127.0.0.1:0\"\ntarget = \"game\"\n";
    let path = file("pongs", &format!("{LISTEN}{game}kind = \"raknet\"\n{rest}"));
    let relay = FromFile::start(&path).await;
    let client = Endpoint::bind("127.0.0.1:0", Options::<RakNet>::client().unwrap()).await.unwrap();
    let ping = async || client.ping(relay.front.unwrap(), Duration::from_millis(100)).await;
    within(async { while ping().await.is_err() {} }).await;
    let more = format!("{}kind = \"raknet\"\n", targets(&[("other", other.address())]));
    fs::write(&path, format!("{LISTEN}{game}kind = \"game-protocol\"\n{more}{rest}")).unwrap();
    relay.reloader.reload().await.unwrap();
    // A ping to this server implies that all targets have been examined.
    other.receive().await;
    within(async { while ping().await.is_err() {} }).await;
}

#[tokio::test]
async fn reloaded_connection_limits_apply_to_new_connections() {
    let pages = directory("reload-large");
    fs::write(pages.join("index.html"), "page").unwrap();
    fs::write(pages.join("large.bin"), vec![7; 32 * 1024 * 1024]).unwrap();
    let target = targets(&[("game", Server::echo().await)]);
    let with = |stall: &str, clients: usize| {
        format!(
            "{LISTEN}serve = {pages:?}\n{target}[admin]\nlisten = \"127.0.0.1:0\"\n\
             [limits]\nwrite_stall_timeout = \"{stall}\"\nmax_clients = {clients}\n"
        )
    };
    let path = file("stall", &with("1day", 7));
    let relay = FromFile::start(&path).await;
    fs::write(&path, with("100ms", 5)).unwrap();
    relay.reloader.reload().await.unwrap();
    let mut stopped = TcpStream::connect(relay.address).await.unwrap();
    stopped.write_all(b"GET /large.bin HTTP/1.1\r\nHost: relay\r\n\r\n").await.unwrap();
    eventually("the download is ended", || relay.counters.snapshot().stalled == 1).await;
    let (_, metrics) = get(relay.admin.unwrap(), "/metrics").await;
    assert!(metrics.lines().any(|line| line == "rakwire_relay_clients_max 5"), "{metrics}");
}

#[tokio::test]
async fn a_reload_through_the_admin_address_reports_changes_or_errors() {
    let server = Server::echo().await;
    let with =
        |target: &str| format!("{LISTEN}{}[admin]\nlisten = \"127.0.0.1:0\"\n", targets(&[(target, server)]));
    let path = file("admin", &with("a"));
    let relay = FromFile::start(&path).await;
    let admin = relay.admin.unwrap().to_string();
    let tell = async || {
        let admin = admin.clone();
        let told = move || program::relay().args(["reload", "--admin-listen", &admin]).output().unwrap();
        let output = within(tokio::task::spawn_blocking(told)).await.unwrap();
        let text = if output.status.success() { output.stdout } else { output.stderr };
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    assert_eq!(tell().await, (Some(0), "nothing changed\n".to_owned()));
    fs::write(&path, with("b")).unwrap();
    let (code, text) = tell().await;
    assert!(code == Some(0) && text.starts_with("changed: targets.a.address"), "{text}");
    echoes(&mut relay.client("b").await).await;
    fs::write(&path, "liste = 1\n").unwrap();
    let (code, text) = tell().await;
    assert_eq!(code, Some(2));
    assert!(
        text.starts_with(&format!(
            "error: {}:1: liste: there is no such key: did you mean listen?",
            path.display()
        )),
        "{text}"
    );
    echoes(&mut relay.client("b").await).await;

    // Neither a request of a page nor a GET request triggers a reload.
    fs::write(&path, with("c")).unwrap();
    let (head, _) = get(relay.admin.unwrap(), "/reload").await;
    assert!(head.starts_with("http/1.1 405"), "{head}");
    let head = post_as_page(relay.admin.unwrap()).await;
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    assert_eq!(relay.code("/ws?target=c").await, 4404);
}

async fn post_as_page(admin: SocketAddr) -> String {
    use tokio::io::AsyncReadExt;

    let mut stream = TcpStream::connect(admin).await.unwrap();
    let request = format!(
        "POST /reload HTTP/1.1\r\nHost: {admin}\r\nOrigin: https://example.org\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.unwrap();
    answer
}

/// Reloads by signals, which exist only on Unix.
#[cfg(unix)]
mod signals {
    use std::io::{BufRead, BufReader, Lines};
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::process::{ChildStderr, Stdio};

    use super::*;
    use crate::program::Program;

    struct Log(Lines<BufReader<ChildStderr>>);

    impl Log {
        fn find(&mut self, text: &str) -> String {
            let lines = self.0.by_ref().map(Result::unwrap);
            { lines }.find(|line| line.contains(text)).unwrap_or_else(|| panic!("not logged: {text}"))
        }
    }

    #[tokio::test]
    async fn the_program_reloads_by_signal_and_command() {
        let server = Server::echo().await;
        let pid_file = directory("reload").join("pid");
        let with = |target: &str| {
            let pid_file = pid_file.display();
            format!("{LISTEN}pid_file = \"{pid_file}\"\n{}", targets(&[(target, server)]))
        };
        let path = file("program", &with("a"));
        // An existing file is replaced, and the target of a link is not changed.
        let other = directory("reload").join("other");
        fs::write(&other, "other").unwrap();
        let _ = fs::remove_file(&pid_file);
        symlink(&other, &pid_file).unwrap();
        let mut program = Program::run(relay().arg("--config").arg(&path).stderr(Stdio::piped()));
        let mut log = Log(BufReader::new(program.child.stderr.take().unwrap()).lines());
        let pid = program.child.id().to_string();
        assert_eq!(fs::read_to_string(&pid_file).unwrap().trim(), pid);
        assert_eq!(fs::symlink_metadata(&pid_file).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&other).unwrap(), "other");
        let mut early = Client::connect(program.address, "/ws?target=a").await;
        echoes(&mut early).await;

        fs::write(&path, with("b")).unwrap();
        program.signal("-HUP");
        log.find("configuration reloaded; changed: targets.a.address");
        echoes(&mut Client::connect(program.address, "/ws?target=b").await).await;

        fs::write(&path, "liste = 1\n").unwrap();
        assert!(relay().arg("reload").arg("--pid-file").arg(&pid_file).status().unwrap().success());
        let line = log.find("configuration rejected, the old one stays in use");
        assert!(
            line.contains(&format!(
                "{}:1: liste: there is no such key: did you mean listen?",
                path.display()
            )),
            "{line}"
        );
        echoes(&mut Client::connect(program.address, "/ws?target=b").await).await;
        echoes(&mut early).await;

        fs::write(&path, with("c")).unwrap();
        assert!(relay().arg("reload").arg("--config").arg(&path).status().unwrap().success());
        log.find("configuration reloaded; changed: targets.b.address");
        echoes(&mut Client::connect(program.address, "/ws?target=c").await).await;
        echoes(&mut early).await;

        program.signal("-TERM");
        let ended = tokio::task::spawn_blocking(move || program.child.wait().unwrap());
        assert!(within(ended).await.unwrap().success());
        assert!(!pid_file.exists());
    }
}
