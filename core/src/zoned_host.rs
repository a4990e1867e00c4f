//! Addresses of IPv6 with the name of an interface, as text.

/// Splits `[address%interface]:port` into what stands in the brackets and the port; none for any other text. Link-local
/// addresses mean nothing without their interface (RFC 4007 section 11). Only the system knows the number of an interface: a
/// resolver takes the first part as the name of a host.
///
/// ```
/// assert_eq!(rakwire::split_zoned_host("[fe80::1%eth0]:19132"), Some(("fe80::1%eth0", 19_132)));
/// assert_eq!(rakwire::split_zoned_host("[fe80::1]:19132"), None);
/// ```
#[must_use]
pub fn split_zoned_host(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.strip_prefix('[')?.split_once("]:")?;
    let (address, interface) = host.split_once('%')?;
    let is_host = address.contains(':') && !interface.is_empty();
    is_host.then_some((host, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_with_an_interface_and_a_port_are_taken_apart() {
        assert_eq!(split_zoned_host("[fe80::1%2]:1"), Some(("fe80::1%2", 1)));
        for other in [
            "",
            "[",
            "[]:1",
            "[%]:1",
            "[fe80::1%]:1",
            "[%eth0]:1",
            "fe80::1%eth0",
            "[fe80::1%eth0]",
            "[fe80::1%eth0]:",
            "[fe80::1%eth0]:65536",
            "[fe80::1%eth0]:x",
            "192.0.2.1:1",
            "host:1",
        ] {
            assert_eq!(split_zoned_host(other), None, "{other}");
        }
    }
}
