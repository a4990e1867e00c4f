/* The C counterpart of speed.rs: a server and a client in one thread over loopback, without pauses.
 *
 *     speed trips COUNT         round trips, one at a time
 *     speed messages COUNT      messages in one direction, 64 per frame
 *
 * It prints the number of allocations after the first 1,000 messages.
 */
#include <rakwire.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP = 1000, BATCH = 64, LENGTH = 64 };

/* Replace the allocation functions of the library with counting ones. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *place, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
static unsigned long allocations = 0;

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}
void *realloc(void *place, size_t size)
{
    allocations++;
    return __libc_realloc(place, size);
}
int posix_memalign(void **place, size_t alignment, size_t size)
{
    allocations++;
    *place = __libc_memalign(alignment, size);
    return *place == NULL ? 12 : 0;
}

static rakwire_endpoint_t server, client;
static rakwire_connection_t there, here;
static uint8_t message[LENGTH];

static int check(int result)
{
    if (result < 0 && result != RAKWIRE_ERROR_NO_ROOM) {
        fprintf(stderr, "speed: %s\n", rakwire_last_error());
        exit(EXIT_FAILURE);
    }
    return result;
}

static int send(rakwire_endpoint_t from, rakwire_connection_t to, const uint8_t *data, size_t length)
{
    return check(rakwire_send(from, to, data, length, RAKWIRE_RELIABLE_ORDERED, 0, RAKWIRE_PRIORITY_MEDIUM, NULL));
}

/* Runs a frame of the server, which echoes each message if `echoes`. Returns the number of messages. */
static unsigned long serve(int echoes)
{
    unsigned long received = 0;
    rakwire_event_t event;
    memset(&event, 0, sizeof event);
    event.size = sizeof event;
    check(rakwire_update(server));
    while (check(rakwire_poll_next(server, &event)) > 0) {
        if (event.kind == RAKWIRE_EVENT_CONNECTED)
            there = event.connection;
        if (event.kind == RAKWIRE_EVENT_MESSAGE) {
            received++;
            if (echoes)
                send(server, event.connection, event.data, event.length);
        }
    }
    check(rakwire_flush(server));
    return received;
}

static unsigned long receive(int *is_open)
{
    unsigned long received = 0;
    rakwire_event_t event;
    memset(&event, 0, sizeof event);
    event.size = sizeof event;
    check(rakwire_update(client));
    while (check(rakwire_poll_next(client, &event)) > 0) {
        *is_open = *is_open || event.kind == RAKWIRE_EVENT_CONNECTED;
        received += event.kind == RAKWIRE_EVENT_MESSAGE;
    }
    return received;
}

static void open_both(void)
{
    rakwire_options_t options;
    check(rakwire_options_init(&options, sizeof options));
    options.bind_address = "127.0.0.1:0";
    check(rakwire_endpoint_open(&options, &client));
    options.max_incoming = 8;
    check(rakwire_endpoint_open(&options, &server));
    rakwire_address_t address;
    char target[64];
    check(rakwire_local_address(server, &address));
    check(rakwire_address_format(&address, target, sizeof target));
    check(rakwire_connect(client, target, NULL, &here));
    int is_open = 0;
    while (!is_open || there == 0) {
        receive(&is_open);
        check(rakwire_flush(client));
        serve(0);
    }
}

static void trips(unsigned long count)
{
    int is_open = 1;
    for (unsigned long trip = 0; trip < count; trip++) {
        send(client, here, message, LENGTH);
        check(rakwire_flush(client));
        for (unsigned long received = 0; received == 0;) {
            serve(1);
            received = receive(&is_open);
        }
    }
}

static void messages(unsigned long count)
{
    int is_open = 1;
    unsigned long sent = 0, received = 0;
    while (received < count) {
        for (int at = 0; at < BATCH && sent < count; at++) {
            if (send(client, here, message, LENGTH) < 0)
                break;
            sent++;
        }
        check(rakwire_flush(client));
        received += serve(0);
        receive(&is_open);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: speed trips|messages COUNT\n");
        return 2;
    }
    void (*run)(unsigned long) = strcmp(argv[1], "trips") == 0 ? trips : messages;
    memset(message, 0x86, LENGTH);
    open_both();
    run(WARM_UP);
    const unsigned long before = allocations;
    run(strtoul(argv[2], NULL, 10));
    printf("%lu\n", allocations - before);
    check(rakwire_endpoint_close(client));
    check(rakwire_endpoint_close(server));
    return EXIT_SUCCESS;
}
