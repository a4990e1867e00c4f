//! A path with latency and loss between two programs, in user space.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBuf;
use nix::sys::time::TimeSpec;
use rakwire::sim::{Conditions, Link};

/// The longest wait before the thread checks whether it should end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A thread between a client and a server, until it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Forwards the datagrams of one client to the server at `port` and back.
    pub(crate) fn start(server: u16, conditions: Conditions, seed: u64) -> Result<Self> {
        let near = bind()?;
        let far = bind()?;
        far.connect((Ipv4Addr::LOCALHOST, server))?;
        let port = near.local_addr()?.port();
        let ended = Arc::new(AtomicBool::new(false));
        let mut path = Path {
            near,
            far,
            client: None,
            forth: Link::new(conditions, 2 * seed),
            back: Link::new(conditions, 2 * seed + 1),
            start: Instant::now(),
        };
        let until = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                // Sending to an end that has closed its socket fails; the other end reports it.
                let _ = path.forward();
            }
        });
        Ok(Self { port, ended, thread: Some(thread) })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread needs no report here.
            let _ = thread.join();
        }
    }
}

fn bind() -> Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    // The system may grant less.
    let _ = setsockopt(&socket, RcvBuf, &(4 << 20));
    Ok(socket)
}

struct Path {
    near: UdpSocket,
    far: UdpSocket,
    client: Option<SocketAddr>,
    forth: Link,
    back: Link,
    start: Instant,
}

impl Path {
    fn now(&self) -> rakwire::Instant {
        rakwire::Instant::from_micros(u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Waits for a datagram at either end of the path and forwards those that are due.
    fn forward(&mut self) -> Result<()> {
        let next = [self.forth.next_arrival(), self.back.next_arrival()].into_iter().flatten().min();
        let wait = next.map_or(POLL_INTERVAL, |next| next.saturating_since(self.now()).min(POLL_INTERVAL));
        let mut ends = [
            PollFd::new(self.near.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.far.as_fd(), PollFlags::POLLIN),
        ];
        ppoll(&mut ends, Some(TimeSpec::from_duration(wait)), None)?;
        let mut buffer = [0; 2_048];
        while let Some((length, from)) = received(self.near.recv_from(&mut buffer))? {
            self.client = Some(from);
            let now = self.now();
            self.forth.send(now, buffer.get(..length).unwrap_or_default());
        }
        while let Some(length) = received(self.far.recv(&mut buffer))? {
            let now = self.now();
            self.back.send(now, buffer.get(..length).unwrap_or_default());
        }
        let now = self.now();
        while let Some(datagram) = self.forth.receive(now) {
            self.far.send(&datagram)?;
        }
        while let Some(datagram) = self.back.receive(now) {
            if let Some(client) = self.client {
                self.near.send_to(&datagram, client)?;
            }
        }
        Ok(())
    }
}

/// `None` when nothing was received.
fn received<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_forwarded_in_both_directions_with_the_latency() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let latency = Duration::from_millis(5);
        let conditions = Conditions { latency, ..Conditions::default() };
        let proxy = Proxy::start(server.local_addr().unwrap().port(), conditions, 1).unwrap();
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let began = Instant::now();
        client.send_to(b"forth", (Ipv4Addr::LOCALHOST, proxy.port)).unwrap();
        let mut buffer = [0; 16];
        let (length, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"forth");
        server.send_to(b"back", from).unwrap();
        let (length, _) = client.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"back");
        assert!(began.elapsed() >= 2 * latency);
    }
}
