//! Input and output: HTTP and the transports of clients on one side, UDP to the game servers on the other. This module
//! also decides which parts share a UDP port. The logic of a flow is in `flow`.

mod app;
mod batch;
mod client;
mod data_channels;
mod drive;
mod front;
mod front_admission;
mod health;
mod http;
mod open_flows;
mod probes;
mod quic;
mod serve;
mod tcp;
mod transport;
mod udp;
mod webtransport;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use tracing::warn;

use crate::config::{Config, ConfigError, WebTransportMode};
use crate::front::{CookieKeys, Settings};
use crate::reload::FrontTarget;
use crate::tls::QuicCertificate;
pub(crate) use app::{Announced, AnnouncedWebRtc, App};
pub(crate) use data_channels::{DataChannels, run_data_channels};
pub(crate) use front::UdpFront;
pub(crate) use front_admission::FrontAdmission;
pub(crate) use http::router;
pub(crate) use probes::PROBES_INTERVAL;
use quic::Beside;
#[cfg(unix)]
pub(crate) use serve::{AdminSocket, serve_admin_socket};
pub(crate) use serve::{serve, serve_admin};
pub(crate) use webtransport::WebTransport;

/// The bound parts that listen on UDP.
pub(crate) struct Udp {
    /// The configured front, if any.
    pub(crate) front: Option<UdpFront<FrontAdmission>>,
    pub(crate) data_channels: Option<DataChannels>,
    pub(crate) webtransport: Option<WebTransport>,
}

/// Binds the parts that listen on UDP. WebTransport, data channels and a front with the same address share one port, at
/// which the first of them that exists receives for all.
pub(crate) fn bind_udp(
    config: &Config,
    local_addr: SocketAddr,
    names: &[String],
    app: &Arc<App>,
) -> Result<Udp, ConfigError> {
    let address = match config.webtransport.mode {
        WebTransportMode::Off => local_addr,
        WebTransportMode::Auto | WebTransportMode::On => config.webtransport.listen.unwrap_or(local_addr),
    };
    let is_shared = config.udp.shares(address);
    let data_channels = bind_data_channels(config, app, address)?;
    let mut front = bind_front(config, app, data_channels.as_ref().filter(|_| is_shared))?;
    let mut sharing = front.as_mut().filter(|_| is_shared);
    let webtransport =
        bind_webtransport(config, address, names, app, data_channels.as_ref(), sharing.as_deref_mut())?;
    if let (None, Some(front)) = (&webtransport, sharing) {
        match &data_channels {
            Some(channels) => channels.receive_for(front.share()),
            None => front.receive_itself(),
        }
    }
    Ok(Udp { front, data_channels, webtransport })
}

/// Binds the front, if configured. If it shares the port of the data channels, it uses their socket.
fn bind_front(
    config: &Config,
    app: &Arc<App>,
    beside: Option<&DataChannels>,
) -> Result<Option<UdpFront<FrontAdmission>>, ConfigError> {
    let (Some(listen), Some((name, protocol))) = (config.udp.listen, config.front_target()?) else {
        return Ok(None);
    };
    let cannot_listen = |source| ConfigError::UdpListen { address: listen, source };
    let keys = match config.cookie_keys()? {
        Some(keys) => keys,
        None => CookieKeys::random().map_err(|error| cannot_listen(io::Error::other(error)))?,
    };
    let _ = app.front.set(FrontTarget { name: name.clone(), protocol });
    let settings = Settings { protocol, guid: app.probes.guid(), keys };
    let admission = FrontAdmission::new(Arc::clone(app), name.clone());
    let counters = Arc::clone(&app.front_counters);
    let front = match beside {
        Some(channels) => {
            let socket = channels.try_clone_socket();
            socket.and_then(|socket| UdpFront::beside(socket, settings, admission, counters))
        }
        None => UdpFront::bind(listen, settings, admission, counters),
    };
    front.map(Some).map_err(cannot_listen)
}

/// Binds the data channels, if enabled, to the address of WebTransport. If another program uses the UDP port, data
/// channels are disabled.
fn bind_data_channels(
    config: &Config,
    app: &App,
    listen: SocketAddr,
) -> Result<Option<DataChannels>, ConfigError> {
    if !config.has_webrtc()? || config.udp.is_in_the_way_of(listen) {
        return Ok(None);
    }
    let certificate = config.make_webrtc_certificate()?;
    match DataChannels::bind(listen, &certificate, Arc::clone(&app.webrtc_counters)) {
        Ok(channels) => {
            let _ = app.webrtc.set(channels.announced());
            Ok(Some(channels))
        }
        Err(error) => {
            warn!(udp = %listen, %error, "data channels are not offered, because their UDP port cannot be used");
            Ok(None)
        }
    }
}

/// Binds WebTransport, unless it is disabled. It receives for the other parts on its port.
fn bind_webtransport(
    config: &Config,
    address: SocketAddr,
    names: &[String],
    app: &Arc<App>,
    channels: Option<&DataChannels>,
    front: Option<&mut UdpFront<FrontAdmission>>,
) -> Result<Option<WebTransport>, ConfigError> {
    let is_needed = match config.webtransport.mode {
        WebTransportMode::Off => return Ok(None),
        WebTransportMode::Auto if config.udp.is_in_the_way_of(address) => return Ok(None),
        WebTransportMode::Auto => false,
        WebTransportMode::On => true,
    };
    let authorized = app.tls.as_ref().and_then(|tls| tls.authorized());
    let certificate = QuicCertificate::new(authorized, names);
    let certificate = certificate
        .map_err(|error| ConfigError::Tls { key: "webtransport.mode", reason: error.to_string() })?;
    let socket = match (channels, &front) {
        (Some(channels), _) => channels.try_clone_socket(),
        (None, Some(front)) => front.try_clone_socket(),
        (None, None) => UdpSocket::bind(address),
    };
    let beside = Beside { channels: channels.cloned(), front: front.map(UdpFront::share) };
    match socket.and_then(|socket| WebTransport::over(socket, certificate, app, beside)) {
        Ok(bound) => {
            let (local_addr, certificate) = (bound.local_addr(), bound.certificate().clone());
            let _ = app.webtransport.set(Announced { local_addr, certificate });
            Ok(Some(bound))
        }
        Err(source) if is_needed => Err(ConfigError::WebTransportListen { address, source }),
        Err(error) => {
            warn!(udp = %address, %error, "WebTransport is not offered, because its UDP port cannot be used");
            Ok(None)
        }
    }
}
