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

/// The MTUs that a client probes, a third of its attempts each (docs/raknet.md#connection-attempts).
const MTUS: [u16; 3] = [MAX_MTU, 1200, MIN_MTU];
/// The MTUs that a client probes over IPv6.
///
/// They are for links of 1,500 and 1,420 bytes and for the minimum of 1,280 (RFC 8200 section 5), less the 20 bytes
/// that an MTU value does not count.
const IPV6_MTUS: [u16; 3] = [MAX_MTU_IPV6, 1400, 1260];

/// The time for which a client continues after the server named another version.
///
/// The application may set another time. Some servers, such as go-raknet, ignore an address for 10 to 20 s after a
/// request with a version that they do not support.
const BLOCKED: Duration = Duration::from_secs(21);

/// The progress of the query for the server's version that precedes the first request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Question {
    /// The client does not query the version.
    #[default]
    None,
    /// The unconnected ping is to be sent.
    Due,
    /// The ping was sent. The first request waits for the pong only until it is due.
    Asked,
    /// The pong has arrived.
    Answered,
}

/// The requests of a client.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Opening {
    /// First requests sent since the largest MTU was first tried.
    requests: u8,
    /// The MTU of the last first request. No reply raises it.
    probed: u16,
    attempts: u8,
    version: Version,
    /// Microseconds between two first requests.
    interval: u32,
    next_request: Instant,
    /// When the attempt ends.
    deadline: Instant,
    /// Set if the application chose the deadline, which then covers the whole handshake.
    has_timeout: bool,
    question: Question,
    reply_1: Option<Reply1>,
    /// Set if the remote peer dials this end too, and its second request was answered.
    is_crossed: bool,
}

/// The fields of reply 1 that request 2 has to return.
#[derive(Clone, Copy, Debug)]
struct Reply1 {
    acceptance: Acceptance,
    mtu: u16,
}

/// The fields of reply 2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply2 {
    pub(super) guid: Guid,
    pub(super) mtu: u16,
}

impl Opening {
    pub(super) fn new(cx: &Context<'_, '_>, options: &ConnectOptions<'_>) -> Self {
        // The known version is unauthenticated, and a secure handshake authenticates the version from which it began.
        let known = cx.remote.filter(|_| !options.is_secure());
        let known = known.and_then(|server| cx.state.known_versions.of(server));
        let attempts = options.attempts.unwrap_or(cx.config.connect_attempts).clamp(3, 254);
        let interval = options.interval.unwrap_or(cx.config.connect_interval);
        let all_attempts = long_micros(interval).saturating_mul(u64::from(attempts) + 1);
        let timeout = options.connect_timeout.map_or(all_attempts, long_micros);
        let is_unknown = options.protocol_version.is_none() && known.is_none() && !options.is_secure();
        let asks = shared_state::ASKS && is_unknown && cx.config.queries_version();
        // As long as for a lost request, but only a small part of a short timeout.
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

    /// Returns true while the client waits for a pong that shows the version of the server.
    pub(super) fn awaits_pong(&self) -> bool {
        shared_state::ASKS && self.question == Question::Asked
    }

    /// Handles the answer to the version query, with the version if the pong shows one.
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

    /// Returns the end of a handshake that ends at `usual` unless the application has set a timeout.
    pub(super) const fn deadline_or(&self, usual: Instant) -> Instant {
        if self.has_timeout { self.deadline } else { usual }
    }

    /// Returns true if the remote peer dials this end too, and its second request was answered.
    pub(super) const fn is_crossed(&self) -> bool {
        self.is_crossed
    }

    /// Notes that the second request of the remote peer is answered.
    pub(super) const fn cross(&mut self) {
        self.is_crossed = true;
    }

    /// Returns the announced version.
    pub(super) const fn version(&self) -> u8 {
        self.version.announced
    }

    /// Postpones the next request until `wait` from now.
    pub(super) fn postpone(&mut self, now: Instant, wait: Duration) {
        self.next_request = now + wait;
    }

    /// Returns when the next request is due, or when the attempt ends.
    ///
    /// After reply 2 that is the end of the rest of the handshake.
    pub(super) fn next_deadline(&self) -> Instant {
        self.next_request.min(self.deadline)
    }

    /// Handles an answer of the server; reply 2 ends this part of the handshake.
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
            // A scrubber in front of a server may reply first; every later reply is answered too.
            self.reply_1 = Some(Reply1 { acceptance, mtu });
        }
        Ok(())
    }

    /// Handles a reply that the server uses another version.
    ///
    /// Requests with that version are sent from now on, the first one immediately.
    fn on_incompatible(&mut self, cx: &mut Context<'_, '_>, server: u8) -> Result<(), ConnectFailure> {
        if let Some(remote) = *cx.remote {
            cx.state.known_versions.remember(remote, server);
        }
        if self.version.on_incompatible(server, self.requests)? == Reaction::Changed {
            self.next_request = cx.now;
            // The server has answered the last request, so the path carries its MTU.
            self.requests = self.requests.saturating_sub(1);
            if !self.has_timeout {
                self.deadline = cx.now + BLOCKED;
            }
        }
        Ok(())
    }

    /// Composes request 2 if reply 1 has arrived, or request 1 if one is due.
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

    /// Returns true if the attempt is over.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.deadline <= now
    }

    /// Returns the reason why the attempt failed.
    pub(super) const fn failure(&self) -> ConnectFailure {
        self.version.silence()
    }

    /// Returns true if the server has not answered yet.
    pub(super) fn is_unanswered(&self) -> bool {
        self.question != Question::Answered && self.failure() == ConnectFailure::NoAnswer
    }

    /// Returns the MTU that the next request probes. After all attempts it starts again with the largest.
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

    /// Called when the system refused a datagram of this length as too large for the path.
    ///
    /// Probes the next smaller MTU immediately.
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

    /// Limits the MTU of a reply to the largest size that was sent in a request.
    fn clamp_mtu(&self, mtu: u16) -> u16 {
        mtu.min(self.probed).max(MIN_MTU)
    }
}

/// Returns the MTUs that a client probes for a server at this address.
const fn mtus(remote: SocketAddr) -> &'static [u16; 3] {
    if remote.is_ipv6() { &IPV6_MTUS } else { &MTUS }
}

/// Returns the server's address as the client writes it.
pub(super) const fn dialled(config: &Config, remote: SocketAddr) -> SocketAddr {
    match config.dialled_address {
        DialledAddress::Known => remote,
        DialledAddress::Unknown => UNASSIGNED,
    }
}

/// The number of times that a server may make a client change its version in one attempt.
const MAX_CHANGES: u8 = 2;

/// The version that a client announces, and its knowledge of the server's version.
#[derive(Clone, Copy, Debug, Default)]
struct Version {
    announced: u8,
    /// The version that was announced first.
    first: u8,
    /// Set if the application requires this version.
    is_fixed: bool,
    /// The number of times that the server made the client change it.
    changes: u8,
    /// Answers to requests with earlier versions that may still be in transit.
    late_answers: u8,
    /// Set once the server has answered to the announced version.
    is_accepted: bool,
}

/// The reaction of a client to a server with another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    /// The client announces the version that the server named.
    Changed,
    /// The answer was to a request with an earlier version.
    Ignored,
}

impl Version {
    /// Chooses the version of the application, of the server if known, or of the configuration, in this order.
    fn new(options: &ConnectOptions<'_>, known: Option<u8>, config: &Config) -> Self {
        let announced = options.protocol_version.or(known).unwrap_or(config.protocol_version);
        Self { announced, first: announced, is_fixed: options.protocol_version.is_some(), ..Self::default() }
    }

    /// Handles a version named by the server, after `requests` requests with the announced one.
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
        // A server that rejects a request with the version that it names cannot be satisfied.
        self.late_answers = self.late_answers.checked_sub(1).ok_or(failure)?;
        Ok(Reaction::Ignored)
    }

    /// Handles a pong that shows the server's version, after `requests` requests with the announced one.
    const fn learn(&mut self, server: u8, requests: u8) {
        if !self.is_fixed && !self.is_accepted && !self.was_changed() {
            (self.announced, self.first) = (server, server);
            self.late_answers = requests;
        }
    }

    const fn on_accepted(&mut self) {
        self.is_accepted = true;
    }

    /// Returns true if the server made the client change the version.
    const fn was_changed(&self) -> bool {
        self.changes > 0
    }

    /// Returns the failure of an attempt that ended without further answers.
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

/// The part of message 0A that the original sends inside a connection (docs/raknet.md#cut-messages).
///
/// No other message there is so short.
const CUT_OFF: &[u8] = &[0];

/// Returns the failure for a message about keys inside a connection; `None` for any other message.
pub(super) const fn failure_in_connection(message: &[u8]) -> Option<ConnectFailure> {
    match message {
        CUT_OFF => Some(ConnectFailure::SecurityRequired),
        _ => failure_of(message),
    }
}

/// Returns the failure for a message about keys; `None` for any other message.
///
/// The documents disagree on the bytes after the ids, and the original sends varying amounts of them.
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
