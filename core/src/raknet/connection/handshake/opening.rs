//! A client before the server knows of it: the offline part of the handshake (docs/raknet.md#connection-attempts).

use core::net::SocketAddr;

use crate::cursor::Writer;
use crate::raknet::config::{Config, DialledAddress};
use crate::raknet::connection::context::Context;
use crate::raknet::reason::ConnectFailure;
use crate::raknet::stats::DropReason;
use crate::raknet::types::ConnectOptions;
use crate::raknet::wire::address::UNASSIGNED;
use crate::raknet::wire::offline::{ClientSecurity, Offline, ServerSecurity};
use crate::raknet::wire::{Guid, MAX_MTU, Wire};
use crate::time::{Instant, micros};

/// MTUs that a client tries, a third of its attempts each (docs/raknet.md#connection-attempts).
const MTUS: [u16; 3] = [MAX_MTU, 1200, 576];

/// The requests of a client.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Opening {
    requests: u8,
    attempts: u8,
    protocol: u8,
    /// Microseconds between two first requests.
    interval: u32,
    next_request: Instant,
    reply_1: Option<Reply1>,
    /// Whether the other peer dials this one, too, and its second request was answered.
    crossed: bool,
}

/// What reply 1 said and request 2 has to say back.
#[derive(Clone, Copy, Debug)]
struct Reply1 {
    cookie: Option<u32>,
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
        Self {
            attempts: options.attempts.unwrap_or(cx.config.connect_attempts).clamp(3, 254),
            protocol: options.protocol_version.unwrap_or(cx.config.protocol_version),
            interval: micros(options.interval.unwrap_or(cx.config.connect_interval)),
            next_request: cx.now,
            ..Self::default()
        }
    }

    pub(super) const fn next_request(&self) -> Instant {
        self.next_request
    }

    /// Whether the other peer dials this one, too, and its second request was answered.
    pub(super) const fn is_crossed(&self) -> bool {
        self.crossed
    }

    /// Notes that the second request of the other peer is answered.
    pub(super) const fn cross(&mut self) {
        self.crossed = true;
    }

    /// Handles an answer of the server; the second one ends this part of the handshake.
    pub(super) fn on_reply(
        &mut self,
        cx: &mut Context<'_, '_>,
        message: &Offline<'_>,
    ) -> Result<Option<Reply2>, ConnectFailure> {
        match *message {
            Offline::Reply1 { security, mtu, .. } => {
                let cookie = match security {
                    ServerSecurity::None => None,
                    ServerSecurity::Cookie(cookie) => Some(cookie),
                    ServerSecurity::PublicKey { .. } => return Err(ConnectFailure::SecurityRequired),
                };
                // A scrubber in front of a server may reply first; every later reply is answered, too.
                self.reply_1 = Some(Reply1 { cookie, mtu: cx.config.clamp_mtu(mtu) });
                Ok(None)
            }
            // Without a challenge of ours there is nothing to answer, but for a server that would encrypt.
            Offline::Reply2 { answer: Some(_), .. } => Err(ConnectFailure::SecurityRequired),
            Offline::Reply2 { guid, mtu, answer: None, .. } => {
                Ok(Some(Reply2 { guid, mtu: cx.config.clamp_mtu(mtu) }))
            }
            Offline::Refused { refusal, .. } => Err(ConnectFailure::Refused(refusal)),
            Offline::IncompatibleProtocol { protocol, .. } => {
                Err(ConnectFailure::IncompatibleProtocol { server: protocol })
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

    /// Composes request 2 if reply 1 came, or request 1 if it is time for one.
    pub(super) fn compose(
        &mut self,
        cx: &Context<'_, '_>,
        remote: SocketAddr,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let request = match self.reply_1.take() {
            Some(reply) => Offline::Request2 {
                security: reply.cookie.map_or(ClientSecurity::None, ClientSecurity::Cookie),
                server: dialled(cx.config, remote),
                mtu: reply.mtu,
                guid: cx.config.guid,
            },
            None if self.next_request <= cx.now && self.requests <= self.attempts => {
                let mtu = self.probe_mtu(cx.config);
                self.requests += 1;
                self.next_request = cx.now.plus_micros(self.interval);
                Offline::Request1 { protocol: self.protocol, mtu }
            }
            None => return None,
        };
        let mut writer = Writer::new(buffer);
        request.write(&mut writer).ok()?;
        Some(writer.written())
    }

    /// Whether the last request was not answered in time.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.next_request <= now && self.requests > self.attempts
    }

    /// The MTU that the next request probes.
    fn probe_mtu(&self, config: &Config) -> u16 {
        let third = (self.attempts / 3).max(1);
        let index = usize::from(self.requests / third).min(MTUS.len() - 1);
        config.clamp_mtu(MTUS.get(index).copied().unwrap_or(MAX_MTU))
    }
}

/// The address of the server as the client writes it.
pub(super) const fn dialled(config: &Config, remote: SocketAddr) -> SocketAddr {
    match config.dialled_address {
        DialledAddress::Known => remote,
        DialledAddress::Unknown => UNASSIGNED,
    }
}
