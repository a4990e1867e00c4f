//! The reasons why a connection is not opened or was closed.

use rakwire::endpoint::Protocol;

/// The close code of a lost connection (RFC 6455 section 7.4.1).
pub(super) const LOST: u16 = 1006;

/// The reason why the transport to the relay was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayClose {
    /// The close code of the WebSocket or the WebTransport session: 1006 if the relay vanished or is unreachable, 4404
    /// for an unknown target.
    pub code: u16,
    /// The close reason sent by the relay, often empty. With the code 1006, a description by the browser.
    pub reason: String,
}

impl core::fmt::Display for RelayClose {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.reason.is_empty() || self.code == LOST {
            write!(f, "connection to the relay lost (code {})", self.code)
        } else {
            write!(f, "relay closed: {} (code {})", self.reason, self.code)
        }
    }
}

pub(super) const INVALID_URL: &str =
    "the URL of a relay begins with ws://, wss://, http:// or https://, and has no user and no password";
pub(super) const LOCAL_NETWORK_REFUSED: &str = "the browser denies access to the local network";
pub(super) const LOCAL_NETWORK_UNDECIDED: &str =
    "the relay was not reached: the page needs https and the permission of its user for the local network";

/// The reason why a connection could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError<P: Protocol> {
    /// The URL is not that of a relay. It must begin with `ws://`, `wss://`, `http://` or `https://`, or be relative to
    /// the page, and must contain neither a user name nor a password.
    InvalidUrl,
    /// [`Transport::WebTransport`](super::Transport::WebTransport) was requested, and the browser does not support it.
    /// `http` pages never do, except those from the local machine.
    NoTransport,
    /// The browser cannot allocate the requested memory.
    OutOfMemory,
    /// The password is too long, the memory is too small for it, an identity is given without `trust`, or its data is
    /// too long.
    Refused(rakwire::endpoint::ConnectError),
    /// The relay refused the connection, or is unreachable.
    Relay(RelayClose),
    /// The game server refused the connection, or does not answer.
    Server(P::ConnectFailure),
    /// The browser does not let this page access a relay in the local network or on this machine: the user refused it,
    /// or a frame lacks `allow="local-network; loopback-network; local-network-access"`.
    LocalNetworkRefused,
    /// A relay in the local network or on this machine was not reached, and the browser requires a permission. Either
    /// the user has not answered the prompt within 15 seconds, or the browser shows no prompt because the page was
    /// not loaded over `https`.
    LocalNetworkUndecided,
    /// The connection did not open within 15 seconds, for example because the relay accepts a connection and sends
    /// nothing.
    Timeout,
}

impl<P: Protocol> core::fmt::Display for ConnectError<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::InvalidUrl => f.write_str(INVALID_URL),
            Self::NoTransport => {
                f.write_str("this browser has no WebTransport; use Transport::Auto or Transport::WebSocket")
            }
            Self::OutOfMemory => f.write_str("there is not enough memory"),
            Self::Refused(error) => error.fmt(f),
            Self::Relay(close) => close.fmt(f),
            Self::Server(failure) => failure.fmt(f),
            Self::LocalNetworkRefused => f.write_str(LOCAL_NETWORK_REFUSED),
            Self::LocalNetworkUndecided => f.write_str(LOCAL_NETWORK_UNDECIDED),
            Self::Timeout => f.write_str("no connection within 15 s"),
        }
    }
}

impl<P: Protocol> core::error::Error for ConnectError<P> {}

/// The reason why an open connection was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason<P: Protocol> {
    /// The protocol closed the connection.
    Peer(P::DisconnectReason),
    /// The transport to the relay was closed first.
    Relay(RelayClose),
}

impl<P: Protocol> core::fmt::Display for CloseReason<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Peer(reason) => reason.fmt(f),
            Self::Relay(close) => close.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use rakwire::game_protocol::{self, GameProtocol};
    use rakwire::raknet::{ConnectFailure, RakNet};

    use super::*;

    #[test]
    fn close_reason_of_the_relay_is_kept() {
        let close = RelayClose { code: 4404, reason: "unknown target 'x'".to_owned() };
        let words = ConnectError::<RakNet>::Relay(close).to_string();
        assert_eq!(words, "relay closed: unknown target 'x' (code 4404)");
        let silent = RelayClose { code: 1006, reason: String::new() };
        let words = CloseReason::<GameProtocol>::Relay(silent).to_string();
        assert_eq!(words, "connection to the relay lost (code 1006)");
    }

    #[test]
    fn unresponsive_server_has_the_same_text_in_both_protocols() {
        let raknet = ConnectError::<RakNet>::Server(ConnectFailure::NoAnswer);
        let game_protocol = ConnectError::<GameProtocol>::Server(game_protocol::ConnectFailure::NoAnswer);
        assert_eq!(raknet.to_string(), "the server does not answer");
        assert_eq!(raknet.to_string(), game_protocol.to_string());
    }
}
