//! The offline part of a client's handshake (docs/raknet.md#connection-attempts).
//!
//! It includes the negotiation of the protocol version (docs/raknet.md#the-version-of-the-server) and the errors of a
//! server that requires keys (docs/raknet.md#key-problems).

use core::net::SocketAddr;
use core::time::Duration;

use crate::cursor::Writer;
use crate::raknet::config::{Config, ConnectOptions, DialledAddress};
use crate::raknet::connection::block_header::Context;
use crate::raknet::connection::negotiation::{Acceptance, Offer, Reply2Fields};
use crate::raknet::connection::protection::ConnectionProtection;
use crate::raknet::reason::ConnectFailure;
use crate::raknet::shared_state;
use crate::raknet::stats::DropReason;
use crate::raknet::wire::address::UNASSIGNED;
use crate::raknet::wire::offline::{Offline, PingScope, ServerSecurity};
use crate::raknet::wire::{Guid, IP_UDP_OVERHEAD, MAX_MTU, MAX_MTU_IPV6, MIN_MTU, Wire, id};
use crate::time::{Instant, long_micros, micros};

/// The MTUs that a client probes, with a third of its requests each (docs/raknet.md#connection-attempts).
const MTUS: [u16; 3] = [MAX_MTU, 1200, MIN_MTU];
/// The MTUs that a client probes over IPv6.
///
/// They fit links of 1,500, 1,420 and 1,280 bytes (the IPv6 minimum, RFC 8200 section 5). Each value is 20 bytes
/// smaller than the link allows, because MTU values on the wire assume an IPv4 header.
const IPV6_MTUS: [u16; 3] = [MAX_MTU_IPV6, 1400, 1260];

/// The default time for which a client retries after the server named another version.
///
/// Some servers, such as go-raknet, ignore an address for 10 to 20 s after a request with an unsupported version.
const BLOCKED: Duration = Duration::from_secs(21);

/// The state of the version query before the first request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Question {
    /// No query.
    #[default]
    None,
    /// The unconnected ping is to be sent.
    Due,
    /// The ping was sent. Request 1 is delayed until the pong is received, or until the query times out.
    Asked,
    /// The pong was received.
    Answered,
}

/// The state of a client's offline handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Opening {
    /// The number of times that request 1 was sent since the probing last restarted with the largest MTU.
    requests: u8,
    /// The MTU of the last request 1, which a reply cannot raise.
    probed: u16,
    attempts: u8,
    version: Version,
    /// The interval between transmissions of request 1 in microseconds.
    interval: u32,
    next_request: Instant,
    /// The time at which the attempt fails.
    deadline: Instant,
    /// Set if the application has set a timeout; the deadline then covers the whole handshake.
    has_timeout: bool,
    question: Question,
    reply_1: Option<Reply1>,
    /// Set in a simultaneous open, once request 2 of the remote peer has been handled.
    is_crossed: bool,
}

/// The contents of reply 1 needed for request 2.
#[derive(Clone, Copy, Debug)]
struct Reply1 {
    acceptance: Acceptance,
    mtu: u16,
}

/// The contents of reply 2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply2 {
    pub(super) guid: Guid,
    pub(super) mtu: u16,
}

impl Opening {
    pub(super) fn new(cx: &Context<'_, '_>, options: &ConnectOptions<'_>) -> Self {
        // A secure handshake authenticates the version that it offers first, so it does not use a remembered version.
        let known = cx.remote.filter(|_| !options.is_secure());
        let known = known.and_then(|server| cx.state.known_versions.of(server));
        let attempts = options.attempts.unwrap_or(cx.config.connect_attempts).clamp(3, 254);
        let interval = options.interval.unwrap_or(cx.config.connect_interval);
        let all_attempts = long_micros(interval).saturating_mul(u64::from(attempts) + 1);
        let timeout = options.connect_timeout.map_or(all_attempts, long_micros);
        let is_unknown = options.protocol_version.is_none() && known.is_none() && !options.is_secure();
        let asks = shared_state::ASKS && is_unknown && cx.config.queries_version();
        // Waits for the pong at most one request interval, and at most a quarter of the timeout.
        let answer_time = if asks { u64::from(micros(interval)).min(timeout / 4) } else { 0 };
        Self {
            attempts,
            probed: MAX_MTU,
            version: Version::new(options, known, cx.config),
            interval: micros(interval),
            next_request: cx.now.plus_long(answer_time),
            deadline: cx.now.plus_long(timeout),
            has_timeout: options.connect_timeout.is_some(),
            question: if asks { Question::Due } else { Question::None },
            ..Self::default()
        }
    }

    /// Returns true while the client awaits the pong to its version query.
    pub(super) fn awaits_pong(&self) -> bool {
        shared_state::ASKS && self.question == Question::Asked
    }

    /// Handles the pong to the version query; `version` is the version that it indicates, if any.
    pub(super) fn on_pong(&mut self, now: Instant, version: Option<u8>) {
        self.question = Question::Answered;
        let learned = version.filter(|version| *version != self.version.announced);
        if let Some(version) = learned {
            self.version.learn(version, self.requests);
        }
        if learned.is_some() || self.requests == 0 {
            self.next_request = now;
        }
    }

    /// Returns the deadline of the rest of the handshake: `usual`, unless the application has set a timeout.
    pub(super) const fn deadline_or(&self, usual: Instant) -> Instant {
        if self.has_timeout { self.deadline } else { usual }
    }

    /// Returns true in a simultaneous open, once request 2 of the remote peer has been handled.
    pub(super) const fn is_crossed(&self) -> bool {
        self.is_crossed
    }

    /// Notes that the second request of the remote peer was handled.
    pub(super) const fn cross(&mut self) {
        self.is_crossed = true;
    }

    /// Returns the protocol version that the client offers.
    pub(super) const fn version(&self) -> u8 {
        self.version.announced
    }

    /// Delays the next request until `wait` from now.
    pub(super) fn postpone(&mut self, now: Instant, wait: Duration) {
        self.next_request = now + wait;
    }

    /// Returns when the next request is due, or when the attempt fails if that is earlier.
    ///
    /// After reply 2 the deadline covers the rest of the handshake, unless the application has set a timeout for the
    /// whole attempt.
    pub(super) fn next_deadline(&self) -> Instant {
        self.next_request.min(self.deadline)
    }

    /// Handles a reply of the server; reply 2 completes this part of the handshake.
    pub(super) fn on_reply(
        &mut self,
        cx: &mut Context<'_, '_>,
        protection: &mut ConnectionProtection,
        message: &Offline<'_>,
    ) -> Result<Option<Reply2>, ConnectFailure> {
        match *message {
            Offline::Reply1 { guid, security, mtu } => {
                self.on_reply_1(cx, protection, guid, security, mtu)?;
                Ok(None)
            }
            Offline::Reply2 { guid, client, mtu, answer } => {
                if !protection.on_reply_2(cx, &Reply2Fields { guid, client, mtu, answer })? {
                    return Ok(None);
                }
                let mtu = self.clamp_mtu(mtu);
                if !self.has_timeout {
                    self.deadline = cx.now + cx.config.handshake_timeout;
                }
                Ok(Some(Reply2 { guid, mtu }))
            }
            Offline::Refused { refusal, .. } => Err(ConnectFailure::Refused(refusal)),
            Offline::IncompatibleProtocol { protocol, .. } => {
                self.on_incompatible(cx, protocol)?;
                Ok(None)
            }
            Offline::Ping { .. }
            | Offline::Pong { .. }
            | Offline::OutOfBand { .. }
            | Offline::Request1 { .. }
            | Offline::Request2 { .. } => {
                cx.stats.drop(DropReason::Unexpected);
                Ok(None)
            }
        }
    }

    #[cfg_attr(
        not(feature = "secure"),
        expect(clippy::needless_pass_by_ref_mut, reason = "only keys change")
    )]
    fn on_reply_1(
        &mut self,
        cx: &mut Context<'_, '_>,
        protection: &mut ConnectionProtection,
        guid: Guid,
        security: ServerSecurity<'_>,
        mtu: u16,
    ) -> Result<(), ConnectFailure> {
        let Some(remote) = *cx.remote else { return Ok(()) };
        let mtu = self.clamp_mtu(mtu);
        let server_address = dialled(cx.config, remote);
        let versions = [self.version.announced, self.version.first];
        let offer = Offer { guid, security, server_address, mtu, versions };
        if let Some(acceptance) = protection.on_offer(cx, &offer)? {
            self.version.on_accepted();
            // A DDoS scrubber may send a reply 1 before the server does, so later replies replace earlier ones.
            self.reply_1 = Some(Reply1 { acceptance, mtu });
        }
        Ok(())
    }

    /// Handles a reply that names another protocol version.
    ///
    /// From then on the client sends its requests with that version, beginning immediately.
    fn on_incompatible(&mut self, cx: &mut Context<'_, '_>, server: u8) -> Result<(), ConnectFailure> {
        if let Some(remote) = *cx.remote {
            cx.state.known_versions.remember(remote, server);
        }
        if self.version.on_incompatible(server, self.requests)? == Reaction::Changed {
            self.next_request = cx.now;
            // The server has received the last request, so the path carries its MTU.
            self.requests = self.requests.saturating_sub(1);
            if !self.has_timeout {
                self.deadline = cx.now + BLOCKED;
            }
        }
        Ok(())
    }

    /// Writes request 2 if reply 1 was received, or request 1 if it is due.
    pub(super) fn compose(
        &mut self,
        cx: &Context<'_, '_>,
        protection: &ConnectionProtection,
        remote: SocketAddr,
        buffer: &mut [u8],
    ) -> Option<usize> {
        if shared_state::ASKS && self.question == Question::Due {
            self.question = Question::Asked;
            let (time, guid) = (cx.now.as_millis(), Some(cx.config.guid));
            let mut writer = Writer::new(buffer);
            Offline::Ping { scope: PingScope::Any, time, guid }.write(&mut writer).ok()?;
            return Some(writer.written());
        }
        let request = match self.reply_1.take() {
            Some(reply) => Offline::Request2 {
                security: protection.client_security(reply.acceptance),
                server: dialled(cx.config, remote),
                mtu: reply.mtu,
                guid: cx.config.guid,
            },
            None if self.next_request <= cx.now && cx.now < self.deadline => {
                let mtu = self.next_mtu(cx.config, remote);
                self.next_request = cx.now.plus_micros(self.interval);
                Offline::Request1 { protocol: self.version.announced, mtu }
            }
            None => return None,
        };
        let mut writer = Writer::new(buffer);
        request.write(&mut writer).ok()?;
        Some(writer.written())
    }

    /// Returns true if the attempt has failed.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.deadline <= now
    }

    /// Returns the reason for the failure of the attempt.
    pub(super) const fn failure(&self) -> ConnectFailure {
        self.version.silence()
    }

    /// Returns true if no reply was received yet.
    pub(super) fn is_unanswered(&self) -> bool {
        self.question != Question::Answered && self.failure() == ConnectFailure::NoAnswer
    }

    /// Returns the MTU for the next request 1. After all attempts it restarts with the largest.
    fn next_mtu(&mut self, config: &Config, remote: SocketAddr) -> u16 {
        let index = usize::from(self.requests / self.attempts_at_each_mtu()).min(MTUS.len() - 1);
        if !self.version.was_changed() {
            self.requests = if self.requests < self.attempts { self.requests + 1 } else { 0 };
        }
        self.probed = config.clamp_mtu(mtus(remote).get(index).copied().unwrap_or(MAX_MTU), remote);
        self.probed
    }

    fn attempts_at_each_mtu(&self) -> u8 {
        (self.attempts / 3).max(1)
    }

    /// Called when the operating system refused a datagram of `length` bytes as too large for the path.
    ///
    /// The next smaller MTU is probed immediately.
    pub(super) fn on_too_large(&mut self, cx: &Context<'_, '_>, length: usize) {
        let Some(remote) = *cx.remote else { return };
        if length + usize::from(IP_UDP_OVERHEAD) != usize::from(self.probed) {
            return;
        }
        let is_smaller = |mtu: &u16| cx.config.clamp_mtu(*mtu, remote) < self.probed;
        let smaller = (0..).zip(mtus(remote)).find(|(_, mtu)| is_smaller(mtu));
        if let Some((index, _)) = smaller {
            self.requests = self.attempts_at_each_mtu().saturating_mul(index);
            self.next_request = cx.now;
        }
    }

    /// Limits the MTU of a reply to the size of the last request.
    fn clamp_mtu(&self, mtu: u16) -> u16 {
        mtu.min(self.probed).max(MIN_MTU)
    }
}

/// Returns the MTUs to probe for a server at this address.
const fn mtus(remote: SocketAddr) -> &'static [u16; 3] {
    if remote.is_ipv6() { &IPV6_MTUS } else { &MTUS }
}

/// Returns the server's address for the handshake messages.
pub(super) const fn dialled(config: &Config, remote: SocketAddr) -> SocketAddr {
    match config.dialled_address {
        DialledAddress::Known => remote,
        DialledAddress::Unknown => UNASSIGNED,
    }
}

/// The maximum number of times that a server's replies make a client change its version in one attempt.
const MAX_CHANGES: u8 = 2;

/// The protocol version that a client offers, and the state of its negotiation.
#[derive(Clone, Copy, Debug, Default)]
struct Version {
    announced: u8,
    /// The version offered first.
    first: u8,
    /// Set if `ConnectOptions::protocol_version` requires this version.
    is_fixed: bool,
    /// The number of times that replies of the server changed the version.
    changes: u8,
    /// The number of outstanding replies to requests with earlier versions.
    late_answers: u8,
    /// Set once the server has accepted the offered version.
    is_accepted: bool,
}

/// The result of handling a reply with another protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    /// The client now offers the version that the server named.
    Changed,
    /// The reply belongs to a request with an earlier version.
    Ignored,
}

impl Version {
    /// Chooses the version in the options, or else the remembered version of the server, or else the version in the
    /// configuration.
    fn new(options: &ConnectOptions<'_>, known: Option<u8>, config: &Config) -> Self {
        let announced = options.protocol_version.or(known).unwrap_or(config.protocol_version);
        Self { announced, first: announced, is_fixed: options.protocol_version.is_some(), ..Self::default() }
    }

    /// Handles a version named by the server, after `requests` requests with the offered version.
    fn on_incompatible(&mut self, server: u8, requests: u8) -> Result<Reaction, ConnectFailure> {
        let failure = ConnectFailure::IncompatibleProtocol { server };
        if self.is_fixed {
            return Err(failure);
        }
        if server != self.announced && self.changes < MAX_CHANGES {
            self.changes += 1;
            self.announced = server;
            self.late_answers = requests.max(1);
            return Ok(Reaction::Changed);
        }
        // Without outstanding replies, the server has rejected the version that it had named, so retrying is pointless.
        self.late_answers = self.late_answers.checked_sub(1).ok_or(failure)?;
        Ok(Reaction::Ignored)
    }

    /// Handles a pong that indicates the server's version, after `requests` requests with the offered version.
    const fn learn(&mut self, server: u8, requests: u8) {
        if !self.is_fixed && !self.is_accepted && !self.was_changed() {
            (self.announced, self.first) = (server, server);
            self.late_answers = requests;
        }
    }

    const fn on_accepted(&mut self) {
        self.is_accepted = true;
    }

    /// Returns true if a reply of the server has changed the version.
    const fn was_changed(&self) -> bool {
        self.changes > 0
    }

    /// Returns the failure to report if no further reply is received.
    const fn silence(&self) -> ConnectFailure {
        if self.was_changed() && !self.is_accepted {
            ConnectFailure::NoAnswerAfterIncompatible { server: self.announced }
        } else if self.is_accepted {
            ConnectFailure::HandshakeTimeout
        } else {
            ConnectFailure::NoAnswer
        }
    }
}

/// The truncated message 0x0A that C++ RakNet sends inside a connection (docs/raknet.md#cut-messages).
///
/// No other message inside a connection is that short.
const CUT_OFF: &[u8] = &[0];

/// Returns the failure that a message about keys inside a connection reports; `None` for any other message.
pub(super) const fn failure_in_connection(message: &[u8]) -> Option<ConnectFailure> {
    match message {
        CUT_OFF => Some(ConnectFailure::SecurityRequired),
        _ => failure_of(message),
    }
}

/// Returns the failure that a message about keys reports; `None` for any other message.
///
/// The public documents disagree about the bytes after the id, and C++ RakNet sends a varying number of them.
pub(super) const fn failure_of(message: &[u8]) -> Option<ConnectFailure> {
    Some(match message {
        [id::REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY, 1, ..] => ConnectFailure::IdentityRequired,
        [id::REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY, 2, ..] => ConnectFailure::InvalidIdentity,
        [id::REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY | id::OUR_SYSTEM_REQUIRES_SECURITY, ..] => {
            ConnectFailure::SecurityRequired
        }
        [id::PUBLIC_KEY_MISMATCH, ..] => ConnectFailure::PublicKeyMismatch,
        _ => return None,
    })
}
