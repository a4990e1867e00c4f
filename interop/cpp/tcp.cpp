// An echo server, and a client that checks the echoes, with TCPInterface or PacketizedTCP. Command line and output:
// ../README.md.

#include "MessageIdentifiers.h"
#include "PacketizedTCP.h"

#include <arpa/inet.h>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace RakNet;
using Clock = std::chrono::steady_clock;

namespace {

constexpr unsigned short MAX_CONNECTIONS = 64;

struct Options {
    std::string mode, host;
    int port = -1;
    long count = 10, size = 100;
    double timeout = 60;
    bool stream = false;
};

[[noreturn]] void usage() {
    std::fprintf(stderr, "usage: tcp-peer server --port PORT [--stream]\n"
                         "       tcp-peer client HOST:PORT [--stream] [--count N] [--size BYTES] [--timeout SECONDS]\n");
    std::exit(2);
}

Options parse(int argc, char **argv) {
    Options o;
    if (argc < 2) usage();
    o.mode = argv[1];
    for (int i = 2; i < argc; i++) {
        std::string arg = argv[i];
        if (arg == "--stream") {
            o.stream = true;
            continue;
        }
        if (arg.rfind("--", 0) != 0) {
            size_t colon = arg.rfind(':');
            if (colon == std::string::npos) usage();
            o.host = arg.substr(0, colon);
            o.port = std::atoi(arg.c_str() + colon + 1);
            continue;
        }
        if (++i == argc) usage();
        double value = std::atof(argv[i]);
        if (arg == "--port") o.port = (int)value;
        else if (arg == "--count") o.count = (long)value;
        else if (arg == "--size") o.size = (long)value;
        else if (arg == "--timeout") o.timeout = value;
        else usage();
    }
    bool server = o.mode == "server";
    if ((!server && o.mode != "client") || server != o.host.empty() || o.port < 0 || o.port > 65535) usage();
    if (o.count < 1 || o.size < 1) usage();
    return o;
}

// Neither class reports the port that it listens on.
template <class Base> struct Listening : Base {
    int port() const {
        sockaddr_in address = {};
        socklen_t size = sizeof address;
        if (getsockname((int)this->listenSocket, (sockaddr *)&address, &size) != 0) return -1;
        return ntohs(address.sin_port);
    }
};

// Returns true for a progress report of a long message, which the class delivers like a message.
bool is_progress(const Packet *p) {
    return p->length == sizeof(MessageID) + 3 * sizeof(unsigned) + 65536 && p->data[0] == ID_DOWNLOAD_PROGRESS;
}

void pause() { std::this_thread::sleep_for(std::chrono::microseconds(500)); }

template <class Base> int serve(const Options &o) {
    Listening<Base> tcp;
    if (!tcp.Start((unsigned short)o.port, MAX_CONNECTIONS, MAX_CONNECTIONS, -99999, AF_INET, "127.0.0.1")) {
        std::fprintf(stderr, "cannot listen\n");
        return 1;
    }
    std::printf("ready %d\n", tcp.port());
    std::fflush(stdout);
    std::thread([] {
        char byte;
        while (read(0, &byte, 1) == 1) {}
        _exit(0);
    }).detach();
    for (;; pause()) {
        while (Packet *p = tcp.Receive()) {
            if (!is_progress(p)) tcp.Send((const char *)p->data, p->length, p->systemAddress, false);
            tcp.DeallocatePacket(p);
        }
        while (tcp.HasNewIncomingConnection() != UNASSIGNED_SYSTEM_ADDRESS) {}
        while (tcp.HasLostConnection() != UNASSIGNED_SYSTEM_ADDRESS) {}
    }
}

char byte_at(long message, long i) { return (char)(31 * message + 7 * i + 13 * (i >> 8)); }

template <class Base> int client(const Options &o) {
    auto deadline = Clock::now() + std::chrono::duration<double>(o.timeout);
    long echoed = 0;
    bool connected = false;
    try {
        Base tcp;
        if (!tcp.Start(0, 0, 1)) throw std::runtime_error("cannot start");
        SystemAddress server = tcp.Connect(o.host.c_str(), (unsigned short)o.port, true);
        if (server == UNASSIGNED_SYSTEM_ADDRESS) throw std::runtime_error("not connected");
        connected = true;
        std::vector<char> sent, received;
        for (long n = 0; n < o.count; n++) {
            std::vector<char> message((size_t)o.size);
            for (long i = 0; i < o.size; i++) message[(size_t)i] = byte_at(n, i);
            tcp.Send(message.data(), (unsigned)o.size, server, false);
            sent.insert(sent.end(), message.begin(), message.end());
        }
        while (received.size() < sent.size()) {
            if (Clock::now() > deadline) throw std::runtime_error("time limit reached");
            if (tcp.HasLostConnection() != UNASSIGNED_SYSTEM_ADDRESS) throw std::runtime_error("connection lost");
            Packet *p = tcp.Receive();
            if (!p) {
                pause();
                continue;
            }
            if (!is_progress(p)) {
                if (!o.stream && p->length != (unsigned)o.size) throw std::runtime_error("wrong length");
                received.insert(received.end(), p->data, p->data + p->length);
            }
            tcp.DeallocatePacket(p);
        }
        if (received != sent) throw std::runtime_error("wrong content or order");
        echoed = o.count;
        tcp.CloseConnection(server);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        tcp.Stop();
    } catch (const std::exception &e) {
        std::printf("{\"connected\":%s,\"echoed\":%ld,\"error\":\"%s\"}\n", connected ? "true" : "false", echoed, e.what());
        return 1;
    }
    std::printf("{\"connected\":true,\"echoed\":%ld,\"bytes\":%ld}\n", echoed, echoed * o.size);
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    Options o = parse(argc, argv);
    int code;
    if (o.mode == "server") code = o.stream ? serve<TCPInterface>(o) : serve<PacketizedTCP>(o);
    else code = o.stream ? client<TCPInterface>(o) : client<PacketizedTCP>(o);
    std::fflush(stdout);
    // Skips the destructors, because RakNet's threads may still be running.
    _exit(code);
}
