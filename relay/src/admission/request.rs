//! What a client asks for.

use std::fmt;
use std::net::SocketAddr;

use http::HeaderMap;
use http::header::SEC_WEBSOCKET_PROTOCOL;

use super::origin::PageOrigin;

/// The prefix of a WebSocket subprotocol that carries a token.
const TOKEN_PROTOCOL: &str = "rakwire.token.";

/// The value of `unreachable` with which a client wants to be closed.
const CLOSE: &str = "close";

/// A token as a client sent it. It is never shown.
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
    /// The client, as the connection or trusted proxies name it.
    pub(crate) client: SocketAddr,
    /// The page that the client runs in.
    pub(crate) origin: PageOrigin,
    /// The name of the target.
    pub(crate) target: Option<String>,
    pub(crate) token: Option<Token>,
    /// Whether it opens several connections and goes on with one of them.
    pub(crate) is_deferred: bool,
    /// Whether it has the secret of a flow, to which it comes back.
    pub(crate) is_returning: bool,
    /// Whether it is closed if its game server is unreachable.
    pub(crate) closes_unreachable: bool,
}

impl Request {
    /// The request of an HTTP upgrade.
    pub(crate) fn from_http(client: SocketAddr, headers: &HeaderMap, query: &str) -> Self {
        let token = parameter(query, "token").or_else(|| token_protocol(headers));
        Self {
            client,
            origin: PageOrigin::of(headers),
            target: parameter(query, "target"),
            token: token.map(Token),
            is_deferred: parameter(query, "defer").is_some(),
            is_returning: false,
            closes_unreachable: parameter(query, "unreachable").is_some_and(|value| value == CLOSE),
        }
    }

    /// The request of a transport that does not tell which page has opened it.
    pub(crate) fn without_origin(client: SocketAddr, target: Option<String>, token: Option<String>) -> Self {
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        Self {
            client,
            origin: PageOrigin::Unknown,
            target: given(target),
            token: given(token).map(Token),
            is_deferred: false,
            is_returning: false,
            closes_unreachable: false,
        }
    }

    /// The same of a client that may open several connections.
    pub(crate) fn deferred(self, is_deferred: bool) -> Self {
        Self { is_deferred, ..self }
    }

    /// The same of a client that may have said what is to happen if its game server is unreachable.
    pub(crate) fn when_unreachable(self, then: Option<&str>) -> Self {
        Self { closes_unreachable: then == Some(CLOSE), ..self }
    }

    /// Whether [`Admission::check`](super::Admission::check) counts it as a new client.
    pub(crate) const fn is_counted(&self) -> bool {
        !self.is_deferred && !self.is_returning
    }

    /// The same of a client that may have the secret of a flow.
    pub(crate) fn returning(self, is_returning: bool) -> Self {
        Self { is_returning, ..self }
    }
}

/// A parameter of a query string; an empty one counts as missing.
pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let (_, value) = pairs.find(|(key, _)| key == name)?;
    (!value.is_empty()).then(|| value.into_owned())
}

/// The token among the subprotocols that a client offers: pages cannot set other headers.
fn token_protocol(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let mut offered = lines.flat_map(|line| line.split(',')).map(str::trim);
    offered.find_map(|protocol| protocol.strip_prefix(TOKEN_PROTOCOL)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(query: &str, protocols: &'static str) -> Request {
        let mut headers = HeaderMap::new();
        headers.append(SEC_WEBSOCKET_PROTOCOL, http::HeaderValue::from_static(protocols));
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
    fn a_token_is_never_shown() {
        let shown = format!("{:?}", request("token=secret", "rakwire.token.secret"));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
