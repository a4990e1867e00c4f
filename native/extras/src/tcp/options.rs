//! The options of endpoints and connections over TCP.

use rakwire::codec::frames;
use std::time::Duration;

#[cfg(feature = "tls")]
use std::sync::Arc;

#[cfg(feature = "tls")]
use tokio_rustls::rustls::{ClientConfig, ServerConfig, pki_types::ServerName};

/// How messages lie in the stream of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Framing {
    /// Each message behind its length, as in RakNet's `PacketizedTCP`.
    #[default]
    Packets,
    /// Bytes alone, as in RakNet's `TCPInterface`: a received message is what has arrived by then, at most 16 KiB.
    Stream,
}

impl Framing {
    /// The bytes of a message on the wire; `None` if it is longer than a header can say.
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
    /// The most connections that others may open, those in the handshake of TLS and those that wait for
    /// [`accept`](super::Endpoint::accept) included. Further ones are closed at once and counted as
    /// [`refused`](super::EndpointStats::refused). With 0 the endpoint does not listen.
    pub max_incoming: usize,
    /// The most of them that one IP address may have, or 64 bits of IPv6, as over UDP
    /// ([`Config::max_per_address`](rakwire::raknet::Config::max_per_address)). Further ones are closed at once and counted as
    /// [`refused_by_address`](super::EndpointStats::refused_by_address). IPv4 inside IPv6 counts as IPv4. Default: three quarters
    /// of [`max_incoming`](Self::max_incoming), at most 49,152; no limit below 16 places. 0 counts as 1; 65,535 is no limit, for
    /// servers behind a proxy. Addresses that the Internet does not pass on (loopback, private, link-local and unique local
    /// ones) are not limited.
    pub max_per_address: Option<u16>,
    /// The same for one network (24 bits of IPv4, 48 of IPv6); further ones are counted as
    /// [`refused_by_network`](super::EndpointStats::refused_by_network). Default: seven eighths of
    /// [`max_incoming`](Self::max_incoming), at most 57,344.
    pub max_per_network: Option<u16>,
    /// The longest message in bytes, in both directions: 1 MiB. Whoever announces a longer one is disconnected. The memory
    /// of a message that arrives is taken as its bytes arrive.
    pub max_message: u32,
    /// What may wait to be sent, in bytes, of each connection; every message is charged 64 bytes more. 2 MiB by default, and
    /// never less than one message of [`max_message`](Self::max_message).
    pub send_queue: usize,
    /// What may wait to be received, in bytes, of each connection; every message is charged 64 bytes more. While it is full
    /// TCP lets the other side wait. 2 MiB by default, and never less than one message of
    /// [`max_message`](Self::max_message).
    pub receive_queue: usize,
    /// For how long the other side may take nothing of what is sent, and about how long its machine may be silent: the
    /// system asks an idle one in between. 10 s by default, 2 s at least.
    pub timeout: Duration,
    /// How long the handshake of TLS of a client may take. 10 s by default.
    pub handshake_timeout: Duration,
    /// How long a client that has connected may take for its first message, which has to be there as a whole by then, unless
    /// something was sent to it before; the connection ends with
    /// [`NoFirstMessage`](super::DisconnectReason::NoFirstMessage). 30 s by default, `Duration::MAX` for no limit.
    pub first_message_timeout: Duration,
    /// How long [`disconnect`](super::Connection::disconnect) waits for what was sent before to leave, and for the other
    /// side to close too. 10 s by default.
    pub close_timeout: Duration,
    /// How messages lie in the stream.
    pub framing: Framing,
    /// Certificates for clients that connect here; with `None`, the default, they connect without TLS.
    #[cfg(feature = "tls")]
    pub tls: Option<Arc<ServerConfig>>,
}

impl Options {
    /// An endpoint that only opens connections.
    #[must_use]
    pub const fn client() -> Self {
        Self::server(0)
    }

    /// An endpoint to which others connect.
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
    /// How long the server may take to answer, TLS included. 10 s by default.
    pub connect_timeout: Option<Duration>,
    /// Whom to trust, and the name that the server has to prove; with `None`, the default, there is no TLS.
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
