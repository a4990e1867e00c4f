//! A running relay reads its configuration again.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};

use rakwire_relay::config::{LoadError, Loaded};
use rakwire_relay::{Relay, Reloader};
use tokio::sync::oneshot;

use crate::program::{Program, relay};
use crate::support::{Client, Server, directory, within};

fn file(name: &str, text: &str) -> PathBuf {
    let path = directory("reload").join(name);
    fs::write(&path, text).unwrap();
    path
}

fn targets(targets: &[(&str, SocketAddr)]) -> String {
    let table = |(name, address): &(&str, SocketAddr)| format!("[targets.{name}]\naddress = \"{address}\"\n");
    targets.iter().map(table).collect()
}

/// A relay in this process that reads its configuration from a file.
struct FromFile {
    address: SocketAddr,
    reloader: Reloader,
    _stop: oneshot::Sender<()>,
}

impl FromFile {
    async fn start(path: &Path) -> Self {
        let file = path.to_owned();
        let load = move || -> Result<Loaded, LoadError> { Loaded::load(Some(&file), &[]) };
        let relay = Relay::bind(load().unwrap().config).await.unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let (address, reloader) = (relay.local_addr(), relay.reloader(load));
        tokio::spawn(relay.run(async { drop(stopped.await) }));
        Self { address, reloader, _stop: stop }
    }

    async fn code(&self, path: &str) -> u16 {
        Client::connect(self.address, path).await.closed().await.0
    }

    async fn client(&self, target: &str) -> Client {
        Client::connect(self.address, &format!("/ws?target={target}")).await
    }
}

async fn echoes(client: &mut Client) {
    client.send(b"hello").await;
    assert_eq!(client.receive().await, b"hello");
}

const LISTEN: &str = "listen = \"127.0.0.1:0\"\n";

#[tokio::test]
async fn targets_come_and_go_and_flows_stay() {
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

    // The same name with another address: a flow keeps the one that it began with.
    fs::write(&path, format!("{LISTEN}{}", targets(&[("b", one)]))).unwrap();
    relay.reloader.reload().await.unwrap();
    late.send(b"still here").await;
    assert_eq!(two.receive().await.0, b"still here");
    echoes(&mut relay.client("b").await).await;
}

#[tokio::test]
async fn a_bad_file_is_refused_and_the_old_one_stays() {
    let server = Server::echo().await;
    let good = format!("{LISTEN}{}", targets(&[("game", server)]));
    let path = file("bad", &good);
    let relay = FromFile::start(&path).await;
    let mut early = relay.client("game").await;
    let cases = [
        (format!("{good}kid = \"raw\"\n"), ":4: unknown field `kid`"),
        (format!("{good}[limits]\nqueue = 0\n"), ":5: queue: 0 is out of range"),
        (LISTEN.to_owned(), "no target given"),
        (
            format!("{LISTEN}[targets.game]\naddress = \"169.254.169.254:80\"\n"),
            ":3: '169.254.169.254:80' of target 'game'",
        ),
        (format!("{good}[admission]\nbans = \"no/such\"\n"), ":5: no/such: cannot be read"),
        (
            "listen = \"0.0.0.0:1\"\n[targets.game]\naddress = \"127.0.0.1:1\"\n".to_owned(),
            ":1: 0.0.0.0:1 can be reached",
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

#[tokio::test]
async fn what_waits_for_a_restart_is_told() {
    let target = targets(&[("game", Server::echo().await)]);
    let path = file("restart", &format!("{LISTEN}{target}"));
    let relay = FromFile::start(&path).await;
    fs::write(&path, format!("listen = \"127.0.0.1:1\"\n{target}[limits]\nmax_clients = 5\n")).unwrap();
    let changes = relay.reloader.reload().await.unwrap();
    assert_eq!(changes.to_string(), "changed: limits.max_clients; after a restart: listen");
    echoes(&mut relay.client("game").await).await;
}

#[cfg(unix)]
struct Log(Lines<BufReader<ChildStderr>>);

#[cfg(unix)]
impl Log {
    fn find(&mut self, text: &str) -> String {
        let lines = self.0.by_ref().map(Result::unwrap);
        { lines }.find(|line| line.contains(text)).unwrap_or_else(|| panic!("never logged: {text}"))
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_program_reloads_at_a_signal_and_by_its_command() {
    let server = Server::echo().await;
    let pid_file = directory("reload").join("pid");
    let with = |target: &str| {
        let pid_file = pid_file.display();
        format!("{LISTEN}pid_file = \"{pid_file}\"\n{}", targets(&[(target, server)]))
    };
    let path = file("program", &with("a"));
    let mut program = Program::run(relay().arg("--config").arg(&path).stderr(Stdio::piped()));
    let mut log = Log(BufReader::new(program.child.stderr.take().unwrap()).lines());
    let pid = program.child.id().to_string();
    assert_eq!(fs::read_to_string(&pid_file).unwrap().trim(), pid);
    let mut early = Client::connect(program.address, "/ws?target=a").await;
    echoes(&mut early).await;

    fs::write(&path, with("b")).unwrap();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    log.find("configuration read again; changed: targets.a.address");
    echoes(&mut Client::connect(program.address, "/ws?target=b").await).await;

    fs::write(&path, "liste = 1\n").unwrap();
    assert!(relay().arg("reload").arg("--pid-file").arg(&pid_file).status().unwrap().success());
    let line = log.find("configuration refused, the old one stays");
    assert!(line.contains(&format!("{}:1: unknown field `liste`", path.display())), "{line}");
    echoes(&mut Client::connect(program.address, "/ws?target=b").await).await;
    echoes(&mut early).await;

    fs::write(&path, with("c")).unwrap();
    assert!(relay().arg("reload").arg("--config").arg(&path).status().unwrap().success());
    log.find("configuration read again; changed: targets.b.address");
    echoes(&mut Client::connect(program.address, "/ws?target=c").await).await;
    echoes(&mut early).await;

    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let ended = tokio::task::spawn_blocking(move || program.child.wait().unwrap());
    assert!(within(ended).await.unwrap().success());
    assert!(!pid_file.exists());
}
