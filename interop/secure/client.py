"""The client's side of RakNet's secure connections, written from docs/secure.md alone, with the library `cryptography`.

    client.py vectors FILE               checks a file of vectors: the bytes that a client sends, and its reading of the
                                         server's bytes
    client.py connect HOST:PORT KEY      connects to a server with this public key, as printed by the server, and checks the
                                         echoes of its messages; with `--identity` it presents a key of its own
"""

import argparse
import base64
import hashlib
import hmac
import ipaddress
import json
import os
import socket
import struct
import sys
import time

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

SUITE = b"rws01"
PATTERNS = {1: b"Noise_NK_25519_ChaChaPoly_BLAKE2s", 2: b"Noise_XK_25519_ChaChaPoly_BLAKE2s"}


class Refused(Exception):
    """Raised when the server sends data that this client does not accept."""


def blake2s(*parts):
    return hashlib.blake2s(b"".join(parts)).digest()


def hmac_blake2s(key, *parts):
    return hmac.new(key, b"".join(parts), hashlib.blake2s).digest()


def hkdf(chaining_key, data):
    temp = hmac_blake2s(chaining_key, data)
    first = hmac_blake2s(temp, b"\x01")
    return first, hmac_blake2s(temp, first, b"\x02")


def nonce(counter):
    return bytes(4) + struct.pack("<Q", counter)


def seal(key, counter, associated, plain):
    return ChaCha20Poly1305(key).encrypt(nonce(counter), plain, associated)


def unseal(key, counter, associated, sealed):
    try:
        return ChaCha20Poly1305(key).decrypt(nonce(counter), sealed, associated)
    except InvalidTag:
        raise Refused("a tag does not fit") from None


def rekey(key):
    return seal(key, 2**64 - 1, b"", bytes(32))[:32]


class KeyPair:
    def __init__(self, private):
        self.private = X25519PrivateKey.from_private_bytes(private)
        self.public = self.private.public_key().public_bytes_raw()

    def dh(self, public):
        try:
            return self.private.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:
            raise Refused("the result of a DH is zero") from None


class Noise:
    """The SymmetricState and CipherState objects of the Noise specification."""

    def __init__(self, name, prologue, server):
        self.ck = self.h = blake2s(name)
        self.key, self.counter = None, 0
        self.mix_hash(prologue)
        self.mix_hash(server)

    def mix_hash(self, data):
        self.h = blake2s(self.h, data)

    def mix_key(self, shared):
        self.ck, self.key = hkdf(self.ck, shared)
        self.counter = 0

    def encrypt(self, plain):
        sealed = seal(self.key, self.counter, self.h, plain)
        self.counter += 1
        self.mix_hash(sealed)
        return sealed

    def decrypt(self, sealed):
        plain = unseal(self.key, self.counter, self.h, sealed)
        self.counter += 1
        self.mix_hash(sealed)
        return plain


def split_address(text):
    host, _, port = text.rpartition(":")
    return ipaddress.ip_address(host.strip("[]")), int(port)


def raknet_address(text):
    """Encodes an address as in docs/raknet.md."""
    ip, port = split_address(text)
    if ip.version == 4:
        return b"\x04" + bytes(byte ^ 0xFF for byte in ip.packed) + struct.pack(">H", port)
    return b"\x06\x17\x00" + struct.pack(">HI", port, 0) + ip.packed + bytes(4)


def key_hash(public):
    return blake2s(b"rakwire key hash 1", public)[:24]


class Direction:
    """The keys of one direction, by epoch."""

    def __init__(self, keys):
        self.keys = list(keys)

    def key(self, epoch):
        while len(self.keys) <= epoch:
            self.keys.append(rekey(self.keys[-1]))
        return self.keys[epoch]


def closest(expected, low, bits):
    span = 1 << bits
    candidates = (expected // span + step for step in (-1, 0, 1))
    return min((abs(c * span + low - expected), c * span + low) for c in candidates if c >= 0)[1]


class Datagrams:
    """Encrypts the datagrams of the client, and decrypts those of the server."""

    def __init__(self, to_server, to_client):
        self.to_server, self.to_client = Direction(to_server), Direction(to_client)
        self.counter = self.expected = self.epoch = self.opened_epoch = 0
        self.opened = set()

    def seal(self, plain):
        header = struct.pack(">I", 1 << 23 | (self.epoch & 3) << 21 | self.counter & 0x1FFFFF)[1:]
        sealed = seal(self.to_server.key(self.epoch), self.counter, header, plain)
        self.counter += 1
        return header + sealed

    def open(self, datagram):
        if len(datagram) < 19 or not datagram[0] & 0x80:
            raise Refused("no sealed datagram")
        header = int.from_bytes(datagram[:3], "big")
        counter = closest(self.expected, header & 0x1FFFFF, 21)
        epoch = next(
            (e for e in range(max(0, self.opened_epoch - 1), self.opened_epoch + 3) if e & 3 == header >> 21 & 3), None
        )
        if epoch is None or counter in self.opened or counter + 2048 < self.expected:
            raise Refused("an old datagram, or one of another epoch")
        plain = unseal(self.to_client.key(epoch), counter, datagram[:3], datagram[3:])
        self.opened.add(counter)
        self.expected = max(self.expected, counter + 1)
        self.opened_epoch = max(self.opened_epoch, epoch)
        self.epoch = max(self.epoch, epoch)
        return plain


class Client:
    def __init__(self, trusted, static=None, identity_data=b""):
        self.trusted, self.static, self.identity_data = trusted, static, identity_data

    def challenge(self, key_field, ephemeral, said):
        """Returns the challenge that answers the key of reply 1. `said` has the unencrypted fields of both peers."""
        if key_field[3:8] != SUITE:
            raise Refused("another suite")
        self.server = key_field[8:40]
        if self.server != self.trusted:
            raise Refused("another key")
        pattern = 2 if self.static else 1
        header = bytes((pattern, 0, 0)) + SUITE
        prologue = b"".join((
            b"rakwire secure 1",
            said["server_guid"],
            bytes(2) + key_field[2:],
            said["cookie"],
            header,
            raknet_address(said["server_address"]),
            struct.pack(">H", said["mtu"]),
            said["client_guid"],
        ))
        self.ephemeral = KeyPair(ephemeral)
        self.noise = Noise(PATTERNS[pattern], prologue, self.server)
        self.noise.mix_hash(self.ephemeral.public)
        self.noise.mix_key(self.ephemeral.dh(self.server))
        payload = bytes((said["version"], said["version"], said["number"])) + bytes(5)
        return header + self.ephemeral.public + self.noise.encrypt(payload)

    def accept(self, answer, client_address, mtu):
        """Reads the answer in reply 2, with this address and MTU in its plaintext: proof, identity and datagrams."""
        noise, theirs = self.noise, answer[:32]
        noise.mix_hash(theirs)
        noise.mix_key(self.ephemeral.dh(theirs))
        payload = noise.decrypt(answer[32:])
        if payload[:31] != raknet_address(client_address).ljust(29, b"\0") + struct.pack(">H", mtu):
            raise Refused("reply 2 was changed")
        identity = None
        epochs = []
        if self.static:
            epochs.append(hkdf(noise.ck, b"rakwire early 1"))
            data = bytes((len(self.identity_data),)) + self.identity_data
            identity = noise.encrypt(self.static.public)
            noise.mix_key(self.static.dh(theirs))
            identity += noise.encrypt(data.ljust(96, b"\0"))
        epochs.append(hkdf(noise.ck, b""))
        proof = hmac_blake2s(hmac_blake2s(noise.ck, b"rakwire proof 1"), noise.h)
        return proof, identity, Datagrams(*zip(*epochs))


def seal_token(entry):
    salt = bytes.fromhex(entry["salt"])
    servers = [bytes.fromhex(server) for server in entry["servers"]]
    data = bytes.fromhex(entry["user_data"])
    plain = b"".join((
        bytes.fromhex(entry["user_id"]),
        struct.pack(">Q", entry["expires"]),
        bytes.fromhex(entry["client"]),
        bytes((len(servers),)),
        *servers,
        bytes((len(data),)),
        data,
    ))
    key = hmac_blake2s(bytes.fromhex(entry["token_key"]), b"rakwire token 1", salt)
    head = b"rwt1" + salt
    return head + seal(key, 0, head, plain)


def connect_token(entry):
    """Returns the contents of the connect token that a backend gives to a client, without the text encoding."""
    servers = [(bytes.fromhex(server["key"]), server["name"].encode()) for server in entry["servers"]]
    sealed = bytes.fromhex(entry["sealed"])
    named = (key + bytes((len(name),)) + name for key, name in servers)
    head = b"rwc1" + struct.pack(">QB", entry["expires"], len(servers))
    return b"".join((head, *named, bytes((len(sealed),)), sealed))


PREFIXES = {
    "private key": "rakwire-private-key-1:",
    "public key": "rakwire-public-key-1:",
    "key hash": "rakwire-key-hash-1:",
    "token key": "rakwire-token-key-1:",
    "connect token": "rakwire-connect-token-1:",
}


class Checker:
    def __init__(self):
        self.failures = []
        self.passed = 0

    def equal(self, what, found, wanted):
        if found == wanted:
            self.passed += 1
        else:
            self.failures.append(f"{what}: {found!r} where {wanted!r} should be")

    def refused(self, what, function, *arguments):
        try:
            function(*arguments)
        except Refused:
            self.passed += 1
        else:
            self.failures.append(f"{what}: was accepted")

    def handshake(self, entry):
        name = entry["name"]
        value = {key: bytes.fromhex(text) for key, text in entry.items() if isinstance(text, str) and is_hex(text)}
        said = {key: value[key] for key in ("server_guid", "client_guid", "cookie")}
        said |= {key: entry[key] for key in ("server_address", "mtu", "version", "number")}
        static = KeyPair(value["client_private"]) if entry["client_private"] else None
        self.equal(f"{name}: key hash", key_hash(value["server_public"]), value["server_key_hash"])
        client = Client(value["server_public"], static, value["identity_data"])
        challenge = client.challenge(value["key_field"], value["client_ephemeral"], said)
        self.equal(f"{name}: challenge", challenge, value["challenge"])
        self.forgeries(name, static, value, entry, said)
        proof, identity, datagrams = client.accept(value["answer"], entry["client_address"], entry["mtu"])
        self.equal(f"{name}: proof", proof, value["proof"])
        self.equal(f"{name}: identity", identity, value["identity"] if entry["identity"] else None)
        for number, datagram in enumerate(entry["datagrams"]):
            what = f"{name}: datagram {number}"
            plain, sealed = bytes.fromhex(datagram["plain"]), bytes.fromhex(datagram["sealed"])
            if datagram["by"] == "client":
                datagrams.epoch = datagram["epoch"]
                self.equal(what, datagrams.seal(plain), sealed)
            else:
                self.refused(f"{what}, changed", datagrams.open, sealed[:-1] + bytes((sealed[-1] ^ 1,)))
                self.equal(what, datagrams.open(sealed), plain)
                self.refused(f"{what}, again", datagrams.open, sealed)

    def challenge(self, entry):
        """Computes the challenge for a server with this key. A key modified in transit yields another challenge."""
        value = {key: bytes.fromhex(text) for key, text in entry.items() if isinstance(text, str) and is_hex(text)}
        said = {key: value[key] for key in ("server_guid", "client_guid", "cookie")}
        said |= {key: entry[key] for key in ("server_address", "mtu", "version", "number")}
        client = Client(value["server_public"])
        challenge = client.challenge(value["key_field"], value["client_ephemeral"], said)
        self.equal(f"challenge, {entry['name']}", challenge, value["challenge"])

    def forgeries(self, name, static, value, entry, said):
        for at in range(0, 128, 7):
            client = Client(value["server_public"], static, value["identity_data"])
            client.challenge(value["key_field"], value["client_ephemeral"], said)
            answer = bytearray(value["answer"])
            answer[at] ^= 4
            self.refused(f"{name}: answer {at}", client.accept, bytes(answer), entry["client_address"], entry["mtu"])
        client = Client(bytes(32))
        self.refused(f"{name}: key", client.challenge, value["key_field"], value["client_ephemeral"], said)

    def text(self, entry):
        text = PREFIXES[entry["name"]] + base64.urlsafe_b64encode(bytes.fromhex(entry["hex"])).decode().rstrip("=")
        self.equal(entry["name"], text, entry["text"])


def is_hex(text):
    return len(text) % 2 == 0 and all(digit in "0123456789abcdef" for digit in text)


def check(path):
    with open(path, encoding="utf-8") as file:
        vectors = json.load(file)
    checker = Checker()
    for entry in vectors["handshakes"]:
        checker.handshake(entry)
    for entry in vectors["challenges"]:
        checker.challenge(entry)
    for entry in vectors["tokens"]:
        checker.equal(f"token, {entry['name']}", seal_token(entry), bytes.fromhex(entry["sealed"]))
    for entry in vectors["connect_tokens"]:
        checker.equal(f"connect token, {entry['name']}", connect_token(entry), bytes.fromhex(entry["hex"]))
        checker.text({"name": "connect token", "hex": entry["hex"], "text": entry["text"]})
    for entry in vectors["texts"]:
        checker.text(entry)
    for failure in checker.failures:
        print(failure)
    print(f"{checker.passed} passed, {len(checker.failures)} failed")
    return 1 if checker.failures or not checker.passed else 0


MAGIC = bytes.fromhex("00ffff00fefefefefdfdfdfd12345678")
UNASSIGNED = raknet_address("0.0.0.0:0")
RELIABLE, RELIABLE_ORDERED = 2, 3
LONGEST_WAIT = 60


class Connection:
    """A minimal RakNet client for echoes: it retransmits unacknowledged messages, and does not split messages."""

    def __init__(self, server, client):
        self.server, self.client = server, client
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(server)
        self.socket.settimeout(0.3)
        self.guid = os.urandom(8)
        self.number = self.reliable = self.order = 0
        self.unacknowledged = {}
        self.received = set()
        self.end = time.monotonic() + LONGEST_WAIT

    def request(self, request, reply_id):
        """Sends an offline message until its reply arrives, and returns the reply without id and magic."""
        while time.monotonic() < self.end:
            self.socket.send(request)
            try:
                reply = self.socket.recv(2048)
            except TimeoutError:
                continue
            if reply[:17] == bytes((reply_id,)) + MAGIC:
                return reply[17:]
        raise Refused(f"no reply {reply_id:02x} in time")

    def handshake(self):
        reply = self.request((b"\x05" + MAGIC + b"\x06").ljust(1464, b"\0"), 0x06)
        server_guid, flag, cookie, key, mtu = reply[:8], reply[8], reply[9:13], reply[13:77], reply[77:79]
        if flag != 1 or len(reply) != 79:
            raise Refused("the server has no security")
        host, port = self.server
        said = {"server_guid": server_guid, "client_guid": self.guid, "cookie": cookie, "version": 6, "number": 0}
        said |= {"server_address": f"{host}:{port}", "mtu": int.from_bytes(mtu, "big")}
        challenge = self.client.challenge(key, os.urandom(32), said)
        address = raknet_address(said["server_address"])
        reply = self.request(b"\x07" + MAGIC + cookie + b"\x01" + challenge + address + mtu + self.guid, 0x08)
        host, port = self.socket.getsockname()
        if reply[8:15] != raknet_address(f"{host}:{port}") or reply[17] != 0x80:
            raise Refused("reply 2 has another address or no answer")
        proof, identity, self.datagrams = self.client.accept(
            reply[18:], f"{host}:{port}", int.from_bytes(reply[15:17], "big")
        )
        shown = b"\x01" + identity if identity else b"\x00"
        self.send(b"\x09" + self.guid + bytes(8) + b"\x01" + proof + shown, RELIABLE)
        accepted = self.wait_for(0x10)
        self.send(b"\x13" + address + UNASSIGNED * 10 + accepted[-8:] + bytes(8), RELIABLE_ORDERED)

    def send(self, payload, reliability):
        capsule = bytes((reliability << 5,)) + struct.pack(">H", len(payload) * 8) + self.reliable.to_bytes(3, "little")
        self.reliable += 1
        if reliability == RELIABLE_ORDERED:
            capsule += self.order.to_bytes(3, "little") + b"\0"
            self.order += 1
        self.transmit(capsule + payload)

    def transmit(self, capsule):
        number, self.number = self.number, self.number + 1
        self.unacknowledged[number] = capsule
        self.socket.send(self.datagrams.seal(b"\x84" + number.to_bytes(3, "little") + capsule))

    def wait_for(self, first):
        """Returns the next message that begins with this byte."""
        while time.monotonic() < self.end:
            try:
                datagram = self.datagrams.open(self.socket.recv(2048))
            except TimeoutError:
                for number in list(self.unacknowledged):
                    self.transmit(self.unacknowledged.pop(number))
                continue
            except Refused:
                continue
            if datagram[0] & 0xC0 == 0xC0:
                self.acknowledged(datagram)
            elif datagram[0] & 0xA0 != 0xA0:
                self.socket.send(self.datagrams.seal(b"\xc0\0\1\1" + datagram[1:4]))
                found = next((message for message in self.fresh(datagram[4:]) if message[0] == first), None)
                if found:
                    return found
        raise Refused(f"no message {first:02x} in time")

    def fresh(self, rest):
        """Returns the messages of a datagram, without duplicates of messages that were acknowledged late."""
        fresh = []
        for number, message in capsules(rest):
            if number is None or number not in self.received:
                self.received.add(number)
                fresh.append(message)
        return fresh

    def acknowledged(self, datagram):
        records = datagram[3:]
        while records:
            first = int.from_bytes(records[1:4], "little")
            last = first if records[0] else int.from_bytes(records[4:7], "little")
            records = records[4 if records[0] else 7 :]
            for number in [number for number in self.unacknowledged if first <= number <= last]:
                del self.unacknowledged[number]


def capsules(rest):
    """Parses the messages of a datagram, each with its reliable message number if it has one."""
    while rest:
        reliability, length = rest[0] >> 5, -(-int.from_bytes(rest[1:3], "big") // 8)
        if rest[0] & 0x10:
            raise Refused("a part of a message, where none is long enough")
        header = 3 + 3 * (reliability in (2, 3, 4)) + 3 * (reliability in (1, 4)) + 4 * (reliability in (1, 3, 4))
        number = rest[3:6] if reliability in (2, 3, 4) else None
        yield number, rest[header : header + length]
        rest = rest[header + length :]


def connect(arguments):
    host, _, port = arguments.server.rpartition(":")
    encoded = arguments.key.removeprefix(PREFIXES["public key"])
    key = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    static = KeyPair(os.urandom(32)) if arguments.identity else None
    connection = Connection((host, int(port)), Client(key, static, b"python"))
    connection.handshake()
    for number in range(arguments.count):
        message = b"\xfe" + number.to_bytes(4, "big") + bytes(range(100))
        connection.send(message, RELIABLE_ORDERED)
        if connection.wait_for(0xFE) != message:
            raise Refused(f"message {number} came back as another one")
    connection.send(b"\x15", RELIABLE_ORDERED)
    print(f"{arguments.count} messages came back, in epoch {connection.datagrams.epoch}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    vectors = commands.add_parser("vectors")
    vectors.add_argument("file", metavar="FILE")
    vectors.set_defaults(run=lambda arguments: check(arguments.file))
    dial = commands.add_parser("connect")
    dial.add_argument("server", metavar="HOST:PORT")
    dial.add_argument("key", metavar="KEY")
    dial.add_argument("--identity", action="store_true")
    dial.add_argument("--count", type=int, default=20)
    dial.set_defaults(run=connect)
    arguments = parser.parse_args()
    try:
        sys.exit(arguments.run(arguments))
    except Refused as refused:
        sys.exit(str(refused))


if __name__ == "__main__":
    main()
