//! Running the relay.

use std::env;
use std::io::{self, Write};

use rakwire_relay::config::{ExposedFile, LogConfig};
use rakwire_relay::{Relay, start_logging, systemd};
use tracing::warn;

use crate::args::ConfigArgs;
use crate::commands::{Failure, PidFile};
use crate::signals::{self, End, Signals};

/// The variable whose levels take precedence over those of the configuration.
const LEVELS: &str = "RUST_LOG";

/// Runs until a signal ends it.
pub(crate) fn run(args: ConfigArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new().map_err(failed)?;
    let ended = runtime.block_on(serve(args));
    // Dropping the runtime would wait for lookups that the resolver does not answer.
    runtime.shutdown_background();
    ended
}

async fn serve(args: ConfigArgs) -> Result<(), Failure> {
    let loaded = args.load().map_err(Failure::misconfigured)?;
    let levels = env::var(LEVELS).ok().filter(|levels| !levels.is_empty());
    let source = if levels.is_some() { format!("{LEVELS}: ") } else { String::new() };
    start_logging(&with_levels(&loaded.config.log, levels))
        .map_err(|error| Failure::misconfigured(format!("{source}{error}")))?;
    loaded.exposed_files().iter().for_each(ExposedFile::log);
    raise_file_limit();
    let inherited = systemd::inherited_listener().map_err(failed)?;
    let bound = Relay::bind_on(loaded.config.clone(), inherited).await;
    let relay = bound.map_err(|error| Failure::misconfigured(loaded.locate(&error)))?;
    let reloader = relay.reloader(move || args.load());
    // Signals are handled before the relay announces its address, so that a signal after that line is not lost.
    let mut signals = Signals::new().map_err(failed)?;
    signals::reload_at_hangups(reloader).map_err(failed)?;
    let pid_file = loaded.config.pid_file.clone().map(PidFile::write).transpose();
    let _pid_file = pid_file.map_err(|error| Failure::misconfigured(loaded.locate(&error)))?;
    if let Err(error) = announce(&relay) {
        warn!(%error, "standard output does not take the addresses of the relay, which the log has");
    }
    let stopper = relay.stopper();
    let shutdown = async move {
        match signals.next().await {
            End::Now => stopper.stop(),
            // A second signal ends the wait for clients.
            End::Drain => drop(tokio::spawn(async move {
                signals.next().await;
                stopper.stop();
            })),
        }
    };
    relay.run(shutdown).await.map_err(failed)
}

fn failed(error: io::Error) -> Failure {
    Failure::Failed(error.to_string())
}

fn announce(relay: &Relay) -> io::Result<()> {
    let scheme = if relay.has_tls() { "https" } else { "http" };
    let mut stdout = io::stdout().lock();
    for address in relay.local_addrs() {
        writeln!(stdout, "listening on {scheme}://{address}")?;
    }
    if let Some(address) = relay.udp_addr() {
        writeln!(stdout, "listening on udp://{address}")?;
    }
    if let Some(address) = relay.admin_addr() {
        writeln!(stdout, "monitoring on http://{address}")?;
    }
    if let Some((address, fingerprint)) = relay.webrtc() {
        writeln!(stdout, "data channels on udp://{address} with the fingerprint {fingerprint}")?;
    }
    stdout.flush()
}

/// The settings of the log, with other levels if there are some.
fn with_levels(config: &LogConfig, levels: Option<String>) -> LogConfig {
    let mut config = config.clone();
    if let Some(levels) = levels {
        config.level = levels;
    }
    config
}

/// Takes as many file descriptors as the system allows: each client has two, and the default is for other programs.
fn raise_file_limit() {
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        warn!(%error, "cannot raise the limit of file descriptors");
    }
}
