//! The operator's lists: allowed web pages, banned addresses, and bans imposed while the relay runs.
//!
//! A browser lets any page connect to any server, and sends the page's origin in the `Origin` header. Clients other
//! than browsers send no such header.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderMap, header};
use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::syntax;

/// The origin of a web page: scheme, host and port, normalized for comparison.
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
        let (scheme, rest) = text.split_once("://").ok_or(OriginSyntaxError::Form)?;
        let (host, port) = match rest.rsplit_once(':') {
            // The colons of an IPv6 address precede its closing bracket.
            Some((host, port)) if !port.ends_with(']') => {
                (host, Some(port.parse().map_err(|_| OriginSyntaxError::Form)?))
            }
            Some(_) | None => (rest, None),
        };
        let word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
        // RFC 3986 section 3.1.
        let is_scheme = scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        if !word(scheme) || !is_scheme || !word(host) || host.contains(['/', '?', '#', '@', '*', ',']) {
            return Err(OriginSyntaxError::Form);
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
    /// `*`: every page, and clients other than browsers.
    Any,
    /// The pages of one origin.
    Page(Origin),
    /// `https://*.example.org`: the pages of all subdomains of a host, with the same scheme and port, but not those of
    /// the host itself.
    Subdomains(Origin),
}

impl AllowedOrigin {
    /// Returns true if pages of this origin are allowed.
    fn admits(&self, page: &Origin) -> bool {
        match self {
            Self::Any => true,
            Self::Page(origin) => origin == page,
            Self::Subdomains(origin) => {
                let is_same = (&origin.scheme, origin.port) == (&page.scheme, page.port);
                let below = page.host.strip_suffix(&origin.host).and_then(|rest| rest.strip_suffix('.'));
                is_same && below.is_some_and(is_name)
            }
        }
    }

    /// Parses a pattern with `*`.
    fn pattern(text: &str) -> Result<Self, OriginSyntaxError> {
        let (scheme, rest) = text.split_once("://").ok_or(OriginSyntaxError::Pattern)?;
        let rest = rest.strip_prefix("*.").ok_or(OriginSyntaxError::Pattern)?;
        if scheme.contains('*') || rest.contains('*') {
            return Err(OriginSyntaxError::Pattern);
        }
        let origin: Origin = format!("{scheme}://{rest}").parse()?;
        if !is_name(&origin.host) || origin.host.parse::<IpAddr>().is_ok() {
            return Err(OriginSyntaxError::PatternHost);
        }
        // `*.org` would cover many operators. Names below `localhost` resolve to this machine (RFC 6761 section 6.3).
        if !origin.host.contains('.') && origin.host != "localhost" {
            return Err(OriginSyntaxError::PatternTopLevel);
        }
        Ok(Self::Subdomains(origin))
    }
}

/// Returns true if a host is a name of one or more labels.
fn is_name(host: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    host.split('.').all(is_label)
}

impl FromStr for AllowedOrigin {
    type Err = OriginSyntaxError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "*" => Ok(Self::Any),
            _ if text.contains('*') => Self::pattern(text),
            _ => text.parse().map(Self::Page),
        }
    }
}

impl Serialize for AllowedOrigin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Any => serializer.serialize_str("*"),
            Self::Page(origin) => serializer.collect_str(origin),
            Self::Subdomains(origin) => {
                let text = origin.to_string().replacen("://", "://*.", 1);
                serializer.serialize_str(&text)
            }
        }
    }
}

impl<'de> Deserialize<'de> for AllowedOrigin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        syntax::from_text(deserializer)
    }
}

/// The text is neither an origin nor a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OriginSyntaxError {
    /// The text does not have the form of an origin.
    #[error(
        "write it as SCHEME://HOST[:PORT] without a path, as in https://play.example.org, or '*' for any"
    )]
    Form,
    /// A `*` is not in the position of the first labels.
    #[error(
        "'*' can only replace whole labels at the beginning of a host, as in https://*.example.org, or stand \
         alone for any origin"
    )]
    Pattern,
    /// The host of the pattern cannot have subdomains.
    #[error("put a host name after '*.', as in https://*.example.org")]
    PatternHost,
    /// The pattern covers a whole top-level domain.
    #[error(
        "'*.' before a single label would admit pages of other sites: use at least two labels, as in \
         https://*.example.org"
    )]
    PatternTopLevel,
}

/// The origin of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageOrigin {
    /// The request has no origin: the client is not a browser.
    None,
    /// The page with this origin.
    Page(Origin),
    /// The header has a form that no browser sends.
    Invalid,
    /// The transport does not reveal the page; it may be any.
    Unknown,
}

impl PageOrigin {
    /// Returns the origin in the headers of a request.
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

/// The policy for the origins of requests that open a WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OriginPolicy {
    Any,
    Listed(Vec<AllowedOrigin>),
    /// Pages of this machine, and clients other than browsers.
    LoopbackPages,
}

impl OriginPolicy {
    /// Returns the policy of a relay that listens on `listen`, or `None` if origins must be configured.
    pub(crate) fn new(listen: SocketAddr, allowed: &[AllowedOrigin]) -> Option<Self> {
        if allowed.contains(&AllowedOrigin::Any) {
            return Some(Self::Any);
        }
        if allowed.is_empty() {
            return listen.ip().to_canonical().is_loopback().then_some(Self::LoopbackPages);
        }
        Some(Self::Listed(allowed.to_vec()))
    }

    /// Returns true if only pages of listed origins are allowed.
    pub(crate) const fn is_list(&self) -> bool {
        matches!(self, Self::Listed(_))
    }

    /// Returns true if a request with this origin may open a WebSocket.
    pub(crate) fn admits(&self, origin: &PageOrigin) -> bool {
        match (self, origin) {
            (Self::Any, _) | (Self::LoopbackPages, PageOrigin::None) => true,
            (Self::Listed(listed), PageOrigin::Page(origin)) => {
                listed.iter().any(|allowed| allowed.admits(origin))
            }
            (Self::LoopbackPages, PageOrigin::Page(origin)) => origin.is_loopback(),
            (Self::Listed(_), PageOrigin::None) | (_, PageOrigin::Invalid | PageOrigin::Unknown) => false,
        }
    }
}

/// Banned addresses and networks, looked up in logarithmic time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bans {
    /// The first and last address of each range, sorted and without overlaps.
    ranges: Vec<(IpAddr, IpAddr)>,
}

impl Bans {
    /// Parses one address or network per line. A `#` begins a comment.
    ///
    /// The error is the number of the line, counted from 1, and a description.
    pub(crate) fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut networks = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let entry = line.split('#').next().unwrap_or_default().trim();
            if !entry.is_empty() {
                networks.push(syntax::network(entry).map_err(|reason| (index + 1, reason))?);
            }
        }
        let ranges = IpNet::aggregate(&networks).into_iter().map(|net| (net.network(), net.broadcast()));
        let mut ranges: Vec<_> = ranges.collect();
        ranges.sort_unstable();
        Ok(Self { ranges })
    }

    /// Returns true if an address is banned.
    pub(crate) fn contains(&self, ip: IpAddr) -> bool {
        let after = self.ranges.partition_point(|(first, _)| *first <= ip);
        let before = after.checked_sub(1).and_then(|index| self.ranges.get(index));
        before.is_some_and(|(_, last)| ip <= *last)
    }
}

/// The maximum number of bans at a time.
const BANS_MAX: usize = 10_000;

/// The maximum number of bans is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the maximum of {BANS_MAX} bans is reached: lift some, or write them to the file of admission.bans")]
pub(crate) struct TooManyBans;

/// Bans imposed by an operator while the relay runs, in addition to those of the file.
#[derive(Debug, Default)]
pub(super) struct OperatorBans(Mutex<BTreeMap<IpNet, Option<Instant>>>);

impl OperatorBans {
    /// Bans a network until a time, or until the relay stops. A later ban replaces an earlier one of the same network.
    pub(super) fn add(
        &self,
        now: Instant,
        network: IpNet,
        until: Option<Instant>,
    ) -> Result<(), TooManyBans> {
        let mut bans = self.lock();
        let network = canonical(network);
        if bans.len() >= BANS_MAX && !bans.contains_key(&network) {
            forget_over(&mut bans, now);
            if bans.len() >= BANS_MAX {
                return Err(TooManyBans);
            }
        }
        bans.insert(network, until);
        Ok(())
    }

    /// Lifts the ban of a network; returns false if there is none.
    pub(super) fn remove(&self, now: Instant, network: IpNet) -> bool {
        let mut bans = self.lock();
        forget_over(&mut bans, now);
        bans.remove(&canonical(network)).is_some()
    }

    /// Returns true if an address is banned.
    pub(super) fn contains(&self, now: Instant, ip: IpAddr) -> bool {
        let bans = self.lock();
        if bans.is_empty() {
            return false;
        }
        let ip = ip.to_canonical();
        let bits = if ip.is_ipv4() { 32 } else { 128 };
        (0..=bits).filter_map(|length| IpNet::new(ip, length).ok()).any(|network| {
            let until = bans.get(&network.trunc());
            until.is_some_and(|until| until.is_none_or(|until| now < until))
        })
    }

    /// Returns all bans with their remaining times.
    pub(super) fn list(&self, now: Instant) -> Vec<(IpNet, Option<Duration>)> {
        let mut bans = self.lock();
        forget_over(&mut bans, now);
        let left = |until: &Option<Instant>| until.map(|until| until.saturating_duration_since(now));
        bans.iter().map(|(network, until)| (*network, left(until))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpNet, Option<Instant>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forget_over(bans: &mut BTreeMap<IpNet, Option<Instant>>, now: Instant) {
    bans.retain(|_, until| until.is_none_or(|until| now < until));
}

/// Normalizes a network to match client addresses: IPv4-mapped IPv6 becomes IPv4.
pub(crate) fn canonical(network: IpNet) -> IpNet {
    let network = network.trunc();
    match (network.addr().to_canonical(), network.prefix_len().checked_sub(96)) {
        (ip @ IpAddr::V4(_), Some(length)) if network.addr().is_ipv6() => {
            IpNet::new(ip, length).unwrap_or(network)
        }
        _ => network,
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
    fn a_public_relay_requires_configured_origins() {
        assert_eq!(policy("0.0.0.0:80", &[]), None);
        assert_eq!(policy("[::]:80", &[]), None);
        assert_eq!(policy("192.0.2.1:80", &[]), None);
        assert_eq!(policy("0.0.0.0:80", &["*"]), Some(OriginPolicy::Any));
        assert_eq!(policy("[::1]:80", &[]), Some(OriginPolicy::LoopbackPages));
        assert_eq!(policy("[::ffff:127.0.0.1]:80", &[]), Some(OriginPolicy::LoopbackPages));
    }

    #[test]
    fn loopback_relays_admit_local_pages() {
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
    fn listed_origins_are_admitted() {
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
    fn a_wildcard_admits_every_origin() {
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
            "https://a:b",
            "://a",
            "ht tp://a",
        ] {
            assert_eq!(text.parse::<AllowedOrigin>(), Err(OriginSyntaxError::Form), "{text:?}");
        }
    }

    #[test]
    fn a_pattern_admits_subdomains() {
        let policy = policy("0.0.0.0:80", &["https://*.Example.org", "http://*.localhost:5173"]).unwrap();
        for origin in [
            "https://play.example.org",
            "https://PLAY.example.org:443",
            "https://eu-1.play.example.org",
            "http://game.localhost:5173",
        ] {
            assert!(policy.admits(&headers(&[origin])), "{origin}");
        }
        for origin in [
            "https://example.org",
            "https://.example.org",
            "https://a..example.org",
            "https://badexample.org",
            "https://play.example.org.example.net",
            "https://example.net\\.example.org",
            "https://play.example.org.",
            "http://play.example.org",
            "https://play.example.org:8443",
            "http://localhost:5173",
            "http://game.localhost",
            "https://*.example.org",
            "null",
        ] {
            assert!(!policy.admits(&headers(&[origin])), "{origin}");
        }
        assert!(!policy.admits(&headers(&[])), "a client other than a browser sends no origin");
        assert!(!policy.admits(&PageOrigin::Unknown));
    }

    #[test]
    fn invalid_patterns_are_rejected_with_a_reason() {
        use OriginSyntaxError::{Form, Pattern, PatternHost, PatternTopLevel};
        for (text, error) in [
            ("*.example.org", Pattern),
            ("*://play.example.org", Pattern),
            ("https://*", Pattern),
            ("https://**.example.org", Pattern),
            ("https://a*.example.org", Pattern),
            ("https://play.*.org", Pattern),
            ("https://*.*.example.org", Pattern),
            ("https://play.example.org:*", Pattern),
            ("https://*.example.org/", Form),
            ("https://*.example.org:https", Form),
            ("https://*.", Form),
            ("https://*..org", PatternHost),
            ("https://*.192.0.2.1", PatternHost),
            ("https://*.[::1]", PatternHost),
            ("https://*.org", PatternTopLevel),
        ] {
            assert_eq!(text.parse::<AllowedOrigin>(), Err(error), "{text}");
        }
    }

    #[test]
    fn an_origin_pattern_is_formatted_as_written() {
        let pattern: AllowedOrigin = "https://*.example.org:8443".parse().unwrap();
        assert_eq!(serde_json::to_string(&pattern).unwrap(), r#""https://*.example.org:8443""#);
    }

    #[test]
    fn addresses_and_networks_are_banned() {
        let text =
            "# comment\n192.0.2.7\n\n198.51.100.0/24 # a reason\r\n198.51.100.9\n2001:db8::/56\n0.0.0.0/32\n";
        let bans = Bans::parse(text).unwrap();
        for banned in ["192.0.2.7", "198.51.100.0", "198.51.100.255", "2001:db8:0:ff::1", "0.0.0.0"] {
            assert!(bans.contains(banned.parse().unwrap()), "{banned}");
        }
        for free in
            ["192.0.2.6", "192.0.2.8", "198.51.99.255", "198.51.101.0", "2001:db8:0:100::", "::", "0.0.0.1"]
        {
            assert!(!bans.contains(free.parse().unwrap()), "{free}");
        }
        assert!(!Bans::default().contains("192.0.2.7".parse().unwrap()));
    }

    #[test]
    fn an_invalid_line_is_reported_by_number() {
        assert_eq!(Bans::parse("192.0.2.1\n\nexample.org\n").unwrap_err().0, 3);
        assert_eq!(Bans::parse("192.0.2.1/33").unwrap_err().0, 1);
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_ban_covers_its_network_until_it_expires() {
        let (bans, now) = (OperatorBans::default(), Instant::now());
        assert!(!bans.contains(now, ip("192.0.2.7")));
        bans.add(now, "192.0.2.0/24".parse().unwrap(), Some(now + Duration::from_secs(60))).unwrap();
        bans.add(now, "2001:db8::/56".parse().unwrap(), None).unwrap();
        bans.add(now, "::ffff:198.51.100.7/128".parse().unwrap(), None).unwrap();
        for banned in ["192.0.2.7", "::ffff:192.0.2.255", "2001:db8:0:ff::1", "198.51.100.7"] {
            assert!(bans.contains(now, ip(banned)), "{banned}");
        }
        for free in ["192.0.3.1", "2001:db8:0:100::1", "198.51.100.8"] {
            assert!(!bans.contains(now, ip(free)), "{free}");
        }
        let later = now + Duration::from_secs(60);
        assert!(!bans.contains(later, ip("192.0.2.7")), "the ban has expired");
        assert!(bans.contains(later, ip("2001:db8::1")));
        assert_eq!(bans.list(later).len(), 2);
        assert!(bans.remove(later, "2001:db8::/56".parse().unwrap()));
        assert!(!bans.remove(later, "2001:db8::/56".parse().unwrap()));
        assert!(!bans.contains(later, ip("2001:db8::1")));
    }

    #[test]
    fn the_number_of_bans_is_limited() {
        let (bans, now) = (OperatorBans::default(), Instant::now());
        let network = |number: usize| IpNet::from(IpAddr::from((number as u32).to_be_bytes()));
        for number in 0..BANS_MAX {
            bans.add(now, network(number), (number == 0).then_some(now + Duration::from_secs(1))).unwrap();
        }
        assert_eq!(bans.add(now, network(BANS_MAX), None), Err(TooManyBans));
        assert_eq!(bans.add(now, network(1), None), Ok(()), "an existing ban can be replaced");
        let later = now + Duration::from_secs(1);
        assert_eq!(bans.add(later, network(BANS_MAX), None), Ok(()), "one ban has expired");
    }
}
