//! Checks commands in documents: the parts of the repository that they name must exist.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use clap::{Command, CommandFactory};

use super::spans;
use crate::cli::Cli;
use xtask::shell::Shell;

/// The cargo commands that are checked.
const LOOKED_AT: [&str; 7] = ["add", "bench", "doc", "install", "run", "test", "xtask"];
/// The cargo options that name a package or a target.
const NAMING: [&str; 6] = ["-p", "--package", "--test", "--bin", "--example", "--bench"];

/// All valid names in commands.
pub(super) struct Known {
    cli: Command,
    stages: BTreeSet<String>,
    /// The packages and targets, and the folders of packages.
    names: BTreeSet<String>,
    /// The words in the sources of `rakwire` and of the interop runner, which include the names of their options.
    words: BTreeSet<String>,
}

impl Known {
    pub(super) fn new(shell: &Shell, files: &[String], stages: &[&str]) -> Result<Self> {
        let (mut names, mut words) = (BTreeSet::new(), BTreeSet::new());
        for file in files {
            let has_options =
                ["cli/src/", "interop/runner/src/"].iter().any(|folder| file.starts_with(folder));
            if has_options && file.ends_with(".rs") {
                let text = shell.read(file)?.replace('-', "_");
                words.extend(text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned));
            }
            let path = Path::new(file.strip_suffix("/main.rs").unwrap_or(file));
            let folder = path.parent().and_then(Path::file_name);
            if folder.is_some_and(|folder| {
                ["tests", "bin", "examples", "benches"].iter().any(|name| folder == *name)
            }) {
                names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
            }
            if let Some(folder) = file.strip_suffix("/Cargo.toml") {
                names.insert(folder.to_owned());
                let manifest = shell.read(file)?;
                let named =
                    manifest.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
                names.extend(named.map(str::to_owned));
            }
        }
        Ok(Self {
            cli: built_cli(),
            stages: stages.iter().map(|stage| (*stage).to_owned()).collect(),
            names,
            words,
        })
    }

    /// Returns the number of commands in a document, and the invalid ones with their lines.
    pub(super) fn problems(&self, text: &str) -> (usize, Vec<(usize, String)>) {
        let mut count = 0;
        let mut problems = Vec::new();
        for (line, code) in spans::inline(text).into_iter().chain(spans::block_lines(text)) {
            for command in commands(code) {
                count += 1;
                let problem = match command.as_slice() {
                    ["xtask", arguments @ ..] => self.problem_of_xtask(arguments),
                    _ => self.problem_of_cargo(&command),
                };
                problems.extend(problem.map(|problem| (line, format!("`{}`: {problem}", command.join(" ")))));
            }
            problems.extend(self.problem_of_rakwire(code).map(|problem| (line, problem)));
        }
        (count, problems)
    }

    /// Returns the first unknown option of a `rakwire` command.
    fn problem_of_rakwire(&self, code: &str) -> Option<String> {
        let words = code.strip_prefix("rakwire ")?.split(" #").next()?.split_whitespace();
        self.unknown_option(words).map(|option| format!("`{code}`: the program has no option --{option}"))
    }

    /// Returns the first option that no program has.
    fn unknown_option<'c>(&self, words: impl Iterator<Item = &'c str>) -> Option<&'c str> {
        let mut options = words
            .filter_map(|word| word.strip_prefix("--"))
            .map(|word| word.split('=').next().unwrap_or(word));
        options.find(|option| {
            !option.is_empty()
                && !["help", "version"].contains(option)
                && !self.words.contains(&option.replace('-', "_"))
        })
    }

    fn problem_of_xtask(&self, arguments: &[&str]) -> Option<String> {
        let mut command = &self.cli;
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if let Some(flag) = argument.strip_prefix("--") {
                let flag = flag.split('=').next().unwrap_or(flag);
                if !command.get_arguments().any(|known| known.get_long() == Some(flag)) {
                    return Some(format!("there is no option --{flag}"));
                }
                // `bench --only` takes names of rows. Capital letters are placeholders.
                let named = if flag == "only" && command.get_name() != "bench" { rest.next() } else { None };
                let is_unknown =
                    |stage: &&str| **stage != *stage.to_uppercase() && !self.stages.contains(*stage);
                if let Some(stage) = named.iter().flat_map(|stages| stages.split(',')).find(is_unknown) {
                    return Some(format!("there is no stage {stage}"));
                }
            } else if let Some(inner) = command.find_subcommand(argument) {
                command = inner;
                // Its options are those of the runner, which is in another workspace.
                if command.get_name() == "interop" {
                    let unknown = self.unknown_option(rest.copied());
                    return unknown.map(|option| format!("the runner has no option --{option}"));
                }
            } else if std::ptr::eq(command, &raw const self.cli) && argument != &argument.to_uppercase() {
                return Some(format!("there is no command {argument}"));
            }
        }
        None
    }

    fn problem_of_cargo(&self, command: &[&str]) -> Option<String> {
        let arguments: Vec<_> = command.iter().take_while(|argument| **argument != "--").copied().collect();
        let named = arguments.windows(2).filter_map(|pair| match pair {
            [option, name] if NAMING.contains(option) => Some(*name),
            // Documents for users refer to a clone next to their project.
            ["--path", folder] => Some(folder.strip_prefix("../rakwire/").unwrap_or(folder)),
            [subcommand @ ("add" | "install"), name] if name.starts_with("rakwire") => Some(subcommand),
            _ => None,
        });
        named.into_iter().find(|name| !self.names.contains(*name)).map(|name| match name {
            "add" | "install" => "it is not published: use --path".to_owned(),
            name => format!("there is no package and no target {name}"),
        })
    }
}

/// Returns the command line of `cargo xtask`, with the options of outer commands in each subcommand.
fn built_cli() -> Command {
    let mut cli = xtask::cli::command();
    for own in Cli::command().get_subcommands().filter(|own| !own.is_hide_set()) {
        cli = cli.mut_subcommand(own.get_name(), |_| own.clone());
    }
    cli.build();
    cli
}

/// Returns the cargo commands in a piece of code, each without the word `cargo`.
fn commands(code: &str) -> Vec<Vec<&str>> {
    let words: Vec<_> = code.split(" #").next().unwrap_or(code).split_whitespace().collect();
    let starts =
        words.windows(2).enumerate().filter(|(_, pair)| pair[0] == "cargo" && LOOKED_AT.contains(&pair[1]));
    let is_end = |word: &&&str| !["&&", "|", ";"].contains(*word);
    starts.map(|(at, _)| words[at + 1..].iter().take_while(is_end).copied().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let known = Known {
            cli: built_cli(),
            stages: BTreeSet::from(["docs".to_owned()]),
            names: ["rakwire", "it", "tool", "native"].map(str::to_owned).into(),
            words: BTreeSet::from(["no_cookies".to_owned()]),
        };
        known.problems(text).1.into_iter().map(|(line, problem)| format!("{line} {problem}")).collect()
    }

    #[test]
    fn packages_and_targets_must_exist() {
        let good = "`cargo test -p rakwire --test it a -- --gone` `cargo add --path ../rakwire/native`\n```\nA=1 cargo run --bin tool # --bin x\n```";
        assert_eq!(problems(good), [""; 0]);
        assert_eq!(
            problems(
                "`cargo test -p rakwire\n--test lossy`, `cargo run -p gone` `cargo install rakwire-cli`"
            ),
            [
                "1 `test -p rakwire --test lossy`: there is no package and no target lossy",
                "2 `run -p gone`: there is no package and no target gone",
                "2 `install rakwire-cli`: it is not published: use --path"
            ]
        );
    }

    #[test]
    fn options_of_the_program_must_exist() {
        assert_eq!(problems("`rakwire echo --no-cookies --help` `rakwire-relay --gone`"), [""; 0]);
        assert_eq!(
            problems("    rakwire echo --gone=1"),
            ["1 `rakwire echo --gone=1`: the program has no option --gone"]
        );
    }

    #[test]
    fn commands_of_xtask_must_exist() {
        let good = "`cargo xtask` `cargo xtask COMMAND` `cargo xtask test --only docs,docs` `cargo xtask fuzz --seconds N` `cargo xtask size mcu --update` `cargo xtask bench --only bulk_10mb` `cargo xtask interop --no-cookies`";
        assert_eq!(problems(good), [""; 0]);
        assert_eq!(
            problems(
                "`cargo xtask gone` `cargo xtask test --only docs,gone` `cargo xtask fuzz --gone` `cargo xtask interop --gone`"
            ),
            [
                "1 `xtask gone`: there is no command gone",
                "1 `xtask test --only docs,gone`: there is no stage gone",
                "1 `xtask fuzz --gone`: there is no option --gone",
                "1 `xtask interop --gone`: the runner has no option --gone"
            ]
        );
    }
}
