//! The tables of docs/ name the test behind each row: those tests must exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::shell::Shell;

/// Checks every table of docs/ that has a column headed "test".
pub(crate) fn check(shell: &Shell) -> Result<()> {
    let root = &shell.path(".");
    let mut tests = BTreeSet::new();
    for folder in ["cli", "core", "embedded", "snowfight", "interop", "native", "relay", "wasm", "xtask"] {
        for file in files(&root.join(folder), "rs")? {
            tests.extend(functions(&read(&file)?));
        }
    }
    let mut rows = 0;
    let mut wrong = Vec::new();
    for file in files(&root.join("docs"), "md")? {
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        for row in rows_with_tests(&read(&file)?) {
            rows += 1;
            wrong.extend(row.problem(&tests).map(|problem| format!("{name}:{}: {problem}", row.line)));
        }
    }
    if !wrong.is_empty() {
        bail!("the documentation names tests that do not exist:\n  {}", wrong.join("\n  "));
    }
    if rows == 0 {
        bail!("no table of docs/ names a test, but docs/raknet.md has them");
    }
    shell.print(format_args!("{rows} rows of docs/ name tests that exist"));
    Ok(())
}

/// A row of a table, and what stands in its test column.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    line: usize,
    cell: String,
}

impl Row {
    fn problem(&self, tests: &BTreeSet<String>) -> Option<String> {
        // A name with a slash is a file beside the test.
        let quoted = self.cell.split('`').skip(1).step_by(2);
        let names: Vec<_> = quoted.filter(|name| !name.contains('/')).collect();
        if names.is_empty() {
            return Some("the row names no test".to_owned());
        }
        let is_unknown = |name: &&&str| !tests.contains(name.rsplit("::").next().unwrap_or(name));
        names.iter().find(is_unknown).map(|name| format!("there is no test {name}"))
    }
}

/// The rows of all tables that have a column headed "test" or "tests".
fn rows_with_tests(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut column = None;
    let mut previous: Option<&str> = None;
    for (number, line) in (1..).zip(text.lines()) {
        if !line.starts_with('|') {
            (column, previous) = (None, None);
        } else if previous.is_none() {
            column = cells(line).iter().position(|cell| cell == "test" || cell == "tests");
            previous = Some(line);
        } else if let (Some(column), false) = (column, line.starts_with("|---")) {
            let cell = cells(line).get(column).cloned().unwrap_or_default();
            rows.push(Row { line: number, cell });
        }
    }
    rows
}

fn cells(line: &str) -> Vec<String> {
    line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// The names of all functions of a file; tests that a macro makes look like functions too.
fn functions(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("fn ")?;
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        (!name.is_empty()).then_some(name)
    })
}

/// All files below `folder` whose names end in `.ending`.
pub(crate) fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "node_modules" && name != "target" {
            found.extend(files(&path, ending)?);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
text

| what | test |
|---|---|
| one | `a::exists` and `other` |
| two | nothing |

| what | where |
|---|---|
| three | `not_a_test` |
";

    #[test]
    fn rows_of_tables_with_a_test_column_are_found() {
        let rows = rows_with_tests(TABLE);
        assert_eq!(rows.iter().map(|row| row.line).collect::<Vec<_>>(), [5, 6]);
        let tests: BTreeSet<String> = functions("    fn exists() {}\nasync fn other(a: u8) {").collect();
        assert_eq!(rows[0].problem(&tests), None);
        assert_eq!(rows[1].problem(&tests).as_deref(), Some("the row names no test"));
        assert_eq!(rows[0].problem(&BTreeSet::new()).as_deref(), Some("there is no test a::exists"));
    }
}
