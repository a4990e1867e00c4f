// The C++17 interface of rakwire: header-only, on top of rakwire.h. Errors are thrown as rakwire::Error, except by functions
// that are documented to return them.
//
//     rakwire::Options options;
//     options.bind("0.0.0.0:19132").max_incoming(64);
//     rakwire::Endpoint server(options);
//     for (;;) {
//         server.update();
//         while (rakwire::Event event = server.poll())
//             if (event.kind() == rakwire::Event::Kind::Message)
//                 server.try_send(event.connection(), event.data(), event.delivery());
//         server.flush();
//     }
//
// The server uses try_send, because send throws when the client has disconnected in the same update or does not read.
#ifndef RAKWIRE_HPP
#define RAKWIRE_HPP

#include "rakwire.h"

#include <array>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__has_include)
#if __has_include(<span>) && __cplusplus >= 202002L
#include <span>
#define RAKWIRE_HAS_STD_SPAN 1
#endif
#endif

namespace rakwire {

// Thrown when a call fails. Has the code from rakwire.h and the description from rakwire_last_error().
class Error : public std::runtime_error {
public:
    explicit Error(int code) : std::runtime_error(rakwire_last_error()), code_(code) {}
    int code() const noexcept { return code_; }

private:
    int code_;
};

// Returns a result, or throws if it is an error.
inline int check(int result)
{
    if (result < 0)
        throw Error(result);
    return result;
}

// A view of borrowed bytes: a pointer and a length. Converts from any container of bytes.
class Bytes {
public:
    constexpr Bytes() noexcept = default;
    constexpr Bytes(const std::uint8_t *data, std::size_t size) noexcept : data_(data), size_(size) {}
    Bytes(std::string_view text) noexcept
        : data_(reinterpret_cast<const std::uint8_t *>(text.data())), size_(text.size()) {}
    // A null pointer has no bytes.
    Bytes(const char *text) noexcept : Bytes(text == nullptr ? std::string_view() : std::string_view(text)) {}
    template <class Container, class = std::enable_if_t<
        std::is_same_v<std::remove_cv_t<std::remove_pointer_t<decltype(std::declval<const Container &>().data())>>, std::uint8_t>>>
    Bytes(const Container &bytes) noexcept : data_(bytes.data()), size_(bytes.size()) {}

    constexpr const std::uint8_t *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr const std::uint8_t *begin() const noexcept { return data_; }
    constexpr const std::uint8_t *end() const noexcept { return data_ + size_; }
    constexpr std::uint8_t operator[](std::size_t at) const noexcept { return data_[at]; }
    std::string_view text() const noexcept { return {reinterpret_cast<const char *>(data_), size_}; }
#ifdef RAKWIRE_HAS_STD_SPAN
    constexpr operator std::span<const std::uint8_t>() const noexcept { return {data_, size_}; }
#endif

private:
    const std::uint8_t *data_ = nullptr;
    std::size_t size_ = 0;
};

enum class Reliability : std::uint8_t {
    Unreliable = RAKWIRE_UNRELIABLE,
    UnreliableSequenced = RAKWIRE_UNRELIABLE_SEQUENCED,
    Reliable = RAKWIRE_RELIABLE,
    ReliableOrdered = RAKWIRE_RELIABLE_ORDERED,
    ReliableSequenced = RAKWIRE_RELIABLE_SEQUENCED,
    UnreliableWithReceipt = RAKWIRE_UNRELIABLE_WITH_RECEIPT,
    ReliableWithReceipt = RAKWIRE_RELIABLE_WITH_RECEIPT,
    ReliableOrderedWithReceipt = RAKWIRE_RELIABLE_ORDERED_WITH_RECEIPT,
};

enum class Priority : std::uint8_t {
    Immediate = RAKWIRE_PRIORITY_IMMEDIATE,
    High = RAKWIRE_PRIORITY_HIGH,
    Medium = RAKWIRE_PRIORITY_MEDIUM,
    Low = RAKWIRE_PRIORITY_LOW,
};

// The reliability, channel and priority of a message.
struct Delivery {
    Reliability reliability = Reliability::ReliableOrdered;
    std::uint8_t channel = 0;
    Priority priority = Priority::Medium;
};

// A connection handle. The default value stands for no connection.
enum class Connection : rakwire_connection_t { none = 0 };

// An IP address and UDP port.
class Address {
public:
    Address() noexcept : raw_() {}
    explicit Address(const rakwire_address_t &raw) noexcept : raw_(raw) {}
    // Parses "host:port". Resolving a name blocks the thread.
    explicit Address(const std::string &text) : raw_() { check(rakwire_address_parse(text.c_str(), &raw_)); }

    std::uint16_t port() const noexcept { return raw_.port; }
    const rakwire_address_t &raw() const noexcept { return raw_; }
    std::string str() const
    {
        char text[64];
        return std::string(text, static_cast<std::size_t>(check(rakwire_address_format(&raw_, text, sizeof text))));
    }
    friend bool operator==(const Address &left, const Address &right) noexcept
    {
        return left.raw_.family == right.raw_.family && left.raw_.port == right.raw_.port
            && left.raw_.scope == right.raw_.scope && std::memcmp(left.raw_.ip, right.raw_.ip, 16) == 0;
    }
    friend bool operator!=(const Address &left, const Address &right) noexcept { return !(left == right); }

private:
    rakwire_address_t raw_;
};

// A key of 32 bytes: a private key, a public key, or a connect token key.
using Key = std::array<std::uint8_t, 32>;

// A private key and its public key.
struct KeyPair {
    Key private_key;
    Key public_key;

    static KeyPair generate()
    {
        KeyPair keys;
        check(rakwire_key_generate(keys.private_key.data(), keys.public_key.data()));
        return keys;
    }
};

inline Key public_key(const Key &private_key)
{
    Key key;
    check(rakwire_public_key(private_key.data(), key.data()));
    return key;
}

// Generates a private key, writes it to a new file that only its owner may read, and returns its public key.
inline Key create_key_file(const std::string &path)
{
    Key key;
    check(rakwire_key_file_create(path.c_str(), key.data()));
    return key;
}

// Returns the public key of a private key file.
inline Key read_public_key(const std::string &path)
{
    Key key;
    check(rakwire_key_file_public(path.c_str(), key.data()));
    return key;
}

// Generates a connect token key, which a server and its backend share, and writes it to a new file.
inline void create_token_key_file(const std::string &path) { check(rakwire_token_key_file_create(path.c_str())); }

// Generates a connect token key.
inline Key generate_token_key()
{
    Key key;
    check(rakwire_key_generate(key.data(), nullptr));
    return key;
}

// A server in a connect token: its address, such as "game.example.org:19132", and its public key.
struct TokenServer {
    std::string name;
    Key key;
};

// Builds a connect token. A backend sends the text from create() to its client.
class Token {
public:
    // `client` is the public key of the client. `expires` is in seconds since the Unix epoch.
    Token(std::uint64_t user_id, std::uint64_t expires, const Key &client)
        : user_id_(user_id), expires_(expires), client_(client) {}
    // Adds a server. A token needs 1 to 4 servers.
    Token &server(std::string name, const Key &key) { servers_.push_back({std::move(name), key}); return *this; }
    // Sets data that the server reads from the token, at most 128 bytes.
    Token &data(Bytes data) { data_.assign(data.begin(), data.end()); return *this; }

    std::string create(const Key &token_key) const { return create(token_key.data(), nullptr); }
    std::string create_from_file(const std::string &token_key_file) const
    {
        return create(nullptr, token_key_file.c_str());
    }

private:
    std::string create(const std::uint8_t *token_key, const char *file) const
    {
        std::vector<const char *> names;
        std::vector<std::uint8_t> keys;
        for (const TokenServer &server : servers_) {
            names.push_back(server.name.c_str());
            keys.insert(keys.end(), server.key.begin(), server.key.end());
        }
        rakwire_token_claims_t claims{};
        claims.size = sizeof claims;
        claims.server_count = static_cast<std::uint32_t>(servers_.size());
        claims.user_id = user_id_;
        claims.expires = expires_;
        claims.client_key = client_.data();
        claims.server_keys = keys.data();
        claims.server_names = names.data();
        claims.user_data = data_.data();
        claims.user_data_length = data_.size();
        claims.token_key_file = file;
        char text[4096];
        std::size_t length = 0;
        check(rakwire_token_create(token_key, &claims, text, sizeof text, &length));
        return std::string(text, length - 1);
    }

    std::uint64_t user_id_, expires_;
    Key client_;
    std::vector<TokenServer> servers_;
    std::vector<std::uint8_t> data_;
};

// The options of an endpoint. Strings, keys and passwords are copied. `raw` gives access to all fields of the C struct.
class Options {
public:
    Options() : raw_() { check(rakwire_options_init(&raw_, sizeof raw_)); }

    Options &bind(std::string address) { bind_ = std::move(address); has_bind_ = true; return *this; }
    Options &password(Bytes password) { password_.assign(password.begin(), password.end()); return *this; }
    Options &simulate(std::string network) { simulate_ = std::move(network); has_simulate_ = true; return *this; }
    Options &max_incoming(std::uint16_t connections) noexcept { raw_.max_incoming = connections; return *this; }
    Options &defer_incoming(bool defer = true) noexcept { raw_.defer_incoming = defer; return *this; }
    Options &out_of_band(bool accept = true) noexcept { raw_.out_of_band = accept; return *this; }
    Options &timeout_ms(std::uint32_t timeout) noexcept { raw_.timeout_ms = timeout; return *this; }
    Options &trusted_proxies(std::string networks) { trusted_proxies_ = std::move(networks); return *this; }
    // Takes a RAKWIRE_COOKIES_ value.
    Options &cookies(std::uint8_t policy) noexcept { raw_.cookies = policy; return *this; }
    // Enables secure outgoing connections.
    Options &secure() noexcept { raw_.secure = 1; return *this; }
    // Sets the private key of the server. With `requires_security`, it refuses unencrypted clients.
    Options &server_key(const Key &key, bool requires_security = false)
    {
        server_key_.assign(key.begin(), key.end());
        raw_.requires_security = requires_security;
        return *this;
    }
    Options &server_key_file(std::string path, bool requires_security = false)
    {
        server_key_file_ = std::move(path);
        raw_.requires_security = requires_security;
        return *this;
    }
    // Sets the private key that identifies this client to servers.
    Options &identity_key(const Key &key) { identity_key_.assign(key.begin(), key.end()); return *this; }
    Options &identity_key_file(std::string path) { identity_key_file_ = std::move(path); return *this; }
    // Adds a connect token key; clients then need a token. A server can have 4 keys.
    Options &token_key(const Key &key) { token_keys_.insert(token_keys_.end(), key.begin(), key.end()); return *this; }
    Options &token_key_file(std::string path) { token_key_file_ = std::move(path); return *this; }
    Options &key_log_file(std::string path) { key_log_file_ = std::move(path); return *this; }
    rakwire_options_t &raw() noexcept { return raw_; }

    // Returns the C struct, which points into this object.
    rakwire_options_t c() const noexcept
    {
        rakwire_options_t options = raw_;
        if (has_bind_)
            options.bind_address = bind_.c_str();
        if (has_simulate_)
            options.simulate = simulate_.c_str();
        if (!password_.empty()) {
            options.password = password_.data();
            options.password_length = password_.size();
        }
        const auto set_text = [](const char *&field, const std::string &text) {
            if (!text.empty())
                field = text.c_str();
        };
        set_text(options.trusted_proxies, trusted_proxies_);
        set_text(options.server_key_file, server_key_file_);
        set_text(options.identity_key_file, identity_key_file_);
        set_text(options.token_key_file, token_key_file_);
        set_text(options.key_log_file, key_log_file_);
        if (!server_key_.empty())
            options.server_key = server_key_.data();
        if (!identity_key_.empty())
            options.identity_key = identity_key_.data();
        if (!token_keys_.empty()) {
            options.token_keys = token_keys_.data();
            options.token_key_count = static_cast<std::uint32_t>(token_keys_.size() / 32);
        }
        return options;
    }

private:
    rakwire_options_t raw_;
    std::string bind_, simulate_, trusted_proxies_;
    std::string server_key_file_, identity_key_file_, token_key_file_, key_log_file_;
    std::vector<std::uint8_t> password_, server_key_, identity_key_, token_keys_;
    bool has_bind_ = false, has_simulate_ = false;
};

// The options of a connection attempt. `raw` gives access to all fields of the C struct.
class ConnectOptions {
public:
    ConnectOptions() : raw_() { check(rakwire_connect_options_init(&raw_, sizeof raw_)); }

    ConnectOptions &password(Bytes password) { password_.assign(password.begin(), password.end()); return *this; }
    // Makes the connection secure: to the server with this public key, or to any server.
    ConnectOptions &trust(const Key &server)
    {
        raw_.trust = RAKWIRE_TRUST_KEY;
        std::memcpy(raw_.server_key, server.data(), server.size());
        return *this;
    }
    ConnectOptions &trust_any() noexcept { raw_.trust = RAKWIRE_TRUST_ANY; return *this; }
    // Sets the private key of this client, and at most 95 bytes of data for the server.
    ConnectOptions &identity(const Key &key, Bytes data = {})
    {
        identity_.assign(key.begin(), key.end());
        identity_data_.assign(data.begin(), data.end());
        return *this;
    }
    // Sets the text of a connect token, which requires an identity, and the index of its server, from 0.
    ConnectOptions &token(std::string text, std::uint8_t server = 0)
    {
        token_ = std::move(text);
        raw_.token_server = server;
        return *this;
    }
    ConnectOptions &connect_timeout_ms(std::uint32_t timeout) noexcept { raw_.connect_timeout_ms = timeout; return *this; }
    rakwire_connect_options_t &raw() noexcept { return raw_; }

    // Returns the C struct, which points into this object.
    rakwire_connect_options_t c() const noexcept
    {
        rakwire_connect_options_t options = raw_;
        if (!password_.empty()) {
            options.password = password_.data();
            options.password_length = password_.size();
        }
        if (!identity_.empty())
            options.identity_key = identity_.data();
        if (!identity_data_.empty()) {
            options.identity_data = identity_data_.data();
            options.identity_data_length = identity_data_.size();
        }
        if (!token_.empty())
            options.token = token_.c_str();
        return options;
    }

private:
    rakwire_connect_options_t raw_;
    std::vector<std::uint8_t> password_, identity_, identity_data_;
    std::string token_;
};

// An event. It owns the bytes of its message and releases them when destroyed. Destroy it before its endpoint, on the thread of
// its endpoint: on another thread the destructor cannot release the message, which keeps its memory until the endpoint closes,
// and assert() stops a debug build.
class Event {
public:
    enum class Kind : std::uint32_t {
        None = 0,
        Connected = RAKWIRE_EVENT_CONNECTED,
        ConnectFailed = RAKWIRE_EVENT_CONNECT_FAILED,
        Disconnected = RAKWIRE_EVENT_DISCONNECTED,
        Message = RAKWIRE_EVENT_MESSAGE,
        Receipt = RAKWIRE_EVENT_RECEIPT,
        Progress = RAKWIRE_EVENT_PROGRESS,
        MtuChanged = RAKWIRE_EVENT_MTU_CHANGED,
        Pong = RAKWIRE_EVENT_PONG,
        OutOfBand = RAKWIRE_EVENT_OUT_OF_BAND,
        Advertisement = RAKWIRE_EVENT_ADVERTISEMENT,
        Incoming = RAKWIRE_EVENT_INCOMING,
        Refused = RAKWIRE_EVENT_REFUSED,
    };

    Event() noexcept : endpoint_(0), raw_() {}
    Event(Event &&other) noexcept : endpoint_(other.endpoint_), raw_(other.raw_) { other.raw_.message = 0; }
    Event &operator=(Event &&other) noexcept
    {
        std::swap(endpoint_, other.endpoint_);
        std::swap(raw_, other.raw_);
        return *this;
    }
    Event(const Event &) = delete;
    Event &operator=(const Event &) = delete;
    ~Event()
    {
        if (raw_.message == 0)
            return;
        const int released = rakwire_message_release(endpoint_, raw_.message);
        assert(released != RAKWIRE_ERROR_THREAD && "an event must be destroyed on the thread of its endpoint");
        static_cast<void>(released);
    }

    // True if this is an event, false if poll() found none.
    explicit operator bool() const noexcept { return raw_.kind != 0; }
    Kind kind() const noexcept { return static_cast<Kind>(raw_.kind); }
    Connection connection() const noexcept { return static_cast<Connection>(raw_.connection); }
    Bytes data() const noexcept { return {raw_.data, raw_.length}; }
    Address address() const noexcept { return Address(raw_.address); }
    std::uint64_t guid() const noexcept { return raw_.guid; }
    Delivery delivery() const noexcept { return {static_cast<Reliability>(raw_.reliability), raw_.channel, Priority::Medium}; }
    int reason() const noexcept { return raw_.reason; }
    const char *reason_text() const noexcept { return rakwire_reason_text(raw_.kind, raw_.reason); }
    // Returns all fields of the event as a C struct.
    const rakwire_event_t &raw() const noexcept { return raw_; }

private:
    friend class Endpoint;
    rakwire_endpoint_t endpoint_;
    rakwire_event_t raw_;
};

// An endpoint, which belongs to the thread that created it. The destructor closes it.
class Endpoint {
public:
    Endpoint() : handle_(0) { check(rakwire_endpoint_open(nullptr, &handle_)); }
    explicit Endpoint(const Options &options) : handle_(0)
    {
        const rakwire_options_t raw = options.c();
        check(rakwire_endpoint_open(&raw, &handle_));
    }
    Endpoint(Endpoint &&other) noexcept : handle_(std::exchange(other.handle_, 0)) {}
    Endpoint &operator=(Endpoint &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    Endpoint(const Endpoint &) = delete;
    Endpoint &operator=(const Endpoint &) = delete;
    ~Endpoint()
    {
        if (handle_ != 0)
            rakwire_endpoint_close(handle_);
    }

    // Returns the handle, for functions of rakwire.h that have no method here.
    rakwire_endpoint_t handle() const noexcept { return handle_; }
    void update() { check(rakwire_update(handle_)); }
    void flush() { check(rakwire_flush(handle_)); }
    // Waits until update() has work. Returns false after the time limit. Poll all events first.
    bool wait(std::chrono::milliseconds limit)
    {
        const auto forever = static_cast<std::chrono::milliseconds::rep>(RAKWIRE_FOREVER);
        const auto count = limit.count() < 0 ? 0 : limit.count() < forever ? limit.count() : forever;
        return check(rakwire_wait(handle_, static_cast<std::uint32_t>(count))) > 0;
    }
    // Returns the time until the next update() if no datagram arrives; the maximum value if no timer is set.
    std::chrono::microseconds timeout() const
    {
        std::uint64_t microseconds = 0;
        if (check(rakwire_timeout(handle_, &microseconds)) == 0)
            return std::chrono::microseconds::max();
        return std::chrono::microseconds(static_cast<std::chrono::microseconds::rep>(microseconds));
    }
    // Returns the socket. Use it only with poll() or select().
    std::uint64_t socket() const
    {
        std::uint64_t socket = 0;
        check(rakwire_socket(handle_, &socket));
        return socket;
    }

    // Returns the next event, which converts to false if there is none.
    Event poll()
    {
        Event event;
        event.endpoint_ = handle_;
        event.raw_.size = sizeof event.raw_;
        check(rakwire_poll(handle_, &event.raw_));
        return event;
    }

    // Releases the message of `event` and replaces it with the next event, in one call of the library. Returns false if there
    // is no event. To keep the message, move the event elsewhere first.
    bool poll(Event &event)
    {
        if (event.endpoint_ != handle_)
            event = Event();
        event.endpoint_ = handle_;
        event.raw_.size = sizeof event.raw_;
        return check(rakwire_poll_next(handle_, &event.raw_)) > 0;
    }

    Connection connect(const std::string &address, Bytes password = {})
    {
        return connect(address, ConnectOptions().password(password));
    }
    Connection connect(const std::string &address, const ConnectOptions &options)
    {
        return connect(address, options.c());
    }
    Connection connect(const std::string &address, const rakwire_connect_options_t &options)
    {
        rakwire_connection_t connection = 0;
        check(rakwire_connect(handle_, address.c_str(), &options, &connection));
        return static_cast<Connection>(connection);
    }
    // Connects to the server that the connect token in the options selects.
    Connection connect(const ConnectOptions &options)
    {
        const rakwire_connect_options_t raw = options.c();
        rakwire_connection_t connection = 0;
        check(rakwire_connect(handle_, nullptr, &raw, &connection));
        return static_cast<Connection>(connection);
    }

    void accept(const Event &incoming) { check(rakwire_accept(handle_, incoming.raw().request)); }
    void refuse(const Event &incoming) { check(rakwire_refuse(handle_, incoming.raw().request)); }
    void ignore(const Event &incoming) { check(rakwire_ignore(handle_, incoming.raw().request)); }

    // Queues a message. Returns its receipt number, or 0 without a receipt.
    std::uint32_t send(Connection to, Bytes message, Delivery delivery = {})
    {
        std::uint32_t receipt = 0;
        check(try_send(to, message, delivery, &receipt));
        return receipt;
    }
    // Like send, but returns errors instead of throwing them: RAKWIRE_ERROR_NO_ROOM if the send memory is full.
    int try_send(Connection to, Bytes message, Delivery delivery = {}, std::uint32_t *receipt = nullptr) noexcept
    {
        return rakwire_send(handle_, static_cast<rakwire_connection_t>(to), message.data(), message.size(),
                            static_cast<std::uint8_t>(delivery.reliability), delivery.channel,
                            static_cast<std::uint8_t>(delivery.priority), receipt);
    }
    // Queues a message for all connections except `except`. Returns the number that accepted it.
    int broadcast(Bytes message, Delivery delivery = {}, Connection except = Connection::none)
    {
        return check(rakwire_broadcast(handle_, static_cast<rakwire_connection_t>(except), message.data(), message.size(),
                                       static_cast<std::uint8_t>(delivery.reliability), delivery.channel,
                                       static_cast<std::uint8_t>(delivery.priority), nullptr));
    }
    void disconnect(Connection connection)
    {
        check(rakwire_disconnect(handle_, static_cast<rakwire_connection_t>(connection)));
    }
    void disconnect(Connection connection, Bytes last_message, Delivery delivery = {})
    {
        check(rakwire_disconnect_with(handle_, static_cast<rakwire_connection_t>(connection), last_message.data(),
                                      last_message.size(), static_cast<std::uint8_t>(delivery.reliability),
                                      delivery.channel, static_cast<std::uint8_t>(delivery.priority)));
    }

    int connections() const { return check(rakwire_connections(handle_, nullptr, 0)); }
    Address local_address() const
    {
        rakwire_address_t address;
        check(rakwire_local_address(handle_, &address));
        return Address(address);
    }
    std::uint64_t guid() const
    {
        std::uint64_t guid = 0;
        check(rakwire_guid(handle_, &guid));
        return guid;
    }
    rakwire_connection_info_t info(Connection connection) const
    {
        rakwire_connection_info_t info{};
        info.size = sizeof info;
        check(rakwire_connection_info(handle_, static_cast<rakwire_connection_t>(connection), &info));
        return info;
    }
    rakwire_connection_stats_t stats(Connection connection) const
    {
        rakwire_connection_stats_t stats{};
        stats.size = sizeof stats;
        check(rakwire_connection_stats(handle_, static_cast<rakwire_connection_t>(connection), &stats));
        return stats;
    }
    rakwire_stats_t stats() const
    {
        rakwire_stats_t stats{};
        stats.size = sizeof stats;
        check(rakwire_stats(handle_, &stats));
        return stats;
    }

    // Returns the number of dropped datagrams by reason. Reasons that did not occur are absent.
    std::vector<std::pair<std::string, std::uint64_t>> drops() const
    {
        std::vector<std::uint64_t> counts(static_cast<std::size_t>(check(rakwire_drops(handle_, nullptr, 0))));
        check(rakwire_drops(handle_, counts.data(), counts.size()));
        std::vector<std::pair<std::string, std::uint64_t>> drops;
        for (std::size_t at = 0; at < counts.size(); at++)
            if (counts[at] > 0)
                drops.emplace_back(rakwire_drop_name(static_cast<std::uint32_t>(at)), counts[at]);
        return drops;
    }
    // Returns advice for the operator, or an empty string.
    std::string advice() const
    {
        char text[512];
        return std::string(text, static_cast<std::size_t>(check(rakwire_advice(handle_, text, sizeof text))));
    }
    // Returns the authenticated key, identity and token of the peer of a connection.
    rakwire_secure_peer_t secure_peer(Connection connection) const
    {
        rakwire_secure_peer_t peer{};
        peer.size = sizeof peer;
        check(rakwire_secure_peer(handle_, static_cast<rakwire_connection_t>(connection), &peer));
        return peer;
    }

    void ping(const Address &server) { check(rakwire_ping(handle_, &server.raw(), 0, 0)); }
    // Pings all servers at a broadcast or multicast address. With `only_open`, full servers do not answer.
    void discover(const Address &broadcast, bool only_open = false)
    {
        check(rakwire_ping(handle_, &broadcast.raw(), 1, only_open));
    }
    void set_advertisement(Bytes data) { check(rakwire_set_advertisement(handle_, data.data(), data.size())); }
    void advertise(const Address &to, Bytes data) { check(rakwire_advertise(handle_, &to.raw(), data.data(), data.size())); }
    void send_out_of_band(const Address &to, Bytes data)
    {
        check(rakwire_send_out_of_band(handle_, &to.raw(), data.data(), data.size()));
    }
    void set_password(Bytes password) { check(rakwire_set_password(handle_, password.data(), password.size())); }
    void set_timeout(Connection connection, std::uint32_t timeout_ms)
    {
        check(rakwire_set_timeout(handle_, static_cast<rakwire_connection_t>(connection), timeout_ms));
    }
    void ban(const std::string &addresses, std::uint32_t duration_ms = 0)
    {
        check(rakwire_ban(handle_, addresses.c_str(), duration_ms));
    }
    bool unban(const std::string &addresses) { return check(rakwire_unban(handle_, addresses.c_str())) > 0; }
    bool is_banned(const Address &address) const { return check(rakwire_is_banned(handle_, &address.raw())) > 0; }

private:
    rakwire_endpoint_t handle_;
};

}  // namespace rakwire

#endif  // RAKWIRE_HPP
