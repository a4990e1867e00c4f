//! The first byte of every message (docs/raknet.md#message-ids).

/// Defines the ids that RakNet reserves, with their names and where they travel.
macro_rules! ids {
    ($($(#[$doc:meta])+ $id:ident = $byte:literal, $travel:ident, $name:literal;)+) => {
        $($(#[$doc])+ pub const $id: u8 = $byte;)+

        /// Returns the documented name of the message that begins with `id`.
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
                $($id => $name,)+
                USER..=u8::MAX => "user message",
                _ => "message without a layout here",
            }
        }

        /// Returns where messages with this id travel.
        ///
        /// There are two exceptions: [`REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY`] is local if its type is 0, and
        /// [`CONNECTION_ATTEMPT_FAILED`] is accepted from the network if it carries the magic.
        #[must_use]
        pub const fn scope(id: u8) -> MessageScope {
            match id {
                $($id => MessageScope::$travel,)+
                _ => MessageScope::Application,
            }
        }
    };
}

ids! {
    /// Connected ping: requests a pong inside a connection.
    CONNECTED_PING = 0x00, Connection, "connected ping";
    /// Unconnected ping: always answered.
    UNCONNECTED_PING = 0x01, Offline, "unconnected ping";
    /// Unconnected ping: answered only while the server takes new connections.
    UNCONNECTED_PING_OPEN_CONNECTIONS = 0x02, Offline, "unconnected ping, open connections only";
    /// Connected pong.
    CONNECTED_PONG = 0x03, Connection, "connected pong";
    /// Detect lost connections: answered with a ping by some, ignored by most.
    DETECT_LOST_CONNECTIONS = 0x04, Connection, "detect lost connections";
    /// Open connection request 1: protocol version and path MTU probe.
    OPEN_CONNECTION_REQUEST_1 = 0x05, Offline, "open connection request 1";
    /// Open connection reply 1.
    OPEN_CONNECTION_REPLY_1 = 0x06, Offline, "open connection reply 1";
    /// Open connection request 2.
    OPEN_CONNECTION_REQUEST_2 = 0x07, Offline, "open connection request 2";
    /// Open connection reply 2.
    OPEN_CONNECTION_REPLY_2 = 0x08, Offline, "open connection reply 2";
    /// Connection request, the first message inside a connection.
    CONNECTION_REQUEST = 0x09, Connection, "connection request";
    /// A problem with the keys of a secure connection.
    REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY = 0x0A, Connection, "remote system requires public key";
    /// Local event: this side requires security and the server does not have it.
    OUR_SYSTEM_REQUIRES_SECURITY = 0x0B, Local, "our system requires security";
    /// Local event: the server's public key is not the expected one.
    PUBLIC_KEY_MISMATCH = 0x0C, Local, "public key mismatch";
    /// Data outside of any connection.
    OUT_OF_BAND = 0x0D, Offline, "out of band";
    /// Local event: a message sent with a receipt arrived.
    SEND_RECEIPT_ACKED = 0x0E, Local, "send receipt, acknowledged";
    /// Local event: a message sent with a receipt did not arrive.
    SEND_RECEIPT_LOSS = 0x0F, Local, "send receipt, lost";
    /// The answer to a connection request.
    CONNECTION_REQUEST_ACCEPTED = 0x10, Connection, "connection request accepted";
    /// Local event: an attempt to connect was not answered. With the magic it is treated as a refusal.
    CONNECTION_ATTEMPT_FAILED = 0x11, Local, "connection attempt failed";
    /// The refusal of a connection because its address or GUID is already connected.
    ALREADY_CONNECTED = 0x12, Offline, "already connected";
    /// New incoming connection: the client's confirmation.
    NEW_INCOMING_CONNECTION = 0x13, Connection, "new incoming connection";
    /// The refusal of a connection because the server is full.
    NO_FREE_INCOMING_CONNECTIONS = 0x14, Offline, "no free incoming connections";
    /// Disconnection notification.
    DISCONNECTION_NOTIFICATION = 0x15, Connection, "disconnection notification";
    /// Local event: the remote peer became unresponsive.
    CONNECTION_LOST = 0x16, Local, "connection lost";
    /// The refusal of a banned address.
    CONNECTION_BANNED = 0x17, Offline, "connection banned";
    /// The refusal of a wrong password, inside the connection.
    INVALID_PASSWORD = 0x18, Connection, "invalid password";
    /// The refusal of a protocol version.
    INCOMPATIBLE_PROTOCOL_VERSION = 0x19, Offline, "incompatible protocol version";
    /// The refusal of an address that connected a moment ago.
    IP_RECENTLY_CONNECTED = 0x1A, Offline, "IP recently connected";
    /// A time stamp before a user message; the first id that reaches the application.
    TIMESTAMP = 0x1B, Application, "timestamp";
    /// Unconnected pong.
    UNCONNECTED_PONG = 0x1C, Offline, "unconnected pong";
    /// The announcement of a peer; it travels as the data of an out-of-band message.
    ADVERTISE_SYSTEM = 0x1D, Application, "advertise system";
    /// Local event: parts of a large message arrived.
    DOWNLOAD_PROGRESS = 0x1E, Local, "download progress";
    /// A peer of the sender has sent it a disconnection notification.
    REMOTE_DISCONNECTION_NOTIFICATION = 0x1F, Application, "remote disconnection notification";
    /// A peer of the sender became unresponsive.
    REMOTE_CONNECTION_LOST = 0x20, Application, "remote connection lost";
    /// Peers that are connected with the sender.
    REMOTE_NEW_INCOMING_CONNECTION = 0x21, Application, "remote new incoming connection";
}

/// The first id that is free for applications.
pub const USER: u8 = 0x86;

/// The part of the protocol in which a message with some id is sent (docs/raknet.md#message-ids).
///
/// ```
/// use rakwire::wire::id::{self, MessageScope};
///
/// assert_eq!(id::scope(id::OPEN_CONNECTION_REQUEST_1), MessageScope::Offline);
/// assert_eq!(id::scope(id::CONNECTION_REQUEST), MessageScope::Connection);
/// assert_eq!(id::scope(id::SEND_RECEIPT_ACKED), MessageScope::Local);
/// assert_eq!(id::scope(0xFE), MessageScope::Application);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageScope {
    /// As a whole datagram, with the offline magic ([`offline`](super::offline)).
    Offline,
    /// Inside a connection, for RakNet itself ([`control`](super::control)).
    Connection,
    /// Inside a connection, for the application ([`notice`](super::notice) where RakNet fixes the layout).
    Application,
    /// Never on the wire: the original uses it for events of its own application ([`local`](super::local)).
    ///
    /// It must not be accepted from the network.
    Local,
}
