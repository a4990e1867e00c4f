//! The values of `--protocol`.

use std::str::FromStr;

use clap::ValueEnum;
use rakwire_native::PongFraming;

use crate::failure::Failure;

/// A RakNet protocol version, or the Game Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtocolArgument {
    RakNet(u8),
    GameProtocol,
}

impl FromStr for ProtocolArgument {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "game" {
            return Ok(Self::GameProtocol);
        }
        text.parse()
            .map(Self::RakNet)
            .map_err(|_| "neither a RakNet protocol version, 0 to 255, nor the word game")
    }
}

/// The values of `--pong-framing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PongFramingArgument {
    /// Only the data, as in C++ RakNet.
    Raw,
    /// The length of the data first, as in Minecraft Bedrock.
    Prefixed,
}

impl From<PongFramingArgument> for PongFraming {
    fn from(argument: PongFramingArgument) -> Self {
        match argument {
            PongFramingArgument::Raw => Self::Raw,
            PongFramingArgument::Prefixed => Self::Prefixed,
        }
    }
}

/// Rejects options that do not apply to the Game Protocol.
pub(crate) fn reject_options_of_raknet(given: &[(&str, bool)]) -> Result<(), Failure> {
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => {
            Err(Failure::usage(format!("{option} does not apply to the Game Protocol; remove it")))
        }
    }
}
