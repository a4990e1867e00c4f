//! The program: its first line, exit codes, signals and memory.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::support::{Client, Server, get};

pub(crate) fn relay() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rakwire-relay"));
    command.env_remove("RUST_LOG");
    command
}

/// A relay in its own process.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
}

impl Program {
    pub(crate) fn start(server: SocketAddr) -> Self {
        Self::start_with(server, &[], Stdio::null())
    }

    pub(crate) fn start_with(server: SocketAddr, more: &[&str], log: Stdio) -> Self {
        let target = format!("game={server}");
        let arguments = ["--listen", "127.0.0.1:0", "--target", &target];
        Self::run(relay().args(arguments).args(more).stderr(log))
    }

    /// Starts a program that first prints its address.
    pub(crate) fn run(command: &mut Command) -> Self {
        command.stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on ").and_then(|url| url.trim_end().split("://").nth(1));
        let address = address.and_then(|address| address.parse().ok());
        let address = address.unwrap_or_else(|| panic!("first line: {line:?}"));
        Self { child, address }
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Sends a shutdown signal, and waits for the process to exit.
    #[cfg(unix)]
    pub(crate) fn shut_down(mut self) {
        self.signal("-TERM");
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn refused(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = relay().args(arguments).output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(stdout.is_empty(), "{arguments:?}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    stderr
}

#[test]
fn invalid_options_are_reported_in_one_line() {
    let local = ["--listen", "127.0.0.1:0"];
    let game = ["--target", "game=127.0.0.1:19132"];
    // A label of 64 bytes is too long for a query.
    let unresolvable = format!("game={}.invalid:19132", "a".repeat(64));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let cases: [(&[&[&str]], &str); 15] = [
        (&[&["--listen", "localhost"], &game], "as in 127.0.0.1:8080"),
        (&[&local], "add --target NAME=HOST:PORT"),
        (&[&local, &["--target", "127.0.0.1:19132"]], "as in game=127.0.0.1:19132"),
        (&[&local, &["--target", "game=127.0.0.1"]], "HOST:PORT"),
        (&[&local, &["--target", "game=127.0.0.1:0"]], "from 1 to 65535"),
        (&[&local, &game, &game], "target 'game' is given twice: give each --target a different name"),
        (&[&local, &["--target", &unresolvable]], ": check the host"),
        (&[&local, &["--target", "game=0.0.0.0:19132"]], "is not a unicast address"),
        (&[&local, &game, &["--serve", "no/such/directory"]], "use an existing one for --serve"),
        (&[&local, &game, &["--allow-origin", "example.org"]], "SCHEME://HOST"),
        (&[&local, &game, &["--max-datagram", "65508"]], "65508"),
        (&[&local, &game, &["--queue", "0"]], "from 1 to 65536"),
        (&[&["--listen", "0.0.0.0:0"], &game], "--allow-origin ('*' means any)"),
        (&[&["--listen", &taken], &game], "choose another --listen"),
        (&[&local, &game, &["--admin-listen", &taken]], "choose another --admin-listen"),
    ];
    for (arguments, expected) in cases {
        let line = refused(&arguments.concat());
        assert!(line.starts_with("error: ") && line.contains(expected), "{line}");
    }
}

/// The loopback interface has index 1 on every system.
#[cfg(target_os = "linux")]
#[test]
fn the_admin_address_may_name_its_interface() {
    let reload = |address: &str| {
        let output = relay().args(["reload", "--admin-listen", address]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    // No interface has this address, but its syntax is valid.
    let (code, line) = reload("[fe80::1%lo]:9464");
    assert!(code == Some(1) && line.contains("no answer from [fe80::1%1]:9464"), "{line}");
    let (code, line) = reload("[fe80::1%nothing0]:9464");
    assert!(code == Some(2) && line.contains("--admin-listen"), "{line}");
}

#[tokio::test]
async fn the_chosen_admin_port_is_printed() {
    let addresses = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let mut command = relay();
    command.args(addresses).args(["--target", "game=127.0.0.1:19132"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.find_map(|line| line.strip_prefix("monitoring on http://")?.parse().ok()).unwrap();
    let program = Program { child, address };
    let (head, _) = get(program.address, "/livez").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
}

#[test]
fn help_lists_the_options() {
    let output = relay().arg("--help").output().unwrap();
    assert!(output.status.success());
    let help = String::from_utf8(output.stdout).unwrap();
    for option in [
        "--listen <ADDR>",
        "--target <NAME=HOST:PORT>",
        "--serve <DIR>",
        "--allow-origin <ORIGIN>",
        "--max-clients <N>",
        "--max-datagram <BYTES>",
        "--queue <N>",
        "--idle-timeout <SECONDS>",
    ] {
        assert!(help.contains(option), "{option} is missing: {help}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn sigint_and_sigterm_close_clients_and_exit_with_success() {
    for signal in ["-INT", "-TERM"] {
        let mut program = Program::start(Server::echo().await);
        let mut client = Client::connect(program.address, "/ws?target=game").await;
        client.send(b"hello").await;
        assert_eq!(client.receive().await, b"hello");
        program.signal(signal);
        assert_eq!(client.closed().await, (1001, "relay is shutting down".to_owned()));
        let status = tokio::task::spawn_blocking(move || program.child.wait().unwrap()).await.unwrap();
        assert!(status.success(), "{signal}: {status}");
    }
}

/// A closing terminal, or a reload by an administrator, disconnects no player.
#[cfg(unix)]
#[tokio::test]
async fn sighup_reloads_the_configuration_and_keeps_clients() {
    let mut program = Program::start_with(Server::echo().await, &[], Stdio::piped());
    let mut client = Client::connect(program.address, "/ws?target=game").await;
    let mut log = BufReader::new(program.child.stderr.take().unwrap()).lines();
    for _ in 0..2 {
        program.signal("-HUP");
        let line = log.by_ref().map(Result::unwrap).find(|line| line.contains("SIGHUP")).unwrap();
        assert!(line.contains("configuration reloaded; nothing changed"), "{line}");
        client.send(b"hello").await;
        assert_eq!(client.receive().await, b"hello");
    }
}

#[tokio::test]
async fn the_served_directory_is_logged() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("logged");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("index.html"), "page").unwrap();
    let serve = ["--serve", directory.to_str().unwrap()];
    let mut program = Program::start_with(Server::echo().await, &serve, Stdio::piped());
    let log = BufReader::new(program.child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = { log }.find(|line| line.contains("serving files")).unwrap();
    assert!(line.contains(serve[1]), "{line}");
}

#[test]
fn directories_without_a_page_are_refused() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("unbuilt");
    let arguments = |directory: &str| {
        refused(&["--listen", "127.0.0.1:0", "--target", "game=127.0.0.1:1", "--serve", directory])
    };
    let name = directory.to_str().unwrap();
    fs::create_dir_all(&directory).unwrap();
    // An earlier run may have left the file behind.
    let _ = fs::remove_file(directory.join("index.html"));
    let line = arguments(name);
    assert!(line.contains(name) && line.contains("has no index.html"), "{line}");
    fs::write(directory.join("index.html"), r#"<script type="module" src="/src/main.ts"></script>"#).unwrap();
    let line = arguments(name);
    assert!(line.contains(name) && line.contains("the directory that the build writes"), "{line}");
    let line = arguments("no/such/directory");
    let absolute = std::env::current_dir().unwrap().join("no/such/directory");
    assert!(line.contains(absolute.to_str().unwrap()), "{line}");
}
