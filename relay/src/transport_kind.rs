//! The kinds of transports between clients and the relay.

use std::fmt;

counted! {
    /// What carries the datagrams of a client.
    pub enum TransportKind {
        /// A WebSocket: one binary message is one datagram.
        WebSocket,
        /// Data channels of WebRTC: one message of the second one is one datagram.
        WebRtc,
        /// WebTransport: datagrams of QUIC.
        WebTransport,
    }
}

impl TransportKind {
    /// Its name in the log, in metrics and in lists.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WebSocket => "websocket",
            Self::WebRtc => "webrtc",
            Self::WebTransport => "webtransport",
        }
    }
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
