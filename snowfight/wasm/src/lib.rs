//! The snowball fight for JavaScript: its client as a class, and its messages as plain objects, packed and unpacked by
//! the codec of the game itself.
//!
//! `wasm-pack build --target web` makes a package of it, with types, in `pkg`.

mod game;

pub use game::{Game, GameNews, Outgoing};
use rakwire::codec::rabbit::{Error, Pack, to_vec, unpack};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_wasm_bindgen::Serializer;
use snowfight::message::{ClientMessage, Delivery, ServerMessage};
use wasm_bindgen::prelude::*;

/// The shapes that serde gives the messages.
#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("messages.d.ts");

#[wasm_bindgen]
extern "C" {
    /// What a client says, as a plain object.
    #[wasm_bindgen(typescript_type = "ClientMessage")]
    #[derive(Debug)]
    pub type ClientObject;
    /// What a server says, as a plain object.
    #[wasm_bindgen(typescript_type = "ServerMessage")]
    #[derive(Debug)]
    pub type ServerObject;
}

/// Packs what a client says. Throws when it is no such message.
///
/// # Errors
/// It is no message of a client.
#[wasm_bindgen(js_name = packClientMessage)]
pub fn pack_client_message(message: &ClientObject) -> Result<Vec<u8>, JsError> {
    pack(&from_object::<ClientMessage>(message)?)
}

/// Unpacks what a client has said. Throws when the bytes are no such message.
///
/// # Errors
/// What is wrong with the bytes, and at which bit.
#[wasm_bindgen(js_name = unpackClientMessage)]
pub fn unpack_client_message(bytes: &[u8]) -> Result<ClientObject, JsError> {
    Ok(to_object(&unpack::<ClientMessage>(bytes).map_err(error)?)?.unchecked_into())
}

/// Unpacks what a server has said. Throws when the bytes are no such message.
///
/// # Errors
/// What is wrong with the bytes, and at which bit.
#[wasm_bindgen(js_name = unpackServerMessage)]
pub fn unpack_server_message(bytes: &[u8]) -> Result<ServerObject, JsError> {
    Ok(to_object(&unpack::<ServerMessage<'_>>(bytes).map_err(error)?)?.unchecked_into())
}

/// Whether what a client says is sent until it is acknowledged.
///
/// # Errors
/// It is no message of a client.
#[wasm_bindgen(js_name = isReliable)]
pub fn is_reliable(message: &ClientObject) -> Result<bool, JsError> {
    Ok(from_object::<ClientMessage>(message)?.delivery() == Delivery::Reliable)
}

fn from_object<T: DeserializeOwned>(object: &JsValue) -> Result<T, JsError> {
    Ok(serde_wasm_bindgen::from_value(object.clone())?)
}

/// What is missing is null, as in JSON.
fn to_object(value: &impl Serialize) -> Result<JsValue, JsError> {
    Ok(value.serialize(&Serializer::new().serialize_missing_as_null(true))?)
}

fn pack(value: &impl Pack) -> Result<Vec<u8>, JsError> {
    to_vec(value).map_err(error)
}

fn error(error: Error) -> JsError {
    error.into()
}
