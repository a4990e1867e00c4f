//! Checks an entry of a vector file of the Game Protocol's transport; docs/game-protocol.md specifies the format.

use rakwire::Instant;
use rakwire::game_protocol::wire::{HandshakeWord, Header, MAX_PACKET, Position};
use rakwire::game_protocol::{Capacity, Config, Event, Peer, Reliability, SendError};
use rakwire::wire::Writer;
use serde_json::Value as Json;

const NOW: Instant = Instant::from_micros(1_000_000);
const CLIENT: ([u8; 4], u16) = ([192, 0, 2, 1], 1);

/// Checks an entry of a category. `entries` contains all entries of the file, because some depend on others.
///
/// # Errors
/// One line that states how the peer differs from the entry.
pub(crate) fn check_entry(entries: &[Json], category: &str, entry: &Json) -> Result<(), String> {
    match category {
        "handshake" => check_handshake(entries, entry),
        "chunking" => check_chunking(entry),
        "packet" => check_packet(entry),
        "receive" => check_receive(entry),
        "live" => check_live(entry),
        _ => Err("unknown category".into()),
    }
}

/// Checks a handshake message. The third message of a session must be the XOR of the first two.
fn check_handshake(entries: &[Json], entry: &Json) -> Result<(), String> {
    let number = handshake(entry)?;
    let mut buffer = [0; MAX_PACKET];
    let mut writer = Writer::new(&mut buffer);
    number.write(&mut writer).map_err(|error| format!("{error:?}"))?;
    same(&[writer.finish().to_vec()], &[bytes_of(entry)?])?;
    let Some(session) = text_of(entry, "name")?.strip_suffix("response").map(str::to_owned) else {
        return Ok(());
    };
    let part = |name: &str| {
        let name = format!("{session}{name}");
        entries.iter().find(|entry| text_of(entry, "name").is_ok_and(|other| other == name))
    };
    let (Some(salt), Some(pepper)) = (part("init"), part("challenge")) else { return Ok(()) };
    let seasoning = handshake(salt)?.season(handshake(pepper)?);
    if seasoning == number { Ok(()) } else { Err(format!("{seasoning:?} instead of {number:?}")) }
}

fn handshake(entry: &Json) -> Result<HandshakeWord, String> {
    let number = HandshakeWord::read(&bytes_of(entry)?).map_err(|error| format!("{error:?}"))?;
    let expected = entry.get("value").and_then(Json::as_u64).ok_or("\"value\" is not a number")?;
    if u64::from(number.0) == expected {
        Ok(number)
    } else {
        Err(format!("reads {} instead of {expected}", number.0))
    }
}

/// Checks a payload that is split into datagrams. For the longest payloads the vector contains only their headers.
fn check_chunking(entry: &Json) -> Result<(), String> {
    let value = entry.get("value").ok_or("\"value\" is missing")?;
    let length = value.get("payload_len").and_then(Json::as_u64).ok_or("\"payload_len\" is missing")?;
    let length = usize::try_from(length).map_err(|error| error.to_string())?;
    let reliability = match value.get("reliable").and_then(Json::as_bool) {
        Some(false) => Reliability::Unreliable,
        // The vector of the empty payload specifies no reliability.
        Some(true) | None => Reliability::Reliable,
    };
    let payload: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
    let expected = list_of(entry, "hex")?;
    let (mut server, id) = server(expected.first().map_or(0, |first| sequence(first)));
    let sent = server.send(NOW, id, &payload, reliability);
    let Some(last) = expected.last() else {
        return if sent == Err(SendError::Empty) {
            Ok(())
        } else {
            Err(format!("an empty payload was sent: {sent:?}"))
        };
    };
    sent.map_err(|error| error.to_string())?;
    let written = output(&mut server);
    let headers_only = length > 4 && last.len() == 4;
    if headers_only {
        let headers: Vec<Vec<u8>> = written.iter().map(|packet| packet[..4].to_vec()).collect();
        let bodies: Vec<u8> = written.iter().flat_map(|packet| packet[4..].to_vec()).collect();
        same(&[bodies], &[payload])?;
        return same(&headers, &expected);
    }
    same(&written, &expected)
}

fn sequence(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[2], packet[3]])
}

/// Checks that a datagram is parsed as specified, and that it is written as the same bytes.
///
/// Datagrams that no peer writes, with "accepted" or "reserved" in their names, are only parsed.
fn check_packet(entry: &Json) -> Result<(), String> {
    let value = entry.get("value").ok_or("\"value\" is missing")?;
    let field =
        |name: &str| value.get(name).and_then(Json::as_u64).ok_or_else(|| format!("{name:?} is missing"));
    let flag = |name: &str| field(name).map(|bit| bit == 1);
    let bytes = bytes_of(entry)?;
    let (header, body) = Header::read(&bytes).map_err(|error| format!("{error:?}"))?;
    let chunk = u8::try_from(field("chunk")?).map_err(|error| error.to_string())?;
    let sequence = u16::try_from(field("sequence")?).map_err(|error| error.to_string())?;
    let expected = if flag("END")? {
        Header::End
    } else if flag("ACK")? {
        Header::Acknowledgement { chunk, sequence }
    } else {
        Header::Chunk {
            reliability: if flag("REL")? { Reliability::Reliable } else { Reliability::Unreliable },
            position: if flag("FIN")? { Position::Last } else { Position::Inner },
            chunk,
            sequence,
        }
    };
    if header != expected || body.len() as u64 != field("body_len")? {
        return Err(format!("reads {header:?} and a body of {} bytes", body.len()));
    }
    let is_odd = ["accepted", "reserved"]
        .iter()
        .any(|odd| text_of(entry, "name").is_ok_and(|name| name.contains(odd)));
    if is_odd {
        return Ok(());
    }
    let mut buffer = [0; MAX_PACKET];
    let mut writer = Writer::new(&mut buffer);
    header.write(&mut writer).and_then(|()| writer.bytes(body)).map_err(|error| format!("{error:?}"))?;
    same(&[writer.finish().to_vec()], &[bytes])
}

/// Checks a peer's responses to datagrams and the messages that it delivers.
///
/// If the original implementation crashes on the datagrams, nothing must be delivered.
fn check_receive(entry: &Json) -> Result<(), String> {
    let value = entry.get("value").ok_or("\"value\" is missing")?;
    let (mut server, _) = server(0);
    let mut replies = Vec::new();
    let mut delivered = Vec::new();
    for packet in list_of(entry, "hex")? {
        server.handle_datagram(NOW, CLIENT.into(), &packet);
        replies.extend(output(&mut server));
        delivered.extend(messages(&mut server));
    }
    same(&replies, &list_of(value, "replies")?).map_err(|why| format!("replies: {why}"))?;
    let expected = if value.get("error").is_some() { Vec::new() } else { list_of(value, "delivered")? };
    same(&delivered, &expected).map_err(|why| format!("deliveries: {why}"))
}

/// Checks a message of a captured session: its datagrams are reassembled to the payload, and the payload is split into
/// equal datagrams.
fn check_live(entry: &Json) -> Result<(), String> {
    let packets = list_of(entry, "hex")?;
    let payload = unhex(&text_of(entry, "payload_hex")?)?;
    let first = packets.first().ok_or("\"hex\" is an empty list")?;
    let (mut server, id) = server(sequence(first));
    for packet in &packets {
        server.handle_datagram(NOW, CLIENT.into(), packet);
    }
    // Acknowledgements are not part of the vector.
    output(&mut server);
    same(&messages(&mut server), std::slice::from_ref(&payload))?;
    let reliability = if first[0] & 1 == 0 { Reliability::Unreliable } else { Reliability::Reliable };
    server.send(NOW, id, &payload, reliability).map_err(|error| error.to_string())?;
    same(&output(&mut server), &packets)
}

/// Returns a server with one connection. Its sequences start at `first`.
fn server(first: u16) -> (Peer<'static>, rakwire::game_protocol::ConnectionId) {
    let mut config = Config::new([2; 32]);
    config.max_incoming = 1;
    let mut server = Peer::with_capacity(Capacity { connections: 1, blocks: 2_048, block_size: 512 }, config);
    server.start_sequences_at(first);
    server.handle_datagram(NOW, CLIENT.into(), &[0; 4]);
    let pepper = output(&mut server).concat();
    server.handle_datagram(NOW, CLIENT.into(), &pepper);
    let id = server
        .connection_at(CLIENT.into())
        .expect("an open connection; with a salt of zero the pepper is the response");
    while server.poll_event().is_some() {}
    (server, id)
}

fn output(peer: &mut Peer<'_>) -> Vec<Vec<u8>> {
    let mut buffer = [0; MAX_PACKET];
    let mut packets = Vec::new();
    while let Some(transmit) = peer.poll_transmit(NOW, &mut buffer) {
        packets.push(transmit.payload.to_vec());
    }
    packets
}

fn messages(peer: &mut Peer<'_>) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while let Some(event) = peer.poll_event() {
        if let Event::Message { message, .. } = event {
            messages.push(message.to_vec());
        }
    }
    messages
}

fn same(found: &[Vec<u8>], expected: &[Vec<u8>]) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{} datagrams or messages instead of {}", found.len(), expected.len()));
    }
    match found.iter().zip(expected).position(|(found, expected)| found != expected) {
        None => Ok(()),
        Some(index) => Err(format!("datagram or message {index} differs")),
    }
}

fn text_of(entry: &Json, key: &str) -> Result<String, String> {
    let text = entry.get(key).and_then(Json::as_str);
    text.map(str::to_owned).ok_or_else(|| format!("{key:?} is not a string"))
}

fn bytes_of(entry: &Json) -> Result<Vec<u8>, String> {
    unhex(&text_of(entry, "hex")?)
}

fn list_of(entry: &Json, key: &str) -> Result<Vec<Vec<u8>>, String> {
    let list = entry.get(key).and_then(Json::as_array).ok_or_else(|| format!("{key:?} is not a list"))?;
    list.iter().map(|text| unhex(text.as_str().ok_or("an element is not a string")?)).collect()
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0).ok_or("not a string of hexadecimal bytes")?;
    Ok(digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}
