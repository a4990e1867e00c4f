//! The programs, run as child processes.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

/// On a busy machine the client may time out before it is interrupted, so the test tries up to five times.
#[test]
fn client_that_waits_for_an_answer_can_be_interrupted() {
    assert!(
        (0..5).any(|_| ends_well_when_interrupted()),
        "the interrupted program failed in all five attempts"
    );
}

fn ends_well_when_interrupted() -> bool {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
    silent.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout above zero");
    let address = silent.local_addr().expect("the socket is bound").to_string();
    let client = Command::new(env!("CARGO_BIN_EXE_snowfight-client")).arg(address).spawn();
    let mut client = client.expect("the program was built");
    silent.recv(&mut [0; 64]).expect("a connection request");
    let interrupt = format!("kill -INT {}", client.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().expect("there is a shell").success());
    client.wait().expect("the program is running").success()
}

/// `--crash-email` requires `--crash-reports`. An invalid folder or address is reported in one line at the start.
#[test]
fn invalid_crash_report_settings_are_reported_at_the_start() {
    let folder = std::env::temp_dir().join(format!("snowfight-crash-{}", std::process::id()));
    let folder = folder.to_str().expect("a folder name in UTF-8");
    let file = env!("CARGO_MANIFEST_DIR").to_owned() + "/Cargo.toml";
    let fails = |arguments: &[&str], part: &str| {
        let listen = ["--listen", "127.0.0.1:0", "--listen-raknet", "127.0.0.1:0"];
        let output =
            Command::new(env!("CARGO_BIN_EXE_snowfight-server")).args(listen).args(arguments).output();
        let output = output.expect("the program was built");
        let line = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{line}");
        assert!(line.starts_with("error: ") && line.contains(part), "{line}");
    };
    fails(&["--crash-reports", &file], "Cargo.toml");
    fails(&["--crash-email", "us@localhost"], "--crash-reports");
    fails(&["--crash-reports", folder, "--crash-email", "nobody"], "\"nobody\" is not an email address");
    let secret = "ftp://user:secret@example.com";
    let wrong = ["--crash-reports", folder, "--crash-email", "us@localhost", "--crash-email-server", secret];
    fails(&wrong, "smtps://");
    std::fs::remove_dir_all(folder).expect("a folder");
}

/// The first line contains the hash of the new key. An existing key file is not replaced.
#[test]
fn new_key_is_created_once_and_its_hash_printed() {
    let folder = std::env::temp_dir().join(format!("snowfight-key-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("server.key");
    let server = || {
        let mut server = Command::new(env!("CARGO_BIN_EXE_snowfight-server"));
        server.args(["--listen", "127.0.0.1:0", "--listen-raknet", "127.0.0.1:0", "--new-key", "--secure"]);
        server.arg(&file);
        server
    };
    let mut running = server().stdout(Stdio::piped()).spawn().expect("the program was built");
    let mut line = String::new();
    BufReader::new(running.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line in UTF-8");
    running.kill().expect("the simulation succeeds");
    running.wait().expect("the program is running");
    let key = rakwire_native::read_key_file(&file).expect("a key");
    assert!(line.contains(&format!(" and the key {}, on 127.0.0.1:", key.public().hash())), "{line}");
    let again = server().output().expect("the program was built");
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).starts_with("error: --new-key: "));
    std::fs::remove_dir_all(folder).expect("a folder");
}
