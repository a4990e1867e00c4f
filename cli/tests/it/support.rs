//! Starts and runs programs for tests.

use std::io::{BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Longer than any program here takes on the slowest machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// A running program, killed on drop.
pub(crate) struct Server {
    pub(crate) child: Child,
    /// The rest of the line that [`start`](Self::start) waited for, such as an address.
    pub(crate) announced: String,
    // The input stays open, because some programs end when their standard input closes.
    _stdin: ChildStdin,
}

impl Server {
    /// Starts a program and waits for a line on its standard output that begins with `word`.
    ///
    /// Panics with its standard error if there is no such line.
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
        let line = match receiver.recv_timeout(DEADLINE) {
            Ok(ControlFlow::Break(line)) => line,
            announced => {
                let _ = child.kill();
                let complaint = collect(child.stderr.take()).recv_timeout(DEADLINE).unwrap_or_default();
                let complaint = String::from_utf8_lossy(&complaint);
                panic!("no line of {arguments:?} begins with {word:?}: {announced:?}\n{complaint}");
            }
        };
        let announced = line.strip_prefix(word).unwrap_or_default();
        Self { announced: announced.trim().to_owned(), child, _stdin: stdin }
    }

    /// Interrupts the program like Ctrl-C.
    #[cfg(unix)]
    pub(crate) fn interrupt(&self) {
        let killed = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(killed.expect("the program `kill`").success());
    }

    /// Returns the lines of its standard error as they arrive.
    #[cfg(unix)]
    pub(crate) fn log(&mut self) -> Log {
        let stderr = self.child.stderr.take().expect("a piped error output");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines() {
                // The test may have ended.
                let _ = sender.send(line.expect("text"));
            }
        });
        Log(lines)
    }
}

/// The standard error of a program.
#[cfg(unix)]
pub(crate) struct Log(mpsc::Receiver<String>);

#[cfg(unix)]
impl Log {
    pub(crate) fn next(&self) -> String {
        self.0.recv_timeout(DEADLINE).expect("a line before the deadline")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The program may have stopped already.
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

/// Collects an output of a program until the program ends, reading continuously so that the pipe never fills.
fn collect(output: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let mut output = output.expect("a piped output");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = output.read_to_end(&mut bytes);
        sender.send(bytes)
    });
    receiver
}

/// Runs a program to its end.
pub(crate) fn run(program: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = spawn(program, arguments);
    let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let mut stdin = child.stdin.take().expect("a piped input");
    // A program that does not read its input may have stopped.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let stdout = stdout.recv_timeout(DEADLINE);
    if stdout.is_err() {
        let _ = child.kill();
    }
    let stderr = stderr.recv_timeout(DEADLINE).unwrap_or_default();
    let Ok(stdout) = stdout else {
        panic!("{arguments:?} do not end in time: {}", String::from_utf8_lossy(&stderr))
    };
    Output { status: child.wait().expect("a child"), stdout, stderr }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// A directory for a test, removed if the test passes.
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
