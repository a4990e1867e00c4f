//! Files sent as patches of older versions.

use rakwire::Instant;
use rakwire::endpoint::Plugin;
use rakwire::raknet::RakNet;
use rakwire_plugins::files::{Failure, Progress, Reason, ReceiverEvent, Reply, Request};

use super::tree::{
    MemorySource, Receiver, Sender, Tree, base, connect, exchange, last_events, patch, patching_receiver,
    receive, sender, transmit, tree,
};
use crate::support::connections;

fn bytes(seed: u32, length: u32) -> Vec<u8> {
    (0..length).map(|at| ((at * at * seed) >> 3) as u8).collect()
}

/// Returns two versions of a tree: a file that has grown, one with another ending, an unchanged one, and a new one.
fn versions() -> [Tree; 2] {
    let (grown, ending, same) = (bytes(3, 2_000), bytes(5, 1_500), bytes(7, 900));
    let mut other_ending = ending.clone();
    other_ending[1_400..].fill(9);
    let grown_now = [&grown[..], b"and more"].concat();
    [
        tree(&[("ending", &ending), ("grown", &grown), ("same", &same)]),
        tree(&[("ending", &other_ending), ("grown", &grown_now), ("new", b"new"), ("same", &same)]),
    ]
}

fn patching_sender() -> Sender {
    let [old, new] = versions();
    let mut sender = Sender::new(MemorySource::with_previous(&new, &old));
    sender.serve_all();
    sender
}

fn transfer(from: &mut Sender, to: &mut Receiver) -> Result<Progress, Failure> {
    let id = connections::<RakNet>(1)[0];
    connect(from, id);
    to.fetch(id).expect("no other transfer");
    exchange(from, to, id, 10_000);
    let Some(ReceiverEvent::Ended(result)) = last_events(from, to).1 else {
        panic!("the transfer has not ended")
    };
    result
}

#[test]
fn changed_files_are_sent_as_patches() {
    let [old, new] = versions();
    let (mut from, mut to) = (patching_sender(), patching_receiver(&old));
    let progress = transfer(&mut from, &mut to).expect("the transfer completes");
    assert_eq!(to.store.tree, new);
    assert_eq!((progress.patched, progress.unchanged, progress.done), (2, 1, progress.total));
    let patches: usize = ["ending", "grown"].map(|path| patch(&old[path], &new[path]).len()).iter().sum();
    assert_eq!(progress.received, patches as u64 + 3);
}

/// The older version may differ, be missing, or be unusable for the receiver, or the sender may have no patch.
#[test]
fn whole_file_is_sent_without_a_patch() {
    let [old, new] = versions();
    let all: u64 = ["ending", "grown", "new"].iter().map(|path| new[*path].len() as u64).sum();
    let mut other = old.clone();
    other.get_mut("grown").expect("a file").push(1);
    other.get_mut("ending").expect("a file")[0] ^= 1;
    let mut plain = patching_receiver(&old);
    plain.store.applies_patches = false;
    for (mut from, mut to) in [
        (patching_sender(), patching_receiver(&other)),
        (patching_sender(), plain),
        (sender(&new), patching_receiver(&old)),
    ] {
        let progress = transfer(&mut from, &mut to).expect("the transfer completes");
        assert_eq!((progress.patched, progress.received, &to.store.tree), (0, all, &new));
    }
}

/// A patch with a wrong result wastes bandwidth only once.
#[test]
fn a_wrong_patch_is_not_requested_again() {
    let [old, new] = versions();
    let all: u64 = ["ending", "grown", "new"].iter().map(|path| new[*path].len() as u64).sum();
    // The first patch produces wrong bytes, the second one a wrong length.
    for (index, change) in [(0, -1_i32), (1, 0)] {
        let (mut from, mut to) = (patching_sender(), patching_receiver(&old));
        let wrong = &mut from.source.patches[index].2;
        if change == 0 {
            wrong.push(0)
        } else {
            *wrong.last_mut().expect("a patch with bytes") ^= 1
        }
        let wasted = wrong.len() as u64;
        let right = from.source.patches[1 - index].2.len() as u64;
        let progress = transfer(&mut from, &mut to).expect("the transfer completes");
        let whole = if index == 0 { new["grown"].len() } else { new["ending"].len() } as u64;
        assert_eq!((progress.patched, &to.store.tree), (1, &new));
        assert_eq!(progress.received, all - whole + wasted + right);
        assert_eq!(progress.done, progress.total);
    }
}

/// A patch longer than its file is not requested.
#[test]
fn patch_longer_than_the_file_is_skipped() {
    let [old, new] = versions();
    let (mut from, mut to) = (patching_sender(), patching_receiver(&old));
    from.source.patches[0].2 = vec![0; 1_500];
    let progress = transfer(&mut from, &mut to).expect("the transfer completes");
    assert_eq!((progress.patched, &to.store.tree), (1, &new));
    assert_eq!(progress.received, 1_500 + 3 + from.source.patches[1].2.len() as u64);
}

/// Returns a receiver that has requested patches, and its requests.
fn receiver_that_asks() -> (Receiver, Vec<Request>) {
    let id = connections::<RakNet>(1)[0];
    let [old, _] = versions();
    let (mut from, mut to) = (patching_sender(), patching_receiver(&old));
    connect(&mut from, id);
    to.fetch(id).expect("no other transfer");
    transmit(&mut to, Instant::ZERO).iter().for_each(|message| receive(&mut from, id, message));
    transmit(&mut from, Instant::ZERO).iter().for_each(|message| receive(&mut to, id, message));
    let asked = transmit(&mut to, Instant::ZERO);
    (to, asked.iter().filter_map(|message| Request::decode(message)).collect())
}

#[test]
fn malformed_patch_replies_abort_the_transfer() {
    let id = connections::<RakNet>(1)[0];
    let (_, asked) = receiver_that_asks();
    let [old, _] = versions();
    let find = |request: &Request| {
        let Request::FindPatch { number, file: 1, base: from } = *request else { return None };
        Some((number, from))
    };
    let (number, from) = asked.iter().find_map(find).expect("a patch was requested");
    assert_eq!(from, base(&old["grown"]));
    let read = |request: &Request| {
        let Request::Read { number, file: 2, .. } = *request else { return None };
        Some(number)
    };
    let new = asked.iter().find_map(read).expect("the new file was requested");
    for reply in [
        // The number of a file in the manifest is not the number of a patch.
        Reply::Patch { number, patch: 3, size: 9 },
        Reply::Data { number, bytes: b"patch" },
        Reply::Patch { number: new, patch: 9, size: 9 },
    ] {
        let (mut to, _) = receiver_that_asks();
        let mut buffer = [0; 64];
        let length = reply.encode(&mut buffer).expect("enough space");
        receive(&mut to, id, &buffer[..length]);
        let sent = transmit(&mut to, Instant::ZERO);
        assert_eq!(Request::decode(&sent[0]), Some(Request::Failed(Reason::BadMessage)), "{reply:?}");
    }
}

/// A sender that offers one patch for all files causes no additional requests.
#[test]
fn a_patch_of_another_file_is_replaced_by_the_whole_file() {
    let [old, new] = versions();
    let (mut from, mut to) = (patching_sender(), patching_receiver(&old));
    let one = from.source.patches[0].2.clone();
    from.source.patches.iter_mut().for_each(|(_, _, patch)| patch.clone_from(&one));
    let progress = transfer(&mut from, &mut to).expect("the transfer completes");
    assert_eq!((progress.patched, to.store.tree), (1, new));
}

/// Older versions are read in limited steps, even if a manifest page lists many changed files.
#[test]
fn older_versions_are_read_step_by_step() {
    const STEP: usize = 256 * 1_024;
    let id = connections::<RakNet>(1)[0];
    let [a, b] = [vec![1; 600_000], vec![2; 500_000]];
    let old = tree(&[("a", &a), ("b", &b)]);
    let mut from = sender(&tree(&[("a", &a[1..]), ("b", &b[1..])]));
    let mut to = patching_receiver(&old);
    connect(&mut from, id);
    to.fetch(id).expect("no other transfer");
    transmit(&mut to, Instant::ZERO).iter().for_each(|message| receive(&mut from, id, message));
    transmit(&mut from, Instant::ZERO).iter().for_each(|page| receive(&mut to, id, page));
    assert_eq!(to.store.base_reads, 0);
    for end in [STEP, 2 * STEP, 3 * STEP, 4 * STEP, a.len() + b.len()] {
        let plugin: &dyn Plugin<RakNet> = &to;
        assert_eq!(plugin.poll_timeout(), Some(Instant::ZERO));
        transmit(&mut to, Instant::ZERO);
        assert_eq!(to.store.base_reads, end);
    }
}

/// A short patch for a long file is applied in limited steps.
#[test]
fn patches_are_applied_step_by_step() {
    const STEP: usize = 256 * 1_024;
    let id = connections::<RakNet>(1)[0];
    let long = vec![1; 600_000];
    let ending = [&long[..], b"and more"].concat();
    let (old, new) = (tree(&[("long", &long)]), tree(&[("long", &ending), ("other", b"new")]));
    let mut from = Sender::new(MemorySource::with_previous(&new, &old));
    from.serve_all();
    let mut to = patching_receiver(&old);
    connect(&mut from, id);
    to.fetch(id).expect("no other transfer");
    for _ in 0..20 {
        transmit(&mut to, Instant::ZERO).iter().for_each(|message| receive(&mut from, id, message));
        if to.store.patch_steps > 0 {
            break;
        }
        transmit(&mut from, Instant::ZERO).iter().for_each(|message| receive(&mut to, id, message));
    }
    for (steps, made) in [(1, STEP), (2, 2 * STEP), (3, ending.len())] {
        assert_eq!((to.store.patch_steps, to.store.parts["long"].len()), (steps, made));
        let plugin: &dyn Plugin<RakNet> = &to;
        assert_eq!(plugin.poll_timeout(), Some(Instant::ZERO));
        transmit(&mut to, Instant::ZERO);
    }
    exchange(&mut from, &mut to, id, 10_000);
    let (_, Some(ReceiverEvent::Ended(Ok(progress)))) = last_events(&mut from, &mut to) else {
        panic!("the transfer has not ended")
    };
    assert_eq!((progress.patched, progress.done, to.store.tree), (1, progress.total, new));
}

/// Pending patches are not applied once the transfer is over.
#[test]
fn cancelled_transfer_applies_no_patch() {
    let [old, _] = versions();
    let (mut from, mut to) = (patching_sender(), patching_receiver(&old));
    let id = connections::<RakNet>(1)[0];
    connect(&mut from, id);
    to.fetch(id).expect("no other transfer");
    let reads_patch =
        |message: &Vec<u8>| matches!(Request::decode(message), Some(Request::Read { file: 4.., .. }));
    let came = (0..20).any(|_| {
        let requests = transmit(&mut to, Instant::ZERO);
        requests.iter().for_each(|message| receive(&mut from, id, message));
        transmit(&mut from, Instant::ZERO).iter().for_each(|message| receive(&mut to, id, message));
        requests.iter().any(reads_patch)
    });
    assert!(came, "the receiver has fetched no patch");
    assert!(to.cancel());
    exchange(&mut from, &mut to, id, 10_000);
    assert_eq!((to.store.patch_steps, to.store.tree), (0, old));
}
