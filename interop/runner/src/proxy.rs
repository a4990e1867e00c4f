//! The proxy between client and server, which captures every datagram and applies the faults of the path.

use crate::capture::{Capture, End, Fate, Record};
use crate::path::{Kind, Path};
use crate::workers;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The size of the receive buffer, which holds every UDP datagram. A truncated datagram would look like a
/// fault of its sender.
const BUFFER: usize = 65_536;
/// The interval at which held datagrams are checked.
const POLL: Duration = Duration::from_millis(5);
/// The number of later datagrams after which a held datagram is forwarded.
const OVERTAKEN_BY: u32 = 2;
/// The time after which a held datagram is forwarded even without later datagrams.
const HELD_TIME: Duration = Duration::from_millis(40);

/// The state shared by both directions.
#[derive(Debug)]
struct Shared {
    began: Instant,
    capture: Mutex<Capture>,
    client: Mutex<Option<SocketAddr>>,
    has_ended: AtomicBool,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the socket to which the client connects. It has the server's port at another loopback address,
/// because some servers compare the port in the client's messages with their own. If the system lacks that
/// address, the socket has any free port.
fn front_socket(server: SocketAddr) -> io::Result<UdpSocket> {
    UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 2), server.port()))
        .or_else(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)))
}

/// A running proxy.
#[derive(Debug)]
pub struct Proxy {
    /// The address to which the client connects.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy in front of a server.
    ///
    /// # Errors
    ///
    /// Returns an error if a socket cannot be opened.
    pub fn start(server: SocketAddr, kind: Kind, seed: u64) -> io::Result<Self> {
        let front = front_socket(server)?;
        let back = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        back.connect(server)?;
        front.set_read_timeout(Some(POLL))?;
        back.set_read_timeout(Some(POLL))?;
        let address = front.local_addr()?;
        let shared = Arc::new(Shared {
            began: Instant::now(),
            capture: Mutex::default(),
            client: Mutex::default(),
            has_ended: AtomicBool::new(false),
        });
        let mut threads = Vec::new();
        for from in [End::Client, End::Server] {
            let direction = Direction {
                from,
                front: front.try_clone()?,
                back: back.try_clone()?,
                path: Path::new(kind, seed, from),
                held: Vec::new(),
                shared: Arc::clone(&shared),
            };
            threads.push(std::thread::spawn(move || direction.run()));
        }
        Ok(Self { address, shared, threads })
    }

    /// Stops the proxy and returns the capture.
    ///
    /// # Errors
    ///
    /// Returns an error if a thread panicked, because its part of the capture is then incomplete.
    pub fn finish(self) -> io::Result<Capture> {
        self.shared.has_ended.store(true, Ordering::Relaxed);
        workers::join_all(self.threads)?;
        Ok(std::mem::take(&mut lock(&self.shared.capture)))
    }
}

/// A delayed datagram.
#[derive(Debug)]
struct Held {
    record: usize,
    bytes: Vec<u8>,
    since: Instant,
    overtaken: u32,
}

/// One direction of the proxy.
#[derive(Debug)]
struct Direction {
    from: End,
    front: UdpSocket,
    back: UdpSocket,
    path: Path,
    held: Vec<Held>,
    shared: Arc<Shared>,
}

impl Direction {
    fn run(mut self) {
        let mut buffer = vec![0; BUFFER];
        while !self.shared.has_ended.load(Ordering::Relaxed) {
            if let Some(bytes) = self.receive(&mut buffer) {
                self.carry(bytes);
            }
            self.release();
        }
    }

    /// Waits briefly for a datagram. Returns `None` on a timeout or an ICMP error.
    fn receive<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let len = match self.from {
            End::Client => {
                let (len, client) = self.front.recv_from(buffer).ok()?;
                *lock(&self.shared.client) = Some(client);
                len
            }
            End::Server => self.back.recv(buffer).ok()?,
        };
        buffer.get(..len)
    }

    fn carry(&mut self, bytes: &[u8]) {
        let fate = self.path.decide(bytes);
        let record = {
            let mut capture = lock(&self.shared.capture);
            let at = self.shared.began.elapsed();
            let from = self.from;
            capture.records.push(Record { at, from, bytes: bytes.to_vec(), fate, arrivals: Vec::new() });
            capture.records.len() - 1
        };
        match fate {
            Fate::Dropped => return,
            Fate::Held => {
                let since = Instant::now();
                self.held.push(Held { record, bytes: bytes.to_vec(), since, overtaken: 0 });
                return;
            }
            Fate::Passed => self.pass(record, bytes),
            Fate::Doubled => {
                self.pass(record, bytes);
                self.pass(record, bytes);
            }
        }
        self.held.iter_mut().for_each(|held| held.overtaken += 1);
    }

    fn release(&mut self) {
        let is_due = |held: &mut Held| held.overtaken >= OVERTAKEN_BY || held.since.elapsed() >= HELD_TIME;
        let due: Vec<Held> = self.held.extract_if(.., is_due).collect();
        for held in due {
            self.pass(held.record, &held.bytes);
        }
    }

    /// Forwards a datagram. A datagram that the operating system refuses is lost.
    fn pass(&self, record: usize, bytes: &[u8]) {
        let client = *lock(&self.shared.client);
        let mut capture = lock(&self.shared.capture);
        let passed = match (self.from, client) {
            (End::Client, _) => self.back.send(bytes),
            (End::Server, Some(client)) => self.front.send_to(bytes, client),
            (End::Server, None) => return,
        };
        let at = self.shared.began.elapsed();
        if let Some(record) = capture.records.get_mut(record).filter(|_| passed.is_ok()) {
            record.arrivals.push(at);
        }
    }
}
