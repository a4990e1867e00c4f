//! `reload`.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rakwire_relay::ConfigError;
use rakwire_relay::config::Loaded;
use rakwire_udp::private_file;

use super::{Failure, print_out};
use crate::args::ReloadArgs;

/// How long the relay has for its answer.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn reload(args: &ReloadArgs) -> Result<(), Failure> {
    let (mut admin, mut pid_file) = (args.admin_listen, args.pid_file.clone());
    if let (None, None, Some(path)) = (&admin, &pid_file, &args.config) {
        let config = Loaded::read(Some(path), &[]).map_err(Failure::misconfigured)?.config;
        (admin, pid_file) = (config.admin.listen, config.pid_file);
    }
    match (admin, pid_file) {
        (Some(address), _) => by_admin_address(address),
        (None, Some(path)) => by_pid_file(&path),
        (None, None) => Err(Failure::Misconfigured(
            "which relay: give --admin-listen ADDR, --pid-file FILE, or a --config FILE that has one of them"
                .to_owned(),
        )),
    }
}

fn by_admin_address(address: SocketAddr) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("no answer from {address} ({error})"));
    let answer = post(address).map_err(failed)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    match head.split_whitespace().nth(1) {
        Some("200") => print_out(&format!("{}\n", body.trim_end())),
        Some("400") => Err(Failure::Misconfigured(body.trim_end().to_owned())),
        _ => Err(Failure::Failed(format!(
            "unexpected answer from {address}: {}",
            head.lines().next().unwrap_or("")
        ))),
    }
}

fn post(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    // The number of an interface means nothing to others (RFC 6874 section 4).
    let host = SocketAddr::new(address.ip(), address.port());
    write!(
        stream,
        "POST /reload HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    // An answer is one line; what is longer comes from something else.
    stream.take(64 * 1024).read_to_string(&mut answer)?;
    Ok(answer)
}

fn by_pid_file(path: &Path) -> Result<(), Failure> {
    let unusable = |reason: String| Failure::Misconfigured(format!("{}: {reason}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    let pid = text.trim().parse().ok().filter(|&pid: &i32| pid > 1);
    let pid = pid.ok_or_else(|| unusable("there is no process id in it".to_owned()))?;
    hang_up(pid).map_err(|error| unusable(format!("cannot signal process {pid} ({error})")))?;
    print_out(&format!("told process {pid}; its log has the result\n"))
}

#[cfg(unix)]
fn hang_up(pid: i32) -> Result<(), nix::Error> {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    kill(Pid::from_raw(pid), Signal::SIGHUP)
}

#[cfg(not(unix))]
fn hang_up(_: i32) -> Result<(), &'static str> {
    Err("this system has no signals: use --admin-listen")
}

/// The process id file of a running relay, which is removed at its end.
#[derive(Debug)]
pub(crate) struct PidFile(PathBuf);

impl PidFile {
    pub(crate) fn write(path: PathBuf) -> Result<Self, ConfigError> {
        match private_file::replace(&path, format!("{}\n", std::process::id()).as_bytes()) {
            Ok(()) => Ok(Self(path)),
            Err(error) => Err(ConfigError::File {
                key: "pid_file",
                path,
                line: None,
                reason: format!("cannot be written ({error})"),
            }),
        }
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Whether it is still there or not, there is nobody left to tell.
        let _ = fs::remove_file(&self.0);
    }
}
