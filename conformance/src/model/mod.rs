//! A small RakNet server that is right, or wrong in one way on purpose.
//!
//! It shows that each case can fail: a case passes against the model and fails against the model with the case's
//! fault. It shares the encoder of the suite ([`crate::wire`]), so it does not show that the encoder is right; the
//! bytes of docs/raknet.md and the servers of others show that.

mod connection;
mod fault;
mod offline;
mod parse;
mod server;

pub use fault::Fault;
pub use server::Setup;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A running model.
#[derive(Debug)]
pub struct Model {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Model {
    /// Starts a model on a free port of this machine.
    ///
    /// # Errors
    ///
    /// When no socket can be opened.
    pub fn start(setup: Setup, fault: Fault) -> io::Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(Duration::from_millis(5)))?;
        let address = socket.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut server = server::Server::new(socket, setup, fault);
            while !stopped.load(Ordering::Relaxed) {
                server.turn();
            }
        });
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A model that panicked has nothing to clean up.
            let _ = thread.join();
        }
    }
}
