// Tests calls of the C++ headers on a thread to which their object does not belong. They stop a debug build by assert(), and
// fail without an effect in other builds. The second program is compiled with NDEBUG.
#include <rakwire.hpp>
#include <rakwire/raknet_compat.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#define EXPECT(condition)                                                        \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition);         \
            std::exit(EXIT_FAILURE);                                             \
        }                                                                        \
    } while (false)

// Runs calls on another thread. In a debug build, they run in a child process, which must be stopped.
template <class Calls>
static void elsewhere(Calls calls)
{
#ifdef NDEBUG
    std::thread(calls).join();
#else
    const pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        std::freopen("/dev/null", "w", stderr);
        std::thread(calls).join();
        std::_Exit(EXIT_SUCCESS);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
#endif
}

// Polls until a message arrives.
static rakwire::Event message_at(rakwire::Endpoint &server, rakwire::Endpoint &client)
{
    for (int frame = 0; frame < 10000; frame++) {
        client.update();
        while (rakwire::Event event = client.poll())
            if (event.kind() == rakwire::Event::Kind::Connected)
                client.send(event.connection(), "\x86hello");
        client.flush();
        server.wait(std::chrono::milliseconds(1));
        server.update();
        while (rakwire::Event event = server.poll())
            if (event.kind() == rakwire::Event::Kind::Message)
                return event;
        server.flush();
    }
    EXPECT(!"a message has arrived");
    return {};
}

static void an_event_is_destroyed_on_another_thread()
{
    rakwire::Endpoint server(rakwire::Options().bind("127.0.0.1:0").max_incoming(8));
    rakwire::Endpoint client;
    client.connect(server.local_address().str());
    rakwire::Event event = message_at(server, client);
    EXPECT(server.stats().borrowed_messages == 1);
    elsewhere([&event] { const rakwire::Event taken = std::move(event); });
    EXPECT(server.stats().borrowed_messages == 1);
}

static void a_peer_is_used_on_another_thread()
{
    using namespace RakNet;
    RakPeerInterface *peer = RakPeerInterface::GetInstance();
    SocketDescriptor socket(0, "127.0.0.1");
    EXPECT(peer->Startup(4, &socket, 1) == RAKNET_STARTED);
    peer->SetMaximumIncomingConnections(4);
    const SystemAddress own = peer->GetMyBoundAddress();
    elsewhere([peer] { EXPECT(!peer->IsActive()); });
    elsewhere([peer, own] {
        const char message[] = {'\x86', 1};
        EXPECT(peer->Send(message, 2, HIGH_PRIORITY, RELIABLE, 0, own, false) == 0);
        EXPECT(peer->Send(message, 2, HIGH_PRIORITY, RELIABLE, 0, UNASSIGNED_SYSTEM_ADDRESS, true) == 0);
    });
    elsewhere([peer, &socket] { EXPECT(peer->Startup(4, &socket, 1) == STARTUP_OTHER_FAILURE); });
    elsewhere([peer, own] { EXPECT(peer->Connect("127.0.0.1", own.GetPort(), nullptr, 0) == INVALID_PARAMETER); });
    elsewhere([peer] { EXPECT(peer->Receive() == nullptr); });
    elsewhere([peer] { EXPECT(peer->NumberOfConnections() == 0 && peer->GetMaximumNumberOfPeers() == 0); });
    elsewhere([peer] {
        unsigned short count = 9;
        EXPECT(!peer->GetConnectionList(nullptr, &count) && count == 0);
    });
    elsewhere([peer] { peer->SetMaximumIncomingConnections(1); });
    elsewhere([peer] { peer->SetIncomingPassword("other", 5); });
    elsewhere([peer, own] { EXPECT(peer->GetConnectionState(own) == IS_NOT_CONNECTED); });
    elsewhere([peer, own] { peer->CloseConnection(own, true); });
    elsewhere([peer] { EXPECT(peer->GetMyGUID() == UNASSIGNED_RAKNET_GUID); });
    elsewhere([peer, own] { EXPECT(!peer->Ping("127.0.0.1", own.GetPort(), false)); });
    elsewhere([peer] { peer->Shutdown(0); });
    // Nothing has changed on the thread of the peer.
    int length = 16;
    char password[16];
    peer->GetIncomingPassword(password, &length);
    EXPECT(peer->IsActive() && peer->GetMaximumIncomingConnections() == 4 && length == 0);
    EXPECT(peer->NumberOfConnections() == 0 && peer->Receive() == nullptr);
    // After Shutdown(), the peer belongs to no thread.
    peer->Shutdown(0);
    std::thread([peer, &socket] {
        EXPECT(peer->Startup(4, &socket, 1) == RAKNET_STARTED && peer->IsActive());
    }).join();
    RakPeerInterface::DestroyInstance(peer);
}

static void a_peer_is_destroyed_on_another_thread_while_its_own_is_running()
{
    using namespace RakNet;
    RakPeerInterface *other = RakPeerInterface::GetInstance();
    SocketDescriptor socket(0, "127.0.0.1");
    std::thread([other, &socket] {
        RakPeerInterface *peer = RakPeerInterface::GetInstance();
        EXPECT(peer->Startup(4, &socket, 1) == RAKNET_STARTED);
        socket.port = peer->GetMyBoundAddress().GetPort();
        elsewhere([peer] { RakPeerInterface::DestroyInstance(peer); });
        // The socket is still open.
        EXPECT(other->Startup(4, &socket, 1) == SOCKET_PORT_ALREADY_IN_USE);
#ifndef NDEBUG
        RakPeerInterface::DestroyInstance(peer);
#endif
    }).join();
    EXPECT(other->Startup(4, &socket, 1) == RAKNET_STARTED);
    RakPeerInterface::DestroyInstance(other);
}

int main()
{
    an_event_is_destroyed_on_another_thread();
    a_peer_is_used_on_another_thread();
    a_peer_is_destroyed_on_another_thread_while_its_own_is_running();
    std::puts("done");
    return EXIT_SUCCESS;
}
