//! A path for tests that drops datagrams that are too long for it, and tells nothing of them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rakwire::wire::IP_UDP_OVERHEAD;
use rakwire_native::endpoint::{Endpoint, Options};
use rakwire_native::raknet::{Connection, Delivery, RakNet};
use tokio::net::UdpSocket;

/// The path of one client to a server. It ends with the runtime of the test.
pub(super) struct NarrowPath {
    /// Where it begins, which is the server to the client.
    pub(super) address: SocketAddr,
    longest: Arc<AtomicUsize>,
}

impl NarrowPath {
    /// A path that passes everything.
    pub(super) async fn to(server: SocketAddr) -> Self {
        let near = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        far.connect(server).await.unwrap();
        let path =
            Self { address: near.local_addr().unwrap(), longest: Arc::new(AtomicUsize::new(usize::MAX)) };
        tokio::spawn(carry(near, far, Arc::clone(&path.longest)));
        path
    }

    /// It passes no longer IP packets from now on.
    pub(super) fn narrow(&self, longest: usize) {
        self.longest.store(longest, Ordering::Relaxed);
    }
}

async fn carry(near: UdpSocket, far: UdpSocket, longest: Arc<AtomicUsize>) {
    let (mut client, mut to_server, mut to_client) = (None, [0; 2_048], [0; 2_048]);
    let passes = |length| length + usize::from(IP_UDP_OVERHEAD) <= longest.load(Ordering::Relaxed);
    loop {
        tokio::select! {
            Ok((length, from)) = near.recv_from(&mut to_server) => {
                client = Some(from);
                if passes(length) {
                    far.send(&to_server[..length]).await.unwrap();
                }
            }
            Ok(length) = far.recv(&mut to_client) => {
                if let Some(client) = client.filter(|_| passes(length)) {
                    near.send_to(&to_client[..length], client).await.unwrap();
                }
            }
        }
    }
}

/// A client of RakNet that has connected to this address.
pub(super) async fn connect(server: SocketAddr) -> Connection {
    let client = Endpoint::bind("127.0.0.1:0", Options::<RakNet>::client().unwrap()).await.unwrap();
    client.connect(server).await.unwrap()
}

/// Large messages go to a server that sends them back, one after the other. Nearly all of their datagrams are as long as the MTU.
/// Returns the MTU of the connection after that.
pub(super) async fn echo_large(connection: &Connection) -> usize {
    for number in 0..5 {
        let message = vec![0xFE - number; 50_000];
        connection.send(&message, Delivery::RELIABLE_ORDERED).await.unwrap();
        let echo = connection.recv().await;
        let echo = echo.unwrap_or_else(|| panic!("no echo: {:?}", connection.closed_reason()));
        assert!(echo.bytes == message, "another message than {number}");
    }
    connection.mtu().unwrap().into()
}
