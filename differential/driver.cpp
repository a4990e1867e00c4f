// Reads calls of RakPeerInterface from standard input, and prints their results and the received packets. It is
// compiled twice: with RakNet's own headers (-DORIGINAL), and with rakwire's. README.md lists the calls.
//
// A line `= RESULT` is the result of a call, and `! EVENT` an event. Other lines are output of the library.
#ifdef ORIGINAL
#include <BitStream.h>
#include <GetTime.h>
#include <MessageIdentifiers.h>
#include <RakNetTypes.h>
#include <RakPeerInterface.h>
#else
#include <rakwire/raknet_compat.h>
#endif

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <poll.h>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

using namespace RakNet;

namespace {

// The id of numbered messages: this byte, reliability, channel, number in four bytes, and bytes derived from the
// number.
constexpr unsigned char NUMBERED = 0xFE;
constexpr size_t HEADER = 7;
// The id of out-of-band texts.
constexpr unsigned char TEXT = 0xFD;
// The largest accepted age of a timestamp in milliseconds: more than the path takes, but less than the second at which
// rakwire's clocks begin, so that an unconverted timestamp is detected.
constexpr long long NEAR_MS = 250;

RakPeerInterface *peer = nullptr;
uint32_t last_number = 0;
// Maps receipt numbers to message numbers.
std::map<uint32_t, uint32_t> receipts;

void print(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    std::vprintf(format, values);
    va_end(values);
    std::putchar('\n');
    std::fflush(stdout);
}

unsigned char byte_of(uint32_t number, size_t at) { return (unsigned char)(31 * number + 7 * at + 13 * (at >> 8)); }

std::vector<char> numbered(uint32_t number, int reliability, int channel, size_t size)
{
    std::vector<char> bytes(size < HEADER ? HEADER : size);
    bytes[0] = (char)NUMBERED;
    bytes[1] = (char)reliability;
    bytes[2] = (char)channel;
    for (int at = 0; at < 4; at++)
        bytes[(size_t)(3 + at)] = (char)(number >> (8 * at));
    for (size_t at = HEADER; at < bytes.size(); at++)
        bytes[at] = (char)byte_of(number, at);
    return bytes;
}

std::string address_text(const SystemAddress &address)
{
    char text[64];
    address.ToString(true, text);
    return text;
}

// Prints a numbered message: `! message ADDRESS RELIABILITY CHANNEL NUMBER SIZE`, or `! damaged ADDRESS`.
void print_numbered(const Packet *packet)
{
    uint32_t number = 0;
    for (int at = 0; at < 4; at++)
        number |= (uint32_t)packet->data[3 + at] << (8 * at);
    for (size_t at = HEADER; at < packet->length; at++)
        if (packet->data[at] != byte_of(number, at))
            return print("! damaged %s", address_text(packet->systemAddress).c_str());
    print("! message %s %d %d %u %u", address_text(packet->systemAddress).c_str(), packet->data[1], packet->data[2], number,
          packet->length);
}

const char *name_of(unsigned char id)
{
    switch (id) {
    case ID_CONNECTION_REQUEST_ACCEPTED: return "accepted";
    case ID_NEW_INCOMING_CONNECTION: return "incoming";
    case ID_CONNECTION_ATTEMPT_FAILED: return "failed";
    case ID_ALREADY_CONNECTED: return "already-connected";
    case ID_NO_FREE_INCOMING_CONNECTIONS: return "full";
    case ID_DISCONNECTION_NOTIFICATION: return "disconnected";
    case ID_CONNECTION_LOST: return "lost";
    case ID_CONNECTION_BANNED: return "banned";
    case ID_INVALID_PASSWORD: return "invalid-password";
    case ID_INCOMPATIBLE_PROTOCOL_VERSION: return "incompatible";
    case ID_IP_RECENTLY_CONNECTED: return "recently-connected";
    default: return nullptr;
    }
}

std::string text_behind(const Packet *packet, size_t header)
{
    return packet->length > header ? std::string((const char *)packet->data + header, packet->length - header) : "-";
}

// Prints `! timestamp ADDRESS near` if the timestamp, converted to the receiver's clock, is within NEAR_MS of now, and
// otherwise `far`.
void print_timestamp(const Packet *packet)
{
    BitStream stream(packet->data, packet->length, false);
    stream.IgnoreBytes(1);
    Time sent = 0;
    stream.Read(sent);
    const long long age = (long long)GetTime() - (long long)sent;
    print("! timestamp %s %s", address_text(packet->systemAddress).c_str(), age > -NEAR_MS && age < NEAR_MS ? "near" : "far");
}

void report(const Packet *packet)
{
    const std::string from = address_text(packet->systemAddress);
    const unsigned char id = packet->data[0];
    if (id == NUMBERED && packet->length >= HEADER)
        return print_numbered(packet);
    if (id == ID_OUT_OF_BAND_INTERNAL && packet->length > 1 && packet->data[1] == TEXT)
        return print("! out-of-band %s %s", from.c_str(), text_behind(packet, 2).c_str());
    if (id == ID_SND_RECEIPT_ACKED || id == ID_SND_RECEIPT_LOSS) {
        uint32_t receipt;
        std::memcpy(&receipt, packet->data + 1, 4);
        const auto found = receipts.find(receipt);
        return print("! receipt %s %s %d", from.c_str(), id == ID_SND_RECEIPT_ACKED ? "acked" : "loss",
                     found == receipts.end() ? -1 : (int)found->second);
    }
    if ((id == ID_UNCONNECTED_PING || id == ID_UNCONNECTED_PING_OPEN_CONNECTIONS) && packet->length == 1)
        return print("! ping %s %s", from.c_str(), id == ID_UNCONNECTED_PING ? "any" : "open");
    if (id == ID_UNCONNECTED_PONG)
        return print("! pong %s %s", from.c_str(), text_behind(packet, 1 + sizeof(TimeMS)).c_str());
    if (id == ID_ADVERTISE_SYSTEM)
        return print("! advertisement %s %s", from.c_str(), text_behind(packet, 1).c_str());
    if (id == ID_TIMESTAMP && packet->length == 1 + sizeof(Time) + 1)
        return print_timestamp(packet);
    if (const char *name = name_of(id))
        return print("! %s %s %llu", name, from.c_str(), (unsigned long long)packet->guid.g);
    std::string hex;
    for (unsigned at = 0; at < packet->length; at++) {
        char two[3];
        std::snprintf(two, sizeof two, "%02x", packet->data[at]);
        hex += two;
    }
    print("! bytes %s %s", from.c_str(), hex.c_str());
}

const char *state_name(ConnectionState state)
{
    static const char *const names[] = {"pending", "connecting", "connected", "disconnecting", "silently-disconnecting",
                                        "disconnected", "not-connected"};
    return names[state];
}

const char *attempt_name(ConnectionAttemptResult result)
{
    static const char *const names[] = {"started", "invalid-parameter", "cannot-resolve", "already-connected",
                                        "in-progress", "no-security"};
    return names[result];
}

// The words of a line of standard input.
struct Words {
    std::istringstream stream;
    explicit Words(const std::string &line) : stream(line) {}
    std::string next(const char *otherwise = "")
    {
        std::string word;
        return stream >> word ? word : otherwise;
    }
    int number(int otherwise = 0)
    {
        int value;
        return stream >> value ? value : otherwise;
    }
    SystemAddress address()
    {
        const std::string word = next();
        if (word == "self")
            return peer->GetMyBoundAddress();
        return word == "-" || word.empty() ? UNASSIGNED_SYSTEM_ADDRESS : SystemAddress(word.c_str());
    }
};

// Starts a peer, or restarts one that was shut down.
void start(Words &words)
{
    if (peer == nullptr)
        peer = RakPeerInterface::GetInstance();
    const int connections = words.number(1), incoming = words.number(0);
    for (std::string word = words.next(); !word.empty(); word = words.next())
        if (word == "protocol")
            peer->SetProtocolVersion(words.number());
    SocketDescriptor socket(0, "127.0.0.1");
    if (peer->Startup((unsigned)connections, &socket, 1) != RAKNET_STARTED) {
        print("= cannot-start 0 0");
        return;
    }
    peer->SetMaximumIncomingConnections((unsigned short)incoming);
    print("= started %u %llu", peer->GetMyBoundAddress().GetPort(), (unsigned long long)peer->GetMyGUID().g);
}

void connect(Words &words)
{
    const SystemAddress to = words.address();
    std::string password;
    int attempts = 12, interval = 500, timeout = 0;
    for (std::string word = words.next(); !word.empty(); word = words.next())
        if (word == "password")
            password = words.next();
        else if (word == "attempts")
            attempts = words.number();
        else if (word == "interval")
            interval = words.number();
        else if (word == "timeout")
            timeout = words.number();
    char host[64];
    to.ToString(false, host);
    print("= %s", attempt_name(peer->Connect(host, to.GetPort(), password.data(), (int)password.size(), nullptr, 0,
                                             (unsigned)attempts, (unsigned)interval, (TimeMS)timeout)));
}

// Parses RELIABILITY CHANNEL PRIORITY SIZE [COUNT] [receipt N], and prints the number of sent messages. With `receipt`,
// the receipt numbers are N and the following, and `Send` must return them.
void send(Words &words, bool is_broadcast)
{
    const SystemAddress to = words.address();
    const int reliability = words.number(), channel = words.number(), priority = words.number(), size = words.number(HEADER);
    int count = 1, first = 0, sent = 0;
    for (std::string word = words.next(); !word.empty(); word = words.next())
        if (word == "receipt")
            first = words.number();
        else
            count = std::atoi(word.c_str());
    for (int at = 0; at < count; at++) {
        const uint32_t own = first == 0 ? 0 : (uint32_t)(first + at);
        const std::vector<char> bytes = numbered(++last_number, reliability, channel, (size_t)size);
        const uint32_t receipt = peer->Send(bytes.data(), (int)bytes.size(), (PacketPriority)priority,
                                            (PacketReliability)reliability, (char)channel, to, is_broadcast, own);
        sent += own == 0 ? receipt != 0 : receipt == own;
        if (receipt != 0 && reliability >= UNRELIABLE_WITH_ACK_RECEIPT)
            receipts[own == 0 ? receipt : own] = last_number;
    }
    print("= %d", sent);
}

void send_bytes(Words &words)
{
    const SystemAddress to = words.address();
    const std::string hex = words.next();
    std::vector<char> bytes;
    for (size_t at = 0; at + 1 < hex.size(); at += 2)
        bytes.push_back((char)std::strtol(hex.substr(at, 2).c_str(), nullptr, 16));
    print("= %d", peer->Send(bytes.data(), (int)bytes.size(), HIGH_PRIORITY, RELIABLE_ORDERED, 0, to, false) != 0);
}

void send_timestamp(Words &words)
{
    const SystemAddress to = words.address();
    BitStream stream;
    stream.Write((MessageID)ID_TIMESTAMP);
    stream.Write((Time)GetTime());
    stream.Write((MessageID)NUMBERED);
    print("= %d", peer->Send(&stream, HIGH_PRIORITY, RELIABLE_ORDERED, 0, to, false) != 0);
}

// Runs calls that send a text to an address without a connection.
void unconnected(const std::string &command, Words &words)
{
    const SystemAddress to = words.address();
    const std::string text = words.next();
    char host[64];
    to.ToString(false, host);
    bool is_sent;
    if (command == "ping")
        is_sent = peer->Ping(host, to.GetPort(), text == "open");
    else if (command == "advertise")
        is_sent = peer->AdvertiseSystem(host, to.GetPort(), text.data(), (int)text.size());
    else {
        const std::string bytes = (char)TEXT + text;
        is_sent = peer->SendOutOfBand(host, to.GetPort(), bytes.data(), (BitSize_t)bytes.size());
    }
    print("= %d", is_sent);
}

void list(Words &)
{
    SystemAddress systems[64];
    unsigned short count = 64;
    peer->GetConnectionList(systems, &count);
    std::string all;
    for (int at = 0; at < count; at++)
        all += " " + address_text(systems[at]);
    print("= %d%s", (int)count, all.c_str());
}

// Runs calls that return nothing. Returns false if the command is not one of them.
bool is_setting(const std::string &command, Words &words)
{
    if (command == "password") {
        const std::string word = words.next();
        peer->SetIncomingPassword(word.data(), word == "-" ? 0 : (int)word.size());
    } else if (command == "incoming") {
        peer->SetMaximumIncomingConnections((unsigned short)words.number());
    } else if (command == "pong") {
        const std::string text = words.next();
        peer->SetOfflinePingResponse(text.data(), (unsigned)text.size());
    } else if (command == "ban") {
        const std::string host = words.next();
        peer->AddToBanList(host.c_str(), (TimeMS)words.number());
    } else if (command == "unban") {
        peer->RemoveFromBanList(words.next().c_str());
    } else if (command == "timeout") {
        const SystemAddress of = words.address();
        peer->SetTimeoutTime((TimeMS)words.number(), of);
    } else if (command == "close") {
        const SystemAddress of = words.address();
        peer->CloseConnection(of, words.next() != "silent");
    } else if (command == "cancel") {
        peer->CancelConnectionAttempt(words.address());
    } else if (command == "shutdown") {
        peer->Shutdown((unsigned)words.number());
    } else {
        return false;
    }
    print("= done");
    return true;
}

void run(const std::string &line)
{
    Words words(line);
    const std::string command = words.next();
    if (command == "start" || command == "again")
        return start(words);
    if (peer == nullptr)
        return print("= not-started");
    if (is_setting(command, words))
        return;
    if (command == "connect")
        return connect(words);
    if (command == "send" || command == "broadcast")
        return send(words, command == "broadcast");
    if (command == "bytes")
        return send_bytes(words);
    if (command == "timestamp")
        return send_timestamp(words);
    if (command == "ping" || command == "advertise" || command == "out-of-band")
        return unconnected(command, words);
    if (command == "list")
        return list(words);
    if (command == "state")
        return print("= %s", state_name(peer->GetConnectionState(words.address())));
    if (command == "guid")
        return print("= %llu", (unsigned long long)peer->GetGuidFromSystemAddress(words.address()).g);
    if (command == "banned")
        return print("= %d", (int)peer->IsBanned(words.next().c_str()));
    print("= unknown-command");
}

// Runs the lines that have arrived. Returns false at the end of the input.
bool run_lines(std::string &input, int wait_ms)
{
    pollfd source = {STDIN_FILENO, POLLIN, 0};
    if (poll(&source, 1, wait_ms) <= 0)
        return true;
    char bytes[4096];
    const ssize_t length = read(STDIN_FILENO, bytes, sizeof bytes);
    if (length <= 0)
        return false;
    input.append(bytes, (size_t)length);
    for (size_t end; (end = input.find('\n')) != std::string::npos; input.erase(0, end + 1))
        run(input.substr(0, end));
    return true;
}

}  // namespace

int main()
{
    std::string input;
    while (run_lines(input, 2)) {
        if (peer == nullptr)
            continue;
        for (Packet *packet = peer->Receive(); packet != nullptr; packet = peer->Receive()) {
            report(packet);
            peer->DeallocatePacket(packet);
        }
    }
    // Exits without notifying peers, and without destructors, because RakNet's threads still use global objects.
    _exit(0);
}
