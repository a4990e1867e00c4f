//! The lines of the documents that install something of ours. Until it is published, each must work from a clone or
//! from a packed file.

use anyhow::{Result, bail};
use serde_json::Value;
use toml::Table;

use super::manifest::Published;
use xtask::shell::Shell;
use xtask::tracked;

/// Where the documents say that a clone of the repository lies, seen from the folder of a user's project.
const CLONE: &str = "../rakwire/";
/// The folder of the npm package.
const NPM: &str = "wasm";
/// What the names of all our packages begin with.
const OURS: &str = "rakwire";

/// What a document tells its readers to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Install {
    /// `cargo install --path FOLDER`.
    Program { folder: String },
    /// `cargo add --path FOLDER`, with what follows.
    Add { folder: String, more: Vec<String> },
    /// Lines for a manifest: the name of a crate, its folder and the whole line.
    Manifest(Vec<Dependency>),
    /// `npm install FILE`, a packed file or the folder of the package in a clone.
    Npm { file: String },
}

/// A line of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) folder: String,
    pub(crate) line: String,
}

/// What a document says, or what is wrong with it.
type Found = Result<Install, String>;

/// All that the documents say, checked against what there is.
pub(super) fn collect(shell: &Shell, packages: &[Published]) -> Result<Vec<Install>> {
    let tarball = tarball(&shell.read("wasm/package.json")?)?;
    let mut installs = Vec::new();
    let mut faults = Vec::new();
    for name in tracked::files(shell)?.iter().filter(|name| name.ends_with(".md")) {
        for (line, found) in lines(&shell.read(name)?) {
            match found.and_then(|install| check(&install, packages, &tarball).map(|()| install)) {
                Ok(install) => installs.push(install),
                Err(fault) => faults.push(format!("{name}:{line}: {fault}")),
            }
        }
    }
    if !faults.is_empty() {
        bail!("documents say to install what does not work:\n  {}", faults.join("\n  "));
    }
    if installs.is_empty() {
        bail!("no document says how to install anything");
    }
    Ok(installs)
}

/// The name of the file that `npm pack` writes.
fn tarball(manifest: &str) -> Result<String> {
    let manifest: Value = serde_json::from_str(manifest)?;
    let text = |key: &str| manifest.get(key).and_then(Value::as_str).unwrap_or_default();
    Ok(format!("{}-{}.tgz", text("name"), text("version")))
}

/// Whether there is what a document tells to install.
fn check(install: &Install, packages: &[Published], tarball: &str) -> Result<(), String> {
    let package = |folder: &str| {
        let found = packages.iter().find(|package| package.folder == folder);
        found.ok_or_else(|| format!("no published crate lies in {folder:?}"))
    };
    match install {
        Install::Program { folder } if package(folder)?.has_program => Ok(()),
        Install::Program { folder } => Err(format!("{folder} has no program")),
        Install::Add { folder, .. } => package(folder).map(|_| ()),
        Install::Manifest(dependencies) => {
            let wrong = dependencies
                .iter()
                .find(|line| package(&line.folder).is_ok_and(|found| found.name != line.name));
            dependencies.iter().try_for_each(|line| package(&line.folder).map(|_| ()))?;
            wrong.map_or(Ok(()), |line| Err(format!("{} does not lie in {}", line.name, line.folder)))
        }
        Install::Npm { file } if file.strip_prefix(CLONE) == Some(NPM) => Ok(()),
        Install::Npm { file } if file.rsplit('/').next() == Some(tarball) => Ok(()),
        Install::Npm { file } => Err(format!("`npm pack` writes {tarball}, not {file}")),
    }
}

/// What a document says, with the numbers of the lines.
fn lines(text: &str) -> Vec<(usize, Found)> {
    let mut found = Vec::new();
    let mut in_manifest = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            in_manifest = line.trim() == "```toml";
        } else if in_manifest {
            let Some(dependency) = dependency(line) else { continue };
            match (dependency, found.last_mut()) {
                // Lines one below the other belong together.
                (Ok(next), Some((last, Ok(Install::Manifest(lines))))) if *last + lines.len() == number => {
                    lines.push(next)
                }
                (dependency, _) => found.push((number, dependency.map(|line| Install::Manifest(vec![line])))),
            }
        } else {
            let quoted = line.split('`').skip(1).step_by(2);
            found.extend(quoted.chain([line]).filter_map(command).map(|install| (number, install)));
        }
    }
    found
}

/// A line of a manifest that names a crate of ours.
fn dependency(line: &str) -> Option<Result<Dependency, String>> {
    let table: Table = line.parse().ok()?;
    let (name, value) = table.iter().find(|(name, _)| name.starts_with(OURS))?;
    let path = value.get("path").and_then(|path| path.as_str()).and_then(|path| path.strip_prefix(CLONE));
    let dependency = path.map(|folder| Dependency {
        name: name.clone(),
        folder: folder.to_owned(),
        line: line.to_owned(),
    });
    Some(dependency.ok_or_else(|| format!("{name} is not published; name its path below {CLONE}")))
}

/// A command that installs something of ours.
fn command(text: &str) -> Option<Found> {
    let text = text.split_once(" #").map_or(text, |(command, _)| command);
    let words: Vec<&str> = text.split_whitespace().collect();
    let (does, rest) = match words.as_slice() {
        ["cargo", does @ ("install" | "add"), rest @ ..] | ["npm", does @ "install", rest @ ..] => {
            (*does, rest)
        }
        _ => return None,
    };
    let after = rest.iter().skip_while(|word| **word != "--path").skip(1).copied();
    let path: Option<&str> = after.clone().next();
    match (words.first().copied(), does, path) {
        (Some("npm"), ..) => {
            let file = rest.iter().find(|word| word.contains(OURS))?;
            let can_be_had = file.ends_with(".tgz") || file.strip_prefix(CLONE) == Some(NPM);
            let packed = can_be_had.then(|| Install::Npm { file: (*file).to_owned() });
            Some(packed.ok_or_else(|| format!("{file} is not published; install a packed file")))
        }
        (_, "install", Some(folder)) => Some(Ok(Install::Program { folder: folder.to_owned() })),
        (_, _, Some(path)) => {
            let more = after.skip(1).map(str::to_owned).collect();
            let folder = path.strip_prefix(CLONE).map(str::to_owned);
            Some(
                folder
                    .map(|folder| Install::Add { folder, more })
                    .ok_or_else(|| format!("{path} is not below {CLONE}")),
            )
        }
        (_, _, None) => {
            let ours = rest.iter().find(|word| word.starts_with(OURS))?;
            Some(Err(format!("{ours} is not published; name its --path")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> Found {
        let found = lines(text);
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap().1
    }

    #[test]
    fn commands_are_found_in_blocks_and_in_sentences() {
        let program = Ok(Install::Program { folder: "cli".to_owned() });
        assert_eq!(only("    cargo install --path cli"), program);
        assert_eq!(only("build it (`cargo install --path cli`), and run it"), program);
        let add =
            Install::Add { folder: "native".to_owned(), more: vec!["--features".to_owned(), "a".to_owned()] };
        assert_eq!(
            only("```sh\ncargo add --path ../rakwire/native --features a   # for servers\n```"),
            Ok(add)
        );
        assert_eq!(
            only("npm install ../a/rakwire-0.1.0.tgz"),
            Ok(Install::Npm { file: "../a/rakwire-0.1.0.tgz".to_owned() })
        );
        assert_eq!(lines("cargo install --locked probe-rs-tools\nnpm install\ncargo test -p rakwire"), []);
    }

    #[test]
    fn what_a_registry_would_have_to_know_is_refused() {
        assert_eq!(
            only("cargo install rakwire-cli").unwrap_err(),
            "rakwire-cli is not published; name its --path"
        );
        assert_eq!(only("cargo add rakwire").unwrap_err(), "rakwire is not published; name its --path");
        assert_eq!(
            only("npm install rakwire").unwrap_err(),
            "rakwire is not published; install a packed file"
        );
        let manifest = "```toml\nrakwire = { version = \"0.1\" }\n```";
        assert_eq!(only(manifest).unwrap_err(), "rakwire is not published; name its path below ../rakwire/");
        assert_eq!(only("cargo add --path native").unwrap_err(), "native is not below ../rakwire/");
    }

    #[test]
    fn lines_for_a_manifest_belong_together() {
        let text = "```toml\nother = \"1\"\nrakwire = { path = \"../rakwire/core\" }\n\
                    rakwire-native = { path = \"../rakwire/native\", features = [\"a\"] }\n```\n";
        let Ok(Install::Manifest(lines)) = only(text) else { panic!("no lines") };
        let names: Vec<_> = lines.iter().map(|line| (line.name.as_str(), line.folder.as_str())).collect();
        assert_eq!(names, [("rakwire", "core"), ("rakwire-native", "native")]);
    }

    #[test]
    fn the_packed_file_has_the_version_of_the_package() {
        assert_eq!(tarball(r#"{"name":"rakwire","version":"0.2.0"}"#).unwrap(), "rakwire-0.2.0.tgz");
        let npm = |file: &str| check(&Install::Npm { file: file.to_owned() }, &[], "rakwire-0.2.0.tgz");
        assert_eq!(npm("../rakwire-0.2.0.tgz"), Ok(()));
        assert_eq!(npm("../rakwire/wasm"), Ok(()));
        assert!(npm("rakwire-0.1.0.tgz").is_err());
        assert!(check(&Install::Program { folder: "cli".to_owned() }, &[], "").is_err());
    }
}
