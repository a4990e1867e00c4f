//! A `MultiplayerPeer` for Godot 4 that uses RakNet over UDP.
//!
//! The engine sees only the class [`RakwirePeer`], a thin layer over [`Session`]. A session is a server or client with
//! peer ids, transfer modes and a packet queue. It polls its endpoint once per frame and does not depend on the engine.
//!
//! Server and clients must all be `RakwirePeer`s. In the first message of a connection, the server assigns a random id
//! to the client. Each packet is one RakNet message. Its first byte is 0x86 plus the transfer channel; its reliability
//! encodes the transfer mode.

mod entry;
mod error;
mod gate;
mod options;
mod packet;
mod peer;
mod session;
mod statistics;
mod values;

pub use self::error::Error;
pub use self::options::{
    ClientSettings, DEFAULT_BACKLOG, DEFAULT_CLOSE_WAIT, ServerSettings, Value, key_bytes,
};
pub use self::packet::{CHANNELS, Mode, Packet, Transfer};
pub use self::peer::RakwirePeer;
pub use self::session::{Identity, Notice, Session, Status};
pub use self::statistics::{Dropped, Figure, Figures};
