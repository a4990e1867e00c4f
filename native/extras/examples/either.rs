//! A server that echoes over UDP and TCP, and a client that falls back to TCP if UDP does not get through.
//!
//! ```sh
//! cargo run -p rakwire-extras --features tcp --example either -- server 127.0.0.1:19132
//! cargo run -p rakwire-extras --features tcp --example either -- client 127.0.0.1:19132
//! ```

use std::error::Error;
use std::net::SocketAddr;

use rakwire_extras::tcp;
use rakwire_native::endpoint::Message;
use rakwire_native::{Delivery, SendError, raknet};

/// A connection with which the rest of the program sends and receives, over either transport.
pub(crate) enum Connection {
    Udp(raknet::Connection),
    Tcp(tcp::Connection),
}

impl Connection {
    pub(crate) async fn send(&self, message: &[u8], delivery: Delivery) -> Result<(), SendError> {
        match self {
            Self::Udp(connection) => connection.send(message, delivery).await.map(drop),
            Self::Tcp(connection) => connection.send(message, delivery).await.map(drop),
        }
    }

    pub(crate) async fn recv(&self) -> Option<Message<Delivery>> {
        match self {
            Self::Udp(connection) => connection.recv().await,
            Self::Tcp(connection) => connection.recv().await,
        }
    }

    pub(crate) async fn disconnect(&self) {
        match self {
            Self::Udp(connection) => connection.disconnect().await,
            Self::Tcp(connection) => connection.disconnect().await,
        }
    }
}

async fn echo(connection: Connection) {
    while let Some(message) = connection.recv().await {
        // A client that has left needs no echo.
        let _ = connection.send(&message.bytes, message.delivery).await;
    }
}

/// Listens on the same port over UDP and TCP.
async fn listen(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let over_udp = raknet::Endpoint::bind(address, raknet::Options::server(100)?).await?;
    let over_tcp = tcp::Endpoint::bind(over_udp.local_addr(), tcp::Options::server(100)).await?;
    println!("listening on {}", over_udp.local_addr());
    serve(over_udp, over_tcp).await
}

pub(crate) async fn serve(over_udp: raknet::Endpoint, over_tcp: tcp::Endpoint) -> Result<(), Box<dyn Error>> {
    loop {
        let connection = tokio::select! {
            connection = over_udp.accept() => connection.map(Connection::Udp),
            connection = over_tcp.accept() => connection.map(Connection::Tcp),
        };
        tokio::spawn(echo(connection.ok_or("the endpoint is closed")?));
    }
}

/// Connects over UDP, or over TCP if there is no answer.
pub(crate) async fn connect(server: SocketAddr) -> Result<Connection, Box<dyn Error>> {
    let any = SocketAddr::new(if server.is_ipv4() { [0; 4].into() } else { [0; 16].into() }, 0);
    let over_udp = raknet::Endpoint::bind(any, raknet::Options::client()?).await?;
    match over_udp.connect(server).await {
        Ok(connection) => Ok(Connection::Udp(connection)),
        Err(error) => {
            println!("UDP failed, trying TCP: {error}");
            let over_tcp = tcp::Endpoint::bind(any, tcp::Options::client()).await?;
            Ok(Connection::Tcp(over_tcp.connect(server).await?))
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", address] => listen(address.parse()?).await,
        ["client", server] => {
            let connection = connect(server.parse()?).await?;
            connection.send(b"\x86hello", Delivery::RELIABLE_ORDERED).await?;
            let echo = connection.recv().await.ok_or("the server closed the connection")?;
            println!("echo of {} bytes", echo.bytes.len());
            connection.disconnect().await;
            Ok(())
        }
        _ => Err("usage: either server|client ADDRESS:PORT".into()),
    }
}
