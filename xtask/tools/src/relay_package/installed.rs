//! The life cycle of the package in its own root: installed, started, drained, removed.

use std::io::{Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, SockaddrIn, sockopt};
use nix::unistd::Uid;

use super::contents::FOLDER;
use super::guide::{self, ORIGIN};
use xtask::process::describe;
use xtask::shell::Shell;

const SCRIPT: &str = include_str!("root.sh");
/// Time limit of each step.
const LIMIT: Duration = Duration::from_secs(60);

/// Tests the life cycle of the package.
pub(super) fn check(shell: &Shell, package: &Path) -> Result<()> {
    let root = shell.path(FOLDER).join("root");
    std::fs::create_dir_all(&root)?;
    let [(_listen, listen), (_admin, admin)] = [reserve_address()?, reserve_address()?];
    let game = UdpSocket::bind(("127.0.0.1", 0))?;
    game.set_read_timeout(Some(LIMIT))?;
    let guide = root.with_file_name("guide.toml");
    std::fs::write(&guide, guide::config(shell)?)?;
    let arguments = [
        package.display().to_string(),
        root.display().to_string(),
        listen.to_string(),
        admin.to_string(),
        guide.display().to_string(),
        game.local_addr()?.to_string(),
    ];
    let unshare = ["unshare", "--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh"];
    let line = unshare.into_iter().chain(arguments.iter().map(String::as_str));
    let mut running = if Uid::effective().is_root() {
        let mut line = line;
        let program = line.next().unwrap_or_default();
        shell.cmd(program, line)
    } else {
        shell.cmd("sudo", ["-n"].into_iter().chain(line))
    }
    .input(Stdio::piped())
    .spawn()?;
    let mut input = running.take_stdin()?;
    let mut is_running = || Ok(running.poll()?.is_none());
    let used = wait_until_ready(admin, &mut is_running)
        .and_then(|()| use_relay(listen, admin, &mut input))
        .and_then(|()| wait_until_guarded(listen, admin, &mut is_running))
        .and_then(|()| follow_guide(listen))
        .and_then(|()| play(listen, &std::fs::read_to_string(root.with_extension("token"))?, &game))
        .and_then(|()| Ok(writeln!(input)?));
    drop(input);
    let status = running.wait(Some(LIMIT))?;
    // Without its input the script fails too, so the error of the relay is reported first.
    used?;
    if !status.success() {
        bail!("the package failed in its root: {}", describe(status));
    }
    shell.print(
        "installed, started, drained, configured as in docs/relay.md, started, played on with a token, drained and removed",
    );
    Ok(())
}

/// Waits until the relay accepts clients.
fn wait_until_ready(admin: SocketAddr, mut is_running: impl FnMut() -> Result<bool>) -> Result<()> {
    let started = Instant::now();
    while started.elapsed() < LIMIT {
        // A relay that is shutting down may accept a request without answering it.
        if get(admin, "/readyz").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
            return Ok(());
        }
        if !is_running()? {
            bail!("the relay ended before it was ready");
        }
        thread::sleep(Duration::from_millis(100));
    }
    bail!("the relay was not ready within {} s", LIMIT.as_secs())
}

/// Connects a client, and stops the relay: the client must be notified.
fn use_relay(listen: SocketAddr, admin: SocketAddr, input: &mut ChildStdin) -> Result<()> {
    let ready = get(admin, "/readyz")?;
    if !ready.starts_with("HTTP/1.1 200") {
        bail!("/readyz returned {ready}");
    }
    let metrics = get(admin, "/metrics")?;
    if !metrics.contains("rakwire_relay_ready 1") {
        bail!("/metrics returned {metrics}");
    }
    let mut client = open_websocket(listen)?;
    writeln!(input)?;
    let mut received = Vec::new();
    client.read_to_end(&mut received).context("the relay did not close the connection")?;
    // A close frame with the code 1001.
    if !received.windows(2).any(|code| code == 1001u16.to_be_bytes()) {
        bail!("the client was not notified of the shutdown: {received:02x?}");
    }
    Ok(())
}

/// Opens a WebSocket to the target `game` without sending anything.
fn open_websocket(relay: SocketAddr) -> Result<TcpStream> {
    let (head, stream) = ask_for_websocket(relay, "", "")?;
    if !head.starts_with("HTTP/1.1 101") {
        bail!("the relay did not open a WebSocket: {head}");
    }
    Ok(stream)
}

/// Returns the response header, and the data after it.
fn ask_for_websocket(relay: SocketAddr, query: &str, header: &str) -> Result<(String, TcpStream)> {
    let mut stream = connect(relay)?;
    write!(
        stream,
        "GET /ws?target=game{query} HTTP/1.1\r\nHost: {relay}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{header}\r\n"
    )?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? == 1 {
        head.extend(byte);
    }
    Ok((String::from_utf8_lossy(&head).into_owned(), stream))
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
        if closed_with(listen, "", 4403).is_ok() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
    }
    bail!("the relay did not start again within {} s", LIMIT.as_secs())
}

/// Checks that a page of another origin and a client without a token are refused.
fn follow_guide(listen: SocketAddr) -> Result<()> {
    closed_with(listen, "Origin: https://example.com\r\n", 4403).context("a page of another origin")?;
    closed_with(listen, &format!("Origin: {ORIGIN}\r\n"), 4401).context("a client without a token")
}

/// Opens a WebSocket with a header, and checks the code with which the relay closes it.
fn closed_with(listen: SocketAddr, header: &str, code: u16) -> Result<()> {
    let (head, mut client) = ask_for_websocket(listen, "", header)?;
    if !head.starts_with("HTTP/1.1 101") {
        bail!("the relay did not open a WebSocket: {head}");
    }
    let mut received = Vec::new();
    client.read_to_end(&mut received).context("the relay did not close the WebSocket")?;
    if !received.windows(2).any(|bytes| bytes == code.to_be_bytes()) {
        bail!("the relay did not close with code {code}: {received:02x?}");
    }
    Ok(())
}

/// Checks that with a token the first request of a RakNet client reaches the game server, and its reply reaches the
/// client.
fn play(listen: SocketAddr, token: &str, game: &UdpSocket) -> Result<()> {
    const MAGIC: &[u8] = b"\x00\xff\xff\x00\xfe\xfe\xfe\xfe\xfd\xfd\xfd\xfd\x12\x34\x56\x78";

    let (head, mut client) =
        ask_for_websocket(listen, &format!("&token={}", token.trim()), &format!("Origin: {ORIGIN}\r\n"))?;
    if !head.starts_with("HTTP/1.1 101") {
        bail!("a client with a token received {head}");
    }
    let request = [b"\x05", MAGIC, b"\x0b", &[0; 82]].concat();
    // A binary message of 100 bytes, with a zero mask.
    client.write_all(&[&[0x82, 0x80 | 100, 0, 0, 0, 0], &request[..]].concat())?;
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
    let mut echo = [0; 102];
    client.read_exact(&mut echo).context("the client received nothing")?;
    if echo[..2] != [0x82, 100] || echo[2..] != request {
        bail!("the client received {echo:02x?}");
    }
    Ok(())
}

fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = connect(address)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    Ok(stream)
}

/// Reserves an address that no other program gets while the socket is open. The socket does not listen, so the relay,
/// which allows address reuse, can.
fn reserve_address() -> Result<(OwnedFd, SocketAddr)> {
    let reserved = socket::socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    socket::setsockopt(&reserved, sockopt::ReuseAddr, &true)?;
    socket::bind(reserved.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0))?;
    let address = socket::getsockname::<SockaddrIn>(reserved.as_raw_fd())?;
    Ok((reserved, SocketAddrV4::from(address).into()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_reserved_address_is_available_to_one_program() {
        let (_reserved, address) = reserve_address().unwrap();
        // The standard library enables address reuse, as the relay does.
        let _listener = TcpListener::bind(address).unwrap();
        TcpListener::bind(address).unwrap_err();
    }
}
