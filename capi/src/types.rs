//! The structs and numbers of the header.

use std::ffi::c_char;
use std::mem::{offset_of, size_of};

use crate::memory::versioned;

/// A handle of an endpoint; 0 is none. Handles are not reused after the endpoint is closed.
pub type RakwireEndpoint = u64;
/// A handle of a connection of an endpoint; 0 is none.
pub type RakwireConnection = u64;
/// A handle of a borrowed message; 0 is none.
pub type RakwireMessage = u64;
/// A handle of a client that waits for a decision; 0 is none.
pub type RakwireRequest = u64;
/// The result of a call: RAKWIRE_OK, a positive count where documented, or a negative RAKWIRE_ERROR_ value.
pub type RakwireResult = i32;

/// Sent once: may be lost or reordered, but never delivered twice.
pub const RAKWIRE_UNRELIABLE: u8 = 0;
/// Sent once; dropped if a newer message on its channel has already arrived.
pub const RAKWIRE_UNRELIABLE_SEQUENCED: u8 = 1;
/// Resent until acknowledged; delivered exactly once, in any order.
pub const RAKWIRE_RELIABLE: u8 = 2;
/// Resent until acknowledged; delivered exactly once, in the sending order of its channel.
pub const RAKWIRE_RELIABLE_ORDERED: u8 = 3;
/// Resent until acknowledged; dropped on arrival if a newer message on its channel has already arrived.
pub const RAKWIRE_RELIABLE_SEQUENCED: u8 = 4;
/// Like RAKWIRE_UNRELIABLE, with an event that reports whether the message was acknowledged or lost.
pub const RAKWIRE_UNRELIABLE_WITH_RECEIPT: u8 = 5;
/// Like RAKWIRE_RELIABLE, with an event when the message is acknowledged.
pub const RAKWIRE_RELIABLE_WITH_RECEIPT: u8 = 6;
/// Like RAKWIRE_RELIABLE_ORDERED, with an event when the message is acknowledged.
pub const RAKWIRE_RELIABLE_ORDERED_WITH_RECEIPT: u8 = 7;

/// Sent before all other priorities.
pub const RAKWIRE_PRIORITY_IMMEDIATE: u8 = 0;
/// Sent before medium and low priority.
pub const RAKWIRE_PRIORITY_HIGH: u8 = 1;
/// The default for most messages.
pub const RAKWIRE_PRIORITY_MEDIUM: u8 = 2;
/// Sent after all other priorities.
pub const RAKWIRE_PRIORITY_LOW: u8 = 3;

/// A connection opened.
pub const RAKWIRE_EVENT_CONNECTED: u32 = 1;
/// A connection attempt failed; `reason` is a RAKWIRE_FAILURE_ value.
pub const RAKWIRE_EVENT_CONNECT_FAILED: u32 = 2;
/// A connection closed; `reason` is a RAKWIRE_DISCONNECT_ value.
pub const RAKWIRE_EVENT_DISCONNECTED: u32 = 3;
/// A message arrived; `data`, `length` and `message` are set.
pub const RAKWIRE_EVENT_MESSAGE: u32 = 4;
/// A message with a receipt was acknowledged or lost; `receipt` and `outcome` are set.
pub const RAKWIRE_EVENT_RECEIPT: u32 = 5;
/// Parts of a split message were sent or received; `progress_done`, `progress_parts`, `progress_message` and `outgoing` are
/// set.
pub const RAKWIRE_EVENT_PROGRESS: u32 = 6;
/// The maximum datagram size of the path changed; `mtu` is set.
pub const RAKWIRE_EVENT_MTU_CHANGED: u32 = 7;
/// A server answered a ping; `latency_us`, and `data` with its advertisement, are set.
pub const RAKWIRE_EVENT_PONG: u32 = 8;
/// A peer without a connection sent an out-of-band message; `data` is set.
pub const RAKWIRE_EVENT_OUT_OF_BAND: u32 = 9;
/// A peer without a connection sent an advertisement; `data` is set.
pub const RAKWIRE_EVENT_ADVERTISEMENT: u32 = 10;
/// A client requests a connection to an endpoint with `defer_incoming`; `request` is set.
pub const RAKWIRE_EVENT_INCOMING: u32 = 11;
/// A client was refused; `reason` is a RAKWIRE_REFUSED_ value.
pub const RAKWIRE_EVENT_REFUSED: u32 = 12;

/// The server did not answer any request.
pub const RAKWIRE_FAILURE_NO_ANSWER: i32 = 1;
/// No socket is bound to the address, or there is no route to it.
pub const RAKWIRE_FAILURE_UNREACHABLE: i32 = 2;
/// The server answered, but the handshake did not complete in time.
pub const RAKWIRE_FAILURE_HANDSHAKE_TIMEOUT: i32 = 3;
/// The server aborted the connection attempt.
pub const RAKWIRE_FAILURE_ATTEMPT_FAILED: i32 = 4;
/// The server already has a connection with this address or GUID.
pub const RAKWIRE_FAILURE_ALREADY_CONNECTED: i32 = 5;
/// The server is full, or the application refused the client.
pub const RAKWIRE_FAILURE_SERVER_FULL: i32 = 6;
/// The server has banned this address.
pub const RAKWIRE_FAILURE_BANNED: i32 = 7;
/// The server refuses this address because it connected too recently.
pub const RAKWIRE_FAILURE_RECENTLY_CONNECTED: i32 = 8;
/// The server uses another protocol version; `server_version` is set.
pub const RAKWIRE_FAILURE_VERSION: i32 = 9;
/// The server requires an encrypted connection.
pub const RAKWIRE_FAILURE_SECURITY_REQUIRED: i32 = 10;
/// The server does not support secure connections.
pub const RAKWIRE_FAILURE_NO_SECURITY: i32 = 11;
/// The server requires an identity.
pub const RAKWIRE_FAILURE_IDENTITY_REQUIRED: i32 = 12;
/// The server rejected the identity.
pub const RAKWIRE_FAILURE_INVALID_IDENTITY: i32 = 13;
/// The public key of the server is not the expected one.
pub const RAKWIRE_FAILURE_PUBLIC_KEY: i32 = 14;
/// The server rejected the password or connect token.
pub const RAKWIRE_FAILURE_PASSWORD: i32 = 15;
/// The server closed the connection before it was open.
pub const RAKWIRE_FAILURE_CLOSED: i32 = 16;
/// This side cancelled the attempt.
pub const RAKWIRE_FAILURE_CANCELLED: i32 = 17;

/// This endpoint disconnected.
pub const RAKWIRE_DISCONNECT_LOCAL: i32 = 1;
/// The peer disconnected.
pub const RAKWIRE_DISCONNECT_REMOTE: i32 = 2;
/// Nothing was received from the peer within the timeout.
pub const RAKWIRE_DISCONNECT_LOST: i32 = 3;
/// The peer sent a message that exceeds the memory of a connection.
pub const RAKWIRE_DISCONNECT_MESSAGE_TOO_LARGE: i32 = 4;
/// This endpoint sent a message that exceeds the memory of the peer.
pub const RAKWIRE_DISCONNECT_SENT_TOO_LARGE: i32 = 5;
/// The path MTU fell below the part size of a split message.
pub const RAKWIRE_DISCONNECT_PATH_TOO_NARROW: i32 = 6;
/// Out-of-order messages from the peer exceed the memory of a connection.
pub const RAKWIRE_DISCONNECT_RECEIVE_MEMORY: i32 = 7;

/// The password was wrong.
pub const RAKWIRE_REFUSED_PASSWORD: i32 = 1;
/// The client has no identity.
pub const RAKWIRE_REFUSED_NO_IDENTITY: i32 = 2;
/// The identity is invalid.
pub const RAKWIRE_REFUSED_IDENTITY: i32 = 3;
/// The client has no connect token from this backend.
pub const RAKWIRE_REFUSED_NO_TOKEN: i32 = 4;
/// The connect token has expired.
pub const RAKWIRE_REFUSED_TOKEN_EXPIRED: i32 = 5;
/// The connect token does not list this server.
pub const RAKWIRE_REFUSED_TOKEN_SERVER: i32 = 6;
/// The connect token was issued to another client.
pub const RAKWIRE_REFUSED_TOKEN_CLIENT: i32 = 7;
/// The connect token was used before.
pub const RAKWIRE_REFUSED_TOKEN_USED: i32 = 8;
/// The server's table of used connect tokens is full.
pub const RAKWIRE_REFUSED_TOKEN_STORE: i32 = 9;

/// A reason that this version of the library does not know.
pub const RAKWIRE_REASON_OTHER: i32 = 255;

/// This endpoint opened the connection.
pub const RAKWIRE_SIDE_CLIENT: u8 = 0;
/// The peer opened the connection.
pub const RAKWIRE_SIDE_SERVER: u8 = 1;

/// The connection is opening.
pub const RAKWIRE_STATE_CONNECTING: u8 = 0;
/// The connection is open.
pub const RAKWIRE_STATE_CONNECTED: u8 = 1;
/// The connection is closing.
pub const RAKWIRE_STATE_DISCONNECTING: u8 = 2;
/// The connection is closed.
pub const RAKWIRE_STATE_DISCONNECTED: u8 = 3;

/// The peer acknowledged the message.
pub const RAKWIRE_OUTCOME_ACKNOWLEDGED: u8 = 0;
/// The message was unreliable and not acknowledged.
pub const RAKWIRE_OUTCOME_LOST: u8 = 1;

/// An unencrypted connection.
pub const RAKWIRE_TRUST_NONE: u8 = 0;
/// A secure connection to any server. Protects only against eavesdropping.
pub const RAKWIRE_TRUST_ANY: u8 = 1;
/// A secure connection to the server with the key `server_key`.
pub const RAKWIRE_TRUST_KEY: u8 = 2;
/// A secure connection to the server with the key `server_key`, or with the next key whose hash is `next_key_hash`.
pub const RAKWIRE_TRUST_KNOWN: u8 = 3;

/// Cookies are required once a number of clients have connected without one: an eighth of `max_incoming`, 2 to 16.
pub const RAKWIRE_COOKIES_AUTOMATIC: u8 = 0;
/// Every client must return a cookie. Some RakNet libraries do not support cookies.
pub const RAKWIRE_COOKIES_REQUIRED: u8 = 1;
/// Cookies are required once `cookies_unvalidated` clients have connected without one.
pub const RAKWIRE_COOKIES_UNDER_LOAD: u8 = 2;
/// No cookies. An attacker with forged addresses can fill the server.
pub const RAKWIRE_COOKIES_OFF: u8 = 3;

/// Delay-based: reacts to queueing delay, so that losses without queueing do not reduce the rate.
pub const RAKWIRE_CONGESTION_DELAY: u8 = 0;
/// Loss-based: treats every loss as congestion (RFC 6582).
pub const RAKWIRE_CONGESTION_NEW_RENO: u8 = 1;

/// No time limit for rakwire_wait().
pub const RAKWIRE_FOREVER: u32 = 0xFFFF_FFFF;

/// A bit of rakwire_features(): secure connections and connect tokens.
pub const RAKWIRE_FEATURE_SECURE: u32 = 1;
/// A bit of rakwire_features(): the network simulator.
pub const RAKWIRE_FEATURE_SIM: u32 = 2;

/// An IP address and port.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RakwireAddress {
    /// The address family: 4 or 6; 0 if there is no address.
    pub family: u8,
    /// Must be 0.
    pub reserved: u8,
    /// The UDP port, in host byte order.
    pub port: u16,
    /// The interface number of a link-local IPv6 address, otherwise 0.
    pub scope: u32,
    /// The address in network byte order. IPv4 uses the first four bytes.
    pub ip: [u8; 16],
}

/// The options of an endpoint. Initialise them with rakwire_options_init().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RakwireOptions {
    /// The size of the struct in bytes.
    pub size: u32,
    /// The RakNet protocol version for outgoing connections. Default: 6.
    pub protocol_version: u8,
    /// 1: out-of-band messages and advertisements from peers without a connection become events. Default: 0.
    pub out_of_band: u8,
    /// 1: each new client waits for rakwire_accept(), rakwire_refuse() or rakwire_ignore(). Default: 0.
    pub defer_incoming: u8,
    /// 1: a connection attempt fails immediately when ICMP reports the address as unreachable. Default: 1.
    pub fail_on_unreachable: u8,
    /// The address to bind, such as "0.0.0.0:19132" or "[::]:19132". Default: null, any IPv4 port.
    pub bind_address: *const c_char,
    /// The maximum number of incoming connections. Default: 0, a client.
    pub max_incoming: u16,
    /// The maximum MTU in bytes, 576 to 1492. Default: 1492.
    pub mtu: u16,
    /// The maximum number of connections in both directions. 0: 64, or `max_incoming` if that is more.
    pub max_connections: u32,
    /// The number of 512-byte blocks for queued and unacknowledged messages. 0: enough for `max_connections`.
    pub blocks: u32,
    /// The maximum length of a sent message in bytes. Default: 4,000,000.
    pub max_message_len: u32,
    /// The time without a datagram from the peer after which a connection with unacknowledged data is lost. Default: 10,000.
    pub timeout_ms: u32,
    /// The maximum time for which a closing connection waits for acknowledgements. Default: 5,000.
    pub close_timeout_ms: u32,
    /// The maximum duration of the handshake after the server's first reply. Default: 10,000.
    pub handshake_timeout_ms: u32,
    /// The time after which a queued unreliable message is dropped. Default: 1,000.
    pub unreliable_timeout_ms: u32,
    /// The interval between transmissions of the first request of an attempt. Default: 500.
    pub connect_interval_ms: u32,
    /// The number of retransmissions of the first request of an attempt, 1 to 255; clamped to 3 to 254. Default: 12.
    pub connect_attempts: u32,
    /// The number of parts of a split message between progress events. Default: 0, no events.
    pub progress_interval: u32,
    /// The maximum number of incoming connections per address. 0: three quarters of `max_incoming`, or no limit if
    /// `max_incoming` is below 16. Default: 0.
    pub max_per_address: u16,
    /// Must be 0.
    pub reserved: u16,
    /// The GUID of this endpoint. Default: 0, a random GUID.
    pub guid: u64,
    /// The protocol versions that a server accepts, up to the first 0. Default: 6, 10, 11.
    pub accepted_versions: [u8; 8],
    /// The password that clients must send, at most 255 bytes. Default: null, none.
    pub password: *const u8,
    /// The length of the password in bytes.
    pub password_length: usize,
    /// Simulated network conditions in both directions, such as "loss=5%,latency=50ms,jitter=10ms,seed=7". Default: null, none.
    pub simulate: *const c_char,
    /// The private key of a server, 32 bytes. Default: null, a server without secure connections.
    pub server_key: *const u8,
    /// The private key that identifies this client to servers, 32 bytes. Default: null.
    pub identity_key: *const u8,
    /// A file with the private key of a server, instead of `server_key`. Default: null.
    pub server_key_file: *const c_char,
    /// A file with the private key of this client, instead of `identity_key`. Default: null.
    pub identity_key_file: *const c_char,
    /// The connect token keys that a server accepts, 32 bytes each. Default: null; clients need no token.
    pub token_keys: *const u8,
    /// The number of keys at `token_keys`, at most 4, or 3 with `token_key_file`.
    pub token_key_count: u32,
    /// 1: the endpoint can open secure connections. A key implies it. Default: 0.
    pub secure: u8,
    /// 1: a server with a key refuses unencrypted clients. Default: 0.
    pub requires_security: u8,
    /// 1: a server with a key refuses clients without an identity. Default: 0.
    pub requires_identity: u8,
    /// A RAKWIRE_COOKIES_ value: when clients must return a cookie to prove their address. Default: RAKWIRE_COOKIES_AUTOMATIC.
    pub cookies: u8,
    /// The number of clients admitted without a cookie, for RAKWIRE_COOKIES_UNDER_LOAD.
    pub cookies_unvalidated: u16,
    /// The maximum number of incoming connections per network (/24 in IPv4, /48 in IPv6). 0: seven eighths of `max_incoming`,
    /// or no limit if `max_incoming` is below 16. Default: 0.
    pub max_per_network: u16,
    /// The maximum number of handshakes without a cookie per network (/24 in IPv4, /64 in IPv6). Default: 8.
    pub max_half_open_per_network: u16,
    /// The maximum number of pongs per second. 0: pings are not answered. Default: 1,000.
    pub pongs_per_second: u16,
    /// The maximum number of pongs per second and network (/24 in IPv4, /64 in IPv6). Default: 20.
    pub pongs_per_network: u16,
    /// A RAKWIRE_CONGESTION_ value. Default: RAKWIRE_CONGESTION_DELAY.
    pub congestion: u8,
    /// Must be 0.
    pub reserved_byte: u8,
    /// The minimum time between connections from the same address. Default: 0, none.
    pub connection_interval_ms: u32,
    /// The maximum number of blocks per connection and direction. Default: 0, limited only by `blocks`.
    pub connection_blocks: u32,
    /// The interval between pings on a connection. 0: no pings. Default: 5,000.
    pub ping_interval_ms: u32,
    /// The maximum sending rate per connection in bits per second. Default: 0, unlimited.
    pub outgoing_limit: u64,
    /// A file with a connect token key, in addition to `token_keys`. Default: null.
    pub token_key_file: *const c_char,
    /// The networks of trusted proxies, such as "10.0.0.7/32,fd00::/64". Their PROXY headers (version 2) contain the client's
    /// address. Default: null.
    pub trusted_proxies: *const c_char,
    /// A file to which the keys of secure connections are appended, for decrypting captures. Only for development. Default:
    /// null.
    pub key_log_file: *const c_char,
}

/// The options of a connection attempt. Initialise them with rakwire_connect_options_init().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RakwireConnectOptions {
    /// The size of the struct in bytes.
    pub size: u32,
    /// The maximum duration of the attempt. 0: limited only by `attempts`.
    pub connect_timeout_ms: u32,
    /// The timeout of the open connection, `timeout_ms` of rakwire_options_t. 0: the value of the endpoint.
    pub timeout_ms: u32,
    /// The interval between transmissions of the first request. 0: the value of the endpoint.
    pub interval_ms: u32,
    /// The number of retransmissions of the first request, clamped to 3 to 254. 0: the value of the endpoint.
    pub attempts: u8,
    /// The RakNet protocol version. 0: the version of the endpoint, or the server's if that differs.
    pub protocol_version: u8,
    /// A RAKWIRE_TRUST_ value. Default: RAKWIRE_TRUST_NONE, an unencrypted connection.
    pub trust: u8,
    /// The index of the server in the token to connect to, from 0.
    pub token_server: u8,
    /// Must be 0.
    pub reserved: u32,
    /// The password, at most 255 bytes, or null.
    pub password: *const u8,
    /// The length of the password in bytes.
    pub password_length: usize,
    /// The private key that identifies this client on this connection, 32 bytes, or null.
    pub identity_key: *const u8,
    /// Data sent to the server with the identity, at most 95 bytes, or null.
    pub identity_data: *const u8,
    /// The length of the identity data in bytes.
    pub identity_data_length: usize,
    /// A connect token as text, or null. With a token, `trust` and `password` are ignored.
    pub token: *const c_char,
    /// The public key of the server, for RAKWIRE_TRUST_KEY and RAKWIRE_TRUST_KNOWN.
    pub server_key: [u8; 32],
    /// The hash of the server's next key, for RAKWIRE_TRUST_KNOWN.
    pub next_key_hash: [u8; 24],
}

/// An event. Set `size` to sizeof(rakwire_event_t) before the first rakwire_poll(). Fields that do not apply to an event are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RakwireEvent {
    /// The size of the struct in bytes.
    pub size: u32,
    /// A RAKWIRE_EVENT_ value.
    pub kind: u32,
    /// The connection of the event, or 0.
    pub connection: RakwireConnection,
    /// The handle of the message to release, or 0. `data` is valid until its release.
    pub message: RakwireMessage,
    /// The bytes of a message, pong or advertisement. Valid until the message is released or the endpoint closed.
    pub data: *const u8,
    /// The length of `data` in bytes.
    pub length: usize,
    /// The client of RAKWIRE_EVENT_INCOMING.
    pub request: RakwireRequest,
    /// The GUID of the peer, if the event has one.
    pub guid: u64,
    /// The round-trip time of a ping in microseconds.
    pub latency_us: u64,
    /// The address of the peer. Not set for messages, receipts, progress and MTU changes; use `connection`.
    pub address: RakwireAddress,
    /// The reason: a RAKWIRE_FAILURE_, RAKWIRE_DISCONNECT_ or RAKWIRE_REFUSED_ value, depending on `kind`.
    pub reason: i32,
    /// The receipt number that rakwire_send() stored.
    pub receipt: u32,
    /// The number of parts received or acknowledged so far.
    pub progress_done: u32,
    /// The total number of parts of the message.
    pub progress_parts: u32,
    /// An id of the split message, unique among the incomplete messages of its direction.
    pub progress_message: u16,
    /// The new MTU in bytes, including IP and UDP headers.
    pub mtu: u16,
    /// The reliability of a received message, without receipts.
    pub reliability: u8,
    /// The ordering channel, 0 to 31.
    pub channel: u8,
    /// A RAKWIRE_SIDE_ value.
    pub side: u8,
    /// A RAKWIRE_OUTCOME_ value.
    pub outcome: u8,
    /// The protocol version of the server, for RAKWIRE_FAILURE_VERSION.
    pub server_version: u8,
    /// 1: the progress is of a sent message. 0: of a received message.
    pub outgoing: u8,
    /// 1: the refused client has proved that it receives datagrams at its address.
    pub validated: u8,
    /// Reserved.
    pub reserved: [u8; 5],
}

/// The state of a connection. Set `size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RakwireConnectionInfo {
    /// The size of the struct in bytes.
    pub size: u32,
    /// The maximum datagram size of the path in bytes, including IP and UDP headers.
    pub mtu: u16,
    /// A RAKWIRE_SIDE_ value.
    pub side: u8,
    /// A RAKWIRE_STATE_ value.
    pub state: u8,
    /// The address of the peer.
    pub address: RakwireAddress,
    /// The GUID of the peer, or UINT64_MAX while it is unknown.
    pub guid: u64,
    /// The maximum message length in bytes that rakwire_send() accepts.
    pub max_message_len: u64,
}

/// Cumulative counters and measurements of a connection. Set `size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RakwireConnectionStats {
    /// The size of the struct in bytes.
    pub size: u32,
    /// The maximum datagram size of the path in bytes, including IP and UDP headers.
    pub mtu: u32,
    /// Messages that were sent.
    pub messages_sent: u64,
    /// Messages that were received.
    pub messages_received: u64,
    /// Datagrams that were sent.
    pub datagrams_sent: u64,
    /// Datagrams that were received.
    pub datagrams_received: u64,
    /// Datagrams that were declared lost.
    pub datagrams_lost: u64,
    /// Datagrams that were acknowledged.
    pub datagrams_acknowledged: u64,
    /// Message bytes that rakwire_send() accepted.
    pub bytes_pushed: u64,
    /// Message bytes that were sent for the first time.
    pub bytes_sent: u64,
    /// Message bytes that were retransmitted.
    pub bytes_resent: u64,
    /// Bytes of all sent datagrams, without IP and UDP headers.
    pub actual_bytes_sent: u64,
    /// Bytes of all received datagrams, without IP and UDP headers.
    pub actual_bytes_received: u64,
    /// The smoothed round-trip time in microseconds.
    pub round_trip_us: u64,
    /// The round-trip time of the last ping in microseconds.
    pub last_ping_us: u64,
    /// The mean round-trip time of the last five pings in microseconds.
    pub average_ping_us: u64,
    /// The lowest round-trip time of a ping in microseconds.
    pub lowest_ping_us: u64,
    /// The congestion window in bytes.
    pub congestion_window: u32,
    /// The number of bytes in flight.
    pub in_flight: u32,
    /// The number of queued messages, by priority.
    pub waiting_messages: [u32; 4],
    /// The number of queued message bytes, by priority.
    pub waiting_bytes: [u32; 4],
    /// The fraction of sent message bytes that were retransmissions, 0 to 1.
    pub loss: f64,
    /// The fraction of retransmissions in the last full second, 0 to 1.
    pub loss_last_second: f64,
    /// Datagrams that were declared lost but acknowledged later.
    pub datagrams_late: u64,
    /// Message bytes that were delivered.
    pub bytes_processed: u64,
    /// Message bytes that were dropped as duplicates, or as older than a sequenced message that was already delivered.
    pub bytes_ignored: u64,
    /// `bytes_pushed` in the last full second.
    pub bytes_pushed_last_second: u32,
    /// `bytes_sent` in the last full second.
    pub bytes_sent_last_second: u32,
    /// `bytes_resent` in the last full second.
    pub bytes_resent_last_second: u32,
    /// `bytes_processed` in the last full second.
    pub bytes_processed_last_second: u32,
    /// `bytes_ignored` in the last full second.
    pub bytes_ignored_last_second: u32,
    /// `actual_bytes_sent` in the last full second.
    pub actual_bytes_sent_last_second: u32,
    /// `actual_bytes_received` in the last full second.
    pub actual_bytes_received_last_second: u32,
    /// The number of lost messages queued for retransmission.
    pub waiting_resend_messages: u32,
    /// The number of bytes of messages queued for retransmission.
    pub waiting_resend_bytes: u32,
    /// 1: `clock_difference_ms` is known.
    pub has_clock_difference: u32,
    /// The clock of the peer minus the local clock in milliseconds.
    pub clock_difference_ms: i64,
}

/// Cumulative counters of an endpoint. Set `size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RakwireStats {
    /// The size of the struct in bytes.
    pub size: u32,
    /// The current number of connections, including those that are opening or closing.
    pub connections: u32,
    /// Datagrams that were received.
    pub datagrams_received: u64,
    /// Bytes of the received datagrams.
    pub bytes_received: u64,
    /// Datagrams of refused connection requests.
    pub datagrams_refused: u64,
    /// Datagrams that were sent.
    pub datagrams_sent: u64,
    /// Bytes of the sent datagrams.
    pub bytes_sent: u64,
    /// Datagrams that the protocol dropped, for any reason.
    pub datagrams_dropped: u64,
    /// Datagrams longer than the longest RakNet datagram.
    pub too_long: u64,
    /// Datagrams that the operating system failed to send.
    pub send_failures: u64,
    /// Receive calls to the operating system that failed.
    pub receive_failures: u64,
    /// The number of messages currently borrowed by the program.
    pub borrowed_messages: u64,
    /// Clients that were dropped because too many were waiting for a decision.
    pub incoming_overflows: u64,
    /// Datagrams from trusted proxies that were dropped because of an invalid header or a full client table.
    pub proxy_headers_refused: u64,
}

/// The authenticated peer of a secure connection. Set `size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RakwireSecurePeer {
    /// The size of the struct in bytes.
    pub size: u32,
    /// 1: the connection is secure. 0: all other fields are 0.
    pub is_secure: u8,
    /// 1: `key` is set. 0: the client is anonymous.
    pub has_key: u8,
    /// 1: `next_key_hash` is set.
    pub has_next_key: u8,
    /// The length of `identity_data` in bytes.
    pub identity_data_length: u8,
    /// The public key of the server or, on a server, of the client's identity.
    pub key: [u8; 32],
    /// The hash of the server's next key.
    pub next_key_hash: [u8; 24],
    /// The data that the client sent with its identity.
    pub identity_data: [u8; 95],
    /// 1: the client presented a connect token, which the following fields describe.
    pub has_token: u8,
    /// The user id in the token.
    pub token_user_id: u64,
    /// The expiry of the token, in seconds since 1970.
    pub token_expires: u64,
    /// The user data in the token.
    pub token_data: [u8; 128],
    /// The length of `token_data` in bytes.
    pub token_data_length: u32,
    /// Reserved.
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
    /// The user id, which the backend chooses.
    pub user_id: u64,
    /// The expiry of the token, in seconds since 1970.
    pub expires: u64,
    /// The public key of the client, 32 bytes.
    pub client_key: *const u8,
    /// The public keys of the servers, 32 bytes each.
    pub server_keys: *const u8,
    /// The addresses of the servers, such as "game.example.org:19132", each for the key at the same index.
    pub server_names: *const *const c_char,
    /// User data for the server, at most 128 bytes, or null.
    pub user_data: *const u8,
    /// The length of the user data in bytes.
    pub user_data_length: usize,
    /// A file with the token key, instead of its bytes, or null.
    pub token_key_file: *const c_char,
}

// Each struct with the size of its first version. Programs compiled with that version do not have the later fields.
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
