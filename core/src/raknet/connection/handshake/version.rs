//! Which protocol version a client announces (docs/raknet.md#the-version-of-the-server).

use crate::raknet::config::Config;
use crate::raknet::reason::ConnectFailure;
use crate::raknet::types::ConnectOptions;

/// How often a server may make a client change its version in one attempt.
const MOST_CHANGES: u8 = 2;

/// The version that a client announces, and what it has heard of the server's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Version {
    pub(super) announced: u8,
    /// The version that was announced first.
    pub(super) first: u8,
    /// Whether the application insists on this version.
    is_fixed: bool,
    /// How often the server made the client change it.
    changes: u8,
    /// Answers to requests with former versions that may still be on their way.
    late_answers: u8,
    /// Whether the server has answered to the announced version.
    is_accepted: bool,
}

/// What a client does after it has heard of another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// It announces the version that the server named.
    Changed,
    /// The answer was to a request with a former version.
    Ignored,
}

impl Version {
    /// The version that the application wants, or else the one that the server was heard to speak, or else that of the
    /// configuration.
    pub(super) fn new(options: &ConnectOptions<'_>, known: Option<u8>, config: &Config) -> Self {
        let announced = options.protocol_version.or(known).unwrap_or(config.protocol_version);
        Self { announced, first: announced, is_fixed: options.protocol_version.is_some(), ..Self::default() }
    }

    /// The server named its version, after it was sent so many requests with the announced one.
    pub(super) fn on_incompatible(&mut self, server: u8, requests: u8) -> Result<Reaction, ConnectFailure> {
        let failure = ConnectFailure::IncompatibleProtocol { server };
        if self.is_fixed {
            return Err(failure);
        }
        if server != self.announced && self.changes < MOST_CHANGES {
            self.changes += 1;
            self.announced = server;
            self.late_answers = requests.max(1);
            return Ok(Reaction::Changed);
        }
        // A server that names the version which it has just been told cannot be helped.
        self.late_answers = self.late_answers.checked_sub(1).ok_or(failure)?;
        Ok(Reaction::Ignored)
    }

    /// A pong shows which version the server speaks, after it was sent so many requests with the announced one.
    pub(super) const fn learn(&mut self, server: u8, requests: u8) {
        if !self.is_fixed && !self.is_accepted && !self.was_changed() {
            (self.announced, self.first) = (server, server);
            self.late_answers = requests;
        }
    }

    pub(super) const fn on_accepted(&mut self) {
        self.is_accepted = true;
    }

    /// Whether the server made the client change the version.
    pub(super) const fn was_changed(&self) -> bool {
        self.changes > 0
    }

    /// Why an attempt failed at which end nothing more came back.
    pub(super) const fn silence(&self) -> ConnectFailure {
        if self.was_changed() && !self.is_accepted {
            ConnectFailure::SilentSinceIncompatible { server: self.announced }
        } else if self.is_accepted {
            ConnectFailure::HandshakeTimeout
        } else {
            ConnectFailure::NoAnswer
        }
    }
}
