//! The committed test vectors of secure connections, generated with fixed keys. Another implementation checks them too.

use rakwire::secure::{
    ConnectToken, KeyHash, MAX_CONNECT_TOKEN, SecureRandom, TokenClaims, TokenKey, TokenServer,
};
use serde_json::{Value, json};

use super::*;

const FILE: &str = include_str!("../../vectors/secure.json");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A source of randomness that returns fixed bytes in order.
struct Fixed(Vec<u8>);

impl SecureRandom for Fixed {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = self.0.remove(0);
        }
    }
}

fn seed(byte: u8) -> [u8; 32] {
    core::array::from_fn(|index| byte.wrapping_mul(3).wrapping_add(index as u8))
}

/// Creates a stage with the keys and random bytes of the vectors.
fn stage(has_identity: bool, server_address: &str, client_address: &str) -> Stage {
    let mut stage = Stage::new(has_identity.then(|| StaticKey::from_bytes(seed(2))));
    stage.server = ServerIdentity::new(StaticKey::from_bytes(seed(1)));
    stage.server.next = Some(StaticKey::from_bytes(seed(9)).public().hash());
    stage.server.requires_security = true;
    stage.trust = ServerTrust::Key(stage.server.public());
    stage.negotiated.server_address = address(server_address);
    stage.reply.client = address(client_address);
    stage
}

/// Returns a handshake with fixed keys and the datagrams after it, as an entry of the vector file.
fn handshake(name: &str, has_identity: bool, server_address: &str, client_address: &str) -> Value {
    let mut stage = stage(has_identity, server_address, client_address);
    let field = stage.server.field(1492);
    let mut random = Fixed([seed(3), seed(4)].concat());
    let challenge = stage
        .client
        .challenge(&stage.trust, has_identity, &field, &stage.negotiated, SIX, &mut random)
        .expect("a trusted key");
    let request = SecureRequest { negotiated: &stage.negotiated, challenge: &challenge };
    let (answered, at_server) =
        ServerHandshake::respond(&stage.server, request, stage.reply, &[6], START, &mut random)
            .expect("a challenge");
    let answer = *answered.answer();
    let established = stage.accept(&answer).expect("a valid answer");
    let (proof, identity) = (established.proof, established.identity);
    json!({
        "name": name,
        "server_private": hex(&seed(1)),
        "server_public": hex(&stage.server.public().0),
        "server_key_hash": hex(&stage.server.public().hash().0),
        "client_private": has_identity.then(|| hex(&seed(2))),
        "client_ephemeral": hex(&seed(3)),
        "server_ephemeral": hex(&seed(4)),
        "server_guid": format!("{:016x}", stage.negotiated.server.0),
        "client_guid": format!("{:016x}", stage.negotiated.client.0),
        "cookie": format!("{:08x}", stage.negotiated.cookie),
        "server_address": server_address,
        "client_address": client_address,
        "mtu": 1492,
        "version": 6,
        "number": 0,
        "identity_data": hex(b"Ada"),
        "key_field": hex(&field),
        "challenge": hex(&challenge),
        "answer": hex(&answer),
        "proof": hex(&proof),
        "identity": identity.map(|identity| hex(&identity)),
        "datagrams": datagrams(established, answered, at_server),
    })
}

/// Returns the connection request and the datagrams after it, including datagrams with new keys two minutes later.
fn datagrams(
    mut established: Established,
    answered: ServerHandshake,
    mut at_server: DatagramProtection,
) -> Value {
    const LATER: u64 = 121_000_000;
    let mut datagrams = Vec::new();
    let mut pass =
        |by: &str, from: &mut DatagramProtection, to: &mut DatagramProtection, micros: u64, plain: &[u8]| {
            let now = Instant::from_micros(micros);
            let mut buffer = [0; 64];
            buffer[..plain.len()].copy_from_slice(plain);
            let length = from.seal(now, &mut buffer, plain.len()).expect("space for the tag");
            let sealed = hex(&buffer[..length]);
            let epoch = from.epoch();
            assert_eq!(to.open(now, &mut buffer[..length]).map(|opened| opened.to_vec()), Ok(plain.to_vec()));
            datagrams.push(json!({"by": by, "epoch": epoch, "plain": hex(plain), "sealed": sealed}));
        };
    pass("client", &mut established.protection, &mut at_server, 0, b"\x84connection request");
    pass("client", &mut established.protection, &mut at_server, 0, b"\x84again");
    let shown = finish(answered, &mut at_server, &established);
    assert_eq!(shown.map(|shown| shown.is_some()), Ok(established.identity.is_some()));
    let at_client = &mut established.protection;
    pass("server", &mut at_server, at_client, 0, b"\x84accepted");
    pass("client", at_client, &mut at_server, 0, b"\x84first message");
    pass("client", at_client, &mut at_server, LATER, b"\x84after two minutes");
    pass("server", &mut at_server, at_client, LATER, b"");
    datagrams.into()
}

/// Returns a challenge for a server that sets a reserved flag; the prologue contains the flag as it was sent.
fn challenge_to_unknown_flags() -> Value {
    let mut stage = stage(false, "192.0.2.1:19132", "192.0.2.2:50000");
    let mut field = stage.server.field(1492);
    field[2] = 5;
    let mut random = Fixed(seed(3).to_vec());
    let Stage { client, trust, negotiated, .. } = &mut stage;
    let challenge =
        client.challenge(trust, false, &field, negotiated, SIX, &mut random).expect("a trusted key");
    json!({
        "name": "a flag that means nothing yet",
        "server_public": hex(&stage.server.public().0),
        "client_ephemeral": hex(&seed(3)),
        "server_guid": format!("{:016x}", stage.negotiated.server.0),
        "client_guid": format!("{:016x}", stage.negotiated.client.0),
        "cookie": format!("{:08x}", stage.negotiated.cookie),
        "server_address": "192.0.2.1:19132",
        "mtu": 1492,
        "version": 6,
        "number": 0,
        "key_field": hex(&field),
        "challenge": hex(&challenge),
    })
}

fn token(name: &str, servers: &[KeyHash], user_data: &[u8]) -> Value {
    let client = StaticKey::from_bytes(seed(2)).public();
    let claims =
        TokenClaims { user_id: 0x0102_0304_0506_0708, expires: 1_800_000_000, client, servers, user_data };
    let salt: Vec<u8> = (0xA0..0xA0 + 24).collect();
    let sealed = claims
        .seal(&TokenKey::from_bytes(seed(7)), &mut Fixed(salt.clone()))
        .expect("claims that fit a token");
    json!({
        "name": name,
        "token_key": hex(&seed(7)),
        "salt": hex(&salt),
        "user_id": format!("{:016x}", claims.user_id),
        "expires": claims.expires,
        "client": hex(&client.0),
        "servers": servers.iter().map(|server| hex(&server.0)).collect::<Vec<_>>(),
        "user_data": hex(user_data),
        "sealed": hex(&sealed),
    })
}

/// Returns the connect token that a backend issues to a client.
fn connect_token(name: &str, servers: &[(u8, &'static str)], sealed: &[u8]) -> Value {
    let named = |(key, name): &(u8, &'static str)| TokenServer {
        key: StaticKey::from_bytes(seed(*key)).public(),
        name,
    };
    let token = ConnectToken { expires: 1_800_000_000, servers: servers.iter().map(named).collect(), sealed };
    let servers = token.servers.iter();
    let servers = servers.map(|server| json!({"key": hex(&server.key.0), "name": server.name}));
    let mut buffer = [0; MAX_CONNECT_TOKEN];
    json!({
        "name": name,
        "expires": token.expires,
        "servers": servers.collect::<Vec<_>>(),
        "sealed": hex(sealed),
        "hex": hex(token.write(&mut buffer).expect("claims that fit a token")),
        "text": token.to_string(),
    })
}

fn texts() -> Value {
    let key = StaticKey::from_bytes(seed(1));
    let token_key = TokenKey::from_bytes(seed(7));
    json!([
        {"name": "private key", "hex": hex(&seed(1)), "text": key.private_text().to_string()},
        {"name": "public key", "hex": hex(&key.public().0), "text": key.public().to_string()},
        {"name": "key hash", "hex": hex(&key.public().hash().0), "text": key.public().hash().to_string()},
        {"name": "token key", "hex": hex(&seed(7)), "text": token_key.private_text().to_string()},
    ])
}

fn all() -> Value {
    let [a, b] = [1, 9].map(|byte| StaticKey::from_bytes(seed(byte)).public().hash());
    json!({
        "about": "Handshakes with fixed keys, datagrams, connect tokens and texts of keys. docs/secure.md states what they are.",
        "handshakes": [
            handshake("without an identity", false, "192.0.2.1:19132", "192.0.2.2:50000"),
            handshake("with an identity", true, "192.0.2.1:19132", "192.0.2.2:50000"),
            handshake("with an identity, over IPv6", true, "[2001:db8::1]:19132", "[2001:db8::2]:50000"),
            handshake("through a relay, to an address that the client does not know", false, "0.0.0.0:0", "192.0.2.2:50000"),
        ],
        "challenges": [challenge_to_unknown_flags()],
        "tokens": [token("one server", &[a], b"user data"), token("two servers, no data", &[a, b], b"")],
        "connect_tokens": [
            connect_token("one server", &[(1, "game.example.org:19132")], &[7; 180]),
            connect_token("two servers, of which one has no name", &[(1, "arena"), (9, "")], b"sealed"),
        ],
        "texts": texts(),
    })
}

/// `SECURE_VECTORS=FILE` regenerates the file, which is only necessary after a change of the protocol.
#[test]
fn the_implementation_matches_the_committed_vectors() {
    if let Ok(file) = std::env::var("SECURE_VECTORS") {
        let text = serde_json::to_string_pretty(&all()).expect("JSON");
        std::fs::write(file, text + "\n").expect("a writable vector file");
    }
    let committed: Value = serde_json::from_str(FILE).expect("JSON");
    assert_eq!(committed, all());
}
