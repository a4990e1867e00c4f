// A stand-in for the cryptographic library (libcat) of RakNet's own security, which no package provides. It has the
// interface and the sizes that RakNet's sources use, but no cryptography. Tests with it cover RakNet's handshake around
// the library.

#ifndef CAT_ALL_TUNNEL_HPP
#define CAT_ALL_TUNNEL_HPP

#include <cstdint>
#include <cstring>

#define CAT_AUDIT_PRINTF(...)
#define CAT_OBJCLR(object) std::memset((void *)&(object), 0, sizeof(object))

namespace cat {

typedef std::uint8_t u8;
typedef std::uint32_t u32;

inline bool SecureEqual(const void *one, const void *other, int bytes) { return std::memcmp(one, other, bytes) == 0; }

struct EasyHandshake {
    enum {
        PUBLIC_KEY_BYTES = 64,
        PRIVATE_KEY_BYTES = 32,
        CHALLENGE_BYTES = 64,
        ANSWER_BYTES = 128,
        PROOF_BYTES = 32,
        IDENTITY_BYTES = 160,
    };
};

// Inverts all bits and appends a mark, so that no peer mistakes one of these datagrams for an unencrypted one.
class AuthenticatedEncryption {
    enum { MARK = 0xCA };
    static void invert(u8 *bytes, unsigned length) {
        for (unsigned i = 0; i < length; i++) bytes[i] ^= 0xFF;
    }
public:
    enum { OVERHEAD_BYTES = 11 };
    bool Encrypt(u8 *buffer, unsigned capacity, unsigned &length) {
        if (length + OVERHEAD_BYTES > capacity) return false;
        invert(buffer, length);
        std::memset(buffer + length, MARK, OVERHEAD_BYTES);
        length += OVERHEAD_BYTES;
        return true;
    }
    bool Decrypt(u8 *buffer, unsigned &length) {
        if (length < OVERHEAD_BYTES) return false;
        for (unsigned i = length - OVERHEAD_BYTES; i < length; i++)
            if (buffer[i] != MARK) return false;
        length -= OVERHEAD_BYTES;
        invert(buffer, length);
        return true;
    }
    bool GenerateProof(u8 *proof, int bytes) {
        std::memset(proof, MARK, bytes);
        return true;
    }
    bool ValidateProof(const u8 *proof, int bytes) {
        for (int i = 0; i < bytes; i++)
            if (proof[i] != MARK) return false;
        return true;
    }
};

struct CookieJar {
    u32 Generate(const void *, int) { return 0xCA7CA7; }
    bool Verify(const void *, int, u32 cookie) { return cookie == 0xCA7CA7; }
};

class ServerEasyHandshake {
    u8 key[EasyHandshake::PUBLIC_KEY_BYTES];
public:
    bool Initialize(const void *public_key, const void *) {
        std::memcpy(key, public_key, sizeof key);
        return true;
    }
    void FillCookieJar(CookieJar *) {}
    bool ProcessChallenge(const void *challenge, void *answer, AuthenticatedEncryption *) {
        std::memset(answer, 0, EasyHandshake::ANSWER_BYTES);
        std::memcpy(answer, key, sizeof key);
        for (unsigned i = 0; i < sizeof key; i++)
            if (((const u8 *)challenge)[i] != (u8)~key[i]) return false;
        return true;
    }
    bool VerifyInitiatorIdentity(const void *, const void *, void *) { return false; }
};

// The challenge of the client is the public key with all bits inverted; the server's answer is the key.
class ClientEasyHandshake {
    u8 key[EasyHandshake::PUBLIC_KEY_BYTES];
public:
    bool Initialize(const void *public_key) {
        std::memcpy(key, public_key, sizeof key);
        return true;
    }
    bool SetIdentity(const void *, const void *) { return false; }
    bool GenerateChallenge(void *challenge) {
        for (unsigned i = 0; i < sizeof key; i++) ((u8 *)challenge)[i] = (u8)~key[i];
        return true;
    }
    bool ProcessAnswer(const void *answer, AuthenticatedEncryption *) { return std::memcmp(answer, key, sizeof key) == 0; }
    bool ProcessAnswerWithIdentity(const void *, void *, AuthenticatedEncryption *) { return false; }
};

} // namespace cat

#endif
