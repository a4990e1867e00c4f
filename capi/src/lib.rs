//! The C API of rakwire: `include/rakwire.h` and its shared and static library.
//!
//! Every exported function has the same structure: [`codes::guard`] catches panics, [`memory`] checks the pointers, and
//! [`registry`] looks up the endpoint. Besides the system calls of `rakwire-native`, only this crate has `unsafe` code.

#![allow(
    clippy::missing_safety_doc,
    reason = "the top of the header states the rules for all pointers, and `memory` repeats them for each kind"
)]

mod attempts;
pub mod codes;
mod connections;
mod convert;
mod endpoint;
mod incoming;
mod lifecycle;
mod memory;
mod messages;
mod options;
#[cfg(any(test, feature = "random-calls"))]
pub mod random_calls;
mod registry;
mod secure_peer;
mod security;
mod serial;
mod statistics;
pub mod types;
mod unconnected;
mod waiting;

pub use connections::{
    rakwire_accept, rakwire_connect, rakwire_connect_options_init, rakwire_connection_info,
    rakwire_connections, rakwire_disconnect, rakwire_disconnect_with, rakwire_ignore, rakwire_refuse,
    rakwire_set_timeout,
};
pub use lifecycle::{
    rakwire_address_format, rakwire_address_parse, rakwire_endpoint_close, rakwire_endpoint_open,
    rakwire_features, rakwire_flush, rakwire_guid, rakwire_local_address, rakwire_poll, rakwire_poll_many,
    rakwire_poll_next, rakwire_update, rakwire_version,
};
pub use messages::{rakwire_broadcast, rakwire_message_release, rakwire_send};
pub use options::rakwire_options_init;
pub use secure_peer::rakwire_secure_peer;
pub use security::{
    rakwire_key_file_create, rakwire_key_file_public, rakwire_key_generate, rakwire_public_key,
    rakwire_token_create, rakwire_token_key_file_create,
};
pub use statistics::{
    rakwire_advice, rakwire_connection_stats, rakwire_drop_name, rakwire_drops, rakwire_reason_text,
    rakwire_stats,
};
pub use unconnected::{
    rakwire_advertise, rakwire_ban, rakwire_is_banned, rakwire_ping, rakwire_send_out_of_band,
    rakwire_set_advertisement, rakwire_set_password, rakwire_unban,
};
pub use waiting::{rakwire_socket, rakwire_timeout, rakwire_wait};
