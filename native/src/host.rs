//! The host system: clocks, resolution of server addresses, local addresses, and bind errors.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rakwire::{Instant, split_zoned_host};
use rakwire_udp::local_address_for;

/// Converts between the system's monotonic clock and the core's clock.
///
/// An instant counts from one second before the clock was started.
///
/// Each endpoint has its own clock ([`Endpoint::now`](crate::endpoint::Endpoint::now)). Use this type to drive parts of
/// the core over another transport, as `rakwire-extras` does over TCP.
///
/// ```
/// use rakwire_native::Clock;
///
/// let clock = Clock::start();
/// let (before, after) = (clock.now(), clock.now());
/// assert!(before <= after && before.as_micros() >= 1_000_000);
/// assert!(clock.deadline(before).is_some());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: std::time::Instant,
}

impl Clock {
    /// Starts a clock, which begins at one second.
    #[must_use]
    pub fn start() -> Self {
        // Starting at one second ensures that no instant is zero.
        let now = std::time::Instant::now();
        Self { start: now.checked_sub(Duration::from_secs(1)).unwrap_or(now) }
    }

    /// Returns the current time.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Instant {
        let micros = self.start.elapsed().as_micros();
        Instant::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// Returns the deadline of a tokio timer for `instant`, or `None` if it is too far away.
    #[must_use]
    pub fn deadline(&self, instant: Instant) -> Option<tokio::time::Instant> {
        let since_start = Duration::from_micros(instant.as_micros());
        self.start.checked_add(since_start).map(tokio::time::Instant::from_std)
    }
}

/// Converts an endpoint's times to the time since 1970-01-01 UTC, for captures and logs.
///
/// The system's clock is read once, at the first conversion, so that events keep their order even if that clock is
/// changed later.
///
/// ```
/// use std::time::Duration;
/// use rakwire_native::WallClock;
///
/// let mut clock = WallClock::default();
/// let first = clock.convert(rakwire::Instant::from_micros(5));
/// let second = clock.convert(rakwire::Instant::from_micros(12));
/// assert_eq!(second - first, Duration::from_micros(7));
/// assert!(first.as_secs() > 1_700_000_000);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct WallClock {
    /// The wall-clock time at the epoch of the endpoint's clock, once known.
    epoch: Option<Duration>,
}

impl WallClock {
    /// Returns the time since 1970 for an endpoint's time.
    pub fn convert(&mut self, at: Instant) -> Duration {
        let since_epoch = at.saturating_since(Instant::ZERO);
        let epoch = self.epoch.get_or_insert_with(|| since_1970().saturating_sub(since_epoch));
        *epoch + since_epoch
    }
}

/// Returns the seconds since 1970. A clock set before 1970 yields the maximum, so that everything with an expiry is
/// rejected.
pub(crate) fn unix_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(u64::MAX, |since| since.as_secs())
}

/// Returns the wall-clock time.
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Resolves `host:port` to addresses.
///
/// The host is a name or an address, optionally with the name of an interface, as in `[fe80::1%eth0]:19132`. The
/// text-based functions of the standard library and tokio accept only the numeric index of an interface.
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
/// Returns the error of the system's resolver, or an error if the text is not `host:port`.
pub async fn lookup(target: &str) -> io::Result<Vec<SocketAddr>> {
    Ok(match split_zoned_host(target) {
        Some(host) => tokio::net::lookup_host(host).await?.collect(),
        None => tokio::net::lookup_host(target).await?.collect(),
    })
}

/// Resolves `host:port` like [`lookup`], for programs without a runtime: it blocks the thread.
///
/// ```
/// assert!(rakwire_native::lookup_blocking("[::1]:19132")?[0].is_ipv6());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// The same errors as [`lookup`].
pub fn lookup_blocking(target: &str) -> io::Result<Vec<SocketAddr>> {
    Ok(match split_zoned_host(target) {
        Some(host) => host.to_socket_addrs()?.collect(),
        None => target.to_socket_addrs()?.collect(),
    })
}

/// The reason why an endpoint could not be bound.
///
/// ```
/// use rakwire_native::{BindError, Endpoint, Options};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let first = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
/// let second = Endpoint::bind(first.local_addr(), Options::client()?).await;
/// assert!(matches!(second, Err(BindError::Socket { .. })));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The host name could not be resolved.
    #[error("the host name cannot be resolved: {0}")]
    Resolve(#[source] io::Error),
    /// The host name has no address.
    #[error("the host name has no address")]
    NoAddress,
    /// The system could not bind the socket, for example because the port is in use.
    #[error("cannot listen on {address}: {source}")]
    Socket {
        /// The address to which the socket could not be bound.
        address: SocketAddr,
        /// The error reported by the system.
        source: io::Error,
    },
}

/// Documentation addresses (RFC 5737, RFC 3849). The route to them uses the system's default interface.
const ELSEWHERE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 1))];

/// Returns the addresses at which other machines on the network reach a socket bound to `local`.
pub(crate) fn own_addresses(local: SocketAddr) -> Vec<SocketAddr> {
    if !local.ip().is_unspecified() {
        return vec![local];
    }
    // An IPv6 socket also receives IPv4.
    let families = ELSEWHERE.into_iter().filter(|elsewhere| elsewhere.is_ipv4() || local.is_ipv6());
    families.filter_map(local_address_for).map(|source| SocketAddr::new(source, local.port())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loopback interface has index 1 on every system.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn an_interface_can_be_selected_by_name() {
        for target in ["[fe80::1%lo]:19132", "[fe80::1%1]:19132"] {
            let expected: SocketAddr = "[fe80::1%1]:19132".parse().expect("a literal address");
            assert_eq!(lookup(target).await.expect("an address")[0], expected);
            assert_eq!(lookup_blocking(target).expect("an address")[0], expected);
        }
        assert!(lookup("[fe80::1%nothing0]:19132").await.is_err());
        assert!(lookup_blocking("[fe80::1%nothing0]:19132").is_err());
    }

    #[test]
    fn a_bound_address_is_the_only_local_address() {
        let bound = SocketAddr::from(([127, 0, 0, 1], 19_132));
        assert_eq!(own_addresses(bound), [bound]);
    }

    #[test]
    fn the_unspecified_address_expands_to_reachable_addresses() {
        let all = own_addresses((Ipv4Addr::UNSPECIFIED, 19_132).into());
        assert!(
            all.len() <= 1 && all.iter().all(|own| own.port() == 19_132 && !own.ip().is_unspecified()),
            "{all:?}"
        );
    }
}
