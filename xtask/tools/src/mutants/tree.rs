//! The list of mutants, and the copy of the core with all of them compiled in.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use xtask::files;

/// The sources by their paths from the root of the repository.
type Sources = BTreeMap<String, String>;

/// The environment variable that selects the active mutant by its number.
pub(super) const VARIABLE: &str = "RAKWIRE_MUTANT";
const ROOT: &str = "core/src/lib.rs";
/// The packages of the copy.
const PACKAGES: [&str; 2] = ["core", "core/derive"];

/// The module of the copy that reads the active mutant, with a placeholder for the name of the variable.
const SWITCH: &str = r#"
mod mutants {
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
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Mutant>,
}

/// Parses the list. The number of a mutant is its position, from 1.
pub(super) fn parse(text: &str) -> Result<Vec<Mutant>> {
    let List { mutant: mutants } = toml::from_str(text).context("the list of mutants is malformed")?;
    let mut names = BTreeSet::new();
    for mutant in &mutants {
        if !names.insert(&mutant.name) || mutant.from.trim().is_empty() {
            bail!("the mutant \"{}\" is listed twice, or replaces nothing", mutant.name);
        }
    }
    Ok(mutants)
}

impl Mutant {
    /// Returns the replacement of `original` in the copy: the fault while mutant `number` is active, otherwise the
    /// original.
    fn switched(&self, number: usize, original: &str) -> String {
        let choice =
            format!("if crate::mutants::is_on({number}) {{ {} }} else {{ {original} }}", self.to.trim_end());
        // A statement may be left out, but an expression needs a value.
        if self.from.trim_end().ends_with(';') { choice } else { format!("({choice})") }
    }

    /// Returns the only position of its text in its file.
    fn locate(&self, sources: &Sources) -> Result<Range<usize>, String> {
        let source = sources.get(&self.file).ok_or_else(|| format!("there is no {}", self.file))?;
        let places = self.places(source);
        let line = |place: &Range<usize>| (1 + source[..place.start].matches('\n').count()).to_string();
        match places.as_slice() {
            [place] => Ok(place.clone()),
            [] => {
                let others = sources.iter().filter(|(_, source)| !self.places(source).is_empty());
                let others: Vec<_> = others.map(|(file, _)| file.as_str()).collect();
                let from = self.from.trim();
                Err(format!("{} does not contain `{from}`, but these do: [{}]", self.file, others.join(", ")))
            }
            several => {
                let lines: Vec<_> = several.iter().map(line).collect();
                Err(format!("its text is in the lines {}: select one by `after`", lines.join(", ")))
            }
        }
    }

    /// Returns every position of its text in a source. White space is ignored, and names must match as a whole.
    fn places(&self, source: &str) -> Vec<Range<usize>> {
        let solid: Vec<(usize, char)> = source.char_indices().filter(|(_, c)| !c.is_whitespace()).collect();
        let solid_text = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<Vec<_>>();
        let (skipped, needle) =
            (solid_text(&self.after).len(), solid_text(&format!("{}{}", self.after, self.from)));
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let cuts_name = |at: usize| {
            source[..at].chars().next_back().is_some_and(is_name)
                && source[at..].chars().next().is_some_and(is_name)
        };
        let places = solid.windows(needle.len()).filter(|window| window.iter().map(|(_, c)| c).eq(&needle));
        let place = |window: &[(usize, char)]| {
            let (first, last) = (window.first()?.0, window.last()?);
            let end = last.0 + last.1.len_utf8();
            (!cuts_name(first) && !cuts_name(end)).then_some(window.get(skipped)?.0..end)
        };
        places.filter_map(place).collect()
    }
}

/// Makes `tree` a copy of the repository at `root` with all mutants compiled in.
pub(super) fn make(root: &Path, tree: &Path, mutants: &[Mutant]) -> Result<()> {
    let mut sources = read_sources(root)?;
    let mut edits = locate_all(&sources, mutants)?;
    // Edits start at the end of each file, so that earlier positions stay valid.
    edits.sort_by_key(|(_, _, place)| usize::MAX - place.start);
    for (number, mutant, place) in edits {
        if let Some(source) = sources.get_mut(&mutant.file) {
            let switched = mutant.switched(number, &source[place.clone()]);
            source.replace_range(place, &switched);
        }
    }
    let lib = sources.get_mut(ROOT).with_context(|| format!("there is no {ROOT}"))?;
    lib.push_str(&SWITCH.replace("VARIABLE", VARIABLE));
    let mut manifest: toml::Table = read(&root.join("Cargo.toml"))?.parse()?;
    let workspace = manifest.get_mut("workspace").and_then(toml::Value::as_table_mut);
    let workspace = workspace.context("the manifest is not that of a workspace")?;
    workspace.insert("members".to_owned(), PACKAGES.to_vec().into());
    workspace.remove("exclude");
    sources.insert("Cargo.toml".to_owned(), manifest.to_string());
    // The copy must use exactly the same dependencies.
    sources.insert("Cargo.lock".to_owned(), read(&root.join("Cargo.lock"))?);
    write(tree, &sources)
}

/// Reads the sources and manifests of the core.
pub(super) fn read_sources(root: &Path) -> Result<Sources> {
    let mut sources = Sources::new();
    for path in files_below(&root.join(PACKAGES[0]))? {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        if name.ends_with(".rs") || name.ends_with(".toml") {
            sources.insert(name, read(&path)?);
        }
    }
    Ok(sources)
}

/// Returns the number and the position of every mutant. All errors of the list are reported at once.
pub(super) fn locate_all<'a>(
    sources: &Sources,
    mutants: &'a [Mutant],
) -> Result<Vec<(usize, &'a Mutant, Range<usize>)>> {
    let mut located: Vec<(usize, &Mutant, Range<usize>)> = Vec::new();
    let mut problems = Vec::new();
    for (number, mutant) in (1..).zip(mutants) {
        let place = mutant.locate(sources).and_then(|place| {
            let overlaps = |other: &&(usize, &Mutant, Range<usize>)| {
                other.1.file == mutant.file && other.2.start < place.end && place.start < other.2.end
            };
            match located.iter().find(overlaps) {
                Some((_, other, _)) => Err(format!("its text overlaps that of \"{}\"", other.name)),
                None => Ok(place),
            }
        });
        match place {
            Ok(place) => located.push((number, mutant, place)),
            Err(problem) => problems.push(format!("\n  \"{}\": {problem}", mutant.name)),
        }
    }
    if !problems.is_empty() {
        bail!("{} mutants no longer match the sources:{}", problems.len(), problems.concat());
    }
    Ok(located)
}

/// Writes changed files and removes deleted ones: cargo rebuilds written files.
fn write(tree: &Path, sources: &Sources) -> Result<()> {
    files::create_folder(tree)?;
    for path in files_below(tree)? {
        let name = path.strip_prefix(tree).unwrap_or(&path);
        if !sources.contains_key(&*name.to_string_lossy()) {
            files::remove_file(&path)?;
        }
    }
    for (name, text) in sources {
        let path = tree.join(name);
        if !fs::read_to_string(&path).is_ok_and(|old| old == *text) {
            files::write(&path, text)?;
        }
    }
    Ok(())
}

/// Returns all files below a folder.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for name in files::names(folder)? {
        let path = folder.join(&name);
        if !path.is_dir() {
            found.push(path);
        } else if name != "target" {
            found.extend(files_below(&path)?);
        }
    }
    Ok(found)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "fn one() {\n    let count = pool\n        .header(record)\n        .count;\n    \
                          let other = pool.header(record).count;\n    is_older_than(count);\n}\n";

    fn mutant(name: &str, after: &str, from: &str) -> Mutant {
        let [name, after, from] = [name, after, from].map(str::to_owned);
        Mutant { name, breaks: String::new(), file: "a.rs".to_owned(), after, from, to: "two".to_owned() }
    }

    fn sources() -> Sources {
        Sources::from([("a.rs".to_owned(), SOURCE.to_owned()), ("b.rs".to_owned(), "gone();\n".to_owned())])
    }

    #[test]
    fn an_expression_keeps_a_value_and_a_statement_may_vanish() {
        assert_eq!(
            mutant("a", "", "x").switched(1, "x > 1"),
            "(if crate::mutants::is_on(1) { two } else { x > 1 })"
        );
        assert_eq!(
            mutant("a", "", "x;").switched(2, "x;"),
            "if crate::mutants::is_on(2) { two } else { x; }"
        );
    }

    #[test]
    fn text_matches_in_any_layout_and_as_whole_names() {
        let place = mutant("a", "let count =", "pool.header(record).count").locate(&sources()).unwrap();
        assert_eq!(&SOURCE[place], "pool\n        .header(record)\n        .count");
        assert!(mutant("a", "", "is_older").locate(&sources()).is_err());
    }

    #[test]
    fn all_errors_of_the_list_are_reported_at_once() {
        let mutants = [
            mutant("twice", "", "pool.header(record).count"),
            mutant("good", "", "is_older_than(count)"),
            mutant("overlaps", "", "(count)"),
            mutant("moved", "", "gone()"),
        ];
        assert_eq!(
            locate_all(&sources(), &mutants).unwrap_err().to_string(),
            "3 mutants no longer match the sources:\n  \
             \"twice\": its text is in the lines 2, 5: select one by `after`\n  \
             \"overlaps\": its text overlaps that of \"good\"\n  \
             \"moved\": a.rs does not contain `gone()`, but these do: [b.rs]"
        );
    }

    #[test]
    fn only_changed_files_are_written() {
        let tree = std::env::temp_dir().join(format!("rakwire-mutants-{}", std::process::id()));
        write(&tree, &sources()).unwrap();
        let written = || fs::metadata(tree.join("a.rs")).unwrap().modified().unwrap();
        let before = written();
        let mut fewer = sources();
        fewer.remove("b.rs");
        write(&tree, &fewer).unwrap();
        assert_eq!((written(), files_below(&tree).unwrap()), (before, vec![tree.join("a.rs")]));
        fs::remove_dir_all(&tree).unwrap();
    }
}
