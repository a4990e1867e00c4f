//! Sockets of both address families on systems where an IPv6 socket accepts only IPv6 by default.

use crate::namespaces::Namespaces;
use crate::support::text;

const SCRIPT: &str = "ip link set lo up && echo 1 > /proc/sys/net/ipv6/bindv6only && echo ready && cat";

#[test]
fn a_server_on_the_ipv6_wildcard_address_accepts_ipv4() {
    let namespaces = Namespaces::new(SCRIPT, &[]);
    let _server = namespaces.start(None, &["echo", "--listen", "[::]:61112"], "listening on ");
    for address in ["127.0.0.1:61112", "[::1]:61112"] {
        let output = namespaces.run(None, &["send", address, "hello"]);
        assert!(output.status.success(), "{address}: {}", text(&output.stderr));
    }
}
