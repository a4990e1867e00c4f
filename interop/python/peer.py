"""An echo server and a checking client around the `raknet` wheel. Command line and output: ../README.md."""

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
    """RakNet has no blocking receive. Polls fast while messages flow, slowly otherwise."""

    def __init__(self):
        self.busy()

    def busy(self):
        self.last = time.monotonic()

    def wait(self):
        time.sleep(0.0001 if time.monotonic() - self.last < 0.05 else 0.002)


def send(peer, data, address):
    peer.send(data, PacketPriority.IMMEDIATE_PRIORITY, PacketReliability.RELIABLE_ORDERED, 0, address)


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
            send(peer, data, packet.system_address)


def exchange(peer, options, state):
    messages = Messages(options.size)
    host, port = options.address
    deadline = time.monotonic() + options.timeout
    peer.connect(host, port)
    idle = Idle()
    sent = 0
    server = None
    while state["echoed"] < options.count:
        if time.monotonic() > deadline:
            raise RuntimeError("time limit reached")
        packet = peer.receive()
        if packet is None:
            idle.wait()
            continue
        idle.busy()
        data = packet.data
        if data[0] == MessageIdentifiers.ID_CONNECTION_REQUEST_ACCEPTED:
            state["connected"] = True
            server = packet.system_address
            began = time.monotonic()
        elif data[0] in FAILURES:
            raise RuntimeError(FAILURES[data[0]])
        elif data[0] >= MessageIdentifiers.ID_USER_PACKET_ENUM:
            if data != messages.get(state["echoed"]):
                raise RuntimeError("wrong content or order")
            state["echoed"] += 1
        while server and sent < options.count and sent - state["echoed"] < options.window:
            send(peer, messages.get(sent), server)
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
            # The id, then the low 32 bits of the echoed time, then the data.
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
    for mode in ("client", "ping"):
        sub = modes.add_parser(mode)
        sub.add_argument("address", type=address, metavar="HOST:PORT")
        sub.add_argument("--timeout", type=float, default=60, metavar="SECONDS")
    sub = modes.choices["client"]
    sub.add_argument("--protocol", type=whole(0, 255))
    sub.add_argument("--count", type=whole(1), default=10)
    sub.add_argument("--size", type=whole(5), default=100, metavar="BYTES")
    sub.add_argument("--window", type=whole(1), default=64)
    options = parser.parse_args()
    try:
        code = {"server": serve, "client": client, "ping": ping}[options.mode](options)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        code = 1
    except KeyboardInterrupt:
        code = 130
    sys.stdout.flush()
    # Not through the interpreter's shutdown: RakNet's threads may still run.
    os._exit(code)


if __name__ == "__main__":
    main()
