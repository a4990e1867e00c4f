//! An address on the network: by DHCP, or a fixed one where nobody gives any.

use embassy_net::{ConfigV4, Ipv4Cidr, Stack, StaticConfigV4};
use embassy_time::{Duration, with_timeout};
use heapless::Vec;

/// How long DHCP may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The address that is used without DHCP: `RAKWIRE_ADDRESS` at build time, as 192.168.0.50/24.
pub const FALLBACK: &str = match option_env!("RAKWIRE_ADDRESS") {
    Some(address) => address,
    None => "192.168.0.50/24",
};

/// Waits until the stack, which tries DHCP, has an address; sets the fixed one if that takes too long.
pub async fn wait_for_address(stack: Stack<'_>) {
    stack.wait_link_up().await;
    if with_timeout(PATIENCE, stack.wait_config_up()).await.is_err() {
        use_fallback(stack);
        stack.wait_config_up().await;
    }
    if let Some(config) = stack.config_v4() {
        defmt::info!("this is {}", defmt::Display2Format(&config.address));
    }
}

/// Sets the fixed address.
pub fn use_fallback(stack: Stack<'_>) {
    match FALLBACK.parse::<Ipv4Cidr>() {
        Ok(address) => {
            defmt::warn!("no answer from DHCP; using {}", FALLBACK);
            let config = StaticConfigV4 { address, gateway: None, dns_servers: Vec::new() };
            stack.set_config_v4(ConfigV4::Static(config));
        }
        Err(_) => {
            defmt::error!("RAKWIRE_ADDRESS was {} at build time; write it as 192.168.0.50/24", FALLBACK)
        }
    }
}
