//! The list of mutants, and a copy of the sources with all of them.

use std::fs;
use std::ops::Range;

use anyhow::{Context, Result, bail};
use regex::Regex;
use serde::Deserialize;
use xtask::files;
use xtask::shell::Shell;
use xtask::tracked;

pub(super) const LIST: &str = "fuzz/mutants.toml";
/// The workspace members of the copy.
const MEMBERS: [&str; 4] = ["core", "core/derive", "udp", "worlds"];
/// The folders with the files of the copy; `worlds` contains parts of the relay.
const COPIED: [&str; 4] = ["core/", "udp/", "worlds/", "relay/src/"];
/// The crates with mutants, each of which selects the active mutant.
const SWITCHED: [&str; 2] = ["core/src/lib.rs", "worlds/src/lib.rs"];
const TREE: &str = "target/mutants/tree";
pub(super) const TARGET_DIR: &str = "target/mutants/build";
/// The exit status with which models and worlds report a finding.
pub(super) const FOUND: i32 = 1;
/// Maximum length of a finding in the table.
pub(super) const FINDING: usize = 110;

/// The environment variable that selects the active mutant by its number; 0 selects none.
pub(super) const VARIABLE: &str = "RAKWIRE_MUTANT";
/// The path of the function in the copy, split because `cargo xtask check` would take it for a path of this program.
const IS_ON: &str = concat!("crate", "::mutant_switch::is_on");
/// The module of the copy that reads the active mutant, with a placeholder for the name of the variable.
const SWITCH: &str = r#"
mod mutant_switch {
    extern crate std;

    use std::sync::LazyLock;

    static NUMBER: LazyLock<usize> = LazyLock::new(|| {
        let number = std::env::var("VARIABLE").expect("the number of a mutant, or 0");
        number.parse().expect("a number")
    });

    pub(crate) fn is_on(number: usize) -> bool {
        *NUMBER == number
    }
}
"#;

/// A fault to insert into a copy of the core.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mutant {
    pub(super) name: String,
    pub(super) breaks: String,
    file: String,
    /// The text directly before `from`, if `from` alone occurs more than once.
    #[serde(default)]
    after: String,
    from: String,
    to: String,
    /// The reason why the models cannot find it.
    pub(super) not_by_models: Option<String>,
    /// The reason why worlds need not find it.
    pub(super) not_by_worlds: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Mutant>,
}

impl Mutant {
    /// Returns the only position of its text in a source. Ignores whitespace, and matches only whole names.
    fn locate(&self, source: &str) -> Result<Range<usize>> {
        let loose = |text: &str| {
            let solid = text.chars().filter(|c| !c.is_whitespace());
            solid.map(|c| regex::escape(&c.to_string()) + r"\s*").collect::<String>()
        };
        let from = loose(&self.from);
        let is_name = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let whole = |c| if is_name(c) { r"\b" } else { "" };
        let text = format!("{}{}", self.after.trim(), self.from.trim());
        let (start, end) = (whole(text.chars().next()), whole(text.chars().next_back()));
        let from = from.strip_suffix(r"\s*").context("`from` contains no code")?;
        let pattern = Regex::new(&format!("{start}{}({from}){end}", loose(&self.after)))?;
        let places: Vec<_> =
            pattern.captures_iter(source).filter_map(|found| Some(found.get(1)?.range())).collect();
        match &places[..] {
            [place] => Ok(place.clone()),
            [] => bail!("{} does not contain `{}`", self.file, self.from.trim()),
            several => bail!("its text occurs {} times: select one by `after`", several.len()),
        }
    }

    /// Returns the replacement of `original` in the copy: the fault while mutant `number` is active, otherwise the
    /// original.
    fn switched(&self, number: usize, original: &str) -> String {
        let choice = format!("if {IS_ON}({number}) {{ {} }} else {{ {original} }}", self.to.trim_end());
        // A statement may be omitted, but an expression needs a value.
        if self.from.trim_end().ends_with(';') { choice } else { format!("({choice})") }
    }
}

/// Parses the list. The number of a mutant is its position, from 1.
pub(super) fn list(shell: &Shell) -> Result<Vec<Mutant>> {
    Ok(toml::from_str::<List>(&shell.read(LIST)?).with_context(|| format!("{LIST} is malformed"))?.mutant)
}

/// Returns the mutants with `only` in their names for which `is_meant` returns true, with their numbers.
pub(super) fn choose<'m>(
    mutants: &'m [Mutant],
    only: &str,
    is_meant: impl Fn(&Mutant) -> bool,
) -> Result<Vec<(usize, &'m Mutant)>> {
    let is_chosen = |mutant: &Mutant| mutant.name.contains(only) && is_meant(mutant);
    let chosen: Vec<_> = (1..).zip(mutants).filter(|(_, mutant)| is_chosen(mutant)).collect();
    if chosen.is_empty() {
        bail!("no name of a mutant in {LIST} contains {only:?}");
    }
    Ok(chosen)
}

/// Copies the sources with all mutants, and builds a program of the copy.
pub(super) fn build(shell: &Shell, mutants: &[Mutant], program: &[&str]) -> Result<()> {
    copy_sources(shell, mutants)?;
    let args = ["build", "--quiet"].iter().chain(program).copied();
    let build = shell.cmd_in(TREE, "cargo", args).env("CARGO_TARGET_DIR", shell.path(TARGET_DIR));
    // Suppresses warnings, because the inserted faults cause many.
    build.env("RUSTFLAGS", "--cap-lints=allow").run().with_context(|| {
        format!(
            "the copy does not build with the mutants; if one is in a `const fn`, move it elsewhere in {LIST}"
        )
    })
}

/// Copies the sources with all mutants compiled in. Only changed files are written, which cargo rebuilds.
fn copy_sources(shell: &Shell, mutants: &[Mutant]) -> Result<()> {
    let mut manifest: toml::Table = shell.read("Cargo.toml")?.parse()?;
    let workspace = manifest.get_mut("workspace").and_then(toml::Value::as_table_mut);
    let workspace = workspace.context("the manifest is not that of a workspace")?;
    workspace.insert("members".to_owned(), MEMBERS.to_vec().into());
    workspace.remove("exclude");
    let mut sources = vec![("Cargo.toml".to_owned(), manifest.to_string())];
    let is_source = |path: &&String| {
        COPIED.iter().any(|folder| path.starts_with(folder))
            && (path.ends_with(".rs") || path.ends_with(".toml"))
            || *path == "Cargo.lock"
    };
    for path in tracked::files(shell)?.iter().filter(is_source) {
        let mut text = with_mutants(path, &shell.read(path)?, mutants)?;
        if SWITCHED.contains(&path.as_str()) {
            text += &SWITCH.replace("VARIABLE", VARIABLE);
        }
        sources.push((path.clone(), text));
    }
    let tree = shell.path(TREE);
    for (name, text) in sources {
        let path = tree.join(name);
        if !fs::read_to_string(&path).is_ok_and(|old| old == text) {
            files::write(&path, text)?;
        }
    }
    Ok(())
}

/// Returns a source with the mutants of its file.
fn with_mutants(path: &str, source: &str, mutants: &[Mutant]) -> Result<String> {
    let mut edits = Vec::new();
    for (number, mutant) in (1..).zip(mutants).filter(|(_, mutant)| mutant.file == path) {
        let place = mutant.locate(source).with_context(|| format!("{LIST}: \"{}\"", mutant.name))?;
        edits.push((place, number, mutant));
    }
    // Edits start at the end of the file, so that earlier positions stay valid.
    edits.sort_by_key(|(place, ..)| usize::MAX - place.start);
    if let Some(pair) = edits.windows(2).find(|pair| pair[1].0.end > pair[0].0.start) {
        bail!("{LIST}: \"{}\" overlaps \"{}\"", pair[0].2.name, pair[1].2.name);
    }
    let mut text = source.to_owned();
    for (place, number, mutant) in edits {
        text.replace_range(place.clone(), &mutant.switched(number, &source[place]));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_listed_mutant_has_its_code_in_a_copied_folder() {
        let shell = Shell::new().unwrap();
        for mutant in list(&shell).unwrap() {
            mutant.locate(&shell.read(&mutant.file).unwrap()).unwrap();
            assert!(
                COPIED.iter().any(|folder| mutant.file.starts_with(folder)),
                "{} is not copied",
                mutant.file
            );
        }
    }

    /// Each mutant must be found by the models, by worlds, or by both.
    #[test]
    fn each_mutant_must_be_found_by_the_models_or_the_worlds() {
        for mutant in list(&Shell::new().unwrap()).unwrap() {
            let excluded = mutant.not_by_models.is_some() && mutant.not_by_worlds.is_some();
            assert!(!excluded, "{}", mutant.name);
            let is_in_core = mutant.file.starts_with("core/");
            assert!(is_in_core || mutant.not_by_models.is_some(), "the models contain no {}", mutant.file);
        }
    }

    #[test]
    fn faults_are_inserted_into_code_with_any_line_breaks() {
        let mutant = |name: &str, after: &str, from: &str| {
            let [name, after, from] = [name, after, from].map(str::to_owned);
            let (breaks, file, to) = (String::new(), "a.rs".to_owned(), "two".to_owned());
            Mutant { name, breaks, file, after, from, to, not_by_models: None, not_by_worlds: None }
        };
        let source = "let a = pool\n    .count;\nlet b = pool.count;\nis_older(a);\n";
        let inserted =
            |mutants: &[Mutant]| with_mutants("a.rs", source, mutants).map_err(|error| format!("{error:#}"));
        assert_eq!(
            inserted(&[mutant("a", "let a =", "pool.count"), mutant("b", "", "is_older(a);")]).unwrap(),
            format!(
                "let a = (if {IS_ON}(1) {{ two }} else {{ pool\n    .count }});\nlet b = pool.count;\n\
                 if {IS_ON}(2) {{ two }} else {{ is_older(a); }}\n"
            )
        );
        let problem = |mutants: &[Mutant]| inserted(mutants).unwrap_err();
        assert!(problem(&[mutant("a", "", "pool.count")]).ends_with("occurs 2 times: select one by `after`"));
        assert!(problem(&[mutant("a", "", "is_old")]).ends_with("does not contain `is_old`"));
        assert!(problem(&[mutant("a", "", "is_older(a)"), mutant("b", "", "(a);")]).contains("overlaps"));
    }
}
