//! Requests to a router by PCP, NAT-PMP and UPnP, and the mappings that it grants.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::num::NonZeroU16;
use std::time::Duration;

use crab_nat::{GatewayAddress, InternetProtocol, PortMappingType, natpmp};
use igd_next::aio::Gateway;
use igd_next::aio::tokio::{Tokio, search_gateway};
use igd_next::{AddPortError, PortMappingProtocol, SearchOptions};
use rakwire_udp::{local_address_for, printable};

/// The description of the mappings in the router's settings.
const DESCRIPTION: &str = "rakwire";

/// Maximum length of an error text in characters.
const LONGEST_REASON: usize = 160;

/// Maximum duration of a UPnP search for a router.
const DISCOVERY_TIME: Duration = Duration::from_secs(4);

/// The port and multicast address with which UPnP searches for devices.
const DISCOVERY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 255, 250), 1_900);

/// The router, and the time limits and intervals of requests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PortMappingOptions {
    /// The router; `None` for that of the system's default route.
    pub gateway: Option<Ipv4Addr>,
    /// The address of UPnP searches.
    ///
    /// By default it is the multicast address of all devices, or with [`gateway`](Self::gateway) port 1900 of that
    /// router.
    pub discovery: Option<SocketAddr>,
    /// The requested lifetime of the mapping: 2 hours by default. The mapping is renewed after half of the lifetime
    /// that the router grants.
    pub lease: Duration,
    /// The minimum interval between two renewals, whatever the router grants: 1 minute by default.
    pub shortest_renewal: Duration,
    /// Time limit for the router's response, for all protocols together: 15 s by default.
    pub timeout: Duration,
    /// The interval before a failed request is repeated: 5 minutes by default.
    pub retry: Duration,
}

impl Default for PortMappingOptions {
    fn default() -> Self {
        Self {
            gateway: None,
            discovery: None,
            lease: Duration::from_secs(7_200),
            shortest_renewal: Duration::from_secs(60),
            timeout: Duration::from_secs(15),
            retry: Duration::from_secs(300),
        }
    }
}

impl PortMappingOptions {
    fn discovery(&self) -> SocketAddr {
        let unicast = self.gateway.map(|gateway| SocketAddrV4::new(gateway, DISCOVERY.port()));
        self.discovery.unwrap_or_else(|| unicast.unwrap_or(DISCOVERY).into())
    }

    /// Returns the lease in whole seconds, at least 1: 0 would remove the mapping or make it permanent.
    fn lease_seconds(&self) -> u32 {
        u32::try_from(self.lease.as_secs()).unwrap_or(u32::MAX).max(1)
    }
}

/// A mapped port of the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedPort {
    /// The address at which other machines reach the socket. Its IP address is not public if the router is behind
    /// another NAT.
    pub external: SocketAddr,
    /// The protocol by which the port was mapped.
    pub protocol: MappingProtocol,
}

/// The protocols for port mappings, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingProtocol {
    /// The Port Control Protocol (RFC 6887).
    Pcp,
    /// RFC 6886, if the router reports that it does not support PCP.
    NatPmp,
    /// The service `WANIPConnection` or `WANPPPConnection`.
    Upnp,
}

impl std::fmt::Display for MappingProtocol {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Pcp => "PCP",
            Self::NatPmp => "NAT-PMP",
            Self::Upnp => "UPnP",
        })
    }
}

/// The reason why no port of the router is forwarded to the socket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PortMappingError {
    /// Routers map only IPv4 ports. The socket has an IPv6 address or no port.
    #[error(
        "the socket is bound to {0}, which routers cannot map; bind it to a port of an IPv4 address, or of all addresses"
    )]
    Local(SocketAddr),
    /// The system reports no router.
    #[error("the address of the router is unknown: {0}; set PortMappingOptions::gateway")]
    NoGateway(String),
    /// The router granted no port, neither by PCP or NAT-PMP nor by UPnP.
    #[error(
        "the router granted no port (PCP and NAT-PMP: {pcp}; UPnP: {upnp}); enable one of them in its settings, or open the port there"
    )]
    Refused {
        /// The failure of PCP and NAT-PMP.
        pcp: String,
        /// The failure of UPnP.
        upnp: String,
    },
    /// The router did not answer in time.
    #[error(
        "the router did not answer in time; increase PortMappingOptions::timeout, or open the port in its settings"
    )]
    Timeout,
    /// The handle was closed before the router had answered.
    #[error("the mapping was closed; start another one")]
    Closed,
}

/// A mapping that a router has granted.
pub(super) struct Granted {
    pub(super) port: MappedPort,
    /// The lifetime that the router granted.
    pub(super) lease: Duration,
    handle: Held,
}

enum Held {
    Pcp(Box<crab_nat::PortMapping>),
    Upnp { gateway: Box<Gateway<Tokio>>, local: SocketAddr },
}

/// Requests a port at which other machines reach `local`.
pub(super) async fn ask(
    local: SocketAddr,
    options: &PortMappingOptions,
) -> Result<Granted, PortMappingError> {
    let attempt = async {
        let internal = NonZeroU16::new(local.port()).ok_or(PortMappingError::Local(local))?;
        let gateway = match options.gateway {
            Some(gateway) => gateway,
            None => default_gateway().await?,
        };
        let own = own_ipv4(local, gateway)?;
        let pcp = match by_pcp(gateway, own, internal, options).await {
            Ok(granted) => return Ok(granted),
            Err(reason) => reason,
        };
        let own = SocketAddrV4::new(own, internal.get()).into();
        let upnp = by_upnp(gateway, own, options).await;
        upnp.map_err(|upnp| PortMappingError::Refused { pcp, upnp })
    };
    let attempt = tokio::time::timeout(options.timeout, attempt).await;
    attempt.unwrap_or(Err(PortMappingError::Timeout))
}

impl Granted {
    /// Renews the mapping, or requests a new one if the router's answer cannot be used.
    pub(super) async fn renewed(
        self,
        local: SocketAddr,
        options: &PortMappingOptions,
    ) -> Result<Self, PortMappingError> {
        let renewal = async {
            match self.handle {
                Held::Pcp(mut mapping) => {
                    mapping.renew().await.ok()?;
                    let ip = external_ip(&mapping).await.ok()?;
                    granted_by_pcp(*mapping, ip).ok()
                }
                Held::Upnp { gateway, local } => {
                    let port = self.port.external.port();
                    let lease = add_port(&gateway, port, local, options).await.ok()?;
                    Some(Self { port: self.port, lease, handle: Held::Upnp { gateway, local } })
                }
            }
        };
        match tokio::time::timeout(options.timeout, renewal).await {
            Ok(Some(granted)) => Ok(granted),
            Ok(None) | Err(_) => ask(local, options).await,
        }
    }

    /// Removes the mapping. Returns true if the router has confirmed it.
    pub(super) async fn remove(self, options: &PortMappingOptions) -> bool {
        let removal = async {
            match self.handle {
                Held::Pcp(mapping) => mapping.try_drop().await.is_ok(),
                Held::Upnp { gateway, .. } => {
                    let port = self.port.external.port();
                    gateway.remove_port(PortMappingProtocol::UDP, port).await.is_ok()
                }
            }
        };
        tokio::time::timeout(options.timeout, removal).await.unwrap_or(false)
    }
}

/// Returns the router of the system's default route. The look-up may block on the system.
async fn default_gateway() -> Result<Ipv4Addr, PortMappingError> {
    let found = tokio::task::spawn_blocking(netdev::get_default_gateway).await;
    let found = found.map_err(|error| PortMappingError::NoGateway(error.to_string()))?;
    let device = found.map_err(|error| PortMappingError::NoGateway(error.to_string()))?;
    let first = device.ipv4.first().copied();
    first.ok_or_else(|| PortMappingError::NoGateway("the default route has no IPv4 address".to_owned()))
}

fn own_ipv4(local: SocketAddr, gateway: Ipv4Addr) -> Result<Ipv4Addr, PortMappingError> {
    let own = if local.ip().is_unspecified() { local_address_for(gateway.into()) } else { Some(local.ip()) };
    match own.map(|own| own.to_canonical()) {
        Some(IpAddr::V4(own)) => Ok(own),
        Some(IpAddr::V6(_)) | None => Err(PortMappingError::Local(local)),
    }
}

async fn by_pcp(
    gateway: Ipv4Addr,
    own: Ipv4Addr,
    internal: NonZeroU16,
    options: &PortMappingOptions,
) -> Result<Granted, String> {
    let wanted = crab_nat::PortMappingOptions {
        external_port: Some(internal),
        lifetime_seconds: Some(options.lease_seconds()),
        timeout_config: Some(natpmp::TIMEOUT_CONFIG_DEFAULT),
    };
    let gateway = GatewayAddress::IpV4(gateway);
    let mapping =
        crab_nat::PortMapping::new(gateway, own.into(), InternetProtocol::Udp, internal, wanted).await;
    let mapping = mapping.map_err(|error| brief(&error))?;
    let ip = external_ip(&mapping).await?;
    granted_by_pcp(mapping, ip)
}

/// Returns the external address, which PCP sends with the mapping, and NAT-PMP on request.
async fn external_ip(mapping: &crab_nat::PortMapping) -> Result<IpAddr, String> {
    match mapping.mapping_type() {
        PortMappingType::Pcp { external_ip, .. } => Ok(external_ip.to_canonical()),
        PortMappingType::NatPmp => {
            let ip = natpmp::external_address(mapping.gateway(), None).await;
            ip.map(IpAddr::V4).map_err(|error| brief(&error))
        }
    }
}

fn granted_by_pcp(mapping: crab_nat::PortMapping, ip: IpAddr) -> Result<Granted, String> {
    let protocol = match mapping.mapping_type() {
        PortMappingType::Pcp { .. } => MappingProtocol::Pcp,
        PortMappingType::NatPmp => MappingProtocol::NatPmp,
    };
    let external = usable(ip, mapping.external_port().get())?;
    if mapping.lifetime() == 0 {
        return Err("the router granted a lifetime of zero".to_owned());
    }
    let lease = Duration::from_secs(mapping.lifetime().into());
    Ok(Granted { port: MappedPort { external, protocol }, lease, handle: Held::Pcp(Box::new(mapping)) })
}

async fn by_upnp(
    gateway: Ipv4Addr,
    local: SocketAddr,
    options: &PortMappingOptions,
) -> Result<Granted, String> {
    let mut search = SearchOptions::default();
    search.bind_addr = SocketAddr::new(local.ip(), 0);
    search.broadcast_address = options.discovery();
    search.timeout = Some(DISCOVERY_TIME);
    search.allowed_gateway_ips = vec![gateway.into()];
    let found = search_gateway(search).await.map_err(|error| brief(&error))?;
    if found.addr.ip() != gateway {
        return Err(format!("the answer came from a machine other than the router: {}", found.addr));
    }
    let ip = found.get_external_ip().await.map_err(|error| brief(&error))?;
    let external = usable(ip, local.port())?;
    let lease = match add_port(&found, local.port(), local, options).await {
        Ok(lease) => return Ok(granted_by_upnp(found, external, lease, local)),
        // Another machine behind the router uses the port, so any other port is requested.
        Err(AddPortError::PortInUse) => options.lease_seconds(),
        Err(error) => return Err(brief(&error)),
    };
    let port = found.add_any_port(PortMappingProtocol::UDP, local, lease, DESCRIPTION).await;
    let external = usable(ip, port.map_err(|error| brief(&error))?)?;
    Ok(granted_by_upnp(found, external, options.lease, local))
}

fn granted_by_upnp(
    gateway: Gateway<Tokio>,
    external: SocketAddr,
    lease: Duration,
    local: SocketAddr,
) -> Granted {
    let port = MappedPort { external, protocol: MappingProtocol::Upnp };
    Granted { port, lease, handle: Held::Upnp { gateway: Box::new(gateway), local } }
}

/// Maps one port for the requested time, or permanently if the router supports only that.
async fn add_port(
    gateway: &Gateway<Tokio>,
    port: u16,
    local: SocketAddr,
    options: &PortMappingOptions,
) -> Result<Duration, AddPortError> {
    let udp = PortMappingProtocol::UDP;
    match gateway.add_port(udp, port, local, options.lease_seconds(), DESCRIPTION).await {
        Err(AddPortError::OnlyPermanentLeasesSupported) => {
            gateway.add_port(udp, port, local, 0, DESCRIPTION).await?;
        }
        other => other?,
    }
    Ok(options.lease)
}

/// Returns the external address if other machines can send to it.
fn usable(ip: IpAddr, port: u16) -> Result<SocketAddr, String> {
    let is_usable = match ip {
        IpAddr::V4(ip) => {
            !(ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || ip.is_broadcast())
        }
        IpAddr::V6(_) => false,
    };
    let is_usable = is_usable && port != 0;
    is_usable
        .then(|| SocketAddr::new(ip, port))
        .ok_or_else(|| format!("the router returned an unusable address: {ip}, port {port}"))
}

/// Shortens and escapes an error, which may contain arbitrary bytes from the router.
fn brief(error: &dyn std::fmt::Display) -> String {
    printable(&error.to_string().chars().take(LONGEST_REASON).collect::<String>())
}
