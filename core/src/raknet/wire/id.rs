//! The first byte of every message (docs/raknet.md#message-ids).

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
/// What is wrong with the keys of a secure connection.
pub const REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY: u8 = 0x0A;
/// Local event: this side wants security and the server does not.
pub const OUR_SYSTEM_REQUIRES_SECURITY: u8 = 0x0B;
/// Local event: the server's public key is another than the expected.
pub const PUBLIC_KEY_MISMATCH: u8 = 0x0C;
/// Data outside of any connection.
pub const OUT_OF_BAND: u8 = 0x0D;
/// Local event: a message sent with a receipt arrived.
pub const SEND_RECEIPT_ACKED: u8 = 0x0E;
/// Local event: a message sent with a receipt did not arrive.
pub const SEND_RECEIPT_LOSS: u8 = 0x0F;
/// The answer to a connection request.
pub const CONNECTION_REQUEST_ACCEPTED: u8 = 0x10;
/// Local event: nobody answered an attempt to connect. With the magic it is taken as a refusal.
pub const CONNECTION_ATTEMPT_FAILED: u8 = 0x11;
/// The refusal of a connection that the address or the GUID already has.
pub const ALREADY_CONNECTED: u8 = 0x12;
/// New incoming connection: the client's confirmation.
pub const NEW_INCOMING_CONNECTION: u8 = 0x13;
/// The refusal of a connection for want of room.
pub const NO_FREE_INCOMING_CONNECTIONS: u8 = 0x14;
/// Disconnection notification.
pub const DISCONNECTION_NOTIFICATION: u8 = 0x15;
/// Local event: the other peer fell silent.
pub const CONNECTION_LOST: u8 = 0x16;
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
/// A peer makes itself known; it travels as the data of an out-of-band message.
pub const ADVERTISE_SYSTEM: u8 = 0x1D;
/// Local event: parts of a large message arrived.
pub const DOWNLOAD_PROGRESS: u8 = 0x1E;
/// A peer of the sender said goodbye to it.
pub const REMOTE_DISCONNECTION_NOTIFICATION: u8 = 0x1F;
/// A peer of the sender fell silent.
pub const REMOTE_CONNECTION_LOST: u8 = 0x20;
/// Peers of the sender that it is connected with.
pub const REMOTE_NEW_INCOMING_CONNECTION: u8 = 0x21;
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
        REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY => "remote system requires public key",
        OUR_SYSTEM_REQUIRES_SECURITY => "our system requires security",
        PUBLIC_KEY_MISMATCH => "public key mismatch",
        OUT_OF_BAND => "out of band",
        SEND_RECEIPT_ACKED => "send receipt, acknowledged",
        SEND_RECEIPT_LOSS => "send receipt, lost",
        CONNECTION_REQUEST_ACCEPTED => "connection request accepted",
        CONNECTION_ATTEMPT_FAILED => "connection attempt failed",
        ALREADY_CONNECTED => "already connected",
        NEW_INCOMING_CONNECTION => "new incoming connection",
        NO_FREE_INCOMING_CONNECTIONS => "no free incoming connections",
        DISCONNECTION_NOTIFICATION => "disconnection notification",
        CONNECTION_LOST => "connection lost",
        CONNECTION_BANNED => "connection banned",
        INVALID_PASSWORD => "invalid password",
        INCOMPATIBLE_PROTOCOL_VERSION => "incompatible protocol version",
        IP_RECENTLY_CONNECTED => "IP recently connected",
        TIMESTAMP => "timestamp",
        UNCONNECTED_PONG => "unconnected pong",
        ADVERTISE_SYSTEM => "advertise system",
        DOWNLOAD_PROGRESS => "download progress",
        REMOTE_DISCONNECTION_NOTIFICATION => "remote disconnection notification",
        REMOTE_CONNECTION_LOST => "remote connection lost",
        REMOTE_NEW_INCOMING_CONNECTION => "remote new incoming connection",
        USER..=u8::MAX => "user message",
        _ => "message without a layout here",
    }
}

/// Where a message with some id travels (docs/raknet.md#message-ids).
///
/// ```
/// use rakwire::wire::id::{self, Travel};
///
/// assert_eq!(id::travel(id::OPEN_CONNECTION_REQUEST_1), Travel::Offline);
/// assert_eq!(id::travel(id::CONNECTION_REQUEST), Travel::Connection);
/// assert_eq!(id::travel(id::SEND_RECEIPT_ACKED), Travel::Local);
/// assert_eq!(id::travel(0xFE), Travel::Application);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Travel {
    /// As a whole datagram, with the offline magic ([`offline`](super::offline)).
    Offline,
    /// Inside a connection, for RakNet itself ([`control`](super::control)).
    Connection,
    /// Inside a connection, for the application ([`notice`](super::notice) where RakNet fixes the layout).
    Application,
    /// Nowhere: the original tells its own application with it ([`local`](super::local)). From the network it is
    /// never to be believed.
    Local,
}

/// Where messages with this id travel.
///
/// Of two ids the rule holds but for a corner: [`REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY`] is local when its type is 0, and
/// [`CONNECTION_ATTEMPT_FAILED`] is taken from the network when it carries the magic.
#[must_use]
pub const fn travel(id: u8) -> Travel {
    match id {
        UNCONNECTED_PING
        | UNCONNECTED_PING_OPEN_CONNECTIONS
        | OPEN_CONNECTION_REQUEST_1..=OPEN_CONNECTION_REPLY_2
        | OUT_OF_BAND
        | ALREADY_CONNECTED
        | NO_FREE_INCOMING_CONNECTIONS
        | CONNECTION_BANNED
        | INCOMPATIBLE_PROTOCOL_VERSION
        | IP_RECENTLY_CONNECTED
        | UNCONNECTED_PONG => Travel::Offline,
        OUR_SYSTEM_REQUIRES_SECURITY
        | PUBLIC_KEY_MISMATCH
        | SEND_RECEIPT_ACKED
        | SEND_RECEIPT_LOSS
        | CONNECTION_ATTEMPT_FAILED
        | CONNECTION_LOST
        | DOWNLOAD_PROGRESS => Travel::Local,
        CONNECTED_PING
        | CONNECTED_PONG
        | DETECT_LOST_CONNECTIONS
        | CONNECTION_REQUEST
        | REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY
        | CONNECTION_REQUEST_ACCEPTED
        | NEW_INCOMING_CONNECTION
        | DISCONNECTION_NOTIFICATION
        | INVALID_PASSWORD => Travel::Connection,
        TIMESTAMP..=u8::MAX => Travel::Application,
    }
}
