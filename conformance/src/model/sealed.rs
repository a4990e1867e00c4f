//! The keys and handshakes of the model's secure connections.

use super::fault::{Fault, SecureFault};
use crate::secure::{KeyPair, Seal};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

const WINDOW: u64 = 2048;

/// An answered handshake.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) request: Vec<u8>,
    pub(super) reply: Vec<u8>,
    pub(super) number: u8,
    pub(super) seal: Seal,
    pub(super) proof: [u8; 32],
    pub(super) used: bool,
    pub(super) seen: HashSet<u64>,
    pub(super) newest: u64,
    pub(super) last: Vec<u8>,
}

/// The secure connections of a server.
#[derive(Debug)]
pub(super) struct Secure {
    pub(super) key: KeyPair,
    pub(super) opened: HashMap<SocketAddr, Opened>,
    pub(super) answers: u64,
}

impl Secure {
    /// Encrypts a datagram to an address if there is a key for it.
    pub(super) fn seal(&mut self, to: SocketAddr, bytes: Vec<u8>, fault: Fault) -> Vec<u8> {
        match self.opened.get_mut(&to) {
            Some(opened) if fault == Fault::Secure(SecureFault::CounterStands) => {
                opened.seal.seal_as(0, &bytes)
            }
            Some(opened) => opened.seal.seal(&bytes),
            None => bytes,
        }
    }
}

impl Opened {
    /// Decrypts a datagram. Returns `None` if it is invalid or a replay.
    pub(super) fn open(&mut self, bytes: &[u8], fault: SecureFault) -> Option<Vec<u8>> {
        let mut bytes = bytes.to_vec();
        if fault == SecureFault::AnyEpoch && bytes[0] & 0x60 != 0 {
            bytes[0] &= 0x9f;
            return self.last_again();
        }
        let Some((counter, plain)) = self.seal.open(&bytes) else {
            return match fault {
                SecureFault::OpensPlain => Some(bytes),
                SecureFault::IgnoresTag => self.last_again(),
                _ => None,
            };
        };
        let old = counter + WINDOW <= self.newest && fault != SecureFault::WindowEndless;
        let again = !self.seen.insert(counter) && fault != SecureFault::TakesReplays;
        let late = counter < self.newest && fault == SecureFault::InOrderOnly;
        self.newest = self.newest.max(counter);
        if old || again || late {
            return None;
        }
        self.used = true;
        if plain.first().is_some_and(|first| first & 0x60 == 0) {
            self.last.clone_from(&plain);
        }
        Some(plain)
    }

    /// Returns a copy of the last decrypted datagram with data.
    fn last_again(&self) -> Option<Vec<u8>> {
        (!self.last.is_empty()).then(|| self.last.clone())
    }
}
