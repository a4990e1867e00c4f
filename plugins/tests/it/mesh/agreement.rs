//! The members of a mesh agree on a host after arbitrary events.

use core::time::Duration;

use rakwire::raknet::Guid;
use rakwire_plugins::mesh::JoinStatus;

use super::network::{Change, MAX, Network};

#[path = "../../../examples/host_migration.rs"]
mod host_migration;

/// The maximum error in the order of ages, after several meshes have merged and compared their ages by messages.
const TOLERANCE: Duration = Duration::from_secs(3);

/// The time without events after which all members have the same information, in milliseconds.
const QUIET: u64 = 40_000;

fn host(network: &Network, at: usize) -> Option<Guid> {
    network.machine(at).mesh.host()
}

/// Returns the running machines of each group.
fn components(network: &Network) -> Vec<Vec<usize>> {
    let groups: std::collections::BTreeSet<u64> = network.groups.iter().copied().collect();
    let of = |group| network.running().into_iter().filter(|at| network.groups[*at] == group).collect();
    groups.into_iter().map(of).filter(|members: &Vec<usize>| !members.is_empty()).collect()
}

/// Returns the connected parts of a group. A group has several parts if all machines of one part have forgotten the
/// machines of the others.
fn parts(network: &Network, members: &[usize]) -> Vec<Vec<usize>> {
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for at in members {
        let joined = |part: &Vec<usize>| part.iter().any(|other| network.is_connected(*at, *other));
        let (mut touched, rest): (Vec<_>, Vec<_>) = parts.into_iter().partition(joined);
        touched.push(vec![*at]);
        parts = rest;
        parts.push(touched.concat());
    }
    parts
}

fn check_part(network: &Network, seed: u64, part: &[usize]) {
    for (a, b) in part.iter().flat_map(|a| part.iter().map(move |b| (*a, *b))).filter(|(a, b)| a != b) {
        assert!(network.is_connected(a, b), "seed {seed}: {a} and {b} are connected in {part:?}");
    }
    let host = host(network, part[0]);
    for at in part {
        assert_eq!(network.machine(*at).mesh.host(), host, "seed {seed}: {at} in {part:?}");
        let status = network.machine(*at).mesh.join_status();
        assert_eq!(status == JoinStatus::Alone, part.len() == 1, "seed {seed}: {at} is {status:?}");
        assert!(matches!(status, JoinStatus::Alone | JoinStatus::Complete), "seed {seed}: {status:?}");
        assert_eq!(network.machine(*at).mesh.missing_pairs().count(), 0, "seed {seed}");
        let stats = network.machine(*at).mesh.stats();
        assert_eq!(stats.malformed, 0, "seed {seed}");
    }
    let Some(host) = host else {
        return assert_eq!(part.len(), 1, "seed {seed}: a machine that has met no other has no host");
    };
    let host = network.find(host).expect("the host is a running machine");
    assert!(part.contains(&host), "seed {seed}: {host} is in {part:?}");
    let oldest = part.iter().map(|at| network.age(*at)).max().expect("at least one machine");
    assert!(network.age(host) + TOLERANCE >= oldest, "seed {seed}: {host} of {part:?} is not the oldest");
}

/// Checks that no machine replaces its host with a younger member while connected to the host.
fn check_changes(network: &mut Network, seed: u64) {
    for Change { at, before, after } in std::mem::take(&mut network.changes) {
        let (Some(before), Some(after)) = (before, after) else { continue };
        if network.machines[before].is_some() && network.machines[after].is_some() {
            let is_older = network.age(after) + TOLERANCE >= network.age(before);
            assert!(is_older, "seed {seed}: {at} left {before} for {after}");
        }
    }
}

fn step(network: &mut Network) {
    let running = network.running();
    let any = running[network.random.below(running.len() as u64) as usize];
    let other = running[network.random.below(running.len() as u64) as usize];
    match network.random.below(10) {
        0..=3 if running.len() < MAX => {
            let free = (0..MAX).find(|at| network.machines[*at].is_none()).expect("a free slot");
            network.start(free, false);
            network.groups[free] = network.groups[any];
            network.connect(free, any);
        }
        4 if running.len() > 2 => network.stop(any, 100),
        5 if running.len() > 2 => network.stop(any, 10_000),
        6 => {
            let groups = std::array::from_fn(|_| network.random.below(2));
            network.split(groups);
        }
        7 => network.split([0; MAX]),
        8 => network.cut(any, other, 5_000),
        _ => network.connect(any, other),
    }
}

/// Runs a random mesh; returns true if all running machines end up in one mesh.
fn run(seed: u64) -> bool {
    let mut network = Network::new(seed);
    network.start(0, true);
    network.run(1_000);
    network.start(1, seed.is_multiple_of(8));
    network.connect(1, 0);
    for _ in 0..8 + network.random.below(8) {
        let pause = 200 + network.random.below(6_000);
        network.run(pause);
        check_changes(&mut network, seed);
        step(&mut network);
    }
    network.run(QUIET);
    check_changes(&mut network, seed);
    for component in components(&network) {
        for part in parts(&network, &component) {
            check_part(&network, seed, &part);
        }
    }
    network.split([0; MAX]);
    network.run(QUIET);
    check_changes(&mut network, seed);
    let parts = parts(&network, &network.running());
    parts.iter().for_each(|part| check_part(&network, seed, part));
    parts.len() == 1
}

#[test]
fn ten_thousand_random_meshes_agree_on_the_host() {
    let some = |first: u64| move || (first..first + 5_000).filter(|seed| run(*seed)).count();
    let threads = [0, 5_000].map(|first| std::thread::spawn(some(first)));
    let whole: usize =
        threads.into_iter().map(|thread| thread.join().expect("no seed violates the rules")).sum();
    // In the other runs, the parts of the mesh were separated for too long (docs/plugins/mesh.md).
    assert_eq!(whole, 9_391, "the number of runs that end as one mesh");
}

/// Creates six machines in one mesh. The first is the oldest member.
fn six() -> Network {
    let mut network = Network::new(7);
    network.start(0, true);
    for at in 1..6 {
        network.run(5_000);
        network.start(at, false);
        network.connect(at, at - 1);
    }
    network.run(5_000);
    network
}

fn hosts(network: &Network) -> Vec<Option<usize>> {
    let host = |at: &usize| host(network, *at).and_then(|guid| network.find(guid));
    network.running().iter().map(host).collect()
}

#[test]
fn oldest_member_is_the_host_and_the_next_oldest_succeeds() {
    let mut network = six();
    for first in 0..5 {
        assert_eq!(hosts(&network), vec![Some(first); 6 - first]);
        network.stop(first, 10_000);
        network.run(20_000);
    }
    assert_eq!(hosts(&network), [Some(5)], "the last member must be the host");
}

#[test]
fn split_mesh_has_a_host_per_part_and_keeps_the_oldest() {
    let mut network = six();
    network.split([0, 1, 0, 1, 0, 1, 0, 0]);
    network.run(20_000);
    assert_eq!(hosts(&network), [0, 1, 0, 1, 0, 1].map(Some));
    network.split([0; MAX]);
    network.run(20_000);
    assert_eq!(hosts(&network), [Some(0); 6]);
    let left = network.changes.iter().any(|change| change.at == 0 && change.before == Some(0));
    assert!(!left, "the oldest member must remain its own host");
}

#[test]
fn merged_meshes_choose_the_oldest_member_as_host() {
    for older in [0, 3] {
        let mut network = Network::new(11 + older as u64);
        for at in [older, 3 - older] {
            network.start(at, true);
            network.run(10_000);
        }
        for (at, to) in [(1, 0), (2, 0), (4, 3), (5, 3)] {
            network.start(at, false);
            network.connect(at, to);
            network.run(10_000);
        }
        assert_eq!(hosts(&network), [0, 0, 0, 3, 3, 3].map(Some));
        network.connect(5, 1);
        network.run(20_000);
        assert_eq!(hosts(&network), [Some(older); 6]);
    }
}

/// All members choose the same host, even a member that cannot reach it. That member reports the peer that it cannot
/// reach.
#[test]
fn joining_is_partial_until_unreachable_pairs_connect() {
    let mut network = Network::new(3);
    network.broken.push((0, 2));
    network.start(0, true);
    for (at, to) in [(1, 0), (2, 1)] {
        network.start(at, false);
        network.connect(at, to);
        network.run(5_000);
    }
    let pair = (network.machine(0).guid, network.machine(2).guid);
    assert_eq!(network.machine(2).mesh.join_status(), JoinStatus::Joining);
    network.run(20_000);
    assert_eq!(hosts(&network), [Some(0); 3]);
    assert_eq!(network.machine(2).mesh.join_status(), JoinStatus::Partial);
    assert_eq!(network.machine(1).mesh.join_status(), JoinStatus::Complete);
    assert_eq!(network.machine_mut(2).mesh.poll_unreachable(), Some(pair.0));
    assert_eq!(
        network.machine_mut(2).mesh.poll_unreachable(),
        None,
        "each unreachable peer must be returned once"
    );
    assert_eq!(network.machine_mut(0).mesh.poll_unreachable(), Some(pair.1));
    let ordered = (pair.0.min(pair.1), pair.0.max(pair.1));
    assert_eq!(network.machine(1).mesh.missing_pairs().collect::<Vec<_>>(), [ordered]);
    assert_eq!(network.machine(2).mesh.missing_pairs().collect::<Vec<_>>(), [(pair.1, pair.0)]);
    network.broken.clear();
    network.run(20_000);
    assert_eq!(network.machine(2).mesh.join_status(), JoinStatus::Complete, "the peers must reconnect");
}

/// Members that take over as the host, over real sockets.
#[test]
fn another_member_becomes_host_when_the_host_leaves() {
    host_migration::main().expect("the example completes");
}
