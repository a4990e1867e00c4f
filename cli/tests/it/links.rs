//! Machines that have link-local addresses only, in network namespaces.

use crate::namespaces::Namespaces;
use crate::support::text;

/// A facilitator on two links with one machine each. The interface numbers of the machines differ from the
/// facilitator's.
const SCRIPT: &str = "
set -e
exec 2>&1
PATH=$PATH:/usr/sbin:/sbin
mount -t tmpfs tmpfs /run
number=0
for machine in one two; do
  number=$((number + 1))
  ip netns add $machine
  ip -n $machine link add unused type veth peer name unused_too
  ip link add to_$machine type veth peer name net0 netns $machine
  # No address but these: the kernel would send from one of its own.
  ip link set to_$machine addrgenmode none
  ip -n $machine link set net0 addrgenmode none
  ip address add fe80::7/64 dev to_$machine nodad
  ip link set to_$machine up
  ip -n $machine address add fe80::$number/64 dev net0 nodad
  ip -n $machine link set net0 up
done
echo ready
exec cat
";

/// The two machines are on different links, so only the facilitator reaches both.
#[test]
fn a_facilitator_forwards_between_link_local_addresses() {
    let machines = Namespaces::new(SCRIPT, &[]);
    let listen = ["facilitator", "--listen", "[::]:61111", "--forwarding-ports", "1"];
    let _facilitator = machines.start(None, &listen, "listening on ");
    let meet = ["meet", "[fe80::7%net0]:61111", "--listen", "[::]:0", "--forwarded"];
    let waiting = machines.start(Some("one"), &meet, "this machine is");
    let reaching = [&meet[..2], &[&waiting.announced], &meet[2..]].concat();
    let output = machines.run(Some("two"), &reaching);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.contains(" through the facilitator in ") && said.contains("\necho in "), "{said}");
}
