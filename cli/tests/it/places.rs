//! Limits of clients per address and per network, tested with public addresses in network namespaces.

use std::process::Output;

use crate::namespaces::Namespaces;
use crate::support::{Server, text};

const SERVER: &str = "10.71.2.2:61111";

struct Machines(Namespaces);

impl Machines {
    fn new() -> Self {
        let machines = Self(Namespaces::new(include_str!("narrow_paths.sh"), &[]));
        for network in ["192.0.2.0/24", "198.51.100.0/24"] {
            machines.ip(None, &format!("route add {network} via 10.71.1.2"));
        }
        for address in ["192.0.2.1", "192.0.2.2", "192.0.2.3", "198.51.100.1"] {
            machines.ip(Some("client"), &format!("address add {address}/32 dev router"));
        }
        machines
    }

    fn ip(&self, machine: Option<&str>, arguments: &str) {
        let command: Vec<&str> = ["ip"].into_iter().chain(arguments.split(' ')).collect();
        let output = self.0.run_program(machine, &command);
        assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
    }

    /// Makes the client connect from this address from now on.
    fn use_address(&self, address: &str) {
        self.ip(Some("client"), &format!("route replace default via 10.71.1.1 src {address}"));
    }

    /// Starts a client with this address that stays connected.
    fn stay(&self, address: &str) -> Server {
        self.use_address(address);
        let command = ["send", SERVER, "x", "--tcp", "--count", "4000000000"];
        self.0.start(Some("client"), &command, "echo \"x\" in ")
    }

    fn send(&self, address: &str) -> Output {
        self.use_address(address);
        self.0.run(Some("client"), &["send", SERVER, "x", "--tcp"])
    }
}

#[test]
fn slots_per_address_and_network_are_limited_and_freed() {
    let machines = Machines::new();
    let listen = ["echo", "--tcp", "--listen", SERVER, "--max-per-address", "1", "--max-per-network", "2"];
    let mut server = machines.0.start(Some("server"), &listen, "listening on ");
    let log = server.log();
    let is_refused = |address| {
        let error = text(&machines.send(address).stderr);
        assert!(error.contains("the connection was closed before the echo"), "{address}: {error}");
    };
    let first = machines.stay("192.0.2.1");
    is_refused("192.0.2.1");
    let _second = machines.stay("192.0.2.2");
    is_refused("192.0.2.3");
    assert!(machines.send("198.51.100.1").status.success(), "another network has its own limit");
    drop(first);
    while !log.next().contains("disconnected remote=192.0.2.1:") {}
    assert!(machines.send("192.0.2.1").status.success(), "the slot is free again");
    server.interrupt();
    let closing = std::iter::repeat_with(|| log.next()).find(|line| line.contains("closing"));
    let closing = closing.expect("a line");
    assert!(closing.contains("refused_by_address=1 refused_by_network=1"), "{closing}");
}
