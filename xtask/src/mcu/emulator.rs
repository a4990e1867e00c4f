//! Runs firmware in QEMU: passes arguments to the firmware, and returns its output and its exit status.

use std::fmt::Write;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::files;
use crate::process::{Running, describe};
use crate::setup::{Need, QEMU};
use crate::shell::Shell;

/// The needs of a machine in QEMU.
pub const NEEDS: [Need; 3] = [Need::FirmwareTargets, Need::Qemu, Need::DefmtPrint];
/// QEMU's id of a machine's network.
pub const NETWORK: &str = "network";

/// The time limit for receiving the last lines of a machine that has ended.
const LAST_LINES: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);

/// A running machine.
pub struct Machine {
    qemu: Running,
    printer: Running,
    lines: Receiver<String>,
    seen: Vec<String>,
    limit: Duration,
    started: Instant,
}

/// The output of a machine and its end.
pub struct Report {
    /// The exit status of the emulator.
    pub status: ExitStatus,
    lines: Vec<String>,
}

impl Machine {
    /// Starts a firmware with arguments `name=value`; `more` are arguments for QEMU itself.
    pub fn start(
        shell: &Shell,
        firmware: &Path,
        arguments: &[String],
        more: &[&str],
        limit: Duration,
    ) -> Result<Self> {
        let firmware = files::text(firmware)?;
        let mut semihosting = "enable=on,target=native,arg=firmware".to_owned();
        for argument in arguments.iter().chain([&format!("entropy={}", entropy()?)]) {
            write!(semihosting, ",arg={argument}")?;
        }
        let machine = ["-M", "mps2-an386", "-display", "none", "-monitor", "none", "-serial", "none"];
        let nic = format!("user,id={NETWORK},model=lan9118");
        let network = ["-nic", &nic, "-semihosting-config", &semihosting];
        let args =
            machine.into_iter().chain(network).chain(["-kernel", firmware]).chain(more.iter().copied());
        let mut qemu = shell.cmd(QEMU, args).piped().spawn()?;
        let encoded = qemu.take_stdout()?;
        let mut printer = shell.cmd("defmt-print", ["-e", firmware]).piped().input(encoded).spawn()?;
        let text = printer.take_stdout()?;
        let (sender, lines) = mpsc::channel();
        let log = shell.log.clone();
        thread::spawn(move || {
            for line in BufReader::new(text).lines().map_while(Result::ok) {
                log.note(format_args!("[mcu] {line}"));
                // The receiver is gone once the machine was abandoned.
                let _ = sender.send(line);
            }
        });
        Ok(Self { qemu, printer, lines, seen: Vec::new(), limit, started: Instant::now() })
    }

    /// Waits until the machine prints a line that contains these words.
    pub fn wait_for(&mut self, words: &str) -> Result<()> {
        loop {
            match self.lines.recv_timeout(POLL) {
                Ok(line) => {
                    let found = line.contains(words);
                    self.seen.push(line);
                    if found {
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.check_time()?,
                Err(RecvTimeoutError::Disconnected) => bail!("the firmware ended without printing {words:?}"),
            }
        }
    }

    /// Fails if the machine has ended unexpectedly.
    pub fn check(&mut self) -> Result<()> {
        // Discards the lines, which were already shown.
        self.lines.try_iter().for_each(drop);
        match self.qemu.poll()? {
            None => Ok(()),
            Some(status) => bail!("the firmware has ended: {}", describe(status)),
        }
    }

    fn check_time(&self) -> Result<()> {
        if self.qemu.must_stop() {
            bail!("interrupted");
        }
        if self.started.elapsed() > self.limit {
            bail!("the firmware did not end within {} s", self.limit.as_secs());
        }
        Ok(())
    }

    /// Waits until the machine ends.
    pub fn finish(mut self) -> Result<Report> {
        let rest = self.limit.saturating_sub(self.started.elapsed());
        let status = self.qemu.wait(Some(rest))?;
        self.printer.wait(Some(LAST_LINES))?;
        self.seen.extend(self.lines.iter());
        Ok(Report { status, lines: self.seen })
    }

    /// Waits until the machine ends, and fails unless it succeeded.
    pub fn succeed(self) -> Result<Report> {
        let report = self.finish()?;
        if !report.status.success() {
            bail!("the firmware failed: {}", describe(report.status));
        }
        Ok(report)
    }
}

impl Report {
    /// Returns true if a line of the output contains these words.
    pub fn says(&self, words: &str) -> bool {
        self.lines.iter().any(|line| line.contains(words))
    }

    /// Returns the number `name` in the line `RESULT name=value ...`.
    pub fn number(&self, name: &str) -> Result<f64> {
        let found = self.lines.iter().find_map(|line| number_in(line, name));
        found.with_context(|| format!("the firmware reported no {name}"))
    }

    /// Returns the number `name` in the line of results that contains this word.
    pub fn number_of(&self, word: &str, name: &str) -> Result<f64> {
        let mut lines = self.lines.iter().filter(|line| line.split_whitespace().any(|found| found == word));
        let found = lines.find_map(|line| number_in(line, name));
        found.with_context(|| format!("the firmware reported no {name} for {word}"))
    }
}

fn number_in(line: &str, name: &str) -> Option<f64> {
    let (_, results) = line.split_once("RESULT ")?;
    let mut words = results.split_whitespace();
    words.find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

/// Returns 32 random bytes in hexadecimal for the machine, which has no entropy source of its own.
fn entropy() -> Result<String> {
    let mut bytes = [0; 32];
    let source = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    source.context("the system could not provide random bytes")?;
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_only_from_result_lines() {
        let line = "2.5 RESULT round_trips=2000 rtt_us_median=180 lost=0";
        assert_eq!(number_in(line, "rtt_us_median"), Some(180.0));
        assert_eq!(number_in(line, "lost"), Some(0.0));
        assert_eq!(number_in(line, "rtt"), None);
        assert_eq!(number_in("2.5 INFO lost=7", "lost"), None);
    }
}
