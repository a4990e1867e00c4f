//! The structs and numbers of the header.

use std::ffi::c_char;
use std::mem::{offset_of, size_of};

use crate::memory::versioned;

/// An endpoint; 0 for none. The number is never used again after the endpoint is closed.
pub type RakwireEndpoint = u64;
/// A connection of an endpoint; 0 for none.
pub type RakwireConnection = u64;
/// A borrowed message; 0 for none.
pub type RakwireMessage = u64;
/// A client that waits for a decision; 0 for none.
pub type RakwireRequest = u64;
/// A result code: RAKWIRE_OK, a positive count where a function says so, or a negative RAKWIRE_ERROR_ value.
pub type RakwireResult = i32;

/// Sent once: it may be lost, repeated or overtaken.
pub const RAKWIRE_UNRELIABLE: u8 = 0;
/// Sent once; a message that was overtaken is dropped.
pub const RAKWIRE_UNRELIABLE_SEQUENCED: u8 = 1;
/// Resent until it arrives, in any order.
pub const RAKWIRE_RELIABLE: u8 = 2;
/// Resent until it arrives, in the order of sending on its channel.
pub const RAKWIRE_RELIABLE_ORDERED: u8 = 3;
/// Resent until it arrives; a message that was overtaken is dropped.
pub const RAKWIRE_RELIABLE_SEQUENCED: u8 = 4;
/// As RAKWIRE_UNRELIABLE, with an event that reports if it arrived.
pub const RAKWIRE_UNRELIABLE_WITH_RECEIPT: u8 = 5;
/// As RAKWIRE_RELIABLE, with an event once it has arrived.
pub const RAKWIRE_RELIABLE_WITH_RECEIPT: u8 = 6;
/// As RAKWIRE_RELIABLE_ORDERED, with an event once it has arrived.
pub const RAKWIRE_RELIABLE_ORDERED_WITH_RECEIPT: u8 = 7;

/// Sent before everything else.
pub const RAKWIRE_PRIORITY_IMMEDIATE: u8 = 0;
/// Sent before medium.
pub const RAKWIRE_PRIORITY_HIGH: u8 = 1;
/// The usual priority.
pub const RAKWIRE_PRIORITY_MEDIUM: u8 = 2;
/// Sent after all others.
pub const RAKWIRE_PRIORITY_LOW: u8 = 3;

/// A connection is open.
pub const RAKWIRE_EVENT_CONNECTED: u32 = 1;
/// An attempt to connect failed; `reason` is a RAKWIRE_FAILURE_ value.
pub const RAKWIRE_EVENT_CONNECT_FAILED: u32 = 2;
/// A connection ended; `reason` is a RAKWIRE_DISCONNECT_ value.
pub const RAKWIRE_EVENT_DISCONNECTED: u32 = 3;
/// A message arrived; `data`, `length` and `message` are set.
pub const RAKWIRE_EVENT_MESSAGE: u32 = 4;
/// A message with a receipt arrived or was lost; `receipt` and `outcome` are set.
pub const RAKWIRE_EVENT_RECEIPT: u32 = 5;
/// Parts of a large message arrived; `progress_done`, `progress_parts`, `progress_message` and `outgoing` are set.
pub const RAKWIRE_EVENT_PROGRESS: u32 = 6;
/// The path carries datagrams of another size; `mtu` is set.
pub const RAKWIRE_EVENT_MTU_CHANGED: u32 = 7;
/// A server answered a ping; `latency_us` and the data of its advertisement are set.
pub const RAKWIRE_EVENT_PONG: u32 = 8;
/// A peer without a connection sent a message.
pub const RAKWIRE_EVENT_OUT_OF_BAND: u32 = 9;
/// A peer without a connection advertised itself.
pub const RAKWIRE_EVENT_ADVERTISEMENT: u32 = 10;
/// A client requests a connection from an endpoint with `defer_incoming`; `request` is set.
pub const RAKWIRE_EVENT_INCOMING: u32 = 11;
/// A client was refused; `reason` is a RAKWIRE_REFUSED_ value.
pub const RAKWIRE_EVENT_REFUSED: u32 = 12;

/// The server does not answer.
pub const RAKWIRE_FAILURE_NO_ANSWER: i32 = 1;
/// Nothing listens at the address, or no route leads there.
pub const RAKWIRE_FAILURE_UNREACHABLE: i32 = 2;
/// The server answered, but did not finish the handshake in time.
pub const RAKWIRE_FAILURE_HANDSHAKE_TIMEOUT: i32 = 3;
/// The server gave the attempt up.
pub const RAKWIRE_FAILURE_ATTEMPT_FAILED: i32 = 4;
/// The server has a connection of this address or GUID already.
pub const RAKWIRE_FAILURE_ALREADY_CONNECTED: i32 = 5;
/// The server is full, or refused the client.
pub const RAKWIRE_FAILURE_SERVER_FULL: i32 = 6;
/// The server has banned this address.
pub const RAKWIRE_FAILURE_BANNED: i32 = 7;
/// This address connected a moment ago.
pub const RAKWIRE_FAILURE_RECENTLY_CONNECTED: i32 = 8;
/// The server uses another protocol version, which `server_version` names.
pub const RAKWIRE_FAILURE_VERSION: i32 = 9;
/// The server requires an encrypted connection.
pub const RAKWIRE_FAILURE_SECURITY_REQUIRED: i32 = 10;
/// The server has no security.
pub const RAKWIRE_FAILURE_NO_SECURITY: i32 = 11;
/// The server requires an identity.
pub const RAKWIRE_FAILURE_IDENTITY_REQUIRED: i32 = 12;
/// The server does not accept the identity.
pub const RAKWIRE_FAILURE_INVALID_IDENTITY: i32 = 13;
/// The server has another public key.
pub const RAKWIRE_FAILURE_PUBLIC_KEY: i32 = 14;
/// The password or connect token is wrong.
pub const RAKWIRE_FAILURE_PASSWORD: i32 = 15;
/// The server ended the connection before it was open.
pub const RAKWIRE_FAILURE_CLOSED: i32 = 16;
/// This side cancelled the attempt.
pub const RAKWIRE_FAILURE_CANCELLED: i32 = 17;

/// This side disconnected.
pub const RAKWIRE_DISCONNECT_LOCAL: i32 = 1;
/// The peer disconnected.
pub const RAKWIRE_DISCONNECT_REMOTE: i32 = 2;
/// Nothing was received from the peer for the timeout.
pub const RAKWIRE_DISCONNECT_LOST: i32 = 3;
/// A message of the peer is larger than a connection may hold.
pub const RAKWIRE_DISCONNECT_MESSAGE_TOO_LARGE: i32 = 4;
/// The peer cannot hold a message that was sent.
pub const RAKWIRE_DISCONNECT_SENT_TOO_LARGE: i32 = 5;
/// The path has become too narrow for a message that was sent in parts.
pub const RAKWIRE_DISCONNECT_PATH_TOO_NARROW: i32 = 6;
/// The peer left gaps that hold too much memory.
pub const RAKWIRE_DISCONNECT_RECEIVE_MEMORY: i32 = 7;

/// The password was wrong.
pub const RAKWIRE_REFUSED_PASSWORD: i32 = 1;
/// No identity was shown.
pub const RAKWIRE_REFUSED_NO_IDENTITY: i32 = 2;
/// The identity is not valid.
pub const RAKWIRE_REFUSED_IDENTITY: i32 = 3;
/// The client has no connect token of this backend.
pub const RAKWIRE_REFUSED_NO_TOKEN: i32 = 4;
/// The connect token has expired.
pub const RAKWIRE_REFUSED_TOKEN_EXPIRED: i32 = 5;
/// The connect token is for another server.
pub const RAKWIRE_REFUSED_TOKEN_SERVER: i32 = 6;
/// The connect token belongs to another client.
pub const RAKWIRE_REFUSED_TOKEN_CLIENT: i32 = 7;
/// The connect token was used before.
pub const RAKWIRE_REFUSED_TOKEN_USED: i32 = 8;
/// Too many connect tokens are in use.
pub const RAKWIRE_REFUSED_TOKEN_STORE: i32 = 9;

/// A reason that this version of the library has no number for.
pub const RAKWIRE_REASON_OTHER: i32 = 255;

/// This side opened the connection.
pub const RAKWIRE_SIDE_CLIENT: u8 = 0;
/// The peer opened the connection.
pub const RAKWIRE_SIDE_SERVER: u8 = 1;

/// The connection is being opened.
pub const RAKWIRE_STATE_CONNECTING: u8 = 0;
/// The connection is open.
pub const RAKWIRE_STATE_CONNECTED: u8 = 1;
/// The connection is being closed.
pub const RAKWIRE_STATE_DISCONNECTING: u8 = 2;
/// The connection has ended.
pub const RAKWIRE_STATE_DISCONNECTED: u8 = 3;

/// The peer acknowledged the message.
pub const RAKWIRE_OUTCOME_ACKNOWLEDGED: u8 = 0;
/// The message was lost.
pub const RAKWIRE_OUTCOME_LOST: u8 = 1;

/// A plain connection.
pub const RAKWIRE_TRUST_NONE: u8 = 0;
/// A secure connection with any server: it protects only against eavesdroppers.
pub const RAKWIRE_TRUST_ANY: u8 = 1;
/// A secure connection with the server that has `server_key`.
pub const RAKWIRE_TRUST_KEY: u8 = 2;
/// A secure connection with the server that has `server_key`, or the key with the hash `next_key_hash`.
pub const RAKWIRE_TRUST_KNOWN: u8 = 3;

/// Cookies are required once several clients have connected without one: an eighth of `max_incoming`, 2 to 16.
pub const RAKWIRE_COOKIES_AUTOMATIC: u8 = 0;
/// Each client must return a cookie, which some RakNet libraries cannot.
pub const RAKWIRE_COOKIES_REQUIRED: u8 = 1;
/// Cookies are required once `cookies_unvalidated` clients have connected without one.
pub const RAKWIRE_COOKIES_UNDER_LOAD: u8 = 2;
/// No cookies: forged addresses can fill the server.
pub const RAKWIRE_COOKIES_OFF: u8 = 3;

/// Follows the delay of the path: losses without a queue do not slow a connection down.
pub const RAKWIRE_CONGESTION_DELAY: u8 = 0;
/// Treats each loss as congestion (RFC 6582).
pub const RAKWIRE_CONGESTION_NEW_RENO: u8 = 1;

/// No time limit for rakwire_wait().
pub const RAKWIRE_FOREVER: u32 = 0xFFFF_FFFF;

/// Bit of rakwire_features(): secure connections and connect tokens.
pub const RAKWIRE_FEATURE_SECURE: u32 = 1;
/// Bit of rakwire_features(): the simulated network.
pub const RAKWIRE_FEATURE_SIM: u32 = 2;

/// An IP address and port.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RakwireAddress {
    /// 4 or 6; 0 for no address.
    pub family: u8,
    /// 0.
    pub reserved: u8,
    /// The port.
    pub port: u16,
    /// The number of the interface of a link-local IPv6 address, otherwise 0.
    pub scope: u32,
    /// The address, its first byte first. IPv4 uses the first four.
    pub ip: [u8; 16],
}

/// The options of an endpoint. Initialise them with rakwire_options_init().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RakwireOptions {
    /// The size of the struct in bytes.
    pub size: u32,
    /// The RakNet protocol version of connections that this endpoint opens. Default: 6.
    pub protocol_version: u8,
    /// 1: messages and advertisements of peers without a connection become events. Default: 0.
    pub out_of_band: u8,
    /// 1: each client waits for rakwire_accept(), rakwire_refuse() or rakwire_ignore(). Default: 0.
    pub defer_incoming: u8,
    /// 1: an attempt ends immediately when the network reports that nothing listens there. Default: 1.
    pub hears_unreachable: u8,
    /// The address to bind, such as "0.0.0.0:19132" or "[::]:19132". Default: null, any IPv4 port.
    pub bind_address: *const c_char,
    /// Connections that others may open. Default: 0, a client.
    pub max_incoming: u16,
    /// The largest MTU, 576 to 1492. Default: 1492.
    pub mtu: u16,
    /// Connections in all. 0: 64, or `max_incoming` if that is more.
    pub max_connections: u32,
    /// Blocks of 512 bytes for messages in flight. 0: as many as the connections need.
    pub blocks: u32,
    /// The longest message in bytes that is received. Default: 4,000,000.
    pub max_message_len: u32,
    /// Silence after which a connection is lost. Default: 10,000.
    pub timeout_ms: u32,
    /// Longest wait for the acknowledgement of messages while a connection closes. Default: 5,000.
    pub close_timeout_ms: u32,
    /// Longest handshake after the first answer. Default: 10,000.
    pub handshake_timeout_ms: u32,
    /// Time after which an unreliable message that could not be sent is dropped. Default: 1,000.
    pub unreliable_timeout_ms: u32,
    /// Time between two requests of an attempt. Default: 500.
    pub connect_interval_ms: u32,
    /// Requests of an attempt, 1 to 255. Default: 12.
    pub connect_attempts: u32,
    /// Parts of a large message between two progress events. Default: 0, for none.
    pub progress_interval: u32,
    /// Connections that one address may have. 0: three quarters of `max_incoming`, from 16 slots on. Default: 0.
    pub max_per_address: u16,
    /// 0.
    pub reserved: u16,
    /// The GUID of this endpoint. Default: 0, a random one.
    pub guid: u64,
    /// Protocol versions that a server accepts, up to the first zero. Default: 6, 10, 11.
    pub accepted_versions: [u8; 8],
    /// The password that clients need, at most 255 bytes. Default: none.
    pub password: *const u8,
    /// The length of the password.
    pub password_length: usize,
    /// A bad network between this endpoint and its socket, in both directions, such as "loss=5%,latency=50ms,jitter=10ms,seed=7". Default: null.
    pub simulate: *const c_char,
    /// The private key of a server, 32 bytes. Default: null, a server without security.
    pub server_key: *const u8,
    /// The private key by which servers know this client, 32 bytes. Default: null.
    pub identity_key: *const u8,
    /// The file of the private key of a server, instead of `server_key`. Default: null.
    pub server_key_file: *const c_char,
    /// The file of the private key of this client, instead of `identity_key`. Default: null.
    pub identity_key_file: *const c_char,
    /// The keys of connect tokens that a server accepts, 32 bytes each. Default: null, no token is needed.
    pub token_keys: *const u8,
    /// The number of keys at `token_keys`.
    pub token_key_count: u32,
    /// 1: the endpoint can open secure connections. Default: 0. A key implies it.
    pub secure: u8,
    /// 1: a server with a key refuses plain clients. Default: 0.
    pub requires_security: u8,
    /// 1: a server with a key refuses clients without an identity. Default: 0.
    pub requires_identity: u8,
    /// A RAKWIRE_COOKIES_ value: how clients prove their address. Default: RAKWIRE_COOKIES_AUTOMATIC.
    pub cookies: u8,
    /// Clients without a cookie, for RAKWIRE_COOKIES_UNDER_LOAD.
    pub cookies_unvalidated: u16,
    /// Connections that one network may have (24 bits of IPv4, 48 of IPv6). 0: seven eighths of `max_incoming`. Default: 0.
    pub max_per_network: u16,
    /// Half-open connections of one network (24 bits of IPv4, 64 of IPv6) without a cookie. Default: 8.
    pub max_half_open_per_network: u16,
    /// Pongs per second in all. 0: no ping is answered. Default: 1,000.
    pub pongs_per_second: u16,
    /// Pongs per second for one network. Default: 20.
    pub pongs_per_network: u16,
    /// A RAKWIRE_CONGESTION_ value. Default: RAKWIRE_CONGESTION_DELAY.
    pub congestion: u8,
    /// 0.
    pub reserved_byte: u8,
    /// Least time between two connections of one address. Default: 0, for none.
    pub connection_interval_ms: u32,
    /// Blocks that one connection may hold in each direction. Default: 0, no limit besides the shares.
    pub connection_blocks: u32,
    /// Time between two pings of a connection. 0: no pings. Default: 5,000.
    pub ping_interval_ms: u32,
    /// Bits per second that each connection may send. Default: 0, no limit.
    pub outgoing_limit: u64,
    /// The file of a token key, next to `token_keys`. Default: null.
    pub token_key_file: *const c_char,
    /// Networks of trusted proxies: their PROXY headers (version 2) name the address of a client. Such as "10.0.0.7/32,fd00::/64".
    /// Default: null.
    pub trusted_proxies: *const c_char,
    /// A file to append the keys of secure connections to, by which captures of them can be read. Only for development.
    /// Default: null.
    pub key_log_file: *const c_char,
}

/// The options of one attempt to connect. Initialise them with rakwire_connect_options_init().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RakwireConnectOptions {
    /// The size of the struct in bytes.
    pub size: u32,
    /// The time limit of the whole attempt. 0: no limit besides the attempts.
    pub connect_timeout_ms: u32,
    /// Silence after which this connection is lost. 0: that of the endpoint.
    pub timeout_ms: u32,
    /// Time between two requests. 0: that of the endpoint.
    pub interval_ms: u32,
    /// Requests. 0: those of the endpoint.
    pub attempts: u8,
    /// The RakNet protocol version. 0: that of the endpoint, or that of the server.
    pub protocol_version: u8,
    /// A RAKWIRE_TRUST_ value. Default: RAKWIRE_TRUST_NONE, a plain connection.
    pub trust: u8,
    /// The server of the token to connect to, from 0.
    pub token_server: u8,
    /// 0.
    pub reserved: u32,
    /// The password, at most 255 bytes, or null.
    pub password: *const u8,
    /// The length of the password.
    pub password_length: usize,
    /// The private key of this client's identity for this connection, 32 bytes, or null.
    pub identity_key: *const u8,
    /// Data that the server gets with the identity, at most 95 bytes, or null.
    pub identity_data: *const u8,
    /// The length of the data.
    pub identity_data_length: usize,
    /// A connect token as text, with which `trust` and `password` are unused, or null.
    pub token: *const c_char,
    /// The public key of the server, for RAKWIRE_TRUST_KEY and RAKWIRE_TRUST_KNOWN.
    pub server_key: [u8; 32],
    /// The hash of the next key of the server, for RAKWIRE_TRUST_KNOWN.
    pub next_key_hash: [u8; 24],
}

/// An event. Set `size` to sizeof(rakwire_event_t) before the first rakwire_poll(). Fields that an event does not name are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RakwireEvent {
    /// The size of the struct in bytes.
    pub size: u32,
    /// A RAKWIRE_EVENT_ value.
    pub kind: u32,
    /// The connection.
    pub connection: RakwireConnection,
    /// The message to release, or 0. It owns `data`.
    pub message: RakwireMessage,
    /// The bytes of a message, pong or advertisement. They are valid until the message is released or the endpoint closed.
    pub data: *const u8,
    /// The number of these bytes.
    pub length: usize,
    /// The client of RAKWIRE_EVENT_INCOMING.
    pub request: RakwireRequest,
    /// The GUID of the peer, where the event has one.
    pub guid: u64,
    /// The round trip of a ping in microseconds.
    pub latency_us: u64,
    /// The address of the peer, except for messages, receipts, progress and MTU, which name the connection.
    pub address: RakwireAddress,
    /// The reason: a value of the group that `kind` names.
    pub reason: i32,
    /// The number that rakwire_send() returned.
    pub receipt: u32,
    /// Parts of a large message that arrived.
    pub progress_done: u32,
    /// Parts that the large message has.
    pub progress_parts: u32,
    /// The number of the large message.
    pub progress_message: u16,
    /// The new MTU.
    pub mtu: u16,
    /// The reliability of a message. Receipts are not visible at the receiver.
    pub reliability: u8,
    /// The ordering channel, 0 to 31.
    pub channel: u8,
    /// A RAKWIRE_SIDE_ value.
    pub side: u8,
    /// A RAKWIRE_OUTCOME_ value.
    pub outcome: u8,
    /// The protocol version that the server uses, for RAKWIRE_FAILURE_VERSION.
    pub server_version: u8,
    /// 1: the progress is of a message that this side sends.
    pub outgoing: u8,
    /// 1: a refused client has proved its address.
    pub validated: u8,
    /// 0.
    pub reserved: [u8; 5],
}

/// A connection. Set `size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RakwireConnectionInfo {
    /// The size of the struct in bytes.
    pub size: u32,
    /// The largest datagram of the path in bytes, with the headers of IP and UDP.
    pub mtu: u16,
    /// A RAKWIRE_SIDE_ value.
    pub side: u8,
    /// A RAKWIRE_STATE_ value.
    pub state: u8,
    /// The address of the peer.
    pub address: RakwireAddress,
    /// The GUID of the peer, once it is known.
    pub guid: u64,
    /// The longest message in bytes that rakwire_send() accepts.
    pub max_message_len: u64,
}

/// The counters of a connection, which only grow, and measurements. Set `size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RakwireConnectionStats {
    /// The size of the struct in bytes.
    pub size: u32,
    /// The largest datagram of the path in bytes.
    pub mtu: u32,
    /// Messages that were sent.
    pub messages_sent: u64,
    /// Messages that were received.
    pub messages_received: u64,
    /// Datagrams that were sent.
    pub datagrams_sent: u64,
    /// Datagrams that were received.
    pub datagrams_received: u64,
    /// Datagrams that counted as lost.
    pub datagrams_lost: u64,
    /// Datagrams that were acknowledged.
    pub datagrams_acknowledged: u64,
    /// Bytes of messages that were accepted for sending.
    pub bytes_pushed: u64,
    /// Bytes of messages that were sent for the first time.
    pub bytes_sent: u64,
    /// Bytes of messages that were sent again.
    pub bytes_resent: u64,
    /// Bytes of datagrams that were sent.
    pub actual_bytes_sent: u64,
    /// Bytes of datagrams that were received.
    pub actual_bytes_received: u64,
    /// The smoothed round trip in microseconds.
    pub round_trip_us: u64,
    /// The last ping in microseconds.
    pub last_ping_us: u64,
    /// The mean of the last pings in microseconds.
    pub average_ping_us: u64,
    /// The lowest ping in microseconds.
    pub lowest_ping_us: u64,
    /// Bytes that may be in flight.
    pub congestion_window: u32,
    /// Bytes in flight.
    pub in_flight: u32,
    /// Messages that wait to be sent, by priority.
    pub waiting_messages: [u32; 4],
    /// Bytes that wait to be sent, by priority.
    pub waiting_bytes: [u32; 4],
    /// Share of the bytes that were sent again, 0 to 1.
    pub loss: f64,
    /// The same in the last second.
    pub loss_last_second: f64,
    /// Datagrams that counted as lost and arrived after all.
    pub datagrams_late: u64,
    /// Bytes of messages that were delivered.
    pub bytes_processed: u64,
    /// Bytes of messages that were received in vain: repeated or overtaken.
    pub bytes_ignored: u64,
    /// `bytes_pushed` of the last full second.
    pub bytes_pushed_last_second: u32,
    /// `bytes_sent` of the last full second.
    pub bytes_sent_last_second: u32,
    /// `bytes_resent` of the last full second.
    pub bytes_resent_last_second: u32,
    /// `bytes_processed` of the last full second.
    pub bytes_processed_last_second: u32,
    /// `bytes_ignored` of the last full second.
    pub bytes_ignored_last_second: u32,
    /// `actual_bytes_sent` of the last full second.
    pub actual_bytes_sent_last_second: u32,
    /// `actual_bytes_received` of the last full second.
    pub actual_bytes_received_last_second: u32,
    /// Lost messages that wait to be sent again.
    pub waiting_resend_messages: u32,
    /// Bytes of these.
    pub waiting_resend_bytes: u32,
    /// 1: `clock_difference_ms` is known.
    pub has_clock_difference: u32,
    /// The clock of the peer minus that of this side in milliseconds.
    pub clock_difference_ms: i64,
}

/// The counters of an endpoint, which only grow. Set `size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RakwireStats {
    /// The size of the struct in bytes.
    pub size: u32,
    /// Connections, including those that are being opened or closed.
    pub connections: u32,
    /// Datagrams that were received.
    pub datagrams_received: u64,
    /// Bytes of these.
    pub bytes_received: u64,
    /// Datagrams of requests that were refused.
    pub datagrams_refused: u64,
    /// Datagrams that were sent.
    pub datagrams_sent: u64,
    /// Bytes of these.
    pub bytes_sent: u64,
    /// Datagrams that the protocol dropped, for all reasons together.
    pub datagrams_dropped: u64,
    /// Datagrams that were longer than any of RakNet.
    pub too_long: u64,
    /// Datagrams that the system could not send.
    pub send_failures: u64,
    /// Calls to receive that failed.
    pub receive_failures: u64,
    /// Messages that the program has borrowed now.
    pub borrowed_messages: u64,
    /// Clients that were dropped because too many waited for a decision.
    pub incoming_overflows: u64,
    /// Datagrams of trusted proxies with a header that is wrong, or without room for their client.
    pub proxy_headers_refused: u64,
}

/// The peer of a secure connection. Set `size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RakwireSecurePeer {
    /// The size of the struct in bytes.
    pub size: u32,
    /// 1: the connection is secure. Otherwise all other fields are 0.
    pub is_secure: u8,
    /// 1: `key` is set. A client may be anonymous.
    pub has_key: u8,
    /// 1: `next_key_hash` is set.
    pub has_next_key: u8,
    /// The number of bytes at `identity_data`.
    pub identity_data_length: u8,
    /// The public key of the server, or of the identity of the client.
    pub key: [u8; 32],
    /// The hash of the key that the server will have next.
    pub next_key_hash: [u8; 24],
    /// The data that the client sent with its identity.
    pub identity_data: [u8; 95],
    /// 1: the client showed a connect token, to which the following fields belong.
    pub has_token: u8,
    /// The user that the backend named.
    pub token_user_id: u64,
    /// The expiry of the token, in seconds since 1970.
    pub token_expires: u64,
    /// The data of the backend.
    pub token_data: [u8; 128],
    /// The number of bytes at `token_data`.
    pub token_data_length: u32,
    /// 0.
    pub reserved: u32,
}

/// The contents of a new connect token. Initialise with zeros and set `size`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RakwireTokenClaims {
    /// The size of the struct in bytes.
    pub size: u32,
    /// The number of servers, 1 to 4.
    pub server_count: u32,
    /// The user, for the backend.
    pub user_id: u64,
    /// The expiry of the token, in seconds since 1970.
    pub expires: u64,
    /// The public key of the client, 32 bytes.
    pub client_key: *const u8,
    /// The public keys of the servers, 32 bytes each.
    pub server_keys: *const u8,
    /// The addresses of the servers, such as "game.example.org:19132".
    pub server_names: *const *const c_char,
    /// Data for the server, at most 128 bytes, or null.
    pub user_data: *const u8,
    /// The length of the data.
    pub user_data_length: usize,
    /// The file of the token key instead of its bytes, or null.
    pub token_key_file: *const c_char,
}

// Each struct with the size of its first version. Fields after that were added later, and an older program does not have them.
versioned! {
    RakwireOptions, offset_of!(RakwireOptions, cookies_unvalidated);
    RakwireConnectOptions, size_of::<RakwireConnectOptions>();
    RakwireEvent, size_of::<RakwireEvent>();
    RakwireConnectionInfo, size_of::<RakwireConnectionInfo>();
    RakwireConnectionStats, offset_of!(RakwireConnectionStats, datagrams_late);
    RakwireStats, offset_of!(RakwireStats, proxy_headers_refused);
    RakwireSecurePeer, size_of::<RakwireSecurePeer>();
    RakwireTokenClaims, offset_of!(RakwireTokenClaims, token_key_file);
}
