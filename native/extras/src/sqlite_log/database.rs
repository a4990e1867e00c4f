//! The database file: its tables, the rows written to it, and the built-in queries, which are also views of the file:
//! `SELECT * FROM kinds`.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rakwire::endpoint::Direction;
use rakwire_udp::private_file;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Transaction, params};

use super::record::{Datagram, Samples};

const SCHEMA: &str = include_str!("schema.sql");
/// Maximum time to wait while another program locks the file.
const BUSY: Duration = Duration::from_secs(5);

/// The reason why a file could not be opened, read or written as a log.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the log {} cannot be used: {reason}", .path.display())]
pub struct SqliteLogError {
    path: PathBuf,
    reason: String,
}

impl SqliteLogError {
    pub(super) fn new(path: &Path, reason: &dyn Display) -> Self {
        Self { path: path.to_owned(), reason: reason.to_string() }
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Opens a log for writing, or creates it.
pub(super) fn open(path: &Path) -> Result<Connection, SqliteLogError> {
    // SQLite gives the files that it creates beside the log the same permissions.
    let whole = prepare(path).map_err(|error| SqliteLogError::new(path, &error))?;
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let database = Connection::open_with_flags(&whole, flags)?;
        database.busy_timeout(BUSY)?;
        // Readers do not block the writer, and the disk is synced once per checkpoint instead of once per transaction.
        database.pragma_update(None, "journal_mode", "WAL")?;
        database.pragma_update(None, "synchronous", "NORMAL")?;
        database.execute_batch(SCHEMA)?;
        Ok(database)
    };
    open().map_err(|error: rusqlite::Error| SqliteLogError::new(path, &error))
}

/// Creates the file, or restricts an existing one to its owner. Returns the path with links resolved: SQLite then gives
/// the files that it creates beside the log the same permissions.
fn prepare(path: &Path) -> io::Result<PathBuf> {
    match private_file::create_new(path) {
        // The file is not opened, because closing it would release the locks of another log in this process.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => private_file::keep_private(path)?,
        made => drop(made?),
    }
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok(folder.unwrap_or_else(|| Path::new(".")).canonicalize()?.join(name))
}

/// Opens a log for reading.
fn open_to_read(path: &Path) -> rusqlite::Result<Connection> {
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    database.busy_timeout(BUSY)?;
    Ok(database)
}

pub(super) fn insert_datagram(transaction: &Transaction<'_>, datagram: &Datagram) -> rusqlite::Result<()> {
    let direction = match datagram.direction {
        Direction::Receiving => "in",
        Direction::Sending => "out",
    };
    let mut statement = transaction.prepare_cached(
        "INSERT INTO datagrams (at, local, remote, direction, kind, description, length, bytes)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    statement.execute(params![
        datagram.at.as_secs_f64(),
        datagram.local.to_string(),
        datagram.remote.to_string(),
        direction,
        datagram.kind,
        datagram.description,
        datagram.length,
        datagram.bytes,
    ])?;
    Ok(())
}

pub(super) fn insert_samples(transaction: &Transaction<'_>, samples: &Samples) -> rusqlite::Result<()> {
    let mut statement = transaction
        .prepare_cached("INSERT INTO samples (at, local, remote, name, value) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let (at, local) = (samples.at.as_secs_f64(), samples.local.to_string());
    let remote = samples.remote.map(|remote| remote.to_string());
    for (name, value) in &samples.values {
        statement.execute(params![at, local, remote, name, value])?;
    }
    Ok(())
}

pub(super) fn insert_gap(transaction: &Transaction<'_>, at: Duration, records: u64) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached("INSERT INTO gaps (at, records) VALUES (?1, ?2)")?;
    // The number of missed records always fits a signed integer.
    statement.execute(params![at.as_secs_f64(), i64::try_from(records).unwrap_or(i64::MAX)])?;
    Ok(())
}

/// Deletes the oldest rows of each table beyond `max_rows`.
pub(super) fn delete_oldest(transaction: &Transaction<'_>, max_rows: u64) -> rusqlite::Result<()> {
    let kept = i64::try_from(max_rows).unwrap_or(i64::MAX);
    for statement in [
        "DELETE FROM datagrams WHERE id <= (SELECT max(id) FROM datagrams) - ?1",
        "DELETE FROM samples WHERE id <= (SELECT max(id) FROM samples) - ?1",
        "DELETE FROM gaps WHERE rowid <= (SELECT max(rowid) FROM gaps) - ?1",
    ] {
        transaction.prepare_cached(statement)?.execute([kept])?;
    }
    Ok(())
}

/// A built-in query, which is also a view of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Query {
    /// Datagrams and bytes per second.
    Traffic,
    /// Kinds of datagrams, largest total size first.
    Kinds,
    /// The peers: first seen, traffic, and the latest round-trip time and losses of their connections.
    Remotes,
}

/// The result of a [`Query`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Table {
    /// The column names.
    pub columns: Vec<String>,
    /// The values as text, empty if there is none.
    pub rows: Vec<Vec<String>>,
}

impl Query {
    /// Returns the name of the view in the file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Traffic => "traffic",
            Self::Kinds => "kinds",
            Self::Remotes => "remotes",
        }
    }

    /// Queries a log, which may be written at the same time.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not a log.
    pub fn run(self, path: impl AsRef<Path>) -> Result<Table, SqliteLogError> {
        let path = path.as_ref();
        self.select(path).map_err(|error| SqliteLogError::new(path, &error))
    }

    fn select(self, path: &Path) -> rusqlite::Result<Table> {
        let database = open_to_read(path)?;
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
