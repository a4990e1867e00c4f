//! Properties of messages decoded from arbitrary bytes. The tests here and the fuzz targets share this file.

use std::fmt::Debug;

use rakwire::codec::rabbit::{List, Pack, Text, Unpack, to_vec, unpack};
use snowfight::message::{
    Action, ActionKind, Break, Channel, ClientMessage, Connect, Delivery, Direction, Entity, EntityKind,
    Event, EventKind, GameOver, Move, Object, Player, Point, Request, RequestKind, Response, ResponseKind,
    ServerMessage, Snapshot, Throw,
};
use snowfight::server::{MAX_MESSAGE, Output, Server};

/// The result of checking a property; the error describes the violation.
pub type Kept = Result<(), String>;

/// Checks every message type on these bytes.
pub fn messages(bytes: &[u8]) -> Kept {
    check(bytes, |bytes| unpack_as_text_and_bytes::<ClientMessage>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<Request>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<Action>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<Break>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<Throw>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<Move>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<ServerMessage<'_>>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<Event<'_>>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<Response<'_>>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<Connect<'_>>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<Snapshot<'_>>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<GameOver>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<Entity>(bytes))?;
    parts(bytes)?;
    entities(bytes)
}

/// Checks the types of which messages consist.
fn parts(bytes: &[u8]) -> Kept {
    check(bytes, |bytes| unpack_as_text_and_bytes::<RequestKind>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<ActionKind>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<EventKind<'_>>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<ResponseKind<'_>>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<Text<'_>>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<EntityKind>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<Object>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<Player>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<Direction>(bytes))?;
    check(bytes, |bytes| unpack_as_text_and_bytes::<Point>(bytes))
}

/// The `Debug` text of a message, and its packed bytes.
type Unpacked = Option<(String, Vec<u8>)>;

/// Unpacks the bytes as a `T`; `None` if they are invalid. Returns text, because a NaN is not equal to itself.
fn unpack_as_text_and_bytes<'a, T: Pack + Unpack<'a> + Debug>(bytes: &'a [u8]) -> Unpacked {
    let value = unpack::<T>(bytes).ok()?;
    Some((format!("{value:?}"), to_vec(&value).unwrap_or_default()))
}

/// Checks that an unpacked value, packed again, has the same meaning and is not longer.
fn check(bytes: &[u8], unpack_as_text: impl Fn(&[u8]) -> Unpacked) -> Kept {
    let Some((text, packed)) = unpack_as_text(bytes) else { return Ok(()) };
    let again = unpack_as_text(&packed);
    if packed.len() <= bytes.len() && again.as_ref() == Some(&(text.clone(), packed)) {
        return Ok(());
    }
    Err(format!("{again:?} instead of {text}"))
}

/// Checks that reading a list of entities lazily gives the same entities as reading it completely.
fn entities(bytes: &[u8]) -> Kept {
    let lazy = unpack::<List<'_, Entity>>(bytes).map(|list| to_vec(&list));
    let all = unpack::<Vec<Entity>>(bytes).map(|list| to_vec(&list));
    if lazy == all { Ok(()) } else { Err(format!("{lazy:?} instead of {all:?}")) }
}

/// Runs two players. The second sends the bytes as messages, and the first one must not be affected.
///
/// Each message is a length byte followed by that many bytes, and a tick follows each message.
pub fn hostile_client(bytes: &[u8]) -> Kept {
    let mut server = Server::new(5);
    let init = ClientMessage::Request(Request { channel: Channel(0), kind: RequestKind::Init });
    let init = to_vec(&init).map_err(|error| error.to_string())?;
    for connection in 0..2 {
        server.handle_connected(connection).map_err(|error| error.to_string())?;
        server.handle_message(connection, &init.as_slice());
    }
    let mut buffer = [0; MAX_MESSAGE];
    while server.poll_output(&mut buffer).is_some() {}
    let mut rest = bytes;
    for time in 1..60 {
        if let [length, after @ ..] = rest {
            let (said, after) = after.split_at(usize::from(*length).min(after.len()));
            server.handle_message(1, &said);
            rest = after;
        }
        server.tick();
        expect_snapshot(&mut server, &mut buffer, time)?;
    }
    Ok(())
}

fn expect_snapshot(server: &mut Server<u8>, buffer: &mut [u8], time: u32) -> Kept {
    let mut snapshots = 0;
    while let Some(output) = server.poll_output(buffer) {
        match output {
            Output::Send { to: 0, delivery: Delivery::Unreliable, payload } => {
                let message: ServerMessage<'_> = unpack(payload).map_err(|error| error.to_string())?;
                let ServerMessage::Event(Event { time: at, kind: EventKind::Snapshot(snapshot) }) = message
                else {
                    return Err(format!("{message:?} instead of a snapshot"));
                };
                if at != time || !snapshot.entities.iter().all(|entity| is_somewhere(&entity)) {
                    return Err(format!("a wrong snapshot of tick {at} at {time}"));
                }
                snapshots += 1;
            }
            Output::Send { to: 0, .. } | Output::Close { connection: 0 } => {
                return Err(format!("{output:?} for a player that did nothing"));
            }
            Output::Send { .. } | Output::Close { .. } => {}
        }
    }
    if snapshots == 1 { Ok(()) } else { Err(format!("{snapshots} snapshots in tick {time}")) }
}

fn is_somewhere(entity: &Entity) -> bool {
    match entity.kind {
        EntityKind::Object(object) => object.position.length() < 1_000.0,
        EntityKind::Player(player) => player.position.length() < 1_000.0 && player.health == 3,
        EntityKind::Dead => true,
    }
}
