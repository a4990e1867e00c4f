//! `rakwire keygen`: generates a key for secure connections or connect tokens.

use std::path::PathBuf;

use clap::Args;
use rakwire_native::{create_key_file, create_token_key_file};

use crate::failure::{Failure, print};

/// Generates a key for a server or client, writes it to a file that only its owner can read, and prints the public key
/// and its hash.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file to write; it must not exist
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Generate a token key, for a backend and its servers (see token); it has no public half, and nothing is printed
    #[arg(long)]
    token: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let file = &arguments.file;
    let refuse = |error| {
        let file = file.display();
        Failure::usage(format!("cannot write a key to {file}: {error}; choose a file that does not exist"))
    };
    if arguments.token {
        return create_token_key_file(file).map(drop).map_err(refuse);
    }
    let key = create_key_file(file).map_err(refuse)?;
    print(format_args!("{}\n{}\n", key.public(), key.public().hash()))
}
