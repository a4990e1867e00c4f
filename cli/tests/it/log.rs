//! SQLite logs, their display by `rakwire log`, and the log of `rakwire echo`.

use std::path::Path;

use serde_json::Value;

use crate::support::{Folder, Server, run, text};

fn rakwire(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = run(Path::new(env!("CARGO_BIN_EXE_rakwire")), arguments, "");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn show(file: &str, what: &str) -> Vec<Value> {
    let (status, out, error) = rakwire(&["log", file, what, "--json"]);
    assert_eq!(status, Some(0), "{error}");
    out.lines().map(|line| serde_json::from_str(line).expect("an object on each line")).collect()
}

fn sum(rows: &[Value], field: &str) -> u64 {
    rows.iter().map(|row| row[field].as_u64().expect("a count")).sum()
}

#[test]
fn packet_logs_of_both_protocols_are_written_and_shown() {
    let folder = Folder::new("log");
    for (protocol, first) in [("11", "open connection request 1"), ("game", "handshake")] {
        let (here, there) =
            (folder.file(&format!("here-{protocol}")), folder.file(&format!("there-{protocol}")));
        let echo = ["echo", "--listen", "127.0.0.1:0", "--protocol", protocol, "--sqlite", &there];
        let server = Server::start(Path::new(env!("CARGO_BIN_EXE_rakwire")), &echo, "listening on ");
        let send =
            ["send", &server.announced, "hello", "--count", "50", "--protocol", protocol, "--sqlite", &here];
        let (status, _, error) = rakwire(&send);
        assert_eq!(status, Some(0), "{error}");

        let kinds = show(&here, "kinds");
        assert!(kinds.iter().any(|kind| kind["kind"] == first && kind["direction"] == "out"), "{kinds:?}");
        let traffic = show(&here, "traffic");
        assert_eq!(sum(&kinds, "datagrams"), sum(&traffic, "datagrams_in") + sum(&traffic, "datagrams_out"));
        let remotes = show(&here, "remotes");
        assert_eq!(remotes.len(), 1);
        assert_eq!(remotes[0]["remote"], server.announced.as_str());
        assert!(remotes[0]["lost"].is_u64() && remotes[0]["round_trip_ms"].is_number(), "{remotes:?}");

        // The server's log can be read while the server runs.
        let mut tries = 0..600;
        while !show(&there, "remotes").iter().any(|remote| remote["datagrams_in"].as_u64() >= Some(50)) {
            assert!(tries.next().is_some(), "the server writes nothing: {:?}", show(&there, "kinds"));
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        let (status, table, _) = rakwire(&["log", &there]);
        assert_eq!(status, Some(0));
        assert!(table.starts_with("kind ") && table.lines().count() > 2, "{table}");
    }
}

#[test]
fn a_file_that_is_not_a_log_is_reported_in_one_line() {
    let folder = Folder::new("no-log");
    let missing = folder.file("missing");
    let fails = |arguments: &[&str], part: &str| {
        let (status, _, error) = rakwire(arguments);
        assert_eq!((status, error.lines().count()), (Some(2), 1), "{error}");
        assert!(error.starts_with("error: ") && error.contains(part), "{error}");
    };
    fails(&["log", &missing], "missing");
    fails(&["log", &missing, "weather"], "weather");
    fails(&["echo", "--listen", "127.0.0.1:0", "--sqlite", "/nowhere/a.db"], "/nowhere/a.db");
    assert!(!Path::new(&missing).exists(), "reading creates no file");
}

/// The reader of standard error has closed the pipe. For the writer this is equivalent to a full disk.
#[cfg(unix)]
#[test]
fn a_log_that_cannot_be_written_does_not_stop_the_program() {
    let echo = ["echo", "--listen", "127.0.0.1:0"];
    let mut server = Server::start(Path::new(env!("CARGO_BIN_EXE_rakwire")), &echo, "listening on ");
    drop(server.child.stderr.take());
    for _ in 0..2 {
        let (status, _, error) = rakwire(&["send", &server.announced, "hello"]);
        assert_eq!(status, Some(0), "{error}");
    }
    assert_eq!(server.child.try_wait().expect("the state of the server"), None);
}
