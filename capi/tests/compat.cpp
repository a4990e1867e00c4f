// A small program that compiles with the headers of RakNet 4 (-DORIGINAL) and with those of rakwire: a server and a
// client with passwords, pings, ordered messages, receipts and bit streams.
//
//     compat server PORT        prints `ready PORT`, and echoes until a client has disconnected
//     compat client PORT        sends messages, checks the echoes, and prints the events
//     compat bits               prints the bytes of bit streams
//     compat silent             closes a connection without a notification between messages, and prints the packets that follow
#ifdef ORIGINAL
#include <BitStream.h>
#include <MessageIdentifiers.h>
#include <RakNetTypes.h>
#include <RakPeerInterface.h>
#include <RakSleep.h>
#include <RakString.h>
#else
#include <rakwire/raknet_compat.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <cstring>

enum GameMessages { ID_GAME_ECHO = ID_USER_PACKET_ENUM + 1 };

static const char password[] = "friends";
static const int messages = 200;

static int server(unsigned short port)
{
    RakNet::RakPeerInterface *peer = RakNet::RakPeerInterface::GetInstance();
    RakNet::SocketDescriptor socket(port, "127.0.0.1");
    if (peer->Startup(8, &socket, 1) != RakNet::RAKNET_STARTED)
        return 1;
    peer->SetMaximumIncomingConnections(8);
    peer->SetIncomingPassword(password, (int)strlen(password));
    peer->SetOfflinePingResponse("a game", 7);
    printf("ready %u\n", (unsigned)peer->GetMyBoundAddress().GetPort());
    fflush(stdout);
    bool is_over = false;
    while (!is_over) {
        for (RakNet::Packet *packet = peer->Receive(); packet; peer->DeallocatePacket(packet), packet = peer->Receive()) {
            switch (packet->data[0]) {
            case ID_NEW_INCOMING_CONNECTION:
                printf("incoming %d\n", (int)peer->NumberOfConnections());
                break;
            case ID_GAME_ECHO:
                peer->Send((const char *)packet->data, (int)packet->length, HIGH_PRIORITY, RELIABLE_ORDERED, 3,
                           packet->systemAddress, false);
                break;
            case ID_DISCONNECTION_NOTIFICATION:
                printf("left\n");
                is_over = true;
                break;
            case ID_CONNECTION_LOST:
                printf("lost\n");
                is_over = true;
                break;
            }
        }
        RakSleep(5);
    }
    peer->Shutdown(100);
    RakNet::RakPeerInterface::DestroyInstance(peer);
    return 0;
}

static void send(RakNet::RakPeerInterface *peer, RakNet::SystemAddress to, int number)
{
    RakNet::BitStream stream;
    stream.Write((RakNet::MessageID)ID_GAME_ECHO);
    stream.Write(number);
    stream.Write(number % 2 == 0);
    stream.Write((float)number / 4.0f);
    stream.Write((unsigned short)(number * 7));
    peer->Send(&stream, HIGH_PRIORITY, RELIABLE_ORDERED, 3, to, false);
}

static bool is_echo(const RakNet::Packet *packet, int number)
{
    RakNet::BitStream stream(packet->data, packet->length, false);
    stream.IgnoreBytes(sizeof(RakNet::MessageID));
    int read = -1;
    bool is_even = false;
    float quarter = 0;
    unsigned short seven = 0;
    return stream.Read(read) && stream.Read(is_even) && stream.Read(quarter) && stream.Read(seven) && read == number
        && is_even == (number % 2 == 0) && quarter == (float)number / 4.0f && seven == (unsigned short)(number * 7);
}

static int client(unsigned short port)
{
    RakNet::RakPeerInterface *peer = RakNet::RakPeerInterface::GetInstance();
    RakNet::SocketDescriptor socket(0, 0);
    if (peer->Startup(1, &socket, 1) != RakNet::RAKNET_STARTED)
        return 1;
    peer->Ping("127.0.0.1", port, false);
    RakNet::SystemAddress server = RakNet::UNASSIGNED_SYSTEM_ADDRESS;
    int echoed = 0, wrong = 0;
    uint32_t receipt = 0;
    bool is_over = false, is_waiting = false;
    for (int frame = 0; frame < 6000 && !is_over; frame++) {
        for (RakNet::Packet *packet = peer->Receive(); packet; peer->DeallocatePacket(packet), packet = peer->Receive()) {
            switch (packet->data[0]) {
            case ID_UNCONNECTED_PONG: {
                printf("pong %s\n", (const char *)packet->data + 1 + sizeof(RakNet::TimeMS));
                if (peer->Connect("127.0.0.1", port, "wrong", 5) != RakNet::CONNECTION_ATTEMPT_STARTED)
                    return 1;
                break;
            }
            case ID_INVALID_PASSWORD:
                printf("invalid password\n");
                is_waiting = true;
                break;
            case ID_CONNECTION_REQUEST_ACCEPTED:
                server = packet->systemAddress;
                printf("accepted by %s, %d\n", server.ToString(false), (int)(server.GetPort() == port));
                for (int number = 0; number < messages; number++)
                    send(peer, server, number);
                break;
            case ID_GAME_ECHO:
                wrong += !is_echo(packet, echoed);
                if (++echoed == messages) {
                    const char last[] = {(char)ID_USER_PACKET_ENUM, 1, 2, 3};
                    receipt = peer->Send(last, sizeof last, MEDIUM_PRIORITY, RELIABLE_WITH_ACK_RECEIPT, 0, server, false);
                }
                break;
            case ID_SND_RECEIPT_ACKED: {
                uint32_t number;
                memcpy(&number, packet->data + 1, 4);
                printf("receipt %d, connected %d, ping %d\n", (int)(number == receipt),
                       (int)(peer->GetConnectionState(packet->guid) == RakNet::IS_CONNECTED),
                       (int)(peer->GetLastPing(server) >= 0 && peer->GetLastPing(server) < 1000));
                peer->CloseConnection(server, true);
                is_over = true;
                break;
            }
            case ID_CONNECTION_ATTEMPT_FAILED:
            case ID_CONNECTION_LOST:
            case ID_DISCONNECTION_NOTIFICATION:
                printf("the end: %d\n", packet->data[0]);
                return 1;
            }
        }
        // RakNet keeps a refused attempt for a moment, and refuses another attempt until then. Try again in each frame.
        if (is_waiting && peer->Connect("127.0.0.1", port, password, (int)strlen(password)) == RakNet::CONNECTION_ATTEMPT_STARTED)
            is_waiting = false;
        RakSleep(5);
    }
    printf("echoed %d, wrong %d\n", echoed, wrong);
    peer->Shutdown(300);
    RakNet::RakPeerInterface::DestroyInstance(peer);
    return is_over ? 0 : 1;
}

static void print(const RakNet::BitStream &stream)
{
    printf("%u:", (unsigned)stream.GetNumberOfBitsUsed());
    for (unsigned at = 0; at < stream.GetNumberOfBytesUsed(); at++)
        printf(" %02x", stream.GetData()[at]);
    printf("\n");
}

static int bits()
{
    RakNet::BitStream stream;
    stream.Write(true);
    stream.Write((unsigned char)0xA5);
    stream.Write((short)-2);
    stream.Write(0x12345678);
    print(stream);
    stream.Write((uint64_t)0x0102030405060708ull);
    stream.Write(1.5f);
    stream.Write(-2.25);
    stream.Write("bytes", 5);
    stream.AlignWriteToByteBoundary();
    stream.Write("more", 4);
    const unsigned char five = 0x15, left = 0xA8;
    stream.WriteBits(&five, 5);
    stream.WriteBits(&left, 5, false);
    stream.Write0();
    stream.Write1();
    stream.WriteAlignedBytes((const unsigned char *)"xyz", 3);
    print(stream);
    stream.Write("a string");
    stream.Write(RakNet::RakString("a %s", "RakString"));
    stream.Write(RakNet::RakString(""));
    stream.Write(RakNet::RakNetGUID(77));
    stream.Write(RakNet::SystemAddress("192.0.2.7|4321"));
    print(stream);
    RakNet::BitStream copy;
    bool bit = false;
    unsigned char byte = 0;
    short two = 0;
    int four = 0;
    stream.Read(bit);
    stream.Read(byte);
    stream.Read(two);
    stream.Read(four);
    printf("%d %u %d %d unread %u\n", bit, byte, two, four, (unsigned)stream.GetNumberOfUnreadBits());
    copy.Write1();
    copy.Write(&stream);
    print(copy);
    const RakNet::SystemAddress address("192.0.2.7", 4321);
    printf("%s %s %s\n", address.ToString(), address.ToString(true, ':'), RakNet::RakNetGUID(77).ToString());
    return 0;
}

// Returns a peer that listens on a free port of the loopback interface, or null.
static RakNet::RakPeerInterface *started()
{
    RakNet::RakPeerInterface *peer = RakNet::RakPeerInterface::GetInstance();
    RakNet::SocketDescriptor socket(0, "127.0.0.1");
    if (peer->Startup(4, &socket, 1) != RakNet::RAKNET_STARTED)
        return nullptr;
    peer->SetMaximumIncomingConnections(4);
    return peer;
}

static void send_three(RakNet::RakPeerInterface *peer, char first)
{
    for (char number = first; number < first + 3; number++) {
        const char bytes[] = {(char)ID_GAME_ECHO, number};
        peer->Send(bytes, sizeof bytes, HIGH_PRIORITY, RELIABLE_ORDERED, 0, RakNet::UNASSIGNED_SYSTEM_ADDRESS, true);
    }
}

// Receives the packets of a peer for some milliseconds.
static void receive_all(RakNet::RakPeerInterface *peer, int milliseconds)
{
    for (; milliseconds > 0; milliseconds -= 5, RakSleep(5))
        while (RakNet::Packet *packet = peer->Receive())
            peer->DeallocatePacket(packet);
}

// Prints a message or disconnect packet, and closes the connection after the first message.
static void take(RakNet::RakPeerInterface *peer, RakNet::Packet *packet, int &taken)
{
    if (packet->data[0] == ID_CONNECTION_LOST || packet->data[0] == ID_DISCONNECTION_NOTIFICATION)
        printf(" %s", packet->data[0] == ID_CONNECTION_LOST ? "lost" : "disconnected");
    if (packet->data[0] == ID_GAME_ECHO) {
        printf(" %d", packet->data[1]);
        if (++taken == 1)
            peer->CloseConnection(packet->systemAddress, false);
    }
    peer->DeallocatePacket(packet);
}

static int silent()
{
    RakNet::RakPeerInterface *one = started(), *two = started();
    if (one == nullptr || two == nullptr || two->Connect("127.0.0.1", one->GetMyBoundAddress().GetPort(), nullptr, 0))
        return 1;
    for (int frame = 0; frame < 2000 && (one->NumberOfConnections() == 0 || two->NumberOfConnections() == 0); frame++) {
        receive_all(one, 5);
        receive_all(two, 5);
    }
    receive_all(one, 50);
    send_three(two, 1);
    receive_all(two, 300);
    printf("closed:");
    // The first Receive() call reads all three messages from the network. Three more are sent after the close.
    int taken = 0;
    for (int frame = 0; frame < 40; frame++) {
        while (RakNet::Packet *packet = one->Receive())
            take(one, packet, taken);
        if (frame == 0)
            send_three(two, 4);
        receive_all(two, 10);
    }
    printf("\n");
    one->Shutdown(0);
    two->Shutdown(0);
    RakNet::RakPeerInterface::DestroyInstance(one);
    RakNet::RakPeerInterface::DestroyInstance(two);
    return 0;
}

int main(int argc, char **argv)
{
    const unsigned short port = (unsigned short)(argc > 2 ? atoi(argv[2]) : 0);
    if (argc > 1 && strcmp(argv[1], "server") == 0)
        return server(port);
    if (argc > 1 && strcmp(argv[1], "client") == 0)
        return client(port);
    if (argc > 1 && strcmp(argv[1], "silent") == 0)
        return silent();
    return bits();
}
