//! The advertisement in a pong of a Minecraft Bedrock server (docs/raknet.md#advertisements).
//!
//! RakNet transmits the data of a pong unchanged. Bedrock uses text with fields that end with a semicolon:
//!
//! ```text
//! MCPE;motd;game protocol;version;players;max players;GUID;second line;game mode;mode number;IPv4 port;IPv6 port;
//! ```
//!
//! The first six fields have always existed; older servers omit the later ones, newer servers append more. The text
//! may be preceded by its length as a `u16` ([`PongFraming`]). All of it must fit into the 399 bytes of a pong
//! ([`MAX_PONG_DATA`]).
//!
//! **Semicolons in names.** The format does not define them. Servers write `\;`, which this module reads as a
//! semicolon. `\;` is the only escape; any other backslash is literal. A text that ends with a backslash cannot be
//! written, because the backslash would escape the semicolon that terminates the field.

use core::fmt::{self, Write};
use core::str::FromStr;

use crate::cursor::{WireError, Writer};
use crate::raknet::Guid;
use crate::raknet::wire::offline::MAX_PONG_DATA;

pub use crate::raknet::wire::PongFraming;

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
    /// `MCPE`: Bedrock Edition, the game on all platforms except Java.
    #[default]
    Bedrock,
    /// `MCEE`: Education Edition.
    Education,
}

/// The advertisement of a server. A missing optional field is `None`, and a missing text is empty.
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
    /// The edition of the game.
    pub edition: Edition,
    /// The first line of the entry in the server list; `§` and a letter select a colour.
    pub motd: Text<'a>,
    /// The protocol version of the game, not of RakNet.
    pub protocol: u32,
    /// The version of the game, for display.
    pub version: Text<'a>,
    /// The number of players on the server.
    pub players: u32,
    /// The maximum number of players.
    pub max_players: u32,
    /// The server's GUID. It is written as an unsigned decimal number; signed numbers are accepted when parsing.
    pub server: Option<Guid>,
    /// The second line of the entry in the server list: often the name of the world.
    pub second_line: Text<'a>,
    /// The name of the game mode, such as `Survival`.
    pub game_mode: Text<'a>,
    /// The number of the game mode.
    pub game_mode_number: Option<u32>,
    /// The server's IPv4 port.
    pub port_v4: Option<u16>,
    /// The server's IPv6 port.
    pub port_v6: Option<u16>,
}

/// The number of optional fields.
const OPTIONAL: usize = 6;

impl<'a> Advertisement<'a> {
    /// Parses the text, without its length ([`PongFraming::unframe`]) and without copying it.
    ///
    /// Fields after the twelfth are ignored.
    ///
    /// # Errors
    /// - [`WireError::BadValue`] if the text is not UTF-8, begins with an unknown edition, or has a non-numeric value
    ///   in a numeric field.
    /// - [`WireError::Truncated`] if there are fewer than six fields.
    /// - [`WireError::BadLength`] if the text is longer than 399 bytes.
    pub fn parse(text: &'a [u8]) -> Result<Self, WireError> {
        if text.len() > MAX_PONG_DATA {
            return Err(WireError::BadLength);
        }
        let text = core::str::from_utf8(text).map_err(|_| WireError::BadValue)?;
        let mut fields = Fields::new(text);
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

    /// Writes the data of a pong. Fields after the last one that is set are omitted.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if the buffer is too small, [`WireError::BadLength`] if the result does not fit into a
    /// pong, [`WireError::BadValue`] if a text ends with a backslash.
    pub fn write<'b>(&self, framing: PongFraming, buffer: &'b mut [u8]) -> Result<&'b [u8], WireError> {
        let texts = [self.motd, self.version, self.second_line, self.game_mode];
        if texts.iter().any(|text| text.chars().last() == Some('\\')) {
            return Err(WireError::BadValue);
        }
        framing.compose(buffer, |writer| self.compose(&mut Sink(writer)).map_err(|_| WireError::NoRoom))
    }

    fn compose(&self, sink: &mut Sink<'_, '_>) -> fmt::Result {
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

    /// Returns the number of optional fields to write.
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

    fn compose_optional(&self, field: usize, sink: &mut Sink<'_, '_>) -> fmt::Result {
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

fn number_field(sink: &mut Sink<'_, '_>, number: Option<u64>) -> fmt::Result {
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

/// Parses a GUID. Some servers write it as a signed number.
fn guid(field: Option<&str>) -> Result<Option<Guid>, WireError> {
    match field {
        Some(signed) if signed.starts_with('-') => {
            Ok(number::<i64>(field)?.map(|number| Guid(number.cast_unsigned())))
        }
        other => Ok(number(other)?.map(Guid)),
    }
}

/// Adapts a [`Writer`] to [`core::fmt::Write`].
struct Sink<'w, 'b>(&'w mut Writer<'b>);

impl Write for Sink<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.bytes(text.as_bytes()).map_err(|_| fmt::Error)
    }
}

/// A text field of an advertisement.
///
/// It is created from a `&str`, or borrowed from received data in its escaped form. Comparison and `Display` use the
/// unescaped text.
///
/// ```
/// use rakwire::codec::advertisement::{Advertisement, Text};
///
/// let read = Advertisement::parse(br"MCPE;a\;b;594;1.20.13;0;10;")?;
/// assert_eq!(read.motd, Text::from("a;b"));
/// assert_eq!(read.motd.to_string(), "a;b");
/// assert_eq!(read.motd.as_written(), r"a\;b");
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Text<'a> {
    text: &'a str,
    form: Form,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Plain,
    /// Borrowed from received data, with `\;` for a semicolon.
    Escaped,
}

impl<'a> Text<'a> {
    const fn escaped(text: &'a str) -> Self {
        Self { text, form: Form::Escaped }
    }

    /// Returns the borrowed text: the argument of [`From`], or the received field with its escapes.
    #[must_use]
    pub const fn as_written(&self) -> &'a str {
        self.text
    }

    /// Returns true if the text is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the characters of the text, without escapes.
    pub fn chars(&self) -> impl Iterator<Item = char> + use<'a> {
        let escaped = self.form == Form::Escaped;
        let mut chars = self.text.chars().peekable();
        core::iter::from_fn(move || match chars.next()? {
            '\\' if escaped && chars.peek() == Some(&';') => chars.next(),
            other => Some(other),
        })
    }

    /// Appends the escaped text and the terminating semicolon.
    fn write_field(&self, sink: &mut impl Write) -> fmt::Result {
        for char in self.chars() {
            if char == ';' {
                sink.write_char('\\')?;
            }
            sink.write_char(char)?;
        }
        sink.write_char(';')
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self { text, form: Form::Plain }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.chars().eq(other.chars())
    }
}

impl Eq for Text<'_> {}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chars().try_for_each(|char| f.write_char(char))
    }
}

/// An iterator over the fields of an advertisement, in their escaped form.
struct Fields<'a> {
    rest: &'a str,
}

impl<'a> Fields<'a> {
    const fn new(text: &'a str) -> Self {
        Self { rest: text }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let bytes = self.rest.as_bytes();
        let ends = |place: &usize| place.checked_sub(1).and_then(|before| bytes.get(before)) != Some(&b'\\');
        let end = self.rest.match_indices(';').map(|(place, _)| place).find(ends);
        let (field, rest) = end.and_then(|end| self.rest.split_at_checked(end)).unwrap_or((self.rest, ""));
        self.rest = rest.get(1..).unwrap_or_default();
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const FULL: &[u8] =
        b"MCPE;Dedicated Server;594;1.20.13;0;10;13253860892328930865;Bedrock level;Survival;1;19132;19133;";

    fn full() -> Advertisement<'static> {
        Advertisement {
            edition: Edition::Bedrock,
            motd: "Dedicated Server".into(),
            protocol: 594,
            version: "1.20.13".into(),
            players: 0,
            max_players: 10,
            server: Some(Guid(13_253_860_892_328_930_865)),
            second_line: "Bedrock level".into(),
            game_mode: "Survival".into(),
            game_mode_number: Some(1),
            port_v4: Some(19132),
            port_v6: Some(19133),
        }
    }

    #[test]
    fn all_fields_are_read_and_written() {
        let mut buffer = [0; 399];
        assert_eq!(Advertisement::parse(FULL), Ok(full()));
        assert_eq!(full().write(PongFraming::Raw, &mut buffer), Ok(FULL));
        let data = full().write(PongFraming::Prefixed, &mut buffer).expect("short enough");
        assert_eq!(data, [&(FULL.len() as u16).to_be_bytes(), FULL].concat());
        assert_eq!(PongFraming::of(data), PongFraming::Prefixed);
        assert_eq!(PongFraming::Prefixed.unframe(data), Ok(FULL));
    }

    #[test]
    fn missing_trailing_fields_are_none() {
        let six = b"MCPE;old;20;0.11;1;5";
        let old = Advertisement::parse(six).expect("six fields");
        assert_eq!((old.players, old.max_players, old.server, old.port_v6), (1, 5, None, None));
        assert!(old.second_line.is_empty());
        // With and without the final semicolon.
        assert_eq!(Advertisement::parse(b"MCPE;old;20;0.11;1;5;"), Ok(old));
        let enough = b"MCPE;Dedicated Server;594;1.20.13;0;1".len();
        for end in 0..FULL.len() {
            assert_eq!(Advertisement::parse(&FULL[..end]).is_ok(), end >= enough, "{end}");
        }
    }

    #[test]
    fn empty_and_additional_fields_are_accepted() {
        let parsed =
            Advertisement::parse(b"MCPE;;1;;0;0;;;;;;19133;0;what comes next").expect("twelve fields");
        let expected = Advertisement { protocol: 1, port_v6: Some(19133), ..Advertisement::default() };
        assert_eq!(parsed, expected);
        let mut buffer = [0; 64];
        assert_eq!(expected.write(PongFraming::Raw, &mut buffer), Ok(&b"MCPE;;1;;0;0;;;;;;19133;"[..]));
    }

    #[test]
    fn signed_guids_are_accepted() {
        let parsed = Advertisement::parse(b"MCPE;a;1;1;0;0;-2;").expect("seven fields");
        assert_eq!(parsed.server, Some(Guid(u64::MAX - 1)));
        assert_eq!(Advertisement::parse(b"MCPE;a;1;1;0;0;--2;"), Err(WireError::BadValue));
    }

    #[test]
    fn malformed_advertisements_are_refused() {
        let refused: [&[u8]; 7] = [
            b"MCPX;a;1;1;0;0;",
            b"MCPE;\xFF;1;1;0;0;",
            b"MCPE;a;one;1;0;0;",
            b"MCPE;a;1;1;;0;",
            b"MCPE;a;1;1;-1;0;",
            b"MCPE;a;1;1;0;99999999999;",
            b"MCPE;a;1;1;0;0;1;;;;65536;",
        ];
        for text in refused {
            assert_eq!(Advertisement::parse(text), Err(WireError::BadValue), "{}", text.escape_ascii());
        }
        assert_eq!(Advertisement::parse(b""), Err(WireError::Truncated));
        assert_eq!(Advertisement::parse(b"MCPE;a;1;1;0"), Err(WireError::Truncated));
        assert_eq!(Advertisement::parse(&[b';'; 400]), Err(WireError::BadLength));
    }

    #[test]
    fn semicolons_are_escaped_and_backslashes_are_literal() {
        let parsed = Advertisement::parse(br"MCPE;a\;b\c\\;d;1;1;0;0;").expect("six fields");
        assert_eq!(parsed.motd, Text::from(r"a;b\c\;d"));
        assert_eq!(format!("{}", parsed.motd), r"a;b\c\;d");
        let mut buffer = [0; 64];
        let swallowed = Advertisement { motd: r"a\".into(), ..Advertisement::default() };
        assert_eq!(swallowed.write(PongFraming::Raw, &mut buffer), Err(WireError::BadValue));
    }

    #[test]
    fn advertisements_longer_than_a_pong_are_refused() {
        let text = "x".repeat(400);
        let head = b"MCPE;;0;;0;0;".len();
        let motd = |length: usize| Advertisement { motd: text[..length].into(), ..Advertisement::default() };
        let mut buffer = [0; 500];
        for (framing, room) in [(PongFraming::Raw, 399 - head), (PongFraming::Prefixed, 397 - head)] {
            assert_eq!(motd(room).write(framing, &mut buffer).map(<[u8]>::len), Ok(399));
            assert_eq!(motd(room + 1).write(framing, &mut buffer), Err(WireError::BadLength));
            assert_eq!(motd(room).write(framing, &mut buffer[..398]), Err(WireError::NoRoom));
            assert_eq!(framing.frame(&[b'x'; 400], &mut buffer), Err(WireError::BadLength));
            assert_eq!(framing.unframe(&[0; 400]), Err(WireError::BadLength));
        }
    }

    #[test]
    fn a_length_prefix_beyond_the_text_is_rejected() {
        assert_eq!(PongFraming::Prefixed.unframe(&[0, 3, b'h', b'i']), Err(WireError::Truncated));
        assert_eq!(PongFraming::Prefixed.unframe(&[0]), Err(WireError::Truncated));
        assert_eq!(PongFraming::Prefixed.unframe(&[0, 1, b'h', b'i']), Ok(&b"h"[..]));
        assert_eq!(PongFraming::of(b"MCPE;"), PongFraming::Raw);
        assert_eq!(PongFraming::of(b""), PongFraming::Raw);
    }

    fn text() -> impl Strategy<Value = String> {
        proptest::collection::vec(
            prop_oneof![Just(';'), Just('\\'), Just('§'), proptest::char::range('a', 'z')],
            0..16,
        )
        .prop_map(|chars| chars.into_iter().collect::<String>().trim_end_matches('\\').into())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn written_advertisements_are_read_back(
            texts in [text(), text(), text(), text()],
            numbers: [u32; 4],
            server: Option<u64>,
            ports: [Option<u16>; 2],
            education: bool,
        ) {
            let [motd, version, second_line, game_mode] = &texts;
            let [port_v4, port_v6] = ports;
            let written = Advertisement {
                edition: if education { Edition::Education } else { Edition::Bedrock },
                motd: motd.as_str().into(),
                protocol: numbers[0],
                version: version.as_str().into(),
                players: numbers[1],
                max_players: numbers[2],
                server: server.map(Guid),
                second_line: second_line.as_str().into(),
                game_mode: game_mode.as_str().into(),
                game_mode_number: port_v4.map(|_| numbers[3]),
                port_v4,
                port_v6,
            };
            let (mut buffer, mut again) = ([0; 399], [0; 399]);
            let data = written.write(PongFraming::Prefixed, &mut buffer).expect("short enough");
            let read = Advertisement::parse(PongFraming::Prefixed.unframe(data)?)?;
            prop_assert_eq!(&read, &written);
            prop_assert_eq!(read.write(PongFraming::Prefixed, &mut again)?, data);
        }

        #[test]
        fn parsing_arbitrary_text_never_panics(text in "(MCPE;)?[;\\\\a0-9§-]{0,60}", bytes: Vec<u8>) {
            if let Ok(read) = Advertisement::parse(text.as_bytes()) {
                let _ = read.write(PongFraming::Raw, &mut [0; 399]);
            }
            let _ = Advertisement::parse(&bytes);
            let _ = PongFraming::of(&bytes).unframe(&bytes);
        }
    }
}
