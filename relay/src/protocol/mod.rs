//! Inspection of a target's protocol, without IO: which datagrams pass, how they are changed, and which are answered on
//! behalf of the server.
//!
//! Each flow to a target has one [`FlowInspector`]. Every datagram from the client passes through
//! [`FlowInspector::handle_client`], and every datagram from the server through [`FlowInspector::handle_server`]:
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Instant;
//!
//! use rakwire_relay::protocol::{FlowInspector, Change, Handshake, PongCache, ProtocolKind, Refusal, Verdict};
//!
//! let pongs = Arc::new(PongCache::default());
//! let now = Instant::now();
//! let mut flow = FlowInspector::new(ProtocolKind::GameProtocol, Handshake::default(), pongs, now);
//! // A packet of a connection passes once the server has answered the handshake, which is four bytes.
//! assert_eq!(flow.handle_client(now, &[5, 0, 0, 7, b'h', b'i']), Verdict::Drop(Refusal::NoHandshake));
//! assert_eq!(flow.handle_client(now, &[0x49, 0x9E, 0xD2, 0x67]), Verdict::Pass(Change::None));
//! assert_eq!(flow.handle_server(now, &[0xA1, 0xB2, 0xC3, 0xD4]), Change::None);
//! assert_eq!(flow.handle_client(now, &[5, 0, 0, 7, b'h', b'i']), Verdict::Pass(Change::None));
//! ```

mod raknet;
mod verdict;

use std::sync::Arc;
use std::time::Instant;

use rakwire::game_protocol::wire::{HEADER, Header};
use rakwire::wire::offline::Offline;
use rakwire::wire::{Reader, Wire, Writer};

use raknet::RakNetFlow;
pub use raknet::{PONG_LIFETIME, Pong, PongCache};
pub(crate) use verdict::{Budget, largest_behind};
pub use verdict::{
    Change, Handshake, LARGEST_PAYLOAD, ProtocolKind, ProtocolKindSyntaxError, Refusal, Verdict,
};

/// Decides on the datagrams of one flow.
#[derive(Debug)]
pub struct FlowInspector(Flow);

#[derive(Debug)]
enum Flow {
    RakNet(RakNetFlow),
    GameProtocol(GameProtocolFlow),
    Raw,
}

impl FlowInspector {
    /// Creates the inspector of a flow before the first answer of its server. `pongs` are shared by all flows to the
    /// target.
    #[must_use]
    pub fn new(kind: ProtocolKind, handshake: Handshake, pongs: Arc<PongCache>, now: Instant) -> Self {
        Self(match kind {
            ProtocolKind::RakNet => Flow::RakNet(RakNetFlow::new(&handshake, pongs, now)),
            ProtocolKind::GameProtocol => Flow::GameProtocol(GameProtocolFlow::new(&handshake, now)),
            ProtocolKind::Raw => Flow::Raw,
        })
    }

    /// Decides on a datagram from the client.
    pub fn handle_client(&mut self, now: Instant, datagram: &[u8]) -> Verdict {
        match &mut self.0 {
            Flow::RakNet(flow) => flow.handle_client(now, datagram),
            Flow::GameProtocol(flow) => flow.handle_client(now, datagram),
            Flow::Raw => Verdict::Pass(Change::None),
        }
    }

    /// Returns the change to a datagram from the server. Every datagram from the server passes.
    pub fn handle_server(&mut self, now: Instant, datagram: &[u8]) -> Change {
        match &mut self.0 {
            Flow::RakNet(flow) => flow.handle_server(now, datagram),
            Flow::GameProtocol(flow) => {
                flow.handle_server(datagram);
                Change::None
            }
            Flow::Raw => Change::None,
        }
    }

    /// Returns true if a datagram from the client begins a connection. Always false for protocols other than RakNet,
    /// because the handshake words of the Game Protocol are indistinguishable.
    #[must_use]
    pub fn begins_connection(&self, datagram: &[u8]) -> bool {
        match &self.0 {
            Flow::RakNet(_) => raknet::is_request_1(datagram),
            Flow::GameProtocol(_) | Flow::Raw => false,
        }
    }

    /// Returns the datagram that notifies the server of the client's departure, or `None` without an open connection.
    #[must_use]
    pub fn disconnect_datagram(&self) -> Option<Vec<u8>> {
        match &self.0 {
            Flow::RakNet(flow) => flow.disconnect_datagram(),
            Flow::GameProtocol(flow) => flow.disconnect_datagram(),
            Flow::Raw => None,
        }
    }

    /// Sets the maximum length of a datagram that the client's transport carries unfragmented; `None` is unlimited.
    pub const fn set_max_datagram(&mut self, longest: Option<u16>) {
        if let Flow::RakNet(flow) = &mut self.0 {
            flow.set_max_datagram(longest);
        }
    }

    /// Returns true if the server has answered a handshake of this flow. Always true for [`ProtocolKind::Raw`], which
    /// has no known handshake.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        match &self.0 {
            Flow::RakNet(flow) => flow.is_open(),
            Flow::GameProtocol(flow) => flow.is_open(),
            Flow::Raw => true,
        }
    }
}

/// The length in bytes of a salt, a pepper or a seasoning, the same as that of a packet header.
const HANDSHAKE_WORD: usize = HEADER;

/// A flow of the Game Protocol. Its handshake consists of datagrams of four bytes without a header.
#[derive(Debug)]
struct GameProtocolFlow {
    budget: Budget,
    is_open: bool,
}

impl GameProtocolFlow {
    fn new(handshake: &Handshake, now: Instant) -> Self {
        Self { budget: Budget::new(handshake, now), is_open: false }
    }

    const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns the packet that notifies the server of the client's departure.
    fn disconnect_datagram(&self) -> Option<Vec<u8>> {
        let mut buffer = [0; HEADER];
        let mut writer = Writer::new(&mut buffer);
        Header::End.write(&mut writer).ok().filter(|()| self.is_open)?;
        Some(writer.finish().to_vec())
    }

    fn handle_client(&mut self, now: Instant, datagram: &[u8]) -> Verdict {
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

    /// Handles a datagram from the server. Its first datagram is the pepper. The client sends its first packet
    /// immediately after its response to the pepper.
    fn handle_server(&mut self, datagram: &[u8]) {
        self.is_open |= datagram.len() >= HANDSHAKE_WORD;
    }
}

/// Returns the reason for dropping a datagram that is not a salt. RakNet clients begin with request 1.
fn refusal(datagram: &[u8]) -> Refusal {
    match Offline::read(&mut Reader::new(datagram)) {
        Ok(Offline::Request1 { .. }) => Refusal::OtherProtocol(ProtocolKind::GameProtocol),
        Ok(_) | Err(_) => Refusal::NoHandshake,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_datagram_passes_for_an_unknown_protocol() {
        let now = Instant::now();
        let mut flow =
            FlowInspector::new(ProtocolKind::Raw, Handshake::default(), Arc::new(PongCache::default()), now);
        assert!(flow.is_open());
        for datagram in [&[][..], &[0x05; 1_472], &[0x84, 0, 0, 0], &[1; 33]] {
            assert_eq!(flow.handle_client(now, datagram), Verdict::Pass(Change::None));
            assert_eq!(flow.handle_server(now, datagram), Change::None);
        }
    }

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
        assert_eq!(flow.disconnect_datagram(), None);
        assert_eq!(flow.handle_client(now, &SALT[..3]), Verdict::Drop(Refusal::NoHandshake));
        assert_eq!(flow.handle_client(now, &SALT), Verdict::Pass(Change::None));
        flow.handle_server(&[1, 2, 3]);
        assert!(!flow.is_open());
        flow.handle_server(&[0xA1, 0xB2, 0xC3, 0xD4]);
        assert!(flow.is_open());
        assert_eq!(Header::read(&flow.disconnect_datagram().unwrap()).unwrap().0, Header::End);
        assert_eq!(flow.handle_client(now, &PACKET), Verdict::Pass(Change::None));
    }

    #[test]
    fn only_the_handshake_has_a_budget() {
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
