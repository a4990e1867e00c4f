//! What a flow knows of its protocol.

use std::sync::Arc;
use std::time::Instant;

use super::budget::Handshake;
use super::game_protocol::GameProtocolFlow;
use super::kind::ProtocolKind;
use super::pongs::PongCache;
use super::raknet::RakNetFlow;
use super::verdict::{Change, Verdict};

/// Decides about the datagrams of one flow.
#[derive(Debug)]
pub struct Awareness(Flow);

#[derive(Debug)]
enum Flow {
    RakNet(RakNetFlow),
    GameProtocol(GameProtocolFlow),
    Raw,
}

impl Awareness {
    /// A flow whose server has not answered yet. `pongs` are those of its target.
    #[must_use]
    pub fn new(kind: ProtocolKind, handshake: Handshake, pongs: Arc<PongCache>, now: Instant) -> Self {
        Self(match kind {
            ProtocolKind::RakNet => Flow::RakNet(RakNetFlow::new(&handshake, pongs, now)),
            ProtocolKind::GameProtocol => Flow::GameProtocol(GameProtocolFlow::new(&handshake, now)),
            ProtocolKind::Raw => Flow::Raw,
        })
    }

    /// What becomes of a datagram of the client.
    pub fn handle_client(&mut self, now: Instant, datagram: &[u8]) -> Verdict {
        match &mut self.0 {
            Flow::RakNet(flow) => flow.handle_client(now, datagram),
            Flow::GameProtocol(flow) => flow.handle_client(now, datagram),
            Flow::Raw => Verdict::Pass(Change::None),
        }
    }

    /// What changes in a datagram of the server, which always passes.
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

    /// Whether a datagram of the client begins a connection. Of the Game Protocol it is not known: the words of its handshake
    /// look alike.
    #[must_use]
    pub fn begins_connection(&self, datagram: &[u8]) -> bool {
        match &self.0 {
            Flow::RakNet(_) => super::raknet::is_request_1(datagram),
            Flow::GameProtocol(_) | Flow::Raw => false,
        }
    }

    /// The datagram that tells the server that the client has disconnected, if the server knows the client.
    #[must_use]
    pub fn parting(&self) -> Option<Vec<u8>> {
        match &self.0 {
            Flow::RakNet(flow) => flow.parting(),
            Flow::GameProtocol(flow) => flow.parting(),
            Flow::Raw => None,
        }
    }

    /// The transport of the client carries datagrams of so many bytes in one piece from now on; `None` is any.
    pub const fn set_carried(&mut self, longest: Option<u16>) {
        if let Flow::RakNet(flow) = &mut self.0 {
            flow.set_carried(longest);
        }
    }

    /// Whether the server has answered a handshake of this flow. Of [`ProtocolKind::Raw`] nothing is known, and it is true
    /// from the start.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        match &self.0 {
            Flow::RakNet(flow) => flow.is_open(),
            Flow::GameProtocol(flow) => flow.is_open(),
            Flow::Raw => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_another_protocol_everything_passes() {
        let now = Instant::now();
        let mut flow =
            Awareness::new(ProtocolKind::Raw, Handshake::default(), Arc::new(PongCache::default()), now);
        assert!(flow.is_open());
        for datagram in [&[][..], &[0x05; 1_472], &[0x84, 0, 0, 0], &[1; 33]] {
            assert_eq!(flow.handle_client(now, datagram), Verdict::Pass(Change::None));
            assert_eq!(flow.handle_server(now, datagram), Change::None);
        }
    }
}
