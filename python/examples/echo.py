"""Echoes every message: python echo.py [ADDRESS]."""

import asyncio
import sys

import rakwire


async def echo(connection: rakwire.Connection) -> None:
    try:
        async for message in connection:
            await connection.send(message.data, reliability=message.reliability, channel=message.channel)
    except rakwire.ConnectionClosed:
        pass  # the client has left without its echo


async def main() -> None:
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:19132"
    options = rakwire.Options(max_incoming=256, advertisement=b"an echo in Python")
    async with await rakwire.Endpoint.bind(address, options) as server:
        print("ready", server.local_address, flush=True)
        players = set()
        async for connection in server:
            players.add(task := asyncio.create_task(echo(connection)))
            task.add_done_callback(players.discard)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
