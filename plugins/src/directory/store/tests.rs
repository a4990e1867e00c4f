//! The store of a receiving directory.

use super::super::patches;
use super::*;

/// Creates a store in a new directory, with a limit of directories.
fn store(name: &str, directories: u32) -> DirectoryStore {
    let root = std::env::temp_dir().join(format!("rakwire-store-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    DirectoryStore::new(&root, limits(directories, 1 << 30)).expect("a directory")
}

fn limits(directories: u32, bytes: u64) -> DirectoryLimits {
    DirectoryLimits { files: 10, directories, bytes }
}

fn begin(store: &mut DirectoryStore, number: u32, path: &str) -> Result<u64, StorageError> {
    store.begin(number, &Entry { path: path.as_bytes(), size: 0, digest: [0; 32] })
}

/// A sender that begins files without finishing them creates no directories. Finished files create at most the
/// maximum number.
#[test]
fn directories_are_created_only_for_complete_files() {
    let mut store = store("counted", 3);
    for (number, path) in ["a/b/1", "a/b/2", "c/3", "d/4"].iter().enumerate() {
        begin(&mut store, number as u32, path).expect("a partial file");
    }
    assert_eq!(
        fs::read_dir(&store.root).expect("a directory").count(),
        1,
        "only the directory of partial files may exist"
    );
    for number in 0..3 {
        store.finish(number).expect("three directories");
    }
    assert!(store.root.join("a/b/2").is_file() && store.root.join("c/3").is_file());
    assert_eq!(store.finish(3), Err(StorageError));
    let error = store.error.take().expect("a reason");
    assert!(matches!(error, DirectoryError::Exceeds(_, DirectoryLimit::Directories(3))), "{error}");
    fs::remove_dir_all(&store.root).expect("an existing directory");
}

#[test]
fn parts_directory_name_is_reserved_in_any_case() {
    let mut store = store("letters", 3);
    for path in [".rakwire-part/a", ".RAKWIRE-Part/a", ".rakwire-part"] {
        assert_eq!(begin(&mut store, 0, path), Err(StorageError), "{path}");
    }
    begin(&mut store, 0, ".rakwire-parts/a").expect("a partial file");
    fs::remove_dir_all(&store.root).expect("an existing directory");
}

/// The received files may later be copied to Windows, or the directory mounted there.
#[test]
fn windows_reserved_names_are_refused_on_all_systems() {
    let mut store = store("windows", 3);
    for path in ["aux.txt", "maps/NUL", "ice.", "a /b", "what?", "a|b", ".. /up"] {
        assert_eq!(begin(&mut store, 0, path), Err(StorageError), "{path}");
    }
    begin(&mut store, 0, "maps/auxiliary.txt").expect("a partial file");
    fs::remove_dir_all(&store.root).expect("an existing directory");
}

/// Creates a store with an older version of a file at its final path, and returns it with the newer version.
fn patched_store(name: &str) -> (DirectoryStore, Vec<u8>) {
    let old: Vec<u8> = (0..700_000_u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
    let new = [&old[..300_000], b"a change", &old[300_000..]].concat();
    let patch = patches::make(&old, &new).expect("a patch");
    let mut store = store(name, 0);
    fs::write(store.root.join("a"), &old).expect("a file");
    store = DirectoryStore::new(&store.root, limits(0, 1 << 30)).expect("a directory");
    assert_eq!(begin_patched(&mut store, &new), Ok(0));
    assert_eq!(store.base(0), Some(old.len() as u64));
    store.write_patch(0, 0, &patch).expect("a file");
    (store, new)
}

fn begin_patched(store: &mut DirectoryStore, new: &[u8]) -> Result<u64, StorageError> {
    store.begin(0, &Entry { path: b"a", size: new.len() as u64, digest: [0; 32] })
}

fn apply_all(store: &mut DirectoryStore) -> PatchStep {
    loop {
        match store.apply_patch(0, 256 * 1_024).expect("enough space") {
            PatchStep::Unfinished => {}
            step @ (PatchStep::Applied | PatchStep::Invalid) => return step,
        }
    }
}

#[test]
fn a_patch_is_applied_in_steps() {
    let (mut store, new) = patched_store("patched");
    assert_eq!(store.apply_patch(0, 256 * 1_024), Ok(PatchStep::Unfinished));
    assert_eq!(apply_all(&mut store), PatchStep::Applied);
    let mut end = [0; 100];
    store.read(0, new.len() as u64 - 100, &mut end).expect("a complete file");
    assert!(new.ends_with(&end));
    store.finish(0).expect("a valid file");
    assert_eq!(fs::read(store.root.join("a")).expect("a file"), new);
    store.remove_parts().expect("the parts exist");
    fs::remove_dir_all(&store.root).expect("an existing directory");
}

/// The partly patched output must not be mistaken for the beginning of the file after a crash.
#[test]
fn an_interrupted_patch_leaves_no_partial_file() {
    let (mut store, new) = patched_store("interrupted");
    assert_eq!(store.apply_patch(0, 1_000), Ok(PatchStep::Unfinished));
    let mut next = DirectoryStore::new(&store.root, limits(0, 1 << 30)).expect("a directory");
    assert_eq!(begin_patched(&mut next, &new), Ok(0));
    let made = store.file(0).expect("an open file").made();
    store.close();
    assert!(!made.exists());
    assert_eq!(begin_patched(&mut store, &new), Ok(0));
    fs::remove_dir_all(&store.root).expect("an existing directory");
}

#[test]
fn patched_file_is_kept_as_a_part_until_verified() {
    let (mut store, new) = patched_store("made");
    assert_eq!(apply_all(&mut store), PatchStep::Applied);
    let made = store.file(0).expect("an open file").made();
    store.close();
    assert!(!made.exists());
    assert_eq!(begin_patched(&mut store, &new), Ok(new.len() as u64));
    fs::remove_dir_all(&store.root).expect("an existing directory");
}

/// After a wrong patch, the whole file is written to an ordinary partial file.
#[test]
fn a_file_with_a_wrong_patch_is_fetched_in_full() {
    let (mut store, new) = patched_store("wrong");
    assert_eq!(apply_all(&mut store), PatchStep::Applied);
    let made = store.file(0).expect("an open file").made();
    store.discard(0).expect("an open file");
    assert!(!made.exists());
    store.write(0, 0, &new[..1_000]).expect("enough space");
    store.close();
    assert_eq!(begin_patched(&mut store, &new), Ok(1_000));
    fs::remove_dir_all(&store.root).expect("an existing directory");
}

/// A failed write, as on a full disk, does not make the patch invalid, and fetching the whole file would fail as well.
/// Here the output is opened read-only.
#[test]
fn a_failed_write_during_a_patch_aborts_the_transfer() {
    let (mut store, _) = patched_store("full");
    assert_eq!(store.apply_patch(0, 1_000), Ok(PatchStep::Unfinished));
    let open = store.file(0).expect("an open file");
    let read_only = File::open(open.made()).expect("a file");
    open.making.as_mut().expect("an unfinished file").1 = read_only;
    let made = open.made();
    assert_eq!(store.apply_patch(0, 1_000), Err(StorageError));
    assert!(matches!(store.error.take(), Some(DirectoryError::CannotWrite(..))));
    assert!(!made.exists());
    fs::remove_dir_all(&store.root).expect("an existing directory");
}

#[test]
fn a_malformed_patch_is_reported_as_invalid() {
    let (mut store, _) = patched_store("worthless");
    store.write_patch(0, 0, b"BSDIFF50").expect("enough space");
    assert_eq!(apply_all(&mut store), PatchStep::Invalid);
    assert_eq!(store.file(0).expect("an open file").file.metadata().expect("a file").len(), 0);
    fs::remove_dir_all(&store.root).expect("an existing directory");
}

#[test]
fn directories_nest_up_to_the_maximum_depth() {
    let mut store = store("depth", 100);
    begin(&mut store, 0, &format!("{}file", "d/".repeat(MAX_DEPTH))).expect("a partial file");
    store.finish(0).expect("a file at the maximum depth");
    assert!(begin(&mut store, 1, &format!("{}file", "d/".repeat(MAX_DEPTH + 1))).is_err());
    fs::remove_dir_all(&store.root).expect("an existing directory");
}

/// Returns the bytes of all files in a directory and its subdirectories.
fn bytes_in(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    entries.map(|path| if path.is_dir() { bytes_in(&path) } else { length(&path) }).sum()
}

/// Runs an interrupted attempt in which the first `of_each` bytes of each file arrive.
fn attempt(store: &mut DirectoryStore, files: &[(&str, u64)], of_each: u64) -> Result<(), StorageError> {
    for (number, (path, size)) in files.iter().enumerate() {
        let number = number as u32;
        let present = store.begin(number, &Entry { path: path.as_bytes(), size: *size, digest: [0; 32] })?;
        if of_each > present {
            store.write(number, present, &vec![7; (of_each - present) as usize])?;
        }
        if of_each == *size {
            store.finish(number)?;
        }
    }
    Ok(())
}

fn exceeds(store: &mut DirectoryStore) -> Option<DirectoryLimit> {
    match store.error.take() {
        Some(DirectoryError::Exceeds(_, limit)) => Some(limit),
        _ => None,
    }
}

/// A sender that offers different files in each attempt cannot fill the disk, within one run of the program or across
/// several.
#[test]
fn many_attempts_stay_within_the_byte_limit() {
    let mut store = store("attempts", 0);
    let limits = limits(0, 10_000);
    for is_new_run in [false, true] {
        for number in 0..20 {
            if is_new_run || number == 0 {
                store = DirectoryStore::new(&store.root, limits).expect("partial files are evicted");
            }
            let (one, other) = (format!("a{number}"), format!("b{number}"));
            assert_eq!(attempt(&mut store, &[(&one, 9_000), (&other, 9_000)], 4_000), Ok(()));
            store.close();
            assert!(bytes_in(&store.root) <= 10_000);
        }
    }
    // Complete files are kept and count.
    assert_eq!(attempt(&mut store, &[("c", 6_000)], 6_000), Ok(()));
    store.close();
    assert_eq!(attempt(&mut store, &[("d", 6_000)], 6_000), Err(StorageError));
    assert_eq!(exceeds(&mut store), Some(DirectoryLimit::Bytes(10_000)));
    store.close();
    assert!(bytes_in(&store.root) <= 10_000);
    fs::remove_dir_all(&store.root).expect("an existing directory");
}

#[test]
fn many_small_files_stay_within_the_file_limit() {
    let mut store = store("small", 0);
    let count = |store: &DirectoryStore| {
        let parts = fs::read_dir(store.root.join(PARTS)).expect("a directory").count();
        parts + fs::read_dir(&store.root).expect("a directory").count() - 1
    };
    for number in 0..50 {
        let (one, other) = (format!("a{number}"), format!("b{number}"));
        assert_eq!(attempt(&mut store, &[(&one, 1), (&other, 1)], 0), Ok(()));
        store.close();
        assert!(count(&store) <= 10, "{}", count(&store));
    }
    for number in 0..10 {
        assert_eq!(attempt(&mut store, &[(&format!("c{number}"), 0)], 0), Ok(()), "{number}");
    }
    assert_eq!(attempt(&mut store, &[("c10", 0)], 0), Err(StorageError));
    assert_eq!(exceeds(&mut store), Some(DirectoryLimit::Files(10)));
    // Newer versions of existing files.
    for number in 0..50 {
        let digest = [number; 32];
        assert!(store.begin(0, &Entry { path: b"c0", size: 1, digest }).is_ok());
        store.close();
        assert!(count(&store) <= 12, "{}", count(&store));
    }
    fs::remove_dir_all(&store.root).expect("an existing directory");
}

/// Partial files of earlier runs are removed. Complete files that exceed the limit are an error.
#[test]
fn a_lower_limit_applies_when_the_directory_is_reopened() {
    let mut store = store("lowered", 0);
    assert_eq!(attempt(&mut store, &[("a", 4_000)], 4_000), Ok(()));
    assert_eq!(attempt(&mut store, &[("b", 9_000)], 3_000), Ok(()));
    store.close();
    let lowered = DirectoryStore::new(&store.root, limits(0, 5_000))
        .expect("removing the partial file frees enough space");
    assert_eq!(bytes_in(&lowered.root), 4_000);
    let refused =
        DirectoryStore::new(&store.root, limits(0, 3_999)).expect_err("a complete file exceeds the limit");
    assert!(matches!(refused, DirectoryError::Exceeds(_, DirectoryLimit::Bytes(3_999))), "{refused}");
    fs::remove_dir_all(&store.root).expect("an existing directory");
}

/// A resumed partial file is not counted twice, and a replaced file no longer counts.
#[test]
fn resumed_and_replaced_files_count_once_toward_the_limit() {
    let mut store = store("once", 0);
    let limits = limits(0, 10_000);
    for of_each in [2_000, 4_000, 8_000, 10_000] {
        store = DirectoryStore::new(&store.root, limits).expect("a directory");
        assert_eq!(attempt(&mut store, &[("a", 10_000)], of_each), Ok(()), "{of_each}");
        store.close();
    }
    store =
        DirectoryStore::new(&store.root, DirectoryLimits { bytes: 12_000, ..limits }).expect("a directory");
    for size in [2_000, 8_000, 3_000, 9_000] {
        assert_eq!(attempt(&mut store, &[("a", size)], size), Ok(()), "{size}");
    }
    assert_eq!(bytes_in(&store.root), 9_000);
    assert_eq!(store.usage.check(), Ok(()));
    assert_eq!(
        attempt(&mut store, &[("a", 4_000)], 4_000),
        Err(StorageError),
        "both versions exist during the replacement"
    );
    fs::remove_dir_all(&store.root).expect("an existing directory");
}

#[test]
fn patch_and_patched_file_count_toward_the_limit() {
    let (mut store, new) = patched_store("counted-patch");
    assert_eq!(apply_all(&mut store), PatchStep::Applied);
    store.finish(0).expect("a valid file");
    store.remove_parts().expect("the parts exist");
    let left = bytes_in(&store.root);
    assert_eq!(left, new.len() as u64);
    let mut usage = Usage::new(limits(0, left));
    core::mem::swap(&mut usage, &mut store.usage);
    assert_eq!(usage.grow((1 << 30) - left), Ok(()), "the directory contains nothing else");
    assert!(usage.grow(1).is_err());
    fs::remove_dir_all(&store.root).expect("an existing directory");
}
