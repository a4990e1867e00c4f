//! The address of the server: fixed at build time, or by discovery on the local network.

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use embassy_time::Duration;
use rakwire_embassy::raknet::Handle;

/// The address of the server: `RAKWIRE_SERVER` at build time, such as 192.168.0.10:19132.
pub const FIXED: Option<&str> = option_env!("RAKWIRE_SERVER");
/// The port for discovery on the local network.
pub const PORT: u16 = 19_132;

/// Time limit for a pong.
pub(crate) const PONG_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum number of pings of a search. The search then ends, because the address of the board may have changed
/// since its start.
pub(crate) const ATTEMPTS: u32 = 30;

/// Finds the server. Returns `None` if no server answers within half a minute.
pub async fn find(handle: Handle<'_>) -> Option<SocketAddrV4> {
    if let Some(fixed) = FIXED {
        match fixed.parse() {
            Ok(address) => return Some(address),
            Err(_) => {
                defmt::error!("RAKWIRE_SERVER was {} at build time; use the form 192.168.0.10:19132", fixed)
            }
        }
    }
    defmt::info!("looking for a server on port {} of the local network", PORT);
    for _ in 0..ATTEMPTS {
        let pong = handle.discover((Ipv4Addr::BROADCAST, PORT).into(), PONG_TIMEOUT).await;
        if let Ok(SocketAddr::V4(server)) = pong.map(|pong| pong.from()) {
            return Some(server);
        }
    }
    None
}
