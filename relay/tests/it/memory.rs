//! The memory usage of the program.

use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::program::Program;
use crate::support::{Client, Server, within};

/// Maximum memory per idle client without TLS, in bytes.
const IDLE_BYTES: u64 = 8 * 1024;

/// Returns a value of a process in kibibytes, from its status file.
fn kilobytes(child: &Child, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Returns the resident memory.
fn resident(child: &Child) -> u64 {
    kilobytes(child, "VmRSS")
}

#[tokio::test]
async fn a_client_that_only_sends_does_not_fill_the_memory() {
    let server = Server::bind().await;
    let program = Program::start(server.address());
    let mut client = Client::connect(program.address, "/ws?target=game").await;
    client.send(b"hello").await;
    let (_, from) = server.receive().await;
    let before = resident(&program.child);
    // A client that does not read gets 70 MB, and sends 7 MB to a server that does not read.
    for _ in 0..1000 {
        for _ in 0..50 {
            server.send(&[5; 1400], from).await;
        }
        for _ in 0..5 {
            client.send(&[6; 1400]).await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let after = resident(&program.child);
    assert!(after < before + 16 * 1024, "{before} kB before, {after} kB after");
}

/// Connects clients that leave in different ways.
async fn churn(relay: SocketAddr, clients: usize) {
    for number in 0..clients {
        let mut client = if number % 2 == 0 {
            Client::connect(relay, "/ws?target=game").await
        } else {
            Client::connect_with_control(relay, "/ws?target=game").await
        };
        client.send(&[number as u8; 1_000]).await;
        client.datagram().await;
        match number % 3 {
            0 => client.0.close(None).await.unwrap(),
            1 => client.tcp().shutdown().await.unwrap(),
            _ => {}
        }
    }
}

#[tokio::test]
async fn memory_does_not_grow_with_past_clients() {
    let program = Program::start_with(Server::echo().await, &["--max-clients", "60"], Stdio::null());
    churn(program.address, 400).await;
    let before = resident(&program.child);
    churn(program.address, 2_000).await;
    let after = resident(&program.child);
    assert!(after < before + 6 * 1024, "{before} kB before, {after} kB after");
}

/// Opens a WebSocket without a library, because its buffers would exceed the measured memory.
async fn open_and_echo(relay: SocketAddr) -> TcpStream {
    const ECHOED: usize = 2 + 100;

    let mut stream = TcpStream::connect(relay).await.unwrap();
    let request = format!(
        "GET /ws?target=game HTTP/1.1\r\nHost: {relay}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(within(stream.read_u8()).await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
    // A binary message of 100 bytes, with a mask of zeros.
    let message = [&[0x82, 0x80 | 100, 0, 0, 0, 0][..], &[7; 100]].concat();
    stream.write_all(&message).await.unwrap();
    let mut echo = [0; ECHOED];
    within(stream.read_exact(&mut echo)).await.unwrap();
    assert_eq!(echo[2..], [7; 100]);
    stream
}

#[tokio::test]
async fn an_idle_client_takes_little_memory() {
    const CLIENTS: u64 = 1_000;

    rlimit::increase_nofile_limit(u64::MAX).unwrap();
    let more = ["--max-clients", "2000", "--clients-per-address", "0"];
    let program = Program::start_with(Server::echo().await, &more, Stdio::null());
    let mut clients = vec![open_and_echo(program.address).await];
    let before = kilobytes(&program.child, "RssAnon");
    for _ in 0..CLIENTS {
        clients.push(open_and_echo(program.address).await);
    }
    let each = (kilobytes(&program.child, "RssAnon") - before) * 1024 / CLIENTS;
    assert!(each < IDLE_BYTES, "{each} bytes for each of {CLIENTS} clients");
}
