"""Helpers: pairs of endpoints over loopback."""

from __future__ import annotations

import asyncio
import contextlib
from typing import AsyncIterator, Optional, Tuple

import rakwire

LOOPBACK = ("127.0.0.1", 0)


@contextlib.asynccontextmanager
async def endpoints(
    server: Optional[rakwire.Options] = None, client: Optional[rakwire.Options] = None
) -> AsyncIterator[Tuple[rakwire.Endpoint, rakwire.Endpoint]]:
    """Yield a server and a client. By default the server accepts 64 clients."""
    options = server or rakwire.Options(max_incoming=64)
    async with await rakwire.Endpoint.bind(LOOPBACK, options) as first:
        async with await rakwire.Endpoint.bind(LOOPBACK, client) as second:
            yield first, second


@contextlib.asynccontextmanager
async def connected(
    server: Optional[rakwire.Options] = None, client: Optional[rakwire.Options] = None
) -> AsyncIterator[Tuple[rakwire.Connection, rakwire.Connection]]:
    """Connect a client to a server, and yield the connection of each side, the client's first."""
    async with endpoints(server, client) as (first, second):
        here = await second.connect(first.local_address)
        there = await first.accept()
        yield here, there


async def fill(connection: rakwire.Connection, data: bytes) -> None:
    """Send until the send memory is full, because the peer does not receive its messages."""
    refusals = 0
    while refusals < 10:
        try:
            connection.try_send(data)
            refusals = 0
        except rakwire.NoRoom:
            refusals += 1
            await asyncio.sleep(0.02)
