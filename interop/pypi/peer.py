"""Echo servers and a client around RakNet libraries of PyPI. ../README.md describes the command line; `--library NAME`
selects the library."""

import argparse
import asyncio
import json
import os
import socket
import sys
import threading


def free_port(port):
    """Returns `port`, or for 0 a port that was free a moment ago: not every library reports an assigned port."""
    if port:
        return port
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Interface:
    """Callbacks of the servers."""

    def on_new_incoming_connection(self, connection):
        print("incoming", flush=True)

    def on_disconnect(self, connection):
        print("left", flush=True)

    def on_frame(self, packet, connection):
        from rak_net.protocol.frame import frame

        # The library encodes every reliability but 0 incorrectly.
        echo = frame()
        echo.reliability, echo.body = 0, packet.body
        connection.add_to_queue(echo)

    def on_game_packet(self, packet, connection):
        print(f"message {packet['body'][0]:02x}", flush=True)

    def on_unknown_packet(self, body, connection):
        print(f"unknown {body[0]:02x}", flush=True)


def serve_rak_net(port):
    from rak_net.server import server

    listening = server("127.0.0.1", port, 4)
    listening.interface, listening.name = Interface(), "MCPE;a game;800;1.21.80;0;10;"
    print(f"ready {port}", flush=True)
    while True:
        listening.handle()


def serve_pieraknet(port):
    from pieraknet.server import Server

    listening = Server("127.0.0.1", port, 4, logginglevel="ERROR")
    listening.interface = Interface()
    print(f"ready {port}", flush=True)
    listening.start()


async def connect_pybedrock(host, port, timeout):
    from pybedrock_net.raknet import RakNetClient

    client = RakNetClient(host, port)
    connected = await client.connect(timeout=timeout)
    print(json.dumps({"connected": bool(connected), "echoed": 0}))
    client.close()


async def ping_pybedrock(host, port, timeout):
    from pybedrock_net.raknet import BedrockServerPing

    print(await BedrockServerPing.query(host, port, timeout=timeout))


def end_with_input():
    """Exits when standard input closes."""
    sys.stdin.read()
    os._exit(0)


SERVERS = {"rak-net": serve_rak_net, "PieRakNet": serve_pieraknet}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["server", "client", "ping"])
    parser.add_argument("target", nargs="?")
    parser.add_argument("--library", required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=10)
    # These options are ignored: each library supports only one protocol version, and determines how it sends.
    for name in ("protocol", "reliability", "count", "size", "window", "pause"):
        parser.add_argument("--" + name)
    arguments = parser.parse_args()
    if arguments.role == "server":
        threading.Thread(target=end_with_input, daemon=True).start()
        SERVERS[arguments.library](free_port(arguments.port))
        return
    host, port = arguments.target.rsplit(":", 1)
    act = {"client": connect_pybedrock, "ping": ping_pybedrock}[arguments.role]
    asyncio.run(act(host, int(port), arguments.timeout))


main()
