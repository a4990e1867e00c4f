//! `rakwire send` and `rakwire echo` over paths with a smaller MTU than Ethernet, in network namespaces.

use std::process::Output;

use crate::forwarding;
use crate::namespaces::Namespaces;
use crate::support::{Server, text};

/// The script that sets up the machines, which exist until its input ends.
const SCRIPT: &str = include_str!("narrow_paths.sh");

const IPV4: &str = "10.71.2.2:61111";
const IPV6: &str = "[fd71:2::2]:61111";

/// Runs a program that prints 2,000 lines, and prints only the first line.
const SHOWS_FIRST: &str = r#""$0" "$@" | { read first; echo "$first"; test "$(wc -l)" = 1999; }"#;

/// Drops fragments before the kernel reassembles them.
const DROPS_FRAGMENTS: &str = "
table inet fragments {
    chain arriving {
        type filter hook prerouting priority -450; policy accept;
        ip frag-off & 0x3fff != 0 drop
        exthdr frag exists drop
    }
}
";

/// Suppresses reports about packets that are too large.
const REPORTS_NOTHING: &str = "
table ip reports {
    chain leaving {
        type filter hook output priority 0; policy accept;
        icmp type destination-unreachable drop
    }
}
";

/// The networks on the two sides of the router.
const TO_CLIENT: [&str; 2] = ["10.71.1.0/24 dev to_client", "fd71:1::/64 dev to_client"];
const TO_SERVER: [&str; 2] = ["10.71.2.0/24 dev to_server", "fd71:2::/64 dev to_server"];

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

    /// Runs `ip` on the router or on another machine.
    fn ip(&self, machine: Option<&str>, arguments: &str) {
        let command: Vec<&str> = ["ip"].into_iter().chain(arguments.split(' ')).collect();
        let output = self.namespaces.run_program(machine, &command);
        assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
    }

    /// Limits the MTU of the router's routes to these networks. An IPv6 route is replaced only by one with the same
    /// metric.
    fn narrow(&self, mtu: u16, networks: &[&str]) {
        for network in networks {
            let ipv6 = if network.starts_with("fd71") { ("-6 ", " metric 256") } else { ("", "") };
            self.ip(None, &format!("{}route replace {network} mtu lock {mtu}{}", ipv6.0, ipv6.1));
        }
    }

    /// Adds firewall rules to a machine or to the router.
    fn rule(&self, machine: Option<&str>, rules: &str) {
        let output = self.namespaces.run_program(machine, &["nft", rules]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    /// Makes a machine or the router drop fragments.
    fn drop_fragments(&self, machine: Option<&str>) {
        self.rule(machine, DROPS_FRAGMENTS);
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

/// Counts the first handshake requests that were sent.
fn requests(output: &Output) -> usize {
    let log = text(&output.stderr);
    log.lines().filter(|line| line.contains("open connection request 1")).count()
}

#[test]
fn large_messages_arrive_when_the_return_path_has_a_smaller_mtu() {
    let machines = Machines::new();
    machines.narrow(1_400, &TO_CLIENT);
    for server in [IPV4, IPV6] {
        assert_echoed(&machines.send(server));
    }
}

#[test]
fn large_messages_arrive_when_the_path_mtu_shrinks_during_the_connection() {
    let machines = Machines::new();
    for (server, networks) in [
        (IPV4, ["10.71.1.0/24 dev to_client", "10.71.2.0/24 dev to_server"]),
        (IPV6, ["fd71:1::/64 dev to_client", "fd71:2::/64 dev to_server"]),
    ] {
        let tool = env!("CARGO_BIN_EXE_rakwire");
        let command = ["sh", "-c", SHOWS_FIRST, tool, "send", server, "--size", "5000", "--count", "2000"];
        let mut sender =
            machines.namespaces.start_program(Some("client"), &command, "echo of 5000 bytes in ");
        machines.narrow(1_280, &networks);
        let ended = sender.child.wait().expect("a program that ends");
        assert!(ended.success(), "{server}");
    }
}

#[test]
fn each_mtu_is_probed_once_on_an_interface_with_a_small_mtu() {
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
fn the_first_request_arrives_over_ipv6() {
    let output = Machines::new().send(IPV6);
    assert_echoed(&output);
    assert_eq!(requests(&output), 1, "{}", text(&output.stderr));
}

/// Request 1 finds the size that passes without fragmentation.
#[test]
fn large_messages_arrive_over_a_path_with_a_small_mtu_that_drops_fragments() {
    let machines = Machines::new();
    machines.narrow(1_400, &[TO_CLIENT, TO_SERVER].concat());
    for machine in [Some("client"), None, Some("server")] {
        machines.drop_fragments(machine);
    }
    for (server, mtu) in [(IPV4, 1_200), (IPV6, 1_260)] {
        let output = machines.send(server);
        assert_echoed(&output);
        let echoes = text(&output.stdout);
        assert_eq!(echoes.matches(&format!(", MTU {mtu}\n")).count(), 3, "{echoes}");
    }
}

/// Only large messages are in flight, and request 1 does not test the return path.
#[test]
fn large_messages_arrive_when_only_the_return_path_drops_fragments() {
    let machines = Machines::new();
    machines.narrow(1_280, &TO_CLIENT);
    machines.drop_fragments(Some("client"));
    for server in [IPV4, IPV6] {
        assert_echoed(&machines.send(server));
    }
}

/// The datagrams of both peers exceed the MTU of the router, which sends no ICMP reports.
#[test]
fn a_facilitator_forwards_datagrams_larger_than_its_path() {
    let machines = Machines::new();
    machines.narrow(1_400, &[TO_CLIENT[0]]);
    machines.rule(None, REPORTS_NOTHING);
    let listen = ["facilitator", "--listen", "10.71.2.2:61112", "--forwarding-ports", "1"];
    let _facilitator = machines.namespaces.start(Some("server"), &listen, "listening on ");
    let variable = format!("{}=10.71.2.2:61112", forwarding::FACILITATOR);
    let this = std::env::current_exe().expect("a running program");
    let this = this.to_str().expect("a path of text");
    let command = ["env", &variable, this, "--exact", forwarding::TEST];
    let output = machines.namespaces.run_program(Some("client"), &command);
    let said = text(&output.stdout);
    assert!(output.status.success() && said.contains(" 1 passed;"), "{said}{}", text(&output.stderr));
}
