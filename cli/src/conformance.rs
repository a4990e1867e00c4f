//! `rakwire conformance`: starts the conformance suite, a separate program that shares no code with rakwire.

use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::failure::Failure;

const PROGRAM: &str = "rakwire-conformance";

/// Tests a RakNet server or client with the conformance suite, the separate program rakwire-conformance.
///
/// All arguments are those of the suite, such as HOST:PORT, --listen ADDR, --game-protocol or --help. The exit status is
/// 0 if no case failed, 1 if one did, and 2 if the suite could not run.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// The arguments of the suite
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Returns the path of the suite next to this program, or its name for a lookup in `PATH`.
fn program() -> PathBuf {
    let name = format!("{PROGRAM}{}", env::consts::EXE_SUFFIX);
    let beside = env::current_exe().ok().map(|own| own.with_file_name(&name));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| name.into())
}

/// Runs the suite and passes its exit status on.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let status = match Command::new(program()).args(&arguments.arguments).status() {
        Ok(status) => status,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let install = "install it with `cargo install --path conformance` in a clone of rakwire";
            return Err(Failure::usage(format!("the program {PROGRAM} is not installed; {install}")));
        }
        Err(error) => return Err(Failure::usage(format!("cannot start {PROGRAM}: {error}"))),
    };
    match status.code() {
        Some(0) => Ok(()),
        // The suite has printed its reason.
        Some(1) => Err(Failure::reported(1)),
        _ => Err(Failure::reported(2)),
    }
}
