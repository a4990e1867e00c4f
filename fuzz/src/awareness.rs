//! Fuzzes the relay's inspection of a flow with arbitrary datagrams from client and server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::protocol::{Change, FlowInspector, Handshake, PongCache, ProtocolKind, Verdict};
use crate::steps::steps;

/// The maximum length of a pong in bytes: the fixed fields and the longest data.
const LONGEST_PONG: usize = 33 + 399;
/// The length to which a datagram is padded if the input requests it.
const PADDED: usize = 1_472;
/// The maximum length of a forwarded handshake datagram in bytes.
const PAYLOAD_MAX: u16 = 1_000;

/// Returns the datagram as forwarded. Checks that it did not grow and that at most two bytes were changed.
fn passed(change: Change, datagram: &[u8]) -> Vec<u8> {
    let mut copy = datagram.to_vec();
    let passed = change.apply(&mut copy).to_vec();
    let differing = passed.iter().zip(datagram).filter(|(new, old)| new != old).count();
    assert!(
        passed.len() <= datagram.len() && differing <= 2,
        "a datagram grew or changed in over two bytes: {change:?} of {datagram:02x?}"
    );
    passed
}

/// Checks that at most the budget of a handshake reaches the server before it answers, and that the relay itself
/// answers only with pongs.
pub fn flow(input: &[u8]) {
    let Some((first, input)) = input.split_first() else { return };
    let kind = ProtocolKind::ALL[usize::from(*first) % ProtocolKind::ALL.len()];
    let handshake =
        Handshake { payload_max: PAYLOAD_MAX, datagrams: 4, bytes: 4_000, ..Handshake::default() };
    let mut now = Instant::now();
    let mut flow = FlowInspector::new(kind, handshake, Arc::new(PongCache::default()), now);
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
            Verdict::Drop(_) => {
                assert!(!was_open, "an open flow dropped the client's datagram {datagram:02x?}")
            }
        }
    }
    // The budget of 4 datagrams and 4,000 bytes is replenished within eight seconds.
    assert!(datagrams <= 4 + seconds / 2 + 1, "{datagrams} datagrams reached the server in {seconds} s");
    assert!(bytes <= 4_000 + 500 * seconds, "{bytes} bytes reached the server in {seconds} s");
}
