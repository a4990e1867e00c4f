//! The log in an SQLite file.

use std::net::SocketAddr;
use std::path::PathBuf;

use rakwire::Instant;
use rakwire::endpoint::{Direction, LogSink, PacketLogger, Protocol};
use rakwire_extras::sqlite_log::{Query, Sample, SqliteLog, SqliteOptions};
use rakwire_native::endpoint::{Endpoint, Options};
use rakwire_native::game_protocol::GameProtocol;
use rakwire_native::raknet::RakNet;

/// A file that is removed when the test is over.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn new(name: &str) -> Self {
        let file = Self(std::env::temp_dir().join(format!("rakwire-{}-{name}.db", std::process::id())));
        file.remove();
        file
    }

    fn remove(&self) {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", self.0.display()));
        }
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        self.remove();
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// Returns the cells of a column.
fn column(path: &TemporaryFile, query: Query, name: &str) -> Vec<String> {
    let table = query.run(&path.0).expect("a log");
    let index = table.columns.iter().position(|column| column == name).expect("a column");
    table.rows.iter().map(|row| row[index].clone()).collect()
}

async fn exchange<P: Protocol>(log: &SqliteLog) -> SocketAddr
where
    P::ConnectionStats: Sample,
{
    let datagrams = log.clone();
    let hook = move |local| PacketLogger(datagrams.datagrams::<P>(local));
    let server = Endpoint::<P>::bind_with_hook("127.0.0.1:0", Options::server(8).expect("entropy"), hook);
    let server = server.await.expect("a free port");
    let client =
        Endpoint::<P>::bind("127.0.0.1:0", Options::client().expect("entropy")).await.expect("a port");
    let connection = client.connect(server.local_addr()).await.expect("a server");
    let accepted = server.accept().await.expect("a client");
    for _ in 0..10 {
        connection.send(b"\x86hello", P::Delivery::default()).await.expect("a connection");
        let message = accepted.recv().await.expect("a message");
        accepted.send(&message.bytes, message.delivery).await.expect("a connection");
        assert!(connection.recv().await.is_some());
    }
    log.sample(server.local_addr(), None, &server.stats());
    log.sample(server.local_addr(), Some(accepted.remote()), &accepted.stats().expect("a connection"));
    log.flush().expect("a log");
    accepted.remote()
}

#[tokio::test]
async fn datagrams_of_both_protocols_are_recorded_and_queried() {
    let file = TemporaryFile::new("both");
    let log = SqliteLog::open(&file.0, SqliteOptions::default()).expect("a file");
    let raknet = exchange::<RakNet>(&log).await;
    let game_protocol = exchange::<GameProtocol>(&log).await;

    let kinds = column(&file, Query::Kinds, "kind");
    for kind in ["data", "acknowledgement", "open connection request 1", "handshake"] {
        assert!(kinds.iter().any(|known| known == kind), "{kind} is not in {kinds:?}");
    }
    let percent = column(&file, Query::Kinds, "percent");
    let sum: f64 = percent.iter().map(|percent| percent.parse::<f64>().expect("a number")).sum();
    assert!((sum - 100.0).abs() < 1.0, "{percent:?}");

    let remotes = column(&file, Query::Remotes, "remote");
    for remote in [raknet, game_protocol] {
        assert!(remotes.contains(&remote.to_string()), "{remote} is not in {remotes:?}");
    }
    for cell in column(&file, Query::Remotes, "round_trip_ms") {
        assert!(cell.parse::<f64>().is_ok_and(|milliseconds| milliseconds > 0.0), "{cell:?}");
    }
    assert!(column(&file, Query::Remotes, "lost").iter().all(|lost| lost.parse::<u64>().is_ok()));

    let total = |name| {
        column(&file, Query::Traffic, name)
            .iter()
            .map(|cell| cell.parse::<u64>().expect("a count"))
            .sum::<u64>()
    };
    assert!(total("datagrams_in") >= 20 && total("datagrams_out") >= 20);
    assert!(total("bytes_in") > 20 * 6);
    assert_eq!(log.missed(), 0);
}

#[test]
fn a_log_appends_to_its_file_and_keeps_the_newest_rows() {
    let file = TemporaryFile::new("newest");
    let mut options = SqliteOptions::default();
    options.max_rows = 100;
    for run in 0..3_u8 {
        let log = SqliteLog::open(&file.0, options).expect("a file");
        let mut datagrams = log.datagrams::<RakNet>(address("127.0.0.1:1"));
        for number in 0..60 {
            let data = [0x84, number, run, 0];
            datagrams.record(Instant::ZERO, Direction::Receiving, address("127.0.0.1:2"), &data);
        }
        log.flush().expect("a log");
    }
    assert_eq!(column(&file, Query::Kinds, "datagrams"), ["100"], "of 180");
    let database = rusqlite::Connection::open(&file.0).expect("a database");
    let newest = "SELECT description FROM datagrams ORDER BY id DESC LIMIT 1";
    let newest: String = database.query_row(newest, [], |row| row.get(0)).expect("a row");
    assert_eq!(newest, format!("data {}", 59 + (2 << 8)));
    let kept = "SELECT count(*) FROM datagrams WHERE bytes IS NOT NULL";
    assert_eq!(database.query_row(kept, [], |row| row.get::<_, u32>(0)), Ok(0), "no bytes by default");
}

#[cfg(unix)]
#[test]
fn an_existing_file_is_restricted_to_its_owner() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let file = TemporaryFile::new("mode");
    std::fs::write(&file.0, "").expect("a file");
    std::fs::set_permissions(&file.0, std::fs::Permissions::from_mode(0o666)).expect("a file of ours");
    let log = SqliteLog::open(&file.0, SqliteOptions::default()).expect("an empty file is an empty log");
    log.flush().expect("a log");
    assert_eq!(std::fs::metadata(&file.0).expect("a file").permissions().mode() & 0o777, 0o600);
    let link = TemporaryFile::new("link-to-mode");
    symlink(&file.0, &link.0).expect("a link");
    assert!(SqliteLog::open(&link.0, SqliteOptions::default()).is_err(), "a link is not followed");
}

#[test]
fn the_bytes_of_datagrams_are_logged_on_request() {
    let file = TemporaryFile::new("bytes");
    let mut options = SqliteOptions::default();
    options.keep_bytes = true;
    let log = SqliteLog::open(&file.0, options).expect("a file");
    let mut datagrams = log.datagrams::<RakNet>(address("[::1]:1"));
    datagrams.record(Instant::ZERO, Direction::Sending, address("[::1]:2"), &[0x84, 1, 2, 3]);
    log.flush().expect("a log");
    let database = rusqlite::Connection::open(&file.0).expect("a database");
    let row = database.query_row("SELECT bytes, direction, remote, length FROM datagrams", [], |row| {
        Ok((
            row.get::<_, Vec<u8>>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, String>(2)?,
            row.get::<_, u32>(3)?,
        ))
    });
    assert_eq!(row, Ok((vec![0x84, 1, 2, 3], "out".to_owned(), "[::1]:2".to_owned(), 4)));
}

/// The endpoint does not wait: records that exceed the queue are counted, here and in the file.
#[test]
fn records_missed_by_a_full_queue_are_counted() {
    let file = TemporaryFile::new("missed");
    let mut options = SqliteOptions::default();
    options.queue = 4;
    let log = SqliteLog::open(&file.0, options).expect("a file");
    // Locking the database blocks the writer.
    let mut reader = rusqlite::Connection::open(&file.0).expect("a database");
    let locked = reader.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).expect("a lock");
    let mut datagrams = log.datagrams::<RakNet>(address("127.0.0.1:1"));
    let mut recorded = 0_u64;
    while log.missed() == 0 {
        datagrams.record(Instant::ZERO, Direction::Sending, address("127.0.0.1:2"), &[0x84, 0, 0, 0]);
        recorded += 1;
    }
    locked.commit().expect("a lock");
    log.flush().expect("a log");
    // The next records report the gap.
    datagrams.record(Instant::ZERO, Direction::Sending, address("127.0.0.1:2"), &[0x84, 0, 0, 0]);
    log.flush().expect("a log");
    let gaps = "SELECT sum(records) FROM gaps";
    assert_eq!(reader.query_row(gaps, [], |row| row.get::<_, u32>(0).map(u64::from)), Ok(log.missed()));
    let written = "SELECT count(*) FROM datagrams";
    let written = reader.query_row(written, [], |row| row.get::<_, u32>(0).map(u64::from)).expect("a count");
    assert_eq!(written + log.missed(), recorded + 1);
}

#[test]
fn a_failed_log_reports_the_error_and_does_not_block() {
    let file = TemporaryFile::new("fails");
    let log = SqliteLog::open(&file.0, SqliteOptions::default()).expect("a file");
    rusqlite::Connection::open(&file.0)
        .expect("a database")
        .execute_batch("DROP TABLE datagrams")
        .expect("a table");
    let mut datagrams = log.datagrams::<RakNet>(address("127.0.0.1:1"));
    for _ in 0..3 {
        datagrams.record(Instant::ZERO, Direction::Sending, address("127.0.0.1:2"), &[0x84, 0, 0, 0]);
        let error = log.flush().expect_err("no table");
        assert!(error.to_string().contains("datagrams"), "{error}");
    }
    assert_eq!(log.missed(), 3);
}

#[test]
fn files_that_are_not_logs_are_refused() {
    let folder = std::env::temp_dir();
    assert!(SqliteLog::open(&folder, SqliteOptions::default()).is_err(), "a folder");
    let file = TemporaryFile::new("text");
    std::fs::write(&file.0, "this is not a database ".repeat(100)).expect("a file");
    let error = SqliteLog::open(&file.0, SqliteOptions::default()).expect_err("a text file");
    assert_eq!(error.path(), file.0);
    assert!(Query::Kinds.run(&file.0).is_err());
    let nowhere = TemporaryFile::new("nowhere");
    assert!(Query::Kinds.run(&nowhere.0).is_err() && !nowhere.0.exists(), "a reader creates no file");
    rusqlite::Connection::open(&nowhere.0)
        .expect("a database")
        .execute_batch("CREATE TABLE other (x)")
        .expect("a table");
    let error = Query::Traffic.run(&nowhere.0).expect_err("another database");
    assert!(error.to_string().contains("traffic"), "{error}");
}
