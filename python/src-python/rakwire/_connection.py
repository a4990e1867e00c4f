"""The class Connection."""

from __future__ import annotations

from types import TracebackType
from typing import AsyncIterator, List, Optional, Type, Union

from rakwire import _native
from rakwire._errors import ConnectionClosed
from rakwire._native import Message, Operation
from rakwire._options import seconds
from rakwire._types import (
    Address,
    ConnectionStats,
    DisconnectReason,
    Outcome,
    Priority,
    Progress,
    Reliability,
    SecurePeer,
)

__all__ = ["Connection"]

_Bytes = Union[bytes, bytearray, memoryview]


class Connection:
    """An open connection to a peer.

    ``Endpoint.connect`` and ``Endpoint.accept`` return connections. ``async for`` receives messages until the
    connection closes. ``async with`` disconnects at the end of its block, and waits until the connection is closed.
    When the last reference is dropped, the connection disconnects in the background.
    """

    __slots__ = ("__weakref__", "_native")

    def __init__(self, native: _native.Connection) -> None:
        """Wrap a native connection. Applications get connections from an endpoint instead."""
        self._native = native

    async def send(
        self,
        data: _Bytes,
        *,
        reliability: Reliability = Reliability.RELIABLE_ORDERED,
        channel: int = 0,
        priority: Priority = Priority.MEDIUM,
    ) -> Optional[int]:
        """Queue a message for sending, and wait while the send memory is full.

        The first byte is the message id; applications use 0x86 and above. When this returns, the message is queued, but
        not yet delivered. If the task is cancelled while waiting, nothing is sent.

        :param channel: the ordering channel of ordered and sequenced messages, 0 to 31.
        :returns: the receipt number, if the reliability requests a receipt.
        :raises MessageError: if the message is empty, too long, or begins with a byte below 0x1B.
        :raises ConnectionClosed: if the connection is closed.
        """
        sent = self._native.send(data, reliability, channel, priority)
        if isinstance(sent, Operation):
            return await sent
        return sent

    def try_send(
        self,
        data: _Bytes,
        *,
        reliability: Reliability = Reliability.RELIABLE_ORDERED,
        channel: int = 0,
        priority: Priority = Priority.MEDIUM,
    ) -> Optional[int]:
        """Send a message without waiting. The parameters and other exceptions are those of ``send``.

        :raises NoRoom: if the send memory is full. Try again after the peer has acknowledged earlier messages.
        """
        return self._native.try_send(data, reliability, channel, priority)

    async def recv(self) -> Message:
        """Wait for the next message. If the task is cancelled, no message is lost.

        :raises ConnectionClosed: once the connection is closed and all messages were received.
        """
        message = self._native.recv()
        if isinstance(message, Operation):
            return await message
        return message

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        try:
            message = self._native.recv()
            if isinstance(message, Operation):
                return await message
            return message
        except ConnectionClosed:
            raise StopAsyncIteration from None

    async def recv_receipt(self) -> Outcome:
        """Wait until the next message with a receipt is acknowledged or lost, and return the outcome.

        :raises ConnectionClosed: once the connection is closed and all outcomes were received.
        """
        return Outcome(*await self._native.recv_receipt())

    async def recv_progress(self) -> Progress:
        """Wait for the progress of a split message. Requires ``Options.progress_interval``.

        :raises ConnectionClosed: once the connection is closed.
        """
        return Progress(*await self._native.recv_progress())

    async def mtu_changed(self) -> int:
        """Wait until the MTU decreases because the path carries less, and return the new MTU in bytes.

        :raises ConnectionClosed: once the connection is closed.
        """
        return await self._native.mtu_changed()

    async def disconnect(
        self,
        message: Optional[_Bytes] = None,
        *,
        reliability: Reliability = Reliability.RELIABLE_ORDERED,
        channel: int = 0,
    ) -> None:
        """Close the connection, and wait until it is closed.

        Earlier reliable messages are delivered first, for at most ``Options.close_timeout``.

        :param message: a last message, such as the reason for disconnecting.
        :raises ConnectionClosed: if the connection is already closed and there is a ``message``.
        """
        await self._native.disconnect(message, reliability, channel)

    async def wait_closed(self) -> DisconnectReason:
        """Wait until the connection is closed, and return the reason."""
        return DisconnectReason(await self._native.wait_closed())

    @property
    def is_closed(self) -> bool:
        """True once the connection is closed. Messages received before that can still be read with ``recv``."""
        return self._native.closed_reason is not None

    @property
    def closed_reason(self) -> Optional[DisconnectReason]:
        """The reason why the connection closed, or None while it is open."""
        reason = self._native.closed_reason
        return None if reason is None else DisconnectReason(reason)

    @property
    def remote_address(self) -> Address:
        """The address of the peer."""
        return Address(*self._native.remote_address)

    @property
    def internal_addresses(self) -> List[Address]:
        """The addresses that the peer reports as its own. They are not verified."""
        return [Address(*address) for address in self._native.internal_addresses]

    @property
    def guid(self) -> int:
        """The GUID that the peer chose. It is not authenticated."""
        return self._native.guid

    @property
    def max_message_length(self) -> Optional[int]:
        """The maximum message length in bytes, or None once the connection is closed."""
        return self._native.max_message_length

    @property
    def mtu(self) -> Optional[int]:
        """The MTU in bytes, including 28 bytes of IP and UDP headers, or None once the connection is closed."""
        return self._native.mtu

    @property
    def round_trip(self) -> Optional[float]:
        """The smoothed round-trip time in seconds, or None before the first sample and after closing."""
        return self._native.round_trip

    def set_timeout(self, timeout: float) -> None:
        """Set the timeout of this connection in seconds, which replaces ``Options.timeout``.

        :raises ConnectionClosed: if the connection is closed.
        """
        seconds("timeout", timeout)
        self._native.set_timeout(timeout)

    def stats(self) -> Optional[ConnectionStats]:
        """Return the counters and measurements, or None once the connection is closed."""
        stats = self._native.stats()
        return None if stats is None else ConnectionStats(**stats)

    def secure_peer(self) -> Optional[SecurePeer]:
        """Return the authenticated key, identity and token of the peer, or None if the connection is not secure."""
        peer = self._native.secure_peer()
        return None if peer is None else SecurePeer(**peer)

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self._native.disconnect(None, Reliability.RELIABLE_ORDERED, 0)

    def __repr__(self) -> str:
        reason = self._native.closed_reason
        state = "open" if reason is None else f"closed: {reason}"
        return f"<rakwire.Connection to {self.remote_address}, {state}>"
