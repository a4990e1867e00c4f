//! The Game Protocol at a front: salt and pepper without state, then the same with the server.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use rakwire::game_protocol::wire::{HEADER, HandshakeWord, Header};

use super::counters::FrontDropReason;
use super::flow::{FlowProtocol, GameProtocolFlow, handshake_word, is_end};
use super::transmit::{To, Transmits};
use super::{Admit, FlowId, Front, NotAdmitted, Now};

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
