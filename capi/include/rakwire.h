// The C interface of rakwire: RakNet over UDP. Made from the sources of rakwire-c by cbindgen; do not edit.
//
// An endpoint does something only while one of its functions is called. Each frame: rakwire_update(), rakwire_poll() until it
// returns 0, rakwire_send(), rakwire_flush(). There are no callbacks.
//
// Threads: an endpoint belongs to the thread that opened it. Another thread gets RAKWIRE_ERROR_THREAD, and the end of the thread
// closes the endpoint. Different threads may use different endpoints at the same time.
//
// Results: 0 or a positive count is success. A negative result is a RAKWIRE_ERROR_ value, and rakwire_last_error() has a
// sentence about it. Nothing happened then, unless the function says so.
//
// Handles are numbers that are never used twice: 0, a closed and a foreign handle give RAKWIRE_ERROR_HANDLE or
// RAKWIRE_ERROR_NO_CONNECTION.
//
// Pointers: a pointer may be null only where its function says so; otherwise null gives RAKWIRE_ERROR_NULL, except with length 0.
// Structs begin with their size, so that programs and libraries of different versions fit together. Memory that a function names
// is used only during the call.

#ifndef RAKWIRE_H
#define RAKWIRE_H

#include <stddef.h>
#include <stdint.h>

// The call succeeded.
#define RAKWIRE_OK 0

// A required pointer is null.
#define RAKWIRE_ERROR_NULL -1

// A pointer to a struct is not aligned.
#define RAKWIRE_ERROR_MISALIGNED -2

// The `size` of a struct is not the size of a version of that struct.
#define RAKWIRE_ERROR_SIZE -3

// The endpoint, message or request is null, closed, released already or was never created.
#define RAKWIRE_ERROR_HANDLE -4

// The endpoint belongs to another thread.
#define RAKWIRE_ERROR_THREAD -5

// An argument is outside its range.
#define RAKWIRE_ERROR_ARGUMENT -6

// A string is not UTF-8, or is not NUL-terminated within 1,024 bytes.
#define RAKWIRE_ERROR_STRING -7

// The endpoint has no such connection.
#define RAKWIRE_ERROR_NO_CONNECTION -8

// The connection is not open.
#define RAKWIRE_ERROR_NOT_CONNECTED -9

// The address cannot be parsed or resolved, or is not one to connect to.
#define RAKWIRE_ERROR_ADDRESS -10

// An IPv4 socket cannot reach an IPv6 address.
#define RAKWIRE_ERROR_ADDRESS_FAMILY -11

// The system could not bind the socket, for example because the port is in use.
#define RAKWIRE_ERROR_BIND -12

// A connection with this address exists already.
#define RAKWIRE_ERROR_ALREADY_CONNECTED -13

// The endpoint holds as many connections, pings or bans as it can.
#define RAKWIRE_ERROR_FULL -14

// A message needs at least one byte.
#define RAKWIRE_ERROR_EMPTY -15

// The first byte of a message is below 0x1B, which RakNet reserves.
#define RAKWIRE_ERROR_RESERVED_ID -16

// The message, password or other data is longer than allowed.
#define RAKWIRE_ERROR_TOO_LONG -17

// The connection or endpoint has no room for the message now: try again after an update.
#define RAKWIRE_ERROR_NO_ROOM -18

// This build of the library lacks the feature.
#define RAKWIRE_ERROR_UNSUPPORTED -19

// The operating system refused, for example random bytes or a file.
#define RAKWIRE_ERROR_SYSTEM -20

// The buffer of the caller is too small. The needed length is stored where the length is returned.
#define RAKWIRE_ERROR_BUFFER -21

// Keys, trust, identities and tokens do not fit together.
#define RAKWIRE_ERROR_SECURITY -22

// The library has a bug. Nothing is undefined, but the endpoint should be closed.
#define RAKWIRE_ERROR_BUG -23

// Sent once: it may be lost, repeated or overtaken.
#define RAKWIRE_UNRELIABLE 0

// Sent once; a message that was overtaken is dropped.
#define RAKWIRE_UNRELIABLE_SEQUENCED 1

// Resent until it arrives, in any order.
#define RAKWIRE_RELIABLE 2

// Resent until it arrives, in the order of sending on its channel.
#define RAKWIRE_RELIABLE_ORDERED 3

// Resent until it arrives; a message that was overtaken is dropped.
#define RAKWIRE_RELIABLE_SEQUENCED 4

// As RAKWIRE_UNRELIABLE, with an event that reports if it arrived.
#define RAKWIRE_UNRELIABLE_WITH_RECEIPT 5

// As RAKWIRE_RELIABLE, with an event once it has arrived.
#define RAKWIRE_RELIABLE_WITH_RECEIPT 6

// As RAKWIRE_RELIABLE_ORDERED, with an event once it has arrived.
#define RAKWIRE_RELIABLE_ORDERED_WITH_RECEIPT 7

// Sent before everything else.
#define RAKWIRE_PRIORITY_IMMEDIATE 0

// Sent before medium.
#define RAKWIRE_PRIORITY_HIGH 1

// The usual priority.
#define RAKWIRE_PRIORITY_MEDIUM 2

// Sent after all others.
#define RAKWIRE_PRIORITY_LOW 3

// A connection is open.
#define RAKWIRE_EVENT_CONNECTED 1

// An attempt to connect failed; `reason` is a RAKWIRE_FAILURE_ value.
#define RAKWIRE_EVENT_CONNECT_FAILED 2

// A connection ended; `reason` is a RAKWIRE_DISCONNECT_ value.
#define RAKWIRE_EVENT_DISCONNECTED 3

// A message arrived; `data`, `length` and `message` are set.
#define RAKWIRE_EVENT_MESSAGE 4

// A message with a receipt arrived or was lost; `receipt` and `outcome` are set.
#define RAKWIRE_EVENT_RECEIPT 5

// Parts of a large message arrived; `progress_done`, `progress_parts`, `progress_message` and `outgoing` are set.
#define RAKWIRE_EVENT_PROGRESS 6

// The path carries datagrams of another size; `mtu` is set.
#define RAKWIRE_EVENT_MTU_CHANGED 7

// A server answered a ping; `latency_us` and the data of its advertisement are set.
#define RAKWIRE_EVENT_PONG 8

// A peer without a connection sent a message.
#define RAKWIRE_EVENT_OUT_OF_BAND 9

// A peer without a connection advertised itself.
#define RAKWIRE_EVENT_ADVERTISEMENT 10

// A client requests a connection from an endpoint with `defer_incoming`; `request` is set.
#define RAKWIRE_EVENT_INCOMING 11

// A client was refused; `reason` is a RAKWIRE_REFUSED_ value.
#define RAKWIRE_EVENT_REFUSED 12

// The server does not answer.
#define RAKWIRE_FAILURE_NO_ANSWER 1

// Nothing listens at the address, or no route leads there.
#define RAKWIRE_FAILURE_UNREACHABLE 2

// The server answered, but did not finish the handshake in time.
#define RAKWIRE_FAILURE_HANDSHAKE_TIMEOUT 3

// The server gave the attempt up.
#define RAKWIRE_FAILURE_ATTEMPT_FAILED 4

// The server has a connection of this address or GUID already.
#define RAKWIRE_FAILURE_ALREADY_CONNECTED 5

// The server is full, or refused the client.
#define RAKWIRE_FAILURE_SERVER_FULL 6

// The server has banned this address.
#define RAKWIRE_FAILURE_BANNED 7

// This address connected a moment ago.
#define RAKWIRE_FAILURE_RECENTLY_CONNECTED 8

// The server uses another protocol version, which `server_version` names.
#define RAKWIRE_FAILURE_VERSION 9

// The server requires an encrypted connection.
#define RAKWIRE_FAILURE_SECURITY_REQUIRED 10

// The server has no security.
#define RAKWIRE_FAILURE_NO_SECURITY 11

// The server requires an identity.
#define RAKWIRE_FAILURE_IDENTITY_REQUIRED 12

// The server does not accept the identity.
#define RAKWIRE_FAILURE_INVALID_IDENTITY 13

// The server has another public key.
#define RAKWIRE_FAILURE_PUBLIC_KEY 14

// The password or connect token is wrong.
#define RAKWIRE_FAILURE_PASSWORD 15

// The server ended the connection before it was open.
#define RAKWIRE_FAILURE_CLOSED 16

// This side cancelled the attempt.
#define RAKWIRE_FAILURE_CANCELLED 17

// This side disconnected.
#define RAKWIRE_DISCONNECT_LOCAL 1

// The peer disconnected.
#define RAKWIRE_DISCONNECT_REMOTE 2

// Nothing was received from the peer for the timeout.
#define RAKWIRE_DISCONNECT_LOST 3

// A message of the peer is larger than a connection may hold.
#define RAKWIRE_DISCONNECT_MESSAGE_TOO_LARGE 4

// The peer cannot hold a message that was sent.
#define RAKWIRE_DISCONNECT_SENT_TOO_LARGE 5

// The path has become too narrow for a message that was sent in parts.
#define RAKWIRE_DISCONNECT_PATH_TOO_NARROW 6

// The peer left gaps that hold too much memory.
#define RAKWIRE_DISCONNECT_RECEIVE_MEMORY 7

// The password was wrong.
#define RAKWIRE_REFUSED_PASSWORD 1

// No identity was shown.
#define RAKWIRE_REFUSED_NO_IDENTITY 2

// The identity is not valid.
#define RAKWIRE_REFUSED_IDENTITY 3

// The client has no connect token of this backend.
#define RAKWIRE_REFUSED_NO_TOKEN 4

// The connect token has expired.
#define RAKWIRE_REFUSED_TOKEN_EXPIRED 5

// The connect token is for another server.
#define RAKWIRE_REFUSED_TOKEN_SERVER 6

// The connect token belongs to another client.
#define RAKWIRE_REFUSED_TOKEN_CLIENT 7

// The connect token was used before.
#define RAKWIRE_REFUSED_TOKEN_USED 8

// Too many connect tokens are in use.
#define RAKWIRE_REFUSED_TOKEN_STORE 9

// A reason that this version of the library has no number for.
#define RAKWIRE_REASON_OTHER 255

// This side opened the connection.
#define RAKWIRE_SIDE_CLIENT 0

// The peer opened the connection.
#define RAKWIRE_SIDE_SERVER 1

// The connection is being opened.
#define RAKWIRE_STATE_CONNECTING 0

// The connection is open.
#define RAKWIRE_STATE_CONNECTED 1

// The connection is being closed.
#define RAKWIRE_STATE_DISCONNECTING 2

// The connection has ended.
#define RAKWIRE_STATE_DISCONNECTED 3

// The peer acknowledged the message.
#define RAKWIRE_OUTCOME_ACKNOWLEDGED 0

// The message was lost.
#define RAKWIRE_OUTCOME_LOST 1

// A plain connection.
#define RAKWIRE_TRUST_NONE 0

// A secure connection with any server: it protects only against eavesdroppers.
#define RAKWIRE_TRUST_ANY 1

// A secure connection with the server that has `server_key`.
#define RAKWIRE_TRUST_KEY 2

// A secure connection with the server that has `server_key`, or the key with the hash `next_key_hash`.
#define RAKWIRE_TRUST_KNOWN 3

// Cookies are required once several clients have connected without one: an eighth of `max_incoming`, 2 to 16.
#define RAKWIRE_COOKIES_AUTOMATIC 0

// Each client must return a cookie, which some RakNet libraries cannot.
#define RAKWIRE_COOKIES_REQUIRED 1

// Cookies are required once `cookies_unvalidated` clients have connected without one.
#define RAKWIRE_COOKIES_UNDER_LOAD 2

// No cookies: forged addresses can fill the server.
#define RAKWIRE_COOKIES_OFF 3

// Follows the delay of the path: losses without a queue do not slow a connection down.
#define RAKWIRE_CONGESTION_DELAY 0

// Treats each loss as congestion (RFC 6582).
#define RAKWIRE_CONGESTION_NEW_RENO 1

// No time limit for rakwire_wait().
#define RAKWIRE_FOREVER 4294967295

// Bit of rakwire_features(): secure connections and connect tokens.
#define RAKWIRE_FEATURE_SECURE 1

// Bit of rakwire_features(): the simulated network.
#define RAKWIRE_FEATURE_SIM 2

// A result code: RAKWIRE_OK, a positive count where a function says so, or a negative RAKWIRE_ERROR_ value.
typedef int32_t rakwire_result_t;

// The options of an endpoint. Initialise them with rakwire_options_init().
typedef struct {
    // The size of the struct in bytes.
    uint32_t size;
    // The RakNet protocol version of connections that this endpoint opens. Default: 6.
    uint8_t protocol_version;
    // 1: messages and advertisements of peers without a connection become events. Default: 0.
    uint8_t out_of_band;
    // 1: each client waits for rakwire_accept(), rakwire_refuse() or rakwire_ignore(). Default: 0.
    uint8_t defer_incoming;
    // 1: an attempt ends immediately when the network reports that nothing listens there. Default: 1.
    uint8_t hears_unreachable;
    // The address to bind, such as "0.0.0.0:19132" or "[::]:19132". Default: null, any IPv4 port.
    const char *bind_address;
    // Connections that others may open. Default: 0, a client.
    uint16_t max_incoming;
    // The largest MTU, 576 to 1492. Default: 1492.
    uint16_t mtu;
    // Connections in all. 0: 64, or `max_incoming` if that is more.
    uint32_t max_connections;
    // Blocks of 512 bytes for messages in flight. 0: as many as the connections need.
    uint32_t blocks;
    // The longest message in bytes that is received. Default: 4,000,000.
    uint32_t max_message_len;
    // Silence after which a connection is lost. Default: 10,000.
    uint32_t timeout_ms;
    // Longest wait for the acknowledgement of messages while a connection closes. Default: 5,000.
    uint32_t close_timeout_ms;
    // Longest handshake after the first answer. Default: 10,000.
    uint32_t handshake_timeout_ms;
    // Time after which an unreliable message that could not be sent is dropped. Default: 1,000.
    uint32_t unreliable_timeout_ms;
    // Time between two requests of an attempt. Default: 500.
    uint32_t connect_interval_ms;
    // Requests of an attempt, 1 to 255. Default: 12.
    uint32_t connect_attempts;
    // Parts of a large message between two progress events. Default: 0, for none.
    uint32_t progress_interval;
    // Connections that one address may have. 0: three quarters of `max_incoming`, from 16 slots on. Default: 0.
    uint16_t max_per_address;
    // 0.
    uint16_t reserved;
    // The GUID of this endpoint. Default: 0, a random one.
    uint64_t guid;
    // Protocol versions that a server accepts, up to the first zero. Default: 6, 10, 11.
    uint8_t accepted_versions[8];
    // The password that clients need, at most 255 bytes. Default: none.
    const uint8_t *password;
    // The length of the password.
    size_t password_length;
    // A bad network between this endpoint and its socket, in both directions, such as "loss=5%,latency=50ms,jitter=10ms,seed=7". Default: null.
    const char *simulate;
    // The private key of a server, 32 bytes. Default: null, a server without security.
    const uint8_t *server_key;
    // The private key by which servers know this client, 32 bytes. Default: null.
    const uint8_t *identity_key;
    // The file of the private key of a server, instead of `server_key`. Default: null.
    const char *server_key_file;
    // The file of the private key of this client, instead of `identity_key`. Default: null.
    const char *identity_key_file;
    // The keys of connect tokens that a server accepts, 32 bytes each. Default: null, no token is needed.
    const uint8_t *token_keys;
    // The number of keys at `token_keys`.
    uint32_t token_key_count;
    // 1: the endpoint can open secure connections. Default: 0. A key implies it.
    uint8_t secure;
    // 1: a server with a key refuses plain clients. Default: 0.
    uint8_t requires_security;
    // 1: a server with a key refuses clients without an identity. Default: 0.
    uint8_t requires_identity;
    // A RAKWIRE_COOKIES_ value: how clients prove their address. Default: RAKWIRE_COOKIES_AUTOMATIC.
    uint8_t cookies;
    // Clients without a cookie, for RAKWIRE_COOKIES_UNDER_LOAD.
    uint16_t cookies_unvalidated;
    // Connections that one network may have (24 bits of IPv4, 48 of IPv6). 0: seven eighths of `max_incoming`. Default: 0.
    uint16_t max_per_network;
    // Half-open connections of one network (24 bits of IPv4, 64 of IPv6) without a cookie. Default: 8.
    uint16_t max_half_open_per_network;
    // Pongs per second in all. 0: no ping is answered. Default: 1,000.
    uint16_t pongs_per_second;
    // Pongs per second for one network. Default: 20.
    uint16_t pongs_per_network;
    // A RAKWIRE_CONGESTION_ value. Default: RAKWIRE_CONGESTION_DELAY.
    uint8_t congestion;
    // 0.
    uint8_t reserved_byte;
    // Least time between two connections of one address. Default: 0, for none.
    uint32_t connection_interval_ms;
    // Blocks that one connection may hold in each direction. Default: 0, no limit besides the shares.
    uint32_t connection_blocks;
    // Time between two pings of a connection. 0: no pings. Default: 5,000.
    uint32_t ping_interval_ms;
    // Bits per second that each connection may send. Default: 0, no limit.
    uint64_t outgoing_limit;
    // The file of a token key, next to `token_keys`. Default: null.
    const char *token_key_file;
    // Networks of trusted proxies: their PROXY headers (version 2) name the address of a client. Such as "10.0.0.7/32,fd00::/64".
    // Default: null.
    const char *trusted_proxies;
    // A file to append the keys of secure connections to, by which captures of them can be read. Only for development.
    // Default: null.
    const char *key_log_file;
} rakwire_options_t;

// An endpoint; 0 for none. The number is never used again after the endpoint is closed.
typedef uint64_t rakwire_endpoint_t;

// A connection of an endpoint; 0 for none.
typedef uint64_t rakwire_connection_t;

// A borrowed message; 0 for none.
typedef uint64_t rakwire_message_t;

// A client that waits for a decision; 0 for none.
typedef uint64_t rakwire_request_t;

// An IP address and port.
typedef struct {
    // 4 or 6; 0 for no address.
    uint8_t family;
    // 0.
    uint8_t reserved;
    // The port.
    uint16_t port;
    // The number of the interface of a link-local IPv6 address, otherwise 0.
    uint32_t scope;
    // The address, its first byte first. IPv4 uses the first four.
    uint8_t ip[16];
} rakwire_address_t;

// An event. Set `size` to sizeof(rakwire_event_t) before the first rakwire_poll(). Fields that an event does not name are 0.
typedef struct {
    // The size of the struct in bytes.
    uint32_t size;
    // A RAKWIRE_EVENT_ value.
    uint32_t kind;
    // The connection.
    rakwire_connection_t connection;
    // The message to release, or 0. It owns `data`.
    rakwire_message_t message;
    // The bytes of a message, pong or advertisement. They are valid until the message is released or the endpoint closed.
    const uint8_t *data;
    // The number of these bytes.
    size_t length;
    // The client of RAKWIRE_EVENT_INCOMING.
    rakwire_request_t request;
    // The GUID of the peer, where the event has one.
    uint64_t guid;
    // The round trip of a ping in microseconds.
    uint64_t latency_us;
    // The address of the peer, except for messages, receipts, progress and MTU, which name the connection.
    rakwire_address_t address;
    // The reason: a value of the group that `kind` names.
    int32_t reason;
    // The number that rakwire_send() returned.
    uint32_t receipt;
    // Parts of a large message that arrived.
    uint32_t progress_done;
    // Parts that the large message has.
    uint32_t progress_parts;
    // The number of the large message.
    uint16_t progress_message;
    // The new MTU.
    uint16_t mtu;
    // The reliability of a message. Receipts are not visible at the receiver.
    uint8_t reliability;
    // The ordering channel, 0 to 31.
    uint8_t channel;
    // A RAKWIRE_SIDE_ value.
    uint8_t side;
    // A RAKWIRE_OUTCOME_ value.
    uint8_t outcome;
    // The protocol version that the server uses, for RAKWIRE_FAILURE_VERSION.
    uint8_t server_version;
    // 1: the progress is of a message that this side sends.
    uint8_t outgoing;
    // 1: a refused client has proved its address.
    uint8_t validated;
    // 0.
    uint8_t reserved[5];
} rakwire_event_t;

// The options of one attempt to connect. Initialise them with rakwire_connect_options_init().
typedef struct {
    // The size of the struct in bytes.
    uint32_t size;
    // The time limit of the whole attempt. 0: no limit besides the attempts.
    uint32_t connect_timeout_ms;
    // Silence after which this connection is lost. 0: that of the endpoint.
    uint32_t timeout_ms;
    // Time between two requests. 0: that of the endpoint.
    uint32_t interval_ms;
    // Requests. 0: those of the endpoint.
    uint8_t attempts;
    // The RakNet protocol version. 0: that of the endpoint, or that of the server.
    uint8_t protocol_version;
    // A RAKWIRE_TRUST_ value. Default: RAKWIRE_TRUST_NONE, a plain connection.
    uint8_t trust;
    // The server of the token to connect to, from 0.
    uint8_t token_server;
    // 0.
    uint32_t reserved;
    // The password, at most 255 bytes, or null.
    const uint8_t *password;
    // The length of the password.
    size_t password_length;
    // The private key of this client's identity for this connection, 32 bytes, or null.
    const uint8_t *identity_key;
    // Data that the server gets with the identity, at most 95 bytes, or null.
    const uint8_t *identity_data;
    // The length of the data.
    size_t identity_data_length;
    // A connect token as text, with which `trust` and `password` are unused, or null.
    const char *token;
    // The public key of the server, for RAKWIRE_TRUST_KEY and RAKWIRE_TRUST_KNOWN.
    uint8_t server_key[32];
    // The hash of the next key of the server, for RAKWIRE_TRUST_KNOWN.
    uint8_t next_key_hash[24];
} rakwire_connect_options_t;

// A connection. Set `size` before the call.
typedef struct {
    // The size of the struct in bytes.
    uint32_t size;
    // The largest datagram of the path in bytes, with the headers of IP and UDP.
    uint16_t mtu;
    // A RAKWIRE_SIDE_ value.
    uint8_t side;
    // A RAKWIRE_STATE_ value.
    uint8_t state;
    // The address of the peer.
    rakwire_address_t address;
    // The GUID of the peer, once it is known.
    uint64_t guid;
    // The longest message in bytes that rakwire_send() accepts.
    uint64_t max_message_len;
} rakwire_connection_info_t;

// The counters of an endpoint, which only grow. Set `size` before the call.
typedef struct {
    // The size of the struct in bytes.
    uint32_t size;
    // Connections, including those that are being opened or closed.
    uint32_t connections;
    // Datagrams that were received.
    uint64_t datagrams_received;
    // Bytes of these.
    uint64_t bytes_received;
    // Datagrams of requests that were refused.
    uint64_t datagrams_refused;
    // Datagrams that were sent.
    uint64_t datagrams_sent;
    // Bytes of these.
    uint64_t bytes_sent;
    // Datagrams that the protocol dropped, for all reasons together.
    uint64_t datagrams_dropped;
    // Datagrams that were longer than any of RakNet.
    uint64_t too_long;
    // Datagrams that the system could not send.
    uint64_t send_failures;
    // Calls to receive that failed.
    uint64_t receive_failures;
    // Messages that the program has borrowed now.
    uint64_t borrowed_messages;
    // Clients that were dropped because too many waited for a decision.
    uint64_t incoming_overflows;
    // Datagrams of trusted proxies with a header that is wrong, or without room for their client.
    uint64_t proxy_headers_refused;
} rakwire_stats_t;

// The counters of a connection, which only grow, and measurements. Set `size` before the call.
typedef struct {
    // The size of the struct in bytes.
    uint32_t size;
    // The largest datagram of the path in bytes.
    uint32_t mtu;
    // Messages that were sent.
    uint64_t messages_sent;
    // Messages that were received.
    uint64_t messages_received;
    // Datagrams that were sent.
    uint64_t datagrams_sent;
    // Datagrams that were received.
    uint64_t datagrams_received;
    // Datagrams that counted as lost.
    uint64_t datagrams_lost;
    // Datagrams that were acknowledged.
    uint64_t datagrams_acknowledged;
    // Bytes of messages that were accepted for sending.
    uint64_t bytes_pushed;
    // Bytes of messages that were sent for the first time.
    uint64_t bytes_sent;
    // Bytes of messages that were sent again.
    uint64_t bytes_resent;
    // Bytes of datagrams that were sent.
    uint64_t actual_bytes_sent;
    // Bytes of datagrams that were received.
    uint64_t actual_bytes_received;
    // The smoothed round trip in microseconds.
    uint64_t round_trip_us;
    // The last ping in microseconds.
    uint64_t last_ping_us;
    // The mean of the last pings in microseconds.
    uint64_t average_ping_us;
    // The lowest ping in microseconds.
    uint64_t lowest_ping_us;
    // Bytes that may be in flight.
    uint32_t congestion_window;
    // Bytes in flight.
    uint32_t in_flight;
    // Messages that wait to be sent, by priority.
    uint32_t waiting_messages[4];
    // Bytes that wait to be sent, by priority.
    uint32_t waiting_bytes[4];
    // Share of the bytes that were sent again, 0 to 1.
    double loss;
    // The same in the last second.
    double loss_last_second;
    // Datagrams that counted as lost and arrived after all.
    uint64_t datagrams_late;
    // Bytes of messages that were delivered.
    uint64_t bytes_processed;
    // Bytes of messages that were received in vain: repeated or overtaken.
    uint64_t bytes_ignored;
    // `bytes_pushed` of the last full second.
    uint32_t bytes_pushed_last_second;
    // `bytes_sent` of the last full second.
    uint32_t bytes_sent_last_second;
    // `bytes_resent` of the last full second.
    uint32_t bytes_resent_last_second;
    // `bytes_processed` of the last full second.
    uint32_t bytes_processed_last_second;
    // `bytes_ignored` of the last full second.
    uint32_t bytes_ignored_last_second;
    // `actual_bytes_sent` of the last full second.
    uint32_t actual_bytes_sent_last_second;
    // `actual_bytes_received` of the last full second.
    uint32_t actual_bytes_received_last_second;
    // Lost messages that wait to be sent again.
    uint32_t waiting_resend_messages;
    // Bytes of these.
    uint32_t waiting_resend_bytes;
    // 1: `clock_difference_ms` is known.
    uint32_t has_clock_difference;
    // The clock of the peer minus that of this side in milliseconds.
    int64_t clock_difference_ms;
} rakwire_connection_stats_t;

// The contents of a new connect token. Initialise with zeros and set `size`.
typedef struct {
    // The size of the struct in bytes.
    uint32_t size;
    // The number of servers, 1 to 4.
    uint32_t server_count;
    // The user, for the backend.
    uint64_t user_id;
    // The expiry of the token, in seconds since 1970.
    uint64_t expires;
    // The public key of the client, 32 bytes.
    const uint8_t *client_key;
    // The public keys of the servers, 32 bytes each.
    const uint8_t *server_keys;
    // The addresses of the servers, such as "game.example.org:19132".
    const char *const *server_names;
    // Data for the server, at most 128 bytes, or null.
    const uint8_t *user_data;
    // The length of the data.
    size_t user_data_length;
    // The file of the token key instead of its bytes, or null.
    const char *token_key_file;
} rakwire_token_claims_t;

// The peer of a secure connection. Set `size` before the call.
typedef struct {
    // The size of the struct in bytes.
    uint32_t size;
    // 1: the connection is secure. Otherwise all other fields are 0.
    uint8_t is_secure;
    // 1: `key` is set. A client may be anonymous.
    uint8_t has_key;
    // 1: `next_key_hash` is set.
    uint8_t has_next_key;
    // The number of bytes at `identity_data`.
    uint8_t identity_data_length;
    // The public key of the server, or of the identity of the client.
    uint8_t key[32];
    // The hash of the key that the server will have next.
    uint8_t next_key_hash[24];
    // The data that the client sent with its identity.
    uint8_t identity_data[95];
    // 1: the client showed a connect token, to which the following fields belong.
    uint8_t has_token;
    // The user that the backend named.
    uint64_t token_user_id;
    // The expiry of the token, in seconds since 1970.
    uint64_t token_expires;
    // The data of the backend.
    uint8_t token_data[128];
    // The number of bytes at `token_data`.
    uint32_t token_data_length;
    // 0.
    uint32_t reserved;
} rakwire_secure_peer_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the description of the last failed call on this thread, or an empty string. It is valid until another call
// on this thread fails.
const char *rakwire_last_error(void);

// Returns a general sentence about a result code. It is valid for ever.
const char *rakwire_result_text(int32_t result);

// Sets the options of a client. Pass sizeof(rakwire_options_t) as `size`.
rakwire_result_t rakwire_options_init(rakwire_options_t *options, size_t size);

// Returns the version of the library, such as "0.1.0".
const char *rakwire_version(void);

// Returns the features of this build: RAKWIRE_FEATURE_ bits.
uint32_t rakwire_features(void);

// Opens an endpoint for this thread. Options null: those of rakwire_options_init().
rakwire_result_t rakwire_endpoint_open(const rakwire_options_t *options, rakwire_endpoint_t *endpoint);

// Closes an endpoint immediately. Peers are not notified: disconnect first, and update until rakwire_connections() is 0.
// Messages that are still borrowed become invalid.
rakwire_result_t rakwire_endpoint_close(rakwire_endpoint_t endpoint);

// Handles received datagrams and due timers, and sends. Call it once a frame, then rakwire_poll().
rakwire_result_t rakwire_update(rakwire_endpoint_t endpoint);

// Sends queued datagrams as far as congestion control allows. Call it at the end of a frame.
rakwire_result_t rakwire_flush(rakwire_endpoint_t endpoint);

// Stores the next event. Returns 1 with an event, 0 without, or an error. Release the message of each event that has one.
rakwire_result_t rakwire_poll(rakwire_endpoint_t endpoint,
                              rakwire_event_t *event);

// As rakwire_message_release() with the message of `event`, and rakwire_poll(), in one call. Set the event to zeros and its
// `size` before the first call, and its `message` to 0 to keep the message. After an error the event is unchanged.
rakwire_result_t rakwire_poll_next(rakwire_endpoint_t endpoint,
                                   rakwire_event_t *event);

// Stores the address of the socket with its actual port.
rakwire_result_t rakwire_local_address(rakwire_endpoint_t endpoint, rakwire_address_t *address);

// Stores the GUID of the endpoint.
rakwire_result_t rakwire_guid(rakwire_endpoint_t endpoint, uint64_t *guid);

// Parses "host:port", such as "192.0.2.1:19132", "[2001:db8::1]:19132" or "game.example.org:19132". A name blocks the thread
// until it is resolved.
rakwire_result_t rakwire_address_parse(const char *text,
                                       rakwire_address_t *address);

// Writes an address as text with its end, in at most 64 bytes. Returns the length without the end.
int rakwire_address_format(const rakwire_address_t *address, char *buffer, size_t capacity);

// Waits until a datagram has arrived or a timer is due, at most `timeout_ms`, or RAKWIRE_FOREVER. Returns 1 if there is
// something to do for rakwire_update(), and 0 after the time limit or a signal. Poll all events first.
rakwire_result_t rakwire_wait(rakwire_endpoint_t endpoint,
                              uint32_t timeout_ms);

// Stores in how many microseconds the endpoint must be updated if no datagram arrives. Returns 1, or 0 without a timer.
rakwire_result_t rakwire_timeout(rakwire_endpoint_t endpoint,
                                 uint64_t *microseconds);

// Stores the socket of the endpoint, to wait for it by poll(), select() or the like: a file descriptor, or a SOCKET in
// Windows. Only the library may read from it, write to it or close it.
rakwire_result_t rakwire_socket(rakwire_endpoint_t endpoint,
                                uint64_t *socket);

// Sets the options of an attempt to their defaults. Pass sizeof(rakwire_connect_options_t) as `size`.
rakwire_result_t rakwire_connect_options_init(rakwire_connect_options_t *options, size_t size);

// Starts to open a connection to "host:port". An event reports when it is open, or why it failed. A name blocks the thread until
// it is resolved; of its addresses each is tried until one answers. Options null: the defaults. Address null: that of the server in the connect token of the options.
rakwire_result_t rakwire_connect(rakwire_endpoint_t endpoint,
                                 const char *address,
                                 const rakwire_connect_options_t *options,
                                 rakwire_connection_t *connection);

// Accepts a client. RAKWIRE_EVENT_CONNECTED follows when its handshake is finished.
rakwire_result_t rakwire_accept(rakwire_endpoint_t endpoint, rakwire_request_t request);

// Refuses a client: the server is full. It may retry.
rakwire_result_t rakwire_refuse(rakwire_endpoint_t endpoint, rakwire_request_t request);

// Does not answer a client. If it retries, that is a new request.
rakwire_result_t rakwire_ignore(rakwire_endpoint_t endpoint, rakwire_request_t request);

// Begins to close a connection or an attempt. Reliable messages that were sent before arrive first. An event reports the end.
rakwire_result_t rakwire_disconnect(rakwire_endpoint_t endpoint,
                                    rakwire_connection_t connection);

// Sends a last message and starts to end the connection. The connection ends also if the message is refused.
rakwire_result_t rakwire_disconnect_with(rakwire_endpoint_t endpoint,
                                         rakwire_connection_t connection,
                                         const uint8_t *data,
                                         size_t length,
                                         uint8_t reliability,
                                         uint8_t channel,
                                         uint8_t priority);

// Changes the silence after which a connection is lost.
rakwire_result_t rakwire_set_timeout(rakwire_endpoint_t endpoint,
                                     rakwire_connection_t connection,
                                     uint32_t timeout_ms);

// Returns the number of connections, including those that are being opened or closed. Stores their numbers in an array with
// room for `capacity`, which may be null with 0. With less room than connections, RAKWIRE_ERROR_BUFFER, unless `capacity` is 0.
rakwire_result_t rakwire_connections(rakwire_endpoint_t endpoint,
                                     rakwire_connection_t *connections,
                                     size_t capacity);

// Stores the address, GUID and state of a connection, the MTU of its path and the longest message that it accepts.
rakwire_result_t rakwire_connection_info(rakwire_endpoint_t endpoint,
                                         rakwire_connection_t connection,
                                         rakwire_connection_info_t *info);

// Sends a copy of a message. Its first byte is at least 0x1B; bytes from 0x86 are free for applications.
// `receipt` may be null; a message without a receipt stores 0. It leaves with rakwire_flush() or rakwire_update().
rakwire_result_t rakwire_send(rakwire_endpoint_t endpoint,
                              rakwire_connection_t connection,
                              const uint8_t *data,
                              size_t length,
                              uint8_t reliability,
                              uint8_t channel,
                              uint8_t priority,
                              uint32_t *receipt);

// Sends a message to all open connections but `except`, which may be 0. Returns how many took it; those without room did
// not, and `refused`, which may be null, counts these.
rakwire_result_t rakwire_broadcast(rakwire_endpoint_t endpoint,
                                   rakwire_connection_t except,
                                   const uint8_t *data,
                                   size_t length,
                                   uint8_t reliability,
                                   uint8_t channel,
                                   uint8_t priority,
                                   uint32_t *refused);

// Releases the message of an event. Its bytes become invalid. 0 is allowed and ignored.
rakwire_result_t rakwire_message_release(rakwire_endpoint_t endpoint, rakwire_message_t message);

// Pings a server without a connection. RAKWIRE_EVENT_PONG follows if it answers. `is_broadcast` 1: the address is a broadcast
// or multicast address, and each server that answers within five seconds is an event. `only_open` 1, with `is_broadcast`:
// servers that are full do not answer.
rakwire_result_t rakwire_ping(rakwire_endpoint_t endpoint,
                              const rakwire_address_t *address,
                              uint8_t is_broadcast,
                              uint8_t only_open);

// Sets the data with which the endpoint answers pings, at most 399 bytes.
rakwire_result_t rakwire_set_advertisement(rakwire_endpoint_t endpoint, const uint8_t *data, size_t length);

// Sends 1 to 399 bytes once to a peer without a connection, which must have `out_of_band` on.
rakwire_result_t rakwire_send_out_of_band(rakwire_endpoint_t endpoint,
                                          const rakwire_address_t *address,
                                          const uint8_t *data,
                                          size_t length);

// Advertises the endpoint once to a peer without a connection, with 0 to 398 bytes. It must have `out_of_band` on.
rakwire_result_t rakwire_advertise(rakwire_endpoint_t endpoint,
                                   const rakwire_address_t *address,
                                   const uint8_t *data,
                                   size_t length);

// Sets the password that new clients need, at most 255 bytes. Length 0: none. It is not encrypted on the network.
rakwire_result_t rakwire_set_password(rakwire_endpoint_t endpoint,
                                      const uint8_t *password,
                                      size_t length);

// Bans an address, a wildcard such as "192.0.2.*" or a prefix such as "2001:db8::/32" for a time, 0 for ever. Connections
// that exist stay. There are at most 64 bans.
rakwire_result_t rakwire_ban(rakwire_endpoint_t endpoint,
                             const char *addresses,
                             uint32_t duration_ms);

// Ends a ban. Returns 1 if there was one, otherwise 0.
int rakwire_unban(rakwire_endpoint_t endpoint, const char *addresses);

// Returns 1 if the address is banned now, otherwise 0.
int rakwire_is_banned(rakwire_endpoint_t endpoint, const rakwire_address_t *address);

// Stores the counters of an endpoint.
rakwire_result_t rakwire_stats(rakwire_endpoint_t endpoint, rakwire_stats_t *stats);

// Stores the counters and measurements of a connection.
rakwire_result_t rakwire_connection_stats(rakwire_endpoint_t endpoint,
                                          rakwire_connection_t connection,
                                          rakwire_connection_stats_t *stats);

// Stores how many datagrams were dropped for each reason, in an array with room for `capacity`, which may be null with 0. Returns
// the number of reasons; those beyond the array are left out. rakwire_drop_name() has their names.
rakwire_result_t rakwire_drops(rakwire_endpoint_t endpoint,
                               uint64_t *counts,
                               size_t capacity);

// Returns the name of a reason of rakwire_drops(), such as "TooShort", or an empty string. It is valid for ever.
const char *rakwire_drop_name(uint32_t reason);

// Writes advice for the operator with its end, once the counters show that clients cannot connect. Returns its length without
// the end; 0 for no advice. 512 bytes are always enough.
rakwire_result_t rakwire_advice(rakwire_endpoint_t endpoint,
                                char *buffer,
                                size_t capacity);

// Returns a sentence about the `reason` of an event of this `kind`. It is valid for ever.
const char *rakwire_reason_text(uint32_t kind, int32_t reason);

// Creates a new private key of 32 bytes and stores its public key, which may be null.
rakwire_result_t rakwire_key_generate(uint8_t *private_key, uint8_t *public_key);

// Stores the public key of a private key, both 32 bytes.
rakwire_result_t rakwire_public_key(const uint8_t *private_key, uint8_t *public_key);

// Creates a key and writes it to a file that does not exist yet, which only its owner may read. Stores the public key, which may
// be null.
rakwire_result_t rakwire_key_file_create(const char *path,
                                         uint8_t *public_key);

// Stores the public key of a file that rakwire_key_file_create() wrote.
rakwire_result_t rakwire_key_file_public(const char *path, uint8_t *public_key);

// Creates a token key and writes it to a file that does not exist yet, which only its owner may read. The server and its backend
// need the same key.
rakwire_result_t rakwire_token_key_file_create(const char *path);

// Creates a connect token with a token key of 32 bytes, or null and `token_key_file`, as a backend does, and writes it as a string with its end. Stores the
// length with the end; 4,096 bytes are always enough.
rakwire_result_t rakwire_token_create(const uint8_t *token_key,
                                      const rakwire_token_claims_t *claims,
                                      char *buffer,
                                      size_t capacity,
                                      size_t *length);

// Stores the known facts about the peer of a connection: its key, identity and connect token.
rakwire_result_t rakwire_secure_peer(rakwire_endpoint_t endpoint,
                                     rakwire_connection_t connection,
                                     rakwire_secure_peer_t *peer);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RAKWIRE_H */
