"""An echo server, and a client that checks the echoes, with the `raknet` wheel.

Command line and output: ../README.md.
"""

import argparse
import json
import os
import sys
import threading
import time

from raknet import MessageIdentifiers, PacketPriority, PacketReliability, RakPeer

MAX_CONNECTIONS = 1024
FAILURES = {
    getattr(MessageIdentifiers, name): name[3:].lower().replace("_", " ")
    for name in (
        "ID_ALREADY_CONNECTED",
        "ID_CONNECTION_ATTEMPT_FAILED",
        "ID_CONNECTION_BANNED",
        "ID_CONNECTION_LOST",
        "ID_DISCONNECTION_NOTIFICATION",
        "ID_INCOMPATIBLE_PROTOCOL_VERSION",
        "ID_INVALID_PASSWORD",
        "ID_IP_RECENTLY_CONNECTED",
        "ID_NO_FREE_INCOMING_CONNECTIONS",
        "ID_OUR_SYSTEM_REQUIRES_SECURITY",
        "ID_REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY",
    )
}


class Messages:
    """0xFE, sequence number u32 BE, then byte i is 31 * sequence + 7 * i + 13 * (i // 256) mod 256."""

    def __init__(self, size):
        self.base = bytes((7 * i + 13 * (i >> 8)) & 0xFF for i in range(5, size))

    def get(self, sequence):
        shift = 31 * sequence
        table = bytes((byte + shift) & 0xFF for byte in range(256))
        return b"\xfe" + sequence.to_bytes(4, "big") + self.base.translate(table)


class Idle:
    """Polls fast while messages flow, and slowly otherwise, because RakNet has no blocking receive."""

    def __init__(self):
        self.busy()

    def busy(self):
        self.last = time.monotonic()

    def wait(self):
        time.sleep(0.0001 if time.monotonic() - self.last < 0.05 else 0.002)


RELIABILITIES = {
    "unreliable": PacketReliability.UNRELIABLE,
    "unreliable-sequenced": PacketReliability.UNRELIABLE_SEQUENCED,
    "reliable": PacketReliability.RELIABLE,
    "reliable-ordered": PacketReliability.RELIABLE_ORDERED,
    "reliable-sequenced": PacketReliability.RELIABLE_SEQUENCED,
    "unreliable-with-receipt": PacketReliability.UNRELIABLE_WITH_ACK_RECEIPT,
    "reliable-with-receipt": PacketReliability.RELIABLE_WITH_ACK_RECEIPT,
    "reliable-ordered-with-receipt": PacketReliability.RELIABLE_ORDERED_WITH_ACK_RECEIPT,
}


def send(peer, data, reliability, address):
    peer.send(data, PacketPriority.IMMEDIATE_PRIORITY, RELIABILITIES[reliability], 0, address)


class Echoes:
    """Checks the content and the order of echoes, and that there are no duplicates."""

    def __init__(self, options, state):
        self.options = options
        self.state = state
        self.messages = Messages(options.size)
        self.ordered = options.reliability.startswith("reliable-ordered")
        self.sequenced = options.reliability.endswith("sequenced")
        self.may_lose = self.sequenced or options.reliability.startswith("unreliable")
        self.seen = bytearray(options.count)
        self.next = self.answered = 0
        self.last = time.monotonic()

    def take(self, data):
        number = self.next if self.ordered else int.from_bytes(data[1:5], "big")
        if len(data) != self.options.size:
            raise RuntimeError("wrong length")
        if number >= self.options.count or self.seen[number]:
            raise RuntimeError("a message that was not sent, or a duplicate")
        if self.sequenced and number < self.next:
            raise RuntimeError("an outdated message")
        expected = self.messages.get(number)
        if data != expected:
            permuted = sorted(data) == sorted(expected)
            raise RuntimeError("the bytes of the message in another order" if permuted else "wrong content or order")
        self.seen[number] = 1
        self.state["echoed"] += 1
        self.next = max(self.next, number + 1)
        self.answered = max(self.answered, self.next)
        self.last = time.monotonic()

    def silent(self, seconds):
        return time.monotonic() - self.last > seconds

    def unanswered(self, sent):
        # Counts lost messages as answered, because the window would otherwise stay closed.
        if self.may_lose and self.answered < sent and self.silent(0.3):
            self.answered = sent
            self.last = time.monotonic()
        return sent - (self.answered if self.may_lose else self.state["echoed"])

    def done(self, sent):
        echoed = self.state["echoed"]
        return echoed == self.options.count or (
            self.may_lose and sent == self.options.count and echoed and self.silent(5)
        )


def start(protocol, **arguments):
    if protocol is not None:
        arguments["protocol_version"] = protocol
    peer = RakPeer()
    peer.startup(**arguments)
    return peer


def exit_with_stdin():
    while os.read(0, 256):
        pass
    os._exit(0)


def serve(options):
    peer = start(options.protocol, host="127.0.0.1", port=options.port, max_connections=MAX_CONNECTIONS)
    peer.max_incoming_connections = MAX_CONNECTIONS
    peer.offline_ping_response = b"rakwire interop python"
    print("ready", peer.get_bound_address().port, flush=True)
    threading.Thread(target=exit_with_stdin, daemon=True).start()
    idle = Idle()
    while True:
        packet = peer.receive()
        if packet is None:
            idle.wait()
            continue
        idle.busy()
        data = packet.data
        if data and data[0] >= MessageIdentifiers.ID_USER_PACKET_ENUM:
            send(peer, data, options.reliability, packet.system_address)


def exchange(peer, options, state):
    echoes = Echoes(options, state)
    deadline = time.monotonic() + options.timeout
    peer.connect(*options.address)
    idle = Idle()
    sent = 0
    server = None
    began = time.monotonic()
    while not echoes.done(sent):
        if time.monotonic() > deadline:
            raise RuntimeError("time limit reached")
        packet = peer.receive()
        if packet is None:
            idle.wait()
        else:
            idle.busy()
            data = packet.data
            if data[0] == MessageIdentifiers.ID_CONNECTION_REQUEST_ACCEPTED:
                state["connected"] = True
                server = packet.system_address
                began = time.monotonic()
            elif data[0] in FAILURES:
                raise RuntimeError(FAILURES[data[0]])
            elif data[0] >= MessageIdentifiers.ID_USER_PACKET_ENUM:
                echoes.take(data)
        while server and sent < options.count and echoes.unanswered(sent) < options.window:
            if sent + 1 == options.count:
                # RakNet's threads keep the connection alive.
                time.sleep(options.pause)
            send(peer, echoes.messages.get(sent), options.reliability, server)
            sent += 1
    return time.monotonic() - began


def client(options):
    state = {"connected": False, "echoed": 0}
    peer = None
    try:
        peer = start(options.protocol)
        seconds = exchange(peer, options, state)
        state.update(bytes=options.count * options.size, seconds=round(seconds, 6))
        code = 0
    except RuntimeError as error:
        state["error"] = str(error)
        code = 1
    if peer:
        peer.shutdown(0.5)
    print(json.dumps(state, separators=(",", ":")))
    return code


def ping(options):
    peer = start(None)
    deadline = time.monotonic() + options.timeout
    resend = 0.0
    while time.monotonic() < deadline:
        if time.monotonic() >= resend:
            peer.ping(*options.address)
            resend = time.monotonic() + 0.5
        packet = peer.receive()
        if packet is None:
            time.sleep(0.002)
        elif packet.data[0] == MessageIdentifiers.ID_UNCONNECTED_PONG:
            # The id, the low 32 bits of the echoed time, and the data.
            sys.stdout.buffer.write(packet.data[5:] + b"\n")
            return 0
    print("no pong", file=sys.stderr)
    return 1


def whole(least, most=2**31 - 1):
    def number(text):
        if not least <= int(text) <= most:
            raise ValueError
        return int(text)

    return number


def address(text):
    host, _, port = text.rpartition(":")
    return host, whole(1, 65535)(port)


def main():
    parser = argparse.ArgumentParser(prog="peer")
    modes = parser.add_subparsers(dest="mode", required=True)
    server = modes.add_parser("server")
    server.add_argument("--port", type=whole(0, 65535), required=True)
    server.add_argument("--protocol", type=whole(0, 255))
    server.add_argument("--reliability", choices=RELIABILITIES, default="reliable-ordered")
    for mode in ("client", "ping"):
        sub = modes.add_parser(mode)
        sub.add_argument("address", type=address, metavar="HOST:PORT")
        sub.add_argument("--timeout", type=float, default=60, metavar="SECONDS")
    sub = modes.choices["client"]
    sub.add_argument("--protocol", type=whole(0, 255))
    sub.add_argument("--reliability", choices=RELIABILITIES, default="reliable-ordered")
    sub.add_argument("--count", type=whole(1), default=10)
    sub.add_argument("--size", type=whole(5), default=100, metavar="BYTES")
    sub.add_argument("--window", type=whole(1), default=64)
    sub.add_argument("--pause", type=float, default=0, metavar="SECONDS")
    options = parser.parse_args()
    try:
        code = {"server": serve, "client": client, "ping": ping}[options.mode](options)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        code = 1
    except KeyboardInterrupt:
        code = 130
    sys.stdout.flush()
    # Skips the interpreter's shutdown, because RakNet's threads may still be running.
    os._exit(code)


if __name__ == "__main__":
    main()
