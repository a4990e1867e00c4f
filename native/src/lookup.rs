//! Addresses of servers from text.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use rakwire::split_zoned_host;

/// Finds the addresses that `host:port` stands for. The host is a name or an address, which may have the name of an interface, as
/// in `[fe80::1%eth0]:19132`; those functions of the standard library and of tokio that take text know only the number of one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// assert_eq!(rakwire_native::lookup("127.0.0.1:19132").await?, ["127.0.0.1:19132".parse().unwrap()]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of the system's resolver, and for text that is no `host:port`.
pub async fn lookup(target: &str) -> io::Result<Vec<SocketAddr>> {
    Ok(match split_zoned_host(target) {
        Some(host) => tokio::net::lookup_host(host).await?.collect(),
        None => tokio::net::lookup_host(target).await?.collect(),
    })
}

/// As [`lookup`], for programs without a runtime: the thread waits for the resolver.
///
/// ```
/// assert!(rakwire_native::lookup_blocking("[::1]:19132")?[0].is_ipv6());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`lookup`].
pub fn lookup_blocking(target: &str) -> io::Result<Vec<SocketAddr>> {
    Ok(match split_zoned_host(target) {
        Some(host) => host.to_socket_addrs()?.collect(),
        None => target.to_socket_addrs()?.collect(),
    })
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    /// The loopback interface is the first one everywhere.
    #[tokio::test]
    async fn an_interface_may_be_named() {
        for target in ["[fe80::1%lo]:19132", "[fe80::1%1]:19132"] {
            let expected: SocketAddr = "[fe80::1%1]:19132".parse().expect("a literal address");
            assert_eq!(lookup(target).await.expect("an address")[0], expected);
            assert_eq!(lookup_blocking(target).expect("an address")[0], expected);
        }
        assert!(lookup("[fe80::1%nothing0]:19132").await.is_err());
        assert!(lookup_blocking("[fe80::1%nothing0]:19132").is_err());
    }
}
