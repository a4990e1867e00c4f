//! The values of `--protocol`.

use std::str::FromStr;

/// A RakNet protocol version, or the Game Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    RakNet(u8),
    Game,
}

impl FromStr for Protocol {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "game" {
            return Ok(Self::Game);
        }
        text.parse()
            .map(Self::RakNet)
            .map_err(|_| "neither a RakNet protocol version, 0 to 255, nor the word game")
    }
}
