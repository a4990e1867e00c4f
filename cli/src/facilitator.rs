//! `rakwire facilitator`: connects peers behind routers.

mod clients;
mod socket;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rakwire::endpoint::PluginHost;
use rakwire::raknet::RakNet;
use rakwire::wire::offline::{MAX_OUT_OF_BAND_DATA, Offline};
use rakwire::wire::{Reader, Wire, Writer};
use rakwire_native::endpoint::SharedHook;
use rakwire_native::raknet::{Endpoint, Options};
use rakwire_native::secure::{SecureRandom, ServerIdentity};
use rakwire_native::{BindError, Capacity, CookiePolicy};
use rakwire_plugins::nat::{Facilitator, FilterProbe};

use self::socket::{EMPTY, Socket};
use crate::failure::{Failure, print};
use crate::password::PasswordArguments;
use crate::{host, keys};

/// The maximum number of clients.
const CLIENTS: usize = 1_024;
/// The maximum number of pairs that are being connected at the same time.
const ATTEMPTS: usize = 256;
/// The interval at which pending punches are sent.
const TICK: Duration = Duration::from_millis(50);
/// The length of an out-of-band header: id, GUID and magic.
const OUT_OF_BAND_HEAD: usize = 25;

type Plugin = SharedHook<Facilitator<CLIENTS, ATTEMPTS>>;

/// Connects peers behind routers, and forwards the datagrams of pairs that cannot reach each other.
///
/// It uses the ports after the one it listens on: first the probe ports, then the forwarding ports.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The address to listen on, such as 0.0.0.0:61111 or [fe80::1%eth0]:61111; port 0 picks free ports for everything
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:61111")]
    listen: String,
    /// The number of ports that clients probe: at least 3, plus one for each further attempt of a client within two
    /// minutes
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(3..=64))]
    probe_ports: u16,
    /// The number of pairs that can be forwarded at the same time, one port each, at up to 256 KiB a second and 2,048
    /// bytes a datagram
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=64))]
    forwarding_ports: u16,
    /// The maximum number of clients
    #[arg(long, value_name = "N", default_value_t = CLIENTS as u16, value_parser = clap::value_parser!(u16).range(2..=CLIENTS as i64))]
    max_connections: u16,
    /// The maximum number of clients per IPv4 address or IPv6 /64 network
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    max_per_address: u16,
    #[command(flatten)]
    password: PasswordArguments,
    /// Require secure connections, with the key in this file (see keygen)
    #[arg(long, value_name = "FILE")]
    secure: Option<PathBuf>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    // All ports share one address.
    let found = host::listening(&arguments.listen).await?.first().copied();
    let listen = found.ok_or_else(|| host::bind_failure(&arguments.listen, &BindError::NoAddress))?;
    let last =
        u32::from(listen.port()) + u32::from(arguments.probe_ports) + u32::from(arguments.forwarding_ports);
    if listen.port() != 0 && last > u32::from(u16::MAX) {
        return Err(Failure::usage(
            "there are too few ports above the port of --listen; choose a lower port",
        ));
    }
    let probed = ports(listen, 1, arguments.probe_ports).await?;
    let forwarding = ports(listen, 1 + arguments.probe_ports, arguments.forwarding_ports).await?;
    let mut options = Options::server(arguments.max_connections).map_err(host::no_entropy)?;
    options.defer_incoming = true;
    // All clients support cookies. Punches leave from the probe ports, outside the endpoint's amplification limit.
    options.config.cookies = CookiePolicy::Required;
    let connections = usize::from(arguments.max_connections);
    options.capacity = Capacity { connections, blocks: 64 * connections, block_size: 256 };
    if let Some(file) = &arguments.secure {
        let mut server = ServerIdentity::new(keys::read("--secure", file)?);
        server.requires_security = true;
        options.secure().map_err(host::no_entropy)?.server = Some(server);
    }
    let (endpoint, plugin) = bind(listen, options, &probed, &forwarding).await?;
    let protected = endpoint.set_password(arguments.password.text()?.as_bytes());
    protected.map_err(|error| Failure::usage(format!("the text of --password is too long: {error}")))?;
    for port in &probed {
        tokio::spawn(handle_probes(port.clone(), endpoint.clone(), plugin.clone()));
    }
    for port in forwarding {
        tokio::spawn(forward(port, endpoint.clone(), plugin.clone()));
    }
    tokio::spawn(send_punches(probed, endpoint.clone(), plugin.clone()));
    clients::serve(&endpoint, arguments.max_per_address.into()).await?;
    let stats = plugin.with(|plugin| plugin.stats());
    print(format_args!(
        "{} attempts, {} forwarded, {} refused\n",
        stats.attempts, stats.forwarded, stats.refused
    ))?;
    endpoint.close().await;
    Ok(())
}

async fn bind(
    listen: SocketAddr,
    options: Options,
    probed: &[Arc<Socket>],
    forwarding: &[Arc<Socket>],
) -> Result<(Endpoint, Plugin), Failure> {
    let numbers = |ports: &[Arc<Socket>]| ports.iter().map(|socket| socket.port()).collect::<Vec<u16>>();
    let mut entropy = [0; 32];
    rakwire_native::system_random().map_err(host::no_entropy)?.fill(&mut entropy);
    let plugin = SharedHook::new(Facilitator::new(&numbers(probed), &numbers(forwarding), entropy));
    let mut hook = PluginHost::<_, 1>::new();
    hook.attach::<RakNet>(plugin.clone()).map_err(Failure::runtime)?;
    let endpoint = Endpoint::bind_with_hook(listen, options, |_| hook).await;
    Ok((endpoint.map_err(|error| host::bind_failure(&listen.to_string(), &error))?, plugin))
}

/// Binds sockets on the ports that follow that of the endpoint.
async fn ports(listen: SocketAddr, first: u16, count: u16) -> Result<Vec<Arc<Socket>>, Failure> {
    let mut ports = Vec::new();
    for at in 0..count {
        let mut address = listen;
        if address.port() != 0 {
            address.set_port(address.port() + first + at);
        }
        let failure =
            |source| host::bind_failure(&address.to_string(), &BindError::Socket { address, source });
        ports.push(Arc::new(Socket::bind(address).await.map_err(failure)?));
    }
    Ok(ports)
}

/// Passes the probes that arrive at a probe port to the plugin.
async fn handle_probes(socket: Arc<Socket>, endpoint: Endpoint, plugin: Plugin) {
    let mut buffer = EMPTY;
    loop {
        let (from, datagram) = socket.receive(&mut buffer).await;
        if let Ok(Offline::OutOfBand { data, .. }) = Offline::read(&mut Reader::new(datagram)) {
            plugin.with(|plugin| plugin.handle_probe(from, data));
            endpoint.wake();
        }
    }
}

/// Forwards the datagrams that arrive on a port.
async fn forward(socket: Arc<Socket>, endpoint: Endpoint, plugin: Plugin) {
    let mut buffer = EMPTY;
    loop {
        let (from, datagram) = socket.receive(&mut buffer).await;
        let now = endpoint.now();
        if let Some(to) = plugin.with(|plugin| plugin.handle_forwarded(now, socket.port(), from, datagram)) {
            socket.send(datagram, to).await;
        }
    }
}

/// Sends punches to clients from ports to which they have not sent.
async fn send_punches(probed: Vec<Arc<Socket>>, endpoint: Endpoint, plugin: Plugin) {
    let mut ticks = tokio::time::interval(TICK);
    let guid = endpoint.guid();
    loop {
        ticks.tick().await;
        while let Some(FilterProbe { port, to, payload }) = plugin.with(Facilitator::poll_filter_probe) {
            let Some(socket) = probed.iter().find(|socket| socket.port() == port) else { continue };
            let mut buffer = [0; OUT_OF_BAND_HEAD + MAX_OUT_OF_BAND_DATA];
            let mut writer = Writer::new(&mut buffer);
            if (Offline::OutOfBand { guid, data: &payload }).write(&mut writer).is_ok() {
                socket.send(writer.finish(), to).await;
            }
        }
    }
}
