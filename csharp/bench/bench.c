/* The work of Bench.cs in C: round trips, and messages in one direction, between two endpoints of one thread. */
#define _POSIX_C_SOURCE 199309L

#include <rakwire.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUND_TRIPS = 20000, MESSAGES = 500000, BURST = 100, LENGTH = 32 };

static rakwire_endpoint_t server, client;
static rakwire_connection_t there;

static int checked(int result)
{
    if (result < 0) {
        fprintf(stderr, "%s\n", rakwire_last_error());
        exit(EXIT_FAILURE);
    }
    return result;
}

static double now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double start, cpu_start;

static void begin(void)
{
    start = now(CLOCK_MONOTONIC);
    cpu_start = now(CLOCK_PROCESS_CPUTIME_ID);
}

/* Prints the rate per second, and per second of processor time, which depends less on other programs. */
static void end(const char *name, int count)
{
    printf("%s_per_second %.0f\n", name, count / (now(CLOCK_MONOTONIC) - start));
    printf("%s_per_cpu_second %.0f\n", name, count / (now(CLOCK_PROCESS_CPUTIME_ID) - cpu_start));
}

/* Handles received datagrams. Messages are counted, and sent back if `echoes` is 1. */
static int receive(rakwire_endpoint_t endpoint, int echoes)
{
    int messages = 0;
    rakwire_event_t event;
    memset(&event, 0, sizeof event);
    event.size = sizeof event;
    checked(rakwire_update(endpoint));
    while (checked(rakwire_poll_next(endpoint, &event)) > 0) {
        if (event.kind == RAKWIRE_EVENT_MESSAGE) {
            messages++;
            uint32_t receipt;
            if (echoes)
                checked(rakwire_send(endpoint, event.connection, event.data, event.length, event.reliability, event.channel,
                                     RAKWIRE_PRIORITY_MEDIUM, &receipt));
        }
    }
    checked(rakwire_flush(endpoint));
    return messages;
}

static void connect_both(void)
{
    rakwire_options_t options;
    checked(rakwire_options_init(&options, sizeof options));
    options.bind_address = "127.0.0.1:0";
    checked(rakwire_endpoint_open(&options, &client));
    options.max_incoming = 8;
    checked(rakwire_endpoint_open(&options, &server));
    rakwire_address_t address;
    char text[64];
    checked(rakwire_local_address(server, &address));
    checked(rakwire_address_format(&address, text, sizeof text));
    checked(rakwire_connect(client, text, NULL, &there));
    rakwire_connection_info_t info;
    info.size = sizeof info;
    do {
        receive(server, 0);
        receive(client, 0);
        checked(rakwire_connection_info(client, there, &info));
    } while (info.state != RAKWIRE_STATE_CONNECTED);
}

static void round_trips(const uint8_t *message)
{
    uint32_t receipt;
    for (int done = 0; done < ROUND_TRIPS; done++) {
        checked(rakwire_send(client, there, message, LENGTH, RAKWIRE_RELIABLE_ORDERED, 0, RAKWIRE_PRIORITY_MEDIUM, &receipt));
        checked(rakwire_flush(client));
        while (receive(server, 1) == 0)
            continue;
        while (receive(client, 0) == 0)
            continue;
    }
}

static void messages(const uint8_t *message)
{
    uint32_t receipt;
    for (int sent = 0, arrived = 0; arrived < MESSAGES;) {
        for (int burst = 0; burst < BURST && sent < MESSAGES; burst++)
            if (rakwire_send(client, there, message, LENGTH, RAKWIRE_RELIABLE_ORDERED, 0, RAKWIRE_PRIORITY_MEDIUM, &receipt) == RAKWIRE_OK)
                sent++;
        checked(rakwire_flush(client));
        arrived += receive(server, 0);
        receive(client, 0);
    }
}

int main(void)
{
    static const uint8_t message[LENGTH] = {0x86};
    connect_both();
    /* The first round is a warm-up, as in Bench.cs. */
    for (int round = 0; round < 2; round++) {
        begin();
        round_trips(message);
        if (round > 0)
            end("round_trips", ROUND_TRIPS);
        begin();
        messages(message);
        if (round > 0)
            end("messages", MESSAGES);
    }
    return EXIT_SUCCESS;
}
