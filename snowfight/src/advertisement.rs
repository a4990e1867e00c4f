//! Server discovery on the local network through RakNet's unconnected ping. Clients of the Game Protocol use it too,
//! because that protocol has no discovery of its own.

use core::fmt;
use core::net::SocketAddr;
use core::str::FromStr;

const NAME: &str = "snowfight ";

/// The payload of a pong: the name of the game, a space, and the Game Protocol port of the same machine.
///
/// ```
/// use snowfight::advertisement::{Advertisement, AdvertisementSyntaxError};
///
/// let here = Advertisement { port: 8999 };
/// assert_eq!(here.to_string(), "snowfight 8999");
/// assert_eq!("snowfight 8999".parse(), Ok(here));
/// assert_eq!("another game".parse::<Advertisement>(), Err(AdvertisementSyntaxError));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// The port on which the server accepts the Game Protocol.
    pub port: u16,
}

impl Advertisement {
    /// Returns the Game Protocol address of the server that sent this pong from `from`; `None` if the pong is from
    /// another game.
    ///
    /// ```
    /// use snowfight::advertisement::Advertisement;
    ///
    /// let from = "192.0.2.1:19132".parse()?;
    /// assert_eq!(Advertisement::server(b"snowfight 8999", from), Some("192.0.2.1:8999".parse()?));
    /// assert_eq!(Advertisement::server(b"MCPE;another game", from), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn server(data: &[u8], from: SocketAddr) -> Option<SocketAddr> {
        let Self { port } = core::str::from_utf8(data).ok()?.parse().ok()?;
        Some(SocketAddr::new(from.ip(), port))
    }
}

impl fmt::Display for Advertisement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME}{}", self.port)
    }
}

/// The error for data that is not an advertisement of this game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvertisementSyntaxError;

impl fmt::Display for AdvertisementSyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is not an advertisement of this game")
    }
}

impl core::error::Error for AdvertisementSyntaxError {}

impl FromStr for Advertisement {
    type Err = AdvertisementSyntaxError;

    fn from_str(text: &str) -> Result<Self, AdvertisementSyntaxError> {
        let port = text.strip_prefix(NAME).and_then(|port| port.parse().ok());
        port.map(|port| Self { port }).ok_or(AdvertisementSyntaxError)
    }
}
