// A peer with the connection graph, the ready events and the RPC4 of the C++ RakNet. Command line and output: ../README.md.

#include "BitStream.h"
#include "ConnectionGraph2.h"
#include "MessageIdentifiers.h"
#include "RPC4Plugin.h"
#include "RakPeerInterface.h"
#include "ReadyEvent.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace RakNet;

namespace {

constexpr unsigned MAX_CONNECTIONS = 16;

[[noreturn]] void usage() {
    std::fprintf(stderr, "usage: plugins-peer server --port PORT\n");
    std::exit(2);
}

// Lines of standard input, which a separate thread reads: the plugins may only be used by the thread that receives.
class Input {
    std::mutex mutex;
    std::vector<std::string> lines;
public:
    void read() {
        char line[256];
        while (std::fgets(line, sizeof line, stdin)) {
            std::lock_guard<std::mutex> lock(mutex);
            lines.push_back(line);
        }
        _exit(0);
    }
    std::vector<std::string> take() {
        std::lock_guard<std::mutex> lock(mutex);
        std::vector<std::string> taken;
        taken.swap(lines);
        return taken;
    }
};

// The functions that peers call and signal. Each reads one number from the bit stream, or two.
unsigned number(BitStream *arguments) {
    unsigned value = 0;
    arguments->Read(value);
    return value;
}

void add(BitStream *arguments, BitStream *answer, Packet *) {
    unsigned a = number(arguments);
    answer->Write(a + number(arguments));
}

void note(BitStream *arguments, Packet *) { std::printf("noted %u\n", number(arguments)); }
void first(BitStream *arguments, Packet *) { std::printf("first %u\n", number(arguments)); }
void second(BitStream *arguments, Packet *) { std::printf("second %u\n", number(arguments)); }

class Peer {
    RakPeerInterface *peer = RakPeerInterface::GetInstance();
    ConnectionGraph2 graph;
    ReadyEvent events;
    RPC4 calls;
    std::string printed_graph;
    std::map<int, bool> completed;

    // The connections that each peer reports: "A-B A-C B-A".
    std::string pairs() {
        DataStructures::OrderedList<RakNetGUID, RakNetGUID> peers;
        graph.GetParticipantList(peers);
        std::string text;
        for (unsigned i = 0; i < peers.Size(); i++) {
            RakNetGUID others[MAX_CONNECTIONS];
            unsigned count = MAX_CONNECTIONS;
            graph.GetConnectionListForRemoteSystem(peers[i], nullptr, others, &count);
            for (unsigned k = 0; k < count; k++)
                text += " " + std::to_string(peers[i].g) + "-" + std::to_string(others[k].g);
        }
        return text;
    }

    // Calls and signals are sent to all peers, a blocking call to one of them.
    void remote_call(const std::string &verb, const char *name, unsigned a, unsigned b) {
        BitStream arguments;
        arguments.Write(a);
        if (verb == "call") calls.Call(name, &arguments, HIGH_PRIORITY, RELIABLE_ORDERED, 0, UNASSIGNED_RAKNET_GUID, true);
        if (verb == "signal")
            calls.Signal(name, &arguments, HIGH_PRIORITY, RELIABLE_ORDERED, 0, UNASSIGNED_RAKNET_GUID, true, false);
        if (verb != "ask") return;
        arguments.Write(b);
        BitStream answer;
        bool is_answered = calls.CallBlocking(name, &arguments, HIGH_PRIORITY, RELIABLE_ORDERED, 0,
                                              peer->GetGUIDFromIndex(0), &answer);
        if (is_answered) std::printf("answer %u\n", number(&answer));
        else std::printf("no answer\n");
    }

public:
    bool start(unsigned short port) {
        peer->AttachPlugin(&graph);
        peer->AttachPlugin(&events);
        calls.RegisterBlockingFunction("Add", add);
        calls.RegisterFunction("Note", note);
        calls.RegisterSlot("Hit", second, 1);
        calls.RegisterSlot("Hit", first, 2);
        peer->AttachPlugin(&calls);
        SocketDescriptor socket(port, "127.0.0.1");
        if (peer->Startup(MAX_CONNECTIONS, &socket, 1) != RAKNET_STARTED) return false;
        peer->SetMaximumIncomingConnections(MAX_CONNECTIONS);
        std::printf("ready %u\n", peer->GetMyBoundAddress().GetPort());
        std::printf("guid %s\n", std::to_string(peer->GetMyGUID().g).c_str());
        return true;
    }

    void command(const std::string &line) {
        char verb[16], target[64];
        unsigned a = 0, b = 0;
        if (std::sscanf(line.c_str(), "%15s %63s %u %u", verb, target, &a, &b) < 2) return;
        std::string what = verb;
        if (what == "call" || what == "ask" || what == "signal") return remote_call(what, target, a, b);
        int event = std::atoi(target);
        if (what == "dial") {
            char *colon = std::strrchr(target, ':');
            if (!colon) return;
            *colon = 0;
            peer->Connect(target, (unsigned short)std::atoi(colon + 1), nullptr, 0);
            return;
        }
        if (what == "wait") events.AddToWaitList(event, UNASSIGNED_RAKNET_GUID);
        else if (what == "set") events.SetEvent(event, true);
        else if (what == "unset") events.SetEvent(event, false);
        else if (what == "force") events.ForceCompletion(event);
        else return;
        completed.emplace(event, false);
    }

    void receive() {
        while (Packet *p = peer->Receive()) {
            unsigned char id = p->length ? p->data[0] : 0;
            if (id == ID_REMOTE_DISCONNECTION_NOTIFICATION || id == ID_REMOTE_CONNECTION_LOST)
                std::printf("received %d %s\n", id, std::to_string(p->guid.g).c_str());
            if (id == ID_NEW_INCOMING_CONNECTION) std::printf("incoming %s\n", std::to_string(p->guid.g).c_str());
            if (id == ID_RPC_REMOTE_ERROR && p->length > 2 && p->data[p->length - 1] == 0)
                std::printf("unknown %s\n", (const char *)p->data + 2);
            peer->DeallocatePacket(p);
        }
    }

    void print_changes() {
        std::string now = pairs();
        if (now != printed_graph) std::printf("graph%s\n", now.c_str());
        printed_graph = now;
        for (auto &[event, was_completed] : completed) {
            bool is_completed = events.IsEventCompleted(event);
            if (is_completed != was_completed) std::printf("event %d %s\n", event, is_completed ? "completed" : "open");
            was_completed = is_completed;
        }
        std::fflush(stdout);
    }
};

} // namespace

int main(int argc, char **argv) {
    if (argc != 4 || std::strcmp(argv[1], "server") != 0 || std::strcmp(argv[2], "--port") != 0) usage();
    Peer peer;
    if (!peer.start((unsigned short)std::atoi(argv[3]))) {
        std::fprintf(stderr, "cannot bind\n");
        return 1;
    }
    Input input;
    std::thread([&input] { input.read(); }).detach();
    for (;;) {
        for (const std::string &line : input.take()) peer.command(line);
        peer.receive();
        peer.print_changes();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}
