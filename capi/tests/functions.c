/* Uses every function in one thread with a server and a client, under the sanitizers. */
#define _POSIX_C_SOURCE 200112L

#include <rakwire.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void expect(int line, int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "line %d: %s: %s\n", line, what, rakwire_last_error());
        exit(EXIT_FAILURE);
    }
}

#define EXPECT(condition) expect(__LINE__, (condition), #condition)
#define OK(call) EXPECT((call) >= 0)

static rakwire_endpoint_t server, client;
static rakwire_address_t server_address, client_address;
/* The address of the server as text. */
static char target[64];

/* The event that `wait_for` found last, and a copy of its data. */
static rakwire_event_t event;
static uint8_t data[400000];

/* Updates both endpoints until `at` has an event of this kind. Other events are dropped. */
static void wait_for(rakwire_endpoint_t at, uint32_t kind)
{
    for (int frame = 0; frame < 10000; frame++) {
        const rakwire_endpoint_t both[2] = {server, client};
        for (int which = 0; which < 2; which++) {
            OK(rakwire_update(both[which]));
            rakwire_event_t next;
            next.size = sizeof next;
            while (rakwire_poll(both[which], &next) > 0) {
                const int is_it = both[which] == at && next.kind == kind;
                if (is_it) {
                    event = next;
                    EXPECT(next.length <= sizeof data);
                    if (next.length > 0)
                        memcpy(data, next.data, next.length);
                }
                OK(rakwire_message_release(both[which], next.message));
                if (is_it)
                    return;
            }
        }
        const struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
    }
    fprintf(stderr, "timed out without an event of kind %u\n", kind);
    exit(EXIT_FAILURE);
}

static void open_endpoints(rakwire_options_t *server_options, rakwire_options_t *client_options)
{
    OK(rakwire_endpoint_open(server_options, &server));
    OK(rakwire_endpoint_open(client_options, &client));
    OK(rakwire_local_address(server, &server_address));
    OK(rakwire_local_address(client, &client_address));
    OK(rakwire_address_format(&server_address, target, sizeof target));
}

static void close_endpoints(void)
{
    OK(rakwire_endpoint_close(server));
    OK(rakwire_endpoint_close(client));
}

static void defaults(rakwire_options_t *options, uint16_t max_incoming)
{
    OK(rakwire_options_init(options, sizeof *options));
    options->bind_address = "127.0.0.1:0";
    options->max_incoming = max_incoming;
    options->out_of_band = 1;
}

static void messages_and_receipts(rakwire_connection_t here, rakwire_connection_t there)
{
    static uint8_t large[300000];
    memset(large, 0x99, sizeof large);
    uint32_t receipt = 0, refused = 9;
    OK(rakwire_send(client, here, large, sizeof large, RAKWIRE_RELIABLE_ORDERED, 5, RAKWIRE_PRIORITY_LOW, NULL));
    wait_for(server, RAKWIRE_EVENT_MESSAGE);
    EXPECT(event.length == sizeof large && memcmp(data, large, sizeof large) == 0);
    EXPECT(event.channel == 5 && event.reliability == RAKWIRE_RELIABLE_ORDERED && event.connection == there);
    OK(rakwire_send(client, here, large, 9, RAKWIRE_RELIABLE_WITH_RECEIPT, 0, RAKWIRE_PRIORITY_IMMEDIATE, &receipt));
    EXPECT(receipt != 0);
    wait_for(client, RAKWIRE_EVENT_RECEIPT);
    EXPECT(event.receipt == receipt && event.outcome == RAKWIRE_OUTCOME_ACKNOWLEDGED);
    EXPECT(rakwire_broadcast(server, 0, large, 9, RAKWIRE_RELIABLE, 0, RAKWIRE_PRIORITY_HIGH, &refused) == 1);
    EXPECT(refused == 0);
    wait_for(client, RAKWIRE_EVENT_MESSAGE);
    EXPECT(rakwire_broadcast(server, there, large, 9, RAKWIRE_RELIABLE, 0, RAKWIRE_PRIORITY_HIGH, NULL) == 0);
    large[0] = 0x1A;
    EXPECT(rakwire_send(client, here, large, 9, RAKWIRE_RELIABLE, 0, 2, NULL) == RAKWIRE_ERROR_RESERVED_ID);
    EXPECT(rakwire_send(client, here, large, 0, RAKWIRE_RELIABLE, 0, 2, NULL) == RAKWIRE_ERROR_EMPTY);
}

/* Takes the server's next message with rakwire_poll_next(), which releases the message in `next` first. */
static void take_message(rakwire_event_t *next)
{
    for (int frame = 0; frame < 10000; frame++) {
        OK(rakwire_flush(client));
        OK(rakwire_update(server));
        while (rakwire_poll_next(server, next) > 0)
            if (next->kind == RAKWIRE_EVENT_MESSAGE)
                return;
    }
    EXPECT(!"the server received no message");
}

static uint64_t borrowed(void)
{
    rakwire_stats_t stats;
    stats.size = sizeof stats;
    OK(rakwire_stats(server, &stats));
    return stats.borrowed_messages;
}

static void messages_in_one_call(rakwire_connection_t here)
{
    static const uint8_t texts[3][2] = {{0x86, 1}, {0x86, 2}, {0x86, 3}};
    for (int at = 0; at < 3; at++)
        OK(rakwire_send(client, here, texts[at], 2, RAKWIRE_RELIABLE_ORDERED, 0, RAKWIRE_PRIORITY_MEDIUM, NULL));
    rakwire_event_t next;
    memset(&next, 0, sizeof next);
    next.size = sizeof next;
    take_message(&next);
    EXPECT(next.length == 2 && memcmp(next.data, texts[0], 2) == 0 && borrowed() == 1);
    const rakwire_message_t released = next.message;
    take_message(&next);
    EXPECT(memcmp(next.data, texts[1], 2) == 0 && borrowed() == 1);
    EXPECT(rakwire_message_release(server, released) == RAKWIRE_ERROR_HANDLE);
    /* Keeps this message; the previous one has been released. */
    const rakwire_event_t kept = next;
    next.message = 0;
    take_message(&next);
    EXPECT(memcmp(next.data, texts[2], 2) == 0 && memcmp(kept.data, texts[1], 2) == 0 && borrowed() == 2);
    OK(rakwire_message_release(server, next.message));
    EXPECT(rakwire_poll_next(server, &next) == RAKWIRE_ERROR_HANDLE && next.kind == RAKWIRE_EVENT_MESSAGE);
    next.message = kept.message;
    int result;
    while ((result = rakwire_poll_next(server, &next)) > 0)
        continue;
    EXPECT(result == 0 && next.kind == 0 && next.message == 0 && borrowed() == 0);
}

/* The events of rakwire_poll_many(): structs of a newer version, which are longer than those of the library. */
typedef struct {
    rakwire_event_t event;
    uint8_t newer[64];
} longer_event_t;

/* Checks the order of messages that arrive in several batches, and the release of each batch by the next call. */
static void messages_in_batches(rakwire_connection_t here)
{
    enum { COUNT = 7, BATCH = 3 };
    for (uint8_t number = 0; number < COUNT; number++) {
        const uint8_t text[2] = {0x86, number};
        OK(rakwire_send(client, here, text, 2, RAKWIRE_RELIABLE_ORDERED, 0, RAKWIRE_PRIORITY_MEDIUM, NULL));
    }
    longer_event_t batch[BATCH];
    memset(batch, 0xAA, sizeof batch);
    batch[0].event.size = sizeof batch[0];
    rakwire_message_t released = 0, kept = 0;
    size_t used = 0;
    int arrived = 0, full = 0;
    for (int frame = 0; frame < 10000 && arrived < COUNT; frame++) {
        OK(rakwire_flush(client));
        OK(rakwire_update(server));
        int stored;
        while ((stored = rakwire_poll_many(server, &batch[0].event, used, BATCH)) > 0) {
            used = (size_t)stored;
            full += used == BATCH;
            EXPECT(borrowed() == used + (kept != 0));
            for (size_t at = 0; at < used; at++) {
                const rakwire_event_t *next = &batch[at].event;
                EXPECT(next->size == sizeof batch[0] && batch[at].newer[0] == 0xAA && batch[at].newer[63] == 0xAA);
                EXPECT(next->kind == RAKWIRE_EVENT_MESSAGE && next->length == 2 && next->data[1] == arrived++);
            }
            /* Keeps one message: the next call must not release it. */
            if (kept == 0) {
                kept = batch[0].event.message;
                batch[0].event.message = 0;
            } else {
                released = batch[0].event.message;
            }
        }
        EXPECT(stored == 0 && borrowed() == (kept != 0));
        used = 0;
    }
    EXPECT(arrived == COUNT && full > 0);
    EXPECT(rakwire_message_release(server, released) == RAKWIRE_ERROR_HANDLE);
    OK(rakwire_message_release(server, kept));
}

/* Checks that a call without capacity and calls with wrong arguments leave the next event to the following call. */
static void batches_that_take_no_event(rakwire_connection_t here)
{
    static const uint8_t text[2] = {0x86, 9};
    rakwire_event_t batch[2];
    memset(batch, 0, sizeof batch);
    OK(rakwire_send(client, here, text, 2, RAKWIRE_RELIABLE_ORDERED, 0, RAKWIRE_PRIORITY_MEDIUM, NULL));
    OK(rakwire_flush(client));
    OK(rakwire_wait(server, 5000));
    OK(rakwire_update(server));
    EXPECT(rakwire_poll_many(server, NULL, 0, 0) == 0 && rakwire_poll_many(server, batch, 0, 0) == 0);
    EXPECT(rakwire_poll_many(server, NULL, 0, 2) == RAKWIRE_ERROR_NULL);
    EXPECT(rakwire_poll_many(server, batch, 0, 2) == RAKWIRE_ERROR_SIZE);
    batch[0].size = sizeof batch[0];
    EXPECT(rakwire_poll_many(server, batch, 3, 2) == RAKWIRE_ERROR_ARGUMENT);
    EXPECT(rakwire_poll_many(server, batch, 0, SIZE_MAX) == RAKWIRE_ERROR_ARGUMENT);
    batch[1].message = 1;
    EXPECT(rakwire_poll_many(server, batch, 2, 2) == RAKWIRE_ERROR_HANDLE && batch[1].message == 1);
    EXPECT(rakwire_poll_many(server, batch, 0, 2) == 1 && batch[0].kind == RAKWIRE_EVENT_MESSAGE && batch[0].data[1] == 9);
    EXPECT(rakwire_poll_many(server, batch, 1, 2) == 0 && batch[0].message == 0 && borrowed() == 0);
}

static void statistics(rakwire_connection_t here)
{
    rakwire_connection_info_t info;
    info.size = sizeof info;
    OK(rakwire_connection_info(client, here, &info));
    EXPECT(info.state == RAKWIRE_STATE_CONNECTED && info.side == RAKWIRE_SIDE_CLIENT);
    EXPECT(info.mtu >= 576 && info.max_message_len > 1000000 && info.address.port == server_address.port);
    uint64_t guid;
    OK(rakwire_guid(server, &guid));
    EXPECT(info.guid == guid);
    rakwire_connection_stats_t of_connection;
    of_connection.size = sizeof of_connection;
    OK(rakwire_connection_stats(client, here, &of_connection));
    EXPECT(of_connection.messages_sent >= 2 && of_connection.actual_bytes_sent > 300000);
    EXPECT(of_connection.bytes_processed > 0 && of_connection.has_clock_difference <= 1);
    rakwire_stats_t stats;
    stats.size = sizeof stats;
    OK(rakwire_stats(client, &stats));
    EXPECT(stats.connections == 1 && stats.datagrams_sent > 100 && stats.borrowed_messages == 0);
    rakwire_connection_t all[4];
    EXPECT(rakwire_connections(client, all, 4) == 1 && all[0] == here);
    OK(rakwire_set_timeout(client, here, 5000));
}

/* Checks that waiting ends when a datagram arrives, when a timer expires, and at the time limit. */
static void waiting(void)
{
    rakwire_options_t options;
    defaults(&options, 8);
    open_endpoints(&options, &options);
    uint64_t microseconds = 0, handle = 0;
    EXPECT(rakwire_timeout(server, &microseconds) == 0 && microseconds == UINT64_MAX);
    EXPECT(rakwire_wait(server, 20) == 0);
    rakwire_connection_t here;
    OK(rakwire_connect(client, target, NULL, &here));
    EXPECT(rakwire_timeout(client, &microseconds) == 1 && microseconds <= 500000);
    OK(rakwire_flush(client));
    /* Both poll() and the library must see that the client's request is readable. */
    OK(rakwire_socket(server, &handle));
    struct pollfd socket = {(int)handle, POLLIN, 0};
    EXPECT(poll(&socket, 1, 5000) == 1);
    EXPECT(rakwire_wait(server, RAKWIRE_FOREVER) == 1);
    /* The client waits only for its own timer. */
    OK(rakwire_update(client));
    EXPECT(rakwire_wait(client, 60000) == 1);
    EXPECT(rakwire_wait(client, RAKWIRE_FOREVER) == 1);
    /* A game loop that sleeps only in rakwire_wait(). */
    int is_open = 0;
    for (int frame = 0; frame < 1000 && !is_open; frame++) {
        OK(rakwire_wait(frame % 2 ? server : client, 5));
        OK(rakwire_update(client));
        OK(rakwire_update(server));
        rakwire_event_t next;
        next.size = sizeof next;
        while (rakwire_poll(server, &next) > 0)
            is_open = is_open || next.kind == RAKWIRE_EVENT_CONNECTED;
    }
    EXPECT(is_open);
    close_endpoints();
}

static void drops_and_advice(void)
{
    rakwire_options_t server_options, client_options;
    defaults(&server_options, 8);
    defaults(&client_options, 0);
    server_options.trusted_proxies = "127.0.0.1/32, fd00::/64";
    server_options.pongs_per_second = 0;
    open_endpoints(&server_options, &client_options);
    OK(rakwire_ping(client, &server_address, 0, 0));
    uint64_t counts[256];
    int reasons = rakwire_drops(server, NULL, 0);
    EXPECT(reasons > 10 && reasons < 256 && rakwire_drops(server, counts, 256) == reasons);
    uint64_t dropped = 0;
    for (int frame = 0; frame < 2000 && dropped == 0; frame++) {
        OK(rakwire_update(client));
        OK(rakwire_wait(server, 1));
        OK(rakwire_update(server));
        OK(rakwire_drops(server, counts, 256));
        for (int reason = 0; reason < reasons; reason++) {
            if (counts[reason] > 0) {
                EXPECT(strlen(rakwire_drop_name((uint32_t)reason)) > 3);
                dropped += counts[reason];
            }
        }
    }
    rakwire_stats_t stats;
    stats.size = sizeof stats;
    OK(rakwire_stats(server, &stats));
    EXPECT(dropped > 0 && stats.datagrams_dropped == dropped && stats.proxy_headers_refused == 0);
    EXPECT(rakwire_drop_name((uint32_t)reasons)[0] == 0 && rakwire_drop_name(UINT32_MAX)[0] == 0);
    char advice[512] = "unset";
    EXPECT(rakwire_advice(server, advice, sizeof advice) == 0 && advice[0] == 0);
    close_endpoints();
}

static void plain(void)
{
    rakwire_options_t server_options, client_options;
    defaults(&server_options, 8);
    defaults(&client_options, 0);
    server_options.defer_incoming = 1;
    server_options.cookies = RAKWIRE_COOKIES_REQUIRED;
    server_options.max_per_network = 4;
    server_options.congestion = RAKWIRE_CONGESTION_NEW_RENO;
    client_options.outgoing_limit = 100000000;
    client_options.ping_interval_ms = 100;
    open_endpoints(&server_options, &client_options);

    rakwire_connection_t here, there;
    OK(rakwire_connect(client, target, NULL, &here));
    wait_for(server, RAKWIRE_EVENT_INCOMING);
    uint64_t guid;
    OK(rakwire_guid(client, &guid));
    EXPECT(event.guid == guid && event.address.port == client_address.port);
    OK(rakwire_refuse(server, event.request));
    wait_for(client, RAKWIRE_EVENT_CONNECT_FAILED);
    EXPECT(event.reason == RAKWIRE_FAILURE_SERVER_FULL && event.connection == here);

    OK(rakwire_connect(client, target, NULL, &here));
    wait_for(server, RAKWIRE_EVENT_INCOMING);
    OK(rakwire_ignore(server, event.request));
    wait_for(server, RAKWIRE_EVENT_INCOMING);
    OK(rakwire_accept(server, event.request));
    wait_for(server, RAKWIRE_EVENT_CONNECTED);
    there = event.connection;
    EXPECT(event.side == RAKWIRE_SIDE_SERVER && event.guid == guid);
    messages_and_receipts(here, there);
    messages_in_one_call(here);
    messages_in_batches(here);
    batches_that_take_no_event(here);
    statistics(here);
    rakwire_secure_peer_t peer;
    peer.size = sizeof peer;
    OK(rakwire_secure_peer(client, here, &peer));
    EXPECT(!peer.is_secure);

    static const uint8_t last[] = "\x86 goodbye";
    OK(rakwire_disconnect_with(client, here, last, sizeof last, RAKWIRE_RELIABLE_ORDERED, 0, 2));
    wait_for(server, RAKWIRE_EVENT_MESSAGE);
    EXPECT(event.length == sizeof last);
    wait_for(server, RAKWIRE_EVENT_DISCONNECTED);
    EXPECT(event.reason == RAKWIRE_DISCONNECT_REMOTE);
    close_endpoints();
}

static void unconnected(void)
{
    rakwire_options_t server_options, client_options;
    defaults(&server_options, 8);
    defaults(&client_options, 0);
    open_endpoints(&server_options, &client_options);
    static const uint8_t text[] = "snow fight";
    OK(rakwire_set_advertisement(server, text, sizeof text));
    OK(rakwire_ping(client, &server_address, 0, 0));
    wait_for(client, RAKWIRE_EVENT_PONG);
    EXPECT(event.length == sizeof text && memcmp(data, text, sizeof text) == 0 && event.latency_us > 0);
    EXPECT(event.address.port == server_address.port);
    OK(rakwire_send_out_of_band(client, &server_address, text, sizeof text));
    wait_for(server, RAKWIRE_EVENT_OUT_OF_BAND);
    EXPECT(event.length == sizeof text);
    OK(rakwire_advertise(server, &client_address, text, sizeof text));
    wait_for(client, RAKWIRE_EVENT_ADVERTISEMENT);
    EXPECT(event.length == sizeof text);

    OK(rakwire_ban(server, "127.0.0.*", 0));
    EXPECT(rakwire_is_banned(server, &client_address) == 1);
    rakwire_connection_t here;
    OK(rakwire_connect(client, target, NULL, &here));
    wait_for(client, RAKWIRE_EVENT_CONNECT_FAILED);
    EXPECT(event.reason == RAKWIRE_FAILURE_BANNED);
    EXPECT(strcmp(rakwire_reason_text(event.kind, event.reason), "the server has banned this address") == 0);
    EXPECT(rakwire_unban(server, "127.0.0.*") == 1 && rakwire_unban(server, "127.0.0.*") == 0);
    EXPECT(rakwire_is_banned(server, &client_address) == 0);

    OK(rakwire_set_password(server, text, sizeof text));
    OK(rakwire_connect(client, target, NULL, &here));
    wait_for(server, RAKWIRE_EVENT_REFUSED);
    EXPECT(event.reason == RAKWIRE_REFUSED_PASSWORD);
    wait_for(client, RAKWIRE_EVENT_CONNECT_FAILED);
    EXPECT(event.reason == RAKWIRE_FAILURE_PASSWORD);
    close_endpoints();
}

static void simulated(void)
{
    rakwire_options_t server_options, client_options;
    defaults(&server_options, 8);
    defaults(&client_options, 0);
    server_options.simulate = "rain=5%";
    rakwire_endpoint_t none;
    EXPECT(rakwire_endpoint_open(&server_options, &none) == RAKWIRE_ERROR_ARGUMENT);
    /* Both directions of the server: a round trip takes 100 ms. */
    server_options.simulate = "latency=50ms,seed=7";
    client_options.simulate = "loss=2%,seed=9";
    server_options.defer_incoming = 1;
    open_endpoints(&server_options, &client_options);
    rakwire_connection_t here;
    OK(rakwire_connect(client, target, NULL, &here));
    wait_for(server, RAKWIRE_EVENT_INCOMING);
    OK(rakwire_accept(server, event.request));
    wait_for(client, RAKWIRE_EVENT_CONNECTED);
    static uint8_t large[200000] = {0x86};
    OK(rakwire_send(client, here, large, sizeof large, RAKWIRE_RELIABLE_ORDERED, 0, 2, NULL));
    wait_for(server, RAKWIRE_EVENT_MESSAGE);
    EXPECT(event.length == sizeof large);
    rakwire_connection_stats_t stats;
    stats.size = sizeof stats;
    OK(rakwire_connection_stats(client, here, &stats));
    EXPECT(stats.lowest_ping_us >= 100000);
    close_endpoints();
}

static void secure(void)
{
    uint8_t server_key[32], server_public[32], client_key[32], client_public[32], token_key[32], again[32];
    OK(rakwire_key_generate(server_key, server_public));
    OK(rakwire_key_generate(client_key, client_public));
    OK(rakwire_key_generate(token_key, NULL));
    OK(rakwire_public_key(server_key, again));
    EXPECT(memcmp(again, server_public, 32) == 0);

    rakwire_options_t server_options, client_options;
    defaults(&server_options, 8);
    defaults(&client_options, 0);
    server_options.token_keys = token_key;
    server_options.token_key_count = 1;
    EXPECT(rakwire_endpoint_open(&server_options, &server) == RAKWIRE_ERROR_SECURITY);
    server_options.server_key = server_key;
    client_options.secure = 1;
    open_endpoints(&server_options, &client_options);

    static const uint8_t level[] = "level 3";
    const char *const names[1] = {target};
    rakwire_token_claims_t claims;
    memset(&claims, 0, sizeof claims);
    claims.size = sizeof claims;
    claims.server_count = 1;
    claims.user_id = 42;
    claims.expires = (uint64_t)time(NULL) + 60;
    claims.client_key = client_public;
    claims.server_keys = server_public;
    claims.server_names = names;
    claims.user_data = level;
    claims.user_data_length = sizeof level;
    char token[4096];
    size_t length;
    EXPECT(rakwire_token_create(token_key, &claims, token, 10, &length) == RAKWIRE_ERROR_BUFFER);
    EXPECT(length > 10);
    OK(rakwire_token_create(token_key, &claims, token, sizeof token, &length));
    EXPECT(strlen(token) + 1 == length);

    rakwire_connect_options_t options;
    OK(rakwire_connect_options_init(&options, sizeof options));
    rakwire_connection_t here;
    options.trust = RAKWIRE_TRUST_KEY;
    EXPECT(rakwire_connect(client, target, &options, &here) >= 0);
    wait_for(client, RAKWIRE_EVENT_CONNECT_FAILED);
    EXPECT(event.reason == RAKWIRE_FAILURE_PUBLIC_KEY);
    options.token = token;
    EXPECT(rakwire_connect(client, NULL, &options, &here) == RAKWIRE_ERROR_SECURITY);
    options.identity_key = client_key;
    options.identity_data = level;
    options.identity_data_length = 5;
    OK(rakwire_connect(client, NULL, &options, &here));
    wait_for(client, RAKWIRE_EVENT_CONNECTED);
    wait_for(server, RAKWIRE_EVENT_CONNECTED);
    rakwire_secure_peer_t peer;
    peer.size = sizeof peer;
    OK(rakwire_secure_peer(server, event.connection, &peer));
    EXPECT(peer.is_secure && peer.has_key && memcmp(peer.key, client_public, 32) == 0);
    EXPECT(peer.identity_data_length == 5 && memcmp(peer.identity_data, level, 5) == 0);
    EXPECT(peer.has_token && peer.token_user_id == 42 && peer.token_expires == claims.expires);
    EXPECT(peer.token_data_length == sizeof level && memcmp(peer.token_data, level, sizeof level) == 0);
    OK(rakwire_secure_peer(client, here, &peer));
    EXPECT(peer.is_secure && memcmp(peer.key, server_public, 32) == 0);
    close_endpoints();
}

/* Returns the length of a file, or -1. */
static long length_of(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return -1;
    fseek(file, 0, SEEK_END);
    const long length = ftell(file);
    fclose(file);
    return length;
}

/* Uses a token key file and a key log file. */
static void token_key_files(const char *path)
{
    char log[600];
    snprintf(log, sizeof log, "%s.log", path);
    remove(path);
    remove(log);
    OK(rakwire_token_key_file_create(path));
    EXPECT(rakwire_token_key_file_create(path) == RAKWIRE_ERROR_SYSTEM);
    uint8_t server_key[32], server_public[32], client_key[32], client_public[32];
    OK(rakwire_key_generate(server_key, server_public));
    OK(rakwire_key_generate(client_key, client_public));
    rakwire_options_t server_options, client_options;
    defaults(&server_options, 8);
    defaults(&client_options, 0);
    server_options.token_key_file = path;
    server_options.server_key = server_key;
    server_options.key_log_file = log;
    client_options.identity_key = client_key;
    open_endpoints(&server_options, &client_options);

    const char *const names[1] = {target};
    rakwire_token_claims_t claims;
    memset(&claims, 0, sizeof claims);
    claims.size = sizeof claims;
    claims.server_count = 1;
    claims.user_id = 7;
    claims.expires = (uint64_t)time(NULL) + 60;
    claims.client_key = client_public;
    claims.server_keys = server_public;
    claims.server_names = names;
    char token[4096];
    EXPECT(rakwire_token_create(NULL, &claims, token, sizeof token, NULL) == RAKWIRE_ERROR_NULL);
    claims.token_key_file = path;
    EXPECT(rakwire_token_create(server_key, &claims, token, sizeof token, NULL) == RAKWIRE_ERROR_SECURITY);
    OK(rakwire_token_create(NULL, &claims, token, sizeof token, NULL));
    rakwire_connect_options_t options;
    OK(rakwire_connect_options_init(&options, sizeof options));
    options.token = token;
    options.identity_key = client_key;
    rakwire_connection_t here;
    OK(rakwire_connect(client, NULL, &options, &here));
    wait_for(server, RAKWIRE_EVENT_CONNECTED);
    rakwire_secure_peer_t peer;
    peer.size = sizeof peer;
    OK(rakwire_secure_peer(server, event.connection, &peer));
    EXPECT(peer.has_token && peer.token_user_id == 7);
    close_endpoints();
    EXPECT(length_of(log) > 100);
    remove(log);
    remove(path);
}

static void key_files(const char *path)
{
    uint8_t public_key[32], again[32];
    remove(path);
    OK(rakwire_key_file_create(path, public_key));
    OK(rakwire_key_file_public(path, again));
    EXPECT(memcmp(public_key, again, 32) == 0);
    EXPECT(rakwire_key_file_create(path, NULL) == RAKWIRE_ERROR_SYSTEM);
    rakwire_options_t server_options, client_options;
    defaults(&server_options, 8);
    defaults(&client_options, 0);
    server_options.server_key_file = path;
    server_options.requires_security = 1;
    client_options.secure = 1;
    open_endpoints(&server_options, &client_options);
    rakwire_connect_options_t options;
    OK(rakwire_connect_options_init(&options, sizeof options));
    options.trust = RAKWIRE_TRUST_KEY;
    memcpy(options.server_key, public_key, 32);
    rakwire_connection_t here;
    OK(rakwire_connect(client, target, &options, &here));
    wait_for(client, RAKWIRE_EVENT_CONNECTED);
    close_endpoints();
    remove(path);
}

int main(int argc, char **argv)
{
    EXPECT(strcmp(rakwire_version(), "0.1.0") == 0);
    EXPECT(strcmp(rakwire_result_text(RAKWIRE_ERROR_EMPTY), "a message needs at least one byte") == 0);
    plain();
    unconnected();
    waiting();
    drops_and_advice();
    if (rakwire_features() & RAKWIRE_FEATURE_SIM)
        simulated();
    if (rakwire_features() & RAKWIRE_FEATURE_SECURE) {
        secure();
        char path[512];
        snprintf(path, sizeof path, "%s.key", argc > 0 ? argv[0] : "functions");
        key_files(path);
        token_key_files(path);
    }
    puts("done");
    return EXIT_SUCCESS;
}
