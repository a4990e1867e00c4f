//! What speaks to a running relay: `clients`, `kick`, `ban`, `unban` and `bans` by its admin socket, and `reload` by its admin
//! address or a signal to the process in its file.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use rakwire_relay::clients::{BanList, ClientList, EndedFlows};
use rakwire_relay::config::Loaded;
use rakwire_udp::printable;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{Failure, print_out};
use crate::args::{BanArgs, BansArgs, ClientsArgs, KickArgs, Kicked, ReloadArgs, SocketArgs, UnbanArgs};

pub(crate) fn clients(args: &ClientsArgs) -> Result<(), Failure> {
    let path = match args.network {
        Some(network) => format!("/clients?network={network}"),
        None => "/clients".to_owned(),
    };
    let answer = request(&args.socket, "GET", &path, "")?;
    print_answer::<ClientList>(&answer, args.json, ClientList::to_table)
}

pub(crate) fn bans(args: &BansArgs) -> Result<(), Failure> {
    let answer = request(&args.socket, "GET", "/bans", "")?;
    print_answer::<BanList>(&answer, args.json, BanList::to_table)
}

pub(crate) fn kick(args: &KickArgs) -> Result<(), Failure> {
    let order = match args.selected {
        Kicked::Flow(flow) => json!({ "flow": flow }),
        Kicked::Network(network) => json!({ "network": network.to_string() }),
    };
    let answer = request(&args.socket, "POST", "/kick", &order.to_string())?;
    print_answer::<EndedFlows>(&answer, args.json, |it| format!("ended flows: {}\n", it.ended))
}

pub(crate) fn ban(args: &BanArgs) -> Result<(), Failure> {
    // A part of a second is a second: a ban of none would do nothing.
    let seconds = args.duration.map(|duration| duration.as_secs() + u64::from(duration.subsec_nanos() > 0));
    let order = json!({ "network": args.network.to_string(), "seconds": seconds });
    let answer = request(&args.socket, "POST", "/ban", &order.to_string())?;
    print_answer::<EndedFlows>(&answer, args.json, |it| {
        format!("banned {}; ended flows: {}\n", args.network, it.ended)
    })
}

pub(crate) fn unban(args: &UnbanArgs) -> Result<(), Failure> {
    let order = json!({ "network": args.network.to_string() });
    request(&args.socket, "POST", "/unban", &order.to_string())?;
    print_out(&format!("lifted the ban of {}\n", args.network))
}

/// Prints an answer as it is, or in the words for people.
fn print_answer<T: DeserializeOwned>(
    answer: &str,
    as_json: bool,
    text: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    let read: T = serde_json::from_str(answer).map_err(|_| {
        Failure::Misconfigured("unexpected answer: is this the admin socket of a relay?".to_owned())
    })?;
    if as_json { print_out(&format!("{}\n", answer.trim_end())) } else { print_out(&text(&read)) }
}

/// Sends an order to the relay and returns its answer.
#[cfg(unix)]
fn request(socket: &SocketArgs, method: &str, path: &str, body: &str) -> Result<String, Failure> {
    let given = match (&socket.admin_socket, &socket.config) {
        (Some(path), _) => Some(path.clone()),
        (None, Some(config)) => {
            Loaded::read(Some(config), &[]).map_err(Failure::misconfigured)?.config.admin.socket
        }
        (None, None) => None,
    };
    let socket = given.ok_or_else(|| {
        Failure::Misconfigured(
            "which relay: give --admin-socket FILE, or a --config FILE that has admin.socket".to_owned(),
        )
    })?;
    let answer = exchange(&socket, method, path, body).map_err(|error| {
        Failure::Misconfigured(format!("no answer from the relay at {} ({error})", socket.display()))
    })?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    match head.split_whitespace().nth(1) {
        Some("200" | "204") => Ok(body.to_owned()),
        Some("400") => Err(Failure::Misconfigured(printable(body.trim_end()))),
        _ => {
            let line = printable(head.lines().next().unwrap_or_default());
            Err(Failure::Misconfigured(format!("unexpected answer from {}: {line}", socket.display())))
        }
    }
}

#[cfg(not(unix))]
fn request(_: &SocketArgs, _: &str, _: &str, _: &str) -> Result<String, Failure> {
    Err(Failure::Misconfigured("this system has no Unix sockets: use a file of bans and a reload".to_owned()))
}

#[cfg(unix)]
fn exchange(socket: &Path, method: &str, path: &str, body: &str) -> std::io::Result<String> {
    use std::os::unix::net::UnixStream;

    /// More bytes than the list of as many clients as one answer has.
    const ANSWER_MAX: u64 = 16 * 1024 * 1024;

    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.take(ANSWER_MAX).read_to_string(&mut answer)?;
    Ok(answer)
}

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
