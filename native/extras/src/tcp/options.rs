//! The options of endpoints and connections over TCP.

use rakwire::codec::frames;
use std::time::Duration;

#[cfg(feature = "tls")]
use std::sync::Arc;

#[cfg(feature = "tls")]
use tokio_rustls::rustls::{ClientConfig, ServerConfig, pki_types::ServerName};

/// The encoding of messages in the byte stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Framing {
    /// Each message follows its length, as in RakNet's `PacketizedTCP`.
    #[default]
    Packets,
    /// Bytes only, as in RakNet's `TCPInterface`: a received message consists of the bytes that one read returns, at
    /// most 16 KiB.
    Stream,
}

impl Framing {
    /// Returns the bytes of a message on the wire, or `None` if it is too long for the length field.
    pub(super) fn frame(self, message: &[u8]) -> Option<Vec<u8>> {
        let header = frames::header(u32::try_from(message.len()).ok()?);
        Some(match self {
            Self::Packets => [&header, message].concat(),
            Self::Stream => message.to_vec(),
        })
    }
}

/// The options of an [`Endpoint`](super::Endpoint).
///
/// ```
/// use std::time::Duration;
/// use rakwire_extras::tcp::{Framing, Options};
///
/// let mut options = Options::server(500);
/// assert_eq!((options.max_incoming, options.max_message, options.framing), (500, 1 << 20, Framing::Packets));
/// options.timeout = Duration::from_secs(30);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Maximum number of incoming connections.
    ///
    /// Connections in the TLS handshake count, and so do those that wait for [`accept`](super::Endpoint::accept).
    /// Further connections are closed immediately and counted as [`refused`](super::EndpointStats::refused). With 0 the
    /// endpoint does not listen.
    pub max_incoming: usize,
    /// Maximum number of incoming connections per IPv4 address or 64-bit IPv6 prefix.
    ///
    /// Further connections are closed immediately and counted as
    /// [`refused_by_address`](super::EndpointStats::refused_by_address). IPv4-mapped IPv6 addresses count as IPv4. The
    /// limit corresponds to [`Config::max_per_address`](rakwire::raknet::Config::max_per_address) over UDP.
    ///
    /// Default: three quarters of [`max_incoming`](Self::max_incoming), at most 49,152; no limit below 16 slots. 0
    /// counts as 1. 65,535 means no limit, for servers behind a proxy. Addresses that are not routed on the Internet
    /// (loopback, private, link-local and unique local ones) are not limited.
    pub max_per_address: Option<u16>,
    /// Maximum number of incoming connections per network (24 bits of IPv4, 48 of IPv6).
    ///
    /// Further connections are closed immediately and counted as
    /// [`refused_by_network`](super::EndpointStats::refused_by_network). Default: seven eighths of
    /// [`max_incoming`](Self::max_incoming), at most 57,344.
    pub max_per_network: Option<u16>,
    /// Maximum message length in bytes, in both directions: 1 MiB by default.
    ///
    /// A peer that announces a longer message is disconnected. Memory for a message is allocated as its bytes arrive.
    pub max_message: u32,
    /// Size of the send queue of each connection in bytes. Each message is charged 64 bytes in addition to its length.
    ///
    /// 2 MiB by default, and never less than one message of [`max_message`](Self::max_message).
    pub send_queue: usize,
    /// Size of the receive queue of each connection in bytes. Each message is charged 64 bytes in addition to its
    /// length.
    ///
    /// While it is full, TCP flow control stops the peer. 2 MiB by default, and never less than one message of
    /// [`max_message`](Self::max_message).
    pub receive_queue: usize,
    /// How long the peer may accept no data before the connection is lost.
    ///
    /// The system sends keep-alive probes to an idle peer, so a lost peer is detected after about the same time. 10 s
    /// by default, at least 2 s.
    pub timeout: Duration,
    /// Time limit for the TLS handshake of a client. 10 s by default.
    pub handshake_timeout: Duration,
    /// Time limit for the first complete message from a client. It does not apply once a message has been sent to the
    /// client.
    ///
    /// The connection of a client that exceeds it is closed with
    /// [`NoFirstMessage`](super::DisconnectReason::NoFirstMessage). 30 s by default, `Duration::MAX` for no limit.
    pub first_message_timeout: Duration,
    /// How long [`disconnect`](super::Connection::disconnect) waits for queued data to be sent and for the peer to
    /// close its side.
    ///
    /// 10 s by default.
    pub close_timeout: Duration,
    /// The encoding of messages in the stream.
    pub framing: Framing,
    /// The certificates of a server, for clients that connect with TLS. With `None`, the default, clients connect
    /// without TLS.
    #[cfg(feature = "tls")]
    pub tls: Option<Arc<ServerConfig>>,
}

impl Options {
    /// Creates the options of an endpoint that only opens connections.
    #[must_use]
    pub const fn client() -> Self {
        Self::server(0)
    }

    /// Creates the options of an endpoint that accepts up to `max_incoming` connections.
    #[must_use]
    pub const fn server(max_incoming: usize) -> Self {
        Self {
            max_incoming,
            max_per_address: None,
            max_per_network: None,
            max_message: 1 << 20,
            send_queue: 2 << 20,
            receive_queue: 2 << 20,
            timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(10),
            first_message_timeout: Duration::from_secs(30),
            close_timeout: Duration::from_secs(10),
            framing: Framing::Packets,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

/// The options of one attempt to connect.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// Time limit for connecting, including the TLS handshake. 10 s by default.
    pub connect_timeout: Option<Duration>,
    /// The trusted certificates, and the name that the server's certificate must have. With `None`, the default, there
    /// is no TLS.
    ///
    /// ```
    /// # #[cfg(feature = "tls")] {
    /// use std::sync::Arc;
    /// use rakwire_extras::tcp::{ConnectOptions, rustls};
    ///
    /// let mut roots = rustls::RootCertStore::empty(); // those of webpki-roots or rustls-native-certs in a real program
    /// # let key = rcgen::generate_simple_self_signed(["example.org".to_owned()]).expect("a certificate");
    /// # roots.add(key.cert.der().clone()).expect("a root");
    /// let config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    /// let name = rustls::pki_types::ServerName::try_from("example.org").expect("a name");
    /// let mut options = ConnectOptions::default();
    /// options.tls = Some((Arc::new(config), name));
    /// # }
    /// ```
    #[cfg(feature = "tls")]
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}
