// Part of raknet_compat.h: the thread that a peer belongs to.
#ifndef RAKWIRE_RAKNET_OWNER_H
#define RAKWIRE_RAKNET_OWNER_H

#include <atomic>
#include <cassert>
#include <memory>
#include <thread>

namespace RakNet {
namespace detail {

// The thread that has started a peer. A peer has no locks, so no other thread may touch its members.
class Owner {
public:
    // Makes this thread the owner. Returns false if another thread is.
    bool claim() noexcept
    {
        std::thread::id none;
        if (!thread_.compare_exchange_strong(none, std::this_thread::get_id()))
            return allows();
        running_ = running();
        return true;
    }
    void release() noexcept { thread_.store(std::thread::id()); }
    // True on the thread of the owner, and on every thread while there is none.
    bool is_here() const noexcept
    {
        const std::thread::id owner = thread_.load();
        return owner == std::thread::id() || owner == std::this_thread::get_id();
    }
    // Like is_here, but stops a debug build on another thread.
    bool allows() const noexcept
    {
        const bool is_allowed = is_here();
        assert(is_allowed && "a peer belongs to the thread that called Startup()");
        return is_allowed;
    }
    // Like is_here, but stops a debug build on another thread while the thread of the owner is running.
    bool allows_destruction() const noexcept
    {
        const bool is_allowed = is_here();
        assert((is_allowed || running_.expired()) && "a peer is destroyed on another thread while its own is running");
        return is_allowed;
    }

private:
    // Returns an object that lives as long as this thread.
    static std::shared_ptr<const char> running()
    {
        static thread_local const std::shared_ptr<const char> own = std::make_shared<const char>();
        return own;
    }

    std::atomic<std::thread::id> thread_{std::thread::id()};
    std::weak_ptr<const char> running_;
};

}  // namespace detail
}  // namespace RakNet

#endif  // RAKWIRE_RAKNET_OWNER_H
