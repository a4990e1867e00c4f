"""Tests the server and the client against C++ RakNet, which `interop/setup.sh cpp` builds."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
from typing import AsyncIterator, Tuple

import rakwire
from support import LOOPBACK

_BUILT = pathlib.Path(__file__).parents[2] / "target" / "interop" / "bin"
PEER = pathlib.Path(os.environ.get("INTEROP_BIN_DIR", _BUILT)) / "cpp-peer"


@contextlib.asynccontextmanager
async def original(*arguments: str) -> AsyncIterator[Tuple[asyncio.subprocess.Process, asyncio.StreamReader]]:
    """Run the C++ RakNet peer, which exits when its standard input is closed."""
    assert PEER.exists(), f"{PEER} is missing: run interop/setup.sh cpp, or set INTEROP_BIN_DIR to its folder"
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(str(PEER), *arguments, stdin=pipe, stdout=pipe)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield process, process.stdout
    finally:
        process.stdin.close()
        await process.wait()


async def test_a_raknet_server_echoes_our_messages() -> None:
    async with original("server", "--port", "0") as (_, output):
        ready = (await output.readline()).split()
        assert ready[0] == b"ready"
        async with await rakwire.Endpoint.bind(LOOPBACK) as client:
            async with await client.connect(("127.0.0.1", int(ready[1]))) as connection:
                for data in [b"\x86hello", b"\x86" * 100_000]:
                    await connection.send(data)
                    assert (await connection.recv()).data == data


async def test_our_server_echoes_messages_from_a_raknet_client() -> None:
    async with await rakwire.Endpoint.bind(LOOPBACK, rakwire.Options(max_incoming=1)) as server:

        async def echo() -> None:
            connection = await server.accept()
            async for message in connection:
                await connection.send(message.data)

        echoing = asyncio.create_task(echo())
        async with original("client", str(server.local_address), "--count", "100") as (process, output):
            report = (await output.read()).decode()
            assert '"echoed":100' in report and await process.wait() == 0, report
        await echoing
