// Part of raknet_compat.h: the send queue, and receipt numbers.
#ifndef RAKWIRE_RAKNET_OUTBOX_H
#define RAKWIRE_RAKNET_OUTBOX_H

#include "raknet_types.h"

#include <deque>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace RakNet {
namespace detail {

// The parameters for sending a message, and the number that Send() returned for it.
struct Delivery {
    std::uint8_t reliability, channel, priority;
    std::uint32_t number;
};

// Sends messages, queues those that the endpoint cannot accept yet, and translates receipt numbers.
//
// RakNet has unlimited send memory, and its receipt numbers are unique per peer. In rakwire, receipt numbers are unique
// per connection.
class Outbox {
public:
    // Sends a message, or queues it until the connection accepts it. Returns false if the connection refuses it permanently.
    bool send(rakwire_endpoint_t endpoint, rakwire_connection_t to, const std::uint8_t *bytes, std::size_t length,
              const Delivery &how)
    {
        // A message must not overtake queued ones.
        const int result = is_waiting(to) ? RAKWIRE_ERROR_NO_ROOM : send_now(endpoint, to, bytes, length, how);
        if (result == RAKWIRE_ERROR_NO_ROOM)
            waiting_[to].push_back({{bytes, bytes + length}, how});
        return result >= 0 || result == RAKWIRE_ERROR_NO_ROOM;
    }
    // Sends the queued messages, in order for each connection.
    void send_waiting(rakwire_endpoint_t endpoint)
    {
        for (auto at = waiting_.begin(); at != waiting_.end();) {
            std::deque<Waiting> &messages = at->second;
            while (!messages.empty()) {
                const Waiting &message = messages.front();
                if (send_now(endpoint, at->first, message.bytes.data(), message.bytes.size(), message.how)
                    == RAKWIRE_ERROR_NO_ROOM)
                    break;
                messages.pop_front();
            }
            at = messages.empty() ? waiting_.erase(at) : std::next(at);
        }
    }
    // Returns true if messages to a connection are queued.
    bool is_waiting(rakwire_connection_t connection) const { return waiting_.count(connection) != 0; }
    // Returns the number that Send() returned for the message of a receipt.
    std::uint32_t take_receipt(rakwire_connection_t connection, std::uint32_t own)
    {
        for (std::size_t at = 0; at < receipts_.size(); at++)
            if (receipts_[at].connection == connection && receipts_[at].own == own) {
                const std::uint32_t number = receipts_[at].number;
                receipts_.erase(receipts_.begin() + static_cast<std::ptrdiff_t>(at));
                return number;
            }
        return own;
    }
    void forget(rakwire_connection_t connection)
    {
        waiting_.erase(connection);
        std::deque<Receipt> others;
        for (const Receipt &receipt : receipts_)
            if (receipt.connection != connection)
                others.push_back(receipt);
        receipts_.swap(others);
    }
    void clear()
    {
        waiting_.clear();
        receipts_.clear();
    }

private:
    // A queued message.
    struct Waiting {
        std::vector<std::uint8_t> bytes;
        Delivery how;
    };
    // The number that Send() returned for a message, and the receipt number in its connection.
    struct Receipt {
        rakwire_connection_t connection;
        std::uint32_t own, number;
    };

    int send_now(rakwire_endpoint_t endpoint, rakwire_connection_t to, const std::uint8_t *bytes, std::size_t length,
                 const Delivery &how)
    {
        std::uint32_t receipt = 0;
        const int result =
            rakwire_send(endpoint, to, bytes, length, how.reliability, how.channel, how.priority, &receipt);
        if (result >= 0 && receipt != 0)
            receipts_.push_back({to, receipt, how.number});
        return result;
    }
    // Queued messages by connection. Empty queues are removed.
    std::map<rakwire_connection_t, std::deque<Waiting>> waiting_;
    std::deque<Receipt> receipts_;
};

}  // namespace detail
}  // namespace RakNet

#endif  // RAKWIRE_RAKNET_OUTBOX_H
