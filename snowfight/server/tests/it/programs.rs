//! The programs as child processes.

use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

/// A client that waits for a server can be interrupted.
#[test]
fn a_client_that_waits_for_its_server_can_be_ended() {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
    silent.set_read_timeout(Some(Duration::from_secs(30))).expect("it is not zero");
    let address = silent.local_addr().expect("it is bound").to_string();
    let client = Command::new(env!("CARGO_BIN_EXE_snowfight-client")).arg(address).spawn();
    let mut client = client.expect("it was built");
    silent.recv(&mut [0; 64]).expect("it asks to be let in");
    let begun = Instant::now();
    let interrupt = format!("kill -INT {}", client.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().expect("there is a shell").success());
    assert!(client.wait().expect("it was started").success());
    assert!(begun.elapsed() < Duration::from_secs(8), "it waited for the server first");
}
