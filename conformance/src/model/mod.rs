//! A small RakNet peer, server or client, that is correct or has one deliberate fault.
//!
//! The model proves that each case can fail: the case must pass against the correct model, and fail against the model
//! with the case's fault. The model shares the encoder of the suite ([`crate::wire`]), so it does not test the encoder.
//! The bytes in docs/raknet.md and servers by other authors test it.

mod client;
mod connection;
mod dial;
mod fault;
mod game;
mod offline;
mod parse;
mod sealed;
mod secure;
mod server;
mod turn;

pub use fault::{Fault, GameFault, SecureFault};
use game::GameServer;
use server::Server;
pub use server::Setup;

use turn::Turn;

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
    /// Starts a model on a free local port.
    ///
    /// # Errors
    ///
    /// Returns an error if no socket can be opened.
    pub fn start(setup: Setup, fault: Fault) -> io::Result<Self> {
        Self::run(|socket| Server::new(socket, setup, fault))
    }

    /// Starts a client that connects to an address.
    ///
    /// # Errors
    ///
    /// Returns an error if no socket can be opened.
    pub fn dial(target: SocketAddr, fault: Fault) -> io::Result<Self> {
        Self::run(|socket| Server::dialling(socket, target, fault))
    }

    /// Starts a server of the Game Protocol.
    ///
    /// # Errors
    ///
    /// Returns an error if no socket can be opened.
    pub fn game(fault: Fault) -> io::Result<Self> {
        Self::run(|socket| GameServer::new(socket, fault))
    }

    /// Starts a server that requires secure connections.
    ///
    /// # Errors
    ///
    /// Returns an error if no socket can be opened.
    pub fn secure(fault: Fault) -> io::Result<Self> {
        Self::run(|socket| Server::secure(socket, fault))
    }

    fn run<M: Turn + Send + 'static>(model: impl FnOnce(UdpSocket) -> M) -> io::Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(Duration::from_millis(5)))?;
        let address = socket.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let mut server = model(socket);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                server.turn();
            }
        });
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// Returns the address of the model.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, there is nothing to clean up.
            let _ = thread.join();
        }
    }
}
