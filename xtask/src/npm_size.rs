//! `cargo xtask size npm`: how large each entry of the npm package is, compared with the committed table and with what the
//! smallest one may have.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::shell::Shell;

const TABLE: &str = "docs/sizes.md";
const RESULT: &str = "target/size/npm.json";
const SCRIPT: &str = "sizes.mjs";
/// How much larger an entry may be than the table says, in percent, with the compiler of the table.
const TOLERANCE: u64 = 2;
/// How many bytes the smallest entry may have with gzip: WebAssembly and glue, and of these the glue.
const MOST_TOTAL: u64 = 40_000;
const MOST_GLUE: u64 = 15_616;

/// The sizes of an entry, with gzip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    wasm: u64,
    glue: u64,
    /// Of one file with both, where the WebAssembly is inside.
    file: u64,
}

/// What a page loads for a client, ours or another one, by its name; or what a part of the glue takes before compression.
type Bytes = BTreeMap<String, u64>;

/// What `wasm/sizes.mjs` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sizes {
    entries: BTreeMap<String, Entry>,
    /// Of the smallest entry.
    parts: Bytes,
    clients: Bytes,
}

impl Entry {
    const fn total(self) -> u64 {
        self.wasm + self.glue
    }
}

/// A row of the table: compiler, entry, WebAssembly and glue.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    rustc: String,
    entry: String,
    total: u64,
}

/// Whether the clients of other packages are measured too, which are installed with the bundlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// They are measured, too.
    Measured,
    /// Only our own package is measured.
    LeftOut,
}

/// Measures the entries, prints and writes the sizes, and checks them. A compiler that the table does not know is noted and no
/// failure.
pub fn check(shell: &Shell, others: Others) -> Result<()> {
    let more = (others == Others::Measured).then_some("--others");
    let output = shell.cmd_in("wasm", "node", [SCRIPT].into_iter().chain(more)).output()?;
    if !output.status.success() {
        bail!("wasm/{SCRIPT} cannot measure the package");
    }
    let sizes = parse(&output.stdout).context("wasm/sizes.mjs printed no sizes")?;
    let Sizes { entries, parts, clients } = &sizes;
    for (name, entry) in entries {
        let Entry { wasm, glue, file } = *entry;
        shell.print(format_args!(
            "{name:<16} {wasm:>6} WebAssembly, {glue:>6} glue, {:>6} both; {file:>6} as one file",
            entry.total()
        ));
    }
    shell.print("what a page loads for a client, with gzip:");
    for (name, bytes) in clients {
        shell.print(format_args!("{name:<22} {bytes:>6}"));
    }
    shell.print("what the glue of the smallest entry is for, before compression:");
    for (name, bytes) in parts {
        shell.print(format_args!("{bytes:>6} {name}"));
    }
    let smallest = smallest(entries).context("no entry has the WebAssembly inside")?;
    write(shell, &sizes, smallest)?;
    against_limits(smallest)?;
    let version = shell.cmd("rustc", ["--version"]).output()?.stdout;
    let rustc = version.split_whitespace().nth(1).context("`rustc --version` names no version")?;
    against_table(shell, entries, rustc)
}

/// The smallest of those with the WebAssembly inside.
fn smallest(entries: &BTreeMap<String, Entry>) -> Option<Entry> {
    entries.values().copied().filter(|entry| entry.wasm > 0).min_by_key(|entry| entry.total())
}

fn against_limits(smallest: Entry) -> Result<()> {
    if smallest.total() > MOST_TOTAL || smallest.glue > MOST_GLUE {
        bail!(
            "the smallest entry of the npm package has {} bytes with gzip, {} of them glue, and may have {MOST_TOTAL} and \
             {MOST_GLUE}",
            smallest.total(),
            smallest.glue
        );
    }
    Ok(())
}

fn against_table(shell: &Shell, entries: &BTreeMap<String, Entry>, rustc: &str) -> Result<()> {
    let rows = rows(&shell.read(TABLE)?);
    if !rows.iter().any(|row| row.rustc == rustc) {
        shell.print(format_args!("{TABLE} has no sizes for rustc {rustc}; add rows to have them checked"));
        return Ok(());
    }
    let mut wrong = Vec::new();
    for (name, entry) in entries {
        let row = rows.iter().find(|row| row.rustc == rustc && row.entry == *name);
        match row {
            None => wrong.push(format!("{name} has no row")),
            Some(row) if entry.total() > most(row.total) => {
                wrong.push(format!("{name} has {} bytes, and may have {}", entry.total(), most(row.total)));
            }
            Some(_) => {}
        }
    }
    if !wrong.is_empty() {
        bail!(
            "the npm package is larger than {TABLE} says:\n  {}\nmake it smaller, or say in the change what the bytes are \
             for and update the rows of rustc {rustc}",
            wrong.join("\n  ")
        );
    }
    shell.print(format_args!("{} entries are as {TABLE} says, or smaller", entries.len()));
    Ok(())
}

const fn most(total: u64) -> u64 {
    total + total * TOLERANCE / 100
}

fn write(shell: &Shell, Sizes { entries, parts, clients }: &Sizes, smallest: Entry) -> Result<()> {
    let entries: serde_json::Map<String, Value> = entries
        .iter()
        .map(|(name, entry)| {
            let Entry { wasm, glue, file } = *entry;
            let sizes = json!({ "wasm_gzip": wasm, "glue_gzip": glue, "total_gzip": entry.total(), "file_gzip": file });
            (name.clone(), sizes)
        })
        .collect();
    let result = json!({ "total_gzip": smallest.total(), "glue_gzip": smallest.glue, "entries": Value::Object(entries), "parts": parts, "clients": clients });
    let path = shell.path(RESULT);
    let folder = path.parent().context("the result lies in no folder")?;
    fs::create_dir_all(folder).and_then(|()| fs::write(&path, format!("{result:#}\n")))?;
    shell.print(format_args!("written to {RESULT}"));
    Ok(())
}

fn parse(printed: &str) -> Option<Sizes> {
    let value: Value = serde_json::from_str(printed).ok()?;
    let number = |entry: &Value, name: &str| entry.get(name)?.as_u64();
    let entry = |entry: &Value| {
        let (wasm, glue, file) = (number(entry, "wasm")?, number(entry, "glue")?, number(entry, "file")?);
        Some(Entry { wasm, glue, file })
    };
    let entries = value.get("entries")?.as_object()?.iter();
    let entries = entries.map(|(name, sizes)| Some((name.clone(), entry(sizes)?))).collect::<Option<_>>()?;
    let bytes = |of: &str| {
        let named = value.get(of)?.as_object()?.iter();
        named.map(|(name, bytes)| Some((name.clone(), bytes.as_u64()?))).collect::<Option<Bytes>>()
    };
    Some(Sizes { entries, parts: bytes("parts")?, clients: bytes("clients")? })
}

/// The rows `| version | entry | bytes | bytes | bytes |` of the table.
fn rows(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let (rustc, entry) = (cells.next()?.to_owned(), cells.next()?.trim_matches('`').to_owned());
        let total = cells.nth(2)?.replace(',', "").parse().ok()?;
        Some(Row { rustc, entry, total })
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "words\n\n| rustc | entry | WebAssembly | glue | both |\n|---|---|---|---|---|\n\
                        | 1.95.0 | `.` | 46,000 | 4,000 | 50,000 |\n| 1.95.0 | `./raknet` | 1 | 2 | 3 |\n";

    #[test]
    fn the_table_is_read() {
        let row = |entry: &str, total| Row { rustc: "1.95.0".to_owned(), entry: entry.to_owned(), total };
        assert_eq!(rows(TEXT), [row(".", 50_000), row("./raknet", 3)]);
    }

    #[test]
    fn the_sizes_are_read_and_the_smallest_with_webassembly_counts() {
        let printed = r#"{"entries":{".":{"wasm":9,"glue":3,"total":12,"file":12},
            "./ping":{"wasm":0,"glue":1,"total":1,"file":1},"./raknet":{"wasm":5,"glue":3,"total":8,"file":9}},
            "parts":{"WebTransport":3},"clients":{"rakwire":12,"another":99}}"#;
        let Sizes { entries, parts, clients } = parse(printed).unwrap();
        assert_eq!(parts, BTreeMap::from([("WebTransport".to_owned(), 3)]));
        assert_eq!(clients, BTreeMap::from([("another".to_owned(), 99), ("rakwire".to_owned(), 12)]));
        assert_eq!(smallest(&entries), Some(Entry { wasm: 5, glue: 3, file: 9 }));
        assert_eq!(parse("{\"entries\":{\".\":{}},\"parts\":{},\"clients\":{}}"), None);
    }

    #[test]
    fn limits_are_limits() {
        let entry = |wasm, glue| Entry { wasm, glue, file: 0 };
        assert!(against_limits(entry(MOST_TOTAL - MOST_GLUE, MOST_GLUE)).is_ok());
        assert!(against_limits(entry(MOST_TOTAL - MOST_GLUE + 1, MOST_GLUE)).is_err());
        assert!(against_limits(entry(0, MOST_GLUE + 1)).is_err());
        assert_eq!(most(46_000), 46_920);
    }
}
