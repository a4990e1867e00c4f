//! The first byte of every message (supplement 2.7).

/// Connected ping: asks for a pong inside a connection.
pub const CONNECTED_PING: u8 = 0x00;
/// Unconnected ping: always answered.
pub const UNCONNECTED_PING: u8 = 0x01;
/// Unconnected ping: answered only while the server takes new connections.
pub const UNCONNECTED_PING_OPEN_CONNECTIONS: u8 = 0x02;
/// Connected pong.
pub const CONNECTED_PONG: u8 = 0x03;
/// Detect lost connections: answered with a ping by some, ignored by most.
pub const DETECT_LOST_CONNECTIONS: u8 = 0x04;
/// Open connection request 1: protocol version and path MTU probe.
pub const OPEN_CONNECTION_REQUEST_1: u8 = 0x05;
/// Open connection reply 1.
pub const OPEN_CONNECTION_REPLY_1: u8 = 0x06;
/// Open connection request 2.
pub const OPEN_CONNECTION_REQUEST_2: u8 = 0x07;
/// Open connection reply 2.
pub const OPEN_CONNECTION_REPLY_2: u8 = 0x08;
/// Connection request, the first message inside a connection.
pub const CONNECTION_REQUEST: u8 = 0x09;
/// The answer to a connection request.
pub const CONNECTION_REQUEST_ACCEPTED: u8 = 0x10;
/// The refusal of a connection that the address or the GUID already has.
pub const ALREADY_CONNECTED: u8 = 0x12;
/// New incoming connection: the client's confirmation.
pub const NEW_INCOMING_CONNECTION: u8 = 0x13;
/// The refusal of a connection for want of room.
pub const NO_FREE_INCOMING_CONNECTIONS: u8 = 0x14;
/// Disconnection notification.
pub const DISCONNECTION_NOTIFICATION: u8 = 0x15;
/// The refusal of a banned address.
pub const CONNECTION_BANNED: u8 = 0x17;
/// The refusal of a wrong password, inside the connection.
pub const INVALID_PASSWORD: u8 = 0x18;
/// The refusal of a protocol version.
pub const INCOMPATIBLE_PROTOCOL_VERSION: u8 = 0x19;
/// The refusal of an address that connected a moment ago.
pub const IP_RECENTLY_CONNECTED: u8 = 0x1A;
/// A time stamp before a user message; the first id that reaches the application.
pub const TIMESTAMP: u8 = 0x1B;
/// Unconnected pong.
pub const UNCONNECTED_PONG: u8 = 0x1C;
/// The first id that is free for applications.
pub const USER: u8 = 0x86;

/// The name of the message that begins with `id`, as the documents call it.
///
/// ```
/// use rakwire::wire::id;
///
/// assert_eq!(id::name(0x10), "connection request accepted");
/// assert_eq!(id::name(0x90), "user message");
/// ```
#[must_use]
pub const fn name(id: u8) -> &'static str {
    match id {
        CONNECTED_PING => "connected ping",
        UNCONNECTED_PING => "unconnected ping",
        UNCONNECTED_PING_OPEN_CONNECTIONS => "unconnected ping, open connections only",
        CONNECTED_PONG => "connected pong",
        DETECT_LOST_CONNECTIONS => "detect lost connections",
        OPEN_CONNECTION_REQUEST_1 => "open connection request 1",
        OPEN_CONNECTION_REPLY_1 => "open connection reply 1",
        OPEN_CONNECTION_REQUEST_2 => "open connection request 2",
        OPEN_CONNECTION_REPLY_2 => "open connection reply 2",
        CONNECTION_REQUEST => "connection request",
        CONNECTION_REQUEST_ACCEPTED => "connection request accepted",
        ALREADY_CONNECTED => "already connected",
        NEW_INCOMING_CONNECTION => "new incoming connection",
        NO_FREE_INCOMING_CONNECTIONS => "no free incoming connections",
        DISCONNECTION_NOTIFICATION => "disconnection notification",
        CONNECTION_BANNED => "connection banned",
        INVALID_PASSWORD => "invalid password",
        INCOMPATIBLE_PROTOCOL_VERSION => "incompatible protocol version",
        IP_RECENTLY_CONNECTED => "IP recently connected",
        TIMESTAMP => "timestamp",
        UNCONNECTED_PONG => "unconnected pong",
        USER..=u8::MAX => "user message",
        _ => "message without a layout here",
    }
}
