//! The commands of this repository, run as `cargo xtask COMMAND`.
//!
//! Each command installs its requirements on a machine with only stable Rust, Node and npm, and skips those that are
//! present. Every child process ends with the command that started it. Code that is slow to compile is in the package
//! `xtask-tools`, which is built when a command or a stage needs it.

pub mod artifacts;
pub mod checks;
pub mod cli;
pub mod demo;
pub mod fields;
pub mod files;
pub mod firmware;
pub mod history;
pub mod interop;
pub mod listing;
pub mod log;
pub mod mcu;
pub mod miri;
pub mod models;
pub mod npm_size;
pub mod own_files;
pub mod process;
pub mod quickstarts;
pub mod results;
pub mod runner;
pub mod schedule;
pub mod service;
pub mod setup;
pub mod shell;
pub mod site;
pub mod slow_page;
pub mod smoke;
pub mod stage;
pub mod stages;
pub mod stop;
pub mod targets;
pub mod tasks;
pub mod tools_of_xtask;
pub mod tracked;
pub mod workspaces;

use std::process::ExitCode;

use anyhow::Result;
use clap::ArgMatches;

use crate::setup::Need;
use crate::shell::Shell;
use crate::stage::Tier;

/// Executes the command line.
pub fn main() -> ExitCode {
    match run(&cli::command().get_matches()) {
        Ok(code) => code,
        Err(_) if stop::interrupted() => {
            eprintln!("\nxtask: interrupted");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("\nxtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    stop::watch_signals()?;
    let shell = &Shell::new()?;
    // Without arguments clap shows the help, so a command line without a command contains `--list`.
    let Some((name, matches)) = matches.subcommand() else {
        shell.print(listing::list(shell, &stages::all()));
        return Ok(ExitCode::SUCCESS);
    };
    if let Some(tier) = Tier::ALL.into_iter().find(|tier| tier.name() == name) {
        run_stages(shell, tier, matches)?;
        return Ok(ExitCode::SUCCESS);
    }
    match name {
        "setup" => tasks::set_up(shell, &Need::tools())?,
        "wasm" => tasks::set_up(shell, &[Need::NpmPackage])?,
        "web" => tasks::set_up(shell, &[Need::Page])?,
        "demo" => demo::run(shell, &cli::demo_options(matches))?,
        "site" if matches.get_flag("book") => {
            tasks::set_up(shell, &[Need::MdBook])?;
            site::build_book(shell)?;
        }
        "site" => {
            tasks::set_up(shell, &site::NEEDS)?;
            site::build(shell)?;
        }
        "interop" => {
            // The standard output is reserved for the results.
            let quiet = &shell.with_free_stdout();
            tasks::set_up(quiet, &[Need::Peers])?;
            interop::build_peer(quiet)?;
            let arguments: Vec<_> = cli::arguments(matches).collect();
            // The runner reports failures itself. Its status distinguishes failed cells from an impossible run.
            let status = interop::pairs(shell, &arguments)?.spawn()?.wait(None)?;
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            return Ok(code.map_or(ExitCode::FAILURE, ExitCode::from));
        }
        of_tools => {
            // The standard output is reserved for the result of the command.
            tasks::set_up(&shell.with_free_stdout(), &[Need::Tools])?;
            let arguments: Vec<_> = [of_tools].into_iter().chain(cli::arguments(matches)).collect();
            if !tools_of_xtask::forward(shell, &arguments)? {
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn run_stages(shell: &Shell, tier: Tier, matches: &ArgMatches) -> Result<()> {
    let all = stages::all();
    // Only `ci` has the option `table`.
    let is_set = |name| matches!(matches.try_get_one::<bool>(name), Ok(Some(true)));
    if let Some(names) = matches.get_many::<String>("only") {
        let names: Vec<_> = names.cloned().collect();
        return match &stage::find(&all, &names)?[..] {
            [stage] if tier != Tier::Nightly => runner::run_only(shell, stage),
            several => runner::run_several(shell, tier, several, &all),
        };
    }
    let of_tier = stage::of_tier(&all, tier);
    if is_set("list") {
        shell.print(listing::list(shell, &of_tier));
    } else if is_set("table") {
        shell.print(listing::table(&all));
    } else {
        return runner::run_several(shell, tier, &of_tier, &all);
    }
    Ok(())
}
