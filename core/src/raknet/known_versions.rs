//! The protocol versions that servers were heard to speak, so that the next connection begins with the right one.

use core::net::SocketAddr;

use heapless::Deque;

use super::features::{UNCONNECTED, room};

/// Whether versions are remembered. Without an allocator there is no memory for them, and a client asks each time.
const REMEMBERS: bool = cfg!(feature = "alloc");
/// Whether a client can ask for the version of a server before it connects.
pub(super) const ASKS: bool = UNCONNECTED;
/// Servers whose version is remembered; a further one pushes the oldest out.
const SERVERS: usize = room(REMEMBERS, 16);

/// The protocol version of Minecraft Bedrock today.
pub(super) const BEDROCK: u8 = 11;

/// The protocol versions of the servers that answered last.
#[derive(Debug, Default)]
pub(super) struct KnownVersions(Deque<(SocketAddr, u8), SERVERS>);

impl KnownVersions {
    /// The version of the server at this address, if it was heard.
    pub(super) fn of(&self, server: SocketAddr) -> Option<u8> {
        if !REMEMBERS {
            return None;
        }
        self.0.iter().find(|(address, _)| *address == server).map(|(_, version)| *version)
    }

    pub(super) fn remember(&mut self, server: SocketAddr, version: u8) {
        if !REMEMBERS {
            return;
        }
        if let Some((_, known)) = self.0.iter_mut().find(|(address, _)| *address == server) {
            *known = version;
            return;
        }
        if self.0.is_full() {
            self.0.pop_front();
        }
        // There is room now.
        let _ = self.0.push_back((server, version));
    }
}
