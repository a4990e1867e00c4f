//! `rakwire token`: issues a connect token, like the backend of a game.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use clap::Args;
use rakwire_native::secure::{ConnectToken, KeyHash, PublicKey, TokenClaims, TokenServer};
use rakwire_native::system_random;

use crate::failure::{Failure, print};
use crate::{host, keys};

/// Issues a connect token for a player and prints it, as a backend does after the player has logged in.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file with the token key that the servers have too (see keygen --token)
    #[arg(long, value_name = "FILE")]
    token_key: PathBuf,
    /// The number that identifies the player to the servers
    #[arg(long, value_name = "N")]
    user: u64,
    /// A server that accepts the token, by its public key and address; up to four
    #[arg(long = "server", value_name = "KEY@HOST:PORT", required = true)]
    servers: Vec<ServerArgument>,
    /// The public key of the player; the token is useless without the matching private key
    #[arg(long, value_name = "KEY")]
    client_key: PublicKey,
    /// The validity of the token, such as 60s, 5m or 1h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = lifetime)]
    expires: Duration,
    /// Application data for the server, at most 128 bytes
    #[arg(long, value_name = "TEXT", default_value = "")]
    data: String,
}

/// The value of `--server`.
#[derive(Clone, Debug)]
struct ServerArgument {
    key: PublicKey,
    name: String,
}

impl FromStr for ServerArgument {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (key, name) = text.split_once('@').ok_or("@ is missing between the public key and HOST:PORT")?;
        let key = key.parse().map_err(|_| "the text before @ is not a public key as printed by keygen")?;
        if name.len() > u8::MAX.into() {
            return Err("the address is longer than 255 bytes");
        }
        Ok(Self { key, name: name.to_owned() })
    }
}

/// Parses a time with its unit.
fn lifetime(text: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60), ("h", 3_600)];
    let parts = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)));
    let time = parts.and_then(|(number, seconds)| number.parse::<u32>().ok()?.checked_mul(seconds));
    let time = time.ok_or("not a number with a unit, such as 60s, 5m or 1h")?;
    Ok(Duration::from_secs(time.into()))
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let key = keys::read_token_key("--token-key", &arguments.token_key)?;
    let mut random = system_random().map_err(host::no_entropy)?;
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_err(Failure::runtime)?;
    let hashes: Vec<KeyHash> = arguments.servers.iter().map(|server| server.key.hash()).collect();
    let claims = TokenClaims {
        user_id: arguments.user,
        expires: (since_1970 + arguments.expires).as_secs(),
        client: arguments.client_key,
        servers: &hashes,
        user_data: arguments.data.as_bytes(),
    };
    let sealed = claims.seal(&key, &mut random).map_err(Failure::usage)?;
    // Sealing has checked their number.
    let servers = arguments.servers.iter().map(|server| TokenServer { key: server.key, name: &server.name });
    let token = ConnectToken { expires: claims.expires, servers: servers.collect(), sealed: &sealed };
    print(format_args!("{token}\n"))
}
