"""Tests of messages: reliabilities, sizes, buffer types, receipts and progress."""

from __future__ import annotations

import array
import asyncio
from typing import Any, List

import pytest

import rakwire
from rakwire import Reliability
from support import connected, endpoints, fill

WITHOUT_RECEIPT = [reliability for reliability in Reliability if reliability < 5]


async def test_a_message_is_echoed() -> None:
    async with connected() as (here, there):
        await here.send(b"\x86hello")
        message = await there.recv()
        assert (message.data, message.reliability, message.channel) == (b"\x86hello", Reliability.RELIABLE_ORDERED, 0)
        assert repr(message) == "Message(data=b'\\x86hello', reliability=RELIABLE_ORDERED, channel=0)"
        await there.send(message.data)
        assert (await here.recv()).data == b"\x86hello"


@pytest.mark.parametrize("reliability", WITHOUT_RECEIPT)
async def test_messages_arrive_with_their_reliability_and_channel(reliability: Reliability) -> None:
    async with connected() as (here, there):
        channel = 0 if reliability in (Reliability.UNRELIABLE, Reliability.RELIABLE) else 31
        assert await here.send(b"\x86one", reliability=reliability, channel=channel) is None
        message = await there.recv()
        assert (message.reliability, message.channel) == (reliability, channel)
        assert isinstance(message.reliability, Reliability)


@pytest.mark.parametrize("reliability", [r for r in Reliability if r >= 5])
async def test_receipts_report_acknowledged_messages(reliability: Reliability) -> None:
    async with connected() as (here, there):
        receipt = await here.send(b"\x86state", reliability=reliability)
        assert await here.recv_receipt() == rakwire.Outcome(receipt or 0, True)
        assert (await there.recv()).data == b"\x86state"
        await here.disconnect()
        with pytest.raises(rakwire.ConnectionClosed):
            await here.recv_receipt()


async def test_ten_thousand_messages_arrive_in_order_both_ways() -> None:
    count = 10_000

    async def send_all(connection: rakwire.Connection) -> None:
        for number in range(count):
            await connection.send(b"\x86" + number.to_bytes(4, "big"))

    async def receive_all(connection: rakwire.Connection) -> List[int]:
        return [int.from_bytes((await connection.recv()).data[1:], "big") for _ in range(count)]

    async with connected() as (here, there):
        received = await asyncio.gather(receive_all(there), receive_all(here), send_all(here), send_all(there))
        assert received[0] == received[1] == list(range(count))
        stats = here.stats()
        assert stats is not None and stats.messages_sent >= count and stats.round_trip > 0


@pytest.mark.parametrize("size", [1, 1_400, 65_535, 65_536, 1_000_000, 4_000_000])
async def test_messages_of_any_size_arrive_unchanged(size: int) -> None:
    data = (b"\x86" + bytes(range(251)) * (size // 251 + 1))[:size]
    async with connected() as (here, there):
        _, message = await asyncio.gather(here.send(data), there.recv())
        assert message.data == data
        assert here.max_message_length == 4_000_000


async def test_send_waits_while_the_send_memory_is_full() -> None:
    # Some messages are never received, so closing must not wait the default 5 s for their acknowledgement.
    server, client = rakwire.Options(max_incoming=1, close_timeout=0.1), rakwire.Options(close_timeout=0.1)
    async with connected(server, client) as (here, there):
        data = b"\x86" * 500_000
        await fill(here, data)
        with pytest.raises(rakwire.NoRoom, match="try again later"):
            here.try_send(data)
        waiting = asyncio.create_task(here.send(data))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        messages = 0
        while not waiting.done():
            assert len((await there.recv()).data) == 500_000
            messages += 1
        assert messages > 0 and waiting.exception() is None


@pytest.mark.parametrize(
    "data",
    [
        bytearray(b"\x86abc"),
        memoryview(b"\x86abc"),
        memoryview(b"\x86-a-b-c")[::2],
        array.array("B", b"\x86abc"),
    ],
)
async def test_changing_a_buffer_after_send_does_not_change_the_message(data: Any) -> None:
    expected = bytes(data)
    async with connected() as (here, there):
        await here.send(data)
        if isinstance(data, bytearray):
            data[:] = b"\x86xyz"
        assert (await there.recv()).data == expected


async def test_a_str_must_be_encoded_before_sending() -> None:
    async with connected() as (here, there):
        with pytest.raises(TypeError, match="encode"):
            await here.send("\u00e9")  # type: ignore[arg-type]
        await here.send(b"\x86" + "snow \u2603 \U0001f600".encode())
        assert (await there.recv()).data[1:].decode() == "snow \u2603 \U0001f600"


async def test_invalid_messages_are_refused() -> None:
    async with connected() as (here, _):
        with pytest.raises(rakwire.MessageError, match="at least one byte"):
            await here.send(b"")
        with pytest.raises(rakwire.MessageError, match="0x86"):
            await here.send(b"\x00hello")
        with pytest.raises(rakwire.MessageError, match="in pieces"):
            await here.send(b"\x86" * 4_000_001)
        with pytest.raises(ValueError, match="0 to 31"):
            await here.send(b"\x86", channel=32)


async def test_large_messages_report_their_progress() -> None:
    options = rakwire.Options(progress_interval=16)
    async with connected(client=options) as (here, there):
        await here.send(b"\x86" * 100_000)
        progress = await here.recv_progress()
        assert progress.is_outgoing and 16 <= progress.done <= progress.parts
        await there.recv()


async def test_a_broadcast_reaches_all_connections_except_one() -> None:
    async with endpoints() as (server, client):
        async with await rakwire.Endpoint.bind(("127.0.0.1", 0)) as other:
            first = await client.connect(server.local_address)
            accepted = await server.accept()
            second = await other.connect(server.local_address)
            also_accepted = await server.accept()
            assert server.broadcast(b"\x86all") == 2
            assert server.broadcast(b"\x86but", but=accepted) == 1
            assert (await first.recv()).data == b"\x86all"
            assert [(await second.recv()).data for _ in range(2)] == [b"\x86all", b"\x86but"]
            assert not also_accepted.is_closed


async def test_messages_arrive_over_a_lossy_path() -> None:
    path = rakwire.Simulation(loss=0.2, duplicate=0.1, reorder=0.2, latency=0.005, seed=7)
    async with connected(client=rakwire.Options(simulate=path)) as (here, there):
        for number in range(200):
            await here.send(b"\x86" + bytes([number]))
        assert [(await there.recv()).data[1] for _ in range(200)] == list(range(200))
        stats = here.stats()
        assert stats is not None and stats.bytes_resent > 0 and stats.loss > 0
