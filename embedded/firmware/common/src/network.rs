//! The address on the network, from DHCP or fixed at build time.

use embassy_futures::select::{Either, select};
use embassy_net::udp::UdpSocket;
use embassy_net::{ConfigV4, Ipv4Cidr, Stack, StaticConfigV4};
use embassy_time::{Duration, with_timeout};
use heapless::Vec;

/// Time limit for an address from DHCP.
const DHCP_TIMEOUT: Duration = Duration::from_secs(10);

/// The address for networks without DHCP: `RAKWIRE_ADDRESS` at build time, such as 192.168.0.50/24.
pub const FALLBACK: &str = match option_env!("RAKWIRE_ADDRESS") {
    Some(address) => address,
    None => "192.168.0.50/24",
};

/// Waits until the stack has an address from DHCP. After a timeout, sets the fixed address.
///
/// If the fixed address is already set, DHCP is tried again: a router may take longer to start than a board.
pub async fn wait_for_address(stack: Stack<'_>) {
    if stack.config_v4().is_some_and(|config| Some(config) == fallback()) {
        use_dhcp(stack);
    }
    loop {
        stack.wait_link_up().await;
        // No answer can arrive while the link is down, so the timeout restarts when the link comes up.
        let answer = select(stack.wait_config_up(), stack.wait_link_down());
        match with_timeout(DHCP_TIMEOUT, answer).await {
            Ok(Either::First(())) => break,
            Ok(Either::Second(())) => {}
            Err(_) => use_fallback(stack),
        }
    }
    if let Some(config) = stack.config_v4() {
        defmt::info!("the address is {}", defmt::Display2Format(&config.address));
    }
}

/// Sets the fixed address.
pub fn use_fallback(stack: Stack<'_>) {
    match fallback() {
        Some(config) => {
            defmt::warn!("no answer from DHCP; using {}", FALLBACK);
            stack.set_config_v4(ConfigV4::Static(config));
        }
        None => {
            defmt::error!("RAKWIRE_ADDRESS was {} at build time; use the form 192.168.0.50/24", FALLBACK)
        }
    }
}

fn use_dhcp(stack: Stack<'_>) {
    stack.set_config_v4(ConfigV4::Dhcp(Default::default()));
    // The stack sends a DHCP request when its task is woken. Closing a socket wakes it.
    UdpSocket::new(stack, &mut [], &mut [], &mut [], &mut []).close();
}

fn fallback() -> Option<StaticConfigV4> {
    let address = FALLBACK.parse::<Ipv4Cidr>().ok()?;
    Some(StaticConfigV4 { address, gateway: None, dns_servers: Vec::new() })
}
