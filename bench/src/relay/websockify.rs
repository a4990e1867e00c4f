//! websockify, a common alternative to the relay. It forwards the bytes of WebSocket messages to a TCP server.
//!
//! TCP does not preserve packets, so the client splits the echoed bytes.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::client::{Client, WebSocketClient};
use super::programs::{LONGEST, Listening};
use crate::process::Program;

const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts websockify in front of `target`, as one process with a thread per client.
pub(super) fn start(core: usize, target: SocketAddr) -> Result<Listening> {
    // websockify does not print its port, so this function chooses one that was free a moment ago.
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    let mut command = Command::new(path());
    command.args(["--libserver", &address.to_string(), &target.to_string()]);
    let program = Program::start(command, core, LONGEST)?;
    let began = Instant::now();
    while TcpStream::connect(address).is_err() {
        if began.elapsed() > START_TIMEOUT {
            bail!(
                "websockify does not listen on {address}: install it with `bash interop/setup.sh websockify`"
            );
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(Listening { program, address })
}

fn path() -> OsString {
    let folder = std::env::var_os("INTEROP_BIN_DIR").unwrap_or_else(|| "target/interop/bin".into());
    std::path::PathBuf::from(folder).join("websockify-peer").into_os_string()
}

/// A TCP server that echoes all bytes and stops accepting connections on drop.
#[derive(Debug)]
pub(super) struct TcpEcho {
    pub(super) address: SocketAddr,
    is_over: Arc<AtomicBool>,
}

impl TcpEcho {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::spawn(move || echo(&stream));
            }
        });
        Ok(Self { address, is_over })
    }
}

impl Drop for TcpEcho {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread, which is blocked while it waits for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

fn echo(mut stream: &TcpStream) -> io::Result<u64> {
    stream.set_nodelay(true)?;
    let mut reader = stream;
    io::copy(&mut reader, &mut stream)
}

/// A client of websockify. All of its packets have the same size, so that it can split the echoed bytes.
pub(super) struct StreamClient {
    socket: WebSocketClient,
    size: usize,
    pending: Vec<u8>,
}

impl StreamClient {
    pub(super) fn connect(address: SocketAddr, size: usize) -> Result<Self> {
        Ok(Self { socket: WebSocketClient::connect(address)?, size, pending: Vec::new() })
    }
}

impl Client for StreamClient {
    fn send(&mut self, packet: &[u8]) -> Result<()> {
        self.socket.send(packet)
    }

    fn flush(&mut self) -> Result<()> {
        self.socket.flush()
    }

    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        let Self { socket, size, pending } = self;
        socket.receive(&mut |bytes| pending.extend_from_slice(bytes))?;
        let packets = pending.chunks_exact(*size);
        let rest = packets.remainder().len();
        packets.for_each(take);
        pending.drain(..pending.len() - rest);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn tcp_bytes_are_echoed_until_the_server_is_dropped() {
        let server = TcpEcho::start().unwrap();
        let mut client = TcpStream::connect(server.address).unwrap();
        client.write_all(b"hello").unwrap();
        let mut back = [0; 5];
        client.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"hello");
        let address = server.address;
        drop(server);
        let began = Instant::now();
        while TcpStream::connect(address).is_ok() {
            assert!(began.elapsed() < START_TIMEOUT, "the echo server still accepts connections");
        }
    }
}
