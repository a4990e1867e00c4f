//! Child processes that do not outlive this one.
//!
//! Each child leads its own process group, so a Ctrl-C in the terminal reaches only this process. This process then
//! sends SIGTERM to the group, and SIGKILL some seconds later. Dropping a [`Running`] does the same.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::log::Log;
use crate::stop::Stop;

const POLL: Duration = Duration::from_millis(20);
const GRACE: Duration = Duration::from_secs(5);

/// A command to run, with its command line for messages.
pub struct Cmd {
    command: Command,
    line: String,
    limit: Option<Duration>,
    grace: Duration,
    log: Log,
    stop: Stop,
}

impl Cmd {
    /// Creates a command that reads no input.
    pub fn new<'a>(program: &str, args: impl IntoIterator<Item = &'a str>) -> Self {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).process_group(0);
        let mut line = program.to_owned();
        for arg in args {
            command.arg(arg);
            line.push(' ');
            line.push_str(arg);
        }
        Self { command, line, limit: None, grace: GRACE, log: Log::Terminal, stop: Stop::default() }
    }

    /// Redirects its output to a log. A later call of [`piped`](Self::piped) takes precedence for the standard output.
    pub fn logged(mut self, log: &Log) -> Self {
        self.command.stdout(log.stdout()).stderr(log.stderr());
        self.log = log.clone();
        self
    }

    /// Stops the command once `stop` is set.
    pub fn until(mut self, stop: &Stop) -> Self {
        self.stop = stop.clone();
        self
    }

    /// Changes the underlying command.
    pub fn with(mut self, change: impl FnOnce(&mut Command)) -> Self {
        change(&mut self.command);
        self
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets the folder in which it runs.
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Sets its standard input.
    pub fn input(mut self, input: impl Into<Stdio>) -> Self {
        self.command.stdin(input);
        self
    }

    /// Pipes its standard output to this process.
    pub fn piped(mut self) -> Self {
        self.command.stdout(Stdio::piped());
        self
    }

    /// Sets a time limit, after which the command is stopped and fails.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Sets the time between SIGTERM and SIGKILL.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Prints the command line and runs it. Fails unless the exit status is 0.
    pub fn run(self) -> Result<()> {
        self.log.note(format_args!("$ {}", self.line));
        let line = self.line.clone();
        let limit = self.limit;
        let status = self.spawn()?.wait(limit)?;
        if !status.success() {
            bail!("`{line}` failed: {}", describe(status));
        }
        Ok(())
    }

    /// Runs the command without printing it, and returns its output even if it failed.
    pub fn output(self) -> Result<Output> {
        let limit = self.limit;
        let mut running = self.piped().spawn()?;
        let mut stdout = running.take_stdout()?;
        let reader = thread::spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).map(|_| bytes)
        });
        let status = running.wait(limit)?;
        let bytes = reader.join().ok().context("the reader of a child's output panicked")??;
        Ok(Output { status, stdout: String::from_utf8_lossy(&bytes).into_owned() })
    }

    /// Returns the output of the command, or `None` if the program does not exist or fails. Its error output is
    /// discarded.
    pub fn probe(mut self) -> Result<Option<String>> {
        self.command.stderr(Stdio::null());
        match self.output() {
            Ok(output) if output.status.success() => Ok(Some(output.stdout)),
            Ok(_) => Ok(None),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Starts the command and leaves it running.
    pub fn spawn(mut self) -> Result<Running> {
        if self.stop.is_set() {
            bail!("interrupted");
        }
        let child = self.command.spawn().with_context(|| format!("`{}` cannot be started", self.line))?;
        Ok(Running { child, line: self.line, grace: self.grace, stop: self.stop })
    }
}

/// The result of a finished command.
pub struct Output {
    /// The exit status.
    pub status: ExitStatus,
    /// The standard output.
    pub stdout: String,
}

/// A running command. Dropping it stops the command with all its children.
pub struct Running {
    child: Child,
    line: String,
    grace: Duration,
    stop: Stop,
}

impl Running {
    /// Takes the standard output of a child that was started with a pipe for it.
    pub fn take_stdout(&mut self) -> Result<ChildStdout> {
        self.child.stdout.take().with_context(|| format!("`{}` has no output to read", self.line))
    }

    /// Takes the standard input of a child that was started with a pipe for it.
    pub fn take_stdin(&mut self) -> Result<ChildStdin> {
        self.child.stdin.take().with_context(|| format!("`{}` reads no input", self.line))
    }

    /// Returns true if the child must be stopped early.
    pub fn must_stop(&self) -> bool {
        self.stop.is_set()
    }

    /// Returns the exit status, if the child has ended.
    pub fn poll(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("`{}` cannot be waited for", self.line))
    }

    /// Waits until the child exits. Stops it and fails when the time limit expires or the run must stop.
    pub fn wait(&mut self, limit: Option<Duration>) -> Result<ExitStatus> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.poll()? {
                return Ok(status);
            }
            if self.must_stop() {
                self.stop();
                bail!("interrupted");
            }
            if limit.is_some_and(|limit| started.elapsed() > limit) {
                self.stop();
                bail!("`{}` did not exit within {} s", self.line, started.elapsed().as_secs());
            }
            thread::sleep(POLL);
        }
    }

    /// Kills the child and its group immediately, without a chance to clean up.
    pub fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        let _ = self.child.wait();
    }

    /// Stops the child and its process group: SIGTERM, and SIGKILL after some seconds.
    pub fn stop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        self.signal(Signal::SIGTERM);
        let asked = Instant::now();
        while asked.elapsed() < self.grace {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            thread::sleep(POLL);
        }
        // The leader may have exited and left other processes of its group.
        self.signal(Signal::SIGKILL);
        let _ = self.child.wait();
    }

    fn signal(&self, signal: Signal) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            // An error means that the group is empty.
            let _ = killpg(Pid::from_raw(group), signal);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Describes an exit status in words.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    }
}

fn is_not_found(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Cmd {
        Cmd::new("sh", ["-c", script])
    }

    #[test]
    fn output_and_exit_codes_are_returned() {
        let output = sh("echo one; echo two; exit 3").output().unwrap();
        assert_eq!((&*output.stdout, &*describe(output.status)), ("one\ntwo\n", "exit code 3"));
        assert_eq!(Cmd::new("no-such-program-anywhere", []).probe().unwrap(), None);
        assert_eq!(sh("echo no; exit 1").probe().unwrap(), None);
        assert_eq!(sh("echo yes").probe().unwrap().as_deref(), Some("yes\n"));
        assert_eq!(sh("exit 4").run().unwrap_err().to_string(), "`sh -c exit 4` failed: exit code 4");
    }

    #[test]
    fn a_child_is_killed_after_its_time_limit() {
        let error = Cmd::new("sleep", ["600"]).limit(Duration::from_millis(100)).run().unwrap_err();
        assert!(error.to_string().contains("did not exit"), "{error}");
    }

    #[test]
    fn a_stop_signal_kills_the_child_and_makes_later_commands_fail() {
        let stop = Stop::default();
        let child = thread::scope(|scope| {
            let child = scope.spawn(|| Cmd::new("sleep", ["600"]).until(&stop).run());
            stop.set();
            child.join().unwrap()
        });
        assert_eq!(child.unwrap_err().to_string(), "interrupted");
        assert_eq!(sh("exit 0").until(&stop).run().unwrap_err().to_string(), "interrupted");
    }

    #[test]
    fn dropping_a_child_kills_its_process_group() {
        let mut running = sh("sleep 600 & echo $!; wait").piped().spawn().unwrap();
        let mut stdout = io::BufReader::new(running.take_stdout().unwrap());
        let mut grandchild = String::new();
        io::BufRead::read_line(&mut stdout, &mut grandchild).unwrap();
        drop(running);
        let alive = || {
            let state = std::fs::read_to_string(format!("/proc/{}/stat", grandchild.trim()));
            state.is_ok_and(|state| !state.contains(") Z "))
        };
        let dropped = Instant::now();
        while alive() && dropped.elapsed() < Duration::from_secs(60) {
            thread::sleep(POLL);
        }
        assert!(!alive());
    }
}
