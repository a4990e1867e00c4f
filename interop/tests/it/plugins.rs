//! The connection graph, the ready events and RPC4: our plugins with those of the C++ RakNet.

use std::time::Duration;

use rakwire::codec::bitstream::BitStreamWriter;
use rakwire::endpoint::{Plugin, PluginHost};
use rakwire_native::endpoint::SharedHook;
use rakwire_native::raknet::{Connection, Delivery, Endpoint, Guid, Options, RakNet};
use rakwire_plugins::calls::rpc4::{Answer, Rpc4};
use rakwire_plugins::calls::{CallFailure, CallStats, Refusal};
use rakwire_plugins::mesh::{ConnectionGraph, GraphStats, UNKNOWN_PING};
use rakwire_plugins::ready::{EventId, ReadyEvents, Status};

use crate::support::{Server, TIME_LIMIT};

/// The C++ peer that uses RakNet's plugins.
const PEER: &str = "cpp-plugins";
/// The time to wait before concluding that nothing happens.
const A_WHILE: Duration = Duration::from_millis(300);

/// The recorded calls and signals: the name of the handler, and the number in the arguments.
type Noted = Vec<(&'static str, u32)>;

/// A rakwire peer with all of these plugins, and its connections.
struct Ours {
    endpoint: Endpoint,
    guid: Guid,
    graph: SharedHook<ConnectionGraph<8>>,
    ready: SharedHook<ReadyEvents<4, 8>>,
    rpc4: SharedHook<Rpc4<Noted, 6, 8, 256>>,
    connections: Vec<Connection>,
}

impl Ours {
    async fn start() -> Self {
        let mut options = Options::server(8).expect("entropy");
        options.config.protocol_version = 6;
        let (graph, ready) = (SharedHook::new(ConnectionGraph::new()), SharedHook::new(ReadyEvents::new()));
        let rpc4 = SharedHook::new(Rpc4::new(Noted::new()));
        let hosts = (host(graph.clone()), (host(ready.clone()), host(rpc4.clone())));
        let endpoint =
            Endpoint::bind_with_hook("127.0.0.1:0", options, |_| hosts).await.expect("a free port");
        Self { guid: endpoint.guid(), endpoint, graph, ready, rpc4, connections: Vec::new() }
    }

    /// Connects to a C++ peer, and waits until that peer reports the connection. Until then, its commands do not
    /// include this connection.
    async fn dial(&mut self, original: &Original) {
        self.connections.push(self.endpoint.connect(original.server.address).await.expect("a connection"));
        let incoming = format!("incoming {}", self.guid.0);
        original.prints("the C++ peer is connected", |line| line == incoming).await;
    }

    async fn meet(&mut self, other: &mut Self) {
        self.connections
            .push(self.endpoint.connect(other.endpoint.local_addr()).await.expect("a connection"));
        other.connections.push(other.endpoint.accept().await.expect("the connection of the other endpoint"));
    }

    /// Closes the connection with a peer.
    async fn part_from(&self, guid: Guid) {
        let connection = self.connections.iter().find(|connection| connection.guid() == guid);
        connection.expect("a connection with the peer").disconnect().await;
    }

    fn has_report(&self, guid: Guid, with: Guid) -> bool {
        self.graph.with(|graph| graph.connections_of(guid).iter().any(|remote| remote.guid == with))
    }

    fn set(&self, event: EventId, is_ready: bool) {
        self.ready.with(|ready| ready.set(event, is_ready)).expect("free capacity");
        self.endpoint.wake();
    }

    fn is_completed(&self, event: EventId) -> bool {
        self.ready.with(|ready| ready.is_completed(event))
    }
}

fn host<T: Plugin<RakNet>>(plugin: T) -> PluginHost<T, 1> {
    let mut host = PluginHost::new();
    host.attach::<RakNet>(plugin).expect("free capacity");
    host
}

/// A C++ peer with RakNet's corresponding plugins.
struct Original {
    server: Server,
    guid: Guid,
}

impl Original {
    fn start() -> Self {
        let server = Server::start(PEER, &[]).expect("a C++ peer");
        let line = server.next_line().expect("a line with the GUID");
        let guid = line.strip_prefix("guid ").and_then(|guid| guid.parse().ok()).expect("a number");
        Self { server, guid: Guid(guid) }
    }

    /// Waits until the C++ peer prints an expected line.
    async fn prints(&self, what: &str, is_expected: impl Fn(&str) -> bool) {
        let mut last = String::new();
        until(what, || {
            self.server.printed_lines().any(|line| {
                last = line;
                is_expected(&last)
            })
        })
        .await;
    }

    /// Waits until the C++ peer prints a connection graph that consists of exactly these pairs.
    async fn knows(&self, pairs: &[(Guid, Guid)]) {
        let mut expected: Vec<_> = pairs.iter().map(|(a, b)| format!("{}-{}", a.0, b.0)).collect();
        expected.sort();
        self.prints(&format!("the C++ peer prints graph {expected:?}"), |line| {
            let mut said: Vec<_> = line.split(' ').skip(1).filter(|pair| !pair.is_empty()).collect();
            said.sort_unstable();
            line.starts_with("graph") && said == expected
        })
        .await;
    }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waits = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIME_LIMIT, waits)
        .await
        .unwrap_or_else(|_| panic!("timed out while waiting until {what}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rakwire_and_raknet_exchange_their_connection_graphs() {
    let began = std::time::Instant::now();
    let mut original = Original::start();
    let (mut a, mut b, c) = (Ours::start().await, Ours::start().await, Ours::start().await);
    a.dial(&original).await;
    b.dial(&original).await;
    until("both endpoints have a report of each other", || {
        a.has_report(original.guid, b.guid) && b.has_report(original.guid, a.guid)
    })
    .await;
    let remote = a.graph.with(|graph| graph.connections_of(original.guid)[0]);
    assert_eq!(remote.address, b.endpoint.local_addr());
    let most = began.elapsed().as_millis();
    assert!(
        u128::from(remote.ping) <= most || remote.ping == UNKNOWN_PING,
        "{} ms after {most} ms",
        remote.ping
    );

    a.meet(&mut b).await;
    original.knows(&[(a.guid, b.guid), (b.guid, a.guid)]).await;
    // The C++ peer connects, and reports its own connections to the new peer.
    original.server.write_line(format_args!("dial {}", c.endpoint.local_addr()));
    let accepted = c.endpoint.accept().await.expect("a connection");
    assert_eq!(accepted.guid(), original.guid);
    until("endpoint c has reports of a and b", || {
        c.has_report(original.guid, a.guid) && c.has_report(original.guid, b.guid)
    })
    .await;

    a.part_from(b.guid).await;
    original.knows(&[]).await;
    b.part_from(original.guid).await;
    until("endpoints a and c have a report that b has left", || {
        [&a, &c].iter().all(|ours| !ours.has_report(original.guid, b.guid))
    })
    .await;
    assert!(a.has_report(original.guid, c.guid) && c.has_report(original.guid, a.guid));
    for ours in [&a, &b, &c] {
        assert_eq!(ours.graph.with(|graph| graph.stats()), GraphStats::default());
    }
}

/// A peer that is connected to a rakwire and a RakNet peer stops sending. Each of the two reports the loss to the
/// other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rakwire_and_raknet_report_a_lost_peer_to_each_other() {
    const REMOTE_CONNECTION_LOST: u8 = 0x20;
    let (mut original, silent) = (Original::start(), Original::start());
    let (mut a, mut b) = (Ours::start().await, Ours::start().await);
    a.dial(&original).await;
    b.dial(&original).await;
    a.dial(&silent).await;
    original.server.write_line(format_args!("dial {}", silent.server.address));
    original.knows(&[(a.guid, silent.guid), (silent.guid, a.guid)]).await;
    until("endpoint b has a report of the connection", || b.has_report(original.guid, silent.guid)).await;
    let gone = silent.guid;
    drop(silent);
    let message = format!("received {REMOTE_CONNECTION_LOST} {}", a.guid.0);
    original
        .prints("the C++ peer has received a report of the lost connection", |line| line == message)
        .await;
    original.knows(&[]).await;
    until("endpoint b has a report of the lost connection", || !b.has_report(original.guid, gone)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rakwire_and_raknet_peers_agree_that_all_are_ready() {
    const START: EventId = EventId(1);
    let mut original = Original::start();
    let (mut a, mut b) = (Ours::start().await, Ours::start().await);
    a.dial(&original).await;
    b.dial(&original).await;
    a.meet(&mut b).await;
    for ours in [&a, &b] {
        ours.ready.with(|ready| ready.wait_for_all(START)).expect("free capacity");
    }
    // The C++ peer ignores messages about an event that it does not know yet, and later queries the status.
    a.set(START, true);
    tokio::time::sleep(A_WHILE).await;
    original.server.write_line("wait 1");
    original.server.write_line("set 1");
    let of_original = |ours: &Ours| {
        let id = ours.connections.iter().find(|connection| connection.guid() == original.guid)?.id();
        ours.ready.with(|ready| ready.status_of(START, id))
    };
    until("both endpoints have received that the C++ peer is ready", || {
        [&a, &b].iter().all(|ours| of_original(ours) == Some(Status::Set))
    })
    .await;
    assert!(!a.is_completed(START) && !b.is_completed(START));
    assert_eq!(original.server.printed_lines().filter(|line| line.starts_with("event")).count(), 0);

    b.set(START, true);
    until("the event is complete at both endpoints", || a.is_completed(START) && b.is_completed(START)).await;
    original.prints("the event is complete at the C++ peer", |line| line == "event 1 completed").await;
    b.set(START, false);
    original.prints("the event is open again at the C++ peer", |line| line == "event 1 open").await;
    until("the event is open again at endpoint a", || !a.is_completed(START)).await;
    b.set(START, true);
    original.prints("the event is complete again at the C++ peer", |line| line == "event 1 completed").await;
    until("the event is complete again at both endpoints", || a.is_completed(START) && b.is_completed(START))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forced_event_completes_at_rakwire_and_raknet() {
    const THEIRS: EventId = EventId(2);
    const OURS: EventId = EventId(-3);
    let mut original = Original::start();
    let mut a = Ours::start().await;
    a.dial(&original).await;
    for event in [THEIRS, OURS] {
        a.ready.with(|ready| ready.wait_for_all(event)).expect("free capacity");
        original.server.write_line(format_args!("wait {}", event.0));
    }
    original.server.write_line("force 2");
    until("endpoint a has completed the event that the C++ peer forced", || a.is_completed(THEIRS)).await;
    original
        .prints("the C++ peer has completed the event that it forced", |line| line == "event 2 completed")
        .await;
    a.ready.with(|ready| ready.force(OURS)).expect("free capacity");
    a.endpoint.wake();
    original
        .prints("the C++ peer has completed the event of endpoint a", |line| line == "event -3 completed")
        .await;
}

/// Registers the functions and signals that the C++ peer calls.
fn register(rpc4: &mut Rpc4<Noted, 6, 8, 256>) {
    rpc4.register_answered(
        "Add",
        |_, _| true,
        |noted, _, arguments, answer| {
            let (a, b) = (arguments.read::<u32>()?, arguments.read::<u32>()?);
            noted.push(("Add", a));
            answer.write(a.wrapping_add(b))
        },
    )
    .expect("free capacity");
    rpc4.register(
        "Note",
        |_, _| true,
        |noted, _, arguments| {
            noted.push(("Note", arguments.read()?));
            Ok(())
        },
    )
    .expect("free capacity");
    rpc4.register("Closed", |_, _| false, |_, _, _| Ok(())).expect("free capacity");
    rpc4.connect(
        "Hit",
        1,
        |_, _| true,
        |noted, _, arguments| {
            noted.push(("second", arguments.read()?));
            Ok(())
        },
    )
    .expect("free capacity");
    rpc4.connect(
        "Hit",
        2,
        |_, _| true,
        |noted, _, arguments| {
            noted.push(("first", arguments.read()?));
            Ok(())
        },
    )
    .expect("free capacity");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raknet_calls_and_signals_rakwire_by_rpc4() {
    let mut original = Original::start();
    let mut ours = Ours::start().await;
    ours.rpc4.with(register);
    ours.dial(&original).await;
    original.server.write_line("ask Add 40 2");
    original.prints("the C++ peer prints the first sum", |line| line == "answer 42").await;
    // For unknown functions only `call` is used: RakNet cannot parse its own error reply to a blocking call.
    for unknown in ["Subtract", "Closed", "Add"] {
        original.server.write_line(format_args!("call {unknown} 1"));
        original
            .prints("the C++ peer reports an unknown function", |line| line == format!("unknown {unknown}"))
            .await;
    }
    original.server.write_line("call Note 7");
    original.server.write_line("signal Hit 9");
    original.server.write_line("signal Miss 9");
    // The blocking call is answered after the earlier calls.
    original.server.write_line("ask Add 1 1");
    original.prints("the C++ peer prints the second sum", |line| line == "answer 2").await;
    let noted = ours.rpc4.with(|rpc4| core::mem::take(&mut rpc4.context));
    assert_eq!(noted, [("Add", 40), ("Note", 7), ("first", 9), ("second", 9), ("Add", 1)]);
    let expected = CallStats { calls: 3, signals: 2, refused: 3, ..CallStats::default() };
    assert_eq!(ours.rpc4.with(|rpc4| rpc4.stats()), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rakwire_calls_and_signals_raknet_by_rpc4() {
    const TIMEOUT: Duration = Duration::from_secs(60);
    let original = Original::start();
    let mut ours = Ours::start().await;
    ours.dial(&original).await;
    let (to, ordered) = (ours.connections[0].id(), Delivery::RELIABLE_ORDERED);
    let mut outcomes = Vec::new();
    for name in ["Add", "Note"] {
        ours.rpc4
            .with(|rpc4| {
                let arguments =
                    |bits: &mut BitStreamWriter<'_>| bits.write(40_u32).and_then(|()| bits.write(2_u32));
                rpc4.call_answered(to, name, arguments, TIMEOUT)
            })
            .expect("free capacity");
        ours.endpoint.wake();
        let mut answer = None;
        until("an answer has arrived", || {
            answer = ours.rpc4.with(|rpc4| rpc4.poll_answer());
            answer.is_some()
        })
        .await;
        outcomes.extend(answer.map(|Answer { outcome, .. }| outcome.map(|bytes| bytes.to_vec())));
    }
    let unknown = CallFailure::Refused(Refusal::Unknown);
    assert_eq!(outcomes, [Ok(vec![0, 0, 0, 42]), Err(unknown)], "`Note` must return no answer");

    ours.rpc4.with(|rpc4| {
        rpc4.call(to, "Note", |bits| bits.write(7_u32), ordered).expect("free capacity");
        rpc4.signal(to, "Hit", |bits| bits.write(9_u32), ordered).expect("free capacity");
        rpc4.call(to, "Nothing", |bits| bits.write(1_u32), ordered).expect("free capacity");
    });
    ours.endpoint.wake();
    for line in ["noted 7", "first 9", "second 9"] {
        original.prints(line, |printed| printed == line).await;
    }
    let mut unknown = None;
    until("the C++ peer has reported an unknown function", || {
        unknown = ours.rpc4.with(|rpc4| rpc4.poll_unknown());
        unknown.is_some()
    })
    .await;
    assert_eq!(unknown.map(|(from, name)| (from, name.to_vec())), Some((to, b"Nothing".to_vec())));
    assert_eq!(ours.rpc4.with(|rpc4| rpc4.stats()), CallStats::default());
}
