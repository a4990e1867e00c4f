//! The command line of the suite.

mod arguments;

use arguments::{Arguments, Command, PageArguments};
use clap::Parser as _;
use rakwire_conformance::case::{Case, Options, Report, Role, run};
use rakwire_conformance::check::Timing;
use rakwire_conformance::page::{self, Run};
use rakwire_conformance::report::{self, Peer, Subject, Totals};
use rakwire_conformance::start::{Dialler, Listening};
use rakwire_conformance::{case::Level, cases};
use std::io::{self, Write as _};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

fn is_selected(case: &Case, only: &[String]) -> bool {
    let number = case.number.to_string();
    only.is_empty() || only.iter().any(|pattern| number.starts_with(pattern) || case.name.contains(pattern))
}

fn list(out: &mut impl io::Write, arguments: &Arguments) -> io::Result<()> {
    let narrowed = arguments.role() != Role::Server;
    let of_role = |case: &&Case| !narrowed || case.role == arguments.role();
    for case in cases::all().filter(of_role).filter(|case| is_selected(case, &arguments.only)) {
        let level = if case.level == Level::Must { "MUST" } else { "SHOULD" };
        let (number, name, page, section) = (case.number, case.name, case.page(), case.section);
        writeln!(out, "{number:4} {level:6} {name}: {} [{page}#{section}]", case.requirement)?;
    }
    Ok(())
}

/// Prints a line to standard output.
fn say(text: &str) {
    // If standard output is a closed pipe, requested files must still be written.
    let _ = writeln!(io::stdout(), "{text}");
}

fn resolve(target: &str) -> Result<SocketAddr, String> {
    let mut found = target.to_socket_addrs().map_err(|error| format!("{target}: {error}"))?;
    found.next().ok_or_else(|| format!("{target} does not resolve to an address"))
}

fn listening(arguments: &Arguments, address: SocketAddr) -> Result<Listening, String> {
    let dialler = match &arguments.start {
        Some(line) => Dialler::Command(line.clone()),
        None if address.port() == 0 => return Err("--listen with port 0 requires --start".into()),
        None => Dialler::Other,
    };
    Ok(Listening { address, dialler, patience: Duration::from_secs(arguments.patience) })
}

fn judge(arguments: &Arguments) -> Result<Vec<Report>, String> {
    let target = match arguments.address() {
        "" => SocketAddr::from(([127, 0, 0, 1], 0)),
        address => resolve(address)?,
    };
    let listening = arguments.listen.as_ref().map(|_| listening(arguments, target)).transpose()?;
    let timing = Timing {
        lifetime: Duration::from_secs(arguments.lifetime),
        ..Timing::with_answer(Duration::from_millis(arguments.timeout))
    };
    let options = Options {
        version: arguments.protocol,
        echo: arguments.echo,
        password: arguments.password.clone(),
        capacity: arguments.capacity,
        server: arguments.start.clone().filter(|_| listening.is_none()),
        listening,
    };
    let mut reports = Vec::new();
    let of_role = |case: &&Case| case.role == arguments.role();
    for case in cases::all().filter(of_role).filter(|case| is_selected(case, &arguments.only)) {
        let report = run(case, target, timing, &options).map_err(|error| format!("{target}: {error}"))?;
        if !arguments.json {
            say(&report::text(&report, arguments.strict));
        }
        reports.push(report);
    }
    if reports.is_empty() {
        return Err("no case matches --only; --list prints the numbers and names".into());
    }
    Ok(reports)
}

/// Returns the command line with which to repeat the run, without the options that describe the peer.
fn command_line() -> String {
    let mut words = vec!["rakwire-conformance".to_owned()];
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        if word.starts_with("--peer") {
            if !word.contains('=') {
                given.next();
            }
        } else if word.contains([' ', '{']) {
            words.push(format!("'{word}'"));
        } else {
            words.push(word);
        }
    }
    words.join(" ")
}

fn subject(arguments: &Arguments) -> Subject {
    let role = match arguments.role() {
        Role::Server => "server",
        Role::Client => "client",
        Role::GameServer => "game-server",
        Role::SecureServer => "secure-server",
    };
    let about = arguments.about.clone();
    // A server that the suite starts has a different address in each case.
    let started = arguments.start.as_deref().filter(|_| arguments.address().is_empty());
    let target = started.unwrap_or_else(|| arguments.address()).to_owned();
    Subject {
        target: target.clone(),
        role: role.to_owned(),
        command: command_line(),
        peer: Peer {
            name: about.peer.unwrap_or(target),
            version: about.peer_version.unwrap_or_default(),
            start: about.peer_start.or_else(|| arguments.start.clone()).unwrap_or_default(),
            note: about.peer_note.unwrap_or_default(),
        },
    }
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn publish(arguments: &Arguments, reports: &[Report]) -> Result<(), String> {
    let strict = arguments.strict;
    let subject = subject(arguments);
    if arguments.json {
        let json = report::json(&subject, reports, strict).map_err(|error| error.to_string())?;
        say(&json);
    } else {
        say(&report::summary(Totals::of(reports, strict)));
    }
    if let Some(path) = &arguments.junit {
        save(path, &report::junit(&subject.target, reports, strict))?;
    }
    if let Some(path) = &arguments.html {
        save(path, &rakwire_conformance::html::page(&subject, reports, strict))?;
    }
    Ok(())
}

fn write_page(arguments: &PageArguments) -> Result<(), String> {
    let mut runs = Vec::new();
    for path in &arguments.files {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        runs.push(Run::read(&text).map_err(|error| format!("{}: {error}", path.display()))?);
    }
    let head = match &arguments.head {
        Some(path) => {
            std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?
        }
        None => String::new(),
    };
    say(page::markdown(&head, &runs).trim_end());
    Ok(())
}

fn finish(arguments: &Arguments) -> Result<bool, String> {
    if let Some(Command::Page(page)) = &arguments.command {
        return write_page(page).map(|()| true);
    }
    if arguments.list {
        // Ignore a closed pipe.
        return list(&mut io::stdout().lock(), arguments).map_or(Ok(false), |()| Ok(true));
    }
    let reports = judge(arguments)?;
    publish(arguments, &reports)?;
    Ok(Totals::of(&reports, arguments.strict).failed == 0)
}

fn main() -> ExitCode {
    match finish(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(reason) => {
            // Ignore a closed standard error.
            let _ = writeln!(io::stderr(), "rakwire-conformance: {reason}");
            ExitCode::from(2)
        }
    }
}
