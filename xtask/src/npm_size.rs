//! `cargo xtask size npm`: the size of each entry of the npm package, compared with the committed table and with the
//! limit of the smallest entry.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell::Shell;

const TABLE: &str = "docs/sizes.md";
const SCRIPT: &str = "sizes.mjs";
/// The maximum growth of an entry over the table with the same compiler, in percent.
const TOLERANCE: u64 = 2;
/// The maximum size of the smallest entry in bytes after gzip: WebAssembly and glue together, and the glue alone.
const MAX_TOTAL: u64 = 40_000;
const MAX_GLUE: u64 = 15_616;

/// Measures the entries, prints the sizes, and checks them. `more` is `--others` to measure the clients of other packages
/// too, which are installed with the bundlers. A compiler without rows in the table is noted, but not a failure.
pub fn check(shell: &Shell, more: &[&str]) -> Result<()> {
    let output = shell.cmd_in("wasm", "node", [SCRIPT].into_iter().chain(more.iter().copied())).output()?;
    let sizes: Value = serde_json::from_str(&output.stdout).context("wasm/sizes.mjs printed no sizes")?;
    shell
        .print(format_args!("bytes with gzip; `parts` are those of the glue, before compression: {sizes:#}"));
    let version = shell.cmd("rustc", ["--version"]).output()?.stdout;
    let rustc = version.split_whitespace().nth(1).context("`rustc --version` printed no version")?;
    let rows = rows(&shell.read(TABLE)?, rustc);
    if rows.is_empty() {
        shell.print(format_args!("{TABLE} has no sizes for rustc {rustc}; add rows to have them checked"));
    }
    let wrong = wrong(&sizes, &rows).context("wasm/sizes.mjs printed no entries")?;
    if !wrong.is_empty() {
        bail!(
            "the npm package is too large:\n  {}\nmake it smaller, or explain the bytes in the change and update \
             the rows of rustc {rustc} in {TABLE}",
            wrong.join("\n  ")
        );
    }
    Ok(())
}

/// Returns the entries that are too large. The absolute limit applies to the smallest one that contains WebAssembly.
fn wrong(sizes: &Value, rows: &BTreeMap<String, u64>) -> Option<Vec<String>> {
    let (mut wrong, mut smallest) = (Vec::new(), None);
    for (name, entry) in sizes.get("entries")?.as_object()? {
        let (wasm, glue) = (entry.get("wasm")?.as_u64()?, entry.get("glue")?.as_u64()?);
        let total = wasm + glue;
        if wasm > 0 && smallest.is_none_or(|(smallest, _)| total < smallest) {
            smallest = Some((total, glue));
        }
        let most = rows.get(name).map_or(0, |total| total + total * TOLERANCE / 100);
        if !rows.is_empty() && total > most {
            wrong.push(format!("{name} has {total} bytes, and is limited to {most}"));
        }
    }
    let (total, glue) = smallest?;
    if total > MAX_TOTAL || glue > MAX_GLUE {
        wrong.push(format!(
            "the smallest has {total} and {glue} bytes, and is limited to {MAX_TOTAL} and {MAX_GLUE}"
        ));
    }
    Some(wrong)
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
    fn entries_larger_than_their_row_or_the_limit_are_reported() {
        let sizes = |wasm: u64| {
            serde_json::json!({"entries": {
            ".": {"wasm": wasm, "glue": 5_000}, "./ping": {"wasm": 0, "glue": 1}}})
        };
        let rows = |bytes: &str| {
            rows(
                &format!("words\n| 1.95.0 | `.` | 1 | 2 | {bytes} |\n| 1.95.0 | `./ping` | 0 | 1 | 1 |\n"),
                "1.95.0",
            )
        };
        let wrong = |wasm, rows: &BTreeMap<String, u64>| wrong(&sizes(wasm), rows).unwrap();
        assert!(wrong(30_000, &rows("34,314")).is_empty());
        assert_eq!(wrong(30_000, &rows("34,000")), [". has 35000 bytes, and is limited to 34680"]);
        assert_eq!(wrong(MAX_TOTAL, &BTreeMap::new()).len(), 1);
    }
}
