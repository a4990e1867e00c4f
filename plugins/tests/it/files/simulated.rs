//! Transfers between peers over lossy paths in the simulator.

use core::time::Duration;

use proptest::prelude::*;
use rakwire::endpoint::{Capacity, ConnectionId, Event, Hooked, Peer, PluginHost, PluginKey, Protocol};
use rakwire::game_protocol::GameProtocol;
use rakwire::raknet::RakNet;
use rakwire::sim::{Conditions, Pair};
use rakwire_plugins::files::{FileReceiver, FileSender, Progress, ReceiverEvent, SenderEvent};

use super::tree::{LIMITS, MemorySource, MemoryStore, Tree};

type Sender<P> = FileSender<P, MemorySource, 2, 9, 1_500>;
type Receiver<P> = FileReceiver<P, MemoryStore, 8, 5, 1_500>;
type Peered<P, T> = Hooked<'static, P, PluginHost<T, 1>>;

const CONDITIONS: Conditions = Conditions {
    loss: 0.1,
    duplication: 0.05,
    reordering: 0.1,
    latency: Duration::from_millis(20),
    jitter: Duration::from_millis(5),
    bottleneck: None,
    bursts: None,
};

fn hooked<P: Protocol, T: rakwire::endpoint::Plugin<P>>(
    config: P::Config,
    plugin: T,
) -> (Peered<P, T>, PluginKey) {
    let mut host = PluginHost::new();
    let key = host.attach::<P>(plugin).expect("a free slot");
    let capacity = Capacity { connections: 2, blocks: 1_024, block_size: 256 };
    (Hooked::new(Peer::with_capacity(capacity, config), host), key)
}

/// A receiver that is connected to a sender.
struct Transfer<P: Protocol> {
    pair: Pair<Peered<P, Receiver<P>>, Peered<P, Sender<P>>>,
    receiver: PluginKey,
    sender: PluginKey,
    id: ConnectionId,
}

impl<P: Protocol> Transfer<P> {
    fn new(from: &Tree, store: MemoryStore, seed: u64) -> Self {
        Self::of(MemorySource::new(from), store, seed)
    }

    fn of(source: MemorySource, store: MemoryStore, seed: u64) -> Self {
        let mut config = P::config([2; 32]);
        *P::max_incoming(&mut config) = 1;
        let mut plugin = Sender::<P>::new(source);
        plugin.serve_all();
        let (b, sender) = hooked::<P, _>(config, plugin);
        let (a, receiver) = hooked::<P, _>(P::config([1; 32]), Receiver::<P>::new(store, LIMITS));
        let mut pair = Pair::new(a, b, Conditions { loss: 0.0, ..CONDITIONS }, seed);
        let id = pair.a.peer.connect(pair.now, pair.b_address).expect("a free slot");
        while !matches!(pair.a.poll_event(), Some(Event::Connected { .. })) {
            assert!(pair.step());
        }
        pair.set_conditions(CONDITIONS);
        let mut transfer = Self { pair, receiver, sender, id };
        transfer.receiver().fetch(id).expect("no other transfer");
        transfer
    }

    fn receiver(&mut self) -> &mut Receiver<P> {
        self.pair.a.hook.get_mut(self.receiver).expect("the plugin is attached")
    }

    fn step(&mut self) {
        assert!(self.pair.step());
        while let Some(event) = self.pair.a.poll_event() {
            assert!(!matches!(event, Event::Message { .. }), "the application must not receive a reply");
        }
        while let Some(event) = self.pair.b.poll_event() {
            assert!(!matches!(event, Event::Message { .. }), "the application must not receive a request");
        }
    }

    fn end(&mut self) -> Progress {
        loop {
            self.step();
            while let Some(event) = self.receiver().poll_event() {
                if let ReceiverEvent::Ended(result) = event {
                    return result.expect("the transfer completes");
                }
            }
        }
    }

    /// Returns the final event of the sender.
    fn end_at_sender(&mut self) -> SenderEvent {
        loop {
            let sender = self.pair.b.hook.get_mut(self.sender).expect("the plugin is attached");
            match sender.poll_event() {
                Some((_, event @ SenderEvent::Ended(_))) => return event,
                Some(_) => {}
                None => self.step(),
            }
        }
    }
}

/// Checks that a tree arrives unchanged, and that both sides report the completion.
fn arrives<P: Protocol>(tree: &Tree, seed: u64) {
    let mut transfer = Transfer::<P>::new(tree, MemoryStore::default(), seed);
    let progress = transfer.end();
    assert_eq!(transfer.end_at_sender(), SenderEvent::Ended(Ok(())));
    assert_eq!((&transfer.receiver().store.tree, progress.done), (tree, progress.total));
    assert_eq!(progress.received, progress.total.bytes);
}

/// Checks that an interrupted transfer completes on another connection.
fn resumes<P: Protocol>(tree: &Tree, seed: u64) -> Progress {
    let mut transfer = Transfer::<P>::new(tree, MemoryStore::default(), seed);
    let here = |transfer: &mut Transfer<P>| {
        let store = &transfer.receiver().store;
        store.tree.values().chain(store.parts.values()).map(Vec::len).sum::<usize>() as u64
    };
    while here(&mut transfer) < 20_000 {
        transfer.step();
    }
    let (now, id) = (transfer.pair.now, transfer.id);
    transfer.pair.a.peer.disconnect(now, id);
    let store = std::mem::take(&mut transfer.receiver().store);
    let mut transfer = Transfer::<P>::new(tree, store, seed + 1);
    let progress = transfer.end();
    assert_eq!(&transfer.receiver().store.tree, tree);
    progress
}

/// Checks that a tree replaces an older one, by patches or in full.
fn is_patched<P: Protocol>(old: &Tree, new: &Tree, seed: u64) {
    let mut store = MemoryStore::default();
    (store.tree, store.applies_patches) = (old.clone(), true);
    let mut transfer = Transfer::<P>::of(MemorySource::with_previous(new, old), store, seed);
    let progress = transfer.end();
    assert_eq!(progress.done, progress.total);
    let here = &transfer.receiver().store.tree;
    assert!(new.iter().all(|(path, bytes)| here.get(path) == Some(bytes)));
}

fn any_tree() -> impl Strategy<Value = Tree> {
    let bytes = prop::collection::vec(any::<u8>(), 0..6_000);
    prop::collection::btree_map("[a-c]{1,3}(/[a-c]{1,2}){0,2}", bytes, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_tree_arrives_over_raknet(tree in any_tree(), seed in 1_u64..1_000) {
        arrives::<RakNet>(&tree, seed);
    }

    #[test]
    fn any_tree_arrives_over_the_game_protocol(tree in any_tree(), seed in 1_u64..1_000) {
        arrives::<GameProtocol>(&tree, seed);
    }

    #[test]
    fn any_tree_replaces_an_older_tree(old in any_tree(), new in any_tree(), keep in 0_usize..2_000, seed in 1_u64..1_000) {
        // Files that exist in both versions begin with the same bytes.
        let mut new = new;
        for (path, bytes) in &mut new {
            if let Some(old) = old.get(path) {
                let same = keep.min(old.len());
                bytes.splice(..same.min(bytes.len()), old[..same].iter().copied());
            }
        }
        is_patched::<RakNet>(&old, &new, seed);
        is_patched::<GameProtocol>(&old, &new, seed);
    }
}

#[test]
fn transfers_over_raknet_resume() {
    let tree = [("a".to_owned(), vec![5; 15_000]), ("b".to_owned(), vec![6; 20_000])].into();
    for seed in 1..=5 {
        let progress = resumes::<RakNet>(&tree, seed);
        assert!(
            progress.received < progress.total.bytes,
            "a resumed transfer must not fetch all bytes again: {progress:?}"
        );
    }
}

/// The Game Protocol is unordered, so a partial file may have gaps, which the SHA-256 check detects.
#[test]
fn transfers_over_the_game_protocol_resume() {
    let tree = [("a".to_owned(), vec![5; 15_000]), ("b".to_owned(), vec![6; 20_000])].into();
    for seed in 1..=5 {
        let progress = resumes::<GameProtocol>(&tree, seed);
        assert_eq!(progress.done, progress.total);
    }
}
