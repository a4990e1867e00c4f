//! Commands in documents: what they name of the repository must exist.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use clap::{Command, CommandFactory};
use serde::Deserialize;

use super::spans;
use crate::cli::Cli;
use xtask::shell::Shell;

/// The commands of cargo that are looked at.
const LOOKED_AT: [&str; 5] = ["bench", "doc", "run", "test", "xtask"];
/// The arguments of cargo that name a target, and the kind of it.
const KINDS: [(&str, &str); 4] =
    [("--test", "test"), ("--bin", "bin"), ("--example", "example"), ("--bench", "bench")];

/// What commands may name.
pub(super) struct Known {
    cli: Command,
    stages: BTreeSet<String>,
    /// The targets of each package, as their kinds and names.
    packages: BTreeMap<String, BTreeSet<(String, String)>>,
    /// Programs of the firmware, which has workspaces of its own.
    firmware: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

impl Known {
    pub(super) fn new(shell: &Shell, files: &[String], stages: &[&str]) -> Result<Self> {
        let output = shell.cmd("cargo", ["metadata", "--no-deps", "--format-version", "1"]).output()?;
        if !output.status.success() {
            bail!("`cargo metadata` cannot tell the packages");
        }
        let metadata: Metadata =
            serde_json::from_str(&output.stdout).context("`cargo metadata` is no JSON")?;
        let targets = |package: &Package| {
            let all = package.targets.iter();
            all.flat_map(|target| target.kind.iter().map(|kind| (kind.clone(), target.name.clone())))
                .collect()
        };
        let manifests = files.iter().filter(|file| file.starts_with("embedded/firmware/"));
        let mut firmware = BTreeSet::new();
        for manifest in manifests.filter(|file| file.ends_with("/Cargo.toml")) {
            firmware.extend(names(&shell.read(manifest)?));
        }
        Ok(Self {
            cli: built_cli(),
            stages: stages.iter().map(|stage| (*stage).to_owned()).collect(),
            packages: metadata
                .packages
                .iter()
                .map(|package| (package.name.clone(), targets(package)))
                .collect(),
            firmware,
        })
    }

    /// The commands of a document that do not exist, with their lines, and how many there are.
    pub(super) fn problems(&self, text: &str) -> (usize, Vec<(usize, String)>) {
        let mut count = 0;
        let mut problems = Vec::new();
        for (line, code) in spans::inline(text).into_iter().chain(spans::block_lines(text)) {
            for command in commands(code) {
                count += 1;
                let found = self.problem(&command);
                problems.extend(found.map(|problem| (line, format!("`{}`: {problem}", command.join(" ")))));
            }
        }
        (count, problems)
    }

    /// What is wrong with a command of cargo, without the word `cargo`.
    fn problem(&self, command: &[&str]) -> Option<String> {
        let (name, arguments) = command.split_first()?;
        match *name {
            "xtask" => self.problem_of_xtask(arguments),
            _ => self.problem_of_cargo(arguments),
        }
    }

    fn problem_of_xtask(&self, arguments: &[&str]) -> Option<String> {
        let mut command = &self.cli;
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if let Some(flag) = argument.strip_prefix("--") {
                let flag = flag.split('=').next().unwrap_or(flag);
                let is_known = |arg: &clap::Arg| arg.get_long() == Some(flag);
                if !command.get_arguments().any(is_known) {
                    return Some(format!("there is no option --{flag}"));
                }
                // `bench --only` names rows.
                let names_stage = flag == "only" && command.get_name() != "bench";
                let stage = if names_stage { rest.next() } else { None };
                // Capital letters stand for any name.
                let is_stage = |stage: &str| stage == stage.to_uppercase() || self.stages.contains(stage);
                let stages = stage.iter().flat_map(|stages| stages.split(',')).find(|stage| !is_stage(stage));
                if let Some(stage) = stages {
                    return Some(format!("there is no stage {stage}"));
                }
            } else if let Some(inner) = command.find_subcommand(argument) {
                command = inner;
            } else if std::ptr::eq(command, &raw const self.cli) && argument != &argument.to_uppercase() {
                return Some(format!("there is no command {argument}"));
            }
        }
        None
    }

    fn problem_of_cargo(&self, arguments: &[&str]) -> Option<String> {
        let arguments: Vec<_> = arguments.iter().take_while(|argument| **argument != "--").copied().collect();
        let value = |names: &[&str]| {
            let pairs = arguments.windows(2).find(|pair| names.contains(&pair[0]));
            pairs.map(|pair| pair[1])
        };
        let package = value(&["-p", "--package"]);
        if let Some(package) = package.filter(|package| !self.packages.contains_key(*package)) {
            return Some(format!("there is no package {package}"));
        }
        for (option, kind) in KINDS {
            let Some(name) = value(&[option]) else { continue };
            let wanted = (kind.to_owned(), name.to_owned());
            let is_known = match package {
                Some(package) => self.packages[package].contains(&wanted),
                None => {
                    let is_in_firmware = kind == "bin" && self.firmware.contains(name);
                    is_in_firmware || self.packages.values().any(|targets| targets.contains(&wanted))
                }
            };
            if !is_known {
                return Some(format!("there is no {kind} {name}"));
            }
        }
        None
    }
}

/// The commands of `cargo xtask`, in each of which the options of those around it are known too.
fn built_cli() -> Command {
    let mut cli = xtask::cli::command();
    for own in Cli::command().get_subcommands().filter(|own| !own.is_hide_set()) {
        cli = cli.mut_subcommand(own.get_name(), |_| own.clone());
    }
    cli.build();
    cli
}

/// The commands of cargo in a piece of code, each without the word `cargo`.
fn commands(code: &str) -> Vec<Vec<&str>> {
    let code = code.split(" # ").next().unwrap_or(code);
    let words: Vec<_> = code.split_whitespace().collect();
    let is_command =
        |at: &usize| words[*at] == "cargo" && words.get(at + 1).is_some_and(|name| LOOKED_AT.contains(name));
    let starts = (0..words.len()).filter(is_command);
    starts
        .map(|at| {
            words[at + 1..].iter().take_while(|word| !["&&", "|", ";"].contains(word)).copied().collect()
        })
        .collect()
}

/// The values of all lines `name = "…"`.
fn names(manifest: &str) -> impl Iterator<Item = String> {
    manifest.lines().filter_map(|line| Some(line.strip_prefix("name = \"")?.strip_suffix('"')?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let targets =
            [("test", "it"), ("bin", "tool")].map(|(kind, name)| (kind.to_owned(), name.to_owned()));
        let known = Known {
            cli: built_cli(),
            stages: BTreeSet::from(["docs".to_owned()]),
            packages: BTreeMap::from([("rakwire".to_owned(), BTreeSet::from(targets))]),
            firmware: BTreeSet::from(["telemetry".to_owned()]),
        };
        known.problems(text).1.into_iter().map(|(line, problem)| format!("{line} {problem}")).collect()
    }

    #[test]
    fn packages_and_targets_must_exist() {
        let good = "`cargo test -p rakwire --test it a -- --gone` `cargo run --bin telemetry`\n```\nA=1 cargo run --bin tool # --bin x\n```";
        assert_eq!(problems(good), [""; 0]);
        assert_eq!(
            problems(
                "`cargo test -p rakwire\n--test lossy`, `cargo run -p gone`\n\n    cargo run --bin gone"
            ),
            [
                "1 `test -p rakwire --test lossy`: there is no test lossy",
                "2 `run -p gone`: there is no package gone",
                "4 `run --bin gone`: there is no bin gone"
            ]
        );
    }

    #[test]
    fn commands_of_xtask_must_exist() {
        let good = "`cargo xtask` `cargo xtask COMMAND` `cargo xtask test --only docs,docs` `cargo xtask fuzz --seconds N` `cargo xtask size mcu --update` `cargo xtask bench --only bulk_10mb`";
        assert_eq!(problems(good), [""; 0]);
        assert_eq!(
            problems("`cargo xtask gone` `cargo xtask test --only docs,gone` `cargo xtask fuzz --gone`"),
            [
                "1 `xtask gone`: there is no command gone",
                "1 `xtask test --only docs,gone`: there is no stage gone",
                "1 `xtask fuzz --gone`: there is no option --gone"
            ]
        );
    }
}
