//! The same without RakNet: what the system's UDP carries at most, and how fast it turns round.

use std::io::{self, IoSliceMut, Read};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use crate::part;

/// Bytes of a full datagram.
pub(crate) const DATAGRAM: usize = 1_400;
/// Datagrams in one call that sends or receives many.
const SEGMENTS: usize = 40;
/// What ends a flood.
const END: &[u8] = b"end";

/// Plays one part of a measurement of the bare socket.
#[derive(Debug, Subcommand)]
pub(crate) enum Part {
    /// Send every datagram back, on tokio.
    Echo,
    /// Count datagrams until one says the end, and tell the rate at which they arrived.
    Sink,
    /// Send full datagrams for a while, as fast as it goes.
    Flood(Flood),
    /// Send datagrams of which each waits for the echo of the one before, on tokio.
    Pingpong(Pingpong),
}

#[derive(Debug, Args)]
pub(crate) struct Flood {
    server: SocketAddr,
    /// For how long
    #[arg(long, default_value_t = 500)]
    millis: u64,
    /// Many datagrams a call
    #[arg(long)]
    batched: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Pingpong {
    server: SocketAddr,
    #[arg(long, default_value_t = 10_000)]
    count: u32,
    #[arg(long, default_value_t = 64)]
    size: usize,
}

pub(crate) fn run(part: &Part) -> Result<()> {
    match part {
        Part::Sink => sink(),
        Part::Flood(options) => flood(options),
        Part::Echo => on_tokio(echo()),
        Part::Pingpong(options) => on_tokio(pingpong(options)),
    }
}

fn on_tokio(part: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(part);
    runtime.shutdown_background();
    result
}

fn say(line: &str) -> Result<()> {
    part::say(line).map_err(anyhow::Error::msg)
}

async fn heard() -> Result<()> {
    part::heard().await.map_err(anyhow::Error::msg)
}

/// Tells a count and the time that it took.
fn verdict(count: u64, seconds: f64) -> Result<()> {
    say(&serde_json::json!({ "messages": count, "seconds": seconds }).to_string())
}

fn bind() -> Result<(UdpSocket, UdpSocketState)> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
    // The system grants what it has been allowed to.
    let _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), 4 << 20);
    let _ = state.set_send_buffer_size(UdpSockRef::from(&socket), 4 << 20);
    socket.set_nonblocking(false)?;
    Ok((socket, state))
}

fn sink() -> Result<()> {
    let (socket, state) = bind()?;
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    say(&format!("ready {}", socket.local_addr()?.port()))?;
    let mut bytes = vec![0; BATCH_SIZE * 65_535];
    let mut metas = [RecvMeta::default(); BATCH_SIZE];
    let (mut count, mut began, mut last) = (0_u64, None, Instant::now());
    'receive: loop {
        let mut chunks = bytes.chunks_mut(65_535);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let received = match state.recv(UdpSockRef::from(&socket), &mut slices, &mut metas) {
            // Silence is the end, too: what says so can be lost in a full buffer.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && began.is_some() => break 'receive,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                continue;
            }
            received => received?,
        };
        for meta in metas.iter().take(received) {
            // Several of them may have been put together.
            if meta.stride == END.len() {
                break 'receive;
            }
            began.get_or_insert_with(Instant::now);
            count += meta.len.div_ceil(meta.stride.max(1)) as u64;
            last = Instant::now();
        }
    }
    let seconds = began.map_or(0.0, |began| last.duration_since(began).as_secs_f64());
    verdict(count, seconds)?;
    wait_for_end()
}

fn flood(options: &Flood) -> Result<()> {
    let (socket, state) = bind()?;
    say("connected")?;
    wait_for_line()?;
    let batch = if options.batched { SEGMENTS.min(state.max_gso_segments()) } else { 1 };
    let contents = vec![0x86; batch * DATAGRAM];
    let segment_size = (batch > 1).then_some(DATAGRAM);
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
    verdict(count, seconds)?;
    wait_for_end()
}

fn wait_for_line() -> Result<()> {
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
    say(&format!("ready {}", socket.local_addr()?.port()))?;
    let turn = async {
        let mut buffer = [0; 2_048];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await?;
            socket.send_to(buffer.get(..length).unwrap_or_default(), from).await?;
        }
    };
    tokio::select! {
        result = turn => result,
        heard = heard() => heard,
    }
}

async fn pingpong(options: &Pingpong) -> Result<()> {
    let socket = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    say("connected")?;
    heard().await?;
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
            bail!("a wrong echo");
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    part::verdict(options.count, seconds, &mut nanos).map_err(anyhow::Error::msg)?;
    heard().await
}
