//! Programs that tests start.

use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Longer than any program here takes on the slowest machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// A program that runs until it is dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    /// What comes after the word that announces the port or address.
    pub(crate) announced: String,
    // Some programs end when their standard input does.
    _stdin: ChildStdin,
}

impl Server {
    /// Starts a program and waits for a line on its standard output that begins with `word`.
    pub(crate) fn start(program: &Path, arguments: &[&str], word: &str) -> Self {
        let mut child = spawn(program, arguments);
        let stdin = child.stdin.take().expect("a piped input");
        let stdout = child.stdout.take().expect("a piped output");
        let (sender, receiver) = mpsc::channel();
        let prefix = word.to_owned();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
            let announced = lines.try_fold(Vec::new(), |mut others, line| {
                if line.starts_with(&prefix) {
                    return ControlFlow::Break(line);
                }
                others.push(line);
                ControlFlow::Continue(others)
            });
            sender.send(announced)
        });
        let line = match receiver.recv_timeout(DEADLINE).expect("a line in time") {
            ControlFlow::Break(line) => line,
            ControlFlow::Continue(others) => panic!("no line begins with {word:?}: {others:?}"),
        };
        let announced = line.strip_prefix(word).unwrap_or_default();
        Self { announced: announced.trim().to_owned(), child, _stdin: stdin }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a program with its input and output piped.
fn spawn(program: &Path, arguments: &[&str]) -> Child {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()))
}

/// Runs a program to its end.
pub(crate) fn run(program: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = spawn(program, arguments);
    let mut stdin = child.stdin.take().expect("a piped input");
    // A program that reads no input may have ended.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("a child")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// A folder of a test, which is removed when it ends well.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("rakwire-cli-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a directory");
        Self(folder)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path of text").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            std::fs::remove_dir_all(&self.0).expect("the directory");
        }
    }
}
