//! The server of the snowball fight.

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser};
use rakwire_extras::crash_report::{CrashEmail, CrashReports};
use rakwire_native::{Simulation, create_key_file};
use snowfight::server::Pacing;
use snowfight_server::program::{self, Failure, Printer, print};
use snowfight_server::{Host, Options, OptionsError, Protocol};

/// Serves one snowball fight over UDP to players of the Game Protocol and of RakNet.
///
/// The first line on standard output contains the addresses. The exit status is 0 on success, 1 on failure, and 2 for
/// invalid arguments.
#[derive(Debug, Parser)]
#[command(name = "snowfight-server", version)]
struct Arguments {
    /// The address for the Game Protocol; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8999")]
    listen: SocketAddr,
    /// The address for RakNet; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:19132")]
    listen_raknet: SocketAddr,
    /// The seed of the world; random by default
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The number of bots
    #[arg(long, value_name = "N", default_value_t = 0)]
    bots: u16,
    /// Simulate a bad network in both directions: loss=5%,latency=50ms,jitter=10ms,duplicate=1%,reorder=2%,seed=7
    #[arg(long, value_name = "NETWORK")]
    simulate: Option<Simulation>,
    /// Send every snapshot even to slow clients, as the original game does, until the server's own queues are full
    #[arg(long)]
    unpaced: bool,
    /// Accept encrypted RakNet connections with the key in this file (see rakwire keygen); plain connections remain
    /// possible
    #[arg(long, value_name = "FILE")]
    secure: Option<PathBuf>,
    /// Create the key of --secure in a new file first, and print its hash on the first line
    #[arg(long, requires = "secure")]
    new_key: bool,
    /// Print a JSON line with the tick durations at this interval
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    report: Option<u64>,
    #[command(flatten)]
    crash: CrashArguments,
}

/// The destinations of crash reports.
#[derive(Debug, Args)]
struct CrashArguments {
    /// Write a report of every panic to this folder
    #[arg(long, value_name = "DIR")]
    crash_reports: Option<PathBuf>,
    /// Send the crash reports to this email address
    #[arg(long, value_name = "EMAIL", requires = "crash_reports")]
    crash_email: Option<String>,
    /// The SMTP server for crash reports: smtps://user:password@host, or smtp://host without encryption. Use the
    /// environment variable if the URL contains a password
    #[arg(
        long,
        value_name = "URL",
        env = "SNOWFIGHT_CRASH_EMAIL_SERVER",
        hide_env_values = true,
        default_value = "smtp://127.0.0.1"
    )]
    crash_email_server: String,
}

fn main() -> ExitCode {
    let result = program::parse().and_then(|arguments| program::block_on(serve(arguments)));
    result.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

async fn serve(arguments: Arguments) -> Result<(), Failure> {
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => getrandom::u64()
            .map_err(|error| Failure::runtime(format!("the system provides no random bytes: {error}")))?,
    };
    let crash_reports = report_crashes(&arguments.crash)?;
    let key = new_key(&arguments)?;
    let Arguments { listen: game, listen_raknet: raknet, bots, simulate, secure, .. } = arguments;
    let pacing = if arguments.unpaced { Pacing::Unpaced } else { Pacing::Acknowledged };
    let options = Options { game, raknet, seed, bots, simulate, pacing, secure };
    let host = Host::bind(&options).await.map_err(explain)?;
    let stop = program::stop_signal()?;
    let [game, raknet] = [Protocol::GameProtocol, Protocol::RakNet].map(|protocol| host.address(protocol));
    let with = key.map_or_else(String::new, |hash| format!(" and the key {hash}"));
    print(format_args!("listening on {game} and, with RakNet{with}, on {raknet}"))?;
    if let Some(reports) = crash_reports {
        reports.note(format!("listening on {game} and {raknet}, seed {seed}, {bots} bots"));
    }
    let mut printer = Printer::start()?;
    let every = arguments.report.map_or(Duration::MAX, Duration::from_secs);
    tokio::select! {
        () = host.run_reporting(every, |report| {
            let mut line = report.to_json();
            line["reports_dropped"] = printer.dropped().into();
            printer.offer(line);
        }) => {}
        () = stop => {}
    }
    Ok(())
}

/// Creates the key file if `--new-key` is set, and returns the hash of the key.
fn new_key(arguments: &Arguments) -> Result<Option<String>, Failure> {
    let Some(file) = arguments.secure.as_ref().filter(|_| arguments.new_key) else { return Ok(None) };
    let key = create_key_file(file).map_err(|error| {
        let file = file.display();
        Failure::usage(format!("--new-key: cannot write {file}: {error}; name a file that does not exist"))
    })?;
    Ok(Some(key.public().hash().to_string()))
}

fn report_crashes(arguments: &CrashArguments) -> Result<Option<CrashReports>, Failure> {
    let Some(folder) = &arguments.crash_reports else { return Ok(None) };
    let unusable = |error| {
        Failure::usage(format!("--crash-reports {}: {error}; choose another folder", folder.display()))
    };
    let reports =
        CrashReports::install(folder, "snowfight-server", env!("CARGO_PKG_VERSION")).map_err(unusable)?;
    if let Some(to) = &arguments.crash_email {
        let email = CrashEmail::new(&arguments.crash_email_server, to, to);
        let email = email.map_err(|error| Failure::usage(format!("--crash-email: {error}")))?;
        // If standard error is closed, the failure cannot be reported.
        let report = |error: &_| drop(writeln!(io::stderr(), "{error}"));
        reports
            .send_by(email, report)
            .map_err(|error| Failure::runtime(format!("cannot start a thread: {error}")))?;
    }
    Ok(Some(reports))
}

fn explain(error: OptionsError) -> Failure {
    match error {
        OptionsError::Bind(error) => Failure::usage(format!("{error}; choose another address or port")),
        OptionsError::Key(error) => {
            Failure::usage(format!("--secure: {error}; make a key with rakwire keygen"))
        }
        OptionsError::TooManyBots(_) => Failure::usage(format!("{error}; reduce --bots")),
        error @ (OptionsError::Random(_) | OptionsError::Thread(_) | _) => Failure::runtime(error),
    }
}
