//! The commands besides running.

mod announce;
mod config;
mod control;
mod keygen;
mod list;
mod reload;
mod shell;
mod token;

use std::fmt;
use std::io::{self, Write};

pub(crate) use announce::announce;
pub(crate) use config::{check, print};
pub(crate) use control::{ban, bans, clients, kick, unban};
pub(crate) use keygen::keygen;
pub(crate) use list::list;
pub(crate) use reload::{PidFile, reload};
pub(crate) use shell::{completions, manual};
pub(crate) use token::token;

/// Why a command failed: one line.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The operator has to change something.
    Misconfigured(String),
    /// Something else went wrong.
    Failed(String),
}

impl Failure {
    pub(crate) fn misconfigured(error: impl fmt::Display) -> Self {
        Self::Misconfigured(error.to_string())
    }
}

/// Prints to stdout. A reader that has gone away wants no more.
fn print_out(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::Failed(error.to_string())),
        _ => Ok(()),
    }
}
