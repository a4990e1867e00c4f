//! Keys given as arguments.

use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use rakwire_native::secure::{KeyHash, PublicKey, ServerTrust, StaticKey, TokenKey};
use rakwire_native::{KeyFileError, KeyLogFile, Security, read_key_file, read_token_key_file};
use rakwire_udp::private_file;

use crate::failure::Failure;

/// The value of `--server-key`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrustArgument(pub(crate) ServerTrust);

impl FromStr for TrustArgument {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "any" {
            return Ok(Self(ServerTrust::Any));
        }
        let key = text.parse::<PublicKey>().map(ServerTrust::Key);
        let trust = key.or_else(|_| text.parse::<KeyHash>().map(ServerTrust::KeyHash));
        trust.map(Self).map_err(|_| "not a public key or key hash as printed by keygen, nor the word any")
    }
}

/// Reads the key in the file that `option` names.
pub(crate) fn read(option: &str, file: &Path) -> Result<StaticKey, Failure> {
    warn_if_exposed(option, file);
    read_key_file(file).map_err(|error| unreadable(option, file, &error, "rakwire keygen"))
}

/// Reads the token key in the file that `option` names.
pub(crate) fn read_token_key(option: &str, file: &Path) -> Result<TokenKey, Failure> {
    warn_if_exposed(option, file);
    read_token_key_file(file).map_err(|error| unreadable(option, file, &error, "rakwire keygen --token"))
}

/// Prints a warning if every user of this machine can read the file, which contains a secret.
pub(crate) fn warn_if_exposed(option: &str, file: &Path) {
    if private_file::is_exposed(file) {
        let file = file.display();
        // A failure to print the warning is ignored.
        let _ = writeln!(
            io::stderr(),
            "warning: {option} {file}: every user can read it; change its mode to 0600"
        );
    }
}

/// Enables logging of the keys of all connections to the file of `--key-log`.
pub(crate) fn log(security: &mut Security, file: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    let log = KeyLogFile::open(file).map_err(|error| {
        Failure::usage(format!("--key-log {}: {error}; choose another file", file.display()))
    })?;
    security.key_log = Some(Arc::new(log));
    Ok(())
}

fn unreadable(option: &str, file: &Path, error: &KeyFileError, maker: &str) -> Failure {
    Failure::usage(format!("{option} {}: {error}; create one with {maker}", file.display()))
}
