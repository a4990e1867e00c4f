"""The client of ``cargo xtask bench doors`` in Python: python door.py ADDRESS WINDOW SECONDS.

It keeps WINDOW messages of 64 bytes in flight to an echo server. After a warm-up of half the time it prints
``connected`` and waits for a line. Then it measures for SECONDS, and prints the number of echoes and the seconds.
"""

import asyncio
import sys
import time
from typing import Tuple

import rakwire

MESSAGE = b"\x86" * 64


async def play(connection: rakwire.Connection, window: int, seconds: float) -> Tuple[int, float]:
    """Keep messages in flight for a time, and then wait for the last echoes."""
    begin = time.perf_counter()
    echoes, elapsed = 0, 0.0
    for _ in range(window):
        await connection.send(MESSAGE)
    while elapsed < seconds:
        await connection.recv()
        await connection.send(MESSAGE)
        echoes += 1
        elapsed = time.perf_counter() - begin
    for _ in range(window):
        await connection.recv()
    return echoes, elapsed


async def main(address: str, window: int, seconds: float) -> None:
    """Warm up, measure, and print the result."""
    async with await rakwire.Endpoint.bind("127.0.0.1:0") as client:
        connection = await client.connect(address)
        await play(connection, window, seconds / 2)
        print("connected", flush=True)
        sys.stdin.readline()
        echoes, elapsed = await play(connection, window, seconds)
        print(echoes, elapsed, flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
