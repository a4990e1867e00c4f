//! Why a connection does not open, and why it ended.

use rakwire::endpoint::Protocol;

/// The close code of a connection that was lost (RFC 6455 section 7.4.1).
pub(super) const LOST: u16 = 1006;

/// How what carried the connection to the relay ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayClose {
    /// The close code of the WebSocket, or of the session of WebTransport: 1006 when the relay vanished or was never there, 4404 for an
    /// unknown target.
    pub code: u16,
    /// The relay's words, often none; or those of the browser with 1006.
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

pub(super) const BAD_URL: &str = "the URL is not one of a relay";
pub(super) const LOCAL_NETWORK_REFUSED: &str = "the browser refuses this page the local network";
pub(super) const LOCAL_NETWORK_UNDECIDED: &str = "the relay is not reached: from the public network a page of https gets there once its player permits that to the browser";

/// Why a connection could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError<P: Protocol> {
    /// The URL is not one of a relay: it begins with `ws://`, `wss://`, `http://` or `https://` or leads there from the page, and has no
    /// user and no password.
    BadUrl,
    /// The browser has no WebTransport, and [`Transport::WebTransport`](super::Transport::WebTransport) was asked for. Pages of `http`
    /// have none, but for those of this machine.
    NoTransport,
    /// The browser does not have the memory that the connection should have.
    OutOfMemory,
    /// The password is too long, the memory of the connection too small for it, an identity is given without whom to trust, or
    /// its data is too long.
    Refused(rakwire::endpoint::ConnectError),
    /// The relay refused, or cannot be reached.
    Relay(RelayClose),
    /// The game server refused, or does not answer.
    Server(P::ConnectFailure),
    /// The browser does not let this page reach a relay in the local network, or on this machine: its player has refused, or a frame
    /// lacks `allow="local-network; loopback-network; local-network-access"`.
    LocalNetworkRefused,
    /// The relay in the local network, or on this machine, was not reached, and the browser does not let this page there until its player
    /// permits it: the player has not answered within 15 seconds, or the page did not come by `https`, so that the browser does not ask.
    LocalNetworkUndecided,
    /// There was no connection within 15 seconds, as where a relay takes a connection and says nothing.
    Timeout,
}

impl<P: Protocol> core::fmt::Display for ConnectError<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::BadUrl => f.write_str(BAD_URL),
            Self::NoTransport => f.write_str("this browser has no WebTransport"),
            Self::OutOfMemory => f.write_str("there is not so much memory"),
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

/// Why an open connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending<P: Protocol> {
    /// As the protocol sees it.
    Peer(P::DisconnectReason),
    /// What carried it to the relay ended first.
    Relay(RelayClose),
}

impl<P: Protocol> core::fmt::Display for Ending<P> {
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
    fn the_relays_words_are_kept() {
        let close = RelayClose { code: 4404, reason: "unknown target 'x'".to_owned() };
        let words = ConnectError::<RakNet>::Relay(close).to_string();
        assert_eq!(words, "relay closed: unknown target 'x' (code 4404)");
        let silent = RelayClose { code: 1006, reason: String::new() };
        let words = Ending::<GameProtocol>::Relay(silent).to_string();
        assert_eq!(words, "connection to the relay lost (code 1006)");
    }

    #[test]
    fn a_server_that_does_not_answer_has_the_same_words_in_both_protocols() {
        let raknet = ConnectError::<RakNet>::Server(ConnectFailure::NoAnswer);
        let game_protocol = ConnectError::<GameProtocol>::Server(game_protocol::ConnectFailure::NoAnswer);
        assert_eq!(raknet.to_string(), "the server does not answer");
        assert_eq!(raknet.to_string(), game_protocol.to_string());
    }
}
