//! A lossy path between a client and a server: the simulator of the core between two sockets.

use std::net::SocketAddr;
use std::sync::Arc;

use rakwire::Instant;
use rakwire::sim::{Conditions, Link};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// The share of datagrams that is lost in each direction.
const LOSS: f64 = 0.05;

/// A proxy in front of one server for one client, until it is dropped.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn start(server: SocketAddr, seed: u64) -> std::io::Result<Self> {
        let front = UdpSocket::bind("127.0.0.1:0").await?;
        let back = UdpSocket::bind("127.0.0.1:0").await?;
        back.connect(server).await?;
        let address = front.local_addr()?;
        Ok(Self { address, task: tokio::spawn(carry(Arc::new(front), Arc::new(back), seed)) })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(front: Arc<UdpSocket>, back: Arc<UdpSocket>, seed: u64) {
    let conditions = Conditions { loss: LOSS, ..Conditions::default() };
    let (mut up, mut down) = (Link::new(conditions, 2 * seed), Link::new(conditions, 2 * seed + 1));
    let (mut from_client, mut from_server) = ([0; 2_048], [0; 2_048]);
    let mut client = None;
    loop {
        tokio::select! {
            received = front.recv_from(&mut from_client) => {
                let Ok((length, from)) = received else { continue };
                client = Some(from);
                up.send(Instant::ZERO, &from_client[..length]);
            }
            received = back.recv(&mut from_server) => {
                let Ok(length) = received else { continue };
                down.send(Instant::ZERO, &from_server[..length]);
            }
        }
        // A datagram that the system refuses is lost, too.
        while let Some(datagram) = up.receive(Instant::ZERO) {
            let _ = back.send(&datagram).await;
        }
        while let (Some(client), Some(datagram)) = (client, down.receive(Instant::ZERO)) {
            let _ = front.send_to(&datagram, client).await;
        }
    }
}
