//! `rakwire meet` behind kernel routers: machines in network namespaces, with addresses translated by netfilter.

use crate::namespaces::Namespaces;
use crate::support::text;

/// The script that sets up the machines, which exist until its input ends.
const SCRIPT: &str = include_str!("routers.sh");

/// The router keeps the inner port if it is free, and admits only replies: "port-restricted" in docs/plugins/nat.md.
const PORT_RESTRICTED: &str = "masquerade";
/// The router uses a different port for each destination, chosen at random.
const SYMMETRIC_RANDOM: &str = "masquerade random,fully-random";

/// The maximum number of attempts to connect directly. If a machine stalls, the peers connect through the facilitator
/// instead.
const MEETINGS: usize = 5;

/// Connects the machine in the second home to the one in the first.
fn meet(routers: [&str; 2]) -> String {
    let machines = Namespaces::new(SCRIPT, &routers);
    let listen = ["facilitator", "--listen", "192.0.2.1:61111", "--forwarding-ports", "1"];
    let _facilitator = machines.start(None, &listen, "listening on ");
    let waiting = machines.start(Some("home1"), &["meet", "192.0.2.1:61111"], "this machine is");
    let output = machines.run(Some("home2"), &["meet", "192.0.2.1:61111", &waiting.announced]);
    let said = text(&output.stdout);
    assert!(output.status.success() && said.contains("\necho in "), "{said}{}", text(&output.stderr));
    said
}

#[test]
fn machines_behind_kernel_routers_connect_directly() {
    let mut meetings: Vec<String> = Vec::new();
    while meetings.len() < MEETINGS && !meetings.iter().any(|said| said.contains(" directly in ")) {
        meetings.push(meet([PORT_RESTRICTED; 2]));
    }
    let said = meetings.pop().unwrap_or_default();
    assert!(said.contains(" directly in "), "{said}{meetings:?}");
    assert!(said.starts_with("connected with 198.51.100.6:"), "{said}");
}

#[test]
fn machines_behind_kernel_routers_with_random_ports_are_forwarded() {
    for routers in [[SYMMETRIC_RANDOM; 2], [PORT_RESTRICTED, SYMMETRIC_RANDOM]] {
        let said = meet(routers);
        assert!(said.starts_with("connected with 192.0.2.1:"), "{said}");
        assert!(said.contains(" through the facilitator in "), "{said}");
    }
}
