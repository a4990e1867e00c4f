//! A flow of the Game Protocol: its handshake is datagrams of four bytes without a header.

use std::time::Instant;

use rakwire::game_protocol::wire::{HEADER, Header};
use rakwire::wire::offline::Offline;
use rakwire::wire::{Reader, Wire, Writer};

use super::budget::{Budget, Handshake};
use super::kind::ProtocolKind;
use super::verdict::{Change, Refusal, Verdict};

/// Bytes of a salt, a pepper and a seasoning, as many as of a header.
const HANDSHAKE_WORD: usize = HEADER;

/// See the module.
#[derive(Debug)]
pub(super) struct GameProtocolFlow {
    budget: Budget,
    is_open: bool,
}

impl GameProtocolFlow {
    pub(super) fn new(handshake: &Handshake, now: Instant) -> Self {
        Self { budget: Budget::new(handshake, now), is_open: false }
    }

    pub(super) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// The packet that tells the server that the client has disconnected.
    pub(super) fn parting(&self) -> Option<Vec<u8>> {
        let mut buffer = [0; HEADER];
        let mut writer = Writer::new(&mut buffer);
        Header::End.write(&mut writer).ok().filter(|()| self.is_open)?;
        Some(writer.finish().to_vec())
    }

    pub(super) fn handle_client(&mut self, now: Instant, datagram: &[u8]) -> Verdict {
        if self.is_open {
            Verdict::Pass(Change::None)
        } else if datagram.len() != HANDSHAKE_WORD {
            Verdict::Drop(refusal(datagram))
        } else if self.budget.take(now, datagram.len()) {
            Verdict::Pass(Change::None)
        } else {
            Verdict::Drop(Refusal::HandshakeBudget)
        }
    }

    /// The first answer of a server is the pepper, and the client sends its first packet right after its own answer to that.
    pub(super) fn handle_server(&mut self, datagram: &[u8]) {
        self.is_open |= datagram.len() >= HANDSHAKE_WORD;
    }
}

/// Why a datagram that is no salt goes nowhere: clients of RakNet begin with request 1.
fn refusal(datagram: &[u8]) -> Refusal {
    match Offline::read(&mut Reader::new(datagram)) {
        Ok(Offline::Request1 { .. }) => Refusal::OtherProtocol(ProtocolKind::GameProtocol),
        Ok(_) | Err(_) => Refusal::NoHandshake,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: [u8; 4] = [0x49, 0x9E, 0xD2, 0x67];
    const PACKET: [u8; 6] = [5, 0, 0, 7, b'h', b'i'];

    fn flow(now: Instant) -> GameProtocolFlow {
        GameProtocolFlow::new(&Handshake { datagrams: 3, ..Handshake::default() }, now)
    }

    #[test]
    fn only_the_handshake_passes_until_the_server_has_answered() {
        let now = Instant::now();
        let mut flow = flow(now);
        assert_eq!(flow.handle_client(now, &PACKET), Verdict::Drop(Refusal::NoHandshake));
        assert_eq!(flow.parting(), None);
        assert_eq!(flow.handle_client(now, &SALT[..3]), Verdict::Drop(Refusal::NoHandshake));
        assert_eq!(flow.handle_client(now, &SALT), Verdict::Pass(Change::None));
        flow.handle_server(&[1, 2, 3]);
        assert!(!flow.is_open());
        flow.handle_server(&[0xA1, 0xB2, 0xC3, 0xD4]);
        assert!(flow.is_open());
        assert_eq!(Header::read(&flow.parting().unwrap()).unwrap().0, Header::End);
        assert_eq!(flow.handle_client(now, &PACKET), Verdict::Pass(Change::None));
    }

    #[test]
    fn the_handshake_has_a_budget_and_what_follows_has_none() {
        let now = Instant::now();
        let mut flow = flow(now);
        let passed = |flow: &mut GameProtocolFlow| {
            (0..10).filter(|_| flow.handle_client(now, &SALT) == Verdict::Pass(Change::None)).count()
        };
        assert_eq!(passed(&mut flow), 3);
        assert_eq!(flow.handle_client(now, &SALT), Verdict::Drop(Refusal::HandshakeBudget));
        flow.handle_server(&[0xA1, 0xB2, 0xC3, 0xD4]);
        assert_eq!(passed(&mut flow), 10);
    }
}
