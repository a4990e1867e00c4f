//! The program `rakwire-relay`. The library describes what it does.

#![forbid(unsafe_code)]

mod args;
mod signals;

use std::env;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use rakwire_relay::Relay;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::Args;

/// The exit code for an invalid configuration, the same as clap's.
const MISCONFIGURED: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return reject_arguments(&error),
    };
    start_logging();
    let relay = match Relay::bind(args.into_config()).await {
        Ok(relay) => relay,
        Err(error) => return misconfigured(&format!("error: {error}")),
    };
    match run(relay).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(relay: Relay) -> io::Result<()> {
    // Signals are handled before the relay announces its address, so that a signal after that line is not lost.
    let shutdown = signals::shutdown()?;
    signals::log_hangups()?;
    announce(relay.local_addr())?;
    relay.run(shutdown).await
}

fn announce(address: SocketAddr) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "listening on http://{address}")?;
    stdout.flush()
}

/// Prints one line for an invalid value, and clap's output for help and missing options.
fn reject_arguments(error: &clap::Error) -> ExitCode {
    if error.kind() == ErrorKind::ValueValidation {
        let text = error.to_string();
        return misconfigured(text.lines().next().unwrap_or_default());
    }
    error.exit()
}

fn misconfigured(line: &str) -> ExitCode {
    eprintln!("{line}");
    ExitCode::from(MISCONFIGURED)
}

fn start_logging() {
    let named = env::var("RUST_LOG").ok().and_then(|levels| levels.parse::<Targets>().ok());
    let filter = named.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(io::stderr().is_terminal());
    tracing_subscriber::registry().with(filter).with(lines).init();
}
