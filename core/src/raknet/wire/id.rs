//! Message IDs, the first byte of every message (docs/raknet.md#message-ids).

/// Defines the IDs that RakNet reserves, with their names and scopes.
macro_rules! ids {
    ($($(#[$doc:meta])+ $id:ident = $byte:literal, $travel:ident, $name:literal;)+) => {
        $($(#[$doc])+ pub const $id: u8 = $byte;)+

        /// Returns the documented name of messages with this ID.
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
                _ => "message reserved for RakNet",
            }
        }

        /// Returns where messages with this ID are sent.
        ///
        /// There are two exceptions: [`REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY`] with type 0 is local, and
        /// [`CONNECTION_ATTEMPT_FAILED`] with the magic is accepted from the network.
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
    /// Unconnected ping: every server answers.
    UNCONNECTED_PING = 0x01, Offline, "unconnected ping";
    /// Unconnected ping: only servers that accept new connections answer.
    UNCONNECTED_PING_OPEN_CONNECTIONS = 0x02, Offline, "unconnected ping, open connections only";
    /// Connected pong: the answer to a connected ping.
    CONNECTED_PONG = 0x03, Connection, "connected pong";
    /// Detect lost connections: some implementations answer with a ping, most ignore it.
    DETECT_LOST_CONNECTIONS = 0x04, Connection, "detect lost connections";
    /// Open connection request 1: protocol version and path MTU probe.
    OPEN_CONNECTION_REQUEST_1 = 0x05, Offline, "open connection request 1";
    /// Open connection reply 1: proposed MTU, and a cookie if the server requests one.
    OPEN_CONNECTION_REPLY_1 = 0x06, Offline, "open connection reply 1";
    /// Open connection request 2: MTU, GUID and the cookie.
    OPEN_CONNECTION_REQUEST_2 = 0x07, Offline, "open connection request 2";
    /// Open connection reply 2: the connection exists, and its handshake continues inside it.
    OPEN_CONNECTION_REPLY_2 = 0x08, Offline, "open connection reply 2";
    /// Connection request: the first message inside a connection.
    CONNECTION_REQUEST = 0x09, Connection, "connection request";
    /// Remote system requires public key: a problem with the keys of a secure connection.
    REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY = 0x0A, Connection, "remote system requires public key";
    /// Local event: this peer requires security, which the server does not offer.
    OUR_SYSTEM_REQUIRES_SECURITY = 0x0B, Local, "our system requires security";
    /// Local event: the server's public key is not the expected one.
    PUBLIC_KEY_MISMATCH = 0x0C, Local, "public key mismatch";
    /// Out of band: application data without a connection.
    OUT_OF_BAND = 0x0D, Offline, "out of band";
    /// Local event: a message sent with a receipt was acknowledged.
    SEND_RECEIPT_ACKED = 0x0E, Local, "send receipt, acknowledged";
    /// Local event: a message sent with a receipt was lost.
    SEND_RECEIPT_LOSS = 0x0F, Local, "send receipt, lost";
    /// Connection request accepted: the answer to a connection request.
    CONNECTION_REQUEST_ACCEPTED = 0x10, Connection, "connection request accepted";
    /// Local event: the server did not respond. From the network, with the magic, it is treated as a refusal.
    CONNECTION_ATTEMPT_FAILED = 0x11, Local, "connection attempt failed";
    /// Refusal: the client's address or GUID is already connected.
    ALREADY_CONNECTED = 0x12, Offline, "already connected";
    /// New incoming connection: the client's confirmation, the last message of the handshake.
    NEW_INCOMING_CONNECTION = 0x13, Connection, "new incoming connection";
    /// Refusal: the server is full.
    NO_FREE_INCOMING_CONNECTIONS = 0x14, Offline, "no free incoming connections";
    /// Disconnection notification: the sender closes the connection.
    DISCONNECTION_NOTIFICATION = 0x15, Connection, "disconnection notification";
    /// Local event: the connection timed out.
    CONNECTION_LOST = 0x16, Local, "connection lost";
    /// Refusal: the client's address is banned.
    CONNECTION_BANNED = 0x17, Offline, "connection banned";
    /// Refusal, sent inside the connection: the password is wrong.
    INVALID_PASSWORD = 0x18, Connection, "invalid password";
    /// Refusal: the server does not accept the client's protocol version.
    INCOMPATIBLE_PROTOCOL_VERSION = 0x19, Offline, "incompatible protocol version";
    /// Refusal: the client's address connected a moment ago.
    IP_RECENTLY_CONNECTED = 0x1A, Offline, "IP recently connected";
    /// A timestamp followed by an application message; the lowest ID that reaches the application.
    TIMESTAMP = 0x1B, Application, "timestamp";
    /// Unconnected pong: the answer to an unconnected ping.
    UNCONNECTED_PONG = 0x1C, Offline, "unconnected pong";
    /// An advertisement, sent as the payload of an out-of-band message.
    ADVERTISE_SYSTEM = 0x1D, Application, "advertise system";
    /// Local event: parts of a split message were received.
    DOWNLOAD_PROGRESS = 0x1E, Local, "download progress";
    /// A peer of the sender closed its connection to the sender.
    REMOTE_DISCONNECTION_NOTIFICATION = 0x1F, Application, "remote disconnection notification";
    /// The sender's connection to one of its peers timed out.
    REMOTE_CONNECTION_LOST = 0x20, Application, "remote connection lost";
    /// The peers that are connected to the sender.
    REMOTE_NEW_INCOMING_CONNECTION = 0x21, Application, "remote new incoming connection";
}

/// The lowest ID reserved for applications.
pub const USER: u8 = 0x86;

/// Where messages with an ID are sent (docs/raknet.md#message-ids).
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
    /// As a whole datagram with the offline magic ([`offline`](super::offline)).
    Offline,
    /// Inside a connection, between RakNet peers ([`control`](super::control)).
    Connection,
    /// Inside a connection, between applications ([`notice`](super::notice) if RakNet defines the layout).
    Application,
    /// Not sent: C++ RakNet uses the ID for events of its own application ([`local`](super::local)).
    ///
    /// Messages with it must not be accepted from the network.
    Local,
}
