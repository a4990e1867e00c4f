//! How large the WebAssembly of the npm package may be: the committed table of sizes.

use anyhow::{Context, Result, bail};

use crate::artifacts;
use crate::shell::Shell;

const TABLE: &str = "docs/sizes.md";
/// How much larger a file may be than the table says, in percent, with the compiler of the table.
const TOLERANCE: u64 = 2;

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    rustc: String,
    gzip: u64,
}

/// What a size means beside the table.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Comparison {
    /// It is of another compiler, which the table does not know.
    Unknown,
    Within,
    TooLarge {
        most: u64,
    },
}

/// Checks the built WebAssembly against the table. A compiler that the table does not know is told and no failure.
pub(crate) fn check(shell: &Shell) -> Result<()> {
    let gzip = artifacts::inspect_wasm(shell)?.gzip;
    let version = shell.cmd("rustc", ["--version"]).output()?.stdout;
    let rustc = version.split_whitespace().nth(1).context("`rustc --version` names no version")?;
    let rows = rows(&shell.read(TABLE)?);
    match compare(&rows, rustc, gzip) {
        Comparison::Unknown => shell.print(format_args!(
            "{TABLE} has no size for rustc {rustc}; add the row `| {rustc} | {gzip} |` to have it checked"
        )),
        Comparison::Within => {
            shell.print(format_args!("{}: {gzip} bytes with gzip, as {TABLE} allows", artifacts::WASM_FILE));
        }
        Comparison::TooLarge { most } => bail!(
            "{} has {gzip} bytes with gzip, more than the {most} that {TABLE} allows; make it smaller, or say in the \
             change what the bytes are for and write {gzip} into the row of rustc {rustc}",
            artifacts::WASM_FILE
        ),
    }
    Ok(())
}

fn compare(rows: &[Row], rustc: &str, gzip: u64) -> Comparison {
    let Some(row) = rows.iter().find(|row| row.rustc == rustc) else { return Comparison::Unknown };
    let most = row.gzip + row.gzip * TOLERANCE / 100;
    if gzip > most { Comparison::TooLarge { most } } else { Comparison::Within }
}

/// The rows `| version | bytes |` of a table.
fn rows(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let (rustc, gzip) = (cells.next()?.to_owned(), cells.next()?.replace(',', "").parse().ok()?);
        Some(Row { rustc, gzip })
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "words\n\n| rustc | bytes with gzip |\n|---|---|\n| 1.95.0 | 46,000 |\n| 1.96.0 | 45000 |\n";

    #[test]
    fn the_table_is_read() {
        let row = |rustc: &str, gzip| Row { rustc: rustc.to_owned(), gzip };
        assert_eq!(rows(TEXT), [row("1.95.0", 46_000), row("1.96.0", 45_000)]);
    }

    #[test]
    fn two_percent_are_within_and_no_more() {
        let rows = rows(TEXT);
        for (rustc, gzip, comparison) in [
            ("1.95.0", 10, Comparison::Within),
            ("1.95.0", 46_920, Comparison::Within),
            ("1.95.0", 46_921, Comparison::TooLarge { most: 46_920 }),
            ("1.96.0", 46_000, Comparison::TooLarge { most: 45_900 }),
            ("1.97.0", 99_999, Comparison::Unknown),
        ] {
            assert_eq!(compare(&rows, rustc, gzip), comparison, "{rustc} {gzip}");
        }
    }
}
