//! Groups 43 and 44: retransmission and payloads, with a server that echoes each payload.

use super::row::game;
use crate::case::{Case, Context, Level, Needs};
use crate::case::{MUST, SHOULD};
use crate::check::{Check, ensure, fail};
use crate::game::{Came, GameSession};
use crate::model::GameFault;
use crate::packet::{ACK, CHUNK, FIN, Packet, REL, cut};
use std::time::Duration;

const CHUNKS: &str = "chunks";
const RESENDS: &str = "resends";
const WINDOW: &str = "window";
const PACKETS: &str = "packets";

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    echo(4301, "game-resent", MUST, RESENDS, "The server retransmits a reliable chunk until the client acknowledges it.", resent, GameFault::NeverResends),
    echo(4302, "game-resends-spaced", SHOULD, RESENDS, "The server waits at least 50 ms between retransmissions of a chunk.", spaced, GameFault::ResendsWildly),
    echo(4303, "game-acknowledged-not-resent", MUST, RESENDS, "The server does not retransmit an acknowledged chunk.", acked, GameFault::ResendsForever),
    echo(4304, "game-resend-same", MUST, RESENDS, "The server retransmits a chunk as an identical packet.", same, GameFault::ResendsRenumbered),
    echo(4305, "game-ack-without-fin-taken", SHOULD, "document-original-and-rakwire", "The server accepts an acknowledgement without FIN (02).", without_fin, GameFault::AckExact),
    echo(4306, "game-sequences-from-zero", MUST, PACKETS, "The server numbers its payloads from 0.", from_zero, GameFault::FirstSequence),
    echo(4307, "game-sequences-rise", MUST, PACKETS, "The sequence number of each payload of the server is one higher than that of the payload before it.", rise, GameFault::SkipsSequences),
    echo(4308, "game-high-half-zero", MUST, PACKETS, "The high half of the flags in the server's packets is zero.", high_half, GameFault::HighHalf),
    echo(4401, "game-echo-reliable", MUST, CHUNKS, "The server's application receives and echoes a reliable payload.", reliable, GameFault::DropsReliable),
    echo(4402, "game-echo-unreliable", MUST, CHUNKS, "The server's application receives and echoes an unreliable payload.", unreliable, GameFault::DropsUnreliable),
    echo(4403, "game-echo-one-byte", MUST, CHUNKS, "The server's application receives and echoes a payload of one byte.", one_byte, GameFault::DropsOneByte),
    echo(4404, "game-echo-504", MUST, CHUNKS, "The server echoes a payload of 504 bytes, which is one chunk.", bytes_504, GameFault::Truncates(500)),
    echo(4405, "game-echo-505", MUST, CHUNKS, "The server echoes a payload of 505 bytes, which is two chunks.", bytes_505, GameFault::Truncates(504)),
    echo(4406, "game-echo-5000", MUST, CHUNKS, "The server echoes a payload of 5,000 bytes.", bytes_5000, GameFault::Truncates(4000)),
    echo(4407, "game-echo-longest", MUST, CHUNKS, "The server echoes a payload of 129,024 bytes, which is 256 chunks.", longest, GameFault::Truncates(100_000)),
    echo(4408, "game-echo-reversed", MUST, CHUNKS, "The server reassembles chunks that arrive in reverse, so that the chunk with FIN arrives first.", reversed, GameFault::ChunksInOrder),
    echo(4409, "game-echo-once", MUST, WINDOW, "The server delivers a reliable payload once if it arrives four times.", once, GameFault::DeliversTwice),
    echo(4410, "game-echo-interleaved", MUST, CHUNKS, "The server reassembles two payloads with interleaved chunks.", interleaved, GameFault::OneAtATime),
    echo(4411, "game-echo-unordered", MUST, CHUNKS, "The server delivers a payload although the payload before it is missing.", unordered, GameFault::InOrderOnly),
    echo(4412, "game-echo-empty-chunk", MUST, CHUNKS, "An empty body with FIN is an empty chunk: the server accepts it as the end of a payload of 504 bytes.", empty_chunk, GameFault::NoEmptyChunk),
    echo(4413, "game-echo-missing-chunk", MUST, CHUNKS, "The server does not deliver a payload with a missing chunk.", missing, GameFault::DeliversIncomplete),
    echo(4414, "game-server-chunks", MUST, CHUNKS, "The server splits a payload into chunks of 504 bytes, and only the last chunk has FIN.", server_chunks, GameFault::FinOnAll),
];

const fn echo(
    number: u16,
    name: &'static str,
    level: Level,
    section: &'static str,
    requirement: &'static str,
    run: fn(&mut Context) -> Check,
    fault: GameFault,
) -> Case {
    game(number, name, level, section, requirement, run, fault).needs(Needs::Echo)
}

/// Returns the bytes of a payload that differs from all others.
fn payload(seed: u32, len: usize) -> Vec<u8> {
    let byte = |at: usize| (at as u32 ^ seed).wrapping_mul(0x9e37_79b1).rotate_left(9) as u8;
    (0..len).map(byte).collect()
}

/// Returns the received packets of the server's first payload.
fn of_first(session: &GameSession) -> Vec<&Came> {
    let first = session.packets.first().map(|came| came.packet.sequence);
    session.packets.iter().filter(|came| Some(came.packet.sequence) == first).collect()
}

/// Opens a connection in which the server has echoed a payload, and does not acknowledge the echo.
fn unacked(context: &mut Context) -> Check<GameSession> {
    let mut session = context.open_game()?;
    session.acknowledges = false;
    let bytes = payload(4301, 60);
    session.send(true, &bytes)?;
    session.expect(&bytes, "a payload")?;
    let reliable = session.packets[0].packet.flags & REL != 0;
    ensure(reliable, || "the server echoes reliable payloads without REL".into())?;
    Ok(session)
}

fn resent(context: &mut Context) -> Check {
    let mut session = unacked(context)?;
    let patience = context.timing.answer * 4;
    let came = session.wait(patience, |session| of_first(session).len() > 2)?;
    ensure(came, || "the server did not retransmit the unacknowledged chunk twice".into())
}

fn spaced(context: &mut Context) -> Check {
    let mut session = unacked(context)?;
    session.wait(context.timing.answer * 4, |session| of_first(session).len() > 3)?;
    let all = of_first(&session);
    let shortest = all.windows(2).map(|pair| pair[1].at - pair[0].at).min();
    ensure(shortest.is_none_or(|time| time >= Duration::from_millis(50)), || {
        format!("two transmissions of the chunk are {shortest:?} apart")
    })
}

fn not_resent(context: &mut Context, flags: u8) -> Check {
    let mut session = unacked(context)?;
    let packet = session.packets[0].packet.clone();
    let ack = Packet::new(flags, packet.chunk, packet.sequence, &[]).bytes();
    session.link.send(&ack)?;
    // A retransmission that was sent earlier may be in flight.
    session.pass(context.timing.quiet / 4)?;
    session.link.send(&ack)?;
    session.pass(context.timing.quiet / 4)?;
    let before = of_first(&session).len();
    session.pass(context.timing.answer)?;
    let after = of_first(&session).len() - before;
    ensure(after == 0, || format!("the server retransmitted the acknowledged chunk {after} times"))
}

fn acked(context: &mut Context) -> Check {
    not_resent(context, ACK | FIN)
}

fn without_fin(context: &mut Context) -> Check {
    not_resent(context, ACK)
}

fn same(context: &mut Context) -> Check {
    let mut session = unacked(context)?;
    session.wait(context.timing.answer * 4, |session| session.packets.len() > 2)?;
    let first = &session.packets[0].bytes;
    let differs = session.packets.iter().find(|came| came.bytes != *first);
    ensure(differs.is_none(), || {
        format!(
            "a retransmission with the header {:02x?} differs from the first transmission",
            differs.map(|came| &came.bytes[..4])
        )
    })
}

fn from_zero(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    let bytes = payload(4306, 20);
    session.send(true, &bytes)?;
    session.expect(&bytes, "a payload")?;
    let first = session.packets[0].packet.sequence;
    ensure(first == 0, || format!("the first sequence number is {first}"))
}

fn rise(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    let mut all = Vec::new();
    for seed in 0..5 {
        let bytes = payload(43_070 + seed, 20);
        session.send(true, &bytes)?;
        session.expect(&bytes, "a payload")?;
        all.extend(session.packets.last().map(|came| came.packet.sequence));
    }
    let next = |pair: &[u16]| pair[1] == pair[0].wrapping_add(1);
    ensure(all.windows(2).all(next), || format!("the sequence numbers are {all:?}"))
}

fn high_half(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    let bytes = payload(4308, 20);
    session.send(true, &bytes)?;
    session.expect(&bytes, "a payload")?;
    let flags = session.packets[0].packet.flags;
    ensure(flags >> 4 == 0, || format!("the flags are {flags:02x}"))
}

fn comes_back(context: &mut Context, reliable: bool, bytes: &[u8]) -> Check {
    let mut session = context.open_game()?;
    session.send(reliable, bytes)?;
    session.expect(bytes, &format!("a payload of {} bytes", bytes.len()))
}

fn reliable(context: &mut Context) -> Check {
    comes_back(context, true, &payload(4401, 40))
}

fn unreliable(context: &mut Context) -> Check {
    comes_back(context, false, &payload(4402, 40))
}

fn one_byte(context: &mut Context) -> Check {
    comes_back(context, true, &[0x5b])
}

fn bytes_504(context: &mut Context) -> Check {
    comes_back(context, true, &payload(4404, CHUNK))
}

fn bytes_505(context: &mut Context) -> Check {
    comes_back(context, true, &payload(4405, CHUNK + 1))
}

fn bytes_5000(context: &mut Context) -> Check {
    comes_back(context, true, &payload(4406, 5000))
}

fn longest(context: &mut Context) -> Check {
    let bytes = payload(4407, 256 * CHUNK);
    let mut session = context.open_game()?;
    let sequence = session.take_sequence();
    let packets = cut(true, sequence, &bytes);
    // Send in small bursts, each until it is acknowledged, so that a short queue on the path drops nothing.
    for burst in packets.chunks(16) {
        for _ in 0..20 {
            for packet in burst {
                if session.acks_of(packet.chunk, sequence) == 0 {
                    session.link.send(&packet.bytes())?;
                }
            }
            let done = |session: &GameSession| {
                burst.iter().all(|packet| session.acks_of(packet.chunk, sequence) > 0)
            };
            if session.wait(context.timing.quiet, done)? {
                break;
            }
        }
    }
    session.expect(&bytes, "a payload of 129,024 bytes")
}

fn reversed(context: &mut Context) -> Check {
    let bytes = payload(4408, CHUNK * 2 + 30);
    let mut session = context.open_game()?;
    for packet in cut(true, session.take_sequence(), &bytes).iter().rev() {
        session.link.send(&packet.bytes())?;
    }
    session.expect(&bytes, "a payload with chunks in reverse")
}

fn once(context: &mut Context) -> Check {
    let bytes = payload(4409, 30);
    let mut session = context.open_game()?;
    let packet = Packet::new(REL | FIN, 0, session.take_sequence(), &bytes);
    for _ in 0..4 {
        session.link.send(&packet.bytes())?;
    }
    session.expect(&bytes, "a payload")?;
    session.quiet()?;
    let count = session.came(&bytes);
    ensure(count == 1, || format!("the server delivered the payload {count} times"))
}

fn interleaved(context: &mut Context) -> Check {
    let (one, two) = (payload(44_100, CHUNK + 9), payload(44_101, CHUNK + 9));
    let mut session = context.open_game()?;
    let first = cut(true, session.take_sequence(), &one);
    let second = cut(true, session.take_sequence(), &two);
    for (a, b) in first.iter().zip(&second) {
        session.link.send(&a.bytes())?;
        session.link.send(&b.bytes())?;
    }
    session.expect(&one, "the first payload")?;
    session.expect(&two, "the second payload")
}

fn unordered(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    let bytes = payload(4411, 30);
    session.sequence = 1;
    session.send(true, &bytes)?;
    session.expect(&bytes, "a payload after a missing one")
}

fn empty_chunk(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    let bytes = payload(4412, CHUNK);
    let sequence = session.take_sequence();
    session.link.send(&Packet::new(REL, 0, sequence, &bytes).bytes())?;
    session.link.send(&Packet::new(REL | FIN, 1, sequence, &[]).bytes())?;
    session.expect(&bytes, "a payload with an empty chunk at its end")
}

fn missing(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    let bytes = payload(4413, CHUNK * 2 + 5);
    let packets = cut(false, session.take_sequence(), &bytes);
    session.link.send(&packets[0].bytes())?;
    session.link.send(&packets[2].bytes())?;
    session.quiet()?;
    let count = session.payloads().len();
    ensure(count == 0, || "the server delivered an incomplete payload".into())
}

fn server_chunks(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    let bytes = payload(4414, CHUNK * 2 + 5);
    session.send(true, &bytes)?;
    let time = context.timing.answer * 4;
    session.wait(time, |session| of_first(session).len() > 2)?;
    let mut sizes: Vec<_> = of_first(&session)
        .iter()
        .map(|came| (came.packet.chunk, came.packet.body.len(), came.packet.flags & FIN != 0))
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.is_empty() {
        return fail("the server did not echo the payload");
    }
    let due = [(0, CHUNK, false), (1, CHUNK, false), (2, 5, true)];
    ensure(sizes == due, || format!("the chunk indices, body lengths and FIN flags are {sizes:?}"))
}
