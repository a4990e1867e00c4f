//! What a server says of itself to whoever looks for one on the local network, with RakNet's ping: a client of the Game
//! Protocol, which knows no such thing, asks by RakNet too.

use core::fmt;
use core::net::SocketAddr;
use core::str::FromStr;

const NAME: &str = "snowfight ";

/// An answer to a ping: the name of the game, a space, and the port of the Game Protocol on the same machine.
///
/// ```
/// use snowfight::advertisement::Advertisement;
///
/// let here = Advertisement { port: 8999 };
/// assert_eq!(here.to_string(), "snowfight 8999");
/// assert_eq!("snowfight 8999".parse(), Ok(here));
/// assert!("another game".parse::<Advertisement>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// Where the server listens with the Game Protocol.
    pub port: u16,
}

impl Advertisement {
    /// The server's address, when this answer came from `from`; nothing when it is another game's.
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
    pub fn server(answer: &[u8], from: SocketAddr) -> Option<SocketAddr> {
        let Self { port } = core::str::from_utf8(answer).ok()?.parse().ok()?;
        Some(SocketAddr::new(from.ip(), port))
    }
}

impl fmt::Display for Advertisement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME}{}", self.port)
    }
}

/// Not the advertisement of this game.
///
/// ```
/// assert_eq!(snowfight::advertisement::NotOurs.to_string(), "this is another game's answer");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotOurs;

impl fmt::Display for NotOurs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is another game's answer")
    }
}

impl core::error::Error for NotOurs {}

impl FromStr for Advertisement {
    type Err = NotOurs;

    fn from_str(text: &str) -> Result<Self, NotOurs> {
        let port = text.strip_prefix(NAME).and_then(|port| port.parse().ok());
        port.map(|port| Self { port }).ok_or(NotOurs)
    }
}
