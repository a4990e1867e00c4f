/* A client: sends messages to an echo server, checks the echoes, and disconnects.
 *
 *     echo HOST:PORT [MESSAGES] [BYTES] [PASSWORD]
 */
#define _POSIX_C_SOURCE 199309L

#include <rakwire.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void next_frame(void)
{
    const struct timespec frame = {0, 1000000};
    nanosleep(&frame, NULL);
}

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, rakwire_last_error());
    return EXIT_FAILURE;
}

/* Fills in message `number`: an application id, and bytes derived from the number. */
static void fill(uint8_t *message, size_t size, unsigned number)
{
    message[0] = 0xFE;
    for (size_t at = 1; at < size; at++)
        message[at] = (uint8_t)(number * 31u + at * 7u + at / 256u * 13u);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: echo HOST:PORT [MESSAGES] [BYTES] [PASSWORD]\n");
        return 2;
    }
    const unsigned messages = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 10;
    const size_t size = argc > 3 ? strtoul(argv[3], NULL, 10) : 100;

    rakwire_endpoint_t endpoint;
    if (rakwire_endpoint_open(NULL, &endpoint) < 0)
        return fail("open");
    rakwire_connect_options_t options;
    rakwire_connect_options_init(&options, sizeof options);
    if (argc > 4) {
        options.password = (const uint8_t *)argv[4];
        options.password_length = strlen(argv[4]);
    }
    rakwire_connection_t connection;
    if (rakwire_connect(endpoint, argv[1], &options, &connection) < 0)
        return fail("connect");

    uint8_t *message = malloc(size > 0 ? size : 1);
    if (message == NULL)
        return fail("malloc");
    unsigned sent = 0, echoed = 0, wrong = 0;
    int is_open = 0, is_over = 0, result = EXIT_SUCCESS;
    rakwire_event_t event;
    event.size = sizeof event;
    while (!is_over) {
        rakwire_update(endpoint);
        int polled;
        while ((polled = rakwire_poll(endpoint, &event)) > 0) {
            switch (event.kind) {
            case RAKWIRE_EVENT_CONNECTED:
                is_open = 1;
                break;
            case RAKWIRE_EVENT_MESSAGE:
                fill(message, size, echoed);
                if (event.length != size || memcmp(event.data, message, size) != 0)
                    wrong++;
                if (++echoed == messages)
                    rakwire_disconnect(endpoint, connection);
                break;
            case RAKWIRE_EVENT_CONNECT_FAILED:
            case RAKWIRE_EVENT_DISCONNECTED:
                if (echoed < messages) {
                    fprintf(stderr, "the connection closed early: %s\n", rakwire_reason_text(event.kind, event.reason));
                    result = EXIT_FAILURE;
                }
                is_over = 1;
                break;
            default:
                break;
            }
            rakwire_message_release(endpoint, event.message);
        }
        if (polled < 0)
            return fail("poll");
        for (; is_open && sent < messages; sent++) {
            fill(message, size, sent);
            int error = rakwire_send(endpoint, connection, message, size, RAKWIRE_RELIABLE_ORDERED, 0,
                                     RAKWIRE_PRIORITY_MEDIUM, NULL);
            if (error == RAKWIRE_ERROR_NO_ROOM)
                break;
            if (error < 0) {
                free(message);
                return fail("send");
            }
        }
        rakwire_flush(endpoint);
        next_frame();
    }
    while (rakwire_connections(endpoint, NULL, 0) > 0) {
        rakwire_update(endpoint);
        next_frame();
    }
    free(message);
    rakwire_endpoint_close(endpoint);
    printf("echoed %u, wrong %u\n", echoed, wrong);
    return wrong > 0 ? EXIT_FAILURE : result;
}
