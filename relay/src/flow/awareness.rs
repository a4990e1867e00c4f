//! What a target's protocol decides about the datagrams of a flow.

use std::time::Instant;

use bytes::Bytes;

use super::counters::DropReason;
use super::inspect::{Inspect, Verdict};
use crate::protocol::{self, Awareness, Change, Refusal};

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
