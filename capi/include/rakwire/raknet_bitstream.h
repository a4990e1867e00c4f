// Part of raknet_compat.h: RakNet 4's bit streams and strings.
#ifndef RAKWIRE_RAKNET_BITSTREAM_H
#define RAKWIRE_RAKNET_BITSTREAM_H

#include "raknet_types.h"

#include <cstdarg>
#include <type_traits>
#include <utility>
#include <vector>

namespace RakNet {

// A byte string without zero bytes.
class RakString {
public:
    RakString() {}
    RakString(char letter) : text_(1, letter) {}
    RakString(const unsigned char *text) : text_(reinterpret_cast<const char *>(text)) {}
    // Formats like printf(). Pass text that is not a format string as ("%s", text).
    RakString(const char *format, ...)
    {
        va_list values;
        va_start(values, format);
        format_text(format, values);
        va_end(values);
    }

    const char *C_String() const { return text_.c_str(); }
    operator const char *() const { return text_.c_str(); }
    std::size_t GetLength() const { return text_.size(); }
    bool IsEmpty() const { return text_.empty(); }
    void Clear() { text_.clear(); }
    void Set(const char *format, ...)
    {
        va_list values;
        va_start(values, format);
        format_text(format, values);
        va_end(values);
    }
    RakString &operator=(const char *text)
    {
        text_ = text == nullptr ? "" : text;
        return *this;
    }
    RakString &operator+=(const RakString &other)
    {
        text_ += other.text_;
        return *this;
    }
    RakString &operator+=(const char *other)
    {
        text_ += other;
        return *this;
    }
    bool operator==(const RakString &other) const { return text_ == other.text_; }
    bool operator==(const char *other) const { return text_ == other; }
    bool operator!=(const RakString &other) const { return text_ != other.text_; }
    bool operator!=(const char *other) const { return text_ != other; }
    bool operator<(const RakString &other) const { return text_ < other.text_; }

private:
    void format_text(const char *format, va_list values)
    {
        text_.clear();
        if (format == nullptr)
            return;
        va_list again;
        va_copy(again, values);
        const int length = std::vsnprintf(nullptr, 0, format, again);
        va_end(again);
        if (length <= 0)
            return;
        text_.resize(static_cast<std::size_t>(length) + 1);
        std::vsnprintf(&text_[0], text_.size(), format, values);
        text_.pop_back();
    }

    std::string text_;
};

// A bit stream. Multi-byte numbers are written in network byte order, as in RakNet.
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

    // Writes bits, most significant bit of each byte first. `right_aligned`: the bits of an incomplete last byte are its low
    // bits.
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
    // Writes an IPv4 address with inverted bits, as RakNet does to hide addresses from routers.
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
    // Writes the length as two bytes, and the characters from the next byte boundary.
    void Write(const char *text)
    {
        const std::size_t length = std::strlen(text);
        const std::uint16_t written = static_cast<std::uint16_t>(length < 0xFFFF ? length : 0xFFFF);
        Write(written);
        WriteAlignedBytes(reinterpret_cast<const unsigned char *>(text), written);
    }
    void Write(char *text) { Write(static_cast<const char *>(text)); }
    void Write(const RakString &text) { Write(text.C_String()); }
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
    // Reads a string written by Write(const char *). `text` must have space for the string and its terminator.
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
    bool Read(RakString &text)
    {
        std::uint16_t length = 0;
        if (!Read(length))
            return false;
        std::string bytes(length, 0);
        if (length > 0 && !ReadAlignedBytes(reinterpret_cast<unsigned char *>(&bytes[0]), length))
            return false;
        text = bytes.c_str();
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

}  // namespace RakNet

#endif  // RAKWIRE_RAKNET_BITSTREAM_H
