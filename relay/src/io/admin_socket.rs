//! The admin socket: a Unix socket that the user of the relay alone can open.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use rakwire_udp::private_file;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::UnixListener;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 16;

/// The socket, whose file is removed at the end.
#[derive(Debug)]
pub(crate) struct AdminSocket {
    listener: UnixListener,
    file: SocketFile,
}

#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    /// Device and inode: another relay may have made a socket there meanwhile.
    identity: (u64, u64),
    /// Closed, and so unlocked, once the socket is removed.
    _lock: Flock<fs::File>,
}

impl AdminSocket {
    /// Listens on a socket of mode 0600 at `path`. One that an earlier relay has left is removed. Anything else is left as it is:
    /// a file, a link, a socket on which another program listens. Relays that start at once find each other by a lock on a file beside
    /// it, which stays.
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        let lock = lock(path)?;
        remove_stale(path)?;
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        // Binding makes the file, or fails if there is anything by now, a link included. Nobody can connect before `listen`.
        socket.bind(&SockAddr::unix(path)?)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        let made = fs::symlink_metadata(path)?;
        if !made.file_type().is_socket() || made.permissions().mode() & 0o777 != 0o600 {
            return Err(io::Error::other("another program has replaced the socket"));
        }
        let file = SocketFile { path: path.to_owned(), identity: (made.dev(), made.ino()), _lock: lock };
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        Ok(Self { listener: UnixListener::from_std(std::os::unix::net::UnixListener::from(socket))?, file })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }

    pub(super) async fn accept(&self) -> io::Result<tokio::net::UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_own = |found: fs::Metadata| (found.dev(), found.ino()) == self.identity;
        if fs::symlink_metadata(&self.path).is_ok_and(is_own) {
            // What is left is removed at the next start.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Locks the file beside a socket until it is closed. It is never removed, or two relays could lock two files of its name.
fn lock(path: &Path) -> io::Result<Flock<fs::File>> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    // It follows no link, or another user could have a file of this one opened.
    let locked = Flock::lock(private_file::append(name)?, FlockArg::LockExclusiveNonblock);
    locked.map_err(|(_, error)| if error == Errno::EWOULDBLOCK { in_use() } else { error.into() })
}

fn in_use() -> io::Error {
    io::Error::new(io::ErrorKind::AddrInUse, "another program listens on it")
}

fn remove_stale(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is something else than a socket"));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
        Ok(_) => Err(in_use()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("rakwire-relay-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[tokio::test]
    async fn only_its_user_can_open_the_socket_and_a_stale_one_is_removed() {
        let path = directory("socket").join("admin.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "nobody listens on it any more");
        let socket = AdminSocket::bind(&path).unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let second = AdminSocket::bind(&path).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        drop(socket);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn relays_that_start_at_once_do_not_take_each_others_socket() {
        let path = directory("race").join("admin.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        // Another relay holds the place, and its socket is not listened on yet.
        let other = lock(&path).unwrap();
        let refused = AdminSocket::bind(&path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        assert!(path.exists(), "its socket stays");
        drop(other);
        let socket = AdminSocket::bind(&path).unwrap();
        drop(socket);
        let links = directory("race-link");
        let path = links.join("admin.sock");
        let _ = fs::remove_file(links.join("admin.sock.lock"));
        std::os::unix::fs::symlink(links.join("elsewhere"), links.join("admin.sock.lock")).unwrap();
        assert!(AdminSocket::bind(&path).is_err());
        assert!(!links.join("elsewhere").exists() && !path.exists());
    }

    #[tokio::test]
    async fn what_is_no_socket_stays() {
        let directory = directory("no-socket");
        let (file, link) = (directory.join("file"), directory.join("link"));
        fs::write(&file, "precious").unwrap();
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(directory.join("elsewhere"), &link).unwrap();
        for path in [&file, &link] {
            assert_eq!(AdminSocket::bind(path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(fs::read(&file).unwrap(), b"precious");
        assert!(!directory.join("elsewhere").exists() && fs::read_link(&link).is_ok());
    }
}
