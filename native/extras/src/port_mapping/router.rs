//! A router: how it is asked for a port, by the crates that speak its protocols, and what it grants.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::num::NonZeroU16;
use std::time::Duration;

use crab_nat::{GatewayAddress, InternetProtocol, PortMappingType, natpmp};
use igd_next::aio::Gateway;
use igd_next::aio::tokio::{Tokio, search_gateway};
use igd_next::{AddPortError, PortMappingProtocol, SearchOptions};
use rakwire_udp::{own_address_towards, printable};

/// What the list of mappings in a router's settings says of ours.
const DESCRIPTION: &str = "rakwire";

/// The most characters of a reason that are kept.
const LONGEST_REASON: usize = 160;

/// How long a search for a router by UPnP takes at most.
const DISCOVERY_TIME: Duration = Duration::from_secs(4);

/// The port at which UPnP looks for devices, and the address that all of them hear.
const DISCOVERY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 255, 250), 1_900);

/// Which router is asked for a port, and how often.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PortMappingOptions {
    /// The router; without it the one of the system's default route.
    pub gateway: Option<Ipv4Addr>,
    /// Where UPnP looks for the router: by default at the address that all devices of the network hear, or with
    /// [`gateway`](Self::gateway) at port 1900 of that router.
    pub discovery: Option<SocketAddr>,
    /// How long the router is asked to keep the port open: 2 hours by default. It is renewed after half the time that the
    /// router grants.
    pub lease: Duration,
    /// The shortest time between two renewals, whatever the router grants: 1 minute by default.
    pub shortest_renewal: Duration,
    /// How long the router may take for an answer by all protocols together: 15 s by default.
    pub timeout: Duration,
    /// The time until a router that has opened no port is asked again: 5 minutes by default.
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

    /// In whole seconds, and not 0, which asks for the mapping to be removed, or for one without an end.
    fn lease_seconds(&self) -> u32 {
        u32::try_from(self.lease.as_secs()).unwrap_or(u32::MAX).max(1)
    }
}

/// A port of the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedPort {
    /// Where others send to. Behind a second router its IP address is not one of the internet.
    pub external: SocketAddr,
    /// By which protocol the router was asked.
    pub protocol: MappingProtocol,
}

/// The protocols by which routers are asked, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingProtocol {
    /// RFC 6887.
    Pcp,
    /// RFC 6886, if the router says that it knows no PCP.
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

/// No port of the router leads to the socket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PortMappingError {
    /// Routers translate addresses of IPv4 alone, and the socket has another one, or no port.
    #[error(
        "the socket is bound to {0}, which no router maps; bind it to a port of an IPv4 address, or of all of them"
    )]
    Local(SocketAddr),
    /// The system names no router.
    #[error("the address of the router is unknown: {0}; name it by PortMappingOptions::gateway")]
    NoGateway(String),
    /// The router did neither what PCP or NAT-PMP ask, nor what UPnP does.
    #[error(
        "the router maps no port: by PCP and NAT-PMP {pcp}, by UPnP {upnp}; allow one of them in its settings, or open the port there"
    )]
    Refused {
        /// What became of PCP and NAT-PMP.
        pcp: String,
        /// What became of UPnP.
        upnp: String,
    },
    /// The router took too long.
    #[error(
        "the router did not answer in time; allow more by PortMappingOptions::timeout, or open the port in its settings"
    )]
    Timeout,
    /// The handle was closed before the router had answered.
    #[error("the mapping is closed; start another one")]
    Closed,
}

/// A mapping that a router has granted.
pub(super) struct Granted {
    pub(super) port: MappedPort,
    /// How long the router keeps it.
    pub(super) lease: Duration,
    handle: Held,
}

enum Held {
    Pcp(Box<crab_nat::PortMapping>),
    Upnp { gateway: Box<Gateway<Tokio>>, local: SocketAddr },
}

/// Asks the router for a port by which others reach `local`.
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
    /// Has the router keep the port open. Whatever it says that cannot be used has it asked anew.
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

    /// Has the router close the port again, and returns whether it has.
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

/// The router of the system's default route. Looking it up may wait for the system.
async fn default_gateway() -> Result<Ipv4Addr, PortMappingError> {
    let found = tokio::task::spawn_blocking(netdev::get_default_gateway).await;
    let found = found.map_err(|error| PortMappingError::NoGateway(error.to_string()))?;
    let device = found.map_err(|error| PortMappingError::NoGateway(error.to_string()))?;
    let first = device.ipv4.first().copied();
    first.ok_or_else(|| PortMappingError::NoGateway("the default route has no IPv4 address".to_owned()))
}

fn own_ipv4(local: SocketAddr, gateway: Ipv4Addr) -> Result<Ipv4Addr, PortMappingError> {
    let own =
        if local.ip().is_unspecified() { own_address_towards(gateway.into()) } else { Some(local.ip()) };
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

/// PCP says the address outside with the mapping, and NAT-PMP if asked.
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
        return Err("the router opens the port for no time".to_owned());
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
        return Err(format!("another machine than the router answers, {}", found.addr));
    }
    let ip = found.get_external_ip().await.map_err(|error| brief(&error))?;
    let external = usable(ip, local.port())?;
    let lease = match add_port(&found, local.port(), local, options).await {
        Ok(lease) => return Ok(granted_by_upnp(found, external, lease, local)),
        // Somebody else behind the router has it, so that any other one must do.
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

/// Maps one port for the time that is wanted, or without an end if the router knows no other mappings.
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

/// An address outside is one that somebody else can send to.
fn usable(ip: IpAddr, port: u16) -> Result<SocketAddr, String> {
    let is_usable = match ip {
        IpAddr::V4(ip) => {
            !(ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || ip.is_broadcast())
        }
        IpAddr::V6(_) => false,
    };
    let is_usable = is_usable && port != 0;
    is_usable.then(|| SocketAddr::new(ip, port)).ok_or_else(|| format!("the router says {ip}, port {port}"))
}

/// Errors may repeat whatever the router said.
fn brief(error: &dyn std::fmt::Display) -> String {
    printable(&error.to_string().chars().take(LONGEST_REASON).collect::<String>())
}
