//! The handshakes of a front with clients and servers.
//!
//! With RakNet, the front answers request 1 with a cookie, and begins the handshake with the server after request 2.
//! With the Game Protocol, it first exchanges salt and pepper with the client without keeping state, and then with the
//! server.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use rakwire::game_protocol::wire::{HEADER, HandshakeWord, Header};
use rakwire::raknet::Guid;
use rakwire::wire::offline::{ClientSecurity, Offline, PingScope, Refusal, ServerSecurity};
use rakwire::wire::{IP_UDP_OVERHEAD, MAX_MTU, MAX_MTU_IPV6, MIN_MTU, Reader, Wire};
use tracing::warn;

use super::counters::FrontDropReason;
use super::table::{
    FlowProtocol, GameProtocolFlow, RakNetFlow, Stage, To, Transmits, handshake_word, is_connected, is_end,
};
use super::{Admit, FlowId, Front, NotAdmitted, Route};
use crate::flow::ProxyHeader;
use crate::protocol::largest_behind;
use crate::time::Now;

/// Bytes of reply 1 with a cookie.
const REPLY_1: usize = 32;

/// Bytes of request 2 with a cookie and an IPv6 address.
const REQUEST_2: usize = 61;

/// Returns the length of request 1 in bytes, which encodes the requested MTU.
fn request_1_length(mtu: u16) -> usize {
    usize::from(mtu - IP_UDP_OVERHEAD)
}

/// Returns true if a server with this key also accepts plain clients. `docs/secure.md` defines the flag and the suite;
/// keys of other suites have no such flag.
fn is_optional(key: &[u8]) -> bool {
    const REQUIRES_SECURITY: u8 = 1;
    let fields = key.get(2).zip(key.get(3..8));
    fields.is_some_and(|(flags, suite)| flags & REQUIRES_SECURITY == 0 && suite == b"rws01")
}

impl<A: Admit> Front<A> {
    /// Handles a client's datagram that belongs to no connection or open flow.
    pub(super) fn handle_raknet<'b>(
        &mut self,
        now: Now,
        from: SocketAddr,
        datagram: &'b [u8],
        out: &mut Transmits<'b>,
    ) {
        if is_connected(datagram) {
            self.counters.dropped(FrontDropReason::UnknownSource);
            return;
        }
        let Ok(message) = Offline::read(&mut Reader::new(datagram)) else {
            self.counters.dropped(FrontDropReason::Unreadable);
            return;
        };
        match message {
            Offline::Ping { scope, time, guid } => self.handle_ping(now, from, scope, time, guid, out),
            Offline::Request1 { protocol, mtu } => {
                self.handle_request_1(now, from, protocol, mtu, datagram.len(), out);
            }
            Offline::Request2 { security, mtu, guid, .. } => {
                self.handle_request_2(now, from, security, mtu, guid, out);
            }
            Offline::Pong { .. }
            | Offline::Reply1 { .. }
            | Offline::Reply2 { .. }
            | Offline::IncompatibleProtocol { .. }
            | Offline::OutOfBand { .. }
            | Offline::Refused { .. }
            | _ => match self.open_flow(from, now.at) {
                Some(id) => self.pass_one_to_server(id, datagram, out),
                None => self.counters.dropped(FrontDropReason::UnknownSource),
            },
        }
    }

    /// Answers a ping. A pong is longer than a ping, so the rate of pongs per network is limited. A ping without a GUID
    /// is shorter than any pong and is not answered.
    fn handle_ping(
        &mut self,
        now: Now,
        from: SocketAddr,
        scope: PingScope,
        time: u64,
        guid: Option<Guid>,
        out: &mut Transmits<'_>,
    ) {
        if guid.is_none() {
            self.counters.dropped(FrontDropReason::WouldAmplify);
        } else if !self.pong_rations.admits(now.at, from.ip()) {
            self.counters.dropped(FrontDropReason::PongRation);
        } else if let Some(pong) =
            self.admission.offer().and_then(|offer| offer.pongs.answer(now.at, scope, time))
        {
            self.counters.answered();
            out.write(To::Client(from), |writer| writer.bytes(&pong));
        } else {
            self.counters.dropped(FrontDropReason::NoPong);
        }
    }

    /// Answers request 1 and stores nothing about the client except its use of the rate limit per network. The reply is
    /// never longer than the request.
    fn handle_request_1(
        &mut self,
        now: Now,
        from: SocketAddr,
        version: u8,
        mtu: u16,
        length: usize,
        out: &mut Transmits<'_>,
    ) {
        if length < REPLY_1 {
            self.counters.dropped(FrontDropReason::WouldAmplify);
            return;
        }
        let Some(cookie) = self.settings.keys.issue(from, now.unix_seconds(), version) else {
            self.counters.dropped(FrontDropReason::Unreadable);
            return;
        };
        if !self.challenge_rations.admits(now.at, from.ip()) {
            self.counters.dropped(FrontDropReason::ChallengeRation);
            return;
        }
        let (guid, mtu) = (self.guid(), self.clamp_mtu(from, mtu));
        let reply = Offline::Reply1 { guid, security: ServerSecurity::Cookie(cookie), mtu };
        self.counters.answered();
        out.write(To::Client(from), |writer| reply.write(writer));
    }

    fn handle_request_2(
        &mut self,
        now: Now,
        from: SocketAddr,
        security: ClientSecurity<'_>,
        mtu: u16,
        guid: Guid,
        out: &mut Transmits<'_>,
    ) {
        let version = match security {
            ClientSecurity::None => return self.handle_missing_cookie(),
            ClientSecurity::Cookie(cookie) | ClientSecurity::Challenge { cookie, .. } => {
                self.settings.keys.verify(from, now.unix_seconds(), cookie)
            }
        };
        let Some(version) = version else {
            self.counters.dropped(FrontDropReason::BadCookie);
            return;
        };
        let asked = RakNetFlow { version, mtu: self.clamp_mtu(from, mtu), guid, stage: Stage::Reply1 };
        let id = match self.flows.find(from) {
            Some(id) => Ok(id),
            None => {
                let handshakes = self.handshakes_of(now.at, from);
                // A client without budget also takes no slot.
                let mut left = handshakes;
                if !left.take(now.at, request_1_length(asked.mtu)) {
                    return self.counters.dropped(FrontDropReason::HandshakeBudget);
                }
                self.begin(now, from, FlowProtocol::RakNet(asked), handshakes)
            }
        };
        match id {
            Ok(id) => self.query_server(now, id, asked, out),
            Err(NotAdmitted::Later) => {}
            Err(NotAdmitted::Refused) => {
                let (refusal, guid) = (Refusal::NoFreeIncomingConnections, self.guid());
                let refused = Offline::Refused { refusal, guid };
                out.write(To::Client(from), |writer| refused.write(writer));
            }
        }
    }

    /// Counts a missing cookie. The first one is also logged, because operators look at counters only when they suspect
    /// a problem.
    fn handle_missing_cookie(&self) {
        if self.counters.dropped_before(FrontDropReason::MissingCookie) == 0 {
            warn!(
                "a client of the UDP front requested a connection without returning its cookie: its address is \
                 forged, or it does not support cookies"
            );
        }
    }

    /// Sends the message of the handshake that the server has not answered yet. Each time the client repeats its
    /// request, the next message is sent: request 1, then request 2 up to twice, then request 1 again.
    fn query_server(&mut self, now: Now, id: FlowId, asked: RakNetFlow, out: &mut Transmits<'_>) {
        let Some(flow) = self.raknet_flow(id).copied() else { return };
        let repeats_request_2 =
            matches!(flow.stage, Stage::Reply2 { is_repeated: false, .. }) && flow.guid == asked.guid;
        let length = if repeats_request_2 { REQUEST_2 } else { request_1_length(asked.mtu) };
        if !self.is_within_budget(now.at, id, length) {
            return;
        }
        if repeats_request_2 {
            self.send_request_2(id, &flow, out);
            if let Some(RakNetFlow { stage: Stage::Reply2 { is_repeated, .. }, .. }) = self.raknet_flow(id) {
                *is_repeated = true;
            }
        } else if let Some(flow) = self.raknet_flow(id) {
            *flow = asked;
            self.announce_again(id);
            let request = Offline::Request1 { protocol: asked.version, mtu: asked.mtu };
            self.write_to_server(id, out, |writer| request.write(writer));
        }
    }

    fn send_request_2(&mut self, id: FlowId, flow: &RakNetFlow, out: &mut Transmits<'_>) {
        let Stage::Reply2 { cookie, mtu, .. } = flow.stage else { return };
        let Some(Route { server, .. }) = self.route(id) else { return };
        let request = Offline::Request2 {
            security: cookie.map_or(ClientSecurity::None, ClientSecurity::Cookie),
            // The client connects to the address of the front. Some servers compare this address with their own.
            server,
            mtu,
            guid: flow.guid,
        };
        self.write_to_server(id, out, |writer| request.write(writer));
    }

    /// Handles a server's datagram that belongs to no connection or open flow.
    pub(super) fn handle_raknet_server<'b>(
        &mut self,
        id: FlowId,
        datagram: &'b [u8],
        out: &mut Transmits<'b>,
    ) {
        let Ok(message) = Offline::read(&mut Reader::new(datagram)) else {
            self.pass_if_open(id, datagram, out);
            return;
        };
        match message {
            Offline::Reply1 { security, mtu, .. } => self.handle_reply_1(id, security, mtu, out),
            Offline::Reply2 { answer: None, guid, mtu, .. } => self.handle_reply_2(id, guid, mtu, out),
            // The server would encrypt the connection although the client offered no key.
            Offline::Reply2 { guid, .. } => self.refuse(id, Refusal::AttemptFailed, guid, out),
            Offline::Refused { .. } | Offline::IncompatibleProtocol { .. } => {
                self.pass_refusal(id, datagram, out);
            }
            Offline::Ping { .. }
            | Offline::Pong { .. }
            | Offline::Request1 { .. }
            | Offline::Request2 { .. }
            | Offline::OutOfBand { .. }
            | _ => self.pass_if_open(id, datagram, out),
        }
    }

    fn handle_reply_1(
        &mut self,
        id: FlowId,
        security: ServerSecurity<'_>,
        mtu: u16,
        out: &mut Transmits<'_>,
    ) {
        let cookie = match security {
            ServerSecurity::None => None,
            ServerSecurity::Cookie(cookie) => Some(cookie),
            ServerSecurity::PublicKey { cookie, key } if is_optional(key) => Some(cookie),
            ServerSecurity::PublicKey { .. } => {
                self.refuse(id, Refusal::AttemptFailed, Guid(self.settings.guid), out);
                return;
            }
        };
        let Some(flow) = self.raknet_flow(id).filter(|flow| flow.stage != Stage::Done) else {
            self.counters.dropped(FrontDropReason::UnknownSource);
            return;
        };
        let mtu = mtu.clamp(MIN_MTU, flow.mtu);
        flow.stage = Stage::Reply2 { cookie, mtu, is_repeated: false };
        let flow = *flow;
        self.send_request_2(id, &flow, out);
    }

    fn handle_reply_2(&mut self, id: FlowId, guid: Guid, mtu: u16, out: &mut Transmits<'_>) {
        let Some(flow) = self.raknet_flow(id) else { return };
        flow.stage = Stage::Done;
        let mtu = mtu.clamp(MIN_MTU, flow.mtu);
        let Some((client, flow)) = self.flows.get(id) else { return };
        flow.is_open = true;
        let reply = Offline::Reply2 { guid, client, mtu, answer: None };
        out.write(To::Client(client), |writer| reply.write(writer));
    }

    fn pass_if_open<'b>(&mut self, id: FlowId, datagram: &'b [u8], out: &mut Transmits<'b>) {
        match self.flows.get(id).map(|(_, flow)| flow.is_open) {
            Some(true) => self.pass_one_to_client(id, datagram, out),
            Some(false) | None => self.counters.dropped(FrontDropReason::UnknownSource),
        }
    }

    /// Handles a refusal of the server and forwards it. The refusal ends only the handshake, even if an earlier
    /// connection of the flow continues.
    fn pass_refusal<'b>(&mut self, id: FlowId, datagram: &'b [u8], out: &mut Transmits<'b>) {
        let Some((client, flow)) = self.flows.get(id) else { return };
        let is_open = flow.is_open;
        out.pass(To::Client(client), datagram, datagram.len());
        if !is_open {
            self.close(id);
        }
    }

    fn refuse(&mut self, id: FlowId, refusal: Refusal, guid: Guid, out: &mut Transmits<'_>) {
        let Some((client, flow)) = self.flows.get(id) else { return };
        let is_open = flow.is_open;
        let refused = Offline::Refused { refusal, guid };
        out.write(To::Client(client), |writer| refused.write(writer));
        if !is_open {
            self.close(id);
        }
    }

    fn raknet_flow(&mut self, id: FlowId) -> Option<&mut RakNetFlow> {
        match self.flows.get(id) {
            Some((_, super::Flow { protocol: FlowProtocol::RakNet(flow), .. })) => Some(flow),
            Some(_) | None => None,
        }
    }

    /// Returns the GUID of the server, or the front's own GUID until the server's is known.
    fn guid(&self) -> Guid {
        let known = self.admission.offer().and_then(|offer| offer.pongs.guid());
        Guid(known.unwrap_or(self.settings.guid))
    }

    fn clamp_mtu(&self, client: SocketAddr, mtu: u16) -> u16 {
        let payload_max = self.admission.offer().map_or(MAX_MTU, |offer| {
            let header = offer.announced_to.map_or(0, |server| ProxyHeader { client, server }.length());
            offer.payload_max.min(largest_behind(header))
        });
        let largest = if client.is_ipv6() { MAX_MTU_IPV6 } else { MAX_MTU };
        let limit = payload_max.saturating_add(IP_UDP_OVERHEAD).clamp(MIN_MTU, largest);
        mtu.clamp(MIN_MTU, limit)
    }
}

/// The fixed bits of a salt. Their value occurs in no packet header.
const SALT_MASK: u32 = 0xC000_0000;
const SALT_MARK: u32 = 0x4000_0000;

impl<A: Admit> Front<A> {
    /// Handles a client's datagram without an open flow, in a handshake, or at the end of a connection.
    pub(super) fn handle_game_protocol<'b>(
        &mut self,
        now: Now,
        from: SocketAddr,
        datagram: &'b [u8],
        out: &mut Transmits<'b>,
    ) {
        match handshake_word(datagram) {
            Some(word) if self.settings.keys.is_seasoning(from, now.unix_seconds(), word.0) => {
                self.handle_seasoning(now, from, out);
            }
            Some(salt) => self.challenge(now, from, salt, out),
            None => match self.open_flow(from, now.at) {
                Some(id) => {
                    if is_end(datagram) {
                        self.end(id);
                    }
                    self.pass_one_to_server(id, datagram, out);
                }
                None => self.counters.dropped(FrontDropReason::UnknownSource),
            },
        }
    }

    /// Answers a salt with a pepper. The pepper is chosen such that the expected answer depends only on the client, the
    /// key and the time, so no salt is stored.
    fn challenge(&mut self, now: Now, from: SocketAddr, salt: HandshakeWord, out: &mut Transmits<'_>) {
        if !self.challenge_rations.admits(now.at, from.ip()) {
            self.counters.dropped(FrontDropReason::ChallengeRation);
            return;
        }
        let pepper = salt.season(HandshakeWord(self.settings.keys.seasoning(from, now.unix_seconds())));
        self.counters.answered();
        out.write(To::Client(from), |writer| pepper.write(writer));
    }

    /// Handles the answer that validates a client's address. A repeated answer on an established connection is ignored.
    /// If the flow still waits for the server, a new flow with another source address begins, because a server may
    /// mistake a second salt for an answer.
    fn handle_seasoning(&mut self, now: Now, from: SocketAddr, out: &mut Transmits<'_>) {
        let id = self.flows.find(from);
        let flow = id.and_then(|id| self.flows.get(id));
        if flow.is_some_and(|(_, flow)| flow.is_open && !is_over(&flow.protocol)) {
            return self.counters.dropped(FrontDropReason::Repeated);
        }
        // A client that repeatedly restarts its handshake has one budget for all attempts.
        let mut handshakes = self.handshakes_of(now.at, from);
        if !handshakes.take(now.at, HEADER) {
            return self.counters.dropped(FrontDropReason::HandshakeBudget);
        }
        if let Some(id) = id {
            self.close(id);
        }
        let salt = HandshakeWord(RandomState::new().hash_one(from) as u32 & !SALT_MASK | SALT_MARK);
        let flow = FlowProtocol::GameProtocol(GameProtocolFlow { salt, is_over: false });
        match self.begin(now, from, flow, handshakes) {
            Ok(id) => self.write_to_server(id, out, |writer| salt.write(writer)),
            Err(NotAdmitted::Later) => {}
            Err(NotAdmitted::Refused) => out.write(To::Client(from), |writer| Header::End.write(writer)),
        }
    }

    /// Handles a server's datagram: the pepper that answers the front's salt, or a datagram to forward.
    pub(super) fn handle_game_protocol_server<'b>(
        &mut self,
        id: FlowId,
        datagram: &'b [u8],
        out: &mut Transmits<'b>,
    ) {
        let Some((client, flow)) = self.flows.get(id) else { return };
        let FlowProtocol::GameProtocol(state) = &mut flow.protocol else { return };
        if flow.is_open {
            state.is_over |= is_end(datagram);
            self.pass_one_to_client(id, datagram, out);
        } else if is_end(datagram) {
            out.pass(To::Client(client), datagram, datagram.len());
            self.close(id);
        } else if let Some(pepper) = handshake_word(datagram) {
            flow.is_open = true;
            let seasoning = state.salt.season(pepper);
            self.write_to_server(id, out, |writer| seasoning.write(writer));
        } else {
            self.counters.dropped(FrontDropReason::UnknownSource);
        }
    }

    fn end(&mut self, id: FlowId) {
        if let Some((_, flow)) = self.flows.get(id)
            && let FlowProtocol::GameProtocol(state) = &mut flow.protocol
        {
            state.is_over = true;
        }
    }
}

const fn is_over(protocol: &FlowProtocol) -> bool {
    matches!(protocol, FlowProtocol::GameProtocol(GameProtocolFlow { is_over: true, .. }))
}
