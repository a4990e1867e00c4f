//! Where the server is: as the build says, or whoever answers on the local network.

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use embassy_time::Duration;
use rakwire_embassy::raknet::Handle;

/// `RAKWIRE_SERVER` at build time, as 192.168.0.10:19132.
pub const FIXED: Option<&str> = option_env!("RAKWIRE_SERVER");
/// The port at which servers on the local network are looked for.
pub const PORT: u16 = 19_132;

/// How long an answer may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// How often to ask with one address: nobody answers one that is wrong.
pub(crate) const ATTEMPTS: u32 = 30;

/// The address of the server; nothing if none answers for half a minute.
pub async fn find(handle: Handle<'_>) -> Option<SocketAddrV4> {
    if let Some(fixed) = FIXED {
        match fixed.parse() {
            Ok(address) => return Some(address),
            Err(_) => {
                defmt::error!("RAKWIRE_SERVER was {} at build time; write it as 192.168.0.10:19132", fixed)
            }
        }
    }
    defmt::info!("looking for a server at port {} of the local network", PORT);
    for _ in 0..ATTEMPTS {
        let pong = handle.discover((Ipv4Addr::BROADCAST, PORT).into(), PATIENCE).await;
        if let Ok(SocketAddr::V4(server)) = pong.map(|pong| pong.from()) {
            return Some(server);
        }
    }
    None
}
