// Tests the C++ header: owned resources are released once, moved-from objects are empty, and errors are exceptions with
// a code and a text.
#include <rakwire.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
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

// Uses keys, identities and connect tokens through the classes of the header.
static void secure_connection()
{
    if ((rakwire_features() & RAKWIRE_FEATURE_SECURE) == 0)
        return;
    const rakwire::KeyPair of_server = rakwire::KeyPair::generate(), of_client = rakwire::KeyPair::generate();
    const rakwire::Key token_key = rakwire::generate_token_key();
    EXPECT(rakwire::public_key(of_server.private_key) == of_server.public_key);
    rakwire::Options options;
    options.bind("127.0.0.1:0").max_incoming(8).server_key(of_server.private_key, true).token_key(token_key);
    options.cookies(RAKWIRE_COOKIES_REQUIRED).trusted_proxies("192.0.2.0/24");
    rakwire::Endpoint server(options);
    rakwire::Endpoint client(rakwire::Options().secure());

    rakwire::Token token(42, static_cast<std::uint64_t>(std::time(nullptr)) + 60, of_client.public_key);
    EXPECT(code_of([&] { token.create(token_key); }) == RAKWIRE_ERROR_ARGUMENT);
    token.server(server.local_address().str(), of_server.public_key).data("level 3");
    EXPECT(code_of([&] { token.create_from_file("/no/such/file"); }) == RAKWIRE_ERROR_SYSTEM);
    rakwire::ConnectOptions attempt;
    attempt.token(token.create(token_key));
    EXPECT(code_of([&] { client.connect(attempt); }) == RAKWIRE_ERROR_SECURITY);
    attempt.identity(of_client.private_key, "a player");
    client.connect(attempt);
    rakwire::Connection there = rakwire::Connection::none;
    for (int frame = 0; frame < 5000 && there == rakwire::Connection::none; frame++) {
        client.update();
        while (rakwire::Event event = client.poll())
            EXPECT(event.kind() != rakwire::Event::Kind::ConnectFailed);
        server.wait(std::chrono::milliseconds(1));
        server.update();
        while (rakwire::Event event = server.poll())
            if (event.kind() == rakwire::Event::Kind::Connected)
                there = event.connection();
    }
    const rakwire_secure_peer_t peer = server.secure_peer(there);
    EXPECT(peer.is_secure && peer.has_token && peer.token_user_id == 42 && peer.identity_data_length == 8);
    EXPECT(std::memcmp(peer.key, of_client.public_key.data(), 32) == 0);
}

// The header's views convert to and from those of the standard library.
static void views()
{
    const char *nothing = nullptr;
    EXPECT(rakwire::Bytes(nothing).empty() && rakwire::Bytes(nullptr).text().empty());
    EXPECT(rakwire::Bytes("abc").size() == 3 && rakwire::Bytes("abc").text() == "abc");
#if __cplusplus >= 202002L
#ifndef RAKWIRE_HAS_STD_SPAN
#error "the header does not use std::span in C++20"
#endif
    const std::array<std::uint8_t, 3> array = {0x86, 1, 2};
    const rakwire::Bytes bytes(array);
    const std::span<const std::uint8_t> span = bytes;
    EXPECT(span.data() == array.data() && span.size() == 3);
    EXPECT(rakwire::Bytes(span).size() == 3 && rakwire::Bytes(span)[2] == 2);
#endif
}

// A client sends a message and disconnects before the server's next update, which returns both events. When the server
// replies, the connection is already closed. The servers in the documents therefore use try_send().
static void a_message_and_a_disconnect_in_one_frame()
{
    rakwire::Endpoint server(rakwire::Options().bind("127.0.0.1:0").max_incoming(8));
    bool is_answered = false, is_over = false;
    {
        rakwire::Endpoint client;
        const rakwire::Connection there = client.connect(server.local_address().str());
        bool is_connected = false;
        for (int frame = 0; frame < 5000 && !is_connected; frame++) {
            client.wait(std::chrono::milliseconds(1));
            client.update();
            while (rakwire::Event event = client.poll())
                is_connected |= event.kind() == rakwire::Event::Kind::Connected;
            client.flush();
            server.update();
            while (server.poll()) {
            }
            server.flush();
        }
        EXPECT(is_connected);
        // An acknowledgement of a reliable message would delay the disconnect.
        client.send(there, "\x86hello", {rakwire::Reliability::Unreliable});
        client.disconnect(there);
        // The client disconnects in a later frame than it sends. The server receives both in one frame.
        for (int frame = 0; frame < 50; frame++) {
            client.flush();
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            client.update();
            while (client.poll()) {
            }
        }
    }
    for (int frame = 0; frame < 5000 && !is_over; frame++) {
        server.wait(std::chrono::milliseconds(1));
        server.update();
        while (rakwire::Event event = server.poll()) {
            is_over |= event.kind() == rakwire::Event::Kind::Disconnected;
            if (event.kind() != rakwire::Event::Kind::Message)
                continue;
            is_answered = true;
            EXPECT(code_of([&] { server.send(event.connection(), event.data(), event.delivery()); })
                   == RAKWIRE_ERROR_NOT_CONNECTED);
            EXPECT(server.try_send(event.connection(), event.data(), event.delivery()) == RAKWIRE_ERROR_NOT_CONNECTED);
        }
        server.flush();
    }
    EXPECT(is_answered && is_over);
}

int main()
{
    views();
    a_message_and_a_disconnect_in_one_frame();
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
    const std::array<std::uint8_t, 5> channels = {6, 6, 7, 6, 6};
    rakwire::Event kept;
    bool is_asked = false;
    for (int frame = 0; frame < 5000 && !kept; frame++) {
        server.update();
        rakwire::Event event;
        while (server.poll(event)) {
            EXPECT(server.stats().borrowed_messages <= (kept ? 2 : 1));
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
                for (const std::uint8_t channel : channels)
                    client.send(connection, message, {rakwire::Reliability::ReliableOrdered, channel, rakwire::Priority::Low});
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
    client.disconnect(connection);
    secure_connection();
    EXPECT(client.wait(std::chrono::milliseconds(-5)) || client.timeout() > std::chrono::microseconds(0));
    EXPECT(client.drops().empty() && client.advice().empty() && client.socket() > 0);
    std::puts("done");
    return EXIT_SUCCESS;
}
