// The messages and the output of a benchmark, shared by the peers in C++. `../README.md` describes them.

#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

using Clock = std::chrono::steady_clock;

// The length in bytes of the id, the number and the send time.
constexpr size_t HEADER = 13;
// The receiver's confirmation that every message has arrived.
const char DONE[] = "\xFE" "done";

inline uint64_t nanos() {
    return (uint64_t)std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::system_clock::now().time_since_epoch()).count();
}

inline void put(std::vector<char> &message, uint32_t number, bool timed) {
    uint64_t time = timed ? nanos() : 0;
    message[0] = (char)0xFE;
    for (int i = 0; i < 4; i++) message[1 + i] = (char)(number >> (24 - 8 * i));
    for (int i = 0; i < 8; i++) message[5 + i] = (char)(time >> (56 - 8 * i));
    if (message.size() > HEADER) message.back() = (char)number;
}

inline uint64_t check(const unsigned char *data, size_t length, uint32_t number, size_t size) {
    if (length != size) throw std::runtime_error("wrong length");
    uint32_t found = (uint32_t)data[1] << 24 | data[2] << 16 | data[3] << 8 | data[4];
    if (found != number || (size > HEADER && data[size - 1] != (unsigned char)number))
        throw std::runtime_error("wrong content or order");
    uint64_t time = 0;
    for (int i = 0; i < 8; i++) time = time << 8 | data[5 + i];
    return time;
}

inline std::string percentile(std::vector<uint64_t> &values, double share) {
    if (values.empty()) return "null";
    std::sort(values.begin(), values.end());
    size_t place = std::max<size_t>(1, (size_t)std::ceil((double)values.size() * share));
    return std::to_string((double)values[place - 1] / 1e3);
}

inline void print_report(long count, Clock::time_point began, std::vector<uint64_t> &values) {
    double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    std::string p50 = percentile(values, 0.5), p99 = percentile(values, 0.99);
    std::printf("{\"messages\":%ld,\"seconds\":%.9f,\"p50_us\":%s,\"p99_us\":%s}\n", count, seconds, p50.c_str(), p99.c_str());
    std::fflush(stdout);
}

inline void wait_for_line() {
    char byte;
    while (read(0, &byte, 1) == 1 && byte != '\n') {}
}

} // namespace bench
