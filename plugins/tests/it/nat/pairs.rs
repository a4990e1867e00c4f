//! All pairs of router types, and nested networks.

use core::time::Duration;

use rakwire::sim::NatBehavior;
use rakwire_plugins::nat::{Outcome, Refusal};

use super::internet::{FORWARDING_PORTS, Internet};

/// The router types, by their names in the table.
const ROUTERS: [(&str, Option<NatBehavior>); 6] = [
    ("none", None),
    ("full cone", Some(NatBehavior::FULL_CONE)),
    ("restricted", Some(NatBehavior::RESTRICTED_CONE)),
    ("port-restricted", Some(NatBehavior::PORT_RESTRICTED_CONE)),
    ("symmetric", Some(NatBehavior::SYMMETRIC)),
    ("symmetric, random", Some(NatBehavior::SYMMETRIC_RANDOM)),
];

/// Puts the machines of one side behind these routers.
type PutBehind = fn(&mut Internet, NatBehavior);

/// Networks with more than one router for each peer, by their names in the table.
///
/// Each entry has a function that builds the network, and the number of router types with which peers connect there,
/// counted from the first type.
const NETWORKS: [(&str, PutBehind, usize); 4] = [
    ("one router", behind_one_router, 6),
    ("one router, hairpin", behind_one_router_that_hairpins, 6),
    ("two routers each", behind_different_providers, 5),
    // Behind one symmetric router, the punches of each side use up the ports predicted for the other side. Both sides
    // punch at the same time, so the predictions fail.
    ("two routers each, hairpin", behind_one_provider, 4),
];

fn behind_one_router(internet: &mut Internet, router: NatBehavior) {
    let realm = internet.network(0, router);
    for _ in 0..2 {
        internet.client(realm);
    }
}

fn behind_one_router_that_hairpins(internet: &mut Internet, router: NatBehavior) {
    behind_one_router(internet, router.with_hairpinning());
}

fn at_home(internet: &mut Internet, provider: usize) {
    let home = internet.network(provider, NatBehavior::PORT_RESTRICTED_CONE);
    internet.client(home);
}

fn behind_different_providers(internet: &mut Internet, router: NatBehavior) {
    for _ in 0..2 {
        let provider = internet.network(0, router);
        at_home(internet, provider);
    }
}

fn behind_one_provider(internet: &mut Internet, router: NatBehavior) {
    let provider = internet.network(0, router.with_hairpinning());
    for _ in 0..2 {
        at_home(internet, provider);
    }
}

/// Returns true if a connection is possible in theory. The ports of a random symmetric NAT cannot be predicted, so a
/// router that accepts only known ports blocks it.
fn can_work(a: usize, b: usize) -> bool {
    let (low, high) = (a.min(b), a.max(b));
    high < 5 || low < 3
}

fn behind(internet: &mut Internet, router: Option<NatBehavior>) -> usize {
    let realm = router.map_or(0, |behavior| internet.network(0, behavior));
    internet.client(realm)
}

/// Builds an internet and waits until the clients are registered at the facilitator.
fn settled(seed: u8, ports: &[u16], place: impl FnOnce(&mut Internet)) -> Internet {
    let mut internet = Internet::new(seed, ports);
    place(&mut internet);
    internet.run_for(Duration::from_millis(300 + 7 * u64::from(seed)));
    internet
}

/// Builds an internet with two clients.
fn pair(seed: u8, a: Option<NatBehavior>, b: Option<NatBehavior>, ports: &[u16]) -> Internet {
    settled(seed, ports, |internet| {
        behind(internet, a);
        behind(internet, b);
    })
}

/// Returns the time until both clients are connected.
fn time_to_connect(internet: &mut Internet) -> Option<Duration> {
    internet.open(0, 1);
    internet.until(|internet| internet.are_connected(0, 1))
}

fn connected(internet: &Internet, client: usize) -> Option<bool> {
    internet.clients[client].outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Connected { is_forwarded, .. } => Some(*is_forwarded),
        Outcome::Failed { .. } => None,
    })
}

/// The connection times of all cells of the table.
#[derive(Default)]
struct Times {
    all: Vec<Duration>,
}

impl Times {
    /// Returns the median of ten runs in milliseconds, or a dash. Either all runs connect or none does.
    fn cell(&mut self, name: &str, can_work: bool, start: impl Fn(u8) -> Internet) -> String {
        let mut times = Vec::new();
        for seed in 0..10 {
            let time = time_to_connect(&mut start(seed));
            assert_eq!(time.is_some(), can_work, "{name}, seed {seed}");
            times.extend(time);
        }
        times.sort_unstable();
        self.all.extend(&times);
        let median = times.get(times.len() / 2);
        median.map_or_else(|| "—".to_owned(), |time| time.as_millis().to_string())
    }

    fn median(mut self) -> Duration {
        self.all.sort_unstable();
        self.all[self.all.len() / 2]
    }
}

/// Returns the table of the page: a row for each router type, and for each nested network.
fn table() -> String {
    let mut lines = vec![
        format!("| | {} |", ROUTERS.map(|(name, _)| name).join(" | ")),
        format!("|---|{}", "---:|".repeat(ROUTERS.len())),
    ];
    let mut times = Times::default();
    for (a, (name, first)) in ROUTERS.into_iter().enumerate() {
        let cells: Vec<_> = (ROUTERS.into_iter().enumerate())
            .map(|(b, (other, second))| {
                times.cell(&format!("{name} and {other}"), can_work(a, b), |seed| {
                    pair(seed, first, second, &[])
                })
            })
            .collect();
        lines.push(format!("| {name} | {} |", cells.join(" | ")));
    }
    for (name, place, working) in NETWORKS {
        let cells: Vec<_> = (ROUTERS.into_iter().enumerate())
            .map(|(at, (router, behavior))| {
                let Some(behavior) = behavior else { return String::new() };
                times.cell(&format!("{name}: {router}"), at < working, |seed| {
                    settled(seed, &[], |internet| place(internet, behavior))
                })
            })
            .collect();
        lines.push(format!("| {name} | {} |", cells.join(" | ")));
    }
    assert!(times.median() < Duration::from_secs(1), "the median of all pairs must be below a second");
    lines.join("\n")
}

#[test]
fn the_documented_table_lists_the_router_pairs_that_connect() {
    let table = table();
    let page = include_str!("../../documents/nat.md");
    assert!(page.contains(&table), "the table of docs/plugins/nat.md should be:\n{table}");
}

#[test]
fn facilitator_forwards_pairs_without_a_direct_path() {
    for (a, b) in [(3, 5), (5, 5), (4, 5)] {
        let mut internet = pair(1, ROUTERS[a].1, ROUTERS[b].1, &FORWARDING_PORTS);
        let time = time_to_connect(&mut internet).expect("the facilitator forwards");
        assert!(time < Duration::from_secs(4), "{time:?}");
        internet.run_for(Duration::from_millis(100));
        assert_eq!([connected(&internet, 0), connected(&internet, 1)], [Some(true); 2]);
        assert_eq!(internet.facilitator().stats().forwarded, 1);
        let remote = internet.clients[0].connected[0].1;
        assert!(FORWARDING_PORTS.contains(&remote.port()) && remote.ip().to_string() == "198.51.100.1");
    }
}

#[test]
fn without_forwarding_both_peers_are_notified_of_the_failure() {
    let mut internet = pair(1, ROUTERS[5].1, ROUTERS[5].1, &[]);
    internet.open(0, 1);
    internet
        .until(|internet| internet.clients.iter().all(|client| !client.outcomes.is_empty()))
        .expect("both peers are notified");
    let no_path = |peer| vec![Outcome::Failed { peer, reason: Some(Refusal::NoPath) }];
    let [a, b] = [&internet.clients[0], &internet.clients[1]];
    assert_eq!((&a.outcomes, &b.outcomes), (&no_path(b.guid), &no_path(a.guid)));
}

#[test]
fn nat_types_are_distinguished() {
    for (at, (name, router)) in ROUTERS.into_iter().enumerate() {
        let mut internet = pair(1, router, None, &[]);
        // The first attempt probes whether the router changes ports.
        time_to_connect(&mut internet).expect("the other client has no router");
        let found = internet.nat_type(0);
        assert_eq!(found.is_symmetric, Some(at >= 4), "{name}");
        assert_eq!(found.accepts_unsolicited, at < 3, "{name}");
        assert!(found.mapped.is_some());
    }
}

/// Behind a router without hairpinning, peers connect by their private addresses.
#[test]
fn peers_behind_one_router_connect_by_private_addresses() {
    for behavior in [NatBehavior::PORT_RESTRICTED_CONE, NatBehavior::SYMMETRIC_RANDOM] {
        let mut internet = Internet::new(1, &[]);
        let realm = internet.network(0, behavior);
        let (a, b) = (internet.client(realm), internet.client(realm));
        internet.run_for(Duration::from_millis(300));
        time_to_connect(&mut internet).expect("both clients are in one network");
        assert!(internet.clients[a].connected[0].1.ip().to_string().starts_with("10."));
        assert!(internet.are_connected(a, b));
    }
}

/// Behind routers of one provider, peers connect by hairpinning. Behind routers of different providers, they connect
/// like peers behind one router each.
#[test]
fn peers_behind_two_routers_each_connect() {
    for (is_one_provider, outer) in
        [(true, NatBehavior::FULL_CONE.with_hairpinning()), (false, NatBehavior::PORT_RESTRICTED_CONE)]
    {
        let mut internet = Internet::new(1, &[]);
        let provider = internet.network(0, outer);
        let other = if is_one_provider { provider } else { internet.network(0, outer) };
        for provider in [provider, other] {
            let home = internet.network(provider, NatBehavior::PORT_RESTRICTED_CONE);
            internet.client(home);
        }
        internet.run_for(Duration::from_millis(300));
        let time = time_to_connect(&mut internet).expect("both routers let the punches through");
        assert!(time < Duration::from_secs(1), "{time:?}");
    }
}

/// If both peers request a connection at the same time, one attempt serves both.
#[test]
fn simultaneous_requests_share_one_attempt() {
    let mut internet = pair(1, ROUTERS[3].1, ROUTERS[4].1, &[]);
    internet.open(0, 1);
    internet.open(1, 0);
    internet.until(|internet| internet.are_connected(0, 1)).expect("the peers connect");
    internet.run_for(Duration::from_secs(1));
    assert_eq!([connected(&internet, 0), connected(&internet, 1)], [Some(false); 2]);
    assert_eq!(internet.facilitator().stats().attempts, 1);
    assert_eq!(internet.clients[0].connected.len(), 1);
}

#[test]
fn one_client_connects_to_several_peers() {
    let mut internet = Internet::new(1, &[]);
    for router in [
        NatBehavior::SYMMETRIC,
        NatBehavior::PORT_RESTRICTED_CONE,
        NatBehavior::RESTRICTED_CONE,
        NatBehavior::SYMMETRIC,
    ] {
        let realm = internet.network(0, router);
        internet.client(realm);
    }
    internet.run_for(Duration::from_millis(300));
    for other in 1..4 {
        internet.open(0, other);
        internet.until(|internet| internet.are_connected(0, other)).expect("the peers connect");
    }
}

#[test]
fn peer_that_left_can_be_reached_again() {
    let mut internet = pair(1, ROUTERS[3].1, ROUTERS[4].1, &[]);
    for from in [0, 1, 0] {
        internet.open(from, 1 - from);
        internet.until(|internet| internet.are_connected(0, 1)).expect("the peers connect");
        internet.leave_others(1);
        internet.until(|internet| !internet.are_connected(0, 1)).expect("the peer leaves");
    }
    assert_eq!(internet.facilitator().stats().attempts, 3);
}

#[test]
fn request_for_an_absent_peer_is_refused() {
    let mut internet = pair(1, ROUTERS[3].1, ROUTERS[3].1, &[]);
    let gone = internet.clients[1].guid;
    internet.leave_facilitator(1);
    internet.run_for(Duration::from_secs(1));
    internet.open(0, 1);
    internet.until(|internet| !internet.clients[0].outcomes.is_empty()).expect("both peers are notified");
    let reason = Some(Refusal::NotConnected);
    assert_eq!(internet.clients[0].outcomes, [Outcome::Failed { peer: gone, reason }]);
    // Without a facilitator, no request is sent.
    internet.leave_facilitator(0);
    internet.run_for(Duration::from_secs(1));
    assert!(internet.traversal(0).open(gone).is_ok(), "the request is queued");
}
