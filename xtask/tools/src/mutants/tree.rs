//! The copy of the core that has all mutants compiled in.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::list::Mutant;
use super::site::{self, Sources};

/// What is copied besides the root's own manifest.
const PACKAGE: &str = "core";
const PACKAGES: [&str; 2] = ["core", "core/derive"];
const ROOT: &str = "core/src/lib.rs";
/// The lock file is kept, so that the copy is built from the very same dependencies.
const LOCK: &str = "Cargo.lock";
const MANIFEST: &str = "Cargo.toml";
/// The variable that names the mutant of a process by its number.
pub(super) const VARIABLE: &str = "RAKWIRE_MUTANT";

/// The module of the copy that knows which mutant is on, with the name of the variable left open.
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

/// Makes `tree` the copy of the repository at `root` with all mutants compiled in.
pub(super) fn make(root: &Path, tree: &Path, mutants: &[Mutant]) -> Result<()> {
    let mut sources = read_sources(root)?;
    rewrite(&mut sources, mutants)?;
    let lib = sources.get_mut(ROOT).with_context(|| format!("there is no {ROOT}"))?;
    lib.push_str(&SWITCH.replace("VARIABLE", VARIABLE));
    sources.insert(MANIFEST.to_owned(), cut_down(&read(&root.join(MANIFEST))?)?);
    sources.insert(LOCK.to_owned(), read(&root.join(LOCK))?);
    write(tree, &sources)
}

/// The sources and manifests of the core.
pub(super) fn read_sources(root: &Path) -> Result<Sources> {
    let mut sources = Sources::new();
    for path in files(&root.join(PACKAGE))? {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        if name.ends_with(".rs") || name.ends_with(".toml") {
            sources.insert(name, read(&path)?);
        }
    }
    Ok(sources)
}

/// Replaces the text of every mutant by a choice between right and wrong.
fn rewrite(sources: &mut Sources, mutants: &[Mutant]) -> Result<()> {
    let mut edits = locate_all(sources, mutants)?;
    // From the end of each file on, so that what was found stays where it is.
    edits.sort_by_key(|(_, _, place)| usize::MAX - place.start);
    for (number, mutant, place) in edits {
        if let Some(source) = sources.get_mut(&mutant.file) {
            let switched = mutant.switched(number, &source[place.clone()]);
            source.replace_range(place, &switched);
        }
    }
    Ok(())
}

/// The number and the place of every mutant. Everything that is wrong with the list is said at once.
pub(super) fn locate_all<'a>(
    sources: &Sources,
    mutants: &'a [Mutant],
) -> Result<Vec<(usize, &'a Mutant, Range<usize>)>> {
    let mut located: Vec<(usize, &Mutant, Range<usize>)> = Vec::new();
    let mut problems = Vec::new();
    for (number, mutant) in (1..).zip(mutants) {
        let problem = match site::locate(mutant, sources) {
            Err(problem) => problem,
            Ok(place) => {
                let overlaps = |other: &&(usize, &Mutant, Range<usize>)| {
                    other.1.file == mutant.file && other.2.start < place.end && place.start < other.2.end
                };
                match located.iter().find(overlaps) {
                    Some((_, other, _)) => format!("its text overlaps that of \"{}\"", other.name),
                    None => {
                        located.push((number, mutant, place));
                        continue;
                    }
                }
            }
        };
        problems.push(format!("\n  \"{}\": {problem}", mutant.name));
    }
    if !problems.is_empty() {
        bail!("{} mutants do not fit the sources any more:{}", problems.len(), problems.concat());
    }
    Ok(located)
}

/// The manifest of the workspace with the packages of the copy alone.
fn cut_down(manifest: &str) -> Result<String> {
    let mut manifest: toml::Table = manifest.parse().context("the manifest cannot be read")?;
    let workspace = manifest.get_mut("workspace").and_then(toml::Value::as_table_mut);
    let workspace = workspace.context("the manifest is not that of a workspace")?;
    workspace.insert("members".to_owned(), PACKAGES.to_vec().into());
    workspace.remove("exclude");
    Ok(manifest.to_string())
}

/// Writes what changed and removes what is gone: cargo builds anew what was written.
fn write(tree: &Path, sources: &Sources) -> Result<()> {
    fs::create_dir_all(tree).with_context(|| format!("{} cannot be made", tree.display()))?;
    for path in files(tree)? {
        let name = path.strip_prefix(tree).unwrap_or(&path);
        if !sources.contains_key(&*name.to_string_lossy()) {
            fs::remove_file(&path).with_context(|| format!("{} cannot be removed", path.display()))?;
        }
    }
    for (name, text) in sources {
        let path = tree.join(name);
        if fs::read_to_string(&path).is_ok_and(|old| old == *text) {
            continue;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        }
        fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(())
}

/// All files below a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if !path.is_dir() {
            found.push(path);
        } else if !path.ends_with("target") {
            found.extend(files(&path)?);
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

    fn mutant(name: &str, from: &str, to: &str) -> Mutant {
        Mutant {
            name: name.to_owned(),
            breaks: "Something.".to_owned(),
            file: "a.rs".to_owned(),
            after: String::new(),
            from: from.to_owned(),
            to: to.to_owned(),
        }
    }

    #[test]
    fn every_mutant_is_compiled_in_beside_what_is_right() {
        let mut sources = Sources::from([("a.rs".to_owned(), "one(); two(three)".to_owned())]);
        let mutants = [mutant("a", "two(three)", "four"), mutant("b", "one();", "")];
        rewrite(&mut sources, &mutants).unwrap();
        assert_eq!(
            sources["a.rs"],
            "if crate::mutants::is_on(2) {  } else { one(); } \
             (if crate::mutants::is_on(1) { four } else { two(three) })"
        );
    }

    #[test]
    fn all_that_is_wrong_with_the_list_is_said_at_once() {
        let sources = Sources::from([("a.rs".to_owned(), "one(two)".to_owned())]);
        let mutants = [mutant("a", "one(two)", ""), mutant("b", "two", ""), mutant("c", "gone", "")];
        let error = locate_all(&sources, &mutants).unwrap_err().to_string();
        assert_eq!(
            error,
            "2 mutants do not fit the sources any more:\n  \"b\": its text overlaps that of \"a\"\n  \"c\": a.rs does \
             not contain `gone`"
        );
    }

    #[test]
    fn the_manifest_keeps_all_but_the_other_packages() {
        let manifest = cut_down(
            "[workspace]\nmembers = [\"a\", \"b\"]\nexclude = [\"c\"]\n[workspace.dependencies]\nd = \"1.0\"\n\
             [profile.dev]\nopt-level = 1\n",
        );
        let manifest: toml::Table = manifest.unwrap().parse().unwrap();
        assert_eq!(manifest["workspace"]["members"], PACKAGES.to_vec().into());
        assert_eq!(manifest["workspace"].get("exclude"), None);
        assert_eq!(manifest["workspace"]["dependencies"]["d"].as_str(), Some("1.0"));
        assert_eq!(manifest["profile"]["dev"]["opt-level"].as_integer(), Some(1));
    }

    #[test]
    fn only_what_changed_is_written() {
        let tree = std::env::temp_dir().join(format!("rakwire-mutants-{}", std::process::id()));
        let both =
            Sources::from([("a.rs".to_owned(), "1".to_owned()), ("b/c.rs".to_owned(), "2".to_owned())]);
        write(&tree, &both).unwrap();
        let written = || fs::metadata(tree.join("a.rs")).unwrap().modified().unwrap();
        let before = written();
        write(&tree, &Sources::from([("a.rs".to_owned(), "1".to_owned())])).unwrap();
        assert_eq!(written(), before);
        assert_eq!(files(&tree).unwrap(), [tree.join("a.rs")]);
        fs::remove_dir_all(&tree).unwrap();
    }
}
