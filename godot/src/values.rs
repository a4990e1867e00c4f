//! Converts between values of the engine and values of a session.

use std::fmt::Display;

use godot::builtin::{GString, PackedByteArray, VarDictionary, Variant, VariantType};
use godot::classes::ProjectSettings;
use godot::classes::multiplayer_peer::{ConnectionStatus, TransferMode};
use godot::global;
use godot::meta::ToGodot;
use godot::obj::Singleton;

use crate::error::Error;
use crate::options::Value;
use crate::packet::Mode;
use crate::session::{Identity, Status};
use crate::statistics::{Figure, Figures};

/// Returns the engine's code for an error.
fn code(error: &Error) -> global::Error {
    match error {
        Error::Option { .. }
        | Error::Port(_)
        | Error::MaxClients(_)
        | Error::Addresses(_)
        | Error::Set(_)
        | Error::Token(_)
        | Error::NoPeer(_)
        | Error::BanTime(_)
        | Error::Channel(_)
        | Error::Empty
        | Error::TooLong { .. }
        | Error::KeyLength(_) => global::Error::ERR_INVALID_PARAMETER,
        Error::Resolve { .. } | Error::NoAddress(_) => global::Error::ERR_CANT_RESOLVE,
        Error::Bind(_) | Error::Entropy(_) => global::Error::ERR_CANT_CREATE,
        Error::Connect(_) => global::Error::ERR_CANT_CONNECT,
        Error::KeyFile { .. } => global::Error::ERR_FILE_CANT_READ,
        Error::AlreadyActive => global::Error::ERR_ALREADY_IN_USE,
        Error::NotConnected | Error::NotServer => global::Error::ERR_UNCONFIGURED,
        Error::Backlog(_) | Error::BansFull => global::Error::ERR_OUT_OF_MEMORY,
        Error::PingsFull => global::Error::ERR_BUSY,
        Error::Broken { .. } | Error::Send(_) => global::Error::FAILED,
    }
}

/// Shows an error in the debugger.
pub(crate) fn push(error: &dyn Display) {
    global::push_error(&[format!("RakwirePeer: {error}").to_variant()]);
}

/// Returns the engine's code for a result. An error is also shown in the debugger.
pub(crate) fn checked(result: Result<(), Error>) -> global::Error {
    match result {
        Ok(()) => global::Error::OK,
        Err(error) => {
            push(&error);
            code(&error)
        }
    }
}

/// Returns the value of a result. An error is shown in the debugger, and the default value is returned.
pub(crate) fn shown<T: Default>(result: Result<T, Error>) -> T {
    result.unwrap_or_else(|error| {
        push(&error);
        T::default()
    })
}

/// Converts a value of a dictionary. If `is_path`, the prefixes `res://` and `user://` are resolved.
fn value(variant: &Variant, is_path: bool) -> Value {
    match variant.get_type() {
        VariantType::BOOL => Value::Flag(variant.to()),
        VariantType::INT => Value::Whole(variant.to()),
        VariantType::FLOAT => Value::Number(variant.to()),
        VariantType::STRING | VariantType::STRING_NAME => {
            let text = variant.stringify();
            let text = if is_path { ProjectSettings::singleton().globalize_path(&text) } else { text };
            Value::Text(text.to_string())
        }
        VariantType::PACKED_BYTE_ARRAY => Value::Bytes(variant.to::<PackedByteArray>().to_vec()),
        other => Value::Other(format!("{other:?}")),
    }
}

/// Passes each option of a dictionary to `set`.
pub(crate) fn each_option(
    options: &VarDictionary,
    mut set: impl FnMut(&str, &Value) -> Result<(), Error>,
) -> Result<(), Error> {
    options.iter_shared().try_for_each(|(name, option)| {
        let name = name.stringify().to_string();
        set(&name, &value(&option, name.ends_with("_file")))
    })
}

/// Returns a dictionary of statistics by name.
pub(crate) fn dictionary(figures: Figures) -> VarDictionary {
    let mut all = VarDictionary::new();
    for (name, figure) in figures {
        match figure {
            Figure::Count(count) => all.set(name, i64::try_from(count).unwrap_or(i64::MAX)),
            Figure::Number(number) => all.set(name, number),
        }
    }
    all
}

/// Returns the identity of a peer as a dictionary.
pub(crate) fn identity(identity: Option<Identity>) -> VarDictionary {
    let mut all = VarDictionary::new();
    all.set("secure", identity.is_some());
    let Identity { key, user_id, user_data } = identity.unwrap_or_default();
    if let Some(key) = key {
        all.set("key", &PackedByteArray::from(&key[..]));
    }
    if let Some(user_id) = user_id {
        // Scripts have only signed integers, so a user id of 64 bits is reinterpreted.
        all.set("user_id", user_id.cast_signed());
        all.set("user_data", &PackedByteArray::from(&user_data[..]));
    }
    all
}

pub(crate) const fn mode_of(mode: TransferMode) -> Mode {
    match mode {
        TransferMode::UNRELIABLE => Mode::Unreliable,
        TransferMode::UNRELIABLE_ORDERED => Mode::UnreliableOrdered,
        _ => Mode::Reliable,
    }
}

pub(crate) const fn transfer_mode(mode: Mode) -> TransferMode {
    match mode {
        Mode::Unreliable => TransferMode::UNRELIABLE,
        Mode::UnreliableOrdered => TransferMode::UNRELIABLE_ORDERED,
        Mode::Reliable => TransferMode::RELIABLE,
    }
}

pub(crate) const fn connection_status(status: Status) -> ConnectionStatus {
    match status {
        Status::Disconnected => ConnectionStatus::DISCONNECTED,
        Status::Connecting => ConnectionStatus::CONNECTING,
        Status::Connected => ConnectionStatus::CONNECTED,
    }
}

/// Converts text to the engine's string.
pub(crate) fn text(from: impl Display) -> GString {
    GString::from(&from.to_string())
}
