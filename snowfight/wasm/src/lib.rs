//! The snowball fight for JavaScript: the client as a class, and the messages as plain objects.
//!
//! `wasm-pack build --target web` builds an npm package with TypeScript types in `pkg`.

mod game;

pub use game::{Game, GameUpdate, Outgoing, WorldUpdates};
use rakwire::codec::rabbit::{Error, Pack, to_vec, unpack};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_wasm_bindgen::Serializer;
use snowfight::message::{ClientMessage, Delivery, ServerMessage};
use wasm_bindgen::prelude::*;

/// The TypeScript types of the messages, as serde serializes them.
#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("messages.d.ts");

#[wasm_bindgen]
extern "C" {
    /// A client message as a plain object.
    #[wasm_bindgen(typescript_type = "ClientMessage")]
    #[derive(Debug)]
    pub type ClientObject;
    /// A server message as a plain object.
    #[wasm_bindgen(typescript_type = "ServerMessage")]
    #[derive(Debug)]
    pub type ServerObject;
}

/// Packs a client message.
///
/// # Errors
/// Throws if the object is not a client message.
#[wasm_bindgen(js_name = packClientMessage)]
pub fn pack_client_message(message: &ClientObject) -> Result<Vec<u8>, JsError> {
    pack(&from_object::<ClientMessage>(message)?)
}

/// Unpacks a client message.
///
/// # Errors
/// Throws if the bytes are malformed; the error contains the position in bits.
#[wasm_bindgen(js_name = unpackClientMessage)]
pub fn unpack_client_message(bytes: &[u8]) -> Result<ClientObject, JsError> {
    Ok(to_object(&unpack::<ClientMessage>(bytes).map_err(error)?)?.unchecked_into())
}

/// Unpacks a server message.
///
/// # Errors
/// Throws if the bytes are malformed; the error contains the position in bits.
#[wasm_bindgen(js_name = unpackServerMessage)]
pub fn unpack_server_message(bytes: &[u8]) -> Result<ServerObject, JsError> {
    Ok(to_object(&unpack::<ServerMessage<'_>>(bytes).map_err(error)?)?.unchecked_into())
}

/// Returns true if a client message must be sent reliably.
///
/// # Errors
/// Throws if the object is not a client message.
#[wasm_bindgen(js_name = isReliable)]
pub fn is_reliable(message: &ClientObject) -> Result<bool, JsError> {
    Ok(from_object::<ClientMessage>(message)?.delivery() == Delivery::Reliable)
}

fn from_object<T: DeserializeOwned>(object: &JsValue) -> Result<T, JsError> {
    Ok(serde_wasm_bindgen::from_value(object.clone())?)
}

/// Serializes a value to a plain object, with `None` as null, as in JSON.
fn to_object(value: &impl Serialize) -> Result<JsValue, JsError> {
    Ok(value.serialize(&Serializer::new().serialize_missing_as_null(true))?)
}

fn pack(value: &impl Pack) -> Result<Vec<u8>, JsError> {
    to_vec(value).map_err(error)
}

fn error(error: Error) -> JsError {
    error.into()
}
