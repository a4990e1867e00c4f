//! Child processes, pinned to a core, started by a line of input and read line by line.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// A program did not print its line before its time limit.
#[derive(Debug)]
pub(crate) struct TookTooLong;

impl fmt::Display for TookTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("took too long")
    }
}

impl std::error::Error for TookTooLong {}

/// The cores of a measurement: one for the sending program and one for the receiving one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cores {
    pub(crate) sender: usize,
    pub(crate) receiver: usize,
}

impl Cores {
    /// Chooses the first two cores that this process may use; if there is only one, both programs share it.
    pub(crate) fn choose() -> Result<Self> {
        let mut cores = allowed_cores()?.into_iter();
        let receiver = cores.next().context("there is no core")?;
        Ok(Self { sender: cores.next().unwrap_or(receiver), receiver })
    }
}

/// Returns the cores that this process may use.
pub(crate) fn allowed_cores() -> Result<Vec<usize>> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).context("the system reports no cores")?;
    Ok((0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap_or(false)).collect())
}

/// A program that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    deadline: Instant,
}

impl Program {
    /// Starts a program on one core, with a time limit.
    pub(crate) fn start(command: Command, core: usize, limit: Duration) -> Result<Self> {
        on_core(core, || Self::start_on_any_core(command, limit))?
    }

    /// Starts a program that may use every core, with a time limit.
    pub(crate) fn start_on_any_core(mut command: Command, limit: Duration) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let spawned = command.spawn();
        let mut child =
            spawned.with_context(|| format!("{} cannot be started", command.get_program().display()))?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("no output")?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, input, lines, deadline: Instant::now() + limit })
    }

    /// Reads the next line of its output.
    pub(crate) fn line(&self) -> Result<String> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => Err(TookTooLong.into()),
            Err(RecvTimeoutError::Disconnected) => bail!("ended early"),
        }
    }

    /// Waits for its line `ready PORT` and returns the port.
    pub(crate) fn port(&self) -> Result<u16> {
        let line = self.line()?;
        let port = line.strip_prefix("ready ").and_then(|port| port.trim().parse().ok());
        port.with_context(|| format!("{line:?} announces no port"))
    }

    /// Waits for its line `connected`.
    pub(crate) fn connected(&self) -> Result<()> {
        let line = self.line()?;
        if line == "connected" { Ok(()) } else { bail!("{line:?} instead of \"connected\"") }
    }

    /// Sends the line that it waits for.
    pub(crate) fn go(&mut self) -> Result<()> {
        let input = self.input.as_mut().context("no input")?;
        input.write_all(b"\n").and_then(|()| input.flush()).context("ended early")
    }

    /// Returns its CPU time.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?);
        Ok(clock_gettime(clock_getcpuclockid(pid)?)?.into())
    }

    /// Returns its anonymous resident memory in bytes.
    pub(crate) fn memory(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        Ok(kilobytes.context("the system does not report memory")? * 1_024)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a function on one core. Processes that it starts stay on that core.
pub(crate) fn on_core<R>(core: usize, run: impl FnOnce() -> R) -> Result<R> {
    let this_thread = Pid::from_raw(0);
    let before = sched_getaffinity(this_thread)?;
    let mut one = CpuSet::new();
    one.set(core)?;
    sched_setaffinity(this_thread, &one).with_context(|| format!("core {core} cannot be used"))?;
    let result = run();
    sched_setaffinity(this_thread, &before)?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Program {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Program::start(command, Cores::choose().unwrap().receiver, limit).unwrap()
    }

    #[test]
    fn a_program_is_started_by_a_line_and_read_by_lines() {
        let script = "echo ready 7; read line; echo connected; read line";
        let mut program = shell(script, Duration::from_secs(60));
        assert_eq!(program.port().unwrap(), 7);
        program.go().unwrap();
        program.connected().unwrap();
        assert!(program.memory().unwrap() > 0);
        program.go().unwrap();
        assert_eq!(program.line().unwrap_err().to_string(), "ended early");
    }

    #[test]
    fn a_program_has_a_time_limit() {
        let program = shell("sleep 60", Duration::ZERO);
        assert!(program.line().unwrap_err().is::<TookTooLong>());
    }
}
