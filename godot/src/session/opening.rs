//! Opens servers, clients and sockets for pings.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rakwire_native::{ConnectError, Options, RakNet, lookup_blocking, polled};

use super::{Attempt, Role, SERVER, Session, Status};
use crate::error::Error;
use crate::gate::Gate;
use crate::options::{ClientSettings, Common, ServerSettings};
use crate::statistics::Dropped;

/// Converts a port, or returns an error.
fn port_of(port: i64) -> Result<u16, Error> {
    u16::try_from(port).map_err(|_| Error::Port(port))
}

/// Joins a host name or address with a port. An IPv6 address gets brackets.
fn with_port(host: &str, port: u16) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Converts an IPv4-mapped IPv6 address to IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => (ip, address.port()).into(),
        IpAddr::V6(_) => address,
    }
}

/// Returns the host with its port, and the addresses of the host. Resolving a host name blocks.
pub(super) fn resolve(host: &str, port: i64) -> Result<(String, Vec<SocketAddr>), Error> {
    let host = with_port(host.trim(), port_of(port)?);
    let found = lookup_blocking(&host).map_err(|source| Error::Resolve { host: host.clone(), source })?;
    Ok((host, found.into_iter().map(canonical).collect()))
}

/// Binds a socket to `bind_address`. By default it receives IPv6 and IPv4, or only IPv4 if the system has no IPv6.
fn bind(common: &Common, port: u16, options: Options) -> Result<polled::Endpoint<RakNet>, Error> {
    let addresses = match &common.bind_address {
        Some(address) => resolve(address, port.into())?.1,
        None => vec![(Ipv6Addr::UNSPECIFIED, port).into(), (Ipv4Addr::UNSPECIFIED, port).into()],
    };
    Ok(polled::Endpoint::bind(&addresses[..], options)?)
}

impl Session {
    fn new(endpoint: polled::Endpoint<RakNet>, common: &Common, role: Role) -> Self {
        let (status, unique_id) = match role {
            Role::Server => (Status::Connected, SERVER),
            Role::Client(_) => (Status::Connecting, 0),
            Role::Pinger => (Status::Disconnected, 0),
        };
        Self {
            endpoint,
            role,
            status,
            unique_id,
            links: BTreeMap::new(),
            ids: HashMap::new(),
            queue: VecDeque::new(),
            queued_bytes: 0,
            notices: Vec::new(),
            gate: Gate::default(),
            backlog: common.backlog,
            close_wait: common.close_wait,
            dropped: Dropped::default(),
            end: None,
        }
    }

    /// Opens a server at a port; 0 selects a free port.
    ///
    /// # Errors
    /// Returns an error if the port, the number of clients or an option is invalid, or the socket cannot
    /// be opened.
    pub fn server(port: i64, max_clients: i64, mut settings: ServerSettings) -> Result<Self, Error> {
        let port = port_of(port)?;
        let clients = u16::try_from(max_clients).ok().filter(|clients| (1..=65_534).contains(clients));
        let options = settings.options(clients.ok_or(Error::MaxClients(max_clients))?)?;
        let mut session = Self::new(bind(&settings.common, port, options)?, &settings.common, Role::Server);
        let peer = session.endpoint.peer_mut();
        peer.share_admission(Box::new(session.gate.clone()));
        peer.set_password(&settings.common.password)?;
        peer.set_advertisement(&settings.advertisement)?;
        Ok(session)
    }

    /// Starts connecting to a server. Resolving a host name blocks. If the name has several addresses, they are tried
    /// one after another until one answers.
    ///
    /// # Errors
    /// Returns an error if the port or an option is invalid, the host name has no address, or no socket
    /// can be opened. Failures of the attempt itself are reported by [`status`](Self::status) and
    /// [`end_reason`](Self::end_reason).
    pub fn client(host: &str, port: i64, settings: ClientSettings) -> Result<Self, Error> {
        let options = settings.options()?;
        let (host, addresses) = resolve(host, port)?;
        let mut endpoint = bind(&settings.common, 0, options)?;
        let mut remaining = addresses.into_iter();
        loop {
            let address = remaining.next().ok_or_else(|| Error::NoAddress(host.clone()))?;
            match settings.attempt(&host, |with| Ok(endpoint.connect_with(address, with)?)) {
                Ok(_) => break,
                Err(Error::Connect(ConnectError::AddressFamily)) => {}
                Err(error) => return Err(error),
            }
        }
        endpoint.flush();
        let common = settings.common.clone();
        let attempt = Attempt { settings, host, remaining, welcome_until: None };
        Ok(Self::new(endpoint, &common, Role::Client(Box::new(attempt))))
    }

    /// Opens a socket that only pings servers.
    ///
    /// # Errors
    /// Returns an error if no socket can be opened.
    pub fn pinger() -> Result<Self, Error> {
        let common = Common::default();
        Ok(Self::new(bind(&common, 0, Options::client()?)?, &common, Role::Pinger))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_and_ipv6_addresses_are_resolved_with_the_port() {
        assert_eq!(
            resolve("127.0.0.1", 9).expect("an address").1,
            ["127.0.0.1:9".parse().expect("an address")]
        );
        assert_eq!(resolve(" ::1 ", 9).expect("an address").1, ["[::1]:9".parse().expect("an address")]);
        assert_eq!(resolve("[::1]", 9).expect("an address").1, ["[::1]:9".parse().expect("an address")]);
        let mapped = resolve("::ffff:192.0.2.1", 9).expect("an address").1;
        assert_eq!(mapped, ["192.0.2.1:9".parse().expect("an address")]);
    }

    #[test]
    fn invalid_host_names_are_refused() {
        for host in ["", "::1::", "a b"] {
            assert!(matches!(resolve(host, 9), Err(Error::Resolve { .. })), "{host:?}");
        }
        assert!(matches!(resolve("127.0.0.1", 65_536), Err(Error::Port(65_536))));
    }
}
