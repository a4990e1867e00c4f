// Names of RakNet 4 over rakwire: a program for RakPeerInterface compiles with
// `#include <rakwire/raknet_compat.h>` in place of RakNet's headers, and speaks with peers of either library.
//
// Differences from RakNet 4:
// - There is no network thread: the peer works while Receive() is called, so call it each frame until it returns null.
// - A peer belongs to the thread that calls Startup(). It has one socket.
// - Messages begin with ids from ID_TIMESTAMP (27) on; RakNet lets programs send its own ids as well.
// - CloseConnection() always notifies the remote.
// - Plugins, RakString, statistics, compressed and delta writes are not part of this header.
#ifndef RAKWIRE_RAKNET_COMPAT_H
#define RAKWIRE_RAKNET_COMPAT_H

#include "../rakwire.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

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

// Buffers for ToString(), used in turn, as in RakNet.
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
    void ToString(char *text) const { std::snprintf(text, 64, "%llu", static_cast<unsigned long long>(g)); }
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

// A stream of bits. Numbers of several bytes are written in network order, as RakNet does.
class BitStream {
public:
    BitStream() {}
    explicit BitStream(unsigned int bytes) { bytes_.reserve(bytes); }
    BitStream(unsigned char *data, unsigned int length, bool) : bytes_(data, data + length), used_(BYTES_TO_BITS(length)) {}

    void Reset()
    {
        bytes_.clear();
        used_ = read_ = 0;
    }
    unsigned char *GetData() const { return const_cast<unsigned char *>(bytes_.data()); }
    BitSize_t GetNumberOfBitsUsed() const { return used_; }
    BitSize_t GetWriteOffset() const { return used_; }
    BitSize_t GetNumberOfBytesUsed() const { return BITS_TO_BYTES(used_); }
    BitSize_t GetReadOffset() const { return read_; }
    void SetReadOffset(BitSize_t offset) { read_ = offset; }
    BitSize_t GetNumberOfUnreadBits() const { return read_ < used_ ? used_ - read_ : 0; }
    void ResetReadPointer() { read_ = 0; }
    void ResetWritePointer()
    {
        used_ = 0;
        bytes_.clear();
    }
    void IgnoreBits(BitSize_t bits) { read_ += bits; }
    void IgnoreBytes(unsigned int bytes) { read_ += BYTES_TO_BITS(bytes); }
    void AlignWriteToByteBoundary() { used_ = BYTES_TO_BITS(BITS_TO_BYTES(used_)); }
    void AlignReadToByteBoundary() { read_ = BYTES_TO_BITS(BITS_TO_BYTES(read_)); }

    void Write1() { write_bit(true); }
    void Write0() { write_bit(false); }
    bool ReadBit()
    {
        const bool bit = read_ < used_ && (bytes_[read_ >> 3] & (0x80 >> (read_ & 7))) != 0;
        read_++;
        return bit;
    }

    // Writes bits from the highest of each byte on. `right_aligned`: those of the last byte are its lowest.
    void WriteBits(const unsigned char *data, BitSize_t bits, bool right_aligned = true)
    {
        for (; bits >= 8; bits -= 8, data++)
            write_byte(*data);
        const unsigned rest = right_aligned && bits > 0 ? static_cast<unsigned>(*data) << (8 - bits) : bits > 0 ? *data : 0u;
        for (BitSize_t bit = 0; bit < bits; bit++)
            write_bit((rest & (0x80u >> bit)) != 0);
    }
    bool ReadBits(unsigned char *data, BitSize_t bits, bool right_aligned = true)
    {
        if (bits == 0 || bits > GetNumberOfUnreadBits())
            return false;
        for (; bits >= 8; bits -= 8)
            *data++ = read_byte();
        if (bits > 0) {
            unsigned last = 0;
            for (BitSize_t bit = 0; bit < bits; bit++)
                last |= ReadBit() ? 0x80u >> bit : 0u;
            *data = static_cast<unsigned char>(right_aligned ? last >> (8 - bits) : last);
        }
        return true;
    }

    template <class T>
    void Write(const T &value)
    {
        static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>, "write the parts of such a value one by one");
        unsigned char bytes[sizeof(T)];
        std::memcpy(bytes, &value, sizeof(T));
        swap_bytes(bytes, sizeof(T));
        WriteBits(bytes, BYTES_TO_BITS(static_cast<BitSize_t>(sizeof(T))), true);
    }
    void Write(const bool &value) { write_bit(value); }
    void Write(const RakNetGUID &value) { Write(value.g); }
    // An IPv4 address with its bits inverted, as RakNet hides addresses from routers.
    void Write(const SystemAddress &value)
    {
        Write(static_cast<unsigned char>(4));
        for (int at = 0; at < 4; at++)
            write_byte(static_cast<unsigned char>(~value.raw.ip[at]));
        Write(value.GetPort());
    }
    void Write(const char *bytes, unsigned int length)
    {
        WriteBits(reinterpret_cast<const unsigned char *>(bytes), BYTES_TO_BITS(length), true);
    }
    // A string: its length in two bytes, and its bytes from the next byte boundary on.
    void Write(const char *text)
    {
        const std::size_t length = std::strlen(text);
        const std::uint16_t written = static_cast<std::uint16_t>(length < 0xFFFF ? length : 0xFFFF);
        Write(written);
        WriteAlignedBytes(reinterpret_cast<const unsigned char *>(text), written);
    }
    void Write(char *text) { Write(static_cast<const char *>(text)); }
    void Write(BitStream *other) { Write(other, other->GetNumberOfUnreadBits()); }
    void Write(BitStream &other) { Write(&other); }
    void Write(BitStream *other, BitSize_t bits)
    {
        for (; bits > 0 && other->GetNumberOfUnreadBits() > 0; bits--)
            write_bit(other->ReadBit());
    }
    void WriteAlignedBytes(const unsigned char *bytes, unsigned int length)
    {
        AlignWriteToByteBoundary();
        WriteBits(bytes, BYTES_TO_BITS(length), true);
    }

    template <class T>
    bool Read(T &value)
    {
        static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>, "read the parts of such a value one by one");
        unsigned char bytes[sizeof(T)];
        if (!ReadBits(bytes, BYTES_TO_BITS(static_cast<BitSize_t>(sizeof(T))), true))
            return false;
        swap_bytes(bytes, sizeof(T));
        std::memcpy(&value, bytes, sizeof(T));
        return true;
    }
    bool Read(bool &value)
    {
        if (GetNumberOfUnreadBits() == 0)
            return false;
        value = ReadBit();
        return true;
    }
    bool Read(RakNetGUID &value) { return Read(value.g); }
    bool Read(SystemAddress &value)
    {
        unsigned char version = 0, ip[4];
        std::uint16_t port = 0;
        if (!Read(version) || version != 4 || !ReadBits(ip, 32) || !Read(port))
            return false;
        value = SystemAddress();
        value.raw.family = 4;
        value.raw.port = port;
        for (int at = 0; at < 4; at++)
            value.raw.ip[at] = static_cast<unsigned char>(~ip[at]);
        return true;
    }
    bool Read(char *bytes, unsigned int length)
    {
        return length == 0 || ReadBits(reinterpret_cast<unsigned char *>(bytes), BYTES_TO_BITS(length), true);
    }
    // A string of Write(const char *). `text` needs room for it and its end.
    bool Read(char *text)
    {
        std::uint16_t length = 0;
        if (!Read(length))
            return false;
        text[0] = 0;
        if (length > 0 && !ReadAlignedBytes(reinterpret_cast<unsigned char *>(text), length))
            return false;
        text[length] = 0;
        return true;
    }
    bool ReadAlignedBytes(unsigned char *bytes, unsigned int length)
    {
        AlignReadToByteBoundary();
        return length > 0 && ReadBits(bytes, BYTES_TO_BITS(length), true);
    }
    template <class T>
    bool Serialize(bool write, T &value)
    {
        if (write)
            Write(value);
        return write || Read(value);
    }

private:
    static void swap_bytes(unsigned char *bytes, std::size_t length)
    {
        const std::uint16_t probe = 1;
        unsigned char first;
        std::memcpy(&first, &probe, 1);
        if (first == 0)
            return;
        for (std::size_t at = 0; at < length / 2; at++)
            std::swap(bytes[at], bytes[length - 1 - at]);
    }
    void write_bit(bool bit)
    {
        bytes_.resize(used_ / 8 + 1, 0);
        if (bit)
            bytes_[used_ >> 3] = static_cast<unsigned char>(bytes_[used_ >> 3] | (0x80 >> (used_ & 7)));
        used_++;
    }
    void write_byte(unsigned char byte)
    {
        if ((used_ & 7) != 0) {
            for (unsigned bit = 0; bit < 8; bit++)
                write_bit((byte & (0x80u >> bit)) != 0);
            return;
        }
        bytes_.resize(used_ >> 3, 0);
        bytes_.push_back(byte);
        used_ += 8;
    }
    unsigned char read_byte()
    {
        if ((read_ & 7) == 0) {
            const unsigned char byte = bytes_[read_ >> 3];
            read_ += 8;
            return byte;
        }
        unsigned byte = 0;
        for (unsigned bit = 0; bit < 8; bit++)
            byte |= ReadBit() ? 0x80u >> bit : 0u;
        return static_cast<unsigned char>(byte);
    }

    std::vector<unsigned char> bytes_;
    BitSize_t used_ = 0, read_ = 0;
};

// A peer. As in RakNet, make it with GetInstance() and destroy it with DestroyInstance().
class RakPeerInterface {
public:
    static RakPeerInterface *GetInstance() { return new RakPeerInterface(); }
    static void DestroyInstance(RakPeerInterface *peer) { delete peer; }

    RakPeerInterface(const RakPeerInterface &) = delete;
    RakPeerInterface &operator=(const RakPeerInterface &) = delete;

    StartupResult Startup(unsigned int max_connections, SocketDescriptor *sockets, unsigned count, int = -99999)
    {
        if (endpoint_ != 0)
            return RAKNET_ALREADY_STARTED;
        if (max_connections == 0 || max_connections > 65534)
            return INVALID_MAX_CONNECTIONS;
        if (sockets == nullptr || count != 1)
            return INVALID_SOCKET_DESCRIPTORS;
        const bool is_v6 = sockets->socketFamily == AF_INET6;
        const char *any = is_v6 ? "::" : "0.0.0.0";
        const std::string address =
            detail::host_and_port(sockets->hostAddress[0] != 0 ? sockets->hostAddress : any, sockets->port);
        rakwire_options_t options;
        if (rakwire_options_init(&options, sizeof options) < 0)
            return COULD_NOT_GENERATE_GUID;
        options.bind_address = address.c_str();
        options.max_connections = max_connections;
        options.max_incoming = static_cast<std::uint16_t>(max_connections);
        // The number of incoming connections may change later, so each client is decided about here.
        options.defer_incoming = 1;
        options.out_of_band = 1;
        options.password = password_.data();
        options.password_length = password_.size();
        const int result = rakwire_endpoint_open(&options, &endpoint_);
        if (result >= 0)
            max_connections_ = max_connections;
        return result >= 0 ? RAKNET_STARTED
             : result == RAKWIRE_ERROR_BIND ? SOCKET_PORT_ALREADY_IN_USE
             : result == RAKWIRE_ERROR_ADDRESS ? SOCKET_FAILED_TO_BIND : STARTUP_OTHER_FAILURE;
    }
    // Ends all connections, and waits for at most `block_ms` until their peers know of it.
    void Shutdown(unsigned int block_ms, unsigned char = 0, PacketPriority = LOW_PRIORITY)
    {
        if (endpoint_ == 0)
            return;
        for (const Remote &remote : remotes_)
            rakwire_disconnect(endpoint_, remote.connection);
        const Time start = GetTime();
        rakwire_flush(endpoint_);
        while (rakwire_connections(endpoint_, nullptr, 0) > 0 && GetTime() - start < block_ms) {
            rakwire_update(endpoint_);
            rakwire_event_t event;
            event.size = sizeof event;
            while (rakwire_poll(endpoint_, &event) > 0)
                rakwire_message_release(endpoint_, event.message);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        // Packets that the program still has keep their bytes.
        for (OwnedPacket *packet : packets_)
            packet->own_bytes();
        rakwire_endpoint_close(endpoint_);
        endpoint_ = 0;
        remotes_.clear();
        waiting_.clear();
    }
    bool IsActive() const { return endpoint_ != 0; }

    void SetMaximumIncomingConnections(unsigned short connections) { max_incoming_ = connections; }
    unsigned int GetMaximumIncomingConnections() const { return max_incoming_; }
    unsigned int GetMaximumNumberOfPeers() const { return max_connections_; }
    unsigned short NumberOfConnections() const
    {
        unsigned short open = 0;
        for (const Remote &remote : remotes_)
            open = static_cast<unsigned short>(open + remote.is_open);
        return open;
    }
    // Stores as many addresses as fit into `systems`, and their number.
    bool GetConnectionList(SystemAddress *systems, unsigned short *count) const
    {
        unsigned short found = 0;
        for (const Remote &remote : remotes_)
            if (remote.is_open && (systems == nullptr || found < *count)) {
                if (systems != nullptr)
                    systems[found] = remote.address;
                found++;
            }
        *count = found;
        return true;
    }
    void SetIncomingPassword(const char *password, int length)
    {
        password_.clear();
        if (password != nullptr && length > 0)
            password_.assign(password, password + length);
        if (endpoint_ != 0)
            rakwire_set_password(endpoint_, password_.data(), password_.size());
    }

    ConnectionAttemptResult Connect(const char *host, unsigned short port, const char *password, int password_length,
                                    void * = nullptr, unsigned = 0, unsigned attempts = 12, unsigned interval_ms = 500,
                                    TimeMS timeout_ms = 0)
    {
        rakwire_connect_options_t options;
        if (host == nullptr || rakwire_connect_options_init(&options, sizeof options) < 0)
            return INVALID_PARAMETER;
        if (password != nullptr && password_length > 0) {
            options.password = reinterpret_cast<const std::uint8_t *>(password);
            options.password_length = static_cast<std::size_t>(password_length);
        }
        options.attempts = static_cast<std::uint8_t>(attempts < 255 ? attempts : 255);
        options.interval_ms = interval_ms;
        options.timeout_ms = timeout_ms;
        rakwire_connection_t connection;
        const int result = rakwire_connect(endpoint_, detail::host_and_port(host, port).c_str(), &options, &connection);
        if (result == RAKWIRE_ERROR_ALREADY_CONNECTED)
            return ALREADY_CONNECTED_TO_ENDPOINT;
        if (result == RAKWIRE_ERROR_ADDRESS)
            return CANNOT_RESOLVE_DOMAIN_NAME;
        if (result < 0)
            return INVALID_PARAMETER;
        rakwire_flush(endpoint_);
        remember(connection);
        return CONNECTION_ATTEMPT_STARTED;
    }
    void CancelConnectionAttempt(const SystemAddress target) { CloseConnection(target, true); }
    void CloseConnection(const AddressOrGUID target, bool, unsigned char = 0, PacketPriority = LOW_PRIORITY)
    {
        if (const Remote *remote = find(target)) {
            rakwire_disconnect(endpoint_, remote->connection);
            rakwire_flush(endpoint_);
        }
    }
    ConnectionState GetConnectionState(const AddressOrGUID target) const
    {
        const Remote *remote = find(target);
        rakwire_connection_info_t info;
        info.size = sizeof info;
        if (remote == nullptr || rakwire_connection_info(endpoint_, remote->connection, &info) < 0)
            return IS_NOT_CONNECTED;
        return info.state == RAKWIRE_STATE_CONNECTING ? IS_CONNECTING
             : info.state == RAKWIRE_STATE_CONNECTED ? IS_CONNECTED
             : info.state == RAKWIRE_STATE_DISCONNECTING ? IS_DISCONNECTING : IS_DISCONNECTED;
    }

    // Returns the number of the message, which a receipt repeats, or 0 if it cannot be sent.
    std::uint32_t Send(const char *data, const int length, PacketPriority priority, PacketReliability reliability,
                       char channel, const AddressOrGUID target, bool broadcast, std::uint32_t = 0)
    {
        if (endpoint_ == 0 || data == nullptr || length <= 0)
            return 0;
        const auto *bytes = reinterpret_cast<const std::uint8_t *>(data);
        Outgoing message{0, {}, static_cast<std::uint8_t>(reliability), static_cast<std::uint8_t>(channel),
                         static_cast<std::uint8_t>(priority)};
        const Remote *one = find(target);
        std::uint32_t number = 0;
        if (!broadcast) {
            if (one == nullptr)
                return 0;
            number = send(one->connection, bytes, static_cast<std::size_t>(length), message);
        } else {
            for (const Remote &remote : remotes_)
                if (remote.is_open && &remote != one)
                    send(remote.connection, bytes, static_cast<std::size_t>(length), message);
            number = next_number();
        }
        rakwire_flush(endpoint_);
        return number;
    }
    std::uint32_t Send(const BitStream *stream, PacketPriority priority, PacketReliability reliability, char channel,
                       const AddressOrGUID target, bool broadcast, std::uint32_t receipt = 0)
    {
        return Send(reinterpret_cast<const char *>(stream->GetData()), static_cast<int>(stream->GetNumberOfBytesUsed()),
                    priority, reliability, channel, target, broadcast, receipt);
    }

    // Returns the next packet, or null. It works as long as it is called.
    Packet *Receive()
    {
        if (endpoint_ == 0)
            return nullptr;
        for (bool is_updated = false;;) {
            rakwire_event_t event;
            event.size = sizeof event;
            while (rakwire_poll(endpoint_, &event) > 0)
                if (Packet *packet = translate(event))
                    return packet;
            if (is_updated)
                break;
            rakwire_update(endpoint_);
            send_waiting();
            is_updated = true;
        }
        rakwire_flush(endpoint_);
        return nullptr;
    }
    void DeallocatePacket(Packet *packet)
    {
        for (std::size_t at = 0; at < packets_.size(); at++)
            if (packets_[at] == packet) {
                if (endpoint_ != 0)
                    rakwire_message_release(endpoint_, packets_[at]->message);
                delete packets_[at];
                packets_[at] = packets_.back();
                packets_.pop_back();
                return;
            }
    }

    const RakNetGUID GetMyGUID() const
    {
        RakNetGUID guid;
        return rakwire_guid(endpoint_, &guid.g) < 0 ? UNASSIGNED_RAKNET_GUID : guid;
    }
    SystemAddress GetMyBoundAddress(int = 0) const
    {
        SystemAddress address;
        return rakwire_local_address(endpoint_, &address.raw) < 0 ? UNASSIGNED_SYSTEM_ADDRESS : address;
    }
    const RakNetGUID GetGuidFromSystemAddress(const SystemAddress address) const
    {
        if (address == UNASSIGNED_SYSTEM_ADDRESS)
            return GetMyGUID();
        const Remote *remote = find(address);
        return remote == nullptr ? UNASSIGNED_RAKNET_GUID : remote->guid;
    }
    SystemAddress GetSystemAddressFromGuid(const RakNetGUID guid) const
    {
        const Remote *remote = find(guid);
        return remote == nullptr ? UNASSIGNED_SYSTEM_ADDRESS : remote->address;
    }
    int GetLastPing(const AddressOrGUID target) const { return ping_of(target, &rakwire_connection_stats_t::last_ping_us); }
    int GetAveragePing(const AddressOrGUID target) const
    {
        return ping_of(target, &rakwire_connection_stats_t::average_ping_us);
    }
    int GetLowestPing(const AddressOrGUID target) const
    {
        return ping_of(target, &rakwire_connection_stats_t::lowest_ping_us);
    }
    int GetMTUSize(const SystemAddress target) const
    {
        const Remote *remote = find(target);
        rakwire_connection_info_t info;
        info.size = sizeof info;
        if (remote == nullptr || rakwire_connection_info(endpoint_, remote->connection, &info) < 0)
            return -1;
        return info.mtu;
    }
    void SetTimeoutTime(TimeMS timeout_ms, const SystemAddress target)
    {
        for (const Remote &remote : remotes_)
            if (target == UNASSIGNED_SYSTEM_ADDRESS || remote.address == target)
                rakwire_set_timeout(endpoint_, remote.connection, timeout_ms);
    }

    bool Ping(const char *host, unsigned short port, bool only_open, unsigned = 0)
    {
        SystemAddress to;
        if (!to.FromStringExplicitPort(host, port))
            return false;
        const bool is_broadcast = only_open || to.raw.ip[3] == 255;
        const bool is_sent = rakwire_ping(endpoint_, &to.raw, is_broadcast, only_open) >= 0;
        rakwire_flush(endpoint_);
        return is_sent;
    }
    void SetOfflinePingResponse(const char *data, const unsigned int length)
    {
        rakwire_set_advertisement(endpoint_, reinterpret_cast<const std::uint8_t *>(data), length);
    }
    bool SendOutOfBand(const char *host, unsigned short port, const char *data, BitSize_t length, unsigned = 0)
    {
        SystemAddress to;
        const auto *bytes = reinterpret_cast<const std::uint8_t *>(data);
        const bool is_sent = to.FromStringExplicitPort(host, port)
                          && rakwire_send_out_of_band(endpoint_, &to.raw, bytes, length) >= 0;
        rakwire_flush(endpoint_);
        return is_sent;
    }
    bool AdvertiseSystem(const char *host, unsigned short port, const char *data, int length, unsigned = 0)
    {
        SystemAddress to;
        const auto *bytes = reinterpret_cast<const std::uint8_t *>(data);
        const bool is_sent = length >= 0 && to.FromStringExplicitPort(host, port)
                          && rakwire_advertise(endpoint_, &to.raw, bytes, static_cast<std::size_t>(length)) >= 0;
        rakwire_flush(endpoint_);
        return is_sent;
    }
    void AddToBanList(const char *addresses, TimeMS milliseconds = 0) { rakwire_ban(endpoint_, addresses, milliseconds); }
    void RemoveFromBanList(const char *addresses) { rakwire_unban(endpoint_, addresses); }
    bool IsBanned(const char *host) const
    {
        SystemAddress address(host, 1);
        return rakwire_is_banned(endpoint_, &address.raw) > 0;
    }

private:
    // A packet with the memory of its bytes: those of rakwire, or its own.
    struct OwnedPacket : Packet {
        rakwire_message_t message = 0;
        std::vector<unsigned char> own;

        void own_bytes()
        {
            if (message == 0)
                return;
            own.assign(data, data + length);
            data = own.data();
            message = 0;
        }
    };
    struct Remote {
        rakwire_connection_t connection;
        SystemAddress address;
        RakNetGUID guid;
        bool is_open;
    };
    // A message for which there was no room.
    struct Outgoing {
        rakwire_connection_t connection;
        std::vector<std::uint8_t> bytes;
        std::uint8_t reliability, channel, priority;
    };

    RakPeerInterface() {}
    ~RakPeerInterface()
    {
        Shutdown(0);
        for (OwnedPacket *packet : packets_)
            delete packet;
    }

    const Remote *find(const AddressOrGUID &target) const
    {
        for (const Remote &remote : remotes_)
            if (target.rakNetGuid != UNASSIGNED_RAKNET_GUID ? remote.guid == target.rakNetGuid
                                                            : remote.address == target.systemAddress)
                return &remote;
        return nullptr;
    }
    Remote &remember(rakwire_connection_t connection)
    {
        for (Remote &remote : remotes_)
            if (remote.connection == connection)
                return remote;
        Remote remote{connection, SystemAddress(), RakNetGUID(), false};
        rakwire_connection_info_t info;
        info.size = sizeof info;
        if (rakwire_connection_info(endpoint_, connection, &info) >= 0)
            remote.address = SystemAddress(info.address);
        remotes_.push_back(remote);
        return remotes_.back();
    }
    void forget(rakwire_connection_t connection)
    {
        for (std::size_t at = 0; at < remotes_.size(); at++)
            if (remotes_[at].connection == connection) {
                remotes_.erase(remotes_.begin() + static_cast<std::ptrdiff_t>(at));
                return;
            }
    }
    int ping_of(const AddressOrGUID &target, std::uint64_t rakwire_connection_stats_t::*which) const
    {
        const Remote *remote = find(target);
        rakwire_connection_stats_t stats;
        stats.size = sizeof stats;
        if (remote == nullptr || rakwire_connection_stats(endpoint_, remote->connection, &stats) < 0)
            return -1;
        return static_cast<int>(stats.*which / 1000);
    }
    std::uint32_t next_number() { return ++last_number_ == 0 ? ++last_number_ : last_number_; }

    std::uint32_t send(rakwire_connection_t to, const std::uint8_t *bytes, std::size_t length, const Outgoing &how)
    {
        std::uint32_t receipt = 0;
        int result = RAKWIRE_ERROR_NO_ROOM;
        if (!is_waiting(to))
            result = rakwire_send(endpoint_, to, bytes, length, how.reliability, how.channel, how.priority, &receipt);
        // RakNet's memory has no limit. A message with a receipt needs its number now, so it does not wait.
        if (result == RAKWIRE_ERROR_NO_ROOM && how.reliability < UNRELIABLE_WITH_ACK_RECEIPT) {
            waiting_.push_back({to, {bytes, bytes + length}, how.reliability, how.channel, how.priority});
            result = RAKWIRE_OK;
        }
        return result < 0 ? 0 : receipt != 0 ? receipt : next_number();
    }
    bool is_waiting(rakwire_connection_t connection) const
    {
        for (const Outgoing &message : waiting_)
            if (message.connection == connection)
                return true;
        return false;
    }
    // Sends the messages that waited for room, each connection in its order.
    void send_waiting()
    {
        std::deque<Outgoing> all;
        std::vector<rakwire_connection_t> full;
        all.swap(waiting_);
        for (Outgoing &message : all) {
            bool is_full = false;
            for (rakwire_connection_t connection : full)
                is_full = is_full || connection == message.connection;
            const int result = is_full ? RAKWIRE_ERROR_NO_ROOM
                : rakwire_send(endpoint_, message.connection, message.bytes.data(), message.bytes.size(),
                               message.reliability, message.channel, message.priority, nullptr);
            if (result == RAKWIRE_ERROR_NO_ROOM) {
                full.push_back(message.connection);
                waiting_.push_back(std::move(message));
            }
        }
    }

    void decide(const rakwire_event_t &event)
    {
        std::vector<rakwire_connection_t> all(static_cast<std::size_t>(max_connections_) + 1);
        const int count = rakwire_connections(endpoint_, all.data(), all.size());
        unsigned incoming = 0;
        rakwire_connection_info_t info;
        info.size = sizeof info;
        for (int at = 0; at < count; at++)
            if (rakwire_connection_info(endpoint_, all[static_cast<std::size_t>(at)], &info) >= 0)
                incoming += info.side == RAKWIRE_SIDE_SERVER;
        if (incoming < max_incoming_)
            rakwire_accept(endpoint_, event.request);
        else
            rakwire_refuse(endpoint_, event.request);
    }

    OwnedPacket *packet(const SystemAddress &address, const RakNetGUID &guid)
    {
        OwnedPacket *made = new OwnedPacket();
        made->systemAddress = address;
        made->guid = guid;
        packets_.push_back(made);
        return made;
    }
    static OwnedPacket *finish(OwnedPacket *packet)
    {
        packet->data = packet->own.data();
        packet->length = static_cast<unsigned>(packet->own.size());
        packet->bitSize = BYTES_TO_BITS(packet->length);
        return packet;
    }
    // A packet that consists of an id and the data of the event behind `header`.
    OwnedPacket *generated(unsigned char id, const rakwire_event_t &event, const SystemAddress &address,
                           const RakNetGUID &guid, const std::vector<unsigned char> &header = {})
    {
        OwnedPacket *made = packet(address, guid);
        made->own.push_back(id);
        made->own.insert(made->own.end(), header.begin(), header.end());
        if (event.length > 0)
            made->own.insert(made->own.end(), event.data, event.data + event.length);
        rakwire_message_release(endpoint_, event.message);
        made->wasGeneratedLocally = true;
        return finish(made);
    }

    static unsigned char id_of_failure(int reason)
    {
        switch (reason) {
        case RAKWIRE_FAILURE_ALREADY_CONNECTED: return ID_ALREADY_CONNECTED;
        case RAKWIRE_FAILURE_SERVER_FULL: return ID_NO_FREE_INCOMING_CONNECTIONS;
        case RAKWIRE_FAILURE_BANNED: return ID_CONNECTION_BANNED;
        case RAKWIRE_FAILURE_RECENTLY_CONNECTED: return ID_IP_RECENTLY_CONNECTED;
        case RAKWIRE_FAILURE_VERSION: return ID_INCOMPATIBLE_PROTOCOL_VERSION;
        case RAKWIRE_FAILURE_SECURITY_REQUIRED: return ID_REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY;
        case RAKWIRE_FAILURE_NO_SECURITY: return ID_OUR_SYSTEM_REQUIRES_SECURITY;
        case RAKWIRE_FAILURE_PUBLIC_KEY: return ID_PUBLIC_KEY_MISMATCH;
        case RAKWIRE_FAILURE_PASSWORD: return ID_INVALID_PASSWORD;
        default: return ID_CONNECTION_ATTEMPT_FAILED;
        }
    }

    Packet *translate(const rakwire_event_t &event)
    {
        const SystemAddress from(event.address);
        switch (event.kind) {
        case RAKWIRE_EVENT_MESSAGE: {
            const Remote &remote = remember(event.connection);
            OwnedPacket *made = packet(remote.address, remote.guid);
            made->message = event.message;
            made->data = const_cast<unsigned char *>(event.data);
            made->length = static_cast<unsigned>(event.length);
            made->bitSize = BYTES_TO_BITS(made->length);
            return made;
        }
        case RAKWIRE_EVENT_CONNECTED: {
            Remote &remote = remember(event.connection);
            remote.address = from;
            remote.guid = RakNetGUID(event.guid);
            remote.is_open = true;
            const bool is_ours = event.side == RAKWIRE_SIDE_CLIENT;
            return generated(is_ours ? ID_CONNECTION_REQUEST_ACCEPTED : ID_NEW_INCOMING_CONNECTION, event, from,
                             remote.guid);
        }
        case RAKWIRE_EVENT_CONNECT_FAILED: {
            forget(event.connection);
            if (event.reason == RAKWIRE_FAILURE_CANCELLED)
                return nullptr;
            std::vector<unsigned char> version;
            if (event.reason == RAKWIRE_FAILURE_VERSION)
                version.push_back(event.server_version);
            return generated(id_of_failure(event.reason), event, from, UNASSIGNED_RAKNET_GUID, version);
        }
        case RAKWIRE_EVENT_DISCONNECTED: {
            const RakNetGUID guid = remember(event.connection).guid;
            forget(event.connection);
            if (event.reason == RAKWIRE_DISCONNECT_LOCAL)
                return nullptr;
            const bool is_orderly = event.reason == RAKWIRE_DISCONNECT_REMOTE;
            return generated(is_orderly ? ID_DISCONNECTION_NOTIFICATION : ID_CONNECTION_LOST, event, from, guid);
        }
        case RAKWIRE_EVENT_RECEIPT: {
            const Remote &remote = remember(event.connection);
            std::vector<unsigned char> number(sizeof event.receipt);
            std::memcpy(number.data(), &event.receipt, sizeof event.receipt);
            const bool is_there = event.outcome == RAKWIRE_OUTCOME_ACKNOWLEDGED;
            return generated(is_there ? ID_SND_RECEIPT_ACKED : ID_SND_RECEIPT_LOSS, event, remote.address, remote.guid,
                             number);
        }
        case RAKWIRE_EVENT_PONG: {
            // The time of the ping, from which programs compute the round trip.
            BitStream time;
            time.Write(static_cast<TimeMS>(GetTimeMS() - static_cast<TimeMS>(event.latency_us / 1000)));
            return generated(ID_UNCONNECTED_PONG, event, from, RakNetGUID(event.guid),
                             {time.GetData(), time.GetData() + sizeof(TimeMS)});
        }
        case RAKWIRE_EVENT_ADVERTISEMENT:
            return generated(ID_ADVERTISE_SYSTEM, event, from, RakNetGUID(event.guid));
        case RAKWIRE_EVENT_OUT_OF_BAND: {
            OwnedPacket *made = packet(from, RakNetGUID(event.guid));
            made->message = event.message;
            made->data = const_cast<unsigned char *>(event.data);
            made->length = static_cast<unsigned>(event.length);
            made->bitSize = BYTES_TO_BITS(made->length);
            return made;
        }
        case RAKWIRE_EVENT_INCOMING:
            decide(event);
            return nullptr;
        default:
            return nullptr;
        }
    }

    rakwire_endpoint_t endpoint_ = 0;
    unsigned max_connections_ = 0;
    unsigned max_incoming_ = 0;
    std::uint32_t last_number_ = 0;
    std::vector<std::uint8_t> password_;
    std::vector<Remote> remotes_;
    std::vector<OwnedPacket *> packets_;
    std::deque<Outgoing> waiting_;
};

}  // namespace RakNet

inline void RakSleep(unsigned int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

#endif  // RAKWIRE_RAKNET_COMPAT_H
