//! `rakwire log`: shows the contents of an SQLite log.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rakwire_extras::sqlite_log::{Query, Table};
use serde_json::{Map, Value};

use crate::failure::{Failure, print};
use crate::text;

/// Shows the contents of an SQLite log, as written by echo and send with --sqlite, even while they are running.
///
/// Any program that reads SQLite can open its tables datagrams, samples and gaps.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The log
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The report to show: the datagrams of every second, their kinds, or the remote peers
    #[arg(value_enum, default_value_t = Show::Kinds)]
    show: Show,
    /// Print one JSON object per row
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Show {
    Traffic,
    Kinds,
    Remotes,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let query = match arguments.show {
        Show::Traffic => Query::Traffic,
        Show::Kinds => Query::Kinds,
        Show::Remotes => Query::Remotes,
    };
    let table = query.run(&arguments.file).map_err(Failure::usage)?;
    print(if arguments.json { as_json(&table) } else { as_text(&table) })
}

/// Formats the table with columns as wide as their widest cell.
fn as_text(table: &Table) -> String {
    // Another program may have written anything into the file.
    let escaped = |row: &Vec<String>| row.iter().map(|cell| text::escape(cell.as_bytes())).collect();
    let rows: Vec<Vec<String>> = std::iter::once(&table.columns).chain(&table.rows).map(escaped).collect();
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Formats rows as JSON: numbers stay numbers, and unknown values are null.
fn as_json(table: &Table) -> String {
    let value = |cell: &String| match cell.as_str() {
        "" => Value::Null,
        text => text.parse().map_or_else(|_| Value::from(text), Value::Number),
    };
    let line = |row: &Vec<String>| {
        let fields = table.columns.iter().cloned().zip(row.iter().map(value));
        format!("{}\n", Value::Object(fields.collect::<Map<_, _>>()))
    };
    table.rows.iter().map(line).collect()
}
