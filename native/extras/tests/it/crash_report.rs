//! Crash reports, and their delivery by email to an SMTP server on loopback.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rakwire_extras::crash_report::{CrashEmail, CrashEmailError, CrashReports, MAX_REPORTS};

use crate::support::DEADLINE;

/// The panic hook is global and counts every panic, so these tests run one after another.
static ORDER: Mutex<()> = Mutex::new(());

/// A folder that is removed when the test is over.
struct Folder(PathBuf, #[expect(dead_code, reason = "held until the test is over")] MutexGuard<'static, ()>);

impl Folder {
    fn new(name: &str) -> Self {
        let order = ORDER.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = std::env::temp_dir().join(format!("rakwire-crash-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Self(folder, order)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Panics in a thread with this name.
fn crash(name: &str, message: &str) {
    let message = message.to_owned();
    let thread = thread::Builder::new().name(name.to_owned()).spawn(move || panic!("{message}"));
    assert!(thread.expect("a thread").join().is_err());
}

/// Returns the reports about a thread.
fn reports_of(reports: &CrashReports, thread: &str) -> Vec<(PathBuf, String)> {
    let unsent = reports.unsent().expect("a folder");
    let read = unsent.into_iter().filter_map(|path| Some((path.clone(), fs::read_to_string(path).ok()?)));
    read.filter(|(_, text)| text.contains(&format!("thread:   {thread}\n"))).collect()
}

#[test]
fn a_report_contains_the_panic_its_location_and_notes() {
    let folder = Folder::new("report");
    let reports = CrashReports::install(&folder.0, "my-server", "1.2.3").expect("a folder");
    for number in 0..100 {
        reports.note(format!("line {number}"));
    }
    reports.note("somebody\ntime:     never\u{202e}");
    crash("teller", "no more snow\nlast notes:\u{1b}[2J");
    let [(path, text)] = &reports_of(&reports, "teller")[..] else { panic!("one report") };
    for part in [
        "program:  my-server 1.2.3\n",
        "place:    native/extras/tests/it/crash_report.rs:",
        "message:  no more snow\n          last notes:\\u{1b}[2J\n",
        "line 99\n",
        "line 37\n",
        "somebody\\ntime:     never\\u{202e}\n",
        "backtrace:\n",
        "it::crash_report::crash",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(!text.contains("line 36\n"), "64 notes");
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    assert!(name.starts_with("my-server-2") && name.ends_with(".crash.txt"), "{name}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(path).expect("a file").permissions().mode() & 0o777, 0o600);
    }
    reports.mark_as_sent(path).expect("a file");
    assert!(reports_of(&reports, "teller").is_empty());
    assert!(reports.mark_as_sent(path).is_err(), "the report has been renamed");
}

/// A fault that players can repeat must not fill the disk.
#[test]
fn a_run_limits_its_reports_and_counts_the_rest() {
    let folder = Folder::new("many");
    let reports = CrashReports::install(&folder.0, "many", "1").expect("a folder");
    for _ in 0..MAX_REPORTS + 5 {
        crash("again", &"x".repeat(1 << 20));
    }
    let files = fs::read_dir(&folder.0).expect("a folder").count();
    assert_eq!(files, usize::try_from(MAX_REPORTS).expect("a small number"));
    assert!(reports.suppressed() >= 5);
    for (path, text) in reports_of(&reports, "again") {
        assert!(text.len() < 100_000, "{} has {} bytes", path.display(), text.len());
    }
}

#[test]
fn an_unwritable_folder_is_reported_at_the_start() {
    let folder = Folder::new("nowhere");
    for program in ["", "../server", "a b"] {
        assert!(CrashReports::install(&folder.0, program, "1").is_err(), "{program:?}");
    }
    fs::write(&folder.0, "a file").expect("a file");
    assert!(CrashReports::install(&folder.0, "server", "1").is_err());
    fs::remove_file(&folder.0).expect("a file");
}

/// Starts an email server that refuses the first `refused` emails, and passes on the texts of the others.
fn email_server(refused: usize) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("smtp://{}", listener.local_addr().expect("a bound socket"));
    let (emails, received) = channel();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
            take_email(stream, number < refused, &emails);
        }
    });
    (url, received)
}

/// Receives one email by SMTP (RFC 5321).
fn take_email(stream: TcpStream, is_refused: bool, emails: &Sender<String>) {
    let mut out = stream.try_clone().expect("a stream");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let mut say = |line: &str| write!(out, "{line}\r\n").is_ok();
    say("220 sink");
    while let Some(line) = lines.next() {
        match line.split(' ').next().unwrap_or("").to_ascii_uppercase().as_str() {
            "EHLO" => say("250 sink"),
            "MAIL" if is_refused => say("451 later"),
            "DATA" => {
                say("354 go on");
                let text: Vec<String> = lines.by_ref().take_while(|line| line != ".").collect();
                let _ = emails.send(text.join("\n"));
                say("250 taken")
            }
            "QUIT" => {
                say("221 bye");
                return;
            }
            _ => say("250 ok"),
        };
    }
}

fn email_about(emails: &Receiver<String>, thread: &str) -> String {
    loop {
        let email = emails.recv_timeout(DEADLINE).expect("a email");
        // Long lines are wrapped, and short lines are unchanged.
        if email.contains(&format!("thread:   {thread}\n")) {
            return email;
        }
    }
}

#[test]
fn reports_of_this_and_earlier_runs_are_sent() {
    let folder = Folder::new("email");
    let (url, emails) = email_server(0);
    let reports = CrashReports::install(&folder.0, "emailing", "1").expect("a folder");
    crash("yesterday", "an old fault");
    let email = CrashEmail::new(&url, "game@localhost", "us@localhost").expect("a URL");
    let (failures, _failed) = channel();
    reports.send_by(email, move |error| failures.send(error.clone()).expect("a test")).expect("a thread");
    let text = email_about(&emails, "yesterday");
    assert!(text.contains("From: game@localhost") && text.contains("To: us@localhost"), "{text}");
    assert!(text.contains("Subject: crash report emailing-2"), "{text}");
    crash("today", "a new fault");
    assert!(email_about(&emails, "today").contains("message:  a new fault"));
    // They are marked after the server has accepted them.
    let mut tries = 0..1_200;
    while !reports_of(&reports, "today").is_empty() {
        assert!(tries.next().is_some(), "the report stays unsent");
        thread::sleep(Duration::from_millis(100));
    }
    let sent = fs::read_dir(&folder.0).expect("a folder").filter_map(Result::ok);
    let sent = sent.filter(|entry| entry.file_name().to_string_lossy().ends_with(".sent.txt"));
    assert!(sent.count() >= 2);
}

#[test]
fn refused_email_is_reported_and_retried() {
    let folder = Folder::new("refused");
    let (url, emails) = email_server(1);
    let reports = CrashReports::install(&folder.0, "refused", "1").expect("a folder");
    crash("first", "refused at first");
    let email = CrashEmail::new(&url, "game@localhost", "us@localhost").expect("a URL");
    let (failures, failed) = channel();
    // The receiver is gone once the test is over.
    let tell = move |error: &CrashEmailError| drop(failures.send(error.to_string()));
    reports.send_by(email, tell).expect("a thread");
    let failure = failed.recv_timeout(DEADLINE).expect("a failure");
    assert!(failure.contains("could not be sent") && failure.contains("later"), "{failure}");
    assert_eq!(reports_of(&reports, "first").len(), 1);
    crash("second", "this wakes the thread");
    email_about(&emails, "first");
    email_about(&emails, "second");
}

#[test]
fn invalid_addresses_and_servers_are_refused() {
    for server in ["example.com", "http://example.com", ""] {
        let error = CrashEmail::new(server, "a@localhost", "b@localhost").expect_err(server);
        assert_eq!(error, CrashEmailError::Server);
    }
    let error = CrashEmail::new("smtp://127.0.0.1", "nobody", "b@localhost").expect_err("no address");
    assert_eq!(error, CrashEmailError::Address("nobody".to_owned()));
    assert!(
        CrashEmail::new("smtp://127.0.0.1:1", "a@localhost", "b@localhost")
            .expect("a URL")
            .send(Path::new("nowhere"))
            .is_err()
    );
}
