//! Transfers between directories on a disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rakwire::Instant;
use rakwire::endpoint::ConnectionId;
use rakwire::raknet::RakNet;
use rakwire_plugins::directory::{DirectoryError, DirectoryLimits, DirectorySource, DirectoryStore};
use rakwire_plugins::files::{FileReceiver, FileSender, Limits, Progress, ReceiverEvent};

use super::tree::{connect, receive, transmit};
use crate::support::connections;

/// A temporary directory, which is removed when dropped.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rakwire-directories-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn with(self, path: &str, bytes: &[u8]) -> Self {
        let file = self.0.join(path);
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        fs::write(file, bytes).expect("a file");
        self
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Transfers all files, then removes the partial files.
fn transfer(source: DirectorySource, to: &Path, id: ConnectionId) -> Progress {
    let limits = Limits { files: 10, file_bytes: 1 << 20, bytes: 1 << 20, timeout: Duration::from_secs(10) };
    let store = DirectoryStore::new(to, DirectoryLimits { files: 10, directories: 10, bytes: 1 << 20 })
        .expect("a directory");
    let mut sender = FileSender::<RakNet, _, 8, 8, 4_096>::new(source);
    let mut receiver = FileReceiver::<RakNet, _, 8, 8, 4_096>::new(store, limits);
    sender.serve_all();
    connect(&mut sender, id);
    receiver.fetch(id).expect("no other transfer");
    let result = loop {
        for message in transmit(&mut receiver, Instant::ZERO) {
            receive(&mut sender, id, &message);
        }
        for message in transmit(&mut sender, Instant::ZERO) {
            receive(&mut receiver, id, &message);
        }
        if let Some(ReceiverEvent::Ended(result)) = receiver.poll_event() {
            break result;
        }
    };
    receiver.store.remove_parts().expect("the parts exist");
    result.expect("the transfer completes")
}

#[test]
fn directory_is_copied_and_changes_are_patched() {
    let id = connections::<RakNet>(1)[0];
    let old: Vec<u8> = (0..40_000_u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
    let new = [&old[..9_000], b"a change", &old[9_000..]].concat();
    let before = Directory::new("before").with("maps/lake", &old).with("name", b"Frozen lake");
    let after = Directory::new("after").with("maps/lake", &new).with("name", b"Frozen lake");
    let here = Directory::new("here");
    let first = transfer(DirectorySource::read(&before.0).expect("readable files"), &here.0, id);
    assert_eq!((first.done.files, first.unchanged, first.patched), (2, 0, 0));
    assert_eq!(fs::read(here.0.join("maps/lake")).expect("a file"), old);
    let mut source = DirectorySource::read(&after.0).expect("readable files");
    source.add_previous(&before.0).expect("readable files");
    assert_eq!(source.patches().0, 1);
    let second = transfer(source, &here.0, id);
    assert_eq!((second.done.files, second.unchanged, second.patched), (2, 1, 1));
    assert!(second.received < 1_000, "{second:?}");
    assert_eq!(fs::read(here.0.join("maps/lake")).expect("a file"), new);
    assert_eq!(fs::read_dir(&here.0).expect("a directory").count(), 2, "no partial files must remain");
}

#[cfg(unix)]
#[test]
fn directory_with_a_link_or_bad_name_is_refused() {
    let linked = Directory::new("linked");
    std::os::unix::fs::symlink("/etc/hostname", linked.0.join("link")).expect("a file system with links");
    let error = DirectorySource::read(&linked.0).expect_err("the directory contains a link");
    assert!(
        matches!(error, DirectoryError::Link(_)) && error.to_string().contains("symbolic link"),
        "{error}"
    );
    let named = Directory::new("named").with("a\nb", b"");
    let error = DirectorySource::read(&named.0).expect_err("a bad name");
    assert!(
        matches!(error, DirectoryError::BadName(_)) && error.to_string().contains("a\\nb has"),
        "{error}"
    );
    for name in ["aux.txt", "what?", "ice."] {
        let error =
            DirectorySource::read(&Directory::new("reserved").with(name, b"").0).expect_err("a bad name");
        assert!(
            matches!(error, DirectoryError::BadName(_)) && error.to_string().contains("Windows"),
            "{name}: {error}"
        );
    }
    let missing = DirectorySource::read(named.0.join("missing")).expect_err("the directory does not exist");
    assert!(matches!(missing, DirectoryError::CannotRead(..)), "{missing}");
}
