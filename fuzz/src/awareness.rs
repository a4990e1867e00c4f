//! A flow of a relay whose client and server say anything.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::protocol::{Awareness, Change, Handshake, PongCache, ProtocolKind, Verdict};
use crate::steps::steps;

/// Bytes of a pong without its data, and of the longest data.
const LONGEST_PONG: usize = 33 + 399;
/// To this length a datagram is padded, if the input says so.
const PADDED: usize = 1_472;
/// The longest datagram of the handshake that passes.
const PAYLOAD_MAX: u16 = 1_000;

/// What passes of a datagram; nothing is made up.
fn passed(change: Change, datagram: &[u8]) -> Vec<u8> {
    let mut copy = datagram.to_vec();
    let passed = change.apply(&mut copy).to_vec();
    let differing = passed.iter().zip(datagram).filter(|(new, old)| new != old).count();
    assert!(passed.len() <= datagram.len() && differing <= 2, "{change:?} of {datagram:02x?}");
    passed
}

/// Before the server has answered, no more reaches it than the budget; what is answered is a pong.
pub fn flow(input: &[u8]) {
    let Some((first, input)) = input.split_first() else { return };
    let kind = ProtocolKind::ALL[usize::from(*first) % ProtocolKind::ALL.len()];
    let handshake =
        Handshake { payload_max: PAYLOAD_MAX, datagrams: 4, bytes: 4_000, ..Handshake::default() };
    let mut now = Instant::now();
    let mut flow = Awareness::new(kind, handshake, Arc::new(PongCache::default()), now);
    let (mut datagrams, mut bytes, mut seconds) = (0, 0, 0);
    for step in steps(input) {
        let mut datagram = step.bytes.to_vec();
        if step.flags & 1 != 0 {
            datagram.resize(PADDED.max(datagram.len()), 0);
        }
        if step.flags & 2 != 0 {
            now += Duration::from_secs(1);
            seconds += 1;
        }
        if step.flags & 4 != 0 {
            passed(flow.handle_server(now, &datagram), &datagram);
            continue;
        }
        let was_open = flow.is_open();
        match flow.handle_client(now, &datagram) {
            Verdict::Pass(change) => {
                let passed = passed(change, &datagram);
                if !was_open {
                    datagrams += 1;
                    bytes += passed.len();
                }
            }
            Verdict::Answer(pong) => assert!(pong.len() <= LONGEST_PONG && pong.first() == Some(&0x1C)),
            Verdict::Drop(_) => assert!(!was_open, "an open flow dropped {datagram:02x?}"),
        }
    }
    // A budget fills up within eight seconds.
    assert!(datagrams <= 4 + seconds / 2 + 1, "{datagrams} datagrams in {seconds} s");
    assert!(bytes <= 4_000 + 500 * seconds, "{bytes} bytes in {seconds} s");
}
