//! Connection attempts at several addresses of one host name, one after another.
//!
//! The program sees a single connection handle: if the server does not answer at one address, the next is tried.

use std::net::SocketAddr;
use std::time::Duration;
use std::vec::IntoIter;

use rakwire_native::rakwire::endpoint::ConnectionId;
use rakwire_native::{ConnectOptions, RakNet, polled};

use crate::security::KeptSecurity;

/// The addresses that an attempt has not tried yet, and its options.
#[derive(Debug)]
pub(crate) struct Attempt {
    remaining: IntoIter<SocketAddr>,
    password: Vec<u8>,
    protocol_version: Option<u8>,
    connect_timeout: Option<Duration>,
    attempts: Option<u8>,
    interval: Option<Duration>,
    timeout: Option<Duration>,
    security: KeptSecurity,
    /// The program has disconnected. No further address is dialled.
    is_cancelled: bool,
}

/// How an attempt proceeds after an address did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It continues at another address.
    Dialling(ConnectionId),
    /// The program has cancelled it.
    Cancelled,
    /// No address is left.
    Over,
}

impl Attempt {
    pub(crate) fn new(
        remaining: IntoIter<SocketAddr>,
        options: &ConnectOptions<'_>,
        security: KeptSecurity,
    ) -> Self {
        Self {
            remaining,
            password: options.password.to_vec(),
            protocol_version: options.protocol_version,
            connect_timeout: options.connect_timeout,
            attempts: options.attempts,
            interval: options.interval,
            timeout: options.timeout,
            security,
            is_cancelled: false,
        }
    }

    /// Starts connecting to the next usable address; unusable ones are skipped.
    fn next(&mut self, endpoint: &mut polled::Endpoint<RakNet>) -> Option<ConnectionId> {
        #[cfg_attr(
            not(feature = "secure"),
            expect(clippy::needless_update, reason = "with security there are more fields")
        )]
        let options = self.security.lend(ConnectOptions {
            password: &self.password,
            protocol_version: self.protocol_version,
            connect_timeout: self.connect_timeout,
            attempts: self.attempts,
            interval: self.interval,
            timeout: self.timeout,
            ..ConnectOptions::default()
        });
        self.remaining.find_map(|address| endpoint.connect_with(address, &options).ok())
    }
}

/// The attempts that have addresses left.
#[derive(Debug, Default)]
pub(crate) struct Attempts(Vec<(ConnectionId, Attempt)>);

impl Attempts {
    pub(crate) fn insert(&mut self, id: ConnectionId, attempt: Attempt) {
        self.0.push((id, attempt));
    }

    /// Removes the attempt of a connection that is open, refused or closed.
    pub(crate) fn end(&mut self, id: ConnectionId) {
        self.0.retain(|(other, _)| *other != id);
    }

    /// Prevents an attempt from continuing at another address.
    pub(crate) fn cancel(&mut self, id: ConnectionId) {
        if let Some(attempt) = self.find(id) {
            attempt.is_cancelled = true;
        }
    }

    /// Sets the timeout of the connection, for the addresses that are left.
    pub(crate) fn set_timeout(&mut self, id: ConnectionId, timeout: Duration) {
        if let Some(attempt) = self.find(id) {
            attempt.timeout = Some(timeout);
        }
    }

    fn find(&mut self, id: ConnectionId) -> Option<&mut Attempt> {
        self.0.iter_mut().find(|(other, _)| *other == id).map(|(_, attempt)| attempt)
    }

    /// Starts connecting to the next address after an address did not answer.
    pub(crate) fn next(&mut self, failed: ConnectionId, endpoint: &mut polled::Endpoint<RakNet>) -> Step {
        let Some(at) = self.0.iter().position(|(id, _)| *id == failed) else { return Step::Over };
        let (id, attempt) = &mut self.0[at];
        let is_cancelled = attempt.is_cancelled;
        if !is_cancelled && let Some(next) = attempt.next(endpoint) {
            *id = next;
            return Step::Dialling(next);
        }
        self.0.swap_remove(at);
        if is_cancelled { Step::Cancelled } else { Step::Over }
    }
}
