// The C++17 interface of rakwire: header only, over rakwire.h. Errors are exceptions of the type rakwire::Error, except where a
// function says that it returns them.
//
//     rakwire::Options options;
//     options.bind("0.0.0.0:19132").max_incoming(64);
//     rakwire::Endpoint server(options);
//     for (;;) {
//         server.update();
//         while (rakwire::Event event = server.poll())
//             if (event.kind() == rakwire::Event::Kind::Message)
//                 server.send(event.connection(), event.data());
//         server.flush();
//     }
#ifndef RAKWIRE_HPP
#define RAKWIRE_HPP

#include "rakwire.h"

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

// A call that failed: the code of rakwire.h, and the sentence of rakwire_last_error().
class Error : public std::runtime_error {
public:
    explicit Error(int code) : std::runtime_error(rakwire_last_error()), code_(code) {}
    int code() const noexcept { return code_; }

private:
    int code_;
};

// Throws if a result is an error, and returns it otherwise.
inline int check(int result)
{
    if (result < 0)
        throw Error(result);
    return result;
}

// Borrowed bytes: a pointer and a length, made from any container of bytes.
class Bytes {
public:
    constexpr Bytes() noexcept = default;
    constexpr Bytes(const std::uint8_t *data, std::size_t size) noexcept : data_(data), size_(size) {}
    Bytes(std::string_view text) noexcept
        : data_(reinterpret_cast<const std::uint8_t *>(text.data())), size_(text.size()) {}
    Bytes(const char *text) noexcept : Bytes(std::string_view(text)) {}
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

// The number of a connection. The default is none.
enum class Connection : rakwire_connection_t { none = 0 };

// An IP address and port.
class Address {
public:
    Address() noexcept : raw_() {}
    explicit Address(const rakwire_address_t &raw) noexcept : raw_(raw) {}
    // Parses "host:port". A name blocks the thread until it is resolved.
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

// The options of an endpoint. Strings and passwords are copied; `raw` reaches all fields of the C struct.
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
    rakwire_options_t &raw() noexcept { return raw_; }

    // The C struct, which points into these options.
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
        return options;
    }

private:
    rakwire_options_t raw_;
    std::string bind_, simulate_;
    std::vector<std::uint8_t> password_;
    bool has_bind_ = false, has_simulate_ = false;
};

// An event. It owns the bytes of its message, and gives them back when it is destroyed, which must be before its endpoint is.
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
        if (raw_.message != 0)
            rakwire_message_release(endpoint_, raw_.message);
    }

    // True if there is an event.
    explicit operator bool() const noexcept { return raw_.kind != 0; }
    Kind kind() const noexcept { return static_cast<Kind>(raw_.kind); }
    Connection connection() const noexcept { return static_cast<Connection>(raw_.connection); }
    Bytes data() const noexcept { return {raw_.data, raw_.length}; }
    Address address() const noexcept { return Address(raw_.address); }
    std::uint64_t guid() const noexcept { return raw_.guid; }
    Delivery delivery() const noexcept { return {static_cast<Reliability>(raw_.reliability), raw_.channel, Priority::Medium}; }
    int reason() const noexcept { return raw_.reason; }
    const char *reason_text() const noexcept { return rakwire_reason_text(raw_.kind, raw_.reason); }
    // All fields.
    const rakwire_event_t &raw() const noexcept { return raw_; }

private:
    friend class Endpoint;
    rakwire_endpoint_t endpoint_;
    rakwire_event_t raw_;
};

// An endpoint, which is closed when it is destroyed. It belongs to the thread that made it.
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

    // For the functions of rakwire.h that have no method here.
    rakwire_endpoint_t handle() const noexcept { return handle_; }
    void update() { check(rakwire_update(handle_)); }
    void flush() { check(rakwire_flush(handle_)); }

    // Takes the next event; none is false.
    Event poll()
    {
        Event event;
        event.endpoint_ = handle_;
        event.raw_.size = sizeof event.raw_;
        check(rakwire_poll(handle_, &event.raw_));
        return event;
    }

    Connection connect(const std::string &address, Bytes password = {})
    {
        rakwire_connect_options_t options;
        check(rakwire_connect_options_init(&options, sizeof options));
        options.password = password.data();
        options.password_length = password.size();
        return connect(address, options);
    }
    Connection connect(const std::string &address, const rakwire_connect_options_t &options)
    {
        rakwire_connection_t connection = 0;
        check(rakwire_connect(handle_, address.c_str(), &options, &connection));
        return static_cast<Connection>(connection);
    }

    void accept(const Event &incoming) { check(rakwire_accept(handle_, incoming.raw().request)); }
    void refuse(const Event &incoming) { check(rakwire_refuse(handle_, incoming.raw().request)); }
    void ignore(const Event &incoming) { check(rakwire_ignore(handle_, incoming.raw().request)); }

    // Sends a message and returns the number of its receipt, or 0.
    std::uint32_t send(Connection to, Bytes message, Delivery delivery = {})
    {
        std::uint32_t receipt = 0;
        check(try_send(to, message, delivery, &receipt));
        return receipt;
    }
    // As send, and returns an error in place of throwing it: RAKWIRE_ERROR_NO_ROOM is usual for a busy connection.
    int try_send(Connection to, Bytes message, Delivery delivery = {}, std::uint32_t *receipt = nullptr) noexcept
    {
        return rakwire_send(handle_, static_cast<rakwire_connection_t>(to), message.data(), message.size(),
                            static_cast<std::uint8_t>(delivery.reliability), delivery.channel,
                            static_cast<std::uint8_t>(delivery.priority), receipt);
    }
    // Sends to all connections but one, and returns how many took the message.
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

    void ping(const Address &server) { check(rakwire_ping(handle_, &server.raw(), 0, 0)); }
    // Pings all servers at a broadcast address.
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

private:
    rakwire_endpoint_t handle_;
};

}  // namespace rakwire

#endif  // RAKWIRE_HPP
