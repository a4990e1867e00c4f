//! `rakwire send` and `rakwire echo` over paths that are narrower than an Ethernet frame, in network namespaces.

use std::process::Output;

use crate::namespaces::Namespaces;
use crate::support::{Server, text};

/// Makes the machines. They exist until its input ends.
const SCRIPT: &str = include_str!("narrow_paths.sh");

const IPV4: &str = "10.71.2.2:61111";
const IPV6: &str = "[fd71:2::2]:61111";

/// Runs a program that prints 2,000 lines, and prints the first of them.
const SHOWS_FIRST: &str = r#""$0" "$@" | { read first; echo "$first"; test "$(wc -l)" = 1999; }"#;

struct Machines {
    namespaces: Namespaces,
    _servers: [Server; 2],
}

impl Machines {
    fn new() -> Self {
        let namespaces = Namespaces::new(SCRIPT, &[]);
        let listen =
            |address| namespaces.start(Some("server"), &["echo", "--listen", address], "listening on ");
        let servers = [listen(IPV4), listen(IPV6)];
        Self { namespaces, _servers: servers }
    }

    /// Runs the program `ip` at the router, or at another machine.
    fn ip(&self, machine: Option<&str>, arguments: &str) {
        let command: Vec<&str> = ["ip"].into_iter().chain(arguments.split(' ')).collect();
        let output = self.namespaces.run_program(machine, &command);
        assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
    }

    /// Sends large messages, with a line for each datagram on standard error.
    fn send(&self, to: &str) -> Output {
        let command = ["send", to, "--size", "5000", "--count", "3", "--log"];
        self.namespaces.run(Some("client"), &command)
    }
}

fn assert_echoed(output: &Output) {
    let echoes = text(&output.stdout);
    assert!(output.status.success(), "{echoes}{}", text(&output.stderr));
    assert_eq!(echoes.matches("echo of 5000 bytes in ").count(), 3, "{echoes}");
}

/// How many first requests of a handshake left.
fn requests(output: &Output) -> usize {
    let log = text(&output.stderr);
    log.lines().filter(|line| line.contains("open connection request 1")).count()
}

#[test]
fn large_messages_arrive_where_the_way_back_is_narrower() {
    let machines = Machines::new();
    machines.ip(None, "route replace 10.71.1.0/24 dev to_client mtu lock 1400");
    machines.ip(None, "-6 route replace fd71:1::/64 dev to_client mtu lock 1400");
    for server in [IPV4, IPV6] {
        assert_echoed(&machines.send(server));
    }
}

#[test]
fn large_messages_arrive_through_a_tunnel_that_comes_up_during_the_connection() {
    let machines = Machines::new();
    for (server, family, networks) in
        [(IPV4, "-4", ["10.71.1.0/24", "10.71.2.0/24"]), (IPV6, "-6", ["fd71:1::/64", "fd71:2::/64"])]
    {
        let tool = env!("CARGO_BIN_EXE_rakwire");
        let command = ["sh", "-c", SHOWS_FIRST, tool, "send", server, "--size", "5000", "--count", "2000"];
        let mut sender =
            machines.namespaces.start_program(Some("client"), &command, "echo of 5000 bytes in ");
        for (network, device) in networks.into_iter().zip(["to_client", "to_server"]) {
            machines.ip(None, &format!("{family} route replace {network} dev {device} mtu lock 1280"));
        }
        let ended = sender.child.wait().expect("a program that ends");
        assert!(ended.success(), "{server}");
    }
}

#[test]
fn where_the_interface_is_narrow_each_size_is_tried_once() {
    for (mtu, server, tries) in [(1_420, IPV6, 2), (1_280, IPV6, 3), (1_420, IPV4, 2), (1_280, IPV4, 2)] {
        let machines = Machines::new();
        machines.ip(Some("client"), &format!("link set router mtu {mtu}"));
        machines.ip(None, &format!("link set to_client mtu {mtu}"));
        let output = machines.send(server);
        assert_echoed(&output);
        assert_eq!(requests(&output), tries, "{server} {mtu}: {}", text(&output.stderr));
    }
}

#[test]
fn over_ipv6_the_first_request_arrives() {
    let output = Machines::new().send(IPV6);
    assert_echoed(&output);
    assert_eq!(requests(&output), 1, "{}", text(&output.stderr));
}
