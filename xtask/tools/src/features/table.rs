//! The table of features, as rows.

use anyhow::{Result, bail};

const COLUMNS: [&str; 8] =
    ["feature", "protocol", "core", "native", "npm", "Rust in browsers", "embassy", "tests"];
/// The columns in which items are named.
const LIBRARIES: std::ops::Range<usize> = 2..7;
const PROTOCOLS: [&str; 4] = ["both", "neither", "RakNet", "Game Protocol"];
/// What a reason begins with: that the platform does not let it be, or that nobody has made it.
const REASONS: [&str; 2] = ["Impossible: ", "Not offered: "];
/// So many words say something.
const WORDS: usize = 4;

/// A feature.
pub(super) struct Row {
    pub(super) line: usize,
    cells: Vec<String>,
}

/// The rows of all tables that have the columns.
pub(super) fn rows(text: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut is_within = false;
    for (number, line) in (1..).zip(text.lines()) {
        if !line.starts_with('|') {
            is_within = false;
        } else if cells(line) == COLUMNS {
            is_within = true;
        } else if is_within && !line.starts_with("|---") {
            rows.push(Row::new(number, line));
        }
    }
    if rows.is_empty() {
        bail!("there is no table with the columns {}", COLUMNS.join(", "));
    }
    Ok(rows)
}

impl Row {
    pub(super) fn new(line: usize, text: &str) -> Self {
        Self { line, cells: cells(text) }
    }

    /// The names of items, with their columns.
    pub(super) fn names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let libraries = COLUMNS.into_iter().zip(&self.cells).skip(LIBRARIES.start).take(LIBRARIES.len());
        libraries.flat_map(|(column, cell)| quoted(cell).map(move |name| (column, name)))
    }

    /// What is wrong with the form of the row.
    pub(super) fn problems(&self) -> Vec<String> {
        if self.cells.len() != COLUMNS.len() {
            return vec![format!("the row has {} cells instead of {}", self.cells.len(), COLUMNS.len())];
        }
        let mut problems = Vec::new();
        if !PROTOCOLS.contains(&self.cells[1].as_str()) {
            problems.push(format!("the protocol is {:?} instead of one of {PROTOCOLS:?}", self.cells[1]));
        }
        for (column, cell) in COLUMNS.iter().zip(&self.cells) {
            let is_library = COLUMNS[LIBRARIES].contains(column);
            if cell.is_empty() {
                problems.push(format!("the cell of {column} is empty"));
            } else if is_library && quoted(cell).next().is_none() && !is_reason(cell) {
                problems.push(format!("the cell of {column} names no item and gives no reason"));
            }
        }
        problems
    }
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
    inner.split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// What stands in backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Whether a cell says why something is missing, and of which kind that is.
fn is_reason(cell: &str) -> bool {
    let reason = REASONS.iter().find_map(|kind| cell.strip_prefix(kind));
    reason.is_some_and(|reason| reason.ends_with('.') && reason.split_whitespace().count() >= WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "| feature | protocol | core | native | npm | Rust in browsers | embassy | tests |\n|---|";

    #[test]
    fn rows_are_read_with_their_lines() {
        let text = format!(
            "text\n\n{HEAD}\n| a | both | `b::C` | `d`, `e` | f | g | h | `i` |\n\n| other |\n|---|\n| j |"
        );
        let rows = rows(&text).unwrap();
        assert_eq!(rows.iter().map(|row| row.line).collect::<Vec<_>>(), [5]);
        let names: Vec<_> = rows[0].names().collect();
        assert_eq!(names, [("core", "b::C"), ("native", "d"), ("native", "e")]);
        assert!(super::rows("| feature |\n|---|\n| a |").is_err());
    }

    #[test]
    fn every_cell_names_an_item_or_gives_a_reason() {
        let problems = |text: &str| Row::new(1, text).problems();
        assert_eq!(
            problems("| a | both | `b` | `c` | Impossible: it cannot be here. | `d` | `e` | `f` |"),
            [""; 0]
        );
        for reason in ["It cannot be here at all.", "Impossible: no.", "Not offered: it is missing here"] {
            let row = format!("| a | both | `b` | `c` | {reason} | `d` | `e` | `f` |");
            assert_eq!(problems(&row), ["the cell of npm names no item and gives no reason"], "{reason}");
        }
        assert_eq!(
            problems("| a | UDP | | `c` | no | `d` | `e` | `f` |"),
            [
                "the protocol is \"UDP\" instead of one of [\"both\", \"neither\", \"RakNet\", \"Game Protocol\"]",
                "the cell of core is empty",
                "the cell of npm names no item and gives no reason",
            ]
        );
        assert_eq!(problems("| a | both | `b` |"), ["the row has 3 cells instead of 8"]);
    }
}
