//! The commands of this repository, run as `cargo xtask COMMAND`.
//!
//! Each command does its own set-up on a machine with only stable Rust, Node and npm, and skips steps that are already
//! installed. Every child process ends with the command that started it. Code that is slow to compile is in the package
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

use crate::cli::{Request, Selection};
use crate::setup::Need;
use crate::shell::Shell;
use crate::stage::Tier;

/// Executes the command line.
pub fn main() -> ExitCode {
    match run(cli::parse()) {
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

fn run(request: Request) -> Result<ExitCode> {
    stop::watch_signals()?;
    let shell = Shell::new()?;
    match request {
        Request::Setup => tasks::set_up(&shell, &Need::tools())?,
        Request::Build(need) => tasks::set_up(&shell, &[need])?,
        Request::Demo(options) => demo::run(&shell, &options)?,
        Request::List => shell.print(listing::list(&shell, &stages::all())),
        Request::Site { only_book: true } => {
            tasks::set_up(&shell, &[Need::MdBook])?;
            site::build_book(&shell)?;
        }
        Request::Site { only_book: false } => {
            tasks::set_up(&shell, &site::NEEDS)?;
            site::build(&shell)?;
        }
        Request::Tier(tier, selection) => run_stages(&shell, tier, &selection)?,
        Request::Interop(args) => {
            // The standard output is reserved for the results.
            let quiet = shell.with_free_stdout();
            tasks::set_up(&quiet, &[Need::Peers])?;
            interop::build_peer(&quiet)?;
            let args: Vec<_> = args.iter().map(String::as_str).collect();
            // The runner reports failures itself.
            if !interop::pairs(&shell, &args)?.spawn()?.wait(None)?.success() {
                return Ok(ExitCode::FAILURE);
            }
        }
        Request::Tools(args) => {
            // The standard output is reserved for the result of the command.
            tasks::set_up(&shell.with_free_stdout(), &[Need::Tools])?;
            let args: Vec<_> = args.iter().map(String::as_str).collect();
            if !tools_of_xtask::forward(&shell, &args)? {
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn run_stages(shell: &Shell, tier: Tier, selection: &Selection) -> Result<()> {
    let all = stages::all();
    match selection {
        Selection::All => runner::run_tier(shell, tier, &stage::of_tier(&all, tier)),
        Selection::Only(names) => match &stage::find(&all, names)?[..] {
            [stage] => runner::run_only(shell, stage),
            several => runner::run_several(shell, several),
        },
        Selection::List => {
            shell.print(listing::list(shell, &stage::of_tier(&all, tier)));
            Ok(())
        }
        Selection::Table => {
            shell.print(listing::table(&all));
            Ok(())
        }
    }
}
