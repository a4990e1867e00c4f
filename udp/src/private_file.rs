//! Files that only their owner may read: keys, and what shows the traffic of others. The programs make all of them here.
//!
//! Each has mode 0600 on Unix, whatever the umask. No link is followed to a file elsewhere, so that another user of a folder cannot
//! have one overwritten; what replaces a file comes in its place in one step, by a rename. Pipes and devices are written to as they are.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// How many names are tried for a file that takes the place of another one.
const ATTEMPTS: u32 = 16;

/// Makes a file that is not there yet.
///
/// # Errors
/// If something has this name, also a link that leads nowhere, or the file cannot be made.
pub fn create_new(path: impl AsRef<Path>) -> io::Result<File> {
    private().create_new(true).open(path)
}

/// Makes a file that is not there yet, and that others may read, such as that of a public key.
///
/// # Errors
/// Those of [`create_new`].
pub fn create_new_public(path: impl AsRef<Path>) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Makes a file, in the place of one that has its name or of a link.
///
/// # Errors
/// If the file cannot be made, or what is there cannot be replaced.
pub fn create(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    if is_stream(path) {
        return OpenOptions::new().write(true).open(path);
    }
    let (file, temporary) = beside(path)?;
    put(&temporary, path)?;
    Ok(file)
}

/// Opens a file to write behind what it has, or makes it. Others may not read it from then on.
///
/// # Errors
/// If it is a link, cannot be written, or belongs to another user.
pub fn append(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    let mut options = private();
    options.append(true).create(true);
    if is_stream(path) {
        return options.open(path);
    }
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NOFOLLOW.bits().cast_signed(),
    );
    let file = options.open(path)?;
    // A file that was there has the permissions that it was made with.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}

/// Writes a file in one step: a reader finds what was there before, or all of this.
///
/// # Errors
/// Those of [`create`], and if the file cannot be written.
pub fn replace(path: impl AsRef<Path>, contents: &[u8]) -> io::Result<()> {
    let path = path.as_ref();
    if is_stream(path) {
        return OpenOptions::new().write(true).open(path)?.write_all(contents);
    }
    let (mut file, temporary) = beside(path)?;
    let written = file.write_all(contents).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // The disk may be full. What is left is of no use.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    put(&temporary, path)
}

/// Returns whether every user of this machine can read a file. Where files have no such permissions, none can.
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

/// Whether a path leads to a pipe or a device.
fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Makes a file with a name of its own beside another one.
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

/// Gives a file its name.
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

    /// How many files a folder has, those with temporary names included.
    fn count(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn a_file_is_replaced_in_one_step_and_nothing_is_left_beside_it() {
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
        // A folder is no file, and stays.
        assert!(
            replace(&directory, b"").is_err() && create(&directory).is_err() && append(&directory).is_err()
        );
        assert_eq!((count(&directory), directory.is_dir()), (1, true));
        fs::remove_dir_all(directory).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn the_owner_alone_can_read_each_of_them_and_no_link_is_followed() {
        use std::os::unix::fs::{PermissionsExt, symlink};

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
        assert_eq!((mode(&precious), fs::read(&precious).unwrap()), (0o644, b"precious".to_vec()));
        // One that was there is for its owner alone from then on.
        append(&precious).unwrap();
        assert_eq!(mode(&precious), 0o600);
        assert!(!is_exposed(&precious));
        append(at("log")).unwrap();
        assert_eq!(mode(&at("log")), 0o600);
        fs::remove_dir_all(directory).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn devices_are_written_to_as_they_are() {
        for path in ["/dev/null", "/dev/stdout"].map(Path::new) {
            if is_stream(path) {
                create(path).unwrap();
                append(path).unwrap();
            }
        }
        replace("/dev/null", b"x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
