//! The addresses of clients that trusted proxies name, by headers of the PROXY protocol, version 2, before their datagrams.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;
use rakwire::Instant;
use rakwire_udp::proxy::{ProxyHeader, SIGNATURE};

/// How long an address is kept without a datagram from its path: longer than any connection lasts without one.
const KEPT: Duration = Duration::from_secs(300);
/// Paths from which those that are silent are looked for.
const FIRST_SWEEP: usize = 1_024;
/// The most paths: a proxy has a port for each client, and there are 65,536 of them.
const MOST: usize = 1 << 18;

/// Translates between the addresses of clients, which the protocol knows, and the paths by which proxies bring their datagrams.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    trusted: Vec<IpNet>,
    clients: HashMap<SocketAddr, Client>,
    paths: HashMap<SocketAddr, SocketAddr>,
    /// Paths at which silent ones are looked for again.
    sweep_at: usize,
    refused: u64,
}

/// The client behind a path.
#[derive(Clone, Copy, Debug)]
struct Client {
    address: SocketAddr,
    heard: Instant,
}

impl Proxies {
    pub(crate) fn new(trusted: Vec<IpNet>) -> Self {
        Self { trusted, sweep_at: FIRST_SWEEP, ..Self::default() }
    }

    /// How many datagrams of trusted proxies were dropped because their header cannot be read, or there is no room for another
    /// path.
    pub(crate) const fn refused(&self) -> u64 {
        self.refused
    }

    /// The address of the client that sent a datagram, and the datagram without its header. None if it is dropped.
    pub(crate) fn receive<'d>(
        &mut self,
        at: Instant,
        from: SocketAddr,
        datagram: &'d [u8],
    ) -> Option<(SocketAddr, &'d [u8])> {
        if !self.trusted.iter().any(|network| network.contains(&from.ip())) {
            return Some((from, datagram));
        }
        if !datagram.starts_with(&SIGNATURE) {
            return Some((self.heard(at, from), datagram));
        }
        let header = ProxyHeader::read(datagram).ok().flatten();
        let Some((header, payload)) = header.and_then(|it| Some((it, datagram.get(it.length..)?))) else {
            self.refused += 1;
            return None;
        };
        let from = match header.client {
            Some(client) if self.learn(at, from, client) => client,
            Some(_) => {
                self.refused += 1;
                return None;
            }
            // The proxy speaks for itself.
            None => from,
        };
        (!payload.is_empty()).then_some((from, payload))
    }

    /// The path by which a datagram reaches an address.
    pub(crate) fn path_to(&self, address: SocketAddr) -> SocketAddr {
        if self.paths.is_empty() { address } else { self.paths.get(&address).copied().unwrap_or(address) }
    }

    /// The address of the client behind a path.
    pub(crate) fn client_behind(&self, path: SocketAddr) -> SocketAddr {
        self.clients.get(&path).map_or(path, |client| client.address)
    }

    fn heard(&mut self, at: Instant, path: SocketAddr) -> SocketAddr {
        let Some(client) = self.clients.get_mut(&path) else { return path };
        client.heard = at;
        client.address
    }

    /// Notes which client is behind a path. A client that comes by another one is answered there. False if there is no room.
    fn learn(&mut self, at: Instant, path: SocketAddr, address: SocketAddr) -> bool {
        if !self.clients.contains_key(&path) && self.clients.len() >= self.sweep_at.min(MOST) {
            self.sweep(at);
            if self.clients.len() >= MOST {
                return false;
            }
        }
        let before = self.clients.insert(path, Client { address, heard: at });
        if let Some(before) = before.filter(|before| before.address != address) {
            self.forget_path(before.address, path);
        }
        self.paths.insert(address, path);
        true
    }

    fn sweep(&mut self, at: Instant) {
        let is_silent = |client: &Client| at.saturating_since(client.heard) >= KEPT;
        let silent: Vec<_> = self.clients.extract_if(|_, client| is_silent(client)).collect();
        for (path, client) in silent {
            self.forget_path(client.address, path);
        }
        self.sweep_at = FIRST_SWEEP.max(2 * self.clients.len());
    }

    fn forget_path(&mut self, address: SocketAddr, path: SocketAddr) {
        if self.paths.get(&address) == Some(&path) {
            self.paths.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("a literal address")
    }

    fn proxies() -> Proxies {
        Proxies::new(vec!["10.0.0.0/8".parse().expect("a literal network")])
    }

    /// A header that names a client of IPv4, and a payload.
    fn proxied(client: SocketAddr, payload: &[u8]) -> Vec<u8> {
        let SocketAddr::V4(v4) = client else { panic!("{client}") };
        let port = v4.port().to_be_bytes();
        [&SIGNATURE[..], &[0x21, 0x12, 0, 12], &v4.ip().octets(), &[10, 0, 0, 1], &port, &[0, 80], payload]
            .concat()
    }

    const NOW: Instant = Instant::ZERO;

    #[test]
    fn a_trusted_proxy_names_the_client_of_its_path() {
        let mut proxies = proxies();
        let (path, client) = (address("10.0.0.1:5000"), address("192.0.2.1:7"));
        let datagram = proxied(client, b"first");
        assert_eq!(proxies.receive(NOW, path, &datagram), Some((client, &b"first"[..])));
        assert_eq!(proxies.receive(NOW, path, b"second"), Some((client, &b"second"[..])));
        assert_eq!((proxies.path_to(client), proxies.client_behind(path)), (path, client));
        // A datagram with nothing behind the header only names.
        assert_eq!(proxies.receive(NOW, path, &proxied(client, b"")), None);
        assert_eq!(proxies.refused(), 0);
    }

    #[test]
    fn headers_of_others_count_for_nothing() {
        let mut proxies = proxies();
        let (from, client) = (address("192.0.2.66:1"), address("192.0.2.1:7"));
        let datagram = proxied(client, b"first");
        assert_eq!(proxies.receive(NOW, from, &datagram), Some((from, &datagram[..])));
        assert_eq!(proxies.path_to(client), client);
    }

    #[test]
    fn a_proxy_may_speak_for_itself() {
        let mut proxies = proxies();
        let path = address("10.0.0.1:5000");
        let local = [&SIGNATURE[..], &[0x20, 0, 0, 0], b"ping"].concat();
        assert_eq!(proxies.receive(NOW, path, &local), Some((path, &b"ping"[..])));
        assert_eq!(proxies.receive(NOW, path, b"ping"), Some((path, &b"ping"[..])));
    }

    #[test]
    fn headers_that_cannot_be_read_are_dropped_and_counted() {
        let mut proxies = proxies();
        let datagram = proxied(address("192.0.2.1:7"), b"");
        for end in SIGNATURE.len()..datagram.len() {
            assert_eq!(proxies.receive(NOW, address("10.0.0.1:5000"), &datagram[..end]), None);
        }
        assert_eq!(proxies.refused(), 16);
    }

    #[test]
    fn a_client_is_answered_by_its_latest_path_and_a_path_has_its_latest_client() {
        let mut proxies = proxies();
        let [old, new] = ["10.0.0.1:5000", "10.0.0.1:5001"].map(address);
        let [one, two] = ["192.0.2.1:7", "192.0.2.2:7"].map(address);
        for (path, client) in [(old, one), (new, one), (old, two)] {
            proxies.receive(NOW, path, &proxied(client, b"payload"));
        }
        assert_eq!((proxies.path_to(one), proxies.path_to(two)), (new, old));
        assert_eq!((proxies.client_behind(old), proxies.client_behind(new)), (two, one));
        proxies.receive(NOW, new, &proxied(two, b"payload"));
        assert_eq!((proxies.path_to(one), proxies.path_to(two)), (one, new));
    }

    #[test]
    fn silent_paths_are_forgotten_and_their_number_has_a_bound() {
        let mut proxies = proxies();
        let path = |number: usize| {
            let [.., a, b, c, d] = number.to_be_bytes();
            SocketAddr::from(([10, a, b, 1], u16::from_be_bytes([c, d])))
        };
        let client = |number: usize| {
            let [.., a, b, c, d] = number.to_be_bytes();
            SocketAddr::from(([192, a, b, 1], u16::from_be_bytes([c, d])))
        };
        for number in 0..MOST {
            assert!(proxies.learn(NOW, path(number), client(number)));
        }
        let one_more = proxied(client(MOST), b"payload");
        assert_eq!(proxies.receive(NOW, path(MOST), &one_more), None);
        assert_eq!(proxies.refused(), 1);
        let later = NOW + KEPT;
        proxies.heard(later, path(0));
        assert!(proxies.receive(later, path(MOST), &one_more).is_some());
        assert_eq!((proxies.clients.len(), proxies.paths.len()), (2, 2));
    }
}
