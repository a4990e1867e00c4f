// A small chat, written for SLikeNet. It compiles with the headers of SLikeNet (-DSLIKENET), of RakNet 4 (-DORIGINAL,
// with a namespace alias) and of rakwire.
//
//     chat server PORT          prints `ready PORT`, and exits after two clients have disconnected
//     chat client PORT NAME     waits for the other client, greets it, and prints the received messages
#if defined(SLIKENET)
#include "slikenet/BitStream.h"
#include "slikenet/MessageIdentifiers.h"
#include "slikenet/peerinterface.h"
#include "slikenet/sleep.h"
#include "slikenet/statistics.h"
#include "slikenet/types.h"
#elif defined(ORIGINAL)
#include <BitStream.h>
#include <MessageIdentifiers.h>
#include <RakNetStatistics.h>
#include <RakNetTypes.h>
#include <RakPeerInterface.h>
#include <RakSleep.h>
#include <RakString.h>
namespace SLNet = RakNet;
#else
#include <rakwire/raknet_compat.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <cstring>

enum ChatMessages { ID_WELCOME = ID_USER_PACKET_ENUM + 1, ID_START, ID_LINE };

using namespace SLNet;

static void write(BitStream &stream, MessageID id, const char *text)
{
    stream.Write(id);
    stream.Write(text);
}

static RakString read(const Packet *packet)
{
    BitStream stream(packet->data, packet->length, false);
    stream.IgnoreBytes(sizeof(MessageID));
    RakString text;
    return stream.Read(text) ? text : RakString("%s", "not a string");
}

static int server(unsigned short port)
{
    RakPeerInterface *peer = RakPeerInterface::GetInstance();
    SocketDescriptor socket(port, "127.0.0.1");
    if (peer->Startup(4, &socket, 1) != RAKNET_STARTED)
        return 1;
    peer->SetMaximumIncomingConnections(4);
    peer->SetOccasionalPing(true);
    printf("ready %u\n", (unsigned)peer->GetMyBoundAddress().GetPort());
    fflush(stdout);
    int left = 0;
    while (left < 2) {
        for (Packet *packet = peer->Receive(); packet; peer->DeallocatePacket(packet), packet = peer->Receive()) {
            switch (packet->data[0]) {
            case ID_NEW_INCOMING_CONNECTION: {
                BitStream welcome;
                const RakString text("welcome to a chat of %d%%", 100);
                welcome.Write((MessageID)ID_WELCOME);
                welcome.Write(text);
                peer->Send(&welcome, MEDIUM_PRIORITY, RELIABLE_ORDERED, 0, packet->guid, false);
                if (peer->NumberOfConnections() == 2) {
                    SystemAddress all[4];
                    unsigned short count = 4;
                    peer->GetConnectionList(all, &count);
                    printf("connections %u\n", (unsigned)count);
                    const char start = (char)ID_START;
                    peer->Send(&start, 1, HIGH_PRIORITY, RELIABLE_ORDERED, 0, UNASSIGNED_SYSTEM_ADDRESS, true);
                }
                break;
            }
            case ID_LINE: {
                BitStream line;
                write(line, (MessageID)ID_LINE, read(packet).C_String());
                peer->Send(&line, MEDIUM_PRIORITY, RELIABLE_ORDERED, 0, packet->systemAddress, true);
                break;
            }
            case ID_DISCONNECTION_NOTIFICATION:
            case ID_CONNECTION_LOST:
                left++;
                break;
            }
        }
        RakSleep(5);
    }
    printf("left %d\n", left);
    peer->Shutdown(100);
    RakPeerInterface::DestroyInstance(peer);
    return 0;
}

static int client(unsigned short port, const char *name)
{
    RakPeerInterface *peer = RakPeerInterface::GetInstance();
    SocketDescriptor socket;
    if (peer->Startup(1, &socket, 1) != RAKNET_STARTED
        || peer->Connect("127.0.0.1", port, 0, 0) != CONNECTION_ATTEMPT_STARTED)
        return 1;
    RakNetGUID server = UNASSIGNED_RAKNET_GUID;
    bool has_heard = false;
    for (int frame = 0; frame < 4000 && !has_heard; frame++) {
        for (Packet *packet = peer->Receive(); packet; peer->DeallocatePacket(packet), packet = peer->Receive()) {
            switch (packet->data[0]) {
            case ID_CONNECTION_REQUEST_ACCEPTED:
                server = packet->guid;
                break;
            case ID_WELCOME:
                printf("%s\n", read(packet).C_String());
                break;
            case ID_START: {
                BitStream line;
                write(line, (MessageID)ID_LINE, RakString("hello from %s", name).C_String());
                peer->Send(&line, MEDIUM_PRIORITY, RELIABLE_ORDERED, 0, server, false);
                break;
            }
            case ID_LINE: {
                RakNetStatistics statistics;
                const bool is_there = peer->GetStatistics(packet->systemAddress, &statistics) != 0;
                printf("%s, statistics %d\n", read(packet).C_String(),
                       (int)(is_there && statistics.runningTotal[ACTUAL_BYTES_RECEIVED] > 0));
                has_heard = true;
                break;
            }
            case ID_CONNECTION_ATTEMPT_FAILED:
            case ID_CONNECTION_LOST:
                printf("the end: %d\n", packet->data[0]);
                return 1;
            }
        }
        RakSleep(5);
    }
    // Waits until the queued messages were sent, before closing the connection.
    RakSleep(50);
    peer->CloseConnection(server, true);
    peer->Shutdown(300);
    RakPeerInterface::DestroyInstance(peer);
    return has_heard ? 0 : 1;
}

int main(int argc, char **argv)
{
    const unsigned short port = (unsigned short)(argc > 2 ? atoi(argv[2]) : 0);
    if (argc > 3 && strcmp(argv[1], "client") == 0)
        return client(port, argv[3]);
    return server(port);
}
