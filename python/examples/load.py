"""Simulates many clients: python load.py HOST:PORT [--clients 100] [--rate 20] [--size 32] [--seconds 10].

Each client sends messages at a steady rate, and measures the time until the server's echoes arrive. The last line has
the round-trip times of all clients.
"""

import argparse
import asyncio
import dataclasses
import statistics
import struct
import time
from typing import List

import rakwire


@dataclasses.dataclass
class Report:
    """The results of all clients."""

    connected: int = 0
    failed: int = 0
    lost: int = 0
    sent: int = 0
    round_trips: List[float] = dataclasses.field(default_factory=list)


async def send(connection: rakwire.Connection, arguments: argparse.Namespace, report: Report) -> None:
    """Send until the end of the measurement."""
    end = time.perf_counter() + arguments.seconds
    while time.perf_counter() < end:
        data = b"\x86" + struct.pack("<d", time.perf_counter())
        await connection.send(data.ljust(arguments.size, b"\0"))
        report.sent += 1
        await asyncio.sleep(1 / arguments.rate)


async def receive(connection: rakwire.Connection, report: Report) -> None:
    """Receive until the connection closes."""
    async for message in connection:
        (sent,) = struct.unpack_from("<d", message.data, 1)
        report.round_trips.append(time.perf_counter() - sent)


async def play(number: int, arguments: argparse.Namespace, report: Report) -> None:
    """Run one client with its own socket."""
    await asyncio.sleep(number / 200)  # Servers limit the rate of new connections.
    async with await rakwire.Endpoint.bind(arguments.bind) as endpoint:
        try:
            connection = await endpoint.connect(arguments.server)
        except rakwire.ConnectError as error:
            print(f"client {number}: {error}")
            report.failed += 1
            return
        report.connected += 1
        receiver = asyncio.create_task(receive(connection, report))
        try:
            await send(connection, arguments, report)
            await asyncio.sleep(0.2)  # Wait for the last echoes.
        except rakwire.ConnectionClosed as error:
            print(f"client {number}: {error}")
            report.lost += 1
        await connection.disconnect()
        await receiver


async def main() -> None:
    parser = argparse.ArgumentParser(description="Simulates many clients of an echo server.")
    parser.add_argument("server", metavar="HOST:PORT")
    parser.add_argument("--bind", default="0.0.0.0:0", help="address of the clients; [::]:0 for IPv6")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--rate", type=float, default=20.0, help="messages per second and client")
    parser.add_argument("--size", type=int, default=32, help="length of each message in bytes, at least 9")
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    report = Report()
    await asyncio.gather(*(play(number, arguments, report) for number in range(arguments.clients)))
    print(f"{report.connected} connected, {report.failed} failed, {report.lost} lost")
    print(f"{report.sent} messages sent, {len(report.round_trips)} came back")
    if len(report.round_trips) > 1:
        percentiles = statistics.quantiles(report.round_trips, n=100)
        times = (percentiles[49], percentiles[98], max(report.round_trips))
        print("round trip in ms: median {:.2f}, 99 % {:.2f}, longest {:.2f}".format(*(time * 1e3 for time in times)))


if __name__ == "__main__":
    asyncio.run(main())
