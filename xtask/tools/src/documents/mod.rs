//! Checks that what the documents name exists: tests, paths, commands, and the checks behind the invariants; and that they have
//! the instruction counts that are committed.

mod commands;
mod index;
mod instructions;
mod invariants;
mod paths;
mod rows;
mod spans;
mod tiers;

use std::fs;

use anyhow::{Result, bail};

use self::commands::Known;
use self::index::TestIndex;
use self::instructions::Counts;
use self::paths::KnownPaths;
use xtask::listing;
use xtask::shell::Shell;
use xtask::tracked;

const ARCHITECTURE: &str = "ARCHITECTURE.md";
/// What tells of the past, and may name what is gone.
const HISTORY: &str = "CHANGELOG.md";

/// The stage of `cargo xtask check`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    let stages = xtask::stages::all();
    tiers::check(&shell.read(tiers::DOCUMENT)?, &listing::table(&stages))?;
    check(shell, &stages.iter().map(|stage| stage.name).collect::<Vec<_>>())
}

/// Checks what every document names. `stages` are the names of all stages.
fn check(shell: &Shell, stages: &[&str]) -> Result<()> {
    let files = tracked::files(shell)?;
    let mut index = TestIndex::default();
    for file in files.iter().filter(|file| file.ends_with(".rs")) {
        index.add(file, &shell.read(file)?)?;
    }
    let paths = KnownPaths::new(&files);
    let known = Known::new(shell, &files, stages)?;
    let counts = Counts::parse(&shell.read(instructions::FILE)?)?;
    let (mut named, mut run, mut compared) = (0, 0, 0);
    let mut wrong = Vec::new();
    for document in files.iter().filter(|file| file.ends_with(".md") && *file != HISTORY) {
        // The paths of a document are relative to its own folder, not to that of a symbolic link to it.
        if shell.path(document).is_symlink() {
            continue;
        }
        let text = fs::read_to_string(shell.path(document))?;
        let (rows, mut problems) = rows::problems(&text, &index);
        let (commands, more) = known.problems(&text);
        problems.extend(more);
        problems.extend(paths.problems(document, &text));
        let (claims, more) = counts.problems(&text);
        problems.extend(more);
        if document == ARCHITECTURE {
            problems.extend(invariants::problems(&text, stages, &index, &paths)?);
        }
        wrong.extend(problems.iter().map(|(line, problem)| format!("{document}:{line}: {problem}")));
        named += rows;
        run += commands;
        compared += claims;
    }
    if !wrong.is_empty() {
        bail!("documents name what does not exist, or have other counts:\n  {}", wrong.join("\n  "));
    }
    if named == 0 {
        bail!("no document names a test, but docs/raknet.md does");
    }
    if compared == 0 {
        bail!("no document has an instruction count, but docs/secure.md does");
    }
    shell.print(format_args!(
        "{named} rows of documents name tests that exist, {run} commands run what exists, and {compared} places have the \
         instruction counts that are committed"
    ));
    Ok(())
}
