//! `rakwire keygen`: a key for secure connections.

use std::path::PathBuf;

use clap::Args;
use rakwire_native::create_key_file;

use crate::failure::{Failure, print};

/// Makes a key of a server or of a client, writes it to a file that only its owner may read, and prints the public key and
/// its hash.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file to write; it must not exist
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let key = create_key_file(&arguments.file).map_err(|error| {
        let file = arguments.file.display();
        Failure::usage(format!("cannot write a key to {file}: {error}; choose a file that does not exist"))
    })?;
    print(format_args!("{}\n{}\n", key.public(), key.public().hash()))
}
