//! The command line of the suite.

use clap::Parser;
use rakwire_conformance::case::{Case, Options, Report, run};
use rakwire_conformance::check::Timing;
use rakwire_conformance::report::{self, Totals};
use rakwire_conformance::{case::Level, cases};
use std::io::{self, Write as _};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Judges a RakNet server by numbered cases over raw datagrams.
///
/// The exit status is 0 if no case failed, 1 if one did, and 2 if the suite could not run.
#[derive(Debug, Parser)]
#[command(name = "rakwire-conformance", version, max_term_width = 100)]
struct Arguments {
    /// The server, as 127.0.0.1:19132.
    #[arg(required_unless_present = "list")]
    target: Option<String>,
    /// List the cases and end.
    #[arg(long)]
    list: bool,
    /// Run only the cases with these texts at the start of their number or in their name.
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    only: Vec<String>,
    /// Count a SHOULD that does not hold as a failure.
    #[arg(long)]
    strict: bool,
    /// Print one JSON document instead of lines.
    #[arg(long)]
    json: bool,
    /// Write a file for JUnit.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// How many milliseconds an answer may take; a quarter of it counts as silence.
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(40..=60_000))]
    timeout: u64,
    /// How many seconds the server takes at most to give up a silent client.
    #[arg(long, value_name = "S", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=600))]
    lifetime: u64,
    /// The protocol version to announce.
    #[arg(long, value_name = "N", default_value_t = 6)]
    protocol: u8,
    /// The server sends every message with an id of 86 or more back, as `rakwire echo` does.
    #[arg(long)]
    echo: bool,
    /// The password of the server.
    #[arg(long, value_name = "TEXT")]
    password: Option<String>,
    /// The number of clients that the server takes, all of which must be free.
    #[arg(long, value_name = "N")]
    capacity: Option<usize>,
}

fn is_selected(case: &Case, only: &[String]) -> bool {
    let number = case.number.to_string();
    only.is_empty() || only.iter().any(|pattern| number.starts_with(pattern) || case.name.contains(pattern))
}

fn list(out: &mut impl io::Write, only: &[String]) -> io::Result<()> {
    for case in cases::all().filter(|case| is_selected(case, only)) {
        let level = if case.level == Level::Must { "MUST" } else { "SHOULD" };
        let (number, name, section) = (case.number, case.name, case.section);
        writeln!(out, "{number:4} {level:6} {name}: {} [{}#{section}]", case.requirement, report::PAGE)?;
    }
    Ok(())
}

fn resolve(target: &str) -> Result<SocketAddr, String> {
    let mut found = target.to_socket_addrs().map_err(|error| format!("{target}: {error}"))?;
    found.next().ok_or_else(|| format!("{target} has no address"))
}

fn judge(arguments: &Arguments) -> Result<Vec<Report>, String> {
    let target = resolve(arguments.target.as_deref().unwrap_or_default())?;
    let timing = Timing {
        lifetime: Duration::from_secs(arguments.lifetime),
        ..Timing::with_answer(Duration::from_millis(arguments.timeout))
    };
    let options = Options {
        version: arguments.protocol,
        echo: arguments.echo,
        password: arguments.password.clone(),
        capacity: arguments.capacity,
    };
    let mut reports = Vec::new();
    for case in cases::all().filter(|case| is_selected(case, &arguments.only)) {
        let report = run(case, target, timing, &options).map_err(|error| format!("{target}: {error}"))?;
        if !arguments.json {
            println!("{}", report::text(&report, arguments.strict));
        }
        reports.push(report);
    }
    if reports.is_empty() {
        return Err("no case has such a number or name".into());
    }
    Ok(reports)
}

fn publish(arguments: &Arguments, reports: &[Report]) -> Result<(), String> {
    let target = arguments.target.as_deref().unwrap_or_default();
    let strict = arguments.strict;
    if arguments.json {
        let json = report::json(target, reports, strict).map_err(|error| error.to_string())?;
        println!("{json}");
    } else {
        println!("{}", report::summary(Totals::of(reports, strict)));
    }
    let files = [
        (&arguments.junit, report::junit as fn(&str, &[Report], bool) -> String),
        (&arguments.html, report::html),
    ];
    for (path, write) in files {
        if let Some(path) = path {
            let text = write(target, reports, strict);
            std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list {
        let listed = list(&mut io::stdout().lock(), &arguments.only);
        // A reader that has seen enough closes the pipe.
        return if listed.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(2) };
    }
    let result = judge(&arguments).and_then(|reports| {
        publish(&arguments, &reports)?;
        Ok(Totals::of(&reports, arguments.strict).failed)
    });
    match result {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(reason) => {
            // Standard error may be closed, which changes nothing.
            let _ = writeln!(io::stderr(), "rakwire-conformance: {reason}");
            ExitCode::from(2)
        }
    }
}
