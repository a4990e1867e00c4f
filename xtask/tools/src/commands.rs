//! Checks that the stages, packages, programs and options in the commands of documents exist.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Result, bail};
use regex::Regex;
use xtask::shell::Shell;

use crate::modules::uses::regex;

static XTASK: LazyLock<Regex> = LazyLock::new(|| regex(r"\bcargo xtask ([a-z][\w-]*)([^`\n#&|]*)"));
static ONLY: LazyLock<Regex> = LazyLock::new(|| regex(r"--only ([a-z][\w,-]*)"));
static CARGO: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\bcargo (?:add|bench|build|doc|install|run|test)\b([^`\n#&|]*)"));
static NAMED: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?:^| )(?:-p|--package|--test|--bin|--example|--bench) ([a-z][\w-]*)"));
static RAKWIRE: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^(?:`|\./)?rakwire ((?:[^`\n#&|\\]|\\\n)*)"));
static OPTION: LazyLock<Regex> = LazyLock::new(|| regex(r"(?:^| )--([a-z][\w-]*)"));

/// The names that commands may contain.
pub(crate) struct Known {
    commands: BTreeSet<String>,
    stages: BTreeSet<String>,
    /// Packages, and the targets of cargo.
    names: BTreeSet<String>,
    /// The words in the sources of the program `rakwire`, which contain the names of its options.
    words: BTreeSet<String>,
}

impl Known {
    pub(crate) fn new(shell: &Shell, files: &[String], stages: &[&str]) -> Result<Self> {
        let cli = xtask::cli::command();
        let (mut names, mut words) = (BTreeSet::new(), BTreeSet::new());
        for file in files {
            if file.starts_with("cli/src/") && file.ends_with(".rs") {
                let text = shell.read(file)?;
                words.extend(text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned));
            }
            if file.ends_with("Cargo.toml") {
                let manifest = shell.read(file)?;
                let named =
                    manifest.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
                names.extend(named.map(str::to_owned));
            }
            let path = Path::new(file.strip_suffix("/main.rs").unwrap_or(file));
            let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
            if ["tests", "bin", "examples", "benches"].iter().any(|name| folder == *name) {
                names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
            }
        }
        if names.is_empty() || words.is_empty() {
            bail!("no package or no source of `rakwire` was found: the check of commands finds nothing");
        }
        Ok(Self {
            commands: cli.get_subcommands().map(|command| command.get_name().to_owned()).collect(),
            stages: stages.iter().map(|stage| (*stage).to_owned()).collect(),
            names,
            words,
        })
    }

    /// Returns the number of commands in a document, and its unknown names, each with its byte offset.
    pub(crate) fn problems(&self, text: &str) -> (usize, Vec<(usize, String)>) {
        let mut count = 0;
        let mut problems = Vec::new();
        for found in XTASK.captures_iter(text) {
            count += 1;
            let is_bench = &found[1] == "bench" || &found[1] == "interop";
            let stages: Vec<_> = ONLY.captures_iter(&found[2]).map(|only| only[1].to_owned()).collect();
            let stages = stages.iter().flat_map(|only| only.split(',')).filter(|_| !is_bench);
            let at = found.get(0).map_or(0, |all| all.start());
            if !self.commands.contains(&found[1]) && &found[1] != "help" {
                problems.push((at, format!("`cargo xtask` has no command {}", &found[1])));
            }
            let unknown = stages.filter(|stage| !self.stages.contains(*stage));
            problems.extend(unknown.map(|stage| (at, format!("there is no stage {stage}"))));
        }
        for found in CARGO.captures_iter(text) {
            count += 1;
            let arguments = found[1].split(" -- ").next().unwrap_or_default();
            let unknown = NAMED.captures_iter(arguments).filter(|named| !self.names.contains(&named[1]));
            problems.extend(unknown.map(|named| {
                (
                    found.get(0).map_or(0, |all| all.start()),
                    format!("there is no package and no target {}", &named[1]),
                )
            }));
        }
        for found in RAKWIRE.captures_iter(text) {
            count += 1;
            let unknown = OPTION.captures_iter(&found[1]).filter(|option| {
                !["help", "version"].contains(&&option[1])
                    && !self.words.contains(&option[1].replace('-', "_"))
            });
            problems.extend(unknown.map(|option| {
                (
                    found.get(0).map_or(0, |all| all.start()),
                    format!("`rakwire` has no option --{}", &option[1]),
                )
            }));
        }
        (count, problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_in_commands_are_found() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let known = Known {
            commands: set(&["ci", "bench"]),
            stages: set(&["size", "mcu"]),
            names: set(&["rakwire", "echo"]),
            words: set(&["dry_run"]),
        };
        let good = "`cargo xtask ci --only size,mcu` `cargo xtask bench --only x`\ncargo run -p rakwire --example echo -- --test y\n\
                    rakwire send --dry-run\n";
        assert_eq!(known.problems(good), (4, Vec::new()));
        for bad in [
            "cargo xtask cj",
            "`cargo xtask ci --only sise`",
            "cargo run --example ecko",
            "rakwire send --dry-rum",
        ] {
            assert_eq!(known.problems(bad).1.len(), 1, "{bad}");
        }
    }
}
