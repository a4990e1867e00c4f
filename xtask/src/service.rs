//! Server programs that run in the background, print their address on the first line, and end with this process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::log::Log;
use crate::process::{Running, describe};
use crate::shell::Shell;

/// The time limit for starting, long enough for a busy machine.
const START: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);

/// A running server.
pub struct Service {
    name: &'static str,
    running: Running,
    lines: Receiver<String>,
    /// Its address: `HOST:PORT`, `http://HOST:PORT`, or only the port.
    pub address: String,
    /// Its first line, which may contain more.
    pub first_line: String,
}

impl Service {
    /// Starts a program and waits until it listens.
    pub fn start(shell: &Shell, name: &'static str, program: &Path, args: &[&str]) -> Result<Self> {
        let program = program.to_string_lossy();
        // Dropping the service and signals end the program. If this process is killed, the kernel ends the program.
        let command = if can_die_with_parent(shell)? {
            let tied = ["--pdeathsig", "TERM", "--", &program];
            shell.cmd("setpriv", tied.into_iter().chain(args.iter().copied()))
        } else {
            shell.cmd(&program, args.iter().copied())
        };
        // Piped, because some programs exit when their standard input closes, which happens when this process ends.
        let mut running = command.input(Stdio::piped()).piped().spawn()?;
        let stdout = running.take_stdout()?;
        let (sender, lines) = mpsc::channel();
        let log = shell.log.clone();
        thread::spawn(move || pass_on(name, stdout, &log, &sender));
        let mut service = Self { name, running, lines, address: String::new(), first_line: String::new() };
        service.first_line = service.next_line()?;
        let address = parse_address(&service.first_line);
        let address =
            address.with_context(|| format!("{name} did not print its address: {:?}", service.first_line))?;
        service.address = address.to_owned();
        Ok(service)
    }

    /// Waits for a line that begins with `prefix`, and returns the text after the prefix.
    pub fn find(&mut self, prefix: &str) -> Result<String> {
        loop {
            if let Some(rest) = self.next_line()?.strip_prefix(prefix) {
                return Ok(rest.to_owned());
            }
        }
    }

    fn next_line(&mut self) -> Result<String> {
        let started = Instant::now();
        loop {
            match self.lines.recv_timeout(POLL) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("{}", ended(self.name, self.running.wait(Some(START))?))
                }
                Err(RecvTimeoutError::Timeout) if self.running.must_stop() => bail!("interrupted"),
                Err(RecvTimeoutError::Timeout) if started.elapsed() > START => {
                    bail!("{} did not print its address within {} s", self.name, START.as_secs())
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Kills the program immediately, as a power failure would.
    pub fn kill(mut self) {
        self.running.kill();
    }

    /// Fails if the program has ended.
    pub fn check(&mut self) -> Result<()> {
        match self.running.poll()? {
            None => Ok(()),
            Some(status) => bail!("{}", ended(self.name, status)),
        }
    }
}

/// Prints the lines of a server, and sends them to `lines`.
fn pass_on(name: &str, stdout: ChildStdout, log: &Log, lines: &Sender<String>) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        log.note(format_args!("[{name}] {line}"));
        // The receiver is gone once the server was ended.
        let _ = lines.send(line);
    }
}

fn ended(name: &str, status: ExitStatus) -> String {
    format!("{name} has stopped: {}", describe(status))
}

/// Returns true if the system supports ending a program with its parent.
fn can_die_with_parent(shell: &Shell) -> Result<bool> {
    let version = shell.cmd("setpriv", ["--version"]).probe()?;
    Ok(version.is_some_and(|version| version.contains("util-linux")))
}

/// Returns the address in the line `listening on ADDRESS` of our programs, or `ready PORT` of interop peers. The port
/// must be valid.
fn parse_address(line: &str) -> Option<&str> {
    if let Some(port) = line.strip_prefix("ready ") {
        return port.parse::<u16>().ok().filter(|port| *port != 0).and(Some(port));
    }
    let address = line.strip_prefix("listening on ")?.split_whitespace().next()?;
    let (host, port) = address.rsplit_once(':')?;
    let host = host.strip_prefix("http://").unwrap_or(host);
    let port: u16 = port.parse().ok()?;
    (!host.is_empty() && port != 0).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read_from_the_first_line() {
        for (line, address) in [
            ("listening on http://127.0.0.1:8080", Some("http://127.0.0.1:8080")),
            ("listening on [::1]:5 for clients", Some("[::1]:5")),
            ("ready 4000", Some("4000")),
            ("listening on :80", None),
            ("listening on a:0", None),
            ("on a:1", None),
        ] {
            assert_eq!(parse_address(line), address, "{line:?}");
        }
    }

    fn start(script: &str) -> Result<(Service, String)> {
        let shell = Shell::new()?;
        let mut server = Service::start(&shell, "the server", Path::new("sh"), &["-c", script])?;
        let admin = server.find("monitoring on ")?;
        Ok((server, admin))
    }

    #[test]
    fn a_server_returns_its_addresses_and_fails_its_check_after_it_exits() {
        let (mut server, admin) =
            start("echo listening on 127.0.0.1:1; echo other; echo monitoring on http://127.0.0.1:2; read line; exit 2").unwrap();
        assert_eq!((&*server.address, &*admin), ("127.0.0.1:1", "http://127.0.0.1:2"));
        server.check().unwrap();
        drop(server.running.take_stdin().unwrap());
        server.running.wait(None).unwrap();
        assert_eq!(server.check().unwrap_err().to_string(), "the server has stopped: exit code 2");
    }

    #[test]
    fn a_server_that_exits_immediately_is_reported_with_its_exit_code() {
        for script in ["exit 3", "echo listening on 127.0.0.1:1; exit 3"] {
            let error = start(script).map(|_| ()).unwrap_err();
            assert_eq!(error.to_string(), "the server has stopped: exit code 3");
        }
    }
}
