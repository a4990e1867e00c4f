//! KCP from the crate `tokio_kcp`, with the fastest of its documented settings, which disable congestion control.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, ReadHalf, WriteHalf};
use tokio::sync::Mutex;
use tokio_kcp::{KcpConfig, KcpListener, KcpNoDelayConfig, KcpStream};

use crate::library::{Delivery, Library, Server, socket};
use crate::role::BenchConnection;

pub(crate) struct Kcp;

fn config() -> KcpConfig {
    KcpConfig {
        nodelay: KcpNoDelayConfig::fastest(),
        wnd_size: (1_024, 1_024),
        flush_write: true,
        flush_acks_input: true,
        stream: true,
        ..KcpConfig::default()
    }
}

fn tokio_socket(address: SocketAddr) -> Result<tokio::net::UdpSocket, String> {
    tokio::net::UdpSocket::from_std(socket(address)?).map_err(|error| error.to_string())
}

fn only_reliable(delivery: Delivery) -> Result<(), String> {
    (delivery == Delivery::ReliableOrdered)
        .then_some(())
        .ok_or_else(|| "KCP has no unreliable messages".to_owned())
}

impl Library for Kcp {
    type Connection = Stream;
    type Server = Listener;

    async fn serve(address: SocketAddr, delivery: Delivery) -> Result<Listener, String> {
        only_reliable(delivery)?;
        let listener = KcpListener::from_socket(config(), tokio_socket(address)?).await;
        listener.map(Listener).map_err(|error| error.to_string())
    }

    async fn connect(address: SocketAddr, delivery: Delivery) -> Result<Stream, String> {
        only_reliable(delivery)?;
        let socket = tokio_socket(([127, 0, 0, 1], 0).into())?;
        let stream = KcpStream::connect_with_socket(&config(), socket, address).await;
        let stream = Stream::new(stream.map_err(|error| error.to_string())?);
        // The server detects a connection by its first message, so an empty one is sent.
        stream.send(&[]).await?;
        Ok(stream)
    }
}

pub(crate) struct Listener(KcpListener);

impl Server for Listener {
    type Connection = Stream;

    fn port(&self) -> u16 {
        self.0.local_addr().map_or(0, |address| address.port())
    }

    async fn accept(&mut self) -> Result<Stream, String> {
        let (stream, _) = self.0.accept().await.map_err(|error| error.to_string())?;
        let mut stream = Stream::new(stream);
        stream.recv().await?;
        Ok(stream)
    }
}

/// A KCP connection in stream mode. Each message is prefixed with its length in 4 bytes, big-endian.
pub(crate) struct Stream {
    reader: BufReader<ReadHalf<KcpStream>>,
    writer: Mutex<WriteHalf<KcpStream>>,
}

impl Stream {
    fn new(stream: KcpStream) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self { reader: BufReader::with_capacity(1 << 16, reader), writer: Mutex::new(writer) }
    }
}

impl BenchConnection for Stream {
    type Message = Vec<u8>;

    async fn send(&self, message: &[u8]) -> Result<(), String> {
        let len = u32::try_from(message.len()).map_err(|error| error.to_string())?;
        let framed = [&len.to_be_bytes()[..], message].concat();
        self.writer.lock().await.write_all(&framed).await.map_err(|error| error.to_string())
    }

    async fn recv(&mut self) -> Result<Vec<u8>, String> {
        let len = self.reader.read_u32().await.map_err(|error| error.to_string())?;
        let mut message = vec![0; len as usize];
        self.reader.read_exact(&mut message).await.map_err(|error| error.to_string())?;
        Ok(message)
    }
}
