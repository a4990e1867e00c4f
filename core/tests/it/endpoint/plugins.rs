//! Plugins and their host, in both protocols.

use core::cell::RefCell;
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;

use rakwire::endpoint::{
    AttachError, BySlot, Capacity, ConnectionId, Event, Hook, Hooked, Injected, LineWriter, MessageIds,
    MessageSender, Outcome, PacketLogger, Peer, Plugin, PluginHost, Protocol, Receipt, Side,
    UnconnectedEvents, Verdict,
};
use rakwire::game_protocol::GameProtocol;
use rakwire::raknet::{Config, Delivery, FilterGroup, MessageFilter, OutOfBand, RakNet, Reliability};
use rakwire::sim::{Conditions, Pair};
use rakwire::{Chunks, Instant, Machine, Piece};

const CONDITIONS: Conditions = Conditions {
    loss: 0.0,
    duplication: 0.0,
    reordering: 0.0,
    latency: Duration::from_millis(5),
    jitter: Duration::ZERO,
    bottleneck: None,
    bursts: None,
};
const SECOND: Duration = Duration::from_secs(1);

type Joined<P, H> = Pair<Peer<'static, P>, Hooked<'static, P, H>>;

fn to_vec(message: &dyn Chunks) -> Vec<u8> {
    let (mut bytes, mut next) = (Vec::new(), Some(Piece::FIRST));
    while let Some(at) = next {
        let (piece, after) = message.piece(at);
        bytes.extend_from_slice(piece);
        next = after;
    }
    bytes
}

fn pair<P: Protocol, H: Hook<P>>(hook: H) -> Joined<P, H> {
    // A single connection, so that the next one reuses its slot.
    let capacity = Capacity { connections: 1, blocks: 512, block_size: 128 };
    let mut config = P::config([2; 32]);
    *P::max_incoming(&mut config) = 1;
    let server = Hooked::new(Peer::with_capacity(capacity, config), hook);
    let capacity = Capacity { connections: 4, ..capacity };
    Pair::new(Peer::with_capacity(capacity, P::config([1; 32])), server, CONDITIONS, 1)
}

/// The events of the applications at both peers.
#[derive(Default)]
struct Received {
    client: Vec<Vec<u8>>,
    server: Vec<Vec<u8>>,
    client_id: Option<ConnectionId>,
    server_id: Option<ConnectionId>,
}

/// Executes the next event before `end`; without one, advances the clock to `end` and returns false.
fn step<P: Protocol, H: Hook<P>>(pair: &mut Joined<P, H>, end: Instant) -> bool {
    pair.transmit();
    let timeouts = [pair.a.poll_timeout(), pair.b.poll_timeout()];
    let on_their_way = [pair.forth().next_arrival(), pair.back().next_arrival()];
    let next = timeouts.into_iter().chain(on_their_way).flatten().min();
    let is_in_time = next.is_some_and(|next| next <= end);
    if is_in_time {
        pair.step();
    } else {
        pair.now = end;
    }
    is_in_time
}

fn run<P: Protocol, H: Hook<P>>(pair: &mut Joined<P, H>, time: Duration) -> Received {
    let (end, mut received) = (pair.now + time, Received::default());
    loop {
        let goes_on = step(pair, end);
        while let Some(event) = pair.a.poll_event() {
            if let Event::Connected { id, .. } = event {
                received.client_id = Some(id);
            } else if let Event::Message { message, .. } = event {
                received.client.push(message.to_vec());
            }
        }
        while let Some(event) = pair.b.poll_event() {
            if let Event::Connected { id, .. } = event {
                received.server_id = Some(id);
            } else if let Event::Message { message, .. } = event {
                received.server.push(message.to_vec());
            }
        }
        if !goes_on {
            return received;
        }
    }
}

fn connect<P: Protocol, H: Hook<P>>(pair: &mut Joined<P, H>) -> (ConnectionId, ConnectionId) {
    let id = pair.a.connect(pair.now, pair.b_address).expect("a free slot");
    let received = run(pair, Duration::from_millis(200));
    if received.server_id.is_none() {
        // A server of the Game Protocol accepts a client with its first message.
        pair.a.send(pair.now, id, b"\xFFhere", P::Delivery::default()).expect("an open connection");
        let later = run(pair, Duration::from_millis(200));
        return (id, later.server_id.expect("an open connection"));
    }
    (received.client_id.expect("an open connection"), received.server_id.expect("an open connection"))
}

fn send<P: Protocol, H: Hook<P>>(pair: &mut Joined<P, H>, id: ConnectionId, messages: &[&[u8]]) {
    for message in messages {
        pair.a.send(pair.now, id, message, P::Delivery::default()).expect("free memory");
        // A pause between messages preserves their order in both protocols.
        step(pair, pair.now + Duration::from_millis(20));
    }
}

/// A plugin that responds to each message with its id by sending the length of the message.
struct Answerer {
    own: u8,
    connected: Vec<ConnectionId>,
    ended: Vec<ConnectionId>,
    answers: VecDeque<(ConnectionId, u8)>,
    asked: usize,
}

impl Answerer {
    fn new(own: u8) -> Self {
        Self { own, connected: Vec::new(), ended: Vec::new(), answers: VecDeque::new(), asked: 0 }
    }
}

impl<P: Protocol> Plugin<P> for Answerer {
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&[self.own])
    }

    fn on_connected(&mut self, _: Instant, id: ConnectionId, remote: SocketAddr, _: P::Identity, side: Side) {
        assert_eq!((side, remote.port()), (Side::Server, 1));
        self.connected.push(id);
    }

    fn on_disconnected(&mut self, _: Instant, id: ConnectionId, _: P::DisconnectReason) {
        self.ended.push(id);
    }

    fn on_message(&mut self, _: Instant, id: ConnectionId, _: P::Delivery, message: &dyn Chunks) -> Verdict {
        self.answers.push_back((id, message.total() as u8));
        Verdict::Drop
    }

    fn update(&mut self, _: Instant, sender: &mut dyn MessageSender<P>) {
        self.asked += 1;
        while let Some((id, length)) = self.answers.front().copied() {
            if sender.send(id, &[self.own, length], P::Delivery::default()).is_err() {
                return;
            }
            self.answers.pop_front();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (!self.answers.is_empty()).then_some(Instant::ZERO)
    }
}

fn a_plugin_consumes_and_answers_messages_with_its_id<P: Protocol>() {
    let mut host = PluginHost::<Answerer, 2>::new();
    let key = host.attach::<P>(Answerer::new(0x85)).expect("a free message id");
    let mut pair = pair::<P, _>(host);
    let (client, server) = connect(&mut pair);
    send(&mut pair, client, &[b"\x85four", b"\x86other", b"\x85", b"\x87last"]);
    let received = run(&mut pair, SECOND);
    assert_eq!(received.server, [&b"\x86other"[..], b"\x87last"]);
    assert_eq!(received.client, [[0x85, 5], [0x85, 1]]);
    let stats = pair.b.hook.stats(key).expect("an attached plugin");
    assert_eq!((stats.offered, stats.consumed, stats.sent, stats.unsent), (2, 2, 2, 0));
    assert_eq!(pair.b.hook.get(key).expect("an attached plugin").connected, [server]);
    pair.a.disconnect(pair.now, client);
    run(&mut pair, 5 * SECOND);
    assert_eq!(pair.b.hook.get(key).expect("an attached plugin").ended, [server]);
    assert_eq!(pair.b.peer.blocks_available(), pair.b.peer.blocks());
}

fn a_plugin_can_be_attached_and_detached_during_a_connection<P: Protocol>() {
    let mut pair = pair::<P, _>(PluginHost::<Answerer, 2>::new());
    let (client, server) = connect(&mut pair);
    send(&mut pair, client, &[b"\x85"]);
    assert_eq!(run(&mut pair, SECOND).server, [b"\x85"]);
    let key = pair.b.hook.attach::<P>(Answerer::new(0x85)).expect("a free message id");
    send(&mut pair, client, &[b"\x85"]);
    let received = run(&mut pair, SECOND);
    assert_eq!((received.server.len(), received.client), (0, vec![vec![0x85, 1]]));
    let plugin = pair.b.hook.detach(key).expect("an attached plugin");
    assert_eq!(
        plugin.connected,
        [server],
        "a plugin must be notified of connections opened before it was attached"
    );
    send(&mut pair, client, &[b"\x85"]);
    let received = run(&mut pair, SECOND);
    assert_eq!((received.server, received.client.len()), (vec![vec![0x85]], 0));
    assert!(pair.b.hook.get(key).is_none() && pair.b.hook.detach(key).is_none());
}

#[test]
fn two_plugins_cannot_share_a_message_id() {
    let mut host = PluginHost::<Answerer, 2>::new();
    let first = host.attach::<RakNet>(Answerer::new(0x85)).expect("a free message id");
    assert_eq!(host.attach::<RakNet>(Answerer::new(0x85)), Err(AttachError::IdTaken(0x85)));
    let second = host.attach::<RakNet>(Answerer::new(0x84)).expect("a free message id");
    assert_eq!(host.attach::<RakNet>(Answerer::new(0x83)), Err(AttachError::Full));
    assert!(host.keys().eq([first, second]));
    assert!(host.detach(first).is_some());
    let third = host.attach::<RakNet>(Answerer::new(0x85)).expect("a free message id");
    assert_ne!(third, first, "the key of a detached plugin must not be reused");
}

/// A plugin that doubles the bytes of messages that begin with 0x90, and delays those that begin with 0x91.
#[derive(Default)]
struct Changer {
    ready: VecDeque<(ConnectionId, Vec<u8>)>,
    kept: VecDeque<(Instant, ConnectionId, Vec<u8>)>,
}

impl<P: Protocol> Plugin<P> for Changer {
    fn watches_all(&self) -> bool {
        true
    }

    fn on_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        _: P::Delivery,
        message: &dyn Chunks,
    ) -> Verdict {
        let bytes = to_vec(message);
        match bytes[0] {
            0x90 => self.ready.push_back((id, [&bytes[..], &bytes].concat())),
            0x91 => self.kept.push_back((now + 2 * SECOND, id, bytes)),
            _ => return Verdict::Pass,
        }
        Verdict::Drop
    }

    fn on_send(&mut self, _: Instant, _: ConnectionId, message: &[u8], _: P::Delivery) -> Verdict {
        if message == b"\x92secret" { Verdict::Drop } else { Verdict::Pass }
    }

    fn inject(&mut self, of: Option<ConnectionId>, take: &mut dyn FnMut(Injected<'_, P>) -> bool) {
        let is_wanted = |id: ConnectionId| of.is_none_or(|of| of == id);
        let Some(at) = self.ready.iter().position(|(id, _)| is_wanted(*id)) else { return };
        let (id, message) = &self.ready[at];
        if take(Injected { id: *id, delivery: P::Delivery::default(), message }) {
            self.ready.remove(at);
        }
    }

    fn update(&mut self, now: Instant, _: &mut dyn MessageSender<P>) {
        while self.kept.front().is_some_and(|(due, ..)| *due <= now) {
            self.ready.extend(self.kept.pop_front().map(|(_, id, bytes)| (id, bytes)));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.kept.front().map(|(due, ..)| *due)
    }
}

fn a_plugin_replaces_messages_in_order_and_delays_others<P: Protocol>() {
    let mut host = PluginHost::<Changer, 1>::new();
    let key = host.attach::<P>(Changer::default()).expect("a free plugin slot");
    let mut pair = pair::<P, _>(host);
    let (client, server) = connect(&mut pair);
    // One message takes several blocks. The application polls only after all have arrived, so several are pending.
    let long = [&[0x90][..], &[7; 300]].concat();
    send(&mut pair, client, &[b"\x86a", b"\x90b", b"\x91kept", b"\x86c", &long, b"\x86d"]);
    let end = pair.now + Duration::from_millis(100);
    while step(&mut pair, end) {}
    let mut received = Vec::new();
    while let Some(event) = pair.b.poll_event_of(server) {
        if let Event::Message { id, message, .. } = event {
            assert_eq!(id, server);
            received.push(message.to_vec());
        }
    }
    let doubled = [&long[..], &long].concat();
    let expected: Vec<Vec<u8>> =
        vec![b"\x86a".to_vec(), b"\x90b\x90b".to_vec(), b"\x86c".to_vec(), doubled, b"\x86d".to_vec()];
    assert_eq!(received, expected);
    let (due, ..) = pair.b.hook.get(key).expect("an attached plugin").kept[0];
    assert!(due > pair.now);
    let late = loop {
        assert!(pair.step());
        if let Some(Event::Message { message, .. }) = pair.b.poll_event() {
            break message.to_vec();
        }
    };
    assert_eq!((late, pair.now >= due), (b"\x91kept".to_vec(), true));
    let stats = pair.b.hook.stats(key).expect("an attached plugin");
    assert_eq!((stats.consumed, stats.injected), (3, 3));

    let now = pair.now;
    assert!(pair.b.send(now, server, b"\x92secret", P::Delivery::default()).is_err());
    assert!(pair.b.send(now, server, b"\x92public", P::Delivery::default()).is_ok());
    assert_eq!(pair.b.hook.stats(key).expect("an attached plugin").refused, 1);
    pair.a.disconnect(now, client);
    run(&mut pair, 5 * SECOND);
    assert_eq!(pair.b.peer.blocks_available(), pair.b.peer.blocks());
}

/// Messages injected for a closed connection, and empty ones, are dropped without blocking others.
fn undeliverable_injected_messages_are_dropped<P: Protocol>() {
    let mut host = PluginHost::<Changer, 1>::new();
    let key = host.attach::<P>(Changer::default()).expect("a free plugin slot");
    let mut pair = pair::<P, _>(host);
    let (client, gone) = connect(&mut pair);
    pair.a.disconnect(pair.now, client);
    run(&mut pair, 5 * SECOND);
    let (_, server) = connect(&mut pair);
    let changer = pair.b.hook.get_mut(key).expect("an attached plugin");
    changer.ready.extend([(gone, vec![1]), (server, Vec::new()), (server, vec![3])]);
    assert_eq!(run(&mut pair, SECOND).server, [[3]]);
    assert!(pair.b.hook.get(key).expect("an attached plugin").ready.is_empty());
}

fn an_injected_message_without_memory_is_retried<P: Protocol>() {
    let mut host = PluginHost::<Changer, 1>::new();
    let key = host.attach::<P>(Changer::default()).expect("a free plugin slot");
    let mut pair = pair::<P, _>(host);
    let (client, server) = connect(&mut pair);
    // As large as the whole memory of the peer.
    let changer = pair.b.hook.get_mut(key).expect("an attached plugin");
    changer.ready.extend([(server, vec![1; 512 * 128 + 1]), (server, vec![2])]);
    send(&mut pair, client, &[b"\x86a"]);
    assert_eq!(
        run(&mut pair, SECOND).server,
        [b"\x86a"],
        "a received message must not wait for the injected one"
    );
    let changer = pair.b.hook.get_mut(key).expect("an attached plugin");
    changer.ready[0].1.truncate(10);
    assert_eq!(run(&mut pair, SECOND).server, [vec![1; 10], vec![2]]);
}

/// A plugin with messages that do not fit into the send queue is polled again after a delay.
fn a_plugin_that_cannot_send_is_not_polled_in_a_busy_loop<P: Protocol>() {
    let mut host = PluginHost::<Answerer, 1>::new();
    let key = host.attach::<P>(Answerer::new(0x85)).expect("a free message id");
    let mut pair = pair::<P, _>(host);
    let (_, server) = connect(&mut pair);
    // The client has vanished, so no message is acknowledged.
    let answerer = pair.b.hook.get_mut(key).expect("an attached plugin");
    answerer.answers.extend((0..5_000).map(|number| (server, number as u8)));
    let (mut buffer, end) = (vec![0; P::MAX_DATAGRAM], pair.now + Duration::from_millis(500));
    while pair.now < end {
        pair.b.handle_timeout(pair.now);
        while pair.b.poll_transmit(pair.now, &mut buffer).is_some() {}
        let next = pair.b.poll_timeout().expect("the plugin has work to do");
        assert!(next > pair.now, "the peer must not be polled in a busy loop");
        pair.now = next;
    }
    let answerer = pair.b.hook.get(key).expect("an attached plugin");
    assert!(!answerer.answers.is_empty());
    assert!((10..=101).contains(&answerer.asked), "{}", answerer.asked);
    assert!(pair.b.hook.stats(key).expect("an attached plugin").unsent > 0);
}

/// The host stores references, so the application keeps access to its plugins.
fn the_application_can_access_an_attached_plugin<P: Protocol>() {
    let (answerer, changer) = (RefCell::new(Answerer::new(0x85)), RefCell::new(Changer::default()));
    let mut host = PluginHost::<&RefCell<dyn Plugin<P>>, 2>::new();
    // The pair owns its hooks, so this test leaks its plugins.
    let (answerer, changer) = (&*Box::leak(Box::new(answerer)), &*Box::leak(Box::new(changer)));
    host.attach::<P>(changer).expect("a free plugin slot");
    host.attach::<P>(answerer).expect("a free plugin slot");
    let mut pair = pair::<P, _>(host);
    let (client, server) = connect(&mut pair);
    changer.borrow_mut().ready.push_back((server, b"\x86injected".to_vec()));
    answerer.borrow_mut().answers.push_back((server, 9));
    send(&mut pair, client, &[b"\x85"]);
    let received = run(&mut pair, SECOND);
    assert_eq!(
        (received.server, received.client),
        (vec![b"\x86injected".to_vec()], vec![vec![0x85, 9], vec![0x85, 1]])
    );
}

/// Events that the filter drops reach no plugin, and the log contains every datagram.
#[test]
fn a_filter_and_a_packet_logger_run_before_plugins() {
    let mut filter = MessageFilter::<2>::new();
    filter.deny(FilterGroup::DEFAULT, [0x85]);
    let mut host = PluginHost::<Answerer, 1>::new();
    let key = host.attach::<RakNet>(Answerer::new(0x85)).expect("a free message id");
    let log = PacketLogger(LineWriter::<RakNet, _>::new(String::new()));
    let mut pair = pair::<RakNet, _>(((log, filter), host));
    let (client, server) = connect(&mut pair);
    send(&mut pair, client, &[b"\x85", b"\x86"]);
    assert_eq!(run(&mut pair, SECOND).server, [b"\x86"]);
    assert_eq!(pair.b.hook.1.stats(key).expect("an attached plugin").offered, 0);
    assert!(pair.b.hook.0.1.set_group(server, FilterGroup(1)));
    send(&mut pair, client, &[b"\x85"]);
    assert_eq!(run(&mut pair, SECOND).client, [[0x85, 1]]);
    let stats = pair.b.peer.stats();
    let lines = pair.b.hook.0.0.0.target.lines().count() as u64;
    assert_eq!(lines, stats.datagrams_received + stats.datagrams_sent);
}

/// The message filter, attached as a plugin instead of a hook.
#[test]
fn a_message_filter_works_as_a_plugin() {
    let mut filter = MessageFilter::<2>::new();
    filter.deny(FilterGroup::DEFAULT, [0x85]);
    let mut host = PluginHost::<Box<dyn Plugin<RakNet>>, 2>::new();
    host.attach::<RakNet>(Box::new(filter)).expect("a free plugin slot");
    let key = host.attach::<RakNet>(Box::new(Answerer::new(0x85))).expect("a free message id");
    let mut pair = pair::<RakNet, _>(host);
    let (client, _) = connect(&mut pair);
    send(&mut pair, client, &[b"\x85", b"\x86"]);
    assert_eq!(run(&mut pair, SECOND).server, [b"\x86"]);
    assert_eq!(pair.b.hook.stats(key).expect("an attached plugin").offered, 0);
}

/// A plugin that sends a message with a receipt on each new connection, and drops out-of-band messages of one id.
#[derive(Default)]
struct Reporter {
    unsent: Vec<ConnectionId>,
    waiting: Vec<Receipt>,
    outcomes: Vec<Outcome>,
    received: Vec<(SocketAddr, Vec<u8>)>,
}

impl Plugin<RakNet> for Reporter {
    fn on_connected(
        &mut self,
        _: Instant,
        id: ConnectionId,
        _: SocketAddr,
        _: <RakNet as Protocol>::Identity,
        _: Side,
    ) {
        self.unsent.push(id);
    }

    fn on_receipt(&mut self, _: Instant, _: ConnectionId, receipt: Receipt, outcome: Outcome) -> Verdict {
        let Some(at) = self.waiting.iter().position(|other| *other == receipt) else { return Verdict::Pass };
        self.waiting.remove(at);
        self.outcomes.push(outcome);
        Verdict::Drop
    }

    fn on_out_of_band(
        &mut self,
        _: Instant,
        from: SocketAddr,
        _: <RakNet as Protocol>::Identity,
        data: &dyn Chunks,
    ) -> Verdict {
        let data = to_vec(data);
        if data[0] != 0x85 {
            return Verdict::Pass;
        }
        self.received.push((from, data));
        Verdict::Drop
    }

    fn update(&mut self, _: Instant, sender: &mut dyn MessageSender<RakNet>) {
        let delivery = Delivery::new(Reliability::UnreliableWithReceipt);
        for id in self.unsent.drain(..) {
            let receipt = sender.send(id, b"\x85tell", delivery).expect("free memory");
            self.waiting.push(receipt.expect("a receipt"));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (!self.unsent.is_empty()).then_some(Instant::ZERO)
    }
}

/// Returns the receipts that reach the application of a server with one plugin.
fn receipts(pair: &mut Joined<RakNet, PluginHost<Reporter, 1>>, time: Duration) -> Vec<(Receipt, Outcome)> {
    let (end, mut events) = (pair.now + time, Vec::new());
    loop {
        let goes_on = step(pair, end);
        while pair.a.poll_event().is_some() {}
        while let Some(event) = pair.b.poll_event() {
            if let Event::Receipt { receipt, outcome, .. } = event {
                events.push((receipt, outcome));
            }
        }
        if !goes_on {
            return events;
        }
    }
}

/// Receipts for a plugin's messages reach the plugin, not the application.
#[test]
fn a_plugin_receives_the_receipts_for_its_messages() {
    for (loss, expected) in [(0.0, Outcome::Acknowledged), (1.0, Outcome::Lost)] {
        let mut pair = pair::<RakNet, _>(PluginHost::<Reporter, 1>::new());
        let (_, server) = connect(&mut pair);
        let key = pair.b.hook.attach::<RakNet>(Reporter::default()).expect("a free plugin slot");
        pair.back().set_conditions(Conditions { loss, ..CONDITIONS });
        let delivery = Delivery::new(Reliability::UnreliableWithReceipt);
        let own =
            pair.b.send(pair.now, server, b"\x86own", delivery).expect("free memory").expect("a receipt");
        assert_eq!(receipts(&mut pair, 5 * SECOND), [(own, expected)]);
        let plugin = pair.b.hook.get(key).expect("an attached plugin");
        assert_eq!((&plugin.waiting[..], &plugin.outcomes[..]), (&[][..], &[expected][..]));
    }
}

#[test]
fn a_plugin_receives_out_of_band_messages() {
    let capacity = Capacity { connections: 1, blocks: 64, block_size: 128 };
    let mut config = Config::new([2; 32]);
    config.out_of_band = OutOfBand::Accept;
    let mut host = PluginHost::<Reporter, 1>::new();
    let key = host.attach::<RakNet>(Reporter::default()).expect("a free plugin slot");
    let receiver = Hooked::new(Peer::with_capacity(capacity, config), host);
    let sender = Peer::with_capacity(capacity, Config::new([1; 32]));
    let mut pair: Joined<RakNet, _> = Pair::new(sender, receiver, CONDITIONS, 1);
    for message in [&b"\x85plugin"[..], b"\x86application"] {
        pair.a.send_out_of_band(pair.now, pair.b_address, message).expect("space in the queue");
    }
    let end = pair.now + SECOND;
    while step(&mut pair, end) {}
    let mut events = Vec::new();
    while let Some(event) = pair.b.poll_unconnected(UnconnectedEvents::Messages) {
        if let Event::OutOfBand { data, .. } = event {
            events.push(data.to_vec());
        }
    }
    assert_eq!(events, [b"\x86application"]);
    let plugin = pair.b.hook.get(key).expect("an attached plugin");
    assert_eq!(plugin.received, [(pair.a_address, b"\x85plugin".to_vec())]);
    assert_eq!(pair.b.peer.blocks_available(), pair.b.peer.blocks());
}

#[test]
fn a_plugin_table_distinguishes_connections_that_reuse_a_slot() {
    let mut pair = pair::<RakNet, _>(PluginHost::<Answerer, 1>::new());
    let (client, first) = connect(&mut pair);
    let mut table = BySlot::<u8, 2>::new();
    assert!(table.insert(first, 1));
    pair.a.disconnect(pair.now, client);
    run(&mut pair, 5 * SECOND);
    let (_, second) = connect(&mut pair);
    assert_eq!((first.slot(), table.get(second)), (second.slot(), None));
    assert_eq!(table.remove(second), None);
    assert!(table.insert(second, 2), "the slot of the first connection must be free");
    assert_eq!((table.get(first), table.get(second)), (None, Some(&2)));
    assert!(!BySlot::<u8, 0>::new().insert(second, 3));
    table.retain(|_, value| *value != 2);
    assert!(table.is_empty());
}

macro_rules! by_both_protocols {
    ($($test:ident),+ $(,)?) => {
        mod raknet {
            $(#[test]
            fn $test() {
                super::$test::<super::RakNet>();
            })+
        }

        mod game_protocol {
            $(#[test]
            fn $test() {
                super::$test::<super::GameProtocol>();
            })+
        }
    };
}

by_both_protocols!(
    an_injected_message_without_memory_is_retried,
    a_plugin_consumes_and_answers_messages_with_its_id,
    the_application_can_access_an_attached_plugin,
    a_plugin_that_cannot_send_is_not_polled_in_a_busy_loop,
    a_plugin_replaces_messages_in_order_and_delays_others,
    a_plugin_can_be_attached_and_detached_during_a_connection,
    undeliverable_injected_messages_are_dropped,
);
