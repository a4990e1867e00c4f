//! Running the relay.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;

use rakwire_relay::Relay;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::ConfigArgs;
use crate::commands::{Failure, PidFile};
use crate::signals;

/// Runs until a signal ends it.
pub(crate) fn run(args: ConfigArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new().map_err(failed)?;
    runtime.block_on(serve(args))
}

async fn serve(args: ConfigArgs) -> Result<(), Failure> {
    let loaded = args.load().map_err(Failure::misconfigured)?;
    start_logging(&loaded.config.log.level);
    let bound = Relay::bind(loaded.config.clone()).await;
    let relay = bound.map_err(|error| Failure::misconfigured(loaded.locate(&error)))?;
    let reloader = relay.reloader(move || args.load());
    // Signals are handled before the relay announces its address, so that a signal after that line is not lost.
    let shutdown = signals::shutdown().map_err(failed)?;
    signals::reload_at_hangups(reloader).map_err(failed)?;
    let _pid_file = loaded.config.pid_file.clone().map(PidFile::write).transpose()?;
    announce(relay.local_addr()).map_err(failed)?;
    relay.run(shutdown).await.map_err(failed)
}

fn failed(error: io::Error) -> Failure {
    Failure::Failed(error.to_string())
}

fn announce(address: SocketAddr) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "listening on http://{address}")?;
    stdout.flush()
}

fn start_logging(level: &str) {
    let named = env::var("RUST_LOG").ok().and_then(|levels| levels.parse::<Targets>().ok());
    let filter = named.or_else(|| level.parse().ok());
    let filter = filter.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(io::stderr().is_terminal());
    tracing_subscriber::registry().with(filter).with(lines).init();
}
