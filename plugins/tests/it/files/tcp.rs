//! Files over TCP, where connections belong to no peer.

use rakwire::endpoint::Side;
use rakwire::raknet::RakNet;
use rakwire_plugins::files::{FileReceiver, FileSender, ReceiverEvent};

use super::tree::{LIMITS, MemorySource, MemoryStore, tree};
use crate::tcp::{attach, connect, end, until};

type Sender = FileSender<RakNet, MemorySource, 1, 8, 4_096>;
type Receiver = FileReceiver<RakNet, MemoryStore, 8, 4, 4_096>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_can_be_fetched_over_tcp() {
    let long: Vec<u8> = (0..300_000_u32).map(|at| (at.wrapping_mul(at) >> 5) as u8).collect();
    let files = tree(&[("a/long", &long), ("b/empty", b""), ("c", b"short")]);
    let ([here, there], _endpoints) = connect().await;
    let mut sender = Sender::new(MemorySource::new(&files));
    sender.serve_all();
    let (_there, at_there) = attach(there, Side::Server, sender);
    let (here, at_here) = attach(here, Side::Client, Receiver::new(MemoryStore::default(), LIMITS));
    here.with(|receiver| receiver.fetch(here.id())).expect("no other transfer");
    let ended = until(|| match here.with(FileReceiver::poll_event)? {
        ReceiverEvent::Ended(result) => Some(result),
        ReceiverEvent::Progress(_) => None,
    });
    let progress = ended.await.expect("all files arrive");
    assert_eq!(progress.done, progress.total);
    assert_eq!(here.with(|receiver| receiver.store.tree.clone()), files);
    end(here.connection(), [at_here, at_there]).await;
}
