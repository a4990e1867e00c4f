"""Tests that cancel tasks, and that close or drop objects with pending calls."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from typing import List, Type

import pytest

import rakwire
from rakwire import DisconnectReason
from rakwire._loop import enter
from support import LOOPBACK, connected, endpoints, fill


async def test_a_cancelled_receiver_loses_no_message() -> None:
    count = 2_000
    async with connected() as (here, there):

        async def send_all() -> None:
            for number in range(count):
                await here.send(b"\x86" + number.to_bytes(4, "big"))
                if number % 7 == 0:
                    await asyncio.sleep(0)

        sender = asyncio.create_task(send_all())
        received: List[int] = []
        cancelled = 0
        while len(received) < count:
            receiver = asyncio.create_task(there.recv())
            for _ in range(len(received) % 4):
                await asyncio.sleep(0)
            receiver.cancel()
            try:
                received.append(int.from_bytes((await receiver).data[1:], "big"))
            except asyncio.CancelledError:
                cancelled += 1
                if not received or cancelled % 10 == 0:
                    message = await there.recv()
                    received.append(int.from_bytes(message.data[1:], "big"))
        assert received == list(range(count))
        assert cancelled > 0
        await sender


@pytest.mark.parametrize("cancelled", [0, 1])
async def test_a_message_for_a_cancelled_receiver_goes_to_another_receiver(cancelled: int) -> None:
    async with connected() as (here, there):
        receivers = [asyncio.create_task(there.recv()) for _ in range(2)]
        await asyncio.sleep(0.01)
        here.try_send(b"\x86hello")
        # Block the loop until the message has arrived, so that it is assigned before the task is cancelled.
        time.sleep(0.1)
        receivers[cancelled].cancel()
        assert (await asyncio.wait_for(receivers[1 - cancelled], 10)).data == b"\x86hello"


async def test_cancelled_receivers_leave_no_pending_operations() -> None:
    async with connected() as (here, there):
        bridge, _ = enter()
        before = bridge.waiting()
        for _ in range(100):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(there.recv(), 0.0001)
        gc.collect()
        assert bridge.waiting() == before
        await here.send(b"\x86still here")
        assert (await there.recv()).data == b"\x86still here"


async def test_a_cancelled_sender_sends_nothing() -> None:
    async with connected() as (here, there):
        await fill(here, b"\x86" * 500_000)
        sender = asyncio.create_task(here.send(b"\x87" * 500_000))
        await asyncio.sleep(0.01)
        sender.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sender
        last = asyncio.create_task(here.send(b"\x88"))
        message = await there.recv()
        while message.data != b"\x88":
            assert message.data[0] == 0x86
            message = await there.recv()
        await last


async def test_a_cancelled_accept_loses_no_connection() -> None:
    async with endpoints() as (server, client):
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(server.accept(), 0.01)
        here = await client.connect(server.local_address)
        there = await server.accept()
        assert there.remote_address == client.local_address
        assert here.guid == server.guid


async def test_an_endpoint_can_connect_after_cancelled_attempts() -> None:
    async with endpoints() as (server, client):
        deaf = rakwire.Options(max_incoming=1, defer_incoming=True)
        async with await rakwire.Endpoint.bind(LOOPBACK, deaf) as silent:
            for _ in range(3):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(client.connect(silent.local_address), 0.05)
        await client.connect(server.local_address)


async def test_pending_calls_fail_when_the_peer_disconnects() -> None:
    async with connected() as (here, there):
        waiting = [asyncio.create_task(there.recv()) for _ in range(3)]
        closed = asyncio.create_task(there.wait_closed())
        await asyncio.sleep(0.01)
        await here.disconnect(b"\x86good bye")
        results = await asyncio.gather(*waiting, return_exceptions=True)
        messages = [result for result in results if isinstance(result, rakwire.Message)]
        errors = [result for result in results if isinstance(result, rakwire.ConnectionClosed)]
        assert [message.data for message in messages] == [b"\x86good bye"] and len(errors) == 2
        assert all(error.reason is DisconnectReason.REMOTE for error in errors)
        assert await closed is DisconnectReason.REMOTE
        assert (here.closed_reason, there.closed_reason) == (DisconnectReason.LOCAL, DisconnectReason.REMOTE)
        assert here.is_closed and here.stats() is None and here.mtu is None and here.round_trip is None
        with pytest.raises(rakwire.ConnectionClosed, match="connect again"):
            await here.send(b"\x86late")


async def test_pending_calls_fail_when_the_endpoint_closes() -> None:
    async with endpoints() as (server, client):
        here = await client.connect(server.local_address)
        there = await server.accept()
        waiting = [asyncio.create_task(server.accept()), asyncio.create_task(server.incoming())]
        receiver = asyncio.create_task(here.recv())
        await asyncio.sleep(0.01)
        await asyncio.gather(server.close(), client.close())
        for task in waiting:
            with pytest.raises(rakwire.EndpointClosed):
                await task
        with pytest.raises(rakwire.ConnectionClosed):
            await receiver
        assert there.closed_reason is DisconnectReason.LOCAL
        await server.wait_closed()
        assert [connection async for connection in server] == []
        with pytest.raises(rakwire.EndpointClosed):
            await client.connect("127.0.0.1:9")


async def test_iteration_ends_when_the_connection_closes() -> None:
    async with connected() as (here, there):
        async with here:
            await here.send(b"\x86one")
            await here.send(b"\x86two")
        assert [message.data async for message in there] == [b"\x86one", b"\x86two"]


async def test_an_unreferenced_connection_is_closed() -> None:
    async with endpoints() as (server, client):
        here = await client.connect(server.local_address)
        there = await server.accept()
        forgotten = weakref.ref(here)
        del here
        gc.collect()
        assert forgotten() is None
        assert await there.wait_closed() is DisconnectReason.REMOTE


async def test_an_unreferenced_endpoint_keeps_its_connections() -> None:
    async with endpoints() as (server, _client):
        second = await rakwire.Endpoint.bind(LOOPBACK)
        here = await second.connect(server.local_address)
        there = await server.accept()
        del second
        gc.collect()
        await here.send(b"\x86hello")
        assert (await there.recv()).data == b"\x86hello"


def test_a_connection_can_be_used_in_two_loops() -> None:
    """A loop in another thread accepts a connection and echoes. The main loop then sends on that connection."""
    accepted: List[rakwire.Connection] = []
    addresses: List[rakwire.Address] = []
    bound = threading.Event()

    async def serve() -> None:
        async with await rakwire.Endpoint.bind(LOOPBACK, rakwire.Options(max_incoming=1)) as server:
            addresses.append(server.local_address)
            bound.set()
            connection = await server.accept()
            accepted.append(connection)
            async for message in connection:
                await connection.send(message.data)

    async def play() -> None:
        async with await rakwire.Endpoint.bind(LOOPBACK) as client:
            async with await client.connect(addresses[0]) as connection:
                for number in range(100):
                    await connection.send(b"\x86" + bytes([number]))
                    assert (await connection.recv()).data == b"\x86" + bytes([number])
                await accepted[0].send(b"\x86from the other loop")
                assert (await connection.recv()).data == b"\x86from the other loop"

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert bound.wait(10)
    asyncio.run(asyncio.wait_for(play(), 30))
    thread.join(10)
    assert not thread.is_alive()


class _LoopWithoutReaders(asyncio.SelectorEventLoop):
    """A loop that cannot watch sockets, like the default loop of Windows."""

    def add_reader(self, *_: object) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("kind", [asyncio.SelectorEventLoop, _LoopWithoutReaders])
def test_a_loop_closed_with_a_pending_task_is_freed(kind: Type[asyncio.SelectorEventLoop]) -> None:
    loop = kind()

    async def pair() -> "tuple[rakwire.Endpoint, rakwire.Endpoint, rakwire.Connection, rakwire.Connection]":
        server = await rakwire.Endpoint.bind(LOOPBACK, rakwire.Options(max_incoming=1))
        client = await rakwire.Endpoint.bind(LOOPBACK)
        here = await client.connect(server.local_address)
        return server, client, here, await server.accept()

    server, client, here, there = loop.run_until_complete(pair())
    loop.set_exception_handler(lambda *_: None)
    task = loop.create_task(there.recv())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    gone = weakref.ref(loop)
    here.try_send(b"\x86for a loop that is closed")
    del task, loop
    gc.collect()
    assert gone() is None

    async def end() -> None:
        assert (await there.recv()).data == b"\x86for a loop that is closed"
        await asyncio.gather(server.close(), client.close())

    asyncio.run(end())


def test_a_loop_that_cannot_watch_sockets_is_woken_by_a_thread() -> None:
    loop = _LoopWithoutReaders()

    async def echo() -> None:
        async with connected() as (here, there):
            for _ in range(20):
                await here.send(b"\x86hello")
                assert (await there.recv()).data == b"\x86hello"
            names = [thread.name for thread in threading.enumerate()]
            assert "rakwire-loop" in names

    loop.run_until_complete(asyncio.wait_for(echo(), 30))
    loop.close()
    del loop
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "rakwire-loop":
            thread.join(10)
    assert "rakwire-loop" not in [thread.name for thread in threading.enumerate()]


def test_pending_calls_fail_when_the_listening_thread_fails_and_later_calls_succeed() -> None:
    loop = _LoopWithoutReaders()

    async def talk() -> None:
        async with connected() as (here, there):
            pending = [asyncio.create_task(end.recv()) for end in (here, there)]
            await asyncio.sleep(0)
            bridge, _ = enter()
            # The thread reads from this file descriptor. As /dev/null it is not a socket, so receiving fails.
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, bridge.fileno())
            os.close(null)
            for task in pending:
                with pytest.raises(OSError):
                    await task
            assert enter()[0] is not bridge
            await here.send(b"\x86after the failure")
            assert (await there.recv()).data == b"\x86after the failure"

    loop.run_until_complete(asyncio.wait_for(talk(), 30))
    loop.close()


def test_waiting_does_not_block_other_python_threads() -> None:
    """Another thread makes progress while a task waits."""
    steps = 0
    is_over = threading.Event()

    def count() -> None:
        nonlocal steps
        while not is_over.is_set():
            steps += 1

    async def wait() -> None:
        async with connected() as (_, there):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(there.recv(), 0.2)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        asyncio.run(wait())
    finally:
        is_over.set()
        thread.join()
    assert steps > 1_000


async def test_an_operation_can_be_awaited_only_once() -> None:
    async with endpoints() as (server, _):
        operation = server._native.flush()
        await operation
        with pytest.raises(RuntimeError, match="already awaited"):
            await operation


def _run(program: str, *, interrupt: bool = False) -> "subprocess.CompletedProcess[str]":
    """Run a program. With ``interrupt``, send SIGINT after its first line of output."""
    command = [sys.executable, "-c", textwrap.dedent(program)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    first = ""
    if interrupt:
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    return subprocess.CompletedProcess(command, process.returncode, first + out, err)


def test_ctrl_c_interrupts_a_waiting_program() -> None:
    program = """
        import asyncio, rakwire

        async def main():
            async with await rakwire.Endpoint.bind("127.0.0.1:0", rakwire.Options(max_incoming=1)) as server:
                print("ready", flush=True)
                await server.accept()

        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            print("interrupted")
    """
    result = _run(program, interrupt=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "ready\ninterrupted\n", "")


def test_a_program_can_exit_with_open_connections() -> None:
    program = """
        import asyncio, rakwire

        async def main():
            global server, client, here, there
            server = await rakwire.Endpoint.bind("127.0.0.1:0", rakwire.Options(max_incoming=1))
            client = await rakwire.Endpoint.bind("127.0.0.1:0")
            here = await client.connect(server.local_address)
            there = await server.accept()
            asyncio.create_task(there.recv())
            await asyncio.sleep(0)
            print("open", flush=True)

        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
    """
    result = _run(program)
    assert (result.returncode, result.stdout) == (0, "open\n")
    assert "panicked" not in result.stderr and "Fatal" not in result.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_gets_fork_errors_and_the_parent_continues() -> None:
    program = """
        import asyncio, gc, os, sys, warnings
        import rakwire

        warnings.simplefilter("ignore")

        async def main():
            global server
            server = await rakwire.Endpoint.bind("127.0.0.1:0", rakwire.Options(max_incoming=1))
            client = await rakwire.Endpoint.bind("127.0.0.1:0")
            here = await client.connect(server.local_address)
            there = await server.accept()
            child = os.fork()
            if child == 0:
                try:
                    here.try_send(b"\\x86from the child")
                except rakwire.ForkError as error:
                    print("spawn" in str(error), flush=True)
                try:
                    await rakwire.Endpoint.bind()
                except rakwire.ForkError:
                    print("refused", flush=True)
                del here, there, client
                gc.collect()
                os._exit(7)
            _, status = os.waitpid(child, 0)
            print(os.waitstatus_to_exitcode(status))
            await here.send(b"\\x86from the parent")
            print((await there.recv()).data)

        asyncio.run(main())
    """
    result = _run(program)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "True\nrefused\n7\nb'\\x86from the parent'\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forked_before_the_first_endpoint_can_bind_one() -> None:
    program = """
        import asyncio, os, rakwire

        async def main():
            async with await rakwire.Endpoint.bind("127.0.0.1:0") as endpoint:
                print(endpoint.local_address.host, flush=True)

        if os.fork() == 0:
            asyncio.run(main())
            os._exit(0)
        os.wait()
    """
    result = _run(program)
    assert (result.returncode, result.stdout, result.stderr) == (0, "127.0.0.1\n", "")
