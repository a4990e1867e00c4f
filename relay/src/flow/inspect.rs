//! What is decided about the datagrams of a flow: by a target that knows its protocol, and by what the transport of a client
//! carries.

use std::fmt;
use std::time::Instant;

use bytes::Bytes;

use super::control::CONTROL_PREFIX;
use super::counters::DropReason;
use crate::protocol::{self, Awareness, Change, ProtocolKind, Refusal};

/// What happens to a datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It passes as it is.
    Pass,
    /// This passes in its place.
    Replace(Bytes),
    /// It goes no further, and its sender gets this answer at once.
    Answer(Bytes),
    /// It is dropped and counted.
    Drop(DropReason),
    /// It begins a handshake of another protocol than the target's, which is this one: the flow ends.
    WrongProtocol(ProtocolKind),
}

/// Decides about each datagram of one flow. A flow without it passes everything.
pub trait Inspect: Send + fmt::Debug {
    /// A datagram of the client.
    fn to_server(&mut self, now: Instant, datagram: &[u8]) -> Verdict;

    /// A datagram of the game server.
    fn to_client(&mut self, now: Instant, datagram: &[u8]) -> Verdict;

    /// Whether a datagram of the client begins a connection.
    fn begins_connection(&self, datagram: &[u8]) -> bool;

    /// What tells the game server that the client has gone, if the protocol has something for that.
    fn parting(&self) -> Option<Bytes>;

    /// The transport of the client carries datagrams of so many bytes in one piece from now on; `None` is any.
    fn set_carried(&mut self, longest: Option<usize>);
}

impl Inspect for Awareness {
    fn to_server(&mut self, now: Instant, datagram: &[u8]) -> Verdict {
        match self.handle_client(now, datagram) {
            protocol::Verdict::Pass(change) => pass(change, datagram),
            protocol::Verdict::Answer(answer) => Verdict::Answer(answer.into()),
            protocol::Verdict::Drop(Refusal::NoHandshake) => Verdict::Drop(DropReason::NotHandshake),
            protocol::Verdict::Drop(Refusal::HandshakeBudget) => Verdict::Drop(DropReason::HandshakeBudget),
            protocol::Verdict::Drop(Refusal::OtherProtocol(kind)) => Verdict::WrongProtocol(kind),
        }
    }

    fn to_client(&mut self, now: Instant, datagram: &[u8]) -> Verdict {
        pass(self.handle_server(now, datagram), datagram)
    }

    fn begins_connection(&self, datagram: &[u8]) -> bool {
        Self::begins_connection(self, datagram)
    }

    fn parting(&self) -> Option<Bytes> {
        Self::parting(self).map(Bytes::from)
    }

    fn set_carried(&mut self, longest: Option<usize>) {
        Self::set_carried(self, longest.and_then(|longest| u16::try_from(longest).ok()));
    }
}

fn pass(change: Change, datagram: &[u8]) -> Verdict {
    if change == Change::None {
        return Verdict::Pass;
    }
    let mut copy = datagram.to_vec();
    let length = change.apply(&mut copy).len();
    copy.truncate(length);
    Verdict::Replace(Bytes::from(copy))
}

/// What the transport of a client carries; by default, everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Carriage {
    /// The longest datagram to the client in bytes; `None` is no limit.
    pub max_datagram: Option<usize>,
    /// The longest datagram that passes in one piece, in either direction; `None` is no limit. A handshake that names an MTU
    /// names no longer one.
    pub max_unfragmented: Option<usize>,
    /// Whether control messages are datagrams too, which begin with [`CONTROL_PREFIX`].
    pub has_control_datagrams: bool,
}

impl Carriage {
    /// Why a datagram to the client cannot be sent, if so.
    pub(super) fn refuses(&self, datagram: &[u8]) -> Option<DropReason> {
        if self.has_control_datagrams && datagram.starts_with(CONTROL_PREFIX) {
            return Some(DropReason::Reserved);
        }
        let is_too_big = self.max_datagram.is_some_and(|max| datagram.len() > max);
        is_too_big.then_some(DropReason::DatagramTooBig)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::protocol::{Handshake, PongCache, ProtocolKind};

    fn flow(now: Instant) -> Awareness {
        let handshake = Handshake { payload_max: 1_000, datagrams: 2, ..Handshake::default() };
        Awareness::new(ProtocolKind::RakNet, handshake, Arc::<PongCache>::default(), now)
    }

    #[test]
    fn every_verdict_of_a_protocol_has_its_own() {
        let now = Instant::now();
        let mut flow = flow(now);
        let mut request = vec![0; 1_400];
        request[..18]
            .copy_from_slice(b"\x05\x00\xff\xff\x00\xfe\xfe\xfe\xfe\xfd\xfd\xfd\xfd\x12\x34\x56\x78\x0b");
        let cut = Bytes::copy_from_slice(&request[..1_000]);
        assert_eq!(flow.to_server(now, &request), Verdict::Replace(cut));
        assert_eq!(flow.to_server(now, &request[..900]), Verdict::Pass);
        assert_eq!(flow.to_server(now, &request), Verdict::Drop(DropReason::HandshakeBudget));
        assert_eq!(flow.to_server(now, &[1; 4]), Verdict::WrongProtocol(ProtocolKind::RakNet));
        assert_eq!(
            flow.to_server(now, &[0x84, 0, 0, 0, 0, 0, 8, 0xFE]),
            Verdict::Drop(DropReason::NotHandshake)
        );
        assert_eq!(flow.to_client(now, &[0x84, 0, 0, 0, 0, 0, 8, 0xFE]), Verdict::Pass);
    }
}
