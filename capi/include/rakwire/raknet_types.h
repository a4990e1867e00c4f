// Part of raknet_compat.h: RakNet 4's enumerations, addresses, GUIDs and packets.
#ifndef RAKWIRE_RAKNET_TYPES_H
#define RAKWIRE_RAKNET_TYPES_H

#include "../rakwire.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#ifdef _WIN32
#include <winsock2.h>
#else
#include <sys/socket.h>
#endif

#ifndef BITS_TO_BYTES
#define BITS_TO_BYTES(x) (((x) + 7) >> 3)
#define BYTES_TO_BITS(x) ((x) << 3)
#endif

enum PacketPriority { IMMEDIATE_PRIORITY, HIGH_PRIORITY, MEDIUM_PRIORITY, LOW_PRIORITY, NUMBER_OF_PRIORITIES };

enum PacketReliability {
    UNRELIABLE,
    UNRELIABLE_SEQUENCED,
    RELIABLE,
    RELIABLE_ORDERED,
    RELIABLE_SEQUENCED,
    UNRELIABLE_WITH_ACK_RECEIPT,
    RELIABLE_WITH_ACK_RECEIPT,
    RELIABLE_ORDERED_WITH_ACK_RECEIPT,
    NUMBER_OF_RELIABILITIES
};

enum DefaultMessageIDTypes {
    ID_CONNECTED_PING = 0,
    ID_UNCONNECTED_PING = 1,
    ID_UNCONNECTED_PING_OPEN_CONNECTIONS = 2,
    ID_CONNECTED_PONG = 3,
    ID_DETECT_LOST_CONNECTIONS = 4,
    ID_OPEN_CONNECTION_REQUEST_1 = 5,
    ID_OPEN_CONNECTION_REPLY_1 = 6,
    ID_OPEN_CONNECTION_REQUEST_2 = 7,
    ID_OPEN_CONNECTION_REPLY_2 = 8,
    ID_CONNECTION_REQUEST = 9,
    ID_REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY = 10,
    ID_OUR_SYSTEM_REQUIRES_SECURITY = 11,
    ID_PUBLIC_KEY_MISMATCH = 12,
    ID_OUT_OF_BAND_INTERNAL = 13,
    ID_SND_RECEIPT_ACKED = 14,
    ID_SND_RECEIPT_LOSS = 15,
    ID_CONNECTION_REQUEST_ACCEPTED = 16,
    ID_CONNECTION_ATTEMPT_FAILED = 17,
    ID_ALREADY_CONNECTED = 18,
    ID_NEW_INCOMING_CONNECTION = 19,
    ID_NO_FREE_INCOMING_CONNECTIONS = 20,
    ID_DISCONNECTION_NOTIFICATION = 21,
    ID_CONNECTION_LOST = 22,
    ID_CONNECTION_BANNED = 23,
    ID_INVALID_PASSWORD = 24,
    ID_INCOMPATIBLE_PROTOCOL_VERSION = 25,
    ID_IP_RECENTLY_CONNECTED = 26,
    ID_TIMESTAMP = 27,
    ID_UNCONNECTED_PONG = 28,
    ID_ADVERTISE_SYSTEM = 29,
    ID_DOWNLOAD_PROGRESS = 30,
    ID_REMOTE_DISCONNECTION_NOTIFICATION = 31,
    ID_REMOTE_CONNECTION_LOST = 32,
    ID_REMOTE_NEW_INCOMING_CONNECTION = 33,
    ID_FILE_LIST_TRANSFER_HEADER = 34,
    ID_FILE_LIST_TRANSFER_FILE = 35,
    ID_FILE_LIST_REFERENCE_PUSH_ACK = 36,
    ID_DDT_DOWNLOAD_REQUEST = 37,
    ID_TRANSPORT_STRING = 38,
    ID_REPLICA_MANAGER_CONSTRUCTION = 39,
    ID_REPLICA_MANAGER_SCOPE_CHANGE = 40,
    ID_REPLICA_MANAGER_SERIALIZE = 41,
    ID_REPLICA_MANAGER_DOWNLOAD_STARTED = 42,
    ID_REPLICA_MANAGER_DOWNLOAD_COMPLETE = 43,
    ID_RAKVOICE_OPEN_CHANNEL_REQUEST = 44,
    ID_RAKVOICE_OPEN_CHANNEL_REPLY = 45,
    ID_RAKVOICE_CLOSE_CHANNEL = 46,
    ID_RAKVOICE_DATA = 47,
    ID_AUTOPATCHER_GET_CHANGELIST_SINCE_DATE = 48,
    ID_AUTOPATCHER_CREATION_LIST = 49,
    ID_AUTOPATCHER_DELETION_LIST = 50,
    ID_AUTOPATCHER_GET_PATCH = 51,
    ID_AUTOPATCHER_PATCH_LIST = 52,
    ID_AUTOPATCHER_REPOSITORY_FATAL_ERROR = 53,
    ID_AUTOPATCHER_CANNOT_DOWNLOAD_ORIGINAL_UNMODIFIED_FILES = 54,
    ID_AUTOPATCHER_FINISHED_INTERNAL = 55,
    ID_AUTOPATCHER_FINISHED = 56,
    ID_AUTOPATCHER_RESTART_APPLICATION = 57,
    ID_NAT_PUNCHTHROUGH_REQUEST = 58,
    ID_NAT_CONNECT_AT_TIME = 59,
    ID_NAT_GET_MOST_RECENT_PORT = 60,
    ID_NAT_CLIENT_READY = 61,
    ID_NAT_TARGET_NOT_CONNECTED = 62,
    ID_NAT_TARGET_UNRESPONSIVE = 63,
    ID_NAT_CONNECTION_TO_TARGET_LOST = 64,
    ID_NAT_ALREADY_IN_PROGRESS = 65,
    ID_NAT_PUNCHTHROUGH_FAILED = 66,
    ID_NAT_PUNCHTHROUGH_SUCCEEDED = 67,
    ID_READY_EVENT_SET = 68,
    ID_READY_EVENT_UNSET = 69,
    ID_READY_EVENT_ALL_SET = 70,
    ID_READY_EVENT_QUERY = 71,
    ID_LOBBY_GENERAL = 72,
    ID_RPC_REMOTE_ERROR = 73,
    ID_RPC_PLUGIN = 74,
    ID_FILE_LIST_REFERENCE_PUSH = 75,
    ID_READY_EVENT_FORCE_ALL_SET = 76,
    ID_ROOMS_EXECUTE_FUNC = 77,
    ID_ROOMS_LOGON_STATUS = 78,
    ID_ROOMS_HANDLE_CHANGE = 79,
    ID_LOBBY2_SEND_MESSAGE = 80,
    ID_LOBBY2_SERVER_ERROR = 81,
    ID_FCM2_NEW_HOST = 82,
    ID_FCM2_REQUEST_FCMGUID = 83,
    ID_FCM2_RESPOND_CONNECTION_COUNT = 84,
    ID_FCM2_INFORM_FCMGUID = 85,
    ID_FCM2_UPDATE_MIN_TOTAL_CONNECTION_COUNT = 86,
    ID_FCM2_VERIFIED_JOIN_START = 87,
    ID_FCM2_VERIFIED_JOIN_CAPABLE = 88,
    ID_FCM2_VERIFIED_JOIN_FAILED = 89,
    ID_FCM2_VERIFIED_JOIN_ACCEPTED = 90,
    ID_FCM2_VERIFIED_JOIN_REJECTED = 91,
    ID_UDP_PROXY_GENERAL = 92,
    ID_SQLite3_EXEC = 93,
    ID_SQLite3_UNKNOWN_DB = 94,
    ID_SQLLITE_LOGGER = 95,
    ID_NAT_TYPE_DETECTION_REQUEST = 96,
    ID_NAT_TYPE_DETECTION_RESULT = 97,
    ID_ROUTER_2_INTERNAL = 98,
    ID_ROUTER_2_FORWARDING_NO_PATH = 99,
    ID_ROUTER_2_FORWARDING_ESTABLISHED = 100,
    ID_ROUTER_2_REROUTED = 101,
    ID_TEAM_BALANCER_INTERNAL = 102,
    ID_TEAM_BALANCER_REQUESTED_TEAM_FULL = 103,
    ID_TEAM_BALANCER_REQUESTED_TEAM_LOCKED = 104,
    ID_TEAM_BALANCER_TEAM_REQUESTED_CANCELLED = 105,
    ID_TEAM_BALANCER_TEAM_ASSIGNED = 106,
    ID_LIGHTSPEED_INTEGRATION = 107,
    ID_XBOX_LOBBY = 108,
    ID_TWO_WAY_AUTHENTICATION_INCOMING_CHALLENGE_SUCCESS = 109,
    ID_TWO_WAY_AUTHENTICATION_OUTGOING_CHALLENGE_SUCCESS = 110,
    ID_TWO_WAY_AUTHENTICATION_INCOMING_CHALLENGE_FAILURE = 111,
    ID_TWO_WAY_AUTHENTICATION_OUTGOING_CHALLENGE_FAILURE = 112,
    ID_TWO_WAY_AUTHENTICATION_OUTGOING_CHALLENGE_TIMEOUT = 113,
    ID_TWO_WAY_AUTHENTICATION_NEGOTIATION = 114,
    ID_CLOUD_POST_REQUEST = 115,
    ID_CLOUD_RELEASE_REQUEST = 116,
    ID_CLOUD_GET_REQUEST = 117,
    ID_CLOUD_GET_RESPONSE = 118,
    ID_CLOUD_UNSUBSCRIBE_REQUEST = 119,
    ID_CLOUD_SERVER_TO_SERVER_COMMAND = 120,
    ID_CLOUD_SUBSCRIPTION_NOTIFICATION = 121,
    ID_LIB_VOICE = 122,
    ID_RELAY_PLUGIN = 123,
    ID_NAT_REQUEST_BOUND_ADDRESSES = 124,
    ID_NAT_RESPOND_BOUND_ADDRESSES = 125,
    ID_FCM2_UPDATE_USER_CONTEXT = 126,
    ID_RESERVED_3 = 127,
    ID_RESERVED_4 = 128,
    ID_RESERVED_5 = 129,
    ID_RESERVED_6 = 130,
    ID_RESERVED_7 = 131,
    ID_RESERVED_8 = 132,
    ID_RESERVED_9 = 133,
    ID_USER_PACKET_ENUM = 134,
};

namespace RakNet {

typedef unsigned char MessageID;
typedef std::uint32_t BitSize_t;
typedef std::uint32_t TimeMS;
typedef std::uint64_t Time;
typedef std::uint64_t TimeUS;
typedef unsigned short SystemIndex;

inline TimeUS GetTimeUS()
{
    static const auto start = std::chrono::steady_clock::now();
    const auto since = std::chrono::steady_clock::now() - start;
    return static_cast<TimeUS>(std::chrono::duration_cast<std::chrono::microseconds>(since).count());
}
inline Time GetTime() { return GetTimeUS() / 1000; }
inline TimeMS GetTimeMS() { return static_cast<TimeMS>(GetTime()); }

enum StartupResult {
    RAKNET_STARTED,
    RAKNET_ALREADY_STARTED,
    INVALID_SOCKET_DESCRIPTORS,
    INVALID_MAX_CONNECTIONS,
    SOCKET_FAMILY_NOT_SUPPORTED,
    SOCKET_PORT_ALREADY_IN_USE,
    SOCKET_FAILED_TO_BIND,
    SOCKET_FAILED_TEST_SEND,
    PORT_CANNOT_BE_ZERO,
    FAILED_TO_CREATE_NETWORK_THREAD,
    COULD_NOT_GENERATE_GUID,
    STARTUP_OTHER_FAILURE
};

enum ConnectionAttemptResult {
    CONNECTION_ATTEMPT_STARTED,
    INVALID_PARAMETER,
    CANNOT_RESOLVE_DOMAIN_NAME,
    ALREADY_CONNECTED_TO_ENDPOINT,
    CONNECTION_ATTEMPT_ALREADY_IN_PROGRESS,
    SECURITY_INITIALIZATION_FAILED
};

enum ConnectionState {
    IS_PENDING,
    IS_CONNECTING,
    IS_CONNECTED,
    IS_DISCONNECTING,
    IS_SILENTLY_DISCONNECTING,
    IS_DISCONNECTED,
    IS_NOT_CONNECTED
};

struct SocketDescriptor {
    SocketDescriptor() : SocketDescriptor(0, nullptr) {}
    SocketDescriptor(unsigned short with_port, const char *host) : port(with_port), hostAddress(), socketFamily(AF_INET)
    {
        if (host != nullptr)
            std::snprintf(hostAddress, sizeof hostAddress, "%s", host);
    }
    unsigned short port;
    char hostAddress[32];
    short socketFamily;
};

namespace detail {

inline std::string host_and_port(const char *host, unsigned short port)
{
    std::string text = host == nullptr ? "" : host;
    if (text.find(':') != std::string::npos)
        text = "[" + text + "]";
    return text + ":" + std::to_string(port);
}

// Returns one of several buffers for ToString(), which are reused in rotation, as in RakNet.
inline char *text_buffer()
{
    static thread_local char buffers[8][64];
    static thread_local unsigned next = 0;
    return buffers[next++ % 8];
}

}  // namespace detail

struct SystemAddress {
    SystemAddress() : raw(), systemIndex(static_cast<SystemIndex>(-1)) {}
    SystemAddress(const char *text) : SystemAddress() { FromString(text); }
    SystemAddress(const char *text, unsigned short port) : SystemAddress() { FromStringExplicitPort(text, port); }
    explicit SystemAddress(const rakwire_address_t &from) : raw(from), systemIndex(static_cast<SystemIndex>(-1)) {}

    unsigned short GetPort() const { return raw.port; }
    void SetPortHostOrder(unsigned short port) { raw.port = port; }
    unsigned char GetIPVersion() const { return raw.family == 6 ? 6 : 4; }
    bool IsLoopback() const
    {
        static const unsigned char v6[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
        return raw.family == 6 ? std::memcmp(raw.ip, v6, 16) == 0 : raw.family == 4 && raw.ip[0] == 127;
    }
    bool EqualsExcludingPort(const SystemAddress &other) const
    {
        return raw.family == other.raw.family && std::memcmp(raw.ip, other.raw.ip, 16) == 0;
    }
    bool FromString(const char *text, char delimiter = '|', int = 0)
    {
        if (text == nullptr)
            return false;
        const std::string all = text;
        const std::size_t at = all.rfind(delimiter);
        if (at == std::string::npos)
            return FromStringExplicitPort(text, raw.port);
        return FromStringExplicitPort(all.substr(0, at).c_str(), static_cast<unsigned short>(std::atoi(all.c_str() + at + 1)));
    }
    bool FromStringExplicitPort(const char *text, unsigned short port, int = 0)
    {
        return rakwire_address_parse(detail::host_and_port(text, port).c_str(), &raw) >= 0;
    }
    const char *ToString(bool write_port = true, char delimiter = '|') const
    {
        char *text = detail::text_buffer();
        ToString(write_port, text, delimiter);
        return text;
    }
    // `text` needs 64 bytes.
    void ToString(bool write_port, char *text, char delimiter = '|') const
    {
        char full[64] = "";
        if (raw.family == 0 || rakwire_address_format(&raw, full, sizeof full) < 0) {
            std::snprintf(text, 64, "UNASSIGNED_SYSTEM_ADDRESS");
            return;
        }
        std::string host = full;
        host.resize(host.rfind(':'));
        if (host.front() == '[')
            host = host.substr(1, host.size() - 2);
        if (write_port)
            host += delimiter + std::to_string(raw.port);
        std::snprintf(text, 64, "%s", host.c_str());
    }
    // The overload of SLikeNet.
    void ToString(bool write_port, char *text, std::size_t length, char delimiter = '|') const
    {
        char full[64];
        ToString(write_port, full, delimiter);
        std::snprintf(text, length, "%s", full);
    }
    bool operator==(const SystemAddress &other) const { return EqualsExcludingPort(other) && raw.port == other.raw.port; }
    bool operator!=(const SystemAddress &other) const { return !(*this == other); }
    bool operator<(const SystemAddress &other) const
    {
        const int order = std::memcmp(raw.ip, other.raw.ip, 16);
        return order != 0 ? order < 0 : raw.port < other.raw.port;
    }
    bool operator>(const SystemAddress &other) const { return other < *this; }

    rakwire_address_t raw;
    SystemIndex systemIndex;
};

struct RakNetGUID {
    RakNetGUID() : RakNetGUID(static_cast<std::uint64_t>(-1)) {}
    explicit RakNetGUID(std::uint64_t guid) : g(guid), systemIndex(static_cast<SystemIndex>(-1)) {}
    const char *ToString() const
    {
        char *text = detail::text_buffer();
        ToString(text);
        return text;
    }
    void ToString(char *text) const { ToString(text, 64); }
    // The overload of SLikeNet.
    void ToString(char *text, std::size_t length) const
    {
        std::snprintf(text, length, "%llu", static_cast<unsigned long long>(g));
    }
    bool FromString(const char *text)
    {
        if (text == nullptr)
            return false;
        g = std::strtoull(text, nullptr, 10);
        return true;
    }
    static unsigned long ToUint32(const RakNetGUID &guid)
    {
        return static_cast<unsigned long>((guid.g >> 32) ^ (guid.g & 0xFFFFFFFFu));
    }
    bool operator==(const RakNetGUID &other) const { return g == other.g; }
    bool operator!=(const RakNetGUID &other) const { return g != other.g; }
    bool operator<(const RakNetGUID &other) const { return g < other.g; }
    bool operator>(const RakNetGUID &other) const { return g > other.g; }

    std::uint64_t g;
    SystemIndex systemIndex;
};

inline const SystemAddress UNASSIGNED_SYSTEM_ADDRESS;
inline const RakNetGUID UNASSIGNED_RAKNET_GUID;

struct Packet {
    SystemAddress systemAddress;
    RakNetGUID guid;
    unsigned int length = 0;
    BitSize_t bitSize = 0;
    unsigned char *data = nullptr;
    bool deleteData = false;
    bool wasGeneratedLocally = false;
};

enum RNSPerSecondMetrics {
    USER_MESSAGE_BYTES_PUSHED,
    USER_MESSAGE_BYTES_SENT,
    USER_MESSAGE_BYTES_RESENT,
    USER_MESSAGE_BYTES_RECEIVED_PROCESSED,
    USER_MESSAGE_BYTES_RECEIVED_IGNORED,
    ACTUAL_BYTES_SENT,
    ACTUAL_BYTES_RECEIVED,
    RNS_PER_SECOND_METRICS_COUNT
};

struct RakNetStatistics {
    std::uint64_t valueOverLastSecond[RNS_PER_SECOND_METRICS_COUNT] = {};
    std::uint64_t runningTotal[RNS_PER_SECOND_METRICS_COUNT] = {};
    TimeUS connectionStartTime = 0;
    bool isLimitedByCongestionControl = false;
    std::uint64_t BPSLimitByCongestionControl = 0;
    bool isLimitedByOutgoingBandwidthLimit = false;
    std::uint64_t BPSLimitByOutgoingBandwidthLimit = 0;
    unsigned int messageInSendBuffer[NUMBER_OF_PRIORITIES] = {};
    double bytesInSendBuffer[NUMBER_OF_PRIORITIES] = {};
    unsigned int messagesInResendBuffer = 0;
    std::uint64_t bytesInResendBuffer = 0;
    float packetlossLastSecond = 0;
    float packetlossTotal = 0;
};

struct AddressOrGUID {
    AddressOrGUID() {}
    AddressOrGUID(const SystemAddress &address) : systemAddress(address) {}
    AddressOrGUID(const RakNetGUID &guid) : rakNetGuid(guid) {}
    AddressOrGUID(const Packet *packet) : rakNetGuid(packet->guid), systemAddress(packet->systemAddress) {}
    bool IsUndefined() const
    {
        return rakNetGuid == UNASSIGNED_RAKNET_GUID && systemAddress == UNASSIGNED_SYSTEM_ADDRESS;
    }
    RakNetGUID rakNetGuid;
    SystemAddress systemAddress;
};

}  // namespace RakNet

#endif  // RAKWIRE_RAKNET_TYPES_H
