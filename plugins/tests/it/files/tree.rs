//! Directories in memory, and two plugins that exchange messages without a network.

use std::collections::BTreeMap;
use std::time::Duration;

use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Plugin, Verdict};
use rakwire::raknet::{Delivery, RakNet};
use rakwire_plugins::files::{
    BASE_LENGTH, DIGEST_LENGTH, Entry, FileReceiver, FileSender, Limits, PatchStep, ReceiverEvent,
    SenderEvent, Source, StorageError, Store, Totals,
};
use sha2::{Digest, Sha256};

use crate::support::Collector;

/// Files by their paths.
pub(super) type Tree = BTreeMap<String, Vec<u8>>;

pub(super) const LIMITS: Limits =
    Limits { files: 100, file_bytes: 1_000_000, bytes: 10_000_000, timeout: Duration::from_secs(30) };

pub(super) fn tree(files: &[(&str, &[u8])]) -> Tree {
    files.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())).collect()
}

pub(super) fn digest(bytes: &[u8]) -> [u8; DIGEST_LENGTH] {
    Sha256::digest(bytes).into()
}

/// Returns the identifier of a version.
pub(super) fn base(bytes: &[u8]) -> [u8; BASE_LENGTH] {
    *digest(bytes).first_chunk().expect("a digest of 32 bytes")
}

/// Creates a patch in the format of these tests: the length of the common prefix, and the rest of the new version.
pub(super) fn patch(old: &[u8], new: &[u8]) -> Vec<u8> {
    let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    [&(same as u32).to_be_bytes()[..], &new[same..]].concat()
}

/// A file in the sender's manifest, and its bytes.
#[derive(Clone, Debug)]
pub(super) struct SourceFile {
    pub(super) path: Vec<u8>,
    pub(super) size: u64,
    pub(super) digest: [u8; DIGEST_LENGTH],
    pub(super) bytes: Vec<u8>,
}

/// The files of a sender, which may send false data.
#[derive(Clone, Debug)]
pub(super) struct MemorySource {
    pub(super) files: Vec<SourceFile>,
    pub(super) totals: Totals,
    /// The patches, each with its file number and the version from which it starts.
    pub(super) patches: Vec<(u32, [u8; BASE_LENGTH], Vec<u8>)>,
    pub(super) reads: usize,
    pub(super) is_broken: bool,
}

impl MemorySource {
    pub(super) fn new(tree: &Tree) -> Self {
        let files = tree.iter().map(|(path, bytes)| SourceFile {
            path: path.clone().into_bytes(),
            size: bytes.len() as u64,
            digest: digest(bytes),
            bytes: bytes.clone(),
        });
        let files: Vec<SourceFile> = files.collect();
        let bytes = files.iter().map(|file| file.size).sum();
        let totals = Totals { files: files.len() as u32, bytes };
        Self { files, totals, patches: Vec::new(), reads: 0, is_broken: false }
    }

    /// Creates a source with patches from the versions in `previous`.
    pub(super) fn with_previous(tree: &Tree, previous: &Tree) -> Self {
        let numbered = (0..).zip(tree);
        let changed = numbered.filter_map(|(file, (path, new))| Some((file, previous.get(path)?, new)));
        let patches = changed.map(|(file, old, new)| (file, base(old), patch(old, new))).collect();
        Self { patches, ..Self::new(tree) }
    }

    fn patch_at(&self, number: u32) -> Option<&Vec<u8>> {
        let index = number.checked_sub(self.files.len() as u32)?;
        self.patches.get(index as usize).map(|(_, _, patch)| patch)
    }
}

impl Source for MemorySource {
    fn totals(&self) -> Totals {
        self.totals
    }

    fn entry(&self, file: u32) -> Option<Entry<'_>> {
        let file = self.files.get(file as usize)?;
        Some(Entry { path: &file.path, size: file.size, digest: file.digest })
    }

    fn read(&mut self, file: u32, offset: u64, buffer: &mut [u8]) -> Result<(), StorageError> {
        self.reads += 1;
        if self.is_broken {
            return Err(StorageError);
        }
        let file = self.files.get(file as usize).map(|file| &file.bytes).or_else(|| self.patch_at(file));
        let bytes = file.expect("only existing files are read");
        // Missing bytes are read as zeros, so that a source can announce a wrong size.
        buffer.fill(0);
        let available = bytes.get(offset as usize..).unwrap_or_default();
        let length = available.len().min(buffer.len());
        buffer[..length].copy_from_slice(&available[..length]);
        Ok(())
    }

    fn patch(&self, file: u32, base: &[u8; BASE_LENGTH]) -> Option<u32> {
        let index = self.patches.iter().position(|(of, from, _)| (of, from) == (&file, base))?;
        Some((self.files.len() + index) as u32)
    }

    fn patch_size(&self, patch: u32) -> Option<u64> {
        self.patch_at(patch).map(|patch| patch.len() as u64)
    }
}

/// The files of a receiver: complete and partial ones.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryStore {
    pub(super) tree: Tree,
    pub(super) parts: BTreeMap<String, Vec<u8>>,
    open: BTreeMap<u32, String>,
    sizes: BTreeMap<u32, u64>,
    pub(super) discarded: usize,
    pub(super) is_broken: bool,
    /// True if the store offers its older versions for patches.
    pub(super) applies_patches: bool,
    /// The number of bytes read from older versions.
    pub(super) base_reads: usize,
    /// The number of steps in which patches were applied.
    pub(super) patch_steps: usize,
    patches: BTreeMap<u32, Vec<u8>>,
}

impl MemoryStore {
    /// Returns the file that a patch produces from the older version.
    fn patched(&self, file: u32) -> Option<Vec<u8>> {
        let old = self.tree.get(self.open.get(&file)?)?;
        let (same, rest) = self.patches.get(&file)?.split_first_chunk()?;
        let same = old.get(..u32::from_be_bytes(*same) as usize)?;
        Some([same, rest].concat())
    }

    fn part(&mut self, file: u32) -> Result<&mut Vec<u8>, StorageError> {
        let path = self.open.get(&file).ok_or(StorageError)?;
        self.parts.get_mut(path).ok_or(StorageError)
    }
}

impl Store for MemoryStore {
    fn begin(&mut self, file: u32, entry: &Entry<'_>) -> Result<u64, StorageError> {
        let path = std::str::from_utf8(entry.path).map_err(|_| StorageError)?.to_owned();
        if !self.parts.contains_key(&path) {
            let old = self.tree.get(&path).filter(|old| old.len() as u64 == entry.size);
            self.parts.insert(path.clone(), old.cloned().unwrap_or_default());
        }
        let present = self.parts[&path].len() as u64;
        self.open.insert(file, path);
        self.sizes.insert(file, entry.size);
        Ok(present)
    }

    fn read(&mut self, file: u32, offset: u64, buffer: &mut [u8]) -> Result<(), StorageError> {
        let (begin, length) = (offset as usize, buffer.len());
        let bytes = self.part(file)?.get(begin..begin + length).ok_or(StorageError)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn write(&mut self, file: u32, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        if self.is_broken {
            return Err(StorageError);
        }
        let (part, begin) = (self.part(file)?, offset as usize);
        part.resize(part.len().max(begin + bytes.len()), 0);
        part[begin..begin + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn discard(&mut self, file: u32) -> Result<(), StorageError> {
        self.discarded += 1;
        self.part(file)?.clear();
        Ok(())
    }

    fn base(&mut self, file: u32) -> Option<u64> {
        let old = self.tree.get(self.open.get(&file)?)?;
        self.applies_patches.then_some(old.len() as u64)
    }

    fn read_base(&mut self, file: u32, offset: u64, buffer: &mut [u8]) -> Result<(), StorageError> {
        let old = self.open.get(&file).and_then(|path| self.tree.get(path)).ok_or(StorageError)?;
        let begin = offset as usize;
        buffer.copy_from_slice(old.get(begin..begin + buffer.len()).ok_or(StorageError)?);
        self.base_reads += buffer.len();
        Ok(())
    }

    fn write_patch(&mut self, file: u32, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        let (patch, begin) = (self.patches.entry(file).or_default(), offset as usize);
        patch.resize(patch.len().max(begin + bytes.len()), 0);
        patch[begin..begin + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn apply_patch(&mut self, file: u32, bytes: u64) -> Result<PatchStep, StorageError> {
        self.patch_steps += 1;
        let size = self.sizes[&file];
        let made = self.patched(file).filter(|made| made.len() as u64 == size);
        let part = self.part(file)?;
        let Some(made) = made else { return Ok(PatchStep::Invalid) };
        let end = made.len().min(part.len() + bytes as usize);
        part.extend_from_slice(&made[part.len()..end]);
        Ok(if end < made.len() { PatchStep::Unfinished } else { PatchStep::Applied })
    }

    fn finish(&mut self, file: u32) -> Result<(), StorageError> {
        let path = self.open.remove(&file).ok_or(StorageError)?;
        let bytes = self.parts.remove(&path).ok_or(StorageError)?;
        self.tree.insert(path, bytes);
        Ok(())
    }
}

/// A sender and a receiver with messages of at most 400 bytes, so that even small trees need several pages.
pub(super) type Sender = FileSender<RakNet, MemorySource, 3, 5, 400>;
pub(super) type Receiver = FileReceiver<RakNet, MemoryStore, 4, 3, 400>;

pub(super) fn sender(tree: &Tree) -> Sender {
    let mut sender = Sender::new(MemorySource::new(tree));
    sender.serve_all();
    sender
}

/// Creates a receiver that applies patches.
pub(super) fn patching_receiver(tree: &Tree) -> Receiver {
    let mut receiver = receiver(tree);
    receiver.store.applies_patches = true;
    receiver
}

pub(super) fn receiver(tree: &Tree) -> Receiver {
    Receiver::new(MemoryStore { tree: tree.clone(), ..MemoryStore::default() }, LIMITS)
}

/// Notifies a plugin of a new connection.
pub(super) fn connect(plugin: &mut dyn Plugin<RakNet>, id: ConnectionId) {
    let remote = ([192, 0, 2, 1], 1).into();
    let guid = rakwire::raknet::Guid(1);
    plugin.on_connected(Instant::ZERO, id, remote, guid, rakwire::endpoint::Side::Client);
}

pub(super) fn receive(plugin: &mut dyn Plugin<RakNet>, from: ConnectionId, bytes: &[u8]) {
    let delivery = Delivery::RELIABLE_ORDERED;
    assert_eq!(plugin.on_message(Instant::ZERO, from, delivery, &bytes), Verdict::Drop);
}

pub(super) fn transmit(plugin: &mut dyn Plugin<RakNet>, now: Instant) -> Vec<Vec<u8>> {
    let mut collector = Collector::new();
    plugin.update(now, &mut collector);
    collector.bytes()
}

/// Exchanges messages until there are none, or `limit` messages have been delivered.
pub(super) fn exchange(sender: &mut Sender, receiver: &mut Receiver, id: ConnectionId, mut limit: usize) {
    loop {
        let requests = transmit(receiver, Instant::ZERO);
        requests.iter().for_each(|message| receive(sender, id, message));
        let replies = transmit(sender, Instant::ZERO);
        for reply in &replies {
            if limit == 0 {
                return;
            }
            limit -= 1;
            receive(receiver, id, reply);
        }
        let plugin: &dyn Plugin<RakNet> = receiver;
        if requests.is_empty() && replies.is_empty() && plugin.poll_timeout() != Some(Instant::ZERO) {
            return;
        }
    }
}

/// Returns the last events of both sides.
pub(super) fn last_events(
    sender: &mut Sender,
    receiver: &mut Receiver,
) -> (Option<SenderEvent>, Option<ReceiverEvent>) {
    let at_sender = std::iter::from_fn(|| sender.poll_event()).last().map(|(_, event)| event);
    (at_sender, std::iter::from_fn(|| receiver.poll_event()).last())
}
