//! The ready queries, which are views of the file too: `SELECT * FROM kinds`.

use std::path::Path;

use rusqlite::types::ValueRef;

use super::database;
use super::error::SqliteLogError;

/// A ready query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Query {
    /// Datagrams and bytes of every second.
    Traffic,
    /// What the datagrams are, the most bytes first.
    Kinds,
    /// The other peers: since when, how much, and the latest round trip and losses of their connections.
    Remotes,
}

/// The answer to a [`Query`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The values as text, empty where there is none.
    pub rows: Vec<Vec<String>>,
}

impl Query {
    /// The name of the view in the file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Traffic => "traffic",
            Self::Kinds => "kinds",
            Self::Remotes => "remotes",
        }
    }

    /// Asks a log, which may be written at the same time.
    ///
    /// # Errors
    /// If the file cannot be read or is no log.
    pub fn run(self, path: impl AsRef<Path>) -> Result<Table, SqliteLogError> {
        let path = path.as_ref();
        self.select(path).map_err(|error| SqliteLogError::new(path, &error))
    }

    fn select(self, path: &Path) -> rusqlite::Result<Table> {
        let database = database::open_to_read(path)?;
        let mut statement = database.prepare(&format!("SELECT * FROM {}", self.name()))?;
        let columns: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
        let width = columns.len();
        let rows = statement
            .query_map([], |row| (0..width).map(|column| row.get_ref(column).map(text)).collect())?;
        Ok(Table { columns, rows: rows.collect::<rusqlite::Result<_>>()? })
    }
}

fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        ValueRef::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}
