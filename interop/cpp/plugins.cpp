// A peer with the connection graph and the ready events of the C++ RakNet. Command line and output: ../README.md.

#include "BitStream.h"
#include "ConnectionGraph2.h"
#include "MessageIdentifiers.h"
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

// Lines of standard input. The plugins belong to the thread that receives, so another one reads.
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

class Peer {
    RakPeerInterface *peer = RakPeerInterface::GetInstance();
    ConnectionGraph2 graph;
    ReadyEvent events;
    std::string printed_graph;
    std::map<int, bool> completed;

    // Who says that it is connected to whom: "A-B A-C B-A".
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

public:
    bool start(unsigned short port) {
        peer->AttachPlugin(&graph);
        peer->AttachPlugin(&events);
        SocketDescriptor socket(port, "127.0.0.1");
        if (peer->Startup(MAX_CONNECTIONS, &socket, 1) != RAKNET_STARTED) return false;
        peer->SetMaximumIncomingConnections(MAX_CONNECTIONS);
        std::printf("ready %u\n", peer->GetMyBoundAddress().GetPort());
        std::printf("guid %s\n", std::to_string(peer->GetMyGUID().g).c_str());
        return true;
    }

    void command(const std::string &line) {
        char verb[16], target[64];
        if (std::sscanf(line.c_str(), "%15s %63s", verb, target) != 2) return;
        std::string what = verb;
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
