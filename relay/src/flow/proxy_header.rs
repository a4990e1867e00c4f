//! The source address of a client's datagrams as seen by its game server, and the PROXY protocol v2 header that
//! announces the client's address.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use rakwire_udp::proxy::SIGNATURE;

/// Version 2 and the command PROXY.
const VERSION_AND_COMMAND: u8 = 0x21;
const UDP_OVER_IPV4: u8 = 0x12;
const UDP_OVER_IPV6: u8 = 0x22;

/// The header lengths in bytes, for each address family.
const IPV4_LENGTH: usize = 28;
const IPV6_LENGTH: usize = 52;

/// The header precedes every fourth datagram that the server has not answered.
///
/// A header before every datagram would not work. Servers that have read one treat later headers as payload, and
/// servers that drop a datagram with a header need one without. A header before the first datagram only would not work
/// either, because that datagram may be lost.
const EVERY: u64 = 4;

/// The payload of a datagram on a path with the usual MTU of 1,500 bytes.
const PATH_PAYLOAD: usize = 1_472;

/// The silence after which the header is sent again. A game server that does not answer the client's datagrams for this
/// long may have restarted and forgotten the client's address.
const SILENCE: Duration = Duration::from_secs(5);

/// Returns true if a client's datagram begins like a header, which the game server would believe.
pub(crate) fn is_forged(datagram: &[u8]) -> bool {
    datagram.starts_with(&SIGNATURE)
}

/// A PROXY header with the addresses of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyHeader {
    /// The address of the client.
    pub client: SocketAddr,
    /// The address of the game server.
    pub server: SocketAddr,
}

impl ProxyHeader {
    /// Returns the length in bytes: 28, or 52 if one of the addresses is IPv6.
    ///
    /// ```
    /// use rakwire_relay::flow::ProxyHeader;
    ///
    /// let header = ProxyHeader { client: "192.0.2.7:5000".parse()?, server: "192.0.2.1:19132".parse()? };
    /// assert_eq!(header.length(), 28);
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    #[must_use]
    pub const fn length(&self) -> usize {
        let is_ipv4 = self.client.ip().to_canonical().is_ipv4() && self.server.ip().to_canonical().is_ipv4();
        if is_ipv4 { IPV4_LENGTH } else { IPV6_LENGTH }
    }

    /// Appends the header to `buffer`. If the families differ, both addresses are written as IPv6.
    ///
    /// ```
    /// use rakwire_relay::flow::ProxyHeader;
    ///
    /// let header = ProxyHeader { client: "192.0.2.7:5000".parse()?, server: "192.0.2.1:19132".parse()? };
    /// let mut datagram = Vec::new();
    /// header.write(&mut datagram);
    /// assert_eq!(datagram[..12], *b"\r\n\r\n\0\r\nQUIT\n");
    /// assert_eq!(datagram[12..16], [0x21, 0x12, 0, 12]);
    /// assert_eq!(datagram[16..], [192, 0, 2, 7, 192, 0, 2, 1, 0x13, 0x88, 0x4A, 0xBC]);
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    pub fn write(&self, buffer: &mut Vec<u8>) {
        buffer.extend(SIGNATURE);
        buffer.push(VERSION_AND_COMMAND);
        match (self.client.ip().to_canonical(), self.server.ip().to_canonical()) {
            (IpAddr::V4(client), IpAddr::V4(server)) => {
                buffer.extend([UDP_OVER_IPV4, 0, 12]);
                buffer.extend(client.octets());
                buffer.extend(server.octets());
            }
            (client, server) => {
                buffer.extend([UDP_OVER_IPV6, 0, 36]);
                buffer.extend(as_ipv6(client));
                buffer.extend(as_ipv6(server));
            }
        }
        buffer.extend(self.client.port().to_be_bytes());
        buffer.extend(self.server.port().to_be_bytes());
    }
}

fn as_ipv6(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// Selects the datagrams of a flow that are preceded by the header.
#[derive(Debug)]
pub(crate) struct Announcement {
    header: ProxyHeader,
    sent: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The game server has not sent anything yet.
    First,
    /// The game server has sent a datagram, so it has the client's address. `asked` is the time of the client's first
    /// datagram since the server's last one.
    Known { asked: Option<Instant> },
    /// The game server may have forgotten the address. A datagram too long for a header is sent without it, because the
    /// maximum length announced to clients leaves no space for a header.
    Again,
}

impl Announcement {
    pub(crate) const fn new(header: ProxyHeader) -> Self {
        Self { header, sent: 0, state: State::First }
    }

    /// Returns the maximum length of a datagram after the header, for a relay with this limit. A limit above the usual
    /// path payload implies that paths carry datagrams of that length.
    pub(crate) fn room(&self, max_datagram: usize) -> usize {
        max_datagram.max(PATH_PAYLOAD) - self.header.length()
    }

    /// Returns true if datagrams must be handled one by one, because some of them need the header.
    pub(crate) const fn is_waiting(&self) -> bool {
        !matches!(self.state, State::Known { .. })
    }

    /// Returns true if the game server has never sent anything.
    pub(crate) fn is_first(&self) -> bool {
        self.state == State::First
    }

    /// Returns the header for the next datagram, or `None` if it gets no header.
    pub(crate) fn next(&self) -> Option<&ProxyHeader> {
        (self.is_waiting() && self.sent.is_multiple_of(EVERY)).then_some(&self.header)
    }

    /// Returns the header for a datagram of this length, or `None` if it gets no header, or if header and datagram
    /// together exceed the limit of the relay.
    pub(crate) fn before(&self, length: usize, max_datagram: usize) -> Option<&ProxyHeader> {
        self.next().filter(|_| self.is_first() || length <= self.room(max_datagram))
    }

    /// Records that the game server has sent a datagram.
    pub(crate) const fn handle_answer(&mut self) {
        self.state = State::Known { asked: None };
    }

    /// Restarts the announcement, because the game server may have forgotten the client: it was absent, or the client
    /// opens a new connection.
    pub(crate) const fn begin_again(&mut self) {
        if !self.is_waiting() {
            (self.state, self.sent) = (State::Again, 0);
        }
    }

    /// Records a datagram from the client. Restarts the announcement if the game server has been silent for too long.
    pub(crate) fn handle_datagram(&mut self, now: Instant) {
        if let State::Known { asked } = &mut self.state
            && now.saturating_duration_since(*asked.get_or_insert(now)) >= SILENCE
        {
            self.begin_again();
        }
    }

    pub(crate) const fn handle_sent(&mut self) {
        self.sent += 1;
    }

    /// Records that a datagram counted as sent was not sent.
    pub(crate) const fn handle_unsent(&mut self) {
        self.sent = self.sent.saturating_sub(1);
    }
}

/// The source address of a client's datagrams as seen by its game server.
///
/// Game servers limit and ban clients by address. If all clients shared the address of the relay, one client could lock
/// out the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Source {
    /// The address of the relay, with a separate port for each client.
    #[default]
    Shared,
    /// A separate address in 127.0.0.0/8 for each client, if the game server listens on a loopback address.
    ///
    /// A client gets the same address for every connection. On Linux, all of these addresses belong to the loopback
    /// interface; on other systems each must be configured.
    LoopbackPool,
}

impl Source {
    /// Returns the address to bind to for a client of `server`, or `None` to let the system choose.
    ///
    /// Clients in the same IPv6 /64 share an address. There are 254 * 256 * 254 addresses, so that other clients rarely
    /// share one.
    ///
    /// ```
    /// use rakwire_relay::flow::Source;
    ///
    /// let (server, player) = ("127.0.0.1:19132".parse()?, "192.0.2.7".parse()?);
    /// let address = Source::LoopbackPool.address(player, server).ok_or("no pool")?;
    /// assert!(address.is_loopback() && address.octets()[1] > 0);
    /// assert_eq!(Source::LoopbackPool.address(player, server), Some(address));
    /// assert_eq!(Source::Shared.address(player, server), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn address(self, client: IpAddr, server: SocketAddr) -> Option<Ipv4Addr> {
        let is_local = matches!(server.ip(), IpAddr::V4(ip) if ip.is_loopback());
        (self == Self::LoopbackPool && is_local).then(|| pool_address(client))
    }
}

fn pool_address(client: IpAddr) -> Ipv4Addr {
    let hash = match client.to_canonical() {
        IpAddr::V4(ip) => mix(u64::from(ip.to_bits())),
        IpAddr::V6(ip) => mix((ip.to_bits() >> 64) as u64 | 1 << 63),
    };
    let [.., a, b, c] = hash.to_be_bytes();
    // Programs listen on addresses in 127.0.0.0/16, and some reject 0 or 255 as the last octet.
    Ipv4Addr::new(127, 1 + a % 254, b, 1 + c % 254)
}

/// The finalizer of SplitMix64, which spreads neighboring addresses. It needs no secret. Two clients with the same
/// result only share a ban, and an attacker needs millions of addresses to get the result of a certain client.
const fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn written(client: &str, server: &str) -> Vec<u8> {
        let mut buffer = b"before".to_vec();
        let header = ProxyHeader { client: client.parse().unwrap(), server: server.parse().unwrap() };
        header.write(&mut buffer);
        assert_eq!(buffer[..6], *b"before");
        assert_eq!(buffer.len() - 6, header.length());
        buffer[6..].to_vec()
    }

    #[test]
    fn an_ipv6_header_has_36_bytes_of_addresses() {
        let header = written("[2001:db8::7]:5000", "[2001:db8::1]:19132");
        assert_eq!(header[12..16], [0x21, 0x22, 0, 36]);
        assert_eq!(header.len(), 16 + 36);
        assert_eq!(header[16..20], [0x20, 0x01, 0x0d, 0xb8]);
        assert_eq!((header[31], header[47]), (7, 1));
        assert_eq!(header[48..], [0x13, 0x88, 0x4A, 0xBC]);
    }

    #[test]
    fn mixed_families_use_ipv6_and_mapped_addresses_ipv4() {
        let mixed = written("[2001:db8::7]:5000", "127.0.0.1:19132");
        assert_eq!((mixed[13], mixed.len()), (UDP_OVER_IPV6, 52));
        assert_eq!(mixed[42..48], [0xff, 0xff, 127, 0, 0, 1]);
        assert_eq!(written("[::ffff:192.0.2.7]:1", "192.0.2.1:2"), written("192.0.2.7:1", "192.0.2.1:2"));
    }

    const SERVER: &str = "127.0.0.1:19132";

    fn address(client: &str) -> Ipv4Addr {
        Source::LoopbackPool.address(client.parse().unwrap(), SERVER.parse().unwrap()).unwrap()
    }

    #[test]
    fn each_client_has_a_stable_pool_address() {
        let mut seen = BTreeSet::new();
        for number in 0..4_000u32 {
            let client = Ipv4Addr::from_bits(0xC000_0200 + number);
            let found = address(&client.to_string());
            let [_, second, _, last] = found.octets();
            assert!(found.is_loopback() && second > 0 && second < 255 && last > 0 && last < 255, "{found}");
            seen.insert(found);
        }
        assert!(seen.len() > 3_990, "{} addresses", seen.len());
        assert_eq!(address("192.0.2.1"), address("::ffff:192.0.2.1"));
    }

    #[test]
    fn an_ipv6_network_counts_as_one_client() {
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:2"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
    }

    #[test]
    fn only_loopback_targets_have_a_source_address_pool() {
        for server in ["192.0.2.1:1", "[::1]:1"] {
            let client = "192.0.2.7".parse().unwrap();
            assert_eq!(Source::LoopbackPool.address(client, server.parse().unwrap()), None, "{server}");
        }
    }

    mod flow {
        use std::sync::Arc;
        use std::time::Instant;

        use bytes::Bytes;

        use crate::flow::tests::{Fixture, SECOND, datagram, fixture_of, limits};
        use crate::flow::{
            DropReason, FlowLimits, FromClient, FromServer, Inspect, ProxyHeader, Secret, Sending, Setup,
            Unreachable,
        };
        use crate::protocol::{FlowInspector, Handshake, ProtocolKind};

        /// Creates a flow to a game server that reads the PROXY protocol and has answered one datagram.
        fn announced(inspect: Option<Box<dyn Inspect>>) -> Fixture {
            let header = ProxyHeader {
                client: "192.0.2.7:5".parse().unwrap(),
                server: "192.0.2.1:6".parse().unwrap(),
            };
            let mut fixture =
                fixture_of(limits(), Setup { proxy_header: Some(header), inspect, ..Setup::default() });
            fixture.client(datagram(1));
            assert_eq!(fixture.batch(), [29]);
            fixture.flow.handle_sent(1, Sending::Sent);
            fixture.server(FromServer::Datagram(b"answer"));
            fixture
        }

        #[test]
        fn a_forged_proxy_header_is_dropped() {
            let mut fixture = announced(None);
            let forged = b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c\x0a\0\0\x01\x0a\0\0\x02\0\x01\0\x02payload";
            fixture.client(FromClient::Datagram(Bytes::from_static(forged)));
            fixture.client(FromClient::Datagram(Bytes::from_static(&forged[..12])));
            assert!(fixture.batch().is_empty());
            assert_eq!(fixture.drops(DropReason::ForgedHeader), 2);
            // Shorter datagrams are not headers. A server that reads no headers treats these bytes as payload.
            fixture.client(FromClient::Datagram(Bytes::from_static(&forged[..11])));
            assert_eq!(fixture.batch(), [11]);
            let mut plain = fixture_of(limits(), Setup::default());
            plain.client(FromClient::Datagram(Bytes::from_static(forged)));
            assert_eq!(plain.batch(), [forged.len()]);
        }

        #[test]
        fn the_client_address_is_announced_again_after_a_server_restart() {
            let absent = |fixture: &mut Fixture| {
                fixture.server(FromServer::Unreachable(Unreachable::ClosedPort));
                fixture.client(datagram(1));
            };
            let silent = |fixture: &mut Fixture| {
                // The previous datagram has not been answered.
                let late = fixture.start + 5 * SECOND;
                fixture.flow.handle_client(late, datagram(1));
            };
            let cases: [&dyn Fn(&mut Fixture); 2] = [&absent, &silent];
            for forget in cases {
                let mut fixture = announced(None);
                fixture.client(datagram(1));
                assert_eq!(fixture.batch(), [1]);
                fixture.flow.handle_sent(1, Sending::Sent);
                forget(&mut fixture);
                assert_eq!(fixture.batch(), [29]);
                fixture.flow.handle_sent(1, Sending::Sent);
                // The maximum length announced to the client permits this datagram.
                fixture.server(FromServer::Unreachable(Unreachable::ClosedPort));
                fixture.client(datagram(1_472));
                assert_eq!(fixture.batch(), [1_472]);
                fixture.server(FromServer::Datagram(b"answer"));
                assert_eq!(fixture.batch(), [1_472]);
            }
        }

        #[test]
        fn the_client_address_is_announced_again_for_a_new_connection() {
            let handshake = Handshake::default();
            let now = Instant::now();
            let inspector = FlowInspector::new(ProtocolKind::RakNet, handshake, Arc::default(), now);
            let header = ProxyHeader {
                client: "192.0.2.7:5".parse().unwrap(),
                server: "192.0.2.1:6".parse().unwrap(),
            };
            let setup =
                Setup { proxy_header: Some(header), inspect: Some(Box::new(inspector)), ..Setup::default() };
            let mut fixture = fixture_of(limits(), setup);
            let mut request = vec![0; 600];
            request[..18]
                .copy_from_slice(b"\x05\x00\xff\xff\x00\xfe\xfe\xfe\xfe\xfd\xfd\xfd\xfd\x12\x34\x56\x78\x0b");
            for _ in 0..2 {
                fixture.client(FromClient::Datagram(Bytes::copy_from_slice(&request)));
                assert_eq!(fixture.batch(), [628]);
                fixture.flow.handle_sent(1, Sending::Sent);
                fixture.server(FromServer::Datagram(b"\x84\0\0\0\0\0\x08\xfe"));
            }
        }

        #[test]
        fn datagrams_too_long_for_the_header_are_dropped_and_reported() {
            let header = ProxyHeader {
                client: "192.0.2.7:5".parse().unwrap(),
                server: "192.0.2.1:6".parse().unwrap(),
            };
            let setup =
                Setup { proxy_header: Some(header), secret: Some(Secret::new([0; 16])), ..Setup::default() };
            let mut fixture = fixture_of(FlowLimits::default(), setup);
            let told = format!("{:?}", fixture.taken_to_client());
            assert!(told.contains(r#"\"max_datagram\":1444"#), "{told}");
            for length in [1_472, 1_445, 1_444, 1_472] {
                fixture.client(datagram(length));
            }
            assert_eq!(fixture.batch(), [1_472], "the header and 1,444 bytes");
            assert_eq!(fixture.drops(DropReason::TooBigBehindHeader), 2);
            fixture.flow.handle_sent(1, Sending::Sent);
            // Datagrams without a header may use the full length, and the flow continues.
            assert_eq!(fixture.batch(), [1_472]);
            fixture.flow.handle_sent(1, Sending::Sent);
            fixture.server(FromServer::Datagram(b"answer"));
            fixture.client(datagram(1_472));
            assert_eq!(fixture.batch(), [1_472]);
            assert_eq!((fixture.end(), fixture.drops(DropReason::TooBigBehindHeader)), (None, 2));
        }
    }
}
