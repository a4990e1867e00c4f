//! Child processes that are pinned to a core and controlled through lines on their standard input and output.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// The error if a program does not print the expected line before its time limit.
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
    /// Chooses the first two cores that this process may use. If there is only one, both programs share it.
    pub(crate) fn choose() -> Result<Self> {
        let mut cores = allowed_cores()?.into_iter();
        let receiver = cores.next().context("this process may not use any core")?;
        Ok(Self { sender: cores.next().unwrap_or(receiver), receiver })
    }
}

/// Returns the cores that this process may use.
pub(crate) fn allowed_cores() -> Result<Vec<usize>> {
    let allowed = sched_getaffinity(Pid::from_raw(0))
        .context("the system does not report which cores this process may use")?;
    Ok((0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap_or(false)).collect())
}

/// A running child process, killed on drop.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    deadline: Instant,
}

impl Program {
    /// Starts a program on one core. `limit` is the total time for all of its output.
    pub(crate) fn start(command: Command, core: usize, limit: Duration) -> Result<Self> {
        on_core(core, || Self::start_on_any_core(command, limit))?
    }

    /// Starts a program that may use every core. `limit` is the total time for all of its output.
    pub(crate) fn start_on_any_core(mut command: Command, limit: Duration) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let spawned = command.spawn();
        let mut child =
            spawned.with_context(|| format!("{} cannot be started", command.get_program().display()))?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("the program has no standard output")?;
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

    /// Waits for the next line on the program's standard output.
    ///
    /// Fails with [`TookTooLong`] once the time limit is over.
    pub(crate) fn line(&self) -> Result<String> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => Err(TookTooLong.into()),
            Err(RecvTimeoutError::Disconnected) => bail!("ended early"),
        }
    }

    /// Waits for the program to print `ready PORT` and returns the port.
    pub(crate) fn port(&self) -> Result<u16> {
        let line = self.line()?;
        let port = line.strip_prefix("ready ").and_then(|port| port.trim().parse().ok());
        port.with_context(|| format!("expected the line \"ready PORT\", but the program printed {line:?}"))
    }

    /// Waits for the program to print `connected`.
    pub(crate) fn connected(&self) -> Result<()> {
        let line = self.line()?;
        if line == "connected" {
            Ok(())
        } else {
            bail!("expected the line \"connected\", but the program printed {line:?}")
        }
    }

    /// Writes an empty line to the program's standard input, which starts its next step.
    pub(crate) fn go(&mut self) -> Result<()> {
        let input = self.input.as_mut().context("the program has no standard input")?;
        input.write_all(b"\n").and_then(|()| input.flush()).context("ended early")
    }

    /// Returns the CPU time that the program has used so far.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?);
        Ok(clock_gettime(clock_getcpuclockid(pid)?)?.into())
    }

    /// Returns the anonymous resident memory of the program (`RssAnon`) in bytes.
    pub(crate) fn memory(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        Ok(kilobytes.context("the system does not report memory")? * 1_024)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Errors are ignored: the program may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a function pinned to one core. Child processes that it starts inherit the pinning.
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
    fn a_program_reads_and_prints_lines_until_it_exits() {
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
    fn waiting_for_a_line_fails_after_the_time_limit() {
        let program = shell("sleep 60", Duration::ZERO);
        assert!(program.line().unwrap_err().is::<TookTooLong>());
    }
}
