//! The handshakes at a front. Of RakNet, request 1 is answered with a cookie, and the handshake with the server is played after request
//! 2. Of the Game Protocol, salt and pepper come without state, then the same with the server.

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

/// Bytes of request 2 with a cookie, to an address of IPv6.
const REQUEST_2: usize = 61;

/// Bytes of request 1, which is as long as the MTU that it asks for.
fn request_1_length(mtu: u16) -> usize {
    usize::from(mtu - IP_UDP_OVERHEAD)
}

/// Whether a server with this key lets plain clients in, too: `docs/secure.md` has the flag and the suite. Keys of other
/// suites do not say so.
fn is_optional(key: &[u8]) -> bool {
    const REQUIRES_SECURITY: u8 = 1;
    let fields = key.get(2).zip(key.get(3..8));
    fields.is_some_and(|(flags, suite)| flags & REQUIRES_SECURITY == 0 && suite == b"rws01")
}

impl<A: Admit> Front<A> {
    /// Handles a datagram of a client that belongs to no connection, or whose flow is not open.
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

    /// A pong is longer than a ping, so a network gets few of them. One without a GUID is shorter than any pong.
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

    /// The answer is shorter than the request and depends on nothing else; nothing is kept.
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
                // Who has nothing left takes no place, either.
                let mut left = handshakes;
                if !left.take(now.at, request_1_length(asked.mtu)) {
                    return self.counters.dropped(FrontDropReason::HandshakeBudget);
                }
                self.begin(now, from, FlowProtocol::RakNet(asked), handshakes)
            }
        };
        match id {
            Ok(id) => self.ask_server(now, id, asked, out),
            Err(NotAdmitted::Later) => {}
            Err(NotAdmitted::Refused) => {
                let (refusal, guid) = (Refusal::NoFreeIncomingConnections, self.guid());
                let refused = Offline::Refused { refusal, guid };
                out.write(To::Client(from), |writer| refused.write(writer));
            }
        }
    }

    /// The first one is logged, as a server of RakNet does: counters are looked at when somebody already wonders.
    fn handle_missing_cookie(&self) {
        if self.counters.dropped_before(FrontDropReason::MissingCookie) == 0 {
            warn!(
                "a client of the front asks for a connection and does not return its cookie: it is forged, or knows no cookies"
            );
        }
    }

    /// Sends the server what it has not answered: request 1 at first, and again whenever a connection is asked for anew.
    fn ask_server(&mut self, now: Now, id: FlowId, asked: RakNetFlow, out: &mut Transmits<'_>) {
        let Some(flow) = self.raknet_flow(id).copied() else { return };
        let repeats_request_2 = matches!(flow.stage, Stage::Reply2 { .. }) && flow.guid == asked.guid;
        let length = if repeats_request_2 { REQUEST_2 } else { request_1_length(asked.mtu) };
        if !self.is_within_budget(now.at, id, length) {
            return;
        }
        if repeats_request_2 {
            self.send_request_2(id, &flow, out);
        } else if let Some(flow) = self.raknet_flow(id) {
            *flow = asked;
            self.announce_again(id);
            let request = Offline::Request1 { protocol: asked.version, mtu: asked.mtu };
            self.write_to_server(id, out, |writer| request.write(writer));
        }
    }

    fn send_request_2(&mut self, id: FlowId, flow: &RakNetFlow, out: &mut Transmits<'_>) {
        let Stage::Reply2 { cookie, mtu } = flow.stage else { return };
        let Some(Route { server, .. }) = self.route(id) else { return };
        let request = Offline::Request2 {
            security: cookie.map_or(ClientSecurity::None, ClientSecurity::Cookie),
            // What the client dialled is the front. Some servers compare it with their own address.
            server,
            mtu,
            guid: flow.guid,
        };
        self.write_to_server(id, out, |writer| request.write(writer));
    }

    /// Handles a datagram of the server that belongs to no connection, or whose flow is not open.
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
            // The connection would be encrypted with a client that offered no key.
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
        flow.stage = Stage::Reply2 { cookie, mtu: mtu.clamp(MIN_MTU, flow.mtu) };
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

    /// The server does not want the client. What it says belongs to the handshake, also where an earlier connection of the
    /// flow goes on.
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

    /// The GUID of the server, or the front's own as long as the server has not said one.
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

/// The bits of a salt that are fixed, and their value: no header looks like it.
const SALT_MASK: u32 = 0xC000_0000;
const SALT_MARK: u32 = 0x4000_0000;

impl<A: Admit> Front<A> {
    /// Handles a datagram of a client without an open flow, or one of a handshake, or the end of a connection.
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

    /// The pepper is made such that the right answer depends on nothing but client, key and time: no salt is kept.
    fn challenge(&mut self, now: Now, from: SocketAddr, salt: HandshakeWord, out: &mut Transmits<'_>) {
        if !self.challenge_rations.admits(now.at, from.ip()) {
            self.counters.dropped(FrontDropReason::ChallengeRation);
            return;
        }
        let pepper = salt.season(HandshakeWord(self.settings.keys.seasoning(from, now.unix_seconds())));
        self.counters.answered();
        out.write(To::Client(from), |writer| pepper.write(writer));
    }

    /// The client has proved its address. A repeated answer on a connection that goes on means nothing; one that waits for
    /// the server begins anew, from another address, since a server may take a second salt for an answer.
    fn handle_seasoning(&mut self, now: Now, from: SocketAddr, out: &mut Transmits<'_>) {
        let id = self.flows.find(from);
        let flow = id.and_then(|id| self.flows.get(id));
        if flow.is_some_and(|(_, flow)| flow.is_open && !is_over(&flow.protocol)) {
            return self.counters.dropped(FrontDropReason::Repeated);
        }
        // Whoever begins again and again has one budget for all of it.
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

    /// Handles a datagram of the server: the pepper that answers the front's salt, or one that passes.
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
