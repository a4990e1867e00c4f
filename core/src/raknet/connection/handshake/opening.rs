//! A client before the server knows of it: the offline part of the handshake (docs/raknet.md#connection-attempts), the protocol
//! version that it announces (docs/raknet.md#the-version-of-the-server), and what a server says that wants keys
//! (docs/raknet.md#key-problems).

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

/// MTUs that a client tries, a third of its attempts each (docs/raknet.md#connection-attempts).
const MTUS: [u16; 3] = [MAX_MTU, 1200, MIN_MTU];
/// MTUs over IPv6: for links of 1,500 and 1,420 bytes, and for the smallest, of 1,280 (RFC 8200 section 5), less the 20 bytes
/// that an MTU does not count.
const IPV6_MTUS: [u16; 3] = [MAX_MTU_IPV6, 1400, 1260];

/// How long a client goes on after the server named another version, unless the application says how long: go-raknet, for
/// one, hears nothing from an address for 10 to 20 s after a request with a version that it does not speak.
const BLOCKED: Duration = Duration::from_secs(21);

/// Whether a client asks for the version of the server before its first request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Question {
    /// It does not.
    #[default]
    None,
    /// The unconnected ping is to be sent.
    Due,
    /// The pong is waited for. The first request waits only until it is due.
    Asked,
    /// The pong has come.
    Answered,
}

/// The requests of a client.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Opening {
    /// First requests since the largest MTU was tried first.
    requests: u8,
    /// The MTU of the last first request. No reply raises it.
    probed: u16,
    attempts: u8,
    version: Version,
    /// Microseconds between two first requests.
    interval: u32,
    next_request: Instant,
    /// When nothing more is waited for.
    deadline: Instant,
    /// Whether the application has set the deadline, which then is that of the whole handshake.
    has_timeout: bool,
    question: Question,
    reply_1: Option<Reply1>,
    /// Whether the other peer dials this one, too, and its second request was answered.
    is_crossed: bool,
}

/// What reply 1 said and request 2 has to say back.
#[derive(Clone, Copy, Debug)]
struct Reply1 {
    acceptance: Acceptance,
    mtu: u16,
}

/// What reply 2 said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply2 {
    pub(super) guid: Guid,
    pub(super) mtu: u16,
}

impl Opening {
    pub(super) fn new(cx: &Context<'_, '_>, options: &ConnectOptions<'_>) -> Self {
        // What is known was said without proof, and a secure handshake proves the version from which it began.
        let known = cx.remote.filter(|_| !options.wants_security());
        let known = known.and_then(|server| cx.state.known_versions.of(server));
        let attempts = options.attempts.unwrap_or(cx.config.connect_attempts).clamp(3, 254);
        let interval = options.interval.unwrap_or(cx.config.connect_interval);
        let all_attempts = long_micros(interval).saturating_mul(u64::from(attempts) + 1);
        let timeout = options.connect_timeout.map_or(all_attempts, long_micros);
        let is_unknown = options.protocol_version.is_none() && known.is_none() && !options.wants_security();
        let asks = shared_state::ASKS && is_unknown && cx.config.asks_version();
        // As long as for a lost request, and no long part of a short time.
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

    /// Whether a pong is waited for that shows the version of the server.
    pub(super) fn awaits_pong(&self) -> bool {
        shared_state::ASKS && self.question == Question::Asked
    }

    /// The server has answered the question for its version, with one that is known from the pong or with none.
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

    /// When a handshake ends that without the application's wish would end at `usual`.
    pub(super) const fn deadline_or(&self, usual: Instant) -> Instant {
        if self.has_timeout { self.deadline } else { usual }
    }

    /// Whether the other peer dials this one, too, and its second request was answered.
    pub(super) const fn is_crossed(&self) -> bool {
        self.is_crossed
    }

    /// Notes that the second request of the other peer is answered.
    pub(super) const fn cross(&mut self) {
        self.is_crossed = true;
    }

    /// The version that is announced.
    pub(super) const fn version(&self) -> u8 {
        self.version.announced
    }

    /// Lets the next request be due `wait` from now.
    pub(super) fn postpone(&mut self, now: Instant, wait: Duration) {
        self.next_request = now + wait;
    }

    /// When the next request is due, or the attempt is over: when a reply is missing, and after reply 2 when the rest of
    /// the handshake is.
    pub(super) fn next_deadline(&self) -> Instant {
        self.next_request.min(self.deadline)
    }

    /// Handles an answer of the server; the second one ends this part of the handshake.
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
            // A scrubber in front of a server may reply first; every later reply is answered, too.
            self.reply_1 = Some(Reply1 { acceptance, mtu });
        }
        Ok(())
    }

    /// The server speaks another version: that is announced from now on, at once and then as before.
    fn on_incompatible(&mut self, cx: &mut Context<'_, '_>, server: u8) -> Result<(), ConnectFailure> {
        if let Some(remote) = *cx.remote {
            cx.state.known_versions.remember(remote, server);
        }
        if self.version.on_incompatible(server, self.requests)? == Reaction::Changed {
            self.next_request = cx.now;
            // The server has answered to the last request: its MTU is one that the path carries.
            self.requests = self.requests.saturating_sub(1);
            if !self.has_timeout {
                self.deadline = cx.now + BLOCKED;
            }
        }
        Ok(())
    }

    /// Composes request 2 if reply 1 came, or request 1 if it is time for one.
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

    /// Whether nothing more is waited for.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.deadline <= now
    }

    /// Why the attempt failed when it is over.
    pub(super) const fn failure(&self) -> ConnectFailure {
        self.version.silence()
    }

    /// Whether the server has not said anything yet.
    pub(super) fn is_unanswered(&self) -> bool {
        self.question != Question::Answered && self.failure() == ConnectFailure::NoAnswer
    }

    /// The MTU that the next request probes. After all attempts the largest one is tried anew.
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

    /// Handles that the system refused a datagram of this length because it is too large for the path: the next smaller MTU
    /// is probed at once.
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

    /// The MTU that a reply names, as far as a request of that size has left.
    fn clamp_mtu(&self, mtu: u16) -> u16 {
        mtu.min(self.probed).max(MIN_MTU)
    }
}

/// The MTUs that a client tries with a server at this address.
const fn mtus(remote: SocketAddr) -> &'static [u16; 3] {
    if remote.is_ipv6() { &IPV6_MTUS } else { &MTUS }
}

/// The address of the server as the client writes it.
pub(super) const fn dialled(config: &Config, remote: SocketAddr) -> SocketAddr {
    match config.dialled_address {
        DialledAddress::Known => remote,
        DialledAddress::Unknown => UNASSIGNED,
    }
}

/// How often a server may make a client change its version in one attempt.
const MOST_CHANGES: u8 = 2;

/// The version that a client announces, and what it has heard of the server's.
#[derive(Clone, Copy, Debug, Default)]
struct Version {
    announced: u8,
    /// The version that was announced first.
    first: u8,
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
enum Reaction {
    /// It announces the version that the server named.
    Changed,
    /// The answer was to a request with a former version.
    Ignored,
}

impl Version {
    /// The version that the application wants, or else the one that the server was heard to speak, or else that of the
    /// configuration.
    fn new(options: &ConnectOptions<'_>, known: Option<u8>, config: &Config) -> Self {
        let announced = options.protocol_version.or(known).unwrap_or(config.protocol_version);
        Self { announced, first: announced, is_fixed: options.protocol_version.is_some(), ..Self::default() }
    }

    /// The server named its version, after it was sent so many requests with the announced one.
    fn on_incompatible(&mut self, server: u8, requests: u8) -> Result<Reaction, ConnectFailure> {
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
    const fn learn(&mut self, server: u8, requests: u8) {
        if !self.is_fixed && !self.is_accepted && !self.was_changed() {
            (self.announced, self.first) = (server, server);
            self.late_answers = requests;
        }
    }

    const fn on_accepted(&mut self) {
        self.is_accepted = true;
    }

    /// Whether the server made the client change the version.
    const fn was_changed(&self) -> bool {
        self.changes > 0
    }

    /// Why an attempt failed at which end nothing more came back.
    const fn silence(&self) -> ConnectFailure {
        if self.was_changed() && !self.is_accepted {
            ConnectFailure::SilentSinceIncompatible { server: self.announced }
        } else if self.is_accepted {
            ConnectFailure::HandshakeTimeout
        } else {
            ConnectFailure::NoAnswer
        }
    }
}

/// What the original leaves of 0A in a connection, where no other message is so short
/// (docs/raknet.md#cut-messages).
const CUT_OFF: &[u8] = &[0];

/// Why a message in a connection that tells of keys ends the attempt of a client; none for any other message.
pub(super) const fn failure_in_connection(message: &[u8]) -> Option<ConnectFailure> {
    match message {
        CUT_OFF => Some(ConnectFailure::SecurityRequired),
        _ => failure_of(message),
    }
}

/// Why a message that tells of keys ends the attempt of a client; none for any other message. The documents disagree on
/// what follows the ids, and the original on how much of it is sent.
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
