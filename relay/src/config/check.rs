//! Checks of a configuration beyond its types, including the directory of `--serve` and the log levels.

use std::fs::{self, File};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rakwire_udp::private_file;
use tracing_subscriber::filter::{LevelFilter, Targets};

use super::error::{ConfigError, file_error, named, read};
use super::model::{
    AddressLimits, Config, ForwardedHeader, TlsConfig, WebRtcConfig, WebTransportMode, overlap,
};
use crate::addresses::TargetName;
use crate::admission::OriginPolicy;
use crate::discovery::{DiscoveryError, Store};
use crate::front::{CookieKeySyntaxError, CookieKeys, FrontProtocol};
use crate::protocol::ProtocolKind;
use crate::syntax::duration;
use crate::webrtc::{Certificate, CertificateError};

const WEBRTC_CERTIFICATE: &str = "webrtc.certificate";

impl Config {
    /// Checks everything that requires no network: that files exist and have the required contents, and that options
    /// are consistent.
    ///
    /// # Errors
    ///
    /// The first mistake found.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.targets.is_empty() && self.discovery.store.is_none() {
            return Err(ConfigError::NoTarget);
        }
        self.serve.as_deref().map_or(Ok(()), check_pages)?;
        self.origins()?;
        self.bans()?;
        self.token_keys()?;
        self.front_target()?;
        self.check_webtransport()?;
        self.cookie_keys()?;
        self.webrtc_certificate()?;
        self.discovery_store()?;
        self.check_log()?;
        self.check_admin()?;
        self.check_headers()?;
        self.check_limits()?;
        self.check_times()?;
        self.check_tls()
    }

    /// Returns the target behind the front, or `None` without a front.
    pub(crate) fn front_target(&self) -> Result<Option<(&TargetName, FrontProtocol)>, ConfigError> {
        let wrong = |reason| Err(ConfigError::Contradiction { key: "udp.target", reason });
        if self.udp.listen.is_none() {
            return Ok(None);
        }
        let found = match &self.udp.target {
            Some(name) => self.targets.get_key_value(name),
            None if self.targets.len() == 1 => self.targets.first_key_value(),
            None => {
                return wrong(
                    "a front serves one target, and several are configured: choose one with {udp.target}",
                );
            }
        };
        let Some((name, target)) = found else {
            return wrong("no target has this name: set {udp.target} to the name of a configured target");
        };
        self.check_front()?;
        match target.kind {
            ProtocolKind::RakNet => Ok(Some((name, FrontProtocol::RakNet))),
            ProtocolKind::GameProtocol => Ok(Some((name, FrontProtocol::GameProtocol))),
            ProtocolKind::Raw => wrong(
                "the front must know the protocol of its target: set kind of the target to raknet or game-protocol",
            ),
        }
    }

    /// Rejects settings that a front does not support for its clients.
    fn check_front(&self) -> Result<(), ConfigError> {
        let wrong = |key, reason| Err(ConfigError::Contradiction { key, reason });
        if !self.tokens.keys.is_empty() && !self.udp.allow_without_token {
            return wrong(
                "udp.listen",
                "clients of the front cannot present a token: remove {udp.listen}, or admit them without a token with \
                 {udp.allow_without_token}",
            );
        }
        Ok(())
    }

    /// Returns an error if the front would send to itself, because its target has this address.
    pub(crate) fn check_address_of_front(
        &self,
        name: &TargetName,
        address: SocketAddr,
    ) -> Result<(), ConfigError> {
        if self.udp.listen.is_some_and(|front| is_at(front, address)) {
            return Err(ConfigError::FrontOnTarget { name: name.clone(), address });
        }
        Ok(())
    }

    /// Returns the UDP address on which the relay is certain to receive QUIC if it listens on `listen`: without this
    /// address it would not start. For a name with several addresses, this is one of them.
    pub(crate) fn webtransport_address(&self, listen: &[SocketAddr]) -> Option<SocketAddr> {
        let only = || if let [only] = listen { Some(*only) } else { None };
        let is_certain = self.webtransport.mode == WebTransportMode::On;
        self.webtransport.listen.or_else(only).filter(|_| is_certain)
    }

    /// Reads the current cookie keys from their file.
    pub(crate) fn cookie_keys(&self) -> Result<Option<CookieKeys>, ConfigError> {
        let key = "udp.cookie_keys";
        let Some(path) = &self.udp.cookie_keys else { return Ok(None) };
        let keys = read(key, path)?.parse();
        keys.map(Some).map_err(|error: CookieKeySyntaxError| file_error(key, path, None, error.to_string()))
    }

    /// Returns true if some clients may use data channels.
    pub(crate) fn has_webrtc(&self) -> Result<bool, ConfigError> {
        let WebRtcConfig { enabled, allow_without_origin, .. } = self.webrtc;
        let is_open = allow_without_origin || !self.tokens.keys.is_empty();
        Ok(enabled && (is_open || self.origins()? == OriginPolicy::Any))
    }

    /// Reads the certificate of data channels, if a file is configured and exists.
    pub(crate) fn webrtc_certificate(&self) -> Result<Option<Certificate>, ConfigError> {
        let key = WEBRTC_CERTIFICATE;
        let Some(path) = self.webrtc.certificate.as_deref().filter(|path| path.exists()) else {
            return Ok(None);
        };
        let certificate = read(key, path)?.parse();
        certificate
            .map(Some)
            .map_err(|error: CertificateError| file_error(key, path, None, error.to_string()))
    }

    /// Reads the certificate of data channels, or creates it if the file does not exist.
    pub(crate) fn make_webrtc_certificate(&self) -> Result<Certificate, ConfigError> {
        if let Some(certificate) = self.webrtc_certificate()? {
            return Ok(certificate);
        }
        let certificate = Certificate::make()
            .map_err(|error| ConfigError::Tls { key: WEBRTC_CERTIFICATE, reason: error.to_string() })?;
        if let Some(path) = &self.webrtc.certificate {
            let failed = |error| {
                file_error(
                    WEBRTC_CERTIFICATE,
                    path,
                    None,
                    format!("cannot be created ({error}): check the path and the permissions"),
                )
            };
            let write = |file: &mut File| file.write_all(certificate.pem().as_bytes());
            private_file::write_new(path, write).map_err(failed)?;
        }
        Ok(certificate)
    }

    /// Returns the store in which game servers announce themselves.
    pub(crate) fn discovery_store(&self) -> Result<Option<Store>, ConfigError> {
        let unusable = |error| match error {
            DiscoveryError::Tls(reason) => ConfigError::Tls { key: "discovery.ca", reason },
            DiscoveryError::NoTls => ConfigError::Contradiction {
                key: "discovery.ca",
                reason: "a certificate authority requires TLS: write {discovery.store} with rediss://, or remove \
                         the authority",
            },
            DiscoveryError::Url
            | DiscoveryError::Unreachable(_)
            | DiscoveryError::Store(_)
            | DiscoveryError::TooLong => ConfigError::Contradiction {
                key: "discovery.store",
                reason: "the URL cannot be used: write it as redis://HOST:PORT/, rediss://HOST:PORT/ or unix:///PATH",
            },
        };
        let ca = self.discovery.ca.as_deref();
        match (&self.discovery.store, ca) {
            (Some(url), ca) => Store::new(url, ca).map(Some).map_err(unusable),
            (None, Some(_)) => Err(ConfigError::Contradiction {
                key: "discovery.ca",
                reason: "a certificate authority requires a store of servers: add {discovery.store}, or remove \
                         the authority",
            }),
            (None, None) => Ok(None),
        }
    }

    /// Returns a hint about settings that are valid but may be unintended.
    ///
    /// # Errors
    ///
    /// The same errors as [`Config::check`].
    pub fn note(&self) -> Result<Option<String>, ConfigError> {
        Ok(self.note_template()?.map(|(_, note)| named(note, &str::to_owned)))
    }

    /// Returns the hint as a template with keys in braces, and the key that it concerns.
    pub(super) fn note_template(&self) -> Result<Option<(&'static str, &'static str)>, ConfigError> {
        let has_proxies = !self.admission.trusted_proxies.is_empty();
        let is_announced = self.webtransport.public_port.is_some();
        let has_udp = self.webtransport.mode != WebTransportMode::Off || self.has_webrtc()?;
        Ok((has_proxies && has_udp && !is_announced).then_some((
            "admission.trusted_proxies",
            "pages behind a trusted proxy are offered only WebSockets: to offer WebTransport and data channels \
             too, open a UDP port that bypasses the proxy, and name it with {webtransport.public_port}",
        )))
    }

    fn check_admin(&self) -> Result<(), ConfigError> {
        if self.admin.listen.zip(self.listen.address()).is_some_and(|(admin, own)| overlap(admin, own)) {
            return Err(ConfigError::Contradiction {
                key: "admin.listen",
                reason: "{listen} already has this port, for clients: choose another one",
            });
        }
        Ok(())
    }

    /// Rejects header settings that would have no effect.
    fn check_headers(&self) -> Result<(), ConfigError> {
        let admission = &self.admission;
        let unread = match admission.forwarded_header {
            _ if !admission.trusted_proxies.is_empty() => None,
            _ if admission.proxy_protocol => Some("admission.proxy_protocol"),
            ForwardedHeader::Forwarded => Some("admission.forwarded_header"),
            ForwardedHeader::XForwardedFor | ForwardedHeader::None => None,
        };
        let reason = "headers are read only from trusted proxies, and none are configured: list them in \
                      {admission.trusted_proxies}, or remove this setting";
        unread.map_or(Ok(()), |key| Err(ConfigError::Contradiction { key, reason }))
    }

    /// Rejects limits per prefix below those per address.
    fn check_limits(&self) -> Result<(), ConfigError> {
        let AddressLimits {
            per_address,
            per_prefix,
            rate_per_address,
            burst_per_address,
            rate_per_prefix,
            burst_per_prefix,
        } = self.clients;
        let has_rates = rate_per_address != 0 && rate_per_prefix != 0;
        let bursts = if has_rates { (burst_per_prefix, burst_per_address) } else { (0, 0) };
        let reason = "the limit of a prefix must not be below that of one address";
        for (key, value, other, least) in [
            ("clients.per_prefix", per_prefix, "clients.per_address", per_address),
            ("clients.rate_per_prefix", rate_per_prefix, "clients.rate_per_address", rate_per_address),
            ("clients.burst_per_prefix", bursts.0, "clients.burst_per_address", bursts.1),
        ] {
            // Zero means unlimited.
            if value != 0 && value < least {
                let (value, least) = (value.to_string(), least.to_string());
                return Err(ConfigError::Below { key, value, other, least, reason });
            }
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), ConfigError> {
        let (limits, tokens) = (&self.limits, &self.tokens);
        let in_order = |key, value: Duration, other, least: Duration, reason| {
            if value >= least {
                return Ok(());
            }
            let (value, least) = (duration::text(value), duration::text(least));
            Err(ConfigError::Below { key, value, other, least, reason })
        };
        in_order(
            "limits.idle_timeout",
            limits.idle_timeout,
            "limits.ping_interval",
            limits.ping_interval,
            "an idle session would be closed before its first ping",
        )?;
        in_order(
            "tokens.max_lifetime",
            tokens.max_lifetime,
            "tokens.leeway",
            tokens.leeway,
            "a token would be valid for longer after its expiry than before",
        )
    }

    fn check_log(&self) -> Result<(), ConfigError> {
        let level = &self.log.level;
        parse_levels(level).map(drop).ok_or_else(|| ConfigError::LogLevel(level.clone()))
    }

    fn check_webtransport(&self) -> Result<(), ConfigError> {
        let address = self.webtransport.listen.or_else(|| self.listen.address());
        let is_in_the_way = address.is_some_and(|address| self.udp.is_in_the_way_of(address));
        if self.webtransport.mode == WebTransportMode::On && is_in_the_way {
            return Err(ConfigError::Contradiction {
                key: "webtransport.listen",
                reason: "the front and WebTransport have the same UDP port at different addresses: choose the \
                         same address to share the port, or another {udp.listen} or {webtransport.listen}",
            });
        }
        Ok(())
    }

    fn check_tls(&self) -> Result<(), ConfigError> {
        let TlsConfig { certificate, key, acme_domains, self_signed, .. } = &self.tls;
        let contradiction = |key, reason| Err(ConfigError::Contradiction { key, reason });
        let ways = [certificate.is_some(), !acme_domains.is_empty(), *self_signed];
        match (certificate, key) {
            (Some(_), None) => contradiction("tls.certificate", "a certificate needs its key: add {tls.key}"),
            (None, Some(_)) => contradiction("tls.key", "a key needs its certificate: add {tls.certificate}"),
            _ if ways.into_iter().filter(|&way| way).count() > 1 => contradiction(
                "tls",
                "only one source of certificates is possible: use {tls.certificate}, {tls.acme_domains} or \
                 {tls.self_signed}",
            ),
            _ => acme_domains.iter().try_for_each(|domain| check_domain(domain)),
        }
    }
}

/// Checks that ACME can validate a domain by a TLS handshake, the only method that the relay supports (RFC 8737).
fn check_domain(domain: &str) -> Result<(), ConfigError> {
    let host = domain.rsplit_once(':').map_or(domain, |(host, _)| host);
    let is_address = |text: &str| text.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let reason = if is_address(domain) || is_address(host) {
        "is an address, and the relay obtains certificates by ACME only for host names: use a host name"
    } else if domain.contains('*') {
        "is a wildcard, for which the relay cannot obtain a certificate by ACME: list each host name"
    } else if domain.is_empty() || domain.contains([':', '/']) || domain.contains(char::is_whitespace) {
        "is not a host name: write it as play.example.org"
    } else {
        return Ok(());
    };
    Err(ConfigError::AcmeDomain { domain: domain.to_owned(), reason })
}

/// Returns true if a listener at `listen` receives packets sent to `address`.
pub(crate) fn is_at(listen: SocketAddr, address: SocketAddr) -> bool {
    // A wildcard listener has all addresses of this machine.
    overlap(listen, address) && (!listen.ip().is_unspecified() || is_own(address))
}

/// Returns true if this machine owns an address: packets to an own address have the same source address.
fn is_own(address: SocketAddr) -> bool {
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let local = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(address)?;
        socket.local_addr()
    });
    address.ip().is_loopback() || local.is_ok_and(|local| local.ip() == address.ip())
}

/// Checks that a directory contains an index page that browsers can run.
fn check_pages(directory: &Path) -> Result<(), ConfigError> {
    if !directory.is_dir() {
        return Err(ConfigError::ServeDirectory(absolute(directory)));
    }
    let index = fs::read(directory.join("index.html"));
    let index = index.map_err(|source| ConfigError::ServeIndex { directory: absolute(directory), source })?;
    if loads_typescript(&String::from_utf8_lossy(&index)) {
        return Err(ConfigError::ServeSources(absolute(directory)));
    }
    Ok(())
}

/// Returns the absolute path of a directory, or the given path if the system cannot resolve it.
pub(crate) fn absolute(directory: &Path) -> PathBuf {
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned())
}

/// Returns true if a page loads a TypeScript script, as unbuilt sources do.
fn loads_typescript(page: &str) -> bool {
    let scripts = page.split("<script").skip(1);
    let mut tags = scripts.filter_map(|script| script.split('>').next());
    tags.any(|tag| [".ts\"", ".ts'", ".tsx\"", ".tsx'"].iter().any(|end| tag.contains(end)))
}

/// Parses levels such as `info` or `info,hyper=debug`.
///
/// This is stricter than [`Targets`], which would treat an unknown level as the name of a module, and would log only
/// that module.
pub(crate) fn parse_levels(text: &str) -> Option<Targets> {
    let is_level = |word: &str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    let has_level = |part: &str| is_level(part.rsplit_once('=').map_or(part, |(_, level)| level));
    let is_written_so = !text.contains(char::is_whitespace) && text.split(',').all(has_level);
    is_written_so.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unbuilt_page_sources_are_detected() {
        for page in [
            r#"<script type="module" src="/src/main.ts"></script>"#,
            "<html><script>let a;</script>\n<script\n  src='./main.tsx'\n></script>",
        ] {
            assert!(loads_typescript(page), "{page}");
        }
        for page in [
            "",
            r#"<script type="module" src="/assets/main-ts.js"></script> <a href="main.ts">source</a>"#,
            r#"<script>load("main.ts")</script>"#,
        ] {
            assert!(!loads_typescript(page), "{page}");
        }
    }

    #[test]
    fn log_levels_with_and_without_a_module_are_parsed() {
        for text in ["info", "OFF", "info,hyper=debug", "rakwire_relay::io=trace,warn"] {
            assert!(parse_levels(text).is_some(), "{text}");
        }
        for text in ["", "loud", "info,loud", "hyper", "hyper=", "hyper=loud", "info,", "info hyper=debug"] {
            assert!(parse_levels(text).is_none(), "{text}");
        }
    }
}
