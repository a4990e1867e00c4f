/* Passes null, released and foreign handles, wrong sizes, invalid pointers, unterminated strings and numbers out of range, and
 * calls from another thread. Each call must return an error code with a description, under the sanitizers. */
#define _POSIX_C_SOURCE 200112L

#include <rakwire.h>

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int checks = 0;

static void expect(int line, int result, int expected)
{
    checks++;
    if (result != expected || (expected < 0 && strlen(rakwire_last_error()) == 0)) {
        fprintf(stderr, "line %d: result %d instead of %d: %s\n", line, result, expected, rakwire_last_error());
        exit(EXIT_FAILURE);
    }
}

#define EXPECT(expected, call) expect(__LINE__, (call), (expected))

static const uint8_t data[] = "\x86 data";

/* Checks that every function with an endpoint parameter returns `code` for this endpoint. */
static void wrong_endpoint(rakwire_endpoint_t endpoint, int code)
{
    rakwire_event_t event;
    event.size = sizeof event;
    rakwire_address_t address = {4, 0, 9, 0, {127, 0, 0, 1}};
    rakwire_connection_info_t info;
    info.size = sizeof info;
    rakwire_connection_stats_t connection_stats;
    connection_stats.size = sizeof connection_stats;
    rakwire_stats_t stats;
    stats.size = sizeof stats;
    rakwire_secure_peer_t peer;
    peer.size = sizeof peer;
    rakwire_connection_t connection = 0;
    uint64_t guid, number;
    char text[512];
    EXPECT(code, rakwire_wait(endpoint, 1));
    EXPECT(code, rakwire_timeout(endpoint, &number));
    EXPECT(code, rakwire_socket(endpoint, &number));
    EXPECT(code, rakwire_drops(endpoint, &number, 1));
    EXPECT(code, rakwire_advice(endpoint, text, sizeof text));
    EXPECT(code, rakwire_update(endpoint));
    EXPECT(code, rakwire_flush(endpoint));
    EXPECT(code, rakwire_poll(endpoint, &event));
    memset(&event, 0xFF, sizeof event);
    EXPECT(code, rakwire_poll_next(endpoint, &event));
    EXPECT((int)UINT32_MAX, (int)event.size);
    EXPECT(code, rakwire_poll_many(endpoint, &event, 1, 1));
    EXPECT((int)UINT32_MAX, (int)event.size);
    EXPECT(code, rakwire_local_address(endpoint, &address));
    address.port = 9;
    EXPECT(code, rakwire_guid(endpoint, &guid));
    EXPECT(code, rakwire_connect(endpoint, "127.0.0.1:9", NULL, &connection));
    EXPECT(code, rakwire_accept(endpoint, 1));
    EXPECT(code, rakwire_refuse(endpoint, 1));
    EXPECT(code, rakwire_ignore(endpoint, 1));
    EXPECT(code, rakwire_disconnect(endpoint, 1));
    EXPECT(code, rakwire_disconnect_with(endpoint, 1, data, sizeof data, RAKWIRE_RELIABLE, 0, 2));
    EXPECT(code, rakwire_set_timeout(endpoint, 1, 1000));
    EXPECT(code, rakwire_connections(endpoint, NULL, 0));
    EXPECT(code, rakwire_connection_info(endpoint, 1, &info));
    EXPECT(code, rakwire_connection_stats(endpoint, 1, &connection_stats));
    EXPECT(code, rakwire_stats(endpoint, &stats));
    EXPECT(code, rakwire_secure_peer(endpoint, 1, &peer));
    EXPECT(code, rakwire_send(endpoint, 1, data, sizeof data, RAKWIRE_RELIABLE, 0, 2, NULL));
    EXPECT(code, rakwire_broadcast(endpoint, 0, data, sizeof data, RAKWIRE_RELIABLE, 0, 2, NULL));
    EXPECT(code, rakwire_message_release(endpoint, 1));
    EXPECT(code, rakwire_ping(endpoint, &address, 0, 0));
    EXPECT(code, rakwire_set_advertisement(endpoint, data, sizeof data));
    EXPECT(code, rakwire_advertise(endpoint, &address, data, sizeof data));
    EXPECT(code, rakwire_send_out_of_band(endpoint, &address, data, sizeof data));
    EXPECT(code, rakwire_set_password(endpoint, data, sizeof data));
    EXPECT(code, rakwire_ban(endpoint, "192.0.2.*", 0));
    EXPECT(code, rakwire_unban(endpoint, "192.0.2.*"));
    EXPECT(code, rakwire_is_banned(endpoint, &address));
    EXPECT(code, rakwire_endpoint_close(endpoint));
}

static void *elsewhere(void *endpoint)
{
    wrong_endpoint(*(const rakwire_endpoint_t *)endpoint, RAKWIRE_ERROR_THREAD);
    return NULL;
}

static void *ends_with_an_open_endpoint(void *place)
{
    EXPECT(RAKWIRE_OK, rakwire_endpoint_open(NULL, (rakwire_endpoint_t *)place));
    return NULL;
}

/* Checks that the library writes nothing after the structs that it knows, although `size` is that of a newer version. */
static void bytes_behind_a_struct(rakwire_endpoint_t endpoint)
{
    struct { rakwire_event_t event; uint8_t behind[128]; } larger;
    struct { rakwire_stats_t stats; uint8_t behind[128]; } larger_stats;
    uint8_t expected[128];
    memset(expected, 0xAA, sizeof expected);
    memset(&larger, 0xAA, sizeof larger);
    memset(&larger_stats, 0xAA, sizeof larger_stats);
    larger.event.size = sizeof larger;
    larger.event.message = 0;
    larger_stats.stats.size = sizeof larger_stats;
    EXPECT(0, rakwire_poll(endpoint, &larger.event));
    EXPECT(0, memcmp(larger.behind, expected, sizeof expected));
    EXPECT(0, rakwire_poll_next(endpoint, &larger.event));
    EXPECT(0, memcmp(larger.behind, expected, sizeof expected));
    EXPECT(RAKWIRE_OK, rakwire_stats(endpoint, &larger_stats.stats));
    EXPECT(0, memcmp(larger_stats.behind, expected, sizeof expected));
}

static void wrong_sizes(rakwire_endpoint_t endpoint)
{
    rakwire_options_t options;
    rakwire_endpoint_t other;
    rakwire_event_t event;
    EXPECT(RAKWIRE_ERROR_SIZE, rakwire_options_init(&options, 0));
    EXPECT(RAKWIRE_ERROR_SIZE, rakwire_options_init(&options, 8));
    EXPECT(RAKWIRE_ERROR_SIZE, rakwire_options_init(&options, SIZE_MAX));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_options_init(NULL, sizeof options));
    memset(&options, 0xFF, sizeof options);
    EXPECT(RAKWIRE_ERROR_SIZE, rakwire_endpoint_open(&options, &other));
    memset(&options, 0, sizeof options);
    EXPECT(RAKWIRE_ERROR_SIZE, rakwire_endpoint_open(&options, &other));
    options.size = sizeof options;
    EXPECT(RAKWIRE_ERROR_ARGUMENT, rakwire_endpoint_open(&options, &other));
    memset(&event, 0, sizeof event);
    EXPECT(RAKWIRE_ERROR_SIZE, rakwire_poll(endpoint, &event));
    EXPECT(RAKWIRE_ERROR_SIZE, rakwire_poll_next(endpoint, &event));
    EXPECT(RAKWIRE_ERROR_SIZE, rakwire_poll_many(endpoint, &event, 1, 1));
    const uint32_t impossible[] = {100000, 3000, sizeof event + 136, sizeof event + 4, sizeof event - 8, UINT32_MAX};
    for (size_t at = 0; at < sizeof impossible / sizeof *impossible; at++) {
        event.size = impossible[at];
        EXPECT(RAKWIRE_ERROR_SIZE, rakwire_poll(endpoint, &event));
        EXPECT(RAKWIRE_ERROR_SIZE, rakwire_poll_next(endpoint, &event));
        EXPECT(RAKWIRE_ERROR_SIZE, rakwire_poll_many(endpoint, &event, 1, 1));
    }
    bytes_behind_a_struct(endpoint);

    /* A struct of a newer version: the library sets unknown fields to zero, and accepts only zero in them. */
    struct { rakwire_options_t known; uint8_t unknown[64]; } newer;
    memset(&newer, 0xFF, sizeof newer);
    EXPECT(RAKWIRE_OK, rakwire_options_init(&newer.known, sizeof newer));
    EXPECT(RAKWIRE_OK, rakwire_endpoint_open(&newer.known, &other));
    EXPECT(RAKWIRE_OK, rakwire_endpoint_close(other));
    newer.unknown[63] = 1;
    EXPECT(RAKWIRE_ERROR_SIZE, rakwire_endpoint_open(&newer.known, &other));

    /* A struct of the first version, in memory of exactly its size. Newer options must have their defaults. */
    const size_t first = offsetof(rakwire_options_t, cookies_unvalidated);
    rakwire_options_t *older = malloc(first);
    EXPECT(RAKWIRE_OK, rakwire_options_init(older, first));
    EXPECT(RAKWIRE_OK, rakwire_endpoint_open(older, &other));
    EXPECT(RAKWIRE_OK, rakwire_endpoint_close(other));
    EXPECT(RAKWIRE_ERROR_SIZE, rakwire_options_init(older, first - 4));
    free(older);
    const size_t first_stats = offsetof(rakwire_stats_t, proxy_headers_refused);
    rakwire_stats_t *stats = malloc(first_stats);
    stats->size = (uint32_t)first_stats;
    EXPECT(RAKWIRE_OK, rakwire_stats(endpoint, stats));
    free(stats);
}

static void opens(int line, const rakwire_options_t *options, int expected)
{
    rakwire_endpoint_t endpoint = 0;
    expect(line, rakwire_endpoint_open(options, &endpoint), expected);
    checks += endpoint != 0;
}

#define OPENS(expected, change)                  \
    do {                                         \
        rakwire_options_t options;               \
        rakwire_options_init(&options, sizeof options); \
        options.change;                          \
        opens(__LINE__, &options, (expected));   \
    } while (0)

/* Sets each option to a value outside its range. */
static void wrong_options(void)
{
    static char endless[1100];
    memset(endless, 'x', sizeof endless);
    const int is_secure = (rakwire_features() & RAKWIRE_FEATURE_SECURE) != 0;
    const int security = is_secure ? RAKWIRE_ERROR_SECURITY : RAKWIRE_ERROR_UNSUPPORTED;
    static const uint8_t key[32] = {1};
    OPENS(RAKWIRE_ERROR_ARGUMENT, mtu = 575);
    OPENS(RAKWIRE_ERROR_ARGUMENT, mtu = 1493);
    OPENS(RAKWIRE_ERROR_ARGUMENT, connect_attempts = 0);
    OPENS(RAKWIRE_ERROR_ARGUMENT, connect_attempts = 256);
    OPENS(RAKWIRE_ERROR_ARGUMENT, max_connections = 65535);
    OPENS(RAKWIRE_ERROR_ARGUMENT, blocks = 3);
    OPENS(RAKWIRE_ERROR_ARGUMENT, out_of_band = 2);
    OPENS(RAKWIRE_ERROR_ARGUMENT, defer_incoming = 255);
    OPENS(RAKWIRE_ERROR_ARGUMENT, fail_on_unreachable = 2);
    OPENS(RAKWIRE_ERROR_ARGUMENT, cookies = 4);
    OPENS(RAKWIRE_ERROR_ARGUMENT, congestion = 2);
    OPENS(RAKWIRE_ERROR_ARGUMENT, trusted_proxies = "");
    OPENS(RAKWIRE_ERROR_ARGUMENT, trusted_proxies = "10.0.0.7/32,");
    OPENS(RAKWIRE_ERROR_ARGUMENT, trusted_proxies = "10.0.0.7/33");
    OPENS(RAKWIRE_ERROR_STRING, trusted_proxies = endless);
    OPENS(RAKWIRE_ERROR_STRING, bind_address = endless);
    OPENS(RAKWIRE_ERROR_STRING, bind_address = "\xFF");
    OPENS(RAKWIRE_ERROR_ADDRESS, bind_address = "127.0.0.1");
    OPENS(RAKWIRE_ERROR_BIND, bind_address = "192.0.2.1:0");
    OPENS(RAKWIRE_ERROR_STRING, simulate = endless);
    OPENS(RAKWIRE_ERROR_NULL, password_length = 1);
    OPENS(security, key_log_file = "keys");
    OPENS(RAKWIRE_ERROR_ARGUMENT, secure = 2);
    OPENS(RAKWIRE_ERROR_ARGUMENT, requires_security = 2);
    OPENS(RAKWIRE_ERROR_ARGUMENT, requires_security = 1; options.requires_identity = 255);
    OPENS(RAKWIRE_ERROR_ARGUMENT, requires_security = 128; options.requires_identity = 128);
    OPENS(security, requires_security = 1);
    OPENS(security, requires_identity = 1);
    OPENS(security, token_keys = key; options.token_key_count = 1);
    OPENS(is_secure ? RAKWIRE_ERROR_SYSTEM : RAKWIRE_ERROR_UNSUPPORTED, server_key_file = "/no/such/file");
    OPENS(is_secure ? RAKWIRE_ERROR_SYSTEM : RAKWIRE_ERROR_UNSUPPORTED, token_key_file = "/no/such/file");
    OPENS(is_secure ? RAKWIRE_ERROR_SYSTEM : RAKWIRE_ERROR_UNSUPPORTED, identity_key_file = "/no/such/file");
    if (is_secure) {
        OPENS(RAKWIRE_ERROR_SYSTEM, key_log_file = "/no/such/folder/keys"; options.secure = 1);
        OPENS(RAKWIRE_ERROR_SECURITY, server_key = key; options.server_key_file = "keys");
        OPENS(RAKWIRE_ERROR_NULL, server_key = key; options.token_key_count = 1);
        OPENS(RAKWIRE_ERROR_ARGUMENT, server_key = key; options.token_keys = key; options.token_key_count = 5);
        OPENS(RAKWIRE_ERROR_ARGUMENT, server_key = key; options.token_keys = key; options.token_key_count = UINT32_MAX);
    }
}

static void wrong_pointers(rakwire_endpoint_t endpoint)
{
    rakwire_event_t event[2];
    event[0].size = sizeof event[0];
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_poll(endpoint, NULL));
    EXPECT(RAKWIRE_ERROR_MISALIGNED, rakwire_poll(endpoint, (rakwire_event_t *)(uintptr_t)((uintptr_t)event + 1)));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_poll_next(endpoint, NULL));
    EXPECT(RAKWIRE_ERROR_MISALIGNED, rakwire_poll_next(endpoint, (rakwire_event_t *)(uintptr_t)((uintptr_t)event + 1)));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_poll_many(endpoint, NULL, 0, 2));
    EXPECT(RAKWIRE_ERROR_MISALIGNED, rakwire_poll_many(endpoint, (rakwire_event_t *)(uintptr_t)((uintptr_t)event + 1), 0, 1));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_endpoint_open(NULL, NULL));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_connect(endpoint, "127.0.0.1:9", NULL, NULL));
    rakwire_connection_t connection;
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_connect(endpoint, NULL, NULL, &connection));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_local_address(endpoint, NULL));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_guid(endpoint, NULL));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_ping(endpoint, NULL, 0, 0));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_ban(endpoint, NULL, 0));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_stats(endpoint, NULL));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_timeout(endpoint, NULL));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_socket(endpoint, NULL));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_drops(endpoint, NULL, 1));
    EXPECT(RAKWIRE_ERROR_BUFFER, rakwire_advice(endpoint, NULL, 0));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_advice(endpoint, NULL, 9));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_send(endpoint, 1, NULL, 5, 3, 0, 2, NULL));
    EXPECT(RAKWIRE_ERROR_MISALIGNED, rakwire_send(endpoint, 1, data, 5, 3, 0, 2, (uint32_t *)(uintptr_t)((uintptr_t)event + 1)));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_set_advertisement(endpoint, NULL, 5));
    EXPECT(RAKWIRE_OK, rakwire_set_advertisement(endpoint, NULL, 0));
    EXPECT(RAKWIRE_ERROR_TOO_LONG, rakwire_set_advertisement(endpoint, data, SIZE_MAX));
    EXPECT(RAKWIRE_ERROR_TOO_LONG, rakwire_set_password(endpoint, data, (size_t)-5));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_connections(endpoint, NULL, 3));
    EXPECT(RAKWIRE_ERROR_NULL, rakwire_address_format(NULL, NULL, 0));
    const int is_secure = (rakwire_features() & RAKWIRE_FEATURE_SECURE) != 0;
    EXPECT(is_secure ? RAKWIRE_ERROR_NULL : RAKWIRE_ERROR_UNSUPPORTED, rakwire_key_generate(NULL, NULL));
}

static void wrong_strings(rakwire_endpoint_t endpoint)
{
    static char endless[1100];
    rakwire_address_t address;
    rakwire_connection_t connection;
    memset(endless, 'x', sizeof endless);
    EXPECT(RAKWIRE_ERROR_STRING, rakwire_address_parse(endless, &address));
    EXPECT(RAKWIRE_ERROR_STRING, rakwire_connect(endpoint, endless, NULL, &connection));
    EXPECT(RAKWIRE_ERROR_STRING, rakwire_connect(endpoint, "\xFF\xFE", NULL, &connection));
    EXPECT(RAKWIRE_ERROR_ADDRESS, rakwire_address_parse("", &address));
    EXPECT(RAKWIRE_ERROR_ADDRESS, rakwire_address_parse("127.0.0.1", &address));
    EXPECT(RAKWIRE_ERROR_ADDRESS, rakwire_address_parse("127.0.0.1:99999", &address));
    EXPECT(RAKWIRE_ERROR_ADDRESS, rakwire_connect(endpoint, "127.0.0.1:0", NULL, &connection));
    EXPECT(RAKWIRE_ERROR_ADDRESS_FAMILY, rakwire_connect(endpoint, "[::1]:9", NULL, &connection));
    EXPECT(RAKWIRE_ERROR_ADDRESS, rakwire_ban(endpoint, "192.0.*.1", 0));
}

static void wrong_numbers(rakwire_endpoint_t endpoint)
{
    rakwire_address_t address = {5, 0, 9, 0, {0}};
    char text[64];
    EXPECT(RAKWIRE_ERROR_ARGUMENT, rakwire_send(endpoint, 1, data, 5, 8, 0, 0, NULL));
    EXPECT(RAKWIRE_ERROR_ARGUMENT, rakwire_send(endpoint, 1, data, 5, 0, 32, 0, NULL));
    EXPECT(RAKWIRE_ERROR_ARGUMENT, rakwire_send(endpoint, 1, data, 5, 0, 0, 4, NULL));
    EXPECT(RAKWIRE_ERROR_NO_CONNECTION, rakwire_send(endpoint, 0, data, 5, 3, 0, 2, NULL));
    EXPECT(RAKWIRE_ERROR_NO_CONNECTION, rakwire_send(endpoint, UINT64_MAX, data, 5, 3, 0, 2, NULL));
    EXPECT(RAKWIRE_ERROR_NO_CONNECTION, rakwire_broadcast(endpoint, 77, data, 5, 3, 0, 2, NULL));
    EXPECT(RAKWIRE_ERROR_HANDLE, rakwire_message_release(endpoint, 1));
    EXPECT(RAKWIRE_ERROR_HANDLE, rakwire_message_release(endpoint, UINT64_MAX));
    EXPECT(RAKWIRE_OK, rakwire_message_release(endpoint, 0));
    /* With an invalid message handle, no event is taken and the struct is unchanged. */
    rakwire_event_t event;
    memset(&event, 0, sizeof event);
    event.size = sizeof event;
    event.message = 1;
    EXPECT(RAKWIRE_ERROR_HANDLE, rakwire_poll_next(endpoint, &event));
    EXPECT(1, (int)event.message);
    EXPECT(RAKWIRE_ERROR_HANDLE, rakwire_accept(endpoint, 0));
    EXPECT(RAKWIRE_ERROR_ADDRESS, rakwire_ping(endpoint, &address, 0, 0));
    EXPECT(RAKWIRE_ERROR_ADDRESS, rakwire_address_format(&address, text, sizeof text));
    address.family = 4;
    EXPECT(RAKWIRE_ERROR_BUFFER, rakwire_address_format(&address, text, 9));
    EXPECT(9, rakwire_address_format(&address, text, 10));
    EXPECT(RAKWIRE_ERROR_ARGUMENT, rakwire_ping(endpoint, &address, 2, 0));
    EXPECT(RAKWIRE_ERROR_ARGUMENT, rakwire_ping(endpoint, &address, 0, 1));
    EXPECT(RAKWIRE_ERROR_TOO_LONG, rakwire_send_out_of_band(endpoint, &address, data, 0));
    uint8_t long_data[400] = {0};
    EXPECT(RAKWIRE_ERROR_TOO_LONG, rakwire_set_password(endpoint, long_data, 256));
    EXPECT(RAKWIRE_ERROR_TOO_LONG, rakwire_set_advertisement(endpoint, long_data, 400));
}

static rakwire_endpoint_t interrupted;
static volatile sig_atomic_t result_of_the_handler = 0;

static void on_alarm(int signal)
{
    (void)signal;
    result_of_the_handler = rakwire_update(interrupted);
}

/* Calls the library from a signal handler while rakwire_wait() runs. */
static void call_from_a_handler(rakwire_endpoint_t endpoint)
{
    interrupted = endpoint;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, NULL);
    alarm(1);
    EXPECT(0, rakwire_wait(endpoint, 20000));
    EXPECT(RAKWIRE_ERROR_BUG, (int)result_of_the_handler);
    EXPECT(RAKWIRE_OK, rakwire_update(endpoint));
}

/* Updates the servers and clients until the endpoint has an event of this kind. */
static rakwire_event_t wait_for(rakwire_endpoint_t endpoint, uint32_t kind, const rakwire_endpoint_t *all)
{
    rakwire_event_t event;
    memset(&event, 0, sizeof event);
    event.size = sizeof event;
    for (int frame = 0; frame < 20000; frame++) {
        for (int at = 0; at < 4; at++)
            rakwire_update(all[at]);
        while (rakwire_poll(endpoint, &event) > 0)
            if (event.kind == kind)
                return event;
        rakwire_wait(endpoint, 1);
    }
    fprintf(stderr, "no event of the kind %u\n", kind);
    exit(EXIT_FAILURE);
}

/* Uses the requests and messages of one server with another one. */
static void handles_of_another_endpoint(void)
{
    rakwire_endpoint_t all[4], *servers = all, *clients = all + 2;
    rakwire_connection_t there[2];
    rakwire_request_t requests[2];
    rakwire_event_t messages[2];
    rakwire_options_t options;
    rakwire_options_init(&options, sizeof options);
    options.bind_address = "127.0.0.1:0";
    options.max_incoming = 4;
    options.defer_incoming = 1;
    for (int at = 0; at < 2; at++) {
        rakwire_address_t address;
        char target[64];
        EXPECT(RAKWIRE_OK, rakwire_endpoint_open(&options, &servers[at]));
        EXPECT(RAKWIRE_OK, rakwire_endpoint_open(NULL, &clients[at]));
        EXPECT(RAKWIRE_OK, rakwire_local_address(servers[at], &address));
        EXPECT(1, rakwire_address_format(&address, target, sizeof target) > 0);
        EXPECT(RAKWIRE_OK, rakwire_connect(clients[at], target, NULL, &there[at]));
    }
    for (int at = 0; at < 2; at++)
        requests[at] = wait_for(servers[at], RAKWIRE_EVENT_INCOMING, all).request;
    for (int at = 0; at < 2; at++) {
        EXPECT(RAKWIRE_ERROR_HANDLE, rakwire_accept(servers[at], requests[1 - at]));
        EXPECT(RAKWIRE_ERROR_HANDLE, rakwire_refuse(servers[at], requests[1 - at]));
        EXPECT(RAKWIRE_ERROR_HANDLE, rakwire_ignore(servers[at], requests[1 - at]));
    }
    for (int at = 0; at < 2; at++) {
        EXPECT(RAKWIRE_OK, rakwire_accept(servers[at], requests[at]));
        wait_for(clients[at], RAKWIRE_EVENT_CONNECTED, all);
        EXPECT(RAKWIRE_OK, rakwire_send(clients[at], there[at], data, sizeof data, RAKWIRE_RELIABLE, 0, 2, NULL));
        messages[at] = wait_for(servers[at], RAKWIRE_EVENT_MESSAGE, all);
    }
    for (int at = 0; at < 2; at++) {
        rakwire_event_t event = messages[1 - at];
        EXPECT(RAKWIRE_ERROR_HANDLE, rakwire_message_release(servers[at], event.message));
        EXPECT(RAKWIRE_ERROR_HANDLE, rakwire_poll_next(servers[at], &event));
        EXPECT(0, memcmp(messages[at].data, data, sizeof data));
    }
    for (int at = 0; at < 2; at++) {
        EXPECT(RAKWIRE_OK, rakwire_message_release(servers[at], messages[at].message));
        EXPECT(RAKWIRE_ERROR_HANDLE, rakwire_message_release(servers[at], messages[at].message));
    }
    for (int at = 0; at < 4; at++)
        EXPECT(RAKWIRE_OK, rakwire_endpoint_close(all[at]));
}

int main(void)
{
    rakwire_endpoint_t endpoint, other;
    wrong_endpoint(0, RAKWIRE_ERROR_HANDLE);
    wrong_endpoint(1, RAKWIRE_ERROR_HANDLE);
    wrong_endpoint(UINT64_MAX, RAKWIRE_ERROR_HANDLE);
    EXPECT(RAKWIRE_OK, rakwire_endpoint_open(NULL, &endpoint));
    EXPECT(RAKWIRE_OK, rakwire_endpoint_open(NULL, &other));
    wrong_endpoint(endpoint + 2, RAKWIRE_ERROR_HANDLE);

    pthread_t thread;
    pthread_create(&thread, NULL, elsewhere, &endpoint);
    pthread_join(thread, NULL);
    rakwire_endpoint_t lost;
    pthread_create(&thread, NULL, ends_with_an_open_endpoint, &lost);
    pthread_join(thread, NULL);
    wrong_endpoint(lost, RAKWIRE_ERROR_HANDLE);

    call_from_a_handler(endpoint);
    wrong_sizes(endpoint);
    wrong_options();
    wrong_pointers(endpoint);
    wrong_strings(endpoint);
    wrong_numbers(endpoint);
    handles_of_another_endpoint();

    /* A connection handle of one endpoint must not be valid in another. */
    rakwire_connection_t connection;
    EXPECT(RAKWIRE_OK, rakwire_connect(endpoint, "127.0.0.1:9", NULL, &connection));
    EXPECT(RAKWIRE_ERROR_ALREADY_CONNECTED, rakwire_connect(endpoint, "127.0.0.1:9", NULL, &connection));
    EXPECT(RAKWIRE_ERROR_NOT_CONNECTED, rakwire_send(endpoint, connection, data, 5, 3, 0, 2, NULL));
    EXPECT(RAKWIRE_ERROR_NO_CONNECTION, rakwire_disconnect(other, connection));
    EXPECT(RAKWIRE_OK, rakwire_disconnect(endpoint, connection));

    EXPECT(RAKWIRE_OK, rakwire_endpoint_close(other));
    wrong_endpoint(other, RAKWIRE_ERROR_HANDLE);
    /* The handle must stay invalid after another endpoint has taken the slot of the closed one. */
    rakwire_endpoint_t third;
    EXPECT(RAKWIRE_OK, rakwire_endpoint_open(NULL, &third));
    wrong_endpoint(other, RAKWIRE_ERROR_HANDLE);
    EXPECT(RAKWIRE_OK, rakwire_endpoint_close(third));
    EXPECT(RAKWIRE_OK, rakwire_endpoint_close(endpoint));
    EXPECT(RAKWIRE_ERROR_HANDLE, rakwire_endpoint_close(endpoint));
    printf("%d checks\n", checks);
    return EXIT_SUCCESS;
}
