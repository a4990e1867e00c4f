/* A server: forwards each message to all clients including the sender, so that a single client receives an echo.
 *
 *     server HOST:PORT [CLIENTS] [PASSWORD]
 *
 * It prints `ready PORT`, and exits after CLIENTS clients have disconnected; with 0 it keeps running.
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

int main(int argc, char **argv)
{
    const unsigned long clients = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    rakwire_options_t options;
    if (rakwire_options_init(&options, sizeof options) < 0)
        return fail("options");
    options.bind_address = argc > 1 ? argv[1] : "0.0.0.0:19132";
    options.max_incoming = 64;
    if (argc > 3) {
        options.password = (const uint8_t *)argv[3];
        options.password_length = strlen(argv[3]);
    }
    rakwire_endpoint_t server;
    if (rakwire_endpoint_open(&options, &server) < 0)
        return fail("open");
    static const uint8_t pong[] = "a server in C";
    rakwire_set_advertisement(server, pong, sizeof pong - 1);

    rakwire_address_t local;
    rakwire_local_address(server, &local);
    printf("ready %u\n", local.port);
    fflush(stdout);

    unsigned long gone = 0;
    rakwire_event_t event;
    event.size = sizeof event;
    while (clients == 0 || gone < clients || rakwire_connections(server, NULL, 0) > 0) {
        rakwire_update(server);
        int polled;
        while ((polled = rakwire_poll(server, &event)) > 0) {
            char address[64];
            switch (event.kind) {
            case RAKWIRE_EVENT_CONNECTED:
                rakwire_address_format(&event.address, address, sizeof address);
                printf("%s connected\n", address);
                break;
            case RAKWIRE_EVENT_DISCONNECTED:
                rakwire_address_format(&event.address, address, sizeof address);
                printf("%s disconnected: %s\n", address, rakwire_reason_text(event.kind, event.reason));
                gone++;
                break;
            case RAKWIRE_EVENT_MESSAGE:
                if (rakwire_broadcast(server, 0, event.data, event.length, event.reliability, event.channel,
                                      RAKWIRE_PRIORITY_MEDIUM, NULL) < 0)
                    fprintf(stderr, "broadcast: %s\n", rakwire_last_error());
                break;
            default:
                break;
            }
            rakwire_message_release(server, event.message);
        }
        if (polled < 0)
            return fail("poll");
        rakwire_flush(server);
        next_frame();
    }
    rakwire_endpoint_close(server);
    return EXIT_SUCCESS;
}
