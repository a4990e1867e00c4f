// A client, a router and a server in network namespaces, with the topology of the command-line tool's tests.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

import { start } from "./support.mjs";

// Adds the folders of ip and nft, which are missing from the PATH of users other than root.
process.env.PATH += ":/usr/sbin:/sbin";

const SCRIPT = readFileSync(new URL("machines.sh", import.meta.url), "utf8");

/**
 * The networks between the router and each of the other machines, and the address of the server. An IPv6 route
 * replaces another route only if both have the same metric. Kernel routes have the metric 256.
 */
export const NETWORKS = {
  IPv4: { family: "-4", client: "10.71.1.0/24", server: "10.71.2.0/24", address: "10.71.2.2:61111" },
  IPv6: { family: "-6", client: "fd71:1::/64", server: "fd71:2::/64", address: "[fd71:2::2]:61111", metric: ["metric", "256"] },
};

/** Firewall rules with a priority before that of the reassembly of packets (NF_IP_PRI_CONNTRACK_DEFRAG, -400). */
const DROP_FRAGMENTS = `table inet fragments {
  chain arriving {
    type filter hook prerouting priority -450
    meta nfproto ipv4 ip frag-off & 0x3fff != 0 drop
    meta nfproto ipv6 exthdr frag exists drop
  }
}`;

const FORBID = `table inet forbidden {
  chain leaving {
    type filter hook output priority 0
    udp dport 61111 counter drop
  }
}`;

/** Creates the machines, which exist until the end of the test. */
export async function makeMachines(context) {
  const isRoot = process.getuid() === 0;
  const user = isRoot ? [] : ["--map-root-user"];
  const keeper = await start(context, "network namespaces", "unshare", [...user, "--net", "--mount", "sh", "-c", SCRIPT], /(ready)\n/);
  const enter = ["--target", String(keeper.pid), "--net", "--mount", ...(isRoot ? [] : ["--user", "--preserve-credentials"])];
  /** Returns the arguments of nsenter that run a command on a machine. The router's namespace contains the others. */
  const at = (machine, command) => [...enter, ...(machine === "router" ? [] : ["ip", "netns", "exec", machine]), ...command];
  const run = (machine, ...command) => execFileSync("nsenter", at(machine, command), { stdio: ["ignore", "pipe", "inherit"] });
  /** Sets the MTU of the link to a machine, in bytes. */
  const setMtu = (machine, mtu) => {
    for (const network of Object.values(NETWORKS)) {
      run("router", "ip", network.family, "route", "replace", network[machine], "dev", `to_${machine}`, ...(network.metric ?? []), "mtu", "lock", String(mtu));
    }
  };
  return {
    run,
    /** Limits packets between client and server to `mtu` bytes in both directions. */
    setPathMtu: (mtu) => ["client", "server"].forEach((machine) => setMtu(machine, mtu)),
    /** Limits packets from the server to the client to `mtu` bytes. */
    setReturnMtu: (mtu) => setMtu("client", mtu),
    /** Drops fragments for both machines, as many firewalls do. */
    dropFragments: () => ["client", "server"].forEach((machine) => run(machine, "nft", DROP_FRAGMENTS)),
    /** Blocks all packets to the server's port in the firewall of the client's machine. */
    forbid: () => run("client", "nft", FORBID),
    allow: () => run("client", "nft", "delete table inet forbidden"),
    /** Returns true if a packet was blocked. */
    hasForbidden: () => /packets [1-9]/.test(run("client", "nft", "list table inet forbidden")),
    start: (machine, name, command, pattern, end) => start(context, name, "nsenter", at(machine, command), pattern, false, end),
  };
}
