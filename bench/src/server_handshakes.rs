//! Measures the server's computations in a secure handshake, without those of the client: the answer to the challenge
//! and the check of the proof.

use std::time::{Duration, Instant as WallInstant};

use anyhow::{Context, Result};
use rakwire::Instant;
use rakwire::raknet::Guid;
use rakwire::secure::{
    ClientHandshake, Identity, Negotiated, ReplyFields, SecureRequest, SeededRandom, ServerHandshake,
    ServerIdentity, ServerTrust, StaticKey, Versions,
};

use crate::pairing::median;
use crate::report::{markdown, number};

/// The handshakes per second for which the table states the share of a core: the default maximum of a server.
const RATION: f64 = 1_000.0;
const NOW: Instant = Instant::ZERO;

/// Returns a table with the number of handshakes that a core can do per second. The number is computed from the median
/// of `count` handshakes, so that interruptions do not count.
pub(crate) fn table(count: usize) -> Result<String> {
    let head = ["handshakes of a server alone", "per second", "share of a core at 1,000 a second"];
    let mut lines = vec![head.map(str::to_owned)];
    let server = ServerIdentity::new(StaticKey::from_bytes([5; 32]));
    let player = StaticKey::from_bytes([6; 32]);
    let mut random = SeededRandom::new([7; 32]);
    for (name, player) in [("clients without an identity", None), ("clients with one", Some(&player))] {
        let took = (0..count).map(|_| handshake(&server, player, &mut random).map(|took| took.as_secs_f64()));
        let took = median(took.collect::<Result<Vec<_>>>()?).context("nothing was measured")?;
        lines.push([name.to_owned(), number(1.0 / took), format!("{:.0} %", 100.0 * RATION * took)]);
    }
    Ok(markdown(&lines))
}

/// Returns the time that the server's part of one handshake took.
fn handshake(
    server: &ServerIdentity,
    player: Option<&StaticKey>,
    random: &mut SeededRandom,
) -> Result<Duration> {
    let negotiated = Negotiated {
        server: Guid(1),
        client: Guid(2),
        cookie: 3,
        server_address: ([192, 0, 2, 1], 19_132).into(),
        mtu: 1_492,
    };
    let reply = ReplyFields { client: ([192, 0, 2, 2], 50_000).into(), mtu: 1_492 };
    let (trust, versions) = (ServerTrust::Key(server.public()), Versions { announced: 6, first: 6 });
    let mut client = ClientHandshake::new();
    let field = server.field(negotiated.mtu);
    let challenge = client.challenge(&trust, player.is_some(), &field, &negotiated, versions, random)?;
    let request = SecureRequest { negotiated: &negotiated, challenge: &challenge };

    let began = WallInstant::now();
    let (mut handshake, mut protection) =
        ServerHandshake::respond(server, request, reply, &[6], NOW, random)?;
    let answered = began.elapsed();

    let identity = player.map(|key| Identity { key, data: b"" });
    let answer = handshake.answer();
    let established = client.accept(answer, negotiated.server, &reply.client, reply.mtu, identity, NOW)?;
    let shown = established.identity.as_ref().map(|identity| &identity[..]);

    let began = WallInstant::now();
    let client = handshake.finish(&mut protection, &established.proof, shown, NOW)?;
    let finished = began.elapsed();

    (client.is_some() == player.is_some())
        .then_some(answered + finished)
        .context("the server did not receive exactly the identity of the client")
}
