//! Groups 41, 45 and 46: the handshake, disconnects, and malformed datagrams.

use super::row::game;
use crate::case::{Case, Context};
use crate::case::{MUST, SHOULD};
use crate::check::{Check, ensure, fail};
use crate::game::{GameSession, SALT, pepper, seasoning};
use crate::link::Link;
use crate::model::GameFault;
use crate::packet::{ACK, END, FIN, Packet, REL};
use std::time::Instant;

const HANDSHAKE: &str = "handshake";
const STATELESS: &str = "stateless-handshake";
const PACKETS: &str = "packets";
const TIMEOUTS: &str = "timeouts";
const HOSTILE_INPUT: &str = "hostile-input";

/// The cases of the handshake.
#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    game(4101, "game-pepper", MUST, HANDSHAKE, "The server answers a salt with a pepper.", answered, GameFault::Mute),
    game(4102, "game-pepper-length", MUST, HANDSHAKE, "A pepper has four bytes.", pepper_length, GameFault::LongPepper),
    game(4103, "game-pepper-differs", MUST, STATELESS, "The server sends different peppers to two addresses that send the same salt.", differs, GameFault::OneKey),
    game(4104, "game-opens", MUST, HANDSHAKE, "The seasoning (salt XOR pepper) opens the connection: the server acknowledges a reliable packet after it.", opens, GameFault::NeverOpens),
    game(4105, "game-wrong-seasoning", MUST, HANDSHAKE, "A seasoning with one wrong bit does not open a connection.", wrong, GameFault::AnySeasoning),
    game(4106, "game-seasoning-of-another", MUST, STATELESS, "The seasoning of another address does not open a connection.", of_another, GameFault::OneKey),
    game(4107, "game-stranger", MUST, HOSTILE_INPUT, "The server does not answer a packet with a body from an unknown address.", stranger, GameFault::AcksStrangers),
    game(4108, "game-short-datagrams", MUST, PACKETS, "The server drops datagrams of fewer than four bytes.", short, GameFault::AnswersShort),
    game(4109, "game-pepper-no-amplifier", MUST, STATELESS, "Before the seasoning, the server sends no more bytes than it receives.", amplifies, GameFault::PepperTwice),
    game(4110, "game-two-clients", MUST, HANDSHAKE, "The server keeps two connections from one host open at the same time.", two_clients, GameFault::OneClient),
    game(4111, "game-seasoning-again", SHOULD, "repeated-seasoning", "A repeated seasoning does not close the connection.", seasoning_again, GameFault::SeasoningCloses),
    game(4112, "game-salt-again", SHOULD, STATELESS, "The server answers a repeated salt, and the seasoning for the second pepper opens the connection.", salt_again, GameFault::SaltOnce),
    game(4113, "game-salt-with-tail", SHOULD, HANDSHAKE, "The server does not treat five bytes from an unknown address as a salt.", salt_with_tail, GameFault::LongSalts),
];

/// The cases of disconnects.
#[rustfmt::skip]
pub(super) const ENDS: &[Case] = &[
    game(4501, "game-end", MUST, HANDSHAKE, "The server acknowledges no packet of a connection after END.", ends, GameFault::IgnoresEnd),
    game(4502, "game-end-not-answered", MUST, HANDSHAKE, "The server does not answer END.", end_not_answered, GameFault::AnswersEnd),
    game(4503, "game-end-flag-alone", MUST, PACKETS, "END without FIN (08) also closes the connection.", end_alone, GameFault::EndExact),
    game(4504, "game-end-wins", MUST, PACKETS, "END takes precedence over other flags: a packet with the flags 0F closes the connection.", end_wins, GameFault::EndExact),
    game(4505, "game-end-of-another", MUST, HANDSHAKE, "END from another address does not close the connection.", end_of_another, GameFault::EndFromAnyone),
    game(4506, "game-end-of-one", MUST, HANDSHAKE, "END does not close other connections.", end_of_one, GameFault::EndEndsAll),
    game(4507, "game-reconnects", SHOULD, "original-handshake", "The client can connect again from the same port after END.", reconnects, GameFault::KeepsEnded),
    game(4508, "game-silent-given-up", MUST, TIMEOUTS, "The server closes the connection of a client that acknowledges nothing and sends nothing for the connection timeout (--lifetime).", given_up, GameFault::NeverGivesUp),
    game(4509, "game-kept", MUST, HANDSHAKE, "The server keeps the connection of a client that sends packets open for longer than the timeout (--lifetime).", kept, GameFault::DropsIdle),
];

/// The cases of malformed datagrams.
#[rustfmt::skip]
pub(super) const HOSTILE: &[Case] = &[
    game(4601, "game-garbage-stranger", MUST, HOSTILE_INPUT, "The server does not answer random datagrams of at least five bytes from an unknown address.", garbage_stranger, GameFault::EchoesGarbage),
    game(4602, "game-garbage-connected", MUST, HOSTILE_INPUT, "Random datagrams in a connection do not stop the server: it still opens a new connection.", garbage_connected, GameFault::DiesOfGarbage),
    game(4603, "game-ack-of-nothing", MUST, HOSTILE_INPUT, "Acknowledgements of chunks that the server has not sent do not close the connection.", ack_of_nothing, GameFault::DiesOfUnknownAck),
    game(4604, "game-unfinished", MUST, HOSTILE_INPUT, "After sixty unreliable payloads with a missing chunk, the server still acknowledges reliable packets.", unfinished, GameFault::DiesOfUnfinished),
    game(4605, "game-datagram-of-2000", MUST, HOSTILE_INPUT, "A datagram of 2,000 bytes from an unknown address does not affect a connection of another address.", long, GameFault::DiesOfLong),
    game(4606, "game-datagram-of-60000", MUST, HOSTILE_INPUT, "A datagram of 60,000 bytes from an unknown address does not affect a connection of another address.", longest, GameFault::DiesOfLong),
    game(4607, "game-empty-datagram", MUST, HOSTILE_INPUT, "An empty datagram does not close the connection.", empty, GameFault::DiesOfEmpty),
    game(4608, "game-other-source", MUST, HOSTILE_INPUT, "The server does not accept a packet for a connection from another port of the client's host.", other_source, GameFault::SharesConnections),
    game(4609, "game-flood-of-salts", SHOULD, HOSTILE_INPUT, "The server still accepts a client after 300 salts from 30 addresses.", flood, GameFault::DiesOfSalts),
];

fn answered(context: &mut Context) -> Check {
    let mut link = context.link()?;
    pepper(&mut link, SALT).map(|_| ())
}

fn pepper_length(context: &mut Context) -> Check {
    let mut link = context.link()?;
    let pepper = pepper(&mut link, SALT)?;
    ensure(pepper.len() == 4, || format!("the pepper has {} bytes", pepper.len()))
}

fn differs(context: &mut Context) -> Check {
    let (mut one, mut two) = (context.link()?, context.link()?);
    let (first, second) = (pepper(&mut one, SALT)?, pepper(&mut two, SALT)?);
    ensure(first != second, || format!("the peppers of both addresses are {first:02x?}"))
}

fn opens(context: &mut Context) -> Check {
    context.open_game()?.still_answers("the handshake")
}

/// Fails if a reliable packet over the link is acknowledged.
fn not_open(link: &mut Link, what: &str) -> Check {
    link.send(&Packet::new(REL | FIN, 0, 0, b"hello").bytes())?;
    let is_ack = |bytes: &Vec<u8>| bytes.len() == 4 && bytes[0] & 0x0f == ACK | FIN && bytes[1..] == [0; 3];
    let acked = link.during_quiet()?.iter().any(is_ack);
    ensure(!acked, || format!("{what} opened a connection: the server acknowledged a packet"))
}

fn wrong(context: &mut Context) -> Check {
    let mut link = context.link()?;
    let pepper = pepper(&mut link, SALT)?;
    let mut seasoning = seasoning(SALT, &pepper)?;
    seasoning[2] ^= 0x10;
    link.send(&seasoning)?;
    link.during_quiet()?;
    not_open(&mut link, "a wrong seasoning")
}

fn of_another(context: &mut Context) -> Check {
    let (mut one, mut two) = (context.link()?, context.link()?);
    let pepper = pepper(&mut one, SALT)?;
    two.send(&seasoning(SALT, &pepper)?)?;
    two.during_quiet()?;
    not_open(&mut two, "the seasoning of another address")
}

fn stranger(context: &mut Context) -> Check {
    let mut link = context.link()?;
    link.send(&Packet::new(REL | FIN, 0, 0, b"hello").bytes())?;
    link.silence("a packet from an unknown address")
}

fn short(context: &mut Context) -> Check {
    let mut link = context.link()?;
    for bytes in [&[][..], &[1], &[0x41, 2], &[0x41, 2, 3]] {
        link.send(bytes)?;
    }
    link.silence("a datagram of fewer than four bytes")
}

fn amplifies(context: &mut Context) -> Check {
    let mut link = context.link()?;
    link.send(&SALT)?;
    link.during_quiet()?;
    let (sent, received) = (link.sent, link.received);
    ensure(received <= sent, || format!("the server sent {received} bytes for {sent} bytes"))
}

fn two_clients(context: &mut Context) -> Check {
    let (mut one, mut two) = (context.open_game()?, context.open_game()?);
    one.still_answers("a second client connected")?;
    two.still_answers("the handshake of a second client")
}

fn seasoning_again(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    session.still_answers("the handshake")?;
    let seasoning = session.seasoning;
    session.link.send(&seasoning)?;
    session.quiet()?;
    session.still_answers("a second seasoning")
}

fn salt_again(context: &mut Context) -> Check {
    let mut link = context.link()?;
    pepper(&mut link, SALT)?;
    let second = pepper(&mut link, SALT)?;
    link.send(&seasoning(SALT, &second)?)?;
    let packet = Packet::new(REL | FIN, 0, 0, b"hello").bytes();
    link.send(&packet)?;
    let deadline = Instant::now() + link.timing.answer;
    while let Some(bytes) = link.receive(deadline)? {
        if bytes == [ACK | FIN, 0, 0, 0] {
            return Ok(());
        }
    }
    fail("the server acknowledged no packet after the seasoning for the second pepper")
}

fn salt_with_tail(context: &mut Context) -> Check {
    let mut link = context.link()?;
    link.send(&[&SALT[..], &[0]].concat())?;
    link.silence("a salt that is followed by a byte")
}

/// Closes a connection with these flags, and fails if a later packet is acknowledged.
fn ends_with(context: &mut Context, flags: u8) -> Check {
    let mut session = context.open_game()?;
    session.still_answers("the handshake")?;
    session.end(flags)?;
    session.quiet()?;
    session.acks.clear();
    let sequence = session.send(true, b"late")?;
    session.quiet()?;
    ensure(session.acks_of(0, sequence) == 0, || "the server acknowledged a packet after END".into())
}

fn ends(context: &mut Context) -> Check {
    ends_with(context, END | FIN)
}

fn end_alone(context: &mut Context) -> Check {
    ends_with(context, END)
}

fn end_wins(context: &mut Context) -> Check {
    ends_with(context, END | FIN | ACK | REL)
}

fn end_not_answered(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    session.still_answers("the handshake")?;
    session.quiet()?;
    session.end(END | FIN)?;
    session.link.silence("END")
}

fn end_of_another(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    session.still_answers("the handshake")?;
    let mut other = context.link()?;
    other.send(&[END | FIN, 0, 0, 0])?;
    session.quiet()?;
    session.still_answers("an END from another port")
}

fn end_of_one(context: &mut Context) -> Check {
    let (mut one, mut two) = (context.open_game()?, context.open_game()?);
    one.still_answers("the handshake")?;
    two.still_answers("the handshake")?;
    two.end(END | FIN)?;
    one.quiet()?;
    one.still_answers("the END of another connection")
}

fn reconnects(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    session.still_answers("the handshake")?;
    session.end(END | FIN)?;
    session.quiet()?;
    session.reopen()?;
    session.still_answers("a second handshake from the same port")
}

fn given_up(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    session.still_answers("the handshake")?;
    session.acknowledges = false;
    session.pass(context.timing.lifetime + context.timing.answer)?;
    session.acks.clear();
    let sequence = session.send(true, b"late")?;
    session.quiet()?;
    ensure(session.acks_of(0, sequence) == 0, || {
        "the server acknowledged a packet after the timeout (--lifetime)".into()
    })
}

fn kept(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    for _ in 0..12 {
        session.still_answers("a pause of a tenth of the timeout (--lifetime)")?;
        session.pass(context.timing.lifetime / 10)?;
    }
    session.still_answers("a time that is longer than the timeout (--lifetime)")
}

/// Returns a pseudorandom datagram, which is the same in each run.
fn random(seed: u32) -> Vec<u8> {
    let byte =
        |at: u32| (seed.wrapping_mul(0x9e37_79b1) ^ at.wrapping_mul(0x85eb_ca6b)).rotate_left(at) as u8;
    (0..seed % 120 + 5).map(byte).collect()
}

fn garbage_stranger(context: &mut Context) -> Check {
    let mut link = context.link()?;
    for seed in 0..300 {
        link.send(&random(seed))?;
    }
    link.silence("random bytes")?;
    opens(context)
}

fn garbage_connected(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    session.still_answers("the handshake")?;
    for seed in 0..300 {
        session.link.send(&random(seed))?;
    }
    session.quiet()?;
    // Random bytes may close this connection, but must not stop the server.
    opens(context)
}

fn ack_of_nothing(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    session.still_answers("the handshake")?;
    for sequence in [0, 7, 0x7fff, 0xffff] {
        session.link.send(&Packet::new(ACK | FIN, 9, sequence, &[]).bytes())?;
    }
    session.quiet()?;
    session.still_answers("acknowledgements of chunks that the server did not send")
}

fn unfinished(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    for _ in 0..60 {
        let sequence = session.take_sequence();
        session.link.send(&Packet::new(FIN, 1, sequence, b"second").bytes())?;
    }
    session.still_answers("sixty payloads with a missing chunk")
}

fn of_length(context: &mut Context, len: usize) -> Check {
    let mut session: GameSession = context.open_game()?;
    session.still_answers("the handshake")?;
    let mut other = context.link()?;
    other.send(&vec![0x55; len])?;
    session.quiet()?;
    session.still_answers(&format!("a datagram of {len} bytes"))
}

fn long(context: &mut Context) -> Check {
    of_length(context, 2000)
}

fn longest(context: &mut Context) -> Check {
    of_length(context, 60_000)
}

fn empty(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    session.link.send(&[])?;
    session.still_answers("an empty datagram")
}

fn other_source(context: &mut Context) -> Check {
    let mut session = context.open_game()?;
    session.still_answers("the handshake")?;
    let mut other = context.link()?;
    other.send(&Packet::new(REL | FIN, 0, 40, b"not yours").bytes())?;
    other.silence("a packet for a connection from another port")?;
    session.still_answers("a packet from another port")
}

fn flood(context: &mut Context) -> Check {
    for _ in 0..30 {
        let mut link = context.link()?;
        for _ in 0..10 {
            link.send(&SALT)?;
        }
        // The receive buffer of the server holds only some of them, so pause.
        link.receive(Instant::now() + context.timing.quiet / 4)?;
    }
    // The server may limit the rate of peppers for a while.
    let deadline = Instant::now() + context.timing.answer * 4;
    while Instant::now() < deadline {
        if opens(context).is_ok() {
            return Ok(());
        }
    }
    fail("the server accepted no client")
}
