//! Peers that send false data, flood, or request files that they may not read.

use proptest::prelude::*;
use rakwire::Instant;
use rakwire::endpoint::Plugin;
use rakwire::raknet::RakNet;
use rakwire_plugins::files::{Failure, Limits, Reason, ReceiverEvent, Reply, Request, SenderEvent, Totals};

use super::tree::{
    LIMITS, MemorySource, Receiver, Sender, Tree, connect, exchange, last_events, patching_receiver, receive,
    receiver, sender, transmit, tree,
};
use crate::support::{Collector, connections};

fn encoded(request: Request) -> Vec<u8> {
    let mut buffer = [0; 64];
    let length = request.encode(&mut buffer).expect("enough space");
    buffer[..length].to_vec()
}

fn files() -> Tree {
    tree(&[("a", b"one"), ("b", &[7; 900]), ("c", b""), ("d/e", b"four")])
}

/// Returns the reason why a transfer from a sender with false data failed, and checks that no wrong file was stored.
fn failure_of_lie(lie: impl FnOnce(&mut MemorySource), limits: Limits) -> Reason {
    let id = connections::<RakNet>(1)[0];
    let mut from = sender(&files());
    lie(&mut from.source);
    let mut to = Receiver::new(receiver(&Tree::new()).store, limits);
    connect(&mut from, id);
    to.fetch(id).expect("no other transfer");
    exchange(&mut from, &mut to, id, 10_000);
    let (at_sender, at_receiver) = last_events(&mut from, &mut to);
    let Some(ReceiverEvent::Ended(Err(Failure::Local(reason)))) = at_receiver else {
        panic!("{at_receiver:?}")
    };
    assert_eq!(at_sender, Some(SenderEvent::Ended(Err(Failure::Remote(reason)))));
    let files = files();
    assert!(to.store.tree.iter().all(|(path, bytes)| files.get(path) == Some(bytes)), "{reason}");
    reason
}

#[test]
fn wrong_digests_sizes_and_paths_are_detected() {
    let reason = |lie: fn(&mut MemorySource)| failure_of_lie(lie, LIMITS);
    assert_eq!(reason(|source| source.files[1].digest = [0; 32]), Reason::BadDigest);
    assert_eq!(reason(|source| source.files[2].digest = [0; 32]), Reason::BadDigest);
    assert_eq!(reason(|source| source.files[1].bytes[800] = 8), Reason::BadDigest);
    // A file of the wrong length, with a matching total.
    assert_eq!(
        reason(|source| {
            source.files[1].size += 1;
            source.totals.bytes += 1;
        }),
        Reason::BadDigest
    );
    for path in ["../a", "/a", "a/./b", "a\\b", ""] {
        let source = |source: &mut MemorySource| source.files[0].path = path.as_bytes().to_vec();
        assert_eq!(failure_of_lie(source, LIMITS), Reason::BadPath, "{path}");
    }
}

#[test]
fn inconsistent_manifest_is_detected() {
    let reason = |lie: fn(&mut MemorySource)| failure_of_lie(lie, LIMITS);
    assert_eq!(reason(|source| source.files[1].size = u64::MAX), Reason::BadManifest);
    assert_eq!(reason(|source| source.totals.bytes += 1), Reason::BadManifest);
    assert_eq!(reason(|source| source.totals.bytes -= 1), Reason::BadManifest);
    assert_eq!(reason(|source| source.totals.files -= 1), Reason::BadManifest);
    assert_eq!(reason(|source| source.files.swap(0, 1)), Reason::BadManifest);
    assert_eq!(
        reason(|source| source.files[1].path = b"a".to_vec()),
        Reason::BadManifest,
        "a duplicate path"
    );
}

#[test]
fn oversized_transfers_are_refused_before_any_data() {
    let unchanged: fn(&mut MemorySource) = |_| {};
    assert_eq!(failure_of_lie(unchanged, Limits { files: 3, ..LIMITS }), Reason::TooManyFiles);
    assert_eq!(failure_of_lie(unchanged, Limits { bytes: 906, ..LIMITS }), Reason::TooManyBytes);
    assert_eq!(failure_of_lie(unchanged, Limits { file_bytes: 899, ..LIMITS }), Reason::FileTooLong);
    let endless = |source: &mut MemorySource| source.totals = Totals { files: u32::MAX, bytes: u64::MAX };
    assert_eq!(failure_of_lie(endless, LIMITS), Reason::TooManyFiles);
}

/// Creates a receiver with `requests` open requests, and returns both.
fn waiting(requests: usize) -> (Receiver, Vec<Request>) {
    let id = connections::<RakNet>(1)[0];
    let (mut from, mut to) = (sender(&files()), receiver(&Tree::new()));
    connect(&mut from, id);
    to.fetch(id).expect("no other transfer");
    let mut asked = transmit(&mut to, Instant::ZERO);
    for _ in 1..requests {
        asked.iter().for_each(|message| receive(&mut from, id, message));
        transmit(&mut from, Instant::ZERO).iter().for_each(|message| receive(&mut to, id, message));
        asked = transmit(&mut to, Instant::ZERO);
    }
    (to, asked.iter().filter_map(|message| Request::decode(message)).collect())
}

#[test]
fn replies_that_do_not_match_a_request_abort_the_transfer() {
    let ids = connections::<RakNet>(2);
    let reply = |reply: Reply<'_>| {
        let mut buffer = [0; 512];
        let length = reply.encode(&mut buffer).expect("enough space");
        buffer[..length].to_vec()
    };
    let (_, asked) = waiting(2);
    let number = asked.iter().find_map(|request| {
        if let Request::Read { number, length: 3, .. } = request { Some(*number) } else { None }
    });
    let number = number.expect("the first file was requested");
    for bytes in [&b"on"[..], b"ones", b""] {
        let (mut to, _) = waiting(2);
        receive(&mut to, ids[0], &reply(Reply::Data { number, bytes }));
        let ended = std::iter::from_fn(|| to.poll_event()).last();
        assert_eq!(ended, None, "the transfer must not end before the sender is notified");
        let sent = transmit(&mut to, Instant::ZERO);
        assert_eq!(Request::decode(&sent[0]), Some(Request::Failed(Reason::BadMessage)));
    }
    // Other peers cannot reply, and a second reply to a request is ignored.
    let (mut to, _) = waiting(2);
    let data = reply(Reply::Data { number, bytes: b"one" });
    receive(&mut to, ids[1], &data);
    receive(&mut to, ids[1], &reply(Reply::Failed(Reason::Cancelled)));
    assert_eq!((to.stats().unexpected, to.store.parts["a"].len()), (2, 0));
    receive(&mut to, ids[0], &data);
    receive(&mut to, ids[0], &data);
    assert_eq!((to.stats().unexpected, to.store.parts["a"].len()), (3, 3));
}

/// Returns the request that a receiver sends after an empty page of a manifest with four files.
fn reply_to_empty_page(chunk: u32, window: u16) -> Option<Request> {
    let id = connections::<RakNet>(1)[0];
    let (mut to, asked) = waiting(1);
    let [Request::List { number, first: 0, count: 3 }] = asked[..] else { panic!("{asked:?}") };
    let totals = Totals { files: 4, bytes: 907 };
    let entries = rakwire_plugins::files::Entries::NONE;
    let page = rakwire_plugins::files::Page { number, totals, chunk, window, first: 0, entries };
    let mut buffer = [0; 64];
    let length = Reply::Page(page).encode(&mut buffer).expect("enough space");
    receive(&mut to, id, &buffer[..length]);
    Request::decode(&transmit(&mut to, Instant::ZERO)[0])
}

/// A sender that sends empty pages gets no further request.
#[test]
fn an_empty_manifest_page_aborts_the_transfer() {
    assert_eq!(reply_to_empty_page(9, 9), Some(Request::Failed(Reason::BadManifest)));
}

#[test]
fn a_zero_chunk_size_or_window_is_rejected() {
    for (chunk, window) in [(0, 9), (9, 0)] {
        assert_eq!(reply_to_empty_page(chunk, window), Some(Request::Failed(Reason::BadMessage)));
    }
}

#[test]
fn requests_outside_the_manifest_are_refused() {
    let id = connections::<RakNet>(1)[0];
    let number = 3;
    let read = |file, offset, length| Request::Read { number, file, offset, length };
    for request in [
        read(4, 0, 1),
        read(u32::MAX, 0, 1),
        read(0, 3, 1),
        read(0, 0, 4),
        read(0, u64::MAX, 2),
        read(0, 0, 0),
        read(1, 0, 395),
        read(1, 0, u32::MAX),
        Request::List { number, first: 5, count: 1 },
        Request::List { number, first: 0, count: 0 },
    ] {
        let mut from = sender(&files());
        connect(&mut from, id);
        receive(&mut from, id, &encoded(request));
        let replies = transmit(&mut from, Instant::ZERO);
        let refused = replies.iter().map(|reply| Reply::decode(reply)).collect::<Vec<_>>();
        assert_eq!(
            (refused, from.source.reads),
            (vec![Some(Reply::Failed(Reason::Unknown))], 0),
            "{request:?}"
        );
        let ended = Some((id, SenderEvent::Ended(Err(Failure::Local(Reason::Unknown)))));
        assert_eq!((from.poll_event(), from.poll_event()), (ended, None));
    }
}

#[test]
fn files_are_served_only_to_selected_peers() {
    let ids = connections::<RakNet>(4);
    let mut from = Sender::new(MemorySource::new(&files()));
    ids.iter().for_each(|id| connect(&mut from, *id));
    assert!(from.serve(ids[1]) && !from.serve(ids[3]), "the plugin has three slots");
    let list = encoded(Request::List { number: 1, first: 0, count: 9 });
    for id in &ids {
        (0..50).for_each(|_| receive(&mut from, *id, &list[..]));
        receive(&mut from, *id, &[128, 9]);
    }
    let mut collector = Collector::new();
    let plugin: &mut dyn Plugin<RakNet> = &mut from;
    plugin.update(Instant::ZERO, &mut collector);
    let sent = |id| {
        let messages = collector.messages.iter().filter(move |(to, ..)| *to == id);
        messages.filter_map(|(_, bytes, _)| Reply::decode(bytes)).collect::<Vec<_>>()
    };
    assert_eq!(sent(ids[0]), [Reply::Failed(Reason::Forbidden)]);
    assert_eq!(sent(ids[1]), [Reply::Failed(Reason::TooManyRequests)]);
    assert_eq!((sent(ids[2]).len(), sent(ids[3]).len()), (1, 0));
    assert_eq!((from.stats().refused, from.stats().malformed), (150, 4));
}

/// A receiver above the limit of open requests gets no replies. Other receivers do.
#[test]
fn request_flood_is_limited_and_delays_no_other_receiver() {
    let ids = connections::<RakNet>(2);
    let (mut from, mut to) = (sender(&files()), receiver(&Tree::new()));
    ids.iter().for_each(|id| connect(&mut from, *id));
    let read = encoded(Request::Read { number: 1, file: 1, offset: 0, length: 100 });
    (0..1_000).for_each(|_| receive(&mut from, ids[0], &read));
    assert_eq!(from.source.reads, 0);
    // Five requests are open, and the receiver reads no replies.
    transmit(&mut from, Instant::ZERO);
    (0..5).for_each(|_| receive(&mut from, ids[0], &read));
    to.fetch(ids[1]).expect("no other transfer");
    loop {
        transmit(&mut to, Instant::ZERO).iter().for_each(|message| receive(&mut from, ids[1], message));
        let mut collector = Collector { blocked: Some(ids[0]), ..Collector::new() };
        let plugin: &mut dyn Plugin<RakNet> = &mut from;
        plugin.update(Instant::ZERO, &mut collector);
        if collector.messages.is_empty() {
            break;
        }
        collector.bytes().iter().for_each(|message| receive(&mut to, ids[1], message));
    }
    assert_eq!(to.store.tree, files());
}

/// The receivers take turns, one reply at a time.
#[test]
fn receivers_share_the_send_capacity() {
    let ids = connections::<RakNet>(2);
    let mut from = sender(&files());
    ids.iter().for_each(|id| connect(&mut from, *id));
    let read = encoded(Request::Read { number: 1, file: 1, offset: 0, length: 100 });
    for id in &ids {
        (0..4).for_each(|_| receive(&mut from, *id, &read));
    }
    let mut collector = Collector { room: 4, ..Collector::new() };
    let plugin: &mut dyn Plugin<RakNet> = &mut from;
    plugin.update(Instant::ZERO, &mut collector);
    let to = |id| collector.messages.iter().filter(|(to, ..)| *to == id).count();
    assert_eq!((to(ids[0]), to(ids[1])), (2, 2));
}

proptest! {
    /// Arbitrary bytes cause no panic, on either side and at any time during a transfer.
    #[test]
    fn arbitrary_bytes_corrupt_no_received_file(
        messages in prop::collection::vec((0_u8..6, prop::collection::vec(any::<u8>(), 0..60)), 0..30),
        begun in 0_usize..12,
    ) {
        let id = connections::<RakNet>(1)[0];
        let old = tree(&[("b", &[7; 800]), ("d/e", b"for")]);
        let (mut from, mut to) = (sender(&files()), patching_receiver(&old));
        from.source = MemorySource::with_previous(&files(), &old);
        connect(&mut from, id);
        to.fetch(id).expect("no other transfer");
        exchange(&mut from, &mut to, id, begun);
        for (kind, message) in messages {
            receive(&mut from, id, &[&[128, kind][..], &message].concat());
            receive(&mut to, id, &[&[129, kind][..], &message].concat());
            receive(&mut to, id, &message);
            prop_assert!(transmit(&mut from, Instant::ZERO).len() <= 6);
            transmit(&mut to, Instant::ZERO);
        }
        let files = files();
        let is_known = |path, bytes| [&files, &old].iter().any(|tree| tree.get(path) == Some(bytes));
        prop_assert!(to.store.tree.iter().all(|(path, bytes)| is_known(path, bytes)));
    }
}
