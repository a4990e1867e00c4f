//! Commands to a port on which no server is listening.

use std::net::UdpSocket;

use super::fails;

#[test]
fn send_and_ping_fail_before_their_timeout_if_no_server_is_listening() {
    // The socket accepts only its own datagrams, so the port is closed for everything else and no other program gets
    // it.
    let reserved = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let closed = reserved.local_addr().expect("a bound socket");
    reserved.connect(closed).expect("an address of this machine");
    let address = closed.to_string();
    for command in [&["send", &address, "x"][..], &["ping", &address]] {
        fails(&[command, &["--timeout", "3600"]].concat(), 1, "nothing is listening on this address");
    }
}
