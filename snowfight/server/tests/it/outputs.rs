//! Programs with an unwritable output: on a full disk, or on a pipe without a reader.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

const SERVER: &str = env!("CARGO_BIN_EXE_snowfight-server");
const CLIENT: &str = env!("CARGO_BIN_EXE_snowfight-client");
const KINDS: [&str; 2] = ["full disk", "closed pipe"];
/// The listen arguments of a server: any free ports on loopback.
const ANY: [&str; 4] = ["--listen", "127.0.0.1:0", "--listen-raknet", "127.0.0.1:0"];

/// Returns an unwritable output of this kind.
fn unwritable(kind: &str) -> Stdio {
    if kind == "full disk" {
        return OpenOptions::new().write(true).open("/dev/full").expect("a full device").into();
    }
    let (output, reader) = UnixStream::pair().expect("a pair of sockets");
    drop(reader);
    OwnedFd::from(output).into()
}

/// A running program, and the Game Protocol address that it has printed.
struct Running(Child, String);

impl Running {
    /// Starts a server with a pipe as its standard output, which is closed after `lines` lines.
    fn server(more: &[&str], kind: &str, lines: usize) -> Self {
        let mut command = Command::new(SERVER);
        command.args(ANY).args(more).stdout(Stdio::piped()).stderr(unwritable(kind));
        let mut child = command.spawn().expect("the program was built");
        let output = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let lines: Vec<String> = output.take(lines).map(|line| line.expect("a line in UTF-8")).collect();
        let line = lines.first().expect("a line");
        let address = line.split(' ').nth(2).expect("an address").to_owned();
        Self(child, address)
    }

    /// Returns the number of write calls of the printer thread, and the number of bytes written.
    fn written(&self) -> [u64; 2] {
        let threads = fs::read_dir(format!("/proc/{}/task", self.0.id())).expect("the process is running");
        let mut threads = threads.map(|thread| thread.expect("a thread").path());
        let is_printer =
            |thread: &PathBuf| fs::read_to_string(thread.join("comm")).is_ok_and(|name| name == "printer\n");
        let counts = threads.find(is_printer).expect("a thread of the reports").join("io");
        let counts = fs::read_to_string(counts).expect("a readable status of the thread");
        ["syscw: ", "wchar: "].map(|name| {
            let count = counts.lines().find_map(|line| line.strip_prefix(name));
            count.expect("a count").parse().expect("a number")
        })
    }

    /// Waits until the printer thread has tried and failed to write a report to the closed pipe.
    fn wait_for_a_lost_report(&self) {
        let mut before = self.written();
        loop {
            let [calls, bytes] = self.written();
            if bytes > before[1] {
                before = [calls, bytes];
            } else if calls > before[0] {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The program may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The exit status would be 101 after a panic, and missing after a signal.
#[test]
fn programs_do_not_panic_when_output_fails() {
    let taken = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
    let taken = taken.local_addr().expect("the socket is bound").to_string();
    let file = env!("CARGO_MANIFEST_DIR").to_owned() + "/Cargo.toml";
    let cases: [(&str, &[&str]); 8] = [
        (SERVER, &["--help"]),
        (SERVER, &["--version"]),
        (SERVER, &["--no-such-option"]),
        (SERVER, &["--listen", &taken, "--listen-raknet", "127.0.0.1:0"]),
        (SERVER, &["--secure", &file]),
        (SERVER, &["--crash-reports", &file]),
        (CLIENT, &["--help"]),
        (CLIENT, &["nowhere"]),
    ];
    for kind in KINDS {
        for (program, arguments) in cases {
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::null()).stdout(unwritable(kind)).stderr(unwritable(kind));
            let status = command.status().expect("the program was built").code();
            assert!(matches!(status, Some(0..=2)), "{program} {arguments:?} with a {kind}: {status:?}");
        }
    }
}

/// With port 0, the printed address is the only way to reach the server.
#[test]
fn server_that_cannot_print_its_address_exits_with_an_error() {
    let full = unwritable("full disk");
    let output = Command::new(SERVER).args(ANY).stdout(full).output().expect("the program was built");
    let line = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), line.lines().count()), (Some(1), 1), "{line}");
    assert!(line.starts_with("error: cannot write to standard output: "), "{line}");
}

/// Only the reports and the log of the server are lost.
#[test]
fn server_and_player_continue_when_outputs_fail() {
    for kind in KINDS {
        // The reader reads the address and one report, then closes the pipe.
        let mut server = Running::server(&["--report", "1"], kind, 2);
        server.wait_for_a_lost_report();
        let mut player = Command::new(CLIENT);
        player.arg(&server.1).stdout(Stdio::piped()).stderr(unwritable(kind));
        let mut player = Running(player.spawn().expect("the program was built"), String::new());
        let mut line = String::new();
        BufReader::new(player.0.stdout.take().expect("a pipe"))
            .read_line(&mut line)
            .expect("a line in UTF-8");
        assert!(line.starts_with("joined as player "), "{kind}: {line}");
        for child in [&mut server.0, &mut player.0] {
            assert!(child.try_wait().expect("a child").is_none(), "with a {kind}");
        }
    }
}

/// The player exits with an error, and its server continues.
#[test]
fn player_does_not_panic_when_output_fails() {
    let mut server = Running::server(&[], "full disk", 1);
    let mut player = Command::new(CLIENT);
    player.arg(&server.1).stdout(unwritable("full disk")).stderr(unwritable("full disk"));
    assert_eq!(player.status().expect("the program was built").code(), Some(1));
    assert!(server.0.try_wait().expect("a child").is_none());
}
