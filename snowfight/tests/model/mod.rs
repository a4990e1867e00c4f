//! Properties of messages from arbitrary bytes. The tests here and the fuzz targets share this file.

use std::fmt::Debug;

use rakwire::codec::rabbit::{List, Pack, Text, Unpack, to_vec, unpack};
use snowfight::message::{
    Action, ActionKind, Break, Channel, ClientMessage, Connect, Delivery, Direction, Entity, EntityKind,
    Event, EventKind, GameOver, Move, Object, Player, Point, Request, RequestKind, Response, ResponseKind,
    ServerMessage, Snapshot, Throw,
};
use snowfight::server::{MAX_MESSAGE, Output, Server};

/// The result of a property: it holds, or a description of the violation.
pub type Kept = Result<(), String>;

/// Unpacks the bytes as every message.
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

/// The types that messages consist of.
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

/// A message as `Debug` text, and packed.
type Unpacked = Option<(String, Vec<u8>)>;

/// Unpacks the bytes as a `T` if they are valid, to `Debug` text, because a NaN is not equal to itself.
fn unpack_as_text_and_bytes<'a, T: Pack + Unpack<'a> + Debug>(bytes: &'a [u8]) -> Unpacked {
    let value = unpack::<T>(bytes).ok()?;
    Some((format!("{value:?}"), to_vec(&value).unwrap_or_default()))
}

/// Checks that an unpacked value packs to bytes with the same meaning that are not longer.
fn check(bytes: &[u8], unpack_as_text: impl Fn(&[u8]) -> Unpacked) -> Kept {
    let Some((text, packed)) = unpack_as_text(bytes) else { return Ok(()) };
    let again = unpack_as_text(&packed);
    if packed.len() <= bytes.len() && again.as_ref() == Some(&(text.clone(), packed)) {
        return Ok(());
    }
    Err(format!("{again:?} instead of {text}"))
}

/// Checks that a list of entities that is read lazily equals one that is read completely.
fn entities(bytes: &[u8]) -> Kept {
    let lazy = unpack::<List<'_, Entity>>(bytes).map(|list| to_vec(&list));
    let all = unpack::<Vec<Entity>>(bytes).map(|list| to_vec(&list));
    if lazy == all { Ok(()) } else { Err(format!("{lazy:?} instead of {all:?}")) }
}

/// Runs two players, of which the second sends the bytes as messages and the first plays normally.
///
/// Each message is a length and that many bytes, and is followed by a tick.
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
