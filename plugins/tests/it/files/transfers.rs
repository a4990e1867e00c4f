//! Complete, resumed, cancelled and failed transfers.

use std::num::NonZeroU32;
use std::time::Duration;

use rakwire::Instant;
use rakwire::endpoint::Plugin;
use rakwire::raknet::{DisconnectReason, RakNet};
use rakwire_plugins::files::{
    Failure, Progress, Reason, ReceiverEvent, Reply, Request, SenderEvent, Totals, TransferInProgress,
};

use super::tree::{Tree, connect, exchange, last_events, receive, receiver, sender, transmit, tree};
use crate::support::{Collector, connections};

/// Files of several sizes: empty, less than a chunk, whole chunks, and more than whole chunks.
fn world() -> Tree {
    let bytes: Vec<u8> = (0..5_000_u32).map(|at| ((at * at) >> 3) as u8).collect();
    tree(&[
        ("a", b""),
        ("b/c", &bytes[..10]),
        ("b/d/e", &bytes[..394]),
        ("b/d/f", &bytes[..395]),
        ("g", &bytes),
        ("h \u{e9}", &bytes[7..]),
        ("i", &bytes[..788]),
    ])
}

fn ended(event: Option<ReceiverEvent>) -> Result<Progress, Failure> {
    let Some(ReceiverEvent::Ended(result)) = event else { panic!("{event:?}") };
    result
}

#[test]
fn tree_arrives_unchanged() {
    let id = connections::<RakNet>(1)[0];
    let (world, total) = (world(), Totals { files: 7, bytes: 10 + 394 + 395 + 5_000 + 4_993 + 788 });
    let (mut from, mut to) = (sender(&world), receiver(&Tree::new()));
    connect(&mut from, id);
    to.fetch(id).expect("no other transfer");
    assert_eq!(to.fetch(id), Err(TransferInProgress));
    exchange(&mut from, &mut to, id, usize::MAX);
    let (at_sender, at_receiver) = last_events(&mut from, &mut to);
    assert_eq!(at_sender, Some(SenderEvent::Ended(Ok(()))));
    let progress = Progress { total, done: total, unchanged: 1, patched: 0, received: total.bytes };
    assert_eq!((ended(at_receiver), to.store.tree), (Ok(progress), world));
}

#[test]
fn empty_tree_arrives() {
    let id = connections::<RakNet>(1)[0];
    let (mut from, mut to) = (sender(&Tree::new()), receiver(&Tree::new()));
    connect(&mut from, id);
    to.fetch(id).expect("no other transfer");
    exchange(&mut from, &mut to, id, usize::MAX);
    assert_eq!(ended(last_events(&mut from, &mut to).1), Ok(Progress::default()));
}

/// Bytes that arrived before the connection closed are not sent again.
#[test]
fn transfer_resumes_on_another_connection() {
    let ids = connections::<RakNet>(2);
    let world = world();
    for limit in 0..40 {
        let (mut from, mut to) = (sender(&world), receiver(&Tree::new()));
        connect(&mut from, ids[0]);
        to.fetch(ids[0]).expect("no other transfer");
        exchange(&mut from, &mut to, ids[0], limit);
        let before =
            to.store.parts.values().chain(to.store.tree.values()).map(Vec::len).sum::<usize>() as u64;
        let (plugin, other): (&mut dyn Plugin<RakNet>, &mut dyn Plugin<RakNet>) = (&mut from, &mut to);
        plugin.on_disconnected(Instant::ZERO, ids[0], DisconnectReason::Lost);
        other.on_disconnected(Instant::ZERO, ids[0], DisconnectReason::Lost);
        let (at_sender, at_receiver) = last_events(&mut from, &mut to);
        if at_sender == Some(SenderEvent::Ended(Ok(()))) {
            continue;
        }
        assert_eq!(at_sender, Some(SenderEvent::Ended(Err(Failure::Disconnected))), "{limit}");
        assert_eq!(ended(at_receiver), Err(Failure::Disconnected));
        connect(&mut from, ids[1]);
        to.fetch(ids[1]).expect("the other transfer has ended");
        exchange(&mut from, &mut to, ids[1], usize::MAX);
        let progress = ended(last_events(&mut from, &mut to).1).expect("the transfer has completed");
        assert_eq!((progress.received, &to.store.tree), (progress.total.bytes - before, &world), "{limit}");
    }
}

#[test]
fn unchanged_files_are_not_sent_again() {
    let id = connections::<RakNet>(1)[0];
    let world = world();
    let mut old = world.clone();
    old.insert("g".to_owned(), vec![9; 5_000]);
    old.insert("mine".to_owned(), vec![1]);
    old.remove("i");
    let (mut from, mut to) = (sender(&world), receiver(&old));
    connect(&mut from, id);
    to.fetch(id).expect("no other transfer");
    exchange(&mut from, &mut to, id, usize::MAX);
    let progress = ended(last_events(&mut from, &mut to).1).expect("the transfer has completed");
    assert_eq!((progress.unchanged, progress.received, to.store.discarded), (5, 5_000 + 788, 1));
    assert_eq!(progress.done, progress.total);
    assert_eq!(
        to.store.tree.remove("mine"),
        Some(vec![1]),
        "files that the sender does not have must be kept"
    );
    assert_eq!(to.store.tree, world);
}

/// An earlier attempt left a partial file of another version.
#[test]
fn partial_files_of_another_version_are_fetched_again() {
    let id = connections::<RakNet>(1)[0];
    let world = world();
    let (mut from, mut to) = (sender(&world), receiver(&Tree::new()));
    to.store.parts.insert("g".to_owned(), vec![3; 4_000]);
    to.store.parts.insert("i".to_owned(), vec![3; 9_000]);
    connect(&mut from, id);
    to.fetch(id).expect("no other transfer");
    exchange(&mut from, &mut to, id, usize::MAX);
    let progress = ended(last_events(&mut from, &mut to).1).expect("the transfer has completed");
    assert_eq!((progress.received, to.store.discarded), (progress.total.bytes + 1_000, 2));
    assert_eq!(to.store.tree["g"], world["g"]);
}

#[test]
fn both_sides_can_cancel_and_are_notified() {
    let id = connections::<RakNet>(1)[0];
    for is_sender in [true, false] {
        let (mut from, mut to) = (sender(&world()), receiver(&Tree::new()));
        connect(&mut from, id);
        to.fetch(id).expect("no other transfer");
        exchange(&mut from, &mut to, id, 5);
        assert!(if is_sender { from.cancel(id) } else { to.cancel() });
        assert!(if is_sender { !from.cancel(id) } else { !to.cancel() });
        exchange(&mut from, &mut to, id, usize::MAX);
        let (here, there) = (Failure::Local(Reason::Cancelled), Failure::Remote(Reason::Cancelled));
        let (at_sender, at_receiver) = last_events(&mut from, &mut to);
        let expected = if is_sender { (here, there) } else { (there, here) };
        assert_eq!(at_sender, Some(SenderEvent::Ended(Err(expected.0))));
        assert_eq!(ended(at_receiver), Err(expected.1));
    }
}

#[test]
fn a_storage_failure_aborts_the_transfer_on_both_sides() {
    let id = connections::<RakNet>(1)[0];
    for is_sender in [true, false] {
        let (mut from, mut to) = (sender(&world()), receiver(&Tree::new()));
        (from.source.is_broken, to.store.is_broken) = (is_sender, !is_sender);
        connect(&mut from, id);
        to.fetch(id).expect("no other transfer");
        exchange(&mut from, &mut to, id, usize::MAX);
        let (here, there) = (Failure::Local(Reason::Storage), Failure::Remote(Reason::Storage));
        let expected = if is_sender { (here, there) } else { (there, here) };
        let (at_sender, at_receiver) = last_events(&mut from, &mut to);
        assert_eq!(at_sender, Some(SenderEvent::Ended(Err(expected.0))));
        assert_eq!(ended(at_receiver), Err(expected.1));
    }
}

/// The end of a transfer is reported only after the final message has been sent, so an application may then close the
/// connection.
#[test]
fn the_end_of_a_transfer_is_reported_after_its_final_message_was_sent() {
    let id = connections::<RakNet>(1)[0];
    let (mut from, mut to) = (sender(&world()), receiver(&Tree::new()));
    connect(&mut from, id);
    to.fetch(id).expect("no other transfer");
    exchange(&mut from, &mut to, id, 3);
    assert!(to.cancel() && from.cancel(id));
    let mut blocked = Collector { blocked: Some(id), ..Collector::new() };
    let (plugin, other): (&mut dyn Plugin<RakNet>, &mut dyn Plugin<RakNet>) = (&mut from, &mut to);
    plugin.update(Instant::ZERO, &mut blocked);
    other.update(Instant::ZERO, &mut blocked);
    assert_eq!((plugin.poll_timeout(), other.poll_timeout()), (Some(Instant::ZERO), Some(Instant::ZERO)));
    let (at_sender, at_receiver) = last_events(&mut from, &mut to);
    assert!(!matches!(at_sender, Some(SenderEvent::Ended(_))) && at_receiver.is_none());
    assert_eq!((transmit(&mut from, Instant::ZERO).len(), transmit(&mut to, Instant::ZERO).len()), (1, 1));
    let (at_sender, at_receiver) = last_events(&mut from, &mut to);
    assert!(matches!((at_sender, at_receiver), (Some(SenderEvent::Ended(_)), Some(ReceiverEvent::Ended(_)))));
}

#[test]
fn an_unresponsive_sender_times_out() {
    let id = connections::<RakNet>(1)[0];
    let mut to = receiver(&Tree::new());
    to.fetch(id).expect("no other transfer");
    let start = Instant::from_micros(5);
    assert_eq!(transmit(&mut to, start).len(), 1);
    let plugin: &mut dyn Plugin<RakNet> = &mut to;
    assert_eq!(plugin.poll_timeout(), Some(start + Duration::from_secs(30)));
    let last = transmit(&mut to, start + Duration::from_secs(30));
    assert_eq!(Request::decode(&last[0]), Some(Request::Failed(Reason::TimedOut)));
    assert_eq!(ended(to.poll_event()), Err(Failure::Local(Reason::TimedOut)));
}

/// The replies of a rate-limited sender are small, so that the receiver does not time out.
#[test]
fn the_sender_does_not_exceed_its_rate() {
    let id = connections::<RakNet>(1)[0];
    let (mut from, mut to) = (sender(&world()), receiver(&Tree::new()));
    from.set_rate(NonZeroU32::new(1_000));
    connect(&mut from, id);
    to.fetch(id).expect("no other transfer");
    let (mut now, mut sent) = (Instant::from_micros(1), 0);
    while sent < 3_000 {
        transmit(&mut to, now).iter().for_each(|request| receive(&mut from, id, request));
        for reply in transmit(&mut from, now) {
            assert!(reply.len() <= 256 + 6 || matches!(Reply::decode(&reply), Some(Reply::Page(_))));
            sent += reply.len();
            receive(&mut to, id, &reply);
        }
        let plugin: &dyn Plugin<RakNet> = &from;
        now = plugin.poll_timeout().map_or(now, |due| due.max(now));
    }
    // All bytes except those of the last reply, which are at most 400, must fit the rate of 1,000 bytes per second.
    assert!(now.as_micros() >= (sent as u64 - 400) * 1_000, "{sent} bytes by {now:?}");
}

#[test]
fn the_receiver_does_not_exceed_its_rate() {
    let id = connections::<RakNet>(1)[0];
    let (mut from, mut to) = (sender(&world()), receiver(&Tree::new()));
    to.set_rate(NonZeroU32::new(1_000));
    connect(&mut from, id);
    to.fetch(id).expect("no other transfer");
    let mut now = Instant::from_micros(1);
    while to.store.tree.len() < 4 {
        transmit(&mut to, now).iter().for_each(|request| receive(&mut from, id, request));
        transmit(&mut from, now).iter().for_each(|reply| receive(&mut to, id, reply));
        let plugin: &dyn Plugin<RakNet> = &to;
        now = plugin.poll_timeout().map_or(now, |due| due.max(now));
    }
    assert!(now.as_micros() >= 10_000 + 394_000, "{now:?}");
}
