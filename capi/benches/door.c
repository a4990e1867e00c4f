/* The client of `cargo xtask bench doors` in C: door ADDRESS WINDOW SECONDS.
 *
 * It keeps WINDOW messages of 64 bytes in flight to an echo server. After a warm-up of half the time it prints `connected`
 * and waits for a line. Then it measures for SECONDS, and prints the number of echoes and the elapsed seconds.
 */
#define _POSIX_C_SOURCE 199309L

#include <rakwire.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LENGTH = 64 };

static rakwire_endpoint_t client;
static rakwire_connection_t server;

static int checked(int result)
{
    if (result < 0) {
        fprintf(stderr, "%s\n", rakwire_last_error());
        exit(EXIT_FAILURE);
    }
    return result;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void send_messages(unsigned long count)
{
    static const uint8_t message[LENGTH] = {0x86};
    for (unsigned long sent = 0; sent < count; sent++)
        checked(rakwire_send(client, server, message, LENGTH, RAKWIRE_RELIABLE_ORDERED, 0, RAKWIRE_PRIORITY_MEDIUM, NULL));
    checked(rakwire_flush(client));
}

/* Handles received datagrams. Returns the number of events of a kind. */
static unsigned long receive(uint32_t kind)
{
    unsigned long found = 0;
    rakwire_event_t event;
    memset(&event, 0, sizeof event);
    event.size = sizeof event;
    checked(rakwire_update(client));
    while (checked(rakwire_poll_next(client, &event)) > 0)
        found += event.kind == kind;
    return found;
}

/* Keeps messages in flight for a time, and then waits for the last echoes. Returns the number of echoes within the time. */
static unsigned long play(unsigned long window, double seconds, double *elapsed)
{
    const double begin = now();
    unsigned long echoes = 0, in_flight = window;
    send_messages(window);
    while ((*elapsed = now() - begin) < seconds) {
        const unsigned long arrived = receive(RAKWIRE_EVENT_MESSAGE);
        echoes += arrived;
        if (arrived > 0)
            send_messages(arrived);
        else if (window > 1)
            checked(rakwire_wait(client, 100));
    }
    while (in_flight > 0)
        in_flight -= receive(RAKWIRE_EVENT_MESSAGE);
    return echoes;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: door ADDRESS WINDOW SECONDS\n");
        return 2;
    }
    const unsigned long window = strtoul(argv[2], NULL, 10);
    const double seconds = strtod(argv[3], NULL);
    double elapsed;
    checked(rakwire_endpoint_open(NULL, &client));
    checked(rakwire_connect(client, argv[1], NULL, &server));
    while (receive(RAKWIRE_EVENT_CONNECTED) == 0)
        checked(rakwire_wait(client, 100));
    play(window, seconds / 2, &elapsed);
    printf("connected\n");
    fflush(stdout);
    getchar();
    const unsigned long echoes = play(window, seconds, &elapsed);
    printf("%lu %.9f\n", echoes, elapsed);
    fflush(stdout);
    getchar();
    return EXIT_SUCCESS;
}
