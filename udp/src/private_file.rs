//! Files that only their owner may read, such as keys and captured traffic. All programs create such files here.
//!
//! Each file has mode 0600 on Unix, whatever the umask. Symbolic links are not followed, so that another user of a
//! directory cannot redirect a write. Links of the system, such as `/dev/stdout`, are the exception. An existing file
//! is replaced atomically, by a rename. Devices, and pipes that belong to the user of the program, are written to
//! directly.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Maximum number of temporary names to try for a file that replaces another one.
const ATTEMPTS: u32 = 16;

/// Creates a file that must not exist yet.
///
/// # Errors
/// Returns an error if the name is taken, even by a dangling link, or the file cannot be created.
pub fn create_new(path: impl AsRef<Path>) -> io::Result<File> {
    private().create_new(true).open(path)
}

/// Creates a file that must not exist yet, with the contents that `write` writes.
///
/// If writing fails, for example because the disk is full, the partial file is removed, so that a retry can succeed.
///
/// # Errors
/// Returns the errors of [`create_new`] and of `write`.
pub fn write_new(path: impl AsRef<Path>, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let path = path.as_ref();
    fill(create_new(path)?, path, write)
}

/// Works like [`write_new`] for a file that others may read, such as a public key.
///
/// # Errors
/// Returns the errors of [`write_new`].
pub fn write_new_public(
    path: impl AsRef<Path>,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let path = path.as_ref();
    fill(OpenOptions::new().write(true).create_new(true).open(path)?, path, write)
}

/// Creates a file, replacing an existing file or link.
///
/// # Errors
/// Returns an error if the file cannot be created, or an existing file cannot be replaced.
pub fn create(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    if let Some(stream) = open_stream(path)? {
        return Ok(stream);
    }
    let (file, temporary) = beside(path)?;
    put(&temporary, path)?;
    Ok(file)
}

/// Opens a file for appending, or creates it. From then on, only its owner can read it.
///
/// # Errors
/// Returns an error if the path is a link or a directory, the file belongs to another user, or it cannot be written.
pub fn append(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    if let Some(stream) = open_stream(path)? {
        return Ok(stream);
    }
    let mut options = private();
    options.append(true).create(true);
    let file = open_at_place(&mut options, path)?;
    // An existing file may have been created with wider permissions.
    #[cfg(unix)]
    {
        let found = file.metadata()?;
        if !found.is_file() || !belongs_to_this_user(&found) {
            return Err(refusal(&found));
        }
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    }
    Ok(file)
}

/// Makes an existing file readable only by its owner, without opening it.
///
/// # Errors
/// Returns an error if the path is not a regular file, or the file belongs to another user.
pub fn keep_private(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    let found = fs::symlink_metadata(path)?;
    #[cfg(unix)]
    if found.is_file() && belongs_to_this_user(&found) {
        return fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600));
    }
    #[cfg(not(unix))]
    if found.is_file() {
        return Ok(());
    }
    Err(refusal(&found))
}

/// Writes a file atomically: a reader finds either the old or the new contents.
///
/// # Errors
/// Returns the errors of [`create`], and an error if the file cannot be written.
pub fn replace(path: impl AsRef<Path>, contents: &[u8]) -> io::Result<()> {
    let path = path.as_ref();
    if let Some(mut stream) = open_stream(path)? {
        return stream.write_all(contents);
    }
    replace_by(path, |file| file.write_all(contents))
}

/// Writes a temporary file in the same directory, and renames it to `path`.
fn replace_by(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let (file, temporary) = beside(path)?;
    fill(file, &temporary, write)?;
    put(&temporary, path)
}

/// Writes the contents of a new file, and removes it if that fails.
fn fill(mut file: File, path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let written = write(&mut file).and_then(|()| file.sync_all());
    if written.is_err() {
        // The partial file is useless, and the disk may be full.
        let _ = fs::remove_file(path);
    }
    written
}

/// Returns whether every user of this machine can read a file; false on systems without such permissions.
#[must_use]
pub fn is_exposed(path: impl AsRef<Path>) -> bool {
    #[cfg(unix)]
    return fs::metadata(path)
        .is_ok_and(|found| std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o004 != 0);
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Opens a path for writing, without following a link.
fn open_at_place(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        options,
        rustix::fs::OFlags::NOFOLLOW.bits().cast_signed(),
    );
    options.open(path)
}

/// Opens a pipe or a device for writing. Returns `None` if the path is neither.
#[cfg(unix)]
fn open_stream(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.append(true);
    // The system's own links lead to the standard streams of the program, which may be regular files.
    let of_system = ["/dev", "/dev/fd", "/proc/self/fd"].map(Path::new);
    if path.parent().is_some_and(|parent| of_system.contains(&parent)) {
        return options.open(path).map(Some);
    }
    let is_stream = |found: &fs::Metadata| !(found.is_file() || found.is_dir() || found.is_symlink());
    let Some(found) = fs::symlink_metadata(path).ok().filter(is_stream) else { return Ok(None) };
    // Opening another user's pipe could block forever.
    if !is_trusted_stream(&found) {
        return Err(refusal(&found));
    }
    let stream = open_at_place(&mut options, path)?;
    // The path may refer to another file by now.
    let found = stream.metadata()?;
    let is_trusted = is_stream(&found) && is_trusted_stream(&found);
    if is_trusted { Ok(Some(stream)) } else { Err(refusal(&found)) }
}

#[cfg(not(unix))]
fn open_stream(path: &Path) -> io::Result<Option<File>> {
    let is_stream = fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
    if is_stream { OpenOptions::new().write(true).open(path).map(Some) } else { Ok(None) }
}

/// Returns whether a file is a device, or a pipe that belongs to this user.
#[cfg(unix)]
fn is_trusted_stream(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt as _;

    found.file_type().is_char_device() || belongs_to_this_user(found)
}

#[cfg(unix)]
fn belongs_to_this_user(found: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(found) == rustix::process::geteuid().as_raw()
}

/// Returns the error for a file that must not be written to.
fn refusal(found: &fs::Metadata) -> io::Error {
    #[cfg(unix)]
    let is_ours = belongs_to_this_user(found);
    #[cfg(not(unix))]
    let is_ours = true;
    let reason = match found.file_type() {
        _ if !is_ours => "it belongs to another user",
        kind if kind.is_symlink() => "it is a symbolic link",
        kind if kind.is_dir() => "it is a directory",
        _ => "it is not a regular file",
    };
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

/// Creates a file with a unique name next to another one.
fn beside(path: &Path) -> io::Result<(File, PathBuf)> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);

    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut attempts = 0;
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut other = OsString::from(".");
        other.push(name);
        other.push(format!(".{}-{number}.new", std::process::id()));
        let other = path.with_file_name(other);
        match create_new(&other) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempts < ATTEMPTS => {
                attempts += 1
            }
            made => return made.map(|file| (file, other)),
        }
    }
}

/// Renames the temporary file to its final name.
fn put(temporary: &Path, path: &Path) -> io::Result<()> {
    let put = fs::rename(temporary, path);
    if put.is_err() {
        let _ = fs::remove_file(temporary);
    }
    put
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("rakwire-udp-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Counts the files of a folder, including those with temporary names.
    fn count(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn a_file_is_replaced_in_one_step_without_leftovers() {
        let directory = directory("replace");
        let path = directory.join("pid");
        for contents in [&b"1"[..], b"22"] {
            replace(&path, contents).unwrap();
            assert_eq!(fs::read(&path).unwrap(), contents);
        }
        create(&path).unwrap().write_all(b"333").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"333");
        append(&path).unwrap().write_all(b"4").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"3334");
        assert_eq!(create_new(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(count(&directory), 1);
        // A folder is not a file, and stays.
        assert!(
            replace(&directory, b"").is_err() && create(&directory).is_err() && append(&directory).is_err()
        );
        assert_eq!((count(&directory), directory.is_dir()), (1, true));
        fs::remove_dir_all(directory).unwrap();
    }

    /// Writes the first bytes, as on a disk that becomes full.
    fn write_a_part(file: &mut File) -> io::Result<()> {
        file.write_all(b"half of")?;
        Err(io::ErrorKind::StorageFull.into())
    }

    #[test]
    fn a_full_disk_leaves_no_partial_file_and_keeps_the_old_file() {
        let directory = directory("full-disk");
        let [key, public, old] = ["key", "key.pub", "old"].map(|name| directory.join(name));
        fs::write(&old, "old").unwrap();
        let written = [
            write_new(&key, write_a_part),
            write_new_public(&public, write_a_part),
            replace_by(&old, write_a_part),
        ];
        for error in written.map(Result::unwrap_err) {
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
        assert_eq!((count(&directory), fs::read(&old).unwrap()), (1, b"old".to_vec()));
        // The disk has room again.
        write_new(&key, |file| file.write_all(b"key")).unwrap();
        write_new_public(&public, |file| file.write_all(b"public")).unwrap();
        assert_eq!(fs::read(&key).unwrap(), b"key");
        // An existing file is neither overwritten nor removed.
        let refused = write_new(&key, |_| Ok(())).unwrap_err();
        assert_eq!(
            (refused.kind(), fs::read(&key).unwrap()),
            (io::ErrorKind::AlreadyExists, b"key".to_vec())
        );
        fs::remove_dir_all(directory).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn files_are_private_and_links_are_not_followed() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let directory = directory("links");
        let precious = directory.join("precious");
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        let at = |name: &str| directory.join(name);
        for name in ["create", "replace", "append", "new"] {
            fs::write(&precious, "precious").unwrap();
            fs::set_permissions(&precious, fs::Permissions::from_mode(0o644)).unwrap();
            symlink(&precious, at(name)).unwrap();
        }
        assert!(is_exposed(&precious));
        create(at("create")).unwrap().write_all(b"x").unwrap();
        replace(at("replace"), b"x").unwrap();
        for name in ["create", "replace"] {
            assert_eq!((mode(&at(name)), fs::read(at(name)).unwrap()), (0o600, b"x".to_vec()), "{name}");
        }
        assert!(append(at("append")).is_err() && create_new(at("new")).is_err());
        assert!(keep_private(at("append")).is_err());
        assert_eq!((mode(&precious), fs::read(&precious).unwrap()), (0o644, b"precious".to_vec()));
        // From then on, an existing file is readable only by its owner.
        append(&precious).unwrap();
        assert_eq!(mode(&precious), 0o600);
        fs::set_permissions(&precious, fs::Permissions::from_mode(0o644)).unwrap();
        keep_private(&precious).unwrap();
        assert!(!is_exposed(&precious));
        append(at("log")).unwrap();
        assert_eq!(mode(&at("log")), 0o600);
        fs::remove_dir_all(directory).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn devices_are_written_to_directly() {
        for path in ["/dev/null", "/dev/stdout"] {
            create(path).unwrap();
            append(path).unwrap();
        }
        replace("/dev/null", b"x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    /// Creates a pipe, and opens it for reading so that a writer does not block.
    #[cfg(unix)]
    fn pipe(path: &Path) -> File {
        use std::os::unix::fs::OpenOptionsExt as _;

        rustix::fs::mkfifoat(rustix::fs::CWD, path, 0o666.into()).unwrap();
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        OpenOptions::new().read(true).custom_flags(flags).open(path).unwrap()
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_written_to_directly_but_not_through_a_symlink() {
        use std::io::Read as _;

        let directory = directory("pipes");
        let path = directory.join("pipe");
        let mut reader = pipe(&path);
        replace(&path, b"a").unwrap();
        create(&path).unwrap().write_all(b"b").unwrap();
        append(&path).unwrap().write_all(b"c").unwrap();
        let mut read = [0; 8];
        assert_eq!((reader.read(&mut read).unwrap(), &read[..3]), (3, &b"abc"[..]));
        let link = directory.join("link");
        let link_anew = || {
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(&path, &link).unwrap();
        };
        link_anew();
        assert!(append(&link).is_err());
        create(&link).unwrap().write_all(b"d").unwrap();
        link_anew();
        replace(&link, b"e").unwrap();
        assert!(link.symlink_metadata().unwrap().is_file());
        assert_eq!(reader.read(&mut read).unwrap(), 0, "nothing went through the link");
        fs::remove_dir_all(directory).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn files_of_another_user_are_not_written_to() {
        let found = fs::metadata("/dev/null").unwrap();
        assert!(is_trusted_stream(&found));
        let directory = directory("others");
        let (file, stream) = (directory.join("file"), directory.join("pipe"));
        fs::write(&file, "theirs").unwrap();
        let reader = pipe(&stream);
        // Only the administrator can change the owner of a file.
        if rustix::process::geteuid().is_root() {
            for path in [&file, &stream] {
                std::os::unix::fs::chown(path, Some(65_534), None).unwrap();
            }
            assert!(append(&file).is_err() && append(&stream).is_err() && create(&stream).is_err());
            for refused in [append(&file).map(drop), create(&stream).map(drop), keep_private(&file)] {
                assert_eq!(refused.unwrap_err().to_string(), "it belongs to another user");
            }
            assert!(is_exposed(&file));
            assert_eq!(fs::read(&file).unwrap(), b"theirs");
        }
        drop(reader);
        fs::remove_dir_all(directory).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn only_regular_files_are_accepted() {
        let directory = directory("kinds");
        let (link, stream) = (directory.join("link"), directory.join("pipe"));
        std::os::unix::fs::symlink("/etc/hostname", &link).unwrap();
        let reader = pipe(&stream);
        for (path, reason) in [
            (&directory, "it is a directory"),
            (&link, "it is a symbolic link"),
            (&stream, "it is not a regular file"),
        ] {
            assert_eq!(keep_private(path).unwrap_err().to_string(), reason);
        }
        drop(reader);
        fs::remove_dir_all(directory).unwrap();
    }
}
