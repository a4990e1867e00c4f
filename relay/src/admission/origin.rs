//! Which web pages may open a WebSocket to the relay.
//!
//! A browser lets any page connect to any server, and sends the origin of the page in the `Origin` header. Clients that
//! are not browsers send none.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::{HeaderMap, header};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::syntax;

/// The origin of a web page: scheme, host and port, normalised for comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    host: String,
    port: Option<u16>,
}

impl Origin {
    fn is_loopback(&self) -> bool {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        self.host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

impl FromStr for Origin {
    type Err = OriginSyntaxError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (scheme, rest) = text.split_once("://").ok_or(OriginSyntaxError)?;
        let (host, port) = match rest.rsplit_once(':') {
            // The colons of an IPv6 address are before its closing bracket.
            Some((host, port)) if !port.ends_with(']') => {
                (host, Some(port.parse().map_err(|_| OriginSyntaxError)?))
            }
            Some(_) | None => (rest, None),
        };
        let word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
        if !word(scheme) || !word(host) || host.contains(['/', '?', '#', '@', '*', ',']) {
            return Err(OriginSyntaxError);
        }
        let (scheme, host) = (scheme.to_ascii_lowercase(), host.to_ascii_lowercase());
        // Browsers omit the default port of the scheme.
        let port = port.filter(|port| !matches!((scheme.as_str(), port), ("https", 443) | ("http", 80)));
        Ok(Self { scheme, host, port })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, host, port } = self;
        write!(f, "{scheme}://{host}")?;
        port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// One `--allow-origin` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedOrigin {
    /// `*`: every page, and clients that are not browsers.
    Any,
    /// The pages of one origin.
    Page(Origin),
}

impl FromStr for AllowedOrigin {
    type Err = OriginSyntaxError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "*" { Ok(Self::Any) } else { text.parse().map(Self::Page) }
    }
}

impl Serialize for AllowedOrigin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Any => serializer.serialize_str("*"),
            Self::Page(origin) => serializer.collect_str(origin),
        }
    }
}

impl<'de> Deserialize<'de> for AllowedOrigin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        syntax::from_text(deserializer)
    }
}

/// The text is not an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("write it as SCHEME://HOST[:PORT] without a path, as in https://play.example.org, or '*' for any")]
pub struct OriginSyntaxError;

/// The page that a request comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageOrigin {
    /// No page: the client is not a browser.
    None,
    /// A page.
    Page(Origin),
    /// A header that no browser sends.
    Invalid,
    /// The transport does not tell: any page may have opened it.
    Unknown,
}

impl PageOrigin {
    /// The origin in the headers of a request.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(header::ORIGIN).iter();
        // A browser never sends two `Origin` headers.
        match (values.next(), values.next()) {
            (None, _) => Self::None,
            (Some(value), None) => {
                let origin = value.to_str().ok().and_then(|text| text.parse().ok());
                origin.map_or(Self::Invalid, Self::Page)
            }
            (Some(_), Some(_)) => Self::Invalid,
        }
    }
}

/// Which requests may open a WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OriginPolicy {
    Any,
    Listed(Vec<Origin>),
    /// Pages of this machine, and clients that are not browsers.
    LoopbackPages,
}

impl OriginPolicy {
    /// The policy of a relay on `listen`; `None` if origins have to be configured.
    pub(crate) fn new(listen: SocketAddr, allowed: &[AllowedOrigin]) -> Option<Self> {
        if allowed.contains(&AllowedOrigin::Any) {
            return Some(Self::Any);
        }
        if allowed.is_empty() {
            return listen.ip().to_canonical().is_loopback().then_some(Self::LoopbackPages);
        }
        let page = |allowed: &AllowedOrigin| match allowed {
            AllowedOrigin::Any => None,
            AllowedOrigin::Page(origin) => Some(origin.clone()),
        };
        Some(Self::Listed(allowed.iter().filter_map(page).collect()))
    }

    /// Whether a request from this page may become a WebSocket.
    pub(crate) fn admits(&self, origin: &PageOrigin) -> bool {
        match (self, origin) {
            (Self::Any, _) | (Self::LoopbackPages, PageOrigin::None) => true,
            (Self::Listed(listed), PageOrigin::Page(origin)) => listed.contains(origin),
            (Self::LoopbackPages, PageOrigin::Page(origin)) => origin.is_loopback(),
            (Self::Listed(_), PageOrigin::None) | (_, PageOrigin::Invalid | PageOrigin::Unknown) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(origins: &[&'static str]) -> PageOrigin {
        let mut headers = HeaderMap::new();
        for origin in origins {
            headers.append(header::ORIGIN, http::HeaderValue::from_static(origin));
        }
        PageOrigin::of(&headers)
    }

    fn policy(listen: &str, allowed: &[&str]) -> Option<OriginPolicy> {
        let allowed: Vec<AllowedOrigin> = allowed.iter().map(|text| text.parse().unwrap()).collect();
        OriginPolicy::new(listen.parse().unwrap(), &allowed)
    }

    #[test]
    fn a_public_relay_needs_a_decision() {
        assert_eq!(policy("0.0.0.0:80", &[]), None);
        assert_eq!(policy("[::]:80", &[]), None);
        assert_eq!(policy("192.0.2.1:80", &[]), None);
        assert_eq!(policy("0.0.0.0:80", &["*"]), Some(OriginPolicy::Any));
        assert_eq!(policy("[::1]:80", &[]), Some(OriginPolicy::LoopbackPages));
        assert_eq!(policy("[::ffff:127.0.0.1]:80", &[]), Some(OriginPolicy::LoopbackPages));
    }

    #[test]
    fn on_loopback_pages_of_this_machine_are_admitted() {
        let policy = policy("127.0.0.1:80", &[]).unwrap();
        assert!(policy.admits(&headers(&[])));
        for origin in [
            "http://localhost:5173",
            "https://localhost",
            "http://127.0.0.1:1",
            "http://[::1]:8080",
            "http://[::1]",
        ] {
            assert!(policy.admits(&headers(&[origin])), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://localhost.example.org",
            "http://127.0.0.1.example.org",
            "https://example.org",
            "localhost",
        ] {
            assert!(!policy.admits(&headers(&[origin])), "{origin}");
        }
        assert!(!policy.admits(&headers(&["http://localhost", "https://example.org"])));
    }

    #[test]
    fn a_list_admits_the_listed_origins() {
        let policy =
            policy("127.0.0.1:80", &["https://Play.example.org:443", "http://localhost:5173"]).unwrap();
        assert!(policy.admits(&headers(&["https://play.example.org"])));
        assert!(policy.admits(&headers(&["http://localhost:5173"])));
        for origins in [
            &[][..],
            &["http://play.example.org"],
            &["https://play.example.org:8443"],
            &["http://localhost"],
            &["null"],
        ] {
            assert!(!policy.admits(&headers(origins)), "{origins:?}");
        }
    }

    #[test]
    fn any_admits_everyone() {
        let policy = policy("0.0.0.0:80", &["https://example.org", "*"]).unwrap();
        assert!(policy.admits(&headers(&[])));
        assert!(policy.admits(&headers(&["null"])));
        assert!(policy.admits(&headers(&["https://example.com"])));
    }

    #[test]
    fn invalid_origins_are_rejected() {
        for text in [
            "",
            "example.org",
            "null",
            "https://",
            "https://example.org/",
            "https://*.example.org",
            "https://a:b",
            "://a",
        ] {
            assert_eq!(text.parse::<AllowedOrigin>(), Err(OriginSyntaxError), "{text:?}");
        }
    }
}
