//! The MTU of a network interface.

use embassy_net::driver::{Driver, HardwareAddress};

/// The length of an Ethernet header (IEEE 802.3) in bytes, which a driver's MTU includes.
const ETHERNET_HEADER: usize = 14;

/// Returns the maximum length in bytes of an IP packet that a network driver sends, for
/// [`Config::interface_mtu`](rakwire::raknet::Config::interface_mtu).
///
/// Set that option if the value is below 1,500, as for a modem or a tunnel. Otherwise longer datagrams are dropped
/// between the peer and the driver. Connections then take seconds to open, and get a smaller MTU than possible. The
/// network stack does not expose the MTU, so call this function before the stack takes the driver.
///
/// ```
/// use embassy_net::driver::HardwareAddress;
/// use embassy_net_driver_channel as channel;
/// use rakwire::raknet::Config;
///
/// let mut state = channel::State::<1_414, 2, 2>::new();
/// let (_, driver) = channel::new(&mut state, HardwareAddress::Ethernet([2, 0, 0, 0, 0, 1]));
/// let mut config = Config::new([7; 32]); // 32 random bytes in a real program
/// config.interface_mtu = rakwire_embassy::interface_mtu(&driver);
/// assert_eq!(config.interface_mtu, 1_400);
/// ```
#[must_use]
pub fn interface_mtu(driver: &impl Driver) -> u16 {
    let has_header = matches!(driver.hardware_address(), HardwareAddress::Ethernet(_));
    let header = if has_header { ETHERNET_HEADER } else { 0 };
    let mtu = driver.capabilities().max_transmission_unit.saturating_sub(header);
    u16::try_from(mtu).unwrap_or(u16::MAX)
}
