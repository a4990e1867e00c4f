//! Tests the life cycle of the package in its own root: installation, start, drain and removal.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::unistd::Uid;
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::Message;
use tungstenite::{WebSocket, client};

use super::contents::FOLDER;
use super::guide::{self, ORIGIN};
use xtask::process::describe;
use xtask::shell::Shell;

const SCRIPT: &str = include_str!("root.sh");
/// Time limit of each step.
const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);
/// The codes with which the relay closes a WebSocket.
const GOING_AWAY: u16 = 1001;
const NO_TOKEN: u16 = 4401;
const OTHER_ORIGIN: u16 = 4403;
/// The first request of a RakNet client, up to its padding.
const REQUEST: &[u8] = b"\x05\x00\xff\xff\x00\xfe\xfe\xfe\xfe\xfd\xfd\xfd\xfd\x12\x34\x56\x78\x0b";

/// Tests the life cycle of the package.
pub(super) fn check(shell: &Shell, package: &Path) -> Result<()> {
    let root = shell.path(FOLDER).join("root");
    std::fs::create_dir_all(&root)?;
    // Both ports are bound before either is released, so that they differ.
    let free = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
    let [listen, admin] = [free[0].local_addr()?, free[1].local_addr()?];
    drop(free);
    let game = UdpSocket::bind(("127.0.0.1", 0))?;
    game.set_read_timeout(Some(LIMIT))?;
    let guide = root.with_file_name("guide.toml");
    std::fs::write(&guide, guide::config(shell)?)?;
    let paths = [package, &root].map(|path| path.display().to_string()).into_iter();
    let addresses =
        [listen.to_string(), admin.to_string(), guide.display().to_string(), game.local_addr()?.to_string()];
    let arguments: Vec<_> = paths.chain(addresses).collect();
    let unshare = ["unshare", "--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh"];
    let sudo: &[&str] = if Uid::effective().is_root() { &[] } else { &["sudo", "-n"] };
    let line = sudo.iter().copied().chain(unshare).chain(arguments.iter().map(String::as_str));
    let mut running = shell.cmd("env", line).input(Stdio::piped()).spawn()?;
    let mut input = running.take_stdin()?;
    let mut is_running = || Ok(running.poll()?.is_none());
    let used = wait_until_ready(admin, &mut is_running)
        .and_then(|()| use_relay(listen, &mut input))
        .and_then(|()| wait_until_guarded(listen, admin, &mut is_running))
        .and_then(|()| {
            closed_with(listen, "https://example.com", OTHER_ORIGIN).context("a page of another origin")
        })
        .and_then(|()| closed_with(listen, ORIGIN, NO_TOKEN).context("a client without a token"))
        .and_then(|()| play(listen, &std::fs::read_to_string(root.with_extension("token"))?, &game))
        .and_then(|()| Ok(writeln!(input)?));
    drop(input);
    let status = running.wait(Some(LIMIT))?;
    // The script fails as well if its input ends early, so the error of the relay is reported first.
    used?;
    if !status.success() {
        bail!("the package failed in its root: {}", describe(status));
    }
    shell.print("installed, started, drained, configured as in docs/relay.md, started, played on with a token, drained and removed");
    Ok(())
}

/// Waits until the relay is ready and serves metrics.
fn wait_until_ready(admin: SocketAddr, mut is_running: impl FnMut() -> Result<bool>) -> Result<()> {
    let started = Instant::now();
    while started.elapsed() < LIMIT {
        // A relay that is shutting down may accept a request without answering it.
        if get(admin, "/readyz").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
            let metrics = get(admin, "/metrics")?;
            return if metrics.contains("rakwire_relay_ready 1") {
                Ok(())
            } else {
                bail!("/metrics returned {metrics}")
            };
        }
        if !is_running()? {
            bail!("the relay ended before it was ready");
        }
        thread::sleep(POLL);
    }
    bail!("the relay was not ready within {} s", LIMIT.as_secs())
}

/// Connects a client, stops the relay, and checks that the client is notified.
fn use_relay(listen: SocketAddr, input: &mut ChildStdin) -> Result<()> {
    let client = open(listen, "", "")?;
    writeln!(input)?;
    match code_of_close(client)? {
        GOING_AWAY => Ok(()),
        code => bail!("the client was not notified of the shutdown, but closed with {code}"),
    }
}

/// Waits until the relay runs with the configuration of the guide, which refuses clients without an origin.
fn wait_until_guarded(
    listen: SocketAddr,
    admin: SocketAddr,
    mut is_running: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let started = Instant::now();
    while started.elapsed() < LIMIT {
        wait_until_ready(admin, &mut is_running)?;
        if closed_with(listen, "", OTHER_ORIGIN).is_ok() {
            return Ok(());
        }
        thread::sleep(POLL);
    }
    bail!("the relay did not start again within {} s", LIMIT.as_secs())
}

/// Opens a WebSocket as a page of an origin, and checks the code with which the relay closes it.
fn closed_with(listen: SocketAddr, origin: &str, expected: u16) -> Result<()> {
    let code = code_of_close(open(listen, "", origin)?)?;
    if code == expected { Ok(()) } else { bail!("the relay closed with code {code}, not {expected}") }
}

/// Checks that with a token the first request of a RakNet client reaches the game server, and its reply reaches the
/// client.
fn play(listen: SocketAddr, token: &str, game: &UdpSocket) -> Result<()> {
    let mut client =
        open(listen, &format!("&token={}", token.trim()), ORIGIN).context("a client with a token")?;
    let request = [REQUEST, &[0; 82]].concat();
    client.send(Message::binary(request.clone()))?;
    let mut buffer = [0; 2_048];
    let deadline = Instant::now() + LIMIT;
    loop {
        let (length, from) = game.recv_from(&mut buffer).context("the game server received nothing")?;
        // The relay itself sends pings.
        if buffer[..length] == request {
            game.send_to(&request, from)?;
            break;
        }
        if Instant::now() > deadline {
            bail!("the game server received only pings, and not the client's datagram");
        }
    }
    let echo = client.read().context("the client received nothing")?;
    if echo.is_binary() && echo.clone().into_data()[..] == request[..] {
        Ok(())
    } else {
        bail!("the client received {echo:?}")
    }
}

/// Opens a WebSocket to the target `game`.
fn open(relay: SocketAddr, query: &str, origin: &str) -> Result<WebSocket<TcpStream>> {
    let mut request = format!("ws://{relay}/ws?target=game{query}").into_client_request()?;
    if !origin.is_empty() {
        request.headers_mut().insert("Origin", origin.parse()?);
    }
    let opened = client(request, connect(relay)?);
    Ok(opened.map_err(|error| anyhow::anyhow!("the relay did not open a WebSocket: {error}"))?.0)
}

fn code_of_close(mut client: WebSocket<TcpStream>) -> Result<u16> {
    loop {
        if let Message::Close(frame) = client.read().context("the relay did not close the WebSocket")? {
            return Ok(frame.context("the relay closed without a code")?.code.into());
        }
    }
}

fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = connect(address)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    Ok(std::io::read_to_string(stream)?)
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    Ok(stream)
}
