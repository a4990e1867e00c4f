//! The address of the game server: fixed at build time, or by discovery on the local network.
//!
//! The Game Protocol has no discovery, but a server of the game answers RakNet's ping. Discovery takes one datagram in
//! each direction, and no RakNet peer. Only IPv4 is supported, because parsing and printing IPv6 addresses takes flash.

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{IpAddress, IpEndpoint, Stack};
use embassy_time::{Instant, with_timeout};
use rakwire::raknet::{Guid, PingScope};
use rakwire::wire::offline::{MAGIC, Offline};
use rakwire::wire::{Reader, Source, Wire, WireError, Writer, id};
use snowfight::advertisement::Advertisement;

use crate::server::{ATTEMPTS, PONG_TIMEOUT, PORT};

/// The address of the game: `RAKWIRE_GAME` at build time, such as 192.168.0.10:8999.
pub const FIXED: Option<&str> = option_env!("RAKWIRE_GAME");

/// The maximum length of an accepted pong in bytes. A pong of this game has at most 35 + 15 bytes.
const PONG: usize = 128;
/// The size of the buffer for a ping in bytes.
const PING: usize = 64;

/// The method of finding the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discovery {
    /// A fixed address.
    At(SocketAddrV4),
    /// A ping to this address, which may be the broadcast address.
    Ping(SocketAddrV4),
}

impl Discovery {
    /// Returns the address from the build, or discovery on the local network if there is none.
    #[must_use]
    pub fn as_built() -> Self {
        let broadcast = Self::Ping(SocketAddrV4::new(Ipv4Addr::BROADCAST, PORT));
        let Some(fixed) = FIXED else { return broadcast };
        match fixed.parse() {
            Ok(address) => Self::At(address),
            Err(_) => {
                defmt::error!("RAKWIRE_GAME was {} at build time; use the form 192.168.0.10:8999", fixed);
                broadcast
            }
        }
    }

    /// Finds the server. Returns `None` if no server answers within half a minute.
    pub async fn find(self, stack: Stack<'_>) -> Option<SocketAddrV4> {
        let to = match self {
            Self::At(address) => return Some(address),
            Self::Ping(to) => to,
        };
        defmt::info!("looking for a game at {}", defmt::Display2Format(&to));
        for _ in 0..ATTEMPTS {
            if let Ok(Some(server)) = with_timeout(PONG_TIMEOUT, ping_server(stack, to)).await {
                return Some(server);
            }
        }
        None
    }
}

/// Sends a ping, and waits for the pong from a game server.
async fn ping_server(stack: Stack<'_>, to: SocketAddrV4) -> Option<SocketAddrV4> {
    let (mut in_metadata, mut in_bytes) = ([PacketMetadata::EMPTY; 4], [0; 4 * PONG]);
    let (mut out_metadata, mut out_bytes) = ([PacketMetadata::EMPTY; 1], [0; PING]);
    let mut socket =
        UdpSocket::new(stack, &mut in_metadata, &mut in_bytes, &mut out_metadata, &mut out_bytes);
    socket.bind(0).ok()?;
    let mut ping = [0; PING];
    let mut writer = Writer::new(&mut ping);
    let time = Instant::now().as_millis();
    Offline::Ping { scope: PingScope::Any, time, guid: Some(Guid(time)) }.write(&mut writer).ok()?;
    let to = IpEndpoint::new(IpAddress::Ipv4(*to.ip()), to.port());
    socket.send_to(writer.finish(), to).await.ok()?;
    loop {
        let server = socket.recv_from_with(|bytes, meta| {
            let from = SocketAddr::new(meta.endpoint.addr.into(), meta.endpoint.port);
            match Advertisement::server(read_pong(bytes).ok()?, from)? {
                SocketAddr::V4(server) => Some(server),
                SocketAddr::V6(_) => None,
            }
        });
        if let Some(server) = server.await {
            return Some(server);
        }
    }
}

/// Returns the data of a pong. Parsing only this offline message saves flash.
fn read_pong(datagram: &[u8]) -> Result<&[u8], WireError> {
    let mut reader = Reader::new(datagram);
    if reader.u8("id")? != id::UNCONNECTED_PONG {
        return Err(WireError::UnknownId);
    }
    let (_time, _guid) = (reader.u64("time")?, reader.u64("guid")?);
    if reader.bytes("magic", MAGIC.len())? == MAGIC {
        Ok(reader.rest("data"))
    } else {
        Err(WireError::BadMagic)
    }
}
