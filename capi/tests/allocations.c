/* Exchanges reliable and unreliable messages in both directions, and prints the number of allocations after the first 2,000
 * messages. Before that, causes the first errors of the program in a signal handler, in which nothing may be allocated. */
#define _POSIX_C_SOURCE 199309L

#include <rakwire.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Replace the allocation functions of the library with counting ones. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *place, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *place, size_t size);
int posix_memalign(void **place, size_t alignment, size_t size);
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

static void check(int result)
{
    if (result < 0) {
        fprintf(stderr, "%s\n", rakwire_last_error());
        exit(EXIT_FAILURE);
    }
}

static rakwire_endpoint_t server, client;
static rakwire_connection_t there = 0, here = 0;
static unsigned long received = 0;

/* Runs a frame of an endpoint. The server echoes each message. */
static void frame(rakwire_endpoint_t endpoint)
{
    rakwire_event_t event;
    event.size = sizeof event;
    check(rakwire_update(endpoint));
    while (rakwire_poll(endpoint, &event) > 0) {
        if (event.kind == RAKWIRE_EVENT_CONNECTED && endpoint == server)
            there = event.connection;
        if (event.kind == RAKWIRE_EVENT_MESSAGE && endpoint == server)
            check(rakwire_send(server, event.connection, event.data, event.length, event.reliability, event.channel,
                               RAKWIRE_PRIORITY_HIGH, NULL));
        received += event.kind == RAKWIRE_EVENT_MESSAGE && endpoint == client;
        check(rakwire_message_release(endpoint, event.message));
    }
    check(rakwire_flush(endpoint));
}

static void exchange(unsigned long count)
{
    static uint8_t message[1000];
    memset(message, 0x90, sizeof message);
    received = 0;
    unsigned long sent = 0;
    const time_t start = time(NULL);
    while (received < count) {
        if (sent < count && sent < received + 32) {
            check(rakwire_send(client, here, message, 1 + sent * 7 % sizeof message, RAKWIRE_RELIABLE_ORDERED,
                               (uint8_t)(sent % 32), (uint8_t)(sent % 4), NULL));
            /* Also send an unreliable message, and cause an error with a description. */
            check(rakwire_send(client, here, message, 9, RAKWIRE_UNRELIABLE_WITH_RECEIPT, 0, 2, NULL));
            rakwire_send(client, here, message, 0, RAKWIRE_RELIABLE, 0, 2, NULL);
            sent++;
        }
        frame(client);
        frame(server);
        if (time(NULL) > start + 60) {
            fprintf(stderr, "only %lu of %lu messages came back\n", received, count);
            exit(EXIT_FAILURE);
        }
    }
}

static volatile sig_atomic_t results[2];
static unsigned long allocations_of_the_handler = 0;

static void on_alarm(int signal)
{
    (void)signal;
    const uint8_t byte = 0x90, wrong_reliability = 99;
    const unsigned long before = allocations;
    results[0] = rakwire_update(server);
    /* An error with its own description. */
    results[1] = rakwire_send(server, 1, &byte, 1, wrong_reliability, 0, 0, NULL);
    allocations_of_the_handler = allocations - before;
}

/* Calls the library from a signal handler while rakwire_wait() runs. */
static void interrupt(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, NULL);
    check(rakwire_endpoint_open(NULL, &server));
    alarm(1);
    check(rakwire_wait(server, 20000));
    if (results[0] != RAKWIRE_ERROR_BUG || results[1] != RAKWIRE_ERROR_ARGUMENT) {
        fprintf(stderr, "results %d and %d\n", (int)results[0], (int)results[1]);
        exit(EXIT_FAILURE);
    }
    check(rakwire_endpoint_close(server));
}

int main(void)
{
    interrupt();
    rakwire_options_t options;
    check(rakwire_options_init(&options, sizeof options));
    options.bind_address = "127.0.0.1:0";
    options.max_incoming = 8;
    check(rakwire_endpoint_open(&options, &server));
    check(rakwire_endpoint_open(&options, &client));
    rakwire_address_t address;
    char target[64];
    check(rakwire_local_address(server, &address));
    check(rakwire_address_format(&address, target, sizeof target));
    check(rakwire_connect(client, target, NULL, &here));
    for (int at = 0; at < 100000 && there == 0; at++) {
        frame(client);
        frame(server);
    }
    for (int at = 0; at < 100; at++) {
        frame(client);
        frame(server);
    }
    exchange(2000);
    const unsigned long before = allocations;
    exchange(10000);
    printf("allocations %lu, in a signal handler %lu\n", allocations - before, allocations_of_the_handler);
    check(rakwire_endpoint_close(client));
    check(rakwire_endpoint_close(server));
    return EXIT_SUCCESS;
}
