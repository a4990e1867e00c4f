//! `rakwire push` and `rakwire pull` with directories on the disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use crate::support::{self, Server, text};

/// Longer than any test here takes on the slowest machine.
const DEADLINE: Duration = Duration::from_secs(60);

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_rakwire"))
}

/// A directory for a test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rakwire-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    /// Creates a directory with these files in it.
    fn directory(&self, name: &str, files: &[(&str, &[u8])]) -> String {
        let root = self.0.join(name);
        fs::create_dir_all(&root).expect("a directory");
        for (path, bytes) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            fs::write(path, bytes).expect("a file");
        }
        self.path(name)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path of text").to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Leftovers are harmless.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Reads the files of a directory by their paths.
fn read(root: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut files, mut directories) = (BTreeMap::new(), vec![PathBuf::from(root)]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else {
                files.insert(
                    path.strip_prefix(root).expect("below").to_owned(),
                    fs::read(&path).expect("a file"),
                );
            }
        }
    }
    files
}

fn rakwire(arguments: &[&str]) -> Output {
    support::run(program(), arguments, "")
}

fn succeeds(arguments: &[&str]) -> String {
    let output = rakwire(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Checks that a command fails with this status and one line that contains `part`.
fn fails(arguments: &[&str], status: i32, part: &str) {
    let output = rakwire(arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
    assert!(error.starts_with("error: ") && error.contains(part) && error.lines().count() == 1, "{error}");
}

/// Starts a command that listens.
fn listen(command: &[&str]) -> Server {
    let all = [command, &["--listen", "127.0.0.1:0"]].concat();
    Server::start(program(), &all, "listening on ")
}

const WORLD: [(&str, &[u8]); 4] =
    [("empty", b""), ("maps/ice/heights", &[7; 100_000]), ("maps/ice/name", b"Frozen lake"), ("z", &[1; 3])];

#[test]
fn a_directory_is_pushed() {
    let scratch = Scratch::new("push");
    let from = scratch.directory("from", &WORLD);
    let to = scratch.path("to");
    let mut receiver = listen(&["pull", &to]);
    let out = succeeds(&["push", &from, &receiver.announced]);
    assert_eq!(out, "the remote machine has all 4 files, 100014 bytes\n");
    assert!(
        receiver.child.wait().expect("a child").success(),
        "pull exits after the first complete transfer"
    );
    assert_eq!(read(&to), read(&from));
    assert!(!Path::new(&to).join(".rakwire-part").exists());
}

#[test]
fn a_directory_is_pulled_and_pulled_again() {
    let scratch = Scratch::new("pull");
    let from = scratch.directory("from", &WORLD);
    let to = scratch.directory("to", &[("z", &[2; 3]), ("mine", b"mine")]);
    let sender = listen(&["push", &from, "--password", "ice"]);
    let pull = ["pull", &to, &sender.announced, "--password", "ice"];
    assert_eq!(succeeds(&pull), "4 files, 100014 bytes are here; 1 were unchanged, 100014 bytes received\n");
    assert_eq!(succeeds(&pull), "4 files, 100014 bytes are here; 4 were unchanged, 0 bytes received\n");
    let mut expected = read(&from);
    expected.insert("mine".into(), b"mine".to_vec());
    assert_eq!(read(&to), expected, "files that the other side does not have are kept");
    fails(&["pull", &to, &sender.announced], 1, "--password");
}

/// A changed file is sent as a patch, in either direction, to a receiver with the older version. The file is large
/// enough for several steps.
#[test]
fn a_changed_file_is_sent_as_a_patch() {
    let scratch = Scratch::new("patch");
    let old: Vec<u8> = (0..700_000_u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
    let mut new = old.clone();
    new.splice(70_000..70_100, *b"a new part");
    let same_length = [&old[..100_000], &b"changed"[..], &old[100_007..]].concat();
    let from = scratch.directory("from", &[("a", &new), ("b", &same_length)]);
    let previous = scratch.directory("previous", &[("a", &old), ("b", &old)]);
    let to = scratch.directory("to", &[("a", &old), ("b", &old)]);
    let other = scratch.directory("other", &[("a", b"another version"), ("b", &old)]);
    let sender = listen(&["push", &from, "--previous", &previous]);
    let came = |to: &str| {
        let out = succeeds(&["pull", to, &sender.announced]);
        assert_eq!(read(to), read(&from));
        assert!(!Path::new(to).join(".rakwire-part").exists());
        let bytes = out.split_whitespace().rev().nth(2).expect("a number").parse().expect("a number");
        (out.contains("2 by patches"), out.contains("1 by patches"), bytes)
    };
    let (is_patched, _, bytes): (_, _, usize) = came(&to);
    assert!(is_patched && bytes < 2_000, "{bytes}");
    let (_, is_patched, bytes) = came(&other);
    assert!(is_patched && (new.len()..new.len() + 1_000).contains(&bytes), "{bytes}");
}

#[test]
fn an_interrupted_pull_resumes() {
    let scratch = Scratch::new("resume");
    let bytes = vec![5; 400_000];
    let from = scratch.directory("from", &[("a", &bytes)]);
    let to = scratch.path("to");
    let sender = listen(&["push", &from, "--rate", "100000"]);
    let mut slow = std::process::Command::new(program())
        .args(["pull", &to, &sender.announced])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the program starts");
    let is_begun =
        |root: &str| Path::new(root).is_dir() && read(root).values().any(|bytes| !bytes.is_empty());
    let start = Instant::now();
    while !is_begun(&to) {
        assert!(start.elapsed() < DEADLINE, "no file has arrived before the deadline");
        std::thread::sleep(Duration::from_millis(5));
    }
    slow.kill().expect("a child");
    slow.wait().expect("a child");
    let out = succeeds(&["pull", &to, &sender.announced]);
    let came: u64 = out.split_whitespace().rev().nth(2).expect("a number").parse().expect("a number");
    assert!(came < 400_000, "{out}");
    assert_eq!(read(&to), read(&from));
}

#[test]
fn exceeding_a_limit_is_reported_on_both_sides() {
    let scratch = Scratch::new("limits");
    let from = scratch.directory("from", &WORLD);
    let to = scratch.path("to");
    let sender = listen(&["push", &from]);
    fails(&["pull", &to, &sender.announced, "--max-files", "3"], 1, "--max-files");
    fails(&["pull", &to, &sender.announced, "--max-bytes", "100013"], 1, "--max-bytes");
    fails(&["pull", &to, &sender.announced, "--max-file-bytes", "99999"], 1, "--max-file-bytes");
    let receiver = listen(&["pull", &to, "--max-files", "3"]);
    fails(
        &["push", &from, &receiver.announced],
        1,
        "the remote peer ended the transfer: there are more files",
    );
}

/// Existing files count toward the limits, regardless of their origin.
#[test]
fn limits_count_the_existing_files_of_a_directory() {
    let scratch = Scratch::new("totals");
    let (one, other) = ([1_u8; 60_000], [2_u8; 60_000]);
    let first = listen(&["push", &scratch.directory("first", &[("one", &one)])]);
    let second = listen(&["push", &scratch.directory("second", &[("other", &other)])]);
    let to = scratch.path("to");
    succeeds(&["pull", &to, &first.announced, "--max-bytes", "100000"]);
    fails(&["pull", &to, &second.announced, "--max-bytes", "100000"], 1, "--max-bytes");
    fails(&["pull", &to, &second.announced, "--max-files", "1"], 1, "--max-files");
    fails(&["pull", &to, &second.announced, "--max-bytes", "50000"], 2, "--max-bytes");
    assert_eq!(read(&to).keys().filter(|path| path.starts_with("other")).count(), 0);
    succeeds(&["pull", &to, &second.announced, "--max-bytes", "120000", "--max-files", "2"]);
    succeeds(&["pull", &to, &first.announced, "--max-bytes", "120000", "--max-files", "2"]);
}

#[test]
fn a_secure_transfer_requires_the_server_key() {
    let scratch = Scratch::new("transfer-keys");
    let from = scratch.directory("from", &WORLD);
    let (to, key_file) = (scratch.path("to"), scratch.path("server.key"));
    let made = succeeds(&["keygen", &key_file]);
    let key = made.lines().next().expect("a public key");
    let sender = listen(&["push", &from, "--secure", &key_file]);
    fails(&["pull", &to, &sender.announced], 1, "--server-key");
    succeeds(&["pull", &to, &sender.announced, "--server-key", key]);
    assert_eq!(read(&to), read(&from));
}

/// Symbolic links point elsewhere: none is sent, and nothing is written through one.
#[cfg(unix)]
#[test]
fn symbolic_links_are_refused() {
    let scratch = Scratch::new("links");
    let elsewhere = scratch.directory("elsewhere", &[("z", b"zzz")]);
    let from = scratch.directory("from", &WORLD);
    let sender = listen(&["push", &from]);
    for (name, link) in
        [("maps", &elsewhere), ("z", &format!("{elsewhere}/z")), (".rakwire-part", &elsewhere)]
    {
        let to = scratch.directory(&format!("to-{name}"), &[]);
        std::os::unix::fs::symlink(link, Path::new(&to).join(name)).expect("a link");
        fails(&["pull", &to, &sender.announced], 1, "is a symbolic link");
    }
    assert_eq!(read(&elsewhere), [(PathBuf::from("z"), b"zzz".to_vec())].into());
    std::os::unix::fs::symlink(&elsewhere, Path::new(&from).join("link")).expect("a link");
    fails(&["push", &from, "127.0.0.1:9"], 2, "is a symbolic link");
}

#[test]
fn invalid_arguments_and_other_servers_are_reported_in_one_line() {
    let scratch = Scratch::new("transfer-arguments");
    let (from, to) = (scratch.directory("from", &WORLD), scratch.path("to"));
    fails(&["pull", &to], 2, "HOST:PORT");
    fails(&["push", &scratch.path("nowhere"), "127.0.0.1:9"], 2, "nowhere");
    fails(&["push", &from, "127.0.0.1:9", "--listen", "127.0.0.1:0"], 2, "--listen");
    fails(&["pull", &to, "127.0.0.1:9", "--secure", "a.key"], 2, "--secure <FILE>");
    let echo = listen(&["echo"]);
    fails(&["push", &from, &echo.announced, "--timeout", "15"], 1, "rakwire pull --listen");
    fails(&["pull", &to, &echo.announced, "--timeout", "15"], 1, "no answer arrived in time");
}
