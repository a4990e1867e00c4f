//! Where the server of the game is: as the build says, or whoever answers on the local network.
//!
//! The Game Protocol knows no search. RakNet does, and a server of the game answers its ping: one datagram there and one
//! back, for which no peer of RakNet is needed. Addresses are those of IPv4: to read and print the others takes flash.

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{IpAddress, IpEndpoint, Stack};
use embassy_time::{Instant, with_timeout};
use rakwire::raknet::{Guid, PingScope};
use rakwire::wire::offline::{MAGIC, Offline};
use rakwire::wire::{Reader, Source, Wire, WireError, Writer, id};
use snowfight::advertisement::Advertisement;

use crate::server::{ATTEMPTS, PATIENCE, PORT};

/// `RAKWIRE_GAME` at build time, as 192.168.0.10:8999.
pub const FIXED: Option<&str> = option_env!("RAKWIRE_GAME");

/// Bytes of the longest answer that is looked at; one of this game has 15 at most behind its 35 of RakNet.
const ANSWER: usize = 128;
/// Bytes of a ping.
const PING: usize = 64;

/// How to find the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// It is here.
    At(SocketAddrV4),
    /// Whoever hears a ping to this address, which may be the broadcast one.
    Ping(SocketAddrV4),
}

impl Search {
    /// As the build says; the local network if it says nothing.
    #[must_use]
    pub fn as_built() -> Self {
        let everybody = Self::Ping(SocketAddrV4::new(Ipv4Addr::BROADCAST, PORT));
        let Some(fixed) = FIXED else { return everybody };
        match fixed.parse() {
            Ok(address) => Self::At(address),
            Err(_) => {
                defmt::error!("RAKWIRE_GAME was {} at build time; write it as 192.168.0.10:8999", fixed);
                everybody
            }
        }
    }

    /// The address of the server; nothing if none answers for half a minute.
    pub async fn find(self, stack: Stack<'_>) -> Option<SocketAddrV4> {
        let to = match self {
            Self::At(address) => return Some(address),
            Self::Ping(to) => to,
        };
        defmt::info!("looking for a game at {}", defmt::Display2Format(&to));
        for _ in 0..ATTEMPTS {
            if let Ok(Some(server)) = with_timeout(PATIENCE, ask(stack, to)).await {
                return Some(server);
            }
        }
        None
    }
}

/// Sends a ping, and waits for the answer of a game.
async fn ask(stack: Stack<'_>, to: SocketAddrV4) -> Option<SocketAddrV4> {
    let (mut in_places, mut in_bytes) = ([PacketMetadata::EMPTY; 4], [0; 4 * ANSWER]);
    let (mut out_places, mut out_bytes) = ([PacketMetadata::EMPTY; 1], [0; PING]);
    let mut socket = UdpSocket::new(stack, &mut in_places, &mut in_bytes, &mut out_places, &mut out_bytes);
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

/// What a server says of itself in an answer. Of RakNet's messages without a connection this is the only one that is of
/// interest here, and reading all of them would take flash.
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
