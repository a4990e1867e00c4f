//! Group 42: packets and their acknowledgements.

use super::row::game;
use crate::case::{Case, Context};
use crate::case::{MUST, SHOULD};
use crate::check::{Check, ensure};
use crate::game::GameSession;
use crate::model::GameFault;
use crate::packet::{ACK, CHUNK, FIN, Packet, REL};
use std::time::{Duration, Instant};

const PACKETS: &str = "packets";
const CHUNKS: &str = "chunks";
const WINDOW: &str = "window";
const DIFFERENCES: &str = "document-original-and-rakwire";

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    game(4201, "game-acknowledged", MUST, CHUNKS, "The server acknowledges a packet with REL.", acked, GameFault::MuteAcks),
    game(4202, "game-ack-length", MUST, CHUNKS, "An acknowledgement has four bytes, because it has no body.", ack_length, GameFault::AckLong),
    game(4203, "game-ack-flags", MUST, CHUNKS, "The flags of an acknowledgement are ACK and FIN (06).", ack_flags, GameFault::AckWithoutFin),
    game(4204, "game-ack-sequence", MUST, CHUNKS, "An acknowledgement contains the sequence number of the acknowledged packet, in big-endian order.", ack_sequence, GameFault::AckSwapped),
    game(4205, "game-ack-chunk", MUST, CHUNKS, "An acknowledgement contains the chunk index of the acknowledged packet.", ack_chunk, GameFault::AckChunkZero),
    game(4206, "game-unreliable-not-acknowledged", MUST, CHUNKS, "The server does not acknowledge a packet without REL.", unreliable, GameFault::AcksUnreliable),
    game(4207, "game-duplicate-acknowledged", MUST, WINDOW, "The server acknowledges a duplicate packet with REL again.", duplicate, GameFault::AckOnce),
    game(4208, "game-each-chunk-acknowledged", MUST, CHUNKS, "The server acknowledges each chunk of a reliable payload.", each_chunk, GameFault::AcksLastOnly),
    game(4209, "game-ack-not-acknowledged", MUST, CHUNKS, "The server does not acknowledge an acknowledgement.", ack_of_ack, GameFault::AcksAcks),
    game(4210, "game-high-half-ignored", SHOULD, PACKETS, "The server ignores the high half of the flags of a packet with a body.", high_half, GameFault::FlagsExact),
    game(4211, "game-old-acknowledged", MUST, WINDOW, "The server acknowledges a packet with REL also if its sequence number is 2,000 below the newest one.", old, GameFault::DropsOld),
    game(4212, "game-sequences-wrap", MUST, PACKETS, "Sequence numbers wrap at 65,536: the server acknowledges the sequence number 0 after 65,535.", wraps, GameFault::NoWrap),
    game(4213, "game-sequences-start-anywhere", MUST, WINDOW, "The server accepts 40,000 as the first sequence number of a client.", anywhere, GameFault::FromZeroOnly),
    game(4214, "game-ack-in-time", SHOULD, WINDOW, "The server sends an acknowledgement immediately; the suite allows 100 ms, because the path adds a delay.", in_time, GameFault::LateAcks),
    game(4215, "game-body-of-504", MUST, CHUNKS, "The server acknowledges a chunk with a body of 504 bytes.", body_504, GameFault::ShortBodies),
    game(4216, "game-body-of-505", SHOULD, DIFFERENCES, "A chunk with a body of 505 bytes does not stop the server.", body_505, GameFault::DiesOfLongBody),
    game(4217, "game-short-chunk", SHOULD, DIFFERENCES, "A chunk with a body of fewer than 504 bytes and without FIN does not stop the server.", short_chunk, GameFault::DiesOfShortChunk),
    game(4218, "game-chunk-255", SHOULD, DIFFERENCES, "A chunk with the index 255 and without FIN does not stop the server.", chunk_255, GameFault::DiesOfEndless),
];

fn acked(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    let sequence = session.send(true, b"hello")?;
    session.expect_ack(0, sequence, "a reliable packet")
}

/// Sends a packet, and returns the bytes of its acknowledgement.
fn ack(context: &mut Context, packet: &Packet) -> Check<Vec<u8>> {
    let mut session = context.open_game()?;
    session.link.send(&packet.bytes())?;
    let answer = context.timing.answer;
    let came = session.wait(answer, |session| !session.acks.is_empty())?;
    ensure(came, || "the server sent no acknowledgement".into())?;
    Ok(session.acks[0].bytes.clone())
}

fn ack_length(context: &mut Context) -> Check {
    let bytes = ack(context, &Packet::new(REL | FIN, 0, 0, b"hello"))?;
    ensure(bytes.len() == 4, || format!("the acknowledgement has {} bytes", bytes.len()))
}

fn ack_flags(context: &mut Context) -> Check {
    let bytes = ack(context, &Packet::new(REL | FIN, 0, 0, b"hello"))?;
    ensure(bytes[0] == ACK | FIN, || format!("the flags of the acknowledgement are {:02x}", bytes[0]))
}

fn ack_sequence(context: &mut Context) -> Check {
    let bytes = ack(context, &Packet::new(REL | FIN, 0, 0x0123, b"hello"))?;
    ensure(bytes[2..4] == [0x01, 0x23], || {
        format!("the sequence number in the acknowledgement is {:02x?}", &bytes[2..4])
    })
}

fn ack_chunk(context: &mut Context) -> Check {
    let bytes = ack(context, &Packet::new(REL | FIN, 3, 0, b"hello"))?;
    ensure(bytes[1] == 3, || format!("the chunk index in the acknowledgement is {}", bytes[1]))
}

fn unreliable(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    session.send(false, b"hello")?;
    session.quiet()?;
    ensure(session.acks.is_empty(), || "the server acknowledged a packet without REL".into())
}

fn duplicate(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    let packet = Packet::new(REL | FIN, 0, session.take_sequence(), b"hello");
    for time in 1..=3 {
        session.acks.clear();
        session.link.send(&packet.bytes())?;
        session.expect_ack(0, packet.sequence, &format!("transmission {time}"))?;
    }
    Ok(())
}

fn each_chunk(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    let sequence = session.send(true, &vec![7; CHUNK * 2 + 10])?;
    for chunk in 0..3 {
        session.expect_ack(chunk, sequence, &format!("chunk {chunk}"))?;
    }
    Ok(())
}

fn ack_of_ack(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    session.still_answers("the handshake")?;
    session.quiet()?;
    session.acks.clear();
    session.link.send(&Packet::new(ACK | FIN, 0, 9, &[]).bytes())?;
    session.quiet()?;
    ensure(session.acks.is_empty(), || "the server acknowledged an acknowledgement".into())
}

fn high_half(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    session.still_answers("the handshake")?;
    let sequence = session.take_sequence();
    session.link.send(&Packet::new(0xf0 | REL | FIN, 0, sequence, b"hello").bytes())?;
    session.expect_ack(0, sequence, "a packet with the high half of the flags set")
}

fn old(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    for sequence in [100, 1000, 1900, 2500] {
        session.sequence = sequence;
        session.still_answers("a jump of sequence numbers")?;
    }
    session.acks.clear();
    session.link.send(&Packet::new(REL | FIN, 0, 500, b"old").bytes())?;
    session.expect_ack(0, 500, "an old packet")
}

/// Sends `count` reliable payloads, numbered from `sequence` on. Fails unless each is acknowledged.
fn from(context: &mut Context, sequence: u16, count: usize) -> Check<GameSession> {
    let mut session = context.open_game()?;
    session.sequence = sequence;
    for _ in 0..count {
        let sequence = session.send(true, b"hello")?;
        session.expect_ack(0, sequence, &format!("the sequence number {sequence}"))?;
    }
    Ok(session)
}

fn wraps(context: &mut Context) -> Check {
    from(context, 65_533, 6).map(|_| ())
}

fn anywhere(context: &mut Context) -> Check {
    from(context, 40_000, 3).map(|_| ())
}

fn in_time(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let began = Instant::now();
        let sequence = session.send(true, b"hello")?;
        session.expect_ack(0, sequence, "a reliable packet")?;
        best = best.min(began.elapsed());
    }
    ensure(best < Duration::from_millis(100), || {
        format!("the fastest of three acknowledgements took {best:?}")
    })
}

fn body_504(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    let sequence = session.send(true, &[9; CHUNK])?;
    session.expect_ack(0, sequence, "a body of 504 bytes")
}

/// Sends an invalid chunk. Fails unless another connection can be opened after it.
fn server_survives(context: &mut Context, packet: &Packet, what: &str) -> Check {
    let mut session = context.open_game()?;
    session.link.send(&packet.bytes())?;
    session.quiet()?;
    context.open_game()?.still_answers(what)
}

fn body_505(context: &mut Context) -> Check {
    server_survives(context, &Packet::new(REL | FIN, 0, 0, &[9; CHUNK + 1]), "a chunk of 505 bytes")
}

fn short_chunk(context: &mut Context) -> Check {
    server_survives(context, &Packet::new(REL, 0, 0, b"short"), "a short chunk without FIN")
}

fn chunk_255(context: &mut Context) -> Check {
    server_survives(context, &Packet::new(REL, 255, 0, &[9; CHUNK]), "chunk 255 without FIN")
}
