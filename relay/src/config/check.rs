//! What a configuration must have beyond the right types.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use super::error::ConfigError;
use super::files::{file_error, read};
use super::levels::parse_levels;
use super::model::{Config, TlsConfig, WebRtcConfig, WebTransportMode};
use super::pages;
use crate::admission::OriginPolicy;
use crate::discovery::{DiscoveryError, Store};
use crate::front::{CookieKeySyntaxError, CookieKeys, FrontProtocol};
use crate::protocol::ProtocolKind;
use crate::target::TargetName;
use crate::webrtc::{Certificate, CertificateError};

const WEBRTC_CERTIFICATE: &str = "webrtc.certificate";

impl Config {
    /// Checks everything that does not need the network: that files exist and have what they should, and that options
    /// fit each other.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.targets.is_empty() && self.discovery.store.is_none() {
            return Err(ConfigError::NoTarget);
        }
        self.serve.as_deref().map_or(Ok(()), pages::check_pages)?;
        self.origins()?;
        self.bans()?;
        self.token_keys()?;
        self.front_target()?;
        self.check_webtransport()?;
        self.cookie_keys()?;
        self.webrtc_certificate()?;
        self.discovery_store()?;
        self.check_log()?;
        self.check_tls()
    }

    /// The target behind the front, if there is a front.
    pub(crate) fn front_target(&self) -> Result<Option<(&TargetName, FrontProtocol)>, ConfigError> {
        let wrong = |reason| Err(ConfigError::Contradiction { key: "udp.target", reason });
        if self.udp.listen.is_none() {
            return Ok(None);
        }
        let found = match &self.udp.target {
            Some(name) => self.targets.get_key_value(name),
            None if self.targets.len() == 1 => self.targets.first_key_value(),
            None => return wrong("the front is before one target: choose it with --udp-target NAME"),
        };
        let Some((name, target)) = found else {
            return wrong("there is no such target: give --udp-target the name of one of --target");
        };
        self.check_front()?;
        match target.kind {
            ProtocolKind::RakNet => Ok(Some((name, FrontProtocol::RakNet))),
            ProtocolKind::GameProtocol => Ok(Some((name, FrontProtocol::GameProtocol))),
            ProtocolKind::Raw => wrong(
                "the front must know the protocol of its target: add kind=raknet or kind=game-protocol to the target",
            ),
        }
    }

    /// What is configured but cannot be done for the clients of a front.
    fn check_front(&self) -> Result<(), ConfigError> {
        let wrong = |key, reason| Err(ConfigError::Contradiction { key, reason });
        if !self.tokens.keys.is_empty() && !self.udp.allow_without_token {
            return wrong(
                "udp.listen",
                "clients of the front cannot show a token: leave out --udp-listen, or let them in without one with \
                 --udp-allow-without-token",
            );
        }
        Ok(())
    }

    /// The keys of cookies, as the file has them now.
    pub(crate) fn cookie_keys(&self) -> Result<Option<CookieKeys>, ConfigError> {
        let key = "udp.cookie_keys";
        let Some(path) = &self.udp.cookie_keys else { return Ok(None) };
        let keys = read(key, path)?.parse();
        keys.map(Some).map_err(|error: CookieKeySyntaxError| file_error(key, path, None, error.to_string()))
    }

    /// Whether there are clients that may come by data channels.
    pub(crate) fn has_webrtc(&self) -> Result<bool, ConfigError> {
        let WebRtcConfig { enabled, allow_without_origin, .. } = self.webrtc;
        let is_open = allow_without_origin || !self.tokens.keys.is_empty();
        Ok(enabled && (is_open || self.origins()? == OriginPolicy::Any))
    }

    /// The certificate of data channels, if there is a file with one.
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

    /// The same, which is made if it is not there.
    pub(crate) fn make_webrtc_certificate(&self) -> Result<Certificate, ConfigError> {
        if let Some(certificate) = self.webrtc_certificate()? {
            return Ok(certificate);
        }
        let certificate = Certificate::make().map_err(|error| ConfigError::Tls(error.to_string()))?;
        if let Some(path) = &self.webrtc.certificate {
            let failed =
                |error| file_error(WEBRTC_CERTIFICATE, path, None, format!("cannot be made ({error})"));
            write_secret(path, certificate.pem()).map_err(failed)?;
        }
        Ok(certificate)
    }

    /// Where game servers announce themselves.
    pub(crate) fn discovery_store(&self) -> Result<Option<Store>, ConfigError> {
        let unusable = |error| ConfigError::Contradiction {
            key: "discovery.store",
            reason: match error {
                DiscoveryError::Tls => {
                    "--discover has no TLS: use redis:// in a network of your own, or through a tunnel"
                }
                DiscoveryError::Url | DiscoveryError::Store(_) => {
                    "the URL of --discover cannot be used: write it as redis://HOST:PORT/ or unix:///PATH"
                }
            },
        };
        self.discovery.store.as_deref().map(Store::new).transpose().map_err(unusable)
    }

    /// What is no mistake, but may not be what was meant.
    ///
    /// # Errors
    ///
    /// Those of [`Config::check`].
    pub fn note(&self) -> Result<Option<&'static str>, ConfigError> {
        let has_proxies = !self.admission.trusted_proxies.is_empty();
        let is_told = self.webtransport.public_port.is_some();
        let has_udp = self.webtransport.mode != WebTransportMode::Off || self.has_webrtc()?;
        Ok((has_proxies && has_udp && !is_told).then_some(
            "pages that come through a trusted proxy are told of the WebSocket alone: for WebTransport and data channels beside \
             the proxy open a UDP port, and name it with --webtransport-public-port PORT",
        ))
    }

    fn check_log(&self) -> Result<(), ConfigError> {
        let level = &self.log.level;
        parse_levels(level).map(drop).ok_or_else(|| ConfigError::LogLevel(level.clone()))
    }

    fn check_webtransport(&self) -> Result<(), ConfigError> {
        let address = self.webtransport.listen.unwrap_or(self.listen);
        if self.webtransport.mode == WebTransportMode::On && self.udp.is_in_the_way_of(address) {
            return Err(ConfigError::Contradiction {
                key: "webtransport.listen",
                reason: "the front has the UDP port of WebTransport at another address: choose the same one to share it, or another --udp-listen or --webtransport-listen",
            });
        }
        Ok(())
    }

    fn check_tls(&self) -> Result<(), ConfigError> {
        let TlsConfig { certificate, key, acme_domains, self_signed, .. } = &self.tls;
        let contradiction = |key, reason| Err(ConfigError::Contradiction { key, reason });
        let ways = [certificate.is_some(), !acme_domains.is_empty(), *self_signed];
        match (certificate, key) {
            (Some(_), None) => {
                contradiction("tls.certificate", "a certificate needs its key: add --tls-key FILE")
            }
            (None, Some(_)) => {
                contradiction("tls.key", "a key needs its certificate: add --tls-certificate FILE")
            }
            _ if ways.into_iter().filter(|&way| way).count() > 1 => contradiction(
                "tls",
                "there is one source of certificates: use --tls-certificate, --acme-domain or --tls-self-signed",
            ),
            _ => Ok(()),
        }
    }
}

/// Makes a file that others cannot read, and that is not there yet.
fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}
