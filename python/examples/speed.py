"""Measures round trips and messages per second over loopback: python speed.py [--native PROGRAM].

Server and client run in separate processes. With ``--native``, a program built from the folder ``speed``, the benchmark
also runs in Rust, and between Python and Rust in both directions. The runs alternate, and the last column is the rate
relative to Rust.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from typing import Dict, List, Tuple

import rakwire

ECHO, COUNT, LAST = b"\x86" * 100, b"\x87" * 100, b"\x88" * 100


async def serve() -> None:
    """Echo all messages except those that are only counted."""
    async with await rakwire.Endpoint.bind("127.0.0.1:0", rakwire.Options(max_incoming=1)) as server:
        print("ready", server.local_address, flush=True)
        connection = await server.accept()
        async for message in connection:
            if message.data[0] != COUNT[0]:
                await connection.send(message.data)


async def play(address: str, round_trips: int, messages: int) -> None:
    """Print the median round-trip time in seconds, and the messages per second."""
    async with await rakwire.Endpoint.bind("127.0.0.1:0") as client:
        connection = await client.connect(address)
        times = []
        for _ in range(round_trips):
            start = time.perf_counter()
            await connection.send(ECHO)
            await connection.recv()
            times.append(time.perf_counter() - start)
        start = time.perf_counter()
        for _ in range(messages):
            await connection.send(COUNT)
        await connection.send(LAST)
        await connection.recv()
        print(statistics.median(times), messages / (time.perf_counter() - start))


def measure(server: List[str], client: List[str], round_trips: int, messages: int) -> Tuple[float, float]:
    """Run both programs, and return the output of the client."""
    process = subprocess.Popen([*server, "server"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().split()[1]
        command = [*client, "client", address, str(round_trips), str(messages)]
        median, rate = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        return float(median), float(rate)
    finally:
        process.wait(10)


def compare(native: str, runs: int, round_trips: int, messages: int) -> None:
    """Print the medians of several runs."""
    python = [sys.executable, __file__]
    pairs = {"Python": (python, python)}
    if native:
        pairs = {
            "Rust": ([native], [native]),
            "Python": (python, python),
            "client in Python, server in Rust": ([native], python),
            "client in Rust, server in Python": (python, [native]),
        }
    results: Dict[str, List[Tuple[float, float]]] = {name: [] for name in pairs}
    for _ in range(runs):
        for name, (server, client) in pairs.items():
            results[name].append(measure(server, client, round_trips, messages))
    base = statistics.median(rate for _, rate in next(iter(results.values())))
    print(f"medians of {runs} runs, {round_trips} round trips and {messages} messages of 100 bytes, reliable ordered")
    for name, values in results.items():
        median = statistics.median(value for value, _ in values)
        rate = statistics.median(value for _, value in values)
        print(f"{name:34} {median * 1e6:8.0f} us {rate:12,.0f} messages/s {rate / base:6.0%}")


def main() -> None:
    if sys.argv[1:2] == ["server"]:
        asyncio.run(serve())
    elif sys.argv[1:2] == ["client"]:
        asyncio.run(play(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
    else:
        parser = argparse.ArgumentParser(description="Measures round trips and messages per second over loopback.")
        parser.add_argument("--native", default="", metavar="PROGRAM")
        parser.add_argument("--runs", type=int, default=3)
        parser.add_argument("--round-trips", type=int, default=5_000)
        parser.add_argument("--messages", type=int, default=200_000)
        arguments = parser.parse_args()
        compare(arguments.native, arguments.runs, arguments.round_trips, arguments.messages)


if __name__ == "__main__":
    main()
