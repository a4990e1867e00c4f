//! `rakwire meet` behind routers of the kernel: machines in network namespaces, whose addresses netfilter translates.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Server, run, text};

/// Makes the machines. They are there until its input ends.
const SCRIPT: &str = include_str!("routers.sh");

/// The port is that of the machine inside if it is free, and only who was sent to gets in: the table's port-restricted.
const PORT_RESTRICTED: &str = "masquerade";
/// Another port for each machine outside, which nobody can foretell.
const SYMMETRIC_RANDOM: &str = "masquerade random,fully-random";

/// How often machines meet until they have met directly: one that stands still meanwhile is reached through the facilitator.
const MEETINGS: usize = 5;

/// Who may not make network namespaces makes them as the root of a user namespace.
fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("a program id");
    id.stdout == b"0\n"
}

/// Two homes behind a router each, and a facilitator outside.
struct Machines {
    keeper: Server,
    is_root: bool,
}

impl Machines {
    fn new(routers: [&str; 2]) -> Self {
        let is_root = is_root();
        let user: &[&str] = if is_root { &[] } else { &["--map-root-user"] };
        let made = [user, &["--net", "--mount", "sh", "-c", SCRIPT, "sh"], &routers].concat();
        Self { keeper: Server::start(Path::new("unshare"), &made, "ready"), is_root }
    }

    /// What nsenter is told to run a command of the tool outside, or in a home.
    fn arguments(&self, home: Option<&str>, command: &[&str]) -> Vec<String> {
        let keeper = self.keeper.child.id().to_string();
        let user: &[&str] = if self.is_root { &[] } else { &["--user", "--preserve-credentials"] };
        let there = home.map_or_else(Vec::new, |home| vec!["ip", "netns", "exec", home]);
        let namespaces = ["--target", &keeper, "--net", "--mount"];
        let all = [&namespaces, user, &there, &[env!("CARGO_BIN_EXE_rakwire")], command].concat();
        all.into_iter().map(str::to_owned).collect()
    }

    fn start(&self, home: Option<&str>, command: &[&str], word: &str) -> Server {
        let arguments = self.arguments(home, command);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Server::start(Path::new("nsenter"), &arguments, word)
    }

    fn run(&self, home: &str, command: &[&str]) -> Output {
        let arguments = self.arguments(Some(home), command);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        run(Path::new("nsenter"), &arguments, "")
    }
}

/// Has the machine in the second home reach the one in the first.
fn meet(routers: [&str; 2]) -> String {
    let machines = Machines::new(routers);
    let listen = ["facilitator", "--listen", "192.0.2.1:61111", "--forwarding-ports", "1"];
    let _facilitator = machines.start(None, &listen, "listening on ");
    let waiting = machines.start(Some("home1"), &["meet", "192.0.2.1:61111"], "this machine is");
    let output = machines.run("home2", &["meet", "192.0.2.1:61111", &waiting.announced]);
    let said = text(&output.stdout);
    assert!(output.status.success() && said.contains("\necho in "), "{said}{}", text(&output.stderr));
    said
}

#[test]
fn machines_behind_real_routers_meet() {
    let mut meetings: Vec<String> = Vec::new();
    while meetings.len() < MEETINGS && !meetings.iter().any(|said| said.contains(" directly in ")) {
        meetings.push(meet([PORT_RESTRICTED; 2]));
    }
    let said = meetings.pop().unwrap_or_default();
    assert!(said.contains(" directly in "), "{said}{meetings:?}");
    assert!(said.starts_with("connected with 198.51.100.6:"), "{said}");
}

#[test]
fn machines_behind_real_routers_with_random_ports_meet_through_the_facilitator() {
    for routers in [[SYMMETRIC_RANDOM; 2], [PORT_RESTRICTED, SYMMETRIC_RANDOM]] {
        let said = meet(routers);
        assert!(said.starts_with("connected with 192.0.2.1:"), "{said}");
        assert!(said.contains(" through the facilitator in "), "{said}");
    }
}
