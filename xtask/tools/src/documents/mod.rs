//! Checks that names in documents exist: tests, paths, commands, and the checks of the invariants; and that programs, the
//! table of stages and the instruction counts match the committed ones.

mod blocks;
mod commands;
mod counts;
mod index;
mod paths;
mod spans;
mod walk;

use std::fs;

use anyhow::{Context, Result, bail};

use self::commands::Known;
use self::counts::Counts;
use self::index::TestIndex;
use self::paths::KnownPaths;
use xtask::listing;
use xtask::shell::Shell;
use xtask::tracked;

const ARCHITECTURE: &str = "ARCHITECTURE.md";
/// It describes the past, and may contain names that no longer exist.
const HISTORY: &str = "CHANGELOG.md";
const STAGES: &str = "CONTRIBUTING.md";

/// The stage of `cargo xtask check`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    let stages = xtask::stages::all();
    check_table(&shell.read(STAGES)?, &listing::table(&stages))?;
    check(shell, &stages.iter().map(|stage| stage.name).collect::<Vec<_>>())
}

/// Checks all names in the documents. `stages` are the names of all stages.
fn check(shell: &Shell, stages: &[&str]) -> Result<()> {
    let files = tracked::files(shell)?;
    let mut index = TestIndex::default();
    for file in files.iter().filter(|file| file.ends_with(".rs")) {
        index.add(file, &shell.read(file)?);
    }
    let paths = KnownPaths::new(&files);
    let known = Known::new(shell, &files, stages)?;
    let counts = Counts::parse(&shell.read(counts::FILE)?)?;
    let (mut named, mut run, mut compared, mut shown) = (0, 0, 0, 0);
    let mut wrong = Vec::new();
    for document in files.iter().filter(|file| file.ends_with(".md") && *file != HISTORY) {
        // Paths of a document are relative to its own folder, not to that of a symbolic link to it.
        if shell.path(document).is_symlink() {
            continue;
        }
        let text = fs::read_to_string(shell.path(document))?;
        let (places, mut problems) = index.problems(&text);
        named += places;
        let (places, more) = known.problems(&text);
        run += places;
        problems.extend(more);
        let (places, more) = counts.problems(&text);
        compared += places;
        problems.extend(more);
        let (places, more) = blocks::problems(&text, |path| shell.read(path));
        shown += places;
        problems.extend(more);
        problems.extend(paths.problems(document, &text));
        if document == ARCHITECTURE {
            problems.extend(index.invariants(&text, stages));
            let (walks, more) = walk::walks(&text);
            problems.extend(more);
            for walk in walks {
                shell.print(format_args!("{}: {} files, {} returns", walk.heading, walk.files, walk.returns));
            }
        }
        wrong.extend(problems.iter().map(|(line, problem)| format!("{document}:{line}: {problem}")));
    }
    if !wrong.is_empty() {
        bail!("documents contain names that do not exist, or differ from files:\n  {}", wrong.join("\n  "));
    }
    if [named, run, compared, shown].contains(&0) {
        bail!(
            "no document cites a test, a command, a count or a program: the check does not parse the documents"
        );
    }
    shell.print(format_args!(
        "{named} rows of documents cite existing tests, {run} commands are valid, {shown} programs equal their \
         files, and {compared} places have the instruction counts that are committed"
    ));
    Ok(())
}

/// Compares the table of stages in the document with the expected one.
fn check_table(text: &str, expected: &str) -> Result<()> {
    const BEGIN: &str = "<!-- cargo xtask ci --table -->\n";
    let inner = text.split_once(BEGIN).and_then(|(_, rest)| rest.split_once("\n<!-- end -->"));
    let (found, _) = inner.with_context(|| format!("{STAGES} has no line {:?}", BEGIN.trim()))?;
    let differs = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    if found != expected {
        let (found, expected) = differs.unwrap_or(("one of them", "is longer"));
        bail!(
            "the table of the stages in {STAGES} differs from the output of `cargo xtask ci --table`; replace it:\n  \
             {found}\n  {expected}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_differing_table_is_an_error_with_the_update_command() {
        let document =
            |table: &str| format!("# A\n\n<!-- cargo xtask ci --table -->\n{table}\n<!-- end -->\nB\n");
        check_table(&document("| a |\n| b |"), "| a |\n| b |").unwrap();
        let error = check_table(&document("| a |\n| b |"), "| a |\n| c |").unwrap_err().to_string();
        assert!(error.contains("  | b |\n  | c |") && error.contains("cargo xtask ci --table"), "{error}");
        assert!(check_table(&document("| a |"), "| a |\n| b |").unwrap_err().to_string().contains("longer"));
        assert!(check_table("# A\n", "").unwrap_err().to_string().contains("has no line"));
    }
}
