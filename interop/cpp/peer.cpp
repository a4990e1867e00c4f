// An echo server, and a client that checks the echoes, with C++ RakNet. Command line and output: ../README.md.

#include "../shared/bench.hpp"
#include "MessageIdentifiers.h"
#include "RakPeerInterface.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace RakNet;
using namespace bench;

namespace {

constexpr unsigned MAX_CONNECTIONS = 1024;

struct Options {
    std::string mode, host;
    PacketReliability reliability = RELIABLE_ORDERED;
    int port = -1, protocol = 0;
    long count = 10, size = 100, window = 64, connections = MAX_CONNECTIONS;
    double timeout = 60;
    int attempts = 12;
    // The pause before the last message, in seconds.
    double pause = 0;
    bool timed = false;
    // RakNet's own security. A key is 64 times the byte `key`: the server's own key, or the key that the client trusts.
    // A client with a negative `key` trusts any key.
    bool secure = false;
    int key = -1;
};

[[noreturn]] void usage() {
    std::fprintf(stderr,
        "usage: peer server --port PORT [--protocol N] [--reliability NAME]\n"
        "       peer client HOST:PORT [--protocol N] [--reliability NAME] [--count N] [--size BYTES] [--window W]\n"
        "                   [--timeout SECONDS] [--pause SECONDS] [--attempts N]\n"
        "       either of them with RakNet's own security: --secure KEY, a byte, or any for a client\n"
        "       peer ping HOST:PORT [--timeout SECONDS]\n"
        "       peer echo|sink --port PORT | blast|pingpong HOST:PORT [--count N] [--size BYTES] [--timed] [--connections N]\n");
    std::exit(2);
}

PacketReliability reliability(const std::string &name) {
    static const char *const names[] = {
        "unreliable", "unreliable-sequenced", "reliable", "reliable-ordered", "reliable-sequenced",
        "unreliable-with-receipt", "reliable-with-receipt", "reliable-ordered-with-receipt",
    };
    for (int i = 0; i < 8; i++)
        if (name == names[i]) return (PacketReliability)i;
    usage();
}

bool is_sequenced(PacketReliability r) { return r == UNRELIABLE_SEQUENCED || r == RELIABLE_SEQUENCED; }
bool is_ordered(PacketReliability r) { return r == RELIABLE_ORDERED || r == RELIABLE_ORDERED_WITH_ACK_RECEIPT; }
bool may_lose(PacketReliability r) {
    return r == UNRELIABLE || r == UNRELIABLE_WITH_ACK_RECEIPT || is_sequenced(r);
}

Options parse(int argc, char **argv) {
    Options o;
    if (argc < 2) usage();
    o.mode = argv[1];
    for (int i = 2; i < argc; i++) {
        std::string arg = argv[i];
        if (arg.rfind("--", 0) != 0) {
            size_t colon = arg.rfind(':');
            if (colon == std::string::npos) usage();
            o.host = arg.substr(0, colon);
            o.port = std::atoi(arg.c_str() + colon + 1);
            continue;
        }
        if (arg == "--timed") {
            o.timed = true;
            continue;
        }
        if (++i == argc) usage();
        double value = std::atof(argv[i]);
        if (arg == "--port") o.port = (int)value;
        else if (arg == "--protocol") o.protocol = (int)value;
        else if (arg == "--count") o.count = (long)value;
        else if (arg == "--size") o.size = (long)value;
        else if (arg == "--window") o.window = (long)value;
        else if (arg == "--connections") o.connections = (long)value;
        else if (arg == "--timeout") o.timeout = value;
        else if (arg == "--pause") o.pause = value;
        else if (arg == "--attempts") o.attempts = (int)value;
        else if (arg == "--secure") o.secure = true, o.key = std::strcmp(argv[i], "any") == 0 ? -1 : (int)value;
        else if (arg == "--reliability") o.reliability = reliability(argv[i]);
        else usage();
    }
    static const char *const modes[] = {"server", "client", "ping", "echo", "sink", "blast", "pingpong"};
    if (std::find(std::begin(modes), std::end(modes), o.mode) == std::end(modes)) usage();
    bool server = o.mode == "server" || o.mode == "echo" || o.mode == "sink";
    if (o.port < 0 || o.port > 65535 || server != o.host.empty()) usage();
    if (o.count < 1 || o.size < 5 || o.window < 1) usage();
    return o;
}

// 0xFE, sequence number u32 BE, then byte i is 31 * sequence + 7 * i + 13 * (i / 256) mod 256.
void fill(std::vector<char> &message, uint32_t sequence) {
    message[0] = (char)0xFE;
    for (int i = 0; i < 4; i++) message[1 + i] = (char)(sequence >> (24 - 8 * i));
    for (size_t i = 5; i < message.size(); i++) message[i] = (char)(31 * sequence + 7 * i + 13 * (i >> 8));
}

// RakNet has no blocking receive, so this polls fast while messages flow, and slowly otherwise.
class Idle {
    Clock::time_point last = Clock::now();
public:
    void busy() { last = Clock::now(); }
    void wait() {
        bool active = Clock::now() - last < std::chrono::milliseconds(50);
        std::this_thread::sleep_for(std::chrono::microseconds(active ? 100 : 2000));
    }
};

RakPeerInterface *start(const Options &o, unsigned connections, unsigned short port, const char *address) {
    RakPeerInterface *peer = RakPeerInterface::GetInstance();
    if (o.protocol) peer->SetProtocolVersion(o.protocol);
    if (o.secure && o.mode == "server") {
        std::vector<char> key(64, (char)o.key), secret(32, (char)o.key);
        if (!peer->InitializeSecurity(key.data(), secret.data(), false)) throw std::runtime_error("built without security");
    }
    SocketDescriptor socket(port, address);
    if (peer->Startup(connections, &socket, 1) != RAKNET_STARTED) throw std::runtime_error("cannot bind");
    return peer;
}

const char *failure(unsigned char id) {
    switch (id) {
    case ID_CONNECTION_ATTEMPT_FAILED: return "connection attempt failed";
    case ID_INCOMPATIBLE_PROTOCOL_VERSION: return "incompatible protocol version";
    case ID_NO_FREE_INCOMING_CONNECTIONS: return "no free incoming connections";
    case ID_ALREADY_CONNECTED: return "already connected";
    case ID_CONNECTION_BANNED: return "banned";
    case ID_INVALID_PASSWORD: return "invalid password";
    case ID_IP_RECENTLY_CONNECTED: return "ip recently connected";
    case ID_REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY: return "server requires a public key";
    case ID_OUR_SYSTEM_REQUIRES_SECURITY: return "client requires security";
    case ID_PUBLIC_KEY_MISMATCH: return "another public key";
    case ID_DISCONNECTION_NOTIFICATION: return "disconnected by the server";
    case ID_CONNECTION_LOST: return "connection lost";
    default: return nullptr;
    }
}

// Prints one line with the outcome of a connection attempt of the server, or with its incoming connection.
void tell(const Packet *p) {
    const char *what = p->data[0] == ID_CONNECTION_REQUEST_ACCEPTED ? "accepted"
        : p->data[0] == ID_NEW_INCOMING_CONNECTION ? "incoming" : failure(p->data[0]);
    if (!what) return;
    std::printf("%s %u\n", what, p->systemAddress.GetPort());
    std::fflush(stdout);
}

int serve(const Options &o) {
    RakPeerInterface *peer;
    try {
        peer = start(o, MAX_CONNECTIONS, (unsigned short)o.port, "127.0.0.1");
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
    peer->SetMaximumIncomingConnections(MAX_CONNECTIONS);
    const char pong[] = "rakwire interop cpp";
    peer->SetOfflinePingResponse(pong, sizeof pong - 1);
    std::printf("ready %u\n", peer->GetMyBoundAddress().GetPort());
    std::fflush(stdout);
    std::atomic<bool> tells{false};
    std::thread([peer, &tells] {
        char line[256];
        while (std::fgets(line, sizeof line, stdin)) {
            if (std::strcmp(line, "tell\n") == 0) {
                tells = true;
                std::printf("telling\n"), std::fflush(stdout);
                continue;
            }
            char *colon = std::strrchr(line, ':');
            if (!colon) continue;
            *colon = 0;
            // Connects from the server's own port, like peers that connect to each other at the same time.
            if (peer->Connect(line, (unsigned short)std::atoi(colon + 1), nullptr, 0) != CONNECTION_ATTEMPT_STARTED)
                std::printf("refused\n"), std::fflush(stdout);
        }
        _exit(0);
    }).detach();
    for (Idle idle;; idle.wait()) {
        while (Packet *p = peer->Receive()) {
            if (tells && p->length) tell(p);
            if (p->length && p->data[0] >= ID_USER_PACKET_ENUM)
                peer->Send((const char *)p->data, (int)p->length, IMMEDIATE_PRIORITY, o.reliability, 0,
                           p->systemAddress, false);
            peer->DeallocatePacket(p);
            idle.busy();
        }
    }
}

// Checks the content and the order of echoes, and that there are no duplicates.
class Echoes {
    const Options &o;
    std::vector<bool> seen;
    std::vector<char> expected;
    Clock::time_point last = Clock::now();
public:
    long count = 0, next = 0, answered = 0;
    explicit Echoes(const Options &o) : o(o), seen((size_t)o.count), expected((size_t)o.size) {}
    void take(const unsigned char *data, size_t length) {
        if (length != expected.size()) throw std::runtime_error("wrong length");
        long n = (long)data[1] << 24 | data[2] << 16 | data[3] << 8 | data[4];
        if (is_ordered(o.reliability)) n = next;
        if (n >= o.count || seen[n]) throw std::runtime_error("a message that was not sent, or a duplicate");
        if (is_sequenced(o.reliability) && n < next) throw std::runtime_error("an outdated message");
        fill(expected, (uint32_t)n);
        if (std::memcmp(data, expected.data(), length) != 0) throw std::runtime_error("wrong content or order");
        seen[n] = true;
        count++;
        if (n >= next) next = n + 1;
        answered = std::max(answered, next);
        last = Clock::now();
    }
    bool silent(int milliseconds) const { return Clock::now() - last > std::chrono::milliseconds(milliseconds); }
    // Counts lost messages as answered, because the window would otherwise stay closed.
    void give_up_lost(long sent) {
        if (may_lose(o.reliability) && answered < sent && silent(300)) answered = sent, last = Clock::now();
    }
    bool done(long sent) const {
        return count == o.count || (may_lose(o.reliability) && sent == o.count && count && silent(5000));
    }
};

void dial(RakPeerInterface *peer, const Options &o) {
    std::vector<char> trusted(64, (char)o.key);
    PublicKey key = {};
    key.publicKeyMode = o.key < 0 ? PKM_ACCEPT_ANY_PUBLIC_KEY : PKM_USE_KNOWN_PUBLIC_KEY;
    key.remoteServerPublicKey = trusted.data();
    if (peer->Connect(o.host.c_str(), (unsigned short)o.port, nullptr, 0, o.secure ? &key : nullptr, 0,
                      (unsigned)o.attempts) != CONNECTION_ATTEMPT_STARTED)
        throw std::runtime_error("cannot start the connection attempt");
}

int client(const Options &o) {
    auto deadline = Clock::now() + std::chrono::duration<double>(o.timeout);
    bool connected = false;
    long sent = 0;
    Echoes echoes(o);
    RakPeerInterface *peer = nullptr;
    try {
        peer = start(o, 1, 0, nullptr);
        dial(peer, o);
        std::vector<char> message((size_t)o.size);
        SystemAddress server = UNASSIGNED_SYSTEM_ADDRESS;
        Clock::time_point began = Clock::now();
        Idle idle;
        while (!echoes.done(sent)) {
            if (Clock::now() > deadline) throw std::runtime_error("time limit reached");
            if (Packet *p = peer->Receive()) {
                idle.busy();
                unsigned char id = p->length ? p->data[0] : 0;
                if (id == ID_CONNECTION_REQUEST_ACCEPTED) {
                    connected = true;
                    server = p->systemAddress;
                    began = Clock::now();
                } else if (const char *error = failure(id)) {
                    throw std::runtime_error(error);
                } else if (id >= ID_USER_PACKET_ENUM) {
                    echoes.take(p->data, p->length);
                }
                peer->DeallocatePacket(p);
            } else {
                idle.wait();
                echoes.give_up_lost(sent);
            }
            // The window limits the unanswered messages. They are counted, because the newest echo does not imply
            // earlier ones if messages are unordered.
            while (connected && sent < o.count && sent - (may_lose(o.reliability) ? echoes.answered : echoes.count) < o.window) {
                if (sent + 1 == o.count && o.pause > 0)
                    std::this_thread::sleep_for(std::chrono::duration<double>(o.pause));
                fill(message, (uint32_t)sent++);
                peer->Send(message.data(), (int)message.size(), IMMEDIATE_PRIORITY, o.reliability, 0, server, false);
            }
        }
        double seconds = std::chrono::duration<double>(Clock::now() - began).count();
        // Returns as soon as the remote peer has acknowledged the disconnection.
        peer->Shutdown(10000);
        std::printf("{\"connected\":true,\"echoed\":%ld,\"bytes\":%ld,\"seconds\":%.6f}\n", echoes.count, echoes.count * o.size, seconds);
        return 0;
    } catch (const std::exception &e) {
        if (peer) peer->Shutdown(100);
        std::printf("{\"connected\":%s,\"echoed\":%ld,\"error\":\"%s\"}\n", connected ? "true" : "false", echoes.count, e.what());
        return 1;
    }
}

int ping(const Options &o) {
    auto deadline = Clock::now() + std::chrono::duration<double>(o.timeout);
    auto next = Clock::now();
    RakPeerInterface *peer = start(o, 1, 0, nullptr);
    for (Idle idle; Clock::now() < deadline; idle.wait()) {
        if (Clock::now() >= next) {
            peer->Ping(o.host.c_str(), (unsigned short)o.port, false);
            next += std::chrono::milliseconds(500);
        }
        while (Packet *p = peer->Receive()) {
            // The id, then the low 32 bits of the echoed time, then the data.
            if (p->data[0] == ID_UNCONNECTED_PONG && p->length >= 5) {
                std::fwrite(p->data + 5, 1, p->length - 5, stdout);
                std::printf("\n");
                peer->Shutdown(0);
                return 0;
            }
            peer->DeallocatePacket(p);
        }
    }
    std::fprintf(stderr, "no pong\n");
    return 1;
}

// The roles of a benchmark, as in ../shared/bench.rs.

constexpr int BENCH_PROTOCOL = 11;

// The interval at which the next message is polled, because RakNet has no blocking receive. Short where round trips are
// measured, and long elsewhere, so that RakNet's threads get the core.
int poll_interval_us = 100;

Packet *next(RakPeerInterface *peer) {
    for (;;) {
        Packet *p = peer->Receive();
        if (!p) {
            std::this_thread::sleep_for(std::chrono::microseconds(poll_interval_us));
            continue;
        }
        unsigned char id = p->length ? p->data[0] : 0;
        if (id >= ID_USER_PACKET_ENUM || id == ID_CONNECTION_REQUEST_ACCEPTED || id == ID_NEW_INCOMING_CONNECTION) return p;
        if (const char *error = failure(id)) throw std::runtime_error(error);
        peer->DeallocatePacket(p);
    }
}

int server_role(Options o) {
    o.protocol = BENCH_PROTOCOL;
    RakPeerInterface *peer = start(o, (unsigned)o.connections, (unsigned short)o.port, "127.0.0.1");
    peer->SetMaximumIncomingConnections((unsigned short)o.connections);
    std::printf("ready %u\n", peer->GetMyBoundAddress().GetPort());
    std::fflush(stdout);
    std::thread([] {
        wait_for_line();
        _exit(0);
    }).detach();
    std::vector<uint64_t> values;
    Clock::time_point began;
    for (long number = 0; o.mode == "echo" || number < o.count;) {
        Packet *p = next(peer);
        if (p->data[0] >= ID_USER_PACKET_ENUM) {
            if (o.mode == "echo") {
                peer->Send((const char *)p->data, (int)p->length, IMMEDIATE_PRIORITY, RELIABLE_ORDERED, 0, p->systemAddress, false);
            } else {
                uint64_t sent = check(p->data, p->length, (uint32_t)number, (size_t)o.size);
                if (number++ == 0) began = Clock::now();
                if (o.timed) values.push_back(nanos() - sent);
                if (number == o.count)
                    peer->Send(DONE, sizeof DONE - 1, IMMEDIATE_PRIORITY, RELIABLE_ORDERED, 0, p->systemAddress, false);
            }
        }
        peer->DeallocatePacket(p);
    }
    print_report(o.count, began, values);
    for (;;) pause();
}

int client_role(Options o) {
    o.protocol = BENCH_PROTOCOL;
    RakPeerInterface *peer = start(o, 1, 0, nullptr);
    if (peer->Connect(o.host.c_str(), (unsigned short)o.port, nullptr, 0) != CONNECTION_ATTEMPT_STARTED)
        throw std::runtime_error("cannot start the connection attempt");
    Packet *p = next(peer);
    SystemAddress server = p->systemAddress;
    peer->DeallocatePacket(p);
    std::printf("connected\n");
    std::fflush(stdout);
    wait_for_line();
    std::vector<char> message((size_t)o.size);
    std::vector<uint64_t> values;
    Clock::time_point began = Clock::now();
    for (long number = 0; number < o.count; number++) {
        put(message, (uint32_t)number, o.timed);
        uint64_t sent = nanos();
        peer->Send(message.data(), (int)message.size(), IMMEDIATE_PRIORITY, RELIABLE_ORDERED, 0, server, false);
        if (o.mode == "blast") continue;
        p = next(peer);
        values.push_back(nanos() - sent);
        check(p->data, p->length, (uint32_t)number, (size_t)o.size);
        peer->DeallocatePacket(p);
    }
    if (o.mode == "blast") {
        p = next(peer);
        if (p->length != sizeof DONE - 1 || std::memcmp(p->data, DONE, p->length)) throw std::runtime_error("the receiver did not confirm");
    }
    print_report(o.count, began, values);
    wait_for_line();
    return 0;
}

int role(const Options &o) {
    if ((size_t)o.size < HEADER) usage();
    // Without this call, a short sleep takes about 60 microseconds longer.
    prctl(PR_SET_TIMERSLACK, 1000);
    if (o.mode == "echo" || o.mode == "pingpong") poll_interval_us = 10;
    try {
        return o.mode == "echo" || o.mode == "sink" ? server_role(o) : client_role(o);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}

} // namespace

int main(int argc, char **argv) {
    Options o = parse(argc, argv);
    if (o.mode == "server") return serve(o);
    int code = o.mode == "client" ? client(o) : o.mode == "ping" ? ping(o) : role(o);
    std::fflush(stdout);
    // Skips the destructors, because RakNet's threads may still use its globals.
    _exit(code);
}
