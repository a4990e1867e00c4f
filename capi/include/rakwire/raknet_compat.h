// The API names of RakNet 4 and SLikeNet, implemented by rakwire. A program that uses RakPeerInterface compiles with
// `#include <rakwire/raknet_compat.h>` instead of the headers of either library, and connects to peers of all three libraries.
// The names are in the namespace RakNet; SLNet is an alias of it.
// Differences from RakNet 4:
// - There is no network thread. The peer works only while Receive() is called, so call it each frame until it returns null.
// - A peer belongs to the thread that calls Startup(), until Shutdown(). A call on another thread fails, as its return type
//   allows, and stops a debug build by assert(), because the peer has no locks. It has one socket.
// - DestroyInstance() on another thread is allowed once the thread of the peer has ended, and sends no notifications. While
//   that thread is running, it stops a debug build by assert(); in other builds the socket stays open until the thread ends.
// - The first byte of a message must be ID_TIMESTAMP (27) or above. RakNet also lets programs send its internal ids.
// - CloseConnection() and Shutdown() always notify the remote. CloseConnection() also cancels connection attempts.
// - Send() returns 0 if no connection can accept the message. RakNet returns a number and drops the message.
// - Plugins, security, compressed and delta writes, and system indices are not supported.
#ifndef RAKWIRE_RAKNET_COMPAT_H
#define RAKWIRE_RAKNET_COMPAT_H

#include "raknet_bitstream.h"
#include "raknet_outbox.h"
#include "raknet_owner.h"

#include <deque>
#include <thread>

namespace RakNet {

// A peer. As in RakNet, create it with GetInstance() and destroy it with DestroyInstance().
class RakPeerInterface {
public:
    static RakPeerInterface *GetInstance() { return new RakPeerInterface(); }
    static void DestroyInstance(RakPeerInterface *peer) { delete peer; }

    RakPeerInterface(const RakPeerInterface &) = delete;
    RakPeerInterface &operator=(const RakPeerInterface &) = delete;

    StartupResult Startup(unsigned int max_connections, SocketDescriptor *sockets, unsigned count, int = -99999)
    {
        if (!owner_.claim())
            return STARTUP_OTHER_FAILURE;
        const StartupResult result = open(max_connections, sockets, count);
        if (endpoint_ == 0)
            owner_.release();
        return result;
    }
    // Closes all connections. Waits at most `block_ms` for the peers to acknowledge the disconnect.
    void Shutdown(unsigned int block_ms, unsigned char = 0, PacketPriority = LOW_PRIORITY)
    {
        if (endpoint() == 0)
            return;
        for (Remote &remote : remotes_)
            remote.is_closing = true;
        const Time start = GetTime();
        close_without_waiting();
        rakwire_flush(endpoint_);
        while (rakwire_connections(endpoint_, nullptr, 0) > 0 && GetTime() - start < block_ms) {
            rakwire_update(endpoint_);
            send_waiting();
            rakwire_flush(endpoint_);
            rakwire_event_t event;
            event.size = sizeof event;
            while (rakwire_poll(endpoint_, &event) > 0)
                rakwire_message_release(endpoint_, event.message);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        // The queued messages of these connections could not be sent in time.
        for (const Remote &remote : remotes_)
            rakwire_disconnect(endpoint_, remote.connection);
        rakwire_flush(endpoint_);
        // The bytes of packets that the program still holds must stay valid.
        for (OwnedPacket *packet : packets_)
            packet->own_bytes();
        rakwire_endpoint_close(endpoint_);
        endpoint_ = 0;
        remotes_.clear();
        outbox_.clear();
        while (!local_.empty()) {
            DeallocatePacket(local_.front());
            local_.pop_front();
        }
        owner_.release();
    }
    bool IsActive() const { return endpoint() != 0; }
    // Sets the only protocol version of the peer. Call it before Startup(), as in forks of RakNet for Minecraft Bedrock.
    void SetProtocolVersion(int version)
    {
        if (owner_.allows())
            protocol_ = static_cast<std::uint8_t>(version);
    }

    void SetMaximumIncomingConnections(unsigned short connections)
    {
        if (owner_.allows())
            max_incoming_ = connections;
    }
    unsigned int GetMaximumIncomingConnections() const { return owner_.allows() ? max_incoming_ : 0; }
    unsigned int GetMaximumNumberOfPeers() const { return owner_.allows() ? max_connections_ : 0; }
    unsigned short NumberOfConnections() const
    {
        unsigned short open = 0;
        if (!owner_.allows())
            return open;
        for (const Remote &remote : remotes_)
            open = static_cast<unsigned short>(open + remote.is_open);
        return open;
    }
    // Stores as many addresses as fit into `systems`, and their number in `count`.
    bool GetConnectionList(SystemAddress *systems, unsigned short *count) const
    {
        unsigned short found = 0;
        if (!owner_.allows()) {
            *count = 0;
            return false;
        }
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
        if (!owner_.allows())
            return;
        password_.clear();
        if (password != nullptr && length > 0)
            password_.assign(password, password + length);
        if (endpoint_ != 0)
            rakwire_set_password(endpoint_, password_.data(), password_.size());
    }

    // Stores as much of the password as fits into `length` bytes, and its full length.
    void GetIncomingPassword(char *password, int *length) const
    {
        if (!owner_.allows()) {
            *length = 0;
            return;
        }
        const int stored = static_cast<int>(password_.size());
        *length = password == nullptr || stored < *length ? stored : *length;
        if (password != nullptr && *length > 0)
            std::memcpy(password, password_.data(), static_cast<std::size_t>(*length));
    }
    // Has no effect: connections are always pinged every five seconds.
    void SetOccasionalPing(bool) {}

    ConnectionAttemptResult Connect(const char *host, unsigned short port, const char *password, int password_length,
                                    void * = nullptr, unsigned = 0, unsigned attempts = 12, unsigned interval_ms = 500,
                                    TimeMS timeout_ms = 0)
    {
        rakwire_connect_options_t options;
        if (host == nullptr || !owner_.allows() || rakwire_connect_options_init(&options, sizeof options) < 0)
            return INVALID_PARAMETER;
        if (GetConnectionState(SystemAddress(host, port)) == IS_PENDING)
            return CONNECTION_ATTEMPT_ALREADY_IN_PROGRESS;
        if (password != nullptr && password_length > 0) {
            options.password = reinterpret_cast<const std::uint8_t *>(password);
            options.password_length = static_cast<std::size_t>(password_length);
        }
        options.attempts = static_cast<std::uint8_t>(attempts < 255 ? attempts : 255);
        options.interval_ms = interval_ms;
        options.timeout_ms = timeout_ms != 0 ? timeout_ms : timeout_ms_;
        // A version that the program has set must not be replaced by the server's version.
        options.protocol_version = protocol_ != 0 ? protocol_ : DEFAULT_PROTOCOL;
        rakwire_connection_t connection;
        const int result = rakwire_connect(endpoint_, detail::host_and_port(host, port).c_str(), &options, &connection);
        if (result == RAKWIRE_ERROR_ALREADY_CONNECTED)
            return ALREADY_CONNECTED_TO_ENDPOINT;
        if (result == RAKWIRE_ERROR_ADDRESS)
            return CANNOT_RESOLVE_DOMAIN_NAME;
        if (result == RAKWIRE_ERROR_FULL) {
            // As in RakNet, where this failure is reported later by a packet.
            report_local(ID_CONNECTION_ATTEMPT_FAILED, SystemAddress(host, port), UNASSIGNED_RAKNET_GUID);
            return CONNECTION_ATTEMPT_STARTED;
        }
        if (result < 0)
            return INVALID_PARAMETER;
        rakwire_flush(endpoint_);
        remember(connection);
        return CONNECTION_ATTEMPT_STARTED;
    }
    // Has no effect on an open connection.
    void CancelConnectionAttempt(const SystemAddress target)
    {
        if (GetConnectionState(target) == IS_PENDING)
            CloseConnection(target, true);
    }
    // Closes the connection after its earlier messages are delivered; ID_DISCONNECTION_NOTIFICATION follows. Without a
    // notification, it closes immediately and ID_CONNECTION_LOST follows. Unlike RakNet, the remote is notified in both cases.
    void CloseConnection(const AddressOrGUID target, bool notify, unsigned char = 0, PacketPriority = LOW_PRIORITY)
    {
        Remote *remote = find(target);
        if (remote == nullptr)
            return;
        if (!notify && remote->is_open && !remote->is_reported) {
            const rakwire_connection_t connection = remote->connection;
            take_events();
            // The connection may have closed while the events were handled.
            remote = remote_of(connection);
            if (remote == nullptr)
                return;
            remote->is_reported = true;
            remote->is_open = false;
            report_local(ID_CONNECTION_LOST, remote->address, remote->guid);
            outbox_.forget(connection);
        }
        remote->is_closing = true;
        close_without_waiting();
        rakwire_flush(endpoint_);
    }
    ConnectionState GetConnectionState(const AddressOrGUID target) const
    {
        const Remote *remote = find(target);
        rakwire_connection_info_t info;
        info.size = sizeof info;
        if (remote == nullptr || rakwire_connection_info(endpoint_, remote->connection, &info) < 0)
            return IS_NOT_CONNECTED;
        const bool is_client = info.side == RAKWIRE_SIDE_CLIENT;
        if (remote->is_closing)
            return IS_DISCONNECTING;
        return info.state == RAKWIRE_STATE_CONNECTING ? (is_client ? IS_PENDING : IS_CONNECTING)
             : info.state == RAKWIRE_STATE_CONNECTED ? IS_CONNECTED
             : info.state == RAKWIRE_STATE_DISCONNECTING ? IS_DISCONNECTING : IS_DISCONNECTED;
    }

    // Returns the number of the message, which its receipt repeats, or 0 if it cannot be sent.
    std::uint32_t Send(const char *data, const int length, PacketPriority priority, PacketReliability reliability,
                       char channel, const AddressOrGUID target, bool broadcast, std::uint32_t receipt = 0)
    {
        if (endpoint() == 0 || data == nullptr || length <= 0)
            return 0;
        const auto *bytes = reinterpret_cast<const std::uint8_t *>(data);
        std::vector<std::uint8_t> shifted;
        if (has_timestamp(bytes, static_cast<std::size_t>(length))) {
            shifted.assign(bytes, bytes + length);
            shift_timestamp(shifted.data(), -clock_offset_);
            bytes = shifted.data();
        }
        const Remote *one = find(target);
        const bool is_own = !broadcast && one == nullptr && is_own_address(target);
        if (!broadcast && !is_own && (one == nullptr || one->is_closing))
            return 0;
        const std::uint32_t number = receipt != 0 ? receipt : next_number();
        // As in RakNet, values out of range are replaced.
        const detail::Delivery message{
            static_cast<std::uint8_t>(reliability < NUMBER_OF_RELIABILITIES ? reliability : RELIABLE),
            static_cast<std::uint8_t>(static_cast<std::uint8_t>(channel) < 32 ? channel : 0),
            static_cast<std::uint8_t>(priority < NUMBER_OF_PRIORITIES ? priority : HIGH_PRIORITY), number};
        if (is_own) {
            receive_own(reinterpret_cast<const std::uint8_t *>(data), static_cast<std::size_t>(length), message);
            return number;
        }
        bool is_taken = broadcast;
        for (const Remote &remote : remotes_)
            if (broadcast ? remote.is_open && !remote.is_closing && &remote != one : &remote == one)
                is_taken |= outbox_.send(endpoint_, remote.connection, bytes, static_cast<std::size_t>(length), message);
        rakwire_flush(endpoint_);
        return is_taken ? number : 0;
    }
    std::uint32_t Send(const BitStream *stream, PacketPriority priority, PacketReliability reliability, char channel,
                       const AddressOrGUID target, bool broadcast, std::uint32_t receipt = 0)
    {
        return Send(reinterpret_cast<const char *>(stream->GetData()), static_cast<int>(stream->GetNumberOfBytesUsed()),
                    priority, reliability, channel, target, broadcast, receipt);
    }

    // Returns the next packet, or null. The peer works only while this is called.
    Packet *Receive()
    {
        if (endpoint() == 0)
            return nullptr;
        if (!local_.empty()) {
            Packet *packet = local_.front();
            local_.pop_front();
            return packet;
        }
        for (bool is_updated = false;;) {
            if (Packet *packet = next_event())
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
        if (!owner_.allows())
            return;
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
        return rakwire_guid(endpoint(), &guid.g) < 0 ? UNASSIGNED_RAKNET_GUID : guid;
    }
    SystemAddress GetMyBoundAddress(int = 0) const
    {
        SystemAddress address;
        return rakwire_local_address(endpoint(), &address.raw) < 0 ? UNASSIGNED_SYSTEM_ADDRESS : address;
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
    // Returns the statistics of a connection, or null. They are in `statistics`, or in memory that the next call on this thread
    // reuses. BPSLimit members are 0, because the congestion control has no fixed rate.
    RakNetStatistics *GetStatistics(const SystemAddress target, RakNetStatistics *statistics = nullptr) const
    {
        static thread_local RakNetStatistics own;
        const Remote *remote = find(target);
        rakwire_connection_stats_t from;
        from.size = sizeof from;
        if (remote == nullptr || rakwire_connection_stats(endpoint_, remote->connection, &from) < 0)
            return nullptr;
        RakNetStatistics *to = statistics != nullptr ? statistics : &own;
        *to = RakNetStatistics();
        const std::uint64_t totals[RNS_PER_SECOND_METRICS_COUNT] = {
            from.bytes_pushed, from.bytes_sent, from.bytes_resent, from.bytes_processed, from.bytes_ignored,
            from.actual_bytes_sent, from.actual_bytes_received};
        const std::uint32_t seconds[RNS_PER_SECOND_METRICS_COUNT] = {
            from.bytes_pushed_last_second, from.bytes_sent_last_second, from.bytes_resent_last_second,
            from.bytes_processed_last_second, from.bytes_ignored_last_second, from.actual_bytes_sent_last_second,
            from.actual_bytes_received_last_second};
        for (int metric = 0; metric < RNS_PER_SECOND_METRICS_COUNT; metric++) {
            to->runningTotal[metric] = totals[metric];
            to->valueOverLastSecond[metric] = seconds[metric];
        }
        for (int priority = 0; priority < NUMBER_OF_PRIORITIES; priority++) {
            to->messageInSendBuffer[priority] = from.waiting_messages[priority];
            to->bytesInSendBuffer[priority] = from.waiting_bytes[priority];
        }
        to->messagesInResendBuffer = from.waiting_resend_messages;
        to->bytesInResendBuffer = from.waiting_resend_bytes;
        to->packetlossLastSecond = static_cast<float>(from.loss_last_second);
        to->packetlossTotal = static_cast<float>(from.loss);
        return to;
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
        if (!owner_.allows())
            return;
        if (target == UNASSIGNED_SYSTEM_ADDRESS)
            timeout_ms_ = timeout_ms;
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
        const bool is_sent = rakwire_ping(endpoint(), &to.raw, is_broadcast, only_open) >= 0;
        rakwire_flush(endpoint());
        return is_sent;
    }
    void SetOfflinePingResponse(const char *data, const unsigned int length)
    {
        rakwire_set_advertisement(endpoint(), reinterpret_cast<const std::uint8_t *>(data), length);
    }
    bool SendOutOfBand(const char *host, unsigned short port, const char *data, BitSize_t length, unsigned = 0)
    {
        SystemAddress to;
        const auto *bytes = reinterpret_cast<const std::uint8_t *>(data);
        const bool is_sent = to.FromStringExplicitPort(host, port)
                          && rakwire_send_out_of_band(endpoint(), &to.raw, bytes, length) >= 0;
        rakwire_flush(endpoint());
        return is_sent;
    }
    bool AdvertiseSystem(const char *host, unsigned short port, const char *data, int length, unsigned = 0)
    {
        SystemAddress to;
        const auto *bytes = reinterpret_cast<const std::uint8_t *>(data);
        const bool is_sent = length >= 0 && to.FromStringExplicitPort(host, port)
                          && rakwire_advertise(endpoint(), &to.raw, bytes, static_cast<std::size_t>(length)) >= 0;
        rakwire_flush(endpoint());
        return is_sent;
    }
    void AddToBanList(const char *addresses, TimeMS milliseconds = 0) { rakwire_ban(endpoint(), addresses, milliseconds); }
    void RemoveFromBanList(const char *addresses) { rakwire_unban(endpoint(), addresses); }
    bool IsBanned(const char *host) const
    {
        SystemAddress address(host, 1);
        return rakwire_is_banned(endpoint(), &address.raw) > 0;
    }

private:
    // The protocol version of RakNet 4.
    static constexpr std::uint8_t DEFAULT_PROTOCOL = 6;
    // The value of an endpoint's clock when the endpoint opens.
    static constexpr std::int64_t CLOCK_START_MS = 1000;

    // A packet that owns its bytes, either a message of rakwire or a buffer.
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
        rakwire_connection_t connection = 0;
        SystemAddress address;
        RakNetGUID guid;
        bool is_open = false;
        // True once the program has received the packet about the disconnect. It is the last packet of a connection.
        bool is_reported = false;
        // True once the program has asked to close the connection.
        bool is_closing = false;
    };
    RakPeerInterface() {}
    ~RakPeerInterface()
    {
        if (owner_.allows_destruction())
            Shutdown(0);
        for (OwnedPacket *packet : packets_)
            delete packet;
    }

    // Returns the handle, or 0, which every function refuses, on a thread to which the peer does not belong.
    rakwire_endpoint_t endpoint() const { return owner_.allows() ? endpoint_ : 0; }
    StartupResult open(unsigned int max_connections, SocketDescriptor *sockets, unsigned count)
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
        // Clients are accepted here, because SetMaximumIncomingConnections() may change the limit later.
        options.defer_incoming = 1;
        options.out_of_band = 1;
        options.password = password_.data();
        options.password_length = password_.size();
        if (protocol_ != 0) {
            options.protocol_version = protocol_;
            std::memset(options.accepted_versions, 0, sizeof options.accepted_versions);
            options.accepted_versions[0] = protocol_;
        }
        const int result = rakwire_endpoint_open(&options, &endpoint_);
        if (result >= 0)
            max_connections_ = max_connections;
        clock_offset_ = static_cast<std::int64_t>(GetTime()) - CLOCK_START_MS;
        return result >= 0 ? RAKNET_STARTED
             : result == RAKWIRE_ERROR_BIND ? SOCKET_PORT_ALREADY_IN_USE
             : result == RAKWIRE_ERROR_ADDRESS ? SOCKET_FAILED_TO_BIND : STARTUP_OTHER_FAILURE;
    }
    Remote *find(const AddressOrGUID &target)
    {
        return const_cast<Remote *>(static_cast<const RakPeerInterface *>(this)->find(target));
    }
    const Remote *find(const AddressOrGUID &target) const
    {
        if (!owner_.allows())
            return nullptr;
        for (const Remote &remote : remotes_)
            if (target.rakNetGuid != UNASSIGNED_RAKNET_GUID ? remote.guid == target.rakNetGuid
                                                            : remote.address == target.systemAddress)
                return &remote;
        return nullptr;
    }
    Remote *remote_of(rakwire_connection_t connection)
    {
        for (Remote &remote : remotes_)
            if (remote.connection == connection)
                return &remote;
        return nullptr;
    }
    Remote &remember(rakwire_connection_t connection)
    {
        if (Remote *known = remote_of(connection))
            return *known;
        Remote remote;
        remote.connection = connection;
        rakwire_connection_info_t info;
        info.size = sizeof info;
        if (rakwire_connection_info(endpoint_, connection, &info) >= 0)
            remote.address = SystemAddress(info.address);
        remotes_.push_back(remote);
        return remotes_.back();
    }
    void forget(rakwire_connection_t connection)
    {
        outbox_.forget(connection);
        for (std::size_t at = 0; at < remotes_.size(); at++)
            if (remotes_[at].connection == connection) {
                remotes_.erase(remotes_.begin() + static_cast<std::ptrdiff_t>(at));
                return;
            }
    }
    // Closes connections that the program wants to close, once none of their messages are queued.
    void close_without_waiting()
    {
        for (const Remote &remote : remotes_)
            if (remote.is_closing && !outbox_.is_waiting(remote.connection))
                rakwire_disconnect(endpoint_, remote.connection);
    }
    void send_waiting()
    {
        outbox_.send_waiting(endpoint_);
        close_without_waiting();
    }
    // Returns the packet for the next event that the program should see, or null.
    Packet *next_event()
    {
        rakwire_event_t event;
        event.size = sizeof event;
        while (rakwire_poll(endpoint_, &event) > 0)
            if (Packet *packet = translate(event))
                return packet;
        return nullptr;
    }
    // Converts all current events to queued packets.
    void take_events()
    {
        while (Packet *packet = next_event())
            local_.push_back(packet);
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

    bool is_own_address(const AddressOrGUID &target) const
    {
        if (target.rakNetGuid != UNASSIGNED_RAKNET_GUID)
            return target.rakNetGuid == GetMyGUID();
        const SystemAddress own = GetMyBoundAddress();
        return target.systemAddress == own || (target.systemAddress.IsLoopback() && target.systemAddress.GetPort() == own.GetPort());
    }
    // Delivers a message that the program sends to itself.
    void receive_own(const std::uint8_t *bytes, std::size_t length, const detail::Delivery &how)
    {
        OwnedPacket *made = packet(SystemAddress("127.0.0.1", GetMyBoundAddress().GetPort()), GetMyGUID());
        made->own.assign(bytes, bytes + length);
        local_.push_back(finish(made));
        if (how.reliability < UNRELIABLE_WITH_ACK_RECEIPT)
            return;
        OwnedPacket *receipt = packet(made->systemAddress, made->guid);
        receipt->own.assign(1 + sizeof how.number, ID_SND_RECEIPT_ACKED);
        std::memcpy(receipt->own.data() + 1, &how.number, sizeof how.number);
        local_.push_back(finish(receipt));
    }
    static bool has_timestamp(const std::uint8_t *bytes, std::size_t length)
    {
        return length > sizeof(Time) && bytes[0] == ID_TIMESTAMP;
    }
    // Shifts the timestamp of a message, because GetTime() and the endpoint have different clocks.
    static void shift_timestamp(std::uint8_t *bytes, std::int64_t by)
    {
        std::uint64_t time = 0;
        for (std::size_t at = 1; at <= sizeof(Time); at++)
            time = time << 8 | bytes[at];
        time += static_cast<std::uint64_t>(by);
        for (std::size_t at = sizeof(Time); at >= 1; at--, time >>= 8)
            bytes[at] = static_cast<std::uint8_t>(time);
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
    // Creates a packet: an id, `header` bytes for the caller, and the data of the event.
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

    // Queues a packet that is not caused by an event.
    void report_local(unsigned char id, const SystemAddress &address, const RakNetGUID &guid)
    {
        OwnedPacket *made = packet(address, guid);
        made->own.push_back(id);
        made->wasGeneratedLocally = true;
        local_.push_back(finish(made));
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
        const bool is_of_connection = event.kind == RAKWIRE_EVENT_MESSAGE || event.kind == RAKWIRE_EVENT_RECEIPT;
        if (is_of_connection && remember(event.connection).is_reported) {
            rakwire_message_release(endpoint_, event.message);
            return nullptr;
        }
        switch (event.kind) {
        case RAKWIRE_EVENT_MESSAGE: {
            const Remote &remote = remember(event.connection);
            OwnedPacket *made = packet(remote.address, remote.guid);
            made->message = event.message;
            made->data = const_cast<unsigned char *>(event.data);
            made->length = static_cast<unsigned>(event.length);
            made->bitSize = BYTES_TO_BITS(made->length);
            if (has_timestamp(event.data, event.length)) {
                made->own_bytes();
                rakwire_message_release(endpoint_, event.message);
                shift_timestamp(made->data, clock_offset_);
            }
            return made;
        }
        case RAKWIRE_EVENT_CONNECTED: {
            Remote &remote = remember(event.connection);
            remote.address = from;
            remote.guid = RakNetGUID(event.guid);
            remote.is_open = true;
            const bool is_ours = event.side == RAKWIRE_SIDE_CLIENT;
            if (!is_ours && timeout_ms_ != 0)
                rakwire_set_timeout(endpoint_, event.connection, timeout_ms_);
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
            const Remote remote = remember(event.connection);
            const RakNetGUID guid = remote.guid;
            forget(event.connection);
            if (remote.is_reported)
                return nullptr;
            const bool is_orderly =
                event.reason == RAKWIRE_DISCONNECT_REMOTE || event.reason == RAKWIRE_DISCONNECT_LOCAL;
            return generated(is_orderly ? ID_DISCONNECTION_NOTIFICATION : ID_CONNECTION_LOST, event, from, guid);
        }
        case RAKWIRE_EVENT_RECEIPT: {
            const Remote &remote = remember(event.connection);
            std::vector<unsigned char> number(sizeof event.receipt);
            const std::uint32_t receipt = outbox_.take_receipt(event.connection, event.receipt);
            std::memcpy(number.data(), &receipt, sizeof receipt);
            const bool is_there = event.outcome == RAKWIRE_OUTCOME_ACKNOWLEDGED;
            return generated(is_there ? ID_SND_RECEIPT_ACKED : ID_SND_RECEIPT_LOSS, event, remote.address, remote.guid,
                             number);
        }
        case RAKWIRE_EVENT_PONG: {
            // The sending time of the ping, from which programs compute the round-trip time.
            BitStream time;
            time.Write(static_cast<TimeMS>(GetTimeMS() - static_cast<TimeMS>(event.latency_us / 1000)));
            return generated(ID_UNCONNECTED_PONG, event, from, RakNetGUID(event.guid),
                             {time.GetData(), time.GetData() + sizeof(TimeMS)});
        }
        case RAKWIRE_EVENT_ADVERTISEMENT:
            return generated(ID_ADVERTISE_SYSTEM, event, from, RakNetGUID(event.guid));
        case RAKWIRE_EVENT_OUT_OF_BAND: {
            // As in RakNet, the internal id precedes the message.
            OwnedPacket *made = generated(ID_OUT_OF_BAND_INTERNAL, event, from, RakNetGUID(event.guid));
            made->wasGeneratedLocally = false;
            return made;
        }
        case RAKWIRE_EVENT_INCOMING:
            decide(event);
            return nullptr;
        default:
            return nullptr;
        }
    }

    detail::Owner owner_;
    rakwire_endpoint_t endpoint_ = 0;
    unsigned max_connections_ = 0;
    unsigned max_incoming_ = 0;
    std::uint8_t protocol_ = 0;
    TimeMS timeout_ms_ = 0;  // for all connections; 0 is the default
    std::uint32_t last_number_ = 0;
    // GetTime() minus the clock of the endpoint, in milliseconds.
    std::int64_t clock_offset_ = 0;
    std::vector<std::uint8_t> password_;
    std::vector<Remote> remotes_;
    std::vector<OwnedPacket *> packets_;
    detail::Outbox outbox_;
    std::deque<Packet *> local_;  // packets that are not caused by an event of the endpoint
};

}  // namespace RakNet

// SLikeNet uses this namespace for the same names.
namespace SLNet = RakNet;

inline void RakSleep(unsigned int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

#endif  // RAKWIRE_RAKNET_COMPAT_H
