//! A client's request for a flow, the address of the client, and the reasons for a refusal.
//!
//! Behind reverse proxies, the client's address is in a header. Any client can send such a header, so only the part
//! written by trusted proxies counts. The list is read backwards, from the entry of the nearest proxy to the first
//! address that is not a trusted proxy.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use http::header::{FORWARDED, HeaderName, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderValue};
use ipnet::IpNet;

use super::lists::PageOrigin;
use crate::addresses::canonical;
use crate::close::CloseReason;
use crate::config::ForwardedHeader;

/// The prefix of a WebSocket subprotocol that carries a token.
const TOKEN_PROTOCOL: &str = "rakwire.token.";

/// The value of the parameter `unreachable` with which a client requests to be closed.
const CLOSE: &str = "close";

/// A token as sent by a client. Its text is never logged or displayed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// A client's request for a flow.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The address of the client, taken from the connection or named by trusted proxies.
    pub(crate) client: SocketAddr,
    /// The page in which the client runs.
    pub(crate) origin: PageOrigin,
    /// The name of the target.
    pub(crate) target: Option<String>,
    pub(crate) token: Option<Token>,
    /// True if the client opens several connections and continues with one of them.
    pub(crate) is_deferred: bool,
    /// True if the client has the secret of a flow to resume.
    pub(crate) is_returning: bool,
    /// True if the client is to be closed when its game server is unreachable.
    pub(crate) closes_on_unreachable: bool,
}

impl Request {
    /// Parses the request of an HTTP upgrade.
    pub(crate) fn from_http(client: SocketAddr, headers: &HeaderMap, query: &str) -> Self {
        let token = parameter(query, "token").or_else(|| token_protocol(headers));
        Self {
            client,
            origin: PageOrigin::of(headers),
            target: parameter(query, "target"),
            token: token.map(Token),
            is_deferred: parameter(query, "defer").is_some(),
            is_returning: false,
            closes_on_unreachable: parameter(query, "unreachable").is_some_and(|value| value == CLOSE),
        }
    }

    /// Creates the request of a transport that does not reveal the page.
    pub(crate) fn without_origin(client: SocketAddr, target: Option<String>, token: Option<String>) -> Self {
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        Self {
            client,
            origin: PageOrigin::Unknown,
            target: given(target),
            token: given(token).map(Token),
            is_deferred: false,
            is_returning: false,
            closes_on_unreachable: false,
        }
    }

    /// Sets whether the client may open several connections.
    pub(crate) fn deferred(self, is_deferred: bool) -> Self {
        Self { is_deferred, ..self }
    }

    /// Sets the client's choice for the case that the game server is unreachable.
    pub(crate) fn when_unreachable(self, then: Option<&str>) -> Self {
        Self { closes_on_unreachable: then == Some(CLOSE), ..self }
    }

    /// Returns true if [`Admission::check`](super::Admission::check) counts this request as a new client.
    pub(crate) const fn is_counted(&self) -> bool {
        !self.is_deferred && !self.is_returning
    }

    /// Sets whether the client has the secret of a flow.
    pub(crate) fn returning(self, is_returning: bool) -> Self {
        Self { is_returning, ..self }
    }
}

/// Returns a parameter of a query string. An empty parameter counts as missing.
pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let (_, value) = pairs.find(|(key, _)| key == name)?;
    (!value.is_empty()).then(|| value.into_owned())
}

/// Returns the token from the offered subprotocols. A page cannot set any other header of a WebSocket request.
fn token_protocol(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let mut offered = lines.flat_map(|line| line.split(',')).map(str::trim);
    offered.find_map(|protocol| protocol.strip_prefix(TOKEN_PROTOCOL)).map(str::to_owned)
}

/// The reason why a client is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The client may not connect, for any request.
    Forbidden(Forbidden),
    /// The reason is reported with a close code, because a page cannot read an HTTP status.
    Close(CloseReason),
}

/// The reasons why a client may not connect, for any request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forbidden {
    /// The page has a forbidden origin.
    Origin,
    /// The address is banned.
    Banned,
}

impl From<CloseReason> for Refusal {
    fn from(reason: CloseReason) -> Self {
        Self::Close(reason)
    }
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The trusted proxies, and the header in which they name the client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TrustedProxies {
    networks: Vec<IpNet>,
    header: ForwardedHeader,
}

impl TrustedProxies {
    pub(crate) const fn new(networks: Vec<IpNet>, header: ForwardedHeader) -> Self {
        Self { networks, header }
    }

    /// Returns true if this is the address of a trusted proxy.
    pub(crate) fn contains(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.networks.iter().any(|network| network.contains(&ip))
    }

    /// Returns the client of a request that arrived from `peer`: the peer itself, or the client named by trusted
    /// proxies. If no proxy names a client, the address of the trusted proxy is returned.
    ///
    /// The port of a forwarded client is zero if no proxy provides it.
    pub(crate) fn client(&self, peer: SocketAddr, headers: &HeaderMap) -> SocketAddr {
        let mut known = canonical(peer);
        if !self.contains(known.ip()) {
            return known;
        }
        let parse: fn(&str) -> Option<SocketAddr> = match self.header {
            ForwardedHeader::XForwardedFor => address,
            ForwardedHeader::Forwarded => forwarded_for,
            ForwardedHeader::None => return known,
        };
        let name = if self.header == ForwardedHeader::Forwarded { FORWARDED } else { X_FORWARDED_FOR };
        let lines: Vec<&[u8]> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
        // Commas inside quotes also separate entries: no address contains a comma, and an unclosed quote from the
        // client must not hide an entry appended by a proxy. For the same reason, each entry is decoded separately.
        for entry in lines.iter().rev().flat_map(|line| line.rsplit(|&byte| byte == b',')) {
            let Some(address) = str::from_utf8(entry).ok().and_then(|entry| parse(entry.trim())) else {
                return known;
            };
            known = canonical(address);
            if !self.contains(known.ip()) {
                return known;
            }
        }
        known
    }
}

/// Parses an address with or without a port; an IPv6 address without a port may have brackets.
fn address(text: &str) -> Option<SocketAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().map(|ip| SocketAddr::new(ip, 0)).or_else(|_| text.parse()).ok()
}

/// Parses the `for` parameter of one element of `Forwarded` (RFC 7239 section 4).
fn forwarded_for(element: &str) -> Option<SocketAddr> {
    let mut pairs = element.split(';').filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.eq_ignore_ascii_case("for"))?;
    let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    address(bare.unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(query: &str, protocols: &'static str) -> Request {
        let mut headers = HeaderMap::new();
        headers.append(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocols));
        Request::from_http(([192, 0, 2, 1], 5).into(), &headers, query)
    }

    #[test]
    fn the_target_is_decoded() {
        let cases = [
            ("", None),
            ("target", None),
            ("target=", None),
            ("Target=game", None),
            ("target=game", Some("game")),
            ("a=b&target=game&target=other", Some("game")),
            ("target=a%20b+c%2fd%C3%A9", Some("a b c/dé")),
            ("target=%ff%", Some("\u{fffd}%")),
        ];
        for (query, target) in cases {
            assert_eq!(request(query, "").target.as_deref(), target, "{query}");
        }
    }

    #[test]
    fn a_token_is_a_parameter_or_a_subprotocol() {
        let token = |query, protocols| request(query, protocols).token.map(|token| token.0);
        assert_eq!(token("token=a.b.c", ""), Some("a.b.c".to_owned()));
        assert_eq!(token("", "rakwire.relay.1, rakwire.token.a.b.c"), Some("a.b.c".to_owned()));
        assert_eq!(token("token=x", "rakwire.token.y"), Some("x".to_owned()));
        assert_eq!(token("token=", "rakwire.relay.1"), None);
    }

    #[test]
    fn debug_output_hides_the_token() {
        let shown = format!("{:?}", request("token=secret", "rakwire.token.secret"));
        assert!(!shown.contains("secret"), "{shown}");
    }

    fn client(header: ForwardedHeader, peer: &str, lines: &[(&str, &str)]) -> String {
        let networks = ["127.0.0.1/32", "10.0.0.0/8", "2001:db8:1::/48"].map(|text| text.parse().unwrap());
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        let proxies = TrustedProxies::new(networks.into(), header);
        proxies.client(SocketAddr::new(peer.parse().unwrap(), 9), &headers).ip().to_string()
    }

    fn x_forwarded_for(peer: &str, lines: &[&str]) -> String {
        let lines: Vec<_> = lines.iter().map(|line| ("x-forwarded-for", *line)).collect();
        client(ForwardedHeader::XForwardedFor, peer, &lines)
    }

    #[test]
    fn forwarding_headers_count_only_from_trusted_proxies() {
        assert_eq!(x_forwarded_for("192.0.2.1", &["203.0.113.9"]), "192.0.2.1");
        assert_eq!(x_forwarded_for("127.0.0.1", &["203.0.113.9"]), "203.0.113.9");
        assert_eq!(x_forwarded_for("::ffff:127.0.0.1", &["203.0.113.9"]), "203.0.113.9");
        assert_eq!(x_forwarded_for("2001:db8:1::5", &["2001:db8:2::7"]), "2001:db8:2::7");
        assert_eq!(x_forwarded_for("127.0.0.1", &[]), "127.0.0.1");
    }

    #[test]
    fn only_entries_appended_by_trusted_proxies_count() {
        assert_eq!(x_forwarded_for("127.0.0.1", &["198.51.100.1, 203.0.113.9"]), "203.0.113.9");
        assert_eq!(x_forwarded_for("127.0.0.1", &["198.51.100.1", "203.0.113.9"]), "203.0.113.9");
        assert_eq!(x_forwarded_for("127.0.0.1", &["198.51.100.1, 203.0.113.9, 10.1.1.1"]), "203.0.113.9");
        assert_eq!(x_forwarded_for("127.0.0.1", &["10.0.0.2, 10.0.0.1"]), "10.0.0.2");
    }

    #[test]
    fn malformed_bytes_do_not_hide_appended_entries() {
        let client = |header, name: &str, lines: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                let value = HeaderValue::from_bytes(line).unwrap();
                headers.append(name.parse::<HeaderName>().unwrap(), value);
            }
            let proxies = TrustedProxies::new(vec!["127.0.0.1/32".parse().unwrap()], header);
            proxies.client("127.0.0.1:9".parse().unwrap(), &headers).ip().to_string()
        };
        for lines in
            [&[&b"\xff, 203.0.113.9"[..]][..], &[b"\xff", b"203.0.113.9"], &[b"\xff,\xfe,203.0.113.9"]]
        {
            assert_eq!(client(ForwardedHeader::XForwardedFor, "x-forwarded-for", lines), "203.0.113.9");
        }
        let lines: [&[u8]; 1] = [b"for=\xff, for=203.0.113.9"];
        assert_eq!(client(ForwardedHeader::Forwarded, "forwarded", &lines), "203.0.113.9");
        assert_eq!(client(ForwardedHeader::XForwardedFor, "x-forwarded-for", &[b"\xff"]), "127.0.0.1");
    }

    #[test]
    fn an_unreadable_forwarding_entry_yields_the_proxy_address() {
        for line in ["", "unknown", "203.0.113.9,", "203.0.113.9 x", "203.0.113.256", "\u{7f}x"] {
            let seen = line.parse::<HeaderValue>().is_ok();
            assert!(!seen || x_forwarded_for("127.0.0.1", &[line]) == "127.0.0.1", "{line:?}");
        }
        assert_eq!(x_forwarded_for("127.0.0.1", &["203.0.113.9, unknown, 10.0.0.1"]), "10.0.0.1");
    }

    #[test]
    fn forwarded_addresses_may_have_ports() {
        for (line, expected) in [
            ("203.0.113.9:1234", "203.0.113.9"),
            ("[2001:db8::9]", "2001:db8::9"),
            ("[2001:db8::9]:1234", "2001:db8::9"),
            ("::ffff:203.0.113.9", "203.0.113.9"),
        ] {
            assert_eq!(x_forwarded_for("127.0.0.1", &[line]), expected);
        }
    }

    #[test]
    fn the_forwarded_header_is_parsed() {
        let forwarded = |line: &str| client(ForwardedHeader::Forwarded, "127.0.0.1", &[("forwarded", line)]);
        assert_eq!(forwarded("for=203.0.113.9;proto=https"), "203.0.113.9");
        assert_eq!(forwarded("proto=https; For=\"[2001:db8::9]:4711\""), "2001:db8::9");
        assert_eq!(forwarded("for=198.51.100.1, for=203.0.113.9"), "203.0.113.9");
        assert_eq!(
            forwarded("for=\"198.51.100.1, for=203.0.113.9"),
            "203.0.113.9",
            "an unclosed quote hides no later entry"
        );
        for hidden in ["for=_secret", "for=unknown", "by=203.0.113.9", "for="] {
            assert_eq!(forwarded(hidden), "127.0.0.1", "{hidden}");
        }
    }

    #[test]
    fn unconfigured_forwarding_headers_are_ignored() {
        let lines = [("x-forwarded-for", "198.51.100.1"), ("forwarded", "for=203.0.113.9")];
        assert_eq!(client(ForwardedHeader::XForwardedFor, "127.0.0.1", &lines), "198.51.100.1");
        assert_eq!(client(ForwardedHeader::Forwarded, "127.0.0.1", &lines), "203.0.113.9");
        assert_eq!(client(ForwardedHeader::None, "127.0.0.1", &lines), "127.0.0.1");
    }
}
