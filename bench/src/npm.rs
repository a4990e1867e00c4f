//! The npm package in Chromium, measured by `wasm/bench/run.mjs`.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::{environment, publish};

const BEGIN: &str = "<!-- figures: written by `cargo xtask bench npm --publish` -->";

/// Measure the npm package in Chromium: the cost of a message, a busy page and bytes to load.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Measure briefly, as a smoke test
    #[arg(long)]
    quick: bool,
    /// Write the tables into docs/busy-page.md
    #[arg(long, conflicts_with = "quick")]
    publish: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut environment = environment::begin(1)?;
    "cargo xtask bench npm".clone_into(&mut environment.command);
    environment.peers.clear();
    let mut node = Command::new("node");
    node.arg("bench/run.mjs").args(options.quick.then_some("--quick")).current_dir("wasm");
    let output = node.stderr(Stdio::inherit()).output().context("`node` cannot be started")?;
    let tables = String::from_utf8_lossy(&output.stdout);
    print!("{tables}");
    ensure!(output.status.success(), "wasm/bench/run.mjs failed");
    environment::end(&mut environment)?;
    let text = format!("{}\n\n{tables}", environment.sentences());
    if options.publish {
        publish::write_figures(Path::new("docs/busy-page.md"), BEGIN, &text)
    } else {
        Ok(())
    }
}
