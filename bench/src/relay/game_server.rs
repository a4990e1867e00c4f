//! The game server behind the relay, which echoes every datagram.

use std::io;
use std::net::SocketAddr;

use anyhow::Result;

use super::socket::{Batch, Calls, Socket};

/// The maximum number of receive calls per call of `serve`, so that the clients in the same thread can continue.
const CALLS_MAX: usize = 16;

#[derive(Debug)]
pub(super) struct GameServer {
    socket: Socket,
    batch: Batch,
    calls: Calls,
}

impl GameServer {
    pub(super) fn bind(calls: Calls) -> Result<Self> {
        Ok(Self { socket: Socket::bind()?, batch: Batch::new(), calls })
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Echoes the datagrams that have arrived.
    pub(super) fn serve(&mut self) -> Result<()> {
        let Self { socket, batch, calls } = self;
        for _ in 0..CALLS_MAX {
            if !socket.receive(batch, |from, bytes, size| socket.send(from, bytes, size, *calls))? {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_datagram_is_echoed_singly_and_in_bursts() {
        for calls in [Calls::Single, Calls::Bursts] {
            let mut server = GameServer::bind(calls).unwrap();
            let (client, mut batch) = (Socket::bind().unwrap(), Batch::new());
            client.send(server.local_addr().unwrap(), &[7; 95], 10, calls).unwrap();
            let mut lengths = Vec::new();
            while lengths.len() < 10 {
                server.serve().unwrap();
                let take = |_, bytes: &[u8], size: usize| {
                    lengths.extend(bytes.chunks(size).map(<[u8]>::len));
                    Ok(())
                };
                client.receive(&mut batch, take).unwrap();
            }
            assert_eq!(lengths, [10, 10, 10, 10, 10, 10, 10, 10, 10, 5], "{calls:?}");
        }
    }
}
