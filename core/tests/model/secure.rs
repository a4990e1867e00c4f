//! Properties of secure connections under arbitrary input.
//!
//! Modified data is never accepted, and a datagram opens at most once.

use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::Guid;
use rakwire::secure::{
    ANSWER, CHALLENGE, ClientHandshake, ConnectToken, DatagramProtection, IDENTITY, Identity,
    MAX_CONNECT_TOKEN, Negotiated, OVERHEAD, PROOF, PUBLIC_KEY_FIELD, PublicKey, RekeyLimits, ReplyFields,
    SecureRequest, SeededRandom, ServerHandshake, ServerIdentity, ServerKeyField, ServerTrust, StaticKey,
    TokenClaims, TokenKey, Versions,
};

use super::random::Random;
use super::{Kept, secure_crossing, secure_peers};

const START: Instant = Instant::ZERO;

/// The kind of a run with whole peers, which takes much longer than the other kinds.
pub const PEERS: u8 = 7;

/// Executes a run; the first byte selects its kind.
///
/// # Errors
/// The violated guarantee.
pub fn run(bytes: &[u8]) -> Kept {
    let Some((kind, rest)) = bytes.split_first() else { return Ok(()) };
    match kind % 8 {
        0 => handshake(rest, false),
        1 => handshake(rest, true),
        2 => fields(rest),
        3 => tokens(rest),
        4 => arbitrary(rest),
        PEERS => secure_peers::run(rest).and_then(|()| secure_crossing::run(rest)),
        _ => datagrams(rest, kind % 2 == 0),
    }
}

/// Returns a random input of any kind except whole peers.
///
/// Kinds 0 to 3 get mostly zeros, which leave most fields unchanged, so that some handshakes complete.
pub fn input(random: &mut Random) -> Vec<u8> {
    let kind = random.below(PEERS.into()) as u8;
    let (length, odds) = (random.below(600), if kind < 4 { 500 } else { 1 });
    let rest = (0..length).map(|_| if random.below(odds) == 0 { random.draw() as u8 } else { 0 });
    [kind].into_iter().chain(rest).collect()
}

fn promise(is_kept: bool, broken: impl Fn() -> String) -> Kept {
    if is_kept { Ok(()) } else { Err(broken()) }
}

/// Returns `genuine` XORed with the next bytes of the input, and true if the result differs.
fn change<const N: usize>(genuine: &[u8; N], input: &mut &[u8]) -> ([u8; N], bool) {
    let (differences, rest) = input.split_at(input.len().min(N));
    *input = rest;
    let mut changed = *genuine;
    changed.iter_mut().zip(differences).for_each(|(byte, difference)| *byte ^= difference);
    (changed, changed != *genuine)
}

/// Runs a whole handshake. The input may modify each field in transit.
fn handshake(mut input: &[u8], has_identity: bool) -> Kept {
    let mut random = SeededRandom::new([1; 32]);
    let server = ServerIdentity::new(StaticKey::from_bytes([2; 32]));
    let player = StaticKey::from_bytes([3; 32]);
    let negotiated = Negotiated {
        server: Guid(1),
        client: Guid(2),
        cookie: 3,
        server_address: ([192, 0, 2, 1], 4).into(),
        mtu: 1492,
    };
    let reply = ReplyFields { client: ([192, 0, 2, 2], 5).into(), mtu: 1492 };
    let trust = ServerTrust::Key(server.public());
    let versions = Versions { announced: 6, first: 6 };
    let mut client = ClientHandshake::new();
    let genuine: [u8; CHALLENGE] = client
        .challenge(&trust, has_identity, &server.field(1492), &negotiated, versions, &mut random)
        .map_err(|error| format!("the genuine key was refused: {error}"))?;

    let (challenge, is_changed) = change(&genuine, &mut input);
    let request = SecureRequest { negotiated: &negotiated, challenge: &challenge };
    let answered = ServerHandshake::respond(&server, request, reply, &[6], START, &mut random);
    promise(answered.is_err() == is_changed, || {
        format!("challenge {challenge:02x?} was answered: {}", answered.is_ok())
    })?;
    let Ok((mut at_server, mut protection)) = answered else { return Ok(()) };

    let (answer, is_changed): ([u8; ANSWER], _) = change(at_server.answer(), &mut input);
    let identity = has_identity.then_some(Identity { key: &player, data: b"" });
    let established = client.accept(&answer, negotiated.server, &reply.client, reply.mtu, identity, START);
    promise(established.is_err() == is_changed, || {
        format!("answer {answer:02x?} was accepted: {}", established.is_ok())
    })?;
    let Ok(mut established) = established else { return Ok(()) };

    let (proof, proof_changed): ([u8; PROOF], _) = change(&established.proof, &mut input);
    let shown = established.identity.map(|genuine| change::<IDENTITY>(&genuine, &mut input));
    let is_changed = proof_changed || shown.is_some_and(|(_, is_changed)| is_changed);
    let identity = shown.as_ref().map(|(bytes, _)| &bytes[..]);
    let finished = at_server.finish(&mut protection, &proof, identity, START);
    promise(finished.is_err() == is_changed, || {
        format!("proof {proof:02x?} and {identity:02x?}: {finished:?}")
    })?;
    if let Ok(shown) = finished {
        promise(shown.is_some() == has_identity, || format!("the server got the identity {shown:?}"))?;
        passes(&mut protection, &mut established.protection)?;
        passes(&mut established.protection, &mut protection)?;
    }
    Ok(())
}

fn passes(from: &mut DatagramProtection, to: &mut DatagramProtection) -> Kept {
    let mut datagram = [7; 64];
    let length = from.seal(START, &mut datagram, 40).ok_or("no space for the tag")?;
    let opened = to.open(START, &mut datagram[..length]);
    promise(opened == Ok(&mut [7; 40]), || format!("a genuine datagram did not open: {opened:?}"))
}

/// Checks that the key field of reply 1, keys as text, and connect tokens are written as they were read.
fn fields(bytes: &[u8]) -> Kept {
    let field = bytes.first_chunk::<PUBLIC_KEY_FIELD>();
    if let Some((field, read)) = field.and_then(|field| Some((field, ServerKeyField::read(field)?))) {
        let mut canonical = *field;
        canonical[2] &= 3;
        promise(read.write() == canonical, || format!("{read:?}"))?;
    }
    if let Ok(token) = ConnectToken::read(bytes) {
        let mut buffer = [0; MAX_CONNECT_TOKEN];
        let written = token.write(&mut buffer);
        promise(written == Ok(bytes), || format!("{token:?} is written as {written:02x?}"))?;
    }
    let Ok(text) = core::str::from_utf8(bytes) else { return Ok(()) };
    if let Ok(key) = text.parse::<PublicKey>() {
        promise(key.to_string() == text, || format!("{text} is written as {key}"))?;
    }
    if let Ok(key) = StaticKey::from_key_file(text) {
        let written = key.private_text().to_string();
        promise(text.contains(&written), || format!("{text} is written as {written}"))?;
    }
    Ok(())
}

/// Checks that a token opens if and only if the input does not modify it.
fn tokens(input: &[u8]) -> Kept {
    let key = TokenKey::from_bytes([1; 32]);
    let [client, server] = [2, 3].map(|byte| StaticKey::from_bytes([byte; 32]).public());
    let claims =
        TokenClaims { user_id: 1, expires: 100, client, servers: &[server.hash()], user_data: b"some data" };
    let genuine = claims.seal(&key, &mut SeededRandom::new([4; 32])).map_err(|error| error.to_string())?;
    let mut changed = genuine.to_vec();
    changed.iter_mut().zip(input).for_each(|(byte, difference)| *byte ^= difference);
    changed.extend(input.get(genuine.len()..).unwrap_or(&[]));
    let opened = key.open(&changed, &server.hash(), &client, 50);
    promise(opened.is_ok() == (changed == *genuine), || {
        format!("{changed:02x?} was accepted: {}", opened.is_ok())
    })
}

/// Checks that arbitrary bytes, which were never sealed, are refused everywhere.
fn arbitrary(bytes: &[u8]) -> Kept {
    let [client, server] = [2, 3].map(|byte| StaticKey::from_bytes([byte; 32]).public());
    promise(TokenKey::from_bytes([1; 32]).open(bytes, &server.hash(), &client, 0).is_err(), || {
        "arbitrary bytes opened as a token".into()
    })?;
    let mut protection = DatagramProtection::with_keys([1; 32], [2; 32], START);
    let mut buffer = [0; 2048];
    promise(protection.open_copy(START, bytes, &mut buffer).is_err(), || {
        "arbitrary bytes opened as a datagram".into()
    })?;
    promise(protection.open(START, &mut bytes.to_vec()).is_err(), || {
        "arbitrary bytes opened in place".into()
    })?;
    promise(!protection.has_opened(), || "arbitrary bytes count as an opened datagram".into())
}

/// Datagrams in flight to a peer: the number and the bytes of each.
type UnderWay = Vec<(u32, Vec<u8>)>;

/// Runs two protections that rekey often over a path with loss, duplication, reordering and forgery.
///
/// Each step takes two bytes of the input.
fn datagrams(input: &[u8], in_order: bool) -> Kept {
    let limits = RekeyLimits {
        datagrams: 3,
        age: Duration::from_secs(1),
        forged: 4,
        previous_key: Duration::from_millis(500),
    };
    let mut peers = [([1; 32], [2; 32]), ([2; 32], [1; 32])]
        .map(|(sending, receiving)| DatagramProtection::with_keys(sending, receiving, START));
    peers.iter_mut().for_each(|peer| peer.set_limits(limits));
    let mut under_way: [UnderWay; 2] = [Vec::new(), Vec::new()];
    let mut opened: [Vec<u32>; 2] = [Vec::new(), Vec::new()];
    let mut now = START;
    for (number, step) in (0..).zip(input.chunks_exact(2)) {
        let (from, pick) = (usize::from(step[0] & 1), usize::from(step[1]));
        now = now + Duration::from_millis(u64::from(step[0] >> 4) * 20);
        let queue = &mut under_way[from];
        match step[0] >> 1 & 7 {
            0..4 => queue.push((number, seal(&mut peers[from], now, number)?)),
            _ if queue.is_empty() => {}
            4 => {
                let mut forged = queue[pick % queue.len()].1.clone();
                let at = pick % forged.len();
                forged[at] ^= 1 | step[1];
                let believed = peers[1 - from].open(now, &mut forged).is_ok();
                promise(!believed, || format!("a forged datagram {number} was opened"))?;
            }
            5 => drop(queue.remove(pick % queue.len())),
            action => {
                let at = if in_order { 0 } else { pick % queue.len() };
                let (sent, mut datagram) = if action == 6 { queue[at].clone() } else { queue.remove(at) };
                if let Ok(plain) = peers[1 - from].open(now, &mut datagram) {
                    promise(*plain == sent.to_be_bytes(), || format!("{sent} was opened as {plain:?}"))?;
                    promise(!opened[from].contains(&sent), || format!("{sent} was opened twice"))?;
                    opened[from].push(sent);
                }
            }
        }
        let [a, b] = [peers[0].epoch(), peers[1].epoch()];
        promise(a.abs_diff(b) <= 1, || format!("the epochs {a} and {b} differ by more than one"))?;
    }
    for from in [0, 1, 0] {
        let mut datagram = seal(&mut peers[from], now, 0)?;
        promise(peers[1 - from].open(now, &mut datagram).is_ok(), || {
            "the peers no longer share a key".into()
        })?;
    }
    Ok(())
}

fn seal(peer: &mut DatagramProtection, now: Instant, number: u32) -> Result<Vec<u8>, String> {
    let mut datagram = number.to_be_bytes().to_vec();
    datagram.resize(4 + usize::from(OVERHEAD), 0);
    peer.seal(now, &mut datagram, 4).ok_or("no space for the tag")?;
    Ok(datagram)
}
