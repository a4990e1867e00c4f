//! Outputs that cannot be written: a full disk, and a pipe that is closed at its other end.

use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{self, Folder, Server};

/// Opens an output that cannot be written, by its name.
fn unwritable(kind: &str) -> Stdio {
    if kind == "full disk" {
        return std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device").into();
    }
    let (output, reader) = UnixStream::pair().expect("two sockets");
    drop(reader);
    OwnedFd::from(output).into()
}

const KINDS: [&str; 2] = ["full disk", "closed pipe"];

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_rakwire"))
}

/// Returns the exit status of a command with outputs that cannot be written.
fn status(arguments: &[&str], kind: &str) -> Option<i32> {
    let mut command = Command::new(program());
    command.args(arguments).stdin(Stdio::null()).stdout(unwritable(kind)).stderr(unwritable(kind));
    command.status().expect("a program").code()
}

/// A panic exits with status 101, and a program that is ended by a signal has no exit status.
#[test]
fn no_command_panics_when_its_output_cannot_be_written() {
    let echo = Server::start(program(), &["echo", "--listen", "127.0.0.1:0"], "listening on ");
    let bench = Server::start(program(), &["bench", "--listen", "127.0.0.1:0"], "listening on ");
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let (to, bench) = (&*echo.announced, &*bench.announced);
    let silent = silent.local_addr().expect("a bound socket").to_string();
    let keys = Folder::new("outputs-keys");
    let [public, tokens] = ["public", "tokens"].map(|name| keys.file(name));
    let made = support::run(program(), &["keygen", &public], "");
    let public = support::text(&made.stdout).lines().next().expect("a public key").to_owned();
    support::run(program(), &["keygen", "--token", &tokens], "");
    let server = format!("{public}@{to}");
    for kind in KINDS {
        let folder = Folder::new(&format!("outputs-{}", kind.replace(' ', "-")));
        let [key, log, files] = ["key", "log", "files"].map(|name| folder.file(name));
        std::fs::create_dir(&files).expect("a directory");
        let commands: &[&[&str]] = &[
            &["--help"],
            &["--version"],
            &["no-command"],
            &["ping", to],
            &["ping", &silent, "--timeout", "0.3"],
            &["discover", "--address", "127.255.255.255", "--timeout", "0.3"],
            &["send", to, "hello"],
            &["send", to, "hello", "--log", "--sqlite", &log],
            &["send", to, "hello", "--pcap", "/dev/full"],
            &["send", &silent, "hello", "--timeout", "0.3"],
            &["log", &log],
            &["bench", bench, "--seconds", "0.1"],
            &["decode", "84 040000 00 0020 86000203"],
            &["decode", "nonsense"],
            &["overhead", "100"],
            &["keygen", &key],
            &["token", "--token-key", &tokens, "--user", "1", "--client-key", &public, "--server", &server],
            &["meet", &silent, "--timeout", "0.3"],
            &["push", &files, &silent, "--timeout", "0.3"],
            &["pull", &files, &silent, "--timeout", "0.3"],
            &["echo", "--listen", to],
            &["facilitator", "--listen", to],
        ];
        for arguments in commands {
            let status = status(arguments, kind);
            assert!(matches!(status, Some(0..=2)), "{arguments:?} with a {kind}: {status:?}");
        }
    }
}

/// Starts a server with a log that cannot be written, and returns the address that it announced.
fn start(arguments: &[&str], kind: &str) -> (Child, String) {
    let mut command = Command::new(program());
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(unwritable(kind));
    let mut child = command.spawn().expect("a program");
    let mut lines = BufReader::new(child.stdout.take().expect("a piped output")).lines();
    let line = lines.find_map(|line| Some(line.ok()?.strip_prefix("listening on ")?.to_owned()));
    (child, line.expect("an address"))
}

#[test]
fn a_server_keeps_running_when_its_log_cannot_be_written() {
    for kind in KINDS {
        for more in [&["--log"][..], &["--tcp"]] {
            let arguments = [&["echo", "--listen", "127.0.0.1:0"], more].concat();
            let (mut child, at) = start(&arguments, kind);
            for _ in 0..2 {
                let tcp: &[&str] = if more == ["--tcp"] { &["--tcp"] } else { &[] };
                let sent = support::run(program(), &[&["send", &at, "hello"], tcp].concat(), "");
                let error = support::text(&sent.stderr);
                assert_eq!(sent.status.code(), Some(0), "{arguments:?} with a {kind}: {error}");
            }
            let is_running = child.try_wait().expect("a child").is_none();
            assert!(is_running, "{arguments:?} with a {kind}");
            child.kill().expect("a child");
            child.wait().expect("a child");
        }
    }
}
