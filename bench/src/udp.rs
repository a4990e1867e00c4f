//! The roles of the UDP baseline, which measures the maximum throughput and the round-trip time of plain UDP sockets.

use std::io::{self, IoSliceMut, Read};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use nix::sys::socket::{setsockopt, sockopt};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use crate::role;

/// The default size of a datagram in bytes.
pub(crate) const DATAGRAM: usize = 1_400;
/// The number of datagrams in one batched call.
const SEGMENTS: usize = 40;
/// The content of the end markers, the last datagrams of a flood.
const END: &[u8] = b"end";

/// Play one role in a measurement of the UDP baseline.
#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// Echo every datagram, on tokio
    Echo,
    /// Count datagrams until an end marker, and print the count and the time
    Sink,
    /// Send datagrams for a while, as fast as possible
    Flood(Flood),
    /// Send each datagram after the echo of the previous one, on tokio
    Pingpong(Pingpong),
}

#[derive(Debug, Args)]
pub(crate) struct Flood {
    server: SocketAddr,
    /// The time for which to send, in milliseconds
    #[arg(long, default_value_t = 500)]
    millis: u64,
    /// The size of each datagram in bytes
    #[arg(long, default_value_t = DATAGRAM)]
    size: usize,
    /// Send many datagrams per call
    #[arg(long)]
    batched: bool,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Pingpong {
    server: SocketAddr,
    #[arg(long, default_value_t = 10_000)]
    count: u32,
    #[arg(long, default_value_t = 64)]
    size: usize,
}

pub(crate) fn run(role: &Role) -> Result<()> {
    match role {
        Role::Sink => sink(),
        Role::Flood(options) => flood(options),
        Role::Echo => on_tokio(echo()),
        Role::Pingpong(options) => on_tokio(pingpong(*options)),
    }
}

/// Runs a role in a task of a single-threaded runtime, as the measured implementations do.
fn on_tokio(role: impl Future<Output = Result<()>> + Send + 'static) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async { tokio::spawn(role).await? });
    runtime.shutdown_background();
    result
}

fn print_line(line: &str) -> Result<()> {
    role::print_line(line).map_err(anyhow::Error::msg)
}

async fn wait_for_line() -> Result<()> {
    role::wait_for_line().await.map_err(anyhow::Error::msg)
}

/// Prints the number of datagrams and the elapsed time.
fn print_count(count: u64, seconds: f64) -> Result<()> {
    print_line(&serde_json::json!({ "messages": count, "seconds": seconds }).to_string())
}

/// Binds a socket to a free loopback port, with large buffers.
pub(crate) fn bind() -> Result<(UdpSocket, UdpSocketState)> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
    // The system may limit the buffers to less; the measurement still works.
    let _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), 4 << 20);
    let _ = state.set_send_buffer_size(UdpSockRef::from(&socket), 4 << 20);
    socket.set_nonblocking(false)?;
    leave_out_control_messages(&socket)?;
    Ok((socket, state))
}

/// Disables the control messages that quinn-udp enables: arrival time, destination address and traffic class.
///
/// The native driver disables them too.
pub(crate) fn leave_out_control_messages(socket: &UdpSocket) -> Result<()> {
    setsockopt(socket, sockopt::ReceiveTimestampns, &false)?;
    setsockopt(socket, sockopt::Ipv4PacketInfo, &false)?;
    setsockopt(socket, sockopt::IpRecvTos, &false)?;
    Ok(())
}

fn sink() -> Result<()> {
    let (socket, state) = bind()?;
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    print_line(&format!("ready {}", socket.local_addr()?.port()))?;
    let mut bytes = vec![0; BATCH_SIZE * 65_535];
    let mut metas = [RecvMeta::default(); BATCH_SIZE];
    let (mut count, mut began, mut last) = (0_u64, None, Instant::now());
    'receive: loop {
        let mut chunks = bytes.chunks_mut(65_535);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let received = match state.recv(UdpSockRef::from(&socket), &mut slices, &mut metas) {
            // All end markers may have been lost in a full buffer, so a timeout ends the flood too.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && began.is_some() => break 'receive,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                continue;
            }
            received => received?,
        };
        for meta in metas.iter().take(received) {
            // The stride, because generic receive offload (GRO) may have merged several end markers.
            if meta.stride == END.len() {
                break 'receive;
            }
            began.get_or_insert_with(Instant::now);
            count += meta.len.div_ceil(meta.stride.max(1)) as u64;
            last = Instant::now();
        }
    }
    let seconds = began.map_or(0.0, |began| last.duration_since(began).as_secs_f64());
    print_count(count, seconds)?;
    wait_for_end()
}

fn flood(options: &Flood) -> Result<()> {
    let (socket, state) = bind()?;
    print_line("connected")?;
    read_line()?;
    let batch = if options.batched { SEGMENTS.min(state.max_gso_segments()) } else { 1 };
    let contents = vec![0x86; batch * options.size];
    let segment_size = (batch > 1).then_some(options.size);
    let transmit =
        Transmit { destination: options.server, ecn: None, contents: &contents, segment_size, src_ip: None };
    let (began, mut count) = (Instant::now(), 0_u64);
    while began.elapsed() < Duration::from_millis(options.millis) {
        for _ in 0..32 {
            if batch == 1 {
                socket.send_to(&contents, options.server)?;
            } else {
                state.try_send(UdpSockRef::from(&socket), &transmit)?;
            }
            count += batch as u64;
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(5));
        socket.send_to(END, options.server)?;
    }
    print_count(count, seconds)?;
    wait_for_end()
}

fn read_line() -> Result<()> {
    let mut byte = [0];
    while io::stdin().read(&mut byte)? == 1 && byte != *b"\n" {}
    Ok(())
}

fn wait_for_end() -> Result<()> {
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

async fn echo() -> Result<()> {
    let socket = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    print_line(&format!("ready {}", socket.local_addr()?.port()))?;
    let echo = async {
        let mut buffer = [0; 2_048];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await?;
            socket.send_to(buffer.get(..length).unwrap_or_default(), from).await?;
        }
    };
    tokio::select! {
        result = echo => result,
        ended = wait_for_line() => ended,
    }
}

async fn pingpong(options: Pingpong) -> Result<()> {
    let socket = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    print_line("connected")?;
    wait_for_line().await?;
    let message = vec![0x86; options.size];
    let mut buffer = vec![0; options.size];
    let mut nanos = Vec::with_capacity(options.count as usize);
    let began = Instant::now();
    for _ in 0..options.count {
        let sent = Instant::now();
        socket.send_to(&message, options.server).await?;
        let (length, _) = socket.recv_from(&mut buffer).await?;
        nanos.push(u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX));
        if length != options.size {
            bail!("an echo has {length} bytes instead of {}", options.size);
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    role::print_report(options.count, seconds, &mut nanos).map_err(anyhow::Error::msg)?;
    wait_for_line().await
}
