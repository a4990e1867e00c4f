//! The programs as child processes.

use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

/// A client that waits for a server can be interrupted. On a busy machine it may have given the server up before that.
#[test]
fn a_client_that_waits_for_its_server_can_be_ended() {
    assert!((0..5).any(|_| ends_well_when_interrupted()), "it waited for the server first");
}

fn ends_well_when_interrupted() -> bool {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
    silent.set_read_timeout(Some(Duration::from_secs(60))).expect("it is not zero");
    let address = silent.local_addr().expect("it is bound").to_string();
    let client = Command::new(env!("CARGO_BIN_EXE_snowfight-client")).arg(address).spawn();
    let mut client = client.expect("it was built");
    silent.recv(&mut [0; 64]).expect("it asks to be let in");
    let interrupt = format!("kill -INT {}", client.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().expect("there is a shell").success());
    client.wait().expect("it was started").success()
}
