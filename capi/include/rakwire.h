// The C API of rakwire: RakNet over UDP. Generated from the sources of rakwire-c by cbindgen; do not edit.
//
// An endpoint works only while one of its functions is called. In each frame, call rakwire_update(), rakwire_poll() until it
// returns 0, rakwire_send(), and rakwire_flush(). There are no callbacks.
//
// Threads: an endpoint belongs to the thread that opened it. Calls from other threads return RAKWIRE_ERROR_THREAD. When the
// thread exits, the endpoint is closed. Different threads may use different endpoints at the same time.
//
// Results: 0 or a positive count means success. A negative result is a RAKWIRE_ERROR_ value, described by rakwire_last_error().
// A failed call has no effect unless its function documents one.
//
// Handles are numbers that are never reused. A handle that is 0, closed or of another endpoint returns RAKWIRE_ERROR_HANDLE or
// RAKWIRE_ERROR_NO_CONNECTION.
//
// Pointers: a pointer may be null only where documented, or if its length is 0. Otherwise null returns RAKWIRE_ERROR_NULL.
// The library does not use memory passed to a function after the call.
//
// Structs begin with their size, so that programs and libraries of different versions are compatible. Initialise a struct with its
// _init function, or set it to zero and then set `size`: the library does not write fields that it does not know. A size that no
// version can have returns RAKWIRE_ERROR_SIZE.

#ifndef RAKWIRE_H
#define RAKWIRE_H

#include <stddef.h>
#include <stdint.h>

// The call succeeded.
#define RAKWIRE_OK 0

// A required pointer is null.
#define RAKWIRE_ERROR_NULL -1

// A struct pointer is not aligned.
#define RAKWIRE_ERROR_MISALIGNED -2

// The `size` field of a struct does not match any version of that struct.
#define RAKWIRE_ERROR_SIZE -3

// The endpoint, message or request handle is 0, was closed, released or decided, belongs to another endpoint, or never existed.
#define RAKWIRE_ERROR_HANDLE -4

// The endpoint belongs to another thread.
#define RAKWIRE_ERROR_THREAD -5

// An argument is outside its range.
#define RAKWIRE_ERROR_ARGUMENT -6

// A string is not valid UTF-8, or is not NUL-terminated within 1,024 bytes.
#define RAKWIRE_ERROR_STRING -7

// The endpoint has no such connection.
#define RAKWIRE_ERROR_NO_CONNECTION -8

// The connection is not open.
#define RAKWIRE_ERROR_NOT_CONNECTED -9

// The address cannot be parsed or resolved, or is not a valid destination.
#define RAKWIRE_ERROR_ADDRESS -10

// An IPv4 socket cannot send to an IPv6 address.
#define RAKWIRE_ERROR_ADDRESS_FAMILY -11

// The system could not bind the socket, for example because the port is in use.
#define RAKWIRE_ERROR_BIND -12

// The endpoint already has a connection to this address.
#define RAKWIRE_ERROR_ALREADY_CONNECTED -13

// The endpoint has reached its limit of connections, pings or bans.
#define RAKWIRE_ERROR_FULL -14

// The message is empty; it needs at least one byte.
#define RAKWIRE_ERROR_EMPTY -15

// The first byte of a message is below 0x1B, which RakNet reserves.
#define RAKWIRE_ERROR_RESERVED_ID -16

// The message, password or other data is longer than allowed.
#define RAKWIRE_ERROR_TOO_LONG -17

// The send memory of the connection or endpoint is full. Retry after rakwire_update().
#define RAKWIRE_ERROR_NO_ROOM -18

// This build of the library was compiled without the feature.
#define RAKWIRE_ERROR_UNSUPPORTED -19

// The operating system returned an error, for example for random bytes or a file.
#define RAKWIRE_ERROR_SYSTEM -20

// The caller's buffer is too small. The required length is stored in the length argument, if the function has one.
#define RAKWIRE_ERROR_BUFFER -21

// The combination of keys, trust, identity and token is invalid.
#define RAKWIRE_ERROR_SECURITY -22

// A bug in the library. Memory stays valid, but close the endpoint.
#define RAKWIRE_ERROR_BUG -23

// Sent once: may be lost or reordered, but never delivered twice.
#define RAKWIRE_UNRELIABLE 0

// Sent once; dropped if a newer message on its channel has already arrived.
#define RAKWIRE_UNRELIABLE_SEQUENCED 1

// Resent until acknowledged; delivered exactly once, in any order.
#define RAKWIRE_RELIABLE 2

// Resent until acknowledged; delivered exactly once, in the sending order of its channel.
#define RAKWIRE_RELIABLE_ORDERED 3

// Resent until acknowledged; dropped on arrival if a newer message on its channel has already arrived.
#define RAKWIRE_RELIABLE_SEQUENCED 4

// Like RAKWIRE_UNRELIABLE, with an event that reports whether the message was acknowledged or lost.
#define RAKWIRE_UNRELIABLE_WITH_RECEIPT 5

// Like RAKWIRE_RELIABLE, with an event when the message is acknowledged.
#define RAKWIRE_RELIABLE_WITH_RECEIPT 6

// Like RAKWIRE_RELIABLE_ORDERED, with an event when the message is acknowledged.
#define RAKWIRE_RELIABLE_ORDERED_WITH_RECEIPT 7

// Sent before all other priorities.
#define RAKWIRE_PRIORITY_IMMEDIATE 0

// Sent before medium and low priority.
#define RAKWIRE_PRIORITY_HIGH 1

// The default for most messages.
#define RAKWIRE_PRIORITY_MEDIUM 2

// Sent after all other priorities.
#define RAKWIRE_PRIORITY_LOW 3

// A connection opened.
#define RAKWIRE_EVENT_CONNECTED 1

// A connection attempt failed; `reason` is a RAKWIRE_FAILURE_ value.
#define RAKWIRE_EVENT_CONNECT_FAILED 2

// A connection closed; `reason` is a RAKWIRE_DISCONNECT_ value.
#define RAKWIRE_EVENT_DISCONNECTED 3

// A message arrived; `data`, `length` and `message` are set.
#define RAKWIRE_EVENT_MESSAGE 4

// A message with a receipt was acknowledged or lost; `receipt` and `outcome` are set.
#define RAKWIRE_EVENT_RECEIPT 5

// Parts of a split message were sent or received; `progress_done`, `progress_parts`, `progress_message` and `outgoing` are
// set.
#define RAKWIRE_EVENT_PROGRESS 6

// The maximum datagram size of the path changed; `mtu` is set.
#define RAKWIRE_EVENT_MTU_CHANGED 7

// A server answered a ping; `latency_us`, and `data` with its advertisement, are set.
#define RAKWIRE_EVENT_PONG 8

// A peer without a connection sent an out-of-band message; `data` is set.
#define RAKWIRE_EVENT_OUT_OF_BAND 9

// A peer without a connection sent an advertisement; `data` is set.
#define RAKWIRE_EVENT_ADVERTISEMENT 10

// A client requests a connection to an endpoint with `defer_incoming`; `request` is set.
#define RAKWIRE_EVENT_INCOMING 11

// A client was refused; `reason` is a RAKWIRE_REFUSED_ value.
#define RAKWIRE_EVENT_REFUSED 12

// The server did not answer any request.
#define RAKWIRE_FAILURE_NO_ANSWER 1

// No socket is bound to the address, or there is no route to it.
#define RAKWIRE_FAILURE_UNREACHABLE 2

// The server answered, but the handshake did not complete in time.
#define RAKWIRE_FAILURE_HANDSHAKE_TIMEOUT 3

// The server aborted the connection attempt.
#define RAKWIRE_FAILURE_ATTEMPT_FAILED 4

// The server already has a connection with this address or GUID.
#define RAKWIRE_FAILURE_ALREADY_CONNECTED 5

// The server is full, or the application refused the client.
#define RAKWIRE_FAILURE_SERVER_FULL 6

// The server has banned this address.
#define RAKWIRE_FAILURE_BANNED 7

// The server refuses this address because it connected too recently.
#define RAKWIRE_FAILURE_RECENTLY_CONNECTED 8

// The server uses another protocol version; `server_version` is set.
#define RAKWIRE_FAILURE_VERSION 9

// The server requires an encrypted connection.
#define RAKWIRE_FAILURE_SECURITY_REQUIRED 10

// The server does not support secure connections.
#define RAKWIRE_FAILURE_NO_SECURITY 11

// The server requires an identity.
#define RAKWIRE_FAILURE_IDENTITY_REQUIRED 12

// The server rejected the identity.
#define RAKWIRE_FAILURE_INVALID_IDENTITY 13

// The public key of the server is not the expected one.
#define RAKWIRE_FAILURE_PUBLIC_KEY 14

// The server rejected the password or connect token.
#define RAKWIRE_FAILURE_PASSWORD 15

// The server closed the connection before it was open.
#define RAKWIRE_FAILURE_CLOSED 16

// This side cancelled the attempt.
#define RAKWIRE_FAILURE_CANCELLED 17

// This endpoint disconnected.
#define RAKWIRE_DISCONNECT_LOCAL 1

// The peer disconnected.
#define RAKWIRE_DISCONNECT_REMOTE 2

// Nothing was received from the peer within the timeout.
#define RAKWIRE_DISCONNECT_LOST 3

// The peer sent a message that exceeds the memory of a connection.
#define RAKWIRE_DISCONNECT_MESSAGE_TOO_LARGE 4

// This endpoint sent a message that exceeds the memory of the peer.
#define RAKWIRE_DISCONNECT_SENT_TOO_LARGE 5

// The path MTU fell below the part size of a split message.
#define RAKWIRE_DISCONNECT_PATH_TOO_NARROW 6

// Out-of-order messages from the peer exceed the memory of a connection.
#define RAKWIRE_DISCONNECT_RECEIVE_MEMORY 7

// The password was wrong.
#define RAKWIRE_REFUSED_PASSWORD 1

// The client has no identity.
#define RAKWIRE_REFUSED_NO_IDENTITY 2

// The identity is invalid.
#define RAKWIRE_REFUSED_IDENTITY 3

// The client has no connect token from this backend.
#define RAKWIRE_REFUSED_NO_TOKEN 4

// The connect token has expired.
#define RAKWIRE_REFUSED_TOKEN_EXPIRED 5

// The connect token does not list this server.
#define RAKWIRE_REFUSED_TOKEN_SERVER 6

// The connect token was issued to another client.
#define RAKWIRE_REFUSED_TOKEN_CLIENT 7

// The connect token was used before.
#define RAKWIRE_REFUSED_TOKEN_USED 8

// The server's table of used connect tokens is full.
#define RAKWIRE_REFUSED_TOKEN_STORE 9

// A reason that this version of the library does not know.
#define RAKWIRE_REASON_OTHER 255

// This endpoint opened the connection.
#define RAKWIRE_SIDE_CLIENT 0

// The peer opened the connection.
#define RAKWIRE_SIDE_SERVER 1

// The connection is opening.
#define RAKWIRE_STATE_CONNECTING 0

// The connection is open.
#define RAKWIRE_STATE_CONNECTED 1

// The connection is closing.
#define RAKWIRE_STATE_DISCONNECTING 2

// The connection is closed.
#define RAKWIRE_STATE_DISCONNECTED 3

// The peer acknowledged the message.
#define RAKWIRE_OUTCOME_ACKNOWLEDGED 0

// The message was unreliable and not acknowledged.
#define RAKWIRE_OUTCOME_LOST 1

// An unencrypted connection.
#define RAKWIRE_TRUST_NONE 0

// A secure connection to any server. Protects only against eavesdropping.
#define RAKWIRE_TRUST_ANY 1

// A secure connection to the server with the key `server_key`.
#define RAKWIRE_TRUST_KEY 2

// A secure connection to the server with the key `server_key`, or with the next key whose hash is `next_key_hash`.
#define RAKWIRE_TRUST_KNOWN 3

// Cookies are required once a number of clients have connected without one: an eighth of `max_incoming`, 2 to 16.
#define RAKWIRE_COOKIES_AUTOMATIC 0

// Every client must return a cookie. Some RakNet libraries do not support cookies.
#define RAKWIRE_COOKIES_REQUIRED 1

// Cookies are required once `cookies_unvalidated` clients have connected without one.
#define RAKWIRE_COOKIES_UNDER_LOAD 2

// No cookies. An attacker with forged addresses can fill the server.
#define RAKWIRE_COOKIES_OFF 3

// Delay-based: reacts to queueing delay, so that losses without queueing do not reduce the rate.
#define RAKWIRE_CONGESTION_DELAY 0

// Loss-based: treats every loss as congestion (RFC 6582).
#define RAKWIRE_CONGESTION_NEW_RENO 1

// No time limit for rakwire_wait().
#define RAKWIRE_FOREVER 4294967295

// A bit of rakwire_features(): secure connections and connect tokens.
#define RAKWIRE_FEATURE_SECURE 1

// A bit of rakwire_features(): the network simulator.
#define RAKWIRE_FEATURE_SIM 2

// The result of a call: RAKWIRE_OK, a positive count where documented, or a negative RAKWIRE_ERROR_ value.
typedef int32_t rakwire_result_t;

// The options of an endpoint. Initialise them with rakwire_options_init().
typedef struct {
    // The size of the struct in bytes.
    uint32_t size;
    // The RakNet protocol version for outgoing connections. Default: 6.
    uint8_t protocol_version;
    // 1: out-of-band messages and advertisements from peers without a connection become events. Default: 0.
    uint8_t out_of_band;
    // 1: each new client waits for rakwire_accept(), rakwire_refuse() or rakwire_ignore(). Default: 0.
    uint8_t defer_incoming;
    // 1: a connection attempt fails immediately when ICMP reports the address as unreachable. Default: 1.
    uint8_t fail_on_unreachable;
    // The address to bind, such as "0.0.0.0:19132" or "[::]:19132". Default: null, any IPv4 port.
    const char *bind_address;
    // The maximum number of incoming connections. Default: 0, a client.
    uint16_t max_incoming;
    // The maximum MTU in bytes, 576 to 1492. Default: 1492.
    uint16_t mtu;
    // The maximum number of connections in both directions. 0: 64, or `max_incoming` if that is more.
    uint32_t max_connections;
    // The number of 512-byte blocks for queued and unacknowledged messages. 0: enough for `max_connections`.
    uint32_t blocks;
    // The maximum length of a sent message in bytes. Default: 4,000,000.
    uint32_t max_message_len;
    // The time without a datagram from the peer after which a connection with unacknowledged data is lost. Default: 10,000.
    uint32_t timeout_ms;
    // The maximum time for which a closing connection waits for acknowledgements. Default: 5,000.
    uint32_t close_timeout_ms;
    // The maximum duration of the handshake after the server's first reply. Default: 10,000.
    uint32_t handshake_timeout_ms;
    // The time after which a queued unreliable message is dropped. Default: 1,000.
    uint32_t unreliable_timeout_ms;
    // The interval between transmissions of the first request of an attempt. Default: 500.
    uint32_t connect_interval_ms;
    // The number of retransmissions of the first request of an attempt, 1 to 255; clamped to 3 to 254. Default: 12.
    uint32_t connect_attempts;
    // The number of parts of a split message between progress events. Default: 0, no events.
    uint32_t progress_interval;
    // The maximum number of incoming connections per address. 0: three quarters of `max_incoming`, or no limit if
    // `max_incoming` is below 16. Default: 0.
    uint16_t max_per_address;
    // Must be 0.
    uint16_t reserved;
    // The GUID of this endpoint. Default: 0, a random GUID.
    uint64_t guid;
    // The protocol versions that a server accepts, up to the first 0. Default: 6, 10, 11.
    uint8_t accepted_versions[8];
    // The password that clients must send, at most 255 bytes. Default: null, none.
    const uint8_t *password;
    // The length of the password in bytes.
    size_t password_length;
    // Simulated network conditions in both directions, such as "loss=5%,latency=50ms,jitter=10ms,seed=7". Default: null, none.
    const char *simulate;
    // The private key of a server, 32 bytes. Default: null, a server without secure connections.
    const uint8_t *server_key;
    // The private key that identifies this client to servers, 32 bytes. Default: null.
    const uint8_t *identity_key;
    // A file with the private key of a server, instead of `server_key`. Default: null.
    const char *server_key_file;
    // A file with the private key of this client, instead of `identity_key`. Default: null.
    const char *identity_key_file;
    // The connect token keys that a server accepts, 32 bytes each. Default: null; clients need no token.
    const uint8_t *token_keys;
    // The number of keys at `token_keys`, at most 4, or 3 with `token_key_file`.
    uint32_t token_key_count;
    // 1: the endpoint can open secure connections. A key implies it. Default: 0.
    uint8_t secure;
    // 1: a server with a key refuses unencrypted clients. Default: 0.
    uint8_t requires_security;
    // 1: a server with a key refuses clients without an identity. Default: 0.
    uint8_t requires_identity;
    // A RAKWIRE_COOKIES_ value: when clients must return a cookie to prove their address. Default: RAKWIRE_COOKIES_AUTOMATIC.
    uint8_t cookies;
    // The number of clients admitted without a cookie, for RAKWIRE_COOKIES_UNDER_LOAD.
    uint16_t cookies_unvalidated;
    // The maximum number of incoming connections per network (/24 in IPv4, /48 in IPv6). 0: seven eighths of `max_incoming`,
    // or no limit if `max_incoming` is below 16. Default: 0.
    uint16_t max_per_network;
    // The maximum number of handshakes without a cookie per network (/24 in IPv4, /64 in IPv6). Default: 8.
    uint16_t max_half_open_per_network;
    // The maximum number of pongs per second. 0: pings are not answered. Default: 1,000.
    uint16_t pongs_per_second;
    // The maximum number of pongs per second and network (/24 in IPv4, /64 in IPv6). Default: 20.
    uint16_t pongs_per_network;
    // A RAKWIRE_CONGESTION_ value. Default: RAKWIRE_CONGESTION_DELAY.
    uint8_t congestion;
    // Must be 0.
    uint8_t reserved_byte;
    // The minimum time between connections from the same address. Default: 0, none.
    uint32_t connection_interval_ms;
    // The maximum number of blocks per connection and direction. Default: 0, limited only by `blocks`.
    uint32_t connection_blocks;
    // The interval between pings on a connection. 0: no pings. Default: 5,000.
    uint32_t ping_interval_ms;
    // The maximum sending rate per connection in bits per second. Default: 0, unlimited.
    uint64_t outgoing_limit;
    // A file with a connect token key, in addition to `token_keys`. Default: null.
    const char *token_key_file;
    // The networks of trusted proxies, such as "10.0.0.7/32,fd00::/64". Their PROXY headers (version 2) contain the client's
    // address. Default: null.
    const char *trusted_proxies;
    // A file to which the keys of secure connections are appended, for decrypting captures. Only for development. Default:
    // null.
    const char *key_log_file;
} rakwire_options_t;

// A handle of an endpoint; 0 is none. Handles are not reused after the endpoint is closed.
typedef uint64_t rakwire_endpoint_t;

// A handle of a connection of an endpoint; 0 is none.
typedef uint64_t rakwire_connection_t;

// A handle of a borrowed message; 0 is none.
typedef uint64_t rakwire_message_t;

// A handle of a client that waits for a decision; 0 is none.
typedef uint64_t rakwire_request_t;

// An IP address and port.
typedef struct {
    // The address family: 4 or 6; 0 if there is no address.
    uint8_t family;
    // Must be 0.
    uint8_t reserved;
    // The UDP port, in host byte order.
    uint16_t port;
    // The interface number of a link-local IPv6 address, otherwise 0.
    uint32_t scope;
    // The address in network byte order. IPv4 uses the first four bytes.
    uint8_t ip[16];
} rakwire_address_t;

// An event. Set `size` to sizeof(rakwire_event_t) before the first rakwire_poll(). Fields that do not apply to an event are 0.
typedef struct {
    // The size of the struct in bytes.
    uint32_t size;
    // A RAKWIRE_EVENT_ value.
    uint32_t kind;
    // The connection of the event, or 0.
    rakwire_connection_t connection;
    // The handle of the message to release, or 0. `data` is valid until its release.
    rakwire_message_t message;
    // The bytes of a message, pong or advertisement. Valid until the message is released or the endpoint closed.
    const uint8_t *data;
    // The length of `data` in bytes.
    size_t length;
    // The client of RAKWIRE_EVENT_INCOMING.
    rakwire_request_t request;
    // The GUID of the peer, if the event has one.
    uint64_t guid;
    // The round-trip time of a ping in microseconds.
    uint64_t latency_us;
    // The address of the peer. Not set for messages, receipts, progress and MTU changes; use `connection`.
    rakwire_address_t address;
    // The reason: a RAKWIRE_FAILURE_, RAKWIRE_DISCONNECT_ or RAKWIRE_REFUSED_ value, depending on `kind`.
    int32_t reason;
    // The receipt number that rakwire_send() stored.
    uint32_t receipt;
    // The number of parts received or acknowledged so far.
    uint32_t progress_done;
    // The total number of parts of the message.
    uint32_t progress_parts;
    // An id of the split message, unique among the incomplete messages of its direction.
    uint16_t progress_message;
    // The new MTU in bytes, including IP and UDP headers.
    uint16_t mtu;
    // The reliability of a received message, without receipts.
    uint8_t reliability;
    // The ordering channel, 0 to 31.
    uint8_t channel;
    // A RAKWIRE_SIDE_ value.
    uint8_t side;
    // A RAKWIRE_OUTCOME_ value.
    uint8_t outcome;
    // The protocol version of the server, for RAKWIRE_FAILURE_VERSION.
    uint8_t server_version;
    // 1: the progress is of a sent message. 0: of a received message.
    uint8_t outgoing;
    // 1: the refused client has proved that it receives datagrams at its address.
    uint8_t validated;
    // Reserved.
    uint8_t reserved[5];
} rakwire_event_t;

// The options of a connection attempt. Initialise them with rakwire_connect_options_init().
typedef struct {
    // The size of the struct in bytes.
    uint32_t size;
    // The maximum duration of the attempt. 0: limited only by `attempts`.
    uint32_t connect_timeout_ms;
    // The timeout of the open connection, `timeout_ms` of rakwire_options_t. 0: the value of the endpoint.
    uint32_t timeout_ms;
    // The interval between transmissions of the first request. 0: the value of the endpoint.
    uint32_t interval_ms;
    // The number of retransmissions of the first request, clamped to 3 to 254. 0: the value of the endpoint.
    uint8_t attempts;
    // The RakNet protocol version. 0: the version of the endpoint, or the server's if that differs.
    uint8_t protocol_version;
    // A RAKWIRE_TRUST_ value. Default: RAKWIRE_TRUST_NONE, an unencrypted connection.
    uint8_t trust;
    // The index of the server in the token to connect to, from 0.
    uint8_t token_server;
    // Must be 0.
    uint32_t reserved;
    // The password, at most 255 bytes, or null.
    const uint8_t *password;
    // The length of the password in bytes.
    size_t password_length;
    // The private key that identifies this client on this connection, 32 bytes, or null.
    const uint8_t *identity_key;
    // Data sent to the server with the identity, at most 95 bytes, or null.
    const uint8_t *identity_data;
    // The length of the identity data in bytes.
    size_t identity_data_length;
    // A connect token as text, or null. With a token, `trust` and `password` are ignored.
    const char *token;
    // The public key of the server, for RAKWIRE_TRUST_KEY and RAKWIRE_TRUST_KNOWN.
    uint8_t server_key[32];
    // The hash of the server's next key, for RAKWIRE_TRUST_KNOWN.
    uint8_t next_key_hash[24];
} rakwire_connect_options_t;

// The state of a connection. Set `size` before the call.
typedef struct {
    // The size of the struct in bytes.
    uint32_t size;
    // The maximum datagram size of the path in bytes, including IP and UDP headers.
    uint16_t mtu;
    // A RAKWIRE_SIDE_ value.
    uint8_t side;
    // A RAKWIRE_STATE_ value.
    uint8_t state;
    // The address of the peer.
    rakwire_address_t address;
    // The GUID of the peer, or UINT64_MAX while it is unknown.
    uint64_t guid;
    // The maximum message length in bytes that rakwire_send() accepts.
    uint64_t max_message_len;
} rakwire_connection_info_t;

// Cumulative counters of an endpoint. Set `size` before the call.
typedef struct {
    // The size of the struct in bytes.
    uint32_t size;
    // The current number of connections, including those that are opening or closing.
    uint32_t connections;
    // Datagrams that were received.
    uint64_t datagrams_received;
    // Bytes of the received datagrams.
    uint64_t bytes_received;
    // Datagrams of refused connection requests.
    uint64_t datagrams_refused;
    // Datagrams that were sent.
    uint64_t datagrams_sent;
    // Bytes of the sent datagrams.
    uint64_t bytes_sent;
    // Datagrams that the protocol dropped, for any reason.
    uint64_t datagrams_dropped;
    // Datagrams longer than the longest RakNet datagram.
    uint64_t too_long;
    // Datagrams that the operating system failed to send.
    uint64_t send_failures;
    // Receive calls to the operating system that failed.
    uint64_t receive_failures;
    // The number of messages currently borrowed by the program.
    uint64_t borrowed_messages;
    // Clients that were dropped because too many were waiting for a decision.
    uint64_t incoming_overflows;
    // Datagrams from trusted proxies that were dropped because of an invalid header or a full client table.
    uint64_t proxy_headers_refused;
} rakwire_stats_t;

// Cumulative counters and measurements of a connection. Set `size` before the call.
typedef struct {
    // The size of the struct in bytes.
    uint32_t size;
    // The maximum datagram size of the path in bytes, including IP and UDP headers.
    uint32_t mtu;
    // Messages that were sent.
    uint64_t messages_sent;
    // Messages that were received.
    uint64_t messages_received;
    // Datagrams that were sent.
    uint64_t datagrams_sent;
    // Datagrams that were received.
    uint64_t datagrams_received;
    // Datagrams that were declared lost.
    uint64_t datagrams_lost;
    // Datagrams that were acknowledged.
    uint64_t datagrams_acknowledged;
    // Message bytes that rakwire_send() accepted.
    uint64_t bytes_pushed;
    // Message bytes that were sent for the first time.
    uint64_t bytes_sent;
    // Message bytes that were retransmitted.
    uint64_t bytes_resent;
    // Bytes of all sent datagrams, without IP and UDP headers.
    uint64_t actual_bytes_sent;
    // Bytes of all received datagrams, without IP and UDP headers.
    uint64_t actual_bytes_received;
    // The smoothed round-trip time in microseconds.
    uint64_t round_trip_us;
    // The round-trip time of the last ping in microseconds.
    uint64_t last_ping_us;
    // The mean round-trip time of the last five pings in microseconds.
    uint64_t average_ping_us;
    // The lowest round-trip time of a ping in microseconds.
    uint64_t lowest_ping_us;
    // The congestion window in bytes.
    uint32_t congestion_window;
    // The number of bytes in flight.
    uint32_t in_flight;
    // The number of queued messages, by priority.
    uint32_t waiting_messages[4];
    // The number of queued message bytes, by priority.
    uint32_t waiting_bytes[4];
    // The fraction of sent message bytes that were retransmissions, 0 to 1.
    double loss;
    // The fraction of retransmissions in the last full second, 0 to 1.
    double loss_last_second;
    // Datagrams that were declared lost but acknowledged later.
    uint64_t datagrams_late;
    // Message bytes that were delivered.
    uint64_t bytes_processed;
    // Message bytes that were dropped as duplicates, or as older than a sequenced message that was already delivered.
    uint64_t bytes_ignored;
    // `bytes_pushed` in the last full second.
    uint32_t bytes_pushed_last_second;
    // `bytes_sent` in the last full second.
    uint32_t bytes_sent_last_second;
    // `bytes_resent` in the last full second.
    uint32_t bytes_resent_last_second;
    // `bytes_processed` in the last full second.
    uint32_t bytes_processed_last_second;
    // `bytes_ignored` in the last full second.
    uint32_t bytes_ignored_last_second;
    // `actual_bytes_sent` in the last full second.
    uint32_t actual_bytes_sent_last_second;
    // `actual_bytes_received` in the last full second.
    uint32_t actual_bytes_received_last_second;
    // The number of lost messages queued for retransmission.
    uint32_t waiting_resend_messages;
    // The number of bytes of messages queued for retransmission.
    uint32_t waiting_resend_bytes;
    // 1: `clock_difference_ms` is known.
    uint32_t has_clock_difference;
    // The clock of the peer minus the local clock in milliseconds.
    int64_t clock_difference_ms;
} rakwire_connection_stats_t;

// The contents of a new connect token. Initialise with zeros and set `size`.
typedef struct {
    // The size of the struct in bytes.
    uint32_t size;
    // The number of servers, 1 to 4.
    uint32_t server_count;
    // The user id, which the backend chooses.
    uint64_t user_id;
    // The expiry of the token, in seconds since 1970.
    uint64_t expires;
    // The public key of the client, 32 bytes.
    const uint8_t *client_key;
    // The public keys of the servers, 32 bytes each.
    const uint8_t *server_keys;
    // The addresses of the servers, such as "game.example.org:19132", each for the key at the same index.
    const char *const *server_names;
    // User data for the server, at most 128 bytes, or null.
    const uint8_t *user_data;
    // The length of the user data in bytes.
    size_t user_data_length;
    // A file with the token key, instead of its bytes, or null.
    const char *token_key_file;
} rakwire_token_claims_t;

// The authenticated peer of a secure connection. Set `size` before the call.
typedef struct {
    // The size of the struct in bytes.
    uint32_t size;
    // 1: the connection is secure. 0: all other fields are 0.
    uint8_t is_secure;
    // 1: `key` is set. 0: the client is anonymous.
    uint8_t has_key;
    // 1: `next_key_hash` is set.
    uint8_t has_next_key;
    // The length of `identity_data` in bytes.
    uint8_t identity_data_length;
    // The public key of the server or, on a server, of the client's identity.
    uint8_t key[32];
    // The hash of the server's next key.
    uint8_t next_key_hash[24];
    // The data that the client sent with its identity.
    uint8_t identity_data[95];
    // 1: the client presented a connect token, which the following fields describe.
    uint8_t has_token;
    // The user id in the token.
    uint64_t token_user_id;
    // The expiry of the token, in seconds since 1970.
    uint64_t token_expires;
    // The user data in the token.
    uint8_t token_data[128];
    // The length of `token_data` in bytes.
    uint32_t token_data_length;
    // Reserved.
    uint32_t reserved;
} rakwire_secure_peer_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the description of the last failed call on this thread, or an empty string. Valid until the next failed call on this
// thread.
const char *rakwire_last_error(void);

// Returns the general description of a result code. The string is static.
const char *rakwire_result_text(int32_t result);

// Sets the options of an endpoint to the defaults of a client. Pass sizeof(rakwire_options_t) as `size`.
rakwire_result_t rakwire_options_init(rakwire_options_t *options, size_t size);

// Returns the version of the library, such as "0.1.0".
const char *rakwire_version(void);

// Returns the features of this build as RAKWIRE_FEATURE_ bits.
uint32_t rakwire_features(void);

// Opens an endpoint on the calling thread. `options` null: the defaults of rakwire_options_init().
rakwire_result_t rakwire_endpoint_open(const rakwire_options_t *options, rakwire_endpoint_t *endpoint);

// Closes an endpoint immediately without notifying its peers. To notify them, disconnect and update until
// rakwire_connections() returns 0. Borrowed messages become invalid.
rakwire_result_t rakwire_endpoint_close(rakwire_endpoint_t endpoint);

// Handles received datagrams and expired timers, and sends datagrams. Call it once per frame, before rakwire_poll().
rakwire_result_t rakwire_update(rakwire_endpoint_t endpoint);

// Sends queued datagrams as far as congestion control allows. Call it at the end of each frame.
rakwire_result_t rakwire_flush(rakwire_endpoint_t endpoint);

// Stores the next event. Returns 1, 0 if there is none, or an error. Release the message of each event that has one.
rakwire_result_t rakwire_poll(rakwire_endpoint_t endpoint,
                              rakwire_event_t *event);

// Combines rakwire_message_release() for the message of `event` with rakwire_poll(). Before the first call, zero the event and
// set `size`. To keep a message, set `message` to 0. After an error the event is unchanged.
rakwire_result_t rakwire_poll_next(rakwire_endpoint_t endpoint,
                                   rakwire_event_t *event);

// Releases the messages of the first `used` events of an array, then stores up to `capacity` next events in it. Returns their
// number. `size` is read only from the first event. To keep a message, set `message` to 0. An error takes no event.
rakwire_result_t rakwire_poll_many(rakwire_endpoint_t endpoint,
                                   rakwire_event_t *events,
                                   size_t used,
                                   size_t capacity);

// Stores the local address of the socket, with the actual port.
rakwire_result_t rakwire_local_address(rakwire_endpoint_t endpoint, rakwire_address_t *address);

// Stores the GUID of the endpoint.
rakwire_result_t rakwire_guid(rakwire_endpoint_t endpoint, uint64_t *guid);

// Parses "host:port", such as "192.0.2.1:19132", "[2001:db8::1]:19132" or "game.example.org:19132". Resolving a name blocks
// the thread.
rakwire_result_t rakwire_address_parse(const char *text,
                                       rakwire_address_t *address);

// Writes an address as NUL-terminated text of at most 64 bytes. Returns its length without the NUL.
int rakwire_address_format(const rakwire_address_t *address, char *buffer, size_t capacity);

// Waits until a datagram arrives or a timer expires, for at most `timeout_ms` (RAKWIRE_FOREVER: no limit). Returns 1 if
// rakwire_update() has work, or 0 after the time limit or a signal. Poll all events first.
rakwire_result_t rakwire_wait(rakwire_endpoint_t endpoint,
                              uint32_t timeout_ms);

// Stores the time in microseconds until the next rakwire_update() if no datagram arrives. Returns 1, or 0 if no timer is set.
rakwire_result_t rakwire_timeout(rakwire_endpoint_t endpoint,
                                 uint64_t *microseconds);

// Stores the socket of the endpoint for poll(), select() or similar: a file descriptor, or a SOCKET on Windows. Only the
// library may read from, write to or close it.
rakwire_result_t rakwire_socket(rakwire_endpoint_t endpoint,
                                uint64_t *socket);

// Sets the options of a connection attempt to their defaults. Pass sizeof(rakwire_connect_options_t) as `size`.
rakwire_result_t rakwire_connect_options_init(rakwire_connect_options_t *options,
                                              size_t size);

// Starts connecting to "host:port". An event reports success or failure. Resolving a name blocks the thread; its addresses are
// tried in order until one answers. `options` null: defaults. `address` null: the address of the server in the connect token.
rakwire_result_t rakwire_connect(rakwire_endpoint_t endpoint,
                                 const char *address,
                                 const rakwire_connect_options_t *options,
                                 rakwire_connection_t *connection);

// Accepts a client. RAKWIRE_EVENT_CONNECTED follows when its handshake completes.
rakwire_result_t rakwire_accept(rakwire_endpoint_t endpoint, rakwire_request_t request);

// Refuses a client with the reply "server full". The client may retry.
rakwire_result_t rakwire_refuse(rakwire_endpoint_t endpoint, rakwire_request_t request);

// Ignores a client without a reply. If it retries, that is a new request.
rakwire_result_t rakwire_ignore(rakwire_endpoint_t endpoint, rakwire_request_t request);

// Starts closing a connection or attempt. Earlier reliable messages are delivered first. An event reports when it has closed.
rakwire_result_t rakwire_disconnect(rakwire_endpoint_t endpoint,
                                    rakwire_connection_t connection);

// Sends a last message and starts closing the connection. The connection also closes if sending the message fails.
rakwire_result_t rakwire_disconnect_with(rakwire_endpoint_t endpoint,
                                         rakwire_connection_t connection,
                                         const uint8_t *data,
                                         size_t length,
                                         uint8_t reliability,
                                         uint8_t channel,
                                         uint8_t priority);

// Sets the timeout of a connection, `timeout_ms` of rakwire_options_t. During an attempt it applies to all addresses.
rakwire_result_t rakwire_set_timeout(rakwire_endpoint_t endpoint,
                                     rakwire_connection_t connection,
                                     uint32_t timeout_ms);

// Returns the number of connections, including those opening or closing. Stores their handles in `connections`, which holds
// `capacity` handles. If the handles do not fit, returns RAKWIRE_ERROR_BUFFER. If `capacity` is 0, only returns the number, and
// `connections` may be null.
rakwire_result_t rakwire_connections(rakwire_endpoint_t endpoint,
                                     rakwire_connection_t *connections,
                                     size_t capacity);

// Stores the address, GUID, state, MTU and maximum message length of a connection.
rakwire_result_t rakwire_connection_info(rakwire_endpoint_t endpoint,
                                         rakwire_connection_t connection,
                                         rakwire_connection_info_t *info);

// Queues a copy of a message. Its first byte must be at least 0x1B; applications should use 0x86 and above. `receipt` may be
// null; without a receipt it is set to 0. The message is sent by rakwire_flush() or rakwire_update().
rakwire_result_t rakwire_send(rakwire_endpoint_t endpoint,
                              rakwire_connection_t connection,
                              const uint8_t *data,
                              size_t length,
                              uint8_t reliability,
                              uint8_t channel,
                              uint8_t priority,
                              uint32_t *receipt);

// Queues a message for all open connections except `except`, which may be 0. Returns how many accepted it. `refused` may be
// null; it is set to the number of connections that could not accept it.
rakwire_result_t rakwire_broadcast(rakwire_endpoint_t endpoint,
                                   rakwire_connection_t except,
                                   const uint8_t *data,
                                   size_t length,
                                   uint8_t reliability,
                                   uint8_t channel,
                                   uint8_t priority,
                                   uint32_t *refused);

// Releases the message of an event. Its bytes become invalid. 0 is ignored.
rakwire_result_t rakwire_message_release(rakwire_endpoint_t endpoint, rakwire_message_t message);

// Pings a server without a connection. RAKWIRE_EVENT_PONG follows if it answers. `is_broadcast` 1: a broadcast or multicast
// address; every server that answers within five seconds causes an event. `only_open` 1, with `is_broadcast`: full servers do
// not answer.
rakwire_result_t rakwire_ping(rakwire_endpoint_t endpoint,
                              const rakwire_address_t *address,
                              uint8_t is_broadcast,
                              uint8_t only_open);

// Sets the data in pongs of this endpoint, at most 399 bytes.
rakwire_result_t rakwire_set_advertisement(rakwire_endpoint_t endpoint, const uint8_t *data, size_t length);

// Sends one out-of-band message of 1 to 399 bytes to a peer without a connection, which must have `out_of_band` set.
rakwire_result_t rakwire_send_out_of_band(rakwire_endpoint_t endpoint,
                                          const rakwire_address_t *address,
                                          const uint8_t *data,
                                          size_t length);

// Sends one advertisement of 0 to 398 bytes to a peer without a connection, which must have `out_of_band` set.
rakwire_result_t rakwire_advertise(rakwire_endpoint_t endpoint,
                                   const rakwire_address_t *address,
                                   const uint8_t *data,
                                   size_t length);

// Sets the password that new clients must send, at most 255 bytes. Length 0: none. Clients send it unencrypted.
rakwire_result_t rakwire_set_password(rakwire_endpoint_t endpoint,
                                      const uint8_t *password,
                                      size_t length);

// Bans an address, a wildcard such as "192.0.2.*", or a prefix such as "2001:db8::/32". `duration_ms` 0: permanently. Existing
// connections stay open. There can be 64 bans.
rakwire_result_t rakwire_ban(rakwire_endpoint_t endpoint,
                             const char *addresses,
                             uint32_t duration_ms);

// Removes a ban. Returns 1 if it existed, otherwise 0.
int rakwire_unban(rakwire_endpoint_t endpoint, const char *addresses);

// Returns 1 if the address is currently banned, otherwise 0.
int rakwire_is_banned(rakwire_endpoint_t endpoint, const rakwire_address_t *address);

// Stores the counters of an endpoint.
rakwire_result_t rakwire_stats(rakwire_endpoint_t endpoint, rakwire_stats_t *stats);

// Stores the counters and measurements of a connection.
rakwire_result_t rakwire_connection_stats(rakwire_endpoint_t endpoint,
                                          rakwire_connection_t connection,
                                          rakwire_connection_stats_t *stats);

// Stores the number of dropped datagrams per reason in `counts`, which holds `capacity` numbers. It may be null if `capacity`
// is 0. Returns the number of reasons; those beyond `capacity` are not stored. rakwire_drop_name() returns their names.
rakwire_result_t rakwire_drops(rakwire_endpoint_t endpoint,
                               uint64_t *counts,
                               size_t capacity);

// Returns the name of a drop reason, such as "TooShort", or an empty string. The string is static.
const char *rakwire_drop_name(uint32_t reason);

// Writes NUL-terminated advice for the operator if the counters show that clients cannot connect. Returns its length without
// the NUL; 0 means no advice. 512 bytes are always enough.
rakwire_result_t rakwire_advice(rakwire_endpoint_t endpoint,
                                char *buffer,
                                size_t capacity);

// Returns the description of the `reason` of an event of this `kind`. The string is static.
const char *rakwire_reason_text(uint32_t kind, int32_t reason);

// Generates a private key of 32 bytes and stores it with its public key. `public_key` may be null.
rakwire_result_t rakwire_key_generate(uint8_t *private_key, uint8_t *public_key);

// Stores the public key of a private key, 32 bytes each.
rakwire_result_t rakwire_public_key(const uint8_t *private_key, uint8_t *public_key);

// Generates a private key and writes it to a new file that only its owner may read. Fails if the file exists. Stores the
// public key; `public_key` may be null.
rakwire_result_t rakwire_key_file_create(const char *path,
                                         uint8_t *public_key);

// Stores the public key of a file written by rakwire_key_file_create().
rakwire_result_t rakwire_key_file_public(const char *path, uint8_t *public_key);

// Generates a token key and writes it to a new file that only its owner may read. Fails if the file exists. Servers and
// backend share the key.
rakwire_result_t rakwire_token_key_file_create(const char *path);

// Creates a connect token as a NUL-terminated string, with a token key of 32 bytes, or with null and the key in
// `token_key_file`. Stores the length including the NUL; 4,096 bytes are always enough.
rakwire_result_t rakwire_token_create(const uint8_t *token_key,
                                      const rakwire_token_claims_t *claims,
                                      char *buffer,
                                      size_t capacity,
                                      size_t *length);

// Stores the authenticated key, identity and connect token of the peer of a connection.
rakwire_result_t rakwire_secure_peer(rakwire_endpoint_t endpoint,
                                     rakwire_connection_t connection,
                                     rakwire_secure_peer_t *peer);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RAKWIRE_H */
