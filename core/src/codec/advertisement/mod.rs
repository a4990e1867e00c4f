//! The advertisement in a pong of a Minecraft Bedrock server (docs/raknet.md#advertisements).
//!
//! RakNet carries the data of a pong as it is. Bedrock puts text there, fields that end with a semicolon:
//!
//! ```text
//! MCPE;motd;game protocol;version;players;max players;GUID;second line;game mode;mode number;IPv4 port;IPv6 port;
//! ```
//!
//! The first six have always been there; older servers end early, newer ones go on. Before the text stands its length
//! as a `u16`, or nothing ([`PongFraming`]). All of it must fit into a pong, which is 399 bytes
//! ([`MAX_PONG_DATA`]).
//!
//! **Semicolons in names.** The format has no rule for them. Servers write `\;`, and this module reads that back, so
//! `\;` is the only escape; any other backslash is itself. A text that ends with a backslash would swallow the end of
//! its field and cannot be written.

mod text;

pub use crate::raknet::wire::PongFraming;
pub use text::Text;

use core::fmt::Write;
use core::str::FromStr;

use crate::cursor::{WireError, Writer};
use crate::raknet::Guid;
use crate::raknet::wire::offline::MAX_PONG_DATA;

/// The edition of the game, the first field.
///
/// ```
/// use rakwire::codec::advertisement::{Advertisement, Edition};
///
/// let school = Advertisement::parse(b"MCEE;Class 4b;594;1.20.13;3;30;")?;
/// assert_eq!(school.edition, Edition::Education);
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Edition {
    /// `MCPE`: the game on all systems but Java.
    #[default]
    Bedrock,
    /// `MCEE`: the one for schools.
    Education,
}

/// The advertisement of a server. An absent field is `None`, an absent text is empty.
///
/// ```
/// use rakwire::codec::advertisement::{Advertisement, PongFraming};
///
/// let server = Advertisement {
///     motd: "Rust; and rain".into(),
///     protocol: 594,
///     version: "1.20.13".into(),
///     players: 2,
///     max_players: 20,
///     ..Advertisement::default()
/// };
/// let mut buffer = [0; 64];
/// let data = server.write(PongFraming::Raw, &mut buffer)?;
/// assert_eq!(data, b"MCPE;Rust\\; and rain;594;1.20.13;2;20;");
/// assert_eq!(Advertisement::parse(data)?, server);
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advertisement<'a> {
    /// Which game.
    pub edition: Edition,
    /// The first line of the list entry; colours are `§` and a letter.
    pub motd: Text<'a>,
    /// The version of the game's protocol, not of RakNet's.
    pub protocol: u32,
    /// The version of the game, for people.
    pub version: Text<'a>,
    /// How many players are in it.
    pub players: u32,
    /// How many may be in it.
    pub max_players: u32,
    /// The server; decimal in the text, read with a sign too.
    pub server: Option<Guid>,
    /// The second line of the list entry: often the name of the world.
    pub second_line: Text<'a>,
    /// The name of the game mode, such as `Survival`.
    pub game_mode: Text<'a>,
    /// The number of the game mode.
    pub game_mode_number: Option<u32>,
    /// The port for clients over IPv4.
    pub port_v4: Option<u16>,
    /// The port for clients over IPv6.
    pub port_v6: Option<u16>,
}

/// The fields that a server may leave away.
const OPTIONAL: usize = 6;

impl<'a> Advertisement<'a> {
    /// Reads the text, without its length ([`PongFraming::unframe`]) and without copying it. Fields after the twelfth
    /// are ignored.
    ///
    /// # Errors
    /// [`WireError::BadValue`] when it is not UTF-8, begins with no known edition, or has something other than a number
    /// where one belongs; [`WireError::Truncated`] when it has fewer than six fields; [`WireError::BadLength`] when it
    /// is longer than a pong may be.
    pub fn parse(text: &'a [u8]) -> Result<Self, WireError> {
        if text.len() > MAX_PONG_DATA {
            return Err(WireError::BadLength);
        }
        let text = core::str::from_utf8(text).map_err(|_| WireError::BadValue)?;
        let mut fields = text::Fields::new(text);
        let edition = match fields.next().ok_or(WireError::Truncated)? {
            "MCPE" => Edition::Bedrock,
            "MCEE" => Edition::Education,
            _ => return Err(WireError::BadValue),
        };
        Ok(Self {
            edition,
            motd: Text::escaped(fields.next().ok_or(WireError::Truncated)?),
            protocol: required(fields.next())?,
            version: Text::escaped(fields.next().ok_or(WireError::Truncated)?),
            players: required(fields.next())?,
            max_players: required(fields.next())?,
            server: guid(fields.next())?,
            second_line: Text::escaped(fields.next().unwrap_or_default()),
            game_mode: Text::escaped(fields.next().unwrap_or_default()),
            game_mode_number: number(fields.next())?,
            port_v4: number(fields.next())?,
            port_v6: number(fields.next())?,
        })
    }

    /// Writes the data of a pong. Fields after the last that is there are left away.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] when the buffer is too small, [`WireError::BadLength`] when no pong is large enough,
    /// [`WireError::BadValue`] when a text ends with a backslash.
    pub fn write<'b>(&self, framing: PongFraming, buffer: &'b mut [u8]) -> Result<&'b [u8], WireError> {
        let texts = [self.motd, self.version, self.second_line, self.game_mode];
        if texts.iter().any(|text| text.chars().last() == Some('\\')) {
            return Err(WireError::BadValue);
        }
        framing.compose(buffer, |writer| self.compose(&mut Sink(writer)).map_err(|_| WireError::NoRoom))
    }

    fn compose(&self, sink: &mut Sink<'_, '_>) -> core::fmt::Result {
        let edition = match self.edition {
            Edition::Bedrock => "MCPE",
            Edition::Education => "MCEE",
        };
        write!(sink, "{edition};")?;
        self.motd.write_field(sink)?;
        write!(sink, "{};", self.protocol)?;
        self.version.write_field(sink)?;
        write!(sink, "{};{};", self.players, self.max_players)?;
        (0..self.optional()).try_for_each(|field| self.compose_optional(field, sink))
    }

    /// How many of the optional fields must be written.
    fn optional(&self) -> usize {
        let there: [bool; OPTIONAL] = [
            self.server.is_some(),
            !self.second_line.is_empty(),
            !self.game_mode.is_empty(),
            self.game_mode_number.is_some(),
            self.port_v4.is_some(),
            self.port_v6.is_some(),
        ];
        there.iter().rposition(|there| *there).map_or(0, |last| last + 1)
    }

    fn compose_optional(&self, field: usize, sink: &mut Sink<'_, '_>) -> core::fmt::Result {
        match field {
            0 => number_field(sink, self.server.map(|guid| guid.0)),
            1 => self.second_line.write_field(sink),
            2 => self.game_mode.write_field(sink),
            3 => number_field(sink, self.game_mode_number.map(u64::from)),
            4 => number_field(sink, self.port_v4.map(u64::from)),
            _ => number_field(sink, self.port_v6.map(u64::from)),
        }
    }
}

fn number_field(sink: &mut Sink<'_, '_>, number: Option<u64>) -> core::fmt::Result {
    match number {
        Some(number) => write!(sink, "{number};"),
        None => sink.write_char(';'),
    }
}

fn number<T: FromStr>(field: Option<&str>) -> Result<Option<T>, WireError> {
    match field {
        None | Some("") => Ok(None),
        Some(field) => field.parse().map(Some).map_err(|_| WireError::BadValue),
    }
}

fn required(field: Option<&str>) -> Result<u32, WireError> {
    field.ok_or(WireError::Truncated)?.parse().map_err(|_| WireError::BadValue)
}

/// Some servers keep their GUID as a signed number.
fn guid(field: Option<&str>) -> Result<Option<Guid>, WireError> {
    match field {
        Some(signed) if signed.starts_with('-') => {
            Ok(number::<i64>(field)?.map(|number| Guid(number.cast_unsigned())))
        }
        other => Ok(number(other)?.map(Guid)),
    }
}

/// Text that goes into a [`Writer`].
struct Sink<'w, 'b>(&'w mut Writer<'b>);

impl Write for Sink<'_, '_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.0.bytes(text.as_bytes()).map_err(|_| core::fmt::Error)
    }
}

#[cfg(test)]
mod tests;
