//! `cargo xtask size npm`: the size of each entry of the npm package, compared with the committed table and with the
//! limit of the smallest entry.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell::Shell;

const TABLE: &str = "docs/sizes.md";
const SCRIPT: &str = "sizes.mjs";
/// How much larger than in the table an entry may be with the same compiler, in percent.
const TOLERANCE: u64 = 2;
/// Maximum size of the smallest entry in bytes with gzip: WebAssembly and glue together, and the glue alone.
const MOST_TOTAL: u64 = 40_000;
const MOST_GLUE: u64 = 15_616;

/// The sizes of an entry, with gzip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    wasm: u64,
    glue: u64,
}

impl Entry {
    const fn total(self) -> u64 {
        self.wasm + self.glue
    }
}

/// Selects whether the clients of other packages are measured too, which are installed with the bundlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// They are measured.
    Measured,
    /// Only our own package is measured.
    LeftOut,
}

/// Measures the entries, prints the sizes, and checks them. A compiler without rows in the table is noted, but not a
/// failure.
pub fn check(shell: &Shell, others: Others) -> Result<()> {
    let more = (others == Others::Measured).then_some("--others");
    let output = shell.cmd_in("wasm", "node", [SCRIPT].into_iter().chain(more)).output()?;
    let sizes: Value = serde_json::from_str(&output.stdout).context("wasm/sizes.mjs printed no sizes")?;
    shell
        .print(format_args!("bytes with gzip; `parts` are those of the glue, before compression: {sizes:#}"));
    let entries = entries(&sizes).context("wasm/sizes.mjs printed no entries")?;
    let version = shell.cmd("rustc", ["--version"]).output()?.stdout;
    let rustc = version.split_whitespace().nth(1).context("`rustc --version` printed no version")?;
    let rows = rows(&shell.read(TABLE)?, rustc);
    if rows.is_empty() {
        shell.print(format_args!("{TABLE} has no sizes for rustc {rustc}; add rows to have them checked"));
    }
    let wrong = wrong(&entries, &rows);
    if !wrong.is_empty() {
        bail!(
            "the npm package is too large:\n  {}\nmake it smaller, or explain the bytes in the change and update \
             the rows of rustc {rustc} in {TABLE}",
            wrong.join("\n  ")
        );
    }
    shell.print(format_args!("{} entries match {TABLE}, or are smaller", entries.len()));
    Ok(())
}

/// Returns the entries that `wasm/sizes.mjs` prints.
fn entries(sizes: &Value) -> Option<BTreeMap<String, Entry>> {
    let entry = |entry: &Value| {
        Some(Entry { wasm: entry.get("wasm")?.as_u64()?, glue: entry.get("glue")?.as_u64()? })
    };
    let entries = sizes.get("entries")?.as_object()?.iter();
    entries.map(|(name, sizes)| Some((name.clone(), entry(sizes)?))).collect()
}

/// Returns the entries that are too large. The absolute limit applies to the smallest one that contains WebAssembly.
fn wrong(entries: &BTreeMap<String, Entry>, rows: &BTreeMap<String, u64>) -> Vec<String> {
    let smallest = entries.iter().filter(|(_, entry)| entry.wasm > 0).min_by_key(|(_, entry)| entry.total());
    let mut wrong = Vec::new();
    match smallest {
        Some((_, entry)) if entry.total() <= MOST_TOTAL && entry.glue <= MOST_GLUE => {}
        smallest => wrong
            .push(format!("{smallest:?} is the smallest, and is limited to {MOST_TOTAL} and {MOST_GLUE}")),
    }
    for (name, entry) in entries.iter().filter(|_| !rows.is_empty()) {
        let most = rows.get(name).map_or(0, |total| total + total * TOLERANCE / 100);
        if entry.total() > most {
            wrong.push(format!("{name} has {} bytes, and is limited to {most}", entry.total()));
        }
    }
    wrong
}

/// Returns the bytes of each entry with this compiler, from rows `| version | entry | bytes | bytes | bytes |` of the
/// table.
fn rows(text: &str, rustc: &str) -> BTreeMap<String, u64> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        cells.next().filter(|version| *version == rustc)?;
        let entry = cells.next()?.trim_matches('`').to_owned();
        Some((entry, cells.nth(2)?.replace(',', "").parse().ok()?))
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_compared_with_the_table_and_the_limit() {
        let sizes = serde_json::json!({"entries": {
            ".": {"wasm": 30_000, "glue": 5_000, "file": 1}, "./ping": {"wasm": 0, "glue": 1}}});
        let entries = entries(&sizes).unwrap();
        let table = |bytes: &str| {
            format!(
                "words\n| rustc | entry | WebAssembly | glue | both |\n|---|---|---|---|---|\n\
                     | 1.95.0 | `.` | 1 | 2 | {bytes} |\n| 1.95.0 | `./ping` | 0 | 1 | 1 |\n"
            )
        };
        assert_eq!(rows(&table("50,000"), "1.95.0")["."], 50_000);
        assert!(rows(&table("50,000"), "1.96.0").is_empty());
        assert!(wrong(&entries, &rows(&table("34,314"), "1.95.0")).is_empty());
        let expected = [". has 35000 bytes, and is limited to 34680"];
        assert_eq!(wrong(&entries, &rows(&table("34,000"), "1.95.0")), expected);
        let large = BTreeMap::from([(".".to_owned(), Entry { wasm: MOST_TOTAL, glue: 1 })]);
        assert_eq!(wrong(&large, &BTreeMap::new()).len(), 1);
    }
}
