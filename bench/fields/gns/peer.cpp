// Plays the roles of a benchmark with GameNetworkingSockets. interop/README.md describes the command line and the output,
// and bench/src/flood.rs those of the roles for unreliable messages.

#include "../../../interop/shared/bench.hpp"

#include <steam/isteamnetworkingutils.h>
#include <steam/steamnetworkingsockets.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <thread>

using namespace bench;

namespace {

// The send rate in bytes per second, for both the minimum and the maximum. The library does not estimate the bandwidth of
// a path; according to its documentation the two limits "should always be set to the same value". The default is 256 KB.
// At a higher rate than this one the receiver cannot keep up, and the connection stalls for seconds.
constexpr int SEND_RATE = 32 << 20;
// The sizes of the send and receive buffers in bytes, and of the receive buffer in messages.
constexpr int BUFFER = 16 << 20;
constexpr int MESSAGES = 1 << 20;
constexpr int BATCH = 64;
// The content of a counted message, and the time without messages after which the receiver stops counting.
constexpr unsigned char COUNTED = 0xFE;
constexpr auto QUIET = std::chrono::milliseconds(500);

struct Options {
    std::string mode, host;
    long count = 1000, size = 100;
    double seconds = 1;
    bool timed = false;
};

[[noreturn]] void usage() {
    std::fprintf(stderr, "usage: gns-peer echo|sink|count --port PORT [--count N] [--size BYTES] [--timed]\n"
                         "       gns-peer blast|pingpong|flood HOST:PORT [--count N] [--size BYTES] [--timed] [--seconds S]\n");
    std::exit(2);
}

Options parse(int argc, char **argv) {
    Options o;
    if (argc < 2) usage();
    o.mode = argv[1];
    for (int i = 2; i < argc; i++) {
        std::string arg = argv[i];
        auto value = [&] { return ++i < argc ? argv[i] : (usage(), nullptr); };
        if (arg == "--timed") o.timed = true;
        else if (arg == "--port") o.host = std::string("127.0.0.1:") + value();
        else if (arg == "--count") o.count = std::atol(value());
        else if (arg == "--size") o.size = std::atol(value());
        else if (arg == "--seconds") o.seconds = std::atof(value());
        else o.host = arg;
    }
    if (o.host.empty() || o.size < (long)HEADER) usage();
    return o;
}

bool is_server(const Options &o) { return o.mode == "echo" || o.mode == "sink" || o.mode == "count"; }

ISteamNetworkingSockets *sockets;
HSteamNetConnection connection = k_HSteamNetConnection_Invalid;
bool connected = false, ended = false;

void changed(SteamNetConnectionStatusChangedCallback_t *info) {
    switch (info->m_info.m_eState) {
    case k_ESteamNetworkingConnectionState_Connecting:
        if (info->m_info.m_hListenSocket != k_HSteamListenSocket_Invalid) {
            connection = info->m_hConn;
            sockets->AcceptConnection(info->m_hConn);
        }
        break;
    case k_ESteamNetworkingConnectionState_Connected: connected = true; break;
    case k_ESteamNetworkingConnectionState_ClosedByPeer:
    case k_ESteamNetworkingConnectionState_ProblemDetectedLocally: ended = true; break;
    default: break;
    }
}

// The poll interval, because the library has no blocking receive. It is short for round trips, and longer otherwise, so
// that the library's thread gets the core.
int poll_interval_us = 100;

void wait() {
    sockets->RunCallbacks();
    if (ended) throw std::runtime_error("the connection has ended");
    std::this_thread::sleep_for(std::chrono::microseconds(poll_interval_us));
}

void send(const void *data, size_t length, int flags) {
    for (;;) {
        EResult result = sockets->SendMessageToConnection(connection, data, (uint32)length, flags, nullptr);
        if (result == k_EResultOK) return;
        if (result != k_EResultLimitExceeded) throw std::runtime_error("a message cannot be sent");
        wait();
    }
}

// Returns the received messages one by one, in order.
class Inbox {
    SteamNetworkingMessage_t *messages[BATCH];
    int next_ = 0, count = 0;

public:
    // Waits for the next message. Returns nullptr if none has arrived by the deadline.
    SteamNetworkingMessage_t *next(Clock::time_point deadline = Clock::time_point::max()) {
        while (next_ == count) {
            if (Clock::now() > deadline) return nullptr;
            next_ = 0;
            count = sockets->ReceiveMessagesOnConnection(connection, messages, BATCH);
            if (count < 0) throw std::runtime_error("the connection has ended");
            if (count == 0) wait();
        }
        return messages[next_++];
    }
};

constexpr int RELIABLE = k_nSteamNetworkingSend_ReliableNoNagle;

[[noreturn]] void wait_for_the_end() {
    for (;;) wait();
}

[[noreturn]] void echo() {
    for (Inbox inbox;;) {
        SteamNetworkingMessage_t *message = inbox.next();
        send(message->GetData(), message->GetSize(), RELIABLE);
        message->Release();
    }
}

[[noreturn]] void sink(const Options &o) {
    Inbox inbox;
    std::vector<uint64_t> values;
    Clock::time_point began;
    for (long number = 0; number < o.count; number++) {
        SteamNetworkingMessage_t *message = inbox.next();
        auto data = (const unsigned char *)message->GetData();
        uint64_t sent = check(data, message->GetSize(), (uint32_t)number, (size_t)o.size);
        if (number == 0) began = Clock::now();
        if (o.timed) values.push_back(nanos() - sent);
        message->Release();
    }
    send(DONE, sizeof DONE - 1, RELIABLE);
    print_report(o.count, began, values);
    wait_for_the_end();
}

[[noreturn]] void count() {
    Inbox inbox;
    inbox.next()->Release();
    std::vector<uint64_t> none;
    Clock::time_point began = Clock::now(), last = began;
    long number = 1;
    while (SteamNetworkingMessage_t *message = inbox.next(last + QUIET)) {
        message->Release();
        last = Clock::now();
        number++;
    }
    // Reports the time until the last message, without the wait that followed it.
    print_report(number, began + (Clock::now() - last), none);
    wait_for_the_end();
}

void flood(const Options &o) {
    std::vector<char> message((size_t)o.size, (char)COUNTED);
    std::vector<uint64_t> none;
    Clock::time_point began = Clock::now();
    long number = 0;
    while (Clock::now() - began < std::chrono::duration<double>(o.seconds)) {
        send(message.data(), message.size(), k_nSteamNetworkingSend_Unreliable);
        number++;
    }
    print_report(number, began, none);
}

void play(const Options &o) {
    Inbox inbox;
    std::vector<char> message((size_t)o.size);
    std::vector<uint64_t> values;
    Clock::time_point began = Clock::now();
    for (long number = 0; number < o.count; number++) {
        put(message, (uint32_t)number, o.timed);
        uint64_t sent = nanos();
        send(message.data(), message.size(), o.mode == "blast" ? k_nSteamNetworkingSend_Reliable : RELIABLE);
        if (o.mode == "blast") continue;
        SteamNetworkingMessage_t *echo = inbox.next();
        values.push_back(nanos() - sent);
        check((const unsigned char *)echo->GetData(), echo->GetSize(), (uint32_t)number, (size_t)o.size);
        echo->Release();
    }
    if (o.mode == "blast") {
        SteamNetworkingMessage_t *done = inbox.next();
        if (done->GetSize() != sizeof DONE - 1 || std::memcmp(done->GetData(), DONE, sizeof DONE - 1))
            throw std::runtime_error("the receiver did not confirm");
        done->Release();
    }
    print_report(o.count, began, values);
}

// Returns a free port, because the library does not accept port 0.
uint16 free_port() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
    if (socket < 0 || bind(socket, (sockaddr *)&address, length) || getsockname(socket, (sockaddr *)&address, &length))
        throw std::runtime_error("there is no free port");
    close(socket);
    return ntohs(address.sin_port);
}

void end_with_input() {
    std::thread([] {
        wait_for_line();
        _exit(0);
    }).detach();
}

void run(const Options &o) {
    SteamNetworkingIPAddr address;
    if (!address.ParseString(o.host.c_str())) usage();
    SteamNetworkingConfigValue_t option;
    option.SetPtr(k_ESteamNetworkingConfig_Callback_ConnectionStatusChanged, (void *)changed);
    if (!is_server(o)) {
        connection = sockets->ConnectByIPAddress(address, 1, &option);
        while (!connected) wait();
        std::printf("connected\n");
        std::fflush(stdout);
        wait_for_line();
        if (o.mode == "flood") flood(o);
        else play(o);
        end_with_input();
        wait_for_the_end();
    }
    if (address.m_port == 0) address.m_port = free_port();
    HSteamListenSocket listener = sockets->CreateListenSocketIP(address, 1, &option);
    if (listener == k_HSteamListenSocket_Invalid || !sockets->GetListenSocketAddress(listener, &address))
        throw std::runtime_error("the port cannot be used");
    std::printf("ready %u\n", address.m_port);
    std::fflush(stdout);
    end_with_input();
    while (!connected) wait();
    if (o.mode == "echo") echo();
    if (o.mode == "sink") sink(o);
    count();
}

} // namespace

int main(int argc, char **argv) {
    Options o = parse(argc, argv);
    // Without this a short sleep takes about 60 microseconds longer.
    prctl(PR_SET_TIMERSLACK, 1000);
    if (o.mode == "echo" || o.mode == "pingpong") poll_interval_us = 10;
    SteamDatagramErrMsg error;
    if (!GameNetworkingSockets_Init(nullptr, error)) {
        std::fprintf(stderr, "%s\n", error);
        return 1;
    }
    sockets = SteamNetworkingSockets();
    ISteamNetworkingUtils *utils = SteamNetworkingUtils();
    // Writes warnings to standard error, because standard output is reserved for the result.
    utils->SetDebugOutputFunction(k_ESteamNetworkingSocketsDebugOutputType_Warning,
        [](ESteamNetworkingSocketsDebugOutputType, const char *text) { std::fprintf(stderr, "%s\n", text); });
    for (auto name : {k_ESteamNetworkingConfig_SendRateMin, k_ESteamNetworkingConfig_SendRateMax})
        utils->SetGlobalConfigValueInt32(name, SEND_RATE);
    for (auto name : {k_ESteamNetworkingConfig_SendBufferSize, k_ESteamNetworkingConfig_RecvBufferSize})
        utils->SetGlobalConfigValueInt32(name, BUFFER);
    utils->SetGlobalConfigValueInt32(k_ESteamNetworkingConfig_RecvBufferMessages, MESSAGES);
    // Peers on loopback need no certificate.
    utils->SetGlobalConfigValueInt32(k_ESteamNetworkingConfig_IP_AllowWithoutAuth, 1);
    try {
        run(o);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        _exit(1);
    }
    return 0;
}
