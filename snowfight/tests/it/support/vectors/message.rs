//! Checks whole messages: builds them from the recorded fields, packs and unpacks them.

use std::fmt::Debug;

use rakwire::codec::rabbit::{List, Pack, Reader, Text, Unpack, Writer};
use serde_json::Value;
use snowfight::message::{
    Action, ActionKind, Break, Channel, ClientMessage, Connect, Delivery, Direction, Entity, EntityId,
    EntityKind, Event, EventKind, GameOver, Move, Object, ObjectKind, Player, PlayerId, Point, Request,
    RequestKind, Response, ResponseKind, ServerMessage, Snapshot, Throw,
};

use super::json::{bytes, hex, list, number, text, variant};
use super::value::bits;
use super::{Held, same};

pub(super) fn check(entry: &Value) -> Held {
    let expected = bytes(text(entry, "hex")?)?;
    let delivery = match entry["reliable"].as_bool().ok_or("`reliable` is missing")? {
        true => Delivery::Reliable,
        false => Delivery::Unreliable,
    };
    let bits = number(&entry["bits"])?;
    let used = with_message(entry, &expected, delivery)?;
    same("bits", used, bits)
}

/// Checks a message of a recorded session. Its first datagram shows whether the message is reliable.
pub(super) fn check_payload(entry: &Value) -> Held {
    let payload = bytes(text(entry, "payload_hex")?)?;
    let datagram = entry["hex"][0].as_str().ok_or("no datagrams")?;
    let delivery = match bytes(datagram)?.first() {
        Some(first) if first & 1 == 1 => Delivery::Reliable,
        Some(_) => Delivery::Unreliable,
        None => return Err("an empty datagram".to_owned()),
    };
    with_message(entry, &payload, delivery).map(drop)
}

/// Packs the recorded fields and compares the result with `expected`; returns the length in bits.
fn with_message(entry: &Value, expected: &[u8], delivery: Delivery) -> Result<usize, String> {
    let value = &entry["value"];
    match text(entry, "type")? {
        "ClientMessage" => {
            let message = client_message(value)?;
            same("delivery", message.delivery(), delivery)?;
            round_trip(&message, expected)
        }
        "ServerMessage" => {
            let entities = entities_of(value)?;
            let message = server_message(value, &entities)?;
            same("delivery", message.delivery(), delivery)?;
            round_trip(&message, expected)
        }
        other => Err(format!("the message {other:?} is not known")),
    }
}

fn round_trip<'a, T>(message: &T, expected: &'a [u8]) -> Result<usize, String>
where
    T: Pack + Unpack<'a> + Debug,
{
    let words = |error: rakwire::codec::rabbit::Error| error.to_string();
    let mut buffer = vec![0; expected.len() + 64];
    let mut writer = Writer::new(&mut buffer);
    message.pack(&mut writer).map_err(words)?;
    let used = writer.position();
    same("bytes", hex(writer.finish()), hex(expected))?;
    let mut reader = Reader::new(expected);
    let read = T::unpack(&mut reader).map_err(words)?;
    same("bits read", reader.position(), used)?;
    // Compare the debug output, because a NaN is not equal to itself.
    same("value", format!("{read:?}"), format!("{message:?}"))?;
    let mut buffer = vec![0; expected.len() + 64];
    same("bytes", hex(rakwire::codec::rabbit::pack(&read, &mut buffer).map_err(words)?), hex(expected))?;
    Ok(used)
}

fn client_message(value: &Value) -> Result<ClientMessage, String> {
    let (kind, body) = variant(value)?;
    Ok(match kind {
        "Request" => {
            let (name, _) = variant(&body["kind"])?;
            let kind = match name {
                "Ping" => RequestKind::Ping,
                "Init" => RequestKind::Init,
                other => return Err(unknown(other)),
            };
            ClientMessage::Request(Request { channel: Channel(number(&body["channel"])?), kind })
        }
        "Action" => {
            let (name, body) = variant(body)?;
            let kind = match name {
                "Break" => ActionKind::Break(Break { entity: id(&body["entity"])? }),
                "Throw" => ActionKind::Throw(Throw { target: point(&body["target"])? }),
                "Move" => ActionKind::Move(Move { direction: Direction(number(&body["direction"])?) }),
                other => return Err(unknown(other)),
            };
            ClientMessage::Action(Action { kind })
        }
        other => return Err(unknown(other)),
    })
}

/// Returns the entities of the message, if it has any.
fn entities_of(value: &Value) -> Result<Vec<Entity>, String> {
    let event = &value["Event"]["kind"]["Snapshot"]["entities"];
    let response = &value["Response"]["kind"]["Connect"]["snapshot"]["entities"];
    match (event.as_array(), response.as_array()) {
        (Some(_), _) => list(event)?.iter().map(entity).collect(),
        (_, Some(_)) => list(response)?.iter().map(entity).collect(),
        (None, None) => Ok(Vec::new()),
    }
}

fn server_message<'a>(value: &'a Value, entities: &'a [Entity]) -> Result<ServerMessage<'a>, String> {
    let (kind, body) = variant(value)?;
    let snapshot = Snapshot { entities: List::new(entities) };
    let (name, inner) = variant(&body["kind"])?;
    Ok(match (kind, name) {
        ("Event", name) => {
            let kind = match (name, inner.as_str()) {
                ("Snapshot", _) => EventKind::Snapshot(snapshot),
                ("GameOver", Some("Loser")) => EventKind::GameOver(GameOver::Loser),
                ("GameOver", Some("Winner")) => EventKind::GameOver(GameOver::Winner),
                (other, _) => return Err(unknown(other)),
            };
            ServerMessage::Event(Event { time: number(&body["time"])?, kind })
        }
        ("Response", name) => {
            let kind = match name {
                "Error" => ResponseKind::Error(Text::new(inner.as_str().ok_or("an error without text")?)),
                "Pong" => ResponseKind::Pong,
                "Connect" => {
                    ResponseKind::Connect(Connect { player: PlayerId(number(&inner["player"])?), snapshot })
                }
                other => return Err(unknown(other)),
            };
            ServerMessage::Response(Response { channel: Channel(number(&body["channel"])?), kind })
        }
        (other, _) => return Err(unknown(other)),
    })
}

fn entity(value: &Value) -> Result<Entity, String> {
    let (name, body) = variant(&value["kind"])?;
    let kind = match name {
        "Dead" => EntityKind::Dead,
        "Object" => EntityKind::Object(object(body)?),
        "Player" => EntityKind::Player(player(body)?),
        other => return Err(unknown(other)),
    };
    Ok(Entity { id: EntityId(number(&value["id"])?), kind })
}

fn object(body: &Value) -> Result<Object, String> {
    let kind = match text(body, "kind")? {
        "Tree" => ObjectKind::Tree,
        "Mushroom" => ObjectKind::Mushroom,
        other => return Err(unknown(other)),
    };
    let durability = &body["durability"];
    let durability = if durability.is_null() { None } else { Some(float(durability)?) };
    let (health, max_health) = (number(&body["health"])?, number(&body["max_health"])?);
    Ok(Object { position: point(&body["position"])?, kind, durability, health, max_health })
}

fn player(body: &Value) -> Result<Player, String> {
    Ok(Player {
        position: point(&body["position"])?,
        movement: Direction(number(&body["movement"])?),
        holding: id(&body["holding"])?,
        breaking: id(&body["breaking"])?,
        owner: PlayerId(number(&body["owner"])?),
        health: number(&body["health"])?,
        max_health: number(&body["max_health"])?,
    })
}

fn id(value: &Value) -> Result<Option<EntityId>, String> {
    if value.is_null() { Ok(None) } else { Ok(Some(EntityId(number(value)?))) }
}

fn point(value: &Value) -> Result<Point, String> {
    Ok(Point::new(float(&value["x"])?, float(&value["y"])?, float(&value["z"])?))
}

fn float(value: &Value) -> Result<f32, String> {
    bits(&value["bits"]).map(f32::from_bits)
}

fn unknown(name: &str) -> String {
    format!("{name:?} is not known")
}
