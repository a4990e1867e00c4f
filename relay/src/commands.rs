//! The commands of the program.
//!
//! The relay and `announce` run until a signal ends them; another signal reloads the relay. `check`, `config`, `list`,
//! `keygen`, `token`, `completions` and `man` finish on their own. The others control a running relay: `clients`,
//! `kick`, `ban`, `unban` and `bans` through its admin socket, and `reload` through its admin address or by a signal to
//! the process in its process id file.

use std::env;
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::CommandFactory;
use rakwire_relay::clients::{BanList, ClientList, EndedFlows};
use rakwire_relay::config::{ExposedFile, Loaded, LogConfig, reference};
use rakwire_relay::directory::ServerList;
use rakwire_relay::discovery::{Announcement, DiscoveryError, Store};
use rakwire_relay::token::{Claims, SigningKey};
use rakwire_relay::{ConfigError, FetchError, Relay, Reloader, fetch_server_list, start_logging, systemd};
use rakwire_udp::{printable, private_file};
use serde::de::DeserializeOwned;
use serde_json::json;
use tracing::warn;

use crate::args::{
    Algorithm, AnnounceArgs, BanArgs, BansArgs, Cli, ClientsArgs, CompletionsArgs, ConfigArgs, ExplainArgs,
    KeygenArgs, KickArgs, Kicked, ListArgs, ReloadArgs, SocketArgs, TokenArgs, UnbanArgs,
};

/// The reason why a command failed, as one line.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The operator has to change a setting.
    Misconfigured(String),
    /// Any other failure.
    Failed(String),
}

impl Failure {
    pub(crate) fn misconfigured(error: impl fmt::Display) -> Self {
        Self::Misconfigured(error.to_string())
    }
}

/// Prints to stdout. A closed pipe is not an error.
fn print_out(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::Failed(error.to_string())),
        _ => Ok(()),
    }
}

pub(crate) fn check(args: &ConfigArgs) -> Result<(), Failure> {
    let loaded = args.load().map_err(Failure::misconfigured)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(error.to_string()))?;
    let checked = runtime.block_on(Relay::check(&loaded.config));
    // Dropping the runtime would wait for name lookups that never complete.
    runtime.shutdown_background();
    checked.map_err(|error| Failure::misconfigured(loaded.locate(&error)))?;
    let targets: Vec<&str> = loaded.config.targets.keys().map(|name| name.as_str()).collect();
    print_out(&format!("ok: listens on {}, offers {}\n", loaded.config.listen, targets.join(", ")))?;
    for exposed in loaded.exposed_files() {
        print_out(&format!("warning: {exposed}\n"))?;
    }
    let note = loaded.note().map_err(Failure::misconfigured)?;
    note.map_or(Ok(()), |note| print_out(&format!("note: {note}\n")))
}

pub(crate) fn print(args: &ExplainArgs) -> Result<(), Failure> {
    if args.reference {
        return print_out(&reference());
    }
    let loaded = args.config.read().map_err(Failure::misconfigured)?;
    print_out(&if args.explain { loaded.explain() } else { loaded.to_toml() })
}

pub(crate) fn list(args: &ListArgs) -> Result<(), Failure> {
    let failed = |error: FetchError| {
        if matches!(error, FetchError::Url) {
            Failure::misconfigured(error)
        } else {
            Failure::Failed(format!("{}: {error}", args.relay))
        }
    };
    let text = fetch_server_list(&args.relay).map_err(failed)?;
    let list: ServerList = serde_json::from_str(&text).map_err(|_| failed(FetchError::Unexpected))?;
    if args.json { print_out(&format!("{}\n", text.trim_end())) } else { print_out(&list.to_table()) }
}

pub(crate) fn keygen(args: &KeygenArgs) -> Result<(), Failure> {
    let made = match args.algorithm {
        Algorithm::Ed25519 => SigningKey::ed25519(),
        Algorithm::HmacSha256 => SigningKey::hmac_sha256(),
    };
    let key = made.map_err(|error| Failure::Failed(error.to_string()))?;
    let text = key.to_text();
    let written = private_file::write_new(&args.out, |file| file.write_all(text.as_bytes()));
    written.map_err(|error| not_written(&args.out, &error))?;
    let for_relay = match key.public_text() {
        Some(public) => {
            let path = public_path(&args.out);
            let written = private_file::write_new_public(&path, |file| file.write_all(public.as_bytes()));
            written.map_err(|error| {
                // The private key is useless without the public key, and its file would make the next attempt fail.
                let _ = fs::remove_file(&args.out);
                not_written(&path, &error)
            })?;
            path
        }
        None => args.out.clone(),
    };
    print_out(&format!(
        "{} signs tokens; start the relay with --token-key {}\n",
        args.out.display(),
        for_relay.display()
    ))
}

fn public_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".pub");
    name.into()
}

/// Returns the error for a key file that was not written. The file must not exist yet, so that a second call cannot
/// overwrite a key.
fn not_written(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    Failure::Misconfigured(if error.kind() == io::ErrorKind::AlreadyExists {
        format!("'{path}' already exists: choose another --out, or remove the old key")
    } else {
        format!("cannot write '{path}' ({error}): choose another --out, or check the permissions")
    })
}

pub(crate) fn token(args: &TokenArgs) -> Result<(), Failure> {
    let unusable =
        |reason: &dyn fmt::Display| Failure::Misconfigured(format!("{}: {reason}", args.key.display()));
    let text = fs::read_to_string(&args.key).map_err(|error| unusable(&error))?;
    let key = SigningKey::from_text(&text).map_err(|error| unusable(&error))?;
    let mut claims =
        Claims::new(&args.target, SystemTime::now() + args.expires).map_err(Failure::misconfigured)?;
    claims.addr = args.address;
    claims.origin.clone_from(&args.origin);
    if let Some(id) = &args.id {
        claims.jti.clone_from(id);
    }
    let token = key.sign(&claims).map_err(Failure::misconfigured)?;
    print_out(&format!("{token}\n"))
}

const NAME: &str = "rakwire-relay";

pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut text);
    print_out(&String::from_utf8_lossy(&text))
}

pub(crate) fn manual() -> Result<(), Failure> {
    let mut text = Vec::new();
    let page = clap_mangen::Man::new(Cli::command().name(NAME));
    page.render(&mut text).map_err(|error| Failure::Failed(error.to_string()))?;
    print_out(&String::from_utf8_lossy(&text))
}

/// The environment variable with log levels that take precedence over the configuration.
const LEVELS: &str = "RUST_LOG";

/// Runs the relay until a signal ends it.
pub(crate) fn run(args: ConfigArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new().map_err(failed)?;
    let ended = runtime.block_on(serve(args));
    // Dropping the runtime would wait for name lookups that never complete.
    runtime.shutdown_background();
    ended
}

async fn serve(args: ConfigArgs) -> Result<(), Failure> {
    let loaded = args.load().map_err(Failure::misconfigured)?;
    let levels = env::var(LEVELS).ok().filter(|levels| !levels.is_empty());
    let source = if levels.is_some() { format!("{LEVELS}: ") } else { String::new() };
    start_logging(&with_levels(&loaded.config.log, levels))
        .map_err(|error| Failure::misconfigured(format!("{source}{error}")))?;
    loaded.exposed_files().iter().for_each(ExposedFile::log);
    raise_file_limit();
    let inherited = systemd::inherited_listener().map_err(failed)?;
    let bound = Relay::bind_on(loaded.config.clone(), inherited).await;
    let relay = bound.map_err(|error| Failure::misconfigured(loaded.locate(&error)))?;
    let reloader = relay.reloader(move || args.load());
    // Signals are handled before the relay prints its address, so that a signal sent after that line is not lost.
    let mut signals = Signals::new().map_err(failed)?;
    reload_at_hangups(reloader).map_err(failed)?;
    let pid_file = loaded.config.pid_file.clone().map(PidFile::write).transpose();
    let _pid_file = pid_file.map_err(|error| Failure::misconfigured(loaded.locate(&error)))?;
    if let Err(error) = print_addresses(&relay) {
        warn!(%error, "cannot write the addresses of the relay to standard output; the log has them");
    }
    let stopper = relay.stopper();
    let shutdown = async move {
        match signals.next().await {
            End::Now => stopper.stop(),
            // A second signal ends the drain.
            End::Drain => drop(tokio::spawn(async move {
                signals.next().await;
                stopper.stop();
            })),
        }
    };
    relay.run(shutdown).await.map_err(failed)
}

fn failed(error: io::Error) -> Failure {
    Failure::Failed(error.to_string())
}

fn print_addresses(relay: &Relay) -> io::Result<()> {
    let scheme = if relay.has_tls() { "https" } else { "http" };
    let mut stdout = io::stdout().lock();
    for address in relay.local_addrs() {
        writeln!(stdout, "listening on {scheme}://{address}")?;
    }
    if let Some(address) = relay.udp_addr() {
        writeln!(stdout, "listening on udp://{address}")?;
    }
    if let Some(address) = relay.admin_addr() {
        writeln!(stdout, "monitoring on http://{address}")?;
    }
    if let Some((address, fingerprint)) = relay.webrtc() {
        writeln!(stdout, "data channels on udp://{address} with the fingerprint {fingerprint}")?;
    }
    stdout.flush()
}

/// Returns the log settings, with the levels replaced if any are given.
fn with_levels(config: &LogConfig, levels: Option<String>) -> LogConfig {
    let mut config = config.clone();
    if let Some(levels) = levels {
        config.level = levels;
    }
    config
}

/// Raises the file descriptor limit to the maximum that the system allows. Each client needs two descriptors, which the
/// default does not provide for many clients.
fn raise_file_limit() {
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        warn!(%error, "cannot raise the file descriptor limit, which may limit the number of clients");
    }
}

/// The process id file of a running relay, removed on drop.
#[derive(Debug)]
struct PidFile(PathBuf);

impl PidFile {
    fn write(path: PathBuf) -> Result<Self, ConfigError> {
        match private_file::replace(&path, format!("{}\n", std::process::id()).as_bytes()) {
            Ok(()) => Ok(Self(path)),
            Err(error) => Err(ConfigError::File {
                key: "pid_file",
                path,
                line: None,
                reason: format!("cannot be written ({error}): check the path and the permissions"),
            }),
        }
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // A failure at exit can no longer be reported.
        let _ = fs::remove_file(&self.0);
    }
}

/// Announces a server until a signal ends the command.
pub(crate) fn announce(args: AnnounceArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::Failed(error.to_string()))?.block_on(keep_announced(args))
}

async fn keep_announced(args: AnnounceArgs) -> Result<(), Failure> {
    let mut store = Store::new(&args.redis, args.ca.as_deref()).map_err(failure)?;
    let server = Announcement { name: args.name, address: args.address, kind: args.kind };
    let mut signals = Signals::new().map_err(|error| Failure::Failed(error.to_string()))?;
    let stop = async {
        signals.next().await;
    };
    store.keep_announced(&server, args.lifetime, stop).await.map_err(failure)
}

fn failure(error: DiscoveryError) -> Failure {
    if matches!(error, DiscoveryError::Url | DiscoveryError::NoTls | DiscoveryError::Tls(_)) {
        Failure::misconfigured(error)
    } else {
        Failure::Failed(error.to_string())
    }
}

/// The way in which the relay shuts down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The relay ends immediately, on Ctrl-C.
    Now,
    /// The relay ends after the drain time, on SIGTERM.
    Drain,
}

/// The signals that shut the relay down. They are caught from the creation of this value on, not only while it is
/// awaited.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) -> End {
        tokio::select! {
            _ = self.interrupt.recv() => End::Now,
            _ = self.terminate.recv() => End::Drain,
        }
    }
}

/// The signals that shut the relay down. They are caught from the creation of this value on, not only while it is
/// awaited.
#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn new() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) -> End {
        self.0.recv().await;
        End::Now
    }
}

/// Reloads on every SIGHUP, which would end the program by default. The signal is caught from this call on.
#[cfg(unix)]
fn reload_at_hangups(reloader: Reloader) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    use tracing::{error, info};

    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            systemd::notify(systemd::Event::Reloading);
            match reloader.reload().await {
                Ok(changes) => info!("SIGHUP: configuration reloaded; {changes}"),
                Err(error) => error!("SIGHUP: configuration rejected, the old one stays in use: {error}"),
            }
            systemd::notify(systemd::Event::Ready);
        }
    });
    Ok(())
}

/// Does nothing: Windows has no such signal.
#[cfg(windows)]
fn reload_at_hangups(_: Reloader) -> io::Result<()> {
    Ok(())
}

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
    // Rounded up to whole seconds: a ban of zero seconds would have no effect.
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

/// Prints a response as JSON, or formatted for people.
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

/// Sends a command to the relay and returns the response.
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
            "no relay given: use --admin-socket FILE, or --config FILE with admin.socket set".to_owned(),
        )
    })?;
    let answer = exchange(&socket, method, path, body).map_err(|error| {
        Failure::Misconfigured(format!("no answer from the relay at {} ({error}): check that it runs, and that this user may use the socket", socket.display()))
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
    Err(Failure::Misconfigured(
        "this system has no Unix sockets: write bans to the file of admission.bans, and reload the relay"
            .to_owned(),
    ))
}

#[cfg(unix)]
fn exchange(socket: &Path, method: &str, path: &str, body: &str) -> io::Result<String> {
    use std::os::unix::net::UnixStream;

    /// An upper limit for the response, above the longest client list.
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

/// The timeout of the relay's response.
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
            "no relay given: use --admin-listen ADDR, --pid-file FILE, or --config FILE with one of them set"
                .to_owned(),
        )),
    }
}

fn by_admin_address(address: SocketAddr) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        Failure::Failed(format!(
            "no answer from {address} ({error}): check that the relay runs with this admin address"
        ))
    };
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

fn post(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    // The scope ID of an interface is local to this machine (RFC 6874 section 4).
    let host = SocketAddr::new(address.ip(), address.port());
    write!(
        stream,
        "POST /reload HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    // The response is one line. A longer one comes from another program.
    stream.take(64 * 1024).read_to_string(&mut answer)?;
    Ok(answer)
}

fn by_pid_file(path: &Path) -> Result<(), Failure> {
    let unusable = |reason: String| Failure::Misconfigured(format!("{}: {reason}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    let pid = text.trim().parse().ok().filter(|&pid: &i32| pid > 1);
    let pid = pid.ok_or_else(|| unusable("the file contains no process id".to_owned()))?;
    hang_up(pid).map_err(|error| unusable(format!("cannot signal process {pid} ({error})")))?;
    print_out(&format!("notified process {pid}; its log contains the result\n"))
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
