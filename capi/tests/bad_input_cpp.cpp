// The C++ header: what it owns is released once, moved objects are empty, and errors are exceptions with their code and text.
#include <rakwire.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#define EXPECT(condition)                                                                        \
    do {                                                                                         \
        if (!(condition)) {                                                                      \
            std::fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, rakwire_last_error()); \
            std::exit(EXIT_FAILURE);                                                             \
        }                                                                                        \
    } while (false)

template <class Call>
static int code_of(Call call)
{
    try {
        call();
    } catch (const rakwire::Error &error) {
        EXPECT(error.what()[0] != 0);
        return error.code();
    }
    return 0;
}

int main()
{
    rakwire::Options options;
    options.bind("127.0.0.1:0").max_incoming(8).password("friends").defer_incoming();
    rakwire::Endpoint server(options);
    rakwire::Endpoint client;

    EXPECT(code_of([&] { rakwire::Endpoint second(rakwire::Options().bind(server.local_address().str())); })
           == RAKWIRE_ERROR_BIND);
    EXPECT(code_of([] { rakwire::Address address("nonsense"); }) == RAKWIRE_ERROR_ADDRESS);
    EXPECT(code_of([&] { client.send(rakwire::Connection::none, "\x86"); }) == RAKWIRE_ERROR_NO_CONNECTION);
    EXPECT(client.try_send(rakwire::Connection::none, "\x86") == RAKWIRE_ERROR_NO_CONNECTION);

    rakwire::Connection connection = client.connect(server.local_address().str(), "friends");
    const std::array<std::uint8_t, 3> message = {0x86, 1, 2};
    rakwire::Event kept;
    bool is_asked = false;
    for (int frame = 0; frame < 5000 && !kept; frame++) {
        server.update();
        while (rakwire::Event event = server.poll()) {
            if (event.kind() == rakwire::Event::Kind::Incoming) {
                is_asked = true;
                server.accept(event);
                EXPECT(code_of([&] { server.accept(event); }) == RAKWIRE_ERROR_HANDLE);
            } else if (event.kind() == rakwire::Event::Kind::Message) {
                if (event.delivery().channel == 7)
                    kept = std::move(event);
            }
        }
        server.flush();
        client.update();
        while (rakwire::Event event = client.poll()) {
            EXPECT(event.kind() != rakwire::Event::Kind::ConnectFailed);
            if (event.kind() == rakwire::Event::Kind::Connected)
                client.send(connection, message, {rakwire::Reliability::ReliableOrdered, 7, rakwire::Priority::Low});
        }
        client.flush();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT(is_asked && kept.data()[0] == 0x86 && kept.data()[2] == 2);
    EXPECT(server.stats().borrowed_messages == 1);
    rakwire::Event moved = std::move(kept);
    EXPECT(server.stats().borrowed_messages == 1 && moved.data()[1] == 1);
    moved = rakwire::Event();
    EXPECT(server.stats().borrowed_messages == 0);
    EXPECT(code_of([&] { server.info(rakwire::Connection::none); }) == RAKWIRE_ERROR_NO_CONNECTION);
    EXPECT(client.info(connection).max_message_len > 1000000);
    std::puts("done");
    return EXIT_SUCCESS;
}
